//! What programs print, and what is said about it: a name and a number per line; the median, the least and the most of
//! some rounds.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::script;
use crate::run;

/// One run: its figures by name.
pub(super) type Figures = BTreeMap<String, f64>;

/// Runs a program that prints a name and a number per line; its figures, and all it has printed.
pub(super) fn figures(command: &mut Command) -> Result<(Figures, Vec<String>)> {
    let (mut figures, mut lines) = (Figures::new(), Vec::new());
    run::run_seeing(command, |line| {
        if let Some((name, value)) = line.split_once(' ')
            && let Ok(value) = value.trim().parse()
        {
            figures.insert(name.to_owned(), value);
        }
        lines.push(line.to_owned());
    })?;
    Ok((figures, lines))
}

/// A program of the library on so many threads.
pub(super) fn ours(program: &Path, threads: usize) -> Command {
    let mut command = Command::new(program);
    command.env("RAYON_NUM_THREADS", threads.to_string());
    command
}

/// A script in Python on so many threads.
pub(super) fn theirs(python: &Path, name: &str, threads: usize) -> Command {
    let mut command = Command::new(python);
    command.arg("-I").arg(script(name)).env("OPENBLAS_NUM_THREADS", threads.to_string());
    command
}

/// The median, the least and the most of some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    /// Of the sum of these figures; nothing if there is none or one is missing.
    pub(super) fn of(runs: &[Figures], names: &[&str]) -> Option<Self> {
        let sums: Vec<f64> = runs.iter().map(|run| sum(run, names)).collect::<Option<_>>()?;
        if names.is_empty() { None } else { Self::over(&sums) }
    }

    /// Of a figure's ratio, run by run: runs that stood next to each other, which a busy machine slows alike.
    pub(super) fn ratio(above: (&[Figures], &str), below: (&[Figures], &str)) -> Option<Self> {
        Self::ratio_of_sums((above.0, &[above.1]), (below.0, &[below.1]))
    }

    /// The same of sums of figures.
    pub(super) fn ratio_of_sums(
        above: (&[Figures], &[&str]),
        below: (&[Figures], &[&str]),
    ) -> Option<Self> {
        let pairs = above.0.iter().zip(below.0);
        let ratios = pairs.map(|(a, b)| Some(sum(a, above.1)? / sum(b, below.1)?));
        Self::over(&ratios.collect::<Option<Vec<_>>>()?)
    }

    pub(super) fn over(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: 0.5 * (low + high), least, most })
    }

    /// All three times a factor; the least of a negative power is its most.
    pub(super) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let (a, b) = (change(self.least), change(self.most));
        Self { median: change(self.median), least: a.min(b), most: a.max(b) }
    }

    /// The median and, in brackets, the least and the most; alone if there was one round.
    pub(super) fn shown(&self) -> String {
        let [median, least, most] = [self.median, self.least, self.most].map(short);
        if self.least == self.most { median } else { format!("{median} ({least} to {most})") }
    }
}

/// Nothing if one is missing.
fn sum(run: &Figures, names: &[&str]) -> Option<f64> {
    names.iter().map(|name| run.get(*name).copied()).sum()
}

/// Three digits or so.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

/// As [`Spread::shown`]; nothing if there is nothing.
pub(super) fn shown(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |spread| spread.shown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_and_both_ends() {
        let spread = Spread::over(&[3.0, 1.0, 2.0, 10.0]).map(|spread| spread.shown());
        assert_eq!(spread.as_deref(), Some("2.50 (1.00 to 10.00)"));
        let run = |value: f64| Figures::from([("solving".to_owned(), value)]);
        let (ours, numpy) = ([run(3.0), run(2.0)], [run(4.0), run(8.0)]);
        let ratio = Spread::ratio((&ours, "solving"), (&numpy, "solving"));
        assert_eq!(shown(ratio), "0.50 (0.25 to 0.75)");
        assert_eq!(Spread::of(&ours, &["absent"]), None);
        let inverse = Spread { median: 2.0, least: 1.0, most: 4.0 }.map(|value| 1.0 / value);
        assert_eq!((inverse.least, inverse.most), (0.25, 1.0));
    }
}
