//! Sample weights 1 / max(1, |e| / (b s)) in units of the spread s of the residuals themselves: WBLS.
//!
//! Unlike the loss `huber`, whose sigma is fixed, the unit b s is estimated anew from the residuals of
//! every step, by their median.

use super::fixed_point::{downweighted, relative_change, sample_weights};
use super::system::{Solution, System};
use super::{Loss, RobustLoss, SolveReport};
use crate::error::Result;
use crate::preprocess::statistics;
use crate::progress::{Observer, report};
use faer::Mat;

/// The median of |e| for a normal e of spread 1.
const NORMAL_MEDIAN: f64 = 0.6745;

/// W after so many reweighted steps (one is the published method) or when a step changes nothing, its
/// sample weights with the user's, and a report.
pub(crate) fn solve(
    system: &System<'_>,
    tuning: f64,
    steps: usize,
    tolerance: f64,
    ridge: f64,
    user: Option<&[f64]>,
    observer: &mut Observer<'_>,
) -> Result<(Solution, Option<Vec<f64>>, SolveReport)> {
    let mut solution = system.solve(user, ridge)?;
    let mut outputs = system.outputs(solution.w.as_ref())?;
    let mut weights = user.map(<[f64]>::to_vec);
    // Rows that all fit exactly keep their weights, as beside an infinite unit.
    let mut loss = RobustLoss::Huber.at(1.0);
    let (mut iterations, mut last_change, mut converged) = (0, 0.0, false);
    while iterations < steps && !converged {
        report(observer, "Huber weights", iterations as u64, Some(steps as u64))?;
        let Some(sigma) = unit(system, &outputs, user).map(|spread| tuning * spread) else {
            converged = true;
            break;
        };
        loss = Loss::Robust { kind: RobustLoss::Huber, sigma };
        let next = sample_weights(system, outputs.as_ref(), RobustLoss::Huber, sigma, user)?;
        solution = system.solve(Some(&next), ridge)?;
        let changed = system.outputs(solution.w.as_ref())?;
        last_change = relative_change(outputs.as_ref(), changed.as_ref());
        (outputs, weights) = (changed, Some(next));
        iterations += 1;
        converged = last_change <= tolerance;
    }
    let report = SolveReport {
        loss,
        iterations,
        converged: converged || steps == 1,
        last_change,
        objective: Vec::new(),
        downweighted: weights.as_ref().map_or(0.0, |weights| downweighted(weights, user)),
        ..SolveReport::plain(Some(ridge), system.form(ridge), None)
    };
    solution.outputs = Some(outputs);
    Ok((solution, weights, report))
}

/// The spread of the residuals; `None` if more than half of the rows fit exactly.
fn unit(system: &System<'_>, outputs: &Mat<f64>, user: Option<&[f64]>) -> Option<f64> {
    let mut norms = system.squared_residuals(outputs.as_ref());
    norms.iter_mut().for_each(|square| *square = square.sqrt());
    let median = statistics::median(&norms, user)?;
    (median > 0.0 && median.is_finite()).then_some(median / NORMAL_MEDIAN)
}
