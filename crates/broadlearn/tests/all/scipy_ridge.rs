//! Ridge and sparse autoencoder against SciPy and NumPy.

use crate::support::{python, read_npy, relative, run_python, scaled_targets, state, write_npy};
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::{Model, Settings};
use std::path::{Path, PathBuf};

const RIDGES: [f64; 3] = [1e-6, 1e-2, 1.0];

/// Noisy waves of five inputs, of which the last is almost the sum of the others.
fn data(rows: usize) -> (Mat<f64>, Mat<f64>) {
    let mut stream = Stream::new(11, Purpose::Noise, 0);
    let mut x = Mat::from_fn(rows, 5, |_, _| stream.normal());
    for i in 0..rows {
        x[(i, 4)] = (0..4).map(|j| x[(i, j)]).sum::<f64>() + 1e-3 * stream.normal();
    }
    let y =
        Mat::from_fn(rows, 2, |i, k| (2.0 * x[(i, k)]).sin() + x[(i, 2)] + 0.1 * stream.normal());
    (x, y)
}

#[test]
fn ridge_is_the_least_squares_solution_of_the_stacked_system() {
    let Some(python) = python("ridge_is_the_least_squares_solution_of_the_stacked_system") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for recipe in Recipe::ALL {
        // More rows than nodes, and fewer.
        for rows in [300, 60] {
            let (x, y) = data(rows);
            let fit = |ridge: f64| {
                let mut network = recipe.network();
                network.enhancement.nodes = 80;
                let settings = Settings::recipe(recipe).network(network).squared();
                settings.ridge(ridge).fit_regression(&x, &y).unwrap()
            };
            // The map does not depend on the ridge.
            let model = fit(1.0);
            let u = state(&model, &x);
            write_npy(&path("u.npy"), &u);
            write_npy(&path("y.npy"), &scaled_targets(&model, &Targets::Values(y.clone())));
            let mut arguments = vec![path("u.npy"), path("y.npy"), path("w.npy")];
            arguments.extend(RIDGES.map(|ridge| PathBuf::from(ridge.to_string())));
            let arguments: Vec<&Path> = arguments.iter().map(AsRef::as_ref).collect();
            run_python(&python, "stacked_qr.py", &arguments);
            let solutions = read_npy(&path("w.npy"), u.ncols(), 2 * RIDGES.len());
            for (index, ridge) in RIDGES.into_iter().enumerate() {
                let w = solutions.subcols(2 * index, 2);
                let off = relative(&(&u * fit(ridge).weights()), &(&u * w));
                assert!(off < 1e-8, "{recipe:?}, {rows} rows, ridge {ridge}: {off:e}");
            }
        }
    }
}

/// The feature columns of U.
fn features(model: &Model, x: &Mat<f64>, count: usize) -> Mat<f64> {
    state(model, x).subcols(0, count).to_owned()
}

#[test]
fn sparse_autoencoder_features_are_those_of_numpy() {
    let Some(python) = python("sparse_autoencoder_features_are_those_of_numpy") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // More than one block of rows, and few rows; groups of one node and of more nodes than inputs.
    for (rows, groups, nodes) in [(2500, 3, 10), (40, 6, 4), (100, 12, 1)] {
        let (x, y) = data(rows);
        for recipe in [Recipe::Classic, Recipe::Unscaled] {
            let seed = 42;
            let settings = Settings::recipe(recipe).feature_groups(groups).feature_nodes(nodes);
            let settings = settings.enhancement_nodes(3).seed(seed).squared().ridge(0.1);
            let model = settings.fit_regression(&x, &y).unwrap();
            // One stream per group, node by node, the constant's weight last in each.
            let drawn: Vec<Mat<f64>> = (0..groups as u32)
                .map(|group| {
                    let mut stream = Stream::new(seed, Purpose::Features, group);
                    let mut weights = Mat::zeros(6, nodes);
                    for j in 0..nodes {
                        for i in 0..6 {
                            weights[(i, j)] = stream.symmetric();
                        }
                    }
                    weights
                })
                .collect();
            let weights = Mat::from_fn(6, groups * nodes, |i, j| drawn[j / nodes][(i, j % nodes)]);
            let scaled = crate::support::scaled(model.input_scaler(), x.as_ref());
            write_npy(&path("x.npy"), &scaled);
            write_npy(&path("weights.npy"), &weights);
            let argument = groups.to_string();
            let arguments = [path("x.npy"), path("weights.npy"), argument.into(), path("z.npy")];
            run_python(&python, "features.py", &arguments.each_ref().map(AsRef::as_ref));
            let z = read_npy(&path("z.npy"), rows, groups * nodes);
            let ours = features(&model, &x, groups * nodes);
            let off = (&ours - &z).norm_max();
            assert!(off < 1e-8, "{recipe:?}, {rows} rows, {groups} groups of {nodes}: {off:e}");
        }
    }
}
