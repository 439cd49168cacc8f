//! Stage 9: series. A model of rows that an embedding makes of a series forecasts its next points.
//!
//! `paths.rs` feeds forecasts back, `intervals.rs` finds how far they are off, `evaluation.rs` scores them from
//! rolling origins.

mod paths;
mod intervals;
mod evaluation;

pub use evaluation::{Evaluation, ForecastPoint, StepScore};

use crate::data::{Embedding, Targets, TimeSeries, embed};
use crate::error::{Error, Result};
use crate::model::{
    Continuation, Labelled, Learning, Learnt, Model, SeriesFacts, Settings, Training,
};
use crate::progress::Observer;
use faer::Mat;
use paths::{Start, paths};

/// A model that forecasts a series, up to the last point that it was told.
///
/// ```
/// use broadlearn::data::{Embedding, TimeSeries};
/// use broadlearn::{Forecaster, Settings, unobserved};
/// let wave = |t: usize| (t as f64 * 0.3).sin();
/// let series = TimeSeries::new("wave", (0..300).map(wave).collect());
/// let settings = Settings::new().squared().enhancement_nodes(20).ridge(1e-9);
/// let forecaster =
///     Forecaster::fit(settings, Embedding::of("wave", 4), &series, 5, &mut unobserved)?;
/// let ahead = forecaster.forecast(5, None)?;
/// assert!((ahead[4] - wave(304)).abs() < 1e-3);
/// assert_eq!(forecaster.half_widths(0.9, 5)?.len(), 5);
/// # Ok::<(), broadlearn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Forecaster {
    model: Model,
}

/// What came of further points.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The points that had a row: a value of their own and all inputs.
    pub rows: usize,
    /// The others.
    pub left_out: usize,
    /// What the model said of the rows and how it weighed them; `None` if there was none.
    pub learnt: Option<Learnt>,
}

impl Forecaster {
    /// Learns the rows of a series; the errors of forecasts are found for so many steps ahead.
    ///
    /// # Errors
    /// An embedding that makes no sense, a series that is too short for it, settings out of range,
    /// `Interrupted`.
    pub fn fit(
        settings: Settings,
        embedding: Embedding,
        series: &TimeSeries,
        steps: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        embedding.check()?;
        check_steps(&embedding, steps)?;
        if let Some(place) = series.values.iter().position(|value| value.is_infinite()) {
            return Err(Error::data("an infinite value")
                .at(format!("point {}", place + 1))
                .expected("finite numbers"));
        }
        let exogenous = series.columns_of(&embedding)?;
        let rows = embed(&embedding, &series.values, &exogenous, 0);
        check_length(&embedding, series, rows.points.len())?;
        let targets = Targets::Values(rows.y.clone());
        let schema = embedding.schema();
        let training = Training { x: rows.x.as_ref(), targets: &targets, weights: None, schema };
        let mut model = settings.fit(training, observer)?;
        let (paths, quantiles) =
            intervals::errors(&model, &embedding, series, &rows, steps, observer)?;
        let facts = SeriesFacts {
            points: 0,
            tail: vec![vec![None; embedding.kept()]; 1 + embedding.exogenous.len()],
            time: None,
            naive: naive_error(&series.values, 1),
            seasonal_naive: embedding.season.and_then(|lag| naive_error(&series.values, lag)),
            paths,
            embedding,
        };
        *model.continuation_mut() = Some(Continuation { facts, quantiles });
        let mut forecaster = Self { model };
        forecaster.observe(series)?;
        Ok(forecaster)
    }

    /// A forecaster from a model that was saved.
    ///
    /// # Errors
    /// A model of a table, which knows of no series.
    pub fn new(model: Model) -> Result<Self> {
        match model.continuation() {
            Some(_) => Ok(Self { model }),
            None => Err(Error::model("a model of a table, not of a series")
                .expected("a model that `broadlearn forecast` wrote")
                .advice(
                    "fit one: broadlearn forecast SERIES.csv --column Y --lags 7 --model FILE",
                )),
        }
    }

    /// The model, which can be saved.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// How the series is embedded.
    pub fn embedding(&self) -> &Embedding {
        &self.continuation().facts.embedding
    }

    /// The number of points so far.
    pub fn points(&self) -> u64 {
        self.continuation().facts.points
    }

    /// The column of labels, and the last two of them.
    pub fn last_labels(&self) -> Option<(&str, &[String])> {
        self.continuation().facts.time.as_ref().map(|(name, last)| (name.as_str(), last.as_slice()))
    }

    /// The number of steps for which the errors of forecasts are known.
    pub fn known_steps(&self) -> usize {
        self.continuation().facts.paths.len()
    }

    /// The last points of the series, as many as forecasts need; NaN for a missing one.
    pub fn tail(&self) -> Vec<f64> {
        self.tail_column(0)
    }

    /// The next points, each made of the ones before it. Further columns that must be known ahead are taken
    /// from `future`, whose first point is the next one.
    ///
    /// # Errors
    /// No steps, points missing at the end of the series or in `future`, more steps than lagged columns allow.
    pub fn forecast(&self, steps: usize, future: Option<&TimeSeries>) -> Result<Vec<f64>> {
        let embedding = self.embedding();
        check_steps(embedding, steps)?;
        let start = self.start(steps, future)?;
        let path = paths(&self.model, embedding, vec![start], steps)?;
        let values = &path[0];
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values.clone()),
            Some(step) => Err(self.why_not(step + 1, steps, future)),
        }
    }

    /// What to subtract from and add to the forecasts so that they hold this share of the points to come, by
    /// step; of no more steps than are known.
    ///
    /// # Errors
    /// A level that is not between 0 and 1, or one that the length of the series does not bear.
    pub fn half_widths(&self, level: f64, steps: usize) -> Result<Vec<f64>> {
        self.continuation().half_widths(level, steps)
    }

    /// Notes the next points without learning them.
    ///
    /// # Errors
    /// Further columns that are not there.
    pub fn observe(&mut self, further: &TimeSeries) -> Result<()> {
        let exogenous = further.columns_of(self.embedding())?;
        let Some(continuation) = self.model.continuation_mut() else { return Ok(()) };
        let facts = &mut continuation.facts;
        let columns = std::iter::once(&further.values).chain(&exogenous);
        for (tail, values) in facts.tail.iter_mut().zip(columns) {
            let length = tail.len();
            tail.extend(values.iter().map(|value| value.is_finite().then_some(*value)));
            tail.drain(..tail.len() - length);
        }
        facts.points += further.len() as u64;
        if let Some((name, labels)) = &further.labels {
            let mut last = facts.time.take().map_or_else(Vec::new, |(_, last)| last);
            last.extend(labels.iter().rev().take(2).rev().cloned());
            last.drain(..last.len().saturating_sub(2));
            facts.time = Some((name.clone(), last));
        }
        Ok(())
    }

    /// Learns the next points, as [`Model::learn`] learns their rows, and notes them.
    ///
    /// # Errors
    /// As [`Model::learn`]; nothing is changed then.
    pub fn learn(
        &mut self,
        further: &TimeSeries,
        learning: Learning,
        observer: &mut Observer<'_>,
    ) -> Result<Arrived> {
        let embedding = self.embedding();
        let mut y = self.tail();
        let kept = y.len();
        y.extend(&further.values);
        let new = further.columns_of(embedding)?;
        let mut exogenous: Vec<Vec<f64>> = (1..=new.len()).map(|c| self.tail_column(c)).collect();
        exogenous.iter_mut().zip(&new).for_each(|(column, new)| column.extend(new));
        let rows = embed(embedding, &y, &exogenous, kept);
        let count = rows.points.len();
        let learnt = if count > 0 {
            let targets = Targets::Values(rows.y);
            let labelled = Labelled { x: rows.x.as_ref(), targets: &targets, weights: None };
            Some(self.model.learn(labelled, learning, observer)?)
        } else {
            None
        };
        self.observe(further)?;
        Ok(Arrived { rows: count, left_out: further.len() - count, learnt })
    }

    fn continuation(&self) -> &Continuation {
        match self.model.continuation() {
            Some(continuation) => continuation,
            None => unreachable!("a forecaster is made of a model with a series"),
        }
    }

    fn tail_column(&self, column: usize) -> Vec<f64> {
        let tail = &self.continuation().facts.tail[column];
        tail.iter().map(|value| value.unwrap_or(f64::NAN)).collect()
    }

    /// Where the next forecast starts.
    fn start(&self, steps: usize, future: Option<&TimeSeries>) -> Result<Start> {
        let embedding = self.embedding();
        let count = embedding.exogenous.len();
        let mut exogenous: Vec<Vec<f64>> = (1..=count).map(|c| self.tail_column(c)).collect();
        if let Some(future) = future {
            let ahead = future.columns_of(embedding)?;
            for (column, ahead) in exogenous.iter_mut().zip(ahead) {
                column.extend(ahead.iter().take(steps));
            }
        }
        Ok(Start { y: self.tail(), exogenous })
    }

    /// Why this step has no forecast.
    fn why_not(&self, step: usize, steps: usize, future: Option<&TimeSeries>) -> Error {
        let embedding = self.embedding();
        if embedding.needs_future() {
            let known = future.map_or(0, TimeSeries::len);
            if known < steps {
                return Error::data(format!("values of further columns for {known} steps"))
                    .expected(format!("values for {steps}, as they are known ahead"))
                    .advice("give them in a table: --future FILE, its first row the next point");
            }
            let column = |column: &&crate::data::Exogenous| {
                let values = future.and_then(|f| f.exogenous.iter().find(|c| c.0 == column.name));
                values.is_some_and(|(_, values)| values[..step].iter().any(|v| v.is_nan()))
            };
            if let Some(column) = embedding.exogenous.iter().find(column) {
                return Error::data("a missing value")
                    .at(format!("the table of the future, column `{}`", column.name))
                    .expected(format!("values for {steps} steps"));
            }
        }
        let tail = &self.continuation().facts.tail;
        let names = std::iter::once(&embedding.column)
            .chain(embedding.exogenous.iter().map(|column| &column.name));
        for (name, values) in names.zip(tail) {
            let (reach, known) = (embedding.reach(), self.points());
            let last = &values[values.len() - reach.min(values.len())..];
            if let Some(place) = last.iter().rposition(Option::is_none) {
                let back = reach - place;
                let found = if (back as u64) > known {
                    format!("{known} points")
                } else {
                    format!("no value at the point {back} before the next one")
                };
                return Error::data(found)
                    .at(format!("series `{name}`"))
                    .expected(format!("the last {reach} points, which the lags ask for"))
                    .advice("fill the gap or end the series before it; or use fewer lags");
            }
        }
        Error::numeric(format!("the forecast grows beyond all bounds at step {step}"))
            .advice("ask for fewer steps, or take differences with fewer lags")
    }
}

/// The mean of |y(t) - y(t - lag)|.
fn naive_error(y: &[f64], lag: usize) -> Option<f64> {
    let steps = y.iter().skip(lag).zip(y).map(|(now, before)| (now - before).abs());
    let steps: Vec<f64> = steps.filter(|step| step.is_finite()).collect();
    (!steps.is_empty()).then(|| steps.iter().sum::<f64>() / steps.len() as f64)
}

fn check_steps(embedding: &Embedding, steps: usize) -> Result<()> {
    const MOST: usize = 100_000;
    if steps == 0 || steps > MOST {
        return Err(Error::setting("horizon", steps).expected(format!("1 to {MOST} steps")));
    }
    match embedding.most_steps() {
        Some(most) if steps > most => Err(Error::setting("horizon", steps)
            .expected(format!("at most {most}: a further column is taken {most} points before"))
            .advice("use longer lags (--with-lags), or --known-ahead with --future FILE")),
        _ => Ok(()),
    }
}

fn check_length(embedding: &Embedding, series: &TimeSeries, rows: usize) -> Result<()> {
    // Two rows are the least that a model can be fitted on.
    if rows >= 2 {
        return Ok(());
    }
    let missing = match series.missing() {
        0 => String::new(),
        missing => format!(", {missing} of them missing"),
    };
    Err(Error::data(format!("{} points{missing}, which make {rows} rows", series.len()))
        .at(format!("series `{}`", series.column))
        .expected(format!("at least {} in a row", embedding.reach() + 2))
        .advice("use fewer lags, a shorter season or no differences; or a longer series"))
}

/// A column of numbers as a matrix.
fn rows_of(rows: &[Vec<f64>], width: usize) -> Mat<f64> {
    Mat::from_fn(rows.len(), width, |i, j| rows[i][j])
}
