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
    pub(super) yardstick: &'a Yardstick,
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

/// The share of rows that may have some part of the model to themselves.
const MOST_OWNERS: f64 = 0.01;

fn means(y: MatRef<'_, f64>) -> Vec<f64> {
    y.col_iter().map(|column| column.iter().sum::<f64>() / y.nrows() as f64).collect()
}

impl Judge<'_> {
    /// Adds rows: targets and outputs as the solver sees them. A row of which `freedom` is f has the
    /// residual (y - output) / f without itself. Where there is none, the row has some part of the model
    /// to itself, as the only row of its category does: it counts as if the mean of all had been
    /// predicted. `None` if that is so for many rows.
    pub(super) fn add(
        &self,
        sums: &mut Sums,
        y: MatRef<'_, f64>,
        outputs: MatRef<'_, f64>,
        user: Option<&[f64]>,
        freedom: impl Fn(usize) -> Option<f64>,
    ) -> Option<()> {
        let mut mean: Option<Vec<f64>> = None;
        let mut owners = 0;
        for row in 0..y.nrows() {
            let freedom = freedom(row);
            if freedom.is_none() {
                owners += 1;
                if owners as f64 > MOST_OWNERS * y.nrows() as f64 {
                    return None;
                }
                mean.get_or_insert_with(|| means(y));
            }
            let (mut cost, mut square, mut best) = (0.0, 0.0, (0, f64::NEG_INFINITY));
            let mut given = 0;
            for j in 0..y.ncols() {
                let residual = match (freedom, &mean) {
                    (None, Some(mean)) => y[(row, j)] - mean[j],
                    (freedom, _) => (y[(row, j)] - outputs[(row, j)]) / freedom.unwrap_or(1.0),
                };
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
            sums.cost += weight * self.yardstick.bounded(cost);
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

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn a_row_with_a_node_to_itself_counts_as_predicted_by_the_mean() {
        let judge = Judge {
            task: Task::Regression,
            yardstick: &Yardstick::SQUARES,
            to_yardstick: &[1.0],
            to_target: &[1.0],
        };
        let y = Mat::from_fn(200, 1, |i, _| i as f64);
        let add = |owners: usize| {
            let mut sums = Sums::default();
            let freedom = |row: usize| (row >= owners).then_some(0.5);
            judge.add(&mut sums, y.as_ref(), y.as_ref(), None, freedom)?;
            judge.judged(sums)
        };
        assert_eq!(add(0).map(|judged| judged.score), Some(0.0));
        let two = add(2).map(|judged| judged.score);
        assert_eq!(two, Some((99.5 * 99.5 + 98.5 * 98.5) / 200.0));
        assert!(add(3).is_none());
    }
}
