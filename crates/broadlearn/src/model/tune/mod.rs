//! A search over a grid of settings.
//!
//! 1. Every row gets a sample weight from models that have not seen it, and residuals a yardstick, as in
//!    `model/choose/`; for the squared loss there is nothing to do.
//! 2. Networks go through all ridges and kernels, each judged at all its sizes together (`block.rs`).
//! 3. The best settings of the best networks are fitted as a user would fit them, and judged by their
//!    own models; so is what a fit with nothing given chooses by itself. The best of these is the result.
//!
//! What step 2 gives is exact for the squared loss, but that the recipe `classic` makes its enhancement
//! nodes all together, so that those of a smaller network are not quite the first of a larger one: they
//! are taken from the largest network of a group of sizes. For a robust loss the weights of the rows
//! are those of that network, too, after a few steps. Step 3 is exact: leave-one-out with the weights of the model, or folds.

mod block;
mod finals;
mod grid;
mod journal;
mod judge;

pub use grid::{Grid, Network, Setting};
pub use judge::Judged;

use super::distinct::Distinct;
use super::rows::{Kept, Labelled, target_matrix};
use super::{CheckedSettings, Settings};
use super::{Model, Training};
use crate::data::{Schema, Targets, Task};
use crate::error::{Error, Result};
use crate::features::build::build;
use crate::features::draw::{Purpose, Stream};
use crate::features::{FeatureMap, Recipe};
use crate::increment::ledger::fingerprints;
use crate::linalg::{parallelism, select_rows};
use crate::preprocess::{ScaledRows, Scaler, Scaling};
use crate::progress::{Observer, report};
use crate::solve::RobustLoss;
use crate::solve::automatic::score::Yardstick;
use crate::solve::automatic::{self, Choice, RIDGES, choose};
use crate::solve::start::Start;
use block::{Block, Group, Rows};
use faer::{Mat, MatRef, Par};
use journal::{Journal, Known};
use judge::Judge;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

/// How rows are predicted without themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// Each row by a model of all others, in closed form; sample weights stay as they are.
    #[default]
    LeaveOneOut,
    /// So many parts of the rows, each by a model of the others.
    Folds(usize),
}

/// A search: what is tried, and how it is judged.
///
/// The cost for a network of L nodes and N rows is about N L^2 flops for each step of the fixed point, and
/// some ten steps for each ridge and kernel, whatever the number of sizes.
///
/// ```
/// use broadlearn::data::{Schema, TargetSchema, Targets};
/// use broadlearn::model::{Training, tune::{Grid, Tuning}};
/// use broadlearn::{faer::Mat, unobserved};
/// let x = Mat::from_fn(80, 1, |i, _| i as f64 / 10.0);
/// let y = Targets::Values(Mat::from_fn(80, 1, |i, _| (i as f64 / 10.0).sin()));
/// let schema = Schema::numeric(1, TargetSchema::Regression { names: vec!["y".into()] });
/// let grid = Grid { enhancement_nodes: vec![5, 10, 20], sigmas: vec![1.0], ..Grid::usual() };
/// let tuning = Tuning { grid, finalists: 2, ..Tuning::default() };
/// let training = Training { x: x.as_ref(), targets: &y, weights: None, schema };
/// let tuned = tuning.run(training, None, &mut unobserved)?;
/// assert!(tuned.finalists[0].exact.metric < 0.05);
/// # Ok::<(), broadlearn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// What is tried.
    pub grid: Grid,
    /// How it is judged.
    pub validation: Validation,
    /// The loss; `None` for the squared one.
    pub loss: Option<RobustLoss>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// So many networks, each with its best setting, are fitted and judged by their own models.
    pub finalists: usize,
    /// Whether what a fit with nothing given chooses by itself is judged with them: it knows of more than a grid does.
    pub automatic: bool,
    /// The result is the mean of so many networks; `None` for as many as a fit with nothing given takes.
    pub members: Option<usize>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            grid: Grid::usual(),
            validation: Validation::default(),
            loss: Some(RobustLoss::default()),
            seed: 0,
            finalists: 8,
            automatic: true,
            members: None,
        }
    }
}

/// A setting, and how good it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// `None` where it gave no model, or one of which leave-one-out says nothing.
    #[serde(flatten)]
    pub judged: Option<Judged>,
}

/// A setting that was fitted and judged by its own model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Finalist {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// How the search had judged it; `None` for what a fit chose by itself.
    pub search: Option<Judged>,
    /// How its own model does.
    pub exact: Judged,
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// All settings, the best first, those that could not be judged last.
    pub trials: Vec<Trial>,
    /// The best setting first.
    pub finalists: Vec<Finalist>,
    /// The model of the best setting, of all rows.
    pub model: Model,
}

/// Enhancement nodes of the network that gives rows their first weights.
const FIRST_NODES: usize = 100;
/// Fewer rows leave nothing to judge by.
const LEAST_ROWS: usize = 10;
/// Groups of sizes that share sample weights.
const GROUPS: usize = 4;
/// Networks that are judged together, if there are not more threads; and the memory they may take.
const TOGETHER: usize = 4;
const MOST_BYTES: f64 = 2e9;
/// The golden ratio's fraction: its multiples are spread evenly.
const EVENLY: f64 = 0.618_033_988_749_894_9;

/// The rows of a search in random order, and what is known about them.
struct Sample {
    x: Mat<f64>,
    /// Targets as they are.
    y: Mat<f64>,
    user: Option<Vec<f64>>,
    task: Task,
    /// What the loss makes of honest residuals.
    honest: Option<Vec<f64>>,
    yardstick: Yardstick,
    /// By output: the scale in which the yardstick sees residuals.
    unit: Vec<f64>,
}

impl Tuning {
    /// Runs the search. With a file for the `progress`, networks that are done are written there, and
    /// those found there are not judged again; the file is the caller's to remove.
    ///
    /// # Errors
    /// A grid that makes no sense, rows that do not fit the schema, a file that belongs to another search,
    /// no setting that gives a model, `Interrupted`.
    pub fn run(
        &self,
        training: Training<'_>,
        progress: Option<&Path>,
        observer: &mut Observer<'_>,
    ) -> Result<Tuned> {
        let mut this = Self { grid: self.grid.checked(self.loss)?, ..self.clone() };
        let Training { x, targets, weights, schema } = training;
        this.grid.fan_ins.retain(|fan_in| fan_in.is_none_or(|inputs| inputs < x.ncols()));
        let rows = Labelled { x, targets, weights };
        rows.check(&schema)?;
        let kept = Kept::new(rows);
        let distinct = Distinct::of(kept.rows());
        let rows = distinct.rows();
        this.check(rows, &schema)?;
        let opened = match progress {
            None => (None, Known::new()),
            Some(path) => {
                let (journal, known) = Journal::open(path, &this.key(rows)?)?;
                (Some(journal), known)
            }
        };
        let sample = this.sample(rows, &schema, observer)?;
        let judged = this.search(&sample, opened, observer)?;
        let trials = this.trials(&judged);
        let all = kept.rows();
        let (finalists, model) = this.decide(rows, all, &schema, &trials, &sample, observer)?;
        Ok(Tuned { trials, finalists, model })
    }

    /// An error if some setting cannot be fitted, or there is nothing to judge by.
    fn check(&self, rows: Labelled<'_>, schema: &Schema) -> Result<()> {
        let (count, task) = (rows.x.nrows(), schema.target.task());
        if count < LEAST_ROWS {
            return Err(Error::data(format!("{count} rows"))
                .expected(format!("at least {LEAST_ROWS} to compare settings by")));
        }
        if let Validation::Folds(folds) = self.validation
            && !(2..=count).contains(&folds)
        {
            return Err(Error::setting("score", folds)
                .expected(format!("loo, or a number of folds from 2 to {count}, the rows")));
        }
        if self.finalists == 0 {
            return Err(Error::setting("finalists", 0).expected("at least 1"));
        }
        if let Some(count) = self.members {
            self.automatic().members(count).check(task)?;
        }
        if let Targets::Values(y) = rows.targets {
            super::choose::check_varies(y.as_ref(), task)?;
        }
        for network in self.grid.networks() {
            let checked = self.largest(network).check(task)?;
            let width = checked.network.width(rows.x.ncols());
            let most = crate::features::Network::MAX_WIDTH;
            if width > most {
                return Err(Error::setting("nodes", width)
                    .expected(format!("at most {most} nodes in all, inputs included")));
            }
            checked.network.check_memory(rows.x.ncols())?;
        }
        Ok(())
    }

    /// What tells searches apart: task, rows, grid, and how they are judged.
    fn key(&self, rows: Labelled<'_>) -> Result<String> {
        let mut hash = Sha256::new();
        let is_classification = matches!(rows.targets, Targets::Classes(_));
        let what = (is_classification, &self.grid, self.validation, self.loss, self.seed);
        let what = serde_json::to_vec(&what)
            .map_err(|error| Error::setting("grid", "what JSON cannot hold").caused_by(error))?;
        hash.update(what);
        fingerprints(rows.x, rows.targets).iter().for_each(|row| hash.update(row.to_le_bytes()));
        rows.weights.into_iter().flatten().for_each(|weight| hash.update(weight.to_le_bytes()));
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Settings in which nothing is open.
    pub fn settings(&self, setting: &Setting) -> Settings {
        let Setting { network, enhancement_nodes, ridge, sigma } = *setting;
        let mut settings = Settings::recipe(network.recipe)
            .enhancement_nodes(enhancement_nodes)
            .ridge(ridge)
            .seed(self.seed);
        if let Some(gain) = network.gain {
            settings = settings.gain(gain);
        }
        if let Some(inputs) = network.fan_in {
            settings = settings.fan_in(inputs);
        }
        if let Some(groups) = network.feature_groups {
            settings = settings.feature_groups(groups);
        }
        if let Some(nodes) = network.feature_nodes {
            settings = settings.feature_nodes(nodes);
        }
        match (self.loss, sigma) {
            (Some(kind), Some(sigma)) => settings.loss(kind).sigma(sigma),
            _ => settings.squared(),
        }
    }

    /// Some setting of a network at its largest size.
    fn largest(&self, network: Network) -> Settings {
        let nodes = self.grid.enhancement_nodes.last().copied().unwrap_or(0);
        let sigma = self.loss.and(self.grid.sigmas.first().copied());
        let ridge = self.grid.ridges[0];
        self.settings(&Setting { network, enhancement_nodes: nodes, ridge, sigma })
    }

    fn sample(
        &self,
        rows: Labelled<'_>,
        schema: &Schema,
        observer: &mut Observer<'_>,
    ) -> Result<Sample> {
        let order = Stream::new(self.seed, Purpose::Folds, 0).permutation(rows.x.nrows());
        let y = target_matrix(rows.targets, schema.target.outputs());
        let (x, mut y) = (select_rows(rows.x, &order), select_rows(y.as_ref(), &order));
        let user: Option<Vec<f64>> =
            rows.weights.map(|user| order.iter().map(|&row| user[row]).collect());
        let task = schema.target.task();
        let (scaling, judge) = match task {
            Task::Regression => (Scaling::Robust, automatic::Judge::Residuals),
            Task::Classification => (Scaling::None, automatic::Judge::Classes),
        };
        let scaler = Scaler::fit(scaling, y.as_ref(), user.as_deref());
        let mut sample = Sample {
            x,
            y: Mat::zeros(0, 0),
            user,
            task,
            honest: None,
            yardstick: Yardstick::new(&[], judge, false),
            unit: factors(&scaler, y.ncols()),
        };
        if let Some(kind) = self.loss {
            let settings = Settings::recipe(Recipe::Rich)
                .enhancement_nodes(FIRST_NODES)
                .seed(self.seed)
                .check(task)?;
            let (u, map) = sample.state(&settings)?;
            let mut scaled = y.clone();
            scaler.apply(scaled.as_mut());
            let linear = map.leading_features();
            let robust = Some((kind, None));
            let choice = Choice { ridges: &RIDGES, robust, start: Start::Best, linear };
            let user = sample.user.as_deref();
            let chosen = choose(u.as_ref(), scaled.as_ref(), user, choice, judge, observer)?;
            if let Some(chosen) = chosen {
                let mut weights = chosen.squares;
                if let Some(sigma) = chosen.sigma {
                    kind.at(sigma).weigh(&mut weights);
                    sample.honest = Some(weights);
                }
                sample.yardstick = chosen.yardstick;
            }
        }
        std::mem::swap(&mut sample.y, &mut y);
        Ok(sample)
    }

    /// How every network does, in the order of the grid.
    fn search(
        &self,
        sample: &Sample,
        (mut journal, mut known): (Option<Journal>, Known),
        observer: &mut Observer<'_>,
    ) -> Result<Known> {
        let per_network = self.grid.per_network(self.loss.is_some());
        let networks = self.grid.networks();
        known.retain(|&place, judged| place < networks.len() && judged.len() == per_network);
        let total = (networks.len() * per_network) as u64;
        let mut done = (known.len() * per_network) as u64;
        report(observer, "searching", done, Some(total))?;
        let sizes = self.grid.enhancement_nodes.len();
        for chunk in self.chunks(sample, &networks, &known) {
            let par = if chunk.len() == 1 { parallelism() } else { Par::Seq };
            let ready: Result<Vec<Ready>> =
                chunk.par_iter().map(|&place| self.ready(sample, networks[place], par)).collect();
            let mut ready = ready?;
            for (r, &ridge) in self.grid.ridges.iter().enumerate() {
                for one in &mut ready {
                    one.block.restart();
                }
                for (k, kernel) in self.kernels().into_iter().enumerate().rev() {
                    ready.par_iter_mut().for_each(|one| {
                        let judge = Judge {
                            task: sample.task,
                            yardstick: &sample.yardstick,
                            to_yardstick: &one.to_yardstick,
                            to_target: &one.to_target,
                        };
                        let judged = one.block.step(ridge, kernel, &judge);
                        let from = (r * self.kernels().len() + k) * sizes;
                        one.judged[from..from + sizes].copy_from_slice(&judged);
                    });
                    done += (sizes * chunk.len()) as u64;
                    report(observer, "searching", done, Some(total))?;
                }
            }
            for (place, one) in chunk.into_iter().zip(ready) {
                if let Some(journal) = &mut journal {
                    journal.add(place, &one.judged)?;
                }
                known.insert(place, one.judged);
            }
        }
        Ok(known)
    }

    /// Kernels in the order of the grid, narrow ones first; one `None` for the squared loss.
    fn kernels(&self) -> Vec<Option<(RobustLoss, f64)>> {
        match self.loss {
            None => vec![None],
            Some(kind) => self.grid.sigmas.iter().map(|&sigma| Some((kind, sigma))).collect(),
        }
    }

    /// Networks that remain, some of about the same size together; small and large ones evenly spread, so
    /// that the time left can be told from the time taken.
    fn chunks(&self, sample: &Sample, networks: &[Network], known: &Known) -> Vec<Vec<usize>> {
        let width = |place: usize| {
            let features = networks[place].feature_groups.zip(networks[place].feature_nodes);
            features.map_or(sample.x.ncols() + 1, |(groups, nodes)| groups * nodes)
        };
        let mut left: Vec<usize> =
            (0..networks.len()).filter(|place| !known.contains_key(place)).collect();
        left.sort_by_key(|&place| (width(place), place));
        let most = left.iter().map(|&place| width(place)).max().unwrap_or(0)
            + self.grid.enhancement_nodes.last().copied().unwrap_or(0);
        let bytes = 8.0 * 6.0 * most as f64 * (sample.x.nrows() + most) as f64;
        let fit = ((MOST_BYTES / bytes) as usize).max(1);
        let together = TOGETHER.max(rayon::current_num_threads()).min(fit);
        let mut chunks: Vec<(usize, Vec<usize>)> =
            left.chunks(together).map(<[usize]>::to_vec).enumerate().collect();
        chunks.sort_by(|(a, _), (b, _)| {
            let turn = |place: usize| (place as f64 * EVENLY).fract();
            turn(*a).total_cmp(&turn(*b))
        });
        chunks.into_iter().map(|(_, chunk)| chunk).collect()
    }

    fn ready(&self, sample: &Sample, network: Network, par: Par) -> Result<Ready> {
        let sizes = &self.grid.enhancement_nodes;
        let settings = self.largest(network).check(sample.task)?;
        let enhancement = &settings.network.enhancement;
        // Whether smaller networks are the beginnings of larger ones.
        let nested = !enhancement.orthonormal && enhancement.shrink.is_none();
        // The squared loss has one set of weights for all sizes.
        let count = if nested && self.loss.is_none() { 1 } else { GROUPS.min(sizes.len()) };
        let bound = |group: usize| group * sizes.len() / count;
        let group =
            |state: usize, group: usize| Group { sizes: bound(group)..bound(group + 1), state };
        let (groups, states): (Vec<Group>, Vec<Mat<f64>>) = if nested {
            ((0..count).map(|number| group(0, number)).collect(), vec![sample.state(&settings)?.0])
        } else {
            let states = (0..count).map(|number| {
                let mut smaller = settings.clone();
                smaller.network.enhancement.nodes = sizes[bound(number + 1) - 1];
                Ok(sample.state(&smaller)?.0)
            });
            (
                (0..count).map(|number| group(number, number)).collect(),
                states.collect::<Result<_>>()?,
            )
        };
        let most = states.last().map_or(0, Mat::ncols);
        let user = sample.user.as_deref();
        let scaler = Scaler::fit(settings.target_scaling, sample.y.as_ref(), user);
        let mut y = sample.y.clone();
        scaler.apply(y.as_mut());
        let factors = factors(&scaler, y.ncols());
        let back = |factor: f64| if factor > 0.0 { 1.0 / factor } else { 0.0 };
        let to_target: Vec<f64> = factors.iter().map(|&factor| back(factor)).collect();
        let to_yardstick = to_target.iter().zip(&sample.unit).map(|(a, b)| a * b).collect();
        let before = most - sizes.last().copied().unwrap_or(0);
        let widths = sizes.iter().map(|nodes| before + nodes).collect();
        let folds = match self.validation {
            Validation::LeaveOneOut => 0,
            Validation::Folds(folds) => folds,
        };
        let rows = Rows { states, y: y.as_ref(), user, honest: sample.honest.as_deref() };
        Ok(Ready {
            block: Block::new(rows, groups, widths, folds, par),
            to_yardstick,
            to_target,
            judged: vec![None; self.grid.per_network(self.loss.is_some())],
        })
    }

    /// All settings with what was found out, the best first.
    fn trials(&self, judged: &Known) -> Vec<Trial> {
        let mut trials = Vec::with_capacity(self.grid.len(self.loss.is_some()));
        for (&place, judged) in judged {
            let network = self.grid.networks()[place];
            let mut judged = judged.iter();
            for &ridge in &self.grid.ridges {
                for kernel in self.kernels() {
                    let sigma = kernel.map(|(_, sigma)| sigma);
                    for &enhancement_nodes in &self.grid.enhancement_nodes {
                        let setting = Setting { network, enhancement_nodes, ridge, sigma };
                        let judged = judged.next().copied().flatten();
                        trials.push(Trial { setting, judged });
                    }
                }
            }
        }
        let score = |trial: &Trial| trial.judged.map_or(f64::INFINITY, |judged| judged.score);
        trials.sort_by(|a, b| score(a).total_cmp(&score(b)));
        trials
    }
}

/// A network with its rows.
struct Ready {
    block: Block,
    to_yardstick: Vec<f64>,
    to_target: Vec<f64>,
    judged: Vec<Option<Judged>>,
}

impl Sample {
    /// What judges predictions in units of the target.
    fn judge<'a>(&'a self, ones: &'a [f64]) -> Judge<'a> {
        Judge {
            task: self.task,
            yardstick: &self.yardstick,
            to_yardstick: &self.unit,
            to_target: ones,
        }
    }

    /// U for these settings, and the map that gives it.
    fn state(&self, settings: &CheckedSettings) -> Result<(Mat<f64>, FeatureMap)> {
        let user = self.user.as_deref();
        let scaler = Scaler::fit(settings.input_scaling, self.x.as_ref(), user);
        let inputs = ScaledRows::new(self.x.as_ref(), &scaler);
        let map = build(&settings.network, &inputs, user, settings.seed)?;
        let mut u = Mat::zeros(self.x.nrows(), map.width());
        map.visit(&inputs, |range, block: MatRef<'_, f64>| {
            u.as_mut().subrows_mut(range.start, range.len()).copy_from(block);
            Ok(())
        })?;
        Ok((u, map))
    }
}

/// By what a scaler multiplies each column.
fn factors(scaler: &Scaler, columns: usize) -> Vec<f64> {
    match scaler {
        Scaler::Columns { factor, .. } => factor.clone(),
        Scaler::Rows => vec![1.0; columns],
    }
}
