//! Stage 6: what a model has learnt, and how it changes without the old rows.
//!
//! [`Knowledge`] holds R and P with their Cholesky factor and the [`Ledger`] of rows. Rows come in and
//! go out as rank-r updates or as sums with a new factor, whichever costs less; nodes border the
//! equations and the factor; disjoint sets of rows add. Every change equals a fit from the beginning
//! with the same sample weights.

pub mod knowledge;
pub mod ledger;

pub use knowledge::{Knowledge, Route};
pub use ledger::Ledger;
