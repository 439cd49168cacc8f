//! A model file read by NumPy alone (`tests/python/predict.py`, written from
//! `docs/model-format.md`) predicts what the library predicts.

use crate::support::{python, run_python};
use broadlearn::data::{ReadOptions, Roles, SchemaReader, TableReader, Task, TrainingData};
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::features::{Activation, Recipe};
use broadlearn::model::Training;
use broadlearn::preprocess::Scaling;
use broadlearn::{Model, Settings, unobserved};
use std::fmt::Write;
use std::path::Path;

/// A table with everything that a table can have; `new` brings levels and gaps that training lacks.
fn table(rows: usize, seed: u64, new: bool) -> String {
    let mut stream = Stream::new(seed, Purpose::Noise, 0);
    let mut text = String::from("size,colour,old,\"a, \"\"b\"\"\",shop,grade,price,kind\n");
    for row in 0..rows {
        let size = 10.0 * stream.unit();
        let colour = ["red", "blue", "grün", " red "][stream.below(4)];
        let old = ["yes", "no", "True", "FALSE"][stream.below(4)];
        let plain = stream.normal();
        let shop = ["north", "south", "\"the \"\"east\"\"\""][stream.below(3)];
        let grade = stream.below(3);
        let kind = ["b", "a", "c"][(grade + usize::from(size > 5.0)) % 3];
        let price = size * size - 3.0 * plain + f64::from(u8::from(colour == "blue")) * 20.0;
        let gone = |every: usize| row % every == 3;
        let size = match row % 17 {
            3 => "NA".into(),
            5 => "-999.0".into(),
            _ => format!("{size}"),
        };
        let colour = if gone(11) { "" } else { colour };
        let shop = match (new, row % 5) {
            (true, 1) => "elsewhere",
            (true, 2) => " ",
            _ => shop,
        };
        let plain = if new && gone(7) { "?".into() } else { format!("{plain:e}") };
        let old = if new && gone(13) { "null" } else { old };
        writeln!(text, "{size},{colour},{old},{plain},{shop},{grade},{price},{kind}").unwrap();
    }
    text
}

fn options() -> ReadOptions {
    ReadOptions { missing: vec!["-999".into()], ..ReadOptions::default() }
}

fn read(text: &str) -> TableReader {
    let bytes = Box::new(std::io::Cursor::new(text.to_owned()));
    TableReader::from_reader("table.csv", bytes, &options()).unwrap()
}

fn fit(settings: Settings, task: Task, text: &str) -> Model {
    let target = if task == Task::Regression { "price" } else { "kind" };
    let roles = Roles { task: Some(task), ..Roles::target(target) };
    let data = TrainingData::read(&mut read(text), &roles, &mut unobserved).unwrap();
    let all: Vec<usize> = (0..data.len()).collect();
    let schema = data.schema(&all).unwrap();
    let samples = data.samples(&schema, &all).unwrap();
    let training =
        Training { x: samples.x.as_ref(), targets: &samples.targets, weights: None, schema };
    settings.fit(training, &mut unobserved).unwrap()
}

/// Compares the predictions for a table in which NumPy and the library have to find every surprise.
fn compare(python: &Path, model: &Model, text: &str, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (model_path, table_path) = (folder.path().join("m.broad"), folder.path().join("t.csv"));
    model.save(&model_path).unwrap();
    std::fs::write(&table_path, text).unwrap();
    let output = run_python(python, "predict.py", &[&model_path, &table_path]);

    let mut reader = SchemaReader::new(read(text), model.schema(), false, false).unwrap();
    let block = reader.next_block(usize::MAX).unwrap().unwrap();
    let predictions = model.predict(&block.x).unwrap();
    let ours = predictions.values();
    let largest = ours.norm_max();
    let lines: Vec<Vec<&str>> = output.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), ours.nrows());
    let skip = usize::from(model.task() == Task::Classification);
    for (i, fields) in lines.iter().enumerate() {
        assert_eq!(fields.len(), skip + ours.ncols());
        for (j, field) in fields[skip..].iter().enumerate() {
            let theirs: f64 = field.parse().unwrap();
            let off = (theirs - ours[(i, j)]).abs() / largest;
            assert!(off < 1e-12, "{what}, row {i}: {theirs} and {}, {off:e}", ours[(i, j)]);
        }
    }
    if let broadlearn::data::TargetSchema::Classification { classes, .. } = &model.schema().target {
        let found: Vec<&str> =
            predictions.classes().iter().map(|&code| classes[code as usize].as_str()).collect();
        let theirs: Vec<&str> = lines.iter().map(|fields| fields[0]).collect();
        assert_eq!(found, theirs, "{what}");
        let mut distinct = theirs;
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct, ["a", "b", "c"], "{what}: the classes do not all occur");
    }
}

#[test]
fn numpy_predicts_the_same_from_the_model_file() {
    let Some(python) = python("numpy_predicts_the_same_from_the_model_file") else { return };
    let (training, fresh) = (table(150, 1, false), table(60, 2, true));
    for task in [Task::Regression, Task::Classification] {
        for recipe in Recipe::ALL {
            let settings = Settings::recipe(recipe).enhancement_nodes(30).sigma(3.0).ridge(0.01);
            let model = fit(settings, task, &training);
            compare(&python, &model, &fresh, &format!("{recipe:?}, {task:?}"));
        }
        let settings = Settings::recipe(Recipe::Classic).enhancement_nodes(30).sigma(3.0);
        let model = fit(settings.ridge(0.01).members(3), task, &training);
        compare(&python, &model, &fresh, &format!("an ensemble, {task:?}"));
        for activation in Activation::ALL {
            let settings = Settings::new().enhancement_nodes(30).activation(activation);
            let settings = settings.input_scaling(Scaling::RowZScore).squared().ridge(0.01);
            let model = fit(settings, task, &training);
            compare(&python, &model, &fresh, &format!("{activation:?}, {task:?}"));
        }
    }
}

#[test]
fn numpy_tells_classes_in_a_row_apart_by_the_discriminant_of_the_model_file() {
    let test = "numpy_tells_classes_in_a_row_apart_by_the_discriminant_of_the_model_file";
    let Some(python) = python(test) else { return };
    let in_a_row = |rows: usize, seed: u64| {
        let mut stream = Stream::new(seed, Purpose::Noise, 0);
        let mut text = String::from("size,kind\n");
        for _ in 0..rows {
            let size = stream.unit();
            writeln!(text, "{size},{}", ["a", "b", "c"][(3.0 * size) as usize]).unwrap();
        }
        text
    };
    let model = fit(Settings::new().enhancement_nodes(0), Task::Classification, &in_a_row(300, 1));
    assert!(model.has_discriminant());
    compare(&python, &model, &in_a_row(60, 2), "classes in a row");
}

/// Without this, a table without surprises could pass for one.
#[test]
fn the_table_for_numpy_has_all_surprises() {
    let model = fit(
        Settings::new().enhancement_nodes(5).sigma(1.0).ridge(1.0),
        Task::Regression,
        &table(150, 1, false),
    );
    let names = model.schema().encoded_names();
    let expected = [
        "size",
        "size is missing",
        "colour=blue",
        "colour=grün",
        "colour=red",
        "colour is missing",
        "old",
        "a, \"b\"",
        "shop=north",
        "shop=south",
        "shop=the \"east\"",
        "grade",
        "kind=a",
        "kind=b",
        "kind=c",
    ];
    assert_eq!(names, expected);
    let text = table(60, 2, true);
    let mut reader = SchemaReader::new(read(&text), model.schema(), false, false).unwrap();
    reader.next_block(usize::MAX).unwrap().unwrap();
    // Of `shop`, both the unknown level and the gap that training did not have.
    assert_eq!(reader.surprises().unseen.get(&4), Some(&24));
}

#[test]
fn the_script_refuses_a_damaged_file() {
    let Some(python) = python("the_script_refuses_a_damaged_file") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (model_path, table_path) = (folder.path().join("m.broad"), folder.path().join("t.csv"));
    let settings = Settings::new().enhancement_nodes(5).sigma(1.0).ridge(1.0);
    let text = table(50, 1, false);
    let mut bytes = fit(settings, Task::Regression, &text).to_bytes().unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&model_path, bytes).unwrap();
    std::fs::write(&table_path, text).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/predict.py");
    let output = std::process::Command::new(python)
        .args([&script, &model_path, &table_path])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("checksum"));
}
