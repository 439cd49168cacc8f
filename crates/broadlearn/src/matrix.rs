//! Matrices from outside: `faer` and `ndarray`, borrowed where the layout allows.

use faer::{Mat, MatRef};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

/// A matrix of numbers, one row per sample: a view where possible, a copy where not.
pub enum Matrix<'a> {
    /// Someone else's memory.
    View(MatRef<'a, f64>),
    /// A copy.
    Owned(Mat<f64>),
}

impl Matrix<'_> {
    /// The matrix.
    pub fn as_ref(&self) -> MatRef<'_, f64> {
        match self {
            Self::View(view) => *view,
            Self::Owned(matrix) => matrix.as_ref(),
        }
    }
}

/// What can be taken for a matrix of numbers.
///
/// ```
/// use broadlearn::IntoMatrix;
/// let array = ndarray::array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
/// let matrix = array.view().into_matrix();
/// assert_eq!(matrix.as_ref()[(2, 0)], 5.0);
/// let transposed = array.t().into_matrix();
/// assert_eq!(transposed.as_ref()[(0, 2)], 5.0);
/// let target = vec![1.0, 2.0, 3.0]; // one number per sample is one column
/// assert_eq!((&target).into_matrix().as_ref().shape(), (3, 1));
/// ```
pub trait IntoMatrix<'a> {
    /// The matrix, without a copy if the memory is laid out by rows or by columns.
    fn into_matrix(self) -> Matrix<'a>;
}

impl<'a> IntoMatrix<'a> for MatRef<'a, f64> {
    fn into_matrix(self) -> Matrix<'a> {
        Matrix::View(self)
    }
}

impl<'a> IntoMatrix<'a> for &'a Mat<f64> {
    fn into_matrix(self) -> Matrix<'a> {
        Matrix::View(self.as_ref())
    }
}

impl<'a> IntoMatrix<'a> for ArrayView2<'a, f64> {
    fn into_matrix(self) -> Matrix<'a> {
        let (rows, columns) = self.dim();
        if let Some(slice) = self.to_slice() {
            return Matrix::View(MatRef::from_row_major_slice(slice, rows, columns));
        }
        if let Some(slice) = self.reversed_axes().to_slice() {
            return Matrix::View(MatRef::from_column_major_slice(slice, rows, columns));
        }
        Matrix::Owned(Mat::from_fn(rows, columns, |i, j| self[(i, j)]))
    }
}

impl<'a> IntoMatrix<'a> for &'a Array2<f64> {
    fn into_matrix(self) -> Matrix<'a> {
        self.view().into_matrix()
    }
}

impl<'a> IntoMatrix<'a> for &'a [f64] {
    fn into_matrix(self) -> Matrix<'a> {
        Matrix::View(MatRef::from_column_major_slice(self, self.len(), 1))
    }
}

impl<'a> IntoMatrix<'a> for &'a Vec<f64> {
    fn into_matrix(self) -> Matrix<'a> {
        self.as_slice().into_matrix()
    }
}

impl<'a> IntoMatrix<'a> for ArrayView1<'a, f64> {
    fn into_matrix(self) -> Matrix<'a> {
        self.insert_axis(Axis(1)).into_matrix()
    }
}

impl<'a> IntoMatrix<'a> for &'a Array1<f64> {
    fn into_matrix(self) -> Matrix<'a> {
        self.view().into_matrix()
    }
}
