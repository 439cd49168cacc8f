//! Panels: a block of rows of U, copied so that the elements of W neighbouring columns in a row are neighbours in
//! memory, too.
//!
//! A tile of R, 3 W x W elements in registers, is the product of three panels with a fourth. Both factors are columns of
//! U, so one copy serves as both; only weights need a second one, into which they are multiplied. Tiles above
//! the diagonal are left out.
//!
//! Functions that are to be compiled for an instruction set are always inlined into one that asks for it, and
//! hand no closures to iterators: a closure would inherit the instruction set and therefore not be
//! inlined into the iterator, which does not have it.
#![allow(unsafe_code)]

use faer::{MatMut, MatRef, Par};
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Mutex;

/// At most this many rows of U make a block, with every instruction set, so that all give the same bits. R is read and
/// written once a block: with 5100 nodes and AVX-512, 256 cost some 8 %, 384 some 3 %, 668 is no better.
const DEPTH: usize = 512;
/// Small blocks are packed together until the panels take this many numbers, which saves threads
/// that wait for each other.
const SCRATCH: usize = 1 << 19;
/// The number of columns that a thread packs at a time, some ten microseconds of work.
const GROUP: usize = 64;
/// Panels begin at multiples of this many bytes: a load across cache lines takes twice as long.
const LINE: usize = 64;

/// The elements of a row in a panel: neighbours in a row of U.
pub(super) type Lanes<const W: usize> = [f64; W];
/// Sums of products, column by column, `V` times [`Lanes`] each.
pub(super) type Tile<const W: usize, const V: usize> = [[Lanes<W>; V]; W];

/// What an instruction set does.
///
/// # Safety
/// All functions but [`Kernel::detected`] may be called on processors only that have been asked by it. `dot` and `dot3` demand
/// besides that all panels have the same length.
pub(super) unsafe trait Kernel<const W: usize> {
    /// At most this many columns of R, a multiple of 3 W, make the work of a thread at a time: their panels stay in
    /// the L2 cache, 4 KB a column, while all others pass by.
    const WIDTH: usize;

    /// Whether this processor has the instructions.
    fn detected() -> bool;
    /// [`pack`] with these instructions.
    unsafe fn pack(
        plain: &mut [Lanes<W>],
        weighted: Option<(&mut [Lanes<W>], &[f64])>,
        from: &[&[f64]],
        rows: Range<usize>,
    );
    /// [`multiply`] with these instructions.
    unsafe fn multiply(
        left: Block<'_, W>,
        right: Block<'_, W>,
        first: usize,
        into: &mut [&mut [f64]],
    );
    /// W rows of W columns.
    unsafe fn transpose(columns: [&[f64; W]; W], rows: &mut [Lanes<W>; W]);
    /// The products of one or two panels with another.
    unsafe fn dot<const V: usize>(a: [&[Lanes<W>]; V], b: &[Lanes<W>]) -> Tile<W, V>;
    /// The products of three panels with another, in which the time goes.
    #[inline(always)]
    unsafe fn dot3(a: [&[Lanes<W>]; 3], b: &[Lanes<W>]) -> Tile<W, 3> {
        // SAFETY: as the caller's.
        unsafe { Self::dot(a, b) }
    }
}

/// U as what is contiguous in memory.
enum Strips<'a> {
    Columns(Vec<&'a [f64]>),
    Rows(Vec<&'a [f64]>),
}

impl<'a> Strips<'a> {
    fn of(u: MatRef<'a, f64>) -> Option<Self> {
        let strips = |u: MatRef<'a, f64>| -> Option<Vec<&'a [f64]>> {
            u.col_iter().map(|column| Some(column.try_as_col_major()?.as_slice())).collect()
        };
        strips(u).map(Self::Columns).or_else(|| strips(u.transpose()).map(Self::Rows))
    }
}

/// R += U' diag(weights) U for matrices that are not empty. Does nothing and returns false if the processor does not have
/// the instructions, if the columns of R are not contiguous, or neither columns nor rows of U.
pub(super) fn add<K: Kernel<W>, const W: usize>(
    r: MatMut<'_, f64>,
    u: MatRef<'_, f64>,
    weights: Option<&[f64]>,
    par: Par,
) -> bool {
    if !K::detected() {
        return false;
    }
    let (n, nodes) = u.shape();
    let Some(from) = Strips::of(u) else { return false };
    let columns = r.col_iter_mut().map(|c| Some(c.try_as_col_major_mut()?.as_slice_mut()));
    let Some(mut into) = columns.collect::<Option<Vec<&mut [f64]>>>() else { return false };

    let panels = nodes.div_ceil(W);
    let blocks = n.div_ceil(DEPTH);
    let depth = n.div_ceil(blocks);
    let size = depth * panels;
    // One thread waits for nobody, and panels of one block stay near.
    let together = if par.degree() == 1 { 1 } else { (SCRATCH / (size * W)).clamp(1, blocks) };
    let needed = together * size * W + LINE / 8;
    let copies = if weights.is_some() { 2 } else { 1 };
    let mut scratch = Scratch::of(copies * needed);
    let (plain, weighted) = scratch.numbers().split_at_mut(needed);
    let (plain, weighted) = (lanes::<W>(plain), lanes::<W>(weighted));
    // The columns get shorter, so work handed out in order ends evenly if it is fine enough.
    let width = nodes.div_ceil(8 * par.degree()).next_multiple_of(3 * W).min(K::WIDTH);
    let width = if par.degree() == 1 { K::WIDTH } else { width };

    for first in (0..blocks).step_by(together) {
        let count = together.min(blocks - first);
        let rows = |block: usize| {
            let start = (first + block) * depth;
            start..n.min(start + depth)
        };
        let group = GROUP / W;
        let mut weighted_groups = weighted.chunks_mut(group * depth);
        let groups = plain[..count * size].chunks_mut(group * depth).enumerate();
        let groups = groups.map(|(g, plain)| (g * group, plain, weighted_groups.next()));
        share(par, groups, |(index, plain, weighted)| {
            let mut weighted = weighted.map(|weighted| weighted.chunks_mut(depth));
            for (index, plain) in (index..).zip(plain.chunks_mut(depth)) {
                let (rows, node) = (rows(index / panels), index % panels * W);
                let weights = weights.map(|weights| &weights[rows.clone()]);
                let weighted = weighted.as_mut().and_then(Iterator::next).zip(weights);
                match &from {
                    Strips::Columns(from) => {
                        let from = &from[node..nodes.min(node + W)];
                        // SAFETY: the instructions were detected at the top of this function.
                        unsafe { K::pack(plain, weighted, from, rows) };
                    }
                    Strips::Rows(from) => pack_rows(plain, weighted, &from[rows], node),
                }
            }
        });

        let left = &*plain;
        let right = if weights.is_some() { &*weighted } else { left };
        share(par, into.chunks_mut(width).enumerate(), |(chunk, into)| {
            for block in 0..count {
                let [left, right] = [left, right].map(|side| Block {
                    lanes: &side[block * size..][..size],
                    depth,
                    rows: rows(block).len(),
                });
                // SAFETY: as above.
                unsafe { K::multiply(left, right, chunk * width / W, into) };
            }
        });
    }
    true
}

/// Room for panels, which a thread keeps for its next product: pages that the system has to clear take as long as a small
/// product does, and 2 % of a large one.
struct Scratch {
    numbers: Vec<f64>,
    needed: usize,
}

/// Numbers that a thread keeps, at most: 64 MiB, enough for 8000 nodes with weights.
const MOST_KEPT: usize = 1 << 23;

thread_local! {
    static KEPT: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

impl Scratch {
    fn of(needed: usize) -> Self {
        let mut numbers = KEPT.take();
        if numbers.len() < needed {
            numbers = vec![0.0; needed];
        }
        Self { numbers, needed }
    }

    /// They have any values.
    fn numbers(&mut self) -> &mut [f64] {
        &mut self.numbers[..self.needed]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.numbers.len() <= MOST_KEPT {
            KEPT.set(std::mem::take(&mut self.numbers));
        }
    }
}

/// The numbers from the first multiple of [`LINE`] bytes on, for which there is room.
fn lanes<const W: usize>(numbers: &mut [f64]) -> &mut [Lanes<W>] {
    let skipped = numbers.as_ptr().align_offset(LINE).min(numbers.len());
    numbers[skipped..].as_chunks_mut().0
}

/// Hands the items out to the threads, one after the other.
pub(super) fn share<T: Send>(
    par: Par,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) + Sync,
) {
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

/// Packs up to W columns; zeros stand for missing ones.
///
/// # Safety
/// The processor has the instructions of `K`.
#[inline(always)]
pub(super) unsafe fn pack<K: Kernel<W>, const W: usize>(
    plain: &mut [Lanes<W>],
    weighted: Option<(&mut [Lanes<W>], &[f64])>,
    from: &[&[f64]],
    rows: Range<usize>,
) {
    static ZEROS: [f64; DEPTH] = [0.0; DEPTH];
    let count = rows.len();
    let mut columns = [&ZEROS[..count]; W];
    for (column, from) in columns.iter_mut().zip(from) {
        *column = &from[rows.clone()];
    }
    let (squares, rest) = plain[..count].as_chunks_mut::<W>();
    let start = squares.len() * W;
    let mut parts = [&[0.0; W]; W];
    let (mut weighted, weights) = weighted.unzip();
    for (index, square) in squares.iter_mut().enumerate() {
        for (part, column) in parts.iter_mut().zip(&columns) {
            *part = &column.as_chunks::<W>().0[index];
        }
        // SAFETY: as the caller's.
        unsafe { K::transpose(parts, square) };
        // At once, while the square is near.
        if let (Some(weighted), Some(weights)) = (&mut weighted, weights) {
            let rows = index * W..(index + 1) * W;
            weigh(&mut weighted[rows.clone()], square, &weights[rows]);
        }
    }
    for (row, lanes) in rest.iter_mut().enumerate() {
        for (lane, column) in lanes.iter_mut().zip(&columns) {
            *lane = column[start + row];
        }
    }
    if let (Some(weighted), Some(weights)) = (weighted, weights) {
        weigh(&mut weighted[start..count], rest, &weights[start..]);
    }
}

/// Packs up to W columns of contiguous rows, from this node on; zeros stand for missing ones.
fn pack_rows<const W: usize>(
    plain: &mut [Lanes<W>],
    weighted: Option<(&mut [Lanes<W>], &[f64])>,
    from: &[&[f64]],
    node: usize,
) {
    let plain = &mut plain[..from.len()];
    for (lanes, row) in plain.iter_mut().zip(from) {
        match row[node..].first_chunk() {
            Some(elements) => *lanes = *elements,
            None => {
                let elements = row[node..].iter().copied().chain(std::iter::repeat(0.0));
                lanes.iter_mut().zip(elements).for_each(|(lane, element)| *lane = element);
            }
        }
    }
    if let Some((weighted, weights)) = weighted {
        weigh(weighted, plain, weights);
    }
}

/// Rows times their weights.
#[inline(always)]
fn weigh<const W: usize>(into: &mut [Lanes<W>], rows: &[Lanes<W>], weights: &[f64]) {
    for ((into, lanes), weight) in into.iter_mut().zip(rows).zip(weights) {
        for (into, lane) in into.iter_mut().zip(lanes) {
            *into = weight * lane;
        }
    }
}

/// The panels of one block of rows.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, const W: usize> {
    lanes: &'a [Lanes<W>],
    /// The distance between panels, not less than the number of rows.
    depth: usize,
    rows: usize,
}

impl<'a, const W: usize> Block<'a, W> {
    fn panel(&self, index: usize) -> &'a [Lanes<W>] {
        &self.lanes[index * self.depth..][..self.rows]
    }
}

/// Adds to the columns `into` of R, which begin with the panel `first`, all that is not above the
/// diagonal.
///
/// # Safety
/// The processor has the instructions of `K`.
#[inline(always)]
pub(super) unsafe fn multiply<K: Kernel<W>, const W: usize>(
    left: Block<'_, W>,
    right: Block<'_, W>,
    first: usize,
    into: &mut [&mut [f64]],
) {
    let panels = left.lanes.len() / left.depth;
    for i in (first..panels).step_by(3) {
        for (j, into) in (first..i + 3).zip(into.chunks_mut(W)) {
            let (top, b) = (i.max(j), right.panel(j));
            // Elements of R, which are far away (in memory, often) but not needed before their tile is finished:
            // worth 5 %.
            for column in &*into {
                for place in (0..3 * W).step_by(8).chain([3 * W - 1]) {
                    prefetch(&column[W * top..], place);
                }
            }
            let a = |v| left.panel(top + v);
            // SAFETY: the caller vouches for the instructions; all panels of a block have as many rows.
            unsafe {
                match panels.min(i + 3).saturating_sub(top) {
                    3 => store(into, W * top, top == j, &K::dot3([a(0), a(1), a(2)], b)),
                    2 => store(into, W * top, top == j, &K::dot([a(0), a(1)], b)),
                    1 => store(into, W * top, top == j, &K::dot([a(0)], b)),
                    _ => {}
                }
            }
        }
    }
}

/// Asks for what stands so many places after the first one.
#[inline(always)]
#[allow(unused_unsafe)] // a safe function in recent versions of Rust only
pub(super) fn prefetch<T>(from: &[T], ahead: usize) {
    // SAFETY: a prefetch may be given any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(ahead).cast()) };
}

/// Adds a tile to up to W columns of R, which may end before the tile does.
#[inline(always)]
fn store<const W: usize, const V: usize>(
    into: &mut [&mut [f64]],
    row: usize,
    diagonal: bool,
    tile: &Tile<W, V>,
) {
    for (c, (column, sums)) in into.iter_mut().zip(tile).enumerate() {
        let column = &mut column[row..];
        if !diagonal && column.len() >= W * V {
            for (into, sums) in column.as_chunks_mut::<W>().0.iter_mut().zip(sums) {
                for (into, sum) in into.iter_mut().zip(sums) {
                    *into += sum;
                }
            }
        } else {
            let start = if diagonal { c } else { 0 };
            for (i, into) in column.iter_mut().enumerate().take(W * V).skip(start) {
                *into += sums[i / W][i % W];
            }
        }
    }
}
