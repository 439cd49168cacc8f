//! Tables of growing size, fitted with a limit of memory: time and memory over the number of rows.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use broadlearn_report::{Chart, Series};

use super::document::{Rounds, Told};
use super::figures::{Figures, Spread, figures, shown};
use super::speed::table;
use super::{Machine, Options, Scratch, binary, example, script};
use crate::{run, venv};

/// With the constant and ten inputs, 500 nodes.
const NETWORK: [&str; 8] =
    ["--ridge", "1e-3", "--recipe", "rich", "--gain", "0.7", "--enhancement-nodes", "489"];
/// The ways in which a table is learnt: a title, the loss, and whether it comes through a pipe.
const WAYS: [(&str, &[&str], bool); 3] = [
    ("squared, file", &["--loss", "squared"], false),
    ("squared, pipe", &["--loss", "squared"], true),
    ("correntropy, file", &["--sigma", "1"], false),
];

pub(super) fn measure(options: &Options) -> Result<Rounds> {
    let sizes: &[u64] = match (options.quick, options.full) {
        (true, _) => &[20_000, 60_000],
        (_, true) => &[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000],
        _ => &[100_000, 300_000, 1_000_000],
    };
    let (python, writer, program) = (venv::ensure()?, example("friedman")?, binary()?);
    let scratch = Scratch::new()?;
    let threads = options.threads(None);
    let mut rounds = Rounds { threads, load: options.load, ..Rounds::default() };
    let fit = |data: &Path, pipe: bool, loss: &[&str], memory: &str, model: &Path| {
        let mut command = Command::new(&python);
        command.arg("-I").arg(script("scale"));
        if pipe {
            command.arg("--pipe").arg(data);
        }
        command.arg("--").arg(&program).arg("fit");
        command.arg(if pipe { Path::new("-") } else { data });
        command.args(["--target", "y", "--quiet", "--memory", memory]).args(NETWORK).args(loss);
        command.args(["--threads", &threads.to_string()]).arg("--model").arg(model);
        command
    };
    for &rows in sizes {
        let data = scratch.0.join("table.csv");
        write_table(&writer, rows, &data)?;
        let model = scratch.0.join("model.broad");
        for round in 1..=options.runs {
            println!("\n==> {rows} rows, {round}/{}", options.runs);
            for (title, loss, pipe) in WAYS {
                let (mut run, _) =
                    figures(&mut fit(&data, pipe, &to(loss, "1e-6"), "200M", &model))?;
                run.insert("rows".into(), rows as f64);
                rounds.programs.entry(title.into()).or_default().push(run);
            }
        }
        if rows == sizes[0] {
            for (title, loss, pipe) in WAYS.into_iter().filter(|way| !way.2) {
                // A bound that the smallest table exceeds, and one that it does not.
                let loss = to(loss, "1e-11");
                let predictions = ["2M", "8G"].map(|memory| -> Result<PathBuf> {
                    let (model, out) =
                        (scratch.0.join("prefix.broad"), scratch.0.join(format!("{memory}.csv")));
                    run::run(&mut fit(&data, pipe, &loss, memory, &model))?;
                    let mut predict = Command::new(&program);
                    predict.arg("predict").arg(&model).arg(&data).arg("--out").arg(&out);
                    run::run(predict.arg("--quiet"))?;
                    Ok(out)
                });
                let [passes, memory] = predictions;
                let mut compare = Command::new(&python);
                compare.arg("-I").arg(script("scale")).arg("--difference");
                let (found, _) = figures(compare.arg(memory?).arg(passes?))?;
                rounds.programs.insert(format!("{title}, difference"), vec![found]);
            }
        }
    }
    Ok(rounds)
}

/// A loss and, if it needs steps, the tolerance to which they are made.
fn to<'a>(loss: &[&'a str], tolerance: &'a str) -> Vec<&'a str> {
    match loss.contains(&"squared") {
        true => loss.to_vec(),
        false => [loss, &["--tolerance", tolerance]].concat(),
    }
}

fn write_table(writer: &Path, rows: u64, data: &Path) -> Result<()> {
    let file = File::create(data).with_context(|| format!("cannot make {}", data.display()))?;
    let mut command = Command::new(writer);
    let status = command.arg(rows.to_string()).stdout(Stdio::from(file)).status()?;
    if !status.success() {
        bail!("`{}` failed ({status})", run::shown(&command));
    }
    Ok(())
}

pub(super) fn tell(rounds: &Rounds, machine: Option<Machine>) -> Told {
    let mut rows = Vec::new();
    let mut text_behind = String::new();
    let mut chart = Chart::new("Fitting with --memory 200M, 500 nodes")
        .x_label("rows")
        .y_label("seconds; MB")
        .log_x()
        .log_y();
    for (title, _, _) in WAYS {
        let sizes = sizes(rounds.runs(title));
        let (mut times, mut memory) = (Vec::new(), Vec::new());
        for (size, runs) in &sizes {
            let [seconds, processor, peak] =
                ["seconds", "processor", "peak_mb"].map(|name| Spread::of(runs, &[name]));
            let share = match (processor, machine) {
                (Some(processor), Some(machine)) if title.starts_with("squared") => {
                    // N L^2 flops on as many threads as there are.
                    let rate = |s: f64| size * 500.0 * 500.0 / s / 1e9 * rounds.threads as f64;
                    shown(Some(processor.map(|s| 100.0 * rate(s) / machine.flops)))
                }
                _ => String::new(),
            };
            rows.push(vec![
                title.to_owned(),
                format!("{size:.0}"),
                shown(seconds),
                shown(processor),
                share,
                shown(peak),
            ]);
            times.extend(seconds.map(|spread| (*size, spread.median)));
            memory.extend(peak.map(|spread| (*size, spread.median)));
        }
        if let Some(slope) = slope(&times) {
            text_behind += &format!("- {title}: time grows with the power {slope:.2} of the rows");
            if let Some(value) = rounds.last(&format!("{title}, difference"), "difference") {
                text_behind += &format!(
                    "; in passes and in memory, predictions for the smallest table differ by {value:.1e}"
                );
            }
            text_behind += "\n";
        }
        chart = chart.series(Series::line(format!("{title}, s"), times));
        chart = chart.series(Series::line(format!("{title}, MB"), memory).dashed());
    }
    let head = format!("{} threads", rounds.threads);
    let heads =
        [&head, "rows", "s", "processor time, s", "N L^2, % of the peak", "peak memory, MB"];
    let text = format!("{}\n{text_behind}", table(&heads.map(|head| head as &str), &rows));
    Told { text, picture: Some(chart) }
}

/// The runs by the number of rows.
fn sizes(runs: &[Figures]) -> Vec<(f64, Vec<Figures>)> {
    let mut sizes: Vec<(f64, Vec<Figures>)> = Vec::new();
    for run in runs {
        let rows = run.get("rows").copied().unwrap_or(f64::NAN);
        match sizes.last_mut().filter(|(size, _)| *size == rows) {
            Some((_, runs)) => runs.push(run.clone()),
            None => sizes.push((rows, vec![run.clone()])),
        }
    }
    sizes
}

/// The slope of log y over log x, by least squares.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let mean = |part: fn(&(f64, f64)) -> f64| logs.iter().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let square: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    let product: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (square > 0.0).then_some(product / square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_has_its_power_for_a_slope() {
        let points: Vec<(f64, f64)> = [1.0, 10.0, 50.0].map(|x: f64| (x, 3.0 * x.powf(1.5))).into();
        assert!(slope(&points).is_some_and(|slope| (slope - 1.5).abs() < 1e-12));
        assert_eq!(slope(&points[..1]), None);
    }

    #[test]
    fn the_document_tells_every_size() {
        let run = |rows: f64| {
            let figures =
                [("rows", rows), ("seconds", rows / 1e5), ("processor", 1.0), ("peak_mb", 50.0)];
            figures.map(|(name, value)| (name.to_owned(), value)).into()
        };
        let programs = [("squared, file".to_owned(), vec![run(1e5), run(1e5), run(1e6)])].into();
        let told = tell(&Rounds { threads: 2, programs, ..Rounds::default() }, None);
        assert!(told.text.contains("| squared, file | 100000 | 1.00 | 1.00 |"), "{}", told.text);
        assert!(told.text.contains("the power 1.00 of the rows"), "{}", told.text);
    }
}
