//! Where the fixed point begins.

use super::system::System;
use crate::error::Result;
use crate::preprocess::statistics;
use faer::Mat;
use serde::{Deserialize, Serialize};

/// The start of the fixed-point iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// The best of L1 and, for a regression, trimmed.
    #[default]
    Best,
    /// Least absolute residuals, by ten reweighted steps: safe where many targets are far off.
    L1,
    /// Least trimmed squares of a linear model: safe where many targets are off to the same side.
    Trimmed,
    /// The ridge solution: what most papers mean.
    Ridge,
    /// W = 0: a small kernel then sees only the rows whose targets are near 0.
    Zero,
}

impl Start {
    /// All starts, the default first.
    pub const ALL: [Self; 5] = [Self::Best, Self::L1, Self::Trimmed, Self::Ridge, Self::Zero];

    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::L1 => "l1",
            Self::Trimmed => "trimmed",
            Self::Ridge => "ridge",
            Self::Zero => "zero",
        }
    }
}

/// The steps of the L1 start: more change little, because the iteration only has to rank residuals.
pub(crate) const L1_STEPS: usize = 10;

/// The outputs U W of a start other than the trimmed one.
pub(crate) fn initial_outputs(
    system: &System<'_>,
    start: Start,
    user: Option<&[f64]>,
    ridge: f64,
    l1_steps: usize,
) -> Result<Mat<f64>> {
    if start == Start::Zero {
        return Ok(Mat::zeros(system.rows(), system.y().ncols()));
    }
    let mut outputs = system.outputs(system.solve(user, ridge)?.w.as_ref())?;
    if start != Start::Ridge {
        for _ in 0..l1_steps {
            let squares = system.squared_residuals(outputs.as_ref());
            let Some(weights) = least_absolute_weights(squares, user) else { break };
            outputs = system.outputs(system.solve(Some(&weights), ridge)?.w.as_ref())?;
        }
    }
    Ok(outputs)
}

/// The sample weights 1 / |e| that make a least-squares solution one of least absolute residuals, in units
/// of the median residual so that the ridge keeps its meaning whatever the units of the target, and
/// bounded for rows that fit exactly. `None` if more than half of the rows do: that is an L1 solution.
pub(crate) fn least_absolute_weights(squares: Vec<f64>, user: Option<&[f64]>) -> Option<Vec<f64>> {
    let mut norms = squares;
    norms.iter_mut().for_each(|square| *square = square.sqrt());
    let scale = statistics::median(&norms, user).filter(|scale| *scale > 0.0)?;
    for (i, norm) in norms.iter_mut().enumerate() {
        *norm = user.map_or(1.0, |user| user[i]) * scale / norm.max(1e-3 * scale);
    }
    Some(norms)
}
