//! `broadlearn merge`: models of disjoint rows as one.

use super::update::{UpdateArgs, finish};
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::format;
use broadlearn::{Error, Model};
use clap::Args;
use serde_json::json;
use std::collections::HashSet;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn fit north.csv --target price --model north.broad
  broadlearn fit south.csv --like north.broad --model south.broad
  broadlearn merge north.broad south.broad --out all.broad
  broadlearn refine all.broad north.csv south.csv

  # One step of the joint fixed point, shard by shard:
  broadlearn fit north.csv --like all.broad --one-step --model n.broad
  broadlearn fit south.csv --like all.broad --one-step --model s.broad
  broadlearn merge n.broad s.broad --out all.broad

The models must differ in nothing but the rows that they have learnt. Every row keeps its weight: the
result is that of a joint fit with these weights.")]
pub(crate) struct MergeArgs {
    /// The models
    #[arg(required = true, num_args = 1..)]
    models: Vec<PathBuf>,
    #[command(flatten)]
    update: UpdateArgs,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &MergeArgs, context: &Context) -> Result<(), Fault> {
    let Some(out) = &args.update.out else {
        return Err(Error::setting("out", "nothing").expected("--out FILE").into());
    };
    crate::output::check_places([out], [])?;
    let models = args
        .models
        .iter()
        .map(|path| load_model(path, None))
        .collect::<Result<Vec<Model>, Fault>>()?;
    let merged = Model::merge(&models.iter().collect::<Vec<_>>()).map_err(|error| {
        // The library counts models; people know them by their files.
        let text = error.to_string();
        let place = (1..=args.models.len()).rev().find(|n| text.starts_with(&format!("model {n}")));
        match place {
            Some(number) => error.at(args.models[number - 1].display().to_string()),
            None => error,
        }
    })?;
    let mut seen: HashSet<u64> = HashSet::new();
    for (path, model) in args.models.iter().zip(&models) {
        let prints = model.knowledge().map_or(&[][..], |known| known.ledger().fingerprints());
        let again = prints.iter().filter(|print| seen.contains(print)).count();
        if again > 0 {
            context.warn(format_args!(
                "{}: {} that an earlier model has learnt, too, and that count twice now",
                path.display(),
                format::plural(again as u64, "row")
            ));
        }
        seen.extend(prints);
    }
    let verified = args.update.verify(&merged, None, &args.table, context)?;
    let words = format!("merged {}", format::plural(models.len() as u64, "model"));
    finish(&merged, out, &words, json!({"models": models.len()}), verified, context)
}
