//! Stage 7: how good predictions are.

pub mod metrics;

pub use metrics::Metrics;
