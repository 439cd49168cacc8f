//! `broadlearn grow`: more nodes.

use super::update::{UpdateArgs, finish, read_rows};
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::format;
use broadlearn::features::Growth;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn grow price.broad train.csv --enhancement-nodes 200
  broadlearn grow digits.broad train.npz --feature-groups 1 --group-enhancement-nodes 200 \\
      --enhancement-nodes 300

DATA must hold the rows that the model has learnt, in one or several tables. They keep their weights;
only the new columns are computed. The new nodes are those that a larger network would have had.")]
pub(crate) struct GrowArgs {
    /// The model
    model: PathBuf,
    /// All rows that the model has learnt (CSV, JSON lines, Parquet, .npy, .npz; gzip too)
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// New enhancement nodes that read all features
    #[arg(long, value_name = "N", default_value_t = 0)]
    enhancement_nodes: usize,
    /// New feature groups; not for recipe rich
    #[arg(long, value_name = "N", default_value_t = 0)]
    feature_groups: usize,
    /// Nodes in a new feature group [default: as in the others]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    feature_nodes: usize,
    /// New enhancement nodes that read the new feature groups alone
    #[arg(long, value_name = "N", default_value_t = 0)]
    group_enhancement_nodes: usize,
    #[command(flatten)]
    update: UpdateArgs,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &GrowArgs, context: &Context) -> Result<(), Fault> {
    let target = args.update.target(&args.model, &args.data, context)?;
    let model = load_model(&args.model, args.data.first().map(PathBuf::as_path))?;
    let samples =
        read_rows(&model, &args.data, args.update.drop_missing_target, &args.table, context)?;
    let growth = Growth {
        feature_groups: args.feature_groups,
        feature_nodes: args.feature_nodes,
        group_enhancement_nodes: args.group_enhancement_nodes,
        enhancement_nodes: args.enhancement_nodes,
    };
    let grown = model.grow(growth, (&samples).into(), &mut context.observer())?;
    context.end_progress();
    let verified = args.update.verify(&grown, Some(&samples), &args.table, context)?;
    let new = grown.map().width() - model.map().width();
    let words = format!("added {}", format::plural(new as u64, "node"));
    finish(&grown, target, &words, json!({"nodes_added": new}), verified, context)
}
