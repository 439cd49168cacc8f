//! The learners that the experiments compare: the paper's, its rivals, and what the library does when
//! nothing is said.

pub mod deep_belief;
pub mod perceptron;
pub mod stacked_autoencoder;

use broadlearn::Settings;
use broadlearn::features::{Activation, Recipe};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::{RobustLoss, Start};

/// N_f, N_w and N_e.
pub(crate) type Sizes = (usize, usize, usize);

/// The paper's ridge, 2^-30, where it names no other.
pub(crate) const RIDGE: f64 = 1.0 / (1_u64 << 30) as f64;

/// Shows sizes as the paper does.
pub(crate) fn shown((nodes, groups, enhancement): Sizes) -> String {
    format!("({nodes}, {groups}, {enhancement})")
}

/// A network of the paper. Numeric targets have been scaled beforehand.
fn network(recipe: Recipe, (nodes, groups, enhancement): Sizes, seed: u64) -> Settings {
    Settings::recipe(recipe)
        .feature_nodes(nodes)
        .feature_groups(groups)
        .enhancement_nodes(enhancement)
        .target_scaling(Scaling::None)
        .ridge(RIDGE)
        .stop(1e-5, 20)
        .compact(true)
        .seed(seed)
}

/// BLS, or C-BLS with a kernel size, by one of the original authors' recipes.
pub(crate) fn by_recipe(recipe: Recipe, sizes: Sizes, sigma: Option<f64>, seed: u64) -> Settings {
    let settings = network(recipe, sizes, seed);
    match sigma {
        None => settings.squared(),
        Some(sigma) => settings.sigma(sigma),
    }
}

/// The standard BLS.
pub(crate) fn bls(sizes: Sizes, seed: u64) -> Settings {
    by_recipe(Recipe::Classic, sizes, None, seed)
}

/// C-BLS.
pub(crate) fn c_bls(sizes: Sizes, sigma: f64, seed: u64) -> Settings {
    by_recipe(Recipe::Classic, sizes, Some(sigma), seed)
}

/// Everything is chosen on the training rows.
pub(crate) fn automatic(seed: u64) -> Settings {
    Settings::new().compact(true).seed(seed)
}

/// L2RBLS: least absolute residuals.
pub(crate) fn least_absolute(sizes: Sizes, seed: u64) -> Settings {
    // The unit of the ridge: residuals of about this size have weight 1.
    let settings = network(Recipe::Classic, sizes, seed);
    settings.loss(RobustLoss::Absolute).sigma(0.1).start(Start::Ridge, false)
}

/// WBLS: no feature layer, Huber's weights with the cut-off `b`.
pub(crate) fn weighted(enhancement: usize, b: f64, seed: u64) -> Settings {
    Settings::recipe(Recipe::Rich)
        .gain(1.0)
        .activation(Activation::Tanh)
        .enhancement_nodes(enhancement)
        .input_scaling(Scaling::MinMax)
        .target_scaling(Scaling::None)
        .loss(RobustLoss::Huber)
        .sigma(b)
        .start(Start::Ridge, false)
        .ridge(RIDGE)
        .stop(1e-5, 20)
        .compact(true)
        .seed(seed)
}
