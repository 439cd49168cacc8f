//! Options about what is learnt and with which network, shared by the commands that fit one.

use crate::fault::Fault;
use broadlearn::data::Task;
use broadlearn::features::convolution::Image;
use broadlearn::features::{Activation, Recipe};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::{RobustLoss, Solver, Start};
use broadlearn::{Error, Settings};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches, ValueEnum};

/// What is learnt, and with which network.
#[derive(Args, Clone, Debug)]
pub(crate) struct LearningArgs {
    /// What is minimised
    #[arg(long, value_enum, default_value_t = LossName::Correntropy, help_heading = "Learning")]
    loss: LossName,
    /// With --loss generalised: the power of the residual in the kernel, above 0, at most 2
    /// [default: 1]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Learning")]
    shape: Option<f64>,
    /// With --loss mixture: the share of the kernel of size sigma, and how many times wider the other
    /// one is [default: 0.8,4]
    #[arg(long, value_name = "SHARE,RATIO", value_parser = mixture, allow_hyphen_values = true, help_heading = "Learning")]
    mixture: Option<(f64, f64)>,
    /// With --loss least-absolute or huber-weights: the number of steps [default: 20, 1]
    #[arg(long, value_name = "N", help_heading = "Learning")]
    steps: Option<usize>,
    /// With --loss huber-weights: residuals lose weight beyond so many spreads [default: 1]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Learning")]
    tuning: Option<f64>,
    /// Kernel size in units of the scaled target: smaller distrusts more rows
    #[arg(long, value_name = "auto|F", default_value = "auto", value_parser = automatic, allow_negative_numbers = true, help_heading = "Learning")]
    sigma: Automatic,
    /// Penalty on the output weights, or pinv for the pseudo-inverse
    #[arg(long, value_name = "auto|F|pinv", default_value = "auto", value_parser = automatic, allow_negative_numbers = true, help_heading = "Learning")]
    ridge: Automatic,
    /// Where the fixed point begins
    #[arg(long, value_parser = names(Start::ALL, Start::name), default_value = "best", help_heading = "Learning")]
    start: Start,
    /// Use the final kernel size from the beginning
    #[arg(long, help_heading = "Learning")]
    no_anneal: bool,
    /// Relative change of the outputs at which the fixed point is reached
    #[arg(long, value_name = "F", default_value_t = 1e-8, help_heading = "Learning")]
    tolerance: f64,
    /// Steps after which the fixed point is given up
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Learning")]
    max_iterations: usize,
    /// How the steps of the fixed point are found; all ways lead to the same one
    #[arg(long, value_parser = names(Solver::ALL, Solver::name), default_value = "auto", help_heading = "Learning")]
    solver: Solver,
    /// Memory that may be used, such as 500M or 2G: where the state of the rows does not fit it is computed
    /// again in every pass; the model is the same, unless the rows themselves do not fit: what is left
    /// open is then chosen on a part of them [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Learning")]
    pub(crate) memory: Option<u64>,
    /// Whether classes that mask each other may be told by multinomial regression on the outputs, where that is clearly better [default: yes
    /// if the kernel size is chosen]
    #[arg(long, value_name = "true|false", help_heading = "Learning")]
    discriminant: Option<bool>,
    /// The seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Learning")]
    pub(crate) seed: u64,
    /// Average so many independent networks (1 to 1000): steadier predictions, as many times the work.
    /// Settings are chosen for the first and taken over by the others. Default: 5, but 1 for more than
    /// 10000 rows and where --enhancement-nodes is given
    #[arg(long, value_name = "N", help_heading = "Learning")]
    members: Option<usize>,
    /// Leave R and P out of the model: a smaller file, which cannot be updated
    #[arg(long, help_heading = "Learning")]
    compact: bool,

    /// How the network is built [default: rich]
    #[arg(long, value_parser = names(Recipe::ALL, Recipe::name), help_heading = "Network")]
    recipe: Option<Recipe>,
    /// Feature groups, or systems of fuzzy rules [default: 10; fuzzy: 5; not for recipe rich]
    #[arg(long, value_name = "N", help_heading = "Network")]
    feature_groups: Option<usize>,
    /// Nodes in a feature group; rules, patches or manifold features of the recipes that have them
    /// [default: 10; convolution: 100; manifold, structured: 20; not for recipe rich]
    #[arg(long, value_name = "N", help_heading = "Network")]
    feature_nodes: Option<usize>,
    /// Enhancement nodes [default: chosen on the training rows]
    #[arg(long, value_name = "N", help_heading = "Network")]
    enhancement_nodes: Option<usize>,
    /// Size of the random weights, for all inputs alike [default: chosen on the training rows, larger for
    /// inputs that matter more; recurrent, convolution: 0.7; not for other recipes than rich and these]
    #[arg(long, value_name = "F", help_heading = "Network")]
    gain: Option<f64>,
    /// Inputs that an enhancement node reads, drawn for every node [default: all, or two, as the training rows
    /// say; only for recipes that take a --gain]
    #[arg(long, value_name = "N", help_heading = "Network")]
    fan_in: Option<usize>,
    /// Time that the fit may take on a usual processor, such as 30s or 5m: more time, larger networks;
    /// with little, inputs count alike [default: 1s and half a millisecond for every row]
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Network")]
    budget: Option<f64>,
    /// With --recipe convolution: the shape of the images that the inputs are the pixels of [default: a
    /// square, or else one row]
    #[arg(long, value_name = "HxW[xC]", value_parser = image, help_heading = "Network")]
    image: Option<Image>,
    /// With --recipe convolution: the height and width of a patch [default: 7]
    #[arg(long, value_name = "N", help_heading = "Network")]
    patch: Option<usize>,
    /// With --recipe convolution: responses are pooled to N x N regions [default: 4]
    #[arg(long, value_name = "N", help_heading = "Network")]
    pools: Option<usize>,
    /// With --recipe recurrent: inputs that are read at a time [default: 1]
    #[arg(long, value_name = "N", help_heading = "Network")]
    time_step: Option<usize>,
    /// With --recipe structured or manifold: their first penalty [default: 0.01]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Network")]
    alpha: Option<f64>,
    /// With --recipe structured or manifold: their second penalty [default: 0.01]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Network")]
    beta: Option<f64>,
    /// Activation of the enhancement nodes [default: tanh; sigmoid for elm]
    #[arg(long, value_parser = names(Activation::ALL, Activation::name), help_heading = "Network")]
    activation: Option<Activation>,
    /// How inputs are scaled [default: by the recipe]
    #[arg(long, value_parser = names(Scaling::ALL, Scaling::name), help_heading = "Network")]
    input_scaling: Option<Scaling>,
    /// How targets are scaled [default: by the recipe]
    #[arg(long, value_parser = names(Scaling::ALL, Scaling::name), help_heading = "Network")]
    target_scaling: Option<Scaling>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LossName {
    /// Robust: rows with wild targets get hardly any weight (C-BLS)
    Correntropy,
    /// Every target is believed (BLS)
    Squared,
    /// Robust: squared up to sigma, absolute beyond; every row keeps a say
    Huber,
    /// Robust: absolute residuals, as a median has them; sigma is only the unit of the ridge
    Absolute,
    /// Robust: rows farther off than sigma are left out altogether
    Bisquare,
    /// Correntropy whose kernel has a sharper peak and longer tails (--shape)
    Generalised,
    /// Correntropy with a second, wider kernel (--mixture)
    Mixture,
    /// Least absolute residuals by alternating directions (L2RBLS; --steps); cannot be updated
    LeastAbsolute,
    /// Huber's weights in units of the residuals themselves (WBLS; --tuning, --steps)
    HuberWeights,
}

/// The defaults of --shape and --mixture.
const SHAPE: f64 = 1.0;
const MIXTURE: (f64, f64) = (0.8, 4.0);
/// Those of --steps, --tuning, --patch, --pools, --alpha and --beta.
const STEPS: usize = 20;
const TUNING: f64 = 1.0;
const PATCH: usize = 7;
const POOLS: usize = 4;
const PENALTY: f64 = 0.01;

/// A number, or to be chosen, or none at all.
#[derive(Clone, Copy, Debug)]
enum Automatic {
    Choose,
    Value(f64),
    PseudoInverse,
}

fn automatic(text: &str) -> Result<Automatic, String> {
    match text {
        "auto" => Ok(Automatic::Choose),
        "pinv" => Ok(Automatic::PseudoInverse),
        _ => match text.parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() => Ok(Automatic::Value(value)),
            _ => Err("expected auto or a positive number".into()),
        },
    }
}

fn mixture(text: &str) -> Result<(f64, f64), String> {
    let numbers = text.split_once(',').map(|(share, ratio)| (share.parse(), ratio.parse()));
    match numbers {
        Some((Ok(share), Ok(ratio))) => Ok((share, ratio)),
        _ => Err("expected two numbers, as in 0.8,4".into()),
    }
}

/// A shape such as 28x28 or 32x32x3.
fn image(text: &str) -> Result<Image, String> {
    let sides: Vec<usize> = text.split('x').map_while(|side| side.parse().ok()).collect();
    match (sides.as_slice(), text.split('x').count()) {
        (&[height, width], 2) => Ok(Image { height, width, channels: 1 }),
        (&[height, width, channels], 3) => Ok(Image { height, width, channels }),
        _ => Err("expected a shape such as 28x28 or 32x32x3".into()),
    }
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time such as 500ms, 30s, 5m or 1h".into()),
    };
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * unit),
        _ => Err("expected a positive time such as 30s or 5m".into()),
    }
}

/// A number of bytes, such as 500M or 2G.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].trim_end_matches(['B', 'b', 'i']) {
        "" => 1.0,
        "K" | "k" => 1024.0,
        "M" | "m" => 1024.0 * 1024.0,
        "G" | "g" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err("expected a size such as 500M or 2G".into()),
    };
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok((value * unit) as u64),
        _ => Err("expected a positive size such as 500M or 2G".into()),
    }
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("expected a share between 0 and 1".into()),
    }
}

/// A parser for one of the library's enumerations.
pub(crate) fn names<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).map(move |text| {
        // The parser before this one lets only these names through.
        all.into_iter().find(|value| name(*value) == text).unwrap_or(all[0])
    })
}

impl LearningArgs {
    /// What settings are checked for as long as the target is not known.
    pub(crate) fn assumed_task(&self) -> Task {
        match self.discriminant {
            Some(_) => Task::Classification,
            None => Task::Regression,
        }
    }

    /// The settings; wrong ones are said before a long file is read.
    pub(crate) fn settings(&self, task: Task) -> Result<Settings, Fault> {
        let mut settings = self
            .recipe
            .map_or_else(Settings::new, Settings::recipe)
            .start(self.start, !self.no_anneal)
            .solver(self.solver)
            .stop(self.tolerance, self.max_iterations)
            .seed(self.seed)
            .compact(self.compact);
        if let Some(activation) = self.activation {
            settings = settings.activation(activation);
        }
        if let Some(shape) = self.image {
            settings = settings.image(shape);
        }
        if self.patch.is_some() || self.pools.is_some() {
            settings = settings.patches(self.patch.unwrap_or(PATCH), self.pools.unwrap_or(POOLS));
        }
        if let Some(inputs) = self.time_step {
            settings = settings.time_step(inputs);
        }
        if self.alpha.is_some() || self.beta.is_some() {
            let (alpha, beta) = (self.alpha.unwrap_or(PENALTY), self.beta.unwrap_or(PENALTY));
            settings = settings.manifold_penalties(alpha, beta);
        }
        if let Some(may_be) = self.discriminant {
            settings = settings.discriminant(may_be);
        }
        if let Some(count) = self.members {
            settings = settings.members(count);
        }
        if let Some(bytes) = self.memory {
            settings = settings.memory(bytes);
        }
        if let Some(count) = self.feature_groups {
            settings = settings.feature_groups(count);
        }
        if let Some(count) = self.feature_nodes {
            settings = settings.feature_nodes(count);
        }
        if let Some(count) = self.enhancement_nodes {
            settings = settings.enhancement_nodes(count);
        }
        if let Some(gain) = self.gain {
            settings = settings.gain(gain);
        }
        if let Some(inputs) = self.fan_in {
            settings = settings.fan_in(inputs);
        }
        if let Some(seconds) = self.budget {
            settings = settings.budget(seconds);
        }
        if let Some(scaling) = self.input_scaling {
            settings = settings.input_scaling(scaling);
        }
        if let Some(scaling) = self.target_scaling {
            settings = settings.target_scaling(scaling);
        }
        settings = match (self.robust_loss()?, self.sigma) {
            (_, Automatic::Choose) if self.loss.is_procedure() => self.procedure(settings),
            (_, Automatic::Value(sigma)) if self.loss.is_procedure() => {
                return Err(Error::setting("sigma", sigma)
                    .expected("no kernel size with --loss least-absolute or huber-weights")
                    .into());
            }
            (None, Automatic::Choose) => settings.squared(),
            (Some(kind), Automatic::Choose) => settings.loss(kind),
            (Some(kind), Automatic::Value(sigma)) => settings.loss(kind).sigma(sigma),
            (None, Automatic::Value(sigma)) => {
                return Err(Error::setting("sigma", sigma)
                    .expected("no kernel size with --loss squared")
                    .into());
            }
            (_, Automatic::PseudoInverse) => {
                return Err(Error::setting("sigma", "pinv").expected("auto or a number").into());
            }
        };
        settings = match self.ridge {
            Automatic::Choose => settings,
            Automatic::Value(ridge) => settings.ridge(ridge),
            Automatic::PseudoInverse => settings.pseudo_inverse(),
        };
        // Both tasks agree on all but scalers.
        settings.clone().check(task)?;
        Ok(settings)
    }

    /// L2RBLS or WBLS.
    fn procedure(&self, settings: Settings) -> Settings {
        match self.loss {
            LossName::LeastAbsolute => settings.least_absolute(self.steps.unwrap_or(STEPS)),
            _ => settings.huber_weights(self.tuning.unwrap_or(TUNING), self.steps.unwrap_or(1)),
        }
    }

    /// Whether nothing was said.
    pub(crate) fn is_usual(&self) -> bool {
        let matches = Self::augment_args(clap::Command::new("fit")).get_matches_from(["fit"]);
        let usual = Self::from_arg_matches(&matches);
        usual.is_ok_and(|usual| format!("{usual:?}") == format!("{self:?}"))
    }

    /// The robust loss that was asked for; `None` for the squared one.
    fn robust_loss(&self) -> Result<Option<RobustLoss>, Fault> {
        let misplaced = |option: &str, loss: &str| {
            Error::setting(option, format!("--{option} for another loss"))
                .expected(format!("--{option} with --loss {loss} only"))
        };
        if self.shape.is_some() && !matches!(self.loss, LossName::Generalised) {
            return Err(misplaced("shape", "generalised").into());
        }
        if self.steps.is_some() && !self.loss.is_procedure() {
            return Err(misplaced("steps", "least-absolute or huber-weights").into());
        }
        if self.tuning.is_some() && !matches!(self.loss, LossName::HuberWeights) {
            return Err(misplaced("tuning", "huber-weights").into());
        }
        if self.mixture.is_some() && !matches!(self.loss, LossName::Mixture) {
            return Err(misplaced("mixture", "mixture").into());
        }
        Ok(self.loss.robust(self.shape.unwrap_or(SHAPE), self.mixture.unwrap_or(MIXTURE)))
    }
}

impl LossName {
    /// The loss with its usual shape; `None` for the squared one.
    pub(crate) fn usual(self) -> Option<RobustLoss> {
        self.robust(SHAPE, MIXTURE)
    }

    /// Whether it is more than a loss: a way to find W of its own.
    pub(crate) fn is_procedure(self) -> bool {
        matches!(self, Self::LeastAbsolute | Self::HuberWeights)
    }

    fn robust(self, shape: f64, (share, ratio): (f64, f64)) -> Option<RobustLoss> {
        match self {
            Self::Squared => None,
            Self::Correntropy => Some(RobustLoss::Correntropy),
            Self::Huber | Self::HuberWeights => Some(RobustLoss::Huber),
            Self::Absolute | Self::LeastAbsolute => Some(RobustLoss::Absolute),
            Self::Bisquare => Some(RobustLoss::Bisquare),
            Self::Generalised => Some(RobustLoss::Generalised { shape }),
            Self::Mixture => Some(RobustLoss::Mixture { share, ratio }),
        }
    }
}
