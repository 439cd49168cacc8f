//! Which inputs matter.
//!
//! Random weights of one size for all inputs spend the nodes on functions of inputs that mean nothing. The
//! slopes of a fitted network tell the inputs apart: weights in proportion to them, and the same again with
//! the new network, some rounds. (For kernel machines: Radhakrishnan et al., Science 383, 2024.) What has
//! seen the targets may fit their noise, so the result must be clearly better than what it began with.

use super::super::settings::{CheckedSettings, Criterion};
use super::network::{GAINS, neighbours};
use super::sample::{Sample, Trial};
use crate::error::Result;
use crate::progress::{Observer, report};
use crate::solve::automatic::{Judge, RIDGES};

/// Enhancement nodes of the networks that are looked at.
const NODES: usize = 100;
const ROUNDS: usize = 3;
/// Too few rows tell nothing about inputs.
const FEWEST_ROWS: usize = 20;
const CAUTIOUS_RIDGE: f64 = 1.0;
/// A network with relevances must be better by this many standard errors.
const CLEARLY_BETTER: f64 = 1.0;

impl CheckedSettings {
    /// These settings with the relevance of the inputs and the gain that goes with it, if they are open,
    /// and the ridges that may suit them.
    pub(super) fn informed(
        &self,
        mut sample: Sample<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<(Self, Vec<f64>)> {
        let (ridge, _) = self.given();
        let ridges = ridge.map_or_else(|| RIDGES.to_vec(), |ridge| vec![ridge]);
        let rows = sample.y.nrows();
        if !self.open.gain || rows < FEWEST_ROWS {
            return Ok((self.clone(), ridges));
        }
        report(observer, "looking at the inputs", 0, None)?;
        let nodes = NODES.min(self.largest_network(rows));
        let closed = self.closed().with_nodes(nodes);
        if sample.judge() == Judge::Residuals && self.criterion != Criterion::Squared {
            sample.beware(&closed, CAUTIOUS_RIDGE)?;
        }
        let mut leaders: Vec<(Self, Trial)> = Vec::new();
        for gain in GAINS {
            let design = closed.clone().with_gain(gain);
            let trials = sample.trials(0, &design, &[nodes], &ridges)?;
            leaders.extend(trials.into_iter().map(|trial| (design.clone(), trial)));
        }
        let Some(plain) = best(&leaders).cloned() else { return Ok((self.clone(), ridges)) };
        let weighted = sample.with_relevance(leaders, &[nodes], &ridges, ROUNDS)?;
        let (chosen, trial) = best(&weighted).cloned().unwrap_or(plain);
        let mut informed = self.clone();
        informed.network.enhancement = chosen.network.enhancement;
        Ok((informed.with_nodes(self.network.enhancement.nodes), ridges_near(&ridges, trial.ridge)))
    }
}

impl Sample<'_> {
    /// Designs in which inputs that matter have larger weights, with their trials, if these are clearly
    /// better than the designs it begins with. It begins with several gains: a nearly linear network may
    /// predict best, and yet know nothing of the inputs that matter in another way.
    pub(super) fn with_relevance(
        &self,
        mut leaders: Vec<(CheckedSettings, Trial)>,
        sizes: &[usize],
        ridges: &[f64],
        rounds: usize,
    ) -> Result<Vec<(CheckedSettings, Trial)>> {
        let Some((_, before)) = best(&leaders).cloned() else { return Ok(Vec::new()) };
        let mut chosen: Vec<(CheckedSettings, Trial)> = Vec::new();
        for round in 0..rounds {
            let mut found = Vec::new();
            for (design, leader) in &leaders {
                let Some(relevance) = relevance(&self.slopes(design, leader)?) else { continue };
                let gain = design.network.enhancement.gain.unwrap_or(1.0);
                let mut gains = neighbours(&GAINS, gain);
                // Fewer inputs carry larger gains.
                gains.retain(|other| round > 0 || *other >= gain);
                for gain in gains {
                    let mut design = design.clone().with_gain(gain);
                    design.network.enhancement.relevance = Some(relevance.clone());
                    let near = neighbours(ridges, leader.ridge);
                    let trials = self.trials(0, &design, sizes, &near)?;
                    found.extend(trials.into_iter().map(|trial| (design.clone(), trial)));
                }
            }
            let Some(leader) = best(&found).cloned() else { break };
            let least = best(&chosen).map_or(f64::INFINITY, |(_, trial)| trial.score);
            if leader.1.score < least {
                chosen = found;
            }
            leaders = vec![leader];
        }
        let clearly_better = best(&chosen).is_some_and(|(_, after)| {
            let (gained, error) = self.excess(&before, after);
            gained > CLEARLY_BETTER * error
        });
        Ok(if clearly_better { chosen } else { Vec::new() })
    }
}

/// The ridges to go on with: a small network with cautious weights suffers from wrong rows more than a
/// robust one will, and so wants a larger ridge.
fn ridges_near(ridges: &[f64], ridge: f64) -> Vec<f64> {
    let place = ridges.iter().position(|&other| other == ridge).unwrap_or(0);
    ridges[place.saturating_sub(2)..(place + 2).min(ridges.len())].to_vec()
}

/// The design whose trial has the least score.
fn best(trials: &[(CheckedSettings, Trial)]) -> Option<&(CheckedSettings, Trial)> {
    trials.iter().min_by(|a, b| a.1.score.total_cmp(&b.1.score))
}

/// Slopes in units of their root mean square, so that a gain keeps its meaning; `None` if there is
/// nothing to tell apart.
fn relevance(slopes: &[f64]) -> Option<Vec<f64>> {
    let varying = slopes.iter().filter(|slope| **slope > 0.0).count();
    let squares: f64 = slopes.iter().map(|slope| slope * slope).sum();
    let unit = (squares / varying as f64).sqrt();
    let usable = varying > 1 && unit > 0.0 && unit.is_finite();
    usable.then(|| slopes.iter().map(|slope| slope / unit).collect())
}
