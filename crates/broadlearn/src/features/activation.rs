//! The functions phi and xi that follow a linear map.

use super::vector_math;
use serde::{Deserialize, Serialize};

/// An activation function of a group of nodes.
///
/// ```
/// use broadlearn::features::Activation;
/// let mut values = [-1.0, 0.0, 2.0];
/// Activation::Relu.apply(&mut values);
/// assert_eq!(values, [0.0, 0.0, 2.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// tanh(x).
    Tanh,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
    /// max(x, 0).
    Relu,
    /// x itself.
    Identity,
}

impl Activation {
    /// All activations, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Tanh, Self::Sigmoid, Self::Relu, Self::Identity];

    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::Relu => "relu",
            Self::Identity => "identity",
        }
    }

    /// Applies the function to every value, in place.
    pub fn apply(self, values: &mut [f64]) {
        match self {
            Self::Tanh => vector_math::tanh(values),
            Self::Sigmoid => vector_math::sigmoid(values),
            Self::Relu => values.iter_mut().for_each(|value| *value = value.max(0.0)),
            Self::Identity => {}
        }
    }

    /// The slope of the function where its value is `value`.
    pub(super) fn slope(self, value: f64) -> f64 {
        match self {
            Self::Tanh => 1.0 - value * value,
            Self::Sigmoid => value * (1.0 - value),
            Self::Relu => f64::from(u8::from(value > 0.0)),
            Self::Identity => 1.0,
        }
    }
}
