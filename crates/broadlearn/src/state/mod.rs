//! Stage 4: the state U in blocks, and the weighted normal equations accumulated from them.

pub mod normal;
pub(crate) mod rows;

pub use normal::NormalEquations;
pub(crate) use rows::StateRows;
