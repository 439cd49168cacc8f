//! Predictions.

use super::{Model, Precision};
use crate::data::Task;
use crate::error::Result;
use crate::matrix::IntoMatrix;
use faer::Mat;

/// The smallest probability that a class is given: outputs of least squares may lie outside (0, 1).
const LEAST_PROBABILITY: f64 = 1e-3;

/// What a model says about some rows.
#[derive(Clone, Debug)]
pub struct Predictions {
    pub(super) task: Task,
    pub(super) outputs: Mat<f64>,
    pub(super) fell_back: bool,
}

impl Predictions {
    /// Regression: the predicted values, one column per target. Classification: the outputs, one column per class; or the
    /// probabilities, of a model that has a [discriminant](Model::has_discriminant).
    pub fn values(&self) -> &Mat<f64> {
        &self.outputs
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.outputs.nrows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The class with the largest output, for every row; the first one if several are equal.
    pub fn classes(&self) -> Vec<u32> {
        (0..self.len())
            .map(|i| {
                let mut best = 0;
                for j in 1..self.outputs.ncols() {
                    if self.outputs[(i, j)] > self.outputs[(i, best)] {
                        best = j;
                    }
                }
                best as u32
            })
            .collect()
    }

    /// Class probabilities: values clipped to [0.001, 1], divided by their sum.
    pub fn probabilities(&self) -> Mat<f64> {
        let mut probabilities = Mat::from_fn(self.len(), self.outputs.ncols(), |i, j| {
            self.outputs[(i, j)].clamp(LEAST_PROBABILITY, 1.0)
        });
        for row in probabilities.as_mut().row_iter_mut() {
            let sum: f64 = row.as_ref().iter().sum();
            row.iter_mut().for_each(|value| *value /= sum);
        }
        probabilities
    }

    /// Adds the predictions for further rows.
    pub(super) fn append(&mut self, later: &Self) {
        let rows = self.len();
        let outputs = later.outputs.ncols();
        self.outputs.resize_with(rows + later.len(), outputs, |i, j| later.outputs[(i - rows, j)]);
    }

    /// Whether single precision was asked for and not good enough, so that these were computed in double precision.
    pub fn fell_back(&self) -> bool {
        self.fell_back
    }

    /// What is predicted.
    pub fn task(&self) -> Task {
        self.task
    }
}

impl Model {
    /// Whether classes are told by multinomial regression on the outputs. That is so if the kernel was chosen and rows that were left out said
    /// clearly that the largest output is often another class than the right one: classes in a row mask each other.
    pub fn has_discriminant(&self) -> bool {
        self.discriminant.is_some()
    }

    /// Predicts the rows of `x` by the mean of the members' outputs. `x` has the model's inputs as columns
    /// (for a table: after encoding by the schema).
    ///
    /// # Errors
    /// If the number of columns is another one, or values are not finite.
    pub fn predict<'a>(&self, x: impl IntoMatrix<'a>) -> Result<Predictions> {
        self.predictor(Precision::Double).predict(x)
    }

    /// Outputs in the units of the target, or as the discriminant reads them.
    pub(super) fn predictions(&self, mut outputs: Mat<f64>) -> Predictions {
        match (self.task(), &self.discriminant) {
            (Task::Regression, _) => self.target_scaler().undo(outputs.as_mut()),
            (Task::Classification, Some(discriminant)) => discriminant.apply(outputs.as_mut()),
            (Task::Classification, None) => {}
        }
        Predictions { task: self.task(), outputs, fell_back: false }
    }
}
