//! The automatic choice of the ridge gamma and the kernel size sigma, by cross-validation on the
//! training rows.
//!
//! Every fold starts from least absolute residuals and follows one path of shrinking kernels with
//! warm starts, for every ridge of a grid; ridges that are clearly worse on the rows judged so far
//! drop out before the next fold. Regression is scored by the mean of a bounded function
//! (bisquare) of the out-of-fold residuals in units of the smallest median residual along all paths,
//! so that outliers cost the same whatever model is right about the rest. Classification is scored by
//! the squared error of the 0/1 outputs, which varies less from fold to fold than the share of wrong
//! classes and chose better on the paper's sets with wrong labels. The choice does not change when a
//! target is multiplied by a constant.

use super::RobustLoss;
use super::fixed_point::sample_weights;
use super::report::Candidate;
use super::start::{Start, initial_outputs};
use super::system::System;
use crate::error::{Error, Result};
use crate::features::draw::{Purpose, Stream};
use crate::linalg::{product, select_rows};
use crate::preprocess::statistics;
use crate::progress::{Observer, report};
use crate::state::StateRows;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

/// What remains to be chosen: `None` means "choose".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) ridge: Option<f64>,
    /// The robust loss and its kernel size; `None` for the squared loss, which has no kernel.
    pub(crate) robust: Option<(RobustLoss, Option<f64>)>,
}

/// How out-of-fold outputs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// Residuals of a regression.
    Residuals,
    /// Squared errors of the 0/1 outputs of a classification.
    Classes,
}

/// The settings that were chosen, and all that were compared.
pub(crate) struct Chosen {
    pub(crate) ridge: f64,
    pub(crate) sigma: Option<f64>,
    pub(crate) candidates: Vec<Candidate>,
}

const RIDGES: [f64; 7] = [1.0 / (1_u64 << 30) as f64, 1e-6, 1e-4, 1e-2, 1.0, 10.0, 100.0];
const FOLDS: usize = 5;
/// The widest kernel in units of the spread of Y.
const WIDEST: f64 = 8.0;
/// Number of kernels and ratio of the widest to the narrowest: residuals of a regression may be any
/// part of the target's spread, those of 0/1 outputs lie between some tenths and sqrt(2).
const REGRESSION_PATH: (usize, f64) = (12, 256.0);
const CLASSES_PATH: (usize, f64) = (5, 16.0);
const STEPS_PER_KERNEL: usize = 2;
const L1_STEPS: usize = 6;
/// The tuning constant of the bisquare function: 95 % efficiency under normal errors.
const BISQUARE: f64 = 4.685;
/// The relative error of the outputs that a comparison of settings can bear.
const ENOUGH: f64 = 1e-4;
/// Floating-point operations that the choice may cost: more rows than that allows are sampled. The
/// best ridge is a ratio of variances, which does not depend on the number of rows.
const BUDGET: f64 = 40e9;

/// Chooses what is left open. Rows are grouped into folds by a random order from `seed`.
pub(crate) fn choose(
    state: &StateRows<'_>,
    y: MatRef<'_, f64>,
    user: Option<&[f64]>,
    choice: Choice,
    judge: Judge,
    seed: u64,
    observer: &mut Observer<'_>,
) -> Result<Chosen> {
    if let (Some(ridge), None | Some((_, Some(_)))) = (choice.ridge, choice.robust) {
        let sigma = choice.robust.and_then(|(_, sigma)| sigma);
        return Ok(Chosen { ridge, sigma, candidates: Vec::new() });
    }
    let ridges = choice.ridge.map_or_else(|| RIDGES.to_vec(), |ridge| vec![ridge]);
    let kernels: Option<Vec<f64>> = choice.robust.map(|(kind, sigma)| match sigma {
        Some(sigma) => vec![sigma],
        None => kernel_path(y, user, judge, kind),
    });

    let solves = match &kernels {
        None => 1,
        Some(kernels) => 1 + L1_STEPS + kernels.len() * STEPS_PER_KERNEL,
    } * FOLDS
        * ridges.len();
    let order = Stream::new(seed, Purpose::Folds, 0).permutation(y.nrows());
    let rows = &order[..affordable_rows(y.nrows(), state.width(), solves)];
    let folds = FOLDS.min(rows.len());
    if folds < 2 {
        let sigma = kernels.and_then(|kernels| kernels.first().copied());
        return Ok(Chosen { ridge: ridges[ridges.len() / 2], sigma, candidates: Vec::new() });
    }

    // Residuals of every row, out of its fold, for every setting.
    let mut judged: Vec<Vec<Vec<Judged>>> = vec![Vec::new(); ridges.len()];
    let mut racing: Vec<usize> = (0..ridges.len()).collect();
    for fold in 0..folds {
        report(observer, "choosing", fold as u64, Some(folds as u64))?;
        let data = Fold::new(state, y, user, rows, fold, folds);
        let system = System::new(&data.train, data.train_y.as_ref(), ENOUGH, Par::Seq);
        let paths: Vec<Vec<Vec<Judged>>> = racing
            .par_iter()
            .map(|&ridge| {
                let robust = choice.robust.map(|(kind, _)| kind).zip(kernels.as_deref());
                data.path(&system, ridges[ridge], robust)
            })
            .collect();
        for (&ridge, path) in racing.iter().zip(paths) {
            if fold == 0 {
                judged[ridge].resize(path.len(), Vec::new());
            }
            // Where the path broke off earlier than in another fold, the rest stays incomplete.
            for (all, part) in judged[ridge].iter_mut().zip(path) {
                all.extend(part);
            }
        }
        if fold + 1 < folds {
            drop_out(&mut racing, &judged, kernels.is_some(), judge);
        }
    }
    pick(&ridges, kernels.as_deref(), &judged, rows.len(), judge)
}

/// Leaves out ridges whose best kernel is worse than the best of all by more than chance explains: by
/// 2.5 standard errors of the mean difference over the rows judged so far.
fn drop_out(racing: &mut Vec<usize>, judged: &[Vec<Vec<Judged>>], robust: bool, judge: Judge) {
    let count = racing.iter().flat_map(|&r| &judged[r]).map(Vec::len).max().unwrap_or(0);
    let complete = |r: usize| judged[r].iter().filter(move |rows| rows.len() == count);
    let scale = scale(racing.iter().flat_map(|&r| complete(r)));
    let mean = |rows: &Vec<Judged>| score(rows, judge, robust, scale);
    let best_of = |r: usize| complete(r).min_by(|a, b| mean(a).total_cmp(&mean(b)));
    let Some(best) =
        racing.iter().filter_map(|&r| best_of(r)).min_by(|a, b| mean(a).total_cmp(&mean(b)))
    else {
        return;
    };
    racing.retain(|&ridge| {
        let Some(rows) = best_of(ridge) else { return false };
        let loss = |row: &Judged| loss(row, judge, robust, scale);
        let differences: Vec<f64> = rows.iter().zip(best).map(|(a, b)| loss(a) - loss(b)).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.weight).collect();
        let (mean, deviation) = statistics::mean_and_deviation(&differences, Some(&weights));
        mean <= 2.5 * deviation / weights.iter().sum::<f64>().sqrt()
    });
}

/// One out-of-fold row: its squared residual norm and its user weight.
#[derive(Clone, Copy, Debug)]
struct Judged {
    square: f64,
    weight: f64,
}

/// Kernels from one that sees every row down to one that sees hardly any. The absolute loss gets only
/// one: another kernel would be the same as another ridge.
fn kernel_path(
    y: MatRef<'_, f64>,
    user: Option<&[f64]>,
    judge: Judge,
    kind: RobustLoss,
) -> Vec<f64> {
    let columns: Vec<Vec<f64>> =
        y.col_iter().map(|column| column.iter().copied().collect()).collect();
    let variance: f64 = columns.iter().map(|values| spread(values, user, judge).powi(2)).sum();
    // A constant target leaves any kernel right.
    let widest = if variance > 0.0 { WIDEST * variance.sqrt() } else { 1.0 };
    if kind == RobustLoss::Absolute {
        return vec![widest / WIDEST];
    }
    let (count, span) = match judge {
        Judge::Residuals => REGRESSION_PATH,
        Judge::Classes => CLASSES_PATH,
    };
    let ratio = f64::powf(span, -1.0 / (count - 1) as f64);
    let narrowest = match judge {
        Judge::Residuals => {
            columns.into_iter().map(|values| twice_the_gap(values, user)).fold(0.0, f64::max)
        }
        Judge::Classes => 0.0,
    }
    .min(widest);
    (0..count).map(|k| widest * ratio.powi(k as i32)).filter(|&s| s >= narrowest).collect()
}

/// How far the values of an output spread: the interquartile range, in units of a normal standard
/// deviation, which a single wild target cannot move; the standard deviation for classes and where
/// that range is 0.
fn spread(values: &[f64], user: Option<&[f64]>, judge: Judge) -> f64 {
    let (_, deviation) = statistics::mean_and_deviation(values, user);
    match judge {
        Judge::Classes => deviation,
        Judge::Residuals => match statistics::interquartile_deviation(values, user) {
            0.0 => deviation,
            robust => robust,
        },
    }
}

/// A target with many equal values (counts, grades, rounded readings) has a mode in each of them, in
/// which a narrow kernel would be caught: the kernel must span the gaps. 0 for other targets.
fn twice_the_gap(mut values: Vec<f64>, user: Option<&[f64]>) -> f64 {
    let rows = user.map_or(values.len() as f64, |user| user.iter().sum());
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    if 2.0 * values.len() as f64 > rows {
        return 0.0;
    }
    let gaps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    2.0 * statistics::median(&gaps, None).unwrap_or(0.0)
}

/// The number of rows for which `solves` solves stay within the budget.
fn affordable_rows(rows: usize, nodes: usize, solves: usize) -> usize {
    let nodes = nodes as f64;
    let cost = |n: f64| {
        if n < nodes { n * n * n / 3.0 } else { n * nodes * nodes + nodes.powi(3) / 3.0 }
    };
    let mut n = rows as f64;
    while n > 100.0 && cost(n) * solves as f64 > BUDGET {
        n *= 0.9;
    }
    (n as usize).clamp(100.min(rows), rows)
}

/// Training and test rows of one fold.
struct Fold {
    train: StateRows<'static>,
    train_y: Mat<f64>,
    train_weights: Option<Vec<f64>>,
    test: Mat<f64>,
    test_y: Mat<f64>,
    test_weights: Vec<f64>,
}

impl Fold {
    fn new(
        state: &StateRows<'_>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        rows: &[usize],
        fold: usize,
        folds: usize,
    ) -> Self {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (place, &row) in rows.iter().enumerate() {
            if place % folds == fold { outside.push(row) } else { inside.push(row) }
        }
        let weights = |rows: &[usize]| {
            user.map(|user| rows.iter().map(|&row| user[row]).collect::<Vec<f64>>())
        };
        Self {
            train: StateRows::Whole(state.select(&inside)),
            train_y: select_rows(y, &inside),
            train_weights: weights(&inside),
            test: state.select(&outside),
            test_y: select_rows(y, &outside),
            test_weights: weights(&outside).unwrap_or_else(|| vec![1.0; outside.len()]),
        }
    }

    /// The judged test rows after every kernel of the path; shorter where the path broke off
    /// because all weights vanished or the equations could not be factored.
    fn path(
        &self,
        system: &System<'_>,
        ridge: f64,
        robust: Option<(RobustLoss, &[f64])>,
    ) -> Vec<Vec<Judged>> {
        let user = self.train_weights.as_deref();
        let mut judged = Vec::new();
        let Some((kind, kernels)) = robust else {
            if let Ok(solution) = system.solve(user, ridge) {
                judged.push(self.judge(solution.w.as_ref()));
            }
            return judged;
        };
        let Ok(mut outputs) = initial_outputs(system, Start::L1, user, ridge, L1_STEPS) else {
            return judged;
        };
        for &sigma in kernels {
            let mut step = || -> Result<Mat<f64>> {
                let mut w = Mat::zeros(0, 0);
                for _ in 0..STEPS_PER_KERNEL {
                    let weights = sample_weights(system, outputs.as_ref(), kind, sigma, user)?;
                    w = system.solve(Some(&weights), ridge)?.w;
                    outputs = system.outputs(w.as_ref())?;
                }
                Ok(w)
            };
            match step() {
                Ok(w) => judged.push(self.judge(w.as_ref())),
                Err(_) => break,
            }
        }
        judged
    }

    fn judge(&self, w: MatRef<'_, f64>) -> Vec<Judged> {
        let mut outputs = Mat::zeros(self.test.nrows(), w.ncols());
        product(outputs.as_mut(), Accum::Replace, self.test.as_ref(), w, Par::Seq);
        let residuals = &self.test_y - outputs;
        let squares = residuals.row_iter().map(|row| row.iter().map(|e| e * e).sum());
        squares.zip(&self.test_weights).map(|(square, &weight)| Judged { square, weight }).collect()
    }
}

/// The setting with the least score.
fn pick(
    ridges: &[f64],
    kernels: Option<&[f64]>,
    judged: &[Vec<Vec<Judged>>],
    rows: usize,
    judge: Judge,
) -> Result<Chosen> {
    // Only settings that every fold reached.
    let settings: Vec<(usize, usize, &Vec<Judged>)> = judged
        .iter()
        .enumerate()
        .flat_map(|(r, path)| path.iter().enumerate().map(move |(k, rows)| (r, k, rows)))
        .filter(|(_, _, judged)| judged.len() == rows)
        .collect();
    let scale = scale(settings.iter().map(|(_, _, judged)| *judged));
    let candidates: Vec<Candidate> = settings
        .iter()
        .map(|&(r, k, judged)| Candidate {
            ridge: ridges[r],
            sigma: kernels.map(|kernels| kernels[k]),
            score: score(judged, judge, kernels.is_some(), scale),
        })
        .collect();
    let candidates: Vec<Candidate> =
        candidates.into_iter().filter(|candidate| candidate.score.is_finite()).collect();
    // Ties go to the larger ridge and the wider kernel: the tamer model.
    let best = candidates
        .iter()
        .min_by(|a, b| {
            let tamer = |c: &Candidate| (c.ridge, c.sigma.unwrap_or(0.0));
            let by_score = a.score.total_cmp(&b.score);
            by_score.then(tamer(b).partial_cmp(&tamer(a)).unwrap_or(std::cmp::Ordering::Equal))
        })
        .copied()
        .ok_or_else(|| {
            Error::numeric("no ridge and kernel size of the automatic choice gave a model")
                .advice("give them: --ridge 0.01 --sigma 1, or use --loss squared")
        })?;
    Ok(Chosen { ridge: best.ridge, sigma: best.sigma, candidates })
}

/// The smallest median residual of all settings, in units of a normal standard deviation.
fn scale<'a>(settings: impl Iterator<Item = &'a Vec<Judged>>) -> f64 {
    let median = |judged: &Vec<Judged>| {
        let norms: Vec<f64> = judged.iter().map(|row| row.square.sqrt()).collect();
        let weights: Vec<f64> = judged.iter().map(|row| row.weight).collect();
        statistics::median(&norms, Some(&weights))
    };
    1.4826 * settings.filter_map(median).fold(f64::INFINITY, f64::min)
}

fn score(judged: &[Judged], judge: Judge, robust: bool, scale: f64) -> f64 {
    let total: f64 = judged.iter().map(|row| row.weight).sum();
    judged.iter().map(|row| row.weight * loss(row, judge, robust, scale)).sum::<f64>() / total
}

fn loss(row: &Judged, judge: Judge, robust: bool, scale: f64) -> f64 {
    match judge {
        // Bounded, because a single wild output must not decide.
        Judge::Classes => row.square.min(4.0),
        Judge::Residuals if robust && scale > 0.0 => {
            let r2 = row.square / (scale * scale * BISQUARE * BISQUARE);
            if r2 < 1.0 { 1.0 - (1.0 - r2).powi(3) } else { 1.0 }
        }
        Judge::Residuals => row.square,
    }
}
