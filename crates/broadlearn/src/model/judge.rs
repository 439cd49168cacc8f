//! What a model thinks of rows before it learns them.

use super::rows::{Labelled, target_matrix};
use super::{Model, Predictions};
use crate::data::{TargetSchema, Targets};
use crate::error::{Error, Result};
use crate::linalg::{parallelism, product, slice_of_column, squared_norm};
use crate::preprocess::ScaledRows;
use crate::progress::{Observer, report};
use crate::solve::{Loss, RobustLoss};
use faer::{Accum, Mat, MatRef};

/// Kernel of the plausibility in units of the spread: at 0.1, rows beyond 6.4 spreads are implausible.
const PLAUSIBLE: f64 = 3.0;

/// What a model thinks of some rows.
pub(super) struct Judged {
    /// U W for each row, before the row is learnt.
    pub(super) outputs: Mat<f64>,
    /// The weights of the model's loss.
    pub(super) trust: Vec<f64>,
    /// The weights of a kernel that is not much wider than the residuals.
    pub(super) plausibility: Vec<f64>,
    /// |U|^2 + |Y|^2: with the weights it bounds what the rows add to R and P.
    pub(super) size: f64,
}

impl Model {
    /// Judges all rows by the model as it is.
    pub(super) fn judge(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Judged> {
        let n = rows.x.nrows();
        let inputs = self.scaled(rows.x);
        let y = self.scaled_targets(rows);
        let mut outputs = Mat::zeros(n, self.w.ncols());
        let mut size = squared_norm(y.as_ref());
        self.map.visit(&inputs, |range, u| {
            report(observer, "weighing rows", range.start as u64, Some(n as u64))?;
            size += squared_norm(u);
            let block = outputs.as_mut().subrows_mut(range.start, range.len());
            product(block, Accum::Replace, u, self.w.as_ref(), parallelism());
            Ok(())
        })?;
        check_size(size)?;
        let e = y - &outputs;
        let mut trust: Vec<f64> = e.row_iter().map(|row| row.squared_norm_l2()).collect();
        let mut plausibility = trust.clone();
        self.report.loss.weigh(&mut trust);
        self.plausible().weigh(&mut plausibility);
        let unknown = self.unknown_outputs();
        if let (Targets::Classes(codes), true) = (rows.targets, unknown.contains(&true)) {
            // Nothing is known of these classes: their rows cannot be judged.
            for row in (0..n).filter(|&row| unknown[codes[row] as usize]) {
                (trust[row], plausibility[row]) = (1.0, 1.0);
            }
        }
        Ok(Judged { outputs, trust, plausibility, size })
    }

    /// Judges each row by the model that has learnt the rows before it, those less plausible than
    /// `quarantine` left out, without any change of the model.
    ///
    /// What row i changes in the output of row j is K_ji / (K_ii + 1 / weight_i) times the residual
    /// of row i, where K = U (R + γ I)^-1 U' is what remains after the rows before it. n L^2 flops
    /// for K, n^3 / 3 for the rest.
    pub(super) fn judge_one_by_one(
        &mut self,
        rows: Labelled<'_>,
        quarantine: f64,
    ) -> Result<Judged> {
        let n = rows.x.nrows();
        let u = self.map.state(self.scaled(rows.x).block(0..n).as_ref());
        let y = self.scaled_targets(rows);
        let size = squared_norm(u.as_ref()) + squared_norm(y.as_ref());
        check_size(size)?;
        let mut outputs = Mat::zeros(n, self.w.ncols());
        product(outputs.as_mut(), Accum::Replace, u.as_ref(), self.w.as_ref(), parallelism());
        let mut unknown = self.unknown_outputs();
        let (loss, plausible) = (self.report.loss, self.plausible());
        let Some(knowledge) = &mut self.knowledge else { return Err(Error::model("no R and P")) };
        let mut k = knowledge.influence(u.as_ref())?;

        let (mut trust, mut plausibility) = (vec![1.0; n], vec![1.0; n]);
        let mut column = vec![0.0; n];
        for i in 0..n {
            let e: Vec<f64> = (0..y.ncols()).map(|c| y[(i, c)] - outputs[(i, c)]).collect();
            let class = match rows.targets {
                Targets::Classes(codes) => Some(codes[i] as usize),
                Targets::Values(_) => None,
            };
            if class.is_none_or(|class| !unknown[class]) {
                let square: f64 = e.iter().map(|e| e * e).sum();
                for (loss, weight) in [(loss, &mut trust[i]), (plausible, &mut plausibility[i])] {
                    *weight = square;
                    loss.weigh(std::slice::from_mut(weight));
                }
            }
            let weight = trust[i] * rows.weights.map_or(1.0, |weights| weights[i]);
            if plausibility[i] < quarantine || weight <= 0.0 {
                continue;
            }
            if let Some(class) = class {
                unknown[class] = false;
            }
            let scale = 1.0 / (k[(i, i)] + 1.0 / weight);
            for j in i + 1..n {
                column[j] = k[(j, i)];
            }
            for j in i + 1..n {
                let gain = scale * column[j];
                e.iter().enumerate().for_each(|(c, e)| outputs[(j, c)] += gain * e);
                // Only the lower triangle is read.
                let below = &mut slice_of_column(k.as_mut().col_mut(j))[j..];
                below.iter_mut().zip(&column[j..]).for_each(|(k, other)| *k -= gain * other);
            }
        }
        Ok(Judged { outputs, trust, plausibility, size })
    }

    /// The weight that the model gives to every row now, without the user's.
    pub(super) fn trust(
        &self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>> {
        Ok(self.judge(rows, observer)?.trust)
    }

    /// The loss whose weights are called plausibility: correntropy, whatever the loss of the model is,
    /// because others never call a row impossible, or do so at once.
    fn plausible(&self) -> Loss {
        let widest = PLAUSIBLE * self.report.spread;
        let sigma = match self.report.loss {
            Loss::Robust { kind: RobustLoss::Correntropy, sigma } => sigma.min(widest),
            // The sigma of another loss is the size of no such kernel.
            _ => widest,
        };
        // Residuals that are all 0 in training leave nothing to compare with.
        if sigma > 0.0 { RobustLoss::Correntropy.at(sigma) } else { Loss::Squared }
    }

    /// Outputs in the units of the target.
    pub(super) fn predictions(&self, mut outputs: Mat<f64>) -> Predictions {
        if matches!(self.schema.target, TargetSchema::Regression { .. }) {
            self.target_scaler.undo(outputs.as_mut());
        }
        Predictions { task: self.task(), outputs }
    }

    /// Scaled inputs of some rows.
    pub(super) fn scaled<'a>(&'a self, x: MatRef<'a, f64>) -> ScaledRows<'a> {
        ScaledRows::new(x, &self.input_scaler)
    }

    /// Y of some rows, scaled.
    pub(super) fn scaled_targets(&self, rows: Labelled<'_>) -> Mat<f64> {
        let mut y = target_matrix(rows.targets, self.schema.target.outputs());
        self.target_scaler.apply(y.as_mut());
        y
    }

    /// Outputs of classes of which no row was learnt, or all were forgotten but for rounding errors.
    fn unknown_outputs(&self) -> Vec<bool> {
        let classes = matches!(self.schema.target, TargetSchema::Classification { .. });
        match &self.knowledge {
            Some(knowledge) if classes => {
                let p = knowledge.equations().p();
                let sizes: Vec<f64> = p.col_iter().map(|column| column.norm_max()).collect();
                let largest = sizes.iter().copied().fold(0.0, f64::max);
                sizes.iter().map(|&size| size <= 1e-12 * largest).collect()
            }
            _ => vec![false; self.w.ncols()],
        }
    }
}

/// What rows add to R and P must stay far from overflow: NaN in R would be the end of a model.
pub(super) fn check_size(size: f64) -> Result<()> {
    if size < 1e200 {
        return Ok(());
    }
    Err(Error::data("inputs, targets or weights so large that their squares overflow")
        .expected("values of the size of those in training"))
}
