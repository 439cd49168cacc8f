//! All settings of one network: sizes, ridges, kernels.
//!
//! Sizes form a few groups. A group has the sample weights of its largest network, which are those of the
//! fixed point there: for every kernel, from wide to narrow, some steps go on from the outputs of the
//! kernel before. The factor of the last step then judges all sizes of the group (`solve/nested.rs`).
//! Where the nodes of a network are not the first ones of a larger one, a group has a U of its own.

use super::judge::{Judge, Judged, Sums};
use crate::error::Result;
use crate::linalg::{product, select_rows};
use crate::solve::factor::Factor;
use crate::solve::fixed_point::check_not_vanished;
use crate::solve::nested::{freedom, outlooks};
use crate::solve::{Loss, RobustLoss};
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatRef, Par};
use std::ops::Range;

/// Steps of the fixed point for a kernel, and the relative change of the outputs that ends them.
const STEPS: usize = 5;
const ENOUGH: f64 = 1e-3;

/// Rows that are learnt from, and rows that are judged: the same ones for leave-one-out.
struct Part {
    u: Mat<f64>,
    y: Mat<f64>,
    user: Option<Vec<f64>>,
    /// Sample weights to begin with, the user's multiplied in.
    first: Option<Vec<f64>>,
    /// Rows of another fold.
    test: Option<Test>,
}

/// Rows that are judged.
struct Test {
    u: Mat<f64>,
    y: Mat<f64>,
    user: Option<Vec<f64>>,
}

/// A group of sizes on its way through the kernels, on one part of the rows.
struct Walk {
    /// The numbers of its state and of its part of the rows.
    state: usize,
    part: usize,
    /// The places of its sizes among all sizes.
    sizes: Range<usize>,
    /// None before the first kernel.
    outputs: Option<Mat<f64>>,
    /// Whether a kernel was too narrow, or a factor could not be had.
    lost: bool,
}

/// One network under judgement.
pub(super) struct Block {
    /// By state, then by fold.
    parts: Vec<Vec<Part>>,
    groups: Vec<Group>,
    walks: Vec<Walk>,
    /// L for every number of enhancement nodes.
    widths: Vec<usize>,
    par: Par,
}

/// Sizes that share sample weights.
#[derive(Clone)]
pub(super) struct Group {
    /// Their places among all sizes.
    pub(super) sizes: Range<usize>,
    /// The number of the state that has them as its first columns.
    pub(super) state: usize,
}

/// The rows of one network, in random order.
pub(super) struct Rows<'a> {
    /// U, one or more.
    pub(super) states: Vec<Mat<f64>>,
    pub(super) y: MatRef<'a, f64>,
    pub(super) user: Option<&'a [f64]>,
    /// What the loss makes of residuals from models that have not seen the rows; not for the squared loss.
    pub(super) honest: Option<&'a [f64]>,
}

impl Block {
    /// A network with these widths; `folds` of 0 stands for leave-one-out.
    pub(super) fn new(
        rows: Rows<'_>,
        groups: Vec<Group>,
        widths: Vec<usize>,
        folds: usize,
        par: Par,
    ) -> Self {
        let Rows { states, y, user, honest } = rows;
        let first: Option<Vec<f64>> = honest.map(|honest| match user {
            None => honest.to_vec(),
            Some(user) => honest.iter().zip(user).map(|(a, b)| a * b).collect(),
        });
        let of = |values: Option<&[f64]>, rows: &[usize]| {
            values.map(|values| rows.iter().map(|&row| values[row]).collect())
        };
        let all = |u: Mat<f64>| Part {
            u,
            y: y.to_owned(),
            user: user.map(<[f64]>::to_vec),
            first: first.clone(),
            test: None,
        };
        let fold = |u: &Mat<f64>, fold: usize| {
            let (test, train): (Vec<usize>, Vec<usize>) =
                (0..y.nrows()).partition(|row| row % folds == fold);
            Part {
                u: select_rows(u.as_ref(), &train),
                y: select_rows(y, &train),
                user: of(user, &train),
                first: of(first.as_deref(), &train),
                test: Some(Test {
                    u: select_rows(u.as_ref(), &test),
                    y: select_rows(y, &test),
                    user: of(user, &test),
                }),
            }
        };
        let parts = states.into_iter().map(|u| match folds {
            0 => vec![all(u)],
            _ => (0..folds).map(|number| fold(&u, number)).collect(),
        });
        Self { parts: parts.collect(), groups, walks: Vec::new(), widths, par }
    }

    /// Goes back to the beginning, for another ridge.
    pub(super) fn restart(&mut self) {
        let folds = self.parts.first().map_or(0, Vec::len);
        let walk = |group: &Group, part: usize| Walk {
            state: group.state,
            part,
            sizes: group.sizes.clone(),
            outputs: None,
            lost: false,
        };
        let walks =
            (0..folds).flat_map(|part| self.groups.iter().map(move |group| walk(group, part)));
        self.walks = walks.collect();
    }

    /// Judges all sizes with this kernel, which is narrower than the one before; `None` for the squared
    /// loss.
    pub(super) fn step(
        &mut self,
        ridge: f64,
        kernel: Option<(RobustLoss, f64)>,
        judge: &Judge<'_>,
    ) -> Vec<Option<Judged>> {
        let mut sums: Vec<Option<Sums>> = vec![Some(Sums::default()); self.widths.len()];
        for walk in &mut self.walks {
            let part = &self.parts[walk.state][walk.part];
            let widths = &self.widths[walk.sizes.clone()];
            let sums = &mut sums[walk.sizes.clone()];
            let found = match walk.lost {
                true => None,
                false => walk.step(part, widths, ridge, kernel, self.par).ok(),
            };
            let Some(found) = found else {
                walk.lost = true;
                sums.fill(None);
                continue;
            };
            found.judge(part, widths, judge, sums, self.par);
        }
        sums.into_iter().map(|sums| sums.and_then(|sums| judge.judged(sums))).collect()
    }
}

/// A weighted ridge problem that was solved.
struct Step {
    equations: NormalEquations,
    factor: Factor,
    weights: Option<Vec<f64>>,
}

impl Walk {
    fn step(
        &mut self,
        part: &Part,
        widths: &[usize],
        ridge: f64,
        kernel: Option<(RobustLoss, f64)>,
        par: Par,
    ) -> Result<Step> {
        let width = widths.last().copied().unwrap_or(0);
        let u = part.u.subcols(0, width);
        let solve = |weights: Option<Vec<f64>>| -> Result<Step> {
            let mut equations = NormalEquations::empty(width, part.y.ncols());
            equations.add(u, part.y.as_ref(), weights.as_deref(), par);
            let factor = Factor::new(equations.r().to_owned(), ridge, par)?;
            Ok(Step { equations, factor, weights })
        };
        let outputs = |step: &Step| -> Mat<f64> {
            let w = step.factor.solve(step.equations.p(), par);
            let mut outputs = Mat::zeros(u.nrows(), w.ncols());
            product(outputs.as_mut(), Accum::Replace, u, w.as_ref(), par);
            outputs
        };
        let Some((kind, sigma)) = kernel else { return solve(part.user.clone()) };
        let mut known = match self.outputs.take() {
            Some(outputs) => outputs,
            None => outputs(&solve(part.first.clone().or_else(|| part.user.clone()))?),
        };
        let mut steps = 0;
        loop {
            let weights = part.weights(known.as_ref(), kind.at(sigma))?;
            let step = solve(Some(weights))?;
            let next = outputs(&step);
            let (change, size) = ((&next - &known).squared_norm_l2(), next.squared_norm_l2());
            known = next;
            steps += 1;
            if steps == STEPS || change <= ENOUGH * ENOUGH * size {
                self.outputs = Some(known);
                return Ok(step);
            }
        }
    }
}

impl Part {
    /// The user's weights times those of the loss.
    fn weights(&self, outputs: MatRef<'_, f64>, loss: Loss) -> Result<Vec<f64>> {
        let mut weights = vec![0.0; self.y.nrows()];
        for (y, f) in self.y.col_iter().zip(outputs.col_iter()) {
            for ((square, y), f) in weights.iter_mut().zip(y.iter()).zip(f.iter()) {
                *square += (y - f) * (y - f);
            }
        }
        loss.weigh(&mut weights);
        check_not_vanished(&weights, loss)?;
        if let Some(user) = &self.user {
            weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= user);
        }
        Ok(weights)
    }
}

impl Step {
    fn judge(
        &self,
        part: &Part,
        widths: &[usize],
        judge: &Judge<'_>,
        sums: &mut [Option<Sums>],
        par: Par,
    ) {
        let (u, y, user) = match &part.test {
            None => (&part.u, &part.y, part.user.as_deref()),
            Some(test) => (&test.u, &test.y, test.user.as_deref()),
        };
        let u = u.subcols(0, self.equations.p().nrows());
        let outlooks = outlooks(&self.equations, &self.factor, u, widths, par);
        for (sums, outlook) in sums.iter_mut().zip(outlooks) {
            let Some(sum) = sums else { continue };
            let left = |row: usize| match part.test {
                Some(_) => Some(1.0),
                None => {
                    let weight = self.weights.as_ref().map_or(1.0, |weights| weights[row]);
                    freedom(weight, outlook.lengths[row])
                }
            };
            if judge.add(sum, y.as_ref(), outlook.outputs.as_ref(), user, left).is_none() {
                *sums = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Task;
    use crate::features::draw::{Purpose, Stream};
    use crate::solve::automatic::score::Yardstick;

    fn problem() -> (Mat<f64>, Mat<f64>) {
        let mut stream = Stream::new(9, Purpose::Noise, 0);
        let u = Mat::from_fn(40, 12, |_, _| stream.normal());
        let y = Mat::from_fn(40, 1, |i, _| u[(i, 0)] - u[(i, 3)] + 0.3 * stream.normal());
        (u, y)
    }

    const JUDGE: Judge<'static> = Judge {
        task: Task::Regression,
        yardstick: &Yardstick::SQUARES,
        to_yardstick: &[1.0],
        to_target: &[2.0],
    };

    /// The mean squared residual of rows, each from a ridge solution of the others.
    fn by_hand(u: MatRef<'_, f64>, y: &Mat<f64>, weights: &[f64], ridge: f64, folds: usize) -> f64 {
        let mut sum = 0.0;
        for fold in 0..folds {
            let (test, train): (Vec<usize>, Vec<usize>) =
                (0..y.nrows()).partition(|row| row % folds == fold);
            let kept: Vec<f64> = train.iter().map(|&row| weights[row]).collect();
            let y_train = select_rows(y.as_ref(), &train);
            let equations =
                NormalEquations::of(select_rows(u, &train).as_ref(), y_train.as_ref(), Some(&kept));
            let factor = Factor::new(equations.r().to_owned(), ridge, Par::Seq).expect("definite");
            let w = factor.solve(equations.p(), Par::Seq);
            for row in test {
                sum += (y[(row, 0)] - (u.row(row) * &w)[0]).powi(2);
            }
        }
        sum / y.nrows() as f64
    }

    #[test]
    fn squared_scores_are_those_of_separate_fits() {
        let (u, y) = problem();
        let widths = vec![1, 5, 6, 12];
        let ones = vec![1.0; 40];
        for folds in [0, 4] {
            let rows = Rows { states: vec![u.clone()], y: y.as_ref(), user: None, honest: None };
            let groups = vec![Group { sizes: 0..4, state: 0 }];
            let mut block = Block::new(rows, groups, widths.clone(), folds, Par::Seq);
            block.restart();
            let found = block.step(0.2, None, &JUDGE);
            for (&width, judged) in widths.iter().zip(found) {
                let judged = judged.expect("judged");
                let folds = if folds == 0 { 40 } else { folds };
                let right = by_hand(u.subcols(0, width), &y, &ones, 0.2, folds);
                assert!((judged.score / right - 1.0).abs() < 1e-10, "{folds} folds, {width} nodes");
                assert!((judged.metric / (2.0 * right.sqrt()) - 1.0).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn robust_scores_are_leave_one_out_with_the_weights_of_the_fixed_point() {
        let (u, mut y) = problem();
        y[(7, 0)] += 30.0;
        let states = vec![u.subcols(0, 4).to_owned(), u.clone()];
        let rows = Rows { states, y: y.as_ref(), user: None, honest: None };
        let groups = vec![Group { sizes: 0..1, state: 0 }, Group { sizes: 1..2, state: 1 }];
        let mut block = Block::new(rows, groups, vec![4, 12], 0, Par::Seq);
        block.restart();
        let kind = RobustLoss::Correntropy;
        block.step(0.2, Some((kind, 8.0)), &JUDGE);
        let found = block.step(0.2, Some((kind, 2.0)), &JUDGE);
        for (walk, judged) in block.walks.iter().zip(found) {
            let outputs = walk.outputs.as_ref().expect("outputs");
            let weights = block.parts[walk.state][0]
                .weights(outputs.as_ref(), kind.at(2.0))
                .expect("weights");
            assert!(weights[7] < 1e-6, "the wrong row does not count");
            let width = block.widths[walk.sizes.start];
            let right = by_hand(u.subcols(0, width), &y, &weights, 0.2, 40);
            // One step beyond the one that was judged: the change is what ended the steps.
            assert!((judged.expect("judged").score / right - 1.0).abs() < 1e-2);
        }
    }
}
