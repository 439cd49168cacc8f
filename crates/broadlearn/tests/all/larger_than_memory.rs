//! A table that passes by in blocks gives the model of the same table in memory.

use super::support::relative;
use broadlearn::data::{
    Bound, Part, ReadOptions, Roles, Samples, SchemaReader, TableReader, TrainingData,
};
use broadlearn::evaluate::{Audit, Auditor};
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::{Labelled, Learning, Passing, Removals, TableRows, Training};
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
    settings.fit_table(&sample, TableRows::Again(&mut open), Passing::default(), &mut unobserved)
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
    settings.fit_table(&first, TableRows::Rest(table), Passing::default(), &mut unobserved)
}

#[test]
fn columns_that_tell_nothing_are_left_out_however_the_table_is_read() {
    let plain =
        table() + &table().lines().skip(1).fold(String::new(), |all, line| all + line + "\n");
    let mut full = String::new();
    for (i, line) in plain.lines().enumerate() {
        let (first, last) = if i == 0 { ("id", "empty") } else { ("row ", "") };
        let number = if i == 0 { String::new() } else { i.to_string() };
        writeln!(full, "{first}{number},{line},{last}").unwrap();
    }
    let roles = roles("y", "class", true);
    let bound = Bound::Sample { bytes: 20_000, rows: 900, seed: 0 };
    let sampled = |text: &str| {
        let data =
            TrainingData::read_within(&mut reader(text).unwrap(), &roles, bound, &mut unobserved);
        let (data, mut open) = (data.unwrap(), || reader(text));
        let rows = TableRows::Again(&mut open);
        settings().squared().fit_table(&data, rows, Passing::default(), &mut unobserved).unwrap()
    };
    let streamed = |text: &str| as_stream(text, &roles, settings().squared()).unwrap();
    for learn in [&sampled as &dyn Fn(&str) -> Model, &streamed] {
        let [with, without] = [&full, &plain].map(|text| learn(text).to_bytes().unwrap());
        assert!(with == without);
    }
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

/// The first rows of the table, and all of it.
fn beginning(rows: usize) -> (String, String) {
    let text = table();
    let first = text.lines().take(rows + 1).fold(String::new(), |all, line| all + line + "\n");
    (first, text)
}

fn samples(model: &Model, text: &str) -> Samples {
    let mut reader = SchemaReader::new(reader(text).unwrap(), model.schema(), true, false).unwrap();
    reader.read_to_end(&mut unobserved).unwrap()
}

#[test]
fn a_table_that_passes_by_is_learnt_as_one_in_memory() {
    let (first, text) = beginning(400);
    for (learning, members, weight) in [
        (Learning::default(), 1, false),
        (Learning { quarantine: 0.2, ..Learning::default() }, 2, true),
        (Learning { forgetting: 0.9995, quarantine: 0.05, one_by_one: false }, 1, true),
    ] {
        let roles = roles("y", "class", weight);
        let (model, x) = in_memory(&first, &roles, settings().sigma(1.0).members(members));
        let rows = samples(&model, &text);
        let mut whole = model.clone();
        let together = whole.learn((&rows).into(), learning, &mut unobserved).unwrap();

        let mut passing = model.clone();
        let schema = model.schema().clone();
        let mut blocks = SchemaReader::new(reader(&text).unwrap(), &schema, true, false).unwrap();
        let (mut trust, mut left_out) = (Vec::<f64>::new(), Vec::new());
        passing
            .learn_table::<Error>(&mut blocks, learning, &mut unobserved, &mut |_, learnt| {
                left_out.extend(learnt.quarantined.iter().map(|row| trust.len() + row));
                trust.extend(&learnt.trust);
                Ok(())
            })
            .unwrap();
        assert_eq!(left_out, together.quarantined);
        assert!(trust.iter().zip(&together.trust).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(passing.rows(), whole.rows());
        let on_record = |model: &Model| model.knowledge().unwrap().ledger().clone();
        assert_eq!(on_record(&passing).fingerprints(), on_record(&whole).fingerprints());
        let (one, other) = (on_record(&passing), on_record(&whole));
        let same = one.weights().iter().zip(other.weights()).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(same, "{learning:?}");
        let outputs = |model: &Model| model.predict(&x).unwrap().values().to_owned();
        let difference = relative(&outputs(&passing), &outputs(&whole));
        assert!(difference < 1e-10, "{learning:?}: {difference:e}");
    }
}

#[test]
fn few_rows_of_a_table_are_learnt_by_an_update() {
    let (first, _) = beginning(400);
    let (few, _) = beginning(4);
    let (mut model, _) = in_memory(&first, &roles("y", "class", false), settings().squared());
    let mut whole = model.clone();
    whole.learn((&samples(&model, &few)).into(), Learning::default(), &mut unobserved).unwrap();
    let schema = model.schema().clone();
    let mut blocks = SchemaReader::new(reader(&few).unwrap(), &schema, true, false).unwrap();
    let see = &mut |_: &Samples, _: &broadlearn::model::Learnt| Ok::<(), Error>(());
    model.learn_table(&mut blocks, Learning::default(), &mut unobserved, see).unwrap();
    assert_eq!(model.weights(), whole.weights());
}

#[test]
fn a_bad_row_far_behind_leaves_a_model_as_it_was() {
    let (first, text) = beginning(400);
    let (mut model, _) = in_memory(&first, &roles("y", "class", false), settings().squared());
    check_unchanged(&mut model, &(text.clone() + "1,2,red,1,nothing,up\n"));
    // New classes come before the row without one.
    let (mut model, _) = in_memory(&first, &roles("class", "y", false), settings().squared());
    check_unchanged(&mut model, &(text + "1,2,red,1,3,new\n1,2,red,1,3,\n"));
}

fn check_unchanged(model: &mut Model, table: &str) {
    let before = model.to_bytes().unwrap();
    let schema = model.schema().clone();
    let blocks = SchemaReader::new(reader(table).unwrap(), &schema, true, false).unwrap();
    let mut blocks = blocks.accepting_new_classes();
    let see = &mut |_: &Samples, _: &broadlearn::model::Learnt| Ok::<(), Error>(());
    let error = model.learn_table(&mut blocks, Learning::default(), &mut unobserved, see);
    assert_eq!(error.unwrap_err().category(), Category::Data);
    assert!(model.to_bytes().unwrap() == before);
}

#[test]
fn an_audit_in_passes_finds_what_one_in_memory_finds() {
    let text = table();
    for (target, other) in [("y", "class"), ("class", "y")] {
        let roles = roles(target, other, true);
        let (model, _) = in_memory(&text, &roles, settings().sigma(1.0).members(2));
        let rows = samples(&model, &text);
        let all: Labelled<'_> = (&rows).into();
        let left_out = model.leave_one_out(all, &mut unobserved).unwrap();
        let whole = Audit::new(&left_out, &rows.targets).unwrap();
        let chosen: Vec<usize> = whole.order[..30].to_vec();
        let effects = model.removal_effects(all, &chosen, &mut unobserved).unwrap();

        let pass = |see: &mut dyn FnMut(usize, Labelled<'_>)| {
            let schema = model.schema();
            let mut blocks =
                SchemaReader::new(reader(&text).unwrap(), schema, true, false).unwrap();
            let mut before = 0;
            blocks
                .for_each_block::<Error>(700, |block| {
                    let targets = block.targets.as_ref().unwrap();
                    let (x, weights) = (block.x.as_ref(), block.weights.as_deref());
                    see(before, Labelled { x, targets, weights });
                    before += x.nrows();
                    Ok(())
                })
                .unwrap();
        };
        let (mut auditor, mut leaving) = (Auditor::default(), model.leaving_out().unwrap());
        pass(&mut |_, rows| {
            let left_out = leaving.next_rows(rows, &mut unobserved).unwrap();
            auditor.add(&left_out, rows.targets).unwrap();
        });
        let audit = auditor.finish().unwrap();
        assert_eq!(audit.order, whole.order);
        assert_eq!(audit.suspects, whole.suspects);
        assert_eq!(audit.contamination, whole.contamination);
        assert!(audit.scores.iter().zip(&whole.scores).all(|(a, b)| (a - b).abs() <= 1e-8 * b));

        leaving.restart();
        let (mut removals, mut found) = (Removals::new(&model), Vec::new());
        pass(&mut |before, rows| {
            let inside: Vec<usize> =
                (0..rows.x.nrows()).filter(|row| chosen.contains(&(before + row))).collect();
            if let Some((left_out, more)) = leaving.next_chosen(rows, &inside).unwrap() {
                removals.append(more);
                let weights = left_out.weights.iter().zip(&left_out.distances);
                found.extend(
                    inside.iter().map(|row| before + row).zip(weights.map(|(w, d)| (*w, *d))),
                );
            }
        });
        pass(&mut |_, rows| removals.see(rows.x, &mut unobserved).unwrap());
        for ((row, (weight, distance)), effect) in found.iter().zip(removals.effects()) {
            let place = chosen.iter().position(|chosen| chosen == row).unwrap();
            assert!((effect - effects[place]).abs() <= 1e-8 * effects[place]);
            assert_eq!(*weight, left_out.weights[*row]);
            assert!((distance - left_out.distances[*row]).abs() <= 1e-8 * distance);
        }
        assert_eq!(found.len(), 30);
    }
}

#[test]
fn rows_on_record_can_be_left_out() {
    let (text, roles) = (table(), roles("y", "class", true));
    let bound = Bound::Sample { bytes: 20_000, rows: 900, seed: 0 };
    let sample =
        TrainingData::read_within(&mut reader(&text).unwrap(), &roles, bound, &mut unobserved);
    let mut open = || reader(&text);
    let passing = Passing { on_record: true, ..Passing::default() };
    let settings = settings().sigma(1.5).stop(3e-10, 200);
    let model = settings
        .clone()
        .fit_table(&sample.unwrap(), TableRows::Again(&mut open), passing, &mut unobserved)
        .unwrap();
    assert!(model.knowledge().unwrap().is_complete());
    let (whole, _) = in_memory(&text, &roles, settings);
    let rows = samples(&whole, &text);
    let left_out = |model: &Model| model.leave_one_out((&rows).into(), &mut unobserved).unwrap();
    let (one, other) = (left_out(&model), left_out(&whole));
    for (a, b) in one.distances.iter().zip(&other.distances) {
        assert!((a - b).abs() < 1e-8, "{a} {b}");
    }
    for (a, b) in one.weights.iter().zip(&other.weights) {
        // The last weights come from the W before the last, which differs by the tolerance.
        assert!((a.unwrap() - b.unwrap()).abs() < 1e-6);
    }
}

#[test]
fn held_out_rows_are_neither_learnt_nor_looked_at() {
    let (text, roles) = (table(), roles("y", "class", false));
    let part = Part::training(0.3, 4);
    let kept = |part: Part| {
        let lines = text.lines().enumerate();
        let rows = lines.filter(|(number, _)| *number == 0 || part.has(*number as u64));
        rows.fold(String::new(), |all, (_, line)| all + line + "\n")
    };
    let bound = Bound::Sample { bytes: 20_000, rows: 900, seed: 0 };
    let mut table = reader(&text).unwrap();
    let sample =
        TrainingData::read_part(&mut table, &roles, bound, Some(part), &mut unobserved).unwrap();
    let mut open = || reader(&text);
    let settings = settings().squared();
    let rows = TableRows::Again(&mut open);
    let model =
        settings.clone().fit_table(&sample, rows, Passing::default(), &mut unobserved).unwrap();
    let (whole, x) = in_memory(&kept(part), &roles, settings);
    assert_eq!(model.rows(), whole.rows());
    assert_eq!(sample.table_rows(), Some(whole.rows()));
    let outputs = |model: &Model| model.predict(&x).unwrap().values().to_owned();
    assert!(relative(&outputs(&model), &outputs(&whole)) < 1e-9);
    let held_out = SchemaReader::new(reader(&text).unwrap(), model.schema(), true, false).unwrap();
    let mut held_out = held_out.only(Some(Part::held_out(0.3, 4)));
    let rows = held_out.read_to_end(&mut unobserved).unwrap();
    assert_eq!(rows.len() as u64 + model.rows(), ROWS as u64);
}

#[test]
fn few_rows_that_are_refused_when_seen_leave_a_model_as_it_was() {
    let (first, _) = beginning(400);
    let (few, _) = beginning(4);
    let (mut model, _) = in_memory(&first, &roles("y", "class", false), settings().squared());
    let before = model.to_bytes().unwrap();
    let schema = model.schema().clone();
    let mut blocks = SchemaReader::new(reader(&few).unwrap(), &schema, true, false).unwrap();
    let see = &mut |_: &Samples, _: &broadlearn::model::Learnt| Err(Error::data("a full disk"));
    let error = model.learn_table(&mut blocks, Learning::default(), &mut unobserved, see);
    assert!(error.unwrap_err().to_string().contains("a full disk"));
    assert!(model.to_bytes().unwrap() == before);
}
