//! `broadlearn forget`: rows out, as if they had never been learnt.

use super::learn::route_name;
use super::update::{UpdateArgs, about, finish, read_rows};
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::output::Output;
use crate::{format, output};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn forget price.broad withdrawn.csv
  broadlearn forget price.broad withdrawn.csv --certificate removal.json --verify --history all.csv

The rows leave with the weights with which they came, which the model has on record. A row that is
not on record is an error, and the model stays as it is.")]
pub(crate) struct ForgetArgs {
    /// The model
    model: PathBuf,
    /// The rows to forget, as they were learnt (CSV, JSON lines, Parquet, .npy, .npz; gzip too)
    data: PathBuf,
    /// Write a certificate of the removal here (JSON)
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    #[command(flatten)]
    update: UpdateArgs,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &ForgetArgs, context: &Context) -> Result<(), Fault> {
    args.table.refuse_skipping()?;
    let target = args.update.target(&args.model, [&args.data], context)?;
    let others = [&args.model, &args.data].into_iter().chain(&args.update.out);
    output::check_places(&args.certificate, others)?;
    let mut model = load_model(&args.model, Some(&args.data))?;
    let before = model.rows();
    let samples = {
        let data = std::slice::from_ref(&args.data);
        read_rows(&model, data, args.update.drop_missing_target, &args.table, context)?
    };
    let removal = model
        .forget((&samples).into(), &mut context.observer())
        .map_err(|error| about(error, &args.data))?;
    context.end_progress();
    let verified = args.update.verify(&model, None, &args.table, context)?;
    if removal.cancellation > 1e6 {
        context.warn(format_args!(
            "what is left is {:.0e} times smaller than what was there: some digits are lost; fit anew \
             where they matter",
            removal.cancellation
        ));
    }
    let mut certificate = json!({
        "model": args.model,
        "rows_before": before,
        "rows_forgotten": removal.fingerprints.len(),
        "rows_left": removal.rows_left,
        "removed": removal.fingerprints.iter().zip(&removal.weights).map(|(print, weight)| {
            json!({"fingerprint": format!("{print:016x}"), "weight": weight})
        }).collect::<Vec<_>>(),
        "residual": removal.residual,
        "cancellation": removal.cancellation,
        "route": route_name(removal.route),
        "verified_difference": verified,
        "meaning": "W solves (R + ridge I) W = P of the rows that are left up to the residual; \
            the fingerprints are no longer on record",
    });
    if !removal.members.is_empty() {
        // The numbers above are the means of the weights and the largest of the rest.
        certificate["members"] = removal
            .members
            .iter()
            .map(|member| {
                json!({
                    "weights": member.weights,
                    "residual": member.residual,
                    "cancellation": member.cancellation,
                })
            })
            .collect();
    }
    let words = format!(
        "forgot {}; W solves the equations of the others to {:.1e}",
        format::plural(removal.fingerprints.len() as u64, "row"),
        removal.residual
    );
    let facts = json!({
        "rows_forgotten": removal.fingerprints.len(),
        "residual": removal.residual,
        "cancellation": removal.cancellation,
        "route": route_name(removal.route),
    });
    // The certificate is written before the model is changed and appears after it: one that cannot be
    // written must not cost the rows their proof.
    let mut paper = args.certificate.as_deref().map(|path| Output::open(Some(path))).transpose()?;
    if let Some(paper) = &mut paper {
        let text = serde_json::to_string_pretty(&certificate).unwrap_or_default();
        paper.write(format!("{text}\n").as_bytes())?;
    }
    finish(&model, target, &words, facts, verified, context)?;
    paper.map_or(Ok(()), Output::finish)
}
