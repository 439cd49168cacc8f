//! Wrong input gives an error of the right category, never a panic.

use crate::support::{fit, schema};
use broadlearn::data::{Schema, TargetSchema, Targets, Task};
use broadlearn::faer::Mat;
use broadlearn::features::{Activation, Recipe};
use broadlearn::model::Training;
use broadlearn::preprocess::Scaling;
use broadlearn::solve::Start;
use broadlearn::{Category, Progress, Result, Settings};
use std::ops::ControlFlow;

fn x(rows: usize, columns: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| ((i + 1) as f64 * (j + 2) as f64).sin())
}

fn quick() -> Settings {
    Settings::new().enhancement_nodes(5).sigma(1.0).ridge(0.1)
}

#[track_caller]
fn assert_category<T>(result: Result<T>, category: Category) -> String {
    match result {
        Ok(_) => panic!("no error; expected {category:?}"),
        Err(error) => {
            assert_eq!(error.category(), category, "{error:?}");
            error.to_string()
        }
    }
}

#[test]
fn values_that_are_not_finite() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (mut inputs, targets) = (x(10, 3), x(10, 2));
        inputs[(6, 1)] = bad;
        let message = assert_category(quick().fit_regression(&inputs, &targets), Category::Data);
        assert!(message.contains("row 7") && message.contains("column 2"), "{message}");
        assert_category(
            quick().fit_classes(&inputs, &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]),
            Category::Data,
        );

        let (inputs, mut targets) = (x(10, 3), x(10, 2));
        targets[(2, 1)] = bad;
        let message = assert_category(quick().fit_regression(&inputs, &targets), Category::Data);
        assert!(message.contains("row 3") && message.contains("column 2"), "{message}");

        let model = quick().fit_regression(&x(10, 3), &x(10, 2)).unwrap();
        let mut inputs = x(4, 3);
        inputs[(3, 0)] = bad;
        let message = assert_category(model.predict(&inputs), Category::Data);
        assert!(message.contains("row 4"), "{message}");
    }
}

#[test]
fn shapes_that_do_not_match() {
    assert_category(quick().fit_regression(&x(10, 3), &x(9, 1)), Category::Data);
    assert_category(quick().fit_regression(&x(10, 3), &x(11, 1)), Category::Data);
    assert_category(quick().fit_regression(&x(10, 3), &x(10, 0)), Category::Data);
    assert_category(quick().fit_regression(&x(0, 3), &x(0, 1)), Category::Data);
    assert_category(quick().fit_regression(&x(10, 0), &x(10, 1)), Category::Data);
    assert_category(quick().fit_classes(&x(10, 3), &[0, 1, 1]), Category::Data);
    assert_category(quick().fit_classes(&x(0, 3), &[]), Category::Data);

    let model = quick().fit_regression(&x(10, 3), &x(10, 1)).unwrap();
    assert_category(model.predict(&x(5, 2)), Category::Data);
    assert_category(model.predict(&x(5, 4)), Category::Data);
    assert_category(model.predict(&x(5, 0)), Category::Data);
    assert!(model.predict(&x(0, 3)).unwrap().is_empty());

    let values = Targets::Values(x(10, 2));
    let classes = Targets::Classes(vec![0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    let wrong_schemas = [
        (schema(2, &values, 2), &values),
        (schema(3, &values, 1), &values),
        (schema(3, &classes, 2), &values),
        (schema(3, &values, 2), &classes),
        (schema(3, &classes, 1), &classes),
        (Schema::numeric(3, TargetSchema::Regression { names: vec![] }), &values),
    ];
    for (schema, targets) in wrong_schemas {
        assert_category(fit(quick(), &x(10, 3), targets, None, schema), Category::Data);
    }
}

#[test]
fn sample_weights_that_make_no_sense() {
    let targets = Targets::Values(x(4, 1));
    for weights in [
        &[1.0, -1.0, 1.0, 1.0][..],
        &[1.0, f64::NAN, 1.0, 1.0],
        &[1.0, f64::INFINITY, 1.0, 1.0],
        &[0.0; 4],
        &[1.0; 3],
        &[1.0; 5],
        &[],
    ] {
        let result = fit(quick(), &x(4, 2), &targets, Some(weights), schema(2, &targets, 1));
        assert_category(result, Category::Data);
    }
}

#[test]
fn classes_that_are_not_two() {
    assert_category(quick().fit_classes(&x(3, 2), &[0, 0, 0]), Category::Data);
    assert_category(quick().fit_classes(&x(3, 2), &[0, 1, u32::MAX]), Category::Data);
    // One class that is not the first leaves class 0 without rows, which is no error.
    assert!(quick().fit_classes(&x(3, 2), &[1, 1, 1]).is_ok());
}

#[test]
fn settings_out_of_range() {
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let all = [
            (quick().sigma(bad), "sigma"),
            (quick().ridge(bad), "ridge"),
            (quick().squared().ridge(bad), "ridge"),
            (quick().gain(bad), "gain"),
            (quick().stop(bad, 10), "tolerance"),
        ];
        for (settings, name) in all {
            let message = assert_category(settings.check(Task::Regression), Category::Setting);
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }
    let plain = || Settings::recipe(Recipe::Plain);
    for settings in [
        quick().stop(1e-8, 0),
        quick().pseudo_inverse(),
        Settings::new().feature_groups(3),
        Settings::new().feature_nodes(3),
        plain().gain(1.0),
        plain().fan_in(2),
        quick().fan_in(0),
        Settings::recipe(Recipe::Recurrent).fan_in(2),
        plain().feature_groups(0),
        plain().feature_nodes(0),
        plain().feature_groups(usize::MAX).feature_nodes(usize::MAX),
        plain().enhancement_nodes(usize::MAX),
        quick().enhancement_nodes(65_537),
        quick().target_scaling(Scaling::RowZScore),
    ] {
        let text = format!("{settings:?}");
        assert_eq!(
            settings.fit_regression(&x(5, 2), &x(5, 1)).map_err(|e| e.category()).err(),
            Some(Category::Setting),
            "{text}"
        );
    }
    let scaled_classes = quick().target_scaling(Scaling::MinMax);
    assert_category(scaled_classes.fit_classes(&x(3, 2), &[0, 1, 1]), Category::Setting);
}

#[test]
fn a_stopped_observer_interrupts_every_stage() {
    let (inputs, targets) = (x(60, 3), Targets::Values(x(60, 1)));
    let fit = |settings: Settings, stop_at: usize, stages: &mut Vec<&'static str>| {
        let mut calls = 0;
        let mut observer = |progress: Progress| {
            stages.push(progress.stage);
            calls += 1;
            if calls > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let schema = schema(3, &targets, 1);
        let training = Training { x: inputs.as_ref(), targets: &targets, weights: None, schema };
        settings.fit(training, &mut observer)
    };
    let settings = || Settings::new().enhancement_nodes(10);
    let annealed = || settings().sigma(0.05).start(Start::Zero, true);
    for settings in [settings(), settings().squared(), annealed().ridge(0.1)] {
        let mut stages = Vec::new();
        assert!(fit(settings.clone(), usize::MAX, &mut stages).is_ok());
        for stop_at in 0..stages.len() {
            let mut seen = Vec::new();
            assert_category(fit(settings.clone(), stop_at, &mut seen), Category::Interrupted);
            assert_eq!(seen, stages[..=stop_at], "and nothing is done after that");
        }
    }
    let mut stages = Vec::new();
    assert!(fit(annealed(), usize::MAX, &mut stages).is_ok());
    for stage in [
        "choosing the kernel",
        "choosing the network",
        "building the network",
        "annealing",
        "fixed point",
    ] {
        assert!(stages.contains(&stage), "{stage} in {stages:?}");
    }
}

#[test]
fn a_kernel_that_no_row_lies_in_is_an_error_and_not_a_model_of_zeros() {
    let y = Mat::from_fn(40, 1, |i, _| if i % 2 == 0 { 1.0 } else { -1.0 });
    let inputs = Mat::from_fn(40, 1, |i, _| (i / 2) as f64);
    for sigma in [1e-3, 1e-100, 1e-200, f64::MIN_POSITIVE] {
        let result = quick().sigma(sigma).ridge(1.0).fit_regression(&inputs, &y);
        assert_category(result, Category::Numeric);
    }
}

#[test]
fn extreme_numbers_give_a_finite_model_or_an_error() {
    for recipe in Recipe::ALL {
        for size in [1e-300, 1e-200, 1e200, 1e300] {
            for (x_size, y_size) in [(size, 1.0), (1.0, size), (size, size)] {
                let inputs = Mat::from_fn(20, 2, |i, j| x_size * x(20, 2)[(i, j)]);
                let y = Mat::from_fn(20, 1, |i, _| y_size * (i as f64 * 0.7).cos());
                for settings in [
                    Settings::recipe(recipe).enhancement_nodes(6),
                    Settings::recipe(recipe).enhancement_nodes(6).squared(),
                    Settings::recipe(recipe).enhancement_nodes(6).sigma(1.0).ridge(1e-300),
                    Settings::recipe(recipe).enhancement_nodes(6).sigma(1e200).ridge(1e300),
                    Settings::recipe(recipe).enhancement_nodes(6).squared().pseudo_inverse(),
                ] {
                    let Ok(model) = settings.clone().fit_regression(&inputs, &y) else { continue };
                    let text = format!("{recipe:?} {x_size:e} {y_size:e} {settings:?}");
                    assert!(model.weights().is_all_finite(), "{text}");
                    let f = model.predict(&inputs).unwrap();
                    assert!(f.values().is_all_finite(), "{text}");
                    let bytes = model.to_bytes().unwrap();
                    let again = broadlearn::Model::from_bytes(&bytes);
                    assert!(again.is_ok(), "{text}: {:?}", again.err());
                }
            }
        }
    }
}

#[test]
fn a_single_row_is_predicted_as_it_was_given() {
    for recipe in Recipe::ALL {
        let settings =
            Settings::recipe(recipe).enhancement_nodes(4).activation(Activation::Sigmoid);
        let y = Mat::from_fn(1, 2, |_, j| 3.5 + j as f64);
        let model = settings.fit_regression(&x(1, 3), &y).unwrap();
        assert_eq!(model.predict(&x(1, 3)).unwrap().values(), &y);
    }
}
