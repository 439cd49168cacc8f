//! Forgetting rows: they leave as they came.

use super::learn::{Sign, mean_of};
use super::rows::{Kept, Labelled};
use super::{Member, Model};
use crate::error::{Error, Result};
use crate::increment::ledger::fingerprints;
use crate::increment::{Knowledge, Route};
use crate::progress::Observer;
use crate::solve::Loss;
use faer::Mat;

/// The certificate of rows that were forgotten.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    /// The fingerprints of the rows.
    pub fingerprints: Vec<u64>,
    /// The weights with which they left, which are those with which they came; of an ensemble, the
    /// mean over its members, as each has weights of its own.
    pub weights: Vec<f64>,
    /// How the factor was brought up to date.
    pub route: Route,
    /// |(R + γ I) W - P| / |P| of what is left: W is the solution without these rows. Of an ensemble,
    /// the largest one.
    pub residual: f64,
    /// The largest ratio by which a diagonal element of R + γ I shrank: what the rows have left
    /// behind in R is rounding errors, of at most this times 2e-16 of it. Of an ensemble, the largest.
    pub cancellation: f64,
    /// Rows that are left.
    pub rows_left: u64,
    /// The certificates of the members of an ensemble; none for a single network.
    pub members: Vec<Self>,
}

impl Removal {
    /// The certificate of an ensemble.
    fn of_members(members: Vec<Self>) -> Self {
        let lists: Vec<&[f64]> = members.iter().map(|member| member.weights.as_slice()).collect();
        let largest = |of: fn(&Self) -> f64| members.iter().map(of).fold(0.0, f64::max);
        Self {
            fingerprints: members[0].fingerprints.clone(),
            weights: mean_of(&lists),
            route: members[0].route,
            residual: largest(|member| member.residual),
            cancellation: largest(|member| member.cancellation),
            rows_left: members[0].rows_left,
            members,
        }
    }
}

impl Model {
    /// Forgets rows that it has learnt: they leave with the weights with which they came, so that
    /// the model is the one that never saw them (with the weights of the others as they are).
    ///
    /// # Errors
    /// Rows that it has not learnt, as far as the record or the numbers tell; a compact model; no
    /// row would be left. The model is then unchanged.
    pub fn forget(&mut self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Removal> {
        let mut removals =
            self.change(observer, |_, member, observer| member.forget(rows, observer))?;
        match removals.len() {
            1 => Ok(removals.remove(0)),
            _ => Ok(Removal::of_members(removals)),
        }
    }
}

impl Member {
    fn forget(&mut self, rows: Labelled<'_>, observer: &mut Observer<'_>) -> Result<Removal> {
        self.updatable()?;
        rows.check(&self.schema)?;
        let kept = Kept::new(rows);
        let rows = kept.rows();
        let prints = fingerprints(rows.x, rows.targets);
        let mut knowledge = self.take_knowledge()?;
        let outcome = self.remove(&mut knowledge, rows, &prints, observer);
        match outcome {
            Ok((w, removal)) => {
                self.w = w;
                self.rows = removal.rows_left;
                self.knowledge = Some(knowledge);
                Ok(removal)
            }
            Err(error) => {
                self.knowledge = Some(knowledge);
                Err(error)
            }
        }
    }

    fn remove(
        &self,
        knowledge: &mut Knowledge,
        rows: Labelled<'_>,
        prints: &[u64],
        observer: &mut Observer<'_>,
    ) -> Result<(Mat<f64>, Removal)> {
        let (weights, places) = self.recorded_weights(knowledge, rows, prints)?;
        let left = knowledge.equations().rows().saturating_sub(prints.len() as u64);
        if left == 0 {
            return Err(Error::data(format!("{} rows, which are all that it knows", prints.len()))
                .expected("rows to be left")
                .advice("delete the model instead"));
        }
        let diagonal = |knowledge: &Knowledge| -> Vec<f64> {
            let r = knowledge.equations().r();
            (0..r.nrows()).map(|i| r[(i, i)]).collect()
        };
        let before = diagonal(knowledge);
        let original = knowledge.clone();
        let ridge = knowledge.ridge();
        let mut change = || -> Result<(Route, Mat<f64>, f64)> {
            let route = self.change_rows(knowledge, rows, &weights, Sign::Remove, observer)?;
            let mut cancellation = 1.0_f64;
            for (before, after) in before.iter().zip(diagonal(knowledge)) {
                // A sum of squares below 0 by more than rounding was not made with these rows.
                if after < -1e-10 * before.max(ridge) {
                    return Err(never_learnt());
                }
                cancellation = cancellation.max((before + ridge) / (after.max(0.0) + ridge));
            }
            let w = knowledge.solve()?;
            Ok((route, w, cancellation))
        };
        match change() {
            Ok((route, w, cancellation)) => {
                knowledge.ledger_mut().strike(&places);
                let residual = knowledge.residual(w.as_ref());
                let fingerprints = prints.to_vec();
                let removal = Removal {
                    fingerprints,
                    weights,
                    route,
                    residual,
                    cancellation,
                    rows_left: left,
                    members: Vec::new(),
                };
                Ok((w, removal))
            }
            Err(error) => {
                *knowledge = original;
                Err(error)
            }
        }
    }

    /// The weights with which these rows came, and their places in the ledger.
    pub(super) fn recorded_weights(
        &self,
        knowledge: &Knowledge,
        rows: Labelled<'_>,
        prints: &[u64],
    ) -> Result<(Vec<f64>, Vec<usize>)> {
        let ledger = knowledge.ledger();
        // The user's weight tells equal rows apart where the model gave none of its own.
        let plain = self.report.loss == Loss::Squared && !knowledge.decayed();
        let places = match plain {
            true => ledger.find_weighted(prints, rows.weights),
            false => ledger.find(prints),
        };
        let unknown: Vec<usize> = (0..places.len()).filter(|&row| places[row].is_none()).collect();
        // Without a record the weight is known only where the model never gave weights of its own.
        let by_definition =
            !knowledge.is_complete() && self.report.loss == Loss::Squared && !knowledge.decayed();
        if let (Some(&first), false) = (unknown.first(), by_definition) {
            let place = format!("row {}", first + 1);
            let found = if unknown.len() == 1 {
                "a row that is not on record".into()
            } else {
                format!("a row that is not on record, as are {} others", unknown.len() - 1)
            };
            return Err(if knowledge.is_complete() {
                Error::data(found).at(place).expected(
                    "rows that the model has learnt, with the same inputs and the same target",
                )
            } else {
                Error::data(found)
                    .at(place)
                    .expected(format!(
                        "rows whose weight is on record ({} of {} are)",
                        ledger.len(),
                        knowledge.equations().rows()
                    ))
                    .advice("fit the model anew without these rows")
            });
        }
        let weights = places
            .iter()
            .enumerate()
            .map(|(row, place)| match place {
                Some(place) => ledger.weights()[*place],
                None => rows.weights.map_or(1.0, |weights| weights[row]),
            })
            .collect();
        Ok((weights, places.into_iter().flatten().collect()))
    }
}

pub(super) fn never_learnt() -> Error {
    Error::data("rows that the model cannot have learnt: what would remain is not a sum of squares")
        .expected("rows that it has learnt, with the same values and weights")
}
