//! Stage 6: what a model has learnt, and how it changes without the old rows.
//!
//! [`Knowledge`] holds R and P with their Cholesky factor and the [`Ledger`] of rows. Rows come in and
//! go out as rank-r updates or as sums with a new factor, whichever costs less; nodes border the
//! equations and the factor; disjoint sets of rows add. Every change equals a fit from the beginning
//! with the same sample weights.
//!
//! [`published`] holds the formulas of the paper instead, corrected, for comparison: no other part
//! of the library uses them.

pub mod knowledge;
pub mod ledger;
pub mod published;

pub use knowledge::{Blocks, Knowledge, Route};
pub use ledger::Ledger;
