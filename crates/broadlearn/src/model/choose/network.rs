//! The network and the ridge, by leave-one-out with the sample weights of the rows: designs are screened
//! small, the best two grow while that helps; in the end one is tried that has many steep nodes.

use super::super::{CheckedSettings, Criterion};
use super::relevance::{INPUT_NODES, best};
use super::sample::{Entrant, Sample, Trial, least, most, put_all};
use super::{Decision, network_rows};
use crate::error::Result;
use crate::features::Network;
use crate::progress::{Observer, report};
use crate::solve::automatic::{Judge, RIDGES};

/// Enhancement nodes of the network on which designs are screened.
const SCREENING_NODES: usize = 200;
/// Sizes of random weights that are tried.
pub(super) const GAINS: [f64; 5] = [0.3, 0.7, 1.5, 3.0, 6.0];
/// Numbers of inputs that a node reads: all, or two. Many tables are sums of functions of few inputs, with
/// steps in them.
const FEW_INPUTS: usize = 2;
/// Designs that go on from a round to the next.
const FINALISTS: usize = 2;
/// By how many halves the largest size of a round exceeds that of the round before.
const GROWTH: usize = 5;
/// The relevance of inputs is looked at again, with better weights of the rows.
const RELEVANCE_ROUNDS: usize = 2;
/// Larger networks are tried if the last step was worth this many standard errors. Those of classes are mostly about
/// labels that nobody can predict, and say little.
const WORTH_GROWING_FOR_VALUES: f64 = 1.0;
const WORTH_GROWING_FOR_CLASSES: f64 = 0.0;
const HALF_DECADE: f64 = 3.16;
/// A larger ridge is preferred if it is not worse by more than this many standard errors: more of them for
/// values, which may be extrapolated to any size, than for classes.
const AS_GOOD_FOR_VALUES: f64 = 1.0;
const AS_GOOD_FOR_CLASSES: f64 = 0.5;
/// Smaller ones need to be better by more than a standard error.
const LEAST_WITHOUT_PROOF: f64 = 1e-6;
/// How much larger it may be, in half decades.
const MOST_STEPS: i32 = 6;
/// Smooth functions are made of a few nodes. Others take many steep ones, each of which means little, and which look bad while they are
/// few: so many, and so steep; and a ridge that is likely to suit them.
const MANY_NODES: usize = 1000;
const LARGE_RIDGE: f64 = 10.0;
/// Rows on which they are tried first. With 400 they help a third less, with 800 hardly more: steep functions are learnt from many rows.
const FIRST_ROWS: usize = 600;
/// Where the search for a ridge begins.
pub(super) const USUAL_RIDGE: f64 = 1.0;
/// Numbers of enhancement nodes that are tried.
const SIZES: [usize; 12] = [50, 100, 200, 400, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000];
/// Members of an ensemble where the user leaves it open, and the rows beyond which one is enough: a
/// larger network is then worth more than company.
const USUAL_MEMBERS: usize = 5;
const FEW_ROWS: usize = 10_000;
/// A usual processor does this many flops a second. A budget of seconds is one of flops, so that the same
/// budget gives the same model everywhere.
pub(super) const USUAL_SPEED: f64 = 2e10;
/// Solves with the rows that are looked at which cross-fitted weights take.
const CROSS_FITS: f64 = 2.0;

impl CheckedSettings {
    /// The largest number of enhancement nodes that is tried.
    pub(super) fn largest_network(&self, rows: usize) -> usize {
        if !self.open.nodes {
            return self.network.enhancement.nodes;
        }
        let n = rows as f64;
        let seconds = self.budget.unwrap_or(1.0 + n / 2000.0);
        let looked_at = network_rows(rows) as f64;
        let cross_fits = if self.criterion == Criterion::Squared { 0.0 } else { CROSS_FITS };
        let members = self.members_for(rows) as f64;
        // Three ridges a finalist and two more, each with as much work again for the smaller sizes.
        let factors = (FINALISTS * 3 + 2) as f64 * 1.3;
        let nodes = (seconds * USUAL_SPEED
            / ((1.0 + members) * n + (factors + cross_fits) * looked_at))
            .sqrt();
        // More nodes than rows bring nothing that a wider gain does not.
        (nodes as usize).clamp(SIZES[0], rows.max(SIZES[0])).min(Network::MAX_WIDTH / 2)
    }

    /// The number of networks whose mean is taken.
    pub(in crate::model) fn members_for(&self, rows: usize) -> usize {
        match (self.open.members, rows) {
            (false, _) => self.members,
            (true, ..=FEW_ROWS) => USUAL_MEMBERS,
            (true, _) => 1,
        }
    }

    /// How many of the inputs a node may read.
    pub(super) fn fan_ins(&self, rows: usize, inputs: usize) -> Vec<Option<usize>> {
        match self.open.fan_in && inputs > FEW_INPUTS && self.may_look(rows, inputs) {
            true => vec![None, Some(FEW_INPUTS)],
            false => vec![self.network.enhancement.fan_in],
        }
    }

    /// The settings that differ in what is open besides the number of nodes.
    fn designs(&self, rows: usize, inputs: usize) -> Vec<Self> {
        let closed = self.closed();
        if !self.open.gain {
            return vec![closed];
        }
        let fan_ins = self.fan_ins(rows, inputs);
        gains_near(closed.network.enhancement.gain)
            .into_iter()
            .flat_map(|gain| fan_ins.iter().map(move |&fan_in| (gain, fan_in)))
            .map(|(gain, fan_in)| closed.clone().with_gain(gain).with_fan_in(fan_in))
            .collect()
    }
}

impl Sample<'_> {
    pub(super) fn choose_network(
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
        let (rows, inputs) = (self.y.nrows(), self.x.ncols());
        let mut designs = settings.designs(rows, inputs);
        let largest = settings.largest_network(self.all.nrows());
        let sizes: Vec<usize> = match settings.open.nodes {
            false => vec![largest],
            true => SIZES.iter().copied().filter(|&size| size < largest).chain([largest]).collect(),
        };
        // All designs small, then the best of them larger and larger, while that helps. What ridge
        // suits a network of one size is near to what suits the next.
        let screened = if settings.open.nodes { SCREENING_NODES.min(largest) } else { largest };
        let small = up_to(screened, &sizes);
        report(observer, "choosing the network", 0, None)?;
        let likely = decision.ridge.unwrap_or(USUAL_RIDGE);
        let entrants: Vec<(usize, f64)> = (0..designs.len()).map(|place| (place, likely)).collect();
        let mut trials = self.at_sizes(&entrants, &designs, small, &ridges)?;
        if settings.open.gain && settings.may_look(rows, inputs) {
            let weighted =
                self.with_relevance_at(INPUT_NODES, &trials, &designs, small, &ridges)?;
            let begin = designs.len();
            let entrants: Vec<(usize, f64)> =
                weighted.iter().zip(begin..).map(|((_, ridge), place)| (place, *ridge)).collect();
            designs.extend(weighted.into_iter().map(|(design, _)| design));
            trials.extend(self.at_sizes(&entrants, &designs, small, &ridges)?);
        }
        self.grow(&mut trials, &designs, &sizes, screened, &ridges, observer)?;
        if settings.open.nodes && settings.open.gain && settings.may_look(rows, inputs) {
            let many = MANY_NODES.min(largest);
            let fan_ins = settings.fan_ins(rows, inputs);
            trials.extend(self.with_many_nodes(many, &fan_ins, &trials, &mut designs, &ridges)?);
        }
        decision.networks =
            trials.iter().map(|trial| trial.candidate(&designs[trial.design])).collect();
        let trials = self.without_idle_sparsity(trials, &designs);
        let Some(best) = self.best(&trials) else { return Ok(()) };
        let members = decision.settings.members;
        decision.settings =
            CheckedSettings { members, ..designs[best.design].clone().with_nodes(best.nodes) };
        decision.ridge = Some(best.ridge);
        if ridge.is_none() {
            decision.ridge = Some(self.tamest(best, &designs[best.design])?);
        }
        Ok(())
    }

    /// The best designs once more with relevances, and the ridges that suit them, if relevances help: at the largest of
    /// these sizes that is not above `nodes`, since small networks tell inputs apart as well as larger ones do.
    fn with_relevance_at(
        &self,
        nodes: usize,
        trials: &[Trial],
        designs: &[CheckedSettings],
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Vec<(CheckedSettings, f64)>> {
        let size = up_to(nodes, sizes).last().copied().unwrap_or(sizes[0]);
        let of_size: Vec<Trial> =
            trials.iter().filter(|trial| trial.nodes == size).cloned().collect();
        let mut leaders = self.leaders(&of_size, designs);
        leaders.sort_by(|a, b| a.1.score.total_cmp(&b.1.score));
        let Some(before) = leaders.first().cloned() else { return Ok(Vec::new()) };
        let mut origins = self.origins(leaders);
        origins.truncate(FINALISTS);
        let weighted = self.with_relevance(&before, &origins, &[size], ridges, RELEVANCE_ROUNDS)?;
        let Some((best, _)) = best(&weighted) else { return Ok(Vec::new()) };
        let relevance = |design: &CheckedSettings| design.network.enhancement.relevance.clone();
        let alike = weighted.iter().filter(|(design, _)| relevance(design) == relevance(best));
        Ok(alike.map(|(design, trial)| (design.clone(), trial.ridge)).collect())
    }

    /// The best design once more with many nodes of a large gain, where that is better by more than a standard error; all rows are
    /// asked only if it is better for the first of them. Classes are told apart by smooth functions as well.
    fn with_many_nodes(
        &self,
        many: usize,
        fan_ins: &[Option<usize>],
        trials: &[Trial],
        designs: &mut Vec<CheckedSettings>,
        ridges: &[f64],
    ) -> Result<Vec<Trial>> {
        let Some(best) = least(trials).filter(|_| self.judge() == Judge::Residuals) else {
            return Ok(Vec::new());
        };
        let many = many.min(self.y.nrows());
        if best.nodes >= many {
            return Ok(Vec::new());
        }
        let before = &designs[best.design];
        let mut found: Vec<CheckedSettings> = fan_ins
            .iter()
            .map(|&fan_in| before.clone().with_gain(large_gain(fan_in)).with_fan_in(fan_in))
            .filter(|design| design != before)
            .collect();
        if self.y.nrows() > FIRST_ROWS {
            let part = self.part(0..FIRST_ROWS);
            let small = (FIRST_ROWS.min(best.nodes), FIRST_ROWS.min(many));
            let known = Entrant::new(before, best.ridge);
            let known = part.trials(&[known], &[small.0], &neighbours(ridges, best.ridge))?;
            let known = least(known.iter().flatten()).map_or(f64::INFINITY, |trial| trial.score);
            let entrant = |design| Entrant::new(design, LARGE_RIDGE);
            let entrants: Vec<Entrant<'_>> = found.iter().map(entrant).collect();
            let scores = part.trials(&entrants, &[small.1], ridges)?;
            let better =
                |trials: &Vec<Trial>| least(trials).is_some_and(|trial| trial.score < known);
            let mut better = scores.iter().map(better);
            found.retain(|_| better.next().unwrap_or(false));
        }
        let places = designs.len()..designs.len() + found.len();
        designs.extend(found);
        let entrants: Vec<(usize, f64)> = places.map(|place| (place, LARGE_RIDGE)).collect();
        let mut found = self.at_sizes(&entrants, designs, &[many], ridges)?;
        found.retain(|trial| {
            let (gained, error) = self.excess(best, trial);
            gained > error
        });
        Ok(found)
    }

    /// Goes on with the best designs beyond the size `cap`, for as long as that pays.
    fn grow(
        &self,
        trials: &mut Vec<Trial>,
        designs: &[CheckedSettings],
        sizes: &[usize],
        mut cap: usize,
        ridges: &[f64],
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        let (largest, mut round) = (most(sizes), 0);
        while cap < largest && self.growth_pays(trials, up_to(cap, sizes)) {
            round += 1;
            report(observer, "choosing the network", round, None)?;
            let finalists = self.finalists(trials, designs);
            let rival = rival(trials, designs, &finalists);
            let entrant = |trial: &Trial| (trial.design, trial.ridge);
            let first: Vec<(usize, f64)> =
                finalists.iter().copied().take(1).chain(rival).map(entrant).collect();
            let second: Vec<(usize, f64)> = finalists.into_iter().skip(1).map(entrant).collect();
            let before = cap;
            cap = (cap * GROWTH / 2).min(largest);
            let sizes = up_to(cap, sizes);
            put_all(trials, self.at_sizes(&first, designs, sizes, ridges)?);
            // The second is worth a look only where larger networks are.
            if least(&*trials).is_some_and(|best| best.nodes > before) {
                put_all(trials, self.at_sizes(&second, designs, sizes, ridges)?);
            }
        }
        Ok(())
    }

    /// Whether the largest of these sizes is the best one, and by more than chance alone is likely to make it.
    fn growth_pays(&self, trials: &[Trial], sizes: &[usize]) -> bool {
        let Some(best) = least(trials) else { return false };
        let worth_growing = match self.judge() {
            Judge::Residuals => WORTH_GROWING_FOR_VALUES,
            Judge::Classes => WORTH_GROWING_FOR_CLASSES,
        };
        let smaller = least(trials.iter().filter(|trial| trial.nodes < best.nodes));
        let by_chance = smaller.is_some_and(|smaller| {
            let (gained, error) = self.excess(smaller, best);
            gained <= worth_growing * error
        });
        sizes.last() == Some(&best.nodes) && !by_chance
    }

    /// Designs, each with the ridge that is likely to suit it, judged.
    fn at_sizes(
        &self,
        entrants: &[(usize, f64)],
        designs: &[CheckedSettings],
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Vec<Trial>> {
        let entrant = |&(design, likely)| Entrant { design, settings: &designs[design], likely };
        let entrants: Vec<Entrant<'_>> = entrants.iter().map(entrant).collect();
        Ok(self.trials(&entrants, sizes, ridges)?.into_iter().flatten().collect())
    }

    /// All trials, or those whose nodes read all inputs, unless the others are clearly better.
    fn without_idle_sparsity(&self, trials: Vec<Trial>, designs: &[CheckedSettings]) -> Vec<Trial> {
        let sparse = |trial: &&Trial| designs[trial.design].network.enhancement.fan_in.is_some();
        let few = least(trials.iter().filter(sparse));
        let all = least(trials.iter().filter(|trial| !sparse(trial)));
        let (Some(few), Some(all)) = (few, all) else { return trials };
        let (gained, error) = self.excess(all, few);
        match gained > error {
            true => trials,
            false => trials.into_iter().filter(|trial| !sparse(&trial)).collect(),
        }
    }

    /// The best trial of every gain.
    fn leaders(
        &self,
        trials: &[Trial],
        designs: &[CheckedSettings],
    ) -> Vec<(CheckedSettings, Trial)> {
        (0..designs.len())
            .filter_map(|place| {
                let own = trials.iter().filter(|trial| trial.design == place);
                least(own).map(|trial| (designs[place].clone(), trial.clone()))
            })
            .collect()
    }

    /// The largest ridge near that of a trial with which its network is as good as with the best one: where rows do
    /// not tell the difference, the smaller weights extrapolate less wildly.
    fn tamest(&self, trial: &Trial, design: &CheckedSettings) -> Result<f64> {
        let errors = match self.judge() {
            Judge::Residuals => AS_GOOD_FOR_VALUES,
            Judge::Classes => AS_GOOD_FOR_CLASSES,
        };
        let candidate = self.candidate(trial.design, design, &[trial.nodes])?;
        let at = |step: i32| candidate.trials(trial.ridge * HALF_DECADE.powi(step)).pop();
        let mut tried = Vec::from_iter(at(-1));
        let mut tamest = tried.first().map_or(trial.ridge, |smaller| smaller.ridge);
        for step in 0..=MOST_STEPS {
            let larger = if step == 0 { Some(trial.clone()) } else { at(step) };
            tried.extend(larger);
            let (Some(least), Some(larger)) = (least(&tried), tried.last()) else { break };
            let (mean, error) = self.excess(larger, least);
            if mean <= errors * error {
                tamest = larger.ridge;
            } else if step > 0 {
                break;
            }
        }
        Ok(tamest)
    }

    /// The best design so far, and the one to watch: the next larger gain, because a larger network
    /// carries larger gains; otherwise the second best.
    fn finalists<'t>(&self, trials: &'t [Trial], designs: &[CheckedSettings]) -> Vec<&'t Trial> {
        let best_of = |design| least(trials.iter().filter(|trial| trial.design == design));
        let mut leaders: Vec<&Trial> = (0..designs.len()).filter_map(best_of).collect();
        leaders.sort_by(|a, b| a.score.total_cmp(&b.score));
        let enhancement = |design: usize| &designs[design].network.enhancement;
        let gain = |design: usize| enhancement(design).gain;
        if let Some(first) = leaders.first() {
            let larger = |leader: &&Trial| {
                gain(leader.design) > gain(first.design)
                    && enhancement(leader.design).relevance == enhancement(first.design).relevance
                    && enhancement(leader.design).fan_in == enhancement(first.design).fan_in
            };
            let next = leaders.iter().copied().filter(larger).min_by(|a, b| {
                gain(a.design).partial_cmp(&gain(b.design)).unwrap_or(std::cmp::Ordering::Equal)
            });
            return std::iter::once(*first).chain(next.or(leaders.get(1).copied())).collect();
        }
        leaders
    }

    /// The least score, with a ridge that is not tiny unless that is better by more than a standard error; of a part of the
    /// rows, the largest size of that design which is not clearly worse: more rows carry more nodes.
    fn best<'t>(&self, trials: &'t [Trial]) -> Option<&'t Trial> {
        let first = least(trials)?;
        let as_good = |trial: &Trial, other: &Trial| {
            let (mean, error) = self.excess(trial, other);
            mean <= error
        };
        // A tiny ridge leaves directions open that only distrusted rows would fix, and leave-one-out does not tell.
        let firm = |trial: &&Trial| trial.ridge >= LEAST_WITHOUT_PROOF;
        let least = match firm(&first) {
            true => first,
            false => least(trials.iter().filter(firm).filter(|trial| as_good(trial, first)))
                .unwrap_or(first),
        };
        if !self.partial {
            return Some(least);
        }
        trials
            .iter()
            .filter(|trial| trial.design == least.design)
            .filter(|trial| as_good(trial, least))
            .max_by_key(|trial| trial.nodes)
            .or(Some(least))
    }
}

/// The best trial whose nodes read another number of inputs: few nodes do more if they read few inputs,
/// which tells little about many nodes.
fn rival<'t>(
    trials: &'t [Trial],
    designs: &[CheckedSettings],
    finalists: &[&Trial],
) -> Option<&'t Trial> {
    let fan_in = |trial: &Trial| designs[trial.design].network.enhancement.fan_in;
    let known: Vec<Option<usize>> = finalists.iter().map(|trial| fan_in(trial)).collect();
    least(trials.iter().filter(|trial| !known.contains(&fan_in(trial))))
}

/// The sizes, which ascend, up to this one.
fn up_to(cap: usize, sizes: &[usize]) -> &[usize] {
    &sizes[..sizes.partition_point(|&size| size <= cap)]
}

/// The gain of very steep nodes that read all inputs or some.
fn large_gain(fan_in: Option<usize>) -> f64 {
    if fan_in.is_none() { 6.0 } else { 12.0 }
}

/// The gain that suits a small network, and those beside it.
fn gains_near(gain: Option<f64>) -> Vec<f64> {
    gain.map_or_else(|| GAINS.to_vec(), |gain| neighbours(&GAINS, gain))
}

/// A value of a grid, and those beside it.
pub(super) fn neighbours(grid: &[f64], value: f64) -> Vec<f64> {
    let place = grid.iter().position(|&other| other == value).unwrap_or(0);
    grid[place.saturating_sub(1)..(place + 2).min(grid.len())].to_vec()
}
