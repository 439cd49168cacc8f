//! What a solver has to say about its work.

use super::Loss;
use serde::{Deserialize, Serialize};

/// Which of the two equivalent systems was solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// L x L normal equations.
    Primal,
    /// N x N, for fewer rows than nodes.
    Dual,
    /// Orthogonal decomposition and singular values.
    Orthogonal,
}

/// One setting that the automatic choice looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The ridge gamma.
    pub ridge: f64,
    /// The kernel size; `None` for the squared loss.
    pub sigma: Option<f64>,
    /// The cross-validated score: less is better.
    pub score: f64,
}

/// How W was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolveReport {
    /// The loss, with the kernel size that was used.
    pub loss: Loss,
    /// The ridge that was used; `None` for the pseudo-inverse.
    pub ridge: Option<f64>,
    /// The system that was solved.
    pub form: Form,
    /// The rank of U, where it was determined.
    pub rank: Option<usize>,
    /// Fixed-point steps at the final kernel size; 0 for a loss that needs none.
    pub iterations: usize,
    /// Whether the last step changed the outputs by less than the tolerance.
    pub converged: bool,
    /// The relative change of the outputs in the last step.
    pub last_change: f64,
    /// The normalised objective after every step at the final kernel size.
    pub objective: Vec<f64>,
    /// The share of rows (by user weight) whose sample weight is below 0.5.
    pub downweighted: f64,
    /// The spread of the residual norms |e| of the training rows, in units of the scaled target:
    /// 1.4826 times their median, divided by 1 - p / N for the p degrees of freedom that W took.
    pub spread: f64,
    /// What the automatic choice compared; empty if nothing was left to choose.
    pub candidates: Vec<Candidate>,
}
