//! Series: embedding, forecasts, intervals, evaluation, files.

use broadlearn::data::series::lagged;
use broadlearn::data::{Embedding, Exogenous, ReadOptions, SeriesColumns, TableReader, TimeSeries};
use broadlearn::data::{Schema, TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::{Labelled, Training};
use broadlearn::{Category, Forecaster, Model, Settings, unobserved};

fn quick() -> Settings {
    Settings::new().enhancement_nodes(30).ridge(1e-4).sigma(1.0)
}

/// x(t) = 0.6 x(t-1) + 0.25 x(t-2) + e, e normal.
fn autoregression(n: usize, seed: u64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Noise, 0);
    let mut x = vec![0.0, 0.0];
    while x.len() < n + 100 {
        let t = x.len();
        x.push(0.6 * x[t - 1] + 0.25 * x[t - 2] + stream.normal());
    }
    x.split_off(100)
}

fn noisy_wave(n: usize) -> Vec<f64> {
    let noise = autoregression(n, 3);
    (0..n).map(|t| 10.0 + 3.0 * (t as f64 * 0.5).sin() + 0.3 * noise[t]).collect()
}

fn fit(settings: Settings, embedding: &Embedding, y: &[f64], steps: usize) -> Forecaster {
    let series = TimeSeries::new("y", y.to_vec());
    Forecaster::fit(settings, embedding.clone(), &series, steps, &mut unobserved).unwrap()
}

#[test]
fn the_rows_of_a_series_are_the_table_by_hand() {
    let y: Vec<f64> = (0..30).map(|t| f64::from(t * t % 17)).collect();
    let z: Vec<f64> = (0..30).map(|t| f64::from(t) / 3.0).collect();
    let mut series = TimeSeries::new("y", y.clone());
    series.exogenous.push(("z".into(), z.clone()));
    let embedding = Embedding {
        delay: 2,
        season: Some(7),
        season_lags: 2,
        exogenous: vec![Exogenous { name: "z".into(), lags: vec![0, 3] }],
        ..Embedding::of("y", 2)
    };
    let names = ["y[t-2]", "y[t-4]", "y[t-7]", "y[t-14]", "z[t]", "z[t-3]"];
    assert_eq!(embedding.input_names(), names);
    let rows = series.embed(&embedding).unwrap();
    assert_eq!(rows.points, (14..30).collect::<Vec<_>>());
    for (row, t) in (14..30).enumerate() {
        let by_hand = [y[t - 2], y[t - 4], y[t - 7], y[t - 14], z[t], z[t - 3]];
        assert!((0..6).all(|column| rows.x[(row, column)] == by_hand[column]));
        assert_eq!(rows.y[(row, 0)], y[t]);
    }
    // Plain lags are those of `lagged`, in the other order.
    let (x, target) = lagged(&y, 3);
    let rows = series.embed(&Embedding::of("y", 3)).unwrap();
    assert_eq!(rows.y, target);
    assert_eq!(rows.x, Mat::from_fn(27, 3, |i, j| x[(i, 2 - j)]));
}

#[test]
fn rows_that_touch_a_gap_are_left_out() {
    let mut y = noisy_wave(60);
    y[20] = f64::NAN;
    let embedding = Embedding { differences: 1, ..Embedding::of("y", 2) };
    let rows = TimeSeries::new("y", y).embed(&embedding).unwrap();
    let expected: Vec<usize> = (3..60).filter(|t| !(20..=23).contains(t)).collect();
    assert_eq!(rows.points, expected);
}

#[test]
fn three_steps_are_three_times_one_step_fed_back() {
    let y = noisy_wave(200);
    for embedding in [
        Embedding::of("y", 4),
        Embedding { differences: 1, season: Some(12), season_lags: 1, ..Embedding::of("y", 3) },
        Embedding { season: Some(12), season_differences: 1, ..Embedding::of("y", 3) },
    ] {
        let mut forecaster = fit(quick(), &embedding, &y, 3);
        let three = forecaster.forecast(3, None).unwrap();
        for value in three {
            let one = forecaster.forecast(1, None).unwrap();
            assert_eq!(one, [value]);
            forecaster.observe(&TimeSeries::new("y", one)).unwrap();
        }
    }
}

#[test]
fn a_forecast_is_the_prediction_for_a_row_by_hand() {
    let y = noisy_wave(150);
    let embedding = Embedding::of("y", 3);
    let forecaster = fit(quick(), &embedding, &y, 1);
    let row = Mat::from_fn(1, 3, |_, j| y[149 - j]);
    let by_hand = forecaster.model().predict(&row).unwrap().values()[(0, 0)];
    assert_eq!(forecaster.forecast(1, None).unwrap(), [by_hand]);
    // The model is that of a fit of the table.
    let (x, target) = lagged(&y, 3);
    let x = Mat::from_fn(x.nrows(), 3, |i, j| x[(i, 2 - j)]);
    let names = vec!["y".to_owned()];
    let schema = Schema::numeric(3, TargetSchema::Regression { names });
    let targets = Targets::Values(target);
    let training = Training { x: x.as_ref(), targets: &targets, weights: None, schema };
    let table = quick().fit(training, &mut unobserved).unwrap();
    assert_eq!(table.predict(&row).unwrap().values()[(0, 0)], by_hand);
}

#[test]
fn learning_points_is_learning_their_rows_and_a_refit_with_the_weights_on_record() {
    let y = noisy_wave(260);
    let embedding = Embedding { differences: 1, ..Embedding::of("y", 4) };
    let mut forecaster = fit(quick(), &embedding, &y[..200], 2);
    let mut by_rows = forecaster.model().clone();
    let further = TimeSeries::new("y", y[200..].to_vec());
    let arrived = forecaster.learn(&further, Default::default(), &mut unobserved).unwrap();
    assert_eq!((arrived.rows, arrived.left_out), (60, 0));
    assert_eq!(forecaster.model().rows(), 255);

    let all = TimeSeries::new("y", y).embed(&embedding).unwrap();
    let (x, targets) = (all.x.subrows(195, 60), Targets::Values(all.y.subrows(195, 60).to_owned()));
    let rows = Labelled { x, targets: &targets, weights: None };
    by_rows.learn(rows, Default::default(), &mut unobserved).unwrap();
    assert_eq!(forecaster.model().weights(), by_rows.weights());

    let targets = Targets::Values(all.y.clone());
    let rows = Labelled { x: all.x.as_ref(), targets: &targets, weights: None };
    let refit = forecaster.model().refit(rows, &mut unobserved).unwrap();
    assert!(forecaster.model().difference(&refit, all.x.as_ref()).unwrap() < 1e-8);
}

#[test]
fn a_saved_forecaster_goes_on_with_the_same_bits() {
    let mut y = noisy_wave(200);
    y[100] = f64::NAN;
    let embedding = Embedding { season: Some(12), season_lags: 1, ..Embedding::of("y", 3) };
    let mut forecaster = fit(quick().members(2), &embedding, &y, 4);
    let bytes = forecaster.model().to_bytes().unwrap();
    // The same seed gives the same bytes.
    assert_eq!(fit(quick().members(2), &embedding, &y, 4).model().to_bytes().unwrap(), bytes);
    let mut again = Forecaster::new(Model::from_bytes(&bytes).unwrap()).unwrap();
    assert_eq!(again.model().to_bytes().unwrap(), bytes);
    let further = TimeSeries::new("y", noisy_wave(230)[200..].to_vec());
    for _ in 0..2 {
        assert_eq!(again.forecast(4, None).unwrap(), forecaster.forecast(4, None).unwrap());
        assert_eq!(again.half_widths(0.8, 4).unwrap(), forecaster.half_widths(0.8, 4).unwrap());
        for forecaster in [&mut again, &mut forecaster] {
            forecaster.learn(&further, Default::default(), &mut unobserved).unwrap();
        }
    }
    assert_eq!(again.model().to_bytes().unwrap(), forecaster.model().to_bytes().unwrap());
}

#[test]
fn a_model_of_a_table_forecasts_nothing_and_says_so() {
    let x = Mat::from_fn(50, 1, |i, _| i as f64);
    let y = Mat::from_fn(50, 1, |i, _| (i as f64).sin());
    let model = quick().fit_regression(&x, &y).unwrap();
    assert!(!String::from_utf8_lossy(&model.to_bytes().unwrap()).contains("\\\"forecast\\\""));
    assert_eq!(Forecaster::new(model).unwrap_err().category(), Category::Model);
}

#[test]
fn a_sine_is_forecast_over_the_whole_horizon() {
    let wave = |t: usize| 5.0 + 2.0 * (t as f64 * 0.2).sin();
    let y: Vec<f64> = (0..400).map(wave).collect();
    let settings = Settings::new().squared().enhancement_nodes(20).ridge(1e-10);
    let ahead = fit(settings, &Embedding::of("y", 4), &y, 60).forecast(60, None).unwrap();
    for (step, value) in ahead.iter().enumerate() {
        assert!((value - wave(400 + step)).abs() < 0.02, "step {step}: {value}");
    }
    // A trend goes on where differences are learnt.
    let y: Vec<f64> = (0..200).map(|t| 3.0 * t as f64 + (t as f64 * 0.7).sin()).collect();
    let embedding = Embedding { differences: 1, ..Embedding::of("y", 4) };
    let settings = Settings::new().squared().enhancement_nodes(20).ridge(1e-10);
    let ahead = fit(settings, &embedding, &y, 20).forecast(20, None).unwrap();
    assert!((ahead[19] - (3.0 * 219.0 + (219.0_f64 * 0.7).sin())).abs() < 0.1, "{}", ahead[19]);
}

#[test]
fn an_evaluation_never_sees_the_future() {
    let y = noisy_wave(260);
    let embedding = Embedding::of("y", 3);
    let held_out = |change_from: usize| {
        let mut values = y[200..].to_vec();
        values[change_from..].iter_mut().for_each(|value| *value += 50.0);
        TimeSeries::new("y", values)
    };
    for learning in [None, Some(Default::default())] {
        let evaluate = |further: &TimeSeries| {
            let mut forecaster = fit(quick(), &embedding, &y[..200], 5);
            forecaster.evaluate(further, 5, 0.9, learning, &mut unobserved).unwrap()
        };
        let (plain, changed) = (evaluate(&held_out(60)), evaluate(&held_out(30)));
        assert_eq!(plain.points.len(), changed.points.len());
        let mut differing = 0;
        for (a, b) in plain.points.iter().zip(&changed.points) {
            let origin = a.point + 1 - a.step;
            if origin <= 30 {
                assert_eq!((a.forecast, a.naive), (b.forecast, b.naive), "origin {origin}");
            } else {
                differing += usize::from(a.forecast != b.forecast);
            }
        }
        assert!(differing > 100);
        // Every point is forecast from every origin that reaches it.
        let counts: Vec<usize> = plain.steps.iter().map(|score| score.count).collect();
        assert_eq!(counts, [60, 59, 58, 57, 56]);
    }
}

#[test]
fn scores_are_those_of_the_forecasts_by_hand() {
    let y = noisy_wave(240);
    let embedding = Embedding { season: Some(12), ..Embedding::of("y", 3) };
    let mut forecaster = fit(quick(), &embedding, &y[..200], 14);
    let before = forecaster.forecast(14, None).unwrap();
    let further = TimeSeries::new("y", y[200..].to_vec());
    let evaluation = forecaster.evaluate(&further, 14, 0.9, None, &mut unobserved).unwrap();
    // The first origin is the end of the training points. Batches differ from single rows by rounding.
    for (point, forecast) in evaluation.points.iter().zip(&before) {
        assert!((point.forecast - forecast).abs() < 1e-9);
        assert_eq!(point.naive, y[199]);
        let season =
            if point.step <= 12 { y[199 + point.step - 12] } else { y[199 + point.step - 24] };
        assert_eq!(point.seasonal_naive, season);
    }
    let naive = (1..200).map(|t| (y[t] - y[t - 1]).abs()).sum::<f64>() / 199.0;
    let score = evaluation.steps[2];
    let own: Vec<f64> = evaluation
        .points
        .iter()
        .filter(|point| point.step == 3)
        .map(|point| (point.truth - point.forecast).abs())
        .collect();
    let mae = own.iter().sum::<f64>() / own.len() as f64;
    assert!((score.mae - mae).abs() < 1e-12);
    assert!((score.mase.unwrap() - mae / naive).abs() < 1e-9);
    assert!(score.seasonal_naive_mae.unwrap() > 0.0);
}

#[test]
fn wrong_arguments_are_refused() {
    let series = TimeSeries::new("y", noisy_wave(40));
    let go = |embedding: Embedding, series: &TimeSeries, steps: usize| {
        Forecaster::fit(quick(), embedding, series, steps, &mut unobserved)
    };
    let refused = |result: broadlearn::Result<Forecaster>| result.unwrap_err().category();
    assert_eq!(refused(go(Embedding::of("y", 40), &series, 1)), Category::Data);
    assert_eq!(refused(go(Embedding::of("y", 3), &series, 0)), Category::Setting);
    assert_eq!(refused(go(Embedding::of("y", 0), &series, 1)), Category::Setting);
    let exogenous = |lags: Vec<usize>| Embedding {
        exogenous: vec![Exogenous { name: "z".into(), lags }],
        ..Embedding::of("y", 2)
    };
    assert_eq!(refused(go(exogenous(vec![1]), &series, 1)), Category::Data);
    assert_eq!(refused(go(exogenous(vec![1]), &series, 2)), Category::Setting);
    // A gap among the last points.
    let mut gap = series.clone();
    gap.values[38] = f64::NAN;
    let forecaster = go(Embedding::of("y", 3), &gap, 1).unwrap();
    let error = forecaster.forecast(1, None).unwrap_err();
    assert!(error.to_string().contains("no value at the point 2 before"), "{error}");
    // Columns known ahead, and nothing known.
    let mut with = series;
    with.exogenous.push(("z".into(), vec![1.0; 40]));
    let forecaster = go(exogenous(vec![0]), &with, 2).unwrap();
    let error = forecaster.forecast(2, None).unwrap_err();
    assert!(error.help().unwrap().contains("--future"), "{error}");
    let mut future = TimeSeries::new("", vec![f64::NAN; 2]);
    future.exogenous.push(("z".into(), vec![1.0, f64::NAN]));
    assert!(forecaster.forecast(2, Some(&future)).unwrap_err().to_string().contains("column `z`"));
    future.exogenous[0].1[1] = 2.0;
    assert_eq!(forecaster.forecast(2, Some(&future)).unwrap().len(), 2);
}

#[test]
fn a_series_is_read_from_a_table() {
    let text = "day,y,z,note\n2024-01-01,1,5,a\n2024-01-02,,6,b\n2024-01-03,3,7,\n";
    let open = || {
        TableReader::from_reader("shop", Box::new(text.as_bytes()), &ReadOptions::default())
            .unwrap()
    };
    let columns = |column: &str, time: Option<&str>| SeriesColumns {
        column: Some(column.into()),
        exogenous: vec!["z".into()],
        time: time.map(Into::into),
    };
    let read = |columns: &SeriesColumns| TimeSeries::read(&mut open(), columns, &mut unobserved);
    let series = read(&columns("2", Some("day"))).unwrap();
    assert_eq!((series.column.as_str(), series.missing()), ("y", 1));
    assert_eq!(series.exogenous, [("z".to_owned(), vec![5.0, 6.0, 7.0])]);
    assert_eq!(series.labels.unwrap().1[2], "2024-01-03");
    assert!(read(&columns("y", Some("y"))).unwrap_err().to_string().contains("two roles"));
    assert!(read(&columns("x", None)).unwrap_err().to_string().contains("no column `x`"));
    assert!(read(&columns("note", None)).is_err());
}

/// Intervals of a series with wrong points hold clean points to come as often as they say, at every step.
#[test]
fn intervals_hold_what_they_say_although_points_of_the_training_part_are_wrong() {
    const STEPS: usize = 4;
    const SERIES: usize = 12;
    const AHEAD: usize = 400;
    let (mut inside, mut widths) = ([0.0; STEPS], [0.0; STEPS]);
    for seed in 0..SERIES as u64 {
        let mut y = autoregression(600 + AHEAD, 100 + seed);
        let mut stream = Stream::new(500 + seed, Purpose::Noise, 0);
        // One in twenty is off, by 10 to 30 deviations of what cannot be foreseen.
        for value in &mut y[..590] {
            if stream.unit() < 0.05 {
                let sign = if stream.unit() < 0.5 { -1.0 } else { 1.0 };
                *value += sign * (10.0 + 20.0 * stream.unit());
            }
        }
        let settings = Settings::new().enhancement_nodes(10).seed(seed);
        let mut forecaster = fit(settings, &Embedding::of("y", 3), &y[..600], STEPS);
        let further = TimeSeries::new("y", y[600..].to_vec());
        let evaluation = forecaster.evaluate(&further, STEPS, 0.9, None, &mut unobserved).unwrap();
        for (step, score) in evaluation.steps.iter().enumerate() {
            inside[step] += score.coverage.unwrap() / SERIES as f64;
            widths[step] += evaluation.points[step].half_width / SERIES as f64;
        }
    }
    // Coverage differs between series: the quantile is of some 450 dependent paths, the points to come are 400.
    // Its deviation is about sqrt(0.09 (1 + h) (1 / 450 + 1 / 400)), the mean's that over the root of the series.
    for step in 0..STEPS {
        let deviation =
            (0.09 * (2.0 + step as f64) * (1.0 / 450.0 + 1.0 / 400.0) / SERIES as f64).sqrt();
        println!(
            "step {}: coverage {:.4}, deviation {deviation:.4}, half width {:.3}",
            step + 1,
            inside[step],
            widths[step]
        );
        assert!(
            (inside[step] - 0.9).abs() < 3.0 * deviation + 0.01,
            "step {}: {}",
            step + 1,
            inside[step]
        );
    }
    // The errors themselves: psi weights 1, 0.6, 0.61, 0.516 of the recursion, times 1.645.
    let exact = [1.0, 1.36, 1.7321, 1.998_356].map(|variance: f64| 1.645 * variance.sqrt());
    for step in 0..STEPS {
        assert!(
            (widths[step] / exact[step] - 1.0).abs() < 0.15,
            "step {}: {}",
            step + 1,
            widths[step]
        );
    }
}
