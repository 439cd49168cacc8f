//! How predictions of rows that were left out are judged, when some of these rows are wrong.
//!
//! The squared error of the good rows is what counts, but nobody says which rows are good. So squares
//! are cut off: beyond a certain residual a row costs the same whatever the model says. Where the
//! cut lies decides. Too near, and the hard rows of clean data do not count; too far, and wrong rows
//! decide. It lies where the density of the residuals stops falling: good rows thin out with the
//! distance, wrong ones need not.

use super::Judge;
use crate::features::vector_math;
use crate::preprocess::statistics;
use rayon::prelude::*;

/// The residuals of rows, out of their fold, under one setting.
pub(crate) struct Residuals<'a> {
    pub(crate) squares: &'a [f64],
    pub(crate) weights: &'a [f64],
}

/// What a squared residual costs: itself, up to a bound; of rows that are trusted, without one.
#[derive(Clone, Debug)]
pub(crate) struct Yardstick {
    /// Whether these are residuals under a robust loss: not errors of classes, not plain squares.
    pub(super) judges_residuals: bool,
    bound: f64,
    /// By row; empty where nothing is known about them.
    trusted: Vec<bool>,
}

/// 0/1 outputs may be off by more than 2 only where the model itself is wild: one such row must not
/// decide.
const CLASSES_BOUND: f64 = 4.0;
/// The cut, in units of the spread of the good rows: it is not nearer and not farther than this.
const NEAREST_CUT: f64 = 3.0;
const FARTHEST_CUT: f64 = 10.0;
/// The density has stopped falling at c if (c, 2c] holds at least this many times as many rows as
/// (c/2, c] (for an even density: 2, for one that falls as 1/c: 1), ...
const STILL_AS_DENSE: f64 = 0.8;
/// ... and at least this share of all rows.
const ENOUGH_ROWS: f64 = 0.02;
/// Steps of the estimate of the good rows' spread, and the least spread in units of the first one.
const EM_STEPS: usize = 40;
/// They end sooner where variance and share change by less than this part.
const SETTLED: f64 = 1e-3;
const LEAST_SPREAD: f64 = 0.2;

impl Yardstick {
    /// For some of the rows.
    pub(crate) fn part(&self, rows: std::ops::Range<usize>) -> Self {
        let trusted =
            if self.trusted.is_empty() { Vec::new() } else { self.trusted[rows].to_vec() };
        Self { trusted, ..*self }
    }

    /// Plain squares.
    pub(crate) const SQUARES: Self =
        Self { judges_residuals: false, bound: f64::INFINITY, trusted: Vec::new() };

    /// For the rows of these settings, which are the same rows in the same order.
    pub(crate) fn new(settings: &[Residuals<'_>], judge: Judge, robust: bool) -> Self {
        match judge {
            Judge::Classes => Self { bound: CLASSES_BOUND, ..Self::SQUARES },
            Judge::Residuals if robust => {
                let bound = cut(settings).powi(2);
                Self { judges_residuals: true, bound, trusted: Vec::new() }
            }
            Judge::Residuals => Self::SQUARES,
        }
    }

    /// This yardstick for rows with these sample weights, found by models that have not seen them. Where
    /// others come near to a target and a setting does not, the setting is wrong and not the row.
    pub(crate) fn trusting(&self, weights: &[f64]) -> Self {
        Self { trusted: weights.iter().map(|&weight| weight >= 0.5).collect(), ..*self }
    }

    /// What a squared residual costs, of a row about which nothing is known.
    pub(crate) fn bounded(&self, square: f64) -> f64 {
        square.min(self.bound)
    }

    fn cost(&self, row: usize, square: f64) -> f64 {
        if self.trusted.get(row).copied().unwrap_or(false) {
            square
        } else {
            square.min(self.bound)
        }
    }

    /// The weighted mean cost.
    pub(crate) fn mean(&self, squares: &[f64], weights: &[f64]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (row, (&square, weight)) in squares.iter().zip(weights).enumerate() {
            sum += weight * self.cost(row, square);
            total += weight;
        }
        sum / total
    }

    /// The mean excess of one setting's costs over another's, and its standard error.
    pub(crate) fn excess(&self, of: &[f64], over: &[f64], weights: &[f64]) -> (f64, f64) {
        let costs = of.iter().zip(over).enumerate();
        let differences: Vec<f64> =
            costs.map(|(row, (&a, &b))| self.cost(row, a) - self.cost(row, b)).collect();
        let (mean, deviation) = statistics::mean_and_deviation(&differences, Some(weights));
        (mean, deviation / weights.iter().sum::<f64>().sqrt())
    }
}

/// The residual beyond which a row is no better or worse than another.
fn cut(settings: &[Residuals<'_>]) -> f64 {
    let least_median = settings
        .par_iter()
        .map(|rows| {
            let norms: Vec<f64> = rows.squares.iter().map(|square| square.sqrt()).collect();
            statistics::median(&norms, Some(rows.weights)).unwrap_or(f64::INFINITY)
        })
        .reduce(|| f64::INFINITY, f64::min);
    let first_spread = 1.4826 * least_median;
    if !(first_spread > 0.0 && first_spread.is_finite()) {
        // Half of the rows are met exactly: whatever misses the others more is worse.
        return f64::INFINITY;
    }
    let reach = reach(settings);
    let best = settings
        .par_iter()
        .map(|rows| Core::fit(rows, first_spread, reach))
        .enumerate()
        .min_by(|(i, a), (j, b)| a.surprise.total_cmp(&b.surprise).then(i.cmp(j)));
    let Some((index, core)) = best else { return f64::INFINITY };
    plateau(&settings[index], core.spread) * core.spread
}

/// Twice the residual within which the best setting for each row has 98 % of the rows.
fn reach(settings: &[Residuals<'_>]) -> f64 {
    let Some(first) = settings.first() else { return 0.0 };
    let mut least = first.squares.to_vec();
    for rows in settings {
        for (least, &square) in least.iter_mut().zip(rows.squares) {
            *least = least.min(square);
        }
    }
    let sorted = statistics::sorted(&least, Some(first.weights));
    2.0 * statistics::quantile(&sorted, 0.98).unwrap_or(0.0).sqrt()
}

/// Residuals as a normal core amid evenly spread errors.
struct Core {
    spread: f64,
    /// The mean of -log density: the less, the better.
    surprise: f64,
}

impl Core {
    /// By expectation and maximisation over spread and share of the errors.
    fn fit(rows: &Residuals<'_>, first_spread: f64, reach: f64) -> Self {
        let total: f64 = rows.weights.iter().sum();
        let (mut variance, mut share) = (first_spread * first_spread, 0.2);
        let floor = (LEAST_SPREAD * first_spread).powi(2);
        let even = 1.0 / reach.max(first_spread);
        let mut densities = vec![0.0; rows.squares.len()];
        for _ in 0..EM_STEPS {
            normal_densities(rows.squares, variance, &mut densities);
            let (mut good, mut sum) = (0.0, 0.0);
            for ((&square, weight), normal) in rows.squares.iter().zip(rows.weights).zip(&densities)
            {
                let core = (1.0 - share) * normal;
                let part = weight * core / (core + share * even);
                good += part;
                sum += part * square;
            }
            let before = (variance, share);
            variance = (sum / good.max(f64::MIN_POSITIVE)).max(floor);
            share = (1.0 - good / total).clamp(0.005, 0.5);
            if settled(variance, before.0) && settled(share, before.1) {
                break;
            }
        }
        normal_densities(rows.squares, variance, &mut densities);
        let surprise: f64 = densities
            .iter()
            .zip(rows.weights)
            .map(|(normal, weight)| -weight * ((1.0 - share) * normal + share * even).ln())
            .sum();
        Self { spread: variance.sqrt(), surprise: surprise / total }
    }
}

/// The density of a normal variable of this variance, for squares of it.
fn normal_densities(squares: &[f64], variance: f64, densities: &mut [f64]) {
    let (scale, height) = (-0.5 / variance, 1.0 / (std::f64::consts::TAU * variance).sqrt());
    densities.iter_mut().zip(squares).for_each(|(density, square)| *density = scale * square);
    vector_math::exp(densities);
    densities.iter_mut().for_each(|density| *density *= height);
}

fn settled(now: f64, before: f64) -> bool {
    (now - before).abs() <= SETTLED * now
}

/// Where the density of the residuals stops falling, in units of the spread.
fn plateau(rows: &Residuals<'_>, spread: f64) -> f64 {
    let norms: Vec<f64> = rows.squares.iter().map(|square| square.sqrt() / spread).collect();
    let total: f64 = rows.weights.iter().sum();
    let between = |low: f64, high: f64| -> f64 {
        let inside = norms.iter().zip(rows.weights).filter(|(n, _)| **n > low && **n <= high);
        inside.map(|(_, weight)| weight).sum()
    };
    let mut cut = NEAREST_CUT;
    while cut < FARTHEST_CUT {
        let beyond = between(cut, 2.0 * cut);
        if beyond >= (STILL_AS_DENSE * between(cut / 2.0, cut)).max(ENOUGH_ROWS * total) {
            return cut;
        }
        cut *= 1.1;
    }
    FARTHEST_CUT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    fn cut_of(norms: &[f64]) -> f64 {
        let squares: Vec<f64> = norms.iter().map(|norm| norm * norm).collect();
        let weights = vec![1.0; norms.len()];
        cut(&[Residuals { squares: &squares, weights: &weights }])
    }

    #[test]
    fn clean_rows_count_in_full() {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let clean: Vec<f64> = (0..2000).map(|_| stream.normal()).collect();
        assert!(cut_of(&clean) > clean.iter().fold(0.0, |a: f64, b| a.max(b.abs())));
    }

    #[test]
    fn the_cut_lies_between_good_rows_and_a_stuck_sensor() {
        let mut stream = Stream::new(2, Purpose::Noise, 0);
        let rows: Vec<f64> = (0..2000)
            .map(|i| if i % 5 < 2 { 12.0 + stream.normal() } else { stream.normal() })
            .collect();
        let cut = cut_of(&rows);
        assert!(cut > 2.5 && cut < 10.0, "{cut}");
    }

    #[test]
    fn the_unit_of_the_target_does_not_matter() {
        let mut stream = Stream::new(3, Purpose::Noise, 0);
        let rows: Vec<f64> = (0..500)
            .map(|i| if i % 3 == 0 { 30.0 * stream.unit() } else { stream.normal() })
            .collect();
        let thousandfold: Vec<f64> = rows.iter().map(|row| 1000.0 * row).collect();
        assert!((cut_of(&thousandfold) / cut_of(&rows) - 1000.0).abs() < 1e-6);
    }
}
