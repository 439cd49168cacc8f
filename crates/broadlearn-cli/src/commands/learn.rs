//! `broadlearn learn`: further rows, without the earlier ones.

use super::stream::{Quarantine, StreamArgs, run_stream};
use super::update::{UpdateArgs, finish, warn_of_distrust, warn_of_dropped_discriminant};
use crate::context::Context;
use crate::data_args::{DataArgs, load_model, warn_of};
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::data::{Samples, SchemaReader, Task};
use broadlearn::increment::Route;
use broadlearn::model::{Learning, Learnt};
use broadlearn::{Error, Model};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn learn price.broad may.csv
  broadlearn learn price.broad may.csv --out price-may.broad --verify --history april.csv
  tail -f sensors.csv | broadlearn learn sensors.broad - --batch 50 --quarantine 0.1 \\
      --quarantine-out odd.csv --snapshot-rows 10000
  broadlearn learn digits.broad letters.csv --new-classes

New rows get the weights that the model gives them now, earlier ones keep theirs: the result is that
of a fit of all rows with these weights. `broadlearn refine` brings all weights up to date.
A file is read once, in blocks: it may be larger than memory (but 16 bytes a row go on record).

A stream (- or --stream) is predicted, scored and learnt batch by batch; the score at doubling
intervals is the honest one, for every row is predicted before it is learnt.")]
pub(crate) struct LearnArgs {
    /// The model
    pub(super) model: PathBuf,
    /// The rows to learn (CSV, JSON lines, Parquet, .npy, .npz; gzip too; - for a stream from stdin)
    pub(super) data: PathBuf,
    #[command(flatten)]
    pub(super) update: UpdateArgs,
    /// Learn classes that the model does not know yet
    #[arg(long)]
    pub(super) new_classes: bool,
    /// With each new row, multiply the weight of all earlier ones by this (0.999: the last 1000 count)
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(super) forgetting: f64,
    /// Leave out rows that are less plausible than this (0.1: beyond 6.4 spreads of the residuals)
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(super) quarantine: f64,
    /// Append the rows that were left out to this CSV file
    #[arg(long, value_name = "FILE", requires = "quarantine")]
    pub(super) quarantine_out: Option<PathBuf>,
    #[command(flatten)]
    pub(super) stream: StreamArgs,
    #[command(flatten)]
    pub(super) table: DataArgs,
}

impl LearnArgs {
    /// New classes are for classifiers.
    pub(super) fn check_new_classes(&self, model: &Model) -> Result<(), Fault> {
        match (self.new_classes, model.task()) {
            (true, Task::Regression) => {
                Err(Error::setting("new-classes", "a regression").expected("a classifier").into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn learning(&self) -> Learning {
        Learning { forgetting: self.forgetting, quarantine: self.quarantine, one_by_one: false }
    }
}

/// The fingerprints of the rows that a model has on record.
fn on_record(model: &Model) -> &[u64] {
    model.knowledge().map_or(&[], |known| known.ledger().fingerprints())
}

/// Says so if most of the new rows, which come last on record, are equal to rows that were there: the table was probably learnt
/// before.
fn warn_of_copies(mut known: Vec<u64>, model: &Model, context: &Context) {
    let fresh = on_record(model).get(known.len()..).unwrap_or_default();
    known.sort_unstable();
    let copies = fresh.iter().filter(|row| known.binary_search(row).is_ok()).count();
    if 2 * copies > fresh.len() {
        context.warn(format_args!(
            "{copies} of these {} rows are equal to rows that the model had learnt before, and count twice now; `broadlearn forget` with \
             this table takes them back",
            fresh.len()
        ));
    }
}

pub(crate) fn run(args: &LearnArgs, context: &Context) -> Result<(), Fault> {
    let others = [&args.model, &args.data].into_iter().chain(&args.update.out);
    output::check_places(args.quarantine_out.iter().chain(&args.stream.predictions), others)?;
    for table in [&args.quarantine_out, &args.stream.predictions] {
        output::check_live_table(table.as_deref())?;
    }
    if args.stream.stream || args.data == Path::new("-") {
        return run_stream(args, context);
    }
    args.stream.check_unused()?;
    let target = args.update.target(&args.model, [&args.data], context)?;
    let mut model = load_model(&args.model, Some(&args.data))?;
    args.check_new_classes(&model)?;
    let schema = model.schema().clone();
    let reader = args.table.open_for(&model, &args.data)?;
    let mut reader = SchemaReader::new(reader, &schema, true, args.update.drop_missing_target)?;
    if args.new_classes {
        reader = reader.accepting_new_classes();
    }
    let known = on_record(&model).to_vec();
    let had_discriminant = model.has_discriminant();
    let mut counts = Counts::default();
    // A row is either learnt or in the side file, so that it waits until the model is saved.
    let mut waiting = args.quarantine_out.as_deref().map(Quarantine::waiting).transpose()?;
    let mut learnt_rows: Option<Samples> = None;
    let route = model.learn_table::<Fault>(
        &mut reader,
        args.learning(),
        &mut context.observer(),
        &mut |samples, learnt| {
            let first_row = counts.read + 1;
            counts.add(learnt);
            if let Some(side) = &mut waiting {
                side.add(samples, learnt, first_row, &schema)?;
            }
            if args.update.verify {
                match &mut learnt_rows {
                    Some(rows) => rows.append(samples),
                    None => learnt_rows = Some(samples.clone()),
                }
            }
            Ok(())
        },
    )?;
    context.end_progress();
    warn_of(reader.surprises(), &schema, context);
    let fresh = reader.new_classes().to_vec();
    let Counts { read, kept_out, low } = counts;
    let side = match (&args.quarantine_out, kept_out) {
        (None, _) | (_, 0) => None,
        (Some(path), _) => Some(Quarantine::open(path, &schema)?),
    };
    let verified = args.update.verify(&model, learnt_rows.as_ref(), &args.table, context)?;
    let mut words = format!("learnt {}", format::plural(read - kept_out, "row"));
    if kept_out > 0 {
        words.push_str(&format!(", left out {}", format::plural(kept_out, "implausible row")));
    }
    if !fresh.is_empty() {
        words.push_str(&format!(", new classes {}", fresh.join(", ")));
    }
    warn_of_distrust(low.max(kept_out), read, context);
    warn_of_copies(known, &model, context);
    warn_of_dropped_discriminant(had_discriminant, &model, context);
    let low = low as f64 / read as f64;
    words.push_str(&format!("; {:.1} % have a weight below 0.5", 100.0 * low));
    let facts = json!({
        "rows_read": read,
        "rows_learnt": read - kept_out,
        "rows_quarantined": kept_out,
        "downweighted": low,
        "new_classes": fresh,
        "route": route.map(route_name),
    });
    finish(&model, target, &words, facts, verified, context)?;
    match (side, waiting) {
        (Some(side), Some(waiting)) => side.take(waiting),
        _ => Ok(()),
    }
}

/// What came of the rows so far.
#[derive(Default)]
struct Counts {
    read: u64,
    kept_out: u64,
    /// Rows that got less than half of their weight.
    low: u64,
}

impl Counts {
    fn add(&mut self, learnt: &Learnt) {
        self.read += learnt.trust.len() as u64;
        self.kept_out += learnt.quarantined.len() as u64;
        self.low += learnt.trust.iter().filter(|&&trust| trust < 0.5).count() as u64;
    }
}

pub(super) fn route_name(route: Route) -> &'static str {
    match route {
        Route::Updated => "factor updated",
        Route::Refactored => "factored anew",
    }
}
