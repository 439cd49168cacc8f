//! Cross-validation: every row predicted by a model that has not seen it, for every setting.

use super::{ENOUGH, L1_STEPS, STEPS_PER_KERNEL};
use crate::error::Result;
use crate::linalg::{product, select_rows};
use crate::solve::RobustLoss;
use crate::solve::fixed_point::sample_weights;
use crate::solve::start::{Start, initial_outputs};
use crate::solve::system::System;
use crate::solve::trimmed::{TRIMMED_KERNEL, Trimmed, least_trimmed_squares};
use crate::state::StateRows;
use faer::{Accum, Mat, MatRef, Par};

/// Sample weights that differ by less than this part of the largest are the same.
const NO_CHANGE: f64 = 0.01;

/// Training and test rows of one fold.
pub(super) struct Fold {
    train: StateRows<'static>,
    train_y: Mat<f64>,
    train_weights: Option<Vec<f64>>,
    test: Mat<f64>,
    test_y: Mat<f64>,
    trimmed: Option<Trimmed>,
}

impl Fold {
    /// The fold of this number; with a trimmed start on the first `linear` columns of U, if any.
    pub(super) fn new(
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        (fold, folds): (usize, usize),
        linear: usize,
    ) -> Result<Self> {
        let (outside, inside): (Vec<usize>, Vec<usize>) =
            (0..y.nrows()).partition(|row| row % folds == fold);
        let train = select_rows(u, &inside);
        let train_y = select_rows(y, &inside);
        let train_weights: Option<Vec<f64>> =
            user.map(|user| inside.iter().map(|&row| user[row]).collect());
        let trimmed = match linear {
            0 => None,
            _ => {
                let u = train.subcols(0, linear);
                Some(least_trimmed_squares(u, train_y.as_ref(), train_weights.as_deref())?)
            }
        };
        Ok(Self {
            train: StateRows::Whole(train),
            train_y,
            train_weights,
            test: select_rows(u, &outside),
            test_y: select_rows(y, &outside),
            trimmed,
        })
    }

    pub(super) fn system(&self) -> System<'_> {
        System::new(&self.train, self.train_y.as_ref(), ENOUGH, Par::Seq)
    }

    /// The residuals of the test rows for a ridge solution; of several outputs, their norms.
    pub(super) fn ridge(&self, system: &System<'_>, ridge: f64) -> Option<Vec<f64>> {
        let solution = system.solve(self.train_weights.as_deref(), ridge).ok()?;
        Some(self.judge(solution.w.as_ref()))
    }

    /// The residuals of the test rows after every kernel of the path; `None` where the
    /// path did not lead, because a start begins later, all weights vanished or the equations
    /// could not be factored. Where the sample weights hardly change there is nothing to solve again: so it is
    /// with all kernels that are much wider than the residuals.
    pub(super) fn path(
        &self,
        system: &System<'_>,
        ridge: f64,
        start: Start,
        kind: RobustLoss,
        kernels: &[f64],
    ) -> Vec<Option<Vec<f64>>> {
        let mut judged = vec![None; kernels.len()];
        let user = self.train_weights.as_deref();
        let Some((begun, widest)) = self.begin(system, ridge, start) else { return judged };
        // Residuals of an exact rule are smaller than any kernel.
        let widest = kernels.last().map_or(widest, |narrowest| widest.max(*narrowest));
        let mut outputs = begun.clone();
        let mut solved_with: Vec<f64> = Vec::new();
        let mut latest: Option<Vec<f64>> = None;
        let mut was_lost = false;
        for (judged, &sigma) in judged.iter_mut().zip(kernels) {
            if sigma > widest {
                continue;
            }
            let follow = |outputs: &mut Mat<f64>, solved_with: &mut Vec<f64>| {
                let mut solved = None;
                for _ in 0..STEPS_PER_KERNEL {
                    let weights = sample_weights(system, outputs.as_ref(), kind, sigma, user)?;
                    if as_before(&weights, solved_with) {
                        break;
                    }
                    let w = system.solve(Some(&weights), ridge)?.w;
                    *outputs = system.outputs(w.as_ref())?;
                    (solved, *solved_with) = (Some(w), weights);
                }
                Result::Ok(solved)
            };
            let mut solved = follow(&mut outputs, &mut solved_with);
            if solved.is_err() && !was_lost {
                // A wild row may have pulled the model so far from all others that the next kernel sees none of them: the start
                // is not so far off.
                was_lost = true;
                (outputs, solved_with) = (begun.clone(), Vec::new());
                solved = follow(&mut outputs, &mut solved_with);
            }
            let Ok(solved) = solved else { break };
            latest = solved.map(|w| self.judge(w.as_ref())).or(latest);
            judged.clone_from(&latest);
        }
        judged
    }

    /// The outputs of the start, and the widest kernel with which it goes on.
    fn begin(&self, system: &System<'_>, ridge: f64, start: Start) -> Option<(Mat<f64>, f64)> {
        if start == Start::Trimmed {
            let trimmed = self.trimmed.as_ref()?;
            let StateRows::Whole(u) = &self.train else { return None };
            let mut outputs = Mat::zeros(u.nrows(), self.train_y.ncols());
            let linear = u.subcols(0, trimmed.w.nrows());
            product(outputs.as_mut(), Accum::Replace, linear, trimmed.w.as_ref(), Par::Seq);
            return Some((outputs, TRIMMED_KERNEL * trimmed.spread));
        }
        let user = self.train_weights.as_deref();
        let outputs = initial_outputs(system, start, user, ridge, L1_STEPS).ok()?;
        Some((outputs, f64::INFINITY))
    }

    fn judge(&self, w: MatRef<'_, f64>) -> Vec<f64> {
        let mut residuals = self.test_y.clone();
        let mut outputs = Mat::zeros(self.test.nrows(), w.ncols());
        product(outputs.as_mut(), Accum::Replace, self.test.as_ref(), w, Par::Seq);
        residuals -= outputs;
        match residuals.ncols() {
            1 => residuals.col(0).iter().copied().collect(),
            _ => residuals.row_iter().map(|row| row.norm_l2()).collect(),
        }
    }
}

/// Whether the weights are those of before, but for a small part of the largest.
fn as_before(weights: &[f64], before: &[f64]) -> bool {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let same = |(new, old): (&f64, &f64)| (new - old).abs() <= NO_CHANGE * largest;
    weights.len() == before.len() && weights.iter().zip(before).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    #[test]
    fn kernels_much_wider_than_the_residuals_are_all_the_squared_loss() {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let u = Mat::from_fn(100, 5, |_, _| stream.normal());
        let y = Mat::from_fn(100, 1, |i, _| u[(i, 0)] - u[(i, 3)] + 0.1 * stream.normal());
        let fold = Fold::new(u.as_ref(), y.as_ref(), None, (0, 5), 0).expect("a fold");
        let system = fold.system();
        let path = |kernels: &[f64]| {
            fold.path(&system, 0.1, Start::Ridge, RobustLoss::Correntropy, kernels)
        };
        let all = path(&[1e6, 1e5, 1e4, 0.2]);
        let ridge = fold.ridge(&system, 0.1).expect("a solution");
        for wide in &all[..3] {
            let wide = wide.as_ref().expect("residuals");
            assert!(wide.iter().zip(&ridge).all(|(a, b)| (a - b).abs() < 1e-9));
        }
        // They have not moved where the narrow one begins: at the ridge solution.
        let alone = path(&[0.2]).pop().flatten().expect("residuals");
        let narrow = all[3].as_ref().expect("residuals");
        assert!(narrow.iter().zip(&alone).all(|(a, b)| (a - b).abs() < 1e-9));
        assert!(narrow.iter().zip(&ridge).any(|(a, b)| (a - b).abs() > 1e-4));
    }
}
