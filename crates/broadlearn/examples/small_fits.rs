//! What a robust fit of a small table costs beside a ridge fit of the same network.
//! `cargo xtask bench small` runs it against the paper's iteration in NumPy; `docs/benchmarks.md` has the table.
//!
//! ```sh
//! RAYON_NUM_THREADS=1 cargo run --release --example small_fits -- DATA OUT [REPEATS]
//! ```
//!
//! The 13 small sets of the paper from the folder DATA, all rows; recipe `classic`, 10 groups of 10 feature nodes, 200
//! enhancement nodes, ridge 2^-20, kernel 0.3, to a change of the outputs by 1e-6. Inputs and numeric
//! targets are scaled to [0, 1] beforehand.
//!
//! Three fits in turn, REPEATS times: `ridge` is the squared loss, `robust` begins with the ridge solution as the paper
//! does, `default` begins as the library does unless told. The clock runs from when U is there until the model is; the
//! last part, which gives intervals and is the same for all losses, is `calibration`. One line per figure: set, fit and
//! part, then the least milliseconds. U, the targets and the outputs of `robust` go to OUT, column after column, in files
//! that have their shapes as names.

use broadlearn::data::{ReadOptions, Roles, Schema, TableReader, Targets, Task, TrainingData};
use broadlearn::faer::{Mat, MatRef};
use broadlearn::features::Recipe;
use broadlearn::model::Training;
use broadlearn::preprocess::Scaling;
use broadlearn::solve::Start;
use broadlearn::{Error, Model, Result, Settings, unobserved};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SETS: [(&str, &str, Task); 13] = [
    ("airfoil", "last", Task::Regression),
    ("bodyfat", "last", Task::Regression),
    ("cleveland", "chol", Task::Regression),
    ("forestfires", "last", Task::Regression),
    ("mortgage", "last", Task::Regression),
    ("quake", "last", Task::Regression),
    ("weather_izmir", "last", Task::Regression),
    ("balance_scale", "last", Task::Classification),
    ("chess", "last", Task::Classification),
    ("diabetes_pima", "last", Task::Classification),
    ("ecoli", "last", Task::Classification),
    ("horse_colic_train", "last", Task::Classification),
    ("wireless", "last", Task::Classification),
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "data".into()));
    let out = PathBuf::from(arguments.next().unwrap_or_else(|| "target".into()));
    let repeats = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut found = false;
    for (name, target, task) in SETS {
        let Some(path) = find(&folder, name) else {
            eprintln!("{name}: not in {}", folder.display());
            continue;
        };
        found = true;
        let set = Set::read(&path, target, task)?;
        let robust = set.measure(name, repeats)?;
        set.write(&robust, &out.join(name)).map_err(|error| Error::cannot_create(&out, error))?;
    }
    match found {
        true => Ok(()),
        false => Err(Error::data(format!("none of the sets in {}", folder.display()))
            .advice("name a folder that has some, as `cargo xtask data` makes one")),
    }
}

/// A table, its inputs and numeric targets scaled to [0, 1].
struct Set {
    x: Mat<f64>,
    targets: Targets,
    schema: Schema,
}

impl Set {
    fn read(path: &Path, target: &str, task: Task) -> Result<Self> {
        let mut reader = TableReader::open(path, &ReadOptions::default())?;
        let roles = Roles { task: Some(task), ..Roles::target(target) };
        let data = TrainingData::read(&mut reader, &roles, &mut unobserved)?;
        let schema = data.schema(&(0..data.len()).collect::<Vec<_>>())?;
        let samples = data.into_samples(&schema)?;
        let targets = match samples.targets {
            Targets::Values(values) => Targets::Values(unit(values)),
            classes => classes,
        };
        Ok(Self { x: unit(samples.x), targets, schema })
    }

    /// Prints the least times of each fit; the model of `robust`.
    fn measure(&self, name: &str, repeats: usize) -> Result<Model> {
        let fits = [
            ("ridge", fixed().squared()),
            ("robust", fixed().sigma(0.3).start(Start::Ridge, false)),
            ("default", fixed().sigma(0.3)),
        ];
        let mut least = [[f64::INFINITY; 2]; 3];
        let mut robust = None;
        for _ in 0..repeats {
            for ((fit, settings), least) in fits.iter().zip(&mut least) {
                let (model, times) = self.fit(settings.clone())?;
                least.iter_mut().zip(times).for_each(|(least, time)| *least = least.min(time));
                if *fit == "robust" {
                    robust = Some(model);
                }
            }
        }
        for ((fit, _), [solving, calibration]) in fits.iter().zip(least) {
            println!("{name}.{fit} {solving:.4}");
            println!("{name}.{fit}.calibration {calibration:.4}");
        }
        let robust = robust.ok_or_else(|| Error::setting("REPEATS", 0).expected("1 or more"))?;
        println!("{name}.rows {}", self.x.nrows());
        println!("{name}.steps {}", robust.report().iterations);
        Ok(robust)
    }

    /// A model, and the milliseconds of solving and of calibration.
    fn fit(&self, settings: Settings) -> Result<(Model, [f64; 2])> {
        let (x, targets, schema) = (self.x.as_ref(), &self.targets, self.schema.clone());
        let (mut solving, mut calibrating) = (None, None);
        let training = Training { x, targets, weights: None, schema };
        let model = settings.fit(training, &mut |progress| {
            match progress.stage {
                "building the network" => {}
                "leaving rows out" => drop(calibrating.get_or_insert_with(Instant::now)),
                _ => drop(solving.get_or_insert_with(Instant::now)),
            }
            ControlFlow::Continue(())
        })?;
        let end = Instant::now();
        let (solving, calibrating) = (solving.unwrap_or(end), calibrating.unwrap_or(end));
        let times = [calibrating - solving, end - calibrating];
        Ok((model, times.map(|time| 1e3 * time.as_secs_f64())))
    }

    /// U, Y and U W as raw numbers.
    fn write(&self, model: &Model, stem: &Path) -> std::io::Result<()> {
        let u = model.map().state(self.x.as_ref());
        let outputs = &u * model.weights();
        let y = match &self.targets {
            Targets::Values(values) => values.clone(),
            Targets::Classes(classes) => Mat::from_fn(u.nrows(), outputs.ncols(), |i, j| {
                f64::from(u8::from(classes[i] as usize == j))
            }),
        };
        let bytes: Vec<u8> = [u.as_ref(), y.as_ref(), outputs.as_ref()]
            .into_iter()
            .flat_map(|matrix: MatRef<'_, f64>| matrix.col_iter())
            .flat_map(|column| column.iter().copied())
            .flat_map(f64::to_le_bytes)
            .collect();
        let shape = format!("{}x{}x{}.f64", u.nrows(), u.ncols(), y.ncols());
        std::fs::write(stem.with_extension(shape), bytes)
    }
}

fn fixed() -> Settings {
    Settings::recipe(Recipe::Classic)
        .feature_groups(10)
        .feature_nodes(10)
        .enhancement_nodes(200)
        .input_scaling(Scaling::None)
        .target_scaling(Scaling::None)
        .ridge(f64::powi(2.0, -20))
        .stop(1e-6, 200)
        .members(1)
}

/// Each column from 0 to 1; a constant one is 0.
fn unit(mut x: Mat<f64>) -> Mat<f64> {
    for column in x.col_iter_mut() {
        let values = || column.as_ref().iter().copied();
        let least = values().fold(f64::INFINITY, f64::min);
        let most = values().fold(f64::NEG_INFINITY, f64::max);
        let width = if most > least { most - least } else { 1.0 };
        column.iter_mut().for_each(|value| *value = (*value - least) / width);
    }
    x
}

/// `folder/name.csv` or `folder/*/name.csv`.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let file = format!("{name}.csv");
    let direct = folder.join(&file);
    if direct.exists() {
        return Some(direct);
    }
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path().join(&file)).find(|path| path.exists())
}
