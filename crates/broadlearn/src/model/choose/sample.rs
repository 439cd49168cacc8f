//! The rows that the choice looks at, and how a network is judged by them.

use super::super::CheckedSettings;
use crate::error::Result;
use crate::features::FeatureMap;
use crate::features::build::build;
use crate::linalg::{parallelism, product, row_blocks, select_rows};
use crate::preprocess::{ScaledRows, Scaler, Scaling, statistics};
use crate::solve::automatic::Judge;
use crate::solve::automatic::score::Yardstick;
use crate::solve::factor::Factor;
use crate::solve::nested::{Judged, judged};
use crate::solve::start::{L1_STEPS, Start, initial_outputs};
use crate::solve::system::System;
use crate::solve::{Loss, NetworkCandidate};
use crate::state::{NormalEquations, StateRows};
use faer::{Accum, Mat, MatRef};
use rayon::prelude::*;

/// Rows for which slopes are averaged.
const SLOPE_ROWS: usize = 1000;

/// Rows with an input that is far beyond all others have no say, if they are no more than this share, or a single one: it may be
/// worth more to a leave-one-out score than all others together, whatever its target is.
const MOST_WILD: f64 = 0.02;
/// Scaled targets that are farther off are all the same to a choice that does not believe them, and leave other rows their
/// digits.
const FARTHEST: f64 = 1e6;

/// A ridge this many times as large makes up for rounding errors.
const STURDY: f64 = 1e4;

/// The rows that are looked at, in random order, and what is known about them.
pub(super) struct Sample<'a> {
    /// Their numbers.
    pub(super) rows: Vec<usize>,
    pub(super) x: Mat<f64>,
    pub(super) y: Mat<f64>,
    pub(super) user: Option<Vec<f64>>,
    /// Sample weights, the user's multiplied in.
    pub(super) weights: Vec<f64>,
    /// How much the residual of every row counts.
    counts: Vec<f64>,
    yardstick: Yardstick,
    judge: Judge,
    /// Whether there are more rows than these.
    pub(super) partial: bool,
    pub(super) all: MatRef<'a, f64>,
    /// It has seen all rows, as it will in the end.
    scaler: Scaler,
    /// The rows as it leaves them.
    scaled: Mat<f64>,
}

/// A network on the rows of a sample.
pub(super) struct Mapped {
    map: FeatureMap,
    pub(super) u: Mat<f64>,
}

impl Mapped {
    /// The number of leading columns of U that are linear in the inputs.
    pub(super) fn linear(&self) -> usize {
        self.map.leading_features()
    }
}

/// A design at one size and ridge, with its output weights and the squared leave-one-out residual of every row.
#[derive(Clone)]
pub(super) struct Trial {
    /// The place of its design in a list.
    pub(super) design: usize,
    pub(super) nodes: usize,
    pub(super) ridge: f64,
    w: Mat<f64>,
    squares: Vec<f64>,
    pub(super) score: f64,
}

impl Trial {
    pub(super) fn candidate(&self, design: &CheckedSettings) -> NetworkCandidate {
        let enhancement = &design.network.enhancement;
        NetworkCandidate {
            recipe: design.recipe,
            gain: enhancement.gain,
            relevance: enhancement.relevance.is_some(),
            fan_in: enhancement.fan_in,
            enhancement_nodes: self.nodes,
            ridge: self.ridge,
            score: self.score,
        }
    }
}

/// A design whose largest network is there.
pub(super) struct Candidate<'a> {
    sample: &'a Sample<'a>,
    design: usize,
    sizes: Vec<usize>,
    u: Mat<f64>,
    equations: NormalEquations,
}

impl Candidate<'_> {
    /// Every size that can be judged with this ridge: none if it is so small that nothing is positive definite.
    pub(super) fn trials(&self, ridge: f64) -> Vec<Trial> {
        let Sample { y, weights, yardstick, counts, .. } = self.sample;
        let (u, y, par) = (self.u.as_ref(), y.as_ref(), parallelism());
        let before = u.ncols() - most(&self.sizes);
        let widths: Vec<usize> = self.sizes.iter().map(|size| before + size).collect();
        let found = judged(&self.equations, u, y, weights, ridge, &widths, par);
        let found = found.unwrap_or_default().into_iter().zip(&self.sizes);
        let trials = found.filter_map(|(judged, &nodes)| {
            let Judged { w, squares } = judged?;
            let score = yardstick.mean(&squares, counts);
            let design = self.design;
            score.is_finite().then_some(Trial { design, nodes, ridge, w, squares, score })
        });
        trials.collect()
    }

    /// The best ridge for every size. The search begins with the ridge that is likely to suit, and goes on in either
    /// direction for as long as that helps one of the sizes; not downwards if going up has helped them all.
    fn best_ridges(&self, ridges: &[f64], likely: f64) -> Vec<Trial> {
        let mut best: Vec<Trial> = Vec::new();
        // For how many sizes this ridge is the best so far.
        let mut helps = |ridge: f64| -> usize {
            self.trials(ridge).into_iter().map(|trial| usize::from(put(&mut best, trial))).sum()
        };
        let begin = ridges.iter().position(|ridge| *ridge >= likely).unwrap_or(0);
        let (smaller, larger) = ridges.split_at(begin);
        let mut upwards = false;
        for (place, &ridge) in larger.iter().enumerate() {
            let helped = helps(ridge);
            upwards |= place > 0 && helped == self.sizes.len();
            if place > 0 && helped == 0 {
                break;
            }
        }
        for &ridge in smaller.iter().rev().take_while(|_| !upwards) {
            if helps(ridge) == 0 {
                break;
            }
        }
        best
    }
}

/// Adds a trial, or puts it in the place of one of the same design and size, unless that is better.
fn put(trials: &mut Vec<Trial>, trial: Trial) -> bool {
    let same = |other: &&mut Trial| (other.design, other.nodes) == (trial.design, trial.nodes);
    match trials.iter_mut().find(same) {
        Some(other) if other.score < trial.score => return false,
        Some(other) => *other = trial,
        None => trials.push(trial),
    }
    true
}

/// Adds trials as [`put`] does.
pub(super) fn put_all(trials: &mut Vec<Trial>, found: Vec<Trial>) {
    for trial in found {
        put(trials, trial);
    }
}

/// A design that is to be judged.
pub(super) struct Entrant<'d> {
    /// Its place in a list.
    pub(super) design: usize,
    pub(super) settings: &'d CheckedSettings,
    /// The ridge that is likely to suit.
    pub(super) likely: f64,
}

impl<'d> Entrant<'d> {
    /// Of a list of its own.
    pub(super) fn new(settings: &'d CheckedSettings, likely: f64) -> Self {
        Self { design: 0, settings, likely }
    }
}

/// The largest of some sizes.
pub(super) fn most(sizes: &[usize]) -> usize {
    sizes.iter().copied().max().unwrap_or(0)
}

/// The trial with the least score.
pub(super) fn least<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> Option<&'t Trial> {
    trials.into_iter().min_by(|a, b| a.score.total_cmp(&b.score))
}

/// State that is held at the same time, at most: numbers of all threads.
const MOST_NUMBERS: usize = 1 << 25;

impl<'a> Sample<'a> {
    /// What is found about each of these, in order: at the same time, unless networks of so many nodes are so large that
    /// memory would not hold several, and threads are better used within each.
    pub(super) fn side_by_side<T: Sync, R: Send>(
        &self,
        nodes: usize,
        items: &[T],
        find: impl Fn(&T) -> Result<R> + Send + Sync,
    ) -> Result<Vec<R>> {
        let numbers = 2 * self.y.nrows() * (self.x.ncols() + nodes);
        match numbers * rayon::current_num_threads() <= MOST_NUMBERS {
            true => items.par_iter().map(find).collect(),
            false => items.iter().map(find).collect(),
        }
    }

    /// Those of these rows that are to have a say, in their order.
    pub(super) fn new(
        x: MatRef<'a, f64>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        rows: &[usize],
        judge: Judge,
        scaling: Scaling,
    ) -> Self {
        let scaler = Scaler::fit(scaling, x, user);
        let partial = rows.len() < x.nrows();
        let mut rows = rows.to_vec();
        let mut looked_at = select_rows(x, &rows);
        let mut scaled = looked_at.clone();
        scaler.apply(scaled.as_mut());
        let calm: Vec<usize> =
            (0..rows.len()).filter(|&place| !scaler.is_wild(scaled.row(place))).collect();
        let wild = rows.len() - calm.len();
        if wild > 0 && wild as f64 <= (MOST_WILD * rows.len() as f64).max(1.0) && calm.len() > 2 {
            rows = calm.iter().map(|&place| rows[place]).collect();
            (looked_at, scaled) =
                (select_rows(looked_at.as_ref(), &calm), select_rows(scaled.as_ref(), &calm));
        }
        let user: Option<Vec<f64>> = user.map(|user| rows.iter().map(|&row| user[row]).collect());
        let weights = user.clone().unwrap_or_else(|| vec![1.0; rows.len()]);
        let mut y = select_rows(y, &rows);
        if judge == Judge::Residuals {
            for column in y.as_mut().col_iter_mut() {
                column.iter_mut().for_each(|value| *value = value.clamp(-FARTHEST, FARTHEST));
            }
        }
        Self {
            rows,
            x: looked_at,
            y,
            user,
            counts: weights.clone(),
            weights,
            yardstick: Yardstick::new(&[], judge, false),
            judge,
            partial,
            all: x,
            scaler,
            scaled,
        }
    }

    /// Some of these rows.
    pub(super) fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let (start, count) = (rows.start, rows.len());
        Self {
            rows: self.rows[rows.clone()].to_vec(),
            x: self.x.subrows(start, count).to_owned(),
            y: self.y.subrows(start, count).to_owned(),
            user: self.user.as_ref().map(|user| user[rows.clone()].to_vec()),
            weights: self.weights[rows.clone()].to_vec(),
            counts: self.counts[rows.clone()].to_vec(),
            yardstick: self.yardstick.part(rows),
            judge: self.judge,
            partial: true,
            all: self.all,
            scaler: self.scaler.clone(),
            scaled: self.scaled.subrows(start, count).to_owned(),
        }
    }

    pub(super) fn judge(&self) -> Judge {
        self.judge
    }

    /// Takes the weights that a loss gives to the rows.
    pub(super) fn learn(&mut self, mut weights: Vec<f64>, yardstick: &Yardstick) {
        self.yardstick = yardstick.trusting(&weights);
        if let Some(user) = &self.user {
            weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= *user);
        }
        self.weights = weights;
    }

    /// The squared residual norms of the further rows, by the model of the first ones with the weights
    /// that the loss gives to their squared residual norms.
    pub(super) fn unseen_squares(
        &self,
        mapped: &Mapped,
        first: &[f64],
        loss: Loss,
        ridge: f64,
    ) -> Result<Vec<f64>> {
        let (seen, par) = (first.len(), parallelism());
        let unseen = self.y.nrows() - seen;
        if unseen == 0 {
            return Ok(Vec::new());
        }
        let mut weights = first.to_vec();
        loss.weigh(&mut weights);
        if let Some(user) = &self.user {
            weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= *user);
        }
        let u = mapped.u.subrows(0, seen).to_owned();
        let equations = NormalEquations::of(u.as_ref(), self.y.subrows(0, seen), Some(&weights));
        // What could be factored in the folds may fail by a rounding error here.
        let factored = |ridge| Factor::new(equations.r().to_owned(), ridge, par);
        let factor = factored(ridge).or_else(|_| factored(STURDY * ridge))?;
        let w = factor.solve(equations.p(), par);
        let mut outputs = Mat::zeros(unseen, w.ncols());
        product(outputs.as_mut(), Accum::Replace, mapped.u.subrows(seen, unseen), w.as_ref(), par);
        outputs -= self.y.subrows(seen, unseen);
        Ok(outputs.row_iter().map(|row| row.squared_norm_l2()).collect())
    }

    /// Rows that a robust fit of these settings misses by more than it usually does count for less: so
    /// far nobody knows how large good residuals are, and Huber's weights do no harm.
    pub(super) fn beware(&mut self, settings: &CheckedSettings, ridge: f64) -> Result<()> {
        let state = StateRows::Whole(self.mapped(settings, self.x.nrows())?.u);
        let system = System::new(&state, self.y.as_ref(), 1e-4, parallelism());
        let user = self.user.as_deref();
        let outputs = initial_outputs(&system, Start::L1, user, ridge, L1_STEPS)?;
        let squares = system.squared_residuals(outputs.as_ref());
        let norms: Vec<f64> = squares.iter().map(|square| square.sqrt()).collect();
        let usual = 1.4826 * statistics::median(&norms, user).unwrap_or(0.0);
        for (weight, norm) in self.weights.iter_mut().zip(norms) {
            *weight *= if norm > usual { usual / norm } else { 1.0 };
        }
        self.counts.clone_from(&self.weights);
        Ok(())
    }

    /// The network of these settings, built on the first rows.
    fn map(&self, settings: &CheckedSettings, rows: usize) -> Result<FeatureMap> {
        let inputs = ScaledRows::new(self.x.subrows(0, rows), &self.scaler);
        let user = self.user.as_deref().map(|user| &user[..rows]);
        build(&settings.network, &inputs, user, settings.seed)
    }

    /// The network of these settings, and U of the first rows.
    pub(super) fn mapped(&self, settings: &CheckedSettings, rows: usize) -> Result<Mapped> {
        let map = self.map(settings, rows)?;
        let mut u = Mat::zeros(rows, map.width());
        for range in row_blocks(rows) {
            let x = self.scaled.subrows(range.start, range.len());
            map.apply(x, u.subrows_mut(range.start, range.len()));
        }
        Ok(Mapped { map, u })
    }

    /// The best ridges of some designs for every size, in their order.
    pub(super) fn trials(
        &self,
        entrants: &[Entrant<'_>],
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Vec<Vec<Trial>>> {
        self.side_by_side(most(sizes), entrants, |entrant| {
            let candidate = self.candidate(entrant.design, entrant.settings, sizes)?;
            Ok(candidate.best_ridges(ridges, entrant.likely))
        })
    }

    /// A design, to be judged at every size with one ridge or another.
    pub(super) fn candidate(
        &self,
        design: usize,
        settings: &CheckedSettings,
        sizes: &[usize],
    ) -> Result<Candidate<'_>> {
        let most = most(sizes);
        let u = self.mapped(&settings.clone().with_nodes(most), self.x.nrows())?.u;
        let equations = NormalEquations::of(u.as_ref(), self.y.as_ref(), Some(&self.weights));
        Ok(Candidate { sample: self, design, sizes: sizes.to_vec(), u, equations })
    }

    /// By how much the first trial is worse than the second, with its standard error.
    pub(super) fn excess(&self, first: &Trial, second: &Trial) -> (f64, f64) {
        self.yardstick.excess(&first.squares, &second.squares, &self.counts)
    }

    /// How strongly the outputs of a trial's model depend on each scaled input: the root of the mean
    /// square of the slope; 0 for inputs that do not vary.
    pub(super) fn slopes(&self, settings: &CheckedSettings, trial: &Trial) -> Result<Vec<f64>> {
        let map = self.map(&settings.clone().with_nodes(trial.nodes), self.x.nrows())?;
        let rows = SLOPE_ROWS.min(self.x.nrows());
        let x = self.scaled.subrows(0, rows);
        let mut slopes = map.mean_squared_slopes(x, trial.w.as_ref());
        for (slope, column) in slopes.iter_mut().zip(x.col_iter()) {
            let constant = column.iter().all(|value| *value == column[0]);
            *slope = if constant { 0.0 } else { slope.sqrt() };
        }
        Ok(slopes)
    }
}
