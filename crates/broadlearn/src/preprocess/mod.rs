//! Stage 2: scalers, fitted on the training rows and then frozen.

pub(crate) mod gathered;
pub mod scaler;
pub(crate) mod statistics;

pub(crate) use scaler::ScaledRows;
pub use scaler::{Scaler, Scaling};
