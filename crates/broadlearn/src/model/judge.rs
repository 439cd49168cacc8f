//! What a model thinks of rows before it learns them.
//!
//! Each member weighs a row by its own residual, as it does its other rows. Whether the row is plausible
//! at all is decided once, by the mean of the outputs.

use super::ensemble::Mean;
use super::rows::{Labelled, target_matrix};
use super::{Member, Model};
use crate::data::{TargetSchema, Targets};
use crate::error::{Error, Result};
use crate::linalg::{parallelism, product, slice_of_column, squared_norm};
use crate::progress::{Observer, report};
use crate::solve::{Loss, RobustLoss};
use faer::{Accum, Mat};

/// Kernel of the plausibility in units of the spread: at 0.1, rows beyond 6.4 spreads are implausible.
const PLAUSIBLE: f64 = 3.0;

/// What a model thinks of some rows.
pub(super) struct Judged {
    /// The outputs for each row, before the row is learnt.
    pub(super) outputs: Mat<f64>,
    /// By member: the weights of the loss.
    pub(super) trust: Vec<Vec<f64>>,
    /// The weights of a kernel that is not much wider than the residuals.
    pub(super) plausibility: Vec<f64>,
    /// |U|^2 + |Y|^2 of the member where it is largest: with the weights it bounds what the rows add
    /// to R and P.
    pub(super) size: f64,
}

/// What a member thinks of some rows.
struct Weighed {
    /// U W.
    outputs: Mat<f64>,
    trust: Vec<f64>,
    size: f64,
}

impl Model {
    /// Judges all rows by the model as it is.
    pub(super) fn judge(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Judged> {
        let (mut mean, mut trust, mut size) = (Mean::new(), Vec::new(), 0.0_f64);
        self.each(observer, |member, observer| {
            let weighed = member.weigh(rows, observer)?;
            size = size.max(weighed.size);
            trust.push(weighed.trust);
            mean.add(weighed.outputs);
            Ok(())
        })?;
        let outputs = mean.finish();
        let e = self.first().scaled_targets(rows) - &outputs;
        let mut plausibility: Vec<f64> = e.row_iter().map(|row| row.squared_norm_l2()).collect();
        self.plausible().weigh(&mut plausibility);
        let unknown: Vec<Vec<bool>> = self.members.iter().map(Member::unknown_outputs).collect();
        for (row, plausibility) in plausibility.iter_mut().enumerate() {
            if class(rows, row).is_some_and(|class| unknown.iter().any(|unknown| unknown[class])) {
                *plausibility = 1.0;
            }
        }
        Ok(Judged { outputs, trust, plausibility, size })
    }

    /// Judges each row by the model that has learnt the rows before it, those less plausible than
    /// `quarantine` left out, without any change of the model. n L^2 + n^3 / 3 flops for each member.
    pub(super) fn judge_one_by_one(
        &mut self,
        rows: Labelled<'_>,
        quarantine: f64,
    ) -> Result<Judged> {
        let n = rows.x.nrows();
        let y = self.first().scaled_targets(rows);
        let plausible = self.plausible();
        let mut members = self
            .members
            .iter_mut()
            .map(|member| member.foresee(rows, &y))
            .collect::<Result<Vec<Foresight>>>()?;
        let size = members.iter().map(|member| member.size).fold(0.0, f64::max);

        let mut plausibility = vec![1.0; n];
        let mut trust = vec![vec![1.0; n]; members.len()];
        for i in 0..n {
            let class = class(rows, i);
            let knows = |member: &Foresight| class.is_none_or(|class| !member.unknown[class]);
            if members.iter().all(knows) {
                let count = members.len() as f64;
                let residual = |c: usize| {
                    let sum: f64 =
                        members.iter().map(|member| y[(i, c)] - member.outputs[(i, c)]).sum();
                    sum / count
                };
                let square: f64 = (0..y.ncols()).map(residual).map(|e| e * e).sum();
                plausibility[i] = weight_of(plausible, square);
            }
            for (member, trust) in members.iter_mut().zip(&mut trust) {
                let e: Vec<f64> =
                    (0..y.ncols()).map(|c| y[(i, c)] - member.outputs[(i, c)]).collect();
                if knows(member) {
                    trust[i] = weight_of(member.loss, e.iter().map(|e| e * e).sum());
                }
                let weight = trust[i] * rows.weights.map_or(1.0, |weights| weights[i]);
                if plausibility[i] < quarantine || weight <= 0.0 {
                    continue;
                }
                if let Some(class) = class {
                    member.unknown[class] = false;
                }
                member.take_in(i, &e, weight);
            }
        }
        let mut mean = Mean::new();
        members.into_iter().for_each(|member| mean.add(member.outputs));
        Ok(Judged { outputs: mean.finish(), trust, plausibility, size })
    }

    /// The loss whose weights are called plausibility: correntropy, whatever the loss of the model is,
    /// because others never call a row impossible, or do so at once.
    fn plausible(&self) -> Loss {
        let sizes = self.members.iter().map(Member::plausible_size);
        let sigma = sizes.sum::<f64>() / self.members.len() as f64;
        // Residuals that are all 0 in training leave nothing to compare with.
        if sigma > 0.0 { RobustLoss::Correntropy.at(sigma) } else { Loss::Squared }
    }
}

impl Member {
    /// Weighs all rows by the member as it is.
    fn weigh(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Weighed> {
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
        self.report.loss.weigh(&mut trust);
        let unknown = self.unknown_outputs();
        for (row, trust) in trust.iter_mut().enumerate() {
            // Nothing is known of some classes: their rows cannot be judged.
            if class(rows, row).is_some_and(|class| unknown[class]) {
                *trust = 1.0;
            }
        }
        Ok(Weighed { outputs, trust, size })
    }

    /// The weight that the member gives to every row now, without the user's.
    pub(super) fn trust(
        &self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>> {
        Ok(self.weigh(rows, observer)?.trust)
    }

    /// What is needed to take in these rows one by one.
    fn foresee(&mut self, rows: Labelled<'_>, y: &Mat<f64>) -> Result<Foresight> {
        let n = rows.x.nrows();
        let u = self.map.state(self.scaled(rows.x).block(0..n).as_ref());
        let size = squared_norm(u.as_ref()) + squared_norm(y.as_ref());
        check_size(size)?;
        let mut outputs = Mat::zeros(n, self.w.ncols());
        product(outputs.as_mut(), Accum::Replace, u.as_ref(), self.w.as_ref(), parallelism());
        let unknown = self.unknown_outputs();
        let loss = self.report.loss;
        let Some(knowledge) = &mut self.knowledge else { return Err(Error::model("no R and P")) };
        let k = knowledge.influence(u.as_ref())?;
        Ok(Foresight { outputs, k, unknown, loss, size, column: vec![0.0; n] })
    }

    /// The kernel size of the plausibility.
    fn plausible_size(&self) -> f64 {
        let widest = PLAUSIBLE * self.report.spread;
        match self.report.loss {
            Loss::Robust { kind: RobustLoss::Correntropy, sigma } => sigma.min(widest),
            // The sigma of another loss is the size of no such kernel.
            _ => widest,
        }
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

/// What a member will say of rows when it has taken in those before them.
///
/// What row i changes in the output of row j is K_ji / (K_ii + 1 / weight_i) times the residual
/// of row i, where K = U (R + γ I)^-1 U' is what remains after the rows before it.
struct Foresight {
    outputs: Mat<f64>,
    k: Mat<f64>,
    /// By output: whether it is one of a class of which no row was learnt.
    unknown: Vec<bool>,
    loss: Loss,
    size: f64,
    /// Room for a column of K.
    column: Vec<f64>,
}

impl Foresight {
    /// Takes in row i, of which `e` is the residual.
    fn take_in(&mut self, i: usize, e: &[f64], weight: f64) {
        let Self { outputs, k, column, .. } = self;
        let n = k.nrows();
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
}

/// The class of a row.
fn class(rows: Labelled<'_>, row: usize) -> Option<usize> {
    match rows.targets {
        Targets::Classes(codes) => Some(codes[row] as usize),
        Targets::Values(_) => None,
    }
}

/// The weight that a loss gives to a residual.
fn weight_of(loss: Loss, mut square: f64) -> f64 {
    loss.weigh(std::slice::from_mut(&mut square));
    square
}

/// What rows add to R and P must stay far from overflow: NaN in R would be the end of a model.
pub(super) fn check_size(size: f64) -> Result<()> {
    if size < 1e200 {
        return Ok(());
    }
    Err(Error::data("inputs, targets or weights so large that their squares overflow")
        .expected("values of the size of those in training"))
}
