//! R and P with their factor: rows in, rows out, nodes in, sums.

use super::Ledger;
use crate::error::{Error, Result};
use crate::linalg::{BLOCK_ROWS, parallelism, product, row_blocks, squared_norm};
use crate::solve::factor::Factor;
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use std::ops::Range;

/// How a change of the equations reached their factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Rank-r update of the factor, 2 r L^2 flops.
    Updated,
    /// A new factor of the new equations, L^3 / 3 flops.
    Refactored,
}

/// Writes U of a range of rows to a matrix and returns their Y.
pub type Blocks<'a> = dyn FnMut(Range<usize>, MatMut<'_, f64>) -> Result<Mat<f64>> + 'a;

/// `NormalEquations::add` or `NormalEquations::remove`.
type Step = fn(&mut NormalEquations, MatRef<'_, f64>, MatRef<'_, f64>, Option<&[f64]>, Par);

/// What a model has learnt: R = U' Λ U and P = U' Λ Y, the Cholesky factor of R + γ I, and the
/// [`Ledger`] of rows with their weights Λ.
///
/// R and P are the truth; the factor is there to save work. It is a function of R until a rank-r
/// update changes it by itself, and only then does it become part of a model file.
#[derive(Clone, Debug)]
pub struct Knowledge {
    equations: NormalEquations,
    ridge: f64,
    factor: Option<Factor>,
    /// Rows by which the factor was updated since it was computed from R; 0: it is a function of R.
    updates: u64,
    ledger: Ledger,
    /// Whether weights were multiplied by forgetting factors, so that no row has its own weight.
    decayed: bool,
}

impl Knowledge {
    /// Knowledge of these equations, whose rows are on record in this ledger.
    pub fn new(equations: NormalEquations, ridge: f64, ledger: Ledger) -> Self {
        Self { equations, ridge, factor: None, updates: 0, ledger, decayed: false }
    }

    /// Knowledge from its parts; `factor` is one that has been updated by so many rows.
    pub(crate) fn from_parts(
        equations: NormalEquations,
        ridge: f64,
        ledger: Ledger,
        factor: Option<(Factor, u64)>,
        decayed: bool,
    ) -> Self {
        let (factor, updates) =
            factor.map_or((None, 0), |(factor, updates)| (Some(factor), updates));
        Self { equations, ridge, factor, updates, ledger, decayed }
    }

    /// R and P.
    pub fn equations(&self) -> &NormalEquations {
        &self.equations
    }

    /// The ridge γ that is added to R when it is factored.
    pub fn ridge(&self) -> f64 {
        self.ridge
    }

    /// The rows and their weights.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Whether forgetting factors have been at work.
    pub fn decayed(&self) -> bool {
        self.decayed
    }

    /// Whether every row is on record with its weight.
    pub fn is_complete(&self) -> bool {
        self.ledger.dropped() == 0 && self.ledger.len() as u64 == self.equations.rows()
    }

    /// The factor, if it is more than a function of R, and by how many rows it was updated.
    pub(crate) fn updated_factor(&self) -> Option<(MatRef<'_, f64>, u64)> {
        let factor = self.factor.as_ref().filter(|_| self.updates > 0)?;
        Some((factor.lower(), self.updates))
    }

    fn nodes(&self) -> usize {
        self.equations.r().nrows()
    }

    fn factored(&self, equations: &NormalEquations) -> Result<Factor> {
        Factor::new(equations.r().to_owned(), self.ridge, parallelism())
    }

    /// The factor, computed if it is not there.
    fn factor(&mut self) -> Result<&mut Factor> {
        if self.factor.is_none() {
            self.factor = Some(self.factored(&self.equations)?);
            self.updates = 0;
        }
        self.factor.as_mut().ok_or_else(|| Error::numeric("no factor"))
    }

    /// The factor, borrowed if it is there and computed if not.
    pub(crate) fn factor_of_r(&self) -> Result<std::borrow::Cow<'_, Factor>> {
        match &self.factor {
            Some(factor) => Ok(std::borrow::Cow::Borrowed(factor)),
            None => Ok(std::borrow::Cow::Owned(self.factored(&self.equations)?)),
        }
    }

    /// W = (R + γ I)^-1 P.
    ///
    /// # Errors
    /// If R + γ I is not positive definite in double precision.
    pub fn solve(&mut self) -> Result<Mat<f64>> {
        self.factor()?;
        match &self.factor {
            Some(factor) => Ok(factor.solve(self.equations.p(), parallelism())),
            None => Err(Error::numeric("no factor")),
        }
    }

    /// Whether so few rows are better brought in by a rank-r update. It costs 2 r L^2 flops at a third
    /// of the speed of a factor's L^3 / 3 (measured at L = 200, 600 and 2000). After L updated rows
    /// the factor is computed anew in any case: that costs L^2 / 3 flops a row and keeps rounding
    /// errors from adding up.
    fn is_few(&self, rows: usize) -> bool {
        12 * rows <= self.nodes() && self.updates + rows as u64 <= self.nodes() as u64
    }

    /// Adds rows with their weights. `blocks` gives U and Y of a range of them, and is asked for all
    /// in order; a range may be asked for twice. The ledger is left to the caller. Nothing is changed on error.
    ///
    /// # Errors
    /// Those of `blocks`, and equations that are not positive definite.
    pub fn add_rows(&mut self, weights: &[f64], blocks: &mut Blocks<'_>) -> Result<Route> {
        if self.is_few(weights.len()) {
            let mut u = Mat::zeros(weights.len(), self.nodes());
            let y = blocks(0..weights.len(), u.as_mut())?;
            let mut v = weighted_columns(u.as_ref(), weights);
            if self.factor()?.update(v.as_mut(), 1.0) {
                self.updates += weights.len() as u64;
                self.equations.add(u.as_ref(), y.as_ref(), Some(weights), parallelism());
                return Ok(Route::Updated);
            }
            (self.factor, self.updates) = (None, 0);
        }
        self.sum_up(weights, blocks, NormalEquations::add)
    }

    /// Takes rows out that came in with these weights; else as [`add_rows`](Self::add_rows).
    ///
    /// A downdate loses about 1 / (1 - h) of the precision, h being the share (leverage) that the
    /// rows have in their own fit: |F^-1 v|^2, summed over the rows for a bound. Where h is large, or
    /// the rows are many, the factor is computed from R - U' Λ U.
    ///
    /// # Errors
    /// Those of `blocks`; `Numeric` if what would remain is not positive definite.
    pub fn remove_rows(&mut self, weights: &[f64], blocks: &mut Blocks<'_>) -> Result<Route> {
        if self.is_few(weights.len()) {
            let mut u = Mat::zeros(weights.len(), self.nodes());
            let y = blocks(0..weights.len(), u.as_mut())?;
            let mut v = weighted_columns(u.as_ref(), weights);
            let mut leverage = v.clone();
            let mut factor = self.factor()?.clone();
            factor.solve_lower_in_place(leverage.as_mut(), parallelism());
            if squared_norm(leverage.as_ref()) < 0.99 && factor.update(v.as_mut(), -1.0) {
                self.factor = Some(factor);
                self.updates += weights.len() as u64;
                self.equations.remove(u.as_ref(), y.as_ref(), Some(weights), parallelism());
                return Ok(Route::Updated);
            }
        }
        self.sum_up(weights, blocks, NormalEquations::remove)
    }

    /// Adds rows to the equations or takes them away, block by block, and factors the sum.
    fn sum_up(&mut self, weights: &[f64], blocks: &mut Blocks<'_>, step: Step) -> Result<Route> {
        let mut equations = self.equations.clone();
        let mut buffer = Mat::zeros(BLOCK_ROWS.min(weights.len()), self.nodes());
        for range in row_blocks(weights.len()) {
            let mut u = buffer.as_mut().subrows_mut(0, range.len());
            let y = blocks(range.clone(), u.as_mut())?;
            step(&mut equations, u.as_ref(), y.as_ref(), Some(&weights[range]), parallelism());
        }
        self.replace(equations)?;
        Ok(Route::Refactored)
    }

    /// Puts other equations for the same nodes in place of these, with a new factor. Nothing is
    /// changed on error.
    fn replace(&mut self, equations: NormalEquations) -> Result<()> {
        self.factor = Some(self.factored(&equations)?);
        self.updates = 0;
        self.equations = equations;
        Ok(())
    }

    /// Puts equations in place of these to which rows were added, after the earlier ones had lost weight by the factor
    /// `decay`: with their factor and the record of the new rows.
    pub(crate) fn take_over(
        &mut self,
        equations: NormalEquations,
        factor: Factor,
        ledger: &Ledger,
        decay: f64,
    ) {
        if decay < 1.0 {
            self.ledger.decay(decay);
            self.decayed = true;
        }
        self.ledger.merge(ledger);
        self.equations = equations;
        (self.factor, self.updates) = (Some(factor), 0);
    }

    /// U (R + γ I)^-1 U': how much what is learnt of one row says of another.
    pub(crate) fn influence(&mut self, u: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let mut t = u.transpose().to_owned();
        self.factor()?.solve_lower_in_place(t.as_mut(), parallelism());
        let mut influence = Mat::zeros(u.nrows(), u.nrows());
        product(influence.as_mut(), Accum::Replace, t.transpose(), t.as_ref(), parallelism());
        Ok(influence)
    }

    /// Multiplies the weights of all rows so far.
    pub(crate) fn decay(&mut self, factor: f64) {
        self.equations.decay(factor);
        self.ledger.decay(factor);
        // The ridge does not decay, so the factor of the sum is not a multiple of this one.
        self.factor = None;
        self.updates = 0;
        self.decayed = true;
    }

    /// Further outputs that were 0 so far.
    pub(crate) fn add_outputs(&mut self, count: usize) {
        self.equations.add_outputs(count);
    }

    /// Knowledge about further nodes: `r` holds the new rows of R, for old and new nodes, `p` those of
    /// P.
    ///
    /// # Errors
    /// If the larger R + γ I is not positive definite in double precision.
    pub fn border(&self, r: MatRef<'_, f64>, p: MatRef<'_, f64>) -> Result<Self> {
        let factor = match &self.factor {
            Some(factor) => factor.border(r, self.ridge, parallelism())?,
            None => self.factored(&self.equations)?.border(r, self.ridge, parallelism())?,
        };
        // Bordering gives what a factor from the beginning would give, but not to the last bit.
        let updates = self.updates + r.nrows() as u64;
        let equations = self.equations.border(r, p);
        let is_fresh = updates <= equations.r().nrows() as u64;
        Ok(Self {
            equations,
            ridge: self.ridge,
            factor: is_fresh.then_some(factor),
            updates: if is_fresh { updates } else { 0 },
            ledger: self.ledger.clone(),
            decayed: self.decayed,
        })
    }

    /// The knowledge of disjoint sets of rows, about the same nodes and outputs, together.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.equations.merge(&other.equations);
        self.ledger.merge(&other.ledger);
        self.decayed |= other.decayed;
        self.factor = None;
        self.updates = 0;
    }

    /// |(R + γ I) W - P| / |P|: how well W solves the equations.
    pub(crate) fn residual(&self, w: MatRef<'_, f64>) -> f64 {
        let r = self.equations.r();
        let full =
            Mat::from_fn(r.nrows(), r.ncols(), |i, j| if i >= j { r[(i, j)] } else { r[(j, i)] });
        let mut residual = w * faer::Scale(self.ridge) - self.equations.p();
        product(residual.as_mut(), Accum::Add, full.as_ref(), w, parallelism());
        let size = squared_norm(self.equations.p());
        if size > 0.0 { (squared_norm(residual.as_ref()) / size).sqrt() } else { 0.0 }
    }
}

/// The rows of U as columns, each times the root of its weight.
fn weighted_columns(u: MatRef<'_, f64>, weights: &[f64]) -> Mat<f64> {
    let mut v = u.transpose().to_owned();
    for (column, weight) in v.as_mut().col_iter_mut().zip(weights) {
        let root = weight.sqrt();
        column.iter_mut().for_each(|value| *value *= root);
    }
    v
}
