//! Orthonormal random weights.

use crate::linalg::Qr;
use faer::{Mat, MatRef};

/// An orthonormal basis: of the columns if the matrix is tall, of the rows if it is wide.
///
/// By Householder QR; the leading columns of a tall result do not depend on the later ones.
pub(super) fn orthonormalised(matrix: MatRef<'_, f64>) -> Mat<f64> {
    if matrix.nrows() >= matrix.ncols() {
        Qr::new(matrix.to_owned()).thin_q()
    } else {
        Qr::new(matrix.transpose().to_owned()).thin_q().transpose().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    #[test]
    fn the_smaller_side_is_orthonormal() {
        for (rows, columns) in [(1, 1), (7, 3), (3, 7), (40, 40), (101, 300), (300, 101)] {
            let mut stream = Stream::new(1, Purpose::Enhancement, 0);
            let matrix = Mat::from_fn(rows, columns, |_, _| stream.symmetric());
            let q = orthonormalised(matrix.as_ref());
            assert_eq!((q.nrows(), q.ncols()), (rows, columns));
            let product = if rows >= columns { q.transpose() * &q } else { &q * q.transpose() };
            let identity = Mat::<f64>::identity(product.nrows(), product.ncols());
            assert!(
                (product - identity).norm_max() < 8.0 * f64::EPSILON * rows.max(columns) as f64
            );
        }
    }
}
