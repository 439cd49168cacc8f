//! `broadlearn audit`: which rows of a table are suspicious.

mod finding;
mod places;
mod suspect;
mod table;

use super::fit::{bound, is_regular};
use super::update::about;
use crate::context::Context;
use crate::data_args::{ColumnArgs, DataArgs, load_model, warn_of};
use crate::fault::Fault;
use crate::output;
use broadlearn::data::{SchemaReader, TableReader};
use broadlearn::evaluate::Audit;
use broadlearn::model::{Passing, TableRows, Training};
use broadlearn::{Error, Model, Settings};
use clap::Args;
use places::Places;
use serde_json::json;
use std::path::{Path, PathBuf};
use suspect::EXPLAINED;
use table::{Rows, Table};

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn audit train.csv --target price
  broadlearn audit price.broad train.csv --top 50 --report audit.html
  broadlearn audit labels.csv --target kind --out clean.csv --drop
  broadlearn audit labels.csv --target kind --json | jq '.suspects[].row'

Every row is predicted by a model that has learnt all rows but this one (exactly, in closed form), and
that gives rows with wild targets hardly any weight. Rows are numbered from 1, the header not counted.
With a MODEL, rows that it has not learnt are simply predicted.

score        the residual, in spreads of trustworthy rows like it; of 0/1 outputs for classes
weight       what the row counts for in the model, from 0 to 1
effect       by how much forgetting the row would change predictions (root mean square, scaled target)
because of   columns whose typical value in this row would change the prediction most: of suspects, and of the
             first 20 rows")]
pub(crate) struct AuditArgs {
    /// The table to audit; or a model and the table
    #[arg(required = true, num_args = 1..=2, value_names = ["MODEL", "DATA"])]
    inputs: Vec<PathBuf>,
    /// The column whose values are in question: a name, a number from 1, or last (repeat for several targets); without a
    /// MODEL
    #[arg(long, short, value_name = "COLUMN")]
    target: Vec<String>,
    /// How many rows are listed [default: 20; with --json all suspects, if there are more, up to
    /// 1000]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Write the table here, with a column that says which rows are suspects (CSV)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// With --out: leave the suspects out instead
    #[arg(long, requires = "out", conflicts_with = "fix")]
    drop: bool,
    /// With --out: put the expected value in place of a suspect's target instead
    #[arg(long, requires = "out")]
    fix: bool,
    /// Write a page with pictures here (HTML)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The seed of all random numbers; without a MODEL [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Time that the fit may take on a usual processor, such as 5s: more time, larger networks; without
    /// a MODEL [default: a fifth of a second and a tenth of a millisecond for every row]
    #[arg(long, value_name = "TIME", value_parser = crate::learning_args::seconds)]
    budget: Option<f64>,
    /// Memory for the table, such as 500M or 2G: a larger file is read in passes, and some fifty bytes a row are
    /// kept [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = crate::learning_args::bytes)]
    memory: Option<u64>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &AuditArgs, context: &Context) -> Result<(), Fault> {
    args.table.refuse_skipping()?;
    output::check_places(args.out.iter().chain(&args.report), &args.inputs)?;
    output::check_stdout(context.json, args.out.as_deref())?;
    output::check_table(args.out.as_deref())?;
    let (model, data) = args.model_and_data(context)?;
    let rows = args.rows(&model, data, context)?;
    let places = args.places(&model, data)?;
    let table = Table { model: &model, rows, places, data, args, context };
    let mut leaving = model.leaving_out()?;
    let finding = table.audit(&mut leaving)?;
    leaving.restart();
    let audit = &finding.audit;
    let listed = &audit.order[..args.listed(audit, context.json)];
    let suspects = table.suspects(&mut leaving, audit, listed)?;
    context.end_progress();

    if let Some(path) = &args.out {
        finding.write_table(path, data, args)?;
    }
    if let Some(path) = &args.report {
        output::write_file(path, &finding.page(data, &suspects))?;
    }
    if context.json {
        let share = audit.contamination;
        return output::print_json(&json!({
            "data": data,
            "n_rows": audit.scores.len(),
            "n_without_target": table.places.left_out(),
            "contamination": share.estimate,
            "contamination_interval": [share.low, share.high],
            "n_suspects": audit.suspects.iter().filter(|suspect| **suspect).count(),
            "suspects": suspects.iter().map(|suspect| suspect.to_json(&table.places)).collect::<Vec<_>>(),
        }));
    }
    output::print(&finding.describe(&suspects))?;
    for path in [&args.out, &args.report].into_iter().flatten() {
        context.say(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

impl AuditArgs {
    /// How many rows are listed. People look at the first ones, programs want all that are in question.
    fn listed(&self, audit: &Audit, json: bool) -> usize {
        let suspects = || audit.suspects.iter().filter(|suspect| **suspect).count();
        let usual = || if json { suspects().clamp(EXPLAINED, MOST_LISTED) } else { EXPLAINED };
        self.top.unwrap_or_else(usual).min(audit.order.len())
    }

    /// An error for what a model has decided already.
    fn check_with_model(&self) -> Result<(), Fault> {
        let given = [("seed", self.seed.is_some()), ("budget", self.budget.is_some())];
        let given = given.iter().find(|(_, given)| *given).map(|(name, _)| *name);
        match given.or(self.columns.known_by_models()) {
            None => Ok(()),
            Some(name) => Err(Error::setting(name, "a value with a MODEL")
                .expected("no such option: nothing is fitted, and the model knows its columns")
                .into()),
        }
    }

    /// Marks of an earlier audit must not be inputs of the next one.
    fn check_marks<'n>(&self, mut inputs: impl Iterator<Item = &'n str>) -> Result<(), Fault> {
        if self.marks() && inputs.any(|name| name == MARK) {
            return Err(Error::setting(
                "out",
                format!("a table whose column `{MARK}` is an input"),
            )
            .expected(
                "a table without this column, which is to be written, or with --ignore suspect",
            )
            .into());
        }
        Ok(())
    }

    /// Whether the table is written with a column of marks.
    fn marks(&self) -> bool {
        self.out.is_some() && !self.drop && !self.fix
    }

    fn model_and_data(&self, context: &Context) -> Result<(Model, &Path), Fault> {
        match (self.inputs.as_slice(), self.target.is_empty()) {
            ([model, data], true) => {
                self.check_with_model()?;
                let model = load_model(model, Some(data))?;
                self.check_marks(model.schema().inputs.iter().map(|input| input.name.as_str()))?;
                Ok((model, data))
            }
            ([data], false) => Ok((self.fit(data, context)?, data)),
            ([_], true) => Err(Error::setting("target", "nothing")
                .expected("--target COLUMN with a table, or a model and a table")
                .into()),
            _ => Err(Error::setting("target", "a column with a model")
                .expected("either --target COLUMN or a MODEL, which knows its target")
                .into()),
        }
    }

    /// The rows of the table as the model reads them, if there is room for them.
    fn rows(&self, model: &Model, data: &Path, context: &Context) -> Result<Rows, Fault> {
        // A stream cannot be read again.
        let bytes = if is_regular(data) { self.memory() / 3 } else { u64::MAX };
        let reader = self.table.open_for(model, data)?;
        let drop = self.columns.drop_missing_target;
        let mut reader = SchemaReader::new(reader, model.schema(), true, drop)?;
        let samples = reader.read_within(bytes, &mut context.observer())?;
        context.end_progress();
        // What a fit met was said then.
        if samples.is_some() && self.target.is_empty() {
            warn_of(reader.surprises(), model.schema(), context);
        }
        Ok(samples.map_or(Rows::InPasses, |samples| Rows::InMemory(Box::new(samples))))
    }

    /// Where these rows stand in the table.
    fn places(&self, model: &Model, data: &Path) -> Result<Places, Fault> {
        if !self.columns.drop_missing_target {
            return Ok(Places::default());
        }
        check_file(data)?;
        Ok(Places::find(self.table.open_for(model, data)?, model)?)
    }

    fn memory(&self) -> u64 {
        self.memory.unwrap_or_else(broadlearn::memory::share_of_free)
    }

    /// A robust fit with everything automatic.
    fn fit(&self, data: &Path, context: &Context) -> Result<Model, Fault> {
        check_file(data)?;
        let mut reader = self.table.open(data)?;
        let ignored = self.target.iter().chain(&self.columns.ignore);
        let ignored: Vec<&String> = ignored.collect();
        let used = reader.columns().iter().filter(|name| !ignored.contains(name));
        self.check_marks(used.map(String::as_str))?;
        let seed = self.seed.unwrap_or(0);
        let bound = bound(self.memory, data, &reader, seed);
        let table = self.columns.read_within(&mut reader, &self.target, bound, context)?;
        let all: Vec<usize> = (0..table.len()).collect();
        let schema = table.schema(&all)?;
        // A smaller network than a prediction deserves finds wrong rows as well: they are far off.
        let count = table.table_rows().unwrap_or(0);
        let budget = self.budget.unwrap_or(0.2 + count as f64 / 10_000.0);
        let settings = Settings::new().members(1).budget(budget).seed(seed);
        let mut observer = context.observer();
        let model = if table.is_complete() {
            let samples = table.into_samples(&schema)?;
            let training = Training {
                x: samples.x.as_ref(),
                targets: &samples.targets,
                weights: samples.weights.as_deref(),
                schema,
            };
            settings.fit(training, &mut observer).map_err(|error| about(error, data))?
        } else {
            // Rows are left out with the weights on record.
            let drop_missing_target = self.columns.drop_missing_target;
            let passing = Passing { drop_missing_target, on_record: true };
            let mut open = || TableReader::open(data, &self.table.options());
            let rows = TableRows::Again(&mut open);
            let settings = settings.memory(self.memory());
            settings.fit_table(&table, rows, passing, &mut observer)?
        };
        drop(observer);
        context.end_progress();
        Ok(model)
    }
}

/// An error if this is nothing that can be read more than once.
fn check_file(data: &Path) -> Result<(), Fault> {
    match data == Path::new("-") || (data.exists() && !is_regular(data)) {
        false => Ok(()),
        true => Err(Error::setting("DATA", data.display())
            .expected("a file, which can be read more than once")
            .into()),
    }
}

/// Suspects that are listed unless more are asked for: what the removal of each changes takes a product with U.
const MOST_LISTED: usize = 1000;

/// The column that says which rows are suspects.
const MARK: &str = "suspect";
