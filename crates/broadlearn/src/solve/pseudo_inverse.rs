//! W = U⁺ Y by an orthogonal decomposition, as in the original BLS.
//!
//! Rows are folded block by block into a triangle, [T; U_block] = Q [T'; 0], which keeps U⁺ out of
//! memory and, unlike the normal equations, does not square the condition number. Singular values of
//! T up to `max(N, L, 1000) eps s_max` count as zero: NumPy's rule for the rank, but for small
//! matrices, whose singular values of 0 come out of faer as up to a hundred eps s_max.

use crate::error::{Error, Result};
use crate::linalg::{Qr, product, rank_cut, scale_rows};
use crate::state::StateRows;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::{Accum, Mat, MatRef, Par, Spec};

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
        let qr = Qr::new(stacked);
        triangle = qr.thin_r();
        qr.apply_transposed(stacked_right.as_mut());
        right = stacked_right.subrows(0, nodes).to_owned();
        Ok(())
    })?;
    least_norm(&triangle, &right, state.len())
}

fn least_norm(triangle: &Mat<f64>, right: &Mat<f64>, rows: usize) -> Result<(Mat<f64>, usize)> {
    // On one thread: with several, the rounding would depend on their number.
    let (m, n, par, params) = (triangle.nrows(), triangle.ncols(), Par::Seq, Spec::default());
    let size = m.min(n);
    let (mut left, mut singular, mut row_space) =
        (Mat::zeros(m, size), Diag::<f64>::zeros(size), Mat::zeros(n, size));
    let thin = ComputeSvdVectors::Thin;
    let need = svd::svd_scratch::<f64>(m, n, thin, thin, par, params);
    svd::svd(
        triangle.as_ref(),
        singular.as_mut(),
        Some(left.as_mut()),
        Some(row_space.as_mut()),
        par,
        MemStack::new(&mut MemBuffer::new(need)),
        params,
    )
    .map_err(|_| {
        Error::numeric("the singular value decomposition did not converge")
            .advice("use a ridge instead of the pseudo-inverse (--ridge)")
    })?;
    let singular = singular.column_vector();
    let largest = singular.iter().copied().fold(0.0, f64::max);
    let cut = rank_cut(rows, n, largest);
    let rank = singular.iter().filter(|&&value| value > cut).count();
    let mut rotated = Mat::zeros(rank, right.ncols());
    let left = left.subcols(0, rank);
    product(rotated.as_mut(), Accum::Replace, left.transpose(), right.as_ref(), par);
    for (i, row) in rotated.as_mut().row_iter_mut().enumerate() {
        row.iter_mut().for_each(|value| *value /= singular[i]);
    }
    let mut w = Mat::zeros(n, right.ncols());
    product(w.as_mut(), Accum::Replace, row_space.subcols(0, rank), rotated.as_ref(), par);
    Ok((w, rank))
}
