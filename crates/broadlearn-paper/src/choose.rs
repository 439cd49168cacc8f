//! The best of some settings, by training rows alone.

use crate::engine::Stop;
use crate::score::Rows;
use broadlearn::data::Targets;
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::{Result, Settings};

/// Every third training row is held out in turn.
const FOLDS: usize = 3;
/// Where Tukey's bisquare gives up a residual, in spreads: 95 % efficiency for normal errors.
const CUT: f64 = 4.685;

/// The settings that predict held-out training rows best. Some of these rows are wrong, so numbers are
/// judged by Tukey's bisquare in units of the least median residual, classes by accuracy.
pub(crate) fn best(
    rows: &Rows,
    candidates: Vec<Settings>,
    seed: u64,
    stop: &Stop,
) -> Result<Settings> {
    let count = rows.train.0.nrows();
    let order = Stream::new(seed, Purpose::Folds, 0).permutation(count);
    let folds: Vec<Rows> = (0..FOLDS)
        .map(|fold| {
            let part = |inside: bool| -> Vec<usize> {
                let place = |(place, _): &(usize, &usize)| (place % FOLDS == fold) == inside;
                order.iter().enumerate().filter(place).map(|(_, row)| *row).collect()
            };
            Rows {
                schema: rows.schema.clone(),
                train: select(&rows.train, &part(false)),
                test: select(&rows.train, &part(true)),
            }
        })
        .collect();
    // Residuals of numbers; 0 and 1 of classes. None where a fold gave no model.
    let mut errors: Vec<Option<Vec<f64>>> = Vec::with_capacity(candidates.len());
    for settings in &candidates {
        let mut found = Some(Vec::with_capacity(count));
        for fold in &folds {
            match (fold.fit(settings, stop)?, &mut found) {
                (Some(model), Some(found)) => {
                    let predictions = model.predict(&fold.test.0)?;
                    match &fold.test.1 {
                        Targets::Values(y) => {
                            let values = predictions.values();
                            found
                                .extend((0..y.nrows()).map(|i| (y[(i, 0)] - values[(i, 0)]).abs()));
                        }
                        Targets::Classes(truth) => {
                            let classes = predictions.classes();
                            let wrong = |(a, b): (&u32, &u32)| if a == b { 0.0 } else { 1.0 };
                            found.extend(classes.iter().zip(truth).map(wrong));
                        }
                    }
                }
                _ => found = None,
            }
        }
        errors.push(found);
    }
    let numeric = matches!(rows.train.1, Targets::Values(_));
    let spread = 1.4826 * errors.iter().flatten().map(|e| median(e)).fold(f64::INFINITY, f64::min);
    let cost = |error: f64| match numeric && spread > 0.0 {
        true => 1.0 - (1.0 - (error / (CUT * spread)).powi(2)).max(0.0).powi(3),
        false => error,
    };
    let total = |errors: &Option<Vec<f64>>| match errors {
        Some(errors) => errors.iter().map(|error| cost(*error)).sum(),
        None => f64::INFINITY,
    };
    let totals: Vec<f64> = errors.iter().map(total).collect();
    let place = (0..totals.len()).min_by(|a, b| totals[*a].total_cmp(&totals[*b])).unwrap_or(0);
    Ok(candidates.into_iter().nth(place).unwrap_or_default())
}

fn select((x, targets): &(Mat<f64>, Targets), rows: &[usize]) -> (Mat<f64>, Targets) {
    let part = |m: &Mat<f64>| Mat::from_fn(rows.len(), m.ncols(), |i, j| m[(rows[i], j)]);
    let targets = match targets {
        Targets::Values(y) => Targets::Values(part(y)),
        Targets::Classes(codes) => Targets::Classes(rows.iter().map(|row| codes[*row]).collect()),
    };
    (part(x), targets)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use broadlearn::data::{Schema, TargetSchema};
    use broadlearn::preprocess::Scaling;

    #[test]
    fn wrong_rows_do_not_decide() {
        let x = Mat::from_fn(120, 1, |i, _| i as f64 / 60.0 - 1.0);
        let y = Mat::from_fn(120, 1, |i, _| x[(i, 0)] + if i % 4 == 0 { 3.0 } else { 0.0 });
        let target = TargetSchema::Regression { names: vec!["y".into()] };
        let both = || (x.clone(), Targets::Values(y.clone()));
        let rows = Rows { schema: Schema::numeric(1, target), train: both(), test: both() };
        let base = || {
            Settings::new()
                .enhancement_nodes(10)
                .gain(0.5)
                .ridge(1e-3)
                .target_scaling(Scaling::None)
        };
        let candidates = vec![base().squared(), base().sigma(0.3), base().sigma(100.0)];
        let chosen = best(&rows, candidates, 0, &Stop::default()).unwrap();
        assert_eq!(chosen, base().sigma(0.3));
    }
}
