//! `broadlearn tune`: the best settings of a grid, and their model.

use super::fit::save;
use super::update::about;
use crate::context::Context;
use crate::data_args::{ColumnArgs, DataArgs};
use crate::fault::Fault;
use crate::learning_args::{LossName, names};
use crate::{format, output};
use broadlearn::data::Task;
use broadlearn::features::Recipe;
use broadlearn::model::Training;
use broadlearn::model::tune::{Finalist, Grid, Judged, Setting, Trial, Tuned, Tuning, Validation};
use broadlearn::{Category, Error};
use broadlearn_report::{Card, HeatMap, Page, Table};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn tune train.csv --target price --model price.broad
  broadlearn tune train.csv --target price --model price.broad --grid paper --report grid.html
  broadlearn tune train.csv --target kind --model kind.broad --recipes rich --gains 0.5..4 \\
      --enhancement-nodes 100..1000/100 --ridges 1e-6..100/10 --loss squared --out grid.csv
  broadlearn tune train.csv --target price --model price.broad --score 10 --json | jq .winner

Lists are values and ranges with commas between them. A range of counts goes in steps: 1..20, or
100..1000/100. A range of numbers goes by a factor: 0.5..4 doubles, 1e-6..100/10 takes every tenth
power; 2^-5 is a number, too. Both ends belong to a range.

Every row is predicted without itself: by leave-one-out in closed form, or by --score folds. All
numbers of enhancement nodes of a network are judged with one factorisation. The best settings
(--finalists) are then fitted exactly, and the best of these is written.

score    the mean squared error of such predictions, in spreads of the target; under a robust loss
         squares are cut off where wrong rows begin, so that these do not decide
exact    the score of the model that is fitted with these settings; beside it, `by fit` marks what `fit` chooses by
         itself, which may look at inputs by their relevance: without lists it takes part

After an interruption the same command goes on where it was.")]
pub(crate) struct TuneArgs {
    /// The training table (CSV, Parquet, .npy, .npz; gzip too; - for stdin)
    data: PathBuf,
    /// The column to predict: a name, a number from 1, or last (repeat for several targets)
    #[arg(long, short, required = true, value_name = "COLUMN")]
    target: Vec<String>,
    /// Where the model of the best settings goes
    #[arg(long, short, value_name = "FILE")]
    model: PathBuf,
    /// How many settings are listed
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Write every setting and its score here (CSV)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page with heat maps here (HTML)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where the progress is kept until the model is written [default: MODEL.tuning]
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Keep the progress when all is done
    #[arg(long)]
    keep: bool,

    /// Where lists come from that are not given
    #[arg(long, value_enum, default_value_t = GridName::Default, help_heading = "Grid")]
    grid: GridName,
    /// How the network is built
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = names(Recipe::ALL, Recipe::name), help_heading = "Grid")]
    recipes: Option<Vec<Recipe>>,
    /// Feature groups; not for recipe rich
    #[arg(long, value_name = "LIST", value_parser = counts, help_heading = "Grid")]
    feature_groups: Option<Counts>,
    /// Nodes in a feature group; not for recipe rich
    #[arg(long, value_name = "LIST", value_parser = counts, help_heading = "Grid")]
    feature_nodes: Option<Counts>,
    /// Enhancement nodes
    #[arg(long, value_name = "LIST", value_parser = counts, help_heading = "Grid")]
    enhancement_nodes: Option<Counts>,
    /// Sizes of the random weights; only for recipe rich
    #[arg(long, value_name = "LIST", value_parser = numbers, help_heading = "Grid")]
    gains: Option<Numbers>,
    /// How many inputs a node reads, or all; only for recipe rich
    #[arg(long, value_name = "LIST", value_parser = fan_ins, help_heading = "Grid")]
    fan_ins: Option<FanIns>,
    /// Penalties on the output weights
    #[arg(long, value_name = "LIST", value_parser = numbers, help_heading = "Grid")]
    ridges: Option<Numbers>,
    /// Kernel sizes in units of the scaled target; not for --loss squared
    #[arg(long, value_name = "LIST", value_parser = numbers, help_heading = "Grid")]
    sigmas: Option<Numbers>,

    /// loo for leave-one-out, or a number of folds
    #[arg(long, value_name = "loo|K", default_value = "loo", value_parser = validation, help_heading = "Search")]
    score: Validation,
    /// What is minimised
    #[arg(long, value_enum, default_value_t = LossName::Correntropy, help_heading = "Search")]
    loss: LossName,
    /// So many networks, each with its best setting, are fitted and judged exactly
    #[arg(long, value_name = "N", default_value_t = 8, help_heading = "Search")]
    finalists: usize,
    /// The model is the mean of so many networks of the best settings [default: 5 up to 10 000 rows, then 1; 1 for --grid
    /// paper]
    #[arg(long, value_name = "K", help_heading = "Search")]
    members: Option<usize>,
    /// The seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    seed: u64,

    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    table: DataArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GridName {
    /// Recipe rich of several gains and sizes, and classic; eight ridges, six kernel sizes
    Default,
    /// That of the C-BLS paper: recipe classic, 1 to 20 groups of 1 to 19 nodes, 1 to 196
    /// enhancement nodes, sigma from 2^-5 to 2^5, ridge 2^-30
    Paper,
}

#[derive(Clone, Debug)]
struct Counts(Vec<usize>);

/// Numbers of inputs; `None` for all.
#[derive(Clone, Debug)]
struct FanIns(Vec<Option<usize>>);

#[derive(Clone, Debug)]
struct Numbers(Vec<f64>);

/// More values than this in one list are taken for a mistake.
const MOST_VALUES: usize = 100_000;

/// The values of a list, each or each range of it by a function of both ends and the step.
fn list<T: PartialOrd + Copy>(
    text: &str,
    value: impl Fn(&str) -> Option<T>,
    range: impl Fn(T, T, Option<T>) -> Option<Vec<T>>,
) -> Option<Vec<T>> {
    let mut values = Vec::new();
    for item in text.split(',').map(str::trim) {
        match item.split_once("..") {
            None => values.push(value(item)?),
            Some((low, rest)) => {
                let (high, step) = match rest.split_once('/') {
                    None => (rest, None),
                    Some((high, step)) => (high, Some(value(step)?)),
                };
                let (low, high) = (value(low)?, value(high.trim_start_matches('='))?);
                values.extend(range(low, high, step).filter(|_| low <= high)?);
            }
        }
        if values.len() > MOST_VALUES {
            return None;
        }
    }
    Some(values)
}

fn counts(text: &str) -> Result<Counts, String> {
    let range = |low: usize, high: usize, step: Option<usize>| {
        let step = step.unwrap_or(1);
        (step > 0).then(|| (low..=high).step_by(step).take(MOST_VALUES + 1).collect())
    };
    list(text, |item| item.trim().parse().ok(), range)
        .map(Counts)
        .ok_or_else(|| "expected counts such as 10,20 or 1..20 or 100..1000/100".into())
}

fn fan_ins(text: &str) -> Result<FanIns, String> {
    let count = |item: &str| match item.trim() {
        "all" => Ok(None),
        item => item.parse().map(Some),
    };
    let counts: Result<Vec<Option<usize>>, _> = text.split(',').map(count).collect();
    counts.map(FanIns).map_err(|_| "expected counts and all, such as all,2,5".into())
}

fn numbers(text: &str) -> Result<Numbers, String> {
    let value = |item: &str| -> Option<f64> {
        let item = item.trim();
        let value = match item.split_once('^') {
            None => item.parse::<f64>().ok()?,
            Some((base, power)) => base.parse::<f64>().ok()?.powf(power.parse().ok()?),
        };
        (value > 0.0 && value.is_finite()).then_some(value)
    };
    let range = |low: f64, high: f64, factor: Option<f64>| {
        let factor = factor.unwrap_or(2.0);
        // The last one may be off by rounding errors.
        let values = (0..).map(|k| low * factor.powi(k)).take_while(|v| *v <= high * (1.0 + 1e-9));
        (factor > 1.0).then(|| values.take(MOST_VALUES + 1).collect())
    };
    list(text, value, range).map(Numbers).ok_or_else(|| {
        "expected positive numbers such as 0.1,1 or 2^-5..2^5 or 1e-6..100/10".into()
    })
}

fn validation(text: &str) -> Result<Validation, String> {
    match (text, text.parse::<usize>()) {
        ("loo", _) => Ok(Validation::LeaveOneOut),
        (_, Ok(folds)) if folds >= 2 => Ok(Validation::Folds(folds)),
        _ => Err("expected loo, or a number of folds from 2".into()),
    }
}

pub(crate) fn run(args: &TuneArgs, context: &Context) -> Result<(), Fault> {
    let begun = Instant::now();
    let tuning = args.tuning()?;
    let progress = args.progress();
    output::check_table(args.out.as_deref())?;
    output::check_places(
        std::iter::once(&args.model).chain(&args.out).chain(&args.report).chain(&progress),
        [&args.data],
    )?;
    let data = args.columns.read(&args.data, &args.target, &args.table, context)?;
    let all: Vec<usize> = (0..data.len()).collect();
    let schema = data.schema(&all)?;
    let samples = data.into_samples(&schema)?;
    let settings = format::plural(tuning.grid.len(tuning.loss.is_some()) as u64, "setting");
    match &progress {
        Some(path) => context.say(format_args!("{settings}; progress in {}", path.display())),
        None => context.say(settings),
    }
    let training = Training {
        x: samples.x.as_ref(),
        targets: &samples.targets,
        weights: samples.weights.as_deref(),
        schema,
    };
    let tuned = tuning.run(training, progress.as_deref(), &mut context.observer());
    context.end_progress();
    let tuned = tuned.map_err(|error| match (error.category(), &progress) {
        (Category::Interrupted, Some(path)) => error.advice(format!(
            "the same command goes on where it was; progress is in {}",
            path.display()
        )),
        // A file of progress has a name already.
        _ if error.to_string().starts_with(&shown(progress.as_deref())) => error,
        _ => about(error, &args.data),
    })?;

    let found = Found { tuned: &tuned, tuning: &tuning, args };
    if let Some(path) = &args.out {
        output::write_file(path, &found.csv())?;
    }
    if let Some(path) = &args.report {
        output::write_file(path, &found.page())?;
    }
    save(&tuned.model, &args.model)?;
    if let Some(path) = progress.filter(|_| !args.keep) {
        std::fs::remove_file(&path)
            .map_err(|error| Error::io(path.display().to_string(), "write", error))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    if context.json {
        let object = found.json(seconds);
        if args.model == Path::new("-") {
            context.say(object);
            return Ok(());
        }
        return output::print_json(&object);
    }
    if args.model == Path::new("-") {
        context.say(found.describe());
    } else {
        output::print(&found.describe())?;
    }
    context.say(format_args!("wrote {} in {seconds:.1} s", args.model.display()));
    Ok(())
}

/// The name of the file of progress; something that no message begins with if there is none.
fn shown(path: Option<&Path>) -> String {
    path.map_or("\0".into(), |path| path.display().to_string())
}

impl TuneArgs {
    fn tuning(&self) -> Result<Tuning, Fault> {
        let mut grid = match self.grid {
            GridName::Default => Grid::usual(),
            GridName::Paper => Grid::paper(),
        };
        let loss = self.loss.usual();
        if self.loss.is_procedure() {
            return Err(Error::setting("loss", "a procedure of its own")
                .expected("a loss whose fixed points can be compared")
                .advice("use --loss absolute or huber")
                .into());
        }
        if loss.is_none() && self.sigmas.is_some() {
            return Err(Error::setting("sigmas", "kernel sizes for the squared loss")
                .expected("no --sigmas with --loss squared")
                .into());
        }
        if let Some(recipes) = &self.recipes {
            grid.recipes.clone_from(recipes);
        }
        for (into, given) in [
            (&mut grid.feature_groups, &self.feature_groups),
            (&mut grid.feature_nodes, &self.feature_nodes),
            (&mut grid.enhancement_nodes, &self.enhancement_nodes),
        ] {
            if let Some(Counts(values)) = given {
                into.clone_from(values);
            }
        }
        for (into, given) in [
            (&mut grid.gains, &self.gains),
            (&mut grid.ridges, &self.ridges),
            (&mut grid.sigmas, &self.sigmas),
        ] {
            if let Some(Numbers(values)) = given {
                into.clone_from(values);
            }
        }
        if let Some(FanIns(values)) = &self.fan_ins {
            grid.fan_ins.clone_from(values);
        }
        let rich = grid.recipes.contains(&Recipe::Rich);
        let gained = grid.recipes.iter().any(|recipe| recipe.network().enhancement.gain.is_some());
        let grouped = grid.recipes.iter().any(|recipe| recipe.has_feature_groups());
        if gained && grid.gains.is_empty() {
            grid.gains = Grid::usual().gains;
        }
        for (given, meant, option, recipes) in [
            (self.gains.is_some(), gained, "gains", "rich, convolution or recurrent"),
            (self.fan_ins.is_some(), rich, "fan-ins", "rich"),
            (
                self.feature_groups.is_some(),
                grouped,
                "feature-groups",
                "classic, unscaled, plain or fuzzy",
            ),
            (
                self.feature_nodes.is_some(),
                grouped,
                "feature-nodes",
                "classic, unscaled, plain or fuzzy",
            ),
        ] {
            if given && !meant {
                return Err(Error::setting(option, "values that no recipe of the grid has")
                    .expected(format!("a recipe that has this setting: {recipes}"))
                    .advice("add it with --recipes")
                    .into());
            }
        }
        Ok(Tuning {
            grid,
            validation: self.score,
            loss,
            seed: self.seed,
            finalists: self.finalists,
            automatic: self.takes_default_grid(),
            members: match self.grid {
                GridName::Default => self.members,
                GridName::Paper => self.members.or(Some(1)),
            },
        })
    }

    /// Whether the user leaves the grid to the command. Then what `fit` chooses by itself may win.
    fn takes_default_grid(&self) -> bool {
        let counts = [&self.feature_groups, &self.feature_nodes, &self.enhancement_nodes];
        let numbers = [&self.gains, &self.ridges, &self.sigmas];
        matches!(self.grid, GridName::Default)
            && self.recipes.is_none()
            && self.fan_ins.is_none()
            && counts.iter().all(|list| list.is_none())
            && numbers.iter().all(|list| list.is_none())
    }

    fn progress(&self) -> Option<PathBuf> {
        if self.progress.is_some() || self.model == Path::new("-") {
            return self.progress.clone();
        }
        let mut name = self.model.clone().into_os_string();
        name.push(".tuning");
        Some(name.into())
    }
}

/// A side of a heat map: its name, and the value of a setting there.
type Axis<'a> = (&'static str, &'a dyn Fn(&Setting) -> Option<f64>);

/// What came of a search.
struct Found<'a> {
    tuned: &'a Tuned,
    tuning: &'a Tuning,
    args: &'a TuneArgs,
}

impl Found<'_> {
    fn task(&self) -> Task {
        self.tuned.model.task()
    }

    fn metric(&self) -> &'static str {
        match self.task() {
            Task::Regression => "rmse",
            Task::Classification => "accuracy",
        }
    }

    fn shown_metric(&self, value: f64) -> String {
        match self.task() {
            Task::Regression => format::number(value),
            Task::Classification => format!("{:.2} %", 100.0 * value),
        }
    }

    fn winner(&self) -> &Finalist {
        &self.tuned.finalists[0]
    }

    fn judged(&self) -> usize {
        self.tuned.trials.iter().take_while(|trial| trial.judged.is_some()).count()
    }

    fn json(&self, seconds: f64) -> serde_json::Value {
        let setting = |setting: &Setting, judged: Option<Judged>| {
            let mut object = json!(setting);
            object["score"] = json!(judged.map(|judged| judged.score));
            object[self.metric()] = json!(judged.map(|judged| judged.metric));
            object
        };
        let finalist = |finalist: &Finalist| {
            let mut object = setting(&finalist.setting, Some(finalist.exact));
            object["search"] =
                finalist.search.map_or(json!(null), |search| setting_scores(self.metric(), search));
            object
        };
        json!({
            "data": self.args.data,
            "model": self.args.model,
            "task": self.task().name(),
            "rows": self.tuned.model.rows(),
            "validation": self.tuning.validation,
            "n_settings": self.tuned.trials.len(),
            "n_judged": self.judged(),
            "seconds": seconds,
            "winner": finalist(self.winner()),
            "finalists": self.tuned.finalists.iter().map(finalist).collect::<Vec<_>>(),
            "results": self.tuned.trials.iter().map(|trial| setting(&trial.setting, trial.judged))
                .collect::<Vec<_>>(),
        })
    }

    fn csv(&self) -> String {
        let mut text = format!(
            "recipe,gain,fan_in,feature_groups,feature_nodes,enhancement_nodes,ridge,sigma,score,{}\n",
            self.metric()
        );
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let count = |value: Option<usize>| value.map_or(String::new(), |value| value.to_string());
        for Trial { setting, judged } in &self.tuned.trials {
            let cells = [
                setting.network.recipe.name().to_owned(),
                cell(setting.network.gain),
                count(setting.network.fan_in),
                count(setting.network.feature_groups),
                count(setting.network.feature_nodes),
                setting.enhancement_nodes.to_string(),
                setting.ridge.to_string(),
                cell(setting.sigma),
                cell(judged.map(|judged| judged.score)),
                cell(judged.map(|judged| judged.metric)),
            ];
            text.push_str(&cells.join(","));
            text.push('\n');
        }
        text
    }

    fn head(&self) -> Vec<String> {
        let names =
            ["recipe", "gain", "fan-in", "groups", "nodes", "enhancement", "ridge", "sigma"];
        names.map(str::to_owned).to_vec()
    }

    fn cells(setting: &Setting) -> Vec<String> {
        let count = |value: Option<usize>| value.map_or("-".into(), |value| value.to_string());
        let number = |value: Option<f64>| value.map_or("-".into(), format::setting);
        let fan_in = match (setting.network.gain, setting.network.fan_in) {
            (Some(_), None) => "all".into(),
            (_, inputs) => count(inputs),
        };
        vec![
            setting.network.recipe.name().to_owned(),
            number(setting.network.gain),
            fan_in,
            count(setting.network.feature_groups),
            count(setting.network.feature_nodes),
            setting.enhancement_nodes.to_string(),
            format::setting(setting.ridge),
            number(setting.sigma),
        ]
    }

    fn finalists(&self) -> Vec<Vec<String>> {
        let mut head = self.head();
        head.extend(["score".into(), "exact".into(), self.metric().into()]);
        let row = |finalist: &Finalist| {
            let mut row = Self::cells(&finalist.setting);
            row.push(finalist.search.map_or("by fit".into(), |s| format::number(s.score)));
            row.push(format::number(finalist.exact.score));
            row.push(self.shown_metric(finalist.exact.metric));
            row
        };
        without_idle_columns(
            std::iter::once(head).chain(self.tuned.finalists.iter().map(row)).collect(),
        )
    }

    fn best(&self) -> Vec<Vec<String>> {
        let mut head = self.head();
        head.extend(["score".into(), self.metric().into()]);
        let row = |trial: &Trial| {
            let mut row = Self::cells(&trial.setting);
            let judged = trial.judged?;
            row.extend([format::number(judged.score), self.shown_metric(judged.metric)]);
            Some(row)
        };
        let top = self.tuned.trials.iter().take(self.args.top).filter_map(row);
        without_idle_columns(std::iter::once(head).chain(top).collect())
    }

    fn describe(&self) -> String {
        let (all, judged) = (self.tuned.trials.len() as u64, self.judged() as u64);
        let mut text = format!("{} compared", format::plural(judged, "setting"));
        if judged < all {
            text.push_str(&format!(
                "; {} gave no model, or one of which {} says nothing",
                format::count(all - judged),
                match self.tuning.validation {
                    Validation::LeaveOneOut => "leave-one-out",
                    Validation::Folds(_) => "a fold",
                }
            ));
        }
        text.push_str(&format!(":\n\n{}", format::table(&self.best())));
        text.push_str("\nThe best networks, fitted; the first one is the model:\n\n");
        text.push_str(&format::table(&self.finalists()));
        text
    }

    fn page(&self) -> String {
        let winner = self.winner();
        let mut page = Page::new(format!("Settings for {}", self.args.data.display()))
            .lead(format!(
                "{} compared by rows that were predicted without themselves.",
                format::plural(self.judged() as u64, "setting")
            ))
            .cards(vec![
                Card::new("rows", format::count(self.tuned.model.rows())),
                Card::new("settings", format::count(self.tuned.trials.len() as u64)),
                Card::new(self.metric(), self.shown_metric(winner.exact.metric)),
                Card::new("score", format::number(winner.exact.score)),
            ]);
        page = page.section("The best networks").table(as_table(
            &self.finalists(),
            "Fitted and judged by their own models; the first one was written.",
        ));
        page = page.section("Heat maps").paragraph(
            "Each cell has the best setting with these two values. Scores are in units of the best one \
             of all; 3 stands for three times as much or more.",
        );
        let features = |setting: &Setting| {
            let nodes = setting.network.feature_groups.zip(setting.network.feature_nodes);
            nodes.map(|(groups, nodes)| (groups * nodes) as f64)
        };
        let enhancement: Axis<'_> = ("enhancement nodes", &|s| Some(s.enhancement_nodes as f64));
        let groups: Axis<'_> = ("feature groups", &|s| s.network.feature_groups.map(|n| n as f64));
        let nodes: Axis<'_> =
            ("nodes in a feature group", &|s| s.network.feature_nodes.map(|n| n as f64));
        let gain: Axis<'_> = ("gain", &|s| s.network.gain);
        let ridge: Axis<'_> = ("ridge", &|s| Some(s.ridge));
        let sigma: Axis<'_> = ("kernel size sigma", &|s| s.sigma);
        let maps: [(Axis<'_>, Axis<'_>); 6] = [
            (enhancement, ("feature nodes in all", &features)),
            (groups, nodes),
            (enhancement, gain),
            (sigma, ridge),
            (enhancement, sigma),
            (enhancement, ridge),
        ];
        for (x, y) in maps {
            if let Some(map) = self.heat_map(x, y) {
                page = page.heat_map(map, format!("Best score by {} and {}.", x.0, y.0));
            }
        }
        page = page
            .section("The best settings")
            .table(as_table(&self.best(), self.about_the_search()));
        page.footer("Made by broadlearn.").to_html()
    }

    fn about_the_search(&self) -> &'static str {
        match (self.tuning.loss, self.tuning.validation) {
            (Some(_), Validation::LeaveOneOut) => {
                "By the search; the best first. Leave-one-out favours narrow kernels: the finalists have the one that predicts \
                 folds best."
            }
            _ => "By the search; the best first.",
        }
    }

    /// The best score for every two values; `None` unless both vary.
    fn heat_map(&self, x: Axis<'_>, y: Axis<'_>) -> Option<HeatMap> {
        let pairs: Vec<(f64, f64, f64)> = self
            .tuned
            .trials
            .iter()
            .filter_map(|t| Some((x.1(&t.setting)?, y.1(&t.setting)?, t.judged?.score)))
            .collect();
        let values = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(of).collect();
            values.sort_unstable_by(f64::total_cmp);
            values.dedup();
            values
        };
        let (columns, rows) = (values(&|pair| pair.0), values(&|pair| pair.1));
        if columns.len() < 2 || rows.len() < 2 {
            return None;
        }
        let least = pairs.iter().map(|pair| pair.2).fold(f64::INFINITY, f64::min);
        let mut cells = vec![vec![f64::NAN; columns.len()]; rows.len()];
        for (x, y, score) in pairs {
            let place = |values: &[f64], value: f64| values.partition_point(|v| *v < value);
            let cell = &mut cells[place(&rows, y)][place(&columns, x)];
            let relative = if least > 0.0 { (score / least).min(3.0) } else { score };
            *cell = cell.min(relative);
        }
        let names = |values: &[f64]| values.iter().map(|v| format::setting(*v)).collect::<Vec<_>>();
        let title = format!("{} and {}", x.0, y.0);
        Some(
            HeatMap::new(title, names(&columns), names(&rows), cells)
                .x_label(x.0)
                .y_label(y.0)
                .value_label("score / best score"),
        )
    }
}

/// A table without the columns of which no row has a value.
fn without_idle_columns(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let used: Vec<bool> = (0..rows.first().map_or(0, Vec::len))
        .map(|column| rows.iter().skip(1).any(|row| row[column] != "-"))
        .collect();
    let kept = |row: Vec<String>| {
        row.into_iter().zip(&used).filter(|(_, used)| **used).map(|(cell, _)| cell).collect()
    };
    rows.into_iter().map(kept).collect()
}

fn setting_scores(metric: &str, judged: Judged) -> serde_json::Value {
    json!({ "score": judged.score, metric: judged.metric })
}

fn as_table(rows: &[Vec<String>], caption: &str) -> Table {
    let (head, body) = rows.split_first().map_or((Vec::new(), &[][..]), |(h, b)| (h.clone(), b));
    let table = Table::new(head).caption(caption);
    body.iter().fold(table, |table, row| table.row(row.clone()))
}
