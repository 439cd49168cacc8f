//! Predictions in single precision against those in double precision.

use crate::support::{Problem, fit, schema};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::{Growth, Recipe};
use broadlearn::model::Precision;
use broadlearn::preprocess::Scaling;
use broadlearn::{Model, Settings};

fn problem(recipe: Recipe, rows: usize, classes: bool) -> (Mat<f64>, Targets, Settings, Problem) {
    let problem = Problem {
        recipe,
        rows,
        columns: 4,
        outputs: 3,
        classes,
        constant_column: false,
        duplicate_rows: false,
        ridge: 0.0,
        sigma: 0.0,
        seed: 5,
    };
    (problem.x(), problem.targets(), problem.settings().squared(), problem)
}

/// The largest difference between the precisions, in the units of the values.
fn difference(model: &Model, x: &Mat<f64>) -> f64 {
    let single = model.predictor(Precision::Single).predict(x).unwrap();
    assert!(!single.fell_back());
    (single.values() - model.predict(x).unwrap().values()).norm_max()
}

#[test]
fn every_recipe_keeps_to_the_stated_bound() {
    for recipe in Recipe::ALL {
        for (rows, classes) in [(33, true), (145, false), (700, true)] {
            let (x, targets, settings, problem) = problem(recipe, rows, classes);
            let growth = Growth { enhancement_nodes: 150, ..Growth::default() };
            let settings = settings.ridge(1e-2).growth(growth);
            let model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
            let spread = match &targets {
                Targets::Values(values) => 2.0 * values.norm_max(),
                Targets::Classes(_) => 1.0,
            };
            let off = difference(&model, &x);
            assert!(off > 0.0 && off < 1e-3 * spread, "{recipe:?}, {rows} rows: {off:e}");
        }
    }
}

#[test]
fn ensembles_and_unscaled_targets_keep_to_it() {
    let (x, targets, settings, problem) = problem(Recipe::Rich, 500, false);
    let Targets::Values(values) = &targets else { panic!("values") };
    let far = Targets::Values(Mat::from_fn(500, 3, |i, j| 1e3 + values[(i, j)]));
    let settings = settings.ridge(1e-2).members(3).target_scaling(Scaling::None);
    let model = fit(settings, &x, &far, None, problem.schema()).unwrap();
    assert!(difference(&model, &x) < 2e-3 * values.norm_max());
}

#[test]
fn threads_change_no_bit() {
    let (x, targets, settings, problem) = problem(Recipe::Classic, 3000, true);
    let settings = settings.ridge(1e-2).enhancement_nodes(300);
    let model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
    for precision in [Precision::Double, Precision::Single] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| model.predictor(precision).predict(&x).unwrap().values().clone())
        };
        let one = with(1);
        assert_eq!(with(2), one);
        assert_eq!(with(3), one);
    }
}

#[test]
fn large_weights_that_cancel_fall_back_to_double_precision() {
    // The target is in the difference of nearly equal columns, and no ridge keeps W small.
    let x = Mat::from_fn(300, 2, |i, j| (i % 17) as f64 + 1e-6 * (j * i % 5) as f64);
    let y = Mat::from_fn(300, 1, |i, _| (i % 5) as f64);
    let targets = Targets::Values(y);
    let settings = Settings::recipe(Recipe::Plain).squared().pseudo_inverse().enhancement_nodes(40);
    let model = fit(settings, &x, &targets, None, schema(2, &targets, 1)).unwrap();
    let single = model.predictor(Precision::Single).predict(&x).unwrap();
    assert!(single.fell_back());
    assert_eq!(single.values(), model.predict(&x).unwrap().values());
}

#[test]
fn few_rows_and_values_too_large_for_it_are_predicted_in_double_precision() {
    let (x, targets, settings, problem) = problem(Recipe::Rich, 200, false);
    let settings = settings.ridge(1e-2).input_scaling(Scaling::None);
    let model = fit(settings, &x, &targets, None, problem.schema()).unwrap();
    let predictor = model.predictor(Precision::Single);
    let few = predictor.predict(x.subrows(0, 20)).unwrap();
    assert!(!few.fell_back());
    assert_eq!(few.values(), model.predict(x.subrows(0, 20)).unwrap().values());

    // Row 1 is none of those that are compared.
    let mut large = x.clone();
    large[(1, 0)] = 1e200;
    let found = predictor.predict(&large).unwrap();
    assert!(found.fell_back());
    assert_eq!(found.values(), model.predict(&large).unwrap().values());
}

#[test]
fn a_value_that_is_not_finite_is_named_by_its_own_row() {
    let (x, targets, settings, problem) = problem(Recipe::Rich, 200, false);
    let model = fit(settings.ridge(1e-2), &x, &targets, None, problem.schema()).unwrap();
    for precision in [Precision::Double, Precision::Single] {
        for row in [0, 150, 199] {
            let mut bad = x.clone();
            bad[(row, 2)] = f64::NAN;
            let error = model.predictor(precision).predict(&bad).unwrap_err();
            let place = format!("inputs, row {}, column 3", row + 1);
            assert!(error.to_string().contains(&place), "{error}");
        }
    }
}
