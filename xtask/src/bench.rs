//! `cargo xtask bench`: figures that compare the library with others, on the machine at hand.

mod broad;
mod document;
mod figures;
mod own;
mod scale;
mod speed;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{data, run, venv};
use document::{Rounds, Told};
use figures::figures;

/// For the list of commands.
pub(crate) const SUMMARY: &str = "compare the library with others";

/// For `cargo xtask bench --help`.
pub(crate) const HELP: &str = "\
cargo xtask bench [NAME...] [--threads N] [--runs K] [--quick] [--full] [--reuse] [--write]
cargo xtask bench peers|audit|intervals|defaults [OPTIONS]

Without a name, everything, one after the other: hours; with --quick, about one. What was measured is kept in
target/bench/NAME.rounds.json, and said in docs/benchmarks.md between the markers of that name, with a picture, if the
machine was idle in the beginning: medians, in brackets the least and the most of all rounds. Benchmarks whose data are missing
are left out then.

kernels: single steps in shares of what the processor can do (crates/broadlearn/benches/kernels.rs). The shares in
other tables are of the peak that this has measured last.

mnist: MNIST, 60 000 rows, 10 x 10 feature and 5000 enhancement nodes, ridge 1e-5: the release build of
crates/broadlearn/examples/mnist.rs and xtask/bench/mnist.py (NumPy, SciPy, OpenBLAS, the same map,
the same arithmetic) in turn.

robust: the same network with 20 % wrong labels and the loss correntropy, to the fixed point, against a ridge fit,
against itself with a limit of memory, and against two steps of the paper's iteration in NumPy (xtask/bench/mnist.py).
With --to-the-end NumPy goes on for 12 steps, some minutes, from what the library found, and outputs are compared.

broad: other broad learners (tbls, rvfln) on MNIST with 1000 enhancement nodes, clean and with 20 % wrong labels
(examples/mnist.rs, xtask/bench/broad.py).

small: robust fits of the small sets with 300 nodes (examples/small_fits.rs, xtask/bench/small.py), one thread.

updates: 10 000 rows to 20 000 at 5100 nodes (examples/sample_updates.rs) against the paper's formula, which
carries an inverse (xtask/bench/updates.py).

rows: rows learnt per second at 600 nodes (examples/row_updates.rs) against recursive least squares
in NumPy (xtask/bench/rows.py), in turn, one thread each unless given.

increments: the paper's Tables IV, V and VI on MNIST through learn and grow
(crates/broadlearn-paper/examples/increments.rs), K networks, and their cost in units of a refit.

scale: tables of 1e5, 3e5 and 1e6 rows, with --full up to 1e7, fitted with 500 nodes and --memory 200M: from a file and from a
pipe, squared and correntropy; time, memory, and the difference from a fit in memory.

prediction: rows per second at 5100 nodes (examples/prediction.rs) in double and in single precision, against a perceptron of
scikit-learn with as many flops in both (xtask/bench/prediction.py).

digits: what updates of a Cholesky factor, a carried inverse and a pseudo-inverse lose
(examples/lost_digits.rs).

robustness: the automatic choice of kernel size and ridge against the best one in hindsight, K splits
(examples/robustness.rs). About ten minutes with 30, which single sets need.

peers, audit, intervals: `fit`, `audit` and `predict --interval` without further options against scikit-learn and
LightGBM, cleanlab, and MAPIE, each in minutes (xtask/bench/*.py; Python 3.11 or newer). Tables and every
single result go to target/bench/.

defaults: `fit` without further options against the paper's tuned figures, what its choices cost, ten
networks, and Friedman's function with outliers (xtask/bench/defaults.py), likewise.

Nothing else should run on the machine meanwhile. docs/benchmarks.md explains the tables.

  --threads N   threads; all cores unless given
  --runs K      rounds, 3 unless given
  --quick       one round, and smaller tables
  --full        larger tables, as described under scale
  --to-the-end  as described under robust
  --reuse       nothing is measured: what was kept is said once more
  --write       the document is written even if the machine was busy

OPTIONS of the last four, if one of them is named alone, among others:

  --quick       one split or seed, and some small sets
  --sets SET... these sets only
  --splits N    splits of each set (defaults only)
  --binary B    this broadlearn command; without it, the release build is made and used
  --data D      the folder of the data sets; data/ unless given, and after it BROADLEARN_DATA

The data of mnist, robust, broad, updates and increments are mnist_train.npz and mnist_test.npz in BROADLEARN_DATA or data/:
`cargo xtask data mnist`.";

/// The benchmarks in Python that bring their own options, and keep and tell their results themselves.
const SCRIPTS: [&str; 4] = ["peers", "audit", "intervals", "defaults"];

/// Beyond this load average in the beginning others were at work.
const IDLE: f64 = 0.5;

/// A benchmark: how it is measured, and what is said of it.
struct Bench {
    name: &'static str,
    measure: fn(&Options) -> Result<Rounds>,
    tell: fn(&Rounds, Option<Machine>) -> Told,
}

/// All of them but the scripts, in the order in which they are run: what the machine can do is known first.
const BENCHES: [Bench; 12] = [
    Bench { name: "kernels", measure: speed::measure_kernels, tell: speed::tell_kernels },
    Bench { name: "mnist", measure: speed::measure_mnist, tell: speed::tell_mnist },
    Bench { name: "robust", measure: speed::measure_robust, tell: speed::tell_robust },
    Bench { name: "broad", measure: broad::measure, tell: broad::tell },
    Bench { name: "small", measure: speed::measure_small, tell: speed::tell_small },
    Bench { name: "updates", measure: speed::measure_updates, tell: speed::tell_updates },
    Bench { name: "rows", measure: speed::measure_rows, tell: speed::tell_rows },
    Bench { name: "increments", measure: own::measure_increments, tell: own::tell_increments },
    Bench { name: "scale", measure: scale::measure, tell: scale::tell },
    Bench { name: "prediction", measure: speed::measure_prediction, tell: speed::tell_prediction },
    Bench { name: "digits", measure: own::measure_digits, tell: own::tell_digits },
    Bench { name: "robustness", measure: own::measure_robustness, tell: own::tell_robustness },
];

/// What was asked for.
struct Options {
    threads: Option<usize>,
    runs: usize,
    quick: bool,
    full: bool,
    reuse: bool,
    write: bool,
    to_the_end: bool,
    /// The load average in the beginning.
    load: f64,
}

/// What the machine can do: 1e9 flops and bytes a second.
#[derive(Clone, Copy, Debug)]
struct Machine {
    flops: f64,
    bytes: f64,
}

impl Machine {
    /// As the rounds of `kernels` have found it.
    fn of(kernels: &Rounds) -> Option<Self> {
        let rate = |name: &str| kernels.last("kernels", &format!("{name}.median"));
        Some(Self { flops: rate("peak")?, bytes: rate("memory")? })
    }
}

impl Options {
    /// As many threads as were asked for; else so many, or all.
    fn threads(&self, usual: Option<usize>) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.or(usual).unwrap_or_else(all)
    }

    /// Runs programs in turn, so that a busy machine slows all of them.
    fn in_turn(
        &self,
        threads: usize,
        programs: &mut [(&str, &mut dyn FnMut() -> Command)],
    ) -> Result<Rounds> {
        let mut rounds = Rounds { threads, load: self.load, ..Rounds::default() };
        for round in 1..=self.runs {
            println!("\n==> {round}/{}", self.runs);
            for (name, program) in &mut *programs {
                let (found, _) = figures(&mut program())?;
                rounds.programs.entry((*name).to_owned()).or_default().push(found);
            }
        }
        Ok(rounds)
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut options = Options {
        threads: None,
        runs: 3,
        quick: false,
        full: false,
        reuse: false,
        write: false,
        to_the_end: false,
        load: load_average(),
    };
    let (mut names, mut runs) = (Vec::new(), None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || -> Result<usize> {
            let text = rest.next().with_context(|| format!("{argument} needs a number"))?;
            text.parse().with_context(|| format!("{argument} {text}: not a number"))
        };
        match argument.as_str() {
            "--threads" => options.threads = Some(number()?.max(1)),
            "--runs" => runs = Some(number()?.max(1)),
            "--quick" => options.quick = true,
            "--full" => options.full = true,
            "--reuse" => options.reuse = true,
            "--write" => options.write = true,
            "--to-the-end" => options.to_the_end = true,
            script if SCRIPTS.contains(&script) => return peers(script, rest.as_slice()),
            name => match BENCHES.iter().find(|bench| bench.name == name) {
                Some(bench) => names.push(bench),
                None => bail!("no option '{argument}'\n\n{HELP}"),
            },
        }
    }
    options.runs = runs.unwrap_or(if options.quick { 1 } else { 3 });
    if !names.is_empty() {
        return names.iter().try_for_each(|bench| one(bench, &options));
    }
    // What cannot be run for want of data must not keep the others from running.
    let mut failed = Vec::new();
    for bench in &BENCHES {
        if let Err(error) = one(bench, &options) {
            println!("{}: {error:#}", bench.name);
            failed.push(bench.name);
        }
    }
    let quick: &[String] = if options.quick { &["--quick".into()] } else { &[] };
    for script in SCRIPTS.iter().filter(|_| !options.reuse) {
        if let Err(error) = peers(script, quick) {
            println!("{script}: {error:#}");
            failed.push(script);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("left out: {}", failed.join(", ")) }
}

/// Measures a benchmark, or takes what was kept of it, and tells of it.
fn one(bench: &Bench, options: &Options) -> Result<()> {
    let kept = target_folder().join("bench");
    let rounds = match options.reuse {
        true => Rounds::load(&kept, bench.name)?,
        false => {
            let rounds = (bench.measure)(options)?;
            rounds.save(&kept, bench.name)?;
            rounds
        }
    };
    let machine = Rounds::load(&kept, "kernels").ok().and_then(|rounds| Machine::of(&rounds));
    let told = (bench.tell)(&rounds, machine);
    println!("\n{}", told.text);
    if rounds.load > IDLE && !options.write {
        println!(
            "The machine was busy (load {:.2}): the document stays as it is; --write changes it all the same.",
            rounds.load
        );
        return Ok(());
    }
    document::write(&crate::root().join("docs"), bench.name, &told)
}

/// How many programs wanted the processor in the last minute; 0 where the system does not tell.
fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Builds an example of the library for release; where it is.
fn example(name: &str) -> Result<PathBuf> {
    example_of("broadlearn", name)
}

/// Builds an example of a crate for release; where it is.
fn example_of(package: &str, name: &str) -> Result<PathBuf> {
    let build = ["build", "--release", "--quiet", "--package", package, "--example", name];
    run::run(&mut run::cargo(&build))?;
    Ok(target_folder().join("release").join("examples").join(name))
}

/// A script in Python, by its name.
fn script(name: &str) -> PathBuf {
    crate::root().join("xtask").join("bench").join(format!("{name}.py"))
}

/// A folder for files that programs hand to each other, gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("xtask-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Builds the command for release; where it is.
fn binary() -> Result<PathBuf> {
    run::run(&mut run::cargo(&["build", "--release", "--quiet", "--package", "broadlearn-cli"]))?;
    Ok(target_folder().join("release").join("broadlearn"))
}

/// One of the comparisons with other learning machines. The options are the script's; where it is told one twice,
/// it takes the last.
fn peers(name: &str, options: &[String]) -> Result<()> {
    let python = venv::ensure_peers()?;
    if !options.iter().any(|option| option == "--binary" || option.starts_with("--binary=")) {
        binary()?;
    }
    let folder = target_folder().join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut command = Command::new(python);
    command
        .arg(script(name))
        .arg("--binary")
        .arg(target_folder().join("release").join("broadlearn"));
    command.arg("--data").arg(crate::root().join("data"));
    run::run(command.arg("--out").arg(folder.join(format!("{name}.md"))).args(options))
}

/// The folder of the two archives.
fn mnist_folder() -> Result<PathBuf> {
    let folder = data::folder()?;
    let has_both = |folder: &Path| {
        ["mnist_train.npz", "mnist_test.npz"].iter().all(|name| folder.join(name).is_file())
    };
    match folder {
        Some(folder) if has_both(&folder) => Ok(folder),
        _ => bail!("no mnist_train.npz and mnist_test.npz: run `cargo xtask data mnist` first"),
    }
}

fn target_folder() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => crate::root().join(folder),
        None => crate::root().join("target"),
    }
}
