//! Fig. 3: the objective after every step of the fixed point.

use super::{Experiment, main_rows, seeds_shown};
use crate::Plan;
use crate::comparators::c_bls;
use crate::engine::{Done, Run, Values};
use crate::report::{Grid, Part};
use crate::score::Rows;
use crate::sets::Split;
use crate::statistics::{Spread, power_of_two, select};
use broadlearn::Result;
use broadlearn::data::Task;
use broadlearn::solve::{Solver, Start};
use broadlearn_report::{Chart, Series};

pub(crate) static EXPERIMENT: Experiment =
    Experiment { name: "fig3", title: "Fig. 3: convergence", runs, report };

/// More than the paper shows.
const STEPS: usize = 30;
/// The paper does not say where its iteration begins.
const STARTS: [Start; 2] = [Start::Ridge, Start::Zero];

fn seeds(plan: &Plan) -> u64 {
    plan.seeds(20, 3)
}

fn runs(plan: &Plan) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for (row, table) in main_rows(plan)? {
        for start in STARTS {
            for seed in 0..seeds(plan) {
                let labels = vec![
                    ("set", row.set.name.to_owned()),
                    ("start", start.name().to_owned()),
                    ("seed", seed.to_string()),
                ];
                // A tolerance that is not reached: all steps are taken. Each is exact, as in Algorithm 1.
                let settings = c_bls(row.c_bls.0, row.c_bls.1, seed)
                    .start(start, false)
                    .solver(Solver::Direct)
                    .stop(1e-15, STEPS);
                let key = format!("{settings:?} {:016x}", table.fingerprint);
                let table = table.clone();
                runs.push(Run::new(labels, &key, 0.3, move |stop| {
                    let rows = Rows::new(&table, Split::Fixed, seed, false)?;
                    let mut values = Values::default();
                    if let Some(model) = rows.fit(&settings, stop)? {
                        values.set_all(
                            "objective",
                            model.report().objective.iter().map(|v| Some(*v)),
                        );
                    }
                    Ok(values)
                }));
            }
        }
    }
    Ok(runs)
}

/// With a ridge of 2^-30 the condition of a step's system is 1e13: rounding moves W where U hardly sees it, and
/// the objective by 3e-11 on Airfoil. More than this is no rounding.
const ROUNDING: f64 = 1e-9;

/// What is left to gain counts as nothing below this share of the objective.
const LITTLE: f64 = 1e-4;

fn report(plan: &Plan, done: &[Done]) -> Result<Vec<Part>> {
    let rows = main_rows(plan)?;
    let mut grid = Grid::new(
        format!(
            "The fixed point with the paper's networks and kernel sizes, {STEPS} steps, fixed split, {}: objective \
             L after the first and after the last step, steps until it is within {LITTLE:e} of the last, \
             and by how much it fell at most in any step of any seed. Starts: the ridge solution, or W = 0.",
            seeds_shown(seeds(plan))
        ),
        &["set", "sigma", "start", "first", "last", "steps", "largest fall"],
    );
    let mut most: f64 = 0.0;
    for (row, _) in &rows {
        for start in STARTS {
            let labels = [("set", row.set.name), ("start", start.name())];
            let curves: Vec<Vec<f64>> = select(done, &labels)
                .map(|run| run.values.get("objective").iter().flatten().copied().collect())
                .collect();
            let falls =
                curves.iter().flat_map(|curve| curve.windows(2)).map(|pair| pair[0] - pair[1]);
            let fall = falls.fold(0.0, f64::max);
            most = most.max(fall);
            let steps = |curve: &Vec<f64>| {
                let last = *curve.last()?;
                let near = |value: &f64| (last - value).abs() <= LITTLE * last.abs();
                Some(
                    (curve.iter().rposition(|value| !near(value)).map_or(0, |place| place + 1) + 1)
                        as f64,
                )
            };
            let first = Spread::of(curves.iter().map(|curve| curve.first().copied()));
            let last = Spread::of(curves.iter().map(|curve| curve.last().copied()));
            let steps = Spread::of(curves.iter().map(steps));
            let number = |spread: &Spread, digits: usize| match spread.is_empty() {
                true => "no answer".to_owned(),
                false => format!("{:.digits$}", spread.mean),
            };
            grid.row([
                row.set.name.to_owned(),
                power_of_two(row.c_bls.1),
                start.name().to_owned(),
                number(&first, 5),
                number(&last, 5),
                number(&steps, 1),
                if fall > 0.0 { format!("{fall:.0e}") } else { "0".into() },
            ]);
        }
    }
    let mut parts = vec![Part::Text(match most < ROUNDING {
        true => format!(
            "Every step of the fixed point majorises and minimises, so that the objective cannot fall, whatever the kernel \
             size. It does not, but for rounding in systems with a ridge of 2^-30: by {most:.0e} at most, on any set, from \
             any start, at any step."
        ),
        false => format!(
            "The objective fell by {most:.0e} in a step, which is more than rounding explains."
        ),
    })];
    for (task, file, title) in [
        (Task::Regression, "fig3-regression", "Objective L(t), regression"),
        (Task::Classification, "fig3-classification", "Objective L(t), classification"),
    ] {
        let mut chart = Chart::new(title).x_label("step t").y_label("L(t)");
        let mut some = false;
        for (row, _) in rows.iter().filter(|(row, _)| row.set.task == task) {
            let labels = [("set", row.set.name), ("start", Start::Zero.name()), ("seed", "0")];
            let Some(run) = select(done, &labels).next() else { continue };
            let values = run.values.get("objective").iter().enumerate();
            let points: Vec<(f64, f64)> =
                values.filter_map(|(step, value)| Some(((step + 1) as f64, (*value)?))).collect();
            some |= !points.is_empty();
            chart = chart.series(Series::line(row.set.name, points));
        }
        if some {
            parts.push(Part::picture(file, chart, "From W = 0, the network of seed 0."));
        }
    }
    parts.push(Part::Table(grid));
    Ok(parts)
}
