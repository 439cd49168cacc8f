//! What changes of a model do besides keeping to the equations: new classes, shards, refinement, quarantine, refusals.

use crate::increments::{History, labelled, learn, trust};
use crate::support::{Problem, fit, rows_of, targets_of};
use broadlearn::data::{TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{Growth, Recipe};
use broadlearn::model::{Labelled, Learning, Refinement, Region};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::Start;
use broadlearn::{Category, Model, Result, Settings, unobserved};

#[test]
fn a_forgetting_factor_is_a_weight_for_every_row() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    for robust in [false, true] {
        let settings = problem.settings().ridge(1e-3);
        let settings = if robust { settings.sigma(1.0) } else { settings.squared() };
        let first: Vec<usize> = (0..30).collect();
        let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
        let mut model = fit(settings, &fx, &ft, None, problem.schema()).unwrap();
        let mut weights = model.knowledge().unwrap().ledger().weights().to_vec();
        for batch in [30..31, 31..40, 40..60] {
            let rows: Vec<usize> = batch.collect();
            let (bx, bt) = (rows_of(&x, &rows), targets_of(&targets, &rows));
            let fresh = trust(&model, &bx, &bt, robust.then_some(1.0));
            for weight in fresh {
                weights.iter_mut().for_each(|weight| *weight *= 0.95);
                weights.push(weight);
            }
            let learning = Learning { forgetting: 0.95, ..Learning::default() };
            model.learn(labelled(&bx, &bt), learning, &mut unobserved).unwrap();
        }
        let rows = (0..60).zip(weights).collect();
        let error = History { x: &x, targets: &targets, rows }.error(&model);
        assert!(error < 1e-9, "{error:e}");
    }
}

#[test]
fn new_classes_leave_the_old_outputs_alone_until_their_rows_come() {
    let problem = Problem { classes: true, outputs: 4, ..example() };
    let x = problem.x();
    let Targets::Classes(codes) = problem.targets() else { unreachable!() };
    let old: Vec<usize> = (0..problem.rows).filter(|&row| codes[row] < 2).collect();
    let new: Vec<usize> = (0..problem.rows).filter(|&row| codes[row] >= 2).collect();
    assert!(old.len() > 10 && new.len() > 10);
    let targets = Targets::Classes(codes);
    let mut schema = problem.schema();
    schema.target = match schema.target {
        TargetSchema::Classification { name, kind, mut classes } => {
            classes.truncate(2);
            TargetSchema::Classification { name, kind, classes }
        }
        other => other,
    };
    let (ox, ot) = (rows_of(&x, &old), targets_of(&targets, &old));
    let settings = problem.settings().ridge(1e-3).sigma(0.5);
    let mut model = fit(settings, &ox, &ot, None, schema).unwrap();
    let before = model.predict(&x).unwrap().values().clone();
    model.add_classes(&["two".into(), "three".into()]).unwrap();
    let after = model.predict(&x).unwrap().values().clone();
    assert_eq!(after.subcols(0, 2), before);
    assert_eq!(after.subcols(2, 2).norm_max(), 0.0);

    let (nx, nt) = (rows_of(&x, &new), targets_of(&targets, &new));
    let learnt = learn(&mut model, &nx, &nt).unwrap();
    assert!(learnt.trust.iter().all(|&trust| trust == 1.0), "new classes cannot be judged");
    let weights = model.knowledge().unwrap().ledger().weights().to_vec();
    let rows = old.iter().chain(&new).copied().zip(weights).collect();
    let error = History { x: &x, targets: &targets, rows }.error(&model);
    assert!(error < 1e-9, "{error:e}");
    let found = model.predict(&nx).unwrap().classes();
    let Targets::Classes(truth) = &nt else { unreachable!() };
    let right = found.iter().zip(truth).filter(|(a, b)| a == b).count();
    assert!(2 * right > truth.len(), "{right} of {}", truth.len());
    assert!(model.add_classes(&["two".into()]).is_err());
}

#[test]
fn rounds_across_shards_reach_the_joint_fixed_point() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    let settings = problem.settings().ridge(1e-2).sigma(1.0).stop(1e-12, 5000);
    // The best start may lead shards of few rows to another optimum than all rows together.
    let settings = settings.start(Start::L1, true);
    let joint = fit(settings, &x, &targets, None, problem.schema()).unwrap();
    assert!(joint.report().converged);
    let shards: Vec<(Mat<f64>, Targets)> = (0..3)
        .map(|shard| (0..problem.rows).filter(|row| row % 3 == shard).collect::<Vec<_>>())
        .map(|rows| (rows_of(&x, &rows), targets_of(&targets, &rows)))
        .collect();
    // Each shard by itself, merged: a start that is not the joint optimum.
    let siblings: Vec<Model> = shards
        .iter()
        .map(|(x, t)| joint.sibling(labelled(x, t), &mut unobserved).unwrap())
        .collect();
    let mut model = Model::merge(&siblings.iter().collect::<Vec<_>>()).unwrap();
    let start = model.difference(&joint, x.as_ref()).unwrap();
    for _ in 0..400 {
        let parts: Vec<Model> = shards
            .iter()
            .map(|(x, t)| model.part(labelled(x, t), &mut unobserved).unwrap())
            .collect();
        model = Model::merge(&parts.iter().collect::<Vec<_>>()).unwrap();
    }
    let end = model.difference(&joint, x.as_ref()).unwrap();
    assert!(start > 1e-4 && end < 1e-8, "{start:e} {end:e}");
}

#[test]
fn refining_brings_frozen_weights_up_to_date() {
    let problem = Problem { rows: 200, ..example() };
    let (x, targets) = (problem.x(), problem.targets());
    let settings = problem.settings().ridge(1e-2).sigma(1.0).stop(1e-12, 5000);
    let first: Vec<usize> = (0..20).collect();
    let rest: Vec<usize> = (20..200).collect();
    let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
    let (rx, rt) = (rows_of(&x, &rest), targets_of(&targets, &rest));
    let mut model = fit(settings, &fx, &ft, None, problem.schema()).unwrap();
    assert!(model.drift(labelled(&fx, &ft), &mut unobserved).unwrap().largest < 1e-8);
    learn(&mut model, &rx, &rt).unwrap();
    let all = labelled(&x, &targets);
    let before = model.drift(all, &mut unobserved).unwrap();
    assert!(before.mean > 0.01, "{before:?}");

    let mut annealed = model.clone();
    annealed.refine(all, Refinement::Anneal, &mut unobserved).unwrap();
    let expected = model.sibling(all, &mut unobserved).unwrap();
    assert_eq!(annealed.weights(), expected.weights());

    let mut one_step = model.clone();
    one_step.refine(all, Refinement::Warm { steps: 1 }, &mut unobserved).unwrap();
    let expected = model.part(all, &mut unobserved).unwrap();
    assert!(one_step.difference(&expected, x.as_ref()).unwrap() < 1e-9);

    model.refine(all, Refinement::Warm { steps: 5000 }, &mut unobserved).unwrap();
    let after = model.drift(all, &mut unobserved).unwrap();
    assert!(after.largest < 1e-8, "{after:?}");
    assert_eq!(model.rows(), 200);
}

#[test]
fn threads_do_not_change_a_bit_of_what_is_learnt() {
    let problem = Problem { rows: 5000, columns: 6, ..example() };
    let (x, targets) = (problem.x(), problem.targets());
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let first: Vec<usize> = (0..2000).collect();
            let rest: Vec<usize> = (2000..5000).collect();
            let (fx, ft) = (rows_of(&x, &first), targets_of(&targets, &first));
            let (rx, rt) = (rows_of(&x, &rest), targets_of(&targets, &rest));
            let settings = Settings::new().enhancement_nodes(150).ridge(1e-2).sigma(1.0);
            let mut model = fit(settings, &fx, &ft, None, problem.schema()).unwrap();
            learn(&mut model, &rx, &rt).unwrap();
            let growth = Growth { enhancement_nodes: 60, ..Growth::default() };
            model = model.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
            model.forget(labelled(&fx, &ft), &mut unobserved).unwrap();
            model.to_bytes().unwrap()
        })
    };
    assert!(bytes(1) == bytes(3));
}

#[test]
fn quarantine_keeps_a_poisoned_stream_from_doing_harm() {
    let mut stream = Stream::new(11, Purpose::Noise, 0);
    let rows = 6000;
    let x = Mat::from_fn(rows, 4, |_, _| stream.symmetric());
    let truth = |i: usize| (3.0 * x[(i, 0)]).sin() + x[(i, 1)] * x[(i, 2)] + 0.5 * x[(i, 3)];
    let clean = Mat::from_fn(rows, 1, |i, _| truth(i) + 0.1 * stream.normal());
    // Every fifth batch of fifty rows reads 4 too high.
    let poisoned = Mat::from_fn(rows, 1, |i, _| {
        clean[(i, 0)] + if i >= 1000 && i / 50 % 5 == 0 { 4.0 } else { 0.0 }
    });
    let run = |y: &Mat<f64>, quarantine: f64| -> (f64, usize) {
        let first = y.subrows(0, 1000);
        let mut model = Settings::new().fit_regression(x.subrows(0, 1000), first).unwrap();
        let mut kept_out = 0;
        for batch in 20..80 {
            let bx = x.subrows(50 * batch, 50);
            let targets = Targets::Values(y.subrows(50 * batch, 50).to_owned());
            let rows = Labelled { x: bx, targets: &targets, weights: None };
            let learning = Learning { quarantine, ..Learning::default() };
            kept_out += model.learn(rows, learning, &mut unobserved).unwrap().quarantined.len();
        }
        let test = x.subrows(4000, 2000);
        let f = model.predict(test).unwrap().values().clone();
        let square: f64 = (0..2000).map(|i| (f[(i, 0)] - truth(4000 + i)).powi(2)).sum();
        ((square / 2000.0).sqrt(), kept_out)
    };
    let (reference, _) = run(&clean, 0.1);
    let (robust, kept_out) = run(&poisoned, 0.1);
    assert!((580..640).contains(&kept_out), "{kept_out} of 600 poisoned rows kept out");
    assert!(robust <= 1.2 * reference, "{robust} against {reference}");
}

/// What must be refused, and must leave the model as it was.
#[test]
fn a_grown_model_is_calibrated_anew() {
    let x = Mat::from_fn(300, 1, |i, _| i as f64 / 50.0);
    let targets = Targets::Values(Mat::from_fn(300, 1, |i, _| (2.0 * x[(i, 0)]).sin()));
    let settings = Settings::new().gain(2.0).enhancement_nodes(2).squared().ridge(1e-6);
    let model = fit(settings, &x, &targets, None, crate::support::schema(1, &targets, 1)).unwrap();
    let growth = Growth { enhancement_nodes: 60, ..Growth::default() };
    let grown = model.grow(growth, labelled(&x, &targets), &mut unobserved).unwrap();
    // Two nodes cannot follow a sine over two periods, sixty can.
    let width = |model: &Model| {
        let Region::UsualHalfWidths(half) = model.region(0.9).unwrap() else { unreachable!() };
        2.0 * half[0]
    };
    assert!(width(&model) > 0.5, "{}", width(&model));
    assert!(width(&grown) < 0.05, "{}", width(&grown));
}

#[test]
fn shards_of_a_fit_that_went_about_it_in_another_way_are_merged() {
    let problem = Problem { rows: 60, ..example() };
    let (x, targets) = (problem.x(), problem.targets());
    let half = |from: usize| {
        let rows: Vec<usize> = (from..from + 30).collect();
        (rows_of(&x, &rows), targets_of(&targets, &rows))
    };
    let (x1, t1) = half(0);
    let (x2, t2) = half(30);
    let settings = problem.settings().ridge(0.1).sigma(1.0).memory(1 << 30);
    let model = fit(settings, &x1, &t1, None, problem.schema()).unwrap();
    // A file does not say how much memory there was.
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let sibling = loaded.sibling(labelled(&x2, &t2), &mut unobserved).unwrap();
    assert_eq!(Model::merge(&[&model, &sibling]).unwrap().rows(), 60);
}

#[test]
fn what_cannot_be_learnt_is_refused_and_changes_nothing() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    let all = labelled(&x, &targets);
    // Tamed inputs would not overflow.
    let settings = problem.settings().ridge(1e-3).sigma(1.0).input_scaling(Scaling::Standard);
    let model = fit(settings.clone(), &x, &targets, None, problem.schema()).unwrap();
    let original = model.to_bytes().unwrap();
    let refuse = |what: &str, category, operation: &dyn Fn(&mut Model) -> Result<()>| {
        let mut model = model.clone();
        let error = operation(&mut model).expect_err(what);
        assert_eq!(error.category(), category, "{what}: {error}");
        assert!(model.to_bytes().unwrap() == original, "{what} changed the model");
        error.to_string()
    };
    let quiet = &mut unobserved;

    let narrow = Mat::from_fn(2, problem.columns + 1, |_, _| 0.0);
    let two = targets_of(&targets, &[0, 1]);
    refuse("other columns", Category::Data, &|model| learn(model, &narrow, &two).map(|_| ()));
    let mut wild = rows_of(&x, &[0, 1]);
    wild[(1, 0)] = f64::NAN;
    refuse("NaN", Category::Data, &|model| learn(model, &wild, &two).map(|_| ()));
    wild[(1, 0)] = 1e300;
    refuse("overflow", Category::Data, &|model| learn(model, &wild, &two).map(|_| ()));

    let mut other = rows_of(&x, &[3, 4]);
    other[(1, 0)] += 1e-9;
    let pair = targets_of(&targets, &[3, 4]);
    let message = refuse("rows never learnt", Category::Data, &|model| {
        model.forget(labelled(&other, &pair), &mut unobserved).map(|_| ())
    });
    assert!(message.contains("row 2"), "{message}");
    refuse("everything forgotten", Category::Data, &|model| {
        model.forget(all, &mut unobserved).map(|_| ())
    });
    let growth = Growth { enhancement_nodes: 4, ..Growth::default() };
    refuse("grown on some of the rows", Category::Data, &|model| {
        let (some, some_targets) = (rows_of(&x, &[0, 1, 2]), targets_of(&targets, &[0, 1, 2]));
        model.grow(growth, labelled(&some, &some_targets), &mut unobserved).map(|_| ())
    });
    refuse("no growth", Category::Setting, &|model| {
        model.grow(Growth::default(), all, &mut unobserved).map(|_| ())
    });
    refuse("interrupted", Category::Interrupted, &|model| {
        let stop = &mut |_| std::ops::ControlFlow::Break(());
        model.learn(all, Learning::default(), stop).map(|_| ())
    });
    for forgetting in [0.0, -1.0, 1.1, f64::NAN] {
        refuse("forgetting factor", Category::Setting, &|model| {
            let learning = Learning { forgetting, ..Learning::default() };
            model.learn(all, learning, &mut unobserved).map(|_| ())
        });
    }

    let compact = model.clone().compact();
    let error = compact.clone().learn(all, Learning::default(), quiet).unwrap_err();
    assert!(error.help().unwrap().contains("--compact"), "{error:?}");
    for error in [
        compact.clone().forget(all, quiet).unwrap_err(),
        compact.grow(growth, all, quiet).unwrap_err(),
        Model::merge(&[&compact]).unwrap_err(),
        compact.drift(all, quiet).unwrap_err(),
        compact.part(all, quiet).unwrap_err(),
    ] {
        assert_eq!(error.category(), Category::Model, "{error}");
    }
    let seeded = fit(settings.seed(99), &x, &targets, None, problem.schema()).unwrap();
    let error = Model::merge(&[&model, &seeded]).unwrap_err();
    assert!(error.to_string().contains("seed"), "{error}");
    let pseudo = problem.settings().squared().pseudo_inverse();
    let mut pseudo = fit(pseudo, &x, &targets, None, problem.schema()).unwrap();
    assert!(learn(&mut pseudo, &x, &targets).unwrap_err().help().unwrap().contains("--ridge"));
}

/// Rows that are off the record show themselves where what remains is no sum of squares.
#[test]
fn rows_never_learnt_show_as_indefiniteness() {
    let problem = example();
    let (x, targets) = (problem.x(), problem.targets());
    let settings = problem.settings().ridge(1e-3).squared();
    let mut model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
    model.keep_on_record(0);
    let bytes = model.to_bytes().unwrap();
    let far = Mat::from_fn(1, problem.columns, |_, j| 40.0 + j as f64);
    let one = targets_of(&targets, &[0]);
    let error = model.forget(labelled(&far, &one), &mut unobserved).unwrap_err();
    assert!(error.to_string().contains("cannot have learnt"), "{error}");
    assert!(model.to_bytes().unwrap() == bytes);
    // A row that it has learnt leaves without a record, for its weight is 1.
    let first = rows_of(&x, &[0]);
    model.forget(labelled(&first, &one), &mut unobserved).unwrap();
    let rows = (1..problem.rows).map(|row| (row, 1.0)).collect();
    let error = History { x: &x, targets: &targets, rows }.error(&model);
    assert!(error < 1e-8, "{error:e}");
}

fn example() -> Problem {
    Problem {
        recipe: Recipe::Rich,
        rows: 60,
        columns: 3,
        outputs: 1,
        classes: false,
        constant_column: false,
        duplicate_rows: false,
        ridge: 1e-3,
        sigma: 1.0,
        seed: 7,
    }
}
