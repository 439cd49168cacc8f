//! Where predictions are further off than elsewhere: the usual size of errors as a function of the inputs.
//!
//! Noise grows with the level of the target, an important input is missing in some rows, a network knows little at the edges of its data.
//! An interval of one width for all rows is then too wide for most and far too narrow for some, and rows of which
//! little can be said look wrong. So the logarithm of left-out residuals is regressed on inputs, predictions and their squares. Rows beyond
//! what is likely at their spread have no say, as in [`trustworthy_spread`]. Where that does not tell clearly more
//! than a constant, nothing is taken from it.

use crate::linalg::slice_of;
use crate::preprocess::statistics::{BEYOND, mean_and_deviation, trustworthy_spread};
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

/// How the usual size of errors depends on inputs and predictions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    /// For each input and then each prediction: centre, unit, slope, slope of the square.
    pub(super) columns: Mat<f64>,
    pub(super) facts: SpreadFacts,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpreadFacts {
    /// The logarithm of the spread where all columns are at their centres.
    pub(super) offset: f64,
    /// The least and the largest logarithm that the rows had.
    pub(super) low: f64,
    pub(super) high: f64,
}

/// What a column of [`Spread::columns`] is.
pub(super) const FIGURES: usize = 4;
/// A value counts as no further than this many units from the centre.
const FARTHEST: f64 = 3.0;
/// Residuals are taken to be no smaller than this part of their spread: how near to nothing one is says little.
const LEAST: f64 = 0.1;
/// More columns than this would take longer than a fit.
const MOST_COLUMNS: usize = 500;
/// What a term has to explain, in units of what is left for each row and beside what the best of so many would explain by chance.
const CLEARLY: f64 = 7.0;
/// Terms that may matter, and rows that there must be for each.
const MOST_TERMS: usize = 20;
const ROWS_PER_TERM: f64 = 20.0;
/// The least and the largest logarithm of a spread: a tenth and five times the usual one. What lies beyond is rather the tail of targets that
/// nobody can foretell.
pub(super) const LOWEST: f64 = -std::f64::consts::LN_10;
pub(super) const HIGHEST: f64 = 1.609_437_912_434_100_3;
/// Times that the rows are found which are trusted: where errors are large, some are only when that is known.
const ROUNDS: usize = 8;

impl Spread {
    /// From residuals of rows that were left out, with the weights of the rows, and the spread for each of these rows that it has
    /// without it. `None` if no dependence is to be seen.
    pub(super) fn of(
        x: MatRef<'_, f64>,
        predictions: MatRef<'_, f64>,
        residuals: &[f64],
        weights: &[f64],
    ) -> Option<(Self, Vec<f64>)> {
        let columns = x.ncols() + predictions.ncols();
        let usual = trustworthy_spread(residuals);
        if columns > MOST_COLUMNS || usual <= 0.0 || residuals.len() < 2 * FIGURES {
            return None;
        }
        let (mut figures, terms, units) = terms(x, predictions, weights);
        let trusted = Trusted::at(residuals, &vec![0.0; residuals.len()], weights);
        let mut regression = Regression::of(terms.as_ref(), &trusted)?;
        for _ in 1..ROUNDS {
            regression.fits.iter_mut().for_each(|fit| *fit = fit.clamp(LOWEST, HIGHEST));
            let trusted = Trusted::at(residuals, &regression.fits, weights);
            regression = Regression::of(terms.as_ref(), &trusted)?;
        }
        let Regression { offset, slopes, fits, left_out } = regression;
        for (term, (slope, unit)) in slopes.iter().zip(units).enumerate() {
            figures[(term / 2, 2 + term % 2)] = slope / unit;
        }
        if is_off(residuals, &left_out) {
            return None;
        }
        let low = fits.iter().copied().fold(f64::INFINITY, f64::min).max(LOWEST);
        let high = fits.iter().copied().fold(f64::NEG_INFINITY, f64::max).min(HIGHEST);
        let spreads = left_out.iter().map(|log| log.clamp(low, high).exp()).collect();
        Some((Self { columns: figures, facts: SpreadFacts { offset, low, high } }, spreads))
    }

    /// The spread for inputs and their predictions, in units of the usual one.
    pub(super) fn at(&self, x: MatRef<'_, f64>, predictions: MatRef<'_, f64>) -> Vec<f64> {
        let mut logs = vec![self.facts.offset; x.nrows()];
        for (place, column) in x.col_iter().chain(predictions.col_iter()).enumerate() {
            let [slope, of_square] = [2, 3].map(|figure| self.columns[(place, figure)]);
            for (log, value) in logs.iter_mut().zip(column.iter()) {
                let distance = distance(*value, &self.columns, place);
                *log += distance * (slope + distance * of_square);
            }
        }
        logs.iter().map(|log| log.clamp(self.facts.low, self.facts.high).exp()).collect()
    }
}

/// The part of the rows with the largest spreads that is looked at, if it has so many rows.
const LARGEST: usize = 8;
const FEW: usize = 30;
/// Of noise of any usual kind this share is below half its median size: normal .264, even .25, exponential .29.
const SMALL: f64 = 0.25;

/// Whether hardly any error is small where errors are large: then the model is off there, for it was misled by wrong rows that lie together,
/// and what looks like a spread is its own error.
fn is_off(residuals: &[f64], logs: &[f64]) -> bool {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]));
    let rows = order.len() / LARGEST;
    let mut sizes: Vec<f64> = order[..rows].iter().map(|&row| residuals[row]).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let count = rows as f64;
    let small = sizes.partition_point(|size| *size < 0.5 * sizes[rows / 2]) as f64;
    rows >= FEW && small < SMALL * count - 3.0 * (SMALL * (1.0 - SMALL) * count).sqrt()
}

/// Centres and units of the columns, slopes left open; what the logarithm of the spread is a sum of, two terms for each column;
/// and the units of these terms.
fn terms(
    x: MatRef<'_, f64>,
    predictions: MatRef<'_, f64>,
    weights: &[f64],
) -> (Mat<f64>, Mat<f64>, Vec<f64>) {
    let columns = x.ncols() + predictions.ncols();
    let mut figures = Mat::zeros(columns, FIGURES);
    let mut terms = Mat::zeros(x.nrows(), 2 * columns);
    let mut units = Vec::with_capacity(2 * columns);
    for (place, column) in x.col_iter().chain(predictions.col_iter()).enumerate() {
        let values: Vec<f64> = column.iter().copied().collect();
        let (centre, unit) = mean_and_deviation(&values, Some(weights));
        // A constant has no unit, and tells nothing; nor do numbers whose squares are none.
        let varies = unit > 1e-12 * centre.abs() && unit.is_finite() && centre.is_finite();
        (figures[(place, 0)], figures[(place, 1)]) =
            if varies { (centre, unit) } else { (0.0, 1.0) };
        if !varies {
            units.extend([1.0; 2]);
            continue;
        }
        let distances: Vec<f64> =
            values.iter().map(|value| distance(*value, &figures, place)).collect();
        let squares: Vec<f64> = distances.iter().map(|distance| distance.powi(2)).collect();
        for (term, values) in [distances, squares].into_iter().enumerate() {
            let (_, unit) = mean_and_deviation(&values, Some(weights));
            // Signs, say, whose squares are all 1.
            let unit = if unit > 1e-9 { unit } else { f64::INFINITY };
            let into = terms.as_mut().col_mut(2 * place + term).iter_mut();
            into.zip(&values).for_each(|(into, value)| *into = value / unit);
            units.push(unit);
        }
    }
    (figures, terms, units)
}

/// Of a value from the centre of its column, in units.
fn distance(value: f64, figures: &Mat<f64>, place: usize) -> f64 {
    let distance = (value - figures[(place, 0)]) / figures[(place, 1)];
    distance.clamp(-FARTHEST, FARTHEST)
}

/// The logarithms of residuals, and the weights of the rows: none where they are beyond what these spreads make likely. Such rows
/// are wrong, or their spread is not known yet.
struct Trusted {
    logs: Vec<f64>,
    weights: Vec<f64>,
}

impl Trusted {
    fn at(residuals: &[f64], spreads: &[f64], weights: &[f64]) -> Self {
        let sizes: Vec<f64> =
            residuals.iter().zip(spreads).map(|(size, log)| size / log.exp()).collect();
        let usual = trustworthy_spread(&sizes);
        let log = |(size, log): (&f64, &f64)| log + (size / usual).max(LEAST).ln();
        let weight = |(size, weight): (&f64, &f64)| match *size <= BEYOND * usual {
            true => *weight,
            false => 0.0,
        };
        Self {
            logs: sizes.iter().zip(spreads).map(log).collect(),
            weights: sizes.iter().zip(weights).map(weight).collect(),
        }
    }
}

/// Logarithms, less their mean, as a sum of the few terms that matter.
struct Regression {
    offset: f64,
    /// By term; 0 for those that do not matter.
    slopes: Vec<f64>,
    fits: Vec<f64>,
    /// The same for each row without it.
    left_out: Vec<f64>,
}

impl Regression {
    /// One term after the other, the one first that explains most of what is left (orthogonal least squares), as long as
    /// chance would hardly explain as much. `None` if no term does.
    fn of(terms: MatRef<'_, f64>, trusted: &Trusted) -> Option<Self> {
        let Trusted { logs, weights } = trusted;
        let (count, total) = (terms.ncols(), weights.iter().sum::<f64>());
        let rows = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        let most = MOST_TERMS.min((rows / ROWS_PER_TERM) as usize);
        let mean = |values: &[f64]| mean_and_deviation(values, Some(weights)).0;
        let centred = |values: &[f64]| -> Vec<f64> {
            let mean = mean(values);
            values.iter().map(|value| value - mean).collect()
        };
        let inner = |a: &[f64], b: &[f64]| -> f64 {
            a.iter().zip(b).zip(weights).map(|((a, b), weight)| a * b * weight).sum()
        };
        let take_away = |from: &mut [f64], times: f64, what: &[f64]| {
            from.iter_mut().zip(what).for_each(|(value, what)| *value -= times * what);
        };
        let mut rest = centred(logs);
        let mut columns: Vec<Vec<f64>> =
            terms.col_iter().map(|column| centred(slice_of(column))).collect();
        let sizes: Vec<f64> = columns.iter().map(|column| inner(column, column)).collect();
        // By term, what multiples of the chosen ones it contained.
        let mut shares = vec![Vec::new(); count];
        let mut chosen: Vec<Chosen> = Vec::new();
        while chosen.len() < most {
            let explained = |term: usize| {
                let size = inner(&columns[term], &columns[term]);
                // What others explain to the last digits is one of them.
                let own = size > 1e-6 * sizes[term] && sizes[term] > 1e-9 * total;
                if own { inner(&columns[term], &rest).powi(2) / size } else { 0.0 }
            };
            let gains = (0..count).map(|term| (explained(term), term));
            let Some((gain, term)) = gains.max_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            let left = inner(&rest, &rest) - gain;
            let chance = 2.0 * (count as f64).ln() + CLEARLY;
            let clear = gain * rows > chance * left;
            if !clear {
                break;
            }
            let own = columns[term].clone();
            let size = inner(&own, &own);
            let slope = inner(&own, &rest) / size;
            take_away(&mut rest, slope, &own);
            for (other, shares) in columns.iter_mut().zip(&mut shares) {
                let share = inner(other, &own) / size;
                take_away(other, share, &own);
                shares.push(share);
            }
            chosen.push(Chosen { term, own, size, slope });
        }
        if chosen.is_empty() {
            return None;
        }

        let mut slopes = vec![0.0; count];
        for (place, Chosen { term, slope, .. }) in chosen.iter().enumerate().rev() {
            let later = chosen[place + 1..].iter();
            let contained: f64 = later.map(|c| slopes[c.term] * shares[c.term][place]).sum();
            slopes[*term] = slope - contained;
        }
        let (mut fits, mut leverage) = (vec![0.0; logs.len()], vec![1.0 / total; logs.len()]);
        for Chosen { own, size, slope, .. } in &chosen {
            take_away(&mut fits, -slope, own);
            leverage.iter_mut().zip(own).for_each(|(sum, own)| *sum += own * own / size);
        }
        let left_out = (0..logs.len())
            .map(|row| {
                let h = (weights[row] * leverage[row]).min(0.5);
                fits[row] - h / (1.0 - h) * rest[row]
            })
            .collect();
        let constants = chosen.iter().map(|c| slopes[c.term] * mean(slice_of(terms.col(c.term))));
        let offset = -constants.sum::<f64>();
        Some(Self { offset, slopes, fits, left_out })
    }
}

/// A term that matters.
struct Chosen {
    term: usize,
    /// What of it those before do not explain, and the square of its size.
    own: Vec<f64>,
    size: f64,
    /// Of that part.
    slope: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    /// Inputs, predictions, and residuals of which `log_spread` says how large they usually are.
    fn rows(
        seed: u64,
        count: usize,
        log_spread: impl Fn(&[f64]) -> f64,
    ) -> (Mat<f64>, Mat<f64>, Vec<f64>) {
        let mut stream = Stream::new(seed, Purpose::Noise, 0);
        let x = Mat::from_fn(count, 5, |_, j| match j {
            4 => f64::from(stream.unit() < 0.05),
            _ => stream.normal(),
        });
        let predictions = Mat::from_fn(count, 1, |i, _| 100.0 + x[(i, 0)] + stream.normal());
        let size = |i: usize| {
            let row: Vec<f64> = x.row(i).iter().copied().chain([predictions[(i, 0)]]).collect();
            log_spread(&row).exp()
        };
        let residuals = (0..count).map(|i| 0.01 * (stream.normal() * size(i)).abs()).collect();
        (x, predictions, residuals)
    }

    #[test]
    fn alike_errors_are_hardly_ever_taken_to_differ() {
        let found = (0..200).filter(|&seed| {
            let count = if seed % 2 == 0 { 60 } else { 600 };
            let (x, predictions, residuals) = rows(seed, count, |_| 0.0);
            let weights = vec![1.0; count];
            Spread::of(x.as_ref(), predictions.as_ref(), &residuals, &weights).is_some()
        });
        let found = found.count();
        assert!(found <= 2, "{found}");
    }

    #[test]
    fn the_spread_is_found_also_among_wrong_rows() {
        // Four times as large where the last column is 1.
        let dependence = |row: &[f64]| 0.5 * row[0] + 1.4 * row[4];
        for share_of_wrong in [0.0, 0.2] {
            let (x, predictions, mut residuals) = rows(3, 2000, dependence);
            let mut stream = Stream::new(4, Purpose::Noise, 0);
            for residual in &mut residuals {
                if stream.unit() < share_of_wrong {
                    *residual += stream.unit();
                }
            }
            let weights = vec![1.0; 2000];
            let found = Spread::of(x.as_ref(), predictions.as_ref(), &residuals, &weights);
            let (spread, left_out) = found.expect("a dependence");
            let at = spread.at(x.as_ref(), predictions.as_ref());
            for spreads in [&left_out, &at] {
                let error = |i: usize| {
                    let row: Vec<f64> = x.row(i).iter().copied().collect();
                    spreads[i].ln() - dependence(&row)
                };
                let errors: Vec<f64> = (0..2000).map(error).collect();
                let (_, deviation) = mean_and_deviation(&errors, None);
                // Without it: 0.58.
                assert!(deviation < 0.15, "{share_of_wrong}: {deviation}");
            }
        }
    }

    #[test]
    fn what_the_model_makes_wrong_is_no_spread() {
        // Where a column is large, it is off by three spreads one way or the other.
        let (x, predictions, residuals) = rows(6, 1000, |_| 0.0);
        let spread_of = |off: f64| {
            let size = |row: usize| {
                let off = if x[(row, 0)] > 1.0 { 0.01 * off } else { 0.0 };
                (residuals[row] - off).abs()
            };
            let residuals: Vec<f64> = (0..1000).map(size).collect();
            let x = x.as_ref();
            Spread::of(x, predictions.as_ref(), &residuals, &[1.0; 1000])
        };
        assert!(spread_of(3.0).is_none());
        // Noise of that size is one.
        let (x, predictions, residuals) =
            rows(7, 1000, |row| 1.1 * f64::from(u8::from(row[0] > 1.0)));
        let weights = vec![1.0; 1000];
        assert!(Spread::of(x.as_ref(), predictions.as_ref(), &residuals, &weights).is_some());
    }

    #[test]
    fn rows_far_out_have_no_spread_beyond_what_was_seen() {
        let (x, predictions, residuals) = rows(5, 500, |row| row[1]);
        let weights = vec![1.0; 500];
        let found = Spread::of(x.as_ref(), predictions.as_ref(), &residuals, &weights);
        let (spread, _) = found.expect("a dependence");
        let far = spread.at(Mat::full(1, 5, 1e300).as_ref(), Mat::full(1, 1, -1e300).as_ref());
        let known = spread.at(x.as_ref(), predictions.as_ref());
        let most = known.iter().copied().fold(0.0, f64::max);
        assert!(far[0] > 0.0 && far[0] <= most * (1.0 + 1e-9), "{far:?} {most}");
    }
}
