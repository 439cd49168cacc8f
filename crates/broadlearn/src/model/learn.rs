//! Learning further rows, forgetting rows, new classes: changes of R, P and W, not of the map.

use super::Model;
use super::rows::{Kept, Labelled, target_matrix};
use crate::data::{TargetSchema, Targets};
use crate::error::{Category, Error, Result};
use crate::increment::ledger::fingerprints;
use crate::increment::{Knowledge, Route};
use crate::linalg::{parallelism, product, row_blocks, squared_norm};
use crate::preprocess::ScaledRows;
use crate::progress::{Observer, report};
use crate::solve::Loss;
use faer::{Accum, Mat, MatRef};
use std::ops::Range;

/// How rows are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// The weight of every earlier row is multiplied by this with each new row; 1 forgets nothing.
    pub forgetting: f64,
    /// Rows that are less plausible than this are left out; 0 leaves none out. The plausibility is
    /// exp(-|e|^2 / 2 k^2), where k is the kernel size, but at most three times the spread of the
    /// training residuals: on clean rows a wide kernel is chosen, which trusts everything.
    pub quarantine: f64,
}

impl Default for Learning {
    fn default() -> Self {
        Self { forgetting: 1.0, quarantine: 0.0 }
    }
}

impl Learning {
    fn check(&self) -> Result<()> {
        if !(self.forgetting > 0.0 && self.forgetting <= 1.0) {
            return Err(Error::setting("forgetting", self.forgetting)
                .expected("a factor above 0 and at most 1, such as 0.999"));
        }
        if !(0.0..1.0).contains(&self.quarantine) {
            return Err(Error::setting("quarantine", self.quarantine)
                .expected("a plausibility from 0 to below 1, such as 0.1"));
        }
        Ok(())
    }
}

/// What came of learning some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The weight that the model gave to each row, between 0 and 1, the user's not multiplied in.
    pub trust: Vec<f64>,
    /// How plausible each row was.
    pub plausibility: Vec<f64>,
    /// Which rows were left out, by number.
    pub quarantined: Vec<usize>,
    /// How the factor was brought up to date; `None` if no row was left to learn.
    pub route: Option<Route>,
}

/// The certificate of rows that were forgotten.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// The fingerprints of the rows.
    pub fingerprints: Vec<u64>,
    /// The weights with which they left, which are those with which they came.
    pub weights: Vec<f64>,
    /// How the factor was brought up to date.
    pub route: Route,
    /// |(R + γ I) W - P| / |P| of what is left: W is the solution without these rows.
    pub residual: f64,
    /// The largest ratio by which a diagonal element of R + γ I shrank: what the rows have left
    /// behind in R is rounding errors, of at most this times 2e-16 of it.
    pub cancellation: f64,
    /// Rows that are left.
    pub rows_left: u64,
}

impl Model {
    /// Learns further rows without the earlier ones: R += U' Λ U, P += U' Λ Y, W = (R + γ I)^-1 P.
    ///
    /// The new rows get the weights that the model gives them now; earlier ones keep theirs. So the
    /// result is that of a fit with these weights from the beginning. Rows of a class of which
    /// nothing was learnt yet cannot be judged and get weight 1. n L^2 flops for n rows, and
    /// L^3 / 3 unless they are few (n < L / 12), in memory for one block of rows.
    ///
    /// ```
    /// use broadlearn::model::Labelled;
    /// use broadlearn::{Settings, data::Targets, faer::Mat, unobserved};
    /// let x = Mat::from_fn(90, 1, |i, _| (i * 7 % 90) as f64);
    /// let y = Mat::from_fn(90, 1, |i, _| (x[(i, 0)] / 9.0).sin());
    /// let settings = Settings::new().squared().ridge(1e-3);
    /// let (first, second) = (x.subrows(0, 60), x.subrows(60, 30));
    /// let mut model = settings.fit_regression(first, y.subrows(0, 60))?;
    /// let targets = Targets::Values(y.subrows(60, 30).to_owned());
    /// let rows = Labelled { x: second, targets: &targets, weights: None };
    /// model.learn(rows, Default::default(), &mut unobserved)?;
    /// assert_eq!(model.rows(), 90);
    /// // The same rows, forgotten again, leave the model as it was.
    /// model.forget(rows, &mut unobserved)?;
    /// assert_eq!(model.rows(), 60);
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Rows that do not fit the schema, a compact model, `Interrupted`; the model is then unchanged.
    pub fn learn(
        &mut self,
        rows: Labelled<'_>,
        learning: Learning,
        observer: &mut Observer<'_>,
    ) -> Result<Learnt> {
        self.check_updatable()?;
        learning.check()?;
        rows.check(&self.schema)?;
        let squares = self.squared_residuals(rows, observer)?;
        let trust = self.weigh(&squares, rows.targets, self.report.loss);
        let widest = PLAUSIBLE * self.report.spread;
        let sigma = match self.report.loss {
            Loss::Squared => widest,
            Loss::Correntropy { sigma } => sigma.min(widest),
        };
        // Residuals that are all 0 in training leave nothing to compare with.
        let judge = if sigma > 0.0 { Loss::Correntropy { sigma } } else { Loss::Squared };
        let plausibility = self.weigh(&squares, rows.targets, judge);
        let user = |row: usize| rows.weights.map_or(1.0, |weights| weights[row]);
        let (quarantined, learnt): (Vec<usize>, Vec<usize>) = (0..trust.len())
            .filter(|&row| user(row) > 0.0)
            .partition(|&row| plausibility[row] < learning.quarantine);
        if learnt.is_empty() {
            return Ok(Learnt { trust, plausibility, quarantined, route: None });
        }
        let kept;
        let rows = if learnt.len() == trust.len() {
            rows
        } else {
            kept = Kept::select(rows, &learnt);
            kept.rows()
        };
        // The row that came last has its full weight.
        let age = |place: usize| (learnt.len() - 1 - place) as f64;
        let weights: Vec<f64> = learnt
            .iter()
            .enumerate()
            .map(|(place, &row)| trust[row] * user(row) * learning.forgetting.powf(age(place)))
            .collect();

        let mut knowledge = self.take_knowledge()?;
        let decay = learning.forgetting.powi(learnt.len().min(i32::MAX as usize) as i32);
        let before = (decay < 1.0).then(|| knowledge.clone());
        if decay < 1.0 {
            knowledge.decay(decay);
        }
        let mut change = || -> Result<(Route, Mat<f64>)> {
            let route = self.change_rows(&mut knowledge, rows, &weights, Sign::Add, observer)?;
            Ok((route, knowledge.solve()?))
        };
        match change() {
            Ok((route, w)) => {
                knowledge.ledger_mut().record(&fingerprints(rows.x, rows.targets), &weights);
                self.knowledge = Some(knowledge);
                self.w = w;
                self.rows += learnt.len() as u64;
                Ok(Learnt { trust, plausibility, quarantined, route: Some(route) })
            }
            Err(error) => {
                self.knowledge = Some(before.unwrap_or(knowledge));
                Err(error)
            }
        }
    }

    /// Forgets rows that it has learnt: they leave with the weights with which they came, so that
    /// the model is the one that never saw them (with the weights of the others as they are).
    ///
    /// # Errors
    /// Rows that it has not learnt, as far as the record or the numbers tell; a compact model; no
    /// row would be left. The model is then unchanged.
    pub fn forget(&mut self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Removal> {
        self.check_updatable()?;
        rows.check(&self.schema)?;
        let kept = Kept::new(rows);
        let rows = kept.rows();
        let prints = fingerprints(rows.x, rows.targets);
        let mut knowledge = self.take_knowledge()?;
        let outcome = self.remove(&mut knowledge, rows, &prints, observer);
        match outcome {
            Ok((w, removal)) => {
                self.w = w;
                self.rows = removal.rows_left;
                self.knowledge = Some(knowledge);
                Ok(removal)
            }
            Err(error) => {
                self.knowledge = Some(knowledge);
                Err(error)
            }
        }
    }

    fn remove(
        &self,
        knowledge: &mut Knowledge,
        rows: Labelled<'_>,
        prints: &[u64],
        observer: &mut Observer<'_>,
    ) -> Result<(Mat<f64>, Removal)> {
        let (weights, places) = self.recorded_weights(knowledge, rows, prints)?;
        let left = knowledge.equations().rows().saturating_sub(prints.len() as u64);
        if left == 0 {
            return Err(Error::data(format!("{} rows, which are all that it knows", prints.len()))
                .expected("rows to be left")
                .advice("delete the model instead"));
        }
        let diagonal = |knowledge: &Knowledge| -> Vec<f64> {
            let r = knowledge.equations().r();
            (0..r.nrows()).map(|i| r[(i, i)]).collect()
        };
        let before = diagonal(knowledge);
        let original = knowledge.clone();
        let ridge = knowledge.ridge();
        let mut change = || -> Result<(Route, Mat<f64>, f64)> {
            let route = self.change_rows(knowledge, rows, &weights, Sign::Remove, observer)?;
            let mut cancellation = 1.0_f64;
            for (before, after) in before.iter().zip(diagonal(knowledge)) {
                // A sum of squares below 0 by more than rounding was not made with these rows.
                if after < -1e-10 * before.max(ridge) {
                    return Err(never_learnt());
                }
                cancellation = cancellation.max((before + ridge) / (after.max(0.0) + ridge));
            }
            let w = knowledge.solve()?;
            Ok((route, w, cancellation))
        };
        match change() {
            Ok((route, w, cancellation)) => {
                knowledge.ledger_mut().strike(&places);
                let residual = knowledge.residual(w.as_ref());
                let fingerprints = prints.to_vec();
                let removal = Removal {
                    fingerprints,
                    weights,
                    route,
                    residual,
                    cancellation,
                    rows_left: left,
                };
                Ok((w, removal))
            }
            Err(error) => {
                *knowledge = original;
                Err(error)
            }
        }
    }

    /// The weights with which these rows came, and their places in the ledger.
    pub(super) fn recorded_weights(
        &self,
        knowledge: &Knowledge,
        rows: Labelled<'_>,
        prints: &[u64],
    ) -> Result<(Vec<f64>, Vec<usize>)> {
        let ledger = knowledge.ledger();
        let places = ledger.find(prints);
        let unknown: Vec<usize> = (0..places.len()).filter(|&row| places[row].is_none()).collect();
        // Without a record the weight is known only where the model never gave weights of its own.
        let by_definition =
            !knowledge.is_complete() && self.report.loss == Loss::Squared && !knowledge.decayed();
        if let (Some(&first), false) = (unknown.first(), by_definition) {
            let place = format!("row {}", first + 1);
            let found = if unknown.len() == 1 {
                "a row that is not on record".into()
            } else {
                format!("a row that is not on record, as are {} others", unknown.len() - 1)
            };
            return Err(if knowledge.is_complete() {
                Error::data(found).at(place).expected(
                    "rows that the model has learnt, with the same inputs and the same target",
                )
            } else {
                Error::data(found)
                    .at(place)
                    .expected(format!(
                        "rows whose weight is on record ({} of {} are)",
                        ledger.len(),
                        knowledge.equations().rows()
                    ))
                    .advice("fit the model anew without these rows")
            });
        }
        let weights = places
            .iter()
            .enumerate()
            .map(|(row, place)| match place {
                Some(place) => ledger.weights()[*place],
                None => rows.weights.map_or(1.0, |weights| weights[row]),
            })
            .collect();
        Ok((weights, places.into_iter().flatten().collect()))
    }

    /// Adds classes of which nothing is known yet: outputs that are 0 until rows of them are learnt.
    /// The other outputs stay as they are.
    ///
    /// # Errors
    /// A regression, a compact model, a class that is already known.
    pub fn add_classes(&mut self, names: &[String]) -> Result<()> {
        self.check_updatable()?;
        let TargetSchema::Classification { classes, .. } = &mut self.schema.target else {
            return Err(Error::data("new classes for a regression").expected("a classification"));
        };
        for (place, name) in names.iter().enumerate() {
            if classes.contains(name) || names[..place].contains(name) {
                return Err(Error::data(format!("class `{name}` a second time"))
                    .expected("classes that are not known yet"));
            }
        }
        classes.extend_from_slice(names);
        let (nodes, outputs) = (self.w.nrows(), self.w.ncols());
        let mut w = Mat::zeros(nodes, outputs + names.len());
        w.subcols_mut(0, outputs).copy_from(&self.w);
        self.w = w;
        self.target_scaler.add_columns(names.len());
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.add_outputs(names.len());
        }
        Ok(())
    }

    /// Keeps only the latest rows on record: for streams without end. Rows that are no longer on
    /// record can only be forgotten by a model of the squared loss.
    pub fn keep_on_record(&mut self, rows: usize) {
        if let Some(knowledge) = &mut self.knowledge {
            knowledge.ledger_mut().keep_latest(rows);
        }
    }

    /// An error unless R and P are there.
    pub(super) fn check_updatable(&self) -> Result<()> {
        if self.knowledge.is_none() {
            return Err(Error::model("a compact model, without R and P")
                .expected("a model that keeps what later changes need")
                .advice("fit it again without --compact"));
        }
        if self.report.ridge.is_none() {
            return Err(Error::model("a model by pseudo-inverse")
                .expected("a model with a ridge, whose equations can be updated")
                .advice("fit it again with --ridge, for example 1e-8"));
        }
        Ok(())
    }

    fn take_knowledge(&mut self) -> Result<Knowledge> {
        self.knowledge.take().ok_or_else(|| Error::model("a compact model, without R and P"))
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

    /// |y - f|^2 of every row.
    fn squared_residuals(
        &self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>> {
        let (n, inputs) = (rows.x.nrows(), self.scaled(rows.x));
        let y = self.scaled_targets(rows);
        let mut squares = vec![0.0; n];
        for range in row_blocks(n) {
            report(observer, "weighing rows", range.start as u64, Some(n as u64))?;
            let u = self.map.state(inputs.block(range.clone()).as_ref());
            if !squared_norm(u.as_ref()).is_finite() {
                return Err(Error::data("inputs so large that their squares overflow")
                    .expected("inputs of the size of those in training"));
            }
            let mut e = y.subrows(range.start, range.len()).to_owned();
            let mut f = Mat::zeros(range.len(), self.w.ncols());
            product(f.as_mut(), Accum::Replace, u.as_ref(), self.w.as_ref(), parallelism());
            e -= &f;
            for column in e.col_iter() {
                let squares = squares[range.clone()].iter_mut();
                squares.zip(column.iter()).for_each(|(square, e)| *square += e * e);
            }
        }
        Ok(squares)
    }

    /// The weights of a loss. Rows of a class of which nothing is known cannot be judged: 1.
    fn weigh(&self, squares: &[f64], targets: &Targets, loss: Loss) -> Vec<f64> {
        let mut weights = squares.to_vec();
        loss.weigh(&mut weights);
        let unknown = self.unknown_outputs();
        if let (Targets::Classes(codes), true) = (targets, unknown.contains(&true)) {
            for (weight, &code) in weights.iter_mut().zip(codes) {
                if unknown[code as usize] {
                    *weight = 1.0;
                }
            }
        }
        weights
    }

    /// The weight that the model gives to every row now, without the user's.
    pub(super) fn trust(
        &self,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<f64>> {
        let squares = self.squared_residuals(rows, observer)?;
        Ok(self.weigh(&squares, rows.targets, self.report.loss))
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

    fn change_rows(
        &self,
        knowledge: &mut Knowledge,
        rows: Labelled<'_>,
        weights: &[f64],
        sign: Sign,
        observer: &mut Observer<'_>,
    ) -> Result<Route> {
        let (n, inputs) = (rows.x.nrows(), self.scaled(rows.x));
        let y = self.scaled_targets(rows);
        let blocks = &mut |range: Range<usize>| {
            report(observer, "adding up rows", range.start as u64, Some(n as u64))?;
            let u = self.map.state(inputs.block(range.clone()).as_ref());
            Ok((u, y.subrows(range.start, range.len()).to_owned()))
        };
        match sign {
            Sign::Add => knowledge.add_rows(weights, blocks),
            Sign::Remove => knowledge.remove_rows(weights, blocks).map_err(|error| {
                if error.category() == Category::Numeric { never_learnt() } else { error }
            }),
        }
    }
}

/// Kernel of the plausibility in units of the spread: at 0.1, rows beyond 6.4 spreads are implausible.
const PLAUSIBLE: f64 = 3.0;

#[derive(Clone, Copy)]
enum Sign {
    Add,
    Remove,
}

fn never_learnt() -> Error {
    Error::data("rows that the model cannot have learnt: what would remain is not a sum of squares")
        .expected("rows that it has learnt, with the same values and weights")
}
