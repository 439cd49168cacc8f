//! The few matrix helpers that every stage uses.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::householder;
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor as qr;
use faer::{Accum, ColMut, ColRef, Conj, Mat, MatMut, MatRef, Par, Spec};
use rayon::prelude::*;

/// Rows that go through map, product and accumulation together: large enough for the blocked
/// products to run at full speed, small enough that a block of 5000 nodes takes 80 MB. Not a power
/// of two, or the values of a row would all fall into the same few cache lines: scaling the rows of
/// MNIST then took six times as long.
pub(crate) const BLOCK_ROWS: usize = 2000;

/// The threads of the current rayon pool. Products of matrices, Cholesky factors and solves of faer
/// give the same bits for every number of threads (tested in `tests/all/identities.rs`); products
/// with a vector, QR and singular values do not, and are left to one thread.
pub(crate) fn parallelism() -> Par {
    match rayon::current_num_threads() {
        1 => Par::Seq,
        threads => Par::rayon(threads),
    }
}

/// The threads that work of this many flops is worth: below some milliseconds waking them costs more
/// than they bring, most of all on a busy machine.
pub(crate) fn worth(par: Par, flops: f64) -> Par {
    if flops < 2e7 { Par::Seq } else { par }
}

/// What `work` makes of the items, in their order: by all threads, if that many flops are worth them. Items are handed out one
/// by one, because threads are not equally fast. To hand work over to the threads of a pool takes some ten microseconds
/// even if there is but one.
pub(crate) fn on_threads<T: Send, R: Send>(
    items: Vec<T>,
    flops: f64,
    work: impl Fn(T) -> R + Sync + Send,
) -> Vec<R> {
    match worth(parallelism(), flops) {
        Par::Seq => items.into_iter().map(work).collect(),
        Par::Rayon(_) => items.into_par_iter().with_max_len(1).map(work).collect(),
    }
}

/// `into` = or += `left` `right`. faer splits the sums of a product with a vector among the threads,
/// so that the rounding would depend on their number: such a product is left to one thread.
pub(crate) fn product(
    into: MatMut<'_, f64>,
    accumulate: Accum,
    left: MatRef<'_, f64>,
    right: MatRef<'_, f64>,
    par: Par,
) {
    let par = if into.nrows() == 1 || into.ncols() == 1 { Par::Seq } else { par };
    let flops = 2.0 * left.nrows() as f64 * left.ncols() as f64 * right.ncols() as f64;
    let par = worth(par, flops);
    matmul(into, accumulate, left, right, 1.0, par);
}

/// A = Q R by Householder reflections, on one thread.
pub(crate) struct Qr {
    packed: Mat<f64>,
    coefficients: Mat<f64>,
}

impl Qr {
    pub(crate) fn new(matrix: Mat<f64>) -> Self {
        let (m, n) = (matrix.nrows(), matrix.ncols());
        let mut packed = matrix;
        let block = qr::recommended_block_size::<f64>(m, n);
        let mut coefficients = Mat::zeros(block, m.min(n));
        let (par, params) = (Par::Seq, Spec::default());
        let need = qr::qr_in_place_scratch::<f64>(m, n, block, par, params);
        let mut memory = MemBuffer::new(need);
        let stack = MemStack::new(&mut memory);
        qr::qr_in_place(packed.as_mut(), coefficients.as_mut(), par, stack, params);
        Self { packed, coefficients }
    }

    fn basis(&self) -> MatRef<'_, f64> {
        self.packed.subcols(0, self.coefficients.ncols())
    }

    /// The first min(m, n) columns of Q.
    pub(crate) fn thin_q(&self) -> Mat<f64> {
        let (m, size) = (self.packed.nrows(), self.coefficients.ncols());
        let mut q = Mat::identity(m, size);
        let need = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(
            m,
            self.coefficients.nrows(),
            size,
        );
        householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
            self.basis(),
            self.coefficients.as_ref(),
            Conj::No,
            q.as_mut(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(need)),
        );
        q
    }

    /// The first min(m, n) rows of R.
    pub(crate) fn thin_r(&self) -> Mat<f64> {
        let (size, n) = (self.coefficients.ncols(), self.packed.ncols());
        Mat::from_fn(size, n, |i, j| if i <= j { self.packed[(i, j)] } else { 0.0 })
    }

    /// Overwrites `right` with Q' `right`.
    pub(crate) fn apply_transposed(&self, right: MatMut<'_, f64>) {
        let need =
            householder::apply_block_householder_sequence_transpose_on_the_left_in_place_scratch::<
                f64,
            >(self.packed.nrows(), self.coefficients.nrows(), right.ncols());
        householder::apply_block_householder_sequence_transpose_on_the_left_in_place_with_conj(
            self.basis(),
            self.coefficients.as_ref(),
            Conj::No,
            right,
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(need)),
        );
    }
}

/// Singular values up to this count as 0: max(m, n) eps times the largest, which is NumPy's rule, but
/// at least 1000 eps. Of 7797 rank-deficient 9 x 19 matrices faer's decomposition left 24 with
/// values of up to 101 eps where 0 was right.
pub(crate) fn rank_cut(rows: usize, columns: usize, largest: f64) -> f64 {
    rows.max(columns).max(1000) as f64 * f64::EPSILON * largest
}

/// The nearest whole number to one between -2^31 and 2^31. Adding 1.5 * 2^52 leaves it in the lowest bits,
/// for which, unlike for a call of `round`, every processor has an instruction.
#[inline(always)]
pub(crate) fn rounded(value: f64) -> i32 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    (value + SHIFT).to_bits() as i32
}

/// A column of a column-major matrix as a slice.
///
/// # Panics
/// If the column is not contiguous: matrices made inside the crate always are.
pub(crate) fn slice_of_column<T>(column: ColMut<'_, T>) -> &mut [T] {
    match column.try_as_col_major_mut() {
        Some(column) => column.as_slice_mut(),
        None => unreachable!("matrices of this crate are column-major"),
    }
}

/// As [`slice_of_column`], to be read only.
pub(crate) fn slice_of<T>(column: ColRef<'_, T>) -> &[T] {
    match column.try_as_col_major() {
        Some(column) => column.as_slice(),
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

/// A matrix as blocks of so many rows.
pub(crate) fn split_rows(matrix: MatMut<'_, f64>, height: usize) -> Vec<MatMut<'_, f64>> {
    let mut blocks = Vec::new();
    let mut rest = matrix;
    while rest.nrows() > height {
        let (block, later) = rest.split_at_row_mut(height);
        blocks.push(block);
        rest = later;
    }
    blocks.push(rest);
    blocks
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

/// The sum of the products of the elements of two slices, four at a time.
pub(crate) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (left, right) = (left.chunks_exact(4), right.chunks_exact(4));
    let rest = left.remainder().iter().zip(right.remainder());
    let last: f64 = rest.map(|(left, right)| left * right).sum();
    for (left, right) in left.zip(right) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + last
}

/// The sum of the products of all elements.
pub(crate) fn inner(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> f64 {
    left.col_iter().zip(right.col_iter()).map(|(left, right)| left.transpose() * right).sum()
}

/// The matrix of the chosen rows, in that order.
pub(crate) fn select_rows(matrix: MatRef<'_, f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), matrix.ncols(), |i, j| matrix[(rows[i], j)])
}

/// The least and the largest of some finite values, infinities if there are none. Eight at a time: one after the other, each
/// would wait for the one before.
pub(crate) fn extremes(values: &[f64]) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut least, mut most) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    for chunk in values.chunks(LANES) {
        for ((least, most), &value) in least.iter_mut().zip(&mut most).zip(chunk) {
            *least = if value < *least { value } else { *least };
            *most = if value > *most { value } else { *most };
        }
    }
    (
        least.into_iter().fold(f64::INFINITY, f64::min),
        most.into_iter().fold(f64::NEG_INFINITY, f64::max),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_found_wherever_they_stand() {
        assert_eq!(extremes(&[]), (f64::INFINITY, f64::NEG_INFINITY));
        for n in 1..40 {
            for place in 0..n {
                let mut values = vec![0.5; n];
                values[place] = 2.0;
                values[(place + 1) % n] = -3.0;
                let most = if n == 1 { -3.0 } else { 2.0 };
                assert_eq!(extremes(&values), (-3.0, most), "{place} of {n}");
            }
        }
    }
}
