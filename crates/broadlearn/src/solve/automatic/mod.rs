//! The automatic choice of the kernel size sigma, with a ridge to go with it, by cross-validation on
//! training rows.
//!
//! Every fold follows, for every ridge of a grid, paths of shrinking kernels with warm starts: one
//! from least absolute residuals, one from least trimmed squares. Paths that are clearly worse on the
//! rows judged so far drop out before the next fold. [`score`] says how rows are judged. The choice does
//! not change when a target is multiplied by a constant.
//!
//! What comes out besides is worth as much: a residual for every row from a model that has not seen
//! it. The sample weights of these residuals are honest, whereas those of a fit favour the rows
//! that it was bent to; the network and the final ridge are chosen with them (see `model/choose/`),
//! and the fixed point begins with them.

mod folds;
mod kernels;
pub(crate) mod score;

use super::report::Candidate;
use super::start::Start;
use super::{Loss, RobustLoss};
use crate::error::{Error, Result};
use crate::preprocess::statistics;
use crate::progress::{Observer, report};
use faer::MatRef;
use folds::Fold;
use rayon::prelude::*;
use score::{Residuals, Yardstick};

/// What is to be chosen from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) ridges: &'a [f64],
    /// The robust loss and its kernel size, which is chosen if not given; `None` for the squared loss, which has no kernel.
    pub(crate) robust: Option<(RobustLoss, Option<f64>)>,
    /// Where the fixed point begins.
    pub(crate) start: Start,
    /// The number of leading columns of U that are linear in the inputs.
    pub(crate) linear: usize,
}

/// How out-of-fold outputs are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// Residuals of a regression.
    Residuals,
    /// Squared errors of the 0/1 outputs of a classification.
    Classes,
}

/// The setting that was chosen, and all that were compared.
pub(crate) struct Chosen {
    pub(crate) ridge: f64,
    pub(crate) sigma: Option<f64>,
    /// How rows were judged.
    pub(crate) yardstick: Yardstick,
    /// The squared residual norm of every row, by a model of this setting that has not seen it.
    pub(crate) squares: Vec<f64>,
    /// The residuals, in the order in which rows were judged.
    residuals: Vec<f64>,
    pub(crate) candidates: Vec<Candidate>,
}

pub(crate) const RIDGES: [f64; 8] =
    [1.0 / (1_u64 << 30) as f64, 1e-6, 1e-4, 1e-2, 1.0, 10.0, 100.0, 1000.0];
const FOLDS: usize = 5;
const STEPS_PER_KERNEL: usize = 2;
const L1_STEPS: usize = 6;
/// The relative error of the outputs that a comparison of settings can bear.
const ENOUGH: f64 = 1e-4;
/// A path drops out if it is worse than the best by this many standard errors.
const CLEARLY_WORSE: f64 = 2.5;
/// Residuals that usually differ by less than this part of them are the same.
const NO_DIFFERENCE: f64 = 0.03;
/// A model that believes all rows must be better by this many standard errors to be believed.
const CLEARLY_BETTER: f64 = 2.0;
/// One that was out of the race must leave no more than this part of the squared error.
const FAR_BETTER: f64 = 0.5;
/// A setting predicts hard rows as well as the best does if it is not worse by more than this many.
const AS_ABLE: f64 = 1.0;
/// A wider kernel is preferred if it is not worse by more than this many standard errors: it believes
/// more rows.
const AS_GOOD: f64 = 0.5;
/// But not wider than this many times the largest residual: such a kernel believes every row as much as
/// a wider one does (0.97 of the full weight at least), and does not believe whatever is learnt later.
const WIDE_ENOUGH: f64 = 4.0;

/// A kernel that gives less than half of the full weight to more rows than this is not believed, ...
const MOST_DISBELIEVED: f64 = 0.65;
/// ... nor one that does so to more than this if its own residuals look normal: a kernel of one spread does to 24 % of such
/// rows, and needs half as many rows again for the same model.
const NORMAL_DISBELIEVED: f64 = 0.2;
/// If the residuals of the best setting look normal, a wider kernel is preferred if it is not worse by more than this many
/// standard errors.
const AS_GOOD_WHERE_NORMAL: f64 = 2.0;
/// Residuals look normal if their quantiles of these levels are at most so many times the median, a fifth more than normal ones
/// have; those with errors among them, or with heavy tails, have more.
const NORMAL: [(f64, f64); 3] = [(0.75, 2.05), (0.9, 2.9), (0.975, 4.0)];

/// One path through the kernels, and the squared residuals of the rows judged so far.
struct Path {
    ridge: f64,
    start: Start,
    /// How many of the kernels, from the widest on, it still goes through.
    reach: usize,
    /// Whether it is out of the race, and kept only because its widest kernel predicts all rows best.
    is_witness: bool,
    /// Squared residual norms by kernel; shorter than the others where the path did not lead in some
    /// fold.
    judged: Vec<Vec<f64>>,
    /// The residuals themselves; of several outputs, their norms.
    residuals: Vec<Vec<f64>>,
}

/// Chooses what is left open. Row i belongs to fold i mod 5, so rows should come in random order.
pub(crate) fn choose(
    u: MatRef<'_, f64>,
    y: MatRef<'_, f64>,
    user: Option<&[f64]>,
    choice: Choice<'_>,
    judge: Judge,
    observer: &mut Observer<'_>,
) -> Result<Option<Chosen>> {
    let folds = FOLDS.min(y.nrows());
    if folds < 2 {
        return Ok(None);
    }
    let kernels: Option<(RobustLoss, Vec<f64>)> = choice.robust.map(|(kind, sigma)| match sigma {
        Some(sigma) => (kind, vec![sigma]),
        None => (kind, kernels::kernel_path(y, user, judge, kind)),
    });
    let mut racing =
        paths(&choice, judge, kernels.as_ref().map_or(1, |(_, kernels)| kernels.len()));
    // The weights of the rows in the order in which they are judged.
    let mut weights: Vec<f64> = Vec::with_capacity(y.nrows());
    for fold in 0..folds {
        report(observer, "choosing the kernel", fold as u64, Some(folds as u64))?;
        let linear = if judge == Judge::Residuals { choice.linear } else { 0 };
        let data = Fold::new(u, y, user, (fold, folds), linear)?;
        let system = data.system();
        racing.par_iter_mut().for_each(|path| {
            let judged = match &kernels {
                None => vec![data.ridge(&system, path.ridge)],
                Some((kind, kernels)) => {
                    let kernels = &kernels[..path.reach];
                    data.path(&system, path.ridge, path.start, *kind, kernels)
                }
            };
            for (kernel, part) in judged.into_iter().enumerate() {
                let part = part.unwrap_or_default();
                path.judged[kernel].extend(part.iter().map(|e| e * e));
                path.residuals[kernel].extend(part);
            }
        });
        let rows = (fold..y.nrows()).step_by(folds);
        weights.extend(rows.map(|row| user.map_or(1.0, |user| user[row])));
        if fold + 1 < folds {
            drop_out(&mut racing, &weights, judge, kernels.is_some());
        }
    }
    let kernels = kernels.as_ref().map(|(kind, kernels)| (*kind, kernels.as_slice()));
    let mut chosen = pick(y, &racing, kernels, &weights, judge)?;
    // From the order of the folds back to that of the rows.
    let mut squares = vec![0.0; y.nrows()];
    let order = (0..folds).flat_map(|fold| (fold..y.nrows()).step_by(folds));
    order.zip(&chosen.squares).for_each(|(row, &square)| squares[row] = square);
    chosen.squares = squares;
    Ok(Some(chosen))
}

fn paths(choice: &Choice<'_>, judge: Judge, kernels: usize) -> Vec<Path> {
    let starts: &[Start] = match (choice.start, judge, choice.robust) {
        (Start::Best, Judge::Residuals, Some(_)) if choice.linear > 0 => {
            &[Start::L1, Start::Trimmed]
        }
        (Start::Best | Start::Trimmed, Judge::Classes, _) => &[Start::L1],
        (Start::Best, _, _) => &[Start::L1],
        (Start::L1, _, _) => &[Start::L1],
        (Start::Trimmed, _, _) => &[Start::Trimmed],
        (Start::Ridge, _, _) => &[Start::Ridge],
        (Start::Zero, _, _) => &[Start::Zero],
    };
    let path = |ridge, start| Path {
        ridge,
        start,
        reach: kernels,
        is_witness: false,
        judged: vec![Vec::new(); kernels],
        residuals: vec![Vec::new(); kernels],
    };
    starts
        .iter()
        .flat_map(|&start| choice.ridges.iter().map(move |&ridge| path(ridge, start)))
        .collect()
}

/// The settings that every fold has reached, with their path and kernel.
fn complete(paths: &[Path], rows: usize) -> Vec<(&Path, usize)> {
    paths
        .iter()
        .flat_map(|path| (0..path.judged.len()).map(move |kernel| (path, kernel)))
        .filter(|(path, kernel)| path.judged[*kernel].len() == rows)
        .collect()
}

fn yardstick(
    settings: &[(&Path, usize)],
    weights: &[f64],
    judge: Judge,
    robust: bool,
) -> Yardstick {
    let residuals: Vec<Residuals<'_>> = settings
        .iter()
        .map(|(path, kernel)| Residuals { squares: &path.judged[*kernel], weights })
        .collect();
    Yardstick::new(&residuals, judge, robust)
}

/// Takes out the paths whose best kernel is worse than the best of all by more than chance explains, and of the
/// others the narrow ends of which that is true.
fn drop_out(racing: &mut Vec<Path>, weights: &[f64], judge: Judge, robust: bool) {
    let settings = in_the_race(&complete(racing, weights.len()));
    let yardstick = yardstick(&settings, weights, judge, robust);
    let best_of = |path: &Path| -> Option<(f64, usize)> {
        let kernels = (0..path.judged.len()).filter(|&k| path.judged[k].len() == weights.len());
        kernels
            .map(|k| (yardstick.mean(&path.judged[k], weights), k))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    // Who is out of the race does not come back.
    let best: Vec<Option<(f64, usize)>> =
        racing.iter().map(|path| best_of(path).filter(|_| !path.is_witness)).collect();
    let leader = (0..racing.len())
        .filter_map(|index| best[index].map(|(mean, kernel)| (mean, index, kernel)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, leader, kernel)) = leader else { return };
    // The trimmed start may find no kernel at all in another fold: the best other path stays as well.
    let safe = (0..racing.len())
        .filter(|&index| racing[index].start != Start::Trimmed)
        .filter_map(|index| best[index].map(|(mean, _)| (mean, index)))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, index)| index);
    // Whether hard rows are wrong is asked of the model that predicts all rows best.
    let believing = (judge == Judge::Residuals && robust)
        .then(|| {
            (0..racing.len())
                .filter(|&index| racing[index].judged[0].len() == weights.len())
                .map(|index| (Yardstick::SQUARES.mean(&racing[index].judged[0], weights), index))
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .map(|(_, index)| index)
        })
        .flatten();
    let leading = racing[leader].judged[kernel].clone();
    let hopeless = |squares: &[f64]| {
        let (mean, error) = yardstick.excess(squares, &leading, weights);
        squares.len() < leading.len() || mean > CLEARLY_WORSE * error
    };
    let leads: Vec<bool> = racing
        .iter()
        .zip(&best)
        .map(|(path, best)| best.is_some_and(|(_, kernel)| !hopeless(&path.judged[kernel])))
        .collect();
    let stays: Vec<bool> = (0..racing.len())
        .map(|index| leads[index] || [safe, believing].contains(&Some(index)))
        .collect();
    // Of paths that lead to the same residuals one stays: not a trimmed one, for the same reason, and with the largest ridge.
    let rank = |index: usize| (racing[index].start != Start::Trimmed, racing[index].ridge);
    let superfluous = |index: usize| {
        let is_witness = believing == Some(index) && !leads[index];
        let kernel = if is_witness { Some(0) } else { best[index].map(|(_, kernel)| kernel) };
        kernel.is_some_and(|kernel| {
            let residuals = &racing[index].residuals[kernel];
            (0..racing.len()).any(|other| {
                let others = &racing[other].residuals[kernel];
                let races = leads[other] || safe == Some(other);
                races && rank(other) > rank(index) && alike(residuals, others, weights)
            })
        })
    };
    let needed: Vec<bool> =
        (0..racing.len()).map(|index| stays[index] && !superfluous(index)).collect();
    for (path, best) in racing.iter_mut().zip(&best) {
        let narrowest = best.map_or(0, |(_, kernel)| kernel);
        while path.reach > narrowest + 1 && hopeless(&path.judged[path.reach - 1]) {
            path.reach -= 1;
        }
    }
    for (index, path) in racing.iter_mut().enumerate() {
        path.is_witness = !leads[index] && safe != Some(index);
    }
    let mut needed = needed.into_iter();
    racing.retain(|_| needed.next().unwrap_or(true));
}

/// The settings without those of witnesses.
fn in_the_race<'p>(settings: &[(&'p Path, usize)]) -> Vec<(&'p Path, usize)> {
    settings.iter().filter(|(path, _)| !path.is_witness).copied().collect()
}

/// Whether most rows have the same residuals, but for a small part of them.
fn alike(residuals: &[f64], others: &[f64], weights: &[f64]) -> bool {
    let median = |values: Vec<f64>| statistics::median(&values, Some(weights)).unwrap_or(0.0);
    let differences = || residuals.iter().zip(others).map(|(a, b)| (a - b).abs()).collect();
    residuals.len() == others.len()
        && median(differences())
            <= NO_DIFFERENCE * median(residuals.iter().map(|e| e.abs()).collect())
}

/// The best setting, by squares cut off where rows seem wrong; where these turn out to be real, of the settings that predict
/// them. (By squares in full such rows would be believed together with those that are wrong: most tables with
/// a tail have both.)
fn pick(
    y: MatRef<'_, f64>,
    racing: &[Path],
    kernels: Option<(RobustLoss, &[f64])>,
    weights: &[f64],
    judge: Judge,
) -> Result<Chosen> {
    let all = complete(racing, weights.len());
    let settings = in_the_race(&all);
    let yardstick = yardstick(&settings, weights, judge, kernels.is_some());
    let chosen = pick_trusting(&yardstick, &settings, kernels, weights)?;
    if y.ncols() > 1 || judge != Judge::Residuals || kernels.is_none() {
        return Ok(chosen);
    }
    let settings = match tail_is_real(&settings, &chosen, weights) {
        true => settings,
        false if witness_knows_better(&all, &chosen, weights) => all,
        false => return Ok(chosen),
    };
    let able = able_settings(&settings, weights);
    let chosen = pick_trusting(&yardstick, &able, kernels, weights)?;
    let candidates = candidates(&chosen.yardstick, &settings, kernels, weights);
    Ok(Chosen { candidates, ..chosen })
}

/// The settings that predict hard rows about as well as any does, but for a shift of all predictions.
fn able_settings<'p>(settings: &[(&'p Path, usize)], weights: &[f64]) -> Vec<(&'p Path, usize)> {
    let squares = |(path, kernel): &(&Path, usize)| shifted(&path.residuals[*kernel], weights);
    let all: Vec<Vec<f64>> = settings.iter().map(squares).collect();
    let mean = |squares: &Vec<f64>| Yardstick::SQUARES.mean(squares, weights);
    let best = all.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
    let able = |squares: &Vec<f64>| {
        best.is_some_and(|best| {
            let (mean, error) = Yardstick::SQUARES.excess(squares, best, weights);
            mean <= AS_ABLE * error
        })
    };
    let able: Vec<bool> = all.iter().map(able).collect();
    settings.iter().zip(able).filter(|(_, able)| *able).map(|(setting, _)| *setting).collect()
}

/// Squared residuals of predictions that are all shifted by the mean residual.
fn shifted(residuals: &[f64], weights: &[f64]) -> Vec<f64> {
    let (shift, _) = statistics::mean_and_deviation(residuals, Some(weights));
    residuals.iter().map(|e| (e - shift).powi(2)).collect()
}

/// The best setting; the rows that it trusts then count in full, and settings are compared again.
fn pick_trusting(
    yardstick: &Yardstick,
    settings: &[(&Path, usize)],
    kernels: Option<(RobustLoss, &[f64])>,
    weights: &[f64],
) -> Result<Chosen> {
    let chosen = pick_by(yardstick, settings, kernels, weights)?;
    let (Some((kind, _)), Some(sigma)) = (kernels, chosen.sigma) else { return Ok(chosen) };
    let mut trust = chosen.squares.clone();
    kind.at(sigma).weigh(&mut trust);
    pick_by(&yardstick.trusting(&trust), settings, kernels, weights)
}

/// Whether the rows beyond the cut are hard rather than wrong: whether a model that believes all rows
/// predicts them. Nobody can predict wrong targets of rows that he has not seen, but for a shift of
/// all predictions towards them; so it must beat the chosen model even when that is shifted.
fn tail_is_real(settings: &[(&Path, usize)], chosen: &Chosen, weights: &[f64]) -> bool {
    let believing = settings
        .iter()
        .filter(|(_, kernel)| *kernel == 0)
        .map(|(path, _)| (Yardstick::SQUARES.mean(&path.judged[0], weights), &path.judged[0]))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, believing)) = believing else { return false };
    let shifted = shifted(&chosen.residuals, weights);
    let (mean, error) = Yardstick::SQUARES.excess(&shifted, believing, weights);
    mean > CLEARLY_BETTER * error
}

/// Whether a model that believes all rows, and was out of the race for it, leaves half of the squared error: then it was the
/// race that went astray. (Targets that are mostly 0: to predict 0 throughout meets so many of them that all others lose.)
fn witness_knows_better(settings: &[(&Path, usize)], chosen: &Chosen, weights: &[f64]) -> bool {
    let of_chosen = Yardstick::SQUARES.mean(&shifted(&chosen.residuals, weights), weights);
    let mut witnesses = settings.iter().filter(|(path, kernel)| path.is_witness && *kernel == 0);
    witnesses.any(|(path, _)| {
        Yardstick::SQUARES.mean(&path.judged[0], weights) <= FAR_BETTER * of_chosen
    })
}

/// Settings with their scores by this yardstick.
fn candidates(
    yardstick: &Yardstick,
    settings: &[(&Path, usize)],
    kernels: Option<(RobustLoss, &[f64])>,
    weights: &[f64],
) -> Vec<Candidate> {
    let candidate = |&(path, kernel): &(&Path, usize)| Candidate {
        ridge: path.ridge,
        sigma: kernels.map(|(_, kernels)| kernels[kernel]),
        start: kernels.map(|_| path.start),
        score: yardstick.mean(&path.judged[kernel], weights),
    };
    settings.iter().map(candidate).collect()
}

/// The setting with the widest kernel among those that are as good as the best by this yardstick.
fn pick_by(
    yardstick: &Yardstick,
    settings: &[(&Path, usize)],
    kernels: Option<(RobustLoss, &[f64])>,
    weights: &[f64],
) -> Result<Chosen> {
    let candidates = candidates(yardstick, settings, kernels, weights);
    let finite = (0..settings.len()).filter(|&index| candidates[index].score.is_finite());
    // Not more rows can be wrong than right: a kernel that hardly believes any has lost its way. Nor is one that distrusts
    // many rows of which none seems wrong better but by chance.
    let (sound, lost): (Vec<usize>, Vec<usize>) = finite.partition(|&index| {
        let (path, kernel) = settings[index];
        kernels.is_none_or(|(kind, kernels)| {
            let squares = &path.judged[kernel];
            let low = disbelieved(kind.at(kernels[kernel]), squares, weights);
            low <= NORMAL_DISBELIEVED
                || low <= MOST_DISBELIEVED
                    && !(yardstick.judges_residuals && look_normal(squares, weights))
        })
    });
    let sound = if sound.is_empty() { lost } else { sound };
    let nothing = || {
        Error::numeric("no ridge and kernel size of the automatic choice gave a model")
            .advice("give them: --ridge 0.01 --sigma 1, or use --loss squared")
    };
    let squares = |index: usize| &settings[index].0.judged[settings[index].1];
    let score = |index: &usize| candidates[*index].score;
    // Ties go to the larger ridge.
    let better = |a: &usize, b: &usize| {
        let by_ridge = candidates[*b].ridge.total_cmp(&candidates[*a].ridge);
        score(a).total_cmp(&score(b)).then(by_ridge)
    };
    let least = *sound.iter().min_by(|a, b| better(a, b)).ok_or_else(nothing)?;
    let normal = yardstick.judges_residuals && look_normal(squares(least), weights);
    let as_good = if normal { AS_GOOD_WHERE_NORMAL } else { AS_GOOD };
    let is_as_good = |index: usize| {
        let (mean, error) = yardstick.excess(squares(index), squares(least), weights);
        mean <= as_good * error
    };
    let kernel = |index: &usize| settings[*index].1;
    let tame: Vec<usize> = sound.into_iter().filter(|&index| is_as_good(index)).collect();
    // Kernels are numbered from wide to narrow.
    let widest = tame.iter().map(kernel).min().unwrap_or(kernel(&least));
    let chosen = tame
        .into_iter()
        .filter(|index| kernel(index) == widest)
        .min_by(|a, b| better(a, b))
        .unwrap_or(least);
    // Narrower ones of the same path follow it.
    let on_its_path = |index: &usize| std::ptr::eq(settings[*index].0, settings[chosen].0);
    let wide_enough = |index: &usize| {
        let largest = squares(*index).iter().copied().fold(0.0, f64::max).sqrt();
        candidates[*index].sigma.is_some_and(|sigma| sigma >= WIDE_ENOUGH * largest)
    };
    let narrower = (chosen..settings.len()).take_while(on_its_path);
    let chosen = narrower.take_while(wide_enough).last().unwrap_or(chosen);
    let Candidate { ridge, sigma, .. } = candidates[chosen];
    let squares = squares(chosen).clone();
    let (path, kernel) = settings[chosen];
    let residuals = path.residuals[kernel].clone();
    let yardstick = yardstick.clone();
    Ok(Chosen { ridge, sigma, yardstick, squares, residuals, candidates })
}

/// Whether residuals are spread as normal ones are, or less far.
fn look_normal(squares: &[f64], weights: &[f64]) -> bool {
    let sorted = statistics::sorted(squares, Some(weights));
    let quantile = |level| statistics::quantile(&sorted, level).unwrap_or(0.0).sqrt();
    let median = quantile(0.5);
    NORMAL.iter().all(|&(level, most)| quantile(level) <= most * median)
}

/// The share of the rows to which a loss gives less than half of the full weight.
fn disbelieved(loss: Loss, squares: &[f64], weights: &[f64]) -> f64 {
    let mut trust = squares.to_vec();
    loss.weigh(&mut trust);
    let low = trust.iter().zip(weights).filter(|(trust, _)| **trust < 0.5);
    low.map(|(_, weight)| weight).sum::<f64>() / weights.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    fn path(ridge: f64, start: Start, residuals: &[f64]) -> Path {
        let judged = vec![residuals.iter().map(|e| e * e).collect()];
        Path {
            ridge,
            start,
            reach: 1,
            is_witness: false,
            judged,
            residuals: vec![residuals.to_vec()],
        }
    }

    #[test]
    fn of_paths_to_the_same_residuals_one_that_does_not_trim_stays() {
        let (one, other) = ([0.1, -0.2, 0.3, -0.1, 0.2], [0.1, -0.2, 0.1, 0.2, -0.3]);
        let mut racing = vec![
            path(1.0, Start::L1, &one),
            path(10.0, Start::L1, &one),
            path(10.0, Start::Trimmed, &one),
            path(100.0, Start::Trimmed, &one),
            path(100.0, Start::L1, &other),
        ];
        drop_out(&mut racing, &[1.0; 5], Judge::Residuals, true);
        let left: Vec<(f64, Start)> = racing.iter().map(|path| (path.ridge, path.start)).collect();
        assert_eq!(left, [(10.0, Start::L1), (100.0, Start::L1)]);
    }

    #[test]
    fn where_rows_are_hard_and_others_wrong_neither_all_are_believed_nor_only_the_easy_ones() {
        // Of ten rows seven are easy, one is hard and two are wrong, all to the same side.
        let noise = |i: usize| 0.1 * ((i * 7919 % 1009) as f64 / 504.0 - 1.0);
        let wrong = |i: usize| 6.0 + (i * 7 % 13) as f64;
        let residuals = |easy: f64, hard: f64, shift: f64| -> Vec<f64> {
            let residual = |i: usize| match i % 10 {
                0 | 5 => wrong(i) - shift,
                3 => hard * (1 + i % 3) as f64 + noise(i) - shift,
                _ => easy * noise(i) - shift,
            };
            (0..1000).map(residual).collect()
        };
        // One that believes all rows, one that has learnt the hard rows but not the wrong ones, one that knows the easy ones best.
        let [all, able, easy] = [(1.0, 0.0, 2.4), (1.0, 0.0, 0.0), (0.9, 5.0, 0.0)]
            .map(|(easy, hard, shift)| residuals(easy, hard, shift));
        let mut long = path(1.0, Start::L1, &all);
        for residuals in [able, easy] {
            long.judged.push(residuals.iter().map(|e| e * e).collect());
            long.residuals.push(residuals);
        }
        let y = faer::Mat::from_fn(1000, 1, |i, _| i as f64);
        let kernels = [30.0, 1.0, 0.3];
        let kernels = Some((RobustLoss::default(), kernels.as_slice()));
        let chosen = pick(y.as_ref(), &[long], kernels, &[1.0; 1000], Judge::Residuals);
        let chosen = chosen.expect("a choice");
        assert_eq!(chosen.sigma, Some(1.0));
        assert_eq!(chosen.candidates.len(), 3);
    }

    #[test]
    fn a_kernel_that_distrusts_many_right_rows_is_better_by_chance_only() {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let all: Vec<f64> = (0..500).map(|_| stream.normal()).collect();
        // Better in every row, but for what it believes.
        let narrow: Vec<f64> = all.iter().map(|e| 0.97 * e).collect();
        let mut long = path(1.0, Start::L1, &all);
        long.judged.push(narrow.iter().map(|e| e * e).collect());
        long.residuals.push(narrow);
        let y = faer::Mat::from_fn(500, 1, |i, _| i as f64);
        let choose = |kernels: [f64; 2]| {
            let kernels = Some((RobustLoss::default(), kernels.as_slice()));
            let racing =
                [Path { judged: long.judged.clone(), residuals: long.residuals.clone(), ..long }];
            pick(y.as_ref(), &racing, kernels, &[1.0; 500], Judge::Residuals)
                .expect("a choice")
                .sigma
        };
        assert_eq!(choose([5.0, 0.7]), Some(5.0));
        assert_eq!(choose([5.0, 2.0]), Some(2.0));
    }

    #[test]
    fn kernels_at_the_narrow_end_that_are_clearly_worse_are_not_followed_further() {
        let near: Vec<f64> = (0..200).map(|i| 0.01 * f64::from(i % 7 - 3)).collect();
        let far: Vec<f64> = near.iter().map(|e| e + 0.5).collect();
        let mut long = path(1.0, Start::L1, &near);
        for residuals in [&far, &near, &far, &far] {
            long.judged.push(residuals.iter().map(|e| e * e).collect());
            long.residuals.push(residuals.clone());
        }
        long.reach = 5;
        let mut racing = vec![long];
        drop_out(&mut racing, &[1.0; 200], Judge::Residuals, true);
        assert_eq!(racing[0].reach, 3);
    }
}
