//! A table that passes by in blocks gives the model of the same table in memory.

use super::support::relative;
use broadlearn::data::{Bound, ReadOptions, Roles, TableReader, TrainingData};
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::{TableRows, Training};
use broadlearn::solve::RobustLoss;
use broadlearn::{Category, Error, Model, Result, Settings, unobserved};
use std::fmt::Write;

const ROWS: usize = 5300;

/// Two numbers, a category, a weight, a target with outliers, and a class of which there is one row only
/// among many others.
fn table() -> String {
    let mut stream = Stream::new(11, Purpose::Noise, 0);
    let mut text = String::from("a,b,colour,weight,y,class\n");
    for row in 0..ROWS {
        let (a, b) = (stream.normal(), stream.normal());
        let colour = ["red", "green", "blue"][row % 3];
        let outlier = if row % 10 == 3 { 20.0 * stream.normal() } else { 0.0 };
        let y = (2.0 * a).sin() + b + f64::from(row % 3 == 1) + 0.1 * stream.normal() + outlier;
        let class = if row == 1234 {
            "rare"
        } else if a > b {
            "up"
        } else {
            "down"
        };
        writeln!(text, "{a},{b},{colour},{},{y},{class}", 1 + row % 3).unwrap();
    }
    text
}

fn reader(text: &str) -> Result<TableReader> {
    let input = Box::new(std::io::Cursor::new(text.to_owned().into_bytes()));
    TableReader::from_reader("table", input, &ReadOptions::default())
}

fn roles(target: &str, ignore: &str, weight: bool) -> Roles {
    Roles {
        ignore: vec![ignore.into()],
        weight: weight.then(|| "weight".into()),
        ..Roles::target(target)
    }
}

fn settings() -> Settings {
    Settings::recipe(Default::default()).gain(0.7).enhancement_nodes(70).ridge(1e-3)
}

fn in_memory(text: &str, roles: &Roles, settings: Settings) -> (Model, broadlearn::faer::Mat<f64>) {
    let data = TrainingData::read(&mut reader(text).unwrap(), roles, &mut unobserved).unwrap();
    let all: Vec<usize> = (0..data.len()).collect();
    let schema = data.schema(&all).unwrap();
    let samples = data.samples(&schema, &all).unwrap();
    let (x, weights) = (samples.x.as_ref(), samples.weights.as_deref());
    let training = Training { x, targets: &samples.targets, weights, schema };
    (settings.fit(training, &mut unobserved).unwrap(), samples.x)
}

fn in_passes(text: &str, roles: &Roles, settings: Settings) -> Result<Model> {
    let bound = Bound::Sample { bytes: 20_000, rows: 900, seed: 0 };
    let sample =
        TrainingData::read_within(&mut reader(text)?, roles, bound, &mut unobserved).unwrap();
    assert!(!sample.is_complete());
    assert_eq!((sample.len(), sample.table_rows()), (900, Some(ROWS as u64)));
    let mut open = || reader(text);
    settings.fit_table(&sample, TableRows::Again(&mut open), false, &mut unobserved)
}

fn check(roles: &Roles, settings: &Settings) {
    let text = table();
    let (one, x) = in_memory(&text, roles, settings.clone());
    let other = in_passes(&text, roles, settings.clone()).unwrap();
    assert_eq!(one.schema().encoded_names(), other.schema().encoded_names());
    assert_eq!(one.schema().target, other.schema().target);
    assert_eq!((one.rows(), other.rows()), (ROWS as u64, ROWS as u64));
    assert!(other.report().converged);
    let outputs = |model: &Model| model.predict(&x).unwrap().values().to_owned();
    let difference = relative(&outputs(&other), &outputs(&one));
    assert!(difference < 1e-9, "{settings:?}: {difference:e}");
}

#[test]
fn passes_give_the_model_of_all_rows() {
    for weight in [false, true] {
        let roles = roles("y", "class", weight);
        check(&roles, &settings().squared());
        check(&roles, &settings().sigma(1.5).stop(3e-10, 200));
        check(&roles, &settings().sigma(1.0).loss(RobustLoss::Huber).stop(3e-10, 200));
    }
}

#[test]
fn a_class_outside_the_sample_is_learnt() {
    let roles = roles("class", "y", false);
    check(&roles, &settings().squared());
    check(&roles, &settings().sigma(3.0).stop(3e-10, 200));
}

#[test]
fn rows_are_judged_by_the_model_of_the_sample_where_the_kernel_is_chosen() {
    let (text, roles) = (table(), roles("y", "class", false));
    let model = in_passes(&text, &roles, Settings::new()).unwrap();
    let report = model.report();
    assert!(report.cross_fitted && report.iterations == 0);
    // A tenth of the targets are off by up to some twenty, most of them by more than the noise.
    assert!((0.05..0.2).contains(&report.downweighted), "{}", report.downweighted);
    assert!(model.region(0.9).is_ok());
}

/// The first rows are in memory, the others come once.
fn as_stream(text: &str, roles: &Roles, settings: Settings) -> Result<Model> {
    let mut table = reader(text)?;
    let bound = Bound::Prefix { bytes: 20_000 };
    let first = TrainingData::read_within(&mut table, roles, bound, &mut unobserved)?;
    assert!(!first.is_complete() && first.table_rows().is_none());
    settings.fit_table(&first, TableRows::Rest(table), false, &mut unobserved)
}

#[test]
fn a_stream_is_learnt_in_one_pass() {
    // More rows than are read at once.
    let text =
        table() + &table().lines().skip(1).fold(String::new(), |all, line| all + line + "\n");
    let roles = roles("y", "class", true);
    let streamed = as_stream(&text, &roles, settings().squared()).unwrap();
    assert_eq!(streamed.rows(), 2 * ROWS as u64);
    // Scalers come from the first rows, so that the models differ a little.
    let (whole, x) = in_memory(&text, &roles, settings().squared());
    let outputs = |model: &Model| model.predict(&x).unwrap().values().to_owned();
    assert!(relative(&outputs(&streamed), &outputs(&whole)) < 0.05);
    assert_eq!(as_stream(&text, &roles, Settings::new()).unwrap().rows(), 2 * ROWS as u64);
}

#[test]
fn what_needs_more_than_there_is_is_said() {
    let (text, roles) = (table(), roles("y", "class", false));
    let category = |result: Result<Model>| result.map_err(|error: Error| error.category()).err();
    let pinv = in_passes(&text, &roles, settings().squared().pseudo_inverse());
    assert_eq!(category(pinv), Some(Category::Setting));
    let text =
        text.clone() + &text.lines().skip(1).fold(String::new(), |all, line| all + line + "\n");
    let stream = as_stream(&text, &roles, settings().sigma(1.0));
    assert_eq!(category(stream), Some(Category::Setting));
}
