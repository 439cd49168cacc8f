//! The command as a user meets it.
#![allow(clippy::unwrap_used, missing_docs)]

// What the tests share.
mod bench;
// fit, predict, evaluate, inspect, demo; tables, formats, settings, pipes.
mod basics;
// learn, forget, grow, merge, refine, diff; streams.
mod updates;
// Ensembles: fit --members.
mod ensembles;
// Networks and procedures of the literature.
mod recipes;
// Series.
mod forecast;
// The search over a grid.
mod tuning;
// Suspicious rows.
mod audit;
// Signals to spectra.
mod psd;
// The experiments of the paper.
mod paper;
