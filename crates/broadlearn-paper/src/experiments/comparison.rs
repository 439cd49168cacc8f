//! What Tables II and III have in common: BLS and C-BLS with the paper's networks, and C-BLS as it
//! comes, on a fixed split and on random ones.

use super::seeds_shown;
use crate::Plan;
use crate::comparators::{Sizes, automatic, bls, c_bls, shown};
use crate::engine::{Done, Run};
use crate::report::{Grid, Part};
use crate::score::Rows;
use crate::sets::{Set, Split, Table};
use crate::statistics::{Spread, figure, power_of_two};
use broadlearn::data::Task;
use broadlearn::{Result, Settings};
use std::sync::Arc;

/// A set of the table.
pub(crate) struct Row {
    pub(crate) set: &'static Set,
    pub(crate) bls: Sizes,
    /// The network and the kernel size.
    pub(crate) c_bls: (Sizes, f64),
    /// The paper's mean and standard deviation on test rows: BLS, C-BLS.
    pub(crate) paper: [(f64, f64); 2],
    /// Means of an independent implementation in NumPy over 20 random splits, where there are any.
    pub(crate) reference: Option<[f64; 2]>,
    /// What is known about the paper's figure.
    pub(crate) note: &'static str,
}

const METHODS: [&str; 3] = ["BLS", "C-BLS", "automatic"];

impl Row {
    fn settings(&self, method: &str, seed: u64) -> Settings {
        match method {
            "BLS" => bls(self.bls, seed),
            "C-BLS" => c_bls(self.c_bls.0, self.c_bls.1, seed),
            _ => automatic(seed),
        }
    }
}

/// The seeds of full and quick mode: the paper averages over 20 runs.
fn seeds(plan: &Plan) -> u64 {
    plan.seeds(20, 3)
}

/// The rows whose sets are there.
pub(crate) fn available(
    plan: &Plan,
    rows: &'static [Row],
) -> Result<Vec<(&'static Row, Arc<Table>)>> {
    let tables = plan.tables(rows.iter().map(|row| row.set))?;
    let table = |row: &'static Row| {
        tables.iter().find(|table| table.set.name == row.set.name).map(|table| (row, table.clone()))
    };
    Ok(rows.iter().filter_map(table).collect())
}

pub(crate) fn runs(plan: &Plan, rows: &'static [Row]) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for (row, table) in available(plan, rows)? {
        for method in METHODS {
            for split in Split::ALL {
                for seed in 0..seeds(plan) {
                    let labels = vec![
                        ("set", row.set.name.to_owned()),
                        ("method", method.to_owned()),
                        ("split", split.name().to_owned()),
                        ("seed", seed.to_string()),
                    ];
                    let settings = row.settings(method, seed);
                    let key = format!("{settings:?} {:016x}", table.fingerprint);
                    let thousands = row.set.rows.0 as f64 / 1000.0;
                    let cost = if method == "automatic" { 1.0 + 2.0 * thousands } else { 0.1 };
                    let table = table.clone();
                    runs.push(Run::new(labels, &key, cost, move |stop| {
                        let indicators = method == "automatic";
                        Rows::new(&table, split, seed, indicators)?.score(&settings, stop)
                    }));
                }
            }
        }
    }
    Ok(runs)
}

pub(crate) fn report(plan: &Plan, rows: &'static [Row], done: &[Done]) -> Result<Vec<Part>> {
    let available = available(plan, rows)?;
    let of = |row: &Row, method: &str, split: Split, measure: &str| {
        let labels = [("set", row.set.name), ("method", method), ("split", split.name())];
        Spread::over(done, &labels, measure)
    };
    let task = rows.first().map_or(Task::Regression, |row| row.set.task);
    let measure = match task {
        Task::Regression => "Test RMSE, targets scaled to [0, 1]",
        Task::Classification => "Test accuracy in percent",
    };
    let mut grid = Grid::new(
        format!(
            "{measure}; {}. The paper's parameters (N_f, N_w, N_e) and kernel size, ridge 2^-30: on one fixed split with \
             different networks, which is what the paper seems to have done, and on random splits; the \
             difference is that of random splits to the paper.",
            seeds_shown(seeds(plan))
        ),
        &["set", "learner", "paper", "fixed split", "random splits", "difference"],
    );
    let mut open = Grid::new(
        format!(
            "{measure}, everything chosen on training rows: C-BLS as it comes, beside the paper's C-BLS; {}. The difference is \
             that of random splits.",
            seeds_shown(seeds(plan))
        ),
        &[
            "set",
            "paper's C-BLS",
            "automatic, fixed split",
            "automatic, random splits",
            "difference",
        ],
    );
    let mut checks = Grid::new(
        "The paper's parameters against an independent implementation of the same recipe (NumPy, 20 other \
         random splits): agreement is a difference within one standard deviation over splits, or a better \
         figure.",
        &["set", "method", "independent", "ours, random splits", "difference", "verdict"],
    );
    let mut notes = Vec::new();
    for (row, _) in &available {
        let mut behind = Vec::new();
        for (index, method) in ["BLS", "C-BLS"].into_iter().enumerate() {
            let (paper, deviation) = row.paper[index];
            let fixed = of(row, method, Split::Fixed, "test");
            let random = of(row, method, Split::Random, "test");
            let learner = match method {
                "BLS" => format!("BLS {}", shown(row.bls)),
                _ => format!("C-BLS {}, {}", shown(row.c_bls.0), power_of_two(row.c_bls.1)),
            };
            grid.row([
                row.set.name.to_owned(),
                learner,
                format!("{} ± {}", figure(paper, task), figure(deviation, task)),
                fixed.shown(task),
                random.shown(task),
                random.above(paper, task),
            ]);
            if let Some(reference) = row.reference.map(|reference| reference[index]) {
                let agrees = (random.mean - reference).abs() <= random.deviation
                    || random.reaches(reference, task);
                checks.row([
                    row.set.name.to_owned(),
                    method.to_owned(),
                    figure(reference, task),
                    random.shown(task),
                    random.above(reference, task),
                    if agrees { "agrees" } else { "differs" }.to_owned(),
                ]);
            }
            if !random.is_empty() && !random.reaches(paper, task) {
                let gap = (random.mean - paper).abs();
                let small = gap <= random.deviation.max(deviation);
                let size = if small { ", within one standard deviation" } else { "" };
                behind.push(format!("{method} by {}{size}", figure(gap, task)));
            }
        }
        let own = of(row, "automatic", Split::Random, "test");
        open.row([
            row.set.name.to_owned(),
            format!("{} ± {}", figure(row.paper[1].0, task), figure(row.paper[1].1, task)),
            of(row, "automatic", Split::Fixed, "test").shown(task),
            own.shown(task),
            own.above(row.paper[1].0, task),
        ]);
        let mut text = format!("{}: ", row.set.name);
        text.push_str(&match behind.is_empty() {
            true => {
                "the paper's figures are reached with its parameters on random splits.".to_owned()
            }
            false => format!(
                "with its parameters on random splits the paper's figure is not reached ({}).",
                behind.join("; ")
            ),
        });
        if !own.is_empty() {
            let better = own.reaches(row.paper[1].0, task);
            text.push_str(&format!(
                " The automatic choice has {}, {} the paper's C-BLS.",
                figure(own.mean, task),
                if better { "no worse than" } else { "behind" }
            ));
        }
        if !row.note.is_empty() {
            text.push_str(&format!(" {}", row.note));
        }
        notes.push(text);
    }
    let mut parts = vec![Part::Table(grid), Part::Table(open), Part::List(notes)];
    if !checks.rows.is_empty() {
        parts.push(Part::Table(checks));
    }
    Ok(parts)
}
