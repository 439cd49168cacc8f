//! Table IV: MNIST, new rows.

use super::Experiment;
use super::mnist::{self, Steps};
use crate::increments::Increment;

pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "table4",
    title: "Table IV: MNIST, new rows",
    runs: |plan| mnist::runs(plan, &STEPS),
    report: |plan, done| mnist::report(plan, &STEPS, done),
};

static STEPS: Steps = Steps {
    increment: Increment::Rows,
    file: "table4",
    names: ["20 000 rows", "30 000", "40 000", "50 000", "60 000"],
    paper: [(97.92, 0.05), (98.12, 0.04), (98.19, 0.05), (98.26, 0.04), (98.30, 0.05)],
    seconds: [104.02, 50.58, 50.94, 51.17, 51.54],
    reference: [(97.85, 0.11), (98.14, 0.14), (98.28, 0.14), (98.29, 0.12), (98.33, 0.11)],
    ridges: &[1e-5],
    // Chosen beforehand: the nodes have deviation 1.
    convolution: Some(1.0),
    note: "",
};
