//! The library against NumPy and scikit-learn: robust fits, further rows, prediction.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::figures::{Figures, Spread, figures, in_turn, shown};
use super::{Scratch, example, mnist_folder, script};
use crate::{data, venv};

/// C-BLS on MNIST with wrong labels: in units of the library's own ridge fit, and of the paper's iteration in NumPy.
pub(super) fn robust(threads: usize, runs: usize, to_the_end: bool) -> Result<()> {
    let (folder, python, program) = (mnist_folder()?, venv::ensure()?, example("mnist")?);
    let scratch = Scratch::new()?;
    let model = scratch.0.join("robust.broad");
    let task = ["--wrong", "0.2", "--sigma", "0.5"];
    let ours = |more: &[&str]| {
        let mut command = Command::new(&program);
        command.arg(&folder).args(["--wrong", "0.2"]).args(more);
        command.env("RAYON_NUM_THREADS", threads.to_string());
        command
    };
    let numpy = |steps: &str| {
        let mut command = Command::new(&python);
        command.arg("-I").arg(script("mnist")).arg(&folder).arg(&model).args(task);
        command.args(["--steps", steps]).env("OPENBLAS_NUM_THREADS", threads.to_string());
        command
    };
    let [ridge, robust, small, mut steps] = in_turn(
        runs,
        [
            &mut || ours(&[]),
            &mut || {
                let mut command = ours(&task[2..]);
                command.arg("--model").arg(&model);
                command
            },
            &mut || ours(&["--sigma", "0.5", "--memory", "1000000000"]),
            &mut || numpy("2"),
        ],
    )?;

    println!("\n| {runs} runs each, {threads} threads | ridge | C-BLS | C-BLS, --memory 1e9 |");
    println!("|---|---|---|---|");
    for (title, name) in [
        ("fit without building the network, s", "solving"),
        ("- processor time of all threads", "solving_cpu"),
        ("accuracy, %", "accuracy"),
        ("peak memory, MB", "peak_mb"),
    ] {
        let [a, b, c] = [&ridge, &robust, &small].map(|runs| shown(Spread::of(runs, &[name])));
        println!("| {title} | {a} | {b} | {c} |");
    }
    // On a busy machine processor time tells more than the clock.
    let ratio = |title: &str, above: &[Figures], below: &[Figures], [clock, cpu]: [&str; 2]| {
        println!(
            "- {title}: {}, processor time {}",
            shown(Spread::ratio((above, "solving"), (below, clock))),
            shown(Spread::ratio((above, "solving_cpu"), (below, cpu))),
        );
    };
    let (whole, step) = (["solving", "solving_cpu"], ["step", "step_cpu"]);
    println!("\nRatios of neighbouring runs:\n");
    ratio("C-BLS / ridge", &robust, &ridge, whole);
    ratio("C-BLS with 1e9 bytes / C-BLS", &small, &robust, whole);
    ratio("C-BLS / one step in NumPy", &robust, &steps, step);
    if to_the_end {
        let end = figures(&mut numpy("200"))?;
        let count = end.get("steps").copied().unwrap_or(f64::NAN);
        // What the start, which is one step more, and all steps would have taken next to the library's runs.
        for run in &mut steps {
            for name in step {
                let all = (1.0 + count) * run.get(name).copied().unwrap_or(f64::NAN);
                run.insert(name.into(), all);
            }
        }
        ratio(&format!("C-BLS / start and {count} steps in NumPy"), &robust, &steps, step);
        for (title, name) in [
            ("NumPy to the end, s", "solving"),
            ("last change", "last_change"),
            ("largest difference of an output", "difference"),
            ("test rows with the same class, %", "same_classes"),
            ("peak memory, MB", "peak_mb"),
        ] {
            println!("- {title}: {}", end.get(name).unwrap_or(&f64::NAN));
        }
    }
    Ok(())
}

/// C-BLS on the small sets: in units of a ridge fit of the same network, and of the paper's iteration in NumPy.
pub(super) fn small(threads: usize, runs: usize) -> Result<()> {
    let folder = data::folder()?.context("no data: run `cargo xtask data` first")?;
    let (python, program) = (venv::ensure()?, example("small_fits")?);
    let scratch = Scratch::new()?;
    let [ours, numpy] = in_turn(
        runs,
        [
            &mut || {
                let mut command = Command::new(&program);
                command.arg(&folder).arg(&scratch.0);
                command.env("RAYON_NUM_THREADS", threads.to_string());
                command
            },
            &mut || {
                let mut command = Command::new(&python);
                command.arg("-I").arg(script("small")).arg(&scratch.0);
                command.env("OPENBLAS_NUM_THREADS", threads.to_string());
                command
            },
        ],
    )?;
    println!(
        "\n| set, {runs} runs each, {threads} threads | rows | ridge, ms | C-BLS | default start | calibration \
         | / ridge | default / ridge | NumPy, ms | steps | NumPy / C-BLS | difference |"
    );
    println!("|{}", "---|".repeat(12));
    let sets = ours[0].keys().filter_map(|name| name.strip_suffix(".rows"));
    for set in sets {
        let name = |part: &str| format!("{set}.{part}");
        let one = |runs: &[Figures], part: &str| runs[0].get(&name(part)).copied();
        let least = |runs: &[Figures], part: &str| shown(Spread::of(runs, &[&name(part)]));
        let ratio = |above: &[Figures], a: &str, b: &str| {
            shown(Spread::ratio((above, &name(a)), (&ours, &name(b))))
        };
        println!(
            "| {set} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0e} |",
            one(&ours, "rows").unwrap_or(f64::NAN),
            least(&ours, "ridge"),
            least(&ours, "robust"),
            least(&ours, "default"),
            least(&ours, "robust.calibration"),
            ratio(&ours, "robust", "ridge"),
            ratio(&ours, "default", "ridge"),
            least(&numpy, "robust"),
            one(&numpy, "steps").unwrap_or(f64::NAN),
            ratio(&numpy, "robust", "robust"),
            one(&numpy, "difference").unwrap_or(f64::NAN),
        );
    }
    Ok(())
}

/// 10 000 further rows at 5100 nodes, against a carried inverse.
pub(super) fn updates(threads: usize, runs: usize) -> Result<()> {
    let (folder, python, program) = (mnist_folder()?, venv::ensure()?, example("sample_updates")?);
    let scratch = Scratch::new()?;
    let model = scratch.0.join("updated.broad");
    let with = |program: &Path, arguments: &[PathBuf], variable: &str| {
        let mut command = Command::new(program);
        command.args(arguments).arg(&folder).arg(&model).env(variable, threads.to_string());
        command
    };
    let [ours, numpy] = in_turn(
        runs,
        [&mut || with(&program, &[], "RAYON_NUM_THREADS"), &mut || {
            with(&python, &["-I".into(), script("updates")], "OPENBLAS_NUM_THREADS")
        }],
    )?;
    println!("\n| {runs} runs each, {threads} threads | broadlearn | NumPy | NumPy / broadlearn |");
    println!("|---|---|---|---|");
    println!(
        "| 10 000 rows to 20 000, 5100 nodes, s | {} | {} | {} |",
        shown(Spread::of(&ours, &["learning"])),
        shown(Spread::of(&numpy, &["learning"])),
        shown(Spread::ratio((&numpy, "learning"), (&ours, "learning"))),
    );
    for (title, name) in
        [("largest difference of an output", "difference"), ("NumPy's peak memory, MB", "peak_mb")]
    {
        println!("\n{title}: {}", shown_as_is(&numpy, name));
    }
    Ok(())
}

/// Rows per second, against a perceptron with as many flops.
pub(super) fn prediction(threads: usize, runs: usize) -> Result<()> {
    let (python, program) = (venv::ensure_peers()?, example("prediction")?);
    let [ours, peer] = in_turn(
        runs,
        [
            &mut || {
                let mut command = Command::new(&program);
                command.env("RAYON_NUM_THREADS", threads.to_string());
                command
            },
            &mut || {
                let mut command = Command::new(&python);
                command.arg("-I").arg(script("prediction"));
                command.env("OPENBLAS_NUM_THREADS", threads.to_string());
                command
            },
        ],
    )?;
    let rate = "rows_per_second";
    println!("\n| {runs} runs each, {threads} threads | rows per second | broadlearn / this |");
    println!("|---|---|---|");
    let line = |title: &str, runs: &[Figures], name: &str| {
        if let Some(Spread { least, most }) = Spread::of(runs, &[name]) {
            let ratio = shown(Spread::ratio((&ours, rate), (runs, name)));
            println!("| {title} | {most:.0} ({least:.0}) | {ratio} |");
        }
    };
    line("broadlearn, 5100 nodes", &ours, rate);
    line("scikit-learn, 490 and 490 nodes", &peer, "two_layers.rows_per_second");
    line("scikit-learn, 793 nodes", &peer, "one_layer.rows_per_second");
    Ok(())
}

/// The figure of the last run.
fn shown_as_is(runs: &[Figures], name: &str) -> String {
    let figure = runs.last().and_then(|run| run.get(name));
    figure.map_or(String::new(), |figure| format!("{figure:.2e}"))
}
