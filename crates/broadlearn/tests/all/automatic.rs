//! Everything left open: robust without settings, and honest about its errors.

use broadlearn::data::{Schema, TargetSchema, Targets};
use broadlearn::evaluate::Audit;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{Activation, Growth, NodeGroup, Recipe};
use broadlearn::model::{Labelled, Precision, Region, Training};
use broadlearn::solve::{Loss, RobustLoss};
use broadlearn::{Category, Model, Settings, unobserved};

/// Friedman's first function of ten inputs, of which five count, with noise of deviation 1.
fn friedman(rows: usize, seed: u64) -> (Mat<f64>, Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(seed, Purpose::Noise, 3);
    let x = Mat::from_fn(rows, 10, |_, _| stream.unit());
    let truth = Mat::from_fn(rows, 1, |i, _| {
        let x = |j: usize| x[(i, j)];
        10.0 * (std::f64::consts::PI * x(0) * x(1)).sin()
            + 20.0 * (x(2) - 0.5).powi(2)
            + 10.0 * x(3)
            + 5.0 * x(4)
    });
    let noisy = Mat::from_fn(rows, 1, |i, _| truth[(i, 0)] + stream.normal());
    (x, noisy, truth)
}

fn rmse(model: &Model, x: &Mat<f64>, truth: &Mat<f64>) -> f64 {
    let error = model.predict(x).unwrap().values() - truth;
    error.norm_l2() / (truth.nrows() as f64).sqrt()
}

#[test]
fn a_sensor_stuck_high_in_two_rows_of_five_does_not_mislead() {
    let (x, clean, _) = friedman(1000, 1);
    let (test, _, truth) = friedman(500, 2);
    let fit = |y: &Mat<f64>| Settings::new().fit_regression(&x, y).unwrap();
    let without = rmse(&fit(&clean), &test, &truth);
    for shift in [30.0, -30.0] {
        let stuck =
            Mat::from_fn(1000, 1, |i, _| clean[(i, 0)] + if i % 5 < 2 { shift } else { 0.0 });
        let with = rmse(&fit(&stuck), &test, &truth);
        assert!(with < 1.5 * without, "{with} against {without}");
    }
}

#[test]
fn scattered_outliers_cost_little() {
    let (x, clean, _) = friedman(1000, 3);
    let (test, _, truth) = friedman(500, 4);
    let mut stream = Stream::new(5, Purpose::Noise, 4);
    let spoilt = Mat::from_fn(1000, 1, |i, _| {
        clean[(i, 0)] + if i % 5 == 0 { 60.0 * stream.symmetric() } else { 0.0 }
    });
    let fit = |y: &Mat<f64>| Settings::new().fit_regression(&x, y).unwrap();
    let (with, without) = (rmse(&fit(&spoilt), &test, &truth), rmse(&fit(&clean), &test, &truth));
    let plain = Settings::new().squared().fit_regression(&x, &spoilt).unwrap();
    assert!(with < 1.3 * without, "{with} against {without}");
    assert!(rmse(&plain, &test, &truth) > 2.0 * with);
}

/// What is chosen is judged by rows that a model has not seen, and a row whose copy stays has been seen. Nor does it matter
/// in which unit the weights of the rows are.
#[test]
fn copies_of_rows_and_the_unit_of_weights_change_nothing() {
    let (x, y, _) = friedman(120, 40);
    let (test, _, _) = friedman(200, 41);
    let copied = |m: &Mat<f64>, times: usize| {
        let row = |i: usize| if i < 120 { i } else { i * 7 % 120 };
        Mat::from_fn(m.nrows() * times, m.ncols(), |i, j| m[(row(i), j)])
    };
    let fit = |x: &Mat<f64>, y: &Mat<f64>, weight: Option<f64>| {
        let names = vec!["y".into()];
        let schema = Schema::numeric(x.ncols(), TargetSchema::Regression { names });
        let weights = weight.map(|weight| vec![weight; x.nrows()]);
        let (targets, weights) = (&Targets::Values(y.clone()), weights.as_deref());
        let training = Training { x: x.as_ref(), targets, weights, schema };
        Settings::new().fit(training, &mut unobserved).unwrap()
    };
    let width = |model: &Model| {
        let Region::UsualHalfWidths(half) = model.region(0.9).unwrap() else { unreachable!() };
        half[0]
    };
    let once = fit(&x, &y, None);
    let expected = once.predict(&test).unwrap().values().to_owned();
    let check = |model: &Model, rows: u64| {
        let found = model.predict(&test).unwrap().values().to_owned();
        let difference = (found - &expected).norm_l2() / expected.norm_l2();
        assert!(difference < 1e-6, "{rows} rows: {difference:e}");
        assert!((width(model) / width(&once) - 1.0).abs() < 1e-4, "{rows} rows");
        assert_eq!(model.rows(), rows);
    };
    for times in [2, 3] {
        let (x, y) = (copied(&x, times), copied(&y, times));
        let mut model = fit(&x, &y, None);
        check(&model, 120 * times as u64);
        assert_eq!(model.knowledge().unwrap().ledger().len(), 120 * times);
        // Every copy can be forgotten by itself.
        let (x, y) = (x.subrows(0, 1).to_owned(), y.subrows(0, 1).to_owned());
        let one = Targets::Values(y);
        let rows = Labelled { x: x.as_ref(), targets: &one, weights: None };
        assert_eq!(model.forget(rows, &mut unobserved).unwrap().rows_left, 120 * times as u64 - 1);
    }
    for weight in [1.0 / 300.0, 1.0, 1e6] {
        check(&fit(&x, &y, Some(weight)), 120);
    }
}

/// A single cell of nonsense, in a target or in an input.
#[test]
fn one_wild_cell_costs_little() {
    let (x, clean, _) = friedman(300, 30);
    let (test, _, truth) = friedman(500, 31);
    let fit = |x: &Mat<f64>, y: &Mat<f64>| Settings::new().fit_regression(x, y).unwrap();
    let without = rmse(&fit(&x, &clean), &test, &truth);
    for wild in [-9999.0, 1e6, 1e10, 1e30] {
        let (mut target, mut input) = (clean.clone(), x.clone());
        target[(7, 0)] = wild;
        input[(7, 0)] = wild;
        for model in [fit(&x, &target), fit(&input, &clean)] {
            let with = rmse(&model, &test, &truth);
            assert!(with < 1.2 * without, "{wild}: {with} against {without}");
        }
    }
}

/// What was fitted on clean rows must not believe whatever comes later.
#[test]
fn a_model_of_clean_rows_learns_dirty_ones() {
    let (x, clean, _) = friedman(600, 32);
    let (more, y, _) = friedman(600, 33);
    let (test, _, truth) = friedman(500, 34);
    let spoilt =
        Mat::from_fn(600, 1, |i, _| if i % 10 == 0 { 60.0 - y[(i, 0)] } else { y[(i, 0)] });
    let mut model = Settings::new().fit_regression(&x, &clean).unwrap();
    let before = rmse(&model, &test, &truth);
    let targets = Targets::Values(spoilt);
    let rows = Labelled { x: more.as_ref(), targets: &targets, weights: None };
    model.learn(rows, Default::default(), &mut unobserved).unwrap();
    let after = rmse(&model, &test, &truth);
    assert!(after < before, "{after} against {before}");
}

/// The rows of clean data that are hard to learn are not wrong: a step of the target in one row of
/// twelve, which an input announces.
#[test]
fn a_tail_that_can_be_predicted_is_believed() {
    let rows = 360;
    let mut stream = Stream::new(6, Purpose::Noise, 5);
    let x = Mat::from_fn(rows, 2, |i, j| match j {
        0 => stream.unit(),
        _ => f64::from(i % 12 == 0),
    });
    let y = Mat::from_fn(rows, 1, |i, _| x[(i, 0)] + 8.0 * x[(i, 1)] + 0.2 * stream.normal());
    let model = Settings::new().fit_regression(&x, &y).unwrap();
    let high = model.predict(&Mat::from_fn(1, 2, |_, j| [0.5, 1.0][j])).unwrap().values()[(0, 0)];
    assert!((high - 8.5).abs() < 0.5, "{high}");
}

#[test]
fn intervals_hold_as_many_rows_as_they_say_with_and_without_wrong_targets() {
    let (x, clean, _) = friedman(1000, 7);
    let (test, new, _) = friedman(2000, 8);
    let mut stream = Stream::new(9, Purpose::Noise, 6);
    let spoilt = Mat::from_fn(1000, 1, |i, _| {
        clean[(i, 0)] + if i % 5 == 0 { 60.0 * stream.unit() } else { 0.0 }
    });
    for y in [&clean, &spoilt] {
        let model = Settings::new().fit_regression(&x, y).unwrap();
        let predictions = model.predict(&test).unwrap();
        let mut width = 0.0;
        for level in [0.5, 0.9] {
            let Region::UsualHalfWidths(half) = model.region(level).unwrap() else {
                unreachable!()
            };
            assert!(half[0] > width, "wider for more");
            width = half[0];
            let spreads = model.spreads(&test, &predictions).unwrap();
            let error = |i: usize| (predictions.values()[(i, 0)] - new[(i, 0)]).abs();
            let inside = (0..2000).filter(|&i| error(i) <= half[0] * spreads[i]).count() as f64;
            assert!((inside / 2000.0 - level).abs() < 0.04, "{inside} at {level}");
        }
    }
}

/// Where a column that matters was missing, little can be said of a row: its interval is wider, and it is no suspect.
#[test]
fn rows_of_which_less_is_known_have_wider_intervals_and_are_no_suspects() {
    let (full, y, _) = friedman(1500, 50);
    let (full_test, new, _) = friedman(2000, 51);
    // Column 3 matters most. What takes its place, and whether it does.
    let mut stream = Stream::new(52, Purpose::Noise, 0);
    let mut with_gaps = |x: &Mat<f64>| {
        let missing: Vec<bool> = (0..x.nrows()).map(|_| stream.unit() < 0.05).collect();
        let x = Mat::from_fn(x.nrows(), x.ncols() + 1, |i, j| match j {
            3 if missing[i] => 0.5,
            j if j < x.ncols() => x[(i, j)],
            _ => f64::from(missing[i]),
        });
        (x, missing)
    };
    let (x, missing) = with_gaps(&full);
    let (test, test_missing) = with_gaps(&full_test);
    let model = Settings::new().fit_regression(&x, &y).unwrap();
    let Region::UsualHalfWidths(half) = model.region(0.9).unwrap() else { unreachable!() };
    let predictions = model.predict(&test).unwrap();
    let spreads = model.spreads(&test, &predictions).unwrap();
    for gap in [true, false] {
        let rows: Vec<usize> = (0..2000).filter(|&i| test_missing[i] == gap).collect();
        let error = |i: usize| (predictions.values()[(i, 0)] - new[(i, 0)]).abs();
        let held = rows.iter().filter(|&&i| error(i) <= half[0] * spreads[i]).count();
        let share = held as f64 / rows.len() as f64;
        // With one width for all: 0.49 of about a hundred such rows.
        assert!((0.8..0.96).contains(&share), "{gap}: {share}");
    }
    let targets = Targets::Values(y);
    let rows = Labelled { x: x.as_ref(), targets: &targets, weights: None };
    let left_out = model.leave_one_out(rows, &mut unobserved).unwrap();
    let audit = Audit::new(&left_out, &targets).unwrap();
    let suspects = (0..1500).filter(|&i| missing[i] && audit.suspects[i]).count();
    assert!(suspects <= 4, "{suspects}");

    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.spreads(&test, &predictions).unwrap(), spreads);
    assert!(model.spreads(&x, &predictions).is_err());
}

/// Every second row of such a table has half of the classes only: a sample must not be that.
#[test]
fn tables_that_repeat_themselves_are_sampled_fairly() {
    const ROWS: usize = 5200;
    let mut stream = Stream::new(62, Purpose::Noise, 0);
    let class = |i: usize| i % 6;
    let mut of_class = |class: usize| -> [f64; 2] {
        let angle = class as f64 * std::f64::consts::TAU / 6.0;
        [angle.cos() + 0.2 * stream.normal(), angle.sin() + 0.2 * stream.normal()]
    };
    let points: Vec<[f64; 2]> = (0..ROWS).map(|i| of_class(class(i))).collect();
    let x = Mat::from_fn(ROWS, 2, |i, j| points[i][j]);
    let given: Vec<u32> = (0..ROWS).map(|i| class(i) as u32).collect();
    let settings = Settings::new().enhancement_nodes(30).members(1);
    let model = settings.fit_classes(&x, &given).unwrap();
    let found = model.predict(&x).unwrap().classes();
    let hits = found.iter().zip(&given).filter(|(a, b)| a == b).count();
    assert!(hits > ROWS * 9 / 10, "{hits} of {ROWS}");
    let least = match model.region(0.9).unwrap() {
        Region::LeastProbability(least) => least,
        Region::UsualHalfWidths(_) => unreachable!(),
    };
    let sets = model.predict(&x).unwrap().class_sets(least);
    let held = sets.iter().zip(&given).filter(|(set, class)| set.contains(class)).count();
    assert!(held > ROWS * 87 / 100, "{held} of {ROWS}");

    // Rows of two sensors in turn, one of them noisy.
    let noise = |i: usize| if i.is_multiple_of(2) { 0.1 } else { 1.0 };
    let y = Mat::from_fn(ROWS, 1, |i, _| x[(i, 0)] + noise(i) * stream.normal());
    let x = Mat::from_fn(ROWS, 3, |i, j| if j < 2 { x[(i, j)] } else { (i % 2) as f64 });
    let settings = Settings::new().enhancement_nodes(30).members(1);
    let model = settings.fit_regression(&x, &y).unwrap();
    let Region::UsualHalfWidths(half) = model.region(0.9).unwrap() else { unreachable!() };
    let predictions = model.predict(&x).unwrap();
    let spreads = model.spreads(&x, &predictions).unwrap();
    let off = |i: usize| (predictions.values()[(i, 0)] - y[(i, 0)]).abs();
    for sensor in 0..2 {
        let rows = (sensor..ROWS).step_by(2);
        let held = rows.filter(|&i| off(i) <= half[0] * spreads[i]).count();
        assert!((held as f64 / ROWS as f64 - 0.45).abs() < 0.03, "{sensor}: {held} of {ROWS}");
    }
}

/// Ten classes in order along a line: least squares alone hides those in the middle (of a table like this 0.72 of new rows were right,
/// and 337 rows that it had learnt were suspects).
#[test]
fn classes_in_order_are_told_apart_and_no_suspects() {
    let classes_of = |seed: u64| {
        let mut stream = Stream::new(seed, Purpose::Noise, 0);
        let x = Mat::from_fn(1500, 4, |_, _| stream.unit());
        let score = |i: usize| 0.25 * (x[(i, 0)] + x[(i, 1)] + x[(i, 2)] + x[(i, 3)]);
        // Between 0.2 and 0.8, with what lies beyond in the first and the last.
        let class = |i: usize| (10.0 * (score(i) - 0.2) / 0.6).clamp(0.0, 9.0) as u32;
        let classes: Vec<u32> = (0..1500).map(class).collect();
        (x, classes)
    };
    let ((x, given), (new, right)) = (classes_of(60), classes_of(61));
    let model = Settings::new().fit_classes(&x, &given).unwrap();
    assert!(model.has_discriminant());
    let predictions = model.predict(&new).unwrap();
    let hits = predictions.classes().iter().zip(&right).filter(|(a, b)| a == b).count();
    assert!(hits > 1250, "{hits} of 1500");

    let targets = Targets::Classes(given.clone());
    let rows = Labelled { x: x.as_ref(), targets: &targets, weights: None };
    let left_out = model.leave_one_out(rows, &mut unobserved).unwrap();
    let suspects = Audit::new(&left_out, &targets).unwrap().suspects;
    let suspects = suspects.iter().filter(|suspect| **suspect).count();
    assert!(suspects < 100, "{suspects} of 1500");

    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert!(again.predict(&new).unwrap().values() == predictions.values());
    let row: Vec<f64> = new.row(7).iter().copied().collect();
    let mut single = again.row_predictor();
    for (one, all) in single.predict(&row).unwrap().iter().zip(predictions.values().row(7).iter()) {
        assert!((one - all).abs() < 1e-9);
    }
    let mut more = model.clone();
    more.add_classes(&["ten".into()]).unwrap();
    assert!(!more.has_discriminant() && more.calibration().is_none());
    // Shards read their outputs as the first model does.
    let sibling = model.sibling(rows, &mut unobserved).unwrap();
    assert!(Model::merge(&[&model, &sibling]).unwrap().has_discriminant());
    // What is given is the method of the paper.
    let plain = Settings::new().enhancement_nodes(50).sigma(1.0).ridge(1.0);
    assert!(!plain.clone().fit_classes(&x, &given).unwrap().has_discriminant());
    let asked = plain.discriminant(true).fit_classes(&x, &given).unwrap();
    assert!(asked.has_discriminant());
    assert!(
        !Settings::new().discriminant(false).fit_classes(&x, &given).unwrap().has_discriminant()
    );
    let y = x.subcols(0, 1).to_owned();
    assert!(Settings::new().discriminant(true).fit_regression(&x, &y).is_err());
}

/// On normal noise a narrow kernel is better by chance only. It was once taken in three of 24 draws, distrusted 40 % of the
/// rows, and took the tail of the noise for errors: intervals of 90 % held 72 %.
#[test]
fn clean_rows_are_believed_although_a_narrow_kernel_looks_better_by_chance() {
    let mut held = 0;
    let draws = 6;
    for seed in 0..draws {
        let mut stream = Stream::new(seed, Purpose::Noise, 9);
        let x = Mat::from_fn(1300, 2, |_, _| stream.normal());
        let y = Mat::from_fn(1300, 1, |i, _| 2.0 * x[(i, 0)] + x[(i, 1)] + 0.1 * stream.normal());
        let (known, new) = (x.subrows(0, 300), x.subrows(300, 1000));
        let model = Settings::new().fit_regression(known, y.subrows(0, 300)).unwrap();
        let distrusted = model.report().downweighted;
        assert!(distrusted < 0.21, "seed {seed}: {distrusted}");
        let Region::UsualHalfWidths(half) = model.region(0.9).unwrap() else { unreachable!() };
        let found = model.predict(new).unwrap();
        let spreads = model.spreads(new, &found).unwrap();
        let error = |i: usize| (found.values()[(i, 0)] - y[(300 + i, 0)]).abs();
        let within = |i: &usize| error(*i) <= half[0] * spreads[*i];
        held += (0..1000).filter(within).count();
    }
    let share = held as f64 / (1000 * draws) as f64;
    assert!((0.86..0.94).contains(&share), "{share}");
}

/// Rain: two thirds of the targets are 0, and to predict 0 throughout meets them all.
#[test]
fn a_target_that_is_mostly_0_is_not_predicted_as_0_throughout() {
    for seed in 0..4 {
        let mut stream = Stream::new(seed, Purpose::Noise, 10);
        let x = Mat::from_fn(650, 5, |_, _| stream.normal());
        let y = Mat::from_fn(650, 1, |i, _| {
            (2.0 * x[(i, 0)] + x[(i, 1)] - 1.0 + 0.3 * stream.normal()).max(0.0)
        });
        let (test_x, test_y) = (x.subrows(150, 500).to_owned(), y.subrows(150, 500).to_owned());
        let model = Settings::new().fit_regression(x.subrows(0, 150), y.subrows(0, 150)).unwrap();
        let (error, of_nothing) =
            (rmse(&model, &test_x, &test_y), test_y.norm_l2() / 500.0_f64.sqrt());
        assert!(error < 0.4 * of_nothing, "seed {seed}: {error} of {of_nothing}");
    }
}

#[test]
fn sets_hold_the_class_as_often_as_they_say() {
    let mut stream = Stream::new(10, Purpose::Noise, 7);
    let mut draw = |rows: usize, wrong: f64| {
        let classes: Vec<u32> = (0..rows).map(|i| (i % 3) as u32).collect();
        let x = Mat::from_fn(rows, 2, |i, j| {
            let angle = f64::from(classes[i]) * 2.1 + j as f64 * 1.57;
            1.3 * angle.cos() + stream.normal()
        });
        let given: Vec<u32> = classes
            .iter()
            .map(|&class| if stream.unit() < wrong { (class + 1) % 3 } else { class })
            .collect();
        (x, given)
    };
    let (test, truth) = draw(2000, 0.0);
    for wrong in [0.0, 0.2] {
        let (x, given) = draw(900, wrong);
        let model = Settings::new().fit_classes(&x, &given).unwrap();
        let Region::LeastProbability(least) = model.region(0.9).unwrap() else { unreachable!() };
        let sets = model.predict(&test).unwrap().class_sets(least);
        let inside = sets.iter().zip(&truth).filter(|(set, class)| set.contains(class)).count();
        let share = inside as f64 / 2000.0;
        assert!((share - 0.9).abs() < 0.05, "{share} with {wrong} wrong");
        assert!(sets.iter().all(|set| !set.is_empty()));
    }
}

#[test]
fn rows_unlike_the_training_rows_are_novel() {
    let (x, y, _) = friedman(400, 11);
    let (test, ..) = friedman(400, 12);
    let model = Settings::new().fit_regression(&x, &y).unwrap();
    let like = model.novelty(&test).unwrap();
    let above = like.iter().filter(|novelty| **novelty > 1.0).count();
    assert!(above < 20, "{above} of 400 where about 4 are expected");
    let far = Mat::from_fn(1, 10, |_, _| 4.0);
    assert!(model.novelty(&far).unwrap()[0] > 3.0);
    let compact = model.compact();
    assert!(compact.region(0.9).is_ok() && compact.novelty(&far).is_err());
}

#[test]
fn calibration_is_kept_in_the_file() {
    let (x, y, _) = friedman(200, 13);
    let model = Settings::new().fit_regression(&x, &y).unwrap();
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert!(model.calibration().is_some());
    assert_eq!(model.calibration(), again.calibration());
    assert_eq!(model.novelty(&x).unwrap(), again.novelty(&x).unwrap());
}

#[test]
fn what_is_given_stays_as_it_was_given() {
    let (x, y, _) = friedman(150, 14);
    let model = Settings::new().gain(0.9).fit_regression(&x, &y).unwrap();
    assert_eq!(model.settings().network().enhancement.gain, Some(0.9));
    let model = Settings::new().enhancement_nodes(37).fit_regression(&x, &y).unwrap();
    assert_eq!(model.settings().network().enhancement.nodes, 37);
    let relu = Settings::recipe(Recipe::Classic).activation(Activation::Relu);
    let model = relu.loss(RobustLoss::Huber).fit_regression(&x, &y).unwrap();
    assert_eq!(model.settings().recipe(), Recipe::Classic);
    assert_eq!(model.settings().network().enhancement.activation, Activation::Relu);
    let model = Settings::new().ridge(0.5).sigma(2.0).fit_regression(&x, &y).unwrap();
    assert_eq!(model.report().ridge, Some(0.5));
    assert!(matches!(model.report().loss, Loss::Robust { sigma, .. } if sigma == 2.0));
    assert!(!model.report().networks.is_empty());
}

/// A product of two of twelve inputs, which no linear model sees, with 20 % of the targets spoilt.
fn product_of_two(rows: usize, seed: u64) -> (Mat<f64>, Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(seed, Purpose::Noise, 4);
    let x = Mat::from_fn(rows, 12, |_, _| stream.normal());
    let truth = Mat::from_fn(rows, 1, |i, _| (2.0 * x[(i, 3)]).sin() * x[(i, 8)]);
    let spoilt = Mat::from_fn(rows, 1, |i, _| {
        let outlier = if stream.unit() < 0.2 { 6.0 * stream.unit() } else { 0.0 };
        truth[(i, 0)] + 0.05 * stream.normal() + outlier
    });
    (x, spoilt, truth)
}

#[test]
fn the_inputs_that_matter_are_found_among_wrong_targets() {
    let (x, y, _) = product_of_two(1000, 20);
    let (test, _, truth) = product_of_two(1000, 21);
    let model = Settings::new().members(1).fit_regression(&x, &y).unwrap();
    let relevance = model.relevance();
    let (first, others) = relevance.split_at(2);
    let mut found: Vec<&str> = first.iter().map(|(name, _)| *name).collect();
    found.sort_unstable();
    assert_eq!(found, ["x4", "x9"], "{relevance:?}");
    assert!(first[1].1 > 3.0 * others[0].1, "{relevance:?}");
    // The truth has a deviation of 0.7; a network of weights of one size hardly sees it.
    let plain = Settings::new().gain(0.7).members(1).fit_regression(&x, &y).unwrap();
    assert!(plain.relevance().is_empty());
    let (with, without) = (rmse(&model, &test, &truth), rmse(&plain, &test, &truth));
    assert!(with < 0.5 * without, "{with} {without}");
    // Nor is there time to look at the inputs within a tenth of a second.
    let hasty = Settings::new().budget(0.1).members(1).fit_regression(&x, &y).unwrap();
    assert!(hasty.relevance().is_empty());
    assert_eq!(hasty.settings().network().enhancement.fan_in, None);

    // It belongs to the network: kept in the file, used for new nodes.
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.relevance(), relevance);
    let targets = Targets::Values(y.clone());
    let rows = Labelled { x: x.as_ref(), targets: &targets, weights: None };
    let growth = Growth { enhancement_nodes: 40, ..Growth::default() };
    let grown = model.grow(growth, rows, &mut unobserved).unwrap();
    let NodeGroup::Dense { weights, .. } = grown.map().groups().last().unwrap() else {
        panic!("enhancement nodes come last");
    };
    let size = |input: usize| weights.row(input).norm_l2();
    assert!(size(3).min(size(8)) > 2.0 * size(0), "{} {} {}", size(3), size(8), size(0));
}

/// Two classes by the signs of three of thirty inputs; two fifths of the labels are wrong.
fn hidden_among_thirty(rows: usize, seed: u64, wrong: f64) -> (Mat<f64>, Vec<u32>) {
    let mut stream = Stream::new(seed, Purpose::Noise, 6);
    let x = Mat::from_fn(rows, 30, |_, _| if stream.unit() < 0.5 { -1.0 } else { 1.0 });
    let labels = (0..rows)
        .map(|i| {
            let truth = x[(i, 4)] + x[(i, 11)] + x[(i, 20)] > 0.0;
            u32::from(truth != (stream.unit() < wrong))
        })
        .collect();
    (x, labels)
}

#[test]
fn few_inputs_are_found_among_many_wrong_labels() {
    let (x, labels) = hidden_among_thirty(1500, 30, 0.4);
    let (test, truth) = hidden_among_thirty(1000, 31, 0.0);
    let model = Settings::new().members(1).fit_classes(&x, &labels).unwrap();
    let mut found: Vec<&str> =
        model.relevance().into_iter().take(3).map(|(name, _)| name).collect();
    found.sort_unstable();
    assert_eq!(found, ["x12", "x21", "x5"]);
    let right = |predicted: &[u32]| {
        predicted.iter().zip(&truth).filter(|(code, truth)| code == truth).count()
    };
    let predicted = model.predict(&test).unwrap();
    assert!(right(&predicted.classes()) > 900, "{}", right(&predicted.classes()));

    // The inputs in U have their relevance, too: in the file, in rows one at a time, in single precision.
    assert!(model.map().groups().iter().any(|group| matches!(group, NodeGroup::Relevant(_))));
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.predict(&test).unwrap().values(), predicted.values());
    let row: Vec<f64> = test.row(7).iter().copied().collect();
    let mut one = model.row_predictor();
    let outputs = one.predict(&row).unwrap();
    for (class, output) in outputs.iter().enumerate() {
        assert!((output - predicted.values()[(7, class)]).abs() < 1e-9);
    }
    let single = model.predictor(Precision::Single).predict(&test).unwrap();
    assert_eq!(single.classes(), predicted.classes());
}

#[test]
fn nodes_that_read_two_inputs_are_taken_where_they_are_better() {
    let steps = |rows: usize, seed: u64| {
        let mut stream = Stream::new(seed, Purpose::Noise, 7);
        let x = Mat::from_fn(rows, 8, |_, _| stream.normal());
        let y = Mat::from_fn(rows, 1, |i, _| {
            x.row(i).iter().map(|x| if *x > 0.3 { 1.0 } else { 0.0 }).sum::<f64>()
                + 0.1 * stream.normal()
        });
        (x, y)
    };
    let ((x, y), (test, truth)) = (steps(600, 40), steps(600, 41));
    let model = Settings::new().members(1).fit_regression(&x, &y).unwrap();
    assert_eq!(model.settings().network().enhancement.fan_in, Some(2));
    let all = Settings::new().fan_in(8).members(1).fit_regression(&x, &y).unwrap();
    let (two, all) = (rmse(&model, &test, &truth), rmse(&all, &test, &truth));
    assert!(two < 0.8 * all, "{two} {all}");
}

/// A slope, and a chequered field of two inputs among five, with noise.
fn chequered(rows: usize, seed: u64) -> (Mat<f64>, Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(seed, Purpose::Noise, 7);
    let x = Mat::from_fn(rows, 5, |_, _| stream.unit());
    let field = |i: usize| ((4.0 * x[(i, 1)]).floor() + (4.0 * x[(i, 2)]).floor()) % 2.0;
    let truth = Mat::from_fn(rows, 1, |i, _| 4.0 * x[(i, 0)] + field(i));
    let noisy = Mat::from_fn(rows, 1, |i, _| truth[(i, 0)] + 0.3 * stream.normal());
    (x, noisy, truth)
}

#[test]
fn many_steep_nodes_are_found_where_the_target_is_not_smooth() {
    let (x, y, _) = chequered(900, 2);
    let (test, _, truth) = chequered(1000, 100);
    let fit = |settings: Settings| settings.members(1).fit_regression(&x, &y).unwrap();
    let automatic = fit(Settings::new());
    assert!(automatic.settings().network().enhancement.nodes > 500);
    let error = rmse(&automatic, &test, &truth);
    // Small networks that see the slope and little of the field.
    for gain in [0.7, 1.5, 3.0] {
        let small = rmse(&fit(Settings::new().gain(gain).enhancement_nodes(100)), &test, &truth);
        assert!(error < 0.95 * small, "{error} against {small} with gain {gain}");
    }
}

#[test]
fn inputs_that_matter_alike_are_not_told_apart() {
    // All of six inputs count in the same way: relevances, if any, are only noise.
    let mut stream = Stream::new(22, Purpose::Noise, 5);
    let x = Mat::from_fn(400, 6, |_, _| stream.normal());
    let y = Mat::from_fn(400, 1, |i, _| {
        x.row(i).iter().map(|x| x.tanh()).sum::<f64>() + stream.normal()
    });
    let model = Settings::new().members(1).fit_regression(&x, &y).unwrap();
    let alike = |(_, relevance): &(&str, f64)| (0.5..2.0).contains(relevance);
    assert!(model.relevance().iter().all(alike), "{:?}", model.relevance());
}

#[test]
fn a_larger_budget_may_take_a_larger_network() {
    let (x, y, _) = friedman(600, 15);
    let nodes = |seconds: f64| {
        let model = Settings::new().budget(seconds).squared().fit_regression(&x, &y).unwrap();
        model.report().networks.iter().map(|network| network.enhancement_nodes).max().unwrap()
    };
    assert!(nodes(0.001) < nodes(1.0));
    let error = Settings::new().budget(0.0).fit_regression(&x, &y).unwrap_err();
    assert_eq!(error.category(), Category::Setting);
}

#[test]
fn a_constant_target_is_an_error_where_something_is_to_be_chosen() {
    let (x, ..) = friedman(50, 16);
    let y = Mat::from_fn(50, 1, |_, _| 3.0);
    let error = Settings::new().fit_regression(&x, &y).unwrap_err();
    assert_eq!(error.category(), Category::Data);
}
