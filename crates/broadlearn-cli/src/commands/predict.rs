//! `broadlearn predict`: streams predictions in bounded memory.

use crate::context::Context;
use crate::data_args::{DataArgs, load_model, warn_of};
use crate::fault::Fault;
use crate::output::{self, Output};
use broadlearn::data::{SchemaReader, TargetSchema, Task};
use broadlearn::model::{Precision, Region};
use broadlearn::{Error, Predictions, Progress};
use clap::{Args, ValueEnum};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Rows that are parsed, predicted and written together.
pub(super) const BLOCK_ROWS: usize = 4096;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn predict price.broad new.csv > predictions.csv
  zcat huge.csv.gz | broadlearn predict price.broad - --out predictions.csv
  broadlearn predict price.broad new.csv --interval 0.9 --novelty
  broadlearn predict digits.broad scans.npy --scores --precision single

Columns are matched by name: their order does not matter, others are ignored.
One line of output for each row of input, in the same order.")]
pub(crate) struct PredictArgs {
    /// The model
    model: PathBuf,
    /// The rows to predict (CSV, Parquet, .npy, .npz; gzip too; - for stdin)
    data: PathBuf,
    /// Where the predictions go, as CSV [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Also write the probability of every class
    #[arg(long)]
    scores: bool,
    /// Also write intervals, wider where errors are usually larger, or sets of classes, that hold the truth for this
    /// share of rows, such as 0.9
    #[arg(long, value_name = "SHARE")]
    interval: Option<f64>,
    /// Also write how unlike the training rows each row is: above 1, more so than 99 % of them
    #[arg(long)]
    novelty: bool,
    /// The numbers to compute with: single precision takes about half the time for large networks, and differs by less
    /// than a thousandth of the targets' spread, or else double precision is used after all
    #[arg(long, value_name = "PRECISION", default_value = "double")]
    precision: PrecisionName,
    #[command(flatten)]
    table: DataArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrecisionName {
    Double,
    Single,
}

impl From<PrecisionName> for Precision {
    fn from(name: PrecisionName) -> Self {
        match name {
            PrecisionName::Double => Self::Double,
            PrecisionName::Single => Self::Single,
        }
    }
}

pub(crate) fn run(args: &PredictArgs, context: &Context) -> Result<(), Fault> {
    args.table.refuse_skipping()?;
    output::check_places(&args.out, [&args.model, &args.data])?;
    output::check_table(args.out.as_deref())?;
    let model = load_model(&args.model, Some(&args.data))?;
    if args.scores && model.task() == Task::Regression {
        return Err(Error::setting("scores", "a regression, whose outputs are its predictions")
            .expected("a classifier")
            .into());
    }
    // What comes through a pipe is answered at once: its writer may wait for the answer.
    let live = !super::fit::is_regular(&args.data);
    let reader = match live {
        true => args.table.open_stream(&model, &args.data)?,
        false => args.table.open_for(&model, &args.data)?,
    };
    let mut blocks = SchemaReader::new(reader, model.schema(), false, false)?;
    let region = args.interval.map(|level| model.region(level)).transpose()?;
    let novelty = args.novelty;
    let target = &model.schema().target;
    let writer = Writer {
        target,
        scores: args.scores,
        region: region.as_ref(),
        novelty,
        json: context.json,
    };

    let mut output = Output::open(args.out.as_deref())?;
    let mut text = writer.head();
    let mut rows = 0;
    let mut observer = context.observer();
    let predictor = model.predictor(args.precision.into());
    let mut fallen_back = 0;
    blocks.for_each_block(BLOCK_ROWS, |block| -> Result<(), Fault> {
        let novelty = if novelty { Some(model.novelty(&block.x)?) } else { None };
        let predictions = predictor.predict(&block.x)?;
        let asked = matches!(region, Some(Region::UsualHalfWidths(_)));
        let spreads = if asked { Some(model.spreads(&block.x, &predictions)?) } else { None };
        let more = Further { spreads: spreads.as_deref(), novelty: novelty.as_deref() };
        writer.add(&predictions, more, rows == 0, &mut text);
        output.write(text.as_bytes())?;
        if live {
            output.flush()?;
        }
        text.clear();
        rows += block.x.nrows() as u64;
        if predictions.fell_back() {
            fallen_back += block.x.nrows() as u64;
        }
        let progress = Progress { stage: "predicting rows", done: rows, total: None, member: None };
        if observer(progress) == ControlFlow::Break(()) {
            return Err(Error::interrupted().into());
        }
        Ok(())
    })?;
    drop(observer);
    if rows == 0 {
        return Err(Error::data("no rows").at(blocks.name()).expected("at least one row").into());
    }
    if context.json {
        let _ = writeln!(text, "],\"n_rows\":{rows}}}");
        output.write(text.as_bytes())?;
    }
    output.finish()?;
    context.end_progress();
    warn_of(blocks.surprises(), model.schema(), context);
    if fallen_back > 0 {
        context.warn(format_args!(
            "single precision is not good enough for this model: {} of {} were predicted in double precision",
            fallen_back,
            crate::format::plural(rows, "row")
        ));
    }
    if let Some(path) = &args.out {
        context.say(format_args!(
            "wrote {} to {}",
            crate::format::plural(rows, "prediction"),
            path.display()
        ));
    }
    Ok(())
}

/// Turns predictions into CSV lines or elements of a JSON array.
pub(super) struct Writer<'a> {
    pub(super) target: &'a TargetSchema,
    pub(super) scores: bool,
    pub(super) region: Option<&'a Region>,
    pub(super) novelty: bool,
    pub(super) json: bool,
}

/// What is said of each row beside its prediction.
#[derive(Clone, Copy, Default)]
pub(super) struct Further<'a> {
    /// By what the half widths of its interval are to be multiplied.
    pub(super) spreads: Option<&'a [f64]>,
    pub(super) novelty: Option<&'a [f64]>,
}

impl Writer<'_> {
    pub(super) fn head(&self) -> String {
        if self.json {
            return "{\"predictions\":[".into();
        }
        let mut columns: Vec<String> = match self.target {
            TargetSchema::Regression { names } if self.region.is_some() => names
                .iter()
                .flat_map(|name| [name.clone(), format!("{name} low"), format!("{name} high")])
                .collect(),
            TargetSchema::Regression { names } => names.clone(),
            TargetSchema::Classification { name, .. } if self.region.is_some() => {
                vec![name.clone(), format!("{name} set")]
            }
            TargetSchema::Classification { name, .. } => vec![name.clone()],
        };
        if let (true, TargetSchema::Classification { classes, .. }) = (self.scores, self.target) {
            columns.extend(classes.iter().map(|class| format!("p({class})")));
        }
        if self.novelty {
            columns.push("novelty".into());
        }
        let mut line = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",");
        line.push('\n');
        line
    }

    pub(super) fn add(
        &self,
        predictions: &Predictions,
        Further { spreads, novelty }: Further<'_>,
        first: bool,
        text: &mut String,
    ) {
        let probabilities = match self.target {
            TargetSchema::Classification { .. } if self.scores => Some(predictions.probabilities()),
            _ => None,
        };
        let codes = match self.target {
            TargetSchema::Classification { .. } => predictions.classes(),
            TargetSchema::Regression { .. } => Vec::new(),
        };
        let sets = match self.region {
            Some(Region::LeastProbability(least)) => Some(predictions.class_sets(*least)),
            _ => None,
        };
        let values = predictions.values();
        for i in 0..predictions.len() {
            let mut cells: Vec<String> = match self.target {
                TargetSchema::Regression { names } => {
                    let value = |j: usize| values[(i, j)];
                    let cells = |j: usize| match self.region {
                        Some(Region::UsualHalfWidths(half)) => {
                            let half = half[j] * spreads.map_or(1.0, |spreads| spreads[i]);
                            vec![value(j), value(j) - half, value(j) + half]
                        }
                        _ => vec![value(j)],
                    };
                    (0..names.len()).flat_map(cells).map(|value| format!("{value:?}")).collect()
                }
                TargetSchema::Classification { classes, .. } => {
                    let class = &classes[codes[i] as usize];
                    let mut cells = vec![if self.json { json_text(class) } else { quoted(class) }];
                    if let Some(sets) = &sets {
                        let set: Vec<&str> =
                            sets[i].iter().map(|&class| classes[class as usize].as_str()).collect();
                        cells.push(match self.json {
                            true => serde_json::Value::from(set).to_string(),
                            false => quoted(&set.join("|")),
                        });
                    }
                    cells
                }
            };
            if let Some(probabilities) = &probabilities {
                cells.extend(probabilities.row(i).iter().map(|p| format!("{p:?}")));
            }
            cells.extend(novelty.map(|novelty| format!("{:?}", novelty[i])));
            if self.json {
                let comma = if first && i == 0 { "" } else { "," };
                let row = cells.join(",");
                let _ = if cells.len() == 1 {
                    write!(text, "{comma}{row}")
                } else {
                    write!(text, "{comma}[{row}]")
                };
            } else {
                text.push_str(&cells.join(","));
                text.push('\n');
            }
        }
    }
}

/// A CSV field, in quotes where it needs them.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.is_empty() || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
