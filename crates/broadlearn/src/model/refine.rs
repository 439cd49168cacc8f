//! Bringing frozen sample weights up to date, where the rows are at hand.

use super::distinct::Distinct;
use super::fit::{PRECISION, Solved, linear_columns};
use super::grow::check_same_rows;
use super::rows::{Kept, Labelled};
use super::{Member, Model};
use crate::error::{Error, Result};
use crate::increment::Knowledge;
use crate::increment::ledger::fingerprints;
use crate::linalg::{parallelism, row_blocks, squared_norm};
use crate::progress::Observer;
use crate::solve::Loss;
use crate::solve::system::System;
use crate::state::StateRows;
use faer::MatRef;

/// How weights are brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refinement {
    /// At most so many steps of the fixed point from the present W: into the optimum nearest to it.
    Warm {
        /// The largest number of steps.
        steps: usize,
    },
    /// From a fresh robust start with a shrinking kernel, as a fit does: an early bad optimum is left.
    Anneal,
}

/// How far the sample weights in R and P are from those that the present residuals would give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The mean of |weight on record - weight now|.
    pub mean: f64,
    /// The largest.
    pub largest: f64,
    /// The rows that were compared.
    pub rows: usize,
}

/// Whose residuals give the weights of a sibling's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighing {
    Own,
    Given,
}

impl Model {
    /// How far the weights of these rows, which the model has learnt, have drifted: increments leave
    /// the weights of earlier rows as they were.
    ///
    /// # Errors
    /// Rows that are not on record, a compact model, `Interrupted`.
    pub fn drift(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Drift> {
        let drifts = self.each(observer, |member, observer| member.drift(rows, observer))?;
        Ok(Drift {
            mean: drifts.iter().map(|drift| drift.mean).sum::<f64>() / drifts.len() as f64,
            largest: drifts.iter().map(|drift| drift.largest).fold(0.0, f64::max),
            rows: drifts[0].rows,
        })
    }

    /// Finds the sample weights anew, on all rows that the model has learnt.
    ///
    /// # Errors
    /// Other rows than those of the model, a model with a forgetting factor, a compact model,
    /// `Interrupted`; the model is then unchanged.
    pub fn refine(
        &mut self,
        rows: Labelled<'_>,
        refinement: Refinement,
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        *self = self
            .map_members(observer, |member, observer| member.refined(rows, refinement, observer))?
            .calibrated(rows, observer)?;
        Ok(())
    }

    /// A model of other rows with the same settings, schema, scalers, nodes, kernel size and ridge:
    /// siblings can be [merged](Self::merge).
    ///
    /// # Errors
    /// Rows that do not fit the schema, a compact model, `Interrupted`.
    pub fn sibling(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Self> {
        self.map_members(observer, |member, observer| {
            member.sibling_by(rows, Weighing::Own, observer)
        })?
        .calibrated_as_it_reads(rows, observer)
    }

    /// The part of one fixed-point step that these rows contribute: a sibling whose R and P have the
    /// weights that *this* model's W gives to the rows. The parts of all shards, merged, are the next
    /// step of the joint fit.
    ///
    /// # Errors
    /// As [`sibling`](Self::sibling).
    pub fn part(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Self> {
        self.map_members(observer, |member, observer| {
            member.sibling_by(rows, Weighing::Given, observer)
        })
    }

    /// The model that a fit from the beginning gives with the weights on record: what every increment
    /// claims to equal. `rows` must hold all rows of the model; others, which it may have forgotten,
    /// are left out.
    ///
    /// # Errors
    /// Rows that do not cover the model's, rows that are off the record, a compact model,
    /// `Interrupted`.
    pub fn refit(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Self> {
        self.map_members(observer, |member, observer| member.refit(rows, observer))
    }

    /// |F - G| / |G| for the outputs F of this model and G of another one on these inputs, in units
    /// of the scaled target.
    ///
    /// # Errors
    /// Inputs that do not fit, models with other numbers of outputs.
    pub fn difference(&self, other: &Self, x: MatRef<'_, f64>) -> Result<f64> {
        if self.weights().ncols() != other.weights().ncols() {
            return Err(Error::data(format!("{} outputs", other.weights().ncols()))
                .expected(format!("{}, as the other model has", self.weights().ncols())));
        }
        for model in [self, other] {
            if x.ncols() != model.map().inputs() {
                return Err(Error::data(format!("{} input columns", x.ncols()))
                    .expected(format!("{}, as in training", model.map().inputs())));
            }
        }
        let (mut change, mut size) = (0.0, 0.0);
        for range in row_blocks(x.nrows()) {
            let part = x.subrows(range.start, range.len());
            let (f, g) = (self.outputs(part)?, other.outputs(part)?);
            size += squared_norm(g.as_ref());
            change += squared_norm((f - g).as_ref());
        }
        Ok(if change == 0.0 { 0.0 } else { (change / size).sqrt() })
    }
}

impl Member {
    fn drift(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Drift> {
        rows.check(&self.schema)?;
        let kept = Kept::new(rows);
        let rows = kept.rows();
        let knowledge = self.updatable()?;
        if knowledge.decayed() {
            return Err(has_decayed());
        }
        let prints = fingerprints(rows.x, rows.targets);
        let (weights, _) = self.recorded_weights(knowledge, rows, &prints)?;
        let trust = self.trust(rows, observer)?;
        let (mut sum, mut largest) = (0.0, 0.0_f64);
        for (row, (weight, trust)) in weights.iter().zip(&trust).enumerate() {
            let user = rows.weights.map_or(1.0, |weights| weights[row]);
            let difference = (weight / user - trust).abs();
            sum += difference;
            largest = largest.max(difference);
        }
        Ok(Drift { mean: sum / trust.len() as f64, largest, rows: trust.len() })
    }

    fn refined(
        &self,
        rows: Labelled<'_>,
        refinement: Refinement,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        rows.check(&self.schema)?;
        let kept = Kept::new(rows);
        let rows = kept.rows();
        let knowledge = self.updatable()?;
        if knowledge.decayed() {
            return Err(has_decayed());
        }
        let weights = self.weights_of_all(knowledge, rows)?;
        if !knowledge.is_complete() {
            let state = StateRows::new(&self.map, self.scaled(rows.x));
            let y = self.scaled_targets(rows);
            let system = System::new(&state, y.as_ref(), PRECISION, parallelism());
            check_same_rows(knowledge, system.equations(Some(&weights))?.p())?;
        }
        match (refinement, self.report.loss) {
            (Refinement::Warm { steps }, Loss::Robust { kind, sigma }) => {
                let inputs = self.scaled(rows.x);
                let state = StateRows::new(&self.map, inputs);
                let y = self.scaled_targets(rows);
                let system = System::new(&state, y.as_ref(), PRECISION, parallelism());
                let linear = linear_columns(&self.map, self.schema.target.task());
                let mut method = self.settings.fixed_point(kind, linear);
                method.max_iterations = steps.max(1);
                let outputs = system.outputs(self.w.as_ref())?;
                let ridge = knowledge.ridge();
                let (solution, weights, report) =
                    method.go_on(outputs, &system, sigma, ridge, rows.weights, observer)?;
                let mut solved =
                    self.settings.solved(&system, solution, Some(weights), rows.weights, report)?;
                solved.report.remember_choices(&self.report);
                Ok(self.with(rows, solved))
            }
            _ => self.sibling_by(rows, Weighing::Own, observer),
        }
    }

    fn sibling_by(
        &self,
        rows: Labelled<'_>,
        weighing: Weighing,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        self.updatable()?;
        rows.check(&self.schema)?;
        let kept = Kept::new(rows);
        let rows = kept.rows();
        let inputs = self.scaled(rows.x);
        let state = StateRows::new(&self.map, inputs);
        let y = self.scaled_targets(rows);
        let system = System::new(&state, y.as_ref(), PRECISION, parallelism());
        let ridge = self.report.ridge.unwrap_or(0.0);
        let solved = match weighing {
            Weighing::Own => {
                let loss = self.report.loss;
                let linear = linear_columns(&self.map, self.schema.target.task());
                let mut solved = self.settings.solve_for(
                    &system,
                    loss,
                    ridge,
                    rows.weights,
                    linear,
                    observer,
                )?;
                solved.report.remember_choices(&self.report);
                solved
            }
            Weighing::Given => {
                let mut weights = self.trust(rows, observer)?;
                if let Some(user) = rows.weights {
                    weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= user);
                }
                let solution = system.solve(Some(&weights), ridge)?;
                let report = self.report.clone();
                self.settings.solved(&system, solution, Some(weights), rows.weights, report)?
            }
        };
        Ok(self.with(rows, solved))
    }

    /// This member with what was found on these rows in place of what it knew.
    fn with(&self, rows: Labelled<'_>, mut solved: Solved) -> Self {
        let knowledge = solved.knowledge(&Distinct::as_they_are(rows));
        Self {
            w: solved.w,
            knowledge,
            report: solved.report,
            rows: rows.x.nrows() as u64,
            ..self.clone()
        }
    }

    fn refit(&self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Self> {
        rows.check(&self.schema)?;
        let knowledge = self.updatable()?;
        let places = knowledge.ledger().find(&fingerprints(rows.x, rows.targets));
        let known: Vec<usize> = (0..places.len()).filter(|&row| places[row].is_some()).collect();
        if known.len() as u64 != knowledge.equations().rows() {
            return Err(Error::data(format!("{} of the model's rows", known.len())).expected(
                format!("all {} that it has learnt, on record", knowledge.equations().rows()),
            ));
        }
        let ledger = knowledge.ledger().weights();
        let weights: Vec<f64> = places.iter().flatten().map(|&place| ledger[place]).collect();
        let kept = Kept::select(rows, &known);
        let rows = kept.rows();
        let inputs = self.scaled(rows.x);
        let state = StateRows::new(&self.map, inputs);
        let y = self.scaled_targets(rows);
        let system = System::new(&state, y.as_ref(), PRECISION, parallelism());
        crate::progress::report(observer, "refitting", 0, None)?;
        let equations = system.equations(Some(&weights))?;
        let mut knowledge =
            Knowledge::new(equations, knowledge.ridge(), knowledge.ledger().clone());
        let w = knowledge.solve()?;
        Ok(Self { w, knowledge: Some(knowledge), ..self.clone() })
    }
}

fn has_decayed() -> Error {
    Error::model("a model whose rows have lost weight by a forgetting factor")
        .expected("rows that count as they did when they came")
        .advice("fit a new model on the rows that still matter")
}
