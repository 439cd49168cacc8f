//! Table VI: MNIST, new rows and new nodes.

use super::Experiment;
use super::mnist::{self, Steps};
use crate::comparators::RIDGE;
use crate::increments::Increment;

pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "table6",
    title: "Table VI: MNIST, new rows and new nodes",
    runs: |plan| mnist::runs(plan, &STEPS),
    report: |plan, done| mnist::report(plan, &STEPS, done),
};

static STEPS: Steps = Steps {
    increment: Increment::Both,
    file: "table6",
    names: [
        "20 000 rows, 1000 nodes",
        "30 000, 2000",
        "40 000, 3000",
        "50 000, 4000",
        "60 000, 5000",
    ],
    paper: [(97.02, 0.12), (97.66, 0.06), (98.04, 0.06), (98.08, 0.41), (98.39, 0.07)],
    seconds: [8.44, 31.45, 42.35, 57.94, 78.87],
    reference: [(96.92, 0.17), (97.67, 0.09), (98.13, 0.09), (98.30, 0.05), (98.45, 0.06)],
    ridges: &[1e-5, RIDGE],
    convolution: None,
    note: "The paper gives no ridge for this table: 1e-5 is that of its Table IV, 2^-30 that of its Tables II and III.",
};
