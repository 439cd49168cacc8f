//! The library against NumPy and scikit-learn: ridge and robust fits, further rows, prediction, single steps.

use anyhow::{Context, Result};

use super::document::{Rounds, Told, ratios};
use super::figures::{Spread, figures, ours, shown, theirs};
use super::{Machine, Options, Scratch, example, mnist_folder};
use crate::{data, run, venv};

/// Rows, nodes and outputs of MNIST as it is fitted here.
const MNIST: [f64; 3] = [60_000.0, 5100.0, 10.0];
/// A ridge fit: N L^2 + L^3 / 3 flops.
const RIDGE: f64 = MNIST[0] * MNIST[1] * MNIST[1] + MNIST[1] * MNIST[1] * MNIST[1] / 3.0;

/// A table in Markdown: its head, then its rows.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

/// How often and on how many threads.
pub(super) fn head(rounds: &Rounds, program: &str) -> String {
    format!("{} rounds, {} threads", rounds.runs(program).len(), rounds.threads)
}

/// Flops of a piece of work and the share of the peak at which it was done.
fn work(name: &str, flops: f64, seconds: Option<Spread>, machine: Option<Machine>) -> String {
    let rate = seconds.map(|seconds| seconds.map(|seconds| flops / seconds / 1e9));
    let share = match (rate, machine) {
        (Some(rate), Some(machine)) => {
            format!(", {} % of the peak", shown(Some(rate.map(|r| 100.0 * r / machine.flops))))
        }
        _ => String::new(),
    };
    format!("- {name}: {flops:.1e} flops, {} Gflop/s{share}\n", shown(rate))
}

pub(super) fn measure_mnist(options: &Options) -> Result<Rounds> {
    let (folder, python, program) = (mnist_folder()?, venv::ensure()?, example("mnist")?);
    let scratch = Scratch::new()?;
    let model = scratch.0.join("mnist.broad");
    let threads = options.threads(None);
    options.in_turn(
        threads,
        &mut [
            ("broadlearn", &mut || {
                let mut command = ours(&program, threads);
                command.arg(&folder).arg("--model").arg(&model);
                command
            }),
            ("NumPy", &mut || {
                let mut command = theirs(&python, "mnist", threads);
                command.arg(&folder).arg(&model);
                command
            }),
        ],
    )
}

pub(super) fn tell_mnist(rounds: &Rounds, machine: Option<Machine>) -> Told {
    /// A title, and what is added up for either program.
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
    let (mine, numpy) = (rounds.runs("broadlearn"), rounds.runs("NumPy"));
    let mut rows = Vec::new();
    let mut spreads = Vec::new();
    for (title, ours, theirs) in ROWS {
        let ratio = match (*ours, *theirs) {
            (_, []) => None,
            ([one], [other]) => Spread::ratio((mine, one), (numpy, other)),
            _ => match (Spread::of(mine, ours), Spread::of(numpy, theirs)) {
                (Some(a), Some(b)) => Spread::over(&[a.median / b.median]),
                _ => None,
            },
        };
        let cells = [Spread::of(mine, ours), Spread::of(numpy, theirs), ratio].map(shown);
        rows.push([vec![(*title).to_owned()], cells.to_vec()].concat());
        if !title.starts_with("accuracy") {
            spreads.push((title.trim_matches(['*', '-', ' ']).to_owned(), ratio));
        }
    }
    let head = format!("{}, seconds", head(rounds, "broadlearn"));
    let mut text = table(&[&head, "broadlearn", "NumPy", "ratio"], &rows);
    text += "\n";
    text += &work("ridge fit", RIDGE, Spread::of(mine, &["solving"]), machine);
    for (name, what) in [
        ("same_classes", "test rows with the same class from either W, %"),
        ("difference", "largest difference of an output"),
        ("block_rows", "NumPy's block of rows"),
    ] {
        if let Some(value) = rounds.last("NumPy", name) {
            text += &format!("- {what}: {value}\n");
        }
    }
    let picture = ratios("MNIST: the ridge fit", "broadlearn / NumPy", &spreads);
    Told { text, picture: Some(picture) }
}

/// C-BLS on MNIST with wrong labels: in units of the library's own ridge fit, and of the paper's iteration in NumPy.
pub(super) fn measure_robust(options: &Options) -> Result<Rounds> {
    let (folder, python, program) = (mnist_folder()?, venv::ensure()?, example("mnist")?);
    let scratch = Scratch::new()?;
    let model = scratch.0.join("robust.broad");
    let threads = options.threads(None);
    let task = ["--wrong", "0.2", "--sigma", "0.5"];
    let fit = |more: &[&str]| {
        let mut command = ours(&program, threads);
        command.arg(&folder).args(["--wrong", "0.2"]).args(more);
        command
    };
    let numpy = |steps: &str| {
        let mut command = theirs(&python, "mnist", threads);
        command.arg(&folder).arg(&model).args(task).args(["--steps", steps]);
        command
    };
    let mut rounds = options.in_turn(
        threads,
        &mut [
            ("ridge", &mut || fit(&[])),
            ("C-BLS", &mut || {
                let mut command = fit(&task[2..]);
                command.arg("--model").arg(&model);
                command
            }),
            ("C-BLS, --memory 1e9", &mut || fit(&["--sigma", "0.5", "--memory", "1000000000"])),
            ("NumPy, two steps", &mut || numpy("2")),
        ],
    )?;
    if options.to_the_end {
        let (end, _) = figures(numpy("12").arg("--from-model"))?;
        rounds.programs.insert("NumPy to the end".into(), vec![end]);
    }
    Ok(rounds)
}

pub(super) fn tell_robust(rounds: &Rounds, machine: Option<Machine>) -> Told {
    let names = ["ridge", "C-BLS", "C-BLS, --memory 1e9"];
    let [ridge, robust, small] = names.map(|name| rounds.runs(name));
    let steps = rounds.runs("NumPy, two steps");
    let whole = ["building", "solving"].as_slice();
    let rows: Vec<Vec<String>> = [
        ("fit, s", whole),
        ("- without building the network", &whole[1..]),
        ("-- processor time of all threads", &["solving_cpu"]),
        ("accuracy, %", &["accuracy"]),
        ("peak memory, MB", &["peak_mb"]),
    ]
    .iter()
    .map(|(title, names)| {
        let cells = [ridge, robust, small].map(|runs| shown(Spread::of(runs, names)));
        [vec![(*title).to_owned()], cells.to_vec()].concat()
    })
    .collect();
    let title = head(rounds, "ridge");
    let mut text = table(&[&title, names[0], names[1], names[2]], &rows);
    text += "\nRatios of neighbouring rounds; on a busy machine processor time tells more than the clock:\n\n";
    let by_clock = Spread::ratio_of_sums((robust, whole), (ridge, whole));
    text += &format!("- C-BLS / ridge: {}\n", shown(by_clock));
    let mut spreads = vec![("C-BLS / ridge".to_owned(), by_clock)];
    text += "\nand of fits without building the network, which is the same for all:\n\n";
    for (title, (above, below), [clock, cpu]) in [
        ("C-BLS / ridge, solving", (robust, ridge), ["solving", "solving_cpu"]),
        ("C-BLS with 1e9 bytes / C-BLS", (small, robust), ["solving", "solving_cpu"]),
        ("C-BLS / one step in NumPy", (robust, steps), ["step", "step_cpu"]),
    ] {
        let by_clock = Spread::ratio((above, "solving"), (below, clock));
        let by_cpu = Spread::ratio((above, "solving_cpu"), (below, cpu));
        text += &format!("- {title}: {}, processor time {}\n", shown(by_clock), shown(by_cpu));
        spreads.push((title.to_owned(), by_clock));
    }
    text += &work("ridge fit", RIDGE, Spread::of(ridge, &["solving"]), machine);
    for (title, name) in [
        ("NumPy goes on from C-BLS, steps", "steps"),
        ("- last change", "last_change"),
        ("- largest difference of an output", "difference"),
        ("- test rows with the same class, %", "same_classes"),
    ] {
        if let Some(value) = rounds.last("NumPy to the end", name) {
            text += &format!("- {title}: {value}\n");
        }
    }
    let picture = ratios("C-BLS on MNIST with wrong labels", "ratio of times", &spreads);
    Told { text, picture: Some(picture) }
}

/// C-BLS on the small sets: in units of a ridge fit of the same network, and of the paper's iteration in NumPy.
pub(super) fn measure_small(options: &Options) -> Result<Rounds> {
    let folder = data::folder()?.context("no data: run `cargo xtask data` first")?;
    let (python, program) = (venv::ensure()?, example("small_fits")?);
    let scratch = Scratch::new()?;
    let threads = options.threads(Some(1));
    options.in_turn(
        threads,
        &mut [
            ("broadlearn", &mut || {
                let mut command = ours(&program, threads);
                command.arg(&folder).arg(&scratch.0);
                command
            }),
            ("NumPy", &mut || {
                let mut command = theirs(&python, "small", threads);
                command.arg(&scratch.0);
                command
            }),
        ],
    )
}

pub(super) fn tell_small(rounds: &Rounds, _: Option<Machine>) -> Told {
    let (mine, numpy) = (rounds.runs("broadlearn"), rounds.runs("NumPy"));
    let names = mine.first().into_iter().flat_map(|run| run.keys());
    let (mut rows, mut spreads) = (Vec::new(), Vec::new());
    for set in names.filter_map(|name| name.strip_suffix(".rows")) {
        let name = |part: &str| format!("{set}.{part}");
        let spread = |runs, part: &str| shown(Spread::of(runs, &[&name(part)]));
        let ratio = |above, a: &str, b: &str| Spread::ratio((above, &name(a)), (mine, &name(b)));
        let one = |program, part: &str| rounds.last(program, &name(part)).unwrap_or(f64::NAN);
        rows.push(vec![
            set.to_owned(),
            one("broadlearn", "rows").to_string(),
            spread(mine, "ridge"),
            spread(mine, "robust"),
            spread(mine, "default"),
            spread(mine, "robust.calibration"),
            shown(ratio(mine, "robust", "ridge")),
            shown(ratio(mine, "default", "ridge")),
            spread(numpy, "robust"),
            one("NumPy", "steps").to_string(),
            shown(ratio(numpy, "robust", "robust")),
            format!("{:.0e}", one("NumPy", "difference")),
        ]);
        spreads.push((set.to_owned(), ratio(numpy, "robust", "robust")));
    }
    let title = format!("set, {}", head(rounds, "broadlearn"));
    let heads = [
        title.as_str(),
        "rows",
        "ridge, ms",
        "C-BLS",
        "default start",
        "calibration",
        "/ ridge",
        "default / ridge",
        "NumPy, ms",
        "steps",
        "NumPy / C-BLS",
        "difference",
    ];
    let picture = ratios("C-BLS on small tables", "NumPy / broadlearn", &spreads);
    Told { text: table(&heads, &rows), picture: Some(picture) }
}

/// 10 000 further rows at 5100 nodes, against a carried inverse.
pub(super) fn measure_updates(options: &Options) -> Result<Rounds> {
    let (folder, python, program) = (mnist_folder()?, venv::ensure()?, example("sample_updates")?);
    let scratch = Scratch::new()?;
    let model = scratch.0.join("updated.broad");
    let threads = options.threads(None);
    let with = |mut command: std::process::Command| {
        command.arg(&folder).arg(&model);
        command
    };
    options.in_turn(
        threads,
        &mut [
            ("broadlearn", &mut || with(ours(&program, threads))),
            ("NumPy", &mut || with(theirs(&python, "updates", threads))),
        ],
    )
}

pub(super) fn tell_updates(rounds: &Rounds, machine: Option<Machine>) -> Told {
    let (mine, numpy) = (rounds.runs("broadlearn"), rounds.runs("NumPy"));
    let ratio = Spread::ratio((numpy, "learning"), (mine, "learning"));
    let own = Spread::of(mine, &["learning"]);
    let row = vec![
        "10 000 rows to 20 000, 5100 nodes, s".to_owned(),
        shown(own),
        shown(Spread::of(numpy, &["learning"])),
        shown(ratio),
    ];
    let title = head(rounds, "broadlearn");
    let mut text = table(&[&title, "broadlearn", "NumPy", "NumPy / broadlearn"], &[row]);
    text += "\n";
    text +=
        &work("learning", 10_000.0 * MNIST[1] * MNIST[1] + MNIST[1].powi(3) / 3.0, own, machine);
    for (title, name) in
        [("largest difference of an output", "difference"), ("NumPy's peak memory, MB", "peak_mb")]
    {
        if let Some(value) = rounds.last("NumPy", name) {
            text += &format!("- {title}: {value:.2e}\n");
        }
    }
    let all = [("10 000 rows to 20 000".to_owned(), ratio)];
    Told { text, picture: Some(ratios("Further rows", "NumPy / broadlearn", &all)) }
}

/// Rows per second, against a perceptron with as many flops.
pub(super) fn measure_prediction(options: &Options) -> Result<Rounds> {
    let (python, program) = (venv::ensure_peers()?, example("prediction")?);
    let threads = options.threads(None);
    options.in_turn(
        threads,
        &mut [
            ("broadlearn", &mut || ours(&program, threads)),
            ("scikit-learn", &mut || theirs(&python, "prediction", threads)),
        ],
    )
}

pub(super) fn tell_prediction(rounds: &Rounds, machine: Option<Machine>) -> Told {
    let (mine, peer) = (rounds.runs("broadlearn"), rounds.runs("scikit-learn"));
    let (rate, single) = ("rows_per_second", "single.rows_per_second");
    let (mut rows, mut spreads) = (Vec::new(), Vec::new());
    for (title, runs, name) in [
        ("broadlearn, 5100 nodes", mine, rate),
        ("broadlearn, single precision", mine, single),
        ("scikit-learn, 490 and 490 nodes", peer, "two_layers.rows_per_second"),
        ("scikit-learn, 793 nodes", peer, "one_layer.rows_per_second"),
        ("scikit-learn, 490 and 490, single precision", peer, "single.two_layers.rows_per_second"),
        ("scikit-learn, 793, single precision", peer, "single.one_layer.rows_per_second"),
    ] {
        let ratios = [rate, single].map(|ours| Spread::ratio((mine, ours), (runs, name)));
        let cells = [Spread::of(runs, &[name]), ratios[0], ratios[1]].map(shown);
        rows.push([vec![title.to_owned()], cells.to_vec()].concat());
        spreads.push((title.to_owned(), ratios[1]));
    }
    let title = head(rounds, "broadlearn");
    let columns = [&title, "rows per second", "broadlearn / this", "broadlearn, single / this"];
    let mut text = table(&columns, &rows);
    // 784 inputs, 100 feature and 5000 enhancement nodes, 10 outputs.
    let flops = 2.0 * (784.0 * 100.0 + 100.0 * 5000.0 + 5100.0 * 10.0);
    text += "\n";
    let seconds = Spread::of(mine, &[rate]).map(|rate| rate.map(|rate| 1.0 / rate));
    text += &work("a row", flops, seconds, machine);
    for (title, name) in [
        ("largest difference of an output between the precisions", "single.difference"),
        ("rows of 60 000 that get another class", "single.changed_classes"),
    ] {
        if let Some(value) = rounds.last("broadlearn", name) {
            text += &format!("- {title}: {value:.2e}\n");
        }
    }
    Told { text, picture: Some(ratios("Prediction", "broadlearn, single / this", &spreads[2..])) }
}

/// Rows learnt per second, the library and NumPy in turn.
pub(super) fn measure_rows(options: &Options) -> Result<Rounds> {
    let (python, program) = (venv::ensure()?, example("row_updates")?);
    let threads = options.threads(Some(1));
    options.in_turn(
        threads,
        &mut [
            ("broadlearn", &mut || ours(&program, threads)),
            ("NumPy", &mut || theirs(&python, "rows", threads)),
        ],
    )
}

pub(super) fn tell_rows(rounds: &Rounds, machine: Option<Machine>) -> Told {
    let (mine, numpy) = (rounds.runs("broadlearn"), rounds.runs("NumPy"));
    let (mut rows, mut spreads) = (Vec::new(), Vec::new());
    for (title, ours, theirs) in [
        ("one row in a call", "single", "single"),
        ("one by one, many in a call", "one_by_one", "single"),
        ("in batches of 256", "batched", "batched"),
    ] {
        let ratio = Spread::ratio((mine, ours), (numpy, theirs));
        let cells = [Spread::of(mine, &[ours]), Spread::of(numpy, &[theirs]), ratio].map(shown);
        rows.push([vec![title.to_owned()], cells.to_vec()].concat());
        spreads.push((title.to_owned(), ratio));
    }
    let title = format!("rows per second, {}", head(rounds, "broadlearn"));
    let mut text = table(&[&title, "broadlearn", "NumPy", "ratio"], &rows);
    // R and its factor, 600 x 600 each, are read and written, and the factor is read twice more.
    let bytes = 6.0 * 8.0 * 600.0 * 600.0;
    if let (Some(rate), Some(machine)) = (Spread::of(mine, &["single"]), machine) {
        let share = rate.map(|rate| 100.0 * rate * bytes / 1e9 / machine.bytes);
        text += &format!(
            "\n- one row in a call: {bytes:.1e} bytes, {} % of the memory's bandwidth (they fit in a cache)\n",
            share.shown()
        );
    }
    Told { text, picture: Some(ratios("Rows learnt per second", "broadlearn / NumPy", &spreads)) }
}

/// Single steps, by `benches/kernels.rs`, which goes its rounds itself.
pub(super) fn measure_kernels(options: &Options) -> Result<Rounds> {
    let bench = ["bench", "--quiet", "--package", "broadlearn", "--bench", "kernels"];
    let threads = options.threads(None);
    let mut command = run::cargo(&bench);
    command.env("RAYON_NUM_THREADS", threads.to_string());
    let (found, _) = figures(&mut command)?;
    let programs = [("kernels".to_owned(), vec![found])].into();
    Ok(Rounds { threads, load: options.load, programs, text: Vec::new() })
}

pub(super) fn tell_kernels(rounds: &Rounds, _: Option<Machine>) -> Told {
    let spread = |key: &str| {
        let part = |part: &str| rounds.last("kernels", &format!("{key}.{part}"));
        Some(Spread { median: part("median")?, least: part("least")?, most: part("most")? })
    };
    let limits = Machine::of(rounds);
    let (mut rows, mut spreads) = (Vec::new(), Vec::new());
    for (key, title, unit) in [
        ("peak", "multiply-add peak", "Gflop/s"),
        ("memory", "memory, reading", "GB/s"),
        ("gram_600", "`NormalEquations::add_rows`, 2000 x 600", "Gflop/s"),
        ("gram_1000", "`NormalEquations::add_rows`, 2000 x 1000", "Gflop/s"),
        ("gram_5100", "`NormalEquations::add_rows`, 2000 x 5100", "Gflop/s"),
        ("solve_600", "`solve::ridge`, 600 nodes, 10 outputs", "Gflop/s"),
        ("solve_1000", "`solve::ridge`, 1000 nodes", "Gflop/s"),
        ("solve_5100", "`solve::ridge`, 5100 nodes", "Gflop/s"),
        ("state", "`FeatureMap::state`, 2000 rows", "Gflop/s"),
        ("predict_many", "`Model::predict`, 10 000 rows", "Gflop/s"),
        ("predict_one", "`Model::predict`, one row", "GB/s"),
        ("csv", "CSV of 20 columns", "GB/s"),
    ] {
        let rate = spread(key);
        let share = match (limits, unit) {
            _ if key == "csv" => None,
            (Some(machine), "Gflop/s") => rate.map(|rate| rate.map(|rate| rate / machine.flops)),
            (Some(machine), _) => rate.map(|rate| rate.map(|rate| rate / machine.bytes)),
            _ => None,
        };
        let percent = share.map(|share| share.map(|share| 100.0 * share));
        rows.push(vec![title.to_owned(), format!("{} {unit}", shown(rate)), shown(percent)]);
        spreads.push((key.to_owned(), share));
    }
    let rounds_made = rounds.last("kernels", "rounds").unwrap_or(f64::NAN);
    let title = format!("{rounds_made} rounds, {} threads", rounds.threads);
    let text = table(&[&title, "rate", "share of the median peak, %"], &rows);
    Told { text, picture: Some(ratios("Single steps", "share of the peak", &spreads[2..])) }
}
