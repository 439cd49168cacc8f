//! `broadlearn learn`: further rows, without the earlier ones.

use super::stream::{StreamArgs, run_stream};
use super::update::{UpdateArgs, about, finish, read_by_schema};
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::format;
use broadlearn::data::Task;
use broadlearn::increment::Route;
use broadlearn::model::Learning;
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

pub(crate) fn run(args: &LearnArgs, context: &Context) -> Result<(), Fault> {
    if args.stream.stream || args.data == Path::new("-") {
        return run_stream(args, context);
    }
    args.stream.check_unused()?;
    let target = args.update.target(&args.model)?;
    let mut model = load_model(&args.model, Some(&args.data))?;
    args.check_new_classes(&model)?;
    let (samples, fresh) = read_by_schema(
        &model,
        model.schema(),
        std::slice::from_ref(&args.data),
        args.new_classes,
        args.update.drop_missing_target,
        &args.table,
        context,
    )?;
    if !fresh.is_empty() {
        model.add_classes(&fresh)?;
    }
    let learnt = model
        .learn((&samples).into(), args.learning(), &mut context.observer())
        .map_err(|error| about(error, &args.data))?;
    context.end_progress();
    let side = match (&args.quarantine_out, learnt.quarantined.is_empty()) {
        (Some(path), false) => Some(super::stream::Quarantine::open(path, model.schema())?),
        _ => None,
    };
    let (read, kept_out) = (samples.len() as u64, learnt.quarantined.len() as u64);
    let low = learnt.trust.iter().filter(|&&trust| trust < 0.5).count();
    let verified = args.update.verify(&model, Some(&samples), &args.table, context)?;
    let mut words = format!("learnt {}", format::plural(read - kept_out, "row"));
    if kept_out > 0 {
        words.push_str(&format!(", left out {}", format::plural(kept_out, "implausible row")));
    }
    if !fresh.is_empty() {
        words.push_str(&format!(", new classes {}", fresh.join(", ")));
    }
    words.push_str(&format!("; {:.1} % have a weight below 0.5", 100.0 * low as f64 / read as f64));
    let facts = json!({
        "rows_read": read,
        "rows_learnt": read - kept_out,
        "rows_quarantined": kept_out,
        "downweighted": low as f64 / read as f64,
        "new_classes": fresh,
        "route": learnt.route.map(route_name),
    });
    finish(&model, target, &words, facts, verified, context)?;
    // Only now: a row is either learnt or in the side file.
    match side {
        Some(mut side) => side.add(&samples, &learnt, 1, model.schema()),
        None => Ok(()),
    }
}

pub(super) fn route_name(route: Route) -> &'static str {
    match route {
        Route::Updated => "factor updated",
        Route::Refactored => "factored anew",
    }
}
