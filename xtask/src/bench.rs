//! `cargo xtask bench`: figures that compare the library with others, on the machine at hand.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{data, run, venv};

/// For the list of commands.
pub(crate) const SUMMARY: &str = "compare the library with others";

/// For `cargo xtask bench --help`.
pub(crate) const HELP: &str = "\
cargo xtask bench mnist|increments|rows|digits|robustness [--threads N] [--runs K]
cargo xtask bench peers|audit|intervals|defaults [OPTIONS]

mnist: MNIST, 60 000 rows, 10 x 10 feature and 5000 enhancement nodes, ridge 1e-5: the release build of
crates/broadlearn/examples/mnist.rs and xtask/bench/mnist.py (NumPy, SciPy, OpenBLAS, the same map,
the same arithmetic) in turn. Prints a table of the seconds: the best run and, in brackets, the worst.

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

OPTIONS of the last four, among others:

  --quick       one split or seed, and some small sets
  --sets SET... these sets only
  --splits N    splits of each set (defaults only)
  --binary B    this broadlearn command; without it, the release build is made and used
  --data D      the folder of the data sets; data/ unless given, and after it BROADLEARN_DATA

The data of mnist and increments are mnist_train.npz and mnist_test.npz in BROADLEARN_DATA or data/:
`cargo xtask data mnist`.";

/// The benchmarks in Python that bring their own options.
const SCRIPTS: [&str; 4] = ["peers", "audit", "intervals", "defaults"];

/// One run: its figures by name.
type Figures = BTreeMap<String, f64>;

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
    let (mut threads, mut runs, mut name) = (None, 3, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || -> Result<usize> {
            let text = rest.next().with_context(|| format!("{argument} needs a number"))?;
            text.parse().with_context(|| format!("{argument} {text}: not a number"))
        };
        match argument.as_str() {
            "--threads" => threads = Some(number()?.max(1)),
            "--runs" => runs = number()?.max(1),
            "mnist" | "increments" | "rows" | "digits" | "robustness" => {
                name = Some(argument.as_str());
            }
            script if SCRIPTS.contains(&script) => return peers(script, rest.as_slice()),
            _ => bail!("no option '{argument}'\n\n{HELP}"),
        }
    }
    let all = std::thread::available_parallelism()?.get();
    match name {
        Some("mnist") => mnist(threads.unwrap_or(all), runs),
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

/// One of the comparisons with other learning machines. The options are the script's; where it is told one twice,
/// it takes the last.
fn peers(name: &str, options: &[String]) -> Result<()> {
    let python = venv::ensure_peers()?;
    if !options.iter().any(|option| option == "--binary" || option.starts_with("--binary=")) {
        let build = ["build", "--release", "--quiet", "--package", "broadlearn-cli"];
        run::run(&mut run::cargo(&build))?;
    }
    let script = crate::root().join("xtask").join("bench").join(format!("{name}.py"));
    let folder = target_folder().join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut command = Command::new(python);
    command.arg(script).arg("--binary").arg(target_folder().join("release").join("broadlearn"));
    command.arg("--data").arg(crate::root().join("data"));
    run::run(command.arg("--out").arg(folder.join(format!("{name}.md"))).args(options))
}

/// Rows per second, the library and NumPy in turn.
fn rows(threads: usize, runs: usize) -> Result<()> {
    let python = venv::ensure()?;
    let program = example("row_updates")?;
    let script = crate::root().join("xtask").join("bench").join("rows.py");
    let (mut ours, mut numpy) = (Vec::new(), Vec::new());
    for round in 1..=runs {
        println!("\n==> {round}/{runs}");
        let mut command = Command::new(&program);
        ours.push(figures(command.env("RAYON_NUM_THREADS", threads.to_string()))?);
        let mut command = Command::new(&python);
        command.arg("-I").arg(&script);
        numpy.push(figures(command.env("OPENBLAS_NUM_THREADS", threads.to_string()))?);
    }
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
    let script = crate::root().join("xtask").join("bench").join("mnist.py");
    let model = env::temp_dir().join(format!("xtask-bench-{}.broad", std::process::id()));

    let (mut ours, mut numpy) = (Vec::new(), Vec::new());
    for round in 1..=runs {
        println!("\n==> {round}/{runs}");
        let mut command = Command::new(&program);
        command.arg(&folder).arg(&model).env("RAYON_NUM_THREADS", threads.to_string());
        ours.push(figures(&mut command)?);
        let mut command = Command::new(&python);
        command.arg("-I").arg(&script).arg(&folder).arg(&model);
        numpy.push(figures(command.env("OPENBLAS_NUM_THREADS", threads.to_string()))?);
    }
    fs::remove_file(&model).with_context(|| format!("cannot remove {}", model.display()))?;
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

/// Runs a program that prints a name and a number per line.
fn figures(command: &mut Command) -> Result<Figures> {
    let mut figures = Figures::new();
    run::run_seeing(command, |line| {
        if let Some((name, value)) = line.split_once(' ')
            && let Ok(value) = value.trim().parse()
        {
            figures.insert(name.to_owned(), value);
        }
    })?;
    Ok(figures)
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
        let shown = |spread: Option<Spread>| spread.map_or(String::new(), |spread| spread.shown());
        text += &format!("| {title} | {} | {} | {ratio} |\n", shown(mine), shown(theirs));
    }
    // Runs that stood next to each other: a busy machine slows both.
    let pairs: Vec<Figures> = (ours.iter().zip(numpy))
        .filter_map(|(a, b)| Some(a.get("solving")? / b.get("solving")?))
        .map(|ratio| Figures::from([("ratio".to_owned(), ratio)]))
        .collect();
    if let Some(spread) = Spread::of(&pairs, &["ratio"]) {
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

/// The best and the worst of some runs.
struct Spread {
    least: f64,
    most: f64,
}

impl Spread {
    /// Of the sum of these figures; nothing if there is none or one is missing.
    fn of(runs: &[Figures], names: &[&str]) -> Option<Self> {
        let sum = |run: &Figures| names.iter().map(|name| run.get(*name).copied()).sum();
        let sums: Vec<f64> = runs.iter().map(sum).collect::<Option<_>>()?;
        (!names.is_empty() && !sums.is_empty()).then(|| Self {
            least: sums.iter().copied().fold(f64::INFINITY, f64::min),
            most: sums.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    fn shown(&self) -> String {
        format!("{:.2} ({:.2})", self.least, self.most)
    }
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
