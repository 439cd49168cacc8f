//! MNIST with 10 x 10 feature and 5000 enhancement nodes, or N: seconds of every phase, accuracy, memory.
//! `cargo xtask bench mnist` runs it against NumPy; `docs/benchmarks.md` has the table.
//!
//! ```sh
//! cargo run --release --example mnist -- DATA [--nodes N] [--wrong SHARE] [--sigma F] [--solver auto|direct|iterative]
//!     [--tolerance F] [--memory BYTES] [--model FILE] [--stages]
//! ```
//!
//! DATA is a folder with `mnist_train.npz` and `mnist_test.npz` (`cargo xtask data mnist` makes
//! them). SHARE of the training rows get a wrong class; with a kernel size the loss is correntropy, to
//! the fixed point (1e-6, if not told otherwise), else squared. One line per figure: a name and a number. The number of threads
//! is that of `RAYON_NUM_THREADS`.

use broadlearn::data::{ReadOptions, Roles, Samples, SchemaReader, TableReader, Targets};
use broadlearn::data::{Schema, TrainingData};
use broadlearn::faer::Side;
use broadlearn::features::Recipe;
use broadlearn::model::Training;
use broadlearn::preprocess::Scaling;
use broadlearn::solve::Solver;
use broadlearn::{Error, Model, Result, Settings, unobserved};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

const RIDGE: f64 = 1e-5;

fn main() -> Result<()> {
    let options = Options::read()?;
    let begun = Instant::now();
    let (schema, mut samples) = read_training(&options.folder.join("mnist_train.npz"))?;
    tell("reading", begun);
    if let Targets::Classes(classes) = &mut samples.targets {
        mislabel(classes, options.wrong);
    }

    let mut settings = Settings::recipe(Recipe::Classic)
        .feature_groups(10)
        .feature_nodes(10)
        .enhancement_nodes(options.nodes)
        .input_scaling(Scaling::RowZScore)
        .stop(options.tolerance, 200)
        .solver(options.solver)
        .ridge(RIDGE);
    settings = match options.sigma {
        Some(sigma) => settings.sigma(sigma),
        None => settings.squared(),
    };
    if let Some(bytes) = options.memory {
        settings = settings.memory(bytes);
    }
    let (x, targets) = (samples.x.as_ref(), &samples.targets);
    let training = Training { x, targets, weights: None, schema };
    let begun = Instant::now();
    let mut solving = None;
    let mut stage = String::new();
    let model = settings.fit(training, &mut |progress| {
        if progress.stage != "building the network" && solving.is_none() {
            tell("building", begun);
            solving = Some((Instant::now(), cpu_seconds()));
        }
        if options.stages && progress.stage != stage {
            eprintln!("{:8.2} {}", begun.elapsed().as_secs_f64(), progress.stage);
            progress.stage.clone_into(&mut stage);
        }
        ControlFlow::Continue(())
    })?;
    if let Some((begun, cpu)) = solving {
        tell("solving", begun);
        println!("solving_cpu {:.2}", cpu_seconds() - cpu);
    }
    if options.sigma.is_some() {
        let report = model.report();
        println!("steps {}", report.iterations);
        println!("last_change {:e}", report.last_change);
        println!("downweighted {:.4}", report.downweighted);
    }

    let begun = Instant::now();
    let right = correct(&model, &options.folder.join("mnist_test.npz"))?;
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
    if let Some(file) = &options.model {
        model.compact().save(file)?;
    }
    Ok(())
}

struct Options {
    folder: PathBuf,
    nodes: usize,
    wrong: f64,
    sigma: Option<f64>,
    tolerance: f64,
    solver: Solver,
    memory: Option<u64>,
    model: Option<PathBuf>,
    stages: bool,
}

impl Options {
    fn read() -> Result<Self> {
        let mut options = Self {
            folder: "data".into(),
            nodes: 5000,
            wrong: 0.0,
            sigma: None,
            tolerance: 1e-6,
            solver: Solver::Auto,
            memory: None,
            model: None,
            stages: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or_else(|| Error::setting(&argument, "nothing").expected("a value"))
            };
            fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
                text.parse().map_err(|_| Error::setting("option", text).expected("a number"))
            }
            match argument.as_str() {
                "--nodes" => options.nodes = number(&value()?)?,
                "--wrong" => options.wrong = number(&value()?)?,
                "--sigma" => options.sigma = Some(number(&value()?)?),
                "--tolerance" => options.tolerance = number(&value()?)?,
                "--memory" => options.memory = Some(number(&value()?)?),
                "--model" => options.model = Some(value()?.into()),
                "--stages" => options.stages = true,
                "--solver" => {
                    let name = value()?;
                    options.solver =
                        Solver::ALL.into_iter().find(|solver| solver.name() == name).ok_or_else(
                            || Error::setting("solver", name).expected("auto, direct or iterative"),
                        )?;
                }
                _ => options.folder = argument.into(),
            }
        }
        Ok(options)
    }
}

/// Gives this share of the rows another class: those, and the one, that a multiplicative generator
/// picks, which NumPy can repeat.
fn mislabel(classes: &mut [u32], share: f64) {
    let mut state = 1_u64;
    let mut draw = || {
        state = state * 48_271 % 2_147_483_647;
        state as f64 / 2_147_483_647.0
    };
    for class in classes {
        if draw() < share {
            *class = (*class + 1 + (9.0 * draw()) as u32) % 10;
        }
    }
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
