//! R += U' diag(w) U, lower triangle only: the product that learning spends its time in.
//!
//! The design is that of BLIS. A block of rows of U is copied into panels of four columns, in which
//! the four elements of a row are neighbours (a [`Quad`]). One tile of R, 12 x 4 elements in twelve
//! registers, is the product of three panels with a fourth. Both factors are columns of U, so one
//! copy serves as both; only weights need a second one, into which they are multiplied. Tiles above
//! the diagonal are left out.
//!
//! * Memory: U is neither changed nor copied as a whole. The panels of a block take up to
//!   256 L numbers, twice that with weights (20 MB for L = 5100).
//! * Reproducibility: an element of R is a sum of fused multiply-adds over each block of rows, in
//!   order, whatever its tile. The blocks depend on the number of rows alone. So the bits do not
//!   depend on the number of threads.
//! * Speed: about three quarters of the peak of the multiply-add units and more for L >= 600, on one
//!   thread and on two, where a general product gets 60 to 70 %.
//!
//! Without AVX2 and FMA, or for matrices that are not column-major, faer does the work.

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// R += factor U' diag(weights) U, with weights 1 if none are given. The part of R above the diagonal
/// is neither read nor written.
///
/// # Panics
/// If the shapes do not match.
pub(crate) fn add(
    r: MatMut<'_, f64>,
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
    #[cfg(target_arch = "x86_64")]
    if r.row_stride() == 1 && u.row_stride() == 1 && avx2::detected() {
        return avx2::Panels::default().add(r, u, weights.as_deref(), par);
    }
    add_portable(r, u, weights.as_deref(), par);
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

/// The kernels. Each `unsafe` block is one of two kinds: a call of a function that needs AVX2 and
/// FMA, below [`Panels::add`], which asks for both; and the loop in assembler.
///
/// Functions with `target_feature` hand no closures to iterators: a closure would inherit the feature
/// and therefore not be inlined into the iterator, which does not have it.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use faer::{MatMut, MatRef, Par};
    use std::arch::x86_64::{__m256d, _MM_HINT_T0, _mm_prefetch};
    use std::arch::x86_64::{_mm256_fmadd_pd, _mm256_set1_pd, _mm256_setr_pd, _mm256_setzero_pd};
    use std::ops::Range;
    use std::sync::Mutex;

    /// At most this many rows of U make a block. Three panels (24 KB) stay in the L1 cache while
    /// others pass by. 128 cost some 5 % (R is read and written twice as often), 384 gain nothing.
    const DEPTH: usize = 256;
    /// At most this many columns of R make the work of a thread at a time: their panels (288 KB)
    /// stay in the L2 cache while all others pass by. 96 and 192 differ by less than the noise.
    const WIDTH: usize = 144;
    /// Small blocks are packed together until the panels take this many bytes, which saves threads
    /// that wait for each other.
    const SCRATCH: usize = 4 << 20;
    /// The number of panels that a thread packs at a time, some ten microseconds of work.
    const GROUP: usize = 16;

    /// Four neighbours in a row of U. Aligned, because a load across cache lines takes twice as long.
    #[derive(Clone, Copy, Debug, Default)]
    #[repr(align(32))]
    struct Quad([f64; 4]);

    /// Blocks of rows of U, each as panels of four columns; and the same with weights.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Panels {
        plain: Vec<Quad>,
        weighted: Vec<Quad>,
    }

    pub(super) fn detected() -> bool {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }

    impl Panels {
        /// R += U' diag(weights) U for matrices that are not empty and whose columns are contiguous.
        pub(super) fn add(
            &mut self,
            r: MatMut<'_, f64>,
            u: MatRef<'_, f64>,
            weights: Option<&[f64]>,
            par: Par,
        ) {
            assert!(detected(), "the kernels need AVX2 and FMA");
            let (n, nodes) = u.shape();
            let from: Vec<&[f64]> =
                u.col_iter().filter_map(|c| Some(c.try_as_col_major()?.as_slice())).collect();
            let mut into: Vec<&mut [f64]> = r
                .col_iter_mut()
                .filter_map(|c| Some(c.try_as_col_major_mut()?.as_slice_mut()))
                .collect();

            let panels = nodes.div_ceil(4);
            let blocks = n.div_ceil(DEPTH);
            let depth = n.div_ceil(blocks);
            let size = depth * panels;
            let together = (SCRATCH / (size * size_of::<Quad>())).clamp(1, blocks);
            grow(&mut self.plain, together * size);
            grow(&mut self.weighted, if weights.is_some() { together * size } else { 0 });
            // The columns get shorter, so work handed out in order ends evenly if it is fine enough.
            let width = nodes.div_ceil(8 * par.degree()).next_multiple_of(12).min(WIDTH);
            let width = if par.degree() == 1 { WIDTH } else { width };

            for first in (0..blocks).step_by(together) {
                let count = together.min(blocks - first);
                let rows = |block: usize| {
                    let start = (first + block) * depth;
                    start..n.min(start + depth)
                };
                let mut weighted = self.weighted.chunks_mut(GROUP * depth);
                let groups = self.plain[..count * size].chunks_mut(GROUP * depth).enumerate();
                let groups = groups.map(|(g, plain)| (g * GROUP, plain, weighted.next()));
                share(par, groups, |(index, plain, weighted)| {
                    let mut weighted = weighted.map(|weighted| weighted.chunks_mut(depth));
                    for (index, plain) in (index..).zip(plain.chunks_mut(depth)) {
                        let (rows, node) = (rows(index / panels), index % panels * 4);
                        let from = &from[node..nodes.min(node + 4)];
                        let weights = weights.map(|weights| &weights[rows.clone()]);
                        let weighted = weighted.as_mut().and_then(Iterator::next).zip(weights);
                        // SAFETY: AVX2 and FMA were detected at the top of this function.
                        unsafe { pack(plain, weighted, from, rows) };
                    }
                });

                let left = &self.plain[..];
                let right = if weights.is_some() { &self.weighted[..] } else { left };
                share(par, into.chunks_mut(width).enumerate(), |(chunk, into)| {
                    for block in 0..count {
                        let [left, right] = [left, right].map(|side| Block {
                            quads: &side[block * size..][..size],
                            depth,
                            rows: rows(block).len(),
                        });
                        // SAFETY: AVX2 and FMA were detected at the top of this function.
                        unsafe { multiply(left, right, chunk * width / 4, into) };
                    }
                });
            }
        }
    }

    fn grow(quads: &mut Vec<Quad>, len: usize) {
        if quads.len() < len {
            quads.resize(len, Quad::default());
        }
    }

    /// Hands the items out to the threads, one after the other.
    fn share<T: Send>(par: Par, items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
        if par.degree() <= 1 {
            return items.for_each(work);
        }
        let items = Mutex::new(items);
        let next = || items.lock().ok().and_then(|mut items| items.next());
        let run = || std::iter::from_fn(next).for_each(&work);
        rayon::scope(|scope| {
            for _ in 1..par.degree() {
                scope.spawn(|_| run());
            }
            run();
        });
    }

    /// Packs up to four columns; zeros stand for missing ones.
    #[target_feature(enable = "avx2,fma")]
    fn pack(
        plain: &mut [Quad],
        weighted: Option<(&mut [Quad], &[f64])>,
        from: &[&[f64]],
        rows: Range<usize>,
    ) {
        static ZEROS: [f64; DEPTH] = [0.0; DEPTH];
        let column = |c: usize| match from.get(c) {
            Some(column) => &column[rows.clone()],
            None => &ZEROS[..rows.len()],
        };
        let columns = column(0).iter().zip(column(1)).zip(column(2)).zip(column(3));
        for (quad, (((&a, &b), &c), &d)) in plain.iter_mut().zip(columns) {
            *quad = Quad([a, b, c, d]);
        }
        if let Some((weighted, weights)) = weighted {
            for ((into, Quad([a, b, c, d])), &w) in weighted.iter_mut().zip(&*plain).zip(weights) {
                *into = Quad([w * a, w * b, w * c, w * d]);
            }
        }
    }

    /// The panels of one block of rows.
    #[derive(Clone, Copy)]
    struct Block<'a> {
        quads: &'a [Quad],
        /// The distance between panels, not less than the number of rows.
        depth: usize,
        rows: usize,
    }

    impl<'a> Block<'a> {
        fn panel(&self, index: usize) -> &'a [Quad] {
            &self.quads[index * self.depth..][..self.rows]
        }
    }

    /// Adds to the columns `into` of R, which begin with the panel `first`, all that is not above the
    /// diagonal.
    #[target_feature(enable = "avx2,fma")]
    fn multiply(left: Block<'_>, right: Block<'_>, first: usize, into: &mut [&mut [f64]]) {
        let panels = left.quads.len() / left.depth;
        for i in (first..panels).step_by(3) {
            for (j, into) in (first..i + 3).zip(into.chunks_mut(4)) {
                let (top, b) = (i.max(j), right.panel(j));
                for column in &*into {
                    prefetch(&column[4 * top..]);
                }
                let a = |v| left.panel(top + v);
                match panels.min(i + 3).saturating_sub(top) {
                    3 => store(into, 4 * top, top == j, &dot3([a(0), a(1), a(2)], b)),
                    2 => store(into, 4 * top, top == j, &dot([a(0), a(1)], b)),
                    1 => store(into, 4 * top, top == j, &dot([a(0)], b)),
                    _ => {}
                }
            }
        }
    }

    /// Asks for twelve elements of R, which are far away (in memory, often) but not needed before
    /// their tile is finished: worth 5 %.
    #[allow(unused_unsafe)] // a safe function in recent versions of Rust only
    fn prefetch(column: &[f64]) {
        let start = column.as_ptr();
        for address in [start, start.wrapping_add(11)] {
            // SAFETY: a prefetch may be given any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
        }
    }

    /// Adds a tile to up to four columns of R, which may end before the tile does.
    #[target_feature(enable = "avx2,fma")]
    fn store<const V: usize>(
        into: &mut [&mut [f64]],
        row: usize,
        diagonal: bool,
        tile: &[[Quad; V]; 4],
    ) {
        for (c, (column, quads)) in into.iter_mut().zip(tile).enumerate() {
            let column = &mut column[row..];
            if !diagonal && column.len() >= 4 * V {
                for (four, quad) in column.as_chunks_mut::<4>().0.iter_mut().zip(quads) {
                    for (into, sum) in four.iter_mut().zip(quad.0) {
                        *into += sum;
                    }
                }
            } else {
                let start = if diagonal { c } else { 0 };
                for (i, into) in column.iter_mut().enumerate().take(4 * V).skip(start) {
                    *into += quads[i / 4].0[i % 4];
                }
            }
        }
    }

    /// The products of one or two panels with another: column by column, `V` quads each.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn dot<const V: usize>(mut a: [&[Quad]; V], b: &[Quad]) -> [[Quad; V]; 4] {
        for panel in &mut a {
            *panel = &panel[..b.len()]; // spares the loop a check of the index
        }
        let mut sums = [[_mm256_setzero_pd(); V]; 4];
        for (k, b) in b.iter().enumerate() {
            for (sums, b) in sums.iter_mut().zip(b.0) {
                for (sum, panel) in sums.iter_mut().zip(a) {
                    let [a0, a1, a2, a3] = panel[k].0;
                    let a = _mm256_setr_pd(a0, a1, a2, a3);
                    *sum = _mm256_fmadd_pd(a, _mm256_set1_pd(b), *sum);
                }
            }
        }
        quads(sums)
    }

    /// The products of three panels with another.
    ///
    /// Twelve sums, three quads of `a` and one element of `b` fill the sixteen registers. The
    /// compiler, given the same in intrinsics, fetches the next element too early and keeps a sum in
    /// memory for want of a seventeenth: that halves the speed, hence the assembler.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn dot3(a: [&[Quad]; 3], b: &[Quad]) -> [[Quad; 3]; 4] {
        let [a0, a1, a2] = a;
        let mut c: [[__m256d; 3]; 4] = [[_mm256_setzero_pd(); 3]; 4];
        if !b.is_empty() {
            // SAFETY: the offset runs from -size_of_val(b) to 0, exclusive, in steps of one quad,
            // relative to the ends of four slices of the length of `b`, whose quads are aligned to
            // 32 bytes. Nothing is written but registers.
            unsafe {
                std::arch::asm!(
                    "2:",
                    "vmovapd {x0}, [{a0} + {k}]",
                    "vmovapd {x1}, [{a1} + {k}]",
                    "vmovapd {x2}, [{a2} + {k}]",
                    "vbroadcastsd {y}, qword ptr [{b} + {k}]",
                    "vfmadd231pd {c00}, {x0}, {y}",
                    "vfmadd231pd {c01}, {x1}, {y}",
                    "vfmadd231pd {c02}, {x2}, {y}",
                    "vbroadcastsd {y}, qword ptr [{b} + {k} + 8]",
                    "vfmadd231pd {c10}, {x0}, {y}",
                    "vfmadd231pd {c11}, {x1}, {y}",
                    "vfmadd231pd {c12}, {x2}, {y}",
                    "vbroadcastsd {y}, qword ptr [{b} + {k} + 16]",
                    "vfmadd231pd {c20}, {x0}, {y}",
                    "vfmadd231pd {c21}, {x1}, {y}",
                    "vfmadd231pd {c22}, {x2}, {y}",
                    "vbroadcastsd {y}, qword ptr [{b} + {k} + 24]",
                    "vfmadd231pd {c30}, {x0}, {y}",
                    "vfmadd231pd {c31}, {x1}, {y}",
                    "vfmadd231pd {c32}, {x2}, {y}",
                    "add {k}, 32",
                    "jnz 2b",
                    a0 = in(reg) a0[..b.len()].as_ptr_range().end,
                    a1 = in(reg) a1[..b.len()].as_ptr_range().end,
                    a2 = in(reg) a2[..b.len()].as_ptr_range().end,
                    b = in(reg) b.as_ptr_range().end,
                    k = inout(reg) size_of_val(b).wrapping_neg() => _,
                    x0 = out(ymm_reg) _, x1 = out(ymm_reg) _, x2 = out(ymm_reg) _,
                    y = out(ymm_reg) _,
                    c00 = inout(ymm_reg) c[0][0], c01 = inout(ymm_reg) c[0][1],
                    c02 = inout(ymm_reg) c[0][2], c10 = inout(ymm_reg) c[1][0],
                    c11 = inout(ymm_reg) c[1][1], c12 = inout(ymm_reg) c[1][2],
                    c20 = inout(ymm_reg) c[2][0], c21 = inout(ymm_reg) c[2][1],
                    c22 = inout(ymm_reg) c[2][2], c30 = inout(ymm_reg) c[3][0],
                    c31 = inout(ymm_reg) c[3][1], c32 = inout(ymm_reg) c[3][2],
                    options(pure, readonly, nostack),
                );
            }
        }
        quads(c)
    }

    #[inline(always)]
    fn quads<const V: usize>(registers: [[__m256d; V]; 4]) -> [[Quad; V]; 4] {
        // SAFETY: a register is to a quad, in size, alignment and meaning, four `f64`.
        unsafe { std::mem::transmute_copy(&registers) }
    }
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

    #[test]
    fn blocks_that_do_not_fit_together_follow_one_another() {
        // 31 blocks of 605 panels, of which three are packed at a time.
        let (n, nodes) = (31 * 256 - 3, 605);
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
        // A matrix whose rows are contiguous goes to faer.
        checked(all.transpose(), None, 1.0);
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
