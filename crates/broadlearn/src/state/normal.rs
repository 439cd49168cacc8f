//! The weighted normal equations R = U' Λ U, P = U' Λ Y.

use super::gram;
use crate::linalg::{parallelism, slice_of_column, worth};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

/// What all that was learnt from amounts to: R = U' Λ U and P = U' Λ Y with the sample weights Λ that
/// made them.
///
/// R does not contain the ridge term γ I: that is added when the equations are solved, so that the
/// equations of disjoint sets of rows simply add. Only the lower triangle of R is meaningful.
/// Adding n rows costs n L^2 flops and no memory.
#[derive(Clone, Debug)]
pub struct NormalEquations {
    r: Mat<f64>,
    p: Mat<f64>,
    rows: u64,
    weight: f64,
}

impl NormalEquations {
    /// The equations of no rows at all, for L nodes and C outputs.
    pub fn empty(nodes: usize, outputs: usize) -> Self {
        Self { r: Mat::zeros(nodes, nodes), p: Mat::zeros(nodes, outputs), rows: 0, weight: 0.0 }
    }

    /// Equations from their parts; `None` unless the shapes fit.
    pub fn from_parts(r: Mat<f64>, p: Mat<f64>, rows: u64, weight: f64) -> Option<Self> {
        let fits = r.nrows() == r.ncols() && r.nrows() == p.nrows();
        fits.then_some(Self { r, p, rows, weight })
    }

    /// The equations of these rows, with their sample weights (1 if not given).
    ///
    /// ```
    /// use broadlearn::{faer::mat, state::NormalEquations};
    /// let (u, y) = (mat![[1.0, 2.0], [1.0, 3.0]], mat![[5.0], [7.0]]);
    /// let equations = NormalEquations::of(u.as_ref(), y.as_ref(), Some(&[1.0, 2.0]));
    /// assert!((equations.r()[(1, 0)] - 8.0).abs() < 1e-14);
    /// assert!((equations.p()[(0, 0)] - 19.0).abs() < 1e-14);
    /// assert_eq!((equations.rows(), equations.weight()), (2, 3.0));
    /// ```
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn of(u: MatRef<'_, f64>, y: MatRef<'_, f64>, weights: Option<&[f64]>) -> Self {
        let mut equations = Self::empty(u.ncols(), y.ncols());
        equations.add_rows(u, y, weights);
        equations
    }

    /// Adds rows with their sample weights (1 if not given): the equations of all rows are those of some rows with the
    /// others added, to rounding.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn add_rows(&mut self, u: MatRef<'_, f64>, y: MatRef<'_, f64>, weights: Option<&[f64]>) {
        assert!(u.nrows() == y.nrows() && weights.is_none_or(|w| w.len() == u.nrows()));
        assert!(u.ncols() == self.r.ncols() && y.ncols() == self.p.ncols());
        self.add(u, y, weights, parallelism());
    }

    /// R and P.
    pub(crate) fn into_parts(self) -> (Mat<f64>, Mat<f64>) {
        (self.r, self.p)
    }

    /// R = U' Λ U; only its lower triangle is meaningful.
    pub fn r(&self) -> MatRef<'_, f64> {
        self.r.as_ref()
    }

    /// P = U' Λ Y.
    pub fn p(&self) -> MatRef<'_, f64> {
        self.p.as_ref()
    }

    /// The same, where some of the rows stood for several.
    pub(crate) fn counting(self, rows: u64) -> Self {
        Self { rows, ..self }
    }

    /// The number of rows that were added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The sum of their sample weights.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// As [`add_rows`](Self::add_rows), on these threads.
    pub(crate) fn add(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        par: Par,
    ) {
        self.rows += u.nrows() as u64;
        self.weight += total(u.nrows(), weights);
        self.accumulate(u, y, weights, 1.0, par);
    }

    /// As [`add`](Self::add), with R nearly right: a factor's ridge may grow by `most_noise` a row. No weight may be negative.
    pub(crate) fn add_roughly(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        most_noise: f64,
        par: Par,
    ) {
        self.rows += u.nrows() as u64;
        self.weight += total(u.nrows(), weights);
        let flops = u.nrows() as f64 * (u.ncols() as f64).powi(2);
        gram::add_roughly(self.r.as_mut(), u, weights, most_noise, worth(par, flops));
        self.accumulate_targets(u, y, weights, 1.0, par);
    }

    /// Takes rows away that were added with these weights.
    pub(crate) fn remove(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        par: Par,
    ) {
        self.rows = self.rows.saturating_sub(u.nrows() as u64);
        self.weight -= total(u.nrows(), weights);
        self.accumulate(u, y, weights, -1.0, par);
    }

    fn accumulate(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        sign: f64,
        par: Par,
    ) {
        let weights = weights.filter(|weights| weights.iter().any(|&weight| weight != 1.0));
        if u.nrows() == 1 {
            return self.accumulate_row(u, y, sign * weights.map_or(1.0, |weights| weights[0]));
        }
        let flops = u.nrows() as f64 * (u.ncols() as f64).powi(2);
        gram::add(self.r.as_mut(), u, weights, sign, worth(par, flops));
        self.accumulate_targets(u, y, weights, sign, par);
    }

    fn accumulate_targets(
        &mut self,
        u: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        sign: f64,
        par: Par,
    ) {
        let weighted;
        let y = match weights {
            None => y,
            Some(weights) => {
                weighted = Mat::from_fn(y.nrows(), y.ncols(), |i, j| weights[i] * y[(i, j)]);
                weighted.as_ref()
            }
        };
        let flops = 2.0 * u.nrows() as f64 * u.ncols() as f64 * y.ncols() as f64;
        let par = if y.ncols() == 1 { Par::Seq } else { worth(par, flops) };
        matmul(self.p.as_mut(), Accum::Add, u.transpose(), y, sign, par);
    }

    /// A single row is a product of vectors, which general code makes slow.
    fn accumulate_row(&mut self, u: MatRef<'_, f64>, y: MatRef<'_, f64>, weight: f64) {
        let row: Vec<f64> = u.row(0).iter().copied().collect();
        for (j, column) in self.r.as_mut().col_iter_mut().enumerate() {
            add_multiple(&mut slice_of_column(column)[j..], weight * row[j], &row[j..]);
        }
        for (j, column) in self.p.as_mut().col_iter_mut().enumerate() {
            add_multiple(slice_of_column(column), weight * y[(0, j)], &row);
        }
    }

    /// Adds the equations of other rows, for the same nodes and outputs.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (into, from) in [(&mut self.r, &other.r), (&mut self.p, &other.p)] {
            for (into, from) in into.as_mut().col_iter_mut().zip(from.col_iter()) {
                into.iter_mut().zip(from.iter()).for_each(|(into, from)| *into += from);
            }
        }
        self.rows += other.rows;
        self.weight += other.weight;
    }

    /// Multiplies the weight of all rows so far.
    pub(crate) fn decay(&mut self, factor: f64) {
        for matrix in [&mut self.r, &mut self.p] {
            for column in matrix.as_mut().col_iter_mut() {
                slice_of_column(column).iter_mut().for_each(|value| *value *= factor);
            }
        }
        self.weight *= factor;
    }

    /// Further outputs whose targets were 0 in all rows so far.
    pub(crate) fn add_outputs(&mut self, count: usize) {
        let (nodes, outputs) = (self.p.nrows(), self.p.ncols());
        let old = std::mem::replace(&mut self.p, Mat::zeros(nodes, outputs + count));
        self.p.subcols_mut(0, outputs).copy_from(old);
    }

    /// The equations for further nodes: `r` holds the new rows of R, for old and new nodes, `p` the
    /// new rows of P.
    pub(crate) fn border(&self, r: MatRef<'_, f64>, p: MatRef<'_, f64>) -> Self {
        let (old, new) = (self.r.nrows(), r.nrows());
        let mut all = Mat::zeros(old + new, old + new);
        all.submatrix_mut(0, 0, old, old).copy_from(&self.r);
        all.subrows_mut(old, new).copy_from(r);
        let mut targets = Mat::zeros(old + new, p.ncols());
        targets.subrows_mut(0, old).copy_from(&self.p);
        targets.subrows_mut(old, new).copy_from(p);
        Self { r: all, p: targets, rows: self.rows, weight: self.weight }
    }
}

fn total(rows: usize, weights: Option<&[f64]>) -> f64 {
    weights.map_or(rows as f64, |weights| weights.iter().sum())
}

fn add_multiple(into: &mut [f64], factor: f64, from: &[f64]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into += factor * from);
}
