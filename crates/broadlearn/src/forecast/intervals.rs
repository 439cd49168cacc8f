//! How far forecasts are off, by step ahead: paths from past origins, by models that have not seen what follows.
//!
//! The series is cut into blocks. For each, the model forgets the rows from its first point on to the last
//! that a path from one of its origins reaches, and forecasts from these origins. Points that the
//! model does not believe would widen the intervals of good ones, whether they are forecast or forecast from: such
//! paths are left out, if there are wrong points at all.

use super::paths::{Start, paths};
use crate::data::{EmbeddedRows, Embedding, Targets, TimeSeries};
use crate::error::{Category, Result};
use crate::model::{Good, HARDLY_BELIEVED, Labelled, Model, Wrong};
use crate::preprocess::statistics;
use crate::progress::{Observer, report};
use crate::solve::Loss;
use faer::Mat;
use std::ops::Range;

/// Blocks of a series.
const BLOCKS: usize = 10;
/// Fewer rows than this say too little about errors.
const LEAST_ROWS: usize = 20;
/// Forecasts that are made to find their errors, about: origins times steps.
const MOST_FORECASTS: usize = 200_000;
/// Origins, at least, where the series has as many.
const LEAST_ORIGINS: usize = 400;
/// A point nearer to its forecast than this many spreads is not left out: of normal errors, one in 16 000.
const FAR: f64 = 4.0;
/// The normal deviation over the median of absolute values.
const NORMAL: f64 = 1.4826;
/// If fewer paths than this are left, those from doubtful points are kept.
const LEAST_PATHS: usize = 50;

/// By step ahead, the number of paths and the quantiles of their errors; none where they cannot be found.
pub(super) fn errors(
    model: &Model,
    embedding: &Embedding,
    series: &TimeSeries,
    rows: &EmbeddedRows,
    steps: usize,
    observer: &mut Observer<'_>,
) -> Result<(Vec<f64>, Mat<f64>)> {
    let n = rows.points.len();
    let none = || Ok((Vec::new(), Mat::new()));
    if model.updatable().is_err() || n < LEAST_ROWS {
        return none();
    }
    // Longer paths would leave less than half of the series to forecast from.
    let steps = steps.min(n / 2);
    let doubtful = doubtful(model, series.len(), rows, observer)?;
    let exogenous = series.columns_of(embedding)?;
    let every = (n / (MOST_FORECASTS / steps).max(LEAST_ORIGINS)).max(1);
    let mut all: Vec<(usize, Vec<f64>)> = Vec::new();
    for block in 0..BLOCKS {
        report(observer, "forecasting the past", block as u64, Some(BLOCKS as u64))?;
        let range = block * n / BLOCKS..(block + 1) * n / BLOCKS;
        // The first point of a path; what comes before it is known.
        let firsts: Vec<usize> = range.clone().step_by(every).map(|r| rows.points[r]).collect();
        let unseen = unseen_by(model, rows, range, steps, observer)?;
        let reach = embedding.reach();
        let starts = firsts.iter().map(|&first| Start {
            y: series.values[first - reach..first].to_vec(),
            exogenous: exogenous
                .iter()
                .map(|x| x[first - reach..(first + steps).min(x.len())].to_vec())
                .collect(),
        });
        let forecasts = paths(&unseen, embedding, starts.collect(), steps)?;
        all.extend(firsts.into_iter().zip(forecasts));
    }
    let (mut counts, mut columns) = (Vec::new(), Vec::new());
    let mut taken = Vec::new();
    for step in 1..=steps {
        taken.extend(embedding.points_taken(step));
        taken.sort_unstable();
        taken.dedup();
        let error = |(first, path): &(usize, Vec<f64>)| {
            let truth = series.values.get(first + step - 1).filter(|y| y.is_finite())?;
            let believed = !doubtful[first + step - 1];
            let from_good = taken.iter().all(|back| !doubtful[first - 1 - back]);
            let error = (truth - path[step - 1]).abs();
            // A path that ran away is off by more than any other.
            let error = if error.is_nan() { f64::MAX.sqrt() } else { error };
            believed.then_some((error, from_good))
        };
        let all: Vec<(f64, bool)> = all.iter().filter_map(error).collect();
        let mut sizes: Vec<(f64, f64)> =
            all.iter().filter(|(_, good)| *good).map(|(error, _)| (*error, 1.0)).collect();
        if sizes.len() < LEAST_PATHS.min(all.len()) {
            sizes = all.iter().map(|(error, _)| (*error, 1.0)).collect();
        }
        if sizes.is_empty() {
            break;
        }
        let good = Good::of(sizes, f64::INFINITY);
        counts.push(good.count);
        columns.push(good.quantiles);
    }
    let levels = columns.first().map_or(0, Vec::len);
    let quantiles = Mat::from_fn(levels, columns.len(), |i, j| columns[j][i]);
    Ok((counts, quantiles))
}

/// The model without the rows that paths from the origins of this block reach.
fn unseen_by(
    model: &Model,
    rows: &EmbeddedRows,
    block: Range<usize>,
    steps: usize,
    observer: &mut Observer<'_>,
) -> Result<Model> {
    // The row after row r is the one of the next point or of a later one.
    let end = (block.end + steps - 1).min(rows.points.len());
    let part = |places: Vec<usize>| {
        let x = Mat::from_fn(places.len(), rows.x.ncols(), |i, j| rows.x[(places[i], j)]);
        let y = Mat::from_fn(places.len(), 1, |i, _| rows.y[(places[i], 0)]);
        (x, Targets::Values(y))
    };
    let (x, targets) = part((block.start..end).collect());
    let mut unseen = model.clone();
    let forgotten =
        unseen.forget(Labelled { x: x.as_ref(), targets: &targets, weights: None }, observer);
    match forgotten {
        Ok(_) => Ok(unseen),
        Err(error) if error.category() == Category::Interrupted => Err(error),
        // Subtraction has lost the digits: what is left is added up.
        Err(_) => {
            let (x, targets) = part((0..block.start).chain(end..rows.points.len()).collect());
            model.sibling(Labelled { x: x.as_ref(), targets: &targets, weights: None }, observer)
        }
    }
}

/// By point, whether it is among wrong ones.
fn doubtful(
    model: &Model,
    points: usize,
    rows: &EmbeddedRows,
    observer: &mut Observer<'_>,
) -> Result<Vec<bool>> {
    let mut doubtful = vec![false; points];
    let targets = Targets::Values(rows.y.clone());
    let labelled = Labelled { x: rows.x.as_ref(), targets: &targets, weights: None };
    let distances = model.leave_one_out(labelled, observer)?.distances;
    let mut weights: Vec<f64> = distances.iter().map(|distance| distance * distance).collect();
    match model.report().loss {
        Loss::Squared => return Ok(doubtful),
        loss => loss.weigh(&mut weights),
    }
    let spread = statistics::median(&distances, None).map_or(0.0, |median| NORMAL * median);
    let far = distances.iter().zip(&weights).filter(|(_, weight)| **weight < HARDLY_BELIEVED);
    let edge = far.map(|(distance, _)| *distance).fold(f64::INFINITY, f64::min).max(FAR * spread);
    let sizes: Vec<(f64, f64)> = distances.iter().map(|distance| (*distance, 1.0)).collect();
    if matches!(Wrong::among(&sizes, edge), Wrong::None) {
        return Ok(doubtful);
    }
    for (&point, &distance) in rows.points.iter().zip(&distances) {
        doubtful[point] = distance >= edge;
    }
    Ok(doubtful)
}
