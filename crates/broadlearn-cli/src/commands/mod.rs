//! One file per command: its arguments, and what it does.

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod evaluate;
pub(crate) mod fit;
pub(crate) mod forecast;
pub(crate) mod forget;
pub(crate) mod grow;
pub(crate) mod inspect;
pub(crate) mod learn;
pub(crate) mod merge;
pub(crate) mod paper;
pub(crate) mod predict;
pub(crate) mod psd;
pub(crate) mod refine;
mod stream;
pub(crate) mod tune;
mod update;
