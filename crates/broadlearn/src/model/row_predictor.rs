//! Predicting one row at a time, for services that answer one question after another.

use super::Model;
use crate::data::Task;
use crate::error::{Error, Result};
use crate::linalg::{dot, slice_of};
use faer::MatMut;

/// Predicts single rows in memory of its own: a prediction takes no other, and no threads. Some microseconds
/// for some hundred nodes.
///
/// ```
/// use broadlearn::{Settings, faer::Mat};
/// let x = Mat::from_fn(60, 2, |i, j| ((i * (j + 3)) % 17) as f64);
/// let y = Mat::from_fn(60, 1, |i, _| x[(i, 0)] - 3.0 * x[(i, 1)]);
/// let model = Settings::new().squared().ridge(1e-8).fit_regression(&x, &y)?;
/// let mut predictor = model.row_predictor();
/// let row = [x[(7, 0)], x[(7, 1)]];
/// assert!((predictor.predict(&row)?[0] - model.predict(x.subrows(7, 1))?.values()[(0, 0)]).abs() < 1e-9);
/// assert!((predictor.predict(&row)?[0] - y[(7, 0)]).abs() < 1e-3);
/// # Ok::<(), broadlearn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowPredictor<'a> {
    model: &'a Model,
    inputs: Vec<f64>,
    state: Vec<f64>,
    outputs: Vec<f64>,
    probabilities: Vec<f64>,
}

impl Model {
    /// A predictor of single rows.
    pub fn row_predictor(&self) -> RowPredictor<'_> {
        let widest = self.members.iter().map(|member| member.map.width()).max().unwrap_or(0);
        RowPredictor {
            model: self,
            inputs: vec![0.0; self.map().inputs()],
            state: vec![0.0; widest],
            outputs: vec![0.0; self.weights().ncols()],
            probabilities: vec![0.0; self.weights().ncols()],
        }
    }
}

impl RowPredictor<'_> {
    /// What [`Model::predict`] gives for one row of inputs, to rounding: values by target, or the outputs
    /// (or probabilities) of all classes.
    ///
    /// # Errors
    /// If the number of inputs is another one, or values are not finite.
    pub fn predict(&mut self, x: &[f64]) -> Result<&[f64]> {
        if x.len() != self.inputs.len() {
            return Err(Error::data(format!("{} inputs", x.len()))
                .expected(format!("{}, as in training", self.inputs.len())));
        }
        if let Some(place) = x.iter().position(|value| !value.is_finite()) {
            return Err(Error::data(format!("{}", x[place]))
                .at(format!("input {}", place + 1))
                .expected("a finite number"));
        }
        self.outputs.fill(0.0);
        for member in &self.model.members {
            self.inputs.copy_from_slice(x);
            member.input_scaler.apply_to_row(&mut self.inputs);
            let state = &mut self.state[..member.map.width()];
            member.map.apply_to_row(&self.inputs, state);
            for (output, column) in self.outputs.iter_mut().zip(member.w.col_iter()) {
                *output += dot(slice_of(column), state);
            }
        }
        let count = self.model.members.len() as f64;
        self.outputs.iter_mut().for_each(|output| *output /= count);
        if self.model.task() == Task::Regression {
            let outputs = self.outputs.len();
            let row = MatMut::from_column_major_slice_mut(&mut self.outputs, 1, outputs);
            self.model.target_scaler().undo(row);
        }
        if let Some(discriminant) = &self.model.discriminant {
            discriminant.apply_to_row(&self.outputs, &mut self.probabilities);
            return Ok(&self.probabilities);
        }
        Ok(&self.outputs)
    }
}
