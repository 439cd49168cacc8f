//! Rolling origins: every held-out point is forecast from the points before it.

use super::paths::{Start, paths};
use super::{Forecaster, check_steps};
use crate::data::TimeSeries;
use crate::error::{Error, Result};
use crate::model::Learning;
use crate::progress::{Observer, report};

/// A forecast of a point whose value is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForecastPoint {
    /// The place of the point among the held-out ones, from 0.
    pub point: usize,
    /// How many steps ahead it was forecast.
    pub step: usize,
    /// The forecast.
    pub forecast: f64,
    /// What was subtracted from and added to it; infinite where that is not known.
    pub half_width: f64,
    /// The value.
    pub truth: f64,
    /// The point before the origin: what the naive forecast says.
    pub naive: f64,
    /// The latest known point of the same season; NaN without a season.
    pub seasonal_naive: f64,
}

/// How good forecasts of one step ahead are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepScore {
    /// How many steps ahead.
    pub step: usize,
    /// The forecasts of this step.
    pub count: usize,
    /// The root of the mean squared error.
    pub rmse: f64,
    /// The mean absolute error.
    pub mae: f64,
    /// The mean absolute error over that of the naive forecast one step ahead in training.
    pub mase: Option<f64>,
    /// The same for the naive forecast one season ahead.
    pub seasonal_mase: Option<f64>,
    /// The mean absolute error of the naive forecast from the same origins.
    pub naive_mae: Option<f64>,
    /// That of the seasonal naive forecast.
    pub seasonal_naive_mae: Option<f64>,
    /// The share of points within the intervals; `None` where these are not known.
    pub coverage: Option<f64>,
}

/// What came of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// By step ahead.
    pub steps: Vec<StepScore>,
    /// All forecasts of points with a value, by origin, then by step.
    pub points: Vec<ForecastPoint>,
    /// Forecasts that could not be made, for want of inputs.
    pub left_out: usize,
}

impl Forecaster {
    /// Forecasts the next points from every origin among them, and notes them one after the other; with
    /// `learning`, each is learnt after it was forecast.
    ///
    /// # Errors
    /// No points, no steps, a level that is not between 0 and 1; as [`learn`](Self::learn).
    pub fn evaluate(
        &mut self,
        further: &TimeSeries,
        steps: usize,
        level: f64,
        learning: Option<Learning>,
        observer: &mut Observer<'_>,
    ) -> Result<Evaluation> {
        let embedding = self.embedding().clone();
        check_steps(&embedding, steps)?;
        if further.is_empty() {
            return Err(Error::setting("evaluate", 0).expected("at least one point"));
        }
        let half = self.half_widths(level, steps)?;
        let season = embedding.season.unwrap_or(0);
        let mut y = self.tail();
        let kept = y.len();
        y.extend(&further.values);
        let mut exogenous: Vec<Vec<f64>> =
            (1..=embedding.exogenous.len()).map(|column| self.tail_column(column)).collect();
        for (column, new) in exogenous.iter_mut().zip(further.columns_of(&embedding)?) {
            column.extend(new);
        }
        let start = |origin: usize| Start {
            y: y[origin..origin + kept].to_vec(),
            exogenous: exogenous
                .iter()
                .map(|x| x[origin..(origin + kept + steps).min(x.len())].to_vec())
                .collect(),
        };
        let n = further.len();
        let mut forecasts: Vec<Vec<f64>> = Vec::with_capacity(n);
        match learning {
            None => {
                forecasts = paths(&self.model, &embedding, (0..n).map(start).collect(), steps)?;
                self.observe(further)?;
            }
            Some(learning) => {
                let original = self.clone();
                for origin in 0..n {
                    let next = further.split(origin).1.split(1).0;
                    let mut go = || -> Result<Vec<Vec<f64>>> {
                        report(observer, "forecasting points", origin as u64, Some(n as u64))?;
                        let path = paths(&self.model, &embedding, vec![start(origin)], steps)?;
                        self.learn(&next, learning, &mut crate::unobserved)?;
                        Ok(path)
                    };
                    match go() {
                        Ok(path) => forecasts.extend(path),
                        Err(error) => {
                            *self = original;
                            return Err(error);
                        }
                    }
                }
            }
        }
        let (mut points, mut left_out) = (Vec::new(), 0);
        for (origin, path) in forecasts.iter().enumerate() {
            for (place, &forecast) in path.iter().enumerate().take(n - origin) {
                let at = kept + origin + place;
                let known = |back: usize| (kept + origin).checked_sub(back).map(|at| y[at]);
                if y[at].is_nan() {
                    continue;
                }
                if forecast.is_nan() {
                    left_out += 1;
                    continue;
                }
                // The latest point of the same season that is known at the origin.
                let back = (season > 0).then(|| season * (place / season.max(1) + 1) - place);
                points.push(ForecastPoint {
                    point: origin + place,
                    step: place + 1,
                    forecast,
                    half_width: half.get(place).copied().unwrap_or(f64::INFINITY),
                    truth: y[at],
                    naive: known(1).unwrap_or(f64::NAN),
                    seasonal_naive: back.and_then(known).unwrap_or(f64::NAN),
                });
            }
        }
        if points.is_empty() {
            return Err(Error::data("no point that could be forecast and has a value")
                .at("the held-out points")
                .expected("values, and points without a gap before them"));
        }
        let steps = (1..=steps.min(n)).filter_map(|step| self.score(&points, step)).collect();
        Ok(Evaluation { steps, points, left_out })
    }

    fn score(&self, points: &[ForecastPoint], step: usize) -> Option<StepScore> {
        let own: Vec<&ForecastPoint> = points.iter().filter(|point| point.step == step).collect();
        let mean = |of: &dyn Fn(&ForecastPoint) -> f64| {
            let values: Vec<f64> = own.iter().map(|p| of(p)).filter(|v| !v.is_nan()).collect();
            let sum: f64 = values.iter().sum();
            (!values.is_empty()).then(|| sum / values.len() as f64)
        };
        let facts = &self.continuation().facts;
        let mae = mean(&|point| (point.truth - point.forecast).abs())?;
        let scaled = |scale: Option<f64>| scale.filter(|scale| *scale > 0.0).map(|s| mae / s);
        Some(StepScore {
            step,
            count: own.len(),
            rmse: mean(&|point| (point.truth - point.forecast).powi(2))?.sqrt(),
            mae,
            mase: scaled(facts.naive),
            seasonal_mase: scaled(facts.seasonal_naive),
            naive_mae: mean(&|point| (point.truth - point.naive).abs()),
            seasonal_naive_mae: mean(&|point| (point.truth - point.seasonal_naive).abs()),
            coverage: match own.iter().all(|point| point.half_width.is_finite()) {
                true => mean(&|p| f64::from((p.truth - p.forecast).abs() <= p.half_width)),
                false => None,
            },
        })
    }
}
