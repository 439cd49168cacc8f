//! Settings that make sense: the rules, and what a model file keeps of them.

use super::settings::{Criterion, Open, Procedure, Regularisation};
use crate::data::Task;
use crate::error::{Error, Result};
use crate::features::{Network, Recipe};
use crate::preprocess::Scaling;
use crate::solve::{Solver, Start};
use serde::{Deserialize, Serialize};

/// Settings that have been checked: the only ones that can be fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedSettings {
    /// The recipe that the defaults came from.
    pub(crate) recipe: Recipe,
    /// The network.
    pub(crate) network: Network,
    /// What of the network is still to be chosen; nothing, once a model is fitted.
    #[serde(skip)]
    pub(crate) open: Open,
    /// Seconds that the fit may take on a usual processor.
    #[serde(skip)]
    pub(crate) budget: Option<f64>,
    /// How inputs are scaled.
    pub(crate) input_scaling: Scaling,
    /// How targets are scaled.
    pub(crate) target_scaling: Scaling,
    /// What is minimised.
    pub(crate) criterion: Criterion,
    /// How W is found for it.
    #[serde(default, skip_serializing_if = "Procedure::is_fixed_point")]
    pub(crate) procedure: Procedure,
    /// What keeps W small.
    pub(crate) regularisation: Regularisation,
    /// Where the fixed point begins.
    pub(crate) start: Start,
    /// Whether the kernel shrinks to its size step by step.
    pub(crate) anneal: bool,
    /// When the fixed point counts as reached.
    pub(crate) tolerance: f64,
    /// When it is given up.
    pub(crate) max_iterations: usize,
    /// Whether classes may be told by a discriminant; if not said, where the kernel is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) discriminant: Option<bool>,
    /// The seed of all random numbers.
    pub(crate) seed: u64,
    /// The number of networks whose outputs are averaged; a file of one has no such field.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) members: usize,
    /// Whether R and P are dropped.
    pub(crate) compact: bool,
    /// How the steps of the fixed point are found; no model depends on it.
    #[serde(skip)]
    pub(crate) solver: Solver,
    /// Bytes that a fit may use; no model depends on them.
    #[serde(skip)]
    pub(crate) memory: Option<u64>,
}

/// More members than this are taken for a mistake.
const MOST_MEMBERS: usize = 1000;

fn one() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference.
fn is_one(count: &usize) -> bool {
    *count == 1
}

impl CheckedSettings {
    /// The rules that hold for all checked settings, also for those that come from a file.
    pub(crate) fn verify(&self, task: Task) -> Result<()> {
        self.network.check()?;
        let positive = |name: &str, value: Option<f64>| match value {
            Some(value) if !(value > 0.0 && value.is_finite()) => {
                Err(Error::setting(name, value).expected("a positive number"))
            }
            _ => Ok(()),
        };
        let (ridge, pseudo_inverse) = match self.regularisation {
            Regularisation::Ridge { ridge } => (ridge, false),
            Regularisation::PseudoInverse => (None, true),
        };
        positive("ridge", ridge)?;
        positive("tolerance", Some(self.tolerance))?;
        positive("budget", self.budget)?;
        if let Criterion::Robust { kind, sigma } = self.criterion {
            kind.check()?;
            positive("sigma", sigma)?;
            if pseudo_inverse {
                return Err(Error::setting("ridge", "pseudo-inverse")
                    .expected("a ridge, for a robust loss")
                    .advice("use --loss squared with the pseudo-inverse"));
            }
        }
        match self.procedure {
            Procedure::FixedPoint => {}
            Procedure::LeastAbsolute { steps } | Procedure::HuberWeights { steps, .. }
                if steps == 0 =>
            {
                return Err(Error::setting("steps", 0).expected("at least 1"));
            }
            Procedure::HuberWeights { tuning, .. } => positive("tuning", Some(tuning))?,
            Procedure::LeastAbsolute { .. } => {}
        }
        if self.max_iterations == 0 {
            return Err(Error::setting("max_iterations", 0).expected("at least 1"));
        }
        if !(1..=MOST_MEMBERS).contains(&self.members) {
            return Err(Error::setting("members", self.members)
                .expected(format!("1 to {MOST_MEMBERS} networks")));
        }
        if task == Task::Classification && self.target_scaling != Scaling::None {
            return Err(Error::setting("target_scaling", self.target_scaling.name())
                .expected("none, for a classification"));
        }
        if let (Task::Regression, Some(value)) = (task, self.discriminant) {
            return Err(Error::setting("discriminant", value).expected("a classification"));
        }
        if self.target_scaling == Scaling::RowZScore {
            return Err(Error::setting("target_scaling", self.target_scaling.name())
                .expected("a scaling of columns, which can be undone"));
        }
        Ok(())
    }

    /// Whether classes may be told by a discriminant. Where the kernel is given, that would not be the method of the paper.
    pub(crate) fn may_have_discriminant(&self) -> bool {
        let kernel_is_chosen = matches!(self.criterion, Criterion::Robust { sigma: None, .. })
            && self.procedure.is_fixed_point();
        self.discriminant.unwrap_or(kernel_is_chosen)
    }

    /// Whether these are the settings of the same model: how a fit goes about it does not matter, and no file tells.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let Self { open, budget, solver, memory, .. } = self.clone();
        *self == Self { open, budget, solver, memory, ..other.clone() }
    }

    /// The recipe that the defaults came from.
    pub fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How inputs and targets are scaled.
    pub fn scaling(&self) -> (Scaling, Scaling) {
        (self.input_scaling, self.target_scaling)
    }

    /// What is minimised.
    pub fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// How W is found for a robust loss.
    pub fn procedure(&self) -> Procedure {
        self.procedure
    }

    /// What keeps W small.
    pub fn regularisation(&self) -> Regularisation {
        self.regularisation
    }

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of networks whose outputs are averaged.
    pub fn members(&self) -> usize {
        self.members
    }
}
