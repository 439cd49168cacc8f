//! Stage 3: the map from a scaled input row x to a state row u = [z | h].
//!
//! [`draw`] is the only place of the crate that holds a random generator. [`network`] says what is
//! to be built, `build` builds it from training rows, [`map`] is the result: fixed weights that
//! later stages only apply.

pub mod activation;
pub mod network;
pub mod map;
pub(crate) mod build;
pub mod convolution;
pub mod draw;
pub mod fuzzy;
mod manifold;
pub(crate) mod readout;
mod real;
pub mod recurrent;
mod orthonormal;
mod slopes;
mod sparse_autoencoder;
pub(crate) mod vector_math;

pub use activation::Activation;
pub use map::{FeatureMap, NodeGroup, Source};
pub use network::{Enhancement, Features, Growth, Manifold, Network, Recipe};
