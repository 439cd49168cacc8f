//! `broadlearn diff`: in what two models differ.

use super::update::read_rows;
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::Model;
use broadlearn::faer::{Mat, MatRef};
use broadlearn::model::Member;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn diff before.broad after.broad
  broadlearn diff before.broad after.broad --data test.csv --json")]
pub(crate) struct DiffArgs {
    /// One model
    first: PathBuf,
    /// Another model
    second: PathBuf,
    /// Compare the predictions for the rows of this table (with its target)
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &DiffArgs, context: &Context) -> Result<(), Fault> {
    let (a, b) = (load_model(&args.first, None)?, load_model(&args.second, None)?);
    let predictions = match &args.data {
        None => None,
        Some(path) => {
            // Each by its own schema: columns, categories and classes may differ.
            let predict = |model: &Model| -> Result<Mat<f64>, Fault> {
                let rows =
                    read_rows(model, std::slice::from_ref(path), true, &args.table, context)?;
                context.end_progress();
                Ok(model.predict(&rows.x)?.values().clone())
            };
            let (f, g) = (predict(&a)?, predict(&b)?);
            (f.ncols() == g.ncols()).then(|| relative(f.as_ref(), g.as_ref()))
        }
    };
    let mut differing = Vec::new();
    compare("", &describe(&a), &describe(&b), &mut differing);
    let numbers = [
        ("scalers", relative_scalers(&a, &b)),
        ("nodes", same_shape(&a, &b).then(|| f64::from(u8::from(other_nodes(&a, &b))))),
        ("W", members(&a, &b, |member| Some(member.weights()))),
        ("R", members(&a, &b, |member| member.knowledge().map(|known| known.equations().r()))),
        ("P", members(&a, &b, |member| member.knowledge().map(|known| known.equations().p()))),
    ];
    if context.json {
        let differing: Vec<Value> = differing
            .iter()
            .map(|(name, a, b)| json!({"what": name, "first": a, "second": b}))
            .collect();
        let mut object = json!({
            "first": args.first,
            "second": args.second,
            "differing": differing,
            "predictions": predictions,
        });
        for (name, value) in numbers {
            object["relative_difference"][name] = json!(value);
        }
        return output::print_json(&object);
    }
    let mut text = String::new();
    if differing.is_empty() {
        text.push_str("the same settings, columns, kernel size, ridge and number of rows\n");
    } else {
        let mut rows = vec![vec![String::new(), "first".into(), "second".into()]];
        let cell = |value: &Value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let cell = |value: &Value| shortened(cell(value));
        let shown = differing.iter().take(MOST_SHOWN);
        rows.extend(shown.map(|(name, a, b)| vec![name.clone(), cell(a), cell(b)]));
        text.push_str(&format::table(&rows));
        if differing.len() > MOST_SHOWN {
            let more = (differing.len() - MOST_SHOWN) as u64;
            text.push_str(&format!(
                "  and {} (--json has all)\n",
                format::plural(more, "more difference")
            ));
        }
    }
    text.push_str("\nrelative differences\n");
    let mut rows = Vec::new();
    for (name, value) in numbers {
        let value = match value {
            Some(0.0) => "equal".into(),
            Some(_) if name == "nodes" => "differ".into(),
            Some(value) => format!("{value:.1e}"),
            None => "not comparable".into(),
        };
        rows.push(vec![name.to_owned(), value]);
    }
    if args.data.is_some() {
        let value = predictions.map_or("not comparable".into(), |value| format!("{value:.1e}"));
        rows.push(vec!["predictions".into(), value]);
    }
    text.push_str(&format::table(&rows));
    output::print(&text)
}

/// What can be compared field by field.
fn describe(model: &Model) -> Value {
    let report = model.report();
    let mut settings = json!(model.settings());
    settings["members"] = json!(model.members().len());
    json!({
        "settings": settings,
        "schema": model.schema(),
        "loss": report.loss,
        "ridge": report.ridge,
        "rows": model.rows(),
        "nodes": model.map().width(),
        "updatable": model.knowledge().is_some(),
        "weight": model.knowledge().map(|known| known.equations().weight()),
    })
}

/// The leaves in which two values differ, with their paths.
fn compare(path: &str, a: &Value, b: &Value, into: &mut Vec<(String, Value, Value)>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let none = &Value::Null;
                compare(&below, a.get(name).unwrap_or(none), b.get(name).unwrap_or(none), into);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{}]", place + 1), a, b, into);
            }
        }
        _ if a == b => {}
        _ => into.push((path.to_owned(), a.clone(), b.clone())),
    }
}

/// Differences that are listed for people.
const MOST_SHOWN: usize = 40;

/// The beginning of a long cell.
fn shortened(cell: String) -> String {
    const LONGEST: usize = 60;
    match cell.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &cell[..end]),
        None => cell,
    }
}

fn same_shape(a: &Model, b: &Model) -> bool {
    let shape =
        |model: &Model| (model.members().len(), model.weights().nrows(), model.weights().ncols());
    shape(a) == shape(b)
}

fn other_nodes(a: &Model, b: &Model) -> bool {
    a.members().iter().zip(b.members()).any(|(a, b)| a.map() != b.map())
}

fn relative(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> f64 {
    let difference = (a - b).norm_l2();
    if difference == 0.0 { 0.0 } else { difference / b.norm_l2() }
}

fn relative_scalers(a: &Model, b: &Model) -> Option<f64> {
    let equal = a.input_scaler() == b.input_scaler() && a.target_scaler() == b.target_scaler();
    equal.then_some(0.0)
}

/// The relative difference of a part of all members, if both models have it in the same shapes.
fn members<'a>(
    a: &'a Model,
    b: &'a Model,
    part: impl Fn(&'a Member) -> Option<MatRef<'a, f64>>,
) -> Option<f64> {
    if a.members().len() != b.members().len() {
        return None;
    }
    let (mut change, mut size) = (0.0, 0.0);
    for (a, b) in a.members().iter().zip(b.members()) {
        let (a, b) = (part(a)?, part(b)?);
        if (a.nrows(), a.ncols()) != (b.nrows(), b.ncols()) {
            return None;
        }
        change += (a - b).squared_norm_l2();
        size += b.squared_norm_l2();
    }
    Some(if change == 0.0 { 0.0 } else { f64::sqrt(change / size) })
}
