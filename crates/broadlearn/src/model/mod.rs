//! Stage 7: settings -> checked settings -> fitted model.
//!
//! [`fit`](Settings::fit) is the whole algorithm on one screen, in `fit.rs`.

mod settings;
mod rows;
mod fit;
mod predict;
mod judge;
mod learn;
mod forget;
mod grow;
mod refine;
mod leave_one_out;
mod merge;
mod container;
mod file;

pub use file::FORMAT_VERSION;
pub use fit::Training;
pub use forget::Removal;
pub use learn::{Learning, Learnt};
pub use leave_one_out::LeftOut;
pub use predict::Predictions;
pub use refine::{Drift, Refinement};
pub use rows::Labelled;
pub use settings::{CheckedSettings, Criterion, Regularisation, Settings};

use crate::data::{Schema, Task};
use crate::features::FeatureMap;
use crate::increment::Knowledge;
use crate::preprocess::Scaler;
use crate::solve::SolveReport;
use faer::{Mat, MatRef};

/// A fitted model.
///
/// It is always complete: there is no model that is not fitted. Predicting n rows costs
/// 2 n (M L_z + L_z L_h + L C) flops and memory for one block of rows.
#[derive(Clone, Debug)]
pub struct Model {
    settings: CheckedSettings,
    schema: Schema,
    input_scaler: Scaler,
    target_scaler: Scaler,
    map: FeatureMap,
    w: Mat<f64>,
    knowledge: Option<Knowledge>,
    report: SolveReport,
    rows: u64,
}

impl Model {
    /// The settings that it was fitted with.
    pub fn settings(&self) -> &CheckedSettings {
        &self.settings
    }

    /// The columns of its table.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What it predicts.
    pub fn task(&self) -> Task {
        self.schema.target.task()
    }

    /// The scaler of the inputs.
    pub fn input_scaler(&self) -> &Scaler {
        &self.input_scaler
    }

    /// The scaler of the targets; of a classifier, one that changes nothing.
    pub fn target_scaler(&self) -> &Scaler {
        &self.target_scaler
    }

    /// The map from scaled inputs to the state.
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// The output weights W, L x C.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.w.as_ref()
    }

    /// What later changes need: R and P, and which rows they came from. A compact model has none.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.knowledge.as_ref()
    }

    /// How W was found.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }

    /// The number of rows that it has learnt and not forgotten.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Drops R, P and the record of rows: a smaller file, which cannot learn any more.
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.knowledge = None;
        self
    }
}
