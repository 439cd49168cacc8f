//! W = U⁺ Y by an orthogonal decomposition, as in the original BLS.
//!
//! Rows are folded block by block into a triangle, [T; U_block] = Q [T'; 0], which keeps U⁺ out of
//! memory and, unlike the normal equations, does not square the condition number. Singular values of
//! T up to `max(N, L) eps s_max` count as zero: NumPy's rule for the rank.

use crate::error::{Error, Result};
use crate::linalg::scale_rows;
use crate::state::StateRows;
use faer::{Mat, MatRef};

/// W of least norm, and the rank of U.
pub(crate) fn solve(
    state: &StateRows<'_>,
    y: MatRef<'_, f64>,
    weights: Option<&[f64]>,
) -> Result<(Mat<f64>, usize)> {
    let (nodes, outputs) = (state.width(), y.ncols());
    let mut triangle = Mat::<f64>::zeros(0, nodes);
    let mut right = Mat::<f64>::zeros(0, outputs);
    state.visit(|rows, u| {
        let kept = triangle.nrows();
        let mut stacked = Mat::zeros(kept + rows.len(), nodes);
        stacked.as_mut().subrows_mut(0, kept).copy_from(&triangle);
        stacked.as_mut().subrows_mut(kept, rows.len()).copy_from(u);
        let mut stacked_right = Mat::zeros(kept + rows.len(), outputs);
        stacked_right.as_mut().subrows_mut(0, kept).copy_from(&right);
        let block_right = y.subrows(rows.start, rows.len());
        stacked_right.as_mut().subrows_mut(kept, rows.len()).copy_from(block_right);
        if let Some(weights) = weights {
            let mut root = vec![1.0; kept];
            root.extend(weights[rows].iter().map(|weight| weight.sqrt()));
            scale_rows(stacked.as_mut(), &root);
            scale_rows(stacked_right.as_mut(), &root);
        }
        if stacked.nrows() <= nodes {
            (triangle, right) = (stacked, stacked_right);
            return Ok(());
        }
        let qr = stacked.qr();
        triangle = Mat::from_fn(nodes, nodes, |i, j| if i <= j { qr.R()[(i, j)] } else { 0.0 });
        right = (qr.compute_thin_Q().transpose() * &stacked_right).subrows(0, nodes).to_owned();
        Ok(())
    })?;
    least_norm(&triangle, &right, state.len())
}

fn least_norm(triangle: &Mat<f64>, right: &Mat<f64>, rows: usize) -> Result<(Mat<f64>, usize)> {
    let svd = triangle.thin_svd().map_err(|_| {
        Error::numeric("the singular value decomposition did not converge")
            .advice("use a ridge instead of the pseudo-inverse (--ridge)")
    })?;
    let singular = svd.S().column_vector();
    let largest = singular.iter().copied().fold(0.0, f64::max);
    let cut = rows.max(triangle.ncols()) as f64 * f64::EPSILON * largest;
    let rank = singular.iter().filter(|&&value| value > cut).count();
    let mut rotated = svd.U().subcols(0, rank).transpose() * right;
    for (i, row) in rotated.as_mut().row_iter_mut().enumerate() {
        row.iter_mut().for_each(|value| *value /= singular[i]);
    }
    Ok((svd.V().subcols(0, rank) * &rotated, rank))
}
