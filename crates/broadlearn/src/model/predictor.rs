//! Predictions of many rows, in double or in single precision.

use super::ensemble::Mean;
use super::rows::check_finite;
use super::{Member, Model, Predictions};
use crate::data::Task;
use crate::error::{Error, Result};
use crate::features::readout::{Readout, Real};
use crate::linalg::select_rows;
use crate::matrix::IntoMatrix;
use crate::preprocess::Scaling;
use faer::{ColRef, Mat, MatRef};

/// Rows of a batch for which single precision is compared with double precision, at even distances.
const COMPARED: usize = 32;

/// How far outputs may differ between the precisions, in units of the spread of the targets in training (of
/// classes: of an output, which is 0 or 1 in training).
const TOLERANCE: f64 = 1e-3;

/// The numbers with which predictions are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// 64 bits.
    #[default]
    Double,
    /// 32 bits, as far as they are good enough.
    Single,
}

/// Predicts many rows at a time.
///
/// In single precision that takes about half as long. Weights and values of nodes then have 24 bits, and outputs
/// are sums in which large terms may cancel, most of all if the ridge is tiny; so some rows of every batch are
/// also predicted in double precision, and if one of their outputs differs by more than a thousandth of the spread of
/// the targets, the whole batch is predicted in double precision. [`Predictions::fell_back`] tells.
///
/// ```
/// use broadlearn::model::Precision;
/// use broadlearn::{Settings, faer::Mat};
/// let x = Mat::from_fn(600, 2, |i, j| ((i * (j + 3)) % 17) as f64);
/// let y = Mat::from_fn(600, 1, |i, _| x[(i, 0)] - 3.0 * x[(i, 1)]);
/// let model = Settings::new().squared().ridge(1e-3).fit_regression(&x, &y)?;
/// let single = model.predictor(Precision::Single).predict(&x)?;
/// assert!((single.values() - model.predict(&x)?.values()).norm_max() < 0.05);
/// # Ok::<(), broadlearn::Error>(())
/// ```
pub struct Predictor<'a> {
    model: &'a Model,
    /// By member; none in double precision.
    single: Vec<Readout<'a, f32>>,
}

impl Model {
    /// A predictor in this precision. Single precision takes a copy of the weights, half their size.
    pub fn predictor(&self, precision: Precision) -> Predictor<'_> {
        let single = match precision {
            Precision::Double => Vec::new(),
            Precision::Single => self.members.iter().map(Member::readout).collect(),
        };
        Predictor { model: self, single }
    }
}

impl Predictor<'_> {
    /// Predicts the rows of `x`, as [`Model::predict`] does.
    ///
    /// # Errors
    /// If the number of columns is another one, or values are not finite.
    pub fn predict<'b>(&self, x: impl IntoMatrix<'b>) -> Result<Predictions> {
        let x = x.into_matrix();
        let x = x.as_ref();
        self.model.check_inputs(x)?;
        // Few rows are sooner predicted in double precision than compared.
        if self.single.is_empty() || x.nrows() <= COMPARED {
            return Ok(self.model.predictions(self.model.outputs(x)?));
        }
        match self.single_outputs(x) {
            Some(outputs) => Ok(self.model.predictions(outputs)),
            None => {
                let double = self.model.predictions(self.model.outputs(x)?);
                Ok(Predictions { fell_back: true, ..double })
            }
        }
    }

    /// The outputs in single precision, if that is good enough.
    fn single_outputs(&self, x: MatRef<'_, f64>) -> Option<Mat<f64>> {
        // What is finite in double precision may be too large for single precision.
        let is_finite = |outputs: &Mat<f64>| {
            outputs.col_iter().all(|column| column.iter().all(|value| value.is_finite()))
        };
        if self.is_good_enough(x)? { self.outputs(x).filter(is_finite) } else { None }
    }

    /// Whether the precisions agree on some of the rows; `None` if these have values that are not finite.
    fn is_good_enough(&self, x: MatRef<'_, f64>) -> Option<bool> {
        let rows: Vec<usize> = (0..COMPARED).map(|place| place * x.nrows() / COMPARED).collect();
        let some = select_rows(x, &rows);
        let (single, double) = (self.outputs(some.as_ref())?, self.model.mean(some.as_ref())?);
        let units = self.model.units_of_outputs(double.as_ref());
        let agree = |((single, double), unit): ((ColRef<'_, f64>, ColRef<'_, f64>), &f64)| {
            let mut pairs = single.iter().zip(double.iter());
            pairs.all(|(single, double)| (single - double).abs() <= TOLERANCE * unit)
        };
        Some(single.col_iter().zip(double.col_iter()).zip(&units).all(agree))
    }

    fn outputs(&self, x: MatRef<'_, f64>) -> Option<Mat<f64>> {
        let mut mean = Mean::new();
        for (member, readout) in self.model.members.iter().zip(&self.single) {
            mean.add(readout.outputs(&member.scaled(x))?);
        }
        Some(mean.finish())
    }
}

impl Model {
    /// The mean of the members' outputs U W, in units of the scaled target.
    pub(super) fn outputs(&self, x: MatRef<'_, f64>) -> Result<Mat<f64>> {
        match self.mean(x) {
            Some(outputs) => Ok(outputs),
            None => check_finite(x, "inputs").map(|()| Mat::new()),
        }
    }

    /// The same; `None` if values are not finite.
    fn mean(&self, x: MatRef<'_, f64>) -> Option<Mat<f64>> {
        let mut mean = Mean::new();
        for member in &self.members {
            mean.add(member.readout::<f64>().outputs(&member.scaled(x))?);
        }
        Some(mean.finish())
    }

    pub(super) fn check_inputs(&self, x: MatRef<'_, f64>) -> Result<()> {
        if x.ncols() != self.map().inputs() {
            return Err(Error::data(format!("{} input columns", x.ncols()))
                .expected(format!("{}, as in training", self.map().inputs())));
        }
        Ok(())
    }

    /// The spread of every output. Scaling has made it 1, classes are 0 or 1; of targets that were left as they are,
    /// nothing is known but these outputs.
    fn units_of_outputs(&self, outputs: MatRef<'_, f64>) -> Vec<f64> {
        let unscaled = self.settings().target_scaling == Scaling::None;
        let spread = |column: ColRef<'_, f64>| {
            let least = column.iter().copied().fold(f64::INFINITY, f64::min);
            column.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least
        };
        let unit = |column| match self.task() {
            Task::Regression if unscaled => spread(column),
            _ => 1.0,
        };
        outputs.col_iter().map(unit).collect()
    }
}

impl Member {
    fn readout<T: Real>(&self) -> Readout<'_, T> {
        Readout::new(&self.map, self.w.as_ref())
    }
}
