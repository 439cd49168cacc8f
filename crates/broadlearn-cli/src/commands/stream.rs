//! `broadlearn learn` on a stream: predict, score, learn, batch by batch, in constant memory.

use super::fit::save;
use super::learn::LearnArgs;
use super::predict::{Further, Writer, quoted};
use super::update::{warn_of_distrust, warn_of_dropped_discriminant};
use crate::context::{self, Context};
use crate::data_args::{load_model, warn_of};
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::data::{Samples, Schema, SchemaReader, Surprises, TargetSchema, Targets};
use broadlearn::model::{Learning, Learnt};
use broadlearn::{Error, Model, Predictions, unobserved};
use clap::Args;
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Streams")]
pub(crate) struct StreamArgs {
    /// Treat DATA as a stream even if it is a file
    #[arg(long)]
    pub(super) stream: bool,
    /// Rows that are weighed together, by the model before all of them [default: 1, each row by the
    /// model that has learnt the rows before it]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Write the prediction for every row, made before it is learnt, here as CSV (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub(super) predictions: Option<PathBuf>,
    /// Save the model after every N rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    snapshot_rows: Option<u64>,
    /// Save the model every S seconds, when a row comes
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    snapshot_seconds: Option<u64>,
    /// Rows that stay on record, so that they can be forgotten [default: 100000, or as many as there
    /// are in the beginning]
    #[arg(long, value_name = "N")]
    remember: Option<usize>,
}

impl StreamArgs {
    /// An error if an option was given that only a stream has.
    pub(super) fn check_unused(&self) -> Result<(), Fault> {
        let given = [
            ("batch", self.batch.is_some()),
            ("predictions", self.predictions.is_some()),
            ("snapshot-rows", self.snapshot_rows.is_some()),
            ("snapshot-seconds", self.snapshot_seconds.is_some()),
            ("remember", self.remember.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(Error::setting(name, "a value")
                .expected("a stream")
                .advice("add --stream, or read from stdin with -")
                .into()),
        }
    }
}

/// Rows that are learnt one by one in one call, if so many are there.
const TOGETHER: usize = 512;

pub(super) fn run_stream(args: &LearnArgs, context: &Context) -> Result<(), Fault> {
    let target = args.update.target(&args.model, [&args.data], context)?;
    args.update.refuse_verify()?;
    let to_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let model_to_stdout = target == Path::new("-");
    if (context.json || model_to_stdout) && to_stdout(&args.stream.predictions) {
        let with = if context.json { "- with --json" } else { "- with --out -" };
        return Err(Error::setting("predictions", with)
            .expected("stdout for one of them only")
            .into());
    }
    let model = load_model(&args.model, Some(&args.data))?;
    args.learning().check()?;
    model.updatable()?;
    args.check_new_classes(&model)?;
    // The reader goes on with the columns that it was opened with; classes are added to the model.
    let schema = model.schema().clone();
    let reader = args.table.open_stream(&model, &args.data).map_err(|fault| {
        if context::interrupted() { Error::interrupted().into() } else { fault }
    })?;
    let mut reader = SchemaReader::new(reader, &schema, true, args.update.drop_missing_target)?
        .delivering_good_rows();
    if args.new_classes {
        reader = reader.accepting_new_classes();
    }
    let mut run = Run {
        predictions: args.stream.predictions.as_deref().map(Live::open).transpose()?,
        quarantine: args
            .quarantine_out
            .as_deref()
            .map(|path| Quarantine::open(path, &schema))
            .transpose()?,
        score: Progressive::default(),
        // What was on record stays there, so that a stream does not cost a model its abilities.
        remember: args.stream.remember.unwrap_or_else(|| {
            model.knowledge().map_or(0, |known| known.ledger().len()).max(100_000)
        }),
        learnt: 0,
        quarantined: 0,
        low: 0,
        saved: (Instant::now(), 0),
        model,
        args,
        target,
        context,
    };
    // What was learnt is saved, whatever ends the stream: its end, Ctrl-C, or a bad row.
    let had_discriminant = run.model.has_discriminant();
    let (outcome, saved) = context::finishing(|| (run.follow(&mut reader), run.save()));
    warn_of(reader.surprises(), &schema, context);
    warn_of_dropped_discriminant(had_discriminant, &run.model, context);
    saved?;
    run.tell(reader.new_classes())?;
    if context::interrupted() {
        return Err(Error::interrupted().into());
    }
    outcome
}

/// A stream on its way through a model.
struct Run<'a> {
    model: Model,
    args: &'a LearnArgs,
    target: &'a Path,
    context: &'a Context,
    predictions: Option<Live>,
    quarantine: Option<Quarantine>,
    score: Progressive,
    /// Rows that stay on record.
    remember: usize,
    learnt: u64,
    quarantined: u64,
    /// Rows that got less than half of their weight.
    low: u64,
    /// When the model was saved, and after how many rows.
    saved: (Instant, u64),
}

impl Run<'_> {
    fn follow(&mut self, reader: &mut SchemaReader<'_>) -> Result<(), Fault> {
        // One by one, rows need not wait for each other: those that are there go together.
        let batch = self.args.stream.batch.map_or(1, |batch| batch as usize);
        let most = if batch == 1 { TOGETHER } else { batch };
        let mut pending: Option<Samples> = None;
        let mut known = 0;
        while !context::interrupted() {
            let waiting = pending.as_ref().map_or(0, Samples::len);
            let block = match reader.next_block(most - waiting) {
                Ok(Some(block)) => block,
                Ok(None) => break,
                // What was cut off by the user is no error of the data.
                Err(_) if context::interrupted() => break,
                Err(error) => {
                    // The rows before the bad one are good.
                    self.learn(pending)?;
                    return Err(error.into());
                }
            };
            if reader.new_classes().len() > known {
                self.model.add_classes(&reader.new_classes()[known..])?;
                known = reader.new_classes().len();
            }
            let Some(targets) = block.targets.filter(|targets| !targets.is_empty()) else {
                continue;
            };
            let surprises = Surprises::default();
            let samples = Samples { x: block.x, targets, weights: block.weights, surprises };
            match &mut pending {
                Some(pending) => pending.append(&samples),
                None => pending = Some(samples),
            }
            if pending.as_ref().is_some_and(|pending| batch == 1 || pending.len() >= batch) {
                self.learn(pending.take())?;
                self.snapshot()?;
            }
        }
        self.learn(pending)
    }

    /// Learns rows and scores what the model said of them before.
    fn learn(&mut self, samples: Option<Samples>) -> Result<(), Fault> {
        let Some(samples) = samples else { return Ok(()) };
        let learning = Learning {
            one_by_one: self.args.stream.batch.is_none_or(|batch| batch == 1),
            ..self.args.learning()
        };
        let before = self.model.rows();
        let learnt = self.model.learn((&samples).into(), learning, &mut unobserved)?;
        self.learnt += self.model.rows() - before;
        self.quarantined += learnt.quarantined.len() as u64;
        self.low += learnt.trust.iter().filter(|&&trust| trust < 0.5).count() as u64;
        let (first_row, target) = (self.score.rows + 1, &self.model.schema().target);
        if let Some(live) = &mut self.predictions {
            live.add(&learnt.predictions, target)?;
        }
        self.score.add(&learnt.predictions, &samples.targets, target, self.context);
        if let (Some(side), false) = (&mut self.quarantine, learnt.quarantined.is_empty()) {
            side.add(&samples, &learnt, first_row, self.model.schema())?;
        }
        self.model.keep_on_record(self.remember);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<(), Fault> {
        let (when, rows) = self.saved;
        let StreamArgs { snapshot_rows, snapshot_seconds, .. } = self.args.stream;
        let due = snapshot_rows.is_some_and(|every| self.score.rows - rows >= every)
            || snapshot_seconds.is_some_and(|every| when.elapsed() >= Duration::from_secs(every));
        if due && self.target != Path::new("-") {
            self.save()?;
            self.saved = (Instant::now(), self.score.rows);
        }
        Ok(())
    }

    fn save(&self) -> Result<(), Fault> {
        save(&self.model, self.target)
    }

    fn tell(&self, new_classes: &[String]) -> Result<(), Fault> {
        warn_of_distrust(self.low.max(self.quarantined), self.score.rows, self.context);
        let (name, value) = self.score.total();
        if self.context.json && self.target != Path::new("-") {
            let mut object = json!({
                "model": self.target,
                "rows_read": self.score.rows,
                "rows_learnt": self.learnt,
                "rows_quarantined": self.quarantined,
                "downweighted_rows": self.low,
                "new_classes": new_classes,
                "rows": self.model.rows(),
                "nodes": self.model.map().width(),
            });
            object[name.to_lowercase()] = json!(value);
            return output::print_json(&object);
        }
        let mut text = format!("learnt {}", format::plural(self.learnt, "row"));
        if self.quarantined > 0 {
            text.push_str(&format!(
                ", left out {}",
                format::plural(self.quarantined, "implausible row")
            ));
        }
        if let Some(value) = value {
            text.push_str(&format!("; {name} of all, each before it was learnt: "));
            text.push_str(&format::number(value));
        }
        self.context.say(format_args!("{text}\nwrote {}", self.target.display()));
        Ok(())
    }
}

/// Scores of predictions that were made before the rows were learnt.
#[derive(Default)]
struct Progressive {
    rows: u64,
    /// Squared errors per target, or wrong classes.
    loss: f64,
    classes: bool,
    since: (u64, f64),
    next: u64,
}

impl Progressive {
    fn add(
        &mut self,
        predictions: &Predictions,
        targets: &Targets,
        schema: &TargetSchema,
        context: &Context,
    ) {
        let found = match targets {
            Targets::Classes(_) => predictions.classes(),
            Targets::Values(_) => Vec::new(),
        };
        for row in 0..predictions.len() {
            let (loss, given, predicted) = match targets {
                Targets::Values(y) => {
                    let f = predictions.values();
                    let square = (0..y.ncols()).map(|j| (y[(row, j)] - f[(row, j)]).powi(2));
                    let loss = square.sum::<f64>() / y.ncols() as f64;
                    (loss, format::number(y[(row, 0)]), format::number(f[(row, 0)]))
                }
                Targets::Classes(codes) => {
                    self.classes = true;
                    let name = |code: u32| match schema {
                        TargetSchema::Classification { classes, .. } => {
                            classes.get(code as usize).cloned().unwrap_or_default()
                        }
                        TargetSchema::Regression { .. } => String::new(),
                    };
                    (f64::from(found[row] != codes[row]), name(codes[row]), name(found[row]))
                }
            };
            self.rows += 1;
            self.loss += loss;
            if self.rows == 1 {
                self.next = 1;
                let score = if self.classes { "accuracy" } else { "RMSE" };
                context.say(format_args!(
                    "{:>10}  {:>12}  {:>12}  {:>12}  {:>12}",
                    "rows", score, "since last", "given", "predicted"
                ));
            }
            if self.rows == self.next {
                self.next *= 2;
                let (rows, sum) = self.since;
                let since = self.measure(self.loss - sum, self.rows - rows);
                let all = self.measure(self.loss, self.rows);
                context.say(format_args!(
                    "{:>10}  {:>12}  {:>12}  {given:>12}  {predicted:>12}",
                    self.rows,
                    format::number(all),
                    format::number(since)
                ));
                self.since = (self.rows, self.loss);
            }
        }
    }

    fn measure(&self, loss: f64, rows: u64) -> f64 {
        let mean = loss / rows as f64;
        if self.classes { 1.0 - mean } else { mean.sqrt() }
    }

    fn total(&self) -> (&'static str, Option<f64>) {
        let name = if self.classes { "accuracy" } else { "RMSE" };
        (name, (self.rows > 0).then(|| self.measure(self.loss, self.rows)))
    }
}

/// Predictions as they are made: a line is there as soon as its row has come.
struct Live {
    out: Box<dyn Write>,
    place: String,
    head: bool,
}

impl Live {
    fn open(path: &Path) -> Result<Self, Fault> {
        if path == Path::new("-") {
            let out = Box::new(BufWriter::new(io::stdout()));
            return Ok(Self { out, place: "standard output".into(), head: true });
        }
        output::check_folder(path)?;
        let file = File::create(path).map_err(|error| Error::cannot_create(path, error))?;
        let place = path.display().to_string();
        Ok(Self { out: Box::new(BufWriter::new(file)), place, head: true })
    }

    fn add(&mut self, predictions: &Predictions, target: &TargetSchema) -> Result<(), Fault> {
        let writer = Writer { target, scores: false, region: None, novelty: false, json: false };
        let mut text = if std::mem::take(&mut self.head) { writer.head() } else { String::new() };
        writer.add(predictions, Further::default(), false, &mut text);
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        written.map_err(|error| Fault::writing(&self.place, error))
    }
}

/// The side file of rows that were left out: a table that can be learnt after all.
pub(super) struct Quarantine {
    out: BufWriter<File>,
    path: PathBuf,
}

impl Quarantine {
    pub(super) fn open(path: &Path, schema: &Schema) -> Result<Self, Fault> {
        output::check_folder(path)?;
        let failed = |error| Error::cannot_create(path, error);
        let file = File::options().append(true).create(true).open(path).map_err(failed)?;
        let empty = file.metadata().map_err(failed)?.len() == 0;
        let mut side = Self { out: BufWriter::new(file), path: path.to_owned() };
        if empty {
            let inputs = schema.inputs.iter().map(|input| input.name.as_str());
            let mut names: Vec<&str> = inputs.chain(schema.target.names()).collect();
            names.extend(schema.weight.as_deref());
            names.extend(["stream_row", "plausibility"]);
            side.line(&names.iter().map(|name| quoted(name)).collect::<Vec<_>>())?;
        }
        Ok(side)
    }

    /// Rows that wait in a file without a name until they may go to their place.
    pub(super) fn waiting(path: &Path) -> Result<Self, Fault> {
        output::check_folder(path)?;
        let file = tempfile::tempfile()
            .map_err(|error| Error::cannot_create(&std::env::temp_dir(), error))?;
        Ok(Self { out: BufWriter::new(file), path: path.to_owned() })
    }

    /// Takes over rows that have waited.
    pub(super) fn take(mut self, waiting: Self) -> Result<(), Fault> {
        let failed = |error| Fault::writing(&self.path.display().to_string(), error);
        let mut rows = waiting.out.into_inner().map_err(|error| failed(error.into_error()))?;
        rows.rewind().map_err(failed)?;
        io::copy(&mut rows, &mut self.out).and_then(|_| self.out.flush()).map_err(failed)
    }

    /// Writes the rows that were left out; the first of the samples has the number `first_row`.
    pub(super) fn add(
        &mut self,
        samples: &Samples,
        learnt: &Learnt,
        first_row: u64,
        schema: &Schema,
    ) -> Result<(), Fault> {
        for &row in &learnt.quarantined {
            let x: Vec<f64> = samples.x.row(row).iter().copied().collect();
            let mut cells: Vec<String> = schema
                .decode(&x)
                .iter()
                .map(|cell| if cell.is_empty() { String::new() } else { quoted(cell) })
                .collect();
            match (&samples.targets, &schema.target) {
                (Targets::Values(y), _) => {
                    cells.extend((0..y.ncols()).map(|j| format!("{:?}", y[(row, j)])));
                }
                (Targets::Classes(codes), TargetSchema::Classification { classes, .. }) => {
                    cells.push(
                        classes.get(codes[row] as usize).map_or(String::new(), |c| quoted(c)),
                    );
                }
                _ => cells.push(String::new()),
            }
            if schema.weight.is_some() {
                let weight = samples.weights.as_ref().map_or(1.0, |weights| weights[row]);
                cells.push(format!("{weight:?}"));
            }
            cells.push((first_row + row as u64).to_string());
            cells.push(format!("{:.3e}", learnt.plausibility[row]));
            self.line(&cells)?;
        }
        let flushed = self.out.flush();
        flushed.map_err(|error| Fault::writing(&self.path.display().to_string(), error))
    }

    fn line(&mut self, cells: &[String]) -> Result<(), Fault> {
        let written = writeln!(self.out, "{}", cells.join(","));
        written.map_err(|error| Fault::writing(&self.path.display().to_string(), error))
    }
}
