//! Which inputs matter.
//!
//! Random weights of one size for all inputs spend the nodes on functions of inputs that mean nothing. The
//! slopes of a fitted network tell the inputs apart: inputs in proportion to them, and the same again with
//! the new network, some rounds. (For kernel machines: Radhakrishnan et al., Science 383, 2024.) What has
//! seen the targets may fit their noise, and leave-one-out would not notice: every row had a say. So
//! relevances are believed only if those of one half of the rows help the other half.

use super::super::{CheckedSettings, Criterion};
use super::INPUT_ROWS;
use super::network::{GAINS, USUAL_RIDGE, USUAL_SPEED, neighbours};
use super::sample::{Entrant, Sample, Trial, least, most};
use crate::error::Result;
use crate::features::{Features, Network};
use crate::progress::{Observer, report};
use crate::solve::automatic::{Judge, RIDGES};

/// Enhancement nodes of the networks that are looked at.
pub(super) const INPUT_NODES: usize = 100;
const ROUNDS: usize = 4;
/// Powers of the slopes that are tried: with the larger one, inputs that matter little matter less.
const SHARPNESS: [f64; 2] = [1.0, 1.5];
/// An input that varies matters at least this much: slopes of small networks are not the last word.
const LEAST: f64 = 0.1;
/// Designs of either number of inputs a node from which relevances begin: a nearly linear network may predict best, and
/// yet know nothing of the inputs that matter in another way.
const ORIGINS: usize = 2;
/// Too few rows tell nothing about inputs.
const FEWEST_ROWS: usize = 20;
const CAUTIOUS_RIDGE: f64 = 1.0;
/// A network with relevances must be better by this many standard errors.
const CLEARLY_BETTER: f64 = 1.0;
/// The part of a budget that may go into this.
const SHARE_OF_BUDGET: f64 = 0.25;

/// What some rounds have led to.
struct Weighted {
    /// The place of the design with which they began.
    origin: usize,
    /// The designs of the best round.
    designs: Vec<(CheckedSettings, Trial)>,
}

impl CheckedSettings {
    /// These settings with the relevance of the inputs, and the gain and the number of inputs a node that
    /// go with it, if they are open, and the ridges that may suit them.
    pub(super) fn informed(
        &self,
        mut sample: Sample<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<(Self, Vec<f64>)> {
        let (ridge, _) = self.given();
        let ridges = ridge.map_or_else(|| RIDGES.to_vec(), |ridge| vec![ridge]);
        let (rows, inputs) = (sample.y.nrows(), sample.x.ncols());
        if !self.open.gain || rows < FEWEST_ROWS || !self.may_look(rows, inputs) {
            return Ok((self.clone(), ridges));
        }
        report(observer, "looking at the inputs", 0, None)?;
        let nodes = INPUT_NODES.min(self.largest_network(rows));
        let closed = self.closed().with_nodes(nodes);
        if sample.judge() == Judge::Residuals && self.criterion != Criterion::Squared {
            sample.beware(&closed, CAUTIOUS_RIDGE)?;
        }
        let mut designs: Vec<Self> = Vec::new();
        for fan_in in self.fan_ins(rows, inputs) {
            // Nodes that read few inputs may have steps.
            let gains = if fan_in.is_some() { &GAINS[1..] } else { &GAINS[..GAINS.len() - 1] };
            let design = |&gain: &f64| closed.clone().with_gain(gain).with_fan_in(fan_in);
            designs.extend(gains.iter().map(design));
        }
        // What ridge suits the first design is near to what suits the others.
        let (first, others) = designs.split_at(1);
        let first = [Entrant::new(&first[0], USUAL_RIDGE)];
        let mut trials = sample.trials(&first, &[nodes], &ridges)?;
        let likely = trials[0].first().map_or(USUAL_RIDGE, |trial| trial.ridge);
        let others: Vec<Entrant<'_>> =
            others.iter().map(|design| Entrant::new(design, likely)).collect();
        trials.extend(sample.trials(&others, &[nodes], &ridges)?);
        let leaders: Vec<(Self, Trial)> = designs
            .iter()
            .zip(trials)
            .flat_map(|(design, trials)| trials.into_iter().map(|trial| (design.clone(), trial)))
            .collect();
        let Some(plain) = best(&leaders).cloned() else { return Ok((self.clone(), ridges)) };
        let origins = promising(sample.origins(leaders));
        let weighted = sample.with_relevance(&plain, &origins, &[nodes], &ridges, ROUNDS)?;
        let (chosen, trial) = best(&weighted).cloned().unwrap_or(plain);
        let mut informed = self.clone();
        informed.network = Network { growth: self.network.growth.clone(), ..chosen.network };
        Ok((informed.with_nodes(self.network.enhancement.nodes), ridges_near(&ridges, trial.ridge)))
    }

    /// Whether a budget leaves time for so many rows.
    pub(super) fn may_look(&self, rows: usize, inputs: usize) -> bool {
        let designs = 2 * (GAINS.len() - 1) + (ROUNDS - 1) * SHARPNESS.len() * 3;
        let nodes = (inputs + INPUT_NODES) as f64;
        let product = rows.min(INPUT_ROWS) as f64 * nodes * nodes;
        let flops = designs as f64 * (1 + RIDGES.len()) as f64 * product;
        self.budget.is_none_or(|seconds| flops <= SHARE_OF_BUDGET * seconds * USUAL_SPEED)
    }
}

impl Sample<'_> {
    /// The designs from which relevances may begin: for classes those whose nodes read all inputs, if there are such.
    /// Those that read two led to worse relevances where labels were wrong (docs/math.md, 5.1); why was not looked into.
    pub(super) fn origins(
        &self,
        mut leaders: Vec<(CheckedSettings, Trial)>,
    ) -> Vec<(CheckedSettings, Trial)> {
        let reads_all =
            |(design, _): &(CheckedSettings, Trial)| design.network.enhancement.fan_in.is_none();
        if self.judge() == Judge::Classes && leaders.iter().any(reads_all) {
            leaders.retain(reads_all);
        }
        leaders
    }

    /// Designs in which inputs that matter are larger, with their trials, if that is better than `before` and, for
    /// classes, helps rows that had no say in it.
    pub(super) fn with_relevance(
        &self,
        before: &(CheckedSettings, Trial),
        origins: &[(CheckedSettings, Trial)],
        sizes: &[usize],
        ridges: &[f64],
        rounds: usize,
    ) -> Result<Vec<(CheckedSettings, Trial)>> {
        let Some(weighted) = self.weighted(origins, sizes, ridges, rounds)? else {
            return Ok(Vec::new());
        };
        let better = best(&weighted.designs).is_some_and(|(_, after)| {
            let (gained, error) = self.excess(&before.1, after);
            gained > CLEARLY_BETTER * error
        });
        // Those without relevances that read as many inputs a node: of the others one may have been lucky with these very rows.
        let leaders = [&origins[weighted.origin], best(origins).unwrap_or(before)];
        let helps = better
            && (self.judge() == Judge::Residuals
                || self.helps_others(leaders, sizes, ridges, rounds)?);
        Ok(if helps { weighted.designs } else { Vec::new() })
    }

    /// Rounds of fits, slopes and relevances from these designs on; the best of a round begins the next.
    fn weighted(
        &self,
        leaders: &[(CheckedSettings, Trial)],
        sizes: &[usize],
        ridges: &[f64],
        rounds: usize,
    ) -> Result<Option<Weighted>> {
        let begun = self.side_by_side(most(sizes), leaders, |(design, trial)| {
            self.once_more(design, trial, &SHARPNESS[..1])
        })?;
        let Some(first) = self.judged(begun.into_iter().enumerate(), sizes, ridges)? else {
            return Ok(None);
        };
        let score = |weighted: &Weighted| {
            best(&weighted.designs).map_or(f64::INFINITY, |(_, trial)| trial.score)
        };
        let mut latest = first;
        for _ in 1..rounds {
            let Some((design, trial)) = best(&latest.designs) else { break };
            let designs = (latest.origin, self.once_more(design, trial, &SHARPNESS)?);
            match self.judged(std::iter::once(designs), sizes, ridges)? {
                Some(next) if score(&next) < score(&latest) => latest = next,
                _ => break,
            }
        }
        Ok(Some(latest))
    }

    /// Designs with relevances from the slopes of this one, to powers and with the gains beside its own; and the ridge
    /// that is likely to suit them.
    fn once_more(
        &self,
        design: &CheckedSettings,
        trial: &Trial,
        powers: &[f64],
    ) -> Result<(Vec<CheckedSettings>, f64)> {
        let slopes = self.slopes(design, trial)?;
        let enhancement = &design.network.enhancement;
        let gain = enhancement.gain.unwrap_or(1.0);
        let mut gains = neighbours(&GAINS, gain);
        // Fewer inputs carry larger gains.
        gains.retain(|other| enhancement.relevance.is_some() || *other >= gain);
        let mut designs = Vec::new();
        for relevance in powers.iter().filter_map(|&power| relevance(&slopes, power)) {
            for &gain in &gains {
                let mut design = design.clone().with_gain(gain);
                design.network.enhancement.relevance = Some(relevance.clone());
                if self.judge() == Judge::Classes {
                    design.network.features = Features::RelevantInputs;
                }
                designs.push(design);
            }
        }
        Ok((designs, trial.ridge))
    }

    /// Designs that come of several origins, judged; those of the best one.
    fn judged(
        &self,
        designs: impl Iterator<Item = (usize, (Vec<CheckedSettings>, f64))>,
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Option<Weighted>> {
        let designs: Vec<(usize, CheckedSettings, f64)> = designs
            .flat_map(|(origin, (designs, likely))| {
                designs.into_iter().map(move |design| (origin, design, likely))
            })
            .collect();
        let entrants: Vec<Entrant<'_>> =
            designs.iter().map(|(_, settings, likely)| Entrant::new(settings, *likely)).collect();
        let found = self.trials(&entrants, sizes, ridges)?;
        let trials = || designs.iter().zip(&found);
        let score = |trials: &[Trial]| least(trials).map_or(f64::INFINITY, |trial| trial.score);
        let leader = trials().min_by(|a, b| score(a.1).total_cmp(&score(b.1)));
        let Some(((origin, ..), _)) = leader else { return Ok(None) };
        let designs = trials()
            .filter(|((other, ..), _)| other == origin)
            .flat_map(|((_, design, _), trials)| {
                trials.iter().map(|trial| (design.clone(), trial.clone()))
            })
            .collect();
        Ok(Some(Weighted { origin: *origin, designs }))
    }

    /// Whether relevances that come of one half of the rows help the other half, both ways taken together. They begin
    /// with the first design, and have to beat the second. That is much to ask of half of the rows: a standard error
    /// more, and what labels tell is lost where two fifths of them are wrong.
    fn helps_others(
        &self,
        leaders: [&(CheckedSettings, Trial); 2],
        sizes: &[usize],
        ridges: &[f64],
        rounds: usize,
    ) -> Result<bool> {
        let half = self.y.nrows() / 2;
        let halves = [self.part(0..half), self.part(half..self.y.nrows())];
        let mut gained = 0.0;
        for (own, other) in [(&halves[0], &halves[1]), (&halves[1], &halves[0])] {
            let [origin, before] = leaders;
            let begun = own.near(origin, sizes, ridges)?;
            let Some(weighted) = own.weighted(&begun, sizes, ridges, rounds)? else {
                return Ok(false);
            };
            let Some(after) = best(&weighted.designs) else { return Ok(false) };
            let (before, after) =
                (other.near(before, sizes, ridges)?, other.near(after, sizes, ridges)?);
            let (Some((_, before)), Some((_, after))) = (best(&before), best(&after)) else {
                return Ok(false);
            };
            let (more, _) = other.excess(before, after);
            gained += more;
        }
        Ok(gained > 0.0)
    }

    /// The best trial of a design on these rows, with a ridge that is near to one that suits others.
    fn near(
        &self,
        (design, trial): &(CheckedSettings, Trial),
        sizes: &[usize],
        ridges: &[f64],
    ) -> Result<Vec<(CheckedSettings, Trial)>> {
        let entrant = Entrant::new(design, trial.ridge);
        let trials = self.trials(&[entrant], sizes, &neighbours(ridges, trial.ridge))?;
        Ok(least(trials.iter().flatten())
            .map(|trial| (design.clone(), trial.clone()))
            .into_iter()
            .collect())
    }
}

/// The ridges to go on with: a small network with cautious weights suffers from wrong rows more than a
/// robust one will, and so wants a larger ridge.
fn ridges_near(ridges: &[f64], ridge: f64) -> Vec<f64> {
    let place = ridges.iter().position(|&other| other == ridge).unwrap_or(0);
    ridges[place.saturating_sub(2)..(place + 2).min(ridges.len())].to_vec()
}

/// For every number of inputs a node, the best designs.
fn promising(mut leaders: Vec<(CheckedSettings, Trial)>) -> Vec<(CheckedSettings, Trial)> {
    leaders.sort_by(|a, b| a.1.score.total_cmp(&b.1.score));
    let fan_in = |(design, _): &(CheckedSettings, Trial)| design.network.enhancement.fan_in;
    let mut chosen: Vec<(CheckedSettings, Trial)> = Vec::new();
    for leader in leaders {
        let known = chosen.iter().filter(|other| fan_in(other) == fan_in(&leader)).count();
        if known < ORIGINS {
            chosen.push(leader);
        }
    }
    chosen
}

/// The design whose trial has the least score.
pub(super) fn best(trials: &[(CheckedSettings, Trial)]) -> Option<&(CheckedSettings, Trial)> {
    trials.iter().min_by(|a, b| a.1.score.total_cmp(&b.1.score))
}

/// Slopes to this power, in units of their root mean square, so that a gain keeps its meaning; `None` if
/// there is nothing to tell apart.
fn relevance(slopes: &[f64], power: f64) -> Option<Vec<f64>> {
    let sharp: Vec<f64> = slopes.iter().map(|slope| slope.powf(power)).collect();
    let varying = sharp.iter().filter(|slope| **slope > 0.0).count();
    let squares: f64 = sharp.iter().map(|slope| slope * slope).sum();
    let unit = (squares / varying as f64).sqrt();
    let usable = varying > 1 && unit > 0.0 && unit.is_finite();
    let factor = |slope: &f64| if *slope > 0.0 { (slope / unit).max(LEAST) } else { 0.0 };
    usable.then(|| sharp.iter().map(factor).collect())
}
