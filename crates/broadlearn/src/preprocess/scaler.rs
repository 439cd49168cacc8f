//! Scalers of inputs and targets.

use super::statistics;
use crate::linalg::{on_threads, select_rows, slice_of, slice_of_column, split_rows};
use crate::vectors::{Loops, widest};
use faer::{ColRef, Mat, MatMut, MatRef, RowRef};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How columns are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// To [0, 1] by the training minimum and maximum.
    MinMax,
    /// To [-1, 1] by the training minimum and maximum.
    MinMaxSymmetric,
    /// Mean 0 and standard deviation 1.
    Standard,
    /// Mean 0 and standard deviation 1, and logarithmic beyond five deviations, up to 24: one row far from all others
    /// then neither stretches the nodes to itself in training nor drives a prediction out of all bounds. Where the
    /// deviation is that of a few wild values, more than five times what the middle half of a column
    /// suggests, as [`Robust`](Self::Robust).
    Tamed,
    /// Median 0 and interquartile range 1.349 (that of a standard normal variable); where the range
    /// is 0, the standard deviation takes its place.
    Robust,
    /// Every row to mean 0 and standard deviation 1: for images.
    RowZScore,
    /// Left as they are.
    None,
}

impl Scaling {
    /// All ways of scaling.
    pub const ALL: [Self; 7] = [
        Self::MinMax,
        Self::MinMaxSymmetric,
        Self::Standard,
        Self::Tamed,
        Self::Robust,
        Self::RowZScore,
        Self::None,
    ];

    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinMax => "min-max",
            Self::MinMaxSymmetric => "min-max-symmetric",
            Self::Standard => "standard",
            Self::Tamed => "tamed",
            Self::Robust => "robust",
            Self::RowZScore => "row-z-score",
            Self::None => "none",
        }
    }
}

/// A fitted scaler: x becomes (x - centre) factor + offset, column by column, perhaps with tamed tails; or
/// the z-score of every row. A column that is constant in training has factor 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Scaler {
    /// One centre, factor and offset per column.
    Columns {
        /// Subtracted first.
        centre: Vec<f64>,
        /// Multiplied then.
        factor: Vec<f64>,
        /// Added last.
        offset: Vec<f64>,
        /// Whether values beyond 5 then become 5 + ln(value - 4), at most 8, and those below -5 likewise.
        tamed: bool,
    },
    /// Mean 0 and standard deviation 1 within each row.
    Rows,
}

/// What a scaler needs to know of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ColumnFacts {
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    /// The quartiles, the median between them.
    pub(crate) quartiles: [f64; 3],
}

impl ColumnFacts {
    /// As much as this scaling needs.
    fn of(column: ColRef<'_, f64>, weights: Option<&[f64]>, scaling: Scaling) -> Self {
        let values: Vec<f64> = column.iter().copied().collect();
        let mut facts = Self::default();
        match scaling {
            Scaling::MinMax | Scaling::MinMaxSymmetric => {
                facts.least = values.iter().copied().fold(f64::INFINITY, f64::min);
                facts.most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            }
            Scaling::Standard | Scaling::Tamed | Scaling::Robust => {
                (facts.mean, facts.deviation) = statistics::mean_and_deviation(&values, weights);
            }
            Scaling::RowZScore | Scaling::None => {}
        }
        match scaling {
            Scaling::Robust => facts.quartiles = statistics::quartiles(&values, weights),
            Scaling::Tamed => {
                let every = values.len().div_ceil(ENOUGH_ROWS).max(1);
                let some = |values: &[f64]| values.iter().copied().step_by(every).collect();
                let (values, weights): (Vec<f64>, Option<Vec<f64>>) =
                    (some(&values), weights.map(some));
                facts.quartiles = statistics::quartiles(&values, weights.as_deref());
            }
            _ => {}
        }
        facts
    }
}

impl Scaler {
    /// Fits a scaler on the rows of `x` with the users' sample weights.
    pub fn fit(scaling: Scaling, x: MatRef<'_, f64>, weights: Option<&[f64]>) -> Self {
        if scaling == Scaling::RowZScore {
            return Self::Rows;
        }
        let columns: Vec<ColumnFacts> =
            x.col_iter().map(|column| ColumnFacts::of(column, weights, scaling)).collect();
        Self::from_facts(scaling, &columns)
    }

    /// The scaler for columns of which this is known.
    pub(crate) fn from_facts(scaling: Scaling, facts: &[ColumnFacts]) -> Self {
        if scaling == Scaling::RowZScore {
            return Self::Rows;
        }
        let columns = facts.len();
        let (mut centre, mut factor) = (Vec::with_capacity(columns), Vec::with_capacity(columns));
        for &ColumnFacts { least, most, mean, deviation, quartiles } in facts {
            let (middle, width) = match scaling {
                Scaling::MinMax | Scaling::MinMaxSymmetric => {
                    let unit = if scaling == Scaling::MinMax { 1.0 } else { 2.0 };
                    (least, significant(most - least, least.abs().max(most.abs())) / unit)
                }
                Scaling::Standard => (mean, significant(deviation, mean)),
                Scaling::Robust | Scaling::Tamed => {
                    let [low, median, high] = quartiles;
                    let range = significant(statistics::spread_of_quartiles(low, high), median);
                    let robust = scaling == Scaling::Robust;
                    match range > 0.0 && (robust || deviation > WILD * range) {
                        true => (median, range),
                        false => (if robust { median } else { mean }, significant(deviation, mean)),
                    }
                }
                Scaling::RowZScore | Scaling::None => (0.0, 1.0),
            };
            let reciprocal = 1.0 / width;
            let usable = width > 0.0 && reciprocal.is_finite() && reciprocal > 0.0;
            centre.push(if middle.is_finite() { middle } else { 0.0 });
            factor.push(if usable { reciprocal } else { 0.0 });
        }
        let low = if scaling == Scaling::MinMaxSymmetric { -1.0 } else { 0.0 };
        let tamed = scaling == Scaling::Tamed;
        Self::Columns { centre, factor, offset: vec![low; columns], tamed }
    }

    /// The number of columns it was fitted on; `None` if it takes any number.
    pub fn columns(&self) -> Option<usize> {
        match self {
            Self::Columns { centre, .. } => Some(centre.len()),
            Self::Rows => None,
        }
    }

    /// Further columns, which it leaves as they are.
    pub(crate) fn add_columns(&mut self, count: usize) {
        if let Self::Columns { centre, factor, offset, .. } = self {
            for (values, neutral) in [(centre, 0.0), (factor, 1.0), (offset, 0.0)] {
                values.resize(values.len() + count, neutral);
            }
        }
    }

    /// Scales a column-major matrix in place.
    pub(crate) fn apply(&self, mut x: MatMut<'_, f64>) {
        match self {
            Self::Columns { centre, factor, offset, tamed } => {
                for (j, column) in x.as_mut().col_iter_mut().enumerate() {
                    let (centre, factor, offset) = (centre[j], factor[j], offset[j]);
                    let values = slice_of_column(column);
                    for value in values.iter_mut() {
                        *value = (*value - centre) * factor + offset;
                    }
                    if *tamed {
                        values.iter_mut().for_each(|value| *value = tame(*value));
                    }
                }
            }
            Self::Rows => widest(RowZScore(x)),
        }
    }

    /// Whether some value of this scaled row is as far off as a tamed value can be.
    pub(crate) fn is_wild(&self, scaled: RowRef<'_, f64>) -> bool {
        matches!(self, Self::Columns { tamed: true, .. })
            && scaled.iter().any(|value| value.abs() >= MOST)
    }

    /// Scales one row in place, without further memory.
    pub(crate) fn apply_to_row(&self, x: &mut [f64]) {
        match self {
            Self::Columns { centre, factor, offset, tamed } => {
                let columns = centre.iter().zip(factor).zip(offset);
                for (value, ((centre, factor), offset)) in x.iter_mut().zip(columns) {
                    let scaled = (*value - centre) * factor + offset;
                    *value = if *tamed { tame(scaled) } else { scaled };
                }
            }
            Self::Rows => {
                let (mean, deviation) = statistics::mean_and_deviation(x, None);
                let deviation = significant(deviation, mean);
                let factor = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
                x.iter_mut().for_each(|value| *value = (*value - mean) * factor);
            }
        }
    }

    /// Undoes the scaling of a column-major matrix, in place. What was constant in training comes
    /// back as that constant.
    pub(crate) fn undo(&self, mut y: MatMut<'_, f64>) {
        if let Self::Columns { centre, factor, offset, tamed } = self {
            for (j, column) in y.as_mut().col_iter_mut().enumerate() {
                let width = if factor[j] > 0.0 { 1.0 / factor[j] } else { 0.0 };
                for value in slice_of_column(column) {
                    let scaled = if *tamed { untame(*value) } else { *value };
                    *value = (scaled - offset[j]) * width + centre[j];
                }
            }
        }
    }
}

/// A column of which the standard deviation is this many times what its quartiles suggest has wild values.
const WILD: f64 = 5.0;
/// Rows that tell it, at most, evenly spread: to sort a million takes as long as to read them.
const ENOUGH_ROWS: usize = 10_000;

/// From here on a tamed value grows as its logarithm does; the slope is 1 there on both sides.
const TAME: f64 = 5.0;
/// And no farther than this: beyond 24 deviations nonsense is as far off as other nonsense.
const MOST: f64 = 8.0;

fn tame(value: f64) -> f64 {
    if value.abs() <= TAME {
        return value;
    }
    (TAME + (value.abs() - (TAME - 1.0)).ln()).min(MOST).copysign(value)
}

fn untame(value: f64) -> f64 {
    if value.abs() <= TAME {
        return value;
    }
    (TAME - 1.0 + (value.abs() - TAME).exp()).copysign(value)
}

/// Mean 0 and standard deviation 1 in every row: [`statistics::mean_and_deviation`] of all rows at once,
/// column by column, because the values of a row lie far apart in memory.
struct RowZScore<'a>(MatMut<'a, f64>);

impl Loops for RowZScore<'_> {
    #[inline(always)]
    fn run(self) {
        let mut x = self.0;
        let columns = x.ncols() as f64;
        let Some(first) = x.as_ref().col_iter().next() else { return };
        let origin: Vec<f64> = slice_of(first).to_vec();
        let n = origin.len();
        let (mut shift, mut factor, mut mean) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for column in x.as_ref().col_iter() {
            for ((sum, value), origin) in shift.iter_mut().zip(slice_of(column)).zip(&origin) {
                *sum += value - origin;
            }
        }
        for ((mean, shift), origin) in mean.iter_mut().zip(&mut shift).zip(&origin) {
            *shift /= columns;
            *mean = origin + *shift;
        }
        for column in x.as_ref().col_iter() {
            let values = slice_of(column).iter().zip(&origin).zip(&shift);
            for (sum, ((value, origin), shift)) in factor.iter_mut().zip(values) {
                let distance = value - origin - shift;
                *sum += distance * distance;
            }
        }
        for (square, mean) in factor.iter_mut().zip(&mean) {
            let deviation = significant((*square / columns).sqrt(), *mean);
            *square = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
        }
        for column in x.as_mut().col_iter_mut() {
            let rows = mean.iter().zip(&factor);
            for (value, (mean, factor)) in slice_of_column(column).iter_mut().zip(rows) {
                *value = (*value - mean) * factor;
            }
        }
    }
}

/// A deviation that is not mere rounding error of values of size `mean`, else 0.
fn significant(deviation: f64, mean: f64) -> f64 {
    if deviation > 4.0 * f64::EPSILON * mean.abs() { deviation } else { 0.0 }
}

/// Rows that a thread scales at a time: a hundred inputs of them fit into a cache.
const ROWS_AT_ONCE: usize = 200;

/// Rows of raw inputs that are scaled block by block, so that no scaled copy of all rows is made.
#[derive(Clone, Copy)]
pub(crate) struct ScaledRows<'a> {
    x: MatRef<'a, f64>,
    scaler: &'a Scaler,
}

impl<'a> ScaledRows<'a> {
    pub(crate) fn new(x: MatRef<'a, f64>, scaler: &'a Scaler) -> Self {
        Self { x, scaler }
    }

    pub(crate) fn len(&self) -> usize {
        self.x.nrows()
    }

    pub(crate) fn columns(&self) -> usize {
        self.x.ncols()
    }

    /// The scaled rows of this range.
    pub(crate) fn block(&self, rows: Range<usize>) -> Mat<f64> {
        let mut block = Mat::zeros(rows.len(), self.x.ncols());
        self.block_into(rows, block.as_mut());
        block
    }

    /// Writes the scaled rows of this range into a column-major matrix.
    pub(crate) fn block_into(&self, rows: Range<usize>, into: MatMut<'_, f64>) {
        let x = self.x.subrows(rows.start, rows.len());
        let flops = 10.0 * (x.nrows() * x.ncols()) as f64;
        let starts = (0..x.nrows()).step_by(ROWS_AT_ONCE);
        let parts = starts.zip(split_rows(into, ROWS_AT_ONCE)).collect();
        on_threads(parts, flops, |(start, mut part): (usize, MatMut<'_, f64>)| {
            part.copy_from(x.subrows(start, part.nrows()));
            self.scaler.apply(part);
        });
    }

    /// Copies the raw rows of this range into a column-major matrix; `false` if some of their values are not finite.
    pub(crate) fn copy_if_finite(&self, rows: Range<usize>, into: MatMut<'_, f64>) -> bool {
        let x = self.x.subrows(rows.start, rows.len());
        let mut finite = true;
        for (into, column) in into.col_iter_mut().zip(x.col_iter()) {
            let into = slice_of_column(into);
            match column.try_as_col_major() {
                Some(column) => into.copy_from_slice(column.as_slice()),
                None => into.iter_mut().zip(column.iter()).for_each(|(into, value)| *into = *value),
            }
            // All of them, although one would do: a loop without an exit takes several at a time.
            finite &= into.iter().fold(true, |finite, value| finite & value.is_finite());
        }
        finite
    }

    /// Scales raw rows in a column-major matrix.
    pub(crate) fn scale(&self, x: MatMut<'_, f64>) {
        self.scaler.apply(x);
    }

    /// The scaled rows of these numbers.
    pub(crate) fn select(&self, rows: &[usize]) -> Mat<f64> {
        let mut block = select_rows(self.x, rows);
        self.scaler.apply(block.as_mut());
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::mat;

    fn scaled(scaling: Scaling, x: &Mat<f64>) -> Mat<f64> {
        let mut out = x.clone();
        Scaler::fit(scaling, x.as_ref(), None).apply(out.as_mut());
        out
    }

    #[test]
    fn each_scaling_does_what_it_says() {
        let x = mat![[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [6.0, 5.0]];
        let zero =
            |values: [f64; 4]| Mat::from_fn(4, 2, |i, j| if j == 0 { values[i] } else { 0.0 });
        assert_eq!(scaled(Scaling::MinMax, &x), zero([0.0, 0.2, 0.4, 1.0]));
        assert_eq!(scaled(Scaling::None, &x), x);
        let robust = scaled(Scaling::Robust, &x);
        assert!((robust[(0, 0)] - (1.0 - 2.5) / (3.0 / 1.349)).abs() < 1e-12);
        let far = Mat::from_fn(100, 1, |i, _| if i == 0 { 20.0 } else { (i % 2) as f64 });
        let (standard, tamed) = (scaled(Scaling::Standard, &far), scaled(Scaling::Tamed, &far));
        assert!((tamed[(0, 0)] - 5.0 - (standard[(0, 0)] - 4.0).ln()).abs() < 1e-12);
        assert_eq!(tamed.subrows(1, 99), standard.subrows(1, 99));
        // Of a value that is wild the others must not notice anything.
        let wild = Mat::from_fn(100, 1, |i, _| if i == 0 { 1e9 } else { i as f64 });
        let (robust, tamed) = (scaled(Scaling::Robust, &wild), scaled(Scaling::Tamed, &wild));
        assert_eq!(tamed.subrows(1, 99), robust.subrows(1, 99));
        assert_eq!(tamed[(0, 0)], MOST);
        let standard = scaled(Scaling::Standard, &x);
        let mean = standard.col(0).iter().sum::<f64>();
        let squares = standard.col(0).iter().map(|v| v * v).sum::<f64>();
        assert!(mean.abs() < 1e-12 && (squares - 4.0).abs() < 1e-12);
        let rows = scaled(Scaling::RowZScore, &x);
        assert!((rows[(0, 0)] + 1.0).abs() < 1e-12 && (rows[(0, 1)] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn robust_falls_back_to_the_deviation_on_mostly_constant_columns() {
        let x = Mat::from_fn(10, 1, |i, _| if i == 0 { 10.0 } else { 0.0 });
        let Scaler::Columns { factor, .. } = Scaler::fit(Scaling::Robust, x.as_ref(), None) else {
            panic!("a column scaler");
        };
        assert!((factor[0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn undo_inverts_apply() {
        let x = mat![[1.0, -7.0, 4.0], [2.5, 3.0, 4.0], [-9.0, 2.0, 4.0]];
        for scaling in Scaling::ALL {
            if scaling == Scaling::RowZScore {
                continue;
            }
            let scaler = Scaler::fit(scaling, x.as_ref(), None);
            let mut y = x.clone();
            scaler.apply(y.as_mut());
            scaler.undo(y.as_mut());
            assert!((&y - &x).norm_max() < 1e-12, "{scaling:?}");
        }
    }
}
