//! Other broad learners of the literature against independent NumPy versions of their formulas.

use crate::support::{
    Problem, fit, python, read_npy, relative, rows_of, run_python, scaled, scaled_targets, schema,
    state, write_npy,
};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{NodeGroup, Recipe};
use broadlearn::increment::published::{self, CarriedInverse, PseudoInverse};
use broadlearn::model::{Labelled, Learning};
use broadlearn::{Category, Model, Settings, unobserved};
use std::path::{Path, PathBuf};

/// U, scaled Y and W of a model, against the W that a NumPy version finds for them.
fn outputs_differ(
    python: &Path,
    model: &Model,
    (x, y): (&Mat<f64>, &Mat<f64>),
    kind: &str,
    numbers: &[f64],
) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let u = state(model, x);
    write_npy(&path("u.npy"), &u);
    write_npy(&path("y.npy"), &scaled_targets(model, &Targets::Values(y.clone())));
    let mut arguments = vec![PathBuf::from(kind), path("u.npy"), path("y.npy"), path("w.npy")];
    arguments.extend(numbers.iter().map(|number| PathBuf::from(number.to_string())));
    let arguments: Vec<&Path> = arguments.iter().map(AsRef::as_ref).collect();
    run_python(python, "robust_comparators.py", &arguments);
    let w = read_npy(&path("w.npy"), u.ncols(), y.ncols());
    relative(&(&u * model.weights()), &(&u * w))
}

/// Noisy waves of three inputs.
fn data_rows(rows: usize, outputs: usize) -> (Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(7, Purpose::Noise, 0);
    let x = Mat::from_fn(rows, 3, |_, _| stream.normal());
    let y = Mat::from_fn(rows, outputs, |i, k| {
        (1.5 * x[(i, k)]).sin() + x[(i, 2)] * x[(i, 0)] + 0.1 * stream.normal()
    });
    (x, y)
}

/// The same, every seventh row far off.
fn data(rows: usize, outputs: usize) -> (Mat<f64>, Mat<f64>) {
    let (x, mut y) = data_rows(rows, outputs);
    (0..rows).step_by(7).for_each(|i| y[(i, 0)] += 6.0);
    (x, y)
}

#[test]
fn l2rbls_is_that_of_numpy() {
    let Some(python) = python("l2rbls_is_that_of_numpy") else { return };
    for (rows, outputs) in [(300, 1), (300, 2), (50, 1)] {
        let (x, y) = data(rows, outputs);
        for (lambda, steps) in [(1e-3, 1), (1.0, 20), (1e-6, 20)] {
            let settings = Settings::recipe(Recipe::Classic).enhancement_nodes(40);
            let model =
                settings.least_absolute(steps).ridge(lambda).fit_regression(&x, &y).unwrap();
            let numbers = [lambda, steps as f64];
            let off = outputs_differ(&python, &model, (&x, &y), "l2rbls", &numbers);
            assert!(off < 1e-8, "{rows} rows, {outputs} outputs, lambda {lambda}: {off:e}");
        }
    }
}

#[test]
fn wbls_is_that_of_numpy() {
    let Some(python) = python("wbls_is_that_of_numpy") else { return };
    for (rows, outputs) in [(300, 1), (300, 2), (50, 1)] {
        let (x, y) = data(rows, outputs);
        for (tuning, steps) in [(0.1, 1), (1.0, 1), (1.0, 8), (7.0, 3)] {
            let settings = Settings::recipe(Recipe::Direct).enhancement_nodes(40).ridge(1e-4);
            let model = settings.huber_weights(tuning, steps).fit_regression(&x, &y).unwrap();
            let numbers = [1e-4, tuning, steps as f64];
            let off = outputs_differ(&python, &model, (&x, &y), "wbls", &numbers);
            assert!(off < 1e-8, "{rows} rows, {outputs} outputs, b = {tuning}: {off:e}");
        }
    }
}

#[test]
fn elm_is_that_of_numpy() {
    let Some(python) = python("elm_is_that_of_numpy") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (rows, ridge) in [(300, 1e-6), (300, 0.1), (30, 1e-3)] {
        let (x, y) = data(rows, 1);
        let settings = Settings::recipe(Recipe::Elm).enhancement_nodes(50).squared().ridge(ridge);
        let model = settings.fit_regression(&x, &y).unwrap();
        let [NodeGroup::Dense { weights, bias, .. }] = model.map().groups() else {
            panic!("a machine of one layer")
        };
        assert!(bias.iter().all(|value| (0.0..1.0).contains(value)));
        assert!(bias.iter().any(|value| *value > 0.8) && bias.iter().any(|value| *value < 0.2));
        assert!(weights.norm_max() <= 1.0 && weights.norm_max() > 0.9);
        write_npy(&path("x.npy"), &scaled(model.input_scaler(), x.as_ref()));
        write_npy(&path("y.npy"), &scaled_targets(&model, &Targets::Values(y.clone())));
        write_npy(&path("v.npy"), weights);
        write_npy(&path("b.npy"), &Mat::from_fn(1, bias.len(), |_, j| bias[j]));
        let files = ["x.npy", "y.npy", "f.npy"].map(path);
        let (kind, ridge) = (PathBuf::from("elm"), PathBuf::from(ridge.to_string()));
        let (v, b) = (path("v.npy"), path("b.npy"));
        let arguments = [&kind, &files[0], &files[1], &files[2], &ridge, &v, &b];
        run_python(&python, "robust_comparators.py", &arguments.map(PathBuf::as_path));
        let theirs = read_npy(&path("f.npy"), rows, 1);
        let off = relative(&(state(&model, &x) * model.weights()), &theirs);
        assert!(off < 1e-8, "{rows} rows: {off:e}");
    }
}

/// The published increments, one after another: rows, enhancement nodes, a feature group with nodes that read
/// it; with and without columns that bring nothing new.
#[test]
fn published_updates_end_where_numpy_ends_at_once() {
    let Some(python) = python("published_updates_end_where_numpy_ends_at_once") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (rows, deficient) in [(90, false), (90, true), (40, false)] {
        let mut stream = Stream::new(5, Purpose::Noise, 3);
        let (columns, ridge) = (45, 0.1);
        let mut u = Mat::from_fn(rows, columns, |_, _| stream.normal());
        if deficient {
            // Features that are sums of others, as those of linear maps are.
            (20..30).for_each(|j| {
                (0..rows).for_each(|i| u[(i, j)] = u[(i, j - 20)] + 2.0 * u[(i, j - 19)]);
            });
        }
        let y = Mat::from_fn(rows, 2, |_, _| stream.normal());
        let part = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
            u.submatrix(rows.start, columns.start, rows.len(), columns.len())
        };
        let first = rows - 15;
        let mut pseudo = PseudoInverse::new(part(0..first, 0..15), y.subrows(0, first)).unwrap();
        pseudo.add_rows(part(first..rows, 0..15), y.subrows(first, 15)).unwrap();
        pseudo.add_columns(part(0..rows, 15..25)).unwrap();
        pseudo.add_columns(part(0..rows, 25..columns)).unwrap();
        let all = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| published::Rows {
            u: part(rows.clone(), columns),
            y: y.subrows(rows.start, rows.len()),
            weights: None,
        };
        let mut carried = CarriedInverse::new(all(0..first, 0..15), ridge).unwrap();
        carried.add_rows(all(first..rows, 0..15)).unwrap();

        write_npy(&path("u.npy"), &u);
        write_npy(&path("y.npy"), &y);
        let numpy = |u: &Mat<f64>| {
            write_npy(&path("u.npy"), u);
            let ridge = PathBuf::from(ridge.to_string());
            let files = ["u.npy", "y.npy", "pinv.npy", "w.npy", "r.npy"].map(path);
            let arguments = [&files[0], &files[1], &files[2], &files[3], &ridge, &files[4]];
            run_python(&python, "published_updates.py", &arguments.map(PathBuf::as_path));
            (
                read_npy(&files[2], u.ncols(), u.nrows()),
                read_npy(&files[3], u.ncols(), 2),
                read_npy(&files[4], u.ncols(), 2),
            )
        };
        let (inverse, w, _) = numpy(&u);
        let off = relative(&pseudo.inverse().to_owned(), &inverse);
        assert!(off < 1e-8, "{rows} rows, {deficient}: U+ off by {off:e}");
        let off = relative(&pseudo.w().to_owned(), &w);
        assert!(off < 1e-8, "{rows} rows, {deficient}: W off by {off:e}");
        let (_, _, w) = numpy(&part(0..rows, 0..15).to_owned());
        let off = relative(&carried.w().to_owned(), &w);
        assert!(off < 1e-8, "{rows} rows: the carried inverse is off by {off:e}");
    }
}

/// Without a tuning beyond all residuals WBLS is ridge, and one with infinitely many steps is the
/// fixed point of Huber's loss with its own unit.
#[test]
fn huber_weights_lie_between_ridge_and_the_fixed_point() {
    let (x, y) = data(200, 1);
    let settings = || Settings::recipe(Recipe::Direct).enhancement_nodes(30).ridge(1e-3).seed(2);
    let outputs = |settings: Settings| {
        let model = settings.fit_regression(&x, &y).unwrap();
        (model.predict(&x).unwrap().values().to_owned(), model.report().loss)
    };
    let (ridge, _) = outputs(settings().squared());
    let (wide, _) = outputs(settings().huber_weights(1e9, 1));
    assert!(relative(&wide, &ridge) < 1e-12);
    let (settled, loss) = outputs(settings().huber_weights(1.0, 500));
    let broadlearn::solve::Loss::Robust { kind, sigma } = loss else { panic!("a robust loss") };
    let (fixed, _) = outputs(settings().loss(kind).sigma(sigma));
    assert!(relative(&settled, &fixed) < 1e-5, "{:e}", relative(&settled, &fixed));
}

#[test]
fn a_weight_of_two_is_two_rows_for_both() {
    for settings in [
        Settings::recipe(Recipe::Direct).enhancement_nodes(15).huber_weights(1.0, 3),
        Settings::recipe(Recipe::Elm).enhancement_nodes(15).least_absolute(10),
    ] {
        let (x, y) = data(40, 1);
        let weights: Vec<f64> = (0..40).map(|i| f64::from(i % 3 + 1)).collect();
        let rows: Vec<usize> = (0..40).flat_map(|i| vec![i; i % 3 + 1]).collect();
        let (many_x, many_y) = (rows_of(&x, &rows), rows_of(&y, &rows));
        let model = |x: &Mat<f64>, y: &Mat<f64>, weights: Option<&[f64]>| {
            let targets = Targets::Values(y.clone());
            let schema = schema(3, &targets, 1);
            fit(settings.clone().ridge(1e-2), x, &targets, weights, schema).unwrap()
        };
        let (weighted, repeated) = (model(&x, &y, Some(&weights)), model(&many_x, &many_y, None));
        let off = relative(
            weighted.predict(&x).unwrap().values(),
            repeated.predict(&x).unwrap().values(),
        );
        assert!(off < 1e-9, "{off:e}");
    }
}

#[test]
fn least_absolute_models_say_that_they_cannot_be_updated() {
    let (x, y) = data(60, 1);
    let mut model = Settings::recipe(Recipe::Elm)
        .enhancement_nodes(10)
        .least_absolute(20)
        .ridge(1e-3)
        .fit_regression(&x, &y)
        .unwrap();
    let bytes = model.to_bytes().unwrap();
    assert_eq!(Model::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
    let targets = Targets::Values(y);
    let rows = Labelled { x: x.as_ref(), targets: &targets, weights: None };
    let error = model.learn(rows, Learning::default(), &mut unobserved).unwrap_err();
    assert_eq!(error.category(), Category::Model);
    assert!(error.to_string().contains("least absolute"), "{error}");
}

/// Every recipe learns a smooth function, and its file gives back the same bits.
#[test]
fn all_recipes_learn_and_are_saved() {
    for recipe in Recipe::ALL {
        let (x, y) = data_rows(400, 1);
        let model = Settings::recipe(recipe).squared().fit_regression(&x, &y).unwrap();
        let fitted = model.predict(&x).unwrap();
        let off = relative(fitted.values(), &y);
        // The noise is a tenth, the function about one. Patches have no mean: three inputs are no image.
        assert!(off < 0.3 || recipe == Recipe::Convolution, "{recipe:?}: {off}");
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(&x).unwrap().values(), fitted.values(), "{recipe:?}");
    }
}

/// Images with a bright stroke, upright or lying, anywhere: patches tell them apart, pixels hardly do.
#[test]
fn convolution_tells_strokes_apart_wherever_they_are() {
    let mut stream = Stream::new(11, Purpose::Noise, 0);
    let side = 14;
    let mut image = |class: u32| {
        let mut pixels = vec![0.0; side * side];
        pixels.iter_mut().for_each(|pixel| *pixel = 0.3 * stream.normal());
        let (across, along) = (stream.below(side), stream.below(side - 5));
        for k in 0..5 {
            let (row, column) = if class == 0 { (across, along + k) } else { (along + k, across) };
            pixels[row * side + column] += 2.0;
        }
        pixels
    };
    let classes: Vec<u32> = (0..500).map(|i| i % 2).collect();
    let rows: Vec<Vec<f64>> = classes.iter().map(|&class| image(class)).collect();
    let x = Mat::from_fn(500, side * side, |i, j| rows[i][j]);
    let (train, test) = (x.subrows(0, 300), x.subrows(300, 200));
    let accuracy = |recipe: Recipe| {
        let settings = Settings::recipe(recipe).enhancement_nodes(100).squared().seed(1);
        let model = settings.fit_classes(train, &classes[..300]).unwrap();
        let found = model.predict(test).unwrap();
        let right = found.classes().iter().zip(&classes[300..]).filter(|(a, b)| a == b).count();
        right as f64 / 200.0
    };
    let (patches, pixels) = (accuracy(Recipe::Convolution), accuracy(Recipe::Rich));
    assert!(patches > 0.9 && pixels < 0.8, "{patches}, {pixels}");
}

#[test]
fn the_time_step_of_recurrent_nodes_must_divide_the_inputs() {
    let problem = Problem {
        recipe: Recipe::Recurrent,
        rows: 50,
        columns: 4,
        outputs: 1,
        classes: false,
        constant_column: false,
        duplicate_rows: false,
        ridge: 1e-3,
        sigma: 1.0,
        seed: 4,
    };
    let (x, targets) = (problem.x(), problem.targets());
    let model = |step: usize| {
        let settings = problem.settings().squared().ridge(1e-3).time_step(step);
        fit(settings, &x, &targets, None, problem.schema())
    };
    assert!(model(1).is_ok() && model(2).is_ok() && model(4).is_ok());
    let error = model(3).unwrap_err();
    assert!(error.to_string().contains("time_step"), "{error}");
}

#[test]
fn a_kernel_asked_for_after_a_published_relative_is_that_of_the_fixed_point() {
    let settings = || Settings::recipe(Recipe::Elm).enhancement_nodes(15).ridge(0.1);
    let x = Mat::from_fn(40, 2, |i, j| ((3 * i + j) as f64).sin());
    let y = Mat::from_fn(40, 1, |i, _| x[(i, 0)] * x[(i, 1)]);
    let weights =
        |settings: Settings| settings.fit_regression(&x, &y).unwrap().weights().to_owned();
    let expected = weights(settings().sigma(0.7));
    assert_eq!(weights(settings().least_absolute(5).sigma(0.7)), expected);
    assert_eq!(weights(settings().huber_weights(1.0, 2).sigma(0.7)), expected);
}
