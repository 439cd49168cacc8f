//! `broadlearn inspect`: says what is in a model file.

use crate::context::Context;
use crate::data_args::load_model;
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::Model;
use broadlearn::data::{Encoding, TargetSchema};
use broadlearn::features::NodeGroup;
use broadlearn::model::Member;
use broadlearn::model::Region;
use broadlearn::solve::{Loss, RobustLoss};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn inspect price.broad
  broadlearn inspect price.broad --json | jq .report.objective")]
pub(crate) struct InspectArgs {
    /// The model
    model: PathBuf,
}

pub(crate) fn run(args: &InspectArgs, context: &Context) -> Result<(), Fault> {
    let model = load_model(&args.model, None)?;
    if context.json {
        return output::print_json(&json!({
            "model": args.model,
            "format_version": broadlearn::model::FORMAT_VERSION,
            "task": model.task().name(),
            "rows": model.rows(),
            "inputs": model.map().inputs(),
            "nodes": model.map().width(),
            "outputs": model.weights().ncols(),
            "updatable": model.knowledge().is_some() && model.report().ridge.is_some(),
            "rows_on_record": model.knowledge().map_or(0, |known| known.ledger().len()),
            "groups": model.map().groups().len(),
            "schema": model.schema(),
            "settings": model.settings(),
            "report": model.report(),
            "relevance": model.relevance().into_iter()
                .map(|(input, relevance)| json!({"input": input, "relevance": relevance}))
                .collect::<Vec<_>>(),
            "members": model.members().iter()
                .map(|member| json!({"seed": member.seed(), "report": member.report()}))
                .collect::<Vec<_>>(),
        }));
    }
    output::print(&format::facts(&describe(&model)))
}

/// The model in names and values.
pub(super) fn describe(model: &Model) -> Vec<(&'static str, String)> {
    let schema = model.schema();
    let mut lines = Vec::new();
    let mut line = |name: &'static str, value: String| lines.push((name, value));
    line(
        "task",
        match &schema.target {
            TargetSchema::Regression { names } => format!("regression of {}", names.join(", ")),
            TargetSchema::Classification { name, classes, .. } => {
                format!("classification of {name}: {}", abridged(classes))
            }
        },
    );
    let names: Vec<String> = schema
        .inputs
        .iter()
        .map(|input| match &input.encoding {
            Encoding::Number { indicator: false, .. } => input.name.clone(),
            Encoding::Number { indicator: true, .. } => format!("{} (some missing)", input.name),
            Encoding::Category { levels, .. } => {
                format!("{} ({} levels)", input.name, levels.len())
            }
        })
        .collect();
    if let Some(embedding) = model.embedding() {
        line("forecasts", format!("the series {}", embedding.column));
    }
    line("inputs", format!("{}: {}", names.len(), abridged(&names)));
    line("learnt from", format::plural(model.rows(), "row"));
    let settings = model.settings();
    let gain = settings.network().enhancement.gain;
    let gain = gain.map_or(String::new(), |gain| format!(", gain {}", format::setting(gain)));
    let fan_in = settings.network().enhancement.fan_in;
    let few = fan_in.map_or(String::new(), |inputs| format!(", {inputs} inputs a node"));
    line("recipe", format!("{}{gain}{few}", settings.recipe().name()));
    let relevance: Vec<String> = model
        .relevance()
        .into_iter()
        .map(|(input, relevance)| format!("{input} {relevance:.2}"))
        .collect();
    if !relevance.is_empty() {
        line("matter most", abridged(&relevance));
    }
    let (mut features, mut enhancement) = (0, 0);
    for group in model.map().groups() {
        match group {
            NodeGroup::Dense {
                source: broadlearn::features::Source::Features(_), bias, ..
            } => {
                enhancement += bias.len();
            }
            group => features += group.width(model.map().inputs()),
        }
    }
    line(
        "nodes",
        format!(
            "{} = {features} feature + {enhancement} enhancement ({})",
            model.map().width(),
            settings.network().enhancement.activation.name()
        ),
    );
    let (inputs, targets) = settings.scaling();
    line("scaling", format!("inputs {}, targets {}", inputs.name(), targets.name()));
    let report = model.report();
    line(
        "loss",
        match report.loss {
            Loss::Squared => "squared".into(),
            Loss::Robust { kind, sigma } => {
                format!("{}, sigma {}", loss_in_words(kind), format::setting(sigma))
            }
        },
    );
    line("ridge", report.ridge.map_or("none (pseudo-inverse)".into(), format::setting));
    if report.cross_fitted {
        line("weights", "cross-fitted: each row weighed by models that have not seen it".into());
    }
    if report.iterations > 0 {
        let state = if report.converged { "converged" } else { "not converged" };
        line(
            "fixed point",
            format!("{state} after {}", format::plural(report.iterations as u64, "step")),
        );
    }
    if report.iterations > 0 || report.cross_fitted {
        line(
            "distrusted",
            format!(
                "{:.1} % of the rows of the last fit have a weight below 0.5",
                100.0 * report.downweighted.max(0.0)
            ),
        );
    }
    if model.has_discriminant() {
        line("classes", "by multinomial regression on the outputs".into());
    }
    if let Ok(region) = model.region(0.9) {
        line(
            "90 % of errors",
            match region {
                Region::UsualHalfWidths(half) => {
                    let half: Vec<String> = half.into_iter().map(format::setting).collect();
                    let [least, most] = model.range_of_spreads();
                    let by_row = match least < most {
                        true => format!(" times {least:.2} to {most:.2}, by row"),
                        false => String::new(),
                    };
                    format!("are within {}{by_row}", abridged(&half))
                }
                Region::LeastProbability(least) => {
                    format!(
                        "leave the right class a probability of {} or more",
                        format::setting(least)
                    )
                }
            },
        );
    }
    line("seed", settings.seed().to_string());
    if model.members().len() > 1 {
        let stuck = |member: &&Member| member.report().iterations > 0 && !member.report().converged;
        let state = match model.members().iter().filter(stuck).count() {
            0 => String::new(),
            count => format!("; {count} not converged"),
        };
        line("members", format!("{} networks, averaged{state}", model.members().len()));
    }
    line(
        "updatable",
        match model.knowledge() {
            None => "no (compact)".into(),
            Some(_) if report.ridge.is_none() => "no (pseudo-inverse)".into(),
            Some(known) if known.is_complete() => "yes; all rows are on record".into(),
            Some(known) => {
                format!("yes; {} on record", format::plural(known.ledger().len() as u64, "row"))
            }
        },
    );
    lines
}

/// A robust loss with its parameters.
fn loss_in_words(kind: RobustLoss) -> String {
    match kind {
        RobustLoss::Generalised { shape } => {
            format!("generalised correntropy, shape {}", format::setting(shape))
        }
        RobustLoss::Mixture { share, ratio } => format!(
            "mixture correntropy, share {}, ratio {}",
            format::setting(share),
            format::setting(ratio)
        ),
        _ => kind.name().into(),
    }
}

/// Some names, not too many.
fn abridged(names: &[String]) -> String {
    const MOST: usize = 8;
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
