//! One fit and its scores.

use crate::engine::{Stop, Values};
use crate::sets::{Split, Table};
use broadlearn::data::{Encoding, Schema, Targets};
use broadlearn::faer::Mat;
use broadlearn::model::Training;
use broadlearn::{Category, Model, Result, Settings};
use std::time::Instant;

/// Training and test rows in numbers; numeric targets in units in which all of the set lie in [0, 1].
///
/// The paper scales them so. It is a choice of units, without which the RMSE would depend on where the
/// largest target falls.
pub(crate) struct Rows {
    pub(crate) schema: Schema,
    pub(crate) train: (Mat<f64>, Targets),
    pub(crate) test: (Mat<f64>, Targets),
}

impl Rows {
    /// The rows of a run. Missing cells are filled with the training median, and as `indicators`
    /// says, a further input tells where that was done.
    pub(crate) fn new(table: &Table, division: Split, seed: u64, indicators: bool) -> Result<Self> {
        let (train, test) = table.rows(division, seed);
        let mut schema = table.data.schema(&train)?;
        for input in &mut schema.inputs {
            if let Encoding::Number { indicator, .. } = &mut input.encoding {
                *indicator &= indicators;
            }
        }
        let (least, range) = table.span;
        let read = |rows: &[usize]| -> Result<(Mat<f64>, Targets)> {
            let samples = table.data.samples(&schema, rows)?;
            let targets = match samples.targets {
                Targets::Values(y) => {
                    Targets::Values(Mat::from_fn(y.nrows(), 1, |i, _| (y[(i, 0)] - least) / range))
                }
                classes => classes,
            };
            Ok((samples.x, targets))
        };
        let (train, test) = (read(&train)?, read(&test)?);
        Ok(Self { schema, train, test })
    }

    /// Fits the training rows. `None` if the numbers leave no answer, as where all weights vanish.
    pub(crate) fn fit(&self, settings: &Settings, stop: &Stop) -> Result<Option<Model>> {
        let (x, targets) = (self.train.0.as_ref(), &self.train.1);
        let training = Training { x, targets, weights: None, schema: self.schema.clone() };
        match settings.clone().fit(training, &mut stop.observer()) {
            Ok(model) => Ok(Some(model)),
            Err(error) if error.category() == Category::Numeric => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fits the training rows; scores of training and test rows, and the seconds that the fit took.
    pub(crate) fn score(&self, settings: &Settings, stop: &Stop) -> Result<Values> {
        let begun = Instant::now();
        let model = self.fit(settings, stop)?;
        let seconds = begun.elapsed().as_secs_f64();
        let mut values = Values::default();
        let of = |(x, targets): &(Mat<f64>, Targets)| match &model {
            Some(model) => score(model, x, targets).map(Some),
            None => Ok(None),
        };
        values.set("test", of(&self.test)?);
        values.set("train", of(&self.train)?);
        values.set("seconds", Some(seconds));
        Ok(values)
    }
}

/// RMSE, or accuracy in percent.
pub(crate) fn score(model: &Model, x: &Mat<f64>, targets: &Targets) -> Result<f64> {
    let predictions = model.predict(x)?;
    Ok(match targets {
        Targets::Values(y) => rmse(predictions.values(), y),
        Targets::Classes(given) => accuracy(&predictions.classes(), given),
    })
}

/// The root of the mean squared difference.
pub(crate) fn rmse(found: &Mat<f64>, truth: &Mat<f64>) -> f64 {
    (found - truth).norm_l2() / (truth.nrows() as f64).sqrt()
}

/// The share of equal classes in percent.
pub(crate) fn accuracy(found: &[u32], truth: &[u32]) -> f64 {
    let right = found.iter().zip(truth).filter(|(found, truth)| found == truth).count();
    100.0 * right as f64 / truth.len() as f64
}
