//! Fig. 4: the kernel size.

use super::{Experiment, main_rows, seeds_shown};
use crate::Plan;
use crate::comparators::c_bls;
use crate::engine::{Done, Run, Values};
use crate::report::{Grid, Part};
use crate::score::Rows;
use crate::sets::Split;
use crate::statistics::{Spread, figure, power_of_two};
use broadlearn::Result;
use broadlearn::data::Task;
use broadlearn_report::{Chart, Series};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { name: "fig4", title: "Fig. 4: the kernel size", runs, report };

const POWERS: std::ops::RangeInclusive<i32> = -7..=7;

fn seeds(plan: &Plan) -> u64 {
    plan.seeds(20, 3)
}

fn runs(plan: &Plan) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for (row, table) in main_rows(plan)? {
        for seed in 0..seeds(plan) {
            let labels = vec![("set", row.set.name.to_owned()), ("seed", seed.to_string())];
            let settings = move |power: i32| c_bls(row.c_bls.0, f64::from(power).exp2(), seed);
            let key = format!("{:?} {POWERS:?} {:016x}", settings(0), table.fingerprint);
            let table = table.clone();
            runs.push(Run::new(labels, &key, 1.0, move |stop| {
                let rows = Rows::new(&table, Split::Fixed, seed, false)?;
                let mut scores = Vec::new();
                for power in POWERS {
                    scores.push(
                        rows.score(&settings(power), stop)?.get("test").first().copied().flatten(),
                    );
                }
                let mut values = Values::default();
                values.set_all("test", scores);
                Ok(values)
            }));
        }
    }
    Ok(runs)
}

fn report(plan: &Plan, done: &[Done]) -> Result<Vec<Part>> {
    let rows = main_rows(plan)?;
    let spreads = |set: &str| -> Vec<(f64, Spread)> {
        let one = |(step, power): (usize, i32)| {
            (f64::from(power).exp2(), Spread::step(done, &[("set", set)], "test", step))
        };
        POWERS.enumerate().map(one).collect()
    };
    let mut grid = Grid::new(
        format!(
            "C-BLS with the paper's networks, ridge 2^-30, kernel sizes from 2^-7 to 2^7, fixed split, means over {}. Hardly \
             different: within one standard deviation over networks of the best. No answer: all weights vanish.",
            seeds_shown(seeds(plan))
        ),
        &[
            "set",
            "best sigma",
            "best",
            "at the paper's sigma",
            "at 2^7 (ridge)",
            "hardly different",
            "no answer",
        ],
    );
    let mut parts = Vec::new();
    for (task, file, title, measure) in [
        (Task::Regression, "fig4-regression", "Kernel size, regression", "test RMSE"),
        (
            Task::Classification,
            "fig4-classification",
            "Kernel size, classification",
            "test accuracy, %",
        ),
    ] {
        let mut chart = Chart::new(title).x_label("kernel size sigma").y_label(measure).log_x();
        if task == Task::Regression {
            chart = chart.log_y();
        }
        let mut some = false;
        for (row, _) in rows.iter().filter(|(row, _)| row.set.task == task) {
            let curve = spreads(row.set.name);
            let better = |a: f64, b: f64| if task == Task::Regression { a < b } else { a > b };
            let mut best: Option<&(f64, Spread)> = None;
            for place in curve.iter().filter(|(_, spread)| !spread.is_empty()) {
                if best.is_none_or(|best| better(place.1.mean, best.1.mean)) {
                    best = Some(place);
                }
            }
            let Some(best) = best else { continue };
            some = true;
            let alike = |spread: &Spread| (spread.mean - best.1.mean).abs() <= best.1.deviation;
            let near: Vec<f64> = curve
                .iter()
                .filter(|(_, s)| !s.is_empty() && alike(s))
                .map(|(sigma, _)| *sigma)
                .collect();
            let failed: Vec<f64> =
                curve.iter().filter(|(_, s)| s.failed > 0).map(|(sigma, _)| *sigma).collect();
            let range = |values: &[f64]| match (values.first(), values.last()) {
                (Some(low), Some(high)) if values.len() > 1 => {
                    format!("{} to {}", power_of_two(*low), power_of_two(*high))
                }
                (Some(low), _) => power_of_two(*low),
                _ => "-".into(),
            };
            let at = |sigma: f64| {
                let found = curve.iter().find(|(place, _)| *place == sigma);
                found.map_or("-".into(), |(_, spread)| spread.shown(task))
            };
            grid.row([
                row.set.name.to_owned(),
                power_of_two(best.0),
                figure(best.1.mean, task),
                format!("{} at {}", at(row.c_bls.1), power_of_two(row.c_bls.1)),
                at(128.0),
                range(&near),
                range(&failed),
            ]);
            let points: Vec<(f64, f64)> =
                curve.iter().map(|(sigma, spread)| (*sigma, spread.mean)).collect();
            chart = chart.series(Series::line(row.set.name, points));
        }
        if some {
            parts.push(Part::picture(file, chart, "Where a line ends, all weights vanish."));
        }
    }
    parts.push(Part::Table(grid));
    Ok(parts)
}
