//! What a network consists of, and the named recipes.

use super::Activation;
use super::convolution::Image;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A named way to build the network (see `docs/math.md`, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recipe {
    /// U = [1, X, tanh(g X V / sqrt(M) + b)] on standardised inputs: wide and smooth. The default.
    #[default]
    Rich,
    /// The original authors' classifier: sparse-autoencoder features in [0, 1], orthonormal
    /// enhancement weights, shrunk so that the largest argument of tanh is 0.8.
    Classic,
    /// The original authors' regressor: as `classic`, without orthonormalising and shrinking.
    Unscaled,
    /// Uniform random weights everywhere, no fine-tuning, no scaling of nodes.
    Plain,
    /// U = [X, tanh(X V + b)]: no feature layer, as in WBLS and random vector functional links.
    Direct,
    /// U = sigmoid(X V + b): the extreme learning machine.
    Elm,
    /// Features that keep neighbouring rows together, few inputs at a time: SM-BLS.
    Structured,
    /// Features of a regularised graph of neighbours, scaled to [-1, 1]: RM-BLS.
    Manifold,
    /// U = [1, X, h], where h has read the inputs one after another: for lags of a series.
    Recurrent,
    /// Responses of random patches of the images, pooled: for pixels.
    Convolution,
    /// Rules "if x is near to this, then a line", weighed by how well they apply: neuro-fuzzy.
    Fuzzy,
}

impl Recipe {
    /// All recipes, the default first.
    pub const ALL: [Self; 11] = [
        Self::Rich,
        Self::Classic,
        Self::Unscaled,
        Self::Plain,
        Self::Direct,
        Self::Elm,
        Self::Structured,
        Self::Manifold,
        Self::Recurrent,
        Self::Convolution,
        Self::Fuzzy,
    ];

    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rich => "rich",
            Self::Classic => "classic",
            Self::Unscaled => "unscaled",
            Self::Plain => "plain",
            Self::Direct => "direct",
            Self::Elm => "elm",
            Self::Structured => "structured",
            Self::Manifold => "manifold",
            Self::Recurrent => "recurrent",
            Self::Convolution => "convolution",
            Self::Fuzzy => "fuzzy",
        }
    }

    /// Whether its features come in groups, of which there may be more or fewer.
    pub fn has_feature_groups(self) -> bool {
        matches!(self.network().features, Features::Groups { .. } | Features::Fuzzy { .. })
    }

    /// The network of this recipe, with its default sizes.
    pub fn network(self) -> Network {
        let groups = |fine_tuned| Features::Groups {
            groups: 10,
            nodes: 10,
            fine_tuned,
            activation: Activation::Identity,
        };
        let enhancement = Enhancement {
            nodes: 200,
            activation: Activation::Tanh,
            gain: None,
            relevance: None,
            fan_in: None,
            orthonormal: false,
            shrink: None,
            positive_bias: false,
            time_step: None,
        };
        match self {
            Self::Rich => {
                Network::new(Features::Inputs, Enhancement { gain: Some(0.7), ..enhancement })
            }
            Self::Classic => Network::new(
                groups(true),
                Enhancement { orthonormal: true, shrink: Some(0.8), ..enhancement },
            ),
            Self::Unscaled => Network::new(groups(true), enhancement),
            Self::Plain => Network::new(groups(false), enhancement),
            Self::Direct => Network::new(
                Features::InputsAlone,
                Enhancement { positive_bias: true, ..enhancement },
            ),
            Self::Elm => Network::new(
                Features::Nothing,
                Enhancement { activation: Activation::Sigmoid, positive_bias: true, ..enhancement },
            ),
            Self::Structured | Self::Manifold => Network::new(
                Features::Manifold {
                    by: match self {
                        Self::Structured => Manifold::Structured,
                        _ => Manifold::Robust,
                    },
                    nodes: 20,
                    alpha: 0.01,
                    beta: 0.01,
                },
                Enhancement { orthonormal: true, shrink: Some(0.8), ..enhancement },
            ),
            Self::Recurrent => Network::new(
                Features::Inputs,
                Enhancement { gain: Some(0.7), time_step: Some(1), ..enhancement },
            ),
            Self::Convolution => Network::new(
                Features::Convolution { image: None, filters: 100, patch: 7, pools: 4 },
                Enhancement { gain: Some(0.7), ..enhancement },
            ),
            Self::Fuzzy => Network::new(
                Features::Fuzzy { systems: 5, rules: 10 },
                Enhancement { orthonormal: true, shrink: Some(0.8), ..enhancement },
            ),
        }
    }
}

/// The first layer: how the feature nodes Z come from the inputs X.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Features {
    /// Z = X, and a constant node: the inputs reach the output directly.
    Inputs,
    /// As `Inputs`, each input times its relevance: what matters little costs the more weight.
    RelevantInputs,
    /// Random groups Z_i = phi(X We_i + be_i), i = 1 .. `groups`, of `nodes` nodes each.
    Groups {
        /// The number of groups, N_w in the paper.
        groups: usize,
        /// The number of nodes in a group, N_f in the paper.
        nodes: usize,
        /// Whether the random weights are replaced by those of a sparse autoencoder and every node
        /// is scaled to [0, 1] on the training rows.
        fine_tuned: bool,
        /// The function phi.
        activation: Activation,
    },
    /// Z = X, without a constant.
    InputsAlone,
    /// No feature nodes: the enhancement nodes read the inputs.
    Nothing,
    /// Z = [X, X We], where We keeps neighbouring rows together.
    Manifold {
        /// How We is found.
        by: Manifold,
        /// The number of columns of We.
        nodes: usize,
        /// The first of its two penalties, as its authors call it.
        alpha: f64,
        /// The second.
        beta: f64,
    },
    /// Responses of random patches of images, pooled.
    Convolution {
        /// The shape of the images; unless given a square one, or a row.
        image: Option<Image>,
        /// The number of patches.
        filters: usize,
        /// The height and width of a patch, as far as the image goes.
        patch: usize,
        /// The responses of a patch are pooled to so many rows and columns, as far as there are so many.
        pools: usize,
    },
    /// The rules of several systems: how well a rule applies, times a linear function of the inputs.
    Fuzzy {
        /// The number of systems.
        systems: usize,
        /// The number of rules in each.
        rules: usize,
    },
}

impl Features {
    /// The number of feature groups, each of which later nodes can read.
    pub(super) fn groups(&self) -> usize {
        match *self {
            Self::Nothing => 0,
            Self::Inputs | Self::RelevantInputs | Self::InputsAlone | Self::Convolution { .. } => 1,
            Self::Manifold { .. } => 2,
            Self::Groups { groups, .. } => groups,
            Self::Fuzzy { systems, .. } => systems,
        }
    }

    /// The number of columns of U.
    fn width(&self, inputs: usize) -> usize {
        match *self {
            Self::Inputs | Self::RelevantInputs => inputs.saturating_add(1),
            Self::InputsAlone => inputs,
            Self::Nothing => 0,
            Self::Groups { groups, nodes, .. } => groups.saturating_mul(nodes),
            Self::Manifold { nodes, .. } => inputs.saturating_add(nodes),
            Self::Convolution { filters, pools, .. } => {
                filters.saturating_mul(pools).saturating_mul(pools)
            }
            Self::Fuzzy { systems, rules } => systems.saturating_mul(rules),
        }
    }
}

/// How the weights of manifold features are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manifold {
    /// Sparse rows and the lowest eigenvectors of a graph (SM-BLS).
    Structured,
    /// Alternating directions with an orthogonality constraint (RM-BLS).
    Robust,
}

/// The second layer: H = xi(Z Wh + bh).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enhancement {
    /// The number of nodes, N_e in the paper; may be 0.
    pub nodes: usize,
    /// The function xi.
    pub activation: Activation,
    /// Normal weights of standard deviation gain / sqrt(inputs) and biases uniform in
    /// [-gain, gain]; without a gain, weights uniform in [-1, 1] and biases in [-0.1, 0.1].
    pub gain: Option<f64>,
    /// If given, one factor per input: the weights that multiply it are this much larger. Found on the
    /// training rows together with the gain; only where nodes read the inputs directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevance: Option<Vec<f64>>,
    /// If given, every node reads only so many inputs, drawn for it in proportion to their relevance; only
    /// beside a gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<usize>,
    /// Whether the weights are orthonormalised.
    pub orthonormal: bool,
    /// If given, weights are multiplied so that the largest argument of xi on the training rows
    /// is this value.
    pub shrink: Option<f64>,
    /// Whether biases are uniform in [0, 1], where no gain says otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub positive_bias: bool,
    /// If given, nodes read so many inputs at a time, from the first to the last, together with what nodes
    /// made of those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_step: Option<usize>,
}

/// One step by which a network grows. Its columns of U stand behind all earlier ones, in the order
/// of these fields; its nodes are made as those of the network itself are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// New feature groups; only where the network has groups.
    pub feature_groups: usize,
    /// The nodes in each of them; 0 stands for as many as the network's groups have.
    pub feature_nodes: usize,
    /// New enhancement nodes that read the new feature groups alone.
    pub group_enhancement_nodes: usize,
    /// New enhancement nodes that read all features, the new ones among them.
    pub enhancement_nodes: usize,
}

impl Growth {
    /// Whether nothing is added.
    pub fn is_empty(&self) -> bool {
        self.feature_groups == 0 && self.enhancement_nodes == 0
    }

    /// Fills in what was left to the network, and checks that the step makes sense for it.
    pub(crate) fn check(mut self, network: &Network) -> Result<Self> {
        if self.is_empty() {
            return Err(Error::setting("growth", "no new nodes")
                .expected("enhancement nodes or feature groups to add")
                .advice("give --enhancement-nodes N or --feature-groups N"));
        }
        match network.features {
            Features::Groups { nodes, .. } if self.feature_groups > 0 => {
                if self.feature_nodes == 0 {
                    self.feature_nodes = nodes;
                }
            }
            _ if self.feature_groups > 0 => {
                return Err(Error::setting("feature_groups", self.feature_groups)
                    .expected("0 for a network without random feature groups")
                    .advice("add --enhancement-nodes; recipe classic has feature groups"));
            }
            _ => {
                for (name, found) in [
                    ("feature_nodes", self.feature_nodes),
                    ("group_enhancement_nodes", self.group_enhancement_nodes),
                ] {
                    if found > 0 {
                        return Err(Error::setting(name, found)
                            .expected("new feature groups beside it")
                            .advice("give --feature-groups N as well"));
                    }
                }
            }
        }
        Ok(self)
    }

    fn width(&self) -> usize {
        self.feature_groups
            .saturating_mul(self.feature_nodes)
            .saturating_add(self.group_enhancement_nodes)
            .saturating_add(self.enhancement_nodes)
    }
}

/// A network to be built: two layers, and the steps by which it grew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The feature nodes.
    pub features: Features,
    /// The enhancement nodes.
    pub enhancement: Enhancement,
    /// What was added later, step by step.
    pub growth: Vec<Growth>,
}

impl Network {
    /// A network of these layers.
    pub fn new(features: Features, enhancement: Enhancement) -> Self {
        Self { features, enhancement, growth: Vec::new() }
    }

    /// This network with one more step of growth.
    ///
    /// # Errors
    /// If the step adds nothing, or adds what such a network does not have.
    pub fn grown(mut self, growth: Growth) -> Result<Self> {
        let growth = growth.check(&self)?;
        self.growth.push(growth);
        self.check()?;
        Ok(self)
    }

    /// The largest width that a network may have: R has this number squared times 8 bytes.
    pub const MAX_WIDTH: usize = 65_536;

    /// An error if there is no memory for R and its factor.
    pub(crate) fn check_memory(&self, inputs: usize) -> Result<()> {
        let width = self.width(inputs);
        let numbers = width.saturating_mul(width).saturating_mul(2);
        if Vec::<f64>::new().try_reserve_exact(numbers).is_ok() {
            return Ok(());
        }
        Err(Error::setting("nodes", width)
            .expected(format!("nodes for which {:.1} GB can be had", numbers as f64 * 8e-9)))
    }

    /// The number of nodes L for `inputs` input columns.
    pub fn width(&self, inputs: usize) -> usize {
        let base = self.features.width(inputs).saturating_add(self.enhancement.nodes);
        self.growth.iter().fold(base, |width, step| width.saturating_add(step.width()))
    }

    pub(crate) fn check(&self) -> Result<()> {
        let positive = |name: &str, found: usize| match found {
            0 => Err(Error::setting(name, found).expected("at least 1")),
            _ => Ok(()),
        };
        let finite_positive = |name: &str, found: Option<f64>| match found {
            Some(value) if !(value > 0.0 && value.is_finite()) => {
                Err(Error::setting(name, value).expected("a positive number"))
            }
            _ => Ok(()),
        };
        match self.features {
            Features::Inputs | Features::RelevantInputs | Features::InputsAlone => {}
            Features::Nothing => positive("enhancement_nodes", self.enhancement.nodes)?,
            Features::Groups { groups, nodes, .. } => {
                positive("feature_groups", groups)?;
                positive("feature_nodes", nodes)?;
            }
            Features::Manifold { nodes, alpha, beta, .. } => {
                positive("feature_nodes", nodes)?;
                finite_positive("alpha", Some(alpha))?;
                finite_positive("beta", Some(beta))?;
            }
            Features::Convolution { filters, patch, pools, .. } => {
                positive("filters", filters)?;
                positive("patch", patch)?;
                positive("pools", pools)?;
            }
            Features::Fuzzy { systems, rules } => {
                positive("feature_groups", systems)?;
                positive("feature_nodes", rules)?;
            }
        }
        if let Some(step) = self.enhancement.time_step {
            positive("time_step", step)?;
            if self.features != Features::Inputs
                || self.enhancement.orthonormal
                || self.enhancement.shrink.is_some()
                || self.enhancement.gain.is_none()
            {
                return Err(Error::setting("time_step", step)
                    .expected("a network that reads its inputs directly, with a gain")
                    .advice("use --recipe recurrent"));
            }
        }
        for step in &self.growth {
            if step.check(self)? != *step {
                return Err(Error::setting("growth", "feature groups without a number of nodes")
                    .expected("at least one node in a group"));
            }
        }
        finite_positive("gain", self.enhancement.gain)?;
        if let Some(relevance) = &self.enhancement.relevance {
            let sound = |factor: &f64| *factor >= 0.0 && factor.is_finite();
            let reads_inputs = matches!(self.features, Features::Inputs | Features::RelevantInputs)
                && self.enhancement.time_step.is_none();
            if !relevance.iter().all(sound) || !reads_inputs {
                return Err(Error::setting("relevance", "factors that this network cannot use")
                    .expected("numbers from 0 on, in a network that reads its inputs directly"));
            }
        }
        if self.features == Features::RelevantInputs && self.enhancement.relevance.is_none() {
            return Err(Error::setting("features", "relevant inputs without a relevance")
                .expected("one factor for each input"));
        }
        if let Some(fan_in) = self.enhancement.fan_in {
            positive("fan_in", fan_in)?;
            if self.enhancement.gain.is_none() || self.enhancement.time_step.is_some() {
                return Err(Error::setting("fan_in", fan_in).expected("a network with a gain"));
            }
        }
        finite_positive("shrink", self.enhancement.shrink)?;
        if self.width(0) > Self::MAX_WIDTH {
            return Err(Error::setting("nodes", self.width(0))
                .expected(format!("at most {} nodes in all", Self::MAX_WIDTH)));
        }
        Ok(())
    }
}
