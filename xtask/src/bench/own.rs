//! Programs that print their tables themselves, and pictures of these tables.

use std::process::Command;

use anyhow::{Context, Result};
use broadlearn_report::{Chart, Series};

use super::document::{Rounds, Told};
use super::figures::{self, figures};
use super::{Machine, Options, example, example_of, mnist_folder};
use crate::data;

pub(super) fn measure_increments(options: &Options) -> Result<Rounds> {
    let (folder, threads) = (mnist_folder()?, options.threads(None));
    let mut command = figures::ours(&example_of("broadlearn-paper", "increments")?, threads);
    measured(command.arg(folder).arg(options.runs.to_string()), options, threads)
}

pub(super) fn measure_digits(options: &Options) -> Result<Rounds> {
    measured(&mut Command::new(example("lost_digits")?), options, 1)
}

pub(super) fn measure_robustness(options: &Options) -> Result<Rounds> {
    let folder = data::folder()?.context("no data: run `cargo xtask data` first")?;
    let mut command = Command::new(example("robustness")?);
    measured(command.arg(folder).arg(options.runs.to_string()), options, options.threads(None))
}

fn measured(command: &mut Command, options: &Options, threads: usize) -> Result<Rounds> {
    let (found, lines) = figures(command)?;
    let text = lines.into_iter().filter(|line| line.starts_with('|') || line.is_empty()).collect();
    let programs = [("broadlearn".to_owned(), vec![found])].into();
    Ok(Rounds { threads, load: options.load, programs, text })
}

/// Accuracy from step to step, a line for each table and ridge.
pub(super) fn tell_increments(rounds: &Rounds, _: Option<Machine>) -> Told {
    let name = |cells: &[&str]| Some(format!("Table {}, ridge {}", cells[0], cells[1]));
    let chart = Chart::new("Accuracy while rows and nodes are added")
        .x_label("step")
        .y_label("accuracy on MNIST's test rows, %");
    told(rounds, with_lines(chart, &rounds.text, [6, 4], name, 1.0))
}

/// The difference from a refit after the last step, by ridge, for each way of updating.
pub(super) fn tell_digits(rounds: &Rounds, _: Option<Machine>) -> Told {
    let name = |cells: &[&str]| {
        let with_ridge = cells[1].parse::<f64>().is_ok();
        with_ridge.then(|| format!("{}, {}", cells[0], cells[2]))
    };
    let chart = Chart::new("Digits that updates lose")
        .x_label("ridge")
        .categories(["1e-1", "1e-3", "1e-5", "1e-7"])
        .y_label("difference from a refit")
        .log_y();
    told(rounds, with_lines(chart, &rounds.text, [8, 4], name, 0.0))
}

/// By how much the automatic choice is worse than the best in hindsight, by share of wrong targets.
pub(super) fn tell_robustness(rounds: &Rounds, _: Option<Machine>) -> Told {
    let name = |cells: &[&str]| cells[1].ends_with('%').then(|| format!("{} spoilt", cells[1]));
    let chart = Chart::new("Automatic against hindsight")
        .y_label("excess: %, of classes points")
        .h_line("as good", 0.0);
    let found = values_of(&rounds.text, [6, 4], name);
    let rows = rounds.text.iter().map(|row| cells_of(row)).filter(|cells| cells.len() == 6);
    // Without the heading and the line below it.
    let mut sets: Vec<String> = rows.skip(2).map(|cells| cells[0].to_owned()).collect();
    sets.dedup();
    let chart = found.into_iter().fold(chart.categories(sets), |chart, (name, values)| {
        chart.series(Series::points(name, placed(&values, 0.0)))
    });
    told(rounds, chart)
}

fn told(rounds: &Rounds, picture: Chart) -> Told {
    Told { text: rounds.text.join("\n").trim().to_owned(), picture: Some(picture) }
}

/// A line for each name that rows with so many cells have.
fn with_lines(
    chart: Chart,
    text: &[String],
    shape: [usize; 2],
    name: impl Fn(&[&str]) -> Option<String>,
    first: f64,
) -> Chart {
    let lines = values_of(text, shape, name).into_iter();
    let lines = lines.map(|(name, values)| (name, placed(&values, first)));
    lines
        .filter(|(_, points)| !points.is_empty())
        .fold(chart, |chart, (name, points)| chart.series(Series::line(name, points)))
}

/// For each name that rows with so many cells have, the values of one of their cells one after the other. What is no number
/// leaves a gap.
fn values_of(
    text: &[String],
    [width, cell]: [usize; 2],
    name: impl Fn(&[&str]) -> Option<String>,
) -> Vec<(String, Vec<Option<f64>>)> {
    let mut found: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for row in text {
        let cells = cells_of(row);
        let name = if cells.len() == width { name(&cells) } else { None };
        let Some(name) = name else { continue };
        let number = cells[cell].split([';', '%']).next().unwrap_or_default();
        let value = number.trim().parse().ok();
        match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, values)) => values.push(value),
            None => found.push((name, vec![value])),
        }
    }
    found
}

fn cells_of(row: &str) -> Vec<&str> {
    row.trim_matches('|').split('|').map(str::trim).collect()
}

/// Values at whole numbers from `first` on.
fn placed(values: &[Option<f64>], first: f64) -> Vec<(f64, f64)> {
    let points = values.iter().enumerate();
    points.filter_map(|(place, value)| Some((first + place as f64, (*value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_become_lines() {
        let text = [
            "| set | spoilt | excess |",
            "|---|---|---|",
            "| a | 0 % | 1.5 % |",
            "| a | 20 % | not found |",
            "| b | 0 % | -2; a note |",
            "| b | 20 % | 3 |",
            "",
            "| other | table |",
        ];
        let text: Vec<String> = text.map(str::to_owned).to_vec();
        let name = |cells: &[&str]| Some(cells[1].to_owned());
        let drawn = with_lines(Chart::new("t"), &text, [3, 2], name, 0.0);
        let expected = Chart::new("t")
            .series(Series::line("0 %", [(0.0, 1.5), (1.0, -2.0)]))
            .series(Series::line("20 %", [(1.0, 3.0)]));
        assert_eq!(drawn.to_svg(), expected.to_svg());
    }
}
