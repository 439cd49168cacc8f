//! How far predictions are off, found on rows that were left out: intervals, prediction sets, novelty.
//!
//! The residuals of left-out rows are what residuals of new rows will be (the jackknife): as many new
//! rows lie within the q-quantile of the former as q says. Wrong rows among them would widen the
//! intervals of good ones, so what the wrong rows add to the distribution is taken out of it first.

use super::discriminant::{self, Discriminant};
use super::distinct::Distinct;
use super::good_rows::{
    FAR, Good, HARDLY_BELIEVED, Sizes, Wrong, edge, edge_of_even_errors, quantiles,
};
use super::leave_one_out::LeftOut;
use super::rows::{Kept, Labelled};
use super::spread::{Spread, SpreadFacts};
use super::{Member, Model, Predictions};
use crate::data::{Targets, Task};
use crate::error::{Category, Error, Result};
use crate::evaluate::Audit;
use crate::features::draw::{Purpose, Stream};
use crate::linalg::parallelism;
use crate::matrix::IntoMatrix;
use crate::preprocess::statistics::trustworthy_spread;
use crate::progress::Observer;
use crate::solve::Loss;
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

/// The error of predictions as a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Its quantiles at even levels from 0 to 1. Regression: of |residual| in units of the scaled target,
    /// one column per target. Classification: of 1 - p for the right class, one column.
    pub(super) quantiles: Mat<f64>,
    /// Where errors are larger than elsewhere: residuals are in units of it.
    pub(super) spread: Option<Spread>,
    pub(super) facts: Facts,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Facts {
    /// The rows behind it, wrong ones not counted.
    pub(super) rows: f64,
    /// u (R + gamma I)^-1 u' of left-out rows, which one in a hundred exceeds.
    pub(super) usual_leverage: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spread: Option<SpreadFacts>,
}

/// Intervals and sets that hold the truth with a given probability.
#[derive(Clone, Debug)]
pub enum Region {
    /// Regression: what to subtract from and add to the prediction of a usual row, by target. For other rows it is to be
    /// multiplied by [`spreads`](Model::spreads).
    UsualHalfWidths(Vec<f64>),
    /// Classification: the least probability with which a class belongs to the set.
    LeastProbability(f64),
}

/// Rows from which a model is calibrated, at most; for large networks, whose rows are dear to leave out, fewer: 2000
/// tell a share of 90 % to within 0.7 %.
const MOST_ROWS: usize = 5000;
const ENOUGH_ROWS: usize = 2000;
/// Flops that are worth more rows than enough.
const AFFORDABLE: f64 = 5e10;
/// Quantiles that are kept.
pub(super) const LEVELS: usize = 1001;

impl Calibration {
    /// What intervals and sets of this `level` look like.
    ///
    /// # Errors
    /// A level that is not between 0 and 1, or one that the number of rows does not bear.
    fn quantile(&self, level: f64) -> Result<Vec<f64>> {
        let column = |c: usize| between_levels(&self.quantiles, c, level, self.facts.rows);
        (0..self.quantiles.ncols()).map(column).collect()
    }
}

/// The quantile of a column at this level, of so many rows.
///
/// # Errors
/// A level that is not between 0 and 1, or one that the number of rows does not bear.
pub(super) fn between_levels(
    quantiles: &Mat<f64>,
    column: usize,
    level: f64,
    rows: f64,
) -> Result<f64> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::setting("interval", level).expected("a share between 0 and 1"));
    }
    // A new row is one more row.
    let (asked, level) = (level, level * (1.0 + 1.0 / rows));
    if level > 1.0 {
        let most = rows / (rows + 1.0);
        return Err(Error::setting("interval", asked)
            .expected(format!("at most {most:.4}: there are only {rows:.0} rows"))
            .advice("ask for less, or learn from more rows"));
    }
    let place = level * (LEVELS - 1) as f64;
    let (low, rest) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(LEVELS - 1);
    Ok(quantiles[(low, column)] * (1.0 - rest) + quantiles[(high, column)] * rest)
}

impl Model {
    /// What is known about the errors of this model's predictions. None for a model that was merged or
    /// fitted by pseudo-inverse.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// Intervals around predictions, or sets of classes, that hold the truth for this share of new
    /// rows like the training rows. Errors in training targets do not widen them.
    ///
    /// ```
    /// use broadlearn::{Settings, faer::Mat, model::Region};
    /// let x = Mat::from_fn(200, 1, |i, _| i as f64 / 20.0);
    /// let y = Mat::from_fn(200, 1, |i, _| x[(i, 0)].sin() + 0.1 * ((i * 37) % 11) as f64);
    /// let model = Settings::new().fit_regression(&x, &y)?;
    /// let Region::UsualHalfWidths(half) = model.region(0.9)? else { unreachable!() };
    /// let predictions = model.predict(&x)?;
    /// let spreads = model.spreads(&x, &predictions)?;
    /// let low = predictions.values()[(7, 0)] - half[0] * spreads[7];
    /// let high = predictions.values()[(7, 0)] + half[0] * spreads[7];
    /// assert!(high - low > 0.4 && high - low < 2.0);
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A level that is not between 0 and 1 or needs more rows; a model without calibration.
    pub fn region(&self, level: f64) -> Result<Region> {
        let calibration = self.calibration.as_ref().ok_or_else(uncalibrated)?;
        let quantile = calibration.quantile(level)?;
        Ok(match self.task() {
            Task::Classification => Region::LeastProbability(1.0 - quantile[0]),
            Task::Regression => {
                let mut ends = Mat::from_fn(2, quantile.len(), |i, j| i as f64 * quantile[j]);
                self.target_scaler().undo(ends.as_mut());
                let width = |j: usize| (ends[(1, j)] - ends[(0, j)]).abs();
                Region::UsualHalfWidths((0..quantile.len()).map(width).collect())
            }
        })
    }

    /// How much further off than usual the predictions for these inputs are likely to be: 1 everywhere unless the errors
    /// of left-out rows clearly depended on inputs or predictions, as where an important input is missing.
    ///
    /// # Errors
    /// Inputs of another shape than the schema's, or of another number of rows than predictions.
    pub fn spreads<'a>(
        &self,
        x: impl IntoMatrix<'a>,
        predictions: &Predictions,
    ) -> Result<Vec<f64>> {
        let x = x.into_matrix();
        self.check_inputs(x.as_ref())?;
        if predictions.len() != x.as_ref().nrows() {
            return Err(Error::data(format!("{} predictions", predictions.len()))
                .expected(format!("{}, one for each row of the inputs", x.as_ref().nrows())));
        }
        Ok(self.spreads_of(x.as_ref(), predictions.values().as_ref()))
    }

    /// The least and the largest of [`spreads`](Self::spreads).
    pub fn range_of_spreads(&self) -> [f64; 2] {
        match self.calibration.as_ref().and_then(|calibration| calibration.spread.as_ref()) {
            Some(Spread { facts, .. }) => [facts.low.exp(), facts.high.exp()],
            None => [1.0; 2],
        }
    }

    pub(super) fn spreads_of(&self, x: MatRef<'_, f64>, values: MatRef<'_, f64>) -> Vec<f64> {
        match self.calibration.as_ref().and_then(|calibration| calibration.spread.as_ref()) {
            Some(spread) => spread.at(x, values),
            None => vec![1.0; x.nrows()],
        }
    }

    /// How unlike the training rows inputs are: up to 1 for ninety-nine in a hundred rows like them. The
    /// square root of u (R + gamma I)^-1 u', in units of what left-out training rows have; L^2 flops
    /// a row.
    ///
    /// # Errors
    /// As [`predict`](Self::predict); a compact model, or one without calibration.
    pub fn novelty<'a>(&self, x: impl IntoMatrix<'a>) -> Result<Vec<f64>> {
        let x = x.into_matrix();
        let usual = self.calibration.as_ref().ok_or_else(uncalibrated)?.facts.usual_leverage;
        let mut sums = vec![0.0; x.as_ref().nrows()];
        for member in &self.members {
            let leverage = member.spread_of_inputs(x.as_ref())?;
            sums.iter_mut().zip(leverage).for_each(|(sum, leverage)| *sum += leverage);
        }
        let count = self.members.len() as f64;
        Ok(sums.iter().map(|sum| (sum / count / usual).sqrt()).collect())
    }

    /// This model, calibrated on these rows, which it has learnt, with a discriminant where that is better. Where that cannot be done it
    /// stays without.
    pub(super) fn calibrated(
        self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let kept = Kept::new(rows);
        self.calibrated_on(Distinct::of(kept.rows()).rows(), observer)
    }

    /// The same on rows that all count and differ.
    pub(super) fn calibrated_on(
        mut self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        self.discriminant = None;
        let reads_anew =
            self.task() == Task::Classification && self.settings().may_have_discriminant();
        self.calibrated_by(rows, reads_anew, observer)
    }

    /// The same with the discriminant that the model has.
    pub(super) fn calibrated_as_it_reads(
        self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let kept = Kept::new(rows);
        self.calibrated_by(Distinct::of(kept.rows()).rows(), false, observer)
    }

    fn calibrated_by(
        mut self,
        rows: Labelled<'_>,
        reads_anew: bool,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        self.calibration = None;
        if self.first().knowledge.is_none() || self.report().ridge.is_none() {
            return Ok(self);
        }
        let affordable = AFFORDABLE / (self.map().width() as f64).powi(2);
        let most = (affordable as usize).clamp(ENOUGH_ROWS, MOST_ROWS);
        let sample = Kept::select(rows, &self.some_of(rows.x.nrows(), most));
        // The unit of the weights has no say.
        let weights = sample.rows().weights.unwrap_or_default();
        let unit = weights.iter().sum::<f64>() / weights.len() as f64;
        let weights = weights.iter().map(|weight| weight / unit).collect();
        let sample = sample.weighing(weights);
        let rows = sample.rows();
        let mut left_out = self.leave_equal_rows_out(rows, observer)?;
        if let (Targets::Classes(given), true) = (rows.targets, reads_anew) {
            let ones = vec![1.0; given.len()];
            let weights = rows.weights.unwrap_or(&ones);
            let outputs = left_out.predictions.values().as_ref();
            if Discriminant::may_be_better(outputs, given, weights) {
                let folds = discriminant::folds(given);
                let found = match self.leave_folds_out(rows, &folds, observer) {
                    Ok(outputs) => {
                        Discriminant::where_better(outputs.as_ref(), given, weights, &folds)
                    }
                    // A fold that the others tell nothing about, as with a tiny ridge.
                    Err(error) if error.category() == Category::Numeric => None,
                    Err(error) => return Err(error),
                };
                if let Some((discriminant, unseen)) = found {
                    self.discriminant = Some(discriminant);
                    left_out =
                        left_out.with_probabilities(unseen, self.first().scaled_targets(rows));
                }
            }
        }
        let (good, spread) = match rows.targets {
            Targets::Values(_) => self.good_residuals(&left_out, rows),
            Targets::Classes(given) => (vec![good_misses(&left_out, rows, given)?], None),
        };
        let usual_leverage = usual_leverage(&left_out, unit);
        let count = good.iter().map(|good| good.count).fold(f64::INFINITY, f64::min);
        if count >= 2.0
            && usual_leverage > 0.0
            && good.iter().all(|g| g.quantiles[LEVELS - 1].is_finite())
        {
            let quantiles = Mat::from_fn(LEVELS, good.len(), |i, j| good[j].quantiles[i]);
            let facts =
                Facts { rows: count, usual_leverage, spread: spread.as_ref().map(|s| s.facts) };
            self.calibration = Some(Calibration { quantiles, spread, facts });
        }
        Ok(self)
    }

    /// The numbers of at most so many of n rows, drawn at random: tables may repeat themselves every so many rows.
    fn some_of(&self, n: usize, most: usize) -> Vec<usize> {
        if n <= most {
            return (0..n).collect();
        }
        let mut stream = Stream::new(self.settings().seed, Purpose::Sample, 1);
        let mut places = stream.permutation(n);
        places.truncate(most);
        places.sort_unstable();
        places
    }

    /// The distributions of the residuals of good rows, by target, and the unit in which each row has them.
    fn good_residuals(
        &self,
        left_out: &LeftOut,
        rows: Labelled<'_>,
    ) -> (Vec<Good>, Option<Spread>) {
        let ones = vec![1.0; rows.x.nrows()];
        let weights = rows.weights.unwrap_or(&ones);
        let mut residuals = left_out.predictions.values().clone();
        self.target_scaler().apply(residuals.as_mut());
        residuals = self.first().scaled_targets(rows) - residuals;
        let alike = self.good_residuals_in(&ones, false, left_out, residuals.as_ref(), weights);
        let values = left_out.predictions.values();
        // Several targets need not be far off in the same rows.
        let found = match values.ncols() {
            1 => Spread::of(rows.x, values.as_ref(), &left_out.distances, weights),
            _ => None,
        };
        if let Some((spread, spreads)) = found {
            let good =
                self.good_residuals_in(&spreads, true, left_out, residuals.as_ref(), weights);
            // Where targets have tails that nobody can foretell, intervals by row may be worse.
            let score = |good: &[Good], spreads: &[f64]| -> f64 {
                good.iter().map(|good| good.score(&left_out.distances, spreads, weights)).sum()
            };
            if score(&good, &spreads) < score(&alike, &ones) {
                return (good, Some(spread));
            }
        }
        (alike, None)
    }

    /// The same, rows in units of these spreads.
    fn good_residuals_in(
        &self,
        spreads: &[f64],
        by_row: bool,
        left_out: &LeftOut,
        residuals: MatRef<'_, f64>,
        weights: &[f64],
    ) -> Vec<Good> {
        let sizes = Sizes::of(&left_out.distances, spreads, weights);
        let [edge, nearer] = match self.report().loss {
            // Every row is believed.
            Loss::Squared => [f64::INFINITY; 2],
            // The kernel does not know what is usual for a row.
            _ if by_row => [FAR * trustworthy_spread(&sizes.own), edge_of_even_errors(&sizes)],
            loss => [edge(&sizes, loss), edge_of_even_errors(&sizes)],
        };
        if residuals.ncols() == 1 {
            return vec![sizes.good(edge.min(nearer))];
        }
        let wrong = Wrong::among(&sizes.beyond(edge), edge);
        let kept = |row: &usize| matches!(wrong, Wrong::None) || sizes.own[*row] < edge;
        residuals
            .col_iter()
            .map(|column| {
                let rows = (0..column.nrows()).filter(kept);
                let sizes = rows.map(|row| (column[row].abs(), weights[row]));
                Good::of(sizes.collect(), f64::INFINITY)
            })
            .collect()
    }
}

impl Member {
    /// u (R + gamma I)^-1 u' of some inputs.
    fn spread_of_inputs(&self, x: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let factor = self.updatable()?.factor_of_r()?;
        let mut leverage = Vec::with_capacity(x.nrows());
        self.map.visit(&self.scaled(x), |_, u| {
            let mut t = u.transpose().to_owned();
            factor.solve_lower_in_place(t.as_mut(), parallelism());
            leverage.extend(t.col_iter().map(|column| column.squared_norm_l2()));
            Ok(())
        })?;
        Ok(leverage)
    }
}

/// The leverage that rows would have as new ones, which one in a hundred exceeds; `unit` is the usual weight.
fn usual_leverage(left_out: &LeftOut, unit: f64) -> f64 {
    let mut leverage: Vec<f64> = left_out
        .leverage
        .iter()
        .zip(&left_out.weights)
        .filter_map(|(h, weight)| {
            weight.filter(|w| *w > HARDLY_BELIEVED * unit).map(|w| h / w / (1.0 - h))
        })
        .collect();
    leverage.sort_unstable_by(f64::total_cmp);
    leverage
        .get((leverage.len() * 99 / 100).min(leverage.len().saturating_sub(1)))
        .map_or(0.0, |v| *v)
}

/// The distribution of 1 - p of the right class. Of all rows it is a mixture with that of wrongly labelled
/// ones, which have the class of another: their share is the audit's estimate, their distribution that
/// of 1 - p over the classes that the rows were not given.
fn good_misses(left_out: &LeftOut, rows: Labelled<'_>, given: &[u32]) -> Result<Good> {
    let share = Audit::new(left_out, rows.targets)?.contamination.estimate.min(0.9);
    let probabilities = left_out.predictions.probabilities();
    let (n, classes) = (given.len(), probabilities.ncols());
    let mut changes: Vec<(f64, f64)> = Vec::with_capacity(n * classes);
    for (row, &class) in given.iter().enumerate() {
        for other in 0..classes {
            let miss = 1.0 - probabilities[(row, other)];
            let amount = match other == class as usize {
                true => 1.0,
                false => -share / (classes - 1) as f64,
            };
            changes.push((miss, amount * rows.weights.map_or(1.0, |weights| weights[row])));
        }
    }
    changes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sum, mut most) = (0.0, 0.0_f64);
    let (mut values, mut cumulated) = (Vec::new(), Vec::new());
    for (miss, amount) in changes {
        sum += amount;
        if sum > most {
            most = sum;
            values.push(miss);
            cumulated.push(most);
        }
    }
    Ok(Good { quantiles: quantiles(&values, &cumulated), count: most })
}

fn uncalibrated() -> Error {
    Error::model("a model that does not know how far its predictions are off")
        .expected("a model fitted with a ridge on rows that can be left out one by one, and not merged")
        .advice(
            "refine a merged model, or one that has learnt new classes, with all its rows; if each row has something of its own (a category, few rows for \
             many inputs), learn from more rows or leave that out",
        )
}

impl Predictions {
    /// The classes of a prediction set, for every row: those at least as probable as `least`, and always
    /// the most probable one.
    pub fn class_sets(&self, least: f64) -> Vec<Vec<u32>> {
        let probabilities = self.probabilities();
        let first = self.classes();
        (0..self.len())
            .map(|row| {
                let belongs = |class: &u32| {
                    *class == first[row] || probabilities[(row, *class as usize)] >= least
                };
                (0..probabilities.ncols() as u32).filter(belongs).collect()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_needs_rows() {
        let quantiles = Mat::from_fn(LEVELS, 1, |i, _| i as f64);
        let facts = Facts { rows: 99.0, usual_leverage: 1.0, spread: None };
        let calibration = Calibration { quantiles, spread: None, facts };
        assert!((calibration.quantile(0.5).expect("a quantile")[0] - 505.05).abs() < 0.1);
        assert!(calibration.quantile(0.999).is_err());
        assert!(calibration.quantile(1.0).is_err() && calibration.quantile(0.0).is_err());
    }
}
