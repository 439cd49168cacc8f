//! Fitting a table that is larger than memory, in passes over it.
//!
//! A sample of the rows is in memory, and all that has to be chosen is chosen on it, as in a fit of the sample
//! alone. Then the rows pass by in blocks:
//!
//! 1. What the scalers need to know of all rows.
//! 2. R and P. That is the end of it for the squared loss, and for a robust one whose kernel was chosen: there the
//!    model of the sample has judged the rows.
//! 3. For a given kernel size, R and P again with the weights of a combination of the last W, until the fixed point
//!    is reached or [`MOST_PASSES`] have been made. The first W is that of the sample.
//!
//! Of a stream only the first rows can be looked at beforehand. They take the place of the sample, and one pass
//! is all there is.

use super::choose::Decision;
use super::fit::{PRECISION, linear_columns};
use super::rows::{Kept, Labelled, target_matrix};
use super::{CheckedSettings, Criterion, Procedure, Regularisation, Settings};
use super::{Member, Model};
use crate::data::{Part, Samples, Schema, SchemaReader, TableReader, TrainingData};
use crate::error::{Error, Result};
use crate::features::FeatureMap;
use crate::features::build::build;
use crate::features::draw::member_seed;
use crate::increment::ledger::fingerprints;
use crate::increment::{Knowledge, Ledger};
use crate::linalg::{BLOCK_ROWS, parallelism, product, squared_norm};
use crate::preprocess::gathered::Gathered;
use crate::preprocess::{ScaledRows, Scaler, statistics};
use crate::progress::{Observer, report};
use crate::solve::anderson::Anderson;
use crate::solve::factor::Factor;
use crate::solve::fixed_point::check_not_vanished;
use crate::solve::system::System;
use crate::solve::{Form, Loss, SolveReport, Start};
use crate::state::{NormalEquations, StateRows};
use faer::{Accum, Mat};

/// Passes in which R and P are added up, at most.
const MOST_PASSES: usize = 20;

/// The rows of a table that is larger than memory.
pub enum TableRows<'a> {
    /// They can be read from the beginning as often as needed.
    Again(&'a mut dyn FnMut() -> Result<TableReader>),
    /// They come once; these are the ones behind the first.
    Rest(TableReader),
}

/// How the rows of a table are learnt as they pass by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passing {
    /// Whether rows without a target are left out; else they are an error.
    pub drop_missing_target: bool,
    /// Whether all rows go on record, 16 bytes each, and not only those of the sample: so that
    /// they can be left out or forgotten again.
    pub on_record: bool,
}

impl Settings {
    /// Fits a table of which `sample` holds some rows: a random sample of them, or the first of a
    /// stream. Memory is needed for these, for a few blocks of rows and for R. The next block is read by another
    /// thread while one is being added up.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); the pseudo-inverse, and a given kernel size for a stream, which need more
    /// than one pass.
    pub fn fit_table(
        self,
        sample: &TrainingData,
        rows: TableRows<'_>,
        passing: Passing,
        observer: &mut Observer<'_>,
    ) -> Result<Model> {
        let settings = self.check(sample.target().task())?;
        let places: Vec<usize> = (0..sample.len()).collect();
        let schema = sample.schema(&places)?;
        let samples = sample.samples(&schema, &places)?;
        let count = sample.table_rows();
        let (again, rest) = match rows {
            TableRows::Again(open) => (Some(open), None),
            TableRows::Rest(reader) => (None, Some(reader)),
        };
        let (schema, samples) = (&schema, &samples);
        let part = sample.part();
        let mut passes = Passes { again, rest, schema, passing, part, count, samples };
        settings.fit_table(&mut passes, observer)
    }
}

/// The way to all rows.
struct Passes<'a, 'o> {
    again: Option<&'o mut dyn FnMut() -> Result<TableReader>>,
    rest: Option<TableReader>,
    schema: &'a Schema,
    passing: Passing,
    part: Option<Part>,
    count: Option<u64>,
    samples: &'a Samples,
}

impl Passes<'_, '_> {
    fn is_stream(&self) -> bool {
        self.again.is_none()
    }

    /// Visits all rows that count, block by block; their number.
    fn visit(
        &mut self,
        stage: &'static str,
        observer: &mut Observer<'_>,
        mut visitor: impl FnMut(Labelled<'_>) -> Result<()>,
    ) -> Result<u64> {
        let mut done = 0;
        let mut visit = |rows: Labelled<'_>| {
            report(observer, stage, done, self.count)?;
            if rows.weights.is_some_and(|weights| weights.iter().all(|&weight| weight == 0.0)) {
                return Ok(());
            }
            rows.check(self.schema)?;
            let kept = Kept::new(rows);
            done += kept.rows().x.nrows() as u64;
            visitor(kept.rows())
        };
        let (schema, drop) = (self.schema, self.passing.drop_missing_target);
        let mut reader = match (&mut self.again, self.rest.take()) {
            (Some(open), _) => SchemaReader::new(open()?, schema, true, drop)?,
            (None, Some(rest)) => {
                visit(self.samples.into())?;
                SchemaReader::resume(rest, schema, drop)
            }
            (None, None) => {
                return Err(
                    Error::data("a stream that has ended").expected("one that can be read again")
                );
            }
        };
        reader = reader.only(self.part);
        reader.for_each_block(BLOCK_ROWS, |block| match &block.targets {
            Some(targets) => {
                let (x, weights) = (block.x.as_ref(), block.weights.as_deref());
                visit(Labelled { x, targets, weights })
            }
            None => Ok(()),
        })?;
        Ok(done)
    }
}

/// A network while its equations are being added up.
struct Candidate {
    settings: CheckedSettings,
    map: FeatureMap,
    /// What gives the rows their weights.
    w: Mat<f64>,
    equations: NormalEquations,
    /// The rows of these equations, if they go on record.
    ledger: Ledger,
    factor: Option<Factor>,
    /// What gave the rows their weights in these equations.
    judge: Mat<f64>,
    steps: Anderson,
    /// The W to which the best one so far has led.
    best: Mat<f64>,
}

impl Candidate {
    /// Prepares the next pass: its weights are those of a combination of the last W.
    fn judge_anew(&mut self, downhill: bool) {
        let factor = self.factor.take();
        if downhill {
            self.steps.restart();
            self.judge.clone_from(&self.best);
        } else if let Some(factor) = factor {
            self.best.clone_from(&self.w);
            self.judge = self.steps.next(self.judge.as_ref(), self.w.as_ref(), &factor);
        }
    }
}

/// Sums over all rows in one pass.
#[derive(Default)]
struct Sums {
    user: f64,
    low: f64,
    losses: f64,
    most: f64,
}

impl CheckedSettings {
    fn fit_table(&self, passes: &mut Passes<'_, '_>, observer: &mut Observer<'_>) -> Result<Model> {
        if self.regularisation == Regularisation::PseudoInverse {
            return Err(Error::setting("ridge", "pseudo-inverse")
                .expected("a ridge, for a table that is larger than memory")
                .advice("give a small one (--ridge 1e-8), or more memory (--memory)"));
        }
        if self.procedure != Procedure::FixedPoint {
            return Err(Error::setting("loss", "one that needs all residuals at once")
                .expected("another loss, for a table that is larger than memory")
                .advice("use --loss absolute or huber, or give more memory (--memory)"));
        }
        let (schema, samples) = (passes.schema, passes.samples);
        let rows: Labelled<'_> = samples.into();
        rows.check(schema)?;
        let (task, outputs) = (schema.target.task(), schema.target.outputs());

        // Stage 2: the scalers, by all rows; then whatever was left open, by the sample.
        let mut y = target_matrix(&samples.targets, outputs);
        let (input_scaler, target_scaler) = self.scalers(passes, &y, observer)?;
        target_scaler.apply(y.as_mut());
        let mut decision = self.decide(rows.x, y.as_ref(), rows.weights, task, observer)?;
        // The rows of a stream are many, or it would not be one.
        let count = passes.count.map_or(usize::MAX, |count| count as usize);
        decision.settings.members = self.members_for(count);
        decision.settings.network.check_memory(rows.x.ncols())?;
        let ridge = decision.ridge.unwrap_or(0.0);
        let loss = match (self.criterion, decision.sigma) {
            (Criterion::Robust { kind, .. }, Some(sigma)) => kind.at(sigma),
            _ => Loss::Squared,
        };
        let judged = decision.start.is_some() && self.start == Start::Best;
        let is_final = loss == Loss::Squared || judged;
        if !is_final && passes.is_stream() {
            return Err(Error::setting("sigma", "a kernel size, for a stream")
                .expected("a file, which can be read again until the weights of its rows are found")
                .advice("save it first; or use --sigma auto or --loss squared, for which one pass will do"));
        }

        // Stage 3: the random maps, and a W of the sample where rows are to be judged.
        let mut candidates = Vec::new();
        for place in 0..decision.settings.members {
            let seed = member_seed(self.seed, place);
            let settings = Self { seed, ..decision.settings.clone() };
            let inputs = ScaledRows::new(rows.x, &input_scaler);
            let map = build(&settings.network, &inputs, rows.weights, seed)?;
            let state = StateRows::new(&map, inputs);
            let system = System::new(&state, y.as_ref(), PRECISION, parallelism());
            let share = passes.count.map_or(1.0, |count| rows.x.nrows() as f64 / count as f64);
            let w = match (&decision.start, loss) {
                (_, Loss::Squared) => Mat::zeros(map.width(), outputs),
                (Some(start), _) if judged => start.solution(&system, ridge * share)?,
                _ => {
                    let linear = linear_columns(&map, task);
                    let (user, ridge) = (rows.weights, ridge * share);
                    settings.solve_for(&system, loss, ridge, user, linear, observer)?.w
                }
            };
            let equations = NormalEquations::empty(map.width(), outputs);
            let (judge, best, steps) = (w.clone(), w.clone(), Anderson::default());
            candidates.push(Candidate {
                settings,
                map,
                w,
                equations,
                ledger: Ledger::default(),
                factor: None,
                judge,
                steps,
                best,
            });
        }

        // Stages 4 and 5: passes.
        let most = if is_final { 1 } else { MOST_PASSES.min(self.max_iterations) };
        let mut report = SolveReport {
            loss,
            cross_fitted: judged && loss != Loss::Squared,
            converged: is_final,
            ..SolveReport::plain(Some(ridge), Form::Primal, None)
        };
        let mut count = 0;
        for pass in 1..=most {
            let sums;
            (count, sums) = add_up(
                passes,
                &mut candidates,
                (&input_scaler, &target_scaler),
                (loss, judged),
                observer,
            )?;
            check_not_vanished(&[sums.most], loss)?;
            let mut change = 0.0_f64;
            // The objective is that of the first network, as the losses are.
            let size = candidates.first().map_or(0.0, |first| squared_norm(first.judge.as_ref()));
            for candidate in &mut candidates {
                let (r, par) = (candidate.equations.r().to_owned(), parallelism());
                let factor = Factor::new(r, ridge, par)?;
                let w = factor.solve(candidate.equations.p(), par);
                let difference: Mat<f64> = &w - &candidate.judge;
                change = change.max(factor.norm(difference.as_ref()) / factor.norm(w.as_ref()));
                (candidate.w, candidate.factor) = (w, Some(factor));
            }
            report.downweighted = sums.low / sums.user;
            if !is_final {
                report.iterations = pass;
                report.last_change = if change.is_finite() { change } else { f64::MAX };
                report.converged = change <= self.tolerance;
                if let Loss::Robust { sigma, .. } = loss {
                    let penalty = ridge / (2.0 * sigma * sigma) * size;
                    report.objective.push(1.0 - (sums.losses + penalty) / sums.user);
                }
                if report.converged || pass == most {
                    break;
                }
                // The plain steps never lead downhill; combinations may, and are then taken back.
                let best = report.objective.iter().rev().skip(1).copied().fold(f64::NAN, f64::max);
                let downhill = report.objective.last().is_some_and(|now| *now < best - 1e-9);
                for candidate in &mut candidates {
                    candidate.judge_anew(downhill);
                }
            }
        }
        let scaled = (input_scaler, target_scaler);
        let model = finished(candidates, schema, scaled, &decision, &report, (count, rows, y))?;
        let model = model.calibrated(rows, observer)?;
        Ok(if self.compact { model.compact() } else { model })
    }

    /// The scalers of inputs and targets, by all rows, or by the first of a stream.
    fn scalers(
        &self,
        passes: &mut Passes<'_, '_>,
        y: &Mat<f64>,
        observer: &mut Observer<'_>,
    ) -> Result<(Scaler, Scaler)> {
        let (x, weights) = (passes.samples.x.as_ref(), passes.samples.weights.as_deref());
        if passes.is_stream() {
            let target = Scaler::fit(self.target_scaling, y.as_ref(), weights);
            return Ok((Scaler::fit(self.input_scaling, x, weights), target));
        }
        let outputs = y.ncols();
        let mut inputs = Gathered::with_quartiles_if_few(x, weights, self.input_scaling);
        let mut targets = Gathered::with_quartiles_if_few(y.as_ref(), weights, self.target_scaling);
        passes.visit("looking at all rows", observer, |rows| {
            inputs.add(rows.x, rows.weights);
            targets.add(target_matrix(rows.targets, outputs).as_ref(), rows.weights);
            Ok(())
        })?;
        let inputs = Scaler::from_facts(self.input_scaling, &inputs.facts());
        Ok((inputs, Scaler::from_facts(self.target_scaling, &targets.facts())))
    }
}

/// R and P of all rows, with the weights that the loss gives them. If the rows are `judged`, that is by the first
/// network for all. The number of rows, and sums over them.
fn add_up(
    passes: &mut Passes<'_, '_>,
    candidates: &mut [Candidate],
    (input_scaler, target_scaler): (&Scaler, &Scaler),
    (loss, judged): (Loss, bool),
    observer: &mut Observer<'_>,
) -> Result<(u64, Sums)> {
    let mut sums = Sums::default();
    for candidate in &mut *candidates {
        let (nodes, outputs) = (candidate.w.nrows(), candidate.w.ncols());
        candidate.equations = NormalEquations::empty(nodes, outputs);
        candidate.ledger = Ledger::default();
        candidate.factor = None;
    }
    let outputs = passes.schema.target.outputs();
    let on_record = passes.passing.on_record;
    let count = passes.visit("adding up rows", observer, |rows| {
        let mut y = target_matrix(rows.targets, outputs);
        target_scaler.apply(y.as_mut());
        let inputs = ScaledRows::new(rows.x, input_scaler);
        let mut shared: Option<Vec<f64>> = None;
        let prints = if on_record { fingerprints(rows.x, rows.targets) } else { Vec::new() };
        for (place, candidate) in candidates.iter_mut().enumerate() {
            candidate.map.visit(&inputs, |range, u| {
                let y = y.subrows(range.start, range.len());
                let user = rows.weights.map(|weights| &weights[range.clone()]);
                let prints = if on_record { &prints[range.clone()] } else { &[] };
                if loss == Loss::Squared {
                    candidate.equations.add(u, y, user, parallelism());
                    let ones = vec![1.0; range.len()];
                    candidate
                        .ledger
                        .record(prints, if on_record { user.unwrap_or(&ones) } else { &[] });
                    sums.note(place, user, &ones, &[]);
                    return Ok(());
                }
                let known = shared.as_ref().filter(|_| judged && place > 0);
                let mut trust = match known {
                    Some(shared) => shared[range.clone()].to_vec(),
                    None => {
                        let mut f = Mat::zeros(range.len(), outputs);
                        let w = candidate.judge.as_ref();
                        product(f.as_mut(), Accum::Replace, u, w, parallelism());
                        let e: Mat<f64> = y - f;
                        let mut squares: Vec<f64> =
                            e.row_iter().map(|row| row.squared_norm_l2()).collect();
                        let mut losses = squares.clone();
                        if let Loss::Robust { kind, sigma } = loss {
                            kind.rho(&mut losses, sigma);
                        }
                        loss.weigh(&mut squares);
                        sums.note(place, user, &squares, &losses);
                        squares
                    }
                };
                if judged && place == 0 {
                    shared.get_or_insert_default().extend(&trust);
                }
                if let Some(user) = user {
                    trust.iter_mut().zip(user).for_each(|(trust, user)| *trust *= user);
                }
                candidate.equations.add(u, y, Some(&trust), parallelism());
                candidate.ledger.record(prints, if on_record { &trust } else { &[] });
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok((count, sums))
}

impl Sums {
    /// Takes note of what the first network makes of some rows.
    fn note(&mut self, place: usize, user: Option<&[f64]>, trust: &[f64], losses: &[f64]) {
        if place > 0 {
            return;
        }
        let user = |row: usize| user.map_or(1.0, |user| user[row]);
        for (row, &trust) in trust.iter().enumerate() {
            self.user += user(row);
            self.low += if trust < 0.5 { user(row) } else { 0.0 };
            self.most = self.most.max(trust);
        }
        self.losses += losses.iter().enumerate().map(|(row, loss)| user(row) * loss).sum::<f64>();
    }
}

/// The model of these networks.
fn finished(
    candidates: Vec<Candidate>,
    schema: &Schema,
    (input_scaler, target_scaler): (Scaler, Scaler),
    decision: &Decision,
    report: &SolveReport,
    (count, rows, y): (u64, Labelled<'_>, Mat<f64>),
) -> Result<Model> {
    let ridge = report.ridge.unwrap_or(0.0);
    let mut members = Vec::with_capacity(candidates.len());
    // The sample goes on record with the weights that it got; the other rows only if that was asked for.
    let prints = fingerprints(rows.x, rows.targets);
    let mut shared: Option<Vec<f64>> = None;
    for Candidate { settings, map, w, equations, mut ledger, factor, judge, .. } in candidates {
        let inputs = ScaledRows::new(rows.x, &input_scaler);
        let state = StateRows::new(&map, inputs);
        let system = System::new(&state, y.as_ref(), PRECISION, parallelism());
        let mut norms = system.squared_residuals(system.outputs(w.as_ref())?.as_ref());
        norms.iter_mut().for_each(|square| *square = square.sqrt());
        let left = (1.0 - w.nrows() as f64 / count as f64).max(0.05);
        let median = statistics::median(&norms, rows.weights).unwrap_or(0.0);
        let mut report = SolveReport { spread: 1.4826 * median / left, ..report.clone() };
        if members.is_empty() {
            report.candidates.clone_from(&decision.candidates);
            report.networks.clone_from(&decision.networks);
        }
        let mut weights = match shared.take() {
            Some(weights) => weights,
            None => system.squared_residuals(system.outputs(judge.as_ref())?.as_ref()),
        };
        if members.is_empty() || !report.cross_fitted {
            report.loss.weigh(&mut weights);
            if let Some(user) = rows.weights {
                weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= user);
            }
        }
        shared = report.cross_fitted.then(|| weights.clone());
        drop(state);
        let factor = factor.map(|factor| (factor, 0));
        if ledger.is_empty() {
            let dropped = count.saturating_sub(prints.len() as u64);
            ledger = Ledger::from_parts(prints.clone(), weights, dropped).unwrap_or_default();
        }
        members.push(Member {
            settings,
            schema: schema.clone(),
            input_scaler: input_scaler.clone(),
            target_scaler: target_scaler.clone(),
            map,
            w,
            knowledge: Some(Knowledge::from_parts(equations, ridge, ledger, factor, false)),
            report,
            rows: count,
        });
    }
    Ok(Model { members, discriminant: None, calibration: None, continuation: None })
}
