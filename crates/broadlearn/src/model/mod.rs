//! Stage 7: settings -> checked settings -> fitted model.
//!
//! [`fit`](Settings::fit) is the whole algorithm on one screen, in `fit.rs`.

mod settings;
mod checked_settings;
mod rows;
mod distinct;
mod member;
mod choose;
mod fit;
mod fit_table;
mod row_predictor;
mod ensemble;
pub mod tune;
mod predict;
mod predictor;
mod judge;
mod learn;
mod learn_table;
mod forget;
mod grow;
mod refine;
mod leave_one_out;
mod spread;
mod discriminant;
mod good_rows;
mod calibration;
mod continuation;
mod merge;
mod container;
mod file;
mod map_file;

pub use calibration::{Calibration, Region};
pub use checked_settings::CheckedSettings;
pub(crate) use continuation::{Continuation, SeriesFacts};
pub use file::FORMAT_VERSION;
pub use fit::Training;
pub use fit_table::{Passing, TableRows};
pub use forget::Removal;
pub(crate) use good_rows::{Good, HARDLY_BELIEVED, Wrong};
pub use learn::{Learning, Learnt};
pub use leave_one_out::{LeavingOut, LeftOut, Removals};
pub use member::Member;
pub use predict::Predictions;
pub use predictor::{Precision, Predictor};
pub use refine::{Drift, Refinement};
pub use row_predictor::RowPredictor;
pub use rows::Labelled;
pub use settings::{Criterion, Procedure, Regularisation, Settings};

use crate::data::{Schema, Task};
use crate::features::FeatureMap;
use crate::increment::Knowledge;
use crate::preprocess::Scaler;
use crate::solve::SolveReport;
use discriminant::Discriminant;
use faer::MatRef;

/// A fitted model: one network, or several whose outputs are averaged
/// ([`Settings::members`]).
///
/// It is always complete: there is no model that is not fitted. Predicting n rows costs
/// 2 n (M L_z + L_z L_h + L C) flops for each member and memory for one block of rows.
#[derive(Clone, Debug)]
pub struct Model {
    /// At least one; they differ in seed, nodes and what follows from these.
    members: Vec<Member>,
    /// What class outputs speak for, where that is not the largest one.
    discriminant: Option<Discriminant>,
    /// How far its predictions are off; not known to every model.
    calibration: Option<Calibration>,
    /// The series that it forecasts; not of every model.
    continuation: Option<Continuation>,
}

impl Model {
    /// The networks whose outputs are averaged.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    fn first(&self) -> &Member {
        &self.members[0]
    }

    /// The settings that it was fitted with.
    pub fn settings(&self) -> &CheckedSettings {
        &self.first().settings
    }

    /// The columns of its table.
    pub fn schema(&self) -> &Schema {
        &self.first().schema
    }

    /// What it predicts.
    pub fn task(&self) -> Task {
        self.schema().target.task()
    }

    /// The scaler of the inputs.
    pub fn input_scaler(&self) -> &Scaler {
        &self.first().input_scaler
    }

    /// The scaler of the targets; of a classifier, one that changes nothing.
    pub fn target_scaler(&self) -> &Scaler {
        &self.first().target_scaler
    }

    /// The map from scaled inputs to the state; of the first member, if there are several.
    pub fn map(&self) -> &FeatureMap {
        self.first().map()
    }

    /// The output weights W, L x C; of the first member, if there are several.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.first().weights()
    }

    /// What later changes need: R and P, and which rows they came from; of the first member, if there
    /// are several. A compact model has none.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.first().knowledge()
    }

    /// How W was found; of the first member, if there are several.
    pub fn report(&self) -> &SolveReport {
        self.first().report()
    }

    /// The number of rows that it has learnt and not forgotten.
    pub fn rows(&self) -> u64 {
        self.first().rows
    }

    /// The inputs in the order in which they matter, with their relevance: by how much the random weights
    /// for this input are larger than usual. Of a text column the relevances of its levels are taken
    /// together. Empty where all inputs have weights of one size.
    pub fn relevance(&self) -> Vec<(&str, f64)> {
        let Some(factors) = &self.settings().network.enhancement.relevance else {
            return Vec::new();
        };
        let mut rest = factors.as_slice();
        let mut inputs: Vec<(&str, f64)> = Vec::new();
        for input in &self.schema().inputs {
            let (own, others) = rest.split_at(input.encoding.width().min(rest.len()));
            inputs.push((&input.name, own.iter().map(|f| f * f).sum::<f64>().sqrt()));
            rest = others;
        }
        inputs.sort_by(|a, b| b.1.total_cmp(&a.1));
        inputs
    }

    /// Drops R, P and the record of rows: a smaller file, which cannot learn any more.
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.members.iter_mut().for_each(|member| member.knowledge = None);
        self
    }
}
