//! What a user can set, and what is taken where nothing is said.

use super::CheckedSettings;
use crate::data::Task;
use crate::error::{Error, Result};
use crate::features::convolution::Image;
use crate::features::{Activation, Features, Growth, Network, Recipe};
use crate::preprocess::Scaling;
use crate::solve::{RobustLoss, Solver, Start};
use serde::{Deserialize, Serialize};

/// What is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "name")]
pub enum Criterion {
    /// The sum of squares: plain BLS.
    Squared,
    /// A robust loss: correntropy is C-BLS.
    #[serde(untagged)]
    Robust {
        /// Which one.
        #[serde(flatten)]
        kind: RobustLoss,
        /// The kernel size in units of the scaled target; chosen on the training rows if not given.
        sigma: Option<f64>,
    },
}

/// How W is found for a robust loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Procedure {
    /// The fixed point of the loss: C-BLS and its relatives.
    #[default]
    FixedPoint,
    /// Least absolute residuals of every output by alternating directions: L2RBLS.
    LeastAbsolute {
        /// The number of steps.
        steps: usize,
    },
    /// Huber's weights in units of the spread of the residuals: WBLS.
    HuberWeights {
        /// Residuals beyond so many spreads lose weight.
        tuning: f64,
        /// The number of reweighted solutions.
        steps: usize,
    },
}

impl Procedure {
    pub(super) fn is_fixed_point(&self) -> bool {
        *self == Self::FixedPoint
    }
}

/// What keeps W from growing without bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Regularisation {
    /// gamma |W|^2.
    Ridge {
        /// gamma; chosen on the training rows if not given.
        ridge: Option<f64>,
    },
    /// The solution of least norm, W = U⁺ Y; for the squared loss only.
    PseudoInverse,
}

/// What is chosen on the training rows, besides ridge and kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) gain: bool,
    pub(crate) fan_in: bool,
    pub(crate) nodes: bool,
    pub(crate) members: bool,
}

impl Open {
    pub(crate) const NOTHING: Self =
        Self { gain: false, fan_in: false, nodes: false, members: false };
}

/// Settings of a broad learning machine. The defaults (correntropy, ridge and kernel size chosen on
/// the training rows) are meant to be right for dirty data.
///
/// C-BLS maximises, over the output weights W,
///
/// ```text
/// J(W) = sum_i w_i exp(-|y_i - u_i W|^2 / 2 sigma^2) - gamma / (2 sigma^2) |W|^2
/// ```
///
/// and other [robust losses](RobustLoss) take the place of the first term with [`loss`](Self::loss).
///
/// Fitting N rows with L nodes costs N L^2 + L^3 / 3 flops, less than twice that for a robust loss,
/// and 8 L^2 bytes, whatever N is (and up to 4 N L bytes for U, which is kept if [`memory`](Self::memory)
/// allows).
///
/// | name | default | range | which way it pushes |
/// |---|---|---|---|
/// | recipe | rich | see [`Recipe`] | sets network and scalers, before any other setting |
/// | enhancement_nodes | chosen | 0.. | more: finer functions, slower |
/// | budget | 1 s + 0.5 ms a row | > 0 | more: larger networks are tried |
/// | feature_groups, feature_nodes | 10, 10 | 1.. | as above; not for the recipe `rich` |
/// | gain | chosen | > 0 | larger: wigglier functions; a given one holds for all inputs alike; only for the recipe `rich` |
/// | fan_in | chosen: all or 2 | 1.. | fewer: sums of functions of few inputs each; only where there is a gain |
/// | loss | correntropy | see [`RobustLoss`] | squared: every target is believed |
/// | sigma | auto | > 0 | smaller: more rows count as outliers |
/// | ridge | auto | > 0 | larger: smoother, smaller outputs |
/// | start | best | see [`Start`] | where the fixed point begins |
/// | anneal | true | | whether the kernel shrinks to its size step by step |
/// | tolerance | 1e-8 | > 0 | relative change of the outputs at which the fixed point is reached |
/// | max_iterations | 200 | 1.. | |
/// | seed | 0 | | another random network |
/// | discriminant | where the kernel is chosen | | whether classes that mask each other may be told by [multinomial regression](super::Model::has_discriminant) |
/// | members | chosen | 1..=1000 | more: the mean of so many networks, steadier, as many times slower; 1 where the nodes are given |
///
/// ```
/// use broadlearn::{Settings, faer::Mat};
/// let x = Mat::from_fn(60, 2, |i, j| ((i * (j + 3)) % 17) as f64);
/// let y = Mat::from_fn(60, 1, |i, _| x[(i, 0)] - 3.0 * x[(i, 1)]);
/// let model = Settings::new().squared().ridge(1e-8).fit_regression(&x, &y)?;
/// let error = model.predict(&x)?.values() - &y;
/// assert!(error.norm_max() < 1e-4);
/// # Ok::<(), broadlearn::Error>(())
/// ```
///
/// Reference: Zheng, Chen, Wang and Wang, "Broad Learning System Based on Maximum Correntropy
/// Criterion".
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    recipe: Recipe,
    network: Network,
    open: Open,
    budget: Option<f64>,
    misplaced: Option<&'static str>,
    input_scaling: Option<Scaling>,
    target_scaling: Option<Scaling>,
    criterion: Criterion,
    procedure: Procedure,
    regularisation: Regularisation,
    start: Start,
    anneal: bool,
    tolerance: f64,
    max_iterations: usize,
    discriminant: Option<bool>,
    seed: u64,
    members: Option<usize>,
    compact: bool,
    solver: Solver,
    memory: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

impl Settings {
    /// The defaults: the network, too, is chosen on the training rows.
    pub fn new() -> Self {
        Self::recipe(Recipe::default())
    }

    /// The defaults of a recipe.
    pub fn recipe(recipe: Recipe) -> Self {
        Self {
            recipe,
            network: recipe.network(),
            open: Open {
                gain: recipe == Recipe::Rich,
                fan_in: recipe == Recipe::Rich,
                nodes: true,
                members: false,
            },
            budget: None,
            misplaced: None,
            input_scaling: None,
            target_scaling: None,
            criterion: Criterion::Robust { kind: RobustLoss::default(), sigma: None },
            procedure: Procedure::default(),
            regularisation: Regularisation::Ridge { ridge: None },
            start: Start::default(),
            anneal: true,
            tolerance: 1e-8,
            max_iterations: 200,
            discriminant: None,
            seed: 0,
            members: None,
            compact: false,
            solver: Solver::default(),
            memory: None,
        }
    }

    /// The number of feature groups, N_w.
    #[must_use]
    pub fn feature_groups(mut self, count: usize) -> Self {
        match &mut self.network.features {
            Features::Groups { groups, .. } => *groups = count,
            Features::Fuzzy { systems, .. } => *systems = count,
            _ => self.misplaced = Some("feature_groups"),
        }
        self
    }

    /// The number of nodes in a feature group, N_f.
    #[must_use]
    pub fn feature_nodes(mut self, count: usize) -> Self {
        match &mut self.network.features {
            Features::Groups { nodes, .. }
            | Features::Manifold { nodes, .. }
            | Features::Fuzzy { rules: nodes, .. }
            | Features::Convolution { filters: nodes, .. } => *nodes = count,
            _ => self.misplaced = Some("feature_nodes"),
        }
        self
    }

    /// The shape of the images that the inputs are pixels of; for the recipe `convolution`.
    #[must_use]
    pub fn image(mut self, shape: Image) -> Self {
        match &mut self.network.features {
            Features::Convolution { image, .. } => *image = Some(shape),
            _ => self.misplaced = Some("image"),
        }
        self
    }

    /// The height and width of patches, and the rows and columns of regions to which their responses are
    /// pooled; for the recipe `convolution`.
    #[must_use]
    pub fn patches(mut self, size: usize, regions: usize) -> Self {
        match &mut self.network.features {
            Features::Convolution { patch, pools, .. } => (*patch, *pools) = (size, regions),
            _ => self.misplaced = Some("patch"),
        }
        self
    }

    /// The number of inputs that recurrent nodes read at a time; for the recipe `recurrent`.
    #[must_use]
    pub fn time_step(mut self, inputs: usize) -> Self {
        match &mut self.network.enhancement.time_step {
            Some(step) => *step = inputs,
            None => self.misplaced = Some("time_step"),
        }
        self
    }

    /// The penalties of manifold features, as their authors call them; for the recipes `structured` and
    /// `manifold`.
    #[must_use]
    pub fn manifold_penalties(mut self, first: f64, second: f64) -> Self {
        match &mut self.network.features {
            Features::Manifold { alpha, beta, .. } => (*alpha, *beta) = (first, second),
            _ => self.misplaced = Some("alpha"),
        }
        self
    }

    /// The number of enhancement nodes, N_e.
    #[must_use]
    pub fn enhancement_nodes(mut self, count: usize) -> Self {
        self.network.enhancement.nodes = count;
        self.open.nodes = false;
        self
    }

    /// The activation of the enhancement nodes.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.network.enhancement.activation = activation;
        self
    }

    /// The size of the random weights of the recipe `rich`.
    #[must_use]
    pub fn gain(mut self, gain: f64) -> Self {
        self.open = Open { gain: false, fan_in: false, ..self.open };
        match &mut self.network.enhancement.gain {
            Some(current) => *current = gain,
            None => self.misplaced = Some("gain"),
        }
        self
    }

    /// The number of inputs that an enhancement node reads, drawn for every node, for recipes that have a gain.
    #[must_use]
    pub fn fan_in(mut self, inputs: usize) -> Self {
        self.open = Open { fan_in: false, ..self.open };
        match self.network.enhancement.gain {
            Some(_) => self.network.enhancement.fan_in = Some(inputs),
            None => self.misplaced = Some("fan_in"),
        }
        self
    }

    /// Any network at all.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self.open = Open::NOTHING;
        self
    }

    /// One more step of growth: the network that [`Model::grow`](super::Model::grow) makes of this
    /// one, from the beginning.
    #[must_use]
    pub fn growth(mut self, growth: Growth) -> Self {
        self.network.growth.push(growth);
        self.open = Open::NOTHING;
        self
    }

    /// Seconds that a fit may take on a usual processor (2e10 flops a second): the more, the larger the
    /// networks that are tried; which inputs matter is not looked at if that takes more than a quarter. The
    /// same budget gives the same model on every machine. By default 1 s and half a millisecond for every
    /// row.
    #[must_use]
    pub fn budget(mut self, seconds: f64) -> Self {
        self.budget = Some(seconds);
        self
    }

    /// How inputs are scaled; otherwise the recipe decides.
    #[must_use]
    pub fn input_scaling(mut self, scaling: Scaling) -> Self {
        self.input_scaling = Some(scaling);
        self
    }

    /// How the targets of a regression are scaled; otherwise the recipe decides.
    #[must_use]
    pub fn target_scaling(mut self, scaling: Scaling) -> Self {
        self.target_scaling = Some(scaling);
        self
    }

    /// The squared loss: plain BLS.
    #[must_use]
    pub fn squared(mut self) -> Self {
        self.procedure = Procedure::FixedPoint;
        self.criterion = Criterion::Squared;
        self
    }

    /// A robust loss in place of correntropy, with the kernel size as it was set; in place of
    /// [`least_absolute`](Self::least_absolute) or [`huber_weights`](Self::huber_weights), which have none, with one that
    /// is chosen.
    ///
    /// ```
    /// use broadlearn::{Settings, faer::Mat, solve::RobustLoss};
    /// let x = Mat::from_fn(60, 1, |i, _| i as f64);
    /// let y = Mat::from_fn(60, 1, |i, _| if i % 9 == 0 { 500.0 } else { 2.0 * x[(i, 0)] });
    /// let model = Settings::new().loss(RobustLoss::Bisquare).fit_regression(&x, &y)?;
    /// assert!((model.predict(&x)?.values()[(30, 0)] - 60.0).abs() < 1.0);
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    #[must_use]
    pub fn loss(mut self, kind: RobustLoss) -> Self {
        let sigma = match (self.criterion, self.procedure) {
            (Criterion::Robust { sigma, .. }, Procedure::FixedPoint) => sigma,
            _ => None,
        };
        self.criterion = Criterion::Robust { kind, sigma };
        self.procedure = Procedure::FixedPoint;
        self
    }

    /// The kernel size of the robust loss; correntropy if none was set, or if it was one without a kernel.
    #[must_use]
    pub fn sigma(mut self, sigma: f64) -> Self {
        let kind = match (self.criterion, self.procedure) {
            (Criterion::Robust { kind, .. }, Procedure::FixedPoint) => kind,
            _ => RobustLoss::default(),
        };
        self.procedure = Procedure::FixedPoint;
        self.criterion = Criterion::Robust { kind, sigma: Some(sigma) };
        self
    }

    /// L2RBLS: the least sum of the absolute residuals of all outputs, by so many steps of alternating
    /// directions (20 come within 1.5 % of 200). The ridge is its lambda / 2. Such a model cannot be
    /// updated: it has no sample weights under which W would be a ridge solution.
    ///
    /// ```
    /// use broadlearn::{Settings, faer::Mat};
    /// let x = Mat::from_fn(60, 1, |i, _| i as f64);
    /// let y = Mat::from_fn(60, 1, |i, _| if i % 9 == 0 { 500.0 } else { 2.0 * x[(i, 0)] });
    /// let model = Settings::new().least_absolute(50).ridge(1e-6).fit_regression(&x, &y)?;
    /// assert!((model.predict(&x)?.values()[(30, 0)] - 60.0).abs() < 5.0);
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    #[must_use]
    pub fn least_absolute(mut self, steps: usize) -> Self {
        self.criterion = Criterion::Robust { kind: RobustLoss::Absolute, sigma: Some(1.0) };
        self.procedure = Procedure::LeastAbsolute { steps };
        self
    }

    /// WBLS: a ridge solution, then so many (the published method: one) with Huber's weights, under which
    /// residuals count less beyond `tuning` spreads of the residuals before.
    #[must_use]
    pub fn huber_weights(mut self, tuning: f64, steps: usize) -> Self {
        self.criterion = Criterion::Robust { kind: RobustLoss::Huber, sigma: None };
        self.procedure = Procedure::HuberWeights { tuning, steps };
        self
    }

    /// The ridge gamma.
    #[must_use]
    pub fn ridge(mut self, ridge: f64) -> Self {
        self.regularisation = Regularisation::Ridge { ridge: Some(ridge) };
        self
    }

    /// W = U⁺ Y in place of a ridge.
    #[must_use]
    pub fn pseudo_inverse(mut self) -> Self {
        self.regularisation = Regularisation::PseudoInverse;
        self
    }

    /// Where the fixed point begins, and whether the kernel shrinks to its size step by step.
    #[must_use]
    pub fn start(mut self, start: Start, anneal: bool) -> Self {
        (self.start, self.anneal) = (start, anneal);
        self
    }

    /// The relative change of the outputs at which the fixed point counts as reached, and the
    /// number of steps after which it is given up.
    #[must_use]
    pub fn stop(mut self, tolerance: f64, max_iterations: usize) -> Self {
        (self.tolerance, self.max_iterations) = (tolerance, max_iterations);
        self
    }

    /// The seed of all random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// An ensemble: the mean of so many networks, which differ in their seeds
    /// ([`member_seed`](crate::features::draw::member_seed)). What is left open is chosen for the first
    /// one and taken over by the others. If this is left open as well, a network of given size is alone;
    /// one whose size is chosen gets company where there are few rows, and chance has more to say.
    ///
    /// ```
    /// use broadlearn::{Settings, faer::Mat};
    /// let x = Mat::from_fn(60, 1, |i, _| i as f64);
    /// let y = Mat::from_fn(60, 1, |i, _| (i as f64 / 9.0).sin());
    /// let model = Settings::new().members(3).fit_regression(&x, &y)?;
    /// assert_eq!(model.members().len(), 3);
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    #[must_use]
    pub fn members(mut self, count: usize) -> Self {
        self.members = Some(count);
        self
    }

    /// Whether classes that mask each other may be told by multinomial regression on the outputs, where rows that were left out say that
    /// this is clearly better. If not said, yes where the kernel is chosen, no where it is given: that is the published method.
    #[must_use]
    pub fn discriminant(mut self, may_be: bool) -> Self {
        self.discriminant = Some(may_be);
        self
    }

    /// Whether the model keeps R and P, which later updates need; a compact one does not.
    #[must_use]
    pub fn compact(mut self, compact: bool) -> Self {
        self.compact = compact;
        self
    }

    /// How the steps of the fixed point are found. All ways lead to the same one.
    #[must_use]
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// Bytes of memory that a fit may use, as far as it has a choice: the state of the training rows is
    /// kept if there is room, and computed anew in every pass if not. Half of what is free unless
    /// given. The model is the same, bit by bit.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Checks that every setting is within its range.
    ///
    /// # Errors
    /// Of category `Setting`, with the name of the setting, what was found and what was expected.
    pub fn check(mut self, task: Task) -> Result<CheckedSettings> {
        if let Some(name) = self.misplaced {
            return Err(Error::setting(name, format!("a value for recipe {}", self.recipe.name()))
                .expected("a recipe that has this setting")
                .advice(match name {
                    "gain" => "use --recipe rich, recurrent or convolution",
                    "fan_in" => "use --recipe rich or convolution",
                    "image" | "patch" | "pools" => "use --recipe convolution",
                    "time_step" => "use --recipe recurrent",
                    "alpha" | "beta" => "use --recipe structured or manifold",
                    _ => "use --recipe classic, unscaled or plain; rich has only enhancement nodes",
                }));
        }
        for step in std::mem::take(&mut self.network.growth) {
            self.network = self.network.grown(step)?;
        }
        let (inputs, target) = match (self.recipe, task) {
            (Recipe::Rich | Recipe::Recurrent | Recipe::Fuzzy, Task::Regression) => {
                (Scaling::Tamed, Scaling::Robust)
            }
            (Recipe::Rich | Recipe::Recurrent | Recipe::Fuzzy, Task::Classification) => {
                (Scaling::Tamed, Scaling::None)
            }
            (Recipe::Convolution, Task::Regression) => (Scaling::RowZScore, Scaling::Robust),
            (Recipe::Convolution, Task::Classification) => (Scaling::RowZScore, Scaling::None),
            (_, Task::Regression) => (Scaling::MinMax, Scaling::MinMax),
            (_, Task::Classification) => (Scaling::MinMaxSymmetric, Scaling::None),
        };
        let open = Open { members: self.members.is_none() && self.open.nodes, ..self.open };
        let settings = CheckedSettings {
            recipe: self.recipe,
            network: self.network,
            open,
            budget: self.budget,
            input_scaling: self.input_scaling.unwrap_or(inputs),
            target_scaling: self.target_scaling.unwrap_or(target),
            criterion: self.criterion,
            procedure: self.procedure,
            regularisation: self.regularisation,
            start: self.start,
            anneal: self.anneal,
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
            discriminant: self.discriminant,
            seed: self.seed,
            members: self.members.unwrap_or(1),
            compact: self.compact,
            solver: self.solver,
            memory: self.memory,
        };
        settings.verify(task)?;
        Ok(settings)
    }
}
