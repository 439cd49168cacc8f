//! `cargo xtask bench`: figures that compare the library with others, on the machine at hand.

mod figures;
mod speed;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{data, run, venv};
use figures::{Figures, Spread, in_turn, shown};

/// For the list of commands.
pub(crate) const SUMMARY: &str = "compare the library with others";

/// For `cargo xtask bench --help`.
pub(crate) const HELP: &str = "\
cargo xtask bench mnist|robust|small|updates|prediction|increments|rows [--threads N] [--runs K]
cargo xtask bench digits|robustness [--runs K]
cargo xtask bench kernels
cargo xtask bench peers|audit|intervals|defaults [OPTIONS]

mnist: MNIST, 60 000 rows, 10 x 10 feature and 5000 enhancement nodes, ridge 1e-5: the release build of
crates/broadlearn/examples/mnist.rs and xtask/bench/mnist.py (NumPy, SciPy, OpenBLAS, the same map,
the same arithmetic) in turn. Prints a table of the seconds: the best run and, in brackets, the worst.

robust: the same network with 20 % wrong labels and the loss correntropy, to the fixed point, against a ridge fit,
against itself with a limit of memory, and against two steps of the paper's iteration in NumPy (xtask/bench/mnist.py).
With --to-the-end NumPy goes all the way once, half an hour, and the outputs are compared.

small: the same for the small sets with 300 nodes (examples/small_fits.rs, xtask/bench/small.py), one thread.

updates: 10 000 rows to 20 000 at 5100 nodes (examples/sample_updates.rs) against the paper's formula, which
carries an inverse (xtask/bench/updates.py).

prediction: rows per second at 5100 nodes (examples/prediction.rs) against a perceptron of scikit-learn with as many
flops (xtask/bench/prediction.py).

kernels: single steps in shares of what the processor can do (crates/broadlearn/benches/kernels.rs).

increments: the paper's Tables IV, V and VI on MNIST through learn and grow
(crates/broadlearn/examples/increments.rs), K networks, and their cost in units of a refit.

rows: rows learnt per second at 600 nodes (examples/row_updates.rs) against recursive least squares
in NumPy (xtask/bench/rows.py), in turn, one thread each unless given.

digits: what updates of a Cholesky factor, a carried inverse and a pseudo-inverse lose
(examples/lost_digits.rs).

robustness: the automatic choice of kernel size and ridge against the best one in hindsight, K splits
(examples/robustness.rs). About half an hour with 10.

peers, audit, intervals: `fit`, `audit` and `predict --interval` without further options against scikit-learn and
LightGBM, cleanlab, and MAPIE, each in minutes (xtask/bench/*.py; Python 3.11 or newer). Tables and every
single result go to target/bench/.

defaults: `fit` without further options against the paper's tuned figures, what its choices cost, ten
networks, and Friedman's function with outliers (xtask/bench/defaults.py), likewise.

Nothing else should run on the machine meanwhile. docs/benchmarks.md explains the tables.

  --threads N   threads; all cores unless given
  --runs K      runs, 3 unless given
  --to-the-end  as described under robust

OPTIONS of the last four, among others:

  --quick       one split or seed, and some small sets
  --sets SET... these sets only
  --splits N    splits of each set (defaults only)
  --binary B    this broadlearn command; without it, the release build is made and used
  --data D      the folder of the data sets; data/ unless given, and after it BROADLEARN_DATA

The data of mnist, robust, updates and increments are mnist_train.npz and mnist_test.npz in BROADLEARN_DATA or data/:
`cargo xtask data mnist`.";

/// The benchmarks in Python that bring their own options.
const SCRIPTS: [&str; 4] = ["peers", "audit", "intervals", "defaults"];

/// The rows of the table: a title, and what is added up for either program.
const ROWS: &[(&str, &[&str], &[&str])] = &[
    ("read the training table", &["reading"], &["reading"]),
    ("build the network", &["building"], &[]),
    ("**ridge fit**", &["solving"], &["solving"]),
    ("- processor time of all threads", &["solving_cpu"], &["solving_cpu"]),
    ("- scaling, map, tanh", &["mapping"], &["scaling", "map", "activation"]),
    ("- Cholesky factor, solve", &["factor"], &["factor"]),
    ("test", &["testing"], &["testing"]),
    ("accuracy, %", &["accuracy"], &["accuracy"]),
    ("peak memory, MB", &["peak_mb"], &["peak_mb"]),
];

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut threads, mut runs, mut name, mut to_the_end) = (None, 3, None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || -> Result<usize> {
            let text = rest.next().with_context(|| format!("{argument} needs a number"))?;
            text.parse().with_context(|| format!("{argument} {text}: not a number"))
        };
        match argument.as_str() {
            "--threads" => threads = Some(number()?.max(1)),
            "--runs" => runs = number()?.max(1),
            "--to-the-end" => to_the_end = true,
            "mnist" | "robust" | "small" | "updates" | "prediction" | "kernels" | "increments"
            | "rows" | "digits" | "robustness" => name = Some(argument.as_str()),
            script if SCRIPTS.contains(&script) => return peers(script, rest.as_slice()),
            _ => bail!("no option '{argument}'\n\n{HELP}"),
        }
    }
    let all = std::thread::available_parallelism()?.get();
    match name {
        Some("mnist") => mnist(threads.unwrap_or(all), runs),
        Some("robust") => speed::robust(threads.unwrap_or(all), runs, to_the_end),
        Some("small") => speed::small(threads.unwrap_or(1), runs),
        Some("updates") => speed::updates(threads.unwrap_or(all), runs),
        Some("prediction") => speed::prediction(threads.unwrap_or(all), runs),
        Some("kernels") => run::run(&mut run::cargo(&[
            "bench",
            "--quiet",
            "--package",
            "broadlearn",
            "--bench",
            "kernels",
        ])),
        Some("increments") => {
            let folder = mnist_folder()?;
            let mut command = Command::new(example("increments")?);
            command.arg(&folder).arg(runs.to_string());
            run::run(command.env("RAYON_NUM_THREADS", threads.unwrap_or(all).to_string()))
        }
        Some("rows") => rows(threads.unwrap_or(1), runs),
        Some("digits") => run::run(&mut Command::new(example("lost_digits")?)),
        Some("robustness") => {
            let folder = data::folder()?.context("no data: run `cargo xtask data` first")?;
            run::run(Command::new(example("robustness")?).arg(folder).arg(runs.to_string()))
        }
        _ => bail!("which benchmark?\n\n{HELP}"),
    }
}

/// Builds an example of the library for release; where it is.
fn example(name: &str) -> Result<PathBuf> {
    let build = ["build", "--release", "--quiet", "--package", "broadlearn", "--example", name];
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

/// One of the comparisons with other learning machines. The options are the script's; where it is told one twice,
/// it takes the last.
fn peers(name: &str, options: &[String]) -> Result<()> {
    let python = venv::ensure_peers()?;
    if !options.iter().any(|option| option == "--binary" || option.starts_with("--binary=")) {
        let build = ["build", "--release", "--quiet", "--package", "broadlearn-cli"];
        run::run(&mut run::cargo(&build))?;
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

/// Rows per second, the library and NumPy in turn.
fn rows(threads: usize, runs: usize) -> Result<()> {
    let python = venv::ensure()?;
    let program = example("row_updates")?;
    let [ours, numpy] = in_turn(
        runs,
        [
            &mut || {
                let mut command = Command::new(&program);
                command.env("RAYON_NUM_THREADS", threads.to_string());
                command
            },
            &mut || {
                let mut command = Command::new(&python);
                command.arg("-I").arg(script("rows"));
                command.env("OPENBLAS_NUM_THREADS", threads.to_string());
                command
            },
        ],
    )?;
    println!("\n| rows per second, {runs} runs each | broadlearn | NumPy | ratio |");
    println!("|---|---|---|---|");
    for (title, mine, theirs) in [
        ("one row in a call", "single", "single"),
        ("one by one, many in a call", "one_by_one", "single"),
        ("in batches of 256", "batched", "batched"),
    ] {
        if let (Some(mine), Some(theirs)) =
            (Spread::of(&ours, &[mine]), Spread::of(&numpy, &[theirs]))
        {
            println!(
                "| {title} | {:.0} to {:.0} | {:.0} to {:.0} | {:.1} |",
                mine.least,
                mine.most,
                theirs.least,
                theirs.most,
                mine.most / theirs.most
            );
        }
    }
    Ok(())
}

fn mnist(threads: usize, runs: usize) -> Result<()> {
    let folder = mnist_folder()?;
    let python = venv::ensure()?;
    let program = example("mnist")?;
    let scratch = Scratch::new()?;
    let model = scratch.0.join("mnist.broad");
    let [ours, numpy] = in_turn(
        runs,
        [
            &mut || {
                let mut command = Command::new(&program);
                command.arg(&folder).arg("--model").arg(&model);
                command.env("RAYON_NUM_THREADS", threads.to_string());
                command
            },
            &mut || {
                let mut command = Command::new(&python);
                command.arg("-I").arg(script("mnist")).arg(&folder).arg(&model);
                command.env("OPENBLAS_NUM_THREADS", threads.to_string());
                command
            },
        ],
    )?;
    print!("\n{}", table(&ours, &numpy, threads));
    Ok(())
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

fn table(ours: &[Figures], numpy: &[Figures], threads: usize) -> String {
    let mut text = format!(
        "| {} runs each, {threads} threads, seconds | broadlearn | NumPy | ratio |\n|---|---|---|---|\n",
        ours.len()
    );
    for (title, mine, theirs) in ROWS {
        let (mine, theirs) = (Spread::of(ours, mine), Spread::of(numpy, theirs));
        let ratio = match (&mine, &theirs) {
            (Some(mine), Some(theirs)) => format!("{:.2}", mine.least / theirs.least),
            _ => String::new(),
        };
        text += &format!("| {title} | {} | {} | {ratio} |\n", shown(mine), shown(theirs));
    }
    // Runs that stood next to each other: a busy machine slows both.
    if let Some(spread) = Spread::ratio((ours, "solving"), (numpy, "solving")) {
        text += &format!("\nridge fit, ratio of neighbouring runs: {}\n", spread.shown());
    }
    for (name, what) in [
        ("same_classes", "test rows with the same class from either W, %"),
        ("difference", "largest difference of an output"),
        ("block_rows", "NumPy's block of rows"),
    ] {
        if let Some(value) = numpy.last().and_then(|run| run.get(name)) {
            text += &format!("{what}: {value}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_best_and_the_worst_and_the_ratio_of_the_best() {
        let run = |solving: f64| Figures::from([("solving".to_owned(), solving)]);
        let text = table(&[run(3.0), run(2.0)], &[run(4.0), run(6.0)], 2);
        assert!(text.contains("| **ridge fit** | 2.00 (3.00) | 4.00 (6.00) | 0.50 |"), "{text}");
        assert!(text.contains("ratio of neighbouring runs: 0.33 (0.75)"), "{text}");
        assert!(text.contains("| test |  |  |  |"), "{text}");
    }
}
