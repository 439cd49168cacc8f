//! Fig. 2: wrong training targets, more and more of them; beyond the paper, errors to one side, and all
//! sets.

use super::comparison::Row;
use super::{Experiment, main_rows, seeds_shown, table2};
use crate::Plan;
use crate::choose::best;
use crate::comparators::{
    L2RBLS_STEPS, WBLS_STEPS, automatic, bls, c_bls, least_absolute, weighted,
};
use crate::contamination::{Errors, spoil};
use crate::engine::{Done, Run, Stop, Values};
use crate::report::{Grid, Part};
use crate::score::Rows;
use crate::sets::{self, Split, Table};
use crate::statistics::{Spread, figure};
use broadlearn::data::Task;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::tune::Grid as PaperGrid;
use broadlearn::{Result, Settings};
use broadlearn_report::{Chart, Series};
use std::sync::Arc;

pub(crate) static EXPERIMENT: Experiment =
    Experiment { name: "fig2", title: "Fig. 2: wrong training targets", runs, report };

/// The paper's shares of wrong targets.
const SHARES: [f64; 5] = [0.0, 0.1, 0.2, 0.3, 0.4];
/// Those at which all sets are looked at.
const FEW_SHARES: [f64; 3] = [0.0, 0.2, 0.4];
/// The cut-offs of Huber's weights that the paper tries for WBLS.
const CUTS: [f64; 9] = [0.1, 0.3, 0.5, 0.7, 1.0, 3.0, 5.0, 7.0, 10.0];
const METHODS: [&str; 5] = ["BLS", "L2RBLS", "WBLS", "C-BLS", "automatic"];

/// A set of the figure, the name of its picture, and independent figures (NumPy) at 0, 20 and 40 %.
type Picture = (&'static str, &'static str, &'static [(&'static str, [f64; 3])]);

const PICTURES: [Picture; 3] = [
    (
        "Bodyfat",
        "fig2-bodyfat",
        &[
            ("BLS", [0.0278, 0.3398, 0.3512]),
            ("L2RBLS", [0.0140, 0.0155, 0.0412]),
            ("WBLS", [0.0141, 0.0278, 0.2085]),
            ("automatic", [0.0142, 0.0143, 0.0148]),
        ],
    ),
    ("Bodyfat, 248 rows", "fig2-bodyfat-248", &[]),
    ("Chess", "fig2-chess", &[("BLS", [96.95, 92.21, 70.23]), ("C-BLS", [96.7, 95.5, 88.2])]),
];

/// Settings drawn from the paper's grid.
fn drawn(method: &str, count: usize, seed: u64) -> Vec<Settings> {
    let grid = PaperGrid::paper();
    let mut stream = Stream::new(seed, Purpose::Sample, 0);
    let mut one = |values: &[usize]| values[stream.below(values.len())];
    let wide: Vec<usize> = (1..=600).step_by(10).collect();
    let places = |count: usize| (0..count).collect::<Vec<_>>();
    (0..count)
        .map(|_| match method {
            "WBLS" => weighted(one(&wide), CUTS[one(&places(CUTS.len()))], seed),
            _ => {
                let sizes = (
                    one(&grid.feature_nodes),
                    one(&grid.feature_groups),
                    one(&grid.enhancement_nodes),
                );
                let sigma = grid.sigmas[one(&places(grid.sigmas.len()))];
                match method {
                    "BLS" => bls(sizes, seed),
                    "L2RBLS" => least_absolute(sizes, seed),
                    _ => c_bls(sizes, sigma, seed),
                }
            }
        })
        .collect()
}

/// How many settings of the grid are compared.
fn candidates(plan: &Plan) -> usize {
    if plan.quick { 12 } else { 40 }
}

fn seeds(plan: &Plan) -> u64 {
    plan.seeds(10, 2)
}

fn seeds_of_all_sets(plan: &Plan) -> u64 {
    plan.seeds(5, 1)
}

/// All sets, and Bodyfat without its contradictory rows.
fn all_rows(plan: &Plan) -> Result<Vec<(&'static Row, Arc<Table>)>> {
    let mut rows = main_rows(plan)?;
    let sound = &sets::SOUND_BODYFAT;
    let row = table2::ROWS.iter().find(|row| row.set.name == sound.name);
    if let (Some(row), true) = (row, rows.iter().any(|(row, _)| row.set.id == sound.id)) {
        rows.extend(plan.tables([sound])?.into_iter().map(|table| (row, table)));
    }
    Ok(rows)
}

fn runs(plan: &Plan) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for (row, table) in all_rows(plan)? {
        let set = row.set;
        let in_paper = PICTURES.iter().any(|(name, ..)| *name == set.name);
        let thousands = set.rows.0 as f64 / 1000.0;
        let errors = match set.task {
            Task::Regression => &[Errors::Paper, Errors::OneSided][..],
            Task::Classification => &[Errors::Paper],
        };
        for &errors in errors {
            let mut plan_run = |part: &'static str, method: &'static str, share: f64, seed: u64| {
                let labels = vec![
                    ("part", part.to_owned()),
                    ("set", set.name.to_owned()),
                    ("method", method.to_owned()),
                    ("errors", errors.name().to_owned()),
                    ("share", share.to_string()),
                    ("seed", seed.to_string()),
                ];
                let count = if part == "grid" { candidates(plan) } else { 1 };
                let key = format!("{count} {:?} {:016x}", (row.bls, row.c_bls), table.fingerprint);
                let cost = match method {
                    "automatic" => 1.0 + 2.0 * thousands,
                    _ => 0.1 + count as f64 * thousands / 4.0,
                };
                let table = table.clone();
                let case = Case { method, part, count, errors, share, seed };
                runs.push(Run::new(labels, &key, cost, move |stop| case.run(row, &table, stop)));
            };
            if in_paper {
                for method in METHODS {
                    if method == "WBLS" && set.task == Task::Classification {
                        continue;
                    }
                    for share in SHARES {
                        (0..seeds(plan)).for_each(|seed| plan_run("grid", method, share, seed));
                    }
                }
            }
            for method in ["BLS", "automatic"] {
                for share in FEW_SHARES {
                    (0..seeds_of_all_sets(plan))
                        .for_each(|seed| plan_run("all", method, share, seed));
                }
            }
        }
    }
    Ok(runs)
}

/// What a run is about.
#[derive(Clone, Copy)]
struct Case {
    method: &'static str,
    part: &'static str,
    /// The settings that are compared.
    count: usize,
    errors: Errors,
    share: f64,
    seed: u64,
}

impl Case {
    /// Errors into the training targets, a choice on these rows, a fit, a score on clean test rows.
    fn run(self, row: &Row, table: &Table, stop: &Stop) -> Result<Values> {
        let Self { method, part, count, errors, share, seed } = self;
        let mut rows = Rows::new(table, Split::Random, seed, method == "automatic")?;
        spoil(&mut rows.train.1, errors, share, row.set.classes.unwrap_or(0), seed);
        let settings = match (method, part) {
            ("automatic", _) => automatic(seed),
            (_, "grid") => best(&rows, drawn(method, count, seed), seed, stop)?,
            _ => bls(row.bls, seed),
        };
        rows.score(&settings, stop)
    }
}

fn report(plan: &Plan, done: &[Done]) -> Result<Vec<Part>> {
    let rows = all_rows(plan)?;
    let mut parts = vec![Part::Text(format!(
        "A share p of the training targets is spoilt, the test rows are clean. Regression: a number uniform in \
         [0, 1] is added (the paper), or five standard deviations (one-sided, beyond the paper). Classes: \
         another class. Parameters of BLS, L2RBLS, WBLS and C-BLS: the best of {} settings drawn from the \
         paper's grids, by held-out training rows, which are spoilt as well; the paper does not say on which rows \
         it chose. Automatic: C-BLS as it comes. Random splits, {}; the paper gives no figures beside its picture. \
         L2RBLS has {L2RBLS_STEPS} steps, WBLS up to {WBLS_STEPS} reweighted solutions; each has the ridge 2^-30. With all its rows, of which four contradict the formula of the others, Bodyfat has a floor of 0.02 wherever \
         one of them is a test row; so it is shown without them, too.",
        candidates(plan),
        seeds_shown(seeds(plan))
    ))];
    for (name, file, independent) in PICTURES {
        let Some((row, _)) = rows.iter().find(|(row, _)| row.set.name == name) else { continue };
        let task = row.set.task;
        let errors: &[(Errors, &'static str)] = match task {
            Task::Regression => {
                let one_sided = match name {
                    "Bodyfat" => "fig2-bodyfat-one-sided",
                    _ => "fig2-bodyfat-248-one-sided",
                };
                &[(Errors::Paper, file), (Errors::OneSided, one_sided)]
            }
            Task::Classification => &[(Errors::Paper, file)],
        };
        for (errors, file) in errors {
            let kind = errors.name();
            let of = |method: &str, share: f64| {
                let share = share.to_string();
                let labels = [
                    ("part", "grid"),
                    ("set", name),
                    ("method", method),
                    ("errors", kind),
                    ("share", share.as_str()),
                ];
                Spread::over(done, &labels, "test")
            };
            let measure = if task == Task::Regression { "RMSE" } else { "accuracy, %" };
            let caption = match (task, errors) {
                (Task::Classification, _) => format!("{name}, reversed labels: test {measure}."),
                (_, Errors::Paper) => {
                    format!("{name}, outliers uniform in [0, 1]: test {measure}.")
                }
                (_, Errors::OneSided) => format!("{name}, errors to one side: test {measure}."),
            };
            let mut chart = Chart::new(caption.trim_end_matches('.'))
                .x_label("share p of wrong targets")
                .y_label(measure);
            if task == Task::Regression {
                chart = chart.log_y();
            }
            let methods: Vec<&str> =
                METHODS.into_iter().filter(|method| !of(method, SHARES[0]).is_empty()).collect();
            for method in &methods {
                let points: Vec<(f64, f64)> =
                    SHARES.iter().map(|share| (*share, of(method, *share).mean)).collect();
                // The same colour in all pictures.
                let place = METHODS.iter().position(|known| known == method).unwrap_or(0);
                chart = chart.series(Series::line(*method, points).color(place));
            }
            let header: Vec<&str> = std::iter::once("p").chain(methods.iter().copied()).collect();
            let mut grid = Grid::new(&caption, &header);
            for share in SHARES {
                let mut cells = vec![share.to_string()];
                cells.extend(methods.iter().map(|method| of(method, share).shown(task)));
                grid.row(cells);
            }
            parts.push(Part::picture(
                file,
                chart,
                format!("{} Means over {}.", caption, seeds_shown(seeds(plan))),
            ));
            parts.push(Part::Table(grid));
        }
        if independent.is_empty() {
            continue;
        }
        let mut grid = Grid::new(
            format!("{name}, independent figures (NumPy, other splits and ways of choosing)."),
            &["method", "p = 0", "p = 0.2", "p = 0.4"],
        );
        for (method, figures) in independent {
            let figures = figures.iter().map(|value| figure(*value, task));
            grid.row(std::iter::once((*method).to_owned()).chain(figures));
        }
        parts.push(Part::Table(grid));
    }
    parts.push(Part::Table(all_sets(plan, &rows, done)));
    Ok(parts)
}

/// BLS with its network of Tables II and III, and the automatic choice, on every set.
fn all_sets(plan: &Plan, rows: &[(&'static Row, Arc<Table>)], done: &[Done]) -> Grid {
    let mut grid = Grid::new(
        format!(
            "Beyond the paper: all sets at p = 0 / 0.2 / 0.4, BLS with the paper's network of Tables II and III against the \
             automatic choice; {}.",
            seeds_shown(seeds_of_all_sets(plan))
        ),
        &["set", "errors", "BLS", "automatic", "automatic, 0.4 to 0"],
    );
    for (row, _) in rows {
        let task = row.set.task;
        for errors in [Errors::Paper, Errors::OneSided] {
            let of = |method: &str| -> Vec<Spread> {
                let one = |share: &f64| {
                    let share = share.to_string();
                    let labels = [
                        ("part", "all"),
                        ("set", row.set.name),
                        ("method", method),
                        ("errors", errors.name()),
                        ("share", share.as_str()),
                    ];
                    Spread::over(done, &labels, "test")
                };
                FEW_SHARES.iter().map(one).collect()
            };
            let (plain, own) = (of("BLS"), of("automatic"));
            if own.iter().all(Spread::is_empty) {
                continue;
            }
            let shown = |spreads: &[Spread]| {
                let figures: Vec<String> =
                    spreads.iter().map(|spread| figure(spread.mean, task)).collect();
                figures.join(" / ")
            };
            let kind = match task {
                Task::Regression => errors.name(),
                Task::Classification => "other class",
            };
            grid.row([
                row.set.name.to_owned(),
                kind.to_owned(),
                shown(&plain),
                shown(&own),
                format!("{:.2}", own[2].mean / own[0].mean),
            ]);
        }
    }
    grid
}
