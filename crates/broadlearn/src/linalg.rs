//! The few matrix helpers that every stage uses.

use faer::{ColMut, Mat, MatMut, MatRef, Par};

/// Rows that go through map, product and accumulation together: large enough for the blocked
/// products to run at full speed, small enough that a block of 5000 nodes takes 84 MB.
pub(crate) const BLOCK_ROWS: usize = 2048;

/// The threads of the current rayon pool. Products, factorisations and solves of faer give the same
/// bits for every number of threads (tested in `tests/identities.rs`).
pub(crate) fn parallelism() -> Par {
    match rayon::current_num_threads() {
        1 => Par::Seq,
        threads => Par::rayon(threads),
    }
}

/// A column of a column-major matrix as a slice.
///
/// # Panics
/// If the column is not contiguous: matrices made inside the crate always are.
pub(crate) fn slice_of_column(column: ColMut<'_, f64>) -> &mut [f64] {
    match column.try_as_col_major_mut() {
        Some(column) => column.as_slice_mut(),
        None => unreachable!("matrices of this crate are column-major"),
    }
}

/// Consecutive row ranges of at most [`BLOCK_ROWS`] rows that cover 0 .. n.
pub(crate) fn row_blocks(n: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..n.div_ceil(BLOCK_ROWS)).map(move |block| {
        let start = block * BLOCK_ROWS;
        start..(start + BLOCK_ROWS).min(n)
    })
}

/// Multiplies row i by `factors[i]`.
pub(crate) fn scale_rows(mut matrix: MatMut<'_, f64>, factors: &[f64]) {
    for column in matrix.as_mut().col_iter_mut() {
        for (value, factor) in slice_of_column(column).iter_mut().zip(factors) {
            *value *= factor;
        }
    }
}

/// The sum of the squares of all elements.
pub(crate) fn squared_norm(matrix: MatRef<'_, f64>) -> f64 {
    matrix.squared_norm_l2()
}

/// The matrix of the chosen rows, in that order.
pub(crate) fn select_rows(matrix: MatRef<'_, f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), matrix.ncols(), |i, j| matrix[(rows[i], j)])
}
