//! `broadlearn fit`: from a table to a model.

use super::update::read_within;
use super::{evaluate, inspect};
use crate::context::{self, Context};
use crate::data_args::{ColumnArgs, DataArgs, load_model, warn_of};
use crate::fault::Fault;
use crate::learning_args::{LearningArgs, share};
use crate::{format, output};
use broadlearn::data::{Bound, Part, Samples, TableReader, Targets, TrainingData, split};
use broadlearn::evaluate::{Metrics, metrics::Scorer};
use broadlearn::model::{Member, Passing, TableRows, Training};
use broadlearn::solve::{NetworkCandidate, SolveReport, Start};
use broadlearn::{Error, Model, Settings};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn fit train.csv --target price --model price.broad
  broadlearn fit train.csv --target price --holdout 0.3 --model price.broad --report price.html
  broadlearn fit digits.npz --target y --recipe classic --input-scaling row-z-score \\
      --enhancement-nodes 5000 --loss squared --ridge 1e-5 --test test.npz --model digits.broad
  broadlearn fit train.csv --target price --members 10 --model price.broad
  cat sensors.csv | broadlearn fit - --target 7 --ignore time --model sensors.broad --json")]
pub(crate) struct FitArgs {
    /// The training table (CSV, Parquet, .npy, .npz; gzip too; - for stdin)
    data: PathBuf,
    /// The column to predict: a name, a number from 1, or last (repeat for several targets)
    #[arg(long, short, required_unless_present = "like", value_name = "COLUMN")]
    target: Vec<String>,
    /// Where the model goes
    #[arg(long, short, value_name = "FILE")]
    model: PathBuf,
    /// Make a sibling of this model: the same columns, settings, scalers and nodes, other rows.
    /// Siblings can be merged
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["target", "holdout", "ignore", "weight", "task", "max_categories", "loss", "shape", "mixture", "sigma", "ridge", "start", "no_anneal", "steps", "tuning", "image", "patch", "pools", "time_step", "alpha", "beta", "solver", "memory", "tolerance", "max_iterations", "discriminant", "seed", "members", "compact", "recipe", "budget", "feature_groups", "feature_nodes", "enhancement_nodes", "gain", "fan_in", "activation", "input_scaling", "target_scaling"])]
    like: Option<PathBuf>,
    /// With --like: weigh the rows by that model's own predictions, and take one step of the fixed
    /// point; the siblings of all shards, merged, are the next step of the joint fit
    #[arg(long, requires = "like")]
    one_step: bool,
    /// Score the model on this table
    #[arg(long, value_name = "FILE", conflicts_with = "holdout")]
    test: Option<PathBuf>,
    /// Keep this share of the rows out of training and score the model on them
    #[arg(long, value_name = "SHARE", value_parser = share)]
    holdout: Option<f64>,
    /// Write a page with pictures here (HTML)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    columns: ColumnArgs,

    #[command(flatten)]
    learning: LearningArgs,

    #[command(flatten)]
    table: DataArgs,
}

/// Which rows a score is about.
struct Score {
    rows: &'static str,
    metrics: Metrics,
}

pub(crate) fn run(args: &FitArgs, context: &Context) -> Result<(), Fault> {
    let begun = Instant::now();
    let settings =
        args.learning.settings(args.columns.task().unwrap_or(args.learning.assumed_task()))?;
    if args.one_step && args.like.is_none() {
        return Err(Error::setting("one-step", "no model whose step this is")
            .expected("--like MODEL with --one-step")
            .into());
    }
    // What can be known to fail is said before the work.
    output::check_places(
        std::iter::once(&args.model).chain(&args.report),
        std::iter::once(&args.data).chain(&args.test).chain(&args.like),
    )?;
    let test = args.test.as_deref().map(|path| args.table.open(path)).transpose()?;
    if let Some(path) = &args.like {
        return run_like(path, test, begun, args, context);
    }

    let mut reader = args.table.open(&args.data)?;
    let bound = bound(args.learning.memory, &args.data, &reader, args.learning.seed);
    let mut data = args.columns.read_within(&mut reader, &args.target, bound, context)?;
    if !data.is_complete() {
        if let Some(share) = args.holdout {
            if !is_regular(&args.data) {
                return Err(Error::setting("holdout", "a stream larger than memory")
                    .expected("a file, whose held-out rows can be read again")
                    .advice("save it first; or use --test FILE, or more memory (--memory)")
                    .into());
            }
            reader = args.table.open(&args.data)?;
            let part = Some(Part::training(share, args.learning.seed));
            data = args.columns.read_part(&mut reader, &args.target, bound, part, context)?;
        }
        return run_in_passes(&data, reader, settings, test, begun, args, context);
    }
    drop(reader);
    let (train, held_out, schema) = match args.holdout {
        Some(share) => {
            let (train, test) = split(data.len(), share, args.learning.seed);
            let schema = data.schema(&train)?;
            let held_out = data.samples(&schema, &test)?;
            (data.samples(&schema, &train)?, Some(held_out), schema)
        }
        None => {
            let all: Vec<usize> = (0..data.len()).collect();
            let schema = data.schema(&all)?;
            (data.into_samples(&schema)?, None, schema)
        }
    };
    let training = Training {
        x: train.x.as_ref(),
        targets: &train.targets,
        weights: train.weights.as_deref(),
        schema,
    };
    let model = settings.fit(training, &mut context.observer()).map_err(|error| {
        if error.category() == broadlearn::Category::Data {
            error.within(&args.data.display().to_string())
        } else {
            error
        }
    })?;
    context.end_progress();

    let mut scores = vec![score("training rows", &model, &train)?];
    if let Some(samples) = &held_out {
        warn_of(&samples.surprises, model.schema(), context);
        scores.insert(0, score("held-out rows", &model, samples)?);
    }
    if let Some(reader) = test {
        let metrics = evaluate::score(&model, reader, args.columns.drop_missing_target, context)?;
        scores.insert(0, Score { rows: "test rows", metrics });
    }
    save(&model, &args.model)?;
    if let Some(path) = &args.report {
        let samples = held_out.as_ref().unwrap_or(&train);
        let page = page(&model, &scores, samples, args)?;
        output::write_file(path, &page)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    say_result(&model, &scores, args, seconds, context)
}

/// A table that is larger than memory, of which some rows were read.
fn run_in_passes(
    sample: &TrainingData,
    reader: TableReader,
    settings: Settings,
    test: Option<TableReader>,
    begun: Instant,
    args: &FitArgs,
    context: &Context,
) -> Result<(), Fault> {
    let looked_at = match sample.table_rows() {
        Some(rows) => format!("{} of {rows} rows are looked at closely", sample.len()),
        None => format!("the first {} rows are looked at closely", sample.len()),
    };
    context.say(format_args!("larger than memory: {looked_at}, all are learnt as they pass by"));
    let drop_missing_target = args.columns.drop_missing_target;
    let mut open = || TableReader::open(&args.data, &args.table.options());
    let rows = match is_regular(&args.data) {
        true => TableRows::Again(&mut open),
        false => TableRows::Rest(reader),
    };
    let passing = Passing { drop_missing_target, on_record: false };
    let model = settings.fit_table(sample, rows, passing, &mut context.observer())?;
    context.end_progress();
    let all: Vec<usize> = (0..sample.len()).collect();
    let samples = sample.samples(model.schema(), &all)?;
    let mut scores = vec![score("sampled training rows", &model, &samples)?];
    if let Some(share) = args.holdout {
        let reader = args.table.open_for(&model, &args.data)?;
        let part = Some(Part::held_out(share, args.learning.seed));
        let metrics = evaluate::score_part(&model, reader, drop_missing_target, part, context)?;
        scores.insert(0, Score { rows: "held-out rows", metrics });
    }
    if let Some(reader) = test {
        let metrics = evaluate::score(&model, reader, drop_missing_target, context)?;
        scores.insert(0, Score { rows: "test rows", metrics });
    }
    save(&model, &args.model)?;
    if let Some(path) = &args.report {
        output::write_file(path, &page(&model, &scores, &samples, args)?)?;
    }
    say_result(&model, &scores, args, begun.elapsed().as_secs_f64(), context)
}

/// How much of a table may be in memory: as typed columns, and once more as numbers. Of a file that is larger a
/// sample is kept.
pub(super) fn bound(memory: Option<u64>, data: &Path, reader: &TableReader, seed: u64) -> Bound {
    let memory = memory.unwrap_or_else(broadlearn::memory::share_of_free);
    let bytes = memory / 3;
    if !is_regular(data) {
        return Bound::Prefix { bytes };
    }
    // A row of the sample is there three times, and once as the state of some hundred nodes.
    let row = 24 * reader.columns().len() as u64 + 24_000;
    let rows = (memory / row).clamp(1000, 20_000) as usize;
    Bound::Sample { bytes, rows, seed }
}

/// Whether a file can be read again.
pub(super) fn is_regular(path: &Path) -> bool {
    path != Path::new("-") && std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// A sibling of another model.
fn run_like(
    like: &Path,
    test: Option<TableReader>,
    begun: Instant,
    args: &FitArgs,
    context: &Context,
) -> Result<(), Fault> {
    let parent = load_model(like, Some(&args.data))?;
    let drop = args.columns.drop_missing_target;
    let memory = broadlearn::memory::share_of_free();
    let train = read_within(&parent, &args.data, drop, memory / 3, &args.table, context)?;
    let train = train.ok_or_else(|| {
        Error::setting("like", "a table larger than memory")
            .at(args.data.display().to_string())
            .expected("one whose numbers fit in a sixth of the free memory")
            .advice("split it, make a sibling of each part, and join them with `broadlearn merge`")
    })?;
    let model = match args.one_step {
        true => parent.part((&train).into(), &mut context.observer()),
        false => parent.sibling((&train).into(), &mut context.observer()),
    }?;
    context.end_progress();
    let mut scores = vec![score("training rows", &model, &train)?];
    if let Some(reader) = test {
        let metrics = evaluate::score(&model, reader, args.columns.drop_missing_target, context)?;
        scores.insert(0, Score { rows: "test rows", metrics });
    }
    save(&model, &args.model)?;
    if let Some(path) = &args.report {
        output::write_file(path, &page(&model, &scores, &train, args)?)?;
    }
    say_result(&model, &scores, args, begun.elapsed().as_secs_f64(), context)
}

fn score(rows: &'static str, model: &Model, samples: &Samples) -> Result<Score, Fault> {
    let mut scorer = Scorer::new(&model.schema().target);
    scorer.add(&model.predict(&samples.x)?, &samples.targets, samples.weights.as_deref())?;
    Ok(Score { rows, metrics: scorer.metrics()? })
}

/// Saves a model; `-` means stdout.
pub(super) fn save(model: &Model, path: &Path) -> Result<(), Fault> {
    if path == Path::new("-") {
        let mut out = output::Output::open(None)?;
        out.write(&model.to_bytes()?)?;
        return out.finish();
    }
    Ok(context::finishing(|| model.save(path))?)
}

fn say_result(
    model: &Model,
    scores: &[Score],
    args: &FitArgs,
    seconds: f64,
    context: &Context,
) -> Result<(), Fault> {
    let report = model.report();
    let stuck = |report: &&SolveReport| report.iterations > 0 && !report.converged;
    if let Some(report) = model.members().iter().map(Member::report).find(stuck) {
        context.warn(format_args!(
            "the fixed point was not reached in {} steps (last change {:.1e}); raise --max-iterations \
             or --tolerance",
            report.iterations, report.last_change
        ));
    }
    if context.json {
        let mut object = serde_json::to_value(&scores[0].metrics).unwrap_or_default();
        object["scored_on"] = json!(scores[0].rows);
        object["task"] = json!(model.task().name());
        object["model"] = json!(args.model);
        object["rows"] = json!(model.rows());
        object["inputs"] = json!(model.map().inputs());
        object["nodes"] = json!(model.map().width());
        object["members"] = json!(model.members().len());
        object["seconds"] = json!(seconds);
        object["report"] = json!(report);
        for score in &scores[1..] {
            object[score.rows.replace(' ', "_")] = json!(score.metrics);
        }
        if args.model == Path::new("-") {
            context.say(object);
            return Ok(());
        }
        return output::print_json(&object);
    }
    let mut text = format::facts(&inspect::describe(model));
    for score in scores {
        text.push_str(&format!("\nOn the {}:\n", score.rows));
        text.push_str(&evaluate::describe(&score.metrics, &model.schema().target));
    }
    if scores.len() == 1 {
        text.push_str(
            "\nScores on training rows flatter a model: use --holdout 0.3 or --test FILE.\n",
        );
    }
    context.say(format_args!("{text}\nwrote {} in {seconds:.1} s", args.model.display()));
    Ok(())
}

/// Inputs in the picture of those that matter.
const MOST_INPUTS_SHOWN: usize = 12;

/// The page with pictures.
fn page(
    model: &Model,
    scores: &[Score],
    samples: &Samples,
    args: &FitArgs,
) -> Result<String, Fault> {
    use broadlearn_report::{Card, Chart, Page, Series, Table};
    let names = model.schema().target.names();
    let mut page = Page::new(format!("Learning {}", names.join(", "))).lead(format!(
        "A {} learnt from {}.",
        model.task().name(),
        args.data.display()
    ));
    let cards = |metrics: &Metrics| {
        format::metrics(metrics)
            .into_iter()
            .map(|row| Card::new(row[0].clone(), row[1].clone()))
            .collect::<Vec<_>>()
    };
    for score in scores {
        page = page.section(format!("On the {}", score.rows)).cards(cards(&score.metrics));
    }
    let predictions = model.predict(&samples.x)?;
    if let Targets::Values(y) = &samples.targets {
        for j in 0..y.ncols() {
            let pairs: Vec<(f64, f64)> =
                (0..y.nrows()).map(|i| (y[(i, j)], predictions.values()[(i, j)])).collect();
            let (low, high) = pairs
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &(y, _)| (l.min(y), h.max(y)));
            let chart = Chart::new(format!("{}: given and predicted", names[j]))
                .x_label("given")
                .y_label("predicted")
                .series(Series::points("rows", pairs))
                .series(Series::line("equal", [(low, low), (high, high)]).dashed());
            page = page.chart(chart, "Points on the line are predicted exactly.");
        }
    } else if let broadlearn::data::TargetSchema::Classification { classes, .. } =
        &model.schema().target
    {
        let rows = format::confusion(&scores[0].metrics, classes);
        if let Some((head, body)) = rows.split_first() {
            let mut table =
                Table::new(head.clone()).caption("Given classes down, predicted classes across.");
            for row in body {
                table = table.row(row.clone());
            }
            page = page.section("Confusion").table(table);
        }
    }
    page = add_solver(page, model);
    Ok(page.footer("Made by broadlearn.").to_html())
}

/// Pictures of how W was found: convergence, and the settings that were compared.
pub(super) fn add_solver(page: broadlearn_report::Page, model: &Model) -> broadlearn_report::Page {
    use broadlearn_report::{Chart, Series, Table};
    let report = model.report();
    let mut facts = Table::new(["model", ""]);
    for (name, value) in inspect::describe(model) {
        facts = facts.row([name.to_owned(), value]);
    }
    let mut page = page.section("How it was found").table(facts);
    if report.objective.len() > 1 {
        let points =
            report.objective.iter().enumerate().map(|(step, &value)| ((step + 1) as f64, value));
        let chart = Chart::new("Convergence")
            .x_label("fixed-point step")
            .y_label("objective")
            .series(Series::line("", points));
        page = page.chart(chart, "The normalised objective never decreases.");
    }
    if report.candidates.windows(2).any(|pair| pair[0].sigma != pair[1].sigma) {
        let mut chart = Chart::new("Choice of the kernel size")
            .x_label("kernel size sigma")
            .y_label("cross-validated score")
            .log_x();
        let mut paths: Vec<(f64, Option<Start>)> =
            report.candidates.iter().map(|candidate| (candidate.ridge, candidate.start)).collect();
        paths.dedup();
        for (ridge, start) in paths {
            let path = report.candidates.iter().filter(|c| c.ridge == ridge && c.start == start);
            let points: Vec<(f64, f64)> = path.filter_map(|c| Some((c.sigma?, c.score))).collect();
            let start = start.map_or("", Start::name);
            let name = format!("ridge {}, start {start}", format::setting(ridge));
            chart = chart.series(Series::line(name, points));
        }
        let caption = "Less is better; chosen on the training rows alone, on a small network. Paths that were \
                       clearly worse after some of the rows are not shown.";
        page = page.chart(chart, caption);
    } else if !report.candidates.is_empty() {
        let points = report.candidates.iter().map(|c| (c.ridge, c.score));
        let chart = Chart::new("Choice of the ridge")
            .x_label("ridge")
            .y_label("cross-validated score")
            .log_x()
            .series(Series::line("", points));
        page = page.chart(chart, "Less is better; chosen on the training rows alone.");
    }
    let relevance: Vec<(&str, f64)> =
        model.relevance().into_iter().take(MOST_INPUTS_SHOWN).collect();
    if !relevance.is_empty() {
        let bars = relevance.iter().enumerate().map(|(place, (_, size))| (place as f64, *size));
        let chart = Chart::new("Which inputs matter")
            .y_label("relevance")
            .categories(relevance.iter().map(|(input, _)| *input))
            .series(Series::bars("", bars));
        let caption = "How strongly the model depends on an input; 1 is usual. The random weights are \
                       larger for inputs that matter more.";
        page = page.chart(chart, caption);
    }
    if report.networks.len() > 1 {
        let mut chart = Chart::new("Choice of the network")
            .x_label("enhancement nodes")
            .y_label("leave-one-out score")
            .log_x();
        let design = |network: &NetworkCandidate| {
            let gain = network.gain.map(|gain| format!(", gain {}", format::setting(gain)));
            let relevance = if network.relevance { ", inputs that matter" } else { "" };
            let few = network.fan_in.map(|inputs| format!(", {inputs} inputs a node"));
            let name = network.recipe.name();
            format!("{name}{}{}{relevance}", gain.unwrap_or_default(), few.unwrap_or_default())
        };
        let mut designs: Vec<String> = Vec::new();
        for network in &report.networks {
            if !designs.contains(&design(network)) {
                designs.push(design(network));
            }
        }
        for name in designs {
            let own = report.networks.iter().filter(|network| design(network) == name);
            let points: Vec<(f64, f64)> =
                own.map(|network| (network.enhancement_nodes as f64, network.score)).collect();
            chart = chart.series(Series::line(name, points));
        }
        page = page.chart(
            chart,
            "Less is better; each with the ridge that suits it best. \"Inputs that matter\": with larger \
             weights for these.",
        );
    }
    page
}
