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

use super::settings::{CheckedSettings, Criterion, Open, Regularisation};
use crate::data::Task;
use crate::error::{Error, Result};
use crate::features::draw::{Purpose, Stream};
use crate::progress::Observer;
use crate::solve::automatic::{Choice, Judge, RIDGES, choose};
use crate::solve::cross_fit::HonestWeights;
use crate::solve::{Candidate, NetworkCandidate, RobustLoss};
use faer::MatRef;
use sample::Sample;

/// Enhancement nodes of the network on which the kernel is chosen.
const KERNEL_NODES: usize = 100;
/// More rows than this are sampled for the kernel.
const KERNEL_ROWS: usize = 3000;

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
        if self.regularisation == Regularisation::PseudoInverse {
            return Ok(self.decided_by_rule(x.nrows()));
        }
        let (ridge, robust) = self.given();
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
        let rows = &order[..network_rows(x.nrows())];
        let looked_at = rows.len().min(KERNEL_ROWS);
        let judge = match task {
            Task::Regression => Judge::Residuals,
            Task::Classification => Judge::Classes,
        };
        let informed =
            self.informed(Sample::new(x, y, user, &rows[..looked_at], judge), observer)?;
        let mut sample = Sample::new(x, y, user, rows, judge);
        if robust.is_some() {
            let nodes = KERNEL_NODES.min(self.largest_network(x.nrows()));
            let mapped = sample.mapped(&informed.closed().with_nodes(nodes), looked_at)?;
            let y = sample.y.subrows(0, looked_at);
            let user = sample.user.as_deref().map(|user| &user[..looked_at]);
            let choice = Choice { ridge, robust, start: self.start, linear: mapped.linear() };
            if let Some(chosen) = choose(mapped.u.as_ref(), y, user, choice, judge, observer)? {
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
