//! The learners that the experiments compare: the paper's, its rivals, and what the library does when
//! nothing is said.

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

/// A network of the paper: the original authors' recipe. Numeric targets have been scaled beforehand.
fn network((nodes, groups, enhancement): Sizes, seed: u64) -> Settings {
    Settings::recipe(Recipe::Classic)
        .feature_nodes(nodes)
        .feature_groups(groups)
        .enhancement_nodes(enhancement)
        .target_scaling(Scaling::None)
        .ridge(RIDGE)
        .stop(1e-5, 20)
        .compact(true)
        .seed(seed)
}

/// The standard BLS.
pub(crate) fn bls(sizes: Sizes, seed: u64) -> Settings {
    network(sizes, seed).squared()
}

/// C-BLS.
pub(crate) fn c_bls(sizes: Sizes, sigma: f64, seed: u64) -> Settings {
    network(sizes, seed).sigma(sigma)
}

/// Everything is chosen on the training rows.
pub(crate) fn automatic(seed: u64) -> Settings {
    Settings::new().compact(true).seed(seed)
}

/// L2RBLS: least absolute residuals.
pub(crate) fn least_absolute(sizes: Sizes, seed: u64) -> Settings {
    // The unit of the ridge: residuals of about this size have weight 1.
    network(sizes, seed).loss(RobustLoss::Absolute).sigma(0.1).start(Start::Ridge, false)
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
