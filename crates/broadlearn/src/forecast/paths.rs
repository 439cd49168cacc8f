//! Forecasts of several steps: each is an input of the next.

use super::rows_of;
use crate::data::Embedding;
use crate::error::Result;
use crate::model::Model;

/// Where a path of forecasts begins.
pub(super) struct Start {
    /// The last points, as many as the embedding reaches back.
    pub(super) y: Vec<f64>,
    /// The same points of the further columns, and those ahead that are known.
    pub(super) exogenous: Vec<Vec<f64>>,
}

/// Beyond this a forecast has run away: its square could not be added up any more.
const BOUND: f64 = 1e100;

/// The next points from each start; NaN from the first step on that lacks an input or runs away.
pub(super) fn paths(
    model: &Model,
    embedding: &Embedding,
    mut starts: Vec<Start>,
    steps: usize,
) -> Result<Vec<Vec<f64>>> {
    let plan = embedding.plan();
    let width = model.map().inputs();
    let mut all: Vec<Vec<f64>> = vec![Vec::with_capacity(steps); starts.len()];
    for _ in 0..steps {
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for (place, start) in starts.iter().enumerate() {
            let row = plan.inputs(&start.y, &start.exogenous, start.y.len());
            if row.iter().all(|value| value.is_finite()) {
                places.push(place);
                rows.push(row);
            }
        }
        let mut next = vec![f64::NAN; starts.len()];
        if !rows.is_empty() {
            let predicted = model.predict(&rows_of(&rows, width))?;
            for (row, &place) in places.iter().enumerate() {
                let y = plan.integrated(&starts[place].y, predicted.values()[(row, 0)]);
                next[place] = if y.abs() < BOUND { y } else { f64::NAN };
            }
        }
        for ((start, path), next) in starts.iter_mut().zip(&mut all).zip(next) {
            start.y.push(next);
            path.push(next);
        }
    }
    Ok(all)
}
