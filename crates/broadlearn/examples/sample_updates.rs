//! 10 000 further rows for a model of 20 000 rows and 5100 nodes: seconds of `Model::learn`.
//! `cargo xtask bench updates` runs it against the paper's formula in NumPy; `docs/benchmarks.md` has the table.
//!
//! ```sh
//! cargo run --release --example sample_updates -- DATA MODEL [REPEATS]
//! ```
//!
//! MNIST from the folder DATA, the network of `mnist.rs`, squared loss, ridge 1e-5. The model with all 30 000 rows
//! goes to the file MODEL. One line per figure: a name and a number, the least seconds of all repeats.

use broadlearn::data::{ReadOptions, Roles, Samples, Schema, TableReader, Targets, TrainingData};
use broadlearn::features::Recipe;
use broadlearn::model::{Labelled, Learning, Training};
use broadlearn::preprocess::Scaling;
use broadlearn::{Result, Settings, unobserved};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

const BASE: Range<usize> = 0..20_000;
const NEW: Range<usize> = 20_000..30_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().map_or_else(|| "data".into(), PathBuf::from);
    let file = arguments.next().map_or_else(|| "updated.broad".into(), PathBuf::from);
    let repeats = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(3);
    let (schema, samples) = read(&folder.join("mnist_train.npz"))?;
    let rows = |range: Range<usize>| samples.x.subrows(range.start, range.len());
    let settings = Settings::recipe(Recipe::Classic)
        .feature_groups(10)
        .feature_nodes(10)
        .enhancement_nodes(5000)
        .input_scaling(Scaling::RowZScore)
        .squared()
        .ridge(1e-5);
    let targets = classes(&samples, BASE);
    let base = settings.fit(
        Training { x: rows(BASE), targets: &targets, weights: None, schema },
        &mut unobserved,
    )?;

    let targets = classes(&samples, NEW);
    let mut least = f64::INFINITY;
    let mut model = base.clone();
    for _ in 0..repeats {
        model = base.clone();
        let new = Labelled { x: rows(NEW), targets: &targets, weights: None };
        let begun = Instant::now();
        model.learn(new, Learning::default(), &mut unobserved)?;
        least = least.min(begun.elapsed().as_secs_f64());
    }
    println!("learning {least:.3}");
    model.compact().save(&file)
}

fn read(file: &Path) -> Result<(Schema, Samples)> {
    let mut reader = TableReader::open(file, &ReadOptions::default())?;
    let data = TrainingData::read(&mut reader, &Roles::target("y"), &mut unobserved)?;
    let schema = data.schema(&(0..data.len()).collect::<Vec<_>>())?;
    let samples = data.into_samples(&schema)?;
    Ok((schema, samples))
}

fn classes(samples: &Samples, rows: Range<usize>) -> Targets {
    match &samples.targets {
        Targets::Classes(codes) => Targets::Classes(codes[rows].to_vec()),
        Targets::Values(_) => unreachable!("MNIST has classes"),
    }
}
