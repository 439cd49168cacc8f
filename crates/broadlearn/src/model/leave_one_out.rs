//! What a model says of its own rows without having learnt them, in closed form.
//!
//! With A = R + γ I and q_i = u_i A^-1 u_i', a row of weight λ_i has the leverage h_i = λ_i q_i, and
//! without it (the weights of the others as they are) its residual is e_i / (1 - h_i) and
//!
//! ```text
//! W_(-i) = W - A^-1 u_i' λ_i e_i / (1 - h_i)
//! ```
//!
//! Several rows may leave together: with G the products u_i A^-1 u_j' of these rows and Λ their weights, the residuals are
//!
//! ```text
//! (I - G Λ)^-1 e = e + G Λ^1/2 (I - Λ^1/2 G Λ^1/2)^-1 Λ^1/2 e
//! ```
//!
//! Residuals and changes of an ensemble are the means of those of its members.

use super::ensemble::Mean;
use super::learn::mean_of;
use super::rows::{Kept, Labelled};
use super::{Member, Model, Predictions};
use crate::error::Result;
use crate::increment::ledger::{Index, fingerprints};
use crate::linalg::{parallelism, product, row_blocks, scale_rows};
use crate::progress::{Observer, report, unobserved};
use crate::solve::factor::Factor;
use faer::{Accum, Mat, MatRef};
use std::borrow::Cow;

/// Rows as the model sees them without having learnt them.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// What a model without the row says of it.
    pub predictions: Predictions,
    /// |y - f| of these predictions, in units of the scaled target; of 0/1 and probabilities, if the model has a discriminant.
    pub distances: Vec<f64>,
    /// How much further off than usual predictions of rows like each are ([`Model::spreads`]).
    pub spreads: Vec<f64>,
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
        self.leaving_out()?.next_rows(rows, observer)
    }

    /// The same, but a row leaves together with all rows that are equal to it: a model that has learnt its copy has seen it.
    pub(super) fn leave_equal_rows_out(
        &self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<LeftOut> {
        rows.check(self.schema())?;
        let leaving = self.leaving_out()?;
        let prints = fingerprints(rows.x, rows.targets);
        let weights: Vec<_> =
            leaving.members.iter().map(|(_, index)| index.totals(&prints)).collect();
        leaving.predict(rows, &weights, observer)
    }

    /// What a model says of rows that has learnt none of the rows in the same fold, in units of the scaled target: n_f^2 L flops for a fold of
    /// n_f rows and each member.
    pub(super) fn leave_folds_out(
        &self,
        rows: Labelled<'_>,
        folds: &[usize],
        observer: &mut Observer<'_>,
    ) -> Result<Mat<f64>> {
        let leaving = self.leaving_out()?;
        let mut outputs = self.first().scaled_targets(rows);
        let last = folds.iter().copied().max().unwrap_or(0);
        for fold in 0..=last {
            report(observer, "leaving folds out", fold as u64, Some(last as u64 + 1))?;
            let places: Vec<usize> = (0..folds.len()).filter(|&row| folds[row] == fold).collect();
            let kept = Kept::select(rows, &places);
            let rows = kept.rows();
            let prints = fingerprints(rows.x, rows.targets);
            let mut mean = Mean::new();
            for (member, (factor, index)) in self.members.iter().zip(&leaving.members) {
                mean.add(member.leave_together(rows, factor, &index.totals(&prints))?);
            }
            let residuals = mean.finish();
            for (place, row) in places.into_iter().enumerate() {
                let into = outputs.row_mut(row).iter_mut();
                into.zip(residuals.row(place).iter()).for_each(|(into, e)| *into -= e);
            }
        }
        Ok(outputs)
    }

    /// The same as [`leave_one_out`](Self::leave_one_out) for rows that pass by in blocks.
    ///
    /// # Errors
    /// A compact model.
    pub fn leaving_out(&self) -> Result<LeavingOut<'_>> {
        let mut members = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let knowledge = member.updatable()?;
            members.push((knowledge.factor_of_r()?, knowledge.ledger().index()));
        }
        Ok(LeavingOut { model: self, members })
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
        let mut removals = Removals::new(self);
        if let Some((_, more)) = self.leaving_out()?.next_chosen(rows, chosen)? {
            removals.append(more);
        }
        removals.see(rows.x, observer)?;
        Ok(removals.effects())
    }
}

impl LeftOut {
    /// The same with these probabilities of the classes in place of the outputs.
    pub(super) fn with_probabilities(self, probabilities: Mat<f64>, targets: Mat<f64>) -> Self {
        let distances = lengths(&(targets - &probabilities));
        let predictions = Predictions { outputs: probabilities, ..self.predictions };
        Self { predictions, distances, ..self }
    }
}

/// Of rows.
fn lengths(rows: &Mat<f64>) -> Vec<f64> {
    rows.row_iter().map(|row| row.squared_norm_l2().sqrt()).collect()
}

/// A model that is about to predict rows without themselves, block by block: its factors, and where its rows are on
/// record.
pub struct LeavingOut<'a> {
    model: &'a Model,
    members: Vec<(Cow<'a, Factor>, Index<'a>)>,
}

impl<'a> LeavingOut<'a> {
    /// Predicts the next rows. If equal rows were learnt with different weights, the latest of them comes first, over
    /// all blocks.
    ///
    /// # Errors
    /// Rows that do not fit the schema, `Interrupted`.
    pub fn next_rows(
        &mut self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<LeftOut> {
        rows.check_shape(self.model.schema())?;
        let weights = self.weights_on_record(rows);
        self.predict(rows, &weights, observer)
    }

    /// Predicts only some of the next rows, and prepares their removal; nothing if there are none.
    ///
    /// # Errors
    /// As [`next_rows`](Self::next_rows).
    pub fn next_chosen(
        &mut self,
        rows: Labelled<'_>,
        chosen: &[usize],
    ) -> Result<Option<(LeftOut, Removals<'a>)>> {
        rows.check_shape(self.model.schema())?;
        let mut weights = self.weights_on_record(rows);
        if chosen.is_empty() {
            return Ok(None);
        }
        for weights in &mut weights {
            *weights = chosen.iter().map(|&row| weights[row]).collect();
        }
        let kept = Kept::select(rows, chosen);
        let rows = kept.rows();
        let left_out = self.predict(rows, &weights, &mut unobserved)?;
        let mut removals = Removals::new(self.model);
        removals.squares = vec![0.0; chosen.len()];
        let members = self.model.members.iter().zip(&self.members).zip(&weights);
        removals.members = members
            .map(|((member, (factor, _)), weights)| member.removals(rows, factor, weights))
            .collect();
        Ok(Some((left_out, removals)))
    }

    /// Begins another pass over the rows.
    pub fn restart(&mut self) {
        self.members.iter_mut().for_each(|(_, index)| index.restart());
    }

    fn predict(
        &self,
        rows: Labelled<'_>,
        weights: &[Vec<Option<f64>>],
        observer: &mut Observer<'_>,
    ) -> Result<LeftOut> {
        let (mut mean, mut leverage) = (Mean::new(), Vec::new());
        let mut known = self.members.iter().zip(weights);
        self.model.each(observer, |member, observer| {
            let Some(((factor, _), weights)) = known.next() else { return Ok(()) };
            let (residuals, own) = member.leave_one_out(rows, factor, weights, observer)?;
            leverage.push(own);
            mean.add(residuals);
            Ok(())
        })?;
        let e = mean.finish();
        let targets = self.model.first().scaled_targets(rows);
        let predictions = self.model.predictions(&targets - &e);
        let distances = match self.model.discriminant {
            None => lengths(&e),
            Some(_) => lengths(&(targets - predictions.values())),
        };
        let spreads = self.model.spreads_of(rows.x, predictions.values().as_ref());
        let weights = (0..rows.x.nrows())
            .map(|row| weights.iter().map(|weights| weights[row]).sum::<Option<f64>>())
            .map(|sum| sum.map(|sum| sum / self.members.len() as f64))
            .collect();
        Ok(LeftOut { predictions, distances, spreads, leverage: mean_of(&leverage), weights })
    }

    /// By member: the weights with which these rows were learnt; `None` for those that were not.
    fn weights_on_record(&mut self, rows: Labelled<'_>) -> Vec<Vec<Option<f64>>> {
        let prints = fingerprints(rows.x, rows.targets);
        self.members.iter_mut().map(|(_, index)| index.weights(&prints)).collect()
    }
}

/// What forgetting some rows, each by itself, changes in the predictions of rows that pass by.
pub struct Removals<'a> {
    model: &'a Model,
    members: Vec<Directions>,
    /// For each of the rows to forget, the sum of squared changes.
    squares: Vec<f64>,
    seen: usize,
}

/// The same for one member: W changes by the product of a direction, A^-1 u', and a step, -λ e / (1 - h), of which the
/// sign does not matter here.
struct Directions {
    /// L x rows.
    directions: Mat<f64>,
    /// Rows x C.
    steps: Mat<f64>,
}

impl<'a> Removals<'a> {
    /// No row to forget yet.
    pub fn new(model: &'a Model) -> Self {
        Self { model, members: Vec::new(), squares: Vec::new(), seen: 0 }
    }

    /// Adds further rows to forget, before any were [seen](Self::see).
    pub fn append(&mut self, more: Self) {
        self.squares.extend(more.squares);
        if self.members.is_empty() {
            self.members = more.members;
            return;
        }
        for (own, more) in self.members.iter_mut().zip(more.members) {
            own.append(&more);
        }
    }

    /// Takes note of what the removals change for these inputs.
    ///
    /// # Errors
    /// `Interrupted`.
    pub fn see(&mut self, x: MatRef<'_, f64>, observer: &mut Observer<'_>) -> Result<()> {
        let (n, outputs, count) = (x.nrows(), self.model.weights().ncols(), self.squares.len());
        self.seen += n;
        if count == 0 {
            return Ok(());
        }
        for range in row_blocks(n) {
            report(observer, "removing rows", range.start as u64, Some(n as u64))?;
            // By output, one column for each of the chosen rows: the sum over the members.
            let mut changes = vec![Mat::<f64>::zeros(range.len(), count); outputs];
            for (member, Directions { directions, steps }) in
                self.model.members.iter().zip(&self.members)
            {
                let u = member.map.state(member.scaled(x).block(range.clone()).as_ref());
                let mut influence = Mat::zeros(range.len(), count);
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
                for (square, change) in self.squares.iter_mut().zip(change.col_iter()) {
                    *square += change.squared_norm_l2();
                }
            }
        }
        Ok(())
    }

    /// For each of the rows, the root mean square of the changes, in units of the scaled target.
    pub fn effects(&self) -> Vec<f64> {
        let count = self.model.members.len() as f64;
        let n = self.seen as f64;
        self.squares.iter().map(|square| (square / n).sqrt() / count).collect()
    }
}

impl Directions {
    fn append(&mut self, more: &Self) {
        let (l, k) = (self.directions.nrows(), self.directions.ncols());
        let more_rows = more.steps.nrows();
        self.directions.resize_with(l, k + more_rows, |i, j| more.directions[(i, j - k)]);
        self.steps.resize_with(k + more_rows, more.steps.ncols(), |i, j| more.steps[(i - k, j)]);
    }
}

impl Member {
    /// The residuals of rows without themselves, and their leverages.
    fn leave_one_out(
        &self,
        rows: Labelled<'_>,
        factor: &Factor,
        weights: &[Option<f64>],
        observer: &mut Observer<'_>,
    ) -> Result<(Mat<f64>, Vec<f64>)> {
        let n = rows.x.nrows();
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
        Ok((residuals, leverage))
    }

    /// The residuals of rows that leave together.
    fn leave_together(
        &self,
        rows: Labelled<'_>,
        factor: &Factor,
        weights: &[Option<f64>],
    ) -> Result<Mat<f64>> {
        let n = rows.x.nrows();
        let u = self.map.state(self.scaled(rows.x).block(0..n).as_ref());
        let mut f = Mat::zeros(n, self.w.ncols());
        product(f.as_mut(), Accum::Replace, u.as_ref(), self.w.as_ref(), parallelism());
        let e = self.scaled_targets(rows) - f;
        let mut t = u.transpose().to_owned();
        factor.solve_lower_in_place(t.as_mut(), parallelism());
        let mut g = Mat::zeros(n, n);
        product(g.as_mut(), Accum::Replace, t.transpose(), t.as_ref(), parallelism());
        let roots: Vec<f64> = weights.iter().map(|weight| weight.unwrap_or(0.0).sqrt()).collect();
        let rest = Mat::from_fn(n, n, |i, j| {
            f64::from(u8::from(i == j)) - roots[i] * g[(i, j)] * roots[j]
        });
        let mut right = e.clone();
        scale_rows(right.as_mut(), &roots);
        let rest = Factor::new(rest, LEAST_REST, parallelism())?;
        let mut right = rest.solve(right.as_ref(), parallelism());
        scale_rows(right.as_mut(), &roots);
        let mut residuals = e;
        product(residuals.as_mut(), Accum::Add, g.as_ref(), right.as_ref(), parallelism());
        Ok(residuals)
    }

    /// What forgetting each of these rows would do.
    fn removals(&self, rows: Labelled<'_>, factor: &Factor, weights: &[Option<f64>]) -> Directions {
        let n = rows.x.nrows();
        let u = self.map.state(self.scaled(rows.x).block(0..n).as_ref());
        let mut t = u.transpose().to_owned();
        factor.solve_lower_in_place(t.as_mut(), parallelism());
        let mut steps = self.scaled_targets(rows);
        let mut f = Mat::zeros(n, self.w.ncols());
        product(f.as_mut(), Accum::Replace, u.as_ref(), self.w.as_ref(), parallelism());
        for row in 0..n {
            let weight = weights[row].unwrap_or(0.0);
            let h = (weight * t.col(row).squared_norm_l2()).min(1.0 - LEAST_REST);
            for c in 0..f.ncols() {
                steps[(row, c)] = weight * (steps[(row, c)] - f[(row, c)]) / (1.0 - h);
            }
        }
        let mut directions = u.transpose().to_owned();
        factor.solve_in_place(directions.as_mut(), parallelism());
        Directions { directions, steps }
    }
}

/// 1 - h is positive; below this it is rounding errors.
const LEAST_REST: f64 = 1e-10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::data::Targets;

    #[test]
    fn folds_that_are_left_out_are_folds_that_were_forgotten() {
        let x = Mat::from_fn(60, 2, |i, j| ((i * (7 + j) + j) as f64).sin());
        let classes: Vec<u32> = (0..60).map(|i| (i * i % 7 % 3) as u32).collect();
        let settings = Settings::new().enhancement_nodes(20).sigma(0.7).ridge(0.01).members(2);
        let model = settings.fit_classes(&x, &classes).expect("a model");
        let targets = Targets::Classes(classes);
        let rows = Labelled { x: x.as_ref(), targets: &targets, weights: None };
        let folds: Vec<usize> = (0..60).map(|row| row % 7 % 4).collect();
        let outputs = model.leave_folds_out(rows, &folds, &mut unobserved).expect("outputs");
        for fold in 0..4 {
            let places: Vec<usize> = (0..60).filter(|row| folds[*row] == fold).collect();
            let kept = Kept::select(rows, &places);
            let mut without = model.clone();
            let weights = kept.rows();
            without.forget(Labelled { weights: None, ..weights }, &mut unobserved).expect("known");
            let found = without.predict(weights.x).expect("predictions");
            for (place, row) in places.into_iter().enumerate() {
                for class in 0..3 {
                    let off = (found.values()[(place, class)] - outputs[(row, class)]).abs();
                    assert!(off < 1e-8, "row {row}: {off:e}");
                }
            }
        }
        let alone: Vec<usize> = (0..60).collect();
        let outputs = model.leave_folds_out(rows, &alone, &mut unobserved).expect("outputs");
        let left_out = model.leave_one_out(rows, &mut unobserved).expect("predictions");
        assert!((outputs - left_out.predictions.values()).norm_max() < 1e-9);
    }
}
