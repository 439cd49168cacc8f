//! A member of a model: one network, with all that belongs to it.

use super::CheckedSettings;
use crate::data::Schema;
use crate::features::FeatureMap;
use crate::increment::Knowledge;
use crate::preprocess::{ScaledRows, Scaler};
use crate::solve::SolveReport;
use faer::{Mat, MatRef};

/// One network of a model. The members of a model have the same rows, columns, scalers and settings but
/// for the seed.
#[derive(Clone, Debug)]
pub struct Member {
    pub(super) settings: CheckedSettings,
    pub(super) schema: Schema,
    pub(super) input_scaler: Scaler,
    pub(super) target_scaler: Scaler,
    pub(super) map: FeatureMap,
    pub(super) w: Mat<f64>,
    pub(super) knowledge: Option<Knowledge>,
    pub(super) report: SolveReport,
    pub(super) rows: u64,
}

impl Member {
    /// The seed of its random numbers.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// The map from scaled inputs to the state.
    pub fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// The output weights W, L x C.
    pub fn weights(&self) -> MatRef<'_, f64> {
        self.w.as_ref()
    }

    /// R and P, and which rows they came from with which weights. A compact model has none.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.knowledge.as_ref()
    }

    /// How W was found.
    pub fn report(&self) -> &SolveReport {
        &self.report
    }

    /// Scaled inputs of some rows.
    pub(super) fn scaled<'a>(&'a self, x: MatRef<'a, f64>) -> ScaledRows<'a> {
        ScaledRows::new(x, &self.input_scaler)
    }
}
