//! `broadlearn refine`: sample weights brought up to date.

use super::update::{UpdateArgs, finish, read_rows};
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::model::{Drift, Member, Refinement};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn refine price.broad april.csv may.csv
  broadlearn refine price.broad april.csv may.csv --anneal
  broadlearn refine price.broad april.csv may.csv --check

Rows keep the weights with which they were learnt, whatever the model thinks of them later. This
finds the weights anew, on all rows that the model has learnt. A bad early optimum is left only with
--anneal.")]
pub(crate) struct RefineArgs {
    /// The model
    model: PathBuf,
    /// All rows that the model has learnt (CSV, JSON lines, Parquet, .npy, .npz; gzip too)
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// At most so many steps of the fixed point, from where the model is
    #[arg(long, value_name = "N", default_value_t = 20)]
    steps: usize,
    /// Begin anew from a robust start with a shrinking kernel, as a fit does
    #[arg(long, conflicts_with = "steps")]
    anneal: bool,
    /// Only say how far the weights have drifted, and change nothing
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    update: UpdateArgs,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &RefineArgs, context: &Context) -> Result<(), Fault> {
    let target = args.update.target(&args.model, &args.data, context)?;
    let mut model = load_model(&args.model, args.data.first().map(PathBuf::as_path))?;
    let samples =
        read_rows(&model, &args.data, args.update.drop_missing_target, &args.table, context)?;
    let before = model.drift((&samples).into(), &mut context.observer())?;
    context.end_progress();
    if args.check {
        if context.json {
            return output::print_json(&json!({"model": args.model, "drift": describe(&before)}));
        }
        return output::print(&format!("weights have drifted by {}\n", words(&before)));
    }
    let refinement = match args.anneal {
        true => Refinement::Anneal,
        false => Refinement::Warm { steps: args.steps },
    };
    model.refine((&samples).into(), refinement, &mut context.observer())?;
    let after = model.drift((&samples).into(), &mut context.observer())?;
    context.end_progress();
    let verified = args.update.verify(&model, Some(&samples), &args.table, context)?;
    let reports = || model.members().iter().map(Member::report);
    let steps = reports().map(|report| report.iterations).max().unwrap_or(0);
    let text = format!(
        "refined in {}: drift of the weights {}, before {}",
        format::plural(steps as u64, "step"),
        words(&after),
        words(&before)
    );
    let facts = json!({
        "steps": steps,
        "converged": reports().all(|report| report.converged),
        "drift_before": describe(&before),
        "drift": describe(&after),
    });
    finish(&model, target, &text, facts, verified, context)
}

fn words(drift: &Drift) -> String {
    format!("{} on average, {} at most", format::number(drift.mean), format::number(drift.largest))
}

fn describe(drift: &Drift) -> serde_json::Value {
    json!({"mean": drift.mean, "largest": drift.largest, "rows": drift.rows})
}
