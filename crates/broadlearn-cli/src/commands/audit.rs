//! `broadlearn audit`: which rows of a table are suspicious.

use super::fit::{bound, is_regular};
use super::predict::quoted;
use super::update::{about, read_within};
use crate::context::Context;
use crate::data_args::{DataArgs, TaskName, load_model, say_task, warn_of_columns};
use crate::fault::Fault;
use crate::output::Output;
use crate::{format, output};
use broadlearn::data::{
    Encoding, Kind, Roles, Samples, SchemaReader, TableReader, TargetSchema, Targets, TrainingData,
};
use broadlearn::evaluate::{Audit, Auditor};
use broadlearn::faer::Mat;
use broadlearn::model::{Labelled, LeavingOut, LeftOut, Passing, Removals, TableRows, Training};
use broadlearn::{Error, Model, Observer, Progress, Settings, unobserved};
use clap::Args;
use serde_json::json;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

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

score        the residual, in spreads of the trustworthy rows; of 0/1 outputs for classes
weight       what the row counts for in the model, from 0 to 1
effect       by how much forgetting the row would change predictions (root mean square, scaled target)
because of   columns whose typical value in this row would change the prediction most: of suspects, and of the
             first 20 rows")]
pub(crate) struct AuditArgs {
    /// The table to audit; or a model and the table
    #[arg(required = true, num_args = 1..=2, value_names = ["MODEL", "DATA"])]
    inputs: Vec<PathBuf>,
    /// The column whose values are in question: a name, a number from 1, or last; without a MODEL
    #[arg(long, short, value_name = "COLUMN")]
    target: Option<String>,
    /// Columns that are not used (repeatable); without a MODEL
    #[arg(long, value_name = "COLUMN")]
    ignore: Vec<String>,
    /// What the target is; without a MODEL [default: found by looking]
    #[arg(long, value_enum)]
    task: Option<TaskName>,
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
    table: DataArgs,
}

pub(crate) fn run(args: &AuditArgs, context: &Context) -> Result<(), Fault> {
    args.table.refuse_skipping()?;
    output::check_places(args.out.iter().chain(&args.report), &args.inputs)?;
    output::check_stdout(context.json, args.out.as_deref())?;
    let (model, data, rows) = args.model_and_data(context)?;
    let table = Table { model: &model, rows, data, args, context };
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
            "contamination": share.estimate,
            "contamination_interval": [share.low, share.high],
            "n_suspects": audit.suspects.iter().filter(|suspect| **suspect).count(),
            "suspects": suspects.iter().map(Suspect::to_json).collect::<Vec<_>>(),
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
        let given = [
            ("seed", self.seed.is_some()),
            ("budget", self.budget.is_some()),
            ("ignore", !self.ignore.is_empty()),
            ("task", self.task.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(Error::setting(name, "a value with a MODEL")
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

    fn model_and_data(&self, context: &Context) -> Result<(Model, &Path, Rows), Fault> {
        match (self.inputs.as_slice(), &self.target) {
            ([model, data], None) => {
                self.check_with_model()?;
                let model = load_model(model, Some(data))?;
                self.check_marks(model.schema().inputs.iter().map(|input| input.name.as_str()))?;
                // A stream cannot be read again.
                let bytes = if is_regular(data) { self.memory() / 3 } else { u64::MAX };
                let samples = read_within(&model, data, false, bytes, &self.table, context)?;
                Ok((model, data, samples.map_or(Rows::InPasses, Rows::InMemory)))
            }
            ([data], Some(target)) => {
                let (model, rows) = self.fit(data, target, context)?;
                Ok((model, data, rows))
            }
            ([_], None) => Err(Error::setting("target", "nothing")
                .expected("--target COLUMN with a table, or a model and a table")
                .into()),
            _ => Err(Error::setting("target", "a column with a model")
                .expected("either --target COLUMN or a MODEL, which knows its target")
                .into()),
        }
    }

    fn memory(&self) -> u64 {
        self.memory.unwrap_or_else(broadlearn::memory::share_of_free)
    }

    /// A robust fit with everything automatic.
    fn fit(&self, data: &Path, target: &str, context: &Context) -> Result<(Model, Rows), Fault> {
        if data == Path::new("-") || (data.exists() && !is_regular(data)) {
            return Err(Error::setting("DATA", data.display())
                .expected("a file, which can be read twice")
                .into());
        }
        let mut roles = Roles::target(target);
        roles.ignore.clone_from(&self.ignore);
        roles.task = self.task.map(Into::into);
        let mut reader = self.table.open(data)?;
        let used = |name: &&String| *name != target && !self.ignore.contains(*name);
        self.check_marks(reader.columns().iter().filter(used).map(String::as_str))?;
        let seed = self.seed.unwrap_or(0);
        let bound = bound(self.memory, data, &reader, seed);
        let mut observer = context.observer();
        let table = TrainingData::read_within(&mut reader, &roles, bound, &mut observer)?;
        warn_of_columns(&table, context);
        if self.task.is_none() {
            say_task(&table, context);
        }
        let all: Vec<usize> = (0..table.len()).collect();
        let schema = table.schema(&all)?;
        // A smaller network than a prediction deserves finds wrong rows as well: they are far off.
        let count = table.table_rows().unwrap_or(0);
        let budget = self.budget.unwrap_or(0.2 + count as f64 / 10_000.0);
        let settings = Settings::new().members(1).budget(budget).seed(seed);
        if !table.is_complete() {
            // Rows are left out with the weights on record.
            let passing = Passing { drop_missing_target: false, on_record: true };
            let mut open = || TableReader::open(data, &self.table.options());
            let rows = TableRows::Again(&mut open);
            let settings = settings.memory(self.memory());
            let model = settings.fit_table(&table, rows, passing, &mut observer)?;
            drop(observer);
            context.end_progress();
            return Ok((model, Rows::InPasses));
        }
        let samples = table.into_samples(&schema)?;
        let training = Training {
            x: samples.x.as_ref(),
            targets: &samples.targets,
            weights: samples.weights.as_deref(),
            schema,
        };
        let model = settings.fit(training, &mut observer).map_err(|error| about(error, data))?;
        drop(observer);
        context.end_progress();
        Ok((model, Rows::InMemory(samples)))
    }
}

/// Suspects that are listed unless more are asked for: what the removal of each changes takes a product with U.
const MOST_LISTED: usize = 1000;

/// The column that says which rows are suspects.
const MARK: &str = "suspect";

/// Rows that are read together in a pass: two of the library's blocks.
const BLOCK_ROWS: usize = 4000;

/// Where the rows are: in memory, or in a file that is read again in every pass.
enum Rows {
    InMemory(Samples),
    InPasses,
}

/// A table, and a model that judges it.
struct Table<'a> {
    model: &'a Model,
    rows: Rows,
    data: &'a Path,
    args: &'a AuditArgs,
    context: &'a Context,
}

impl Table<'_> {
    /// Hands all rows to `see`, in order, with the number of those before them.
    fn pass(
        &self,
        stage: &'static str,
        total: Option<u64>,
        mut see: impl FnMut(usize, Labelled<'_>, &mut Observer<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut observer = self.context.observer();
        if let Rows::InMemory(samples) = &self.rows {
            return see(0, samples.into(), &mut observer);
        }
        let reader = self.args.table.open_for(self.model, self.data)?;
        let mut reader = SchemaReader::new(reader, self.model.schema(), true, false)?;
        let mut done = 0;
        reader.for_each_block(BLOCK_ROWS, |block| {
            let progress = Progress { stage, done: done as u64, total, member: None };
            if observer(progress) == ControlFlow::Break(()) {
                return Err(Error::interrupted().into());
            }
            if let Some(targets) = &block.targets {
                let (x, weights) = (block.x.as_ref(), block.weights.as_deref());
                see(done, Labelled { x, targets, weights }, &mut unobserved)?;
            }
            done += block.x.nrows();
            Ok(())
        })
    }

    /// Judges all rows: n L^2 flops, and some numbers a row.
    fn audit(&self, leaving: &mut LeavingOut<'_>) -> Result<Finding<'_>, Fault> {
        let mut auditor = Auditor::default();
        let (mut expected, mut given) = (Expected::default(), Vec::new());
        let (is_shown, is_fixed) = (self.args.report.is_some(), self.args.fix);
        self.pass("leaving rows out", None, |_, rows, observer| {
            let left_out = leaving.next_rows(rows, observer).map_err(|e| about(e, self.data))?;
            auditor.add(&left_out, rows.targets)?;
            if is_fixed || is_shown {
                expected.add(&left_out, rows.targets);
            }
            if let (Targets::Values(y), true) = (rows.targets, is_shown) {
                given.extend(y.col(0).iter());
            }
            Ok(())
        })?;
        Ok(Finding { model: self.model, audit: auditor.finish()?, expected, given })
    }

    /// What is to be said of the listed rows: one pass to find them, one for what their removal would change.
    fn suspects(
        &self,
        leaving: &mut LeavingOut<'_>,
        audit: &Audit,
        listed: &[usize],
    ) -> Result<Vec<Suspect>, Fault> {
        let mut places = listed.to_vec();
        places.sort_unstable();
        let total = Some(audit.scores.len() as u64);
        let first = &listed[..listed.len().min(EXPLAINED)];
        let mut removals = Removals::new(self.model);
        let mut suspects: Vec<Suspect> = Vec::with_capacity(listed.len());
        self.pass("looking at suspects", total, |before, rows, _| {
            let inside = before..before + rows.x.nrows();
            let chosen: Vec<usize> = places
                .iter()
                .filter(|place| inside.contains(place))
                .map(|place| place - before)
                .collect();
            if let Some((left_out, more)) = leaving.next_chosen(rows, &chosen)? {
                let details = Details::new(self.model, rows, &left_out);
                for (place, &row) in chosen.iter().enumerate() {
                    let number = before + row;
                    let explained = audit.suspects[number] || first.contains(&number);
                    suspects.push(details.suspect(number, row, place, audit, explained)?);
                }
                removals.append(more);
            }
            Ok(())
        })?;
        self.pass("removing rows", total, |_, rows, observer| Ok(removals.see(rows.x, observer)?))?;
        for (suspect, effect) in suspects.iter_mut().zip(removals.effects()) {
            suspect.effect = effect;
        }
        let ranks: HashMap<usize, usize> =
            listed.iter().enumerate().map(|(rank, &row)| (row, rank)).collect();
        suspects.sort_by_key(|suspect| ranks.get(&suspect.row).copied());
        Ok(suspects)
    }
}

/// What the model expects of every row.
#[derive(Default)]
struct Expected {
    /// All values of a row together.
    values: Vec<f64>,
    classes: Vec<u32>,
}

impl Expected {
    fn add(&mut self, left_out: &LeftOut, targets: &Targets) {
        match targets {
            Targets::Values(_) => {
                let values = left_out.predictions.values();
                values.row_iter().for_each(|row| self.values.extend(row.iter()));
            }
            Targets::Classes(_) => self.classes.extend(left_out.predictions.classes()),
        }
    }

    /// The cells of a row.
    fn cells(&self, row: usize, target: &TargetSchema) -> Vec<String> {
        match target {
            TargetSchema::Regression { names } => {
                let values = &self.values[row * names.len()..][..names.len()];
                values.iter().map(f64::to_string).collect()
            }
            TargetSchema::Classification { classes, .. } => {
                vec![classes[self.classes[row] as usize].clone()]
            }
        }
    }
}

/// What was found out about a table.
struct Finding<'a> {
    model: &'a Model,
    audit: Audit,
    /// Only for --fix and --report.
    expected: Expected,
    /// The first target of every row, only for --report.
    given: Vec<f64>,
}

/// Some rows, some of which are looked at closely.
struct Details<'a> {
    model: &'a Model,
    rows: Labelled<'a>,
    /// Of these only.
    left_out: &'a LeftOut,
    expected: Expected,
}

/// Rows that are listed for people, and whose columns are looked at even if they are no suspects. Of the others nobody asks what speaks against them, and
/// every answer takes a prediction for each column.
const EXPLAINED: usize = 20;

/// A listed row.
struct Suspect {
    row: usize,
    given: Vec<String>,
    expected: Vec<String>,
    /// Of the expected class.
    probability: Option<f64>,
    score: f64,
    weight: Option<f64>,
    effect: f64,
    suspect: bool,
    /// Columns that speak most for what is expected, and by how much, in units of the outputs.
    columns: Vec<(String, f64)>,
}

impl Suspect {
    fn to_json(&self) -> serde_json::Value {
        let plain = |cells: &[String]| -> serde_json::Value {
            let value = |cell: &String| match cell.parse::<f64>() {
                Ok(number) if number.is_finite() => json!(number),
                _ => json!(cell),
            };
            match cells {
                [cell] => value(cell),
                cells => cells.iter().map(value).collect(),
            }
        };
        json!({
            "row": self.row + 1,
            "given": plain(&self.given),
            "expected": plain(&self.expected),
            "probability": self.probability,
            "score": self.score,
            "weight": self.weight,
            "removal_effect": self.effect,
            "suspect": self.suspect,
            "columns": self.columns.iter()
                .map(|(name, by)| json!({"column": name, "effect": by})).collect::<Vec<_>>(),
        })
    }
}

impl<'a> Details<'a> {
    fn new(model: &'a Model, rows: Labelled<'a>, left_out: &'a LeftOut) -> Self {
        let mut expected = Expected::default();
        expected.add(left_out, rows.targets);
        Self { model, rows, left_out, expected }
    }

    /// What is to be said of a row: its number in the table, among these rows, and among those that are looked at. Which
    /// columns speak against it is found out only where that is `explained`.
    fn suspect(
        &self,
        number: usize,
        row: usize,
        place: usize,
        audit: &Audit,
        explained: bool,
    ) -> Result<Suspect, Fault> {
        let predictions = &self.left_out.predictions;
        let user = self.rows.weights.map_or(1.0, |weights| weights[row]);
        let class = self.expected.classes.get(place).copied();
        Ok(Suspect {
            row: number,
            given: self.given(row),
            expected: self.expected.cells(place, &self.model.schema().target),
            probability: class.map(|class| predictions.probabilities()[(place, class as usize)]),
            score: audit.scores[number],
            weight: self.left_out.weights[place].map(|weight| weight / user),
            effect: 0.0,
            suspect: audit.suspects[number],
            columns: if explained { self.columns(row, class)? } else { Vec::new() },
        })
    }

    fn given(&self, row: usize) -> Vec<String> {
        match (self.rows.targets, &self.model.schema().target) {
            (Targets::Values(y), _) => (0..y.ncols()).map(|j| y[(row, j)].to_string()).collect(),
            (Targets::Classes(codes), TargetSchema::Classification { classes, .. }) => {
                vec![classes[codes[row] as usize].clone()]
            }
            _ => Vec::new(),
        }
    }

    /// The three columns that change the prediction most when a typical value takes their place: in
    /// favour of the expected class against the given one, or of the distance between the two values.
    fn columns(&self, row: usize, expected: Option<u32>) -> Result<Vec<(String, f64)>, Fault> {
        let schema = self.model.schema();
        let x: Vec<f64> = self.rows.x.row(row).iter().copied().collect();
        let mut variants = Mat::from_fn(schema.inputs.len() + 1, x.len(), |_, j| x[j]);
        let mut start = 0;
        for (variant, input) in schema.inputs.iter().enumerate() {
            let typical = match input.encoding {
                Encoding::Number { fill, .. } => fill,
                Encoding::Category { .. } => 0.0,
            };
            for j in start..start + input.encoding.width() {
                variants[(variant + 1, j)] = if j == start { typical } else { 0.0 };
            }
            start += input.encoding.width();
        }
        let outputs = self.model.predict(&variants)?.values().clone();
        let speaks = |variant: usize| match self.rows.targets {
            Targets::Values(y) => {
                let sign = (outputs[(0, 0)] - y[(row, 0)]).signum();
                sign * outputs[(variant, 0)]
            }
            Targets::Classes(codes) => {
                let expected = expected.unwrap_or(codes[row]) as usize;
                outputs[(variant, expected)] - outputs[(variant, codes[row] as usize)]
            }
        };
        let mut effects: Vec<(String, f64)> = schema
            .inputs
            .iter()
            .enumerate()
            .map(|(place, input)| (input.name.clone(), speaks(0) - speaks(place + 1)))
            .collect();
        effects.sort_by(|a, b| b.1.total_cmp(&a.1));
        effects.retain(|(_, by)| *by > 0.0);
        effects.truncate(3);
        Ok(effects)
    }
}

impl Finding<'_> {
    fn describe(&self, suspects: &[Suspect]) -> String {
        let share = self.audit.contamination;
        let count = self.audit.suspects.iter().filter(|suspect| **suspect).count() as u64;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut text = format!(
            "{} of {} suspicious; wrong targets: about {} ({} to {})\n\n",
            format::plural(count, "row"),
            format::count(self.audit.scores.len() as u64),
            percent(share.estimate),
            percent(share.low),
            percent(share.high)
        );
        text.push_str(&format::table(&self.rows(suspects)));
        text
    }

    fn rows(&self, suspects: &[Suspect]) -> Vec<Vec<String>> {
        let target = &self.model.schema().target;
        let classes = matches!(target, TargetSchema::Classification { .. });
        let mut head = vec!["row", "", "given", "expected"];
        if classes {
            head.push("probability");
        }
        head.extend(["score", "weight", "effect", "because of"]);
        let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
        let short = |cells: &[String]| {
            let cell = |cell: &String| match cell.parse::<f64>() {
                Ok(number) if !classes => format::number(number),
                _ => cell.clone(),
            };
            cells.iter().map(cell).collect::<Vec<_>>().join(" ")
        };
        for suspect in suspects {
            let mut row = vec![
                (suspect.row + 1).to_string(),
                if suspect.suspect { "*" } else { "" }.into(),
                short(&suspect.given),
                short(&suspect.expected),
            ];
            row.extend(suspect.probability.map(|p| format!("{p:.2}")));
            row.push(format::number(suspect.score));
            row.push(suspect.weight.map_or("-".into(), |weight| format!("{weight:.2}")));
            row.push(match suspect.effect {
                effect if effect < 1e-9 => "0".into(),
                effect => format!("{effect:.1e}"),
            });
            let names: Vec<&str> = suspect.columns.iter().map(|(name, _)| name.as_str()).collect();
            row.push(names.join(", "));
            rows.push(row);
        }
        rows
    }

    /// The audited table with a column `suspect`, or without the suspects, or with their targets as
    /// expected.
    fn write_table(&self, path: &Path, data: &Path, args: &AuditArgs) -> Result<(), Fault> {
        let mut reader = args.table.open(data)?;
        let names = reader.columns().to_vec();
        let selection: Vec<(usize, Kind)> = (0..names.len()).map(|c| (c, Kind::Text)).collect();
        reader.select(&selection)?;
        let targets: Vec<Option<usize>> = names
            .iter()
            .map(|name| self.model.schema().target.names().iter().position(|t| t == name))
            .collect();
        let mut out = Output::open(Some(path))?;
        // Earlier marks give way to these.
        let kept = |name: &String| !args.marks() || name != MARK;
        let mut head: Vec<String> =
            names.iter().filter(|name| kept(name)).map(|name| quoted(name)).collect();
        if args.marks() {
            head.push(MARK.into());
        }
        out.write(format!("{}\n", head.join(",")).as_bytes())?;
        while let Some(batch) = reader.next_batch(8192)? {
            for place in 0..batch.rows() {
                let row = (batch.first_row - 1) as usize + place;
                let suspect = self.audit.suspects.get(row).copied().unwrap_or(false);
                if args.drop && suspect {
                    continue;
                }
                let mut cells: Vec<String> = Vec::with_capacity(names.len() + 1);
                let columns = names.iter().zip(batch.columns.iter().zip(&targets));
                for (_, (column, target)) in columns.filter(|(name, _)| kept(name)) {
                    let cell = column.text(place).unwrap_or_default();
                    cells.push(match target {
                        Some(target) if args.fix && suspect => {
                            quoted(&self.expected.cells(row, &self.model.schema().target)[*target])
                        }
                        _ if cell.is_empty() => String::new(),
                        _ => quoted(cell),
                    });
                }
                if args.marks() {
                    cells.push(u8::from(suspect).to_string());
                }
                out.write(format!("{}\n", cells.join(",")).as_bytes())?;
            }
        }
        out.finish()
    }

    fn page(&self, data: &Path, suspects: &[Suspect]) -> String {
        use broadlearn_report::{Card, Chart, Page, Series, Table};
        let share = self.audit.contamination;
        let count = self.audit.suspects.iter().filter(|suspect| **suspect).count() as u64;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut page = Page::new(format!("Audit of {}", data.display()))
            .lead(
                "Every row was predicted by a model that has learnt all rows but this one, and that \
                 gives rows with wild targets hardly any weight.",
            )
            .cards(vec![
                Card::new("rows", format::count(self.audit.scores.len() as u64)),
                Card::new("suspects", format::count(count)),
                Card::new("wrong targets, about", percent(share.estimate)),
                Card::new("between", format!("{:.1} and {:.1} %", 100.0 * share.low, 100.0 * share.high)),
            ]);
        let points = |suspect: bool| -> Vec<(f64, f64)> {
            (0..self.audit.scores.len())
                .filter(|&row| self.audit.suspects[row] == suspect)
                .map(|row| ((row + 1) as f64, self.audit.scores[row]))
                .collect()
        };
        let chart = Chart::new("Scores")
            .x_label("row")
            .y_label("score")
            .series(Series::points("rows", points(false)))
            .series(Series::points("suspects", points(true)));
        page = page.chart(chart, "The residual of each row without itself.");
        if !self.given.is_empty() && self.model.weights().ncols() == 1 {
            let pairs = |suspect: bool| -> Vec<(f64, f64)> {
                (0..self.given.len())
                    .filter(|&row| self.audit.suspects[row] == suspect)
                    .map(|row| (self.expected.values[row], self.given[row]))
                    .collect()
            };
            let chart = Chart::new("Given and expected")
                .x_label("expected")
                .y_label("given")
                .series(Series::points("rows", pairs(false)))
                .series(Series::points("suspects", pairs(true)));
            page = page.chart(chart, "Suspects lie far from the diagonal.");
        }
        let rows = self.rows(suspects);
        if let Some((head, body)) = rows.split_first() {
            let mut table = Table::new(head.clone())
                .caption("Most suspicious first; * marks those whose target is taken to be wrong.");
            for row in body {
                table = table.row(row.clone());
            }
            page = page.section("Most suspicious rows").table(table);
        }
        page.footer("Made by broadlearn.").to_html()
    }
}
