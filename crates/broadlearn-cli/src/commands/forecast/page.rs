//! The page of `forecast`: the series, what comes next, how such forecasts did, and what they missed.

use super::super::fit::add_solver;
use super::Ahead;
use super::labels::{date, days};
use super::scores::score_rows;
use crate::format;
use broadlearn::Forecaster;
use broadlearn::data::TimeSeries;
use broadlearn::forecast::{Evaluation, ForecastPoint};
use broadlearn_report::{Card, Chart, Page, Series, Table};

/// Points of the past in the picture: some times the horizon, but not fewer.
const PAST: usize = 6;
const LEAST_PAST: usize = 120;
/// Forecasts in a table, at most.
const MOST_ROWS: usize = 40;

/// All that the page tells.
pub(super) struct Story<'a> {
    pub(super) forecaster: &'a Forecaster,
    pub(super) series: Option<&'a TimeSeries>,
    pub(super) ahead: &'a [Ahead],
    pub(super) labels: Option<(&'a str, &'a [String])>,
    pub(super) evaluation: Option<&'a Evaluation>,
    pub(super) level: f64,
    pub(super) update: bool,
}

/// Where points are on the horizontal axis.
struct Places {
    label: String,
    past: Vec<f64>,
    step: f64,
}

impl Places {
    /// By time, if all labels are numbers or dates in ascending order; else by number.
    fn new(story: &Story<'_>, count: usize) -> Self {
        let points = story.forecaster.points() as f64;
        let numbers: Vec<f64> = (0..count).map(|i| points - (count - i) as f64 + 1.0).collect();
        let labels = story.series.and_then(|series| series.labels.as_ref());
        if let Some((name, labels)) = labels.filter(|(_, labels)| labels.len() == count) {
            let places: Option<Vec<f64>> = labels.iter().map(|label| place(label)).collect();
            let ascending = |places: &Vec<f64>| places.windows(2).all(|pair| pair[0] < pair[1]);
            if let Some(past) = places.filter(ascending).filter(|places| places.len() > 1) {
                let step = (past[count - 1] - past[0]) / (count - 1) as f64;
                let are_dates = labels.iter().all(|label| date(label).is_some());
                let label = if are_dates { format!("{name}, as a year") } else { name.clone() };
                return Self { label, past, step };
            }
        }
        Self { label: "point".into(), past: numbers, step: 1.0 }
    }

    fn ahead(&self, step: usize) -> f64 {
        self.past.last().copied().unwrap_or(0.0) + self.step * step as f64
    }
}

/// A number, or a date as a year with its fraction.
fn place(label: &str) -> Option<f64> {
    if let Ok(number) = label.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    let (year, month, day) = date(label)?;
    Some(1970.0 + days(year, month, day.unwrap_or(1)) as f64 / 365.2425)
}

pub(super) fn page(story: &Story<'_>) -> String {
    let forecaster = story.forecaster;
    let name = &forecaster.embedding().column;
    let tail;
    let values = match story.series.filter(|series| !series.is_empty()) {
        Some(series) => &series.values,
        None => {
            tail = forecaster.tail();
            &tail
        }
    };
    let places = Places::new(story, values.len());
    let steps = story.ahead.len();
    let percent = format::setting(100.0 * story.level);
    let mut page = Page::new(format!("Forecast of {name}")).lead(format!(
        "{} ahead, from {}, which made {} to learn.",
        format::plural(steps as u64, "step"),
        format::plural(forecaster.points(), "point"),
        format::plural(forecaster.model().rows(), "row"),
    ));

    let shown = values.len().min((PAST * steps).max(LEAST_PAST));
    let from = values.len() - shown;
    let past = (from..values.len()).map(|t| (places.past[t], values[t]));
    // The line to the first forecast begins at the last point.
    let last = (places.ahead(0), values.last().copied().unwrap_or(f64::NAN));
    let line = story.ahead.iter().enumerate().map(|(i, p)| (places.ahead(i + 1), p.forecast));
    let band = story.ahead.iter().enumerate().map(|(i, p)| {
        let half = p.half.unwrap_or(f64::NAN);
        (places.ahead(i + 1), p.forecast - half, p.forecast + half)
    });
    let chart = Chart::new("What comes next")
        .x_label(&places.label)
        .y_label(name)
        .series(Series::band(format!("{percent} % interval"), band).color(1))
        .series(Series::line(name, past).color(0))
        .series(Series::line("forecast", std::iter::once(last).chain(line)).color(1));
    page = page.section("Forecast").chart(
        chart,
        format!("The last {} and the forecast.", format::plural(shown as u64, "point")),
    );
    page = page.table(forecast_table(story));
    if shown < values.len() {
        let all = (0..values.len()).map(|t| (places.past[t], values[t]));
        let chart = Chart::new("The series")
            .x_label(&places.label)
            .y_label(name)
            .series(Series::line("", all));
        page = page.chart(chart, "All points that were given.");
    }
    if let Some(evaluation) = story.evaluation {
        page = add_evaluation(page, story, evaluation, &places, &percent);
    }
    add_solver(page, forecaster.model()).footer("Made by broadlearn forecast.").to_html()
}

fn forecast_table(story: &Story<'_>) -> Table {
    let mut head = vec!["step".to_owned()];
    head.extend(story.labels.map(|(name, _)| name.to_owned()));
    head.extend(["forecast", "low", "high"].map(str::to_owned));
    let mut table = Table::new(head);
    for (i, point) in story.ahead.iter().enumerate().take(MOST_ROWS) {
        let mut row = vec![(i + 1).to_string()];
        row.extend(story.labels.map(|(_, labels)| labels[i].clone()));
        row.push(format::number(point.forecast));
        let end = |sign: f64| {
            point.half.map_or("-".into(), |half| format::number(point.forecast + sign * half))
        };
        row.extend([end(-1.0), end(1.0)]);
        table = table.row(row);
    }
    match story.ahead.len() > MOST_ROWS {
        true => table.caption(format!("The first {MOST_ROWS} of {} steps.", story.ahead.len())),
        false => table,
    }
}

fn add_evaluation(
    page: Page,
    story: &Story<'_>,
    evaluation: &Evaluation,
    places: &Places,
    percent: &str,
) -> Page {
    let held_out = evaluation.points.iter().map(|point| point.point + 1).max().unwrap_or(0);
    let how = match story.update {
        true => "Every point was forecast from the points before it, then learnt.",
        false => {
            "Every point was forecast from the points before it, by a model fitted without any of them."
        }
    };
    let mut page = page.section("How such forecasts did").paragraph(how);
    if let Some(first) = evaluation.steps.first() {
        let note = "one step ahead";
        let mut cards = vec![
            Card::new("RMSE", format::number(first.rmse)).note(note),
            Card::new("MAE", format::number(first.mae)).note(note),
        ];
        if let Some(naive) = first.naive_mae {
            cards.push(Card::new("naive MAE", format::number(naive)).note("the point before"));
        }
        if let Some(coverage) = first.coverage {
            let share = format!("{:.1} %", 100.0 * coverage);
            cards.push(Card::new("coverage", share).note(format!("of {percent} % intervals")));
        }
        page = page.cards(cards);
    }
    let rows = score_rows(evaluation, MOST_ROWS);
    if let Some((head, body)) = rows.split_first() {
        let mut table = Table::new(head.clone()).caption(
            "MASE: the mean absolute error over that of the naive forecast, one step ahead, in training.",
        );
        for row in body {
            table = table.row(row.clone());
        }
        page = page.table(table);
    }
    // The held-out points are the last ones of the series that was given.
    let first = places.past.len().saturating_sub(held_out);
    let at = |point: &ForecastPoint| places.past.get(first + point.point).copied();
    let one: Vec<&ForecastPoint> = evaluation.points.iter().filter(|p| p.step == 1).collect();
    let line = |of: fn(&ForecastPoint) -> f64| -> Vec<(f64, f64)> {
        one.iter().filter_map(|point| Some((at(point)?, of(point)))).collect()
    };
    let band = one.iter().filter_map(|p| {
        let half = if p.half_width.is_finite() { p.half_width } else { f64::NAN };
        Some((at(p)?, p.forecast - half, p.forecast + half))
    });
    let name = &story.forecaster.embedding().column;
    let chart = Chart::new("One step ahead on the held-out points")
        .x_label(&places.label)
        .y_label(name)
        .series(Series::band(format!("{percent} % interval"), band).color(1))
        .series(Series::line(name, line(|point| point.truth)).color(0))
        .series(Series::line("forecast", line(|point| point.forecast)).color(1));
    page = page.chart(chart, "");
    if evaluation.steps.len() > 1 {
        let by_step = |of: &dyn Fn(usize) -> Option<f64>| -> Vec<(f64, f64)> {
            let steps = evaluation.steps.iter().enumerate();
            steps.filter_map(|(i, score)| Some((score.step as f64, of(i)?))).collect()
        };
        let scores = &evaluation.steps;
        let mut chart = Chart::new("Error by step ahead")
            .x_label("steps ahead")
            .y_label("mean absolute error")
            .series(Series::line("this model", by_step(&|i| Some(scores[i].mae))))
            .series(Series::line("naive", by_step(&|i| scores[i].naive_mae)).dashed());
        let seasonal = by_step(&|i| scores[i].seasonal_naive_mae);
        if !seasonal.is_empty() {
            chart = chart.series(Series::line("seasonal naive", seasonal).dashed());
        }
        page = page.chart(chart, "Naive: the last known point; seasonal: that of the last season.");
    }
    let residuals = line(|point| point.truth - point.forecast);
    let chart = Chart::new("What was missed, one step ahead")
        .x_label(&places.label)
        .y_label("value - forecast")
        .h_line("", 0.0)
        .series(Series::points("residuals", residuals.clone()));
    let histogram = Series::histogram_of("", residuals.into_iter().map(|(_, e)| e), 30);
    page.section("Residuals").chart(chart, "").chart(
        Chart::new("Their distribution")
            .x_label("value - forecast")
            .y_label("points")
            .series(histogram),
        "",
    )
}
