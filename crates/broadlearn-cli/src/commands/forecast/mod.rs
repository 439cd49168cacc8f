//! `broadlearn forecast`: the next points of a series.

mod labels;
mod times;
mod page;
mod scores;

use super::fit::save;
use super::predict::quoted;
use super::update::about;
use crate::context::Context;
use crate::data_args::{DataArgs, load_model};
use crate::fault::Fault;
use crate::format;
use crate::learning_args::{LearningArgs, share};
use crate::output::{self, Output};
use broadlearn::data::{Embedding, Exogenous, SeriesColumns, Task, TimeSeries};
use broadlearn::forecast::Evaluation;
use broadlearn::model::Learning;
use broadlearn::{Error, Forecaster};
use clap::Args;
use labels::{known_points, labels_ahead};
use page::{Story, page};
use scores::{say_scores, score_json};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn forecast sales.csv --column sales --lags 7 --horizon 14
  broadlearn forecast sales.csv --column sales --lags 7 --season 7 --season-lags 4 --time day \\
      --horizon 14 --evaluate 60 --page sales.html
  broadlearn forecast load.csv --column load --lags 24 --with temperature --known-ahead \\
      --future weather.csv --horizon 24
  broadlearn forecast sales.csv --column sales --lags 7 --horizon 14 --model sales.broad
  broadlearn forecast --model sales.broad may.csv --update --out next.csv

The rows of the table are the points, in their order and at equal distances. With --column a model is
fitted (and saved, with --model); without it the model FILE goes on where its series ended: points of a
further table come after those that it knows, and --update learns them.

Each forecast is an input of the next. Intervals are found by forecasts of the past that were made
without the points that follow; points that the model does not believe do not widen them.")]
pub(crate) struct ForecastArgs {
    /// The series, one point per row (CSV, JSON lines, Parquet, .npy, .npz; gzip too; - for stdin)
    #[arg(required_unless_present = "model", value_name = "SERIES")]
    data: Option<PathBuf>,
    /// The column to forecast: a name, a number from 1, or last
    #[arg(long, short, value_name = "COLUMN", required_unless_present = "model", requires_all = ["data", "lags"])]
    column: Option<String>,
    /// Steps to forecast [default: 1, or as many as the model has intervals for]
    #[arg(long, value_name = "N")]
    horizon: Option<usize>,
    /// The share of points that the intervals are to hold
    #[arg(long, value_name = "SHARE", default_value = "0.9", value_parser = share)]
    interval: f64,
    /// Hold out the last N points, forecast each from the points before it, and score the forecasts
    #[arg(long, value_name = "N")]
    evaluate: Option<usize>,
    /// Learn points as they come: the held-out ones, each after it was forecast, and those of a further table
    #[arg(long)]
    update: bool,
    /// The model: where it goes, with --column; else the one that goes on
    #[arg(long, short, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Where the forecasts go, as CSV [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page with pictures here (HTML)
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// A table of what is known ahead: the columns of --with, its first row the next point
    #[arg(long, value_name = "FILE")]
    future: Option<PathBuf>,

    /// Inputs: the last N points
    #[arg(long, value_name = "N", requires = "column", help_heading = "Inputs")]
    lags: Option<usize>,
    /// The distance between two lags, in points
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Inputs")]
    delay: usize,
    /// The points of a season, such as 12 for months
    #[arg(long, value_name = "N", requires = "column", help_heading = "Inputs")]
    season: Option<usize>,
    /// Further inputs: the points one season before, two seasons before, and so on
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "season",
        help_heading = "Inputs"
    )]
    season_lags: usize,
    /// Learn the differences of neighbouring points, so many times over: for series with a trend
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "column",
        help_heading = "Inputs"
    )]
    difference: usize,
    /// Learn the differences from the points one season before
    #[arg(long, requires = "season", help_heading = "Inputs")]
    season_difference: bool,
    /// Further columns, separated by commas
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        requires = "column",
        help_heading = "Inputs"
    )]
    with: Vec<String>,
    /// The values of further columns are known ahead: a point is forecast from those of its own row
    #[arg(long, requires = "with", conflicts_with = "with_lags", help_heading = "Inputs")]
    known_ahead: bool,
    /// How many points before the forecast one further columns are taken; 0 is known ahead [default:
    /// the horizon, so that no value is needed that is not there yet]
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        requires = "with",
        help_heading = "Inputs"
    )]
    with_lags: Vec<usize>,
    /// A column of times or labels, carried into output and page
    #[arg(long, value_name = "COLUMN", requires = "column", help_heading = "Inputs")]
    time: Option<String>,

    #[command(flatten)]
    learning: LearningArgs,
    #[command(flatten)]
    table: DataArgs,
}

pub(crate) fn run(args: &ForecastArgs, context: &Context) -> Result<(), Fault> {
    args.table.refuse_skipping()?;
    // What can be known to fail is said before the work.
    let outputs = args.model.iter().chain(&args.out).chain(&args.page);
    output::check_places(outputs, args.data.iter().chain(&args.future))?;
    output::check_stdout(context.json, args.out.as_deref())?;
    output::check_table(args.out.as_deref())?;
    if args.column.is_some() && args.model.as_deref() == Some(Path::new("-")) {
        return Err(Error::setting("model", "-")
            .expected("a file: the forecasts go to stdout")
            .into());
    }
    let horizon = |usual: usize| match args.horizon {
        Some(0) => Err(Error::setting("horizon", 0).expected("at least one step")),
        steps => Ok(steps.unwrap_or(usual)),
    };
    let (forecaster, series, evaluation, steps) = if let Some(column) = &args.column {
        let steps = horizon(1)?;
        let (forecaster, series, evaluation) = args.fit(column, steps, context)?;
        (forecaster, series, evaluation, steps)
    } else {
        let mut forecaster = args.load(context)?;
        let steps = horizon(forecaster.known_steps().max(1))?;
        let (series, evaluation) = args.go_on(&mut forecaster, steps, context)?;
        (forecaster, series, evaluation, steps)
    };
    let future = args.read_future(forecaster.embedding(), forecaster.last_labels(), context)?;
    // Scores were asked for, and need nothing from the future; forecasts would.
    let scores_only =
        evaluation.is_some() && future.is_none() && forecaster.embedding().needs_future();
    let (steps, forecast) = match scores_only {
        true => (0, Vec::new()),
        false => (steps, forecaster.forecast(steps, future.as_ref())?),
    };
    if scores_only {
        context
            .warn("no forecasts: they need values of the further columns to come (--future FILE)");
    }
    let half = forecaster.half_widths(args.interval, steps)?;
    if half.len() < steps {
        context.warn(format_args!(
            "intervals are known for {} only: {}",
            format::plural(half.len() as u64, "step"),
            match (half.len(), forecaster.model().updatable()) {
                (0, Err(_)) => "a compact model or one by pseudo-inverse has none",
                _ if args.column.is_some() => "the series is too short for more",
                (0, _) => "the series was too short for more",
                _ => "the model was fitted for a shorter horizon",
            }
        ));
    }
    let ahead: Vec<Ahead> = forecast
        .iter()
        .enumerate()
        .map(|(step, &forecast)| Ahead { forecast, half: half.get(step).copied() })
        .collect();
    let labels = labels_ahead(&forecaster, future.as_ref(), steps);
    if let Some(path) = args.model.as_deref().filter(|_| args.column.is_some() || args.update) {
        save(forecaster.model(), path)?;
    }
    if let Some(path) = &args.page {
        let story = Story {
            forecaster: &forecaster,
            series: series.as_ref(),
            ahead: &ahead,
            labels: labels.as_ref().map(|(name, labels)| (name.as_str(), labels.as_slice())),
            evaluation: evaluation.as_ref(),
            level: args.interval,
            update: args.update,
        };
        output::write_file(path, &page(&story))?;
    }
    if let Some(evaluation) = &evaluation {
        say_scores(evaluation, args, context);
    }
    args.write(&forecaster, &ahead, labels.as_ref(), evaluation.as_ref(), context)
}

/// A point to come.
pub(super) struct Ahead {
    pub(super) forecast: f64,
    pub(super) half: Option<f64>,
}

type Fitted = (Forecaster, Option<TimeSeries>, Option<Evaluation>);

impl ForecastArgs {
    /// A new model of a series.
    fn fit(&self, column: &str, steps: usize, context: &Context) -> Result<Fitted, Fault> {
        let settings = self.learning.settings(Task::Regression)?;
        if self.update && self.evaluate.is_none() {
            return Err(Error::setting("update", "a new model, which learns all points at once")
                .expected("--evaluate N, or a model that goes on (without --column)")
                .into());
        }
        let mut embedding = self.embedding(column, steps);
        embedding.check()?;
        let data = self.data.as_deref().unwrap_or(Path::new("-"));
        let columns = SeriesColumns {
            column: Some(column.to_owned()),
            exogenous: self.with.clone(),
            time: self.time.clone(),
        };
        let series = self.read(data, &columns, &[], context)?;
        // Columns may have been given by their numbers.
        embedding.column = series.column.clone();
        for (own, (name, _)) in embedding.exogenous.iter_mut().zip(&series.exogenous) {
            own.name = name.clone();
        }
        let fit = |series: &TimeSeries| {
            let fitted = Forecaster::fit(
                settings.clone(),
                embedding.clone(),
                series,
                steps,
                &mut context.observer(),
            );
            context.end_progress();
            fitted.map_err(|error| about(error, data))
        };
        let Some(count) = self.evaluate else {
            let forecaster = fit(&series)?;
            self.say_rows(&forecaster, &series, context);
            return Ok((forecaster, Some(series), None));
        };
        let (before, held_out) = self.hold_out(&series, count, 1)?;
        let mut forecaster = fit(&before)?;
        let evaluation = self.score(&mut forecaster, &held_out, steps, context)?;
        if !self.update {
            // The scores are those of a model without the held-out points; the forecast knows all of them.
            forecaster = fit(&series)?;
        }
        self.say_rows(&forecaster, &series, context);
        Ok((forecaster, Some(series), Some(evaluation)))
    }

    /// The model that goes on.
    fn load(&self, context: &Context) -> Result<Forecaster, Fault> {
        if !self.learning.is_usual() || self.delay != 1 {
            return Err(Error::setting("column", "nothing, with options of fitting")
                .expected("--column for a new model, or none of these options")
                .advice("a model goes on as it was fitted")
                .into());
        }
        let Some(path) = &self.model else {
            return Err(Error::setting("column", "nothing").expected("a column or --model").into());
        };
        let forecaster = Forecaster::new(load_model(path, self.data.as_deref())?)
            .map_err(|error| error.within(&path.display().to_string()))?;
        if self.update && path == Path::new("-") {
            return Err(Error::setting("model", "-, with --update")
                .expected("a file, in which the model goes on")
                .into());
        }
        let embedding = forecaster.embedding();
        context.say(format_args!(
            "series {}: {} so far, {} learnt",
            embedding.column,
            format::plural(forecaster.points(), "point"),
            format::plural(forecaster.model().rows(), "row")
        ));
        Ok(forecaster)
    }

    /// Further points of a series.
    fn go_on(
        &self,
        forecaster: &mut Forecaster,
        steps: usize,
        context: &Context,
    ) -> Result<(Option<TimeSeries>, Option<Evaluation>), Fault> {
        let Some(data) = &self.data else {
            let option = match (self.update, self.evaluate) {
                (true, _) => "update",
                (_, Some(_)) => "evaluate",
                _ => return Ok((None, None)),
            };
            return Err(Error::setting(option, "no further points")
                .expected(format!("a table of them, with --{option}"))
                .into());
        };
        let embedding = forecaster.embedding();
        let columns = SeriesColumns {
            column: Some(embedding.column.clone()),
            exogenous: embedding.exogenous.iter().map(|column| column.name.clone()).collect(),
            time: forecaster.last_labels().map(|(name, _)| name.to_owned()),
        };
        let missing = &forecaster.model().schema().missing;
        let mut series = self.read(data, &columns, missing, context)?;
        let known = known_points(forecaster, &series);
        if known > 0 {
            series = series.split(known).1;
            context.say(format_args!(
                "left out {} that the model knows already",
                format::plural(known as u64, "point")
            ));
        }
        if series.is_empty() && (self.update || self.evaluate.is_some()) {
            return Err(Error::data("no further points")
                .at(data.display().to_string())
                .expected("points after those that the model knows")
                .into());
        }
        let (before, held_out) = match self.evaluate {
            Some(count) => self.hold_out(&series, count, 0)?,
            None => series.split(series.len()),
        };
        if !before.is_empty() {
            self.take(forecaster, &before, data, context)?;
        }
        let evaluation = match self.evaluate {
            Some(_) => Some(self.score(forecaster, &held_out, steps, context)?),
            None => None,
        };
        Ok((Some(series), evaluation))
    }

    /// Learns points, or only notes them.
    fn take(
        &self,
        forecaster: &mut Forecaster,
        points: &TimeSeries,
        data: &Path,
        context: &Context,
    ) -> Result<(), Fault> {
        if !self.update {
            forecaster.observe(points)?;
            context.say(format_args!(
                "{} noted, not learnt (--update learns them)",
                format::plural(points.len() as u64, "point")
            ));
            return Ok(());
        }
        let arrived = forecaster
            .learn(points, Learning::default(), &mut context.observer())
            .map_err(|error| about(error, data))?;
        context.end_progress();
        let trust = arrived.learnt.map(|learnt| learnt.trust).unwrap_or_default();
        let low = trust.iter().filter(|trust| **trust < 0.5).count();
        context.say(format_args!(
            "learnt {}, left out {} without inputs or value; {low} have a weight below 0.5",
            format::plural(arrived.rows as u64, "point"),
            arrived.left_out
        ));
        Ok(())
    }

    fn score(
        &self,
        forecaster: &mut Forecaster,
        held_out: &TimeSeries,
        steps: usize,
        context: &Context,
    ) -> Result<Evaluation, Fault> {
        let learning = self.update.then(Learning::default);
        let mut observer = context.observer();
        let scored = forecaster.evaluate(held_out, steps, self.interval, learning, &mut observer);
        drop(observer);
        context.end_progress();
        Ok(scored?)
    }

    /// The points before the last `count`, of which there are at least `least`, and these.
    fn hold_out(
        &self,
        series: &TimeSeries,
        count: usize,
        least: usize,
    ) -> Result<(TimeSeries, TimeSeries), Fault> {
        if count == 0 || count + least > series.len() {
            return Err(Error::setting("evaluate", count)
                .expected(format!("1 to {} held-out points", series.len().saturating_sub(least)))
                .into());
        }
        Ok(series.split(series.len() - count))
    }

    fn embedding(&self, column: &str, steps: usize) -> Embedding {
        let lags = match (self.known_ahead, self.with_lags.is_empty()) {
            (true, _) => vec![0],
            (false, true) => vec![steps],
            (false, false) => self.with_lags.clone(),
        };
        let exogenous = |name: &String| Exogenous { name: name.clone(), lags: lags.clone() };
        Embedding {
            column: column.to_owned(),
            lags: self.lags.unwrap_or(0),
            delay: self.delay,
            season: self.season,
            season_lags: self.season_lags,
            differences: self.difference,
            season_differences: usize::from(self.season_difference),
            exogenous: self.with.iter().map(exogenous).collect(),
        }
    }

    fn read(
        &self,
        path: &Path,
        columns: &SeriesColumns,
        missing: &[String],
        context: &Context,
    ) -> Result<TimeSeries, Fault> {
        let mut options = self.table.options();
        options.missing.extend(missing.iter().cloned());
        let mut reader = broadlearn::data::TableReader::open(path, &options)?;
        let series = TimeSeries::read(&mut reader, columns, &mut context.observer())?;
        context.end_progress();
        if let Some((column, labels)) = &series.labels {
            let oddity = times::check(labels, column).map_err(|error| about(error, path))?;
            oddity.iter().for_each(|oddity| context.warn(oddity));
        }
        Ok(series)
    }

    fn read_future(
        &self,
        embedding: &Embedding,
        time: Option<(&str, &[String])>,
        context: &Context,
    ) -> Result<Option<TimeSeries>, Fault> {
        let Some(path) = &self.future else { return Ok(None) };
        if embedding.exogenous.is_empty() {
            return Err(Error::setting("future", path.display())
                .expected("a table of further columns, for a model that has some (--with)")
                .into());
        }
        let reader = self.table.open(path)?;
        let named = time.filter(|(name, _)| reader.columns().iter().any(|own| own == name));
        let columns = SeriesColumns {
            column: None,
            exogenous: embedding.exogenous.iter().map(|column| column.name.clone()).collect(),
            time: named.map(|(name, _)| name.to_owned()),
        };
        drop(reader);
        self.read(path, &columns, &[], context).map(Some)
    }

    fn say_rows(&self, forecaster: &Forecaster, series: &TimeSeries, context: &Context) {
        let (rows, reach) = (forecaster.model().rows(), forecaster.embedding().reach());
        let whole = (series.len() - reach.min(series.len())) as u64;
        let gaps = match whole.saturating_sub(rows) {
            0 => String::new(),
            gaps => format!("; left out {} that touch missing values", format::plural(gaps, "row")),
        };
        context.say(format_args!(
            "series {}: {}, {} of {}{gaps}",
            series.column,
            format::plural(series.len() as u64, "point"),
            format::plural(rows, "row"),
            format::plural(forecaster.model().schema().inputs.len() as u64, "input"),
        ));
    }

    /// The forecasts as CSV, or all that is known as JSON.
    fn write(
        &self,
        forecaster: &Forecaster,
        ahead: &[Ahead],
        labels: Option<&(String, Vec<String>)>,
        evaluation: Option<&Evaluation>,
        context: &Context,
    ) -> Result<(), Fault> {
        if !context.json || self.out.is_some() {
            let head = labels.map_or("step".to_owned(), |(name, _)| quoted(name));
            let mut text = format!("{head},forecast,low,high\n");
            for (step, point) in ahead.iter().enumerate() {
                let label = match labels {
                    Some((_, labels)) => quoted(&labels[step]),
                    None => (step + 1).to_string(),
                };
                let _ = match point.half {
                    Some(half) => writeln!(
                        text,
                        "{label},{:?},{:?},{:?}",
                        point.forecast,
                        point.forecast - half,
                        point.forecast + half
                    ),
                    None => writeln!(text, "{label},{:?},,", point.forecast),
                };
            }
            let mut output = Output::open(self.out.as_deref())?;
            output.write(text.as_bytes())?;
            output.finish()?;
        }
        if !context.json || self.out.as_deref() == Some(Path::new("-")) {
            return Ok(());
        }
        let points: Vec<Value> = ahead
            .iter()
            .enumerate()
            .map(|(step, point)| {
                json!({
                    "step": step + 1,
                    "time": labels.map(|(_, labels)| &labels[step]),
                    "forecast": point.forecast,
                    "low": point.half.map(|half| point.forecast - half),
                    "high": point.half.map(|half| point.forecast + half),
                })
            })
            .collect();
        let embedding = forecaster.embedding();
        output::print_json(&json!({
            "column": embedding.column,
            "inputs": embedding.input_names(),
            "points": forecaster.points(),
            "rows": forecaster.model().rows(),
            "interval": self.interval,
            "forecast": points,
            "evaluation": evaluation.map(|evaluation| json!({
                "points": self.evaluate,
                "updated": self.update,
                "left_out": evaluation.left_out,
                "steps": evaluation.steps.iter().map(score_json).collect::<Vec<_>>(),
            })),
            "model": self.model,
            "page": self.page,
        }))
    }
}
