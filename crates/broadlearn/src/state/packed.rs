//! U in 32 bits, for products with few columns.
//!
//! An iterative solver reads all of U twice in every step, and then memory is what it waits for. Here
//! a value takes four bytes: a whole number between -2^31 and 2^31, in units of the largest value of
//! its column within the panel. That is off by 2^-32 of the largest value, a hundred times less than
//! a single-precision number of the same size; products are summed in double precision.
//!
//! Rows come in panels of [`PANEL`], column by column. What does not fit into memory is computed
//! anew in every pass, to the same bits. Work is split by rows, in parts that do not depend on the
//! number of threads, so that neither memory nor threads change a bit of the result.

use super::StateRows;
use crate::linalg::{slice_of, slice_of_column};
use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;
use std::ops::Range;

mod products;

/// Rows in a panel: a multiple of 8, but not a power of two, or columns would share cache lines.
const PANEL: usize = 248;
/// Panels whose products are added up in order before the sums are: as many sums as there are parts
/// can be made at the same time.
const PARTS: usize = 16;

/// Panels that are computed together: as many as make the products of the map large.
const PANELS_AT_ONCE: usize = 8;

/// The state of some rows, in 32 bits where it is kept.
pub(crate) struct Packed<'a> {
    state: &'a StateRows<'a>,
    /// The rows, in the order in which the outputs have them.
    order: Vec<usize>,
    /// The first panels, as many as may be kept.
    kept: Vec<Panel>,
    most_kept: usize,
}

/// Some rows of U: `values` times the unit of their column.
#[derive(Clone, Default)]
struct Panel {
    values: Vec<i32>,
    units: Vec<f64>,
}

impl<'a> Packed<'a> {
    /// These rows of U, of which so many bytes may be kept.
    pub(crate) fn new(state: &'a StateRows<'a>, order: Vec<usize>, bytes: u64) -> Self {
        let panel = state.width() * (PANEL * size_of::<i32>() + size_of::<f64>());
        let most_kept = usize::try_from(bytes).unwrap_or(usize::MAX) / panel.max(1);
        Self { state, order, kept: Vec::new(), most_kept }
    }

    pub(crate) fn rows(&self) -> &[usize] {
        &self.order
    }

    /// Computes what is kept, if that has not been done.
    pub(crate) fn fill(&mut self) {
        let panels = self.order.len().div_ceil(PANEL).min(self.most_kept);
        let mut found = Vec::new();
        self.compute(self.kept.len()..panels, |some| found.extend(some));
        self.kept.extend(found);
    }

    /// Visits U itself for the first rows, block by block, and keeps it as it passes.
    pub(crate) fn visit_first(
        &mut self,
        rows: usize,
        mut visitor: impl FnMut(Range<usize>, MatRef<'_, f64>),
    ) {
        let mut buffer = self.buffer();
        for start in (0..rows).step_by(PANEL * PANELS_AT_ONCE) {
            let range = start..(start + PANEL * PANELS_AT_ONCE).min(self.order.len());
            let mut u = buffer.as_mut().subrows_mut(0, range.len());
            self.state.select_into(&self.order[range], u.as_mut());
            if self.kept.len() * PANEL == start {
                let room = self.most_kept - self.kept.len();
                self.kept.extend(pack(u.as_ref()).into_iter().take(room));
            }
            let range = start..(start + u.nrows()).min(rows);
            visitor(range.clone(), u.as_ref().subrows(0, range.len()));
        }
    }

    /// Frees what is kept.
    pub(crate) fn clear(&mut self) {
        self.kept = Vec::new();
    }

    fn buffer(&self) -> Mat<f64> {
        Mat::zeros(self.order.len().min(PANEL * PANELS_AT_ONCE), self.state.width())
    }

    /// Computes panels, some at a time.
    fn compute(&self, panels: Range<usize>, mut visitor: impl FnMut(Vec<Panel>)) {
        // The buffer takes as long to clear as a pass over a tenth of U.
        if panels.is_empty() {
            return;
        }
        let mut buffer = self.buffer();
        for first in panels.clone().step_by(PANELS_AT_ONCE) {
            let last = (first + PANELS_AT_ONCE).min(panels.end);
            let rows = first * PANEL..(last * PANEL).min(self.order.len());
            let mut u = buffer.as_mut().subrows_mut(0, rows.len());
            self.state.select_into(&self.order[rows], u.as_mut());
            visitor(pack(u.as_ref()));
        }
    }

    /// U W for the first rows, as many as `into` has.
    pub(crate) fn outputs(&self, w: MatRef<'_, f64>, into: MatMut<'_, f64>) {
        let panels = into.nrows().div_ceil(PANEL);
        let blocks: Vec<(usize, MatMut<'_, f64>)> =
            split_rows(into).into_iter().enumerate().collect();
        let (kept, rest): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|(panel, _)| *panel < self.kept.len());
        kept.into_par_iter().for_each(|(panel, block)| self.kept[panel].outputs(w, block));
        let mut rest = rest.into_iter();
        self.compute(self.kept.len()..panels, |found| {
            let some: Vec<_> = found.iter().zip(rest.by_ref()).collect();
            some.into_par_iter().for_each(|(panel, (_, block))| panel.outputs(w, block));
        });
    }

    /// U' T for the first rows, as many as T has.
    pub(crate) fn products(&self, t: MatRef<'_, f64>) -> Mat<f64> {
        let panels = t.nrows().div_ceil(PANEL);
        let rows = |panel: usize| {
            let start = panel * PANEL;
            t.subrows(start, PANEL.min(t.nrows() - start))
        };
        let kept = panels.min(self.kept.len());
        // The parts are the same whether panels are kept or not.
        let part = panels.div_ceil(PARTS).max(1);
        let mut sums: Vec<Vec<f64>> = (0..panels.div_ceil(part))
            .into_par_iter()
            .map(|place| {
                let mut sum = vec![0.0; self.state.width() * t.ncols()];
                for panel in (place * part..(place + 1) * part).take_while(|&panel| panel < kept) {
                    self.kept[panel].add_products(rows(panel), &mut sum);
                }
                sum
            })
            .collect();
        let mut panel = kept;
        self.compute(kept..panels, |found| {
            for found in found {
                found.add_products(rows(panel), &mut sums[panel / part]);
                panel += 1;
            }
        });
        let outputs = t.ncols();
        Mat::from_fn(self.state.width(), outputs, |node, output| {
            sums.iter().map(|sum| sum[node * outputs + output]).sum()
        })
    }
}

/// The nearest whole number to one between -2^31 and 2^31. Adding 1.5 * 2^52 leaves it in the lowest bits,
/// for which, unlike for a call of `round`, every processor has an instruction.
#[inline(always)]
fn rounded(value: f64) -> i32 {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    (value + SHIFT).to_bits() as i32
}

fn pack(u: MatRef<'_, f64>) -> Vec<Panel> {
    let starts: Vec<usize> = (0..u.nrows()).step_by(PANEL).collect();
    let panel = |start: usize| Panel::new(u.subrows(start, PANEL.min(u.nrows() - start)));
    starts.into_par_iter().map(panel).collect()
}

/// A matrix as blocks of [`PANEL`] rows.
fn split_rows(mut matrix: MatMut<'_, f64>) -> Vec<MatMut<'_, f64>> {
    let mut blocks = Vec::new();
    while matrix.nrows() > PANEL {
        let (block, rest) = matrix.split_at_row_mut(PANEL);
        blocks.push(block);
        matrix = rest;
    }
    blocks.push(matrix);
    blocks
}

impl Panel {
    /// Rows of a column-major matrix, at most [`PANEL`].
    fn new(u: MatRef<'_, f64>) -> Self {
        let mut panel =
            Self { values: vec![0; u.ncols() * PANEL], units: Vec::with_capacity(u.ncols()) };
        for (column, values) in u.col_iter().zip(panel.values.chunks_exact_mut(PANEL)) {
            let column = slice_of(column);
            // Several at a time: a single largest value would be waited for.
            let mut most = [0.0_f64; 4];
            for (place, value) in column.iter().enumerate() {
                let most = &mut most[place % 4];
                *most = if value.abs() > *most { value.abs() } else { *most };
            }
            let largest = most.into_iter().fold(0.0, f64::max);
            let factor = if largest > 0.0 { f64::from(i32::MAX) / largest } else { 0.0 };
            // A column whose values are all next to nothing is nothing.
            let factor = if factor.is_finite() { factor } else { 0.0 };
            panel.units.push(if factor > 0.0 { 1.0 / factor } else { 0.0 });
            for (packed, value) in values.iter_mut().zip(column.iter()) {
                *packed = rounded(value * factor);
            }
        }
        panel
    }

    /// Writes U W.
    fn outputs(&self, w: MatRef<'_, f64>, mut into: MatMut<'_, f64>) {
        let outputs = w.ncols();
        let mut scaled = vec![0.0; w.nrows() * outputs];
        for (place, column) in w.col_iter().enumerate() {
            let scaled = scaled[place..].iter_mut().step_by(outputs);
            for ((scaled, w), unit) in scaled.zip(column.iter()).zip(&self.units) {
                *scaled = w * unit;
            }
        }
        let mut sums = vec![0.0; PANEL * outputs];
        products::add_outputs(&self.values, PANEL, &scaled, outputs, &mut sums);
        for (column, sums) in into.as_mut().col_iter_mut().zip(sums.chunks_exact(PANEL)) {
            let column = slice_of_column(column);
            column.copy_from_slice(&sums[..column.len()]);
        }
    }

    /// Adds U' T to a matrix by rows.
    fn add_products(&self, t: MatRef<'_, f64>, into: &mut [f64]) {
        let outputs = t.ncols();
        let mut rows = vec![0.0; PANEL * outputs];
        for (column, rows) in t.col_iter().zip(rows.chunks_exact_mut(PANEL)) {
            rows.iter_mut().zip(column.iter()).for_each(|(row, value)| *row = *value);
        }
        products::add_inputs(&self.values, PANEL, &self.units, &rows, outputs, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{product, select_rows};
    use faer::{Accum, Par};

    #[test]
    fn products_are_those_of_the_matrix_whatever_is_kept() {
        for (n, nodes, outputs) in [(1, 1, 1), (7, 3, 2), (248, 5, 6), (700, 33, 7), (5000, 40, 13)]
        {
            let u = Mat::from_fn(n, nodes, |i, j| {
                ((i * 7 + j * 13) as f64).sin() * 10_f64.powi(j as i32 % 5)
            });
            let w = Mat::from_fn(nodes, outputs, |i, j| ((i + 3 * j) as f64).cos());
            let order: Vec<usize> = (0..n).rev().collect();
            let state = StateRows::Whole(u.clone());
            let u = select_rows(u.as_ref(), &order);
            let mut found: Vec<(Mat<f64>, Mat<f64>)> = Vec::new();
            for bytes in [0, (nodes * 1000 * n.div_ceil(496)) as u64, u64::MAX] {
                let mut packed = Packed::new(&state, order.clone(), bytes);
                packed.fill();
                let mut f = Mat::zeros(n, outputs);
                packed.outputs(w.as_ref(), f.as_mut());
                let g = packed.products(f.as_ref());
                found.push((f, g));
            }
            let (mut f, mut g) = (Mat::zeros(n, outputs), Mat::zeros(nodes, outputs));
            product(f.as_mut(), Accum::Replace, u.as_ref(), w.as_ref(), Par::Seq);
            product(g.as_mut(), Accum::Replace, u.transpose(), f.as_ref(), Par::Seq);
            // Every value is off by 2^-32 of the largest in its column, at most.
            let unit = 3e-10 * u.norm_max();
            let (most_f, most_g) =
                (unit * nodes as f64, 2.0 * unit * (n * nodes) as f64 * f.norm_max());
            assert!((&found[0].0 - &f).norm_max() <= most_f, "{n} x {nodes}");
            assert!((&found[0].1 - &g).norm_max() <= most_g, "{n} x {nodes}");
            assert!(found.iter().all(|other| *other == found[0]), "{n} x {nodes}");
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        for value in [0.0, 0.4, 0.6, -0.4, -0.6, 1.5, 2.5, -2.5, 2_147_483_647.0, -2_147_483_646.7]
        {
            assert_eq!(rounded(value), value.round_ties_even() as i32, "{value}");
        }
    }

    #[test]
    fn fewer_rows_are_a_part_of_all() {
        let u = Mat::from_fn(900, 10, |i, j| ((i * 5 + j) as f64).sin());
        let w = Mat::from_fn(10, 3, |i, j| (i + j) as f64);
        let state = StateRows::Whole(u);
        let mut packed = Packed::new(&state, (0..900).collect(), u64::MAX);
        let mut visited = 0;
        packed.visit_first(300, |range, u| visited += range.len() * usize::from(u.nrows() > 0));
        assert_eq!(visited, 300);
        let (mut some, mut all) = (Mat::zeros(300, 3), Mat::zeros(900, 3));
        packed.outputs(w.as_ref(), some.as_mut());
        packed.outputs(w.as_ref(), all.as_mut());
        assert_eq!(some, all.subrows(0, 300));
    }
}
