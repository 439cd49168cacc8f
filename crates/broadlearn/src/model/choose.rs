//! Whatever the user left open, chosen on the training rows.
//!
//! 1. The kernel size, by cross-validation on a small network (`solve/automatic`). It gives every row a
//!    residual from models that have not seen it, and so a sample weight that is honest.
//! 2. The network and the ridge, by leave-one-out with these weights, in closed form: recipes and gains
//!    are screened small, the best two at all sizes (`solve/nested.rs`).
//!
//! The fit itself begins with these weights.

use super::settings::{CheckedSettings, Criterion, Open, Regularisation};
use crate::data::Task;
use crate::error::{Error, Result};
use crate::features::build::build;
use crate::features::draw::{Purpose, Stream};
use crate::features::{Network, Recipe};
use crate::linalg::{parallelism, select_rows};
use crate::preprocess::{ScaledRows, Scaler, Scaling};
use crate::progress::{Observer, report};
use crate::solve::automatic::score::Yardstick;
use crate::solve::automatic::{Choice, Judge, RIDGES, choose};
use crate::solve::cross_fit::HonestWeights;
use crate::solve::nested::left_out_squares;
use crate::solve::{Candidate, NetworkCandidate};
use crate::state::NormalEquations;
use faer::{Mat, MatRef};

/// Enhancement nodes of the network on which the kernel is chosen, and on which gains are screened.
const KERNEL_NODES: usize = 100;
const SCREENING_NODES: usize = 200;
/// Sizes of random weights that are tried.
const GAINS: [f64; 4] = [0.3, 0.7, 1.5, 3.0];
/// Designs that go on from a round to the next.
const FINALISTS: usize = 2;
/// By how many halves the largest size of a round exceeds that of the round before.
const GROWTH: usize = 5;
const HALF_DECADE: f64 = 3.16;
/// A larger ridge is preferred if it is not worse by more than this many standard errors.
const AS_GOOD: f64 = 0.5;
/// Numbers of enhancement nodes that are tried.
const SIZES: [usize; 12] = [50, 100, 200, 400, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000];
/// More rows than this are sampled: for the kernel, and (a tenth of all rows more) for the network.
const KERNEL_ROWS: usize = 3000;
const NETWORK_ROWS: usize = 3000;
const MOST_NETWORK_ROWS: usize = 10_000;
/// A usual processor does this many flops a second. A budget of seconds is one of flops, so that the same
/// budget gives the same model everywhere.
const USUAL_SPEED: f64 = 2e10;
/// Solves with the rows that are looked at which cross-fitted weights take.
const CROSS_FITS: f64 = 5.0;

/// Settings in which nothing is open, and where the fit begins.
pub(super) struct Decision {
    pub(super) settings: CheckedSettings,
    /// For the pseudo-inverse there is none.
    pub(super) ridge: Option<f64>,
    /// For the squared loss there is none.
    pub(super) sigma: Option<f64>,
    pub(super) start: Option<HonestWeights>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) networks: Vec<NetworkCandidate>,
}

/// The rows that are looked at, in random order, and what is known about them.
struct Sample<'a> {
    x: Mat<f64>,
    y: Mat<f64>,
    user: Option<Vec<f64>>,
    /// Sample weights, the user's multiplied in.
    weights: Vec<f64>,
    yardstick: Yardstick,
    /// Whether there are more rows than these.
    partial: bool,
    all: MatRef<'a, f64>,
}

impl CheckedSettings {
    /// Chooses what is open, on inputs `x` and scaled targets `y`.
    pub(super) fn decide(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        task: Task,
        observer: &mut Observer<'_>,
    ) -> Result<Decision> {
        let (ridge, robust) = match (self.regularisation, self.criterion) {
            (Regularisation::PseudoInverse, _) => return Ok(self.decided_by_rule(x.nrows())),
            (Regularisation::Ridge { ridge }, Criterion::Squared) => (ridge, None),
            (Regularisation::Ridge { ridge }, Criterion::Robust { kind, sigma }) => {
                (ridge, Some((kind, sigma)))
            }
        };
        let sigma = robust.and_then(|(_, sigma)| sigma);
        let mut decision = Decision {
            settings: self.closed(),
            ridge,
            sigma,
            start: None,
            candidates: Vec::new(),
            networks: Vec::new(),
        };
        let kernel_open = robust.is_some_and(|(_, sigma)| sigma.is_none());
        if ridge.is_some() && !kernel_open && self.open == Open::NOTHING {
            return Ok(decision);
        }

        check_varies(y, task)?;
        let order = Stream::new(self.seed, Purpose::Folds, 0).permutation(x.nrows());
        let count = (NETWORK_ROWS + x.nrows() / 10).min(MOST_NETWORK_ROWS).min(x.nrows());
        let rows = &order[..count];
        let judge = match task {
            Task::Regression => Judge::Residuals,
            Task::Classification => Judge::Classes,
        };
        let mut sample = Sample::new(x, y, user, rows, judge);

        if robust.is_some() {
            let looked_at = count.min(KERNEL_ROWS);
            let small = self.closed().with_nodes(KERNEL_NODES.min(self.largest_network(x.nrows())));
            let (u, linear) = sample.state(&small, looked_at)?;
            let y = sample.y.subrows(0, looked_at);
            let user = sample.user.as_deref().map(|user| &user[..looked_at]);
            let choice = Choice { ridge, robust, start: self.start, linear };
            if let Some(chosen) = choose(u.as_ref(), y, user, choice, judge, observer)? {
                decision.sigma = chosen.sigma;
                decision.ridge = Some(chosen.ridge);
                decision.candidates = chosen.candidates;
                let loss = robust.zip(chosen.sigma).map(|((kind, _), sigma)| kind.at(sigma));
                let mut weights = chosen.squares;
                loss.into_iter().for_each(|loss| loss.weigh(&mut weights));
                sample.learn(weights, &chosen.yardstick);
                decision.start = Some(HonestWeights {
                    rows: rows[..looked_at].to_vec(),
                    weights: sample.weights.clone(),
                });
            }
        }
        sample.choose_network(self, ridge, &mut decision, observer)?;
        // Rows too few to choose on.
        decision.ridge = decision.ridge.or(Some(RIDGES[RIDGES.len() / 2]));
        decision.sigma = decision.sigma.or_else(|| robust.map(|_| 1.0));
        Ok(decision)
    }

    /// Without a ridge there is nothing to compare by: a twentieth of the rows, from 200 to 1000.
    fn decided_by_rule(&self, rows: usize) -> Decision {
        let mut settings = self.closed();
        if self.open.nodes {
            settings = settings.with_nodes((rows / 20).clamp(200, 1000));
        }
        Decision {
            settings,
            ridge: None,
            sigma: None,
            start: None,
            candidates: Vec::new(),
            networks: Vec::new(),
        }
    }

    /// These settings with the default in every place that is open.
    fn closed(&self) -> Self {
        Self { open: Open::NOTHING, budget: None, ..self.clone() }
    }

    fn with_nodes(mut self, nodes: usize) -> Self {
        self.network.enhancement.nodes = nodes;
        self
    }

    /// The largest number of enhancement nodes that is tried.
    fn largest_network(&self, rows: usize) -> usize {
        if !self.open.nodes {
            return self.network.enhancement.nodes;
        }
        let n = rows as f64;
        let seconds = self.budget.unwrap_or(1.0 + n / 2000.0);
        let looked_at = (NETWORK_ROWS as f64 + n / 10.0).min(MOST_NETWORK_ROWS as f64).min(n);
        let cross_fits = if self.criterion == Criterion::Squared { 0.0 } else { CROSS_FITS };
        // Three ridges a finalist and two more, each with as much work again for the smaller sizes.
        let factors = (FINALISTS * 3 + 2) as f64 * 1.3;
        let nodes = (seconds * USUAL_SPEED / (2.0 * n + (factors + cross_fits) * looked_at)).sqrt();
        // More nodes than rows bring nothing that a wider gain does not.
        (nodes as usize).clamp(SIZES[0], rows.max(SIZES[0])).min(Network::MAX_WIDTH / 2)
    }

    /// The settings that differ in what is open besides the number of nodes.
    fn designs(&self) -> Vec<Self> {
        let closed = self.closed();
        let mut designs = vec![closed.clone()];
        if self.open.gain && closed.network.enhancement.gain.is_some() {
            designs = GAINS
                .iter()
                .map(|&gain| {
                    let mut design = closed.clone();
                    design.network.enhancement.gain = Some(gain);
                    design
                })
                .collect();
        }
        if self.open.recipe {
            let recipe = Recipe::Classic;
            let nodes = closed.network.enhancement.nodes;
            let activation = closed.network.enhancement.activation;
            let mut classic =
                Self { recipe, network: recipe.network(), ..closed }.with_nodes(nodes);
            classic.network.enhancement.activation = activation;
            if self.input_scaling == Scaling::Standard {
                classic.input_scaling = Scaling::MinMaxSymmetric;
            }
            designs.push(classic);
        }
        designs
    }
}

/// A design at one size, with its best ridge.
#[derive(Clone)]
struct Trial {
    design: usize,
    nodes: usize,
    ridge: f64,
    squares: Vec<f64>,
    score: f64,
}

impl<'a> Sample<'a> {
    fn new(
        x: MatRef<'a, f64>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        rows: &[usize],
        judge: Judge,
    ) -> Self {
        let user: Option<Vec<f64>> = user.map(|user| rows.iter().map(|&row| user[row]).collect());
        let weights = user.clone().unwrap_or_else(|| vec![1.0; rows.len()]);
        Self {
            x: select_rows(x, rows),
            y: select_rows(y, rows),
            user,
            weights,
            yardstick: Yardstick::new(&[], judge, false),
            partial: rows.len() < x.nrows(),
            all: x,
        }
    }

    /// Takes the weights that a loss gives to the first rows; the others are looked at no more.
    fn learn(&mut self, mut weights: Vec<f64>, yardstick: &Yardstick) {
        let count = weights.len();
        self.yardstick = yardstick.trusting(&weights);
        if let Some(user) = &mut self.user {
            user.truncate(count);
            weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= *user);
        }
        self.partial |= count < self.x.nrows();
        self.x = self.x.subrows(0, count).to_owned();
        self.y = self.y.subrows(0, count).to_owned();
        self.weights = weights;
    }

    /// U of the first rows, and the number of its columns that are linear in the inputs.
    fn state(&self, settings: &CheckedSettings, rows: usize) -> Result<(Mat<f64>, usize)> {
        // Scalers see all rows, as they will in the end.
        let scaler = Scaler::fit(settings.input_scaling, self.all, None);
        let inputs = ScaledRows::new(self.x.subrows(0, rows), &scaler);
        let user = self.user.as_deref().map(|user| &user[..rows]);
        let map = build(&settings.network, &inputs, user, settings.seed)?;
        let mut u = Mat::zeros(rows, map.width());
        map.visit(&inputs, |range, block| {
            u.as_mut().subrows_mut(range.start, range.len()).copy_from(block);
            Ok(())
        })?;
        Ok((u, map.leading_features()))
    }

    fn choose_network(
        &self,
        settings: &CheckedSettings,
        ridge: Option<f64>,
        decision: &mut Decision,
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        if self.y.nrows() < 3 {
            return Ok(());
        }
        let ridges = ridge.map_or_else(|| RIDGES.to_vec(), |ridge| vec![ridge]);
        let designs = settings.designs();
        let largest = settings.largest_network(self.all.nrows());
        let sizes: Vec<usize> = match settings.open.nodes {
            false => vec![largest],
            true => SIZES.iter().copied().filter(|&size| size < largest).chain([largest]).collect(),
        };
        // All designs small, then the best of them larger and larger, while that helps. What ridge
        // suits a network of one size is near to what suits the next.
        let mut cap = if settings.open.nodes { SCREENING_NODES.min(largest) } else { largest };
        let mut open: Vec<(usize, Vec<f64>)> =
            (0..designs.len()).map(|design| (design, ridges.clone())).collect();
        let mut trials: Vec<Trial> = Vec::new();
        let mut round = 0;
        while !open.is_empty() {
            report(observer, "choosing the network", round, None)?;
            round += 1;
            let small: Vec<usize> = sizes.iter().copied().filter(|&size| size <= cap).collect();
            for (design, ridges) in &open {
                let found = self.trials(*design, &designs[*design], &small, ridges)?;
                trials.retain(|trial| trial.design != *design || trial.nodes > cap);
                trials.extend(found);
            }
            if cap == largest {
                break;
            }
            let leaders = self.finalists(&trials, &designs);
            let larger_helps =
                leaders.first().is_some_and(|first| Some(&first.nodes) == small.last());
            open = match larger_helps {
                true => leaders
                    .iter()
                    .map(|leader| (leader.design, neighbours(&ridges, leader.ridge)))
                    .collect(),
                false => Vec::new(),
            };
            cap = (cap * GROWTH / 2).min(largest);
        }
        decision.networks =
            trials.iter().map(|trial| trial.candidate(&designs[trial.design])).collect();
        let Some(best) = self.best(&trials) else { return Ok(()) };
        decision.settings = designs[best.design].clone().with_nodes(best.nodes);
        decision.ridge = Some(best.ridge);
        if ridge.is_none() {
            let near: Vec<f64> = (-1..=4).map(|k| best.ridge * HALF_DECADE.powi(k)).collect();
            let finer = self.judged(best.design, &designs[best.design], &[best.nodes], &near)?;
            decision.ridge = Some(self.tamest(&finer).map_or(best.ridge, |trial| trial.ridge));
        }
        Ok(())
    }

    /// The trial with the largest ridge among those that are as good as the best: where rows do not tell
    /// the difference, the smaller weights extrapolate less wildly.
    fn tamest<'t>(&self, trials: &'t [Trial]) -> Option<&'t Trial> {
        let least = trials.iter().min_by(|a, b| a.score.total_cmp(&b.score))?;
        let ones = vec![1.0; self.y.nrows()];
        let users = self.user.as_deref().unwrap_or(&ones);
        let as_good = |trial: &&Trial| {
            let (mean, error) = self.yardstick.excess(&trial.squares, &least.squares, users);
            mean <= AS_GOOD * error
        };
        trials.iter().filter(as_good).max_by(|a, b| a.ridge.total_cmp(&b.ridge))
    }

    /// The best design so far, and the one to watch: the next larger gain, because a larger network
    /// carries larger gains; otherwise the second best.
    fn finalists<'t>(&self, trials: &'t [Trial], designs: &[CheckedSettings]) -> Vec<&'t Trial> {
        let best_of = |design: usize| {
            let own = trials.iter().filter(|trial| trial.design == design);
            own.min_by(|a, b| a.score.total_cmp(&b.score))
        };
        let mut leaders: Vec<&Trial> = (0..designs.len()).filter_map(best_of).collect();
        leaders.sort_by(|a, b| a.score.total_cmp(&b.score));
        let gain = |design: usize| designs[design].network.enhancement.gain;
        if let Some(first) = leaders.first() {
            let larger = |leader: &&Trial| gain(leader.design) > gain(first.design);
            let next = leaders.iter().copied().filter(larger).min_by(|a, b| {
                gain(a.design).partial_cmp(&gain(b.design)).unwrap_or(std::cmp::Ordering::Equal)
            });
            let second = next.filter(|_| gain(first.design).is_some()).or(leaders.get(1).copied());
            return std::iter::once(*first).chain(second).collect();
        }
        leaders
    }

    /// The best ridge of a design for every size.
    fn trials(
        &self,
        design: usize,
        settings: &CheckedSettings,
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Vec<Trial>> {
        let mut best: Vec<Option<Trial>> = vec![None; sizes.len()];
        for trial in self.judged(design, settings, sizes, ridges)? {
            let place = sizes.iter().position(|&size| size == trial.nodes).unwrap_or(0);
            if best[place].as_ref().is_none_or(|best| trial.score <= best.score) {
                best[place] = Some(trial);
            }
        }
        Ok(best.into_iter().flatten().collect())
    }

    /// A design with every size and ridge that can be judged.
    fn judged(
        &self,
        design: usize,
        settings: &CheckedSettings,
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Vec<Trial>> {
        let most = sizes.iter().copied().max().unwrap_or(0);
        let (u, _) = self.state(&settings.clone().with_nodes(most), self.x.nrows())?;
        let before = u.ncols() - most;
        let widths: Vec<usize> = sizes.iter().map(|size| before + size).collect();
        let y = self.y.as_ref();
        let equations = NormalEquations::of(u.clone(), y, Some(&self.weights));
        let ones = vec![1.0; self.y.nrows()];
        let users = self.user.as_deref().unwrap_or(&ones);
        let mut trials = Vec::new();
        for &ridge in ridges {
            let (u, par) = (u.as_ref(), parallelism());
            let Ok(found) = left_out_squares(&equations, u, y, &self.weights, ridge, &widths, par)
            else {
                continue; // Not positive definite with so small a ridge.
            };
            for (squares, &nodes) in found.into_iter().zip(sizes) {
                let Some(squares) = squares else { continue };
                let score = self.yardstick.mean(&squares, users);
                if score.is_finite() {
                    trials.push(Trial { design, nodes, ridge, squares, score });
                }
            }
        }
        Ok(trials)
    }

    /// The least score; of a part of the rows, the largest size of that design which is not clearly
    /// worse: more rows carry more nodes.
    fn best<'t>(&self, trials: &'t [Trial]) -> Option<&'t Trial> {
        let least = trials.iter().min_by(|a, b| a.score.total_cmp(&b.score))?;
        if !self.partial {
            return Some(least);
        }
        let ones = vec![1.0; self.y.nrows()];
        let users = self.user.as_deref().unwrap_or(&ones);
        trials
            .iter()
            .filter(|trial| trial.design == least.design)
            .filter(|trial| {
                let (mean, error) = self.yardstick.excess(&trial.squares, &least.squares, users);
                mean <= error
            })
            .max_by_key(|trial| trial.nodes)
            .or(Some(least))
    }
}

/// Targets that are all the same leave nothing to learn, and no scale to judge by.
pub(super) fn check_varies(y: MatRef<'_, f64>, task: Task) -> Result<()> {
    let constant = |column: usize| y.col(column).iter().all(|value| *value == y[(0, column)]);
    if task == Task::Regression && y.nrows() > 1 && (0..y.ncols()).all(constant) {
        return Err(Error::data(format!("one value in all {} rows of the target", y.nrows()))
            .expected("at least two different values: there is nothing to learn, and no scale to judge by")
            .advice("check --target; a constant needs no model"));
    }
    Ok(())
}

/// A ridge of the grid, and those beside it.
fn neighbours(ridges: &[f64], ridge: f64) -> Vec<f64> {
    let place = ridges.iter().position(|&other| other == ridge).unwrap_or(0);
    ridges[place.saturating_sub(1)..(place + 2).min(ridges.len())].to_vec()
}

impl Trial {
    fn candidate(&self, design: &CheckedSettings) -> NetworkCandidate {
        NetworkCandidate {
            recipe: design.recipe,
            gain: design.network.enhancement.gain,
            enhancement_nodes: self.nodes,
            ridge: self.ridge,
            score: self.score,
        }
    }
}
