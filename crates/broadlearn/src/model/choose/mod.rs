//! Whatever the user left open, chosen on the training rows.
//!
//! 1. Which inputs matter, by the slopes of small networks ([`relevance`]).
//! 2. The kernel size, by cross-validation on a small network (`solve/automatic`). It gives every row a
//!    residual from models that have not seen it, and so a sample weight that is honest.
//! 3. The network ([`network`]) and the ridge, by leave-one-out with these weights, in closed form
//!    (`solve/nested.rs`).
//!
//! The fit itself begins with these weights.

mod network;
mod relevance;
mod sample;

use super::settings::Open;
use super::{CheckedSettings, Criterion, Procedure, Regularisation};
use crate::data::Task;
use crate::error::{Error, Result};
use crate::features::draw::{Purpose, Stream};
use crate::preprocess::statistics;
use crate::progress::Observer;
use crate::solve::automatic::{Choice, Judge, RIDGES, choose};
use crate::solve::cross_fit::HonestWeights;
use crate::solve::{Candidate, NetworkCandidate, RobustLoss};
use faer::MatRef;
use sample::Sample;

/// Enhancement nodes of the network on which the kernel is chosen.
const KERNEL_NODES: usize = 60;
/// A kernel need not be wider than this many times the residual that this share of the rows does not exceed: a row so far off
/// has a weight of 0.95.
const BELIEVED: f64 = 3.0;
const NEARLY_ALL: f64 = 0.99;
/// More rows than these are sampled: to see which inputs matter, and for the kernel.
const INPUT_ROWS: usize = 3000;
const KERNEL_ROWS: usize = 1500;

/// The number of rows on which the network is chosen.
fn network_rows(rows: usize) -> usize {
    (3000 + rows / 10).min(10_000).min(rows)
}

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

impl Decision {
    /// A kernel, or the narrowest of those that were tried which believes about all rows with these squared residual norms. One
    /// that believes whatever there may be would believe later rows as well, and they need not be as clean.
    pub(super) fn not_boundless(&self, sigma: f64, squares: &[f64], user: Option<&[f64]>) -> f64 {
        let norms: Vec<f64> = squares.iter().map(|square| square.sqrt()).collect();
        let far = statistics::quantile(&statistics::sorted(&norms, user), NEARLY_ALL);
        let Some(far) = far.filter(|far| *far > 0.0) else { return sigma };
        let tried = self.candidates.iter().filter_map(|candidate| candidate.sigma);
        tried.filter(|other| *other >= BELIEVED * far).fold(sigma, f64::min)
    }
}

impl CheckedSettings {
    /// Chooses what is open, on inputs `x` and scaled targets `y`, which differ. The unit of the weights has no say: rows have the
    /// weight 1 on average, and ridges follow.
    pub(super) fn decide(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        task: Task,
        observer: &mut Observer<'_>,
    ) -> Result<Decision> {
        let Some(user) = user else { return self.decide_in_units(x, y, None, task, observer) };
        let unit = user.iter().sum::<f64>() / user.len() as f64;
        let (given, _) = self.given();
        let mut settings = self.clone();
        if let Regularisation::Ridge { ridge } = &mut settings.regularisation {
            *ridge = ridge.map(|ridge| ridge / unit);
        }
        let user: Vec<f64> = user.iter().map(|weight| weight / unit).collect();
        let mut decision = settings.decide_in_units(x, y, Some(&user), task, observer)?;
        decision.settings.regularisation = self.regularisation;
        decision.ridge = given.or(decision.ridge.map(|ridge| ridge * unit));
        decision.candidates.iter_mut().for_each(|candidate| candidate.ridge *= unit);
        decision.networks.iter_mut().for_each(|network| network.ridge *= unit);
        if let Some(start) = &mut decision.start {
            start.weights.iter_mut().for_each(|weight| *weight *= unit);
        }
        Ok(decision)
    }

    fn decide_in_units(
        &self,
        x: MatRef<'_, f64>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        task: Task,
        observer: &mut Observer<'_>,
    ) -> Result<Decision> {
        if self.regularisation == Regularisation::PseudoInverse {
            return Ok(self.decided_by_rule(x.nrows()));
        }
        let (ridge, robust) = self.given();
        let sigma = robust.and_then(|(_, sigma)| sigma);
        let mut decision = Decision {
            settings: Self { members: self.members_for(x.nrows()), ..self.closed() },
            ridge,
            sigma,
            start: None,
            candidates: Vec::new(),
            networks: Vec::new(),
        };
        let kernel_open = robust.is_some_and(|(_, sigma)| sigma.is_none())
            && self.procedure == Procedure::FixedPoint;
        if ridge.is_some() && !kernel_open && self.open == Open::NOTHING {
            return Ok(decision);
        }

        check_varies(y, task)?;
        let order = Stream::new(self.seed, Purpose::Folds, 0).permutation(x.nrows());
        let rows = &order[..network_rows(x.nrows())];
        let judge = match task {
            Task::Regression => Judge::Residuals,
            Task::Classification => Judge::Classes,
        };
        let first = &rows[..rows.len().min(INPUT_ROWS)];
        let (informed, ridges) =
            self.informed(Sample::new(x, y, user, first, judge, self.input_scaling), observer)?;
        let mut sample = Sample::new(x, y, user, rows, judge, self.input_scaling);
        let count = sample.rows.len();
        let looked_at = count.min(KERNEL_ROWS);
        if let Some((kind, _)) = robust {
            let nodes = KERNEL_NODES.min(self.largest_network(x.nrows()));
            let mapped = sample.mapped(&informed.closed().with_nodes(nodes), count)?;
            let u = mapped.u.subrows(0, looked_at);
            let y = sample.y.subrows(0, looked_at);
            let user = sample.user.as_deref().map(|user| &user[..looked_at]);
            let choice =
                Choice { ridges: &ridges, robust, start: self.start, linear: mapped.linear() };
            if let Some(chosen) = choose(u, y, user, choice, judge, observer)? {
                decision.sigma = chosen.sigma;
                decision.ridge = Some(chosen.ridge);
                let mut squares = chosen.squares;
                if let Some(sigma) = chosen.sigma {
                    let loss = kind.at(sigma);
                    squares.extend(sample.unseen_squares(&mapped, &squares, loss, chosen.ridge)?);
                    loss.weigh(&mut squares);
                }
                sample.learn(squares, &chosen.yardstick);
                decision.candidates = chosen.candidates;
                let weights = sample.weights.clone();
                decision.start = Some(HonestWeights { rows: sample.rows.clone(), weights });
            }
        }
        sample.choose_network(&informed, ridge, &mut decision, observer)?;
        // Rows too few to choose on.
        decision.ridge = decision.ridge.or(Some(RIDGES[RIDGES.len() / 2]));
        decision.sigma = decision.sigma.or_else(|| robust.map(|_| 1.0));
        Ok(decision)
    }

    /// The ridge, and the robust loss with its kernel, as far as they are given.
    fn given(&self) -> (Option<f64>, Option<(RobustLoss, Option<f64>)>) {
        match (self.regularisation, self.criterion) {
            (Regularisation::PseudoInverse, _) => (None, None),
            (Regularisation::Ridge { ridge }, Criterion::Squared) => (ridge, None),
            (Regularisation::Ridge { ridge }, Criterion::Robust { kind, sigma }) => {
                (ridge, Some((kind, sigma)))
            }
        }
    }

    /// Without a ridge there is nothing to compare by: a twentieth of the rows, from 200 to 1000.
    fn decided_by_rule(&self, rows: usize) -> Decision {
        let mut settings = Self { members: self.members_for(rows), ..self.closed() };
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

    fn with_fan_in(mut self, fan_in: Option<usize>) -> Self {
        self.network.enhancement.fan_in = fan_in;
        self
    }

    fn with_gain(mut self, gain: f64) -> Self {
        self.network.enhancement.gain = Some(gain);
        self
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
