//! What a model says of its own rows without having learnt them, in closed form.
//!
//! With A = R + γ I and q_i = u_i A^-1 u_i', a row of weight λ_i has the leverage h_i = λ_i q_i, and
//! without it (the weights of the others as they are) its residual is e_i / (1 - h_i) and
//!
//! ```text
//! W_(-i) = W - A^-1 u_i' λ_i e_i / (1 - h_i)
//! ```

use super::rows::Labelled;
use super::{Model, Predictions};
use crate::error::Result;
use crate::increment::ledger::fingerprints;
use crate::linalg::{parallelism, product};
use crate::progress::{Observer, report};
use faer::{Accum, Mat};

/// Rows as the model sees them without having learnt them.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// What a model without the row says of it.
    pub predictions: Predictions,
    /// |y - f| of these predictions, in units of the scaled target.
    pub distances: Vec<f64>,
    /// The share of each row in its own prediction; 0 for a row that was not learnt.
    pub leverage: Vec<f64>,
    /// The weight with which it was learnt, the user's multiplied in; `None` if it was not.
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
        rows.check(&self.schema)?;
        let knowledge = self.updatable()?;
        let factor = knowledge.factor_of_r()?;
        let n = rows.x.nrows();
        let places = knowledge.ledger().find(&fingerprints(rows.x, rows.targets));
        let known = knowledge.ledger().weights();
        let weights: Vec<Option<f64>> =
            places.iter().map(|place| place.map(|place| known[place])).collect();

        let y = self.scaled_targets(rows);
        let mut outputs = Mat::zeros(n, self.w.ncols());
        let (mut distances, mut leverage) = (vec![0.0; n], vec![0.0; n]);
        self.map.visit(&self.scaled(rows.x), |range, u| {
            report(observer, "leaving rows out", range.start as u64, Some(n as u64))?;
            let mut f = outputs.as_mut().subrows_mut(range.start, range.len());
            product(f.as_mut(), Accum::Replace, u, self.w.as_ref(), parallelism());
            let mut t = u.transpose().to_owned();
            factor.solve_lower_in_place(t.as_mut(), parallelism());
            for (place, row) in range.enumerate() {
                let q = t.col(place).squared_norm_l2();
                let h = (weights[row].unwrap_or(0.0) * q).min(1.0 - LEAST_REST);
                leverage[row] = h;
                let mut square = 0.0;
                for c in 0..f.ncols() {
                    let e = (y[(row, c)] - f[(place, c)]) / (1.0 - h);
                    f[(place, c)] = y[(row, c)] - e;
                    square += e * e;
                }
                distances[row] = square.sqrt();
            }
            Ok(())
        })?;
        Ok(LeftOut { predictions: self.predictions(outputs), distances, leverage, weights })
    }

    /// By how much the predictions of all `rows` change, as a root mean square in units of the scaled
    /// target, when one of these `chosen` rows is forgotten: 2 n L flops for each.
    ///
    /// # Errors
    /// As [`leave_one_out`](Self::leave_one_out).
    pub fn removal_effects(
        &self,
        rows: Labelled<'_>,
        chosen: &[usize],
        left_out: &LeftOut,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>> {
        let knowledge = self.updatable()?;
        let factor = knowledge.factor_of_r()?;
        let scaled = self.scaled(rows.x);
        let mut a = self.map.state(scaled.select(chosen).as_ref()).transpose().to_owned();
        factor.solve_in_place(a.as_mut(), parallelism());
        let mut squares = vec![0.0; chosen.len()];
        let n = rows.x.nrows();
        self.map.visit(&scaled, |range, u| {
            report(observer, "removing rows", range.start as u64, Some(n as u64))?;
            let mut influence = Mat::zeros(range.len(), chosen.len());
            product(influence.as_mut(), Accum::Replace, u, a.as_ref(), parallelism());
            for (square, column) in squares.iter_mut().zip(influence.col_iter()) {
                *square += column.squared_norm_l2();
            }
            Ok(())
        })?;
        let effect = |(&row, square): (&usize, f64)| {
            let weight = left_out.weights[row].unwrap_or(0.0);
            weight * left_out.distances[row] * (square / n as f64).sqrt()
        };
        Ok(chosen.iter().zip(squares).map(effect).collect())
    }
}

/// 1 - h is positive; below this it is rounding errors.
const LEAST_REST: f64 = 1e-10;
