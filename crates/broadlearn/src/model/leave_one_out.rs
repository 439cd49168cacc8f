//! What a model says of its own rows without having learnt them, in closed form.
//!
//! With A = R + γ I and q_i = u_i A^-1 u_i', a row of weight λ_i has the leverage h_i = λ_i q_i, and
//! without it (the weights of the others as they are) its residual is e_i / (1 - h_i) and
//!
//! ```text
//! W_(-i) = W - A^-1 u_i' λ_i e_i / (1 - h_i)
//! ```
//!
//! Residuals and changes of an ensemble are the means of those of its members.

use super::ensemble::Mean;
use super::learn::mean_of;
use super::rows::Labelled;
use super::{Member, Model, Predictions};
use crate::error::Result;
use crate::increment::ledger::fingerprints;
use crate::linalg::{parallelism, product, row_blocks, select_rows};
use crate::progress::{Observer, report};
use faer::{Accum, Mat};

/// Rows as the model sees them without having learnt them.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// What a model without the row says of it.
    pub predictions: Predictions,
    /// |y - f| of these predictions, in units of the scaled target.
    pub distances: Vec<f64>,
    /// The share of each row in its own prediction; 0 for a row that was not learnt. The mean over the
    /// members.
    pub leverage: Vec<f64>,
    /// The weight with which it was learnt, the user's multiplied in; `None` if it was not. The mean
    /// over the members.
    pub weights: Vec<Option<f64>>,
}

impl Model {
    /// Predicts every row without itself: exactly what a model gives that has forgotten the row, for
    /// n L^2 flops in all. Rows that the model has not learnt are simply predicted.
    ///
    /// # Errors
    /// Rows that do not fit the schema, a compact model, `Interrupted`.
    pub fn leave_one_out(
        &self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<LeftOut> {
        rows.check(self.schema())?;
        let (mut mean, mut leverage, mut weights) = (Mean::new(), Vec::new(), Vec::new());
        self.each(observer, |member, observer| {
            let left_out = member.leave_one_out(rows, observer)?;
            leverage.push(left_out.leverage);
            weights.push(left_out.weights);
            mean.add(left_out.residuals);
            Ok(())
        })?;
        let e = mean.finish();
        let distances = e.row_iter().map(|e| e.squared_norm_l2().sqrt()).collect();
        let predictions = self.predictions(self.first().scaled_targets(rows) - e);
        let weights = (0..rows.x.nrows())
            .map(|row| weights.iter().map(|weights| weights[row]).sum::<Option<f64>>())
            .map(|sum| sum.map(|sum| sum / self.members.len() as f64))
            .collect();
        Ok(LeftOut { predictions, distances, leverage: mean_of(&leverage), weights })
    }

    /// By how much the predictions of all `rows` change, as a root mean square in units of the scaled
    /// target, when one of these `chosen` rows is forgotten: 2 n L flops for each and for each member.
    ///
    /// # Errors
    /// As [`leave_one_out`](Self::leave_one_out).
    pub fn removal_effects(
        &self,
        rows: Labelled<'_>,
        chosen: &[usize],
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>> {
        rows.check(self.schema())?;
        let removals = self.each(observer, |member, _| member.removals(rows, chosen))?;
        let (n, outputs) = (rows.x.nrows(), self.weights().ncols());
        let mut squares = vec![0.0; chosen.len()];
        for range in row_blocks(n) {
            report(observer, "removing rows", range.start as u64, Some(n as u64))?;
            // By output, one column for each of the chosen rows: the sum over the members.
            let mut changes = vec![Mat::<f64>::zeros(range.len(), chosen.len()); outputs];
            for (member, Removals { directions, steps }) in self.members.iter().zip(&removals) {
                let u = member.map.state(member.scaled(rows.x).block(range.clone()).as_ref());
                let mut influence = Mat::zeros(range.len(), chosen.len());
                let directions = directions.as_ref();
                product(influence.as_mut(), Accum::Replace, u.as_ref(), directions, parallelism());
                for (c, change) in changes.iter_mut().enumerate() {
                    for (place, influence) in influence.col_iter().enumerate() {
                        let step = steps[(place, c)];
                        let change = change.as_mut().col_mut(place);
                        change
                            .iter_mut()
                            .zip(influence.iter())
                            .for_each(|(sum, u)| *sum += u * step);
                    }
                }
            }
            for change in &changes {
                for (square, change) in squares.iter_mut().zip(change.col_iter()) {
                    *square += change.squared_norm_l2();
                }
            }
        }
        let count = self.members.len() as f64;
        Ok(squares.iter().map(|square| (square / n as f64).sqrt() / count).collect())
    }
}

/// Rows as a member sees them without having learnt them.
struct Without {
    /// Y - F of these predictions.
    residuals: Mat<f64>,
    leverage: Vec<f64>,
    weights: Vec<Option<f64>>,
}

/// What removing some rows, each by itself, does to a member: W changes by the product of a direction,
/// A^-1 u', and a step, -λ e / (1 - h), of which the sign does not matter here.
struct Removals {
    /// L x rows.
    directions: Mat<f64>,
    /// Rows x C.
    steps: Mat<f64>,
}

impl Member {
    fn leave_one_out(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Without> {
        let factor = self.updatable()?.factor_of_r()?;
        let n = rows.x.nrows();
        let weights = self.weights_on_record(rows)?;
        let mut residuals = self.scaled_targets(rows);
        let mut leverage = vec![0.0; n];
        self.map.visit(&self.scaled(rows.x), |range, u| {
            report(observer, "leaving rows out", range.start as u64, Some(n as u64))?;
            let mut f = Mat::zeros(range.len(), self.w.ncols());
            product(f.as_mut(), Accum::Replace, u, self.w.as_ref(), parallelism());
            let mut t = u.transpose().to_owned();
            factor.solve_lower_in_place(t.as_mut(), parallelism());
            for (place, row) in range.enumerate() {
                let q = t.col(place).squared_norm_l2();
                let h = (weights[row].unwrap_or(0.0) * q).min(1.0 - LEAST_REST);
                leverage[row] = h;
                for c in 0..f.ncols() {
                    residuals[(row, c)] = (residuals[(row, c)] - f[(place, c)]) / (1.0 - h);
                }
            }
            Ok(())
        })?;
        Ok(Without { residuals, leverage, weights })
    }

    fn removals(&self, rows: Labelled<'_>, chosen: &[usize]) -> Result<Removals> {
        let factor = self.updatable()?.factor_of_r()?;
        let weights = self.weights_on_record(rows)?;
        let u = self.map.state(self.scaled(rows.x).select(chosen).as_ref());
        let mut t = u.transpose().to_owned();
        factor.solve_lower_in_place(t.as_mut(), parallelism());
        let mut steps = select_rows(self.scaled_targets(rows).as_ref(), chosen);
        let mut f = Mat::zeros(chosen.len(), self.w.ncols());
        product(f.as_mut(), Accum::Replace, u.as_ref(), self.w.as_ref(), parallelism());
        for (place, &row) in chosen.iter().enumerate() {
            let weight = weights[row].unwrap_or(0.0);
            let h = (weight * t.col(place).squared_norm_l2()).min(1.0 - LEAST_REST);
            for c in 0..f.ncols() {
                steps[(place, c)] = weight * (steps[(place, c)] - f[(place, c)]) / (1.0 - h);
            }
        }
        let mut directions = u.transpose().to_owned();
        factor.solve_in_place(directions.as_mut(), parallelism());
        Ok(Removals { directions, steps })
    }

    /// The weights with which these rows were learnt; `None` for those that were not.
    fn weights_on_record(&self, rows: Labelled<'_>) -> Result<Vec<Option<f64>>> {
        let ledger = self.updatable()?.ledger();
        let places = ledger.find(&fingerprints(rows.x, rows.targets));
        Ok(places.iter().map(|place| place.map(|place| ledger.weights()[place])).collect())
    }
}

/// 1 - h is positive; below this it is rounding errors.
const LEAST_REST: f64 = 1e-10;
