//! The traits of `linfa`, whose arrays are those of `ndarray` 0.16.

use crate::data::{Kind, Schema, TargetSchema, Targets, Task};
use crate::model::Training;
use crate::{Error, Matrix, Model, Predictions, Result, Settings, unobserved};
use faer::{Mat, MatRef};
use linfa::dataset::{AsTargets, DatasetBase, TargetDim};
use linfa::traits::{Fit, PredictInplace};
use ndarray16::{Array, Array1, Array2, ArrayBase, ArrayView, Axis, Data, Ix1, Ix2};
use std::collections::BTreeSet;

/// Fits the data sets of linfa, with their weights: targets that are `f64` (of one or two dimensions)
/// are numbers, targets that are `usize` are classes, of any numbers.
///
/// `Settings` and `Model` have methods of the same names, so that a call has to name the trait.
///
/// ```
/// use broadlearn::Settings;
/// use linfa::prelude::*;
/// use ndarray16::{Array1, Array2}; // the crate `ndarray` in version 0.16
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 100.0);
/// let y = x.column(0).mapv(f64::sin);
/// let data = Dataset::new(x, y);
/// let model = Fit::fit(&Settings::new(), &data)?;
/// let values: Array1<f64> = Predict::predict(&model, &data);
/// assert!(values.r2(&data)? > 0.9999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<D: Data<Elem = f64>, T: AsTargets<Elem: Target<T::Ix>>> Fit<ArrayBase<D, Ix2>, T, Error>
    for Settings
{
    type Object = Model;

    fn fit(&self, dataset: &DatasetBase<ArrayBase<D, Ix2>, T>) -> Result<Model> {
        let (targets, target) = T::Elem::targets(dataset.targets.as_targets())?;
        let weights: Vec<f64> = dataset.weights.iter().copied().map(f64::from).collect();
        let x = matrix(&dataset.records);
        let training = Training {
            x: x.as_ref(),
            targets: &targets,
            weights: (!weights.is_empty()).then_some(&weights),
            schema: Schema::numeric(x.as_ref().ncols(), target),
        };
        self.clone().fit(training, &mut unobserved)
    }
}

/// Predicts.
///
/// # Panics
/// If the inputs or the type of the targets are not those of the model: linfa has no errors here.
impl<D: Data<Elem = f64>, E: Target<I>, I: TargetDim> PredictInplace<ArrayBase<D, Ix2>, Array<E, I>>
    for Model
{
    fn predict_inplace<'a>(&'a self, x: &'a ArrayBase<D, Ix2>, y: &mut Array<E, I>) {
        match self.predict(matrix(x).as_ref()).map(|found| E::predicted(self, &found)) {
            Ok(Some(found)) => y.assign(&found),
            Ok(None) => {
                panic!("the model's targets are of another type: {:?}", self.schema().target)
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn default_target(&self, x: &ArrayBase<D, Ix2>) -> Array<E, I> {
        Array::default(E::shape(x.nrows(), self.schema().target.outputs()))
    }
}

impl From<linfa::Error> for Error {
    fn from(error: linfa::Error) -> Self {
        Self::data(error.to_string()).caused_by(error)
    }
}

/// What the targets of a data set may be, in an array of dimension `I`.
pub trait Target<I>: Clone + Default {
    /// The library's form of them.
    fn targets(values: ArrayView<'_, Self, I>) -> Result<(Targets, TargetSchema)>;
    /// Predictions in this form, unless the model's targets are of another one.
    fn predicted(model: &Model, found: &Predictions) -> Option<Array<Self, I>>;
    /// The shape for a number of rows and outputs.
    fn shape(rows: usize, outputs: usize) -> I;
}

impl Target<Ix2> for f64 {
    fn targets(values: ArrayView<'_, Self, Ix2>) -> Result<(Targets, TargetSchema)> {
        let names = (1..=values.ncols()).map(|j| format!("y{j}")).collect();
        let values = matrix(&values).as_ref().to_owned();
        Ok((Targets::Values(values), TargetSchema::Regression { names }))
    }

    fn predicted(model: &Model, found: &Predictions) -> Option<Array2<Self>> {
        let (y, is_numbers) = (found.values(), model.task() == Task::Regression);
        is_numbers.then(|| Array2::from_shape_fn((y.nrows(), y.ncols()), |(i, j)| y[(i, j)]))
    }

    fn shape(rows: usize, outputs: usize) -> Ix2 {
        Ix2(rows, outputs)
    }
}

impl Target<Ix1> for f64 {
    fn targets(values: ArrayView<'_, Self, Ix1>) -> Result<(Targets, TargetSchema)> {
        Self::targets(values.insert_axis(Axis(1)))
    }

    fn predicted(model: &Model, found: &Predictions) -> Option<Array1<Self>> {
        let columns: Array2<Self> = Self::predicted(model, found)?;
        (columns.ncols() == 1).then(|| columns.column(0).to_owned())
    }

    fn shape(rows: usize, _: usize) -> Ix1 {
        Ix1(rows)
    }
}

impl Target<Ix1> for usize {
    fn targets(values: ArrayView<'_, Self, Ix1>) -> Result<(Targets, TargetSchema)> {
        let distinct: BTreeSet<Self> = values.iter().copied().collect();
        let distinct: Vec<Self> = distinct.into_iter().collect();
        if !(2..=65_536).contains(&distinct.len()) {
            return Err(Error::data(format!("{} classes", distinct.len()))
                .expected("at least two and at most 65536"));
        }
        let code = |value| distinct.partition_point(|class| class < value) as u32;
        let targets = Targets::Classes(values.iter().map(code).collect());
        let classes = distinct.iter().map(Self::to_string).collect();
        let schema =
            TargetSchema::Classification { name: "class".into(), kind: Kind::Number, classes };
        Ok((targets, schema))
    }

    fn predicted(model: &Model, found: &Predictions) -> Option<Array1<Self>> {
        let TargetSchema::Classification { classes, .. } = &model.schema().target else {
            return None;
        };
        found.classes().iter().map(|code| classes[*code as usize].parse().ok()).collect()
    }

    fn shape(rows: usize, _: usize) -> Ix1 {
        Ix1(rows)
    }
}

fn matrix<D: Data<Elem = f64>>(x: &ArrayBase<D, Ix2>) -> Matrix<'_> {
    match x.as_slice() {
        Some(slice) => Matrix::View(MatRef::from_row_major_slice(slice, x.nrows(), x.ncols())),
        None => Matrix::Owned(Mat::from_fn(x.nrows(), x.ncols(), |i, j| x[(i, j)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linfa::prelude::*;

    fn inputs() -> Array2<f64> {
        Array2::from_shape_fn((120, 2), |(i, j)| ((i * (2 * j + 3)) % 31) as f64 / 31.0)
    }

    fn settings() -> Settings {
        Settings::new().squared().ridge(1e-6).enhancement_nodes(40)
    }

    #[test]
    fn linfa_fits_what_the_library_fits_of_the_same_matrices() -> Result<()> {
        let x = inputs();
        let y = Array2::from_shape_fn((120, 2), |(i, j)| x[(i, 0)] - x[(i, j)].powi(2));
        let expected = settings().fit_regression(matrix(&x).as_ref(), matrix(&y).as_ref())?;
        let model = Fit::fit(&settings(), &Dataset::new(x.clone(), y))?;
        assert_eq!(model.weights(), expected.weights());
        let values: Array2<f64> = Predict::predict(&model, &x);
        assert_eq!(matrix(&values).as_ref(), *expected.predict(matrix(&x).as_ref())?.values());
        Ok(())
    }

    #[test]
    fn classes_keep_their_numbers_and_weight_0_is_no_row() -> Result<()> {
        let x = inputs();
        let mut labels = x.column(0).mapv(|x| if x < 0.5 { 3_usize } else { 8 });
        let weights = Array1::from_shape_fn(120, |i| if i < 5 { 0.0 } else { 1.0 });
        let fit = |labels: &Array1<usize>| {
            let data = Dataset::new(x.clone(), labels.clone()).with_weights(weights.clone());
            Fit::fit(&settings(), &data)
        };
        let model = fit(&labels)?;
        let found: Array1<usize> = Predict::predict(&model, &x);
        assert!(found.iter().zip(&labels).filter(|(a, b)| a == b).count() > 110);
        labels[4] = 11 - labels[4];
        assert_eq!(fit(&labels)?.weights(), model.weights());
        Ok(())
    }

    #[test]
    fn linfa_cross_validates() -> Result<()> {
        let x = inputs();
        let y = x.column(0).mapv(|x| 2.0 * x);
        let candidates = [settings(), settings().ridge(1e3)];
        let errors = Dataset::new(x, y)
            .cross_validate_single(4, &candidates, |found, y| found.mean_squared_error(y))?;
        assert!(errors[0] < 1e-6 && errors[1] > 1e-2, "{errors}");
        Ok(())
    }
}
