//! What all commands share that change a model: reading rows by its schema, verifying, saving.

use super::fit::save;
use crate::context::Context;
use crate::data_args::{DataArgs, warn_of};
use crate::fault::Fault;
use crate::format;
use crate::output;
use broadlearn::data::{Samples, SchemaReader};
use broadlearn::{Category, Error, Model};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Where a changed model goes, and how it is checked.
#[derive(Args, Clone, Debug)]
pub(crate) struct UpdateArgs {
    /// Where the changed model goes [default: in place of MODEL]
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Refit from --history with the weights on record and print how far the predictions differ
    #[arg(long)]
    pub(super) verify: bool,
    /// The tables that the model has learnt so far, for --verify; DATA need not be named again
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "verify")]
    history: Vec<PathBuf>,
    /// Leave out rows without a target
    #[arg(long)]
    pub(super) drop_missing_target: bool,
}

impl UpdateArgs {
    /// The place of the model that these rows change; a model from stdin has none of its own.
    pub(super) fn target<'a>(
        &'a self,
        model: &'a PathBuf,
        data: impl IntoIterator<Item = &'a PathBuf>,
        context: &Context,
    ) -> Result<&'a Path, Fault> {
        let target = self.out.as_ref().unwrap_or(model);
        if target == Path::new("-") && self.out.is_none() {
            return Err(Error::setting("out", "nothing, for a model from stdin")
                .expected("--out FILE, or --out - for stdout")
                .into());
        }
        output::check_places([target], data)?;
        output::check_stdout(context.json, Some(target))?;
        Ok(target)
    }

    /// An error if a verification was asked for: the rows of a stream are gone when it ends.
    pub(super) fn refuse_verify(&self) -> Result<(), Fault> {
        match self.verify {
            false => Ok(()),
            true => Err(Error::setting("verify", "a stream")
                .expected("a table that can be read again")
                .advice("learn from a file without --stream")
                .into()),
        }
    }

    /// The relative difference of the predictions from those of a refit, if it was asked for.
    pub(super) fn verify(
        &self,
        model: &Model,
        new: Option<&Samples>,
        table: &DataArgs,
        context: &Context,
    ) -> Result<Option<f64>, Fault> {
        if !self.verify {
            return Ok(None);
        }
        let drop = self.drop_missing_target;
        let history;
        let rows = match (new, self.history.is_empty()) {
            (Some(new), true) => new,
            (new, _) => {
                let mut rows = read_rows(model, &self.history, drop, table, context)?;
                new.into_iter().for_each(|new| rows.append(new));
                history = rows;
                &history
            }
        };
        let refit = model.refit(rows.into(), &mut context.observer())?;
        context.end_progress();
        let difference = model.difference(&refit, rows.x.as_ref())?;
        // Two sums of the same rows differ by rounding, which a tiny ridge lets through to rows of
        // little weight.
        let why = match model.report().ridge {
            Some(ridge) if ridge < 1e-5 && difference > 1e-8 => {
                format!(" (rounding, at a ridge of {})", format::setting(ridge))
            }
            _ => String::new(),
        };
        context.say(format_args!(
            "verified: predictions differ from a refit by {difference:.1e}{why}"
        ));
        Ok(Some(difference))
    }
}

/// All rows of these tables, by the schema of a model.
pub(super) fn read_rows(
    model: &Model,
    paths: &[PathBuf],
    drop_missing_target: bool,
    table: &DataArgs,
    context: &Context,
) -> Result<Samples, Fault> {
    let mut all: Option<Samples> = None;
    for path in paths {
        let samples = read_within(model, path, drop_missing_target, u64::MAX, table, context)?;
        match (&mut all, samples) {
            (None, samples) => all = samples,
            (Some(all), samples) => samples.iter().for_each(|samples| all.append(samples)),
        }
    }
    let none = || Error::setting("history", "no table").expected("--history FILE, with --verify");
    Ok(all.ok_or_else(none)?)
}

/// All rows of a table, by the schema of a model, if their numbers take no more bytes than this.
pub(super) fn read_within(
    model: &Model,
    path: &Path,
    drop_missing_target: bool,
    bytes: u64,
    table: &DataArgs,
    context: &Context,
) -> Result<Option<Samples>, Fault> {
    let reader = table.open_for(model, path)?;
    let mut reader = SchemaReader::new(reader, model.schema(), true, drop_missing_target)?;
    let samples = reader.read_within(bytes, &mut context.observer())?;
    context.end_progress();
    if samples.is_some() {
        warn_of(reader.surprises(), model.schema(), context);
    }
    Ok(samples)
}

/// Names the table in an error about its rows.
pub(super) fn about(error: Error, data: &Path) -> Error {
    match error.category() {
        Category::Data => error.within(&data.display().to_string()),
        _ => error,
    }
}

/// Warns if more of the rows that came were not believed, or kept out, than can be wrong.
pub(super) fn warn_of_distrust(distrusted: u64, rows: u64, context: &Context) {
    /// Beyond that nobody can tell which rows are right.
    const MOST_WRONG: f64 = 0.5;
    let share = distrusted as f64 / rows as f64;
    if rows >= 10 && share > MOST_WRONG {
        context.warn(format_args!(
            "{:.0} % of these rows are hardly believed. If they are right, what they tell has changed, and this model does not \
             follow: begin anew with `broadlearn refine --anneal MODEL` and all its rows, or with a model of the new ones; \
             models of `--loss huber` follow changes",
            100.0 * share
        ));
    }
}

/// A model that has learnt new classes may have lost what told the others apart.
pub(super) fn warn_of_dropped_discriminant(had_one: bool, model: &Model, context: &Context) {
    if had_one && !model.has_discriminant() {
        context.warn(
            "what told the classes apart knows nothing of the new ones and was dropped, with the sets of classes: \
             `broadlearn refine` finds both anew from all rows",
        );
    }
}

/// Saves the changed model and says so, in words or as JSON.
pub(super) fn finish(
    model: &Model,
    target: &Path,
    words: &str,
    mut facts: Value,
    verified: Option<f64>,
    context: &Context,
) -> Result<(), Fault> {
    save(model, target)?;
    if context.json && target != Path::new("-") {
        facts["model"] = json!(target);
        facts["rows"] = json!(model.rows());
        facts["nodes"] = json!(model.map().width());
        facts["verified_difference"] = json!(verified);
        return crate::output::print_json(&facts);
    }
    let rows = format::plural(model.rows(), "row");
    let nodes = format::plural(model.map().width() as u64, "node");
    context.say(format_args!("{words}\nwrote {}: {rows}, {nodes}", target.display()));
    Ok(())
}
