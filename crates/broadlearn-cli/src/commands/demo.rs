//! `broadlearn demo`: a chaotic series with impulsive noise, plain and robust learning side by side.

use crate::context::Context;
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::data::series::{MackeyGlass, alpha_stable, lagged};
use broadlearn::data::{Schema, TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::features::Recipe;
use broadlearn::features::draw::{Purpose, Stream};
use broadlearn::model::Training;
use broadlearn::preprocess::Scaling;
use broadlearn::solve::{Loss, RobustLoss};
use broadlearn::{Error, Model, Settings};
use broadlearn_report::{Card, Chart, Page, Series, Table};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// The sizes of the paper's Table VII.
const TRAIN: usize = 1000;
const TEST: usize = 200;
const LAGS: usize = 7;
const ALPHA: f64 = 1.5;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn demo
  broadlearn demo --seed 7 --scale 0.215 --out-dir /tmp/demo")]
pub(crate) struct DemoArgs {
    /// The folder for the model, the page and a picture
    #[arg(long, value_name = "DIR", default_value = "broadlearn-demo")]
    out_dir: PathBuf,
    /// The seed of the noise and the networks
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The scale of the alpha-stable noise (alpha = 1.5)
    #[arg(long, value_name = "F", default_value_t = 0.1, value_parser = scale)]
    scale: f64,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a number of 0 or more".into()),
    }
}

/// Where the noise goes.
#[derive(Clone, Copy)]
enum Noise {
    /// Into the series, so that inputs are disturbed as well.
    Series,
    /// Into the targets alone.
    Targets,
}

struct Contender {
    name: &'static str,
    settings: Settings,
}

struct Outcome {
    name: &'static str,
    rmse: f64,
    seconds: f64,
    model: Model,
    predictions: Vec<f64>,
}

pub(crate) fn run(args: &DemoArgs, context: &Context) -> Result<(), Fault> {
    std::fs::create_dir_all(&args.out_dir)
        .map_err(|error| Error::cannot_create(&args.out_dir, error))?;
    let clean = MackeyGlass::default().generate(TRAIN + TEST);
    let mut stream = Stream::new(args.seed, Purpose::Noise, 0);
    let noise: Vec<f64> =
        (0..TRAIN).map(|_| alpha_stable(ALPHA, args.scale, &mut stream)).collect();
    let noisy: Vec<f64> = clean.iter().zip(&noise).map(|(x, n)| x + n).collect();
    context.say(format_args!(
        "Mackey-Glass series, {TRAIN} points with alpha-stable noise (alpha {ALPHA}, scale {}) to learn \
         from,\n{TEST} clean points to predict, each from the {LAGS} before it.\n",
        args.scale
    ));

    let (clean_x, clean_y) = lagged(&clean[..TRAIN], LAGS);
    let (noisy_x, noisy_y) = lagged(&noisy, LAGS);
    let (test_x, test_y) = lagged(&clean[TRAIN - LAGS..], LAGS);
    let mut rows = vec![vec!["test RMSE, noise in".to_owned()]];
    rows[0].extend(contenders(args.seed).iter().map(|c| c.name.to_owned()));
    let mut results: Vec<(&str, Vec<Outcome>)> = Vec::new();
    for (label, noise) in [("the series", Noise::Series), ("the targets only", Noise::Targets)] {
        let x = match noise {
            Noise::Series => &noisy_x,
            Noise::Targets => &clean_x,
        };
        let mut outcomes = Vec::new();
        for contender in contenders(args.seed) {
            outcomes.push(contender.run(x, &noisy_y, &test_x, &test_y, context)?);
        }
        let mut row = vec![label.to_owned()];
        row.extend(outcomes.iter().map(|outcome| format!("{:.4}", outcome.rmse)));
        rows.push(row);
        results.push((label, outcomes));
    }
    context.end_progress();

    let page_path = args.out_dir.join("demo.html");
    let model_path = args.out_dir.join("demo.broad");
    let picture_path = args.out_dir.join("demo.svg");
    let (label, last) = &results[results.len() - 1];
    output::write_file(&picture_path, &predictions(label, last, &clean).to_svg())?;
    let automatic = &last[last.len() - 1];
    super::fit::save(&automatic.model, &model_path)?;
    output::write_file(&page_path, &page(&results, &clean, &noisy, &clean_y, args))?;

    if context.json {
        let object: serde_json::Map<String, serde_json::Value> = results
            .iter()
            .map(|(label, outcomes)| {
                let scores: serde_json::Map<_, _> = contenders(args.seed)
                    .iter()
                    .zip(outcomes)
                    .map(|(c, o)| {
                        (c.name.to_owned(), json!({"rmse": o.rmse, "seconds": o.seconds}))
                    })
                    .collect();
                ((*label).to_owned(), scores.into())
            })
            .collect();
        return output::print_json(&json!({
            "test_rmse": object, "model": model_path, "page": page_path, "picture": picture_path,
        }));
    }
    output::print(&format::table(&rows))?;
    context.say(format_args!(
        "\nBLS believes every target; C-BLS gives wild ones hardly any weight.\n\
         model    {}\npage     {}\npicture  {}",
        model_path.display(),
        page_path.display(),
        picture_path.display()
    ));
    Ok(())
}

/// The paper's two networks (Table VII), and what `fit` does when nothing is said.
fn contenders(seed: u64) -> Vec<Contender> {
    let paper = |groups, enhancement| {
        Settings::recipe(Recipe::Classic)
            .feature_nodes(25)
            .feature_groups(groups)
            .enhancement_nodes(enhancement)
            // The series lies between 0.2 and 1.4; its noise knows no bounds.
            .input_scaling(Scaling::None)
            .target_scaling(Scaling::None)
            .ridge(1e-4)
            .seed(seed)
    };
    vec![
        Contender { name: "BLS", settings: paper(17, 270).squared() },
        Contender { name: "C-BLS", settings: paper(20, 456).sigma(0.25) },
        Contender { name: "C-BLS automatic", settings: Settings::new().seed(seed) },
    ]
}

impl Contender {
    fn run(
        self,
        x: &Mat<f64>,
        y: &Mat<f64>,
        test_x: &Mat<f64>,
        test_y: &Mat<f64>,
        context: &Context,
    ) -> Result<Outcome, Fault> {
        let begun = Instant::now();
        let names = vec!["x(t)".to_owned()];
        let mut schema = Schema::numeric(LAGS, TargetSchema::Regression { names });
        for (lag, input) in (1..=LAGS).rev().zip(&mut schema.inputs) {
            input.name = format!("x(t-{lag})");
        }
        let targets = Targets::Values(y.clone());
        let training = Training { x: x.as_ref(), targets: &targets, weights: None, schema };
        let model = self.settings.fit(training, &mut context.observer())?;
        let seconds = begun.elapsed().as_secs_f64();
        let predictions = model.predict(test_x)?;
        let predictions: Vec<f64> = predictions.values().col(0).iter().copied().collect();
        let squares: f64 =
            predictions.iter().enumerate().map(|(i, f)| (f - test_y[(i, 0)]).powi(2)).sum();
        let rmse = (squares / predictions.len() as f64).sqrt();
        Ok(Outcome { name: self.name, rmse, seconds, model, predictions })
    }
}

fn page(
    results: &[(&str, Vec<Outcome>)],
    clean: &[f64],
    noisy: &[f64],
    clean_y: &Mat<f64>,
    args: &DemoArgs,
) -> String {
    let names: Vec<&str> = contenders(args.seed).iter().map(|contender| contender.name).collect();
    let mut page = Page::new("Learning from a series with impulsive noise").lead(
        "Plain broad learning (BLS) believes every target. Trained under the correntropy criterion \
         (C-BLS), the same kind of network gives wild targets hardly any weight.",
    );
    let mut header = vec!["noise in".to_owned()];
    header.extend(names.iter().map(|name| (*name).to_owned()));
    let mut table = Table::new(header).caption(format!(
        "Test RMSE on {TEST} clean points; alpha-stable noise with alpha {ALPHA} and scale {}.",
        args.scale
    ));
    for (row, (label, outcomes)) in results.iter().enumerate() {
        let mut cells = vec![(*label).to_owned()];
        cells.extend(outcomes.iter().map(|outcome| format!("{:.4}", outcome.rmse)));
        let best =
            (0..outcomes.len()).min_by(|&a, &b| outcomes[a].rmse.total_cmp(&outcomes[b].rmse));
        table = table.row(cells);
        if let Some(best) = best {
            table = table.highlight(row, best + 1);
        }
    }
    page = page.section("Result").table(table);

    page = page.section("The series").chart(
        Chart::new("What is learnt from")
            .x_label("t")
            .y_label("x(t)")
            .y_range(-1.0, 3.0)
            .series(Series::points("with noise", from(&noisy[..400], 0)).opacity(0.6))
            .series(Series::line("clean", from(&clean[..400], 0))),
        "The first 400 of 1000 training points. Some impulses lie far outside of the picture.",
    );
    for (label, outcomes) in results {
        let chart = predictions(label, outcomes, clean);
        page = page.chart(chart, format!("One step ahead on the {TEST} test points."));
    }

    let (label, outcomes) = &results[results.len() - 1];
    let robust = &outcomes[1];
    let weights = sample_weights(&robust.model, clean, noisy);
    let sizes: Vec<(f64, f64)> = weights
        .iter()
        .enumerate()
        .map(|(i, &weight)| ((noisy[i + LAGS] - clean_y[(i, 0)]).abs(), weight))
        .collect();
    page = page
        .section("Whom C-BLS believes")
        .cards([Card::new(
            "weight below 0.5",
            format!("{:.1} %", 100.0 * robust.model.report().downweighted),
        )
        .note(format!("of the training rows, noise in {label}"))])
        .chart(
            Chart::new("Sample weight and size of the noise")
                .x_label("|noise| in the target")
                .y_label("sample weight")
                .x_range(0.0, 2.0)
                .series(Series::points("training rows", sizes).opacity(0.5)),
            "Each point is a training row: the larger the noise, the smaller its weight.",
        );
    page = super::fit::add_solver(page, &outcomes[outcomes.len() - 1].model);
    page.footer("Made by broadlearn demo.").to_html()
}

/// The test points and what each contender says of them.
fn predictions(label: &str, outcomes: &[Outcome], clean: &[f64]) -> Chart {
    let mut chart = Chart::new(format!("Predictions, noise in {label}"))
        .x_label("t")
        .y_label("x(t)")
        .series(Series::line("truth", from(&clean[TRAIN..], TRAIN)));
    for outcome in outcomes {
        chart =
            chart.series(Series::line(outcome.name, from(&outcome.predictions, TRAIN)).dashed());
    }
    chart
}

/// Values against their number, counted from `start`.
fn from(values: &[f64], start: usize) -> Vec<(f64, f64)> {
    values.iter().enumerate().map(|(i, &value)| ((start + i) as f64, value)).collect()
}

/// exp(-|e|^2 / 2 sigma^2) of the training rows, noise in the targets only.
fn sample_weights(model: &Model, clean: &[f64], noisy: &[f64]) -> Vec<f64> {
    let Loss::Robust { kind: RobustLoss::Correntropy, sigma } = model.report().loss else {
        return Vec::new();
    };
    let (x, _) = lagged(&clean[..noisy.len()], LAGS);
    let Ok(predictions) = model.predict(&x) else { return Vec::new() };
    (0..x.nrows())
        .map(|i| {
            let error = noisy[i + LAGS] - predictions.values()[(i, 0)];
            (-error * error / (2.0 * sigma * sigma)).exp()
        })
        .collect()
}
