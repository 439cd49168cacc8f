//! What a solver has to say about its work.

use super::{Loss, Start};
use crate::features::Recipe;
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
    /// Where the fixed point began; `None` for the squared loss.
    pub start: Option<Start>,
    /// The cross-validated score: less is better.
    pub score: f64,
}

/// One network that the automatic choice looked at, with the ridge that suits it best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkCandidate {
    /// How it was built.
    pub recipe: Recipe,
    /// The size of its random weights, where the recipe has one.
    pub gain: Option<f64>,
    /// Whether inputs that matter more have larger random weights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relevance: bool,
    /// The number of inputs that an enhancement node reads, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fan_in: Option<usize>,
    /// The number of enhancement nodes.
    pub enhancement_nodes: usize,
    /// The ridge gamma.
    pub ridge: f64,
    /// The leave-one-out score: less is better.
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
    /// Whether the sample weights come from models that have not seen the rows, rather than from the
    /// fixed point.
    pub cross_fitted: bool,
    /// Fixed-point steps at the final kernel size; 0 for a loss that needs none.
    pub iterations: usize,
    /// Whether the last step changed the outputs by less than the tolerance, or by what rounding errors
    /// change in any step.
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
    /// The ridges and kernels that the automatic choice compared on a small network; empty if nothing
    /// was left to choose.
    pub candidates: Vec<Candidate>,
    /// The networks that it compared then.
    pub networks: Vec<NetworkCandidate>,
}

impl SolveReport {
    /// The report of one solution with the squared loss.
    pub(crate) fn plain(ridge: Option<f64>, form: Form, rank: Option<usize>) -> Self {
        Self {
            loss: Loss::Squared,
            ridge,
            form,
            rank,
            cross_fitted: false,
            iterations: 0,
            converged: true,
            last_change: 0.0,
            objective: Vec::new(),
            downweighted: 0.0,
            spread: 0.0,
            candidates: Vec::new(),
            networks: Vec::new(),
        }
    }

    /// Takes over what was compared when the settings were chosen.
    pub(crate) fn remember_choices(&mut self, earlier: &Self) {
        self.candidates.clone_from(&earlier.candidates);
        self.networks.clone_from(&earlier.networks);
    }
}
