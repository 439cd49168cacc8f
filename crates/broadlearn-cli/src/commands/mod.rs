//! One file per command: its arguments, and what it does.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod fit;
pub(crate) mod inspect;
pub(crate) mod predict;
