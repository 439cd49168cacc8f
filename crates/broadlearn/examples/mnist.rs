//! MNIST with 10 x 10 feature and 5000 enhancement nodes: seconds of every phase, accuracy, memory.
//! `cargo xtask bench mnist` runs it against NumPy; `docs/benchmarks.md` has the table.
//!
//! ```sh
//! cargo run --release --example mnist -- DATA [MODEL]
//! ```
//!
//! DATA is a folder with `mnist_train.npz` and `mnist_test.npz` (`cargo xtask data mnist` makes
//! them), MODEL a file to write the model to. One line per figure: a name and a number. The number of
//! threads is that of `RAYON_NUM_THREADS`.

use broadlearn::data::{ReadOptions, Roles, Samples, SchemaReader, TableReader, Targets};
use broadlearn::data::{Schema, TrainingData};
use broadlearn::faer::Side;
use broadlearn::features::Recipe;
use broadlearn::model::Training;
use broadlearn::preprocess::Scaling;
use broadlearn::{Model, Result, Settings, unobserved};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

const RIDGE: f64 = 1e-5;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().unwrap_or_else(|| "data".into());

    let begun = Instant::now();
    let (schema, samples) = read_training(&folder.join("mnist_train.npz"))?;
    tell("reading", begun);

    let settings = Settings::recipe(Recipe::Classic)
        .feature_groups(10)
        .feature_nodes(10)
        .enhancement_nodes(5000)
        .input_scaling(Scaling::RowZScore)
        .squared()
        .ridge(RIDGE);
    let (x, targets) = (samples.x.as_ref(), &samples.targets);
    let training = Training { x, targets, weights: None, schema };
    let begun = Instant::now();
    let mut solving = (begun, 0.0);
    let model = settings.fit(training, &mut |progress| {
        if progress.stage == "solving" {
            tell("building", begun);
            solving = (Instant::now(), cpu_seconds());
        }
        ControlFlow::Continue(())
    })?;
    tell("solving", solving.0);
    println!("solving_cpu {:.2}", cpu_seconds() - solving.1);

    let begun = Instant::now();
    let right = correct(&model, &folder.join("mnist_test.npz"))?;
    tell("testing", begun);
    println!("accuracy {right:.2}");
    println!("peak_mb {:.0}", peak_mb());

    // Two parts of "solving", each on its own: U W for all rows, which is map and scaling with
    // little else, and the factor.
    let begun = Instant::now();
    model.predict(x)?;
    tell("mapping", begun);
    if let Some(knowledge) = model.knowledge() {
        let mut r = knowledge.equations().r().to_owned();
        (0..r.nrows()).for_each(|i| r[(i, i)] += RIDGE);
        let begun = Instant::now();
        let _ = std::hint::black_box(r.llt(Side::Lower));
        tell("factor", begun);
    }
    if let Some(file) = arguments.next() {
        model.compact().save(&file)?;
    }
    Ok(())
}

fn tell(name: &str, begun: Instant) {
    println!("{name} {:.3}", begun.elapsed().as_secs_f64());
}

fn read_training(file: &Path) -> Result<(Schema, Samples)> {
    let mut reader = TableReader::open(file, &ReadOptions::default())?;
    let data = TrainingData::read(&mut reader, &Roles::target("y"), &mut unobserved)?;
    let schema = data.schema(&(0..data.len()).collect::<Vec<_>>())?;
    let samples = data.into_samples(&schema)?;
    Ok((schema, samples))
}

/// The share of right classes in percent.
fn correct(model: &Model, file: &Path) -> Result<f64> {
    let reader = TableReader::open(file, &ReadOptions::default())?;
    let mut reader = SchemaReader::new(reader, model.schema(), true, false)?;
    let (mut right, mut all) = (0, 0);
    while let Some(block) = reader.next_block(4096)? {
        let found = model.predict(&block.x)?.classes();
        if let Some(Targets::Classes(truth)) = &block.targets {
            right += found.iter().zip(truth).filter(|(found, truth)| found == truth).count();
        }
        all += found.len();
    }
    Ok(100.0 * right as f64 / all as f64)
}

/// Processor time of all threads so far; only Linux tells, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = status.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    // The fields 14 and 15, of which two stand before the last bracket.
    ticks(11).zip(ticks(12)).map_or(f64::NAN, |(user, system)| (user + system) / 100.0)
}

/// The most memory that was ever in use; only Linux tells.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kilobytes.map_or(f64::NAN, |kilobytes: f64| kilobytes / 1e3)
}
