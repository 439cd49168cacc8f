//! What a network consists of, and the named recipes.

use super::Activation;
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
}

impl Recipe {
    /// All recipes, the default first.
    pub const ALL: [Self; 4] = [Self::Rich, Self::Classic, Self::Unscaled, Self::Plain];

    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rich => "rich",
            Self::Classic => "classic",
            Self::Unscaled => "unscaled",
            Self::Plain => "plain",
        }
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
            orthonormal: false,
            shrink: None,
        };
        match self {
            Self::Rich => Network {
                features: Features::Inputs,
                enhancement: Enhancement { gain: Some(0.7), ..enhancement },
            },
            Self::Classic => Network {
                features: groups(true),
                enhancement: Enhancement { orthonormal: true, shrink: Some(0.8), ..enhancement },
            },
            Self::Unscaled => Network { features: groups(true), enhancement },
            Self::Plain => Network { features: groups(false), enhancement },
        }
    }
}

/// The first layer: how the feature nodes Z come from the inputs X.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Features {
    /// Z = X, and a constant node: the inputs reach the output directly.
    Inputs,
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
}

/// The second layer: H = xi(Z Wh + bh).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enhancement {
    /// The number of nodes, N_e in the paper; may be 0.
    pub nodes: usize,
    /// The function xi.
    pub activation: Activation,
    /// Normal weights of standard deviation gain / sqrt(inputs) and biases uniform in
    /// [-gain, gain]; without a gain, weights uniform in [-1, 1] and biases in [-0.1, 0.1].
    pub gain: Option<f64>,
    /// Whether the weights are orthonormalised.
    pub orthonormal: bool,
    /// If given, weights are multiplied so that the largest argument of xi on the training rows
    /// is this value.
    pub shrink: Option<f64>,
}

/// A network to be built: two layers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The feature nodes.
    pub features: Features,
    /// The enhancement nodes.
    pub enhancement: Enhancement,
}

impl Network {
    /// This network with the number of enhancement nodes that suits this many rows: a twentieth of
    /// them, but at least 200 and at most 1000.
    pub fn sized_for(mut self, rows: f64) -> Self {
        self.enhancement.nodes = (rows / 20.0).clamp(200.0, 1000.0) as usize;
        self
    }

    /// The largest width that a network may have: R has this number squared times 8 bytes.
    pub const MAX_WIDTH: usize = 65_536;

    /// The number of nodes L for `inputs` input columns.
    pub fn width(&self, inputs: usize) -> usize {
        let features = match self.features {
            Features::Inputs => inputs.saturating_add(1),
            Features::Groups { groups, nodes, .. } => groups.saturating_mul(nodes),
        };
        features.saturating_add(self.enhancement.nodes)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let positive = |name: &str, found: usize| match found {
            0 => Err(Error::setting(name, found).expected("at least 1")),
            _ => Ok(()),
        };
        if let Features::Groups { groups, nodes, .. } = self.features {
            positive("feature_groups", groups)?;
            positive("feature_nodes", nodes)?;
        }
        let finite_positive = |name: &str, found: Option<f64>| match found {
            Some(value) if !(value > 0.0 && value.is_finite()) => {
                Err(Error::setting(name, value).expected("a positive number"))
            }
            _ => Ok(()),
        };
        finite_positive("gain", self.enhancement.gain)?;
        finite_positive("shrink", self.enhancement.shrink)?;
        if self.width(0) > Self::MAX_WIDTH {
            return Err(Error::setting("nodes", self.width(0))
                .expected(format!("at most {} nodes in all", Self::MAX_WIDTH)));
        }
        Ok(())
    }
}
