//! The learners that the experiments compare: the paper's, its rivals, and what the library does when
//! nothing is said.

pub mod deep_belief;
pub mod elm;
pub mod neighbours;
pub mod perceptron;
pub mod stacked_autoencoder;
pub mod svm;

use broadlearn::Settings;
use broadlearn::features::Recipe;
use broadlearn::preprocess::Scaling;

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

/// The steps of alternating directions; twenty come within 1.5 % of two hundred.
pub(crate) const L2RBLS_STEPS: usize = 50;
/// The reweighted solutions of WBLS: iterated, until they change no more.
pub(crate) const WBLS_STEPS: usize = 10;

/// L2RBLS: least absolute residuals by alternating directions.
pub(crate) fn least_absolute(sizes: Sizes, seed: u64) -> Settings {
    network(Recipe::Classic, sizes, seed).least_absolute(L2RBLS_STEPS)
}

/// WBLS: no feature layer, Huber's weights beyond `b` spreads of the residuals.
pub(crate) fn weighted(enhancement: usize, b: f64, seed: u64) -> Settings {
    Settings::recipe(Recipe::Direct)
        .enhancement_nodes(enhancement)
        .target_scaling(Scaling::None)
        .huber_weights(b, WBLS_STEPS)
        .ridge(RIDGE)
        .stop(1e-5, 20)
        .compact(true)
        .seed(seed)
}

/// SM-BLS or RM-BLS, by its recipe, with the penalties alpha and beta.
pub(crate) fn manifold(
    recipe: Recipe,
    (nodes, _, enhancement): Sizes,
    (alpha, beta): (f64, f64),
    seed: u64,
) -> Settings {
    Settings::recipe(recipe)
        .feature_nodes(nodes)
        .enhancement_nodes(enhancement)
        .manifold_penalties(alpha, beta)
        .target_scaling(Scaling::None)
        .squared()
        .compact(true)
        .seed(seed)
}
