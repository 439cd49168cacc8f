//! Table V: MNIST, new nodes.

use super::Experiment;
use super::mnist::{self, Steps};
use crate::increments::Increment;

pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "table5",
    title: "Table V: MNIST, new nodes",
    runs: |plan| mnist::runs(plan, &STEPS),
    report: |plan, done| mnist::report(plan, &STEPS, done),
};

static STEPS: Steps = Steps {
    increment: Increment::Nodes,
    file: "table5",
    names: ["60 + 3000 nodes", "70 + 3500", "80 + 4000", "90 + 4500", "100 + 5000"],
    paper: [(97.96, 0.09), (98.06, 0.14), (98.16, 0.09), (98.25, 0.09), (98.29, 0.09)],
    seconds: [108.90, 15.02, 16.98, 22.36, 25.03],
    reference: [(98.04, 0.07), (98.18, 0.08), (98.27, 0.04), (98.33, 0.05), (98.41, 0.09)],
    ridges: &[1e-5],
    convolution: None,
    note: "",
};
