//! Learning further rows, and new classes.

use super::forget::never_learnt;
use super::judge::{Judged, check_size};
use super::rows::{Kept, Labelled};
use super::settings::Procedure;
use super::{Member, Model, Predictions};
use crate::data::TargetSchema;
use crate::error::{Category, Error, Result};
use crate::increment::ledger::fingerprints;
use crate::increment::{Knowledge, Route};
use crate::progress::{Observer, report, unobserved};
use faer::{Mat, MatMut};
use std::ops::Range;

/// How rows are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// The weight of every earlier row is multiplied by this with each new row; 1 forgets nothing.
    pub forgetting: f64,
    /// Rows that are less plausible than this are left out; 0 leaves none out. The plausibility is
    /// exp(-|e|^2 / 2 k^2) for the residual e of the mean of the outputs, where k is the kernel size of correntropy, but at most three times the
    /// spread of the training residuals: on clean rows a wide kernel is chosen, which trusts everything.
    pub quarantine: f64,
    /// Whether each row is weighed by the model that has learnt the rows before it, as in a stream;
    /// else all are weighed by the model as it is. What many such rows cost is little more than what
    /// they cost together.
    pub one_by_one: bool,
}

impl Default for Learning {
    fn default() -> Self {
        Self { forgetting: 1.0, quarantine: 0.0, one_by_one: false }
    }
}

impl Learning {
    /// Checks that every option is within its range.
    ///
    /// # Errors
    /// Of category `Setting`.
    pub fn check(&self) -> Result<()> {
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

    /// The factor by which the weights of earlier rows shrink when so many are learnt.
    pub(super) fn decay(&self, rows: usize) -> f64 {
        self.forgetting.powi(rows.min(i32::MAX as usize) as i32)
    }
}

/// What came of learning some rows.
#[derive(Clone, Debug)]
pub struct Learnt {
    /// What the model said of each row before it learnt it.
    pub predictions: Predictions,
    /// The weight that the model gave to each row, between 0 and 1, the user's not multiplied in; the
    /// mean over the members, each of which weighs rows by its own residuals.
    pub trust: Vec<f64>,
    /// How plausible each row was.
    pub plausibility: Vec<f64>,
    /// Which rows were left out, by number.
    pub quarantined: Vec<usize>,
    /// How the factor was brought up to date; `None` if no row was left to learn.
    pub route: Option<Route>,
}

impl Learnt {
    /// Adds what came of later rows, the first of which has this number.
    fn append(&mut self, later: Self, first: usize) {
        self.predictions.append(&later.predictions);
        self.trust.extend(later.trust);
        self.plausibility.extend(later.plausibility);
        self.quarantined.extend(later.quarantined.iter().map(|row| first + row));
        self.route = later.route.or(self.route);
    }
}

/// Rows that were judged and are about to be learnt.
pub(super) struct Admitted {
    /// What the model thinks of all rows.
    pub(super) learnt: Learnt,
    /// The rows that are not left out.
    pub(super) places: Vec<usize>,
    /// By member: their weights, the user's multiplied in.
    pub(super) weights: Vec<Vec<f64>>,
    /// Bounds what they add to R and P.
    pub(super) size: f64,
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
        self.updatable()?;
        learning.check()?;
        rows.check_shape(self.schema())?;
        let n = rows.x.nrows();
        let block = match learning {
            Learning { one_by_one: false, .. } => n,
            // A decay changes the equations as a whole: no row can wait for the next.
            Learning { forgetting, .. } if forgetting < 1.0 => 1,
            // So many that a new factor costs less than the rows themselves.
            _ => (self.map().width() / 5).clamp(16, 512),
        };
        if n <= block {
            return self.learn_block(rows, learning, observer);
        }
        let original = self.clone();
        let mut learnt: Option<Learnt> = None;
        for start in (0..n).step_by(block) {
            let range: Vec<usize> = (start..(start + block).min(n)).collect();
            let part = Kept::select(rows, &range);
            match (self.learn_block(part.rows(), learning, observer), &mut learnt) {
                (Ok(part), None) => learnt = Some(part),
                (Ok(part), Some(learnt)) => learnt.append(part, start),
                (Err(error), _) => {
                    *self = original;
                    return Err(error);
                }
            }
        }
        learnt.ok_or_else(|| Error::data("no rows").expected("at least one row"))
    }

    fn learn_block(
        &mut self,
        rows: Labelled<'_>,
        learning: Learning,
        observer: &mut Observer<'_>,
    ) -> Result<Learnt> {
        let judged = if learning.one_by_one && rows.x.nrows() > 1 {
            self.judge_one_by_one(rows, learning.quarantine)?
        } else {
            self.judge(rows, observer)?
        };
        let Admitted { mut learnt, places, weights, size } = self.admit(rows, judged, learning);
        if places.is_empty() {
            return Ok(learnt);
        }
        check_size(size)?;
        let kept;
        let rows = if places.len() == rows.x.nrows() {
            rows
        } else {
            kept = Kept::select(rows, &places);
            kept.rows()
        };
        let decay = learning.decay(places.len());
        let routes = self.change(observer, |place, member, observer| {
            member.add_rows(rows, &weights[place], decay, observer)
        })?;
        learnt.route = routes.first().copied();
        Ok(learnt)
    }

    /// Which of these rows are learnt, and with which weights.
    pub(super) fn admit(&self, rows: Labelled<'_>, judged: Judged, learning: Learning) -> Admitted {
        let Judged { outputs, trust, plausibility, size } = judged;
        let user = |row: usize| rows.weights.map_or(1.0, |weights| weights[row]);
        let (quarantined, places): (Vec<usize>, Vec<usize>) = (0..plausibility.len())
            .filter(|&row| user(row) > 0.0)
            .partition(|&row| plausibility[row] < learning.quarantine);
        // The row that came last has its full weight.
        let age = |place: usize| (places.len() - 1 - place) as f64;
        let weights: Vec<Vec<f64>> = trust
            .iter()
            .map(|trust| {
                let weight = |(place, &row): (usize, &usize)| {
                    trust[row] * user(row) * learning.forgetting.powf(age(place))
                };
                places.iter().enumerate().map(weight).collect()
            })
            .collect();
        let size = size * weights.iter().flatten().copied().fold(1.0, f64::max);
        let predictions = self.predictions(outputs);
        let trust = mean_of(&trust);
        let learnt = Learnt { predictions, trust, plausibility, quarantined, route: None };
        Admitted { learnt, places, weights, size }
    }

    /// Adds classes of which nothing is known yet: outputs that are 0 until rows of them are learnt.
    /// The other outputs stay as they are.
    ///
    /// # Errors
    /// A regression, a compact model, a class that is already known.
    pub fn add_classes(&mut self, names: &[String]) -> Result<()> {
        self.change(&mut unobserved, |_, member, _| member.add_classes(names))?;
        // It knows nothing of them, and intervals knew it; a model that is refined finds others.
        if self.discriminant.take().is_some() {
            self.calibration = None;
        }
        Ok(())
    }

    /// Keeps only the latest rows on record: for streams without end. Rows that are no longer on
    /// record can only be forgotten by a model of the squared loss.
    pub fn keep_on_record(&mut self, rows: usize) {
        for knowledge in self.members.iter_mut().filter_map(|member| member.knowledge.as_mut()) {
            knowledge.ledger_mut().keep_latest(rows);
        }
    }

    /// What changes of the model need; of the first member, if there are several.
    ///
    /// # Errors
    /// A compact model, or one by pseudo-inverse, which cannot be changed.
    pub fn updatable(&self) -> Result<&Knowledge> {
        self.first().updatable()
    }
}

impl Member {
    /// Adds rows with these weights, after all earlier ones have lost weight by the factor `decay`.
    fn add_rows(
        &mut self,
        rows: Labelled<'_>,
        weights: &[f64],
        decay: f64,
        observer: &mut Observer<'_>,
    ) -> Result<Route> {
        let mut knowledge = self.take_knowledge()?;
        let before = (decay < 1.0).then(|| knowledge.clone());
        if decay < 1.0 {
            knowledge.decay(decay);
        }
        let mut change = || -> Result<(Route, Mat<f64>)> {
            let route = self.change_rows(&mut knowledge, rows, weights, Sign::Add, observer)?;
            Ok((route, knowledge.solve()?))
        };
        match change() {
            Ok((route, w)) => {
                knowledge.ledger_mut().record(&fingerprints(rows.x, rows.targets), weights);
                self.knowledge = Some(knowledge);
                self.w = w;
                self.rows += weights.len() as u64;
                Ok(route)
            }
            Err(error) => {
                self.knowledge = Some(before.unwrap_or(knowledge));
                Err(error)
            }
        }
    }

    fn add_classes(&mut self, names: &[String]) -> Result<()> {
        self.updatable()?;
        let TargetSchema::Classification { classes, .. } = &mut self.schema.target else {
            return Err(Error::data("new classes for a regression").expected("a classification"));
        };
        if classes.len() + names.len() > MOST_CLASSES {
            return Err(Error::data(format!("{} classes", classes.len() + names.len()))
                .expected(format!("at most {MOST_CLASSES}"))
                .advice(
                    "check the target column: it may hold names or numbers instead of classes",
                ));
        }
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

    pub(super) fn updatable(&self) -> Result<&Knowledge> {
        let Some(knowledge) = &self.knowledge else {
            if let Procedure::LeastAbsolute { .. } = self.settings.procedure {
                return Err(Error::model(
                    "a model of least absolute residuals, which has no R and P",
                )
                .expected("a model that keeps what later changes need")
                .advice("fit it with --loss absolute or correntropy"));
            }
            return Err(Error::model("a compact model, without R and P")
                .expected("a model that keeps what later changes need")
                .advice("fit it again without --compact"));
        };
        if self.report.ridge.is_none() {
            return Err(Error::model("a model by pseudo-inverse")
                .expected("a model with a ridge, whose equations can be updated")
                .advice("fit it again with --ridge, for example 1e-8"));
        }
        Ok(knowledge)
    }

    pub(super) fn take_knowledge(&mut self) -> Result<Knowledge> {
        self.knowledge.take().ok_or_else(|| Error::model("a compact model, without R and P"))
    }

    pub(super) fn change_rows(
        &self,
        knowledge: &mut Knowledge,
        rows: Labelled<'_>,
        weights: &[f64],
        sign: Sign,
        observer: &mut Observer<'_>,
    ) -> Result<Route> {
        let (n, inputs) = (rows.x.nrows(), self.scaled(rows.x));
        let y = self.scaled_targets(rows);
        let blocks = &mut |range: Range<usize>, u: MatMut<'_, f64>| {
            report(observer, "adding up rows", range.start as u64, Some(n as u64))?;
            self.map.apply(inputs.block(range.clone()).as_ref(), u);
            Ok(y.subrows(range.start, range.len()).to_owned())
        };
        match sign {
            Sign::Add => knowledge.add_rows(weights, blocks),
            Sign::Remove => knowledge.remove_rows(weights, blocks).map_err(|error| {
                if error.category() == Category::Numeric { never_learnt() } else { error }
            }),
        }
    }
}

/// The mean of these lists, number by number.
pub(super) fn mean_of<List: AsRef<[f64]>>(lists: &[List]) -> Vec<f64> {
    let count = lists.len() as f64;
    let length = lists.first().map_or(0, |list| list.as_ref().len());
    (0..length)
        .map(|row| lists.iter().map(|list| list.as_ref()[row]).sum::<f64>() / count)
        .collect()
}

/// As many classes as a table may have in the beginning.
const MOST_CLASSES: usize = 1000;

/// Whether rows come or go.
#[derive(Clone, Copy)]
pub(super) enum Sign {
    Add,
    Remove,
}
