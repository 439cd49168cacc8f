//! Stage 8: how good predictions are, and which rows are suspicious.

pub mod audit;
pub mod metrics;
mod resolution;

pub use audit::{Audit, Auditor, Share};
pub use metrics::Metrics;
