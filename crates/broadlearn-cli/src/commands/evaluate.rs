//! `broadlearn evaluate`: scores a model on a table that has the target.

use crate::context::Context;
use crate::data_args::{DataArgs, load_model, warn_of};
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::data::{Part, SchemaReader, TableReader, TargetSchema};
use broadlearn::evaluate::{Metrics, metrics::Scorer};
use broadlearn::{Model, Progress};
use clap::Args;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn evaluate price.broad test.csv
  broadlearn evaluate price.broad test.csv --json | jq .rmse")]
pub(crate) struct EvaluateArgs {
    /// The model
    model: PathBuf,
    /// A table with the target column (CSV, Parquet, .npy, .npz; gzip too)
    data: PathBuf,
    /// Leave out rows without a target
    #[arg(long)]
    drop_missing_target: bool,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &EvaluateArgs, context: &Context) -> Result<(), Fault> {
    let model = load_model(&args.model, Some(&args.data))?;
    let reader = args.table.open_for(&model, &args.data)?;
    let metrics = score(&model, reader, args.drop_missing_target, context)?;
    if context.json {
        let mut report = serde_json::to_value(&metrics).unwrap_or_default();
        report["model"] = json!(args.model);
        report["data"] = json!(args.data);
        report["task"] = json!(model.task().name());
        if let (
            Metrics::Classification { confusion, .. },
            TargetSchema::Classification { classes, .. },
        ) = (&metrics, &model.schema().target)
        {
            report["classes"] = json!(classes);
            report["confusion"] = json!(confusion);
        }
        return output::print_json(&report);
    }
    output::print(&describe(&metrics, &model.schema().target))
}

/// Metrics as text.
pub(super) fn describe(metrics: &Metrics, target: &TargetSchema) -> String {
    let mut text = format::table(&format::metrics(metrics));
    let targets = format::targets(metrics);
    if !targets.is_empty() {
        text.push('\n');
        text.push_str(&format::table(&targets));
    }
    if let Some(remark) = format::remark(metrics) {
        text.push_str(&format!("\n{remark}\n"));
    }
    if let TargetSchema::Classification { classes, .. } = target {
        let confusion = format::confusion(metrics, classes);
        if !confusion.is_empty() {
            text.push('\n');
            text.push_str(&format::table(&confusion));
        }
    }
    text
}

/// Scores a model on a table, block by block.
pub(super) fn score(
    model: &Model,
    reader: TableReader,
    drop_missing_target: bool,
    context: &Context,
) -> Result<Metrics, Fault> {
    score_part(model, reader, drop_missing_target, None, context)
}

/// Scores a model on these rows of a table, block by block.
pub(super) fn score_part(
    model: &Model,
    reader: TableReader,
    drop_missing_target: bool,
    part: Option<Part>,
    context: &Context,
) -> Result<Metrics, Fault> {
    let mut blocks =
        SchemaReader::new(reader, model.schema(), true, drop_missing_target)?.only(part);
    let mut scorer = Scorer::new(&model.schema().target);
    let mut observer = context.observer();
    blocks.for_each_block(super::predict::BLOCK_ROWS, |block| {
        let done = block.first_row + block.x.nrows() as u64 - 1;
        let progress = Progress { stage: "evaluating rows", done, total: None, member: None };
        if observer(progress) == ControlFlow::Break(()) {
            return Err(Fault::from(broadlearn::Error::interrupted()));
        }
        if let Some(targets) = &block.targets {
            scorer.add(&model.predict(&block.x)?, targets, block.weights.as_deref())?;
        }
        Ok(())
    })?;
    drop(observer);
    context.end_progress();
    warn_of(blocks.surprises(), model.schema(), context);
    Ok(scorer.metrics().map_err(|error| error.within(blocks.name()))?)
}
