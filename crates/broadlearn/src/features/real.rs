//! The two precisions in which a fitted network can be applied.

use super::Activation;
use super::vector_math::single;
use crate::linalg::{slice_of, slice_of_column};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use std::ops::AddAssign;

/// A matrix of another one's numbers: itself, or a copy in another precision.
pub(crate) enum Held<'a, T> {
    Borrowed(MatRef<'a, T>),
    Owned(Mat<T>),
}

impl<T> Held<'_, T> {
    pub(crate) fn as_ref(&self) -> MatRef<'_, T> {
        match self {
            Self::Borrowed(matrix) => *matrix,
            Self::Owned(matrix) => matrix.as_ref(),
        }
    }
}

/// `f64` or `f32`.
pub(crate) trait Real: Copy + Default + Send + Sync + AddAssign + 'static {
    /// Whether numbers of double precision have to be rounded.
    const ROUNDS: bool;

    /// The nearest number of this precision.
    fn nearest(value: f64) -> Self;

    fn to_f64(self) -> f64;

    /// A matrix in this precision.
    fn held(matrix: MatRef<'_, f64>) -> Held<'_, Self>;

    /// The same in memory that is there, with as many columns if numbers have to be rounded.
    fn rounded<'a>(matrix: MatRef<'a, f64>, room: &'a mut Mat<Self>) -> MatRef<'a, Self>;

    /// `into` = `left` `right`, on this thread.
    fn product(into: MatMut<'_, Self>, left: MatRef<'_, Self>, right: MatRef<'_, Self>);

    /// Replaces each value x by activation(x + bias).
    fn activate(values: &mut [Self], bias: Self, activation: Activation);
}

impl Real for f64 {
    const ROUNDS: bool = false;

    fn nearest(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn held(matrix: MatRef<'_, f64>) -> Held<'_, Self> {
        Held::Borrowed(matrix)
    }

    fn rounded<'a>(matrix: MatRef<'a, f64>, _: &'a mut Mat<Self>) -> MatRef<'a, Self> {
        matrix
    }

    fn product(into: MatMut<'_, Self>, left: MatRef<'_, Self>, right: MatRef<'_, Self>) {
        matmul(into, Accum::Replace, left, right, 1.0, Par::Seq);
    }

    fn activate(values: &mut [Self], bias: Self, activation: Activation) {
        add(values, bias);
        activation.apply(values);
    }
}

impl Real for f32 {
    const ROUNDS: bool = true;

    fn nearest(value: f64) -> Self {
        value as Self
    }

    fn to_f64(self) -> f64 {
        self.into()
    }

    fn held(matrix: MatRef<'_, f64>) -> Held<'_, Self> {
        Held::Owned(Mat::from_fn(matrix.nrows(), matrix.ncols(), |i, j| matrix[(i, j)] as Self))
    }

    fn rounded<'a>(matrix: MatRef<'a, f64>, room: &'a mut Mat<Self>) -> MatRef<'a, Self> {
        copy_rounded(matrix, room.as_mut().subrows_mut(0, matrix.nrows()));
        room.as_ref().subrows(0, matrix.nrows())
    }

    fn product(into: MatMut<'_, Self>, left: MatRef<'_, Self>, right: MatRef<'_, Self>) {
        matmul(into, Accum::Replace, left, right, 1.0, Par::Seq);
    }

    fn activate(values: &mut [Self], bias: Self, activation: Activation) {
        match activation {
            Activation::Tanh => single::tanh(values, bias),
            Activation::Sigmoid => single::sigmoid(values, bias),
            Activation::Relu => {
                values.iter_mut().for_each(|value| *value = (*value + bias).max(0.0));
            }
            Activation::Identity => add(values, bias),
        }
    }
}

fn add<T: Real>(values: &mut [T], bias: T) {
    values.iter_mut().for_each(|value| *value += bias);
}

/// Writes the nearest numbers of this precision.
pub(super) fn copy_rounded<T: Real>(matrix: MatRef<'_, f64>, into: MatMut<'_, T>) {
    for (into, column) in into.col_iter_mut().zip(matrix.col_iter()) {
        let (into, column) = (slice_of_column(into), slice_of(column));
        into.iter_mut().zip(column).for_each(|(into, value)| *into = T::nearest(*value));
    }
}
