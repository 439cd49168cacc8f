//! The scores of forecasts of held-out points, as JSON and as a table.

use super::ForecastArgs;
use crate::context::Context;
use crate::format;
use broadlearn::forecast::{Evaluation, StepScore};
use serde_json::{Value, json};

pub(super) fn score_json(score: &StepScore) -> Value {
    json!({
        "step": score.step,
        "forecasts": score.count,
        "rmse": score.rmse,
        "mae": score.mae,
        "mase": score.mase,
        "seasonal_mase": score.seasonal_mase,
        "naive_mae": score.naive_mae,
        "seasonal_naive_mae": score.seasonal_naive_mae,
        "coverage": score.coverage,
    })
}

/// Scores as lines of cells, the first the head; with many steps only some of them.
pub(super) fn score_rows(evaluation: &Evaluation, most: usize) -> Vec<Vec<String>> {
    let seasonal = evaluation.steps.iter().any(|score| score.seasonal_naive_mae.is_some());
    let mut head = vec!["step", "forecasts", "RMSE", "MAE", "MASE", "naive MAE"];
    if seasonal {
        head.push("seasonal naive MAE");
    }
    head.push("coverage");
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let count = evaluation.steps.len();
    let every = count.div_ceil(most).max(1);
    let or_none = |value: Option<f64>| value.map_or("-".into(), format::number);
    for (place, score) in evaluation.steps.iter().enumerate() {
        if place % every != 0 && place + 1 != count {
            continue;
        }
        let mut row = vec![
            score.step.to_string(),
            score.count.to_string(),
            format::number(score.rmse),
            format::number(score.mae),
            or_none(score.mase),
            or_none(score.naive_mae),
        ];
        if seasonal {
            row.push(or_none(score.seasonal_naive_mae));
        }
        row.push(score.coverage.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)));
        rows.push(row);
    }
    rows
}

pub(super) fn say_scores(evaluation: &Evaluation, args: &ForecastArgs, context: &Context) {
    let points = args.evaluate.unwrap_or(0) as u64;
    let learnt = if args.update { ", each learnt after it was forecast" } else { "" };
    let mut text = format!("\n{} held out{learnt}:\n", format::plural(points, "point"));
    text.push_str(&format::table(&score_rows(evaluation, 16)));
    if evaluation.left_out > 0 {
        text.push_str(&format!(
            "left out {} for want of inputs\n",
            format::plural(evaluation.left_out as u64, "forecast")
        ));
    }
    context.say(text);
    if let Some(warning) = too_narrow(evaluation, args) {
        context.warn(warning);
    }
}

/// Held-out points that a step needs before its coverage says anything, and by how much it may miss what was asked for.
const ENOUGH_FORECASTS: usize = 20;
const NEAR_ENOUGH: f64 = 0.1;

/// What to say where intervals hold far fewer of the held-out points than they are to.
fn too_narrow(evaluation: &Evaluation, args: &ForecastArgs) -> Option<String> {
    let judged = evaluation.steps.iter().filter(|score| score.count >= ENOUGH_FORECASTS);
    let worst = judged
        .filter_map(|score| Some((score.coverage?, score.step)))
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let advice = match args.difference > 0 || args.season_difference {
        true => "the held-out points may differ from those before them; try --update",
        false => "if the series has a trend, use --difference 1 or --season-difference",
    };
    (worst.0 < args.interval - NEAR_ENOUGH).then(|| {
        format!(
            "the intervals are too narrow: at step {} they hold {:.0} % of the held-out points in place of {:.0} %; {advice}",
            worst.1,
            100.0 * worst.0,
            100.0 * args.interval
        )
    })
}
