//! Learning a table that passes by in blocks.
//!
//! All rows are weighed by the W before the first of them, as [`Model::learn`] weighs rows that are in memory together,
//! and R and P are added up beside those of the model. It takes them over when the last row has come: until then it is as
//! it was.

use super::judge::check_size;
use super::learn::{Admitted, Learning, Learnt};
use super::rows::{Kept, Labelled};
use super::{Member, Model};
use crate::data::{Block, Samples, SchemaReader, Surprises};
use crate::error::{Category, Error, Result};
use crate::increment::ledger::fingerprints;
use crate::increment::{Ledger, Route};
use crate::linalg::{BLOCK_ROWS, parallelism};
use crate::progress::{Observer, report, unobserved};
use crate::solve::factor::Factor;
use crate::state::NormalEquations;
use faer::Mat;

impl Model {
    /// Learns all further rows of a table in one pass, in memory for a few blocks of them: the result is that of
    /// [`learn`](Self::learn) for all of them together, to rounding. New classes are learnt if the reader accepts
    /// them. `see` is told what came of each block.
    ///
    /// # Errors
    /// As [`learn`](Self::learn), those of the reader and of `see`; the model is then unchanged.
    pub fn learn_table<E: From<Error>>(
        &mut self,
        reader: &mut SchemaReader<'_>,
        learning: Learning,
        observer: &mut Observer<'_>,
        see: &mut dyn FnMut(&Samples, &Learnt) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Route>, E> {
        self.updatable()?;
        learning.check()?;
        let mut intake = Intake { model: self, learning, original: None, staged: None, done: 0 };
        if learning.one_by_one {
            intake.keep_original();
        }
        match intake.learn(reader, observer, see) {
            Ok(route) => Ok(route),
            Err(error) => {
                if let Some(original) = intake.original {
                    *intake.model = original;
                }
                Err(error)
            }
        }
    }
}

/// A table on its way into a model.
struct Intake<'m> {
    model: &'m mut Model,
    learning: Learning,
    /// The model as it was, if it has been changed.
    original: Option<Model>,
    staged: Option<Staged>,
    done: u64,
}

/// R and P while rows are added to them.
struct Staged {
    members: Vec<(NormalEquations, Ledger)>,
    /// By what earlier rows have lost weight.
    decay: f64,
    /// What the rows add to R and P, at most.
    size: f64,
    rows: u64,
}

impl Intake<'_> {
    fn learn<E: From<Error>>(
        &mut self,
        reader: &mut SchemaReader<'_>,
        observer: &mut Observer<'_>,
        see: &mut dyn FnMut(&Samples, &Learnt) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Route>, E> {
        let mut first: Option<Samples> = None;
        let mut route = None;
        let name = reader.name().to_owned();
        let about = |error: Error, before: u64| match (error.category(), before) {
            (Category::Data, 0) => error.within(&name),
            (Category::Data, _) => error.within(&format!("{name}, behind row {before}")),
            _ => error,
        };
        reader.for_each_block(BLOCK_ROWS, |block| {
            let Some(samples) = self.prepare(block)? else { return Ok(()) };
            report(observer, "learning rows", self.done, None)?;
            let mut before = self.done;
            self.done += samples.len() as u64;
            if self.learning.one_by_one {
                let learnt = self.model.learn((&samples).into(), self.learning, &mut unobserved);
                let learnt = learnt.map_err(|error| about(error, before))?;
                route = learnt.route.or(route);
                return see(&samples, &learnt);
            }
            // Rows that are few may be learnt by an update of the factor.
            if self.staged.is_none() && first.is_none() {
                first = Some(samples);
                return Ok(());
            }
            let first = first.take();
            before -= first.as_ref().map_or(0, Samples::len) as u64;
            for samples in first.iter().chain([&samples]) {
                let learnt = self.add(samples.into()).map_err(|error| about(error, before))?;
                before += samples.len() as u64;
                see(samples, &learnt)?;
            }
            Ok(())
        })?;
        if self.done == 0 {
            return Err(reader.surprises().skipped.no_rows(&name).into());
        }
        if let Some(samples) = first {
            // `see` may refuse what the model has learnt then.
            self.keep_original();
            let learnt = self.model.learn((&samples).into(), self.learning, observer);
            let learnt = learnt.map_err(|error| about(error, 0))?;
            see(&samples, &learnt)?;
            return Ok(learnt.route);
        }
        match self.staged.take() {
            Some(staged) if staged.rows > 0 => {
                self.finish(staged)?;
                Ok(Some(Route::Refactored))
            }
            _ => Ok(route),
        }
    }

    /// Makes room for new classes; nothing if there are no targets.
    fn prepare(&mut self, block: Block) -> Result<Option<Samples>> {
        let Block { x, targets, weights, new_classes, .. } = block;
        if !new_classes.is_empty() {
            self.keep_original();
            self.model.add_classes(&new_classes)?;
            for (equations, _) in self.staged.iter_mut().flat_map(|staged| &mut staged.members) {
                equations.add_outputs(new_classes.len());
            }
        }
        let surprises = Surprises::default();
        Ok(targets.map(|targets| Samples { x, targets, weights, surprises }))
    }

    fn keep_original(&mut self) {
        if self.original.is_none() {
            self.original = Some(self.model.clone());
        }
    }

    /// Adds rows to the staged equations, with the weights that the model as it is gives them.
    fn add(&mut self, rows: Labelled<'_>) -> Result<Learnt> {
        rows.check_shape(self.model.schema())?;
        let judged = self.model.judge(rows, &mut unobserved)?;
        let Admitted { learnt, places, weights, size } =
            self.model.admit(rows, judged, self.learning);
        let staged = match &mut self.staged {
            Some(staged) => staged,
            None => self.staged.insert(Staged::new(self.model)?),
        };
        if places.is_empty() {
            return Ok(learnt);
        }
        staged.size += size;
        check_size(staged.size)?;
        let decay = self.learning.decay(places.len());
        staged.decay *= decay;
        staged.rows += places.len() as u64;
        let kept;
        let rows = if places.len() == rows.x.nrows() {
            rows
        } else {
            kept = Kept::select(rows, &places);
            kept.rows()
        };
        let prints = fingerprints(rows.x, rows.targets);
        for ((member, staged), weights) in
            self.model.members.iter().zip(&mut staged.members).zip(&weights)
        {
            let (equations, ledger) = staged;
            if decay < 1.0 {
                equations.decay(decay);
                ledger.decay(decay);
            }
            member.add_to(equations, rows, weights)?;
            ledger.record(&prints, weights);
        }
        Ok(learnt)
    }

    /// Solves the staged equations, and puts them in place of the model's if that can be done for all members.
    fn finish(&mut self, staged: Staged) -> Result<()> {
        let Staged { members, decay, rows, .. } = staged;
        let mut solved: Vec<(Factor, Mat<f64>)> = Vec::with_capacity(members.len());
        for (member, (equations, _)) in self.model.members.iter().zip(&members) {
            let ridge = member.updatable()?.ridge();
            let factor = Factor::new(equations.r().to_owned(), ridge, parallelism())?;
            let w = factor.solve(equations.p(), parallelism());
            solved.push((factor, w));
        }
        let changes = members.into_iter().zip(solved);
        for (member, ((equations, ledger), (factor, w))) in
            self.model.members.iter_mut().zip(changes)
        {
            if let Some(knowledge) = &mut member.knowledge {
                knowledge.take_over(equations, factor, &ledger, decay);
            }
            member.w = w;
            member.rows += rows;
        }
        Ok(())
    }
}

impl Staged {
    fn new(model: &Model) -> Result<Self> {
        let member =
            |member: &Member| Ok((member.updatable()?.equations().clone(), Ledger::default()));
        let members = model.members.iter().map(member).collect::<Result<_>>()?;
        Ok(Self { members, decay: 1.0, size: 0.0, rows: 0 })
    }
}

impl Member {
    /// Adds rows with these weights to equations.
    fn add_to(
        &self,
        equations: &mut NormalEquations,
        rows: Labelled<'_>,
        weights: &[f64],
    ) -> Result<()> {
        let y = self.scaled_targets(rows);
        self.map.visit(&self.scaled(rows.x), |range, u| {
            let y = y.subrows(range.start, range.len());
            equations.add(u, y, Some(&weights[range]), parallelism());
            Ok(())
        })
    }
}
