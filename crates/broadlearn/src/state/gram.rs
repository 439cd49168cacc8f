//! R += U' diag(w) U, lower triangle only: the product that learning spends its time in.
//!
//! The design is that of BLIS ([`panels`]): blocks of rows of U are copied into panels of a few columns, and tiles of
//! R, as large as the registers, are products of panels. What a tile is depends on the processor:
//! 24 x 8 elements with AVX-512, 12 x 4 with AVX2.
//!
//! * Memory: U is neither changed nor copied as a whole. The panels of a block take up to
//!   512 L numbers, twice that with weights (42 MB for L = 5100).
//! * Reproducibility: an element of R is a sum of fused multiply-adds over each block of rows, in
//!   order, whatever its tile. The blocks depend on the number of rows alone. So the bits depend
//!   neither on the number of threads nor on which of the two instruction sets there is.
//! * Speed: about three quarters of the peak of the multiply-add units and more for L >= 600, on one
//!   thread and on two, where a general product gets 60 to 70 %.
//!
//! Without AVX2 and FMA, or for matrices of which neither columns nor rows are contiguous, faer does the work.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod coarse;
#[cfg(target_arch = "x86_64")]
mod panels;

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::prelude::ReborrowMut;
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// R += factor U' diag(weights) U, with weights 1 if none are given. The part of R above the diagonal
/// is neither read nor written.
///
/// # Panics
/// If the shapes do not match.
pub(crate) fn add(
    mut r: MatMut<'_, f64>,
    u: MatRef<'_, f64>,
    weights: Option<&[f64]>,
    factor: f64,
    par: Par,
) {
    let (rows, nodes) = u.shape();
    assert!(r.shape() == (nodes, nodes) && weights.is_none_or(|w| w.len() == rows));
    if rows == 0 || nodes == 0 {
        return;
    }
    let weights: Option<Vec<f64>> = match weights {
        Some(weights) => Some(weights.iter().map(|weight| factor * weight).collect()),
        None => (factor != 1.0).then(|| vec![factor; rows]),
    };
    if !add_by_tiles(r.rb_mut(), u, weights.as_deref(), par) {
        add_portable(r, u, weights.as_deref(), par);
    }
}

/// Does nothing and returns false if the processor has no kernels for these matrices.
#[cfg(target_arch = "x86_64")]
fn add_by_tiles(
    mut r: MatMut<'_, f64>,
    u: MatRef<'_, f64>,
    weights: Option<&[f64]>,
    par: Par,
) -> bool {
    panels::add::<avx512::Tiles, 8>(r.rb_mut(), u, weights, par)
        || panels::add::<avx2::Tiles, 4>(r, u, weights, par)
}

/// As [`add`], sooner where the processor can: with U rounded, if that adds no more than `most_noise` to the diagonal for every
/// row. No weight may be negative, and columns must be contiguous.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
pub(crate) fn add_roughly(
    mut r: MatMut<'_, f64>,
    u: MatRef<'_, f64>,
    weights: Option<&[f64]>,
    most_noise: f64,
    par: Par,
) {
    #[cfg(target_arch = "x86_64")]
    if coarse::add(r.rb_mut(), u, weights, most_noise, par) {
        return;
    }
    add(r.rb_mut(), u, weights, 1.0, par);
}

#[cfg(not(target_arch = "x86_64"))]
fn add_by_tiles(_: MatMut<'_, f64>, _: MatRef<'_, f64>, _: Option<&[f64]>, _: Par) -> bool {
    false
}

fn add_portable(r: MatMut<'_, f64>, u: MatRef<'_, f64>, weights: Option<&[f64]>, par: Par) {
    let weighted =
        weights.map(|w| Mat::from_fn(u.nrows(), u.ncols(), |row, node| w[row] * u[(row, node)]));
    triangular::matmul(
        r,
        BlockStructure::TriangularLower,
        Accum::Add,
        u.transpose(),
        BlockStructure::Rectangular,
        weighted.as_ref().map_or(u, Mat::as_ref),
        BlockStructure::Rectangular,
        1.0,
        par,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in -0.5 .. 0.5 without pattern.
    fn noise(rows: usize, columns: usize) -> Mat<f64> {
        let mut state = (7919 * rows + columns) as u64;
        Mat::from_fn(rows, columns, |_, _| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
    }

    fn weights_of(n: usize) -> Vec<f64> {
        (0..n).map(|row| (row % 4) as f64 * 0.7).collect()
    }

    const PARS: [fn() -> Par; 2] = [|| Par::Seq, || Par::rayon(2)];

    /// The result of `add` on a random R, after a check against the definition.
    fn checked(u: MatRef<'_, f64>, weights: Option<&[f64]>, factor: f64) -> Mat<f64> {
        let before = noise(u.ncols(), u.ncols());
        let [one, two] = PARS.map(|par| {
            let mut r = before.clone();
            add(r.as_mut(), u, weights, factor, par());
            r
        });
        for (j, i) in (0..u.ncols()).flat_map(|j| (0..u.ncols()).map(move |i| (j, i))) {
            assert_eq!(one[(i, j)].to_bits(), two[(i, j)].to_bits(), "threads, {i} {j}");
            if i < j {
                assert_eq!(one[(i, j)].to_bits(), before[(i, j)].to_bits(), "upper, {i} {j}");
            } else {
                let weight = |row: usize| factor * weights.map_or(1.0, |weights| weights[row]);
                let terms = (0..u.nrows()).map(|row| weight(row) * u[(row, i)] * u[(row, j)]);
                let expected = before[(i, j)] + terms.sum::<f64>();
                let tolerance = 1e-15 * (10.0 + u.nrows() as f64);
                let error = (one[(i, j)] - expected).abs();
                assert!(error < tolerance, "{:?}, {i} {j}: {error:e}", u.shape());
            }
        }
        one
    }

    #[test]
    fn equals_the_definition_for_all_shapes() {
        for nodes in (0..=30).chain([35, 36, 37, 48, 95, 145, 157, 301]) {
            for n in [0, 1, 2, 3, 5, 64, 257, 513] {
                let (u, weights) = (noise(n, nodes), weights_of(n));
                checked(u.as_ref(), None, 1.0);
                checked(u.as_ref(), Some(&weights), 1.0);
                if nodes <= 30 {
                    checked(u.as_ref(), None, -1.0);
                    checked(u.as_ref(), Some(&weights), -0.5);
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_instruction_sets_give_the_same_bits() {
        for (n, nodes) in [(1, 1), (5, 9), (300, 50), (700, 157)] {
            let (u, weights) = (noise(n, nodes), weights_of(n));
            let (mut wide, mut narrow) = (noise(nodes, nodes), noise(nodes, nodes));
            let weights = Some(&weights[..]);
            let both =
                panels::add::<avx512::Tiles, 8>(wide.as_mut(), u.as_ref(), weights, Par::Seq)
                    && panels::add::<avx2::Tiles, 4>(
                        narrow.as_mut(),
                        u.as_ref(),
                        weights,
                        Par::Seq,
                    );
            assert!(!both || wide == narrow, "{n} x {nodes}");
        }
    }

    #[test]
    fn blocks_that_do_not_fit_together_follow_one_another() {
        // 16 blocks of 512 x 605 numbers, of which one is packed at a time on two threads.
        let (n, nodes) = (16 * 512 - 3, 605);
        let u = noise(n, nodes);
        let [one, two] = PARS.map(|par| {
            let mut r = Mat::zeros(nodes, nodes);
            add(r.as_mut(), u.as_ref(), Some(&weights_of(n)), 1.0, par());
            r
        });
        assert!(one == two);
        let mut expected = Mat::zeros(nodes, nodes);
        add_portable(expected.as_mut(), u.as_ref(), Some(&weights_of(n)), Par::Seq);
        assert!((one - expected).norm_max() < 1e-10);
    }

    #[test]
    fn parts_of_matrices_are_accepted() {
        let all = noise(100, 40);
        let part = all.submatrix(17, 5, 70, 31);
        let weights = weights_of(70);
        let r = checked(part, Some(&weights), 1.0);
        assert!(r == checked(part.to_owned().as_ref(), Some(&weights), 1.0));
        // Rows may be contiguous instead of columns: the bits are the same.
        let turned = all.transpose();
        for weights in [None, Some(&weights_of(40)[..])] {
            let (part, weights) = (turned.subcols(7, 90), weights);
            let copied = part.to_owned();
            assert!(checked(part, weights, -1.0) == checked(copied.as_ref(), weights, -1.0));
        }
        // Where neither are, faer does the work.
        checked(all.as_ref().reverse_rows(), None, 1.0);
        // A part of R: what is around it stays.
        let before = noise(50, 50);
        let mut around = before.clone();
        let into = around.as_mut().submatrix_mut(9, 3, 31, 31);
        add(into, part, Some(&weights), 1.0, Par::Seq);
        for (j, i) in (0..50).flat_map(|j| (0..50).map(move |i| (j, i))) {
            let inside = (9..40).contains(&i) && (3..34).contains(&j) && i - 9 >= j - 3;
            assert!(inside || around[(i, j)].to_bits() == before[(i, j)].to_bits());
        }
    }

    #[test]
    fn the_portable_way_agrees() {
        let (u, weights) = (noise(70, 33), weights_of(70));
        let mut expected = noise(33, 33);
        add_portable(expected.as_mut(), u.as_ref(), Some(&weights), Par::Seq);
        let r = checked(u.as_ref(), Some(&weights), 1.0);
        assert!((r - expected).norm_max() < 1e-13);
    }
}
