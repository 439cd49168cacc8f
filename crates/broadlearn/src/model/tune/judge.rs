//! How good a setting is: sums over rows that were predicted without themselves.

use crate::data::Task;
use crate::solve::automatic::score::Yardstick;
use faer::MatRef;
use serde::{Deserialize, Serialize};

/// What was found out about a setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The mean cost of a row, by which settings are compared: the less, the better. The squared error, in
    /// spreads of the target; under a robust loss cut off where wrong rows begin.
    pub score: f64,
    /// Of all rows, wrong ones included: the root mean squared error in units of the target, or the
    /// share of classes that are right.
    pub metric: f64,
}

/// In which units residuals count, and how much.
pub(super) struct Judge<'a> {
    pub(super) task: Task,
    pub(super) yardstick: Yardstick,
    /// By output: a residual of the scaled target times this is one in the units of the yardstick, ...
    pub(super) to_yardstick: &'a [f64],
    /// ... and times this in those of the target.
    pub(super) to_target: &'a [f64],
}

/// The sums so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    cost: f64,
    squares: f64,
    hits: f64,
    weight: f64,
}

impl Judge<'_> {
    /// Adds rows: targets and outputs as the solver sees them. A row of which `freedom` is f has the
    /// residual (y - output) / f without itself; where there is none, nothing can be said.
    pub(super) fn add(
        &self,
        sums: &mut Sums,
        y: MatRef<'_, f64>,
        outputs: MatRef<'_, f64>,
        user: Option<&[f64]>,
        freedom: impl Fn(usize) -> Option<f64>,
    ) -> Option<()> {
        for row in 0..y.nrows() {
            let freedom = freedom(row)?;
            let (mut cost, mut square, mut best) = (0.0, 0.0, (0, f64::NEG_INFINITY));
            let mut given = 0;
            for j in 0..y.ncols() {
                let residual = (y[(row, j)] - outputs[(row, j)]) / freedom;
                cost += (residual * self.to_yardstick[j]).powi(2);
                square += (residual * self.to_target[j]).powi(2);
                let output = y[(row, j)] - residual;
                if output > best.1 {
                    best = (j, output);
                }
                if y[(row, j)] > y[(row, given)] {
                    given = j;
                }
            }
            let weight = user.map_or(1.0, |user| user[row]);
            sums.cost += weight * self.yardstick.cost(cost);
            sums.squares += weight * square / y.ncols() as f64;
            sums.hits += if best.0 == given { weight } else { 0.0 };
            sums.weight += weight;
        }
        Some(())
    }

    pub(super) fn judged(&self, sums: Sums) -> Option<Judged> {
        let metric = match self.task {
            Task::Regression => (sums.squares / sums.weight).sqrt(),
            Task::Classification => sums.hits / sums.weight,
        };
        let judged = Judged { score: sums.cost / sums.weight, metric };
        (judged.score.is_finite() && judged.metric.is_finite()).then_some(judged)
    }
}
