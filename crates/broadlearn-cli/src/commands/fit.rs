//! `broadlearn fit`: from a table to a model.

use super::update::read_by_schema;
use super::{evaluate, inspect};
use crate::context::{self, Context};
use crate::data_args::{ColumnArgs, DataArgs, load_model, warn_of};
use crate::fault::Fault;
use crate::{format, output};
use broadlearn::data::{Bound, Samples, TableReader, Targets, Task, TrainingData, split};
use broadlearn::evaluate::{Metrics, metrics::Scorer};
use broadlearn::features::{Activation, Recipe};
use broadlearn::model::{Member, TableRows, Training};
use broadlearn::preprocess::Scaling;
use broadlearn::solve::{NetworkCandidate, RobustLoss, SolveReport, Solver, Start};
use broadlearn::{Error, Model, Settings};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches, ValueEnum};
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
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["target", "holdout", "ignore", "weight", "task", "max_categories", "loss", "shape", "mixture", "sigma", "ridge", "start", "no_anneal", "solver", "memory", "tolerance", "max_iterations", "seed", "members", "compact", "recipe", "budget", "feature_groups", "feature_nodes", "enhancement_nodes", "gain", "activation", "input_scaling", "target_scaling"])]
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

/// What is learnt and with which network, shared by the commands that fit one.
#[derive(Args, Clone, Debug)]
pub(super) struct LearningArgs {
    /// What is minimised
    #[arg(long, value_enum, default_value_t = LossName::Correntropy, help_heading = "Learning")]
    loss: LossName,
    /// With --loss generalised: the power of the residual in the kernel, above 0, at most 2
    /// [default: 1]
    #[arg(long, value_name = "F", allow_negative_numbers = true, help_heading = "Learning")]
    shape: Option<f64>,
    /// With --loss mixture: the share of the kernel of size sigma, and how many times wider the other
    /// one is [default: 0.8,4]
    #[arg(long, value_name = "SHARE,RATIO", value_parser = mixture, allow_hyphen_values = true, help_heading = "Learning")]
    mixture: Option<(f64, f64)>,
    /// Kernel size in units of the scaled target: smaller distrusts more rows
    #[arg(long, value_name = "auto|F", default_value = "auto", value_parser = automatic, allow_negative_numbers = true, help_heading = "Learning")]
    sigma: Automatic,
    /// Penalty on the output weights, or pinv for the pseudo-inverse
    #[arg(long, value_name = "auto|F|pinv", default_value = "auto", value_parser = automatic, allow_negative_numbers = true, help_heading = "Learning")]
    ridge: Automatic,
    /// Where the fixed point begins
    #[arg(long, value_parser = names(Start::ALL, Start::name), default_value = "best", help_heading = "Learning")]
    start: Start,
    /// Use the final kernel size from the beginning
    #[arg(long, help_heading = "Learning")]
    no_anneal: bool,
    /// Relative change of the outputs at which the fixed point is reached
    #[arg(long, value_name = "F", default_value_t = 1e-8, help_heading = "Learning")]
    tolerance: f64,
    /// Steps after which the fixed point is given up
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Learning")]
    max_iterations: usize,
    /// How the steps of the fixed point are found; all ways lead to the same one
    #[arg(long, value_parser = names(Solver::ALL, Solver::name), default_value = "auto", help_heading = "Learning")]
    solver: Solver,
    /// Memory that may be used, such as 500M or 2G: where the state of the rows does not fit it is computed
    /// again in every pass; the model is the same [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Learning")]
    memory: Option<u64>,
    /// The seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Learning")]
    seed: u64,
    /// Average so many independent networks (1 to 1000): steadier predictions, as many times the work.
    /// Settings are chosen for the first and taken over by the others. Default: 5, but 1 for more than
    /// 10000 rows and where --enhancement-nodes is given
    #[arg(long, value_name = "N", help_heading = "Learning")]
    members: Option<usize>,
    /// Leave R and P out of the model: a smaller file, which cannot be updated
    #[arg(long, help_heading = "Learning")]
    compact: bool,

    /// How the network is built [default: rich or classic, chosen on the training rows]
    #[arg(long, value_parser = names(Recipe::ALL, Recipe::name), help_heading = "Network")]
    recipe: Option<Recipe>,
    /// Feature groups [default: 10; not for recipe rich]
    #[arg(long, value_name = "N", help_heading = "Network")]
    feature_groups: Option<usize>,
    /// Nodes in a feature group [default: 10; not for recipe rich]
    #[arg(long, value_name = "N", help_heading = "Network")]
    feature_nodes: Option<usize>,
    /// Enhancement nodes [default: chosen on the training rows]
    #[arg(long, value_name = "N", help_heading = "Network")]
    enhancement_nodes: Option<usize>,
    /// Size of the random weights, for all inputs alike [default: chosen on the training rows, larger for
    /// inputs that matter more; only for recipe rich]
    #[arg(long, value_name = "F", help_heading = "Network")]
    gain: Option<f64>,
    /// Time that the fit may take on a usual processor, such as 30s or 5m: more time, larger networks
    /// [default: 1s and half a millisecond for every row]
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Network")]
    budget: Option<f64>,
    /// Activation of the enhancement nodes
    #[arg(long, value_parser = names(Activation::ALL, Activation::name), default_value = "tanh", help_heading = "Network")]
    activation: Activation,
    /// How inputs are scaled [default: by the recipe]
    #[arg(long, value_parser = names(Scaling::ALL, Scaling::name), help_heading = "Network")]
    input_scaling: Option<Scaling>,
    /// How targets are scaled [default: by the recipe]
    #[arg(long, value_parser = names(Scaling::ALL, Scaling::name), help_heading = "Network")]
    target_scaling: Option<Scaling>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LossName {
    /// Robust: rows with wild targets get hardly any weight (C-BLS)
    Correntropy,
    /// Every target is believed (BLS)
    Squared,
    /// Robust: squared up to sigma, absolute beyond; every row keeps a say
    Huber,
    /// Robust: absolute residuals, as a median has them; sigma is only the unit of the ridge
    Absolute,
    /// Robust: rows farther off than sigma are left out altogether
    Bisquare,
    /// Correntropy whose kernel has a sharper peak and longer tails (--shape)
    Generalised,
    /// Correntropy with a second, wider kernel (--mixture)
    Mixture,
}

/// The defaults of --shape and --mixture.
const SHAPE: f64 = 1.0;
const MIXTURE: (f64, f64) = (0.8, 4.0);

/// A number, or to be chosen, or none at all.
#[derive(Clone, Copy, Debug)]
enum Automatic {
    Choose,
    Value(f64),
    PseudoInverse,
}

fn automatic(text: &str) -> Result<Automatic, String> {
    match text {
        "auto" => Ok(Automatic::Choose),
        "pinv" => Ok(Automatic::PseudoInverse),
        _ => match text.parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() => Ok(Automatic::Value(value)),
            _ => Err("expected auto or a positive number".into()),
        },
    }
}

fn mixture(text: &str) -> Result<(f64, f64), String> {
    let numbers = text.split_once(',').map(|(share, ratio)| (share.parse(), ratio.parse()));
    match numbers {
        Some((Ok(share), Ok(ratio))) => Ok((share, ratio)),
        _ => Err("expected two numbers, as in 0.8,4".into()),
    }
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time such as 500ms, 30s, 5m or 1h".into()),
    };
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value * unit),
        _ => Err("expected a positive time such as 30s or 5m".into()),
    }
}

/// A number of bytes, such as 500M or 2G.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].trim_end_matches(['B', 'b', 'i']) {
        "" => 1.0,
        "K" | "k" => 1024.0,
        "M" | "m" => 1024.0 * 1024.0,
        "G" | "g" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err("expected a size such as 500M or 2G".into()),
    };
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok((value * unit) as u64),
        _ => Err("expected a positive size such as 500M or 2G".into()),
    }
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("expected a share between 0 and 1".into()),
    }
}

/// A parser for one of the library's enumerations.
pub(super) fn names<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).map(move |text| {
        // The parser before this one lets only these names through.
        all.into_iter().find(|value| name(*value) == text).unwrap_or(all[0])
    })
}

/// Which rows a score is about.
struct Score {
    rows: &'static str,
    metrics: Metrics,
}

pub(crate) fn run(args: &FitArgs, context: &Context) -> Result<(), Fault> {
    let begun = Instant::now();
    let settings = args.learning.settings(args.columns.task().unwrap_or(Task::Regression))?;
    // What can be known to fail is said before the work.
    output::check_folder(&args.model)?;
    args.report.as_deref().map(output::check_folder).transpose()?;
    let test = args.test.as_deref().map(|path| args.table.open(path)).transpose()?;
    if let Some(path) = &args.like {
        return run_like(path, test, begun, args, context);
    }

    let mut reader = args.table.open(&args.data)?;
    let bound = args.bound(&reader);
    let data = args.columns.read_within(&mut reader, &args.target, bound, context)?;
    if !data.is_complete() {
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
    if args.holdout.is_some() {
        return Err(Error::setting("holdout", "a table larger than memory")
            .expected("a test table of its own")
            .advice("split the table and use --test FILE, or give more memory (--memory)")
            .into());
    }
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
    let model = settings.fit_table(sample, rows, drop_missing_target, &mut context.observer())?;
    context.end_progress();
    let all: Vec<usize> = (0..sample.len()).collect();
    let samples = sample.samples(model.schema(), &all)?;
    let mut scores = vec![score("sampled training rows", &model, &samples)?];
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

/// Whether a file can be read again.
fn is_regular(path: &Path) -> bool {
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
    let (train, _) = read_by_schema(
        &parent,
        parent.schema(),
        std::slice::from_ref(&args.data),
        false,
        args.columns.drop_missing_target,
        &args.table,
        context,
    )?;
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

impl FitArgs {
    /// How much of the table may be in memory: as typed columns, and once more as numbers.
    fn bound(&self, reader: &TableReader) -> Bound {
        let memory = self.learning.memory.unwrap_or_else(broadlearn::memory::share_of_free);
        let bytes = memory / 3;
        if !is_regular(&self.data) {
            return Bound::Prefix { bytes };
        }
        // A row of the sample is there three times, and once as the state of some hundred nodes.
        let row = 24 * reader.columns().len() as u64 + 24_000;
        let rows = (memory / row).clamp(1000, 20_000) as usize;
        Bound::Sample { bytes, rows, seed: self.learning.seed }
    }
}

impl LearningArgs {
    /// The settings; wrong ones are said before a long file is read.
    pub(super) fn settings(&self, task: Task) -> Result<Settings, Fault> {
        let mut settings = self
            .recipe
            .map_or_else(Settings::new, Settings::recipe)
            .activation(self.activation)
            .start(self.start, !self.no_anneal)
            .solver(self.solver)
            .stop(self.tolerance, self.max_iterations)
            .seed(self.seed)
            .compact(self.compact);
        if let Some(count) = self.members {
            settings = settings.members(count);
        }
        if let Some(bytes) = self.memory {
            settings = settings.memory(bytes);
        }
        if let Some(count) = self.feature_groups {
            settings = settings.feature_groups(count);
        }
        if let Some(count) = self.feature_nodes {
            settings = settings.feature_nodes(count);
        }
        if let Some(count) = self.enhancement_nodes {
            settings = settings.enhancement_nodes(count);
        }
        if let Some(gain) = self.gain {
            settings = settings.gain(gain);
        }
        if let Some(seconds) = self.budget {
            settings = settings.budget(seconds);
        }
        if let Some(scaling) = self.input_scaling {
            settings = settings.input_scaling(scaling);
        }
        if let Some(scaling) = self.target_scaling {
            settings = settings.target_scaling(scaling);
        }
        settings = match (self.robust_loss()?, self.sigma) {
            (None, Automatic::Choose) => settings.squared(),
            (Some(kind), Automatic::Choose) => settings.loss(kind),
            (Some(kind), Automatic::Value(sigma)) => settings.loss(kind).sigma(sigma),
            (None, Automatic::Value(sigma)) => {
                return Err(Error::setting("sigma", sigma)
                    .expected("no kernel size with --loss squared")
                    .into());
            }
            (_, Automatic::PseudoInverse) => {
                return Err(Error::setting("sigma", "pinv").expected("auto or a number").into());
            }
        };
        settings = match self.ridge {
            Automatic::Choose => settings,
            Automatic::Value(ridge) => settings.ridge(ridge),
            Automatic::PseudoInverse => settings.pseudo_inverse(),
        };
        // Both tasks agree on all but scalers.
        settings.clone().check(task)?;
        Ok(settings)
    }

    /// Whether nothing was said.
    pub(super) fn is_usual(&self) -> bool {
        let matches = Self::augment_args(clap::Command::new("fit")).get_matches_from(["fit"]);
        let usual = Self::from_arg_matches(&matches);
        usual.is_ok_and(|usual| format!("{usual:?}") == format!("{self:?}"))
    }

    /// The robust loss that was asked for; `None` for the squared one.
    fn robust_loss(&self) -> Result<Option<RobustLoss>, Fault> {
        let misplaced = |option: &str, loss: &str| {
            Error::setting(option, format!("--{option} for another loss"))
                .expected(format!("--{option} with --loss {loss} only"))
        };
        if self.shape.is_some() && !matches!(self.loss, LossName::Generalised) {
            return Err(misplaced("shape", "generalised").into());
        }
        if self.mixture.is_some() && !matches!(self.loss, LossName::Mixture) {
            return Err(misplaced("mixture", "mixture").into());
        }
        Ok(self.loss.robust(self.shape.unwrap_or(SHAPE), self.mixture.unwrap_or(MIXTURE)))
    }
}

impl LossName {
    /// The loss with its usual shape; `None` for the squared one.
    pub(super) fn usual(self) -> Option<RobustLoss> {
        self.robust(SHAPE, MIXTURE)
    }

    fn robust(self, shape: f64, (share, ratio): (f64, f64)) -> Option<RobustLoss> {
        match self {
            Self::Squared => None,
            Self::Correntropy => Some(RobustLoss::Correntropy),
            Self::Huber => Some(RobustLoss::Huber),
            Self::Absolute => Some(RobustLoss::Absolute),
            Self::Bisquare => Some(RobustLoss::Bisquare),
            Self::Generalised => Some(RobustLoss::Generalised { shape }),
            Self::Mixture => Some(RobustLoss::Mixture { share, ratio }),
        }
    }
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
            format!("{}{}{relevance}", network.recipe.name(), gain.unwrap_or_default())
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
