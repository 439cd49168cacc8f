//! Stage 4: the state U in blocks, and the weighted normal equations accumulated from them.

pub(crate) mod gram;
pub mod normal;
pub(crate) mod packed;
pub(crate) mod rows;

pub use normal::NormalEquations;
pub(crate) use packed::{PANEL, Packed, Panel, Precision};
pub(crate) use rows::StateRows;
