//! R += A'A, where A is U in whole numbers of sixteen bits: good enough for a preconditioner, three and a half times as fast.
//!
//! Processors multiply numbers of sixteen bits four times as often as those of double precision, and sum their products up in 32 bits
//! without any error. All that is lost is lost by rounding U, so that A'A has no negative eigenvalue, as it may have where
//! sums are rounded (in single precision, for one). Rounding looks like noise in U, which adds to R what a ridge does:
//! the number of rows times the variance of an error.
//!
//! The unit of a column is as small as the sums allow: products of [`CHUNK`] rows with any other column fit into 32 bits,
//! which, by Cauchy and Schwarz, they do if the squares of either column do. After a chunk the sums go on in double precision.
//!
//! An element of R is a sum over chunks of rows, in order, whatever its tile: the bits depend neither on the number of
//! threads nor on the instruction set.
#![allow(unsafe_code)]

use super::panels::{prefetch, share};
use crate::linalg::{rounded, slice_of, slice_of_column};
use crate::vectors::{Loops, widest};
use faer::prelude::ReborrowMut;
use faer::{MatMut, MatRef, Par};
use std::ops::Range;

mod avx2;
mod vnni;

/// Rows whose products are summed in 32 bits. With 32, values would have half a bit less for sums that are spilt half as often, which comes to
/// the same (MNIST, 5100 nodes).
const CHUNK: usize = 16;
const PAIRS: usize = CHUNK / 2;
/// Rows of a block, at most, and a multiple of [`CHUNK`]: R is read and written once a block.
const DEPTH: usize = 1024;
/// Neighbouring columns in a panel.
const LANES: usize = 16;
/// A tile is the product of so many panels with so many columns.
const PANELS: usize = 3;
const COLUMNS: usize = LANES / 2;
/// At most this many columns of R, whole panels of them, make the work of a thread at a time: they stay in the L2 cache.
const WIDTH: usize = 240;
/// The length of a column in a chunk, at most: the root of 2^31, less what rounding may add to it.
const MOST_LENGTH: f64 = 46_336.0;
const MOST: f64 = i16::MAX as f64;

/// Two rows of a panel: of every column two numbers of 16 bits, that of the first row in the lower half.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Pairs([i32; LANES]);

/// Sums of products, column by column.
type Tile = [[[f64; LANES]; PANELS]; COLUMNS];

/// What an instruction set does.
///
/// # Safety
/// Functions but `detected` may be called on processors only that have been asked by it.
unsafe trait Kernel {
    fn detected() -> bool;
    /// [`multiply`] with these instructions.
    unsafe fn multiply(block: Block<'_>, first: usize, into: &mut [&mut [f64]]);
    /// The products of some panels with the first or second half of another.
    unsafe fn products<const V: usize>(left: [&[Pairs]; V], right: &[Pairs], half: usize) -> Tile;
}

/// R += U' diag(weights) U, where no weight is negative, in double precision for blocks of rows whose rounding would add more
/// than this to the diagonal for every row. The part of R above the diagonal is neither read nor written. Does nothing and returns false
/// where there are no instructions for it.
pub(super) fn add(
    mut r: MatMut<'_, f64>,
    u: MatRef<'_, f64>,
    weights: Option<&[f64]>,
    most_noise: f64,
    par: Par,
) -> bool {
    add_with::<vnni::Tiles>(r.rb_mut(), u, weights, most_noise, par)
        || add_with::<avx2::Tiles>(r, u, weights, most_noise, par)
}

fn add_with<K: Kernel>(
    mut r: MatMut<'_, f64>,
    u: MatRef<'_, f64>,
    weights: Option<&[f64]>,
    most_noise: f64,
    par: Par,
) -> bool {
    if !K::detected() {
        return false;
    }
    let (n, nodes) = u.shape();
    if n == 0 || nodes == 0 {
        return true;
    }
    let roots: Option<Vec<f64>> = weights.map(|w| w.iter().map(|weight| weight.sqrt()).collect());
    let from: Vec<&[f64]> = u.col_iter().map(slice_of).collect();
    let panels = nodes.div_ceil(LANES);
    let blocks = n.div_ceil(DEPTH);
    let depth = n.div_ceil(blocks).next_multiple_of(CHUNK);
    let mut pairs = vec![Pairs([0; LANES]); panels * depth / 2];
    let mut units = vec![0.0; panels * LANES];
    // The columns get shorter, so work handed out in order ends evenly if it is fine enough.
    let width = nodes.div_ceil(8 * par.degree()).next_multiple_of(LANES).min(WIDTH);
    let width = if par.degree() == 1 { WIDTH } else { width };
    for start in (0..n).step_by(depth) {
        let rows = start..n.min(start + depth);
        let panels = pairs.chunks_exact_mut(depth / 2).zip(units.chunks_exact_mut(LANES));
        share(par, panels.zip(from.chunks(LANES)), |((pairs, units), from)| {
            let roots = roots.as_deref().map(|roots| &roots[rows.clone()]);
            widest(Pack { pairs, units, from, rows: rows.clone(), roots });
        });
        let noise = units.iter().map(|unit| unit * unit / 12.0).sum::<f64>() / nodes as f64;
        let may_be_rounded = noise <= most_noise;
        if !may_be_rounded {
            let weights = weights.map(|weights| &weights[rows.clone()]);
            super::add(r.rb_mut(), u.subrows(start, rows.len()), weights, 1.0, par);
            continue;
        }
        let block = Block { pairs: &pairs, units: &units, depth };
        let mut into: Vec<&mut [f64]> = r.rb_mut().col_iter_mut().map(slice_of_column).collect();
        share(par, into.chunks_mut(width).enumerate(), |(chunk, into)| {
            // SAFETY: the instructions were detected at the top of this function.
            unsafe { K::multiply(block, chunk * width / LANES, into) };
        });
    }
    true
}

/// A panel of a block of rows. A chunk is every n-th row of the block, n being the number of chunks, so that neighbours in a column
/// are neighbours in loops over chunks.
struct Pack<'a> {
    pairs: &'a mut [Pairs],
    units: &'a mut [f64],
    /// Columns; zeros stand for missing ones.
    from: &'a [&'a [f64]],
    rows: Range<usize>,
    roots: Option<&'a [f64]>,
}

impl Loops for Pack<'_> {
    #[inline(always)]
    fn run(self) {
        let Self { pairs, units, from, rows, roots } = self;
        let chunks = pairs.len() / PAIRS;
        let mut column = [0.0; DEPTH];
        for (lane, unit) in units.iter_mut().enumerate() {
            // Behind the last row there are zeros.
            match from.get(lane) {
                Some(from) => column[..rows.len()].copy_from_slice(&from[rows.clone()]),
                None => column.fill(0.0),
            }
            for (value, root) in column.iter_mut().zip(roots.unwrap_or_default()) {
                *value *= root;
            }
            let column = &column[..CHUNK * chunks];
            *unit = unit_of(column, chunks);
            let factor = if *unit > 0.0 { 1.0 / *unit } else { 0.0 };
            for (k, two) in column.chunks_exact(2 * chunks).enumerate() {
                let (first, second) = two.split_at(chunks);
                let mut words = [0; DEPTH / CHUNK];
                for ((word, first), second) in words.iter_mut().zip(first).zip(second) {
                    let [first, second] = [first, second].map(|value| rounded(value * factor));
                    *word = (first & 0xffff) | (second << 16);
                }
                let pairs = pairs[k..].iter_mut().step_by(PAIRS);
                pairs.zip(&words).for_each(|(pair, word)| pair.0[lane] = *word);
            }
        }
    }
}

/// The unit of a column, so that neither a number nor a sum over one of the chunks is too large; NaN if there is none.
#[inline(always)]
fn unit_of(column: &[f64], chunks: usize) -> f64 {
    let (mut most, mut squares) = ([0.0_f64; DEPTH / CHUNK], [0.0_f64; DEPTH / CHUNK]);
    for row in column.chunks_exact(chunks) {
        for ((most, squares), value) in most.iter_mut().zip(&mut squares).zip(row) {
            *most = if value.abs() > *most { value.abs() } else { *most };
            *squares += value * value;
        }
    }
    if !squares.iter().sum::<f64>().is_finite() {
        return f64::NAN;
    }
    let largest = |values: &[f64]| values.iter().fold(0.0, |most, value| f64::max(most, *value));
    (largest(&most) / MOST).max(largest(&squares).sqrt() / MOST_LENGTH)
}

/// The panels of a block of rows.
#[derive(Clone, Copy)]
struct Block<'a> {
    pairs: &'a [Pairs],
    units: &'a [f64],
    depth: usize,
}

impl<'a> Block<'a> {
    fn panel(&self, index: usize) -> &'a [Pairs] {
        &self.pairs[index * self.depth / 2..][..self.depth / 2]
    }
}

/// Adds to the columns `into` of R, which begin with the panel `first`, all that is not above the diagonal.
///
/// # Safety
/// The processor has the instructions of `K`.
#[inline(always)]
unsafe fn multiply<K: Kernel>(block: Block<'_>, first: usize, into: &mut [&mut [f64]]) {
    let panels = block.units.len() / LANES;
    for i in (first..panels).step_by(PANELS) {
        // Further columns meet these panels above the diagonal only.
        let columns = into.chunks_mut(COLUMNS).take(2 * (i + PANELS - first));
        for (j, into) in columns.enumerate() {
            let (right, half) = (first + j / 2, j % 2);
            let top = i.max(right);
            let b = block.panel(right);
            let a = |v| block.panel(top + v);
            // Elements of R, which are far away but not needed before their tile is finished.
            for column in &*into {
                for place in (0..PANELS * LANES).step_by(8) {
                    prefetch(&column[LANES * top..], place);
                }
            }
            // SAFETY: the caller vouches for the instructions; all panels of a block have as many rows.
            let (tile, count) = unsafe {
                match panels.min(i + PANELS) - top {
                    3 => (K::products([a(0), a(1), a(2)], b, half), 3),
                    2 => (K::products([a(0), a(1)], b, half), 2),
                    _ => (K::products([a(0)], b, half), 1),
                }
            };
            for (c, (column, sums)) in into.iter_mut().zip(&tile).enumerate() {
                let unit = block.units[LANES * right + COLUMNS * half + c];
                let row = LANES * top;
                let start = if top == right { COLUMNS * half + c } else { 0 };
                let sums = &sums.as_flattened()[..count * LANES];
                let units = &block.units[row..];
                let all = column[row..].iter_mut().zip(sums).zip(units).skip(start);
                all.for_each(|((into, sum), unit_of_row)| *into += unit * unit_of_row * sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::factor::Factor;
    use faer::Mat;

    const ANY_NOISE: f64 = f64::INFINITY;

    /// Columns of many kinds: of any size, constant, with a spike, nearly 0, 0.
    fn columns(rows: usize, nodes: usize) -> Mat<f64> {
        Mat::from_fn(rows, nodes, |i, j| {
            let wave = ((i * 37 + j * 11) as f64 + 0.5 * (i * j) as f64).sin();
            match j % 8 {
                0 => 1.0,
                1 => -1e6,
                2 if i % 97 == 3 => 300.0 * wave,
                3 => 1e-9 * wave,
                4 => 0.0,
                5 => wave.signum(),
                _ => wave,
            }
        })
    }

    fn weights_of(n: usize) -> Vec<f64> {
        (0..n).map(|row| (row % 4) as f64 * 0.7).collect()
    }

    /// R of every instruction set that there is, on one and on two threads.
    fn all(u: &Mat<f64>, weights: Option<&[f64]>, before: &Mat<f64>) -> Vec<Mat<f64>> {
        let mut found = Vec::new();
        for par in [|| Par::Seq, || Par::rayon(2)] {
            for with in [add_with::<vnni::Tiles>, add_with::<avx2::Tiles>] {
                let mut r = before.clone();
                if with(r.as_mut(), u.as_ref(), weights, ANY_NOISE, par()) {
                    found.push(r);
                }
            }
        }
        found
    }

    #[test]
    fn is_off_by_the_rounding_of_the_state_only() {
        for nodes in [1, 2, 7, 8, 9, 15, 16, 17, 33, 47, 48, 49, 66, 131] {
            for n in [0, 1, 2, 15, 16, 17, 100, 1024, 1025, 2500] {
                let u = columns(n, nodes);
                let before = Mat::from_fn(nodes, nodes, |i, j| (i + 2 * j) as f64);
                for weights in [None, Some(weights_of(n))] {
                    let found = all(&u, weights.as_deref(), &before);
                    let Some(first) = found.first() else { return };
                    for other in &found {
                        assert!(other == first, "{n} x {nodes}: all have the same bits");
                    }
                    let weight = |row: usize| weights.as_ref().map_or(1.0, |weights| weights[row]);
                    let most = |j: usize| {
                        let values = (0..n).map(|row| (weight(row).sqrt() * u[(row, j)]).abs());
                        values.fold(0.0, f64::max)
                    };
                    for (j, i) in (0..nodes).flat_map(|j| (0..nodes).map(move |i| (j, i))) {
                        if i < j {
                            assert!(first[(i, j)] == before[(i, j)], "the upper part stays");
                            continue;
                        }
                        let terms = (0..n).map(|row| weight(row) * u[(row, i)] * u[(row, j)]);
                        let expected = before[(i, j)] + terms.sum::<f64>();
                        // Half a unit, which is at most a part of the largest value: a chunk may be as large as that all over.
                        let unit = CHUNK.isqrt() as f64 / MOST_LENGTH;
                        let largest = n as f64 * most(i) * most(j) * (unit + unit * unit);
                        let error = (first[(i, j)] - expected).abs();
                        assert!(error <= largest + 1e-9, "{n} x {nodes}, {i} {j}: {error:e}");
                    }
                }
            }
        }
    }

    /// Half of the columns are sums of others. In single precision the smallest eigenvalue would be anything.
    #[test]
    fn has_no_negative_eigenvalues() {
        let mut u = columns(700, 80);
        for j in 40..80 {
            for i in 0..700 {
                u[(i, j)] = 1e-3 * (u[(i, j - 40)] + u[(i, 79 - j)]);
            }
        }
        for r in all(&u, None, &Mat::zeros(80, 80)) {
            let largest = (0..80).map(|i| r[(i, i)]).fold(0.0, f64::max);
            assert!(Factor::new(r, 1e-13 * largest, Par::Seq).is_ok());
        }
    }

    #[test]
    fn what_may_not_be_rounded_is_not() {
        let u = columns(400, 60);
        let mut expected = Mat::zeros(60, 60);
        super::super::add(expected.as_mut(), u.as_ref(), None, 1.0, Par::Seq);
        // What rounding adds to the diagonal, by definition.
        let units = (0..60).map(|j| {
            let mut column = u.col(j).iter().copied().collect::<Vec<_>>();
            column.resize(column.len().next_multiple_of(CHUNK), 0.0);
            unit_of(&column, column.len() / CHUNK)
        });
        let noise = units.map(|unit| unit * unit / 12.0).sum::<f64>() / 60.0;
        for (most, is_rounded) in [(0.0, false), (0.99 * noise, false), (1.01 * noise, true)] {
            let mut r = Mat::zeros(60, 60);
            if add(r.as_mut(), u.as_ref(), None, most, Par::Seq) {
                assert_eq!(r != expected, is_rounded, "{most:e}");
            }
        }
    }

    #[test]
    fn what_is_not_finite_does_not_pass_for_a_number() {
        for value in [f64::NAN, f64::INFINITY] {
            let mut u = columns(50, 9);
            u[(20, 7)] = value;
            let mut r = Mat::zeros(9, 9);
            if add(r.as_mut(), u.as_ref(), None, ANY_NOISE, Par::Seq) {
                assert!(!r[(8, 7)].is_finite() && !r[(7, 7)].is_finite());
                assert!(r[(6, 5)].is_finite());
            }
        }
    }
}
