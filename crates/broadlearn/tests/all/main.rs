//! The integration tests: one binary, so that the library is linked once.
//!
//! No expected number in here came out of this library. What a test compares with is an identity
//! (the same thing by another route), an independent implementation (NumPy, SciPy, the small solvers
//! in `support`), or a published figure.

#![allow(clippy::unwrap_used)]

// Problems, small exact solvers, and what is needed to call Python.
mod support;

// What must hold whatever the data are: fixed point, weights as copies, row order, units, threads.
mod identities;
// Predictions in single precision.
mod precision;
// The two ways to the fixed point.
mod solvers;
// Tables that pass by in blocks.
mod larger_than_memory;
// The same for every robust loss.
mod losses;
// Learning, forgetting, growing, merging: each equals a fit from the beginning.
mod increments;
// And besides: new classes, shards, refinement, quarantine, refusals.
mod changes;
// Several networks as one model.
mod ensembles;
// The search over a grid of settings.
mod tuning;
// Wrong input gives an error of the right category, never a panic.
mod errors;
// Model files: damage of any kind is detected, saving is atomic.
mod model_file;
// A model file read by NumPy alone predicts what the library predicts.
mod numpy;
// Ridge and sparse autoencoder against SciPy and NumPy.
mod scipy_ridge;
// Other broad learners of the literature against NumPy.
mod comparators;
// The paper's data sets against independent reference figures.
mod paper_sets;
// Series.
mod forecast;
// What is chosen on the training rows, and what is said about predictions.
mod automatic;
