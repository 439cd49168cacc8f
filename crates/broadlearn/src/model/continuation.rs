//! What a model of a series keeps of it: how it was embedded, its last points, how far forecasts are off.

use super::Model;
use super::calibration::{LEVELS, between_levels};
use crate::data::Embedding;
use crate::error::{Error, Result};
use faer::Mat;
use serde::{Deserialize, Serialize};

/// A series up to its last point, as far as the next forecast needs it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Continuation {
    pub(crate) facts: SeriesFacts,
    /// By step ahead: quantiles of |error of the forecast| at even levels from 0 to 1.
    pub(crate) quantiles: Mat<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeriesFacts {
    pub(crate) embedding: Embedding,
    /// The points of the series so far.
    pub(crate) points: u64,
    /// Its last points, then those of the further columns; `null` for a missing one.
    pub(crate) tail: Vec<Vec<Option<f64>>>,
    /// The column of labels, and the last two of them.
    pub(crate) time: Option<(String, Vec<String>)>,
    /// The mean of |y(t) - y(t-1)|, and of |y(t) - y(t-s)|, in training.
    pub(crate) naive: Option<f64>,
    pub(crate) seasonal_naive: Option<f64>,
    /// By step ahead: the paths behind its quantiles.
    pub(crate) paths: Vec<f64>,
}

impl Continuation {
    /// The largest error at this level, by step, as far as it is known.
    ///
    /// # Errors
    /// A level that is not between 0 and 1, or one that the number of paths does not bear.
    pub(crate) fn half_widths(&self, level: f64, steps: usize) -> Result<Vec<f64>> {
        let known = steps.min(self.facts.paths.len());
        (0..known)
            .map(|step| between_levels(&self.quantiles, step, level, self.facts.paths[step]))
            .collect()
    }
}

impl SeriesFacts {
    /// What holds for all that this library writes.
    pub(super) fn check(&self) -> Result<()> {
        self.embedding
            .check()
            .map_err(|error| Error::model(format!("a bad embedding ({error})")))?;
        let kept = self.embedding.kept();
        let finite = |values: &Vec<Option<f64>>| values.iter().flatten().all(|v| v.is_finite());
        let positive = |scale: Option<f64>| scale.is_none_or(|s| s >= 0.0 && s.is_finite());
        let sound = self.tail.len() == 1 + self.embedding.exogenous.len()
            && self.tail.iter().all(|values| values.len() == kept && finite(values))
            && positive(self.naive)
            && positive(self.seasonal_naive)
            && self.points <= super::file::MOST_ROWS
            && self.time.as_ref().is_none_or(|(_, labels)| labels.len() <= 2)
            && self.paths.iter().all(|count| *count >= 1.0 && count.is_finite());
        match sound {
            true => Ok(()),
            false => Err(Error::model("points of a series that do not fit its embedding")
                .at("forecast")
                .expected("a model that `broadlearn forecast` wrote")),
        }
    }

    /// The number of steps whose quantiles are kept, and the levels of these.
    pub(super) fn shape(&self) -> (usize, usize) {
        (LEVELS, self.paths.len())
    }
}

impl Model {
    /// How the series was embedded that this model forecasts; `None` for a model of a table.
    pub fn embedding(&self) -> Option<&Embedding> {
        self.continuation.as_ref().map(|continuation| &continuation.facts.embedding)
    }

    pub(crate) fn continuation(&self) -> Option<&Continuation> {
        self.continuation.as_ref()
    }

    pub(crate) fn continuation_mut(&mut self) -> &mut Option<Continuation> {
        &mut self.continuation
    }
}
