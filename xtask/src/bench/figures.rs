//! What programs print, and what is said about it: a name and a number per line, the best and the worst of some runs.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Result;

use crate::run;

/// One run: its figures by name.
pub(super) type Figures = BTreeMap<String, f64>;

/// Runs a program that prints a name and a number per line.
pub(super) fn figures(command: &mut Command) -> Result<Figures> {
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

/// Runs programs in turn, so that a busy machine slows all of them; the runs of each.
pub(super) fn in_turn<const N: usize>(
    runs: usize,
    mut programs: [&mut dyn FnMut() -> Command; N],
) -> Result<[Vec<Figures>; N]> {
    let mut all = [const { Vec::new() }; N];
    for round in 1..=runs {
        println!("\n==> {round}/{runs}");
        for (program, all) in programs.iter_mut().zip(&mut all) {
            all.push(figures(&mut program())?);
        }
    }
    Ok(all)
}

/// The best and the worst of some runs.
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    /// Of the sum of these figures; nothing if there is none or one is missing.
    pub(super) fn of(runs: &[Figures], names: &[&str]) -> Option<Self> {
        let sum = |run: &Figures| names.iter().map(|name| run.get(*name).copied()).sum();
        let sums: Vec<f64> = runs.iter().map(sum).collect::<Option<_>>()?;
        if names.is_empty() { None } else { Self::over(&sums) }
    }

    /// Of a figure's ratio, run by run: runs that stood next to each other.
    pub(super) fn ratio(above: (&[Figures], &str), below: (&[Figures], &str)) -> Option<Self> {
        let pairs = above.0.iter().zip(below.0);
        let ratios = pairs.map(|(a, b)| Some(a.get(above.1)? / b.get(below.1)?));
        Self::over(&ratios.collect::<Option<Vec<_>>>()?)
    }

    fn over(values: &[f64]) -> Option<Self> {
        (!values.is_empty()).then(|| Self {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// The least and, in brackets, the most.
    pub(super) fn shown(&self) -> String {
        format!("{:.2} ({:.2})", self.least, self.most)
    }
}

/// As [`Spread::shown`]; nothing if there is nothing.
pub(super) fn shown(spread: Option<Spread>) -> String {
    spread.map_or(String::new(), |spread| spread.shown())
}
