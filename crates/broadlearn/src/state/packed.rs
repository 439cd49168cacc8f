//! U in panels, mostly in 32 bits, for products with few columns.
//!
//! An iterative solver reads all of U twice in every step, and then memory is what it waits for. Here
//! a value takes four bytes: a whole number between -2^31 and 2^31, in units of the largest value of
//! its column within the panel. That is off by 2^-32 of the largest value, a hundred times less than
//! a single-precision number of the same size; products are summed in double precision.
//!
//! A U that the caches hold is not waited for, and stays as it is.
//!
//! Rows come in panels of up to [`PANEL`], column by column. What does not fit into memory is computed
//! anew in every pass, to the same bits: a panel is always computed by itself, on one thread. Work is
//! split by rows, in parts that do not depend on the number of threads, so that neither memory nor
//! threads change a bit of the result.

use super::StateRows;
use crate::linalg::{on_threads, rounded, row_blocks, slice_of, slice_of_column, split_rows};
use faer::{Mat, MatMut, MatRef};
use std::ops::Range;
use std::sync::Mutex;

mod products;

/// Rows in a panel, at most: a multiple of 8, but not a power of two, or columns would share cache lines.
pub(crate) const PANEL: usize = 248;
/// Bytes of a U that stays in double precision: what a core may count on of the caches.
const CACHED: usize = 5 << 20;
/// Bytes of a U in 32 bits that is read from a cache in every pass: a part of the third-level cache that a core
/// may count on.
const NEAR: usize = 8 << 20;
/// Panels whose products are added up in order before the sums are: as many sums as there are parts
/// can be made at the same time.
const PARTS: usize = 16;
/// Panels of U itself that are visited together: as many as make products with them large.
const PANELS_AT_ONCE: usize = 8;

/// The state of some rows, in 32 bits where it is kept.
pub(crate) struct Packed<'a> {
    state: &'a StateRows<'a>,
    /// The rows, in the order in which the outputs have them.
    order: Vec<usize>,
    /// U itself, where it is in memory in this order.
    whole: Option<MatRef<'a, f64>>,
    /// The rows of a panel.
    height: usize,
    precision: Precision,
    /// The first panels, as many as may be kept.
    kept: Vec<Panel>,
    /// Where the others are computed: fresh memory for each would have to be cleared first.
    spare: Mutex<Vec<Workspace>>,
}

/// How numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Precision {
    /// In 32 bits, as whole numbers.
    Whole,
    /// As they are.
    Double,
}

/// Some rows of U: values times the unit of their column.
#[derive(Clone)]
pub(crate) struct Panel {
    values: Values,
    units: Vec<f64>,
    /// The distance of columns: the number of rows, or a little more.
    height: usize,
}

#[derive(Clone)]
enum Values {
    Whole(Vec<i32>),
    Double(Vec<f64>),
}

/// The height of panels for so many rows: all about the same, for what a panel lacks is multiplied as well.
pub(crate) fn panel_height(rows: usize) -> usize {
    let height = rows.div_ceil(rows.div_ceil(PANEL).max(1)).next_multiple_of(8).max(8);
    if height.is_power_of_two() { height + 8 } else { height }
}

/// A panel of U itself, unless that is in memory, and packed.
struct Workspace {
    u: Mat<f64>,
    panel: Panel,
}

impl<'a> Packed<'a> {
    /// These rows of U, of which nothing is kept yet.
    pub(crate) fn new(state: &'a StateRows<'a>, order: Vec<usize>) -> Self {
        let bytes = order.len() * state.width() * size_of::<f64>();
        let precision = if bytes <= CACHED { Precision::Double } else { Precision::Whole };
        let height = panel_height(order.len());
        let in_order = order.len() == state.len() && order.iter().enumerate().all(|(i, &j)| i == j);
        let whole = match state {
            StateRows::Whole(u) if in_order => Some(u.as_ref()),
            _ => None,
        };
        let (kept, spare) = (Vec::new(), Mutex::default());
        Self { state, order, whole, height, precision, kept, spare }
    }

    /// Whether two passes over U take hardly longer than one in which everything is done twice.
    pub(crate) fn is_near(&self) -> bool {
        let bytes = self.order.len() * self.state.width() * size_of::<i32>();
        bytes <= NEAR
    }

    pub(crate) fn is_rounded(&self) -> bool {
        self.precision == Precision::Whole
    }

    /// Whether U itself is in memory.
    pub(crate) fn is_at_hand(&self) -> bool {
        self.whole.is_some()
    }

    /// The same rows of U itself, which are computed in every pass.
    pub(crate) fn unrounded(&self) -> Self {
        let (kept, spare) = (Vec::new(), Mutex::default());
        Self { order: self.order.clone(), precision: Precision::Double, kept, spare, ..*self }
    }

    pub(crate) fn rows(&self) -> &[usize] {
        &self.order
    }

    /// Bytes that a thread needs for panels that are not kept, and for those of U itself.
    pub(crate) fn bytes_of_workspace(nodes: usize) -> u64 {
        let (rounded, unrounded) = (size_of::<f64>() + size_of::<i32>(), 2 * size_of::<f64>());
        (nodes * PANEL * (rounded + unrounded)) as u64
    }

    /// The number of panels of which these many bytes hold all or the first.
    fn most_kept(&self, bytes: u64) -> usize {
        let size = match self.precision {
            Precision::Whole => size_of::<i32>(),
            Precision::Double => size_of::<f64>(),
        };
        let panel = self.state.width() * (self.height * size + size_of::<f64>());
        let room = usize::try_from(bytes).unwrap_or(usize::MAX) / panel.max(1);
        room.min(self.order.len().div_ceil(self.height))
    }

    /// Keeps as much as fits into so many bytes.
    pub(crate) fn fill(&mut self, bytes: u64) {
        let missing: Vec<usize> = (self.kept.len()..self.most_kept(bytes)).collect();
        // To compute a value takes more than to copy one.
        let flops = 100.0 * (missing.len() * self.height * self.state.width()) as f64;
        let found = on_threads(missing, flops, |panel| {
            self.compute(panel, |panel| std::mem::replace(panel, self.no_panel()))
        });
        self.kept.extend(found);
    }

    /// Visits U itself for the first rows, block by block, and keeps of it what fits into so many
    /// bytes.
    pub(crate) fn visit_first(
        &mut self,
        rows: usize,
        bytes: u64,
        mut visitor: impl FnMut(Range<usize>, MatRef<'_, f64>),
    ) {
        let most_kept = self.most_kept(bytes);
        self.kept.clear();
        let height = self.height;
        let panels = rows.div_ceil(height);
        if let Some(u) = self.whole {
            let blocks = (0..most_kept.min(panels)).collect();
            let flops = 10.0 * (rows * self.state.width()) as f64;
            self.kept = on_threads(blocks, flops, |panel| {
                let rows = self.rows_of(panel);
                Panel::new(u.subrows(rows.start, rows.len()), height, self.precision)
            });
            return row_blocks(rows)
                .for_each(|block| visitor(block.clone(), u.subrows(block.start, block.len())));
        }
        let mut buffer =
            Mat::zeros(self.order.len().min(height * PANELS_AT_ONCE), self.state.width());
        for first in (0..panels).step_by(PANELS_AT_ONCE) {
            let last = (first + PANELS_AT_ONCE).min(panels);
            let start = first * height;
            let end = (last * height).min(self.order.len());
            let mut u = buffer.as_mut().subrows_mut(0, end - start);
            let flops = 100.0 * ((end - start) * self.state.width()) as f64;
            let blocks = (first..last).zip(split_rows(u.as_mut(), height)).collect();
            let found = on_threads(blocks, flops, |(panel, mut u): (usize, MatMut<'_, f64>)| {
                self.state.select_into(&self.order[self.rows_of(panel)], u.as_mut());
                let keep = || Panel::new(u.as_ref(), self.height, self.precision);
                (panel < most_kept).then(keep)
            });
            self.kept.extend(found.into_iter().flatten());
            let end = end.min(rows);
            visitor(start..end, u.as_ref().subrows(0, end - start));
        }
    }

    /// Frees all memory.
    pub(crate) fn clear(&mut self) {
        self.kept = Vec::new();
        self.spare = Mutex::default();
    }

    fn rows_of(&self, panel: usize) -> Range<usize> {
        panel * self.height..((panel + 1) * self.height).min(self.order.len())
    }

    fn no_panel(&self) -> Panel {
        Panel::empty(self.height, self.precision)
    }

    /// Computes a panel and does something with it.
    fn compute<T>(&self, panel: usize, then: impl FnOnce(&mut Panel) -> T) -> T {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        let mut work = spare.unwrap_or_else(|| Workspace {
            u: Mat::zeros(if self.whole.is_some() { 0 } else { self.height }, self.state.width()),
            panel: self.no_panel(),
        });
        let rows = self.rows_of(panel);
        match self.whole {
            Some(u) => work.panel.pack(u.subrows(rows.start, rows.len())),
            None => {
                let mut u = work.u.as_mut().subrows_mut(0, rows.len());
                self.state.select_into(&self.order[rows], u.as_mut());
                work.panel.pack(u.as_ref());
            }
        }
        let found = then(&mut work.panel);
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(work);
        }
        found
    }

    /// Does something with a panel, kept or not.
    fn with<T>(&self, panel: usize, then: impl FnOnce(&Panel) -> T) -> T {
        match self.kept.get(panel) {
            Some(panel) => then(panel),
            None => self.compute(panel, |panel| then(panel)),
        }
    }

    /// U W for the first rows, as many as `into` has.
    pub(crate) fn outputs(&self, w: MatRef<'_, f64>, into: MatMut<'_, f64>) {
        let by_rows = by_rows(w);
        let flops = self.flops(into.nrows(), w.ncols());
        let blocks = split_rows(into, self.height).into_iter().enumerate().collect();
        on_threads(blocks, flops, |(panel, block)| {
            self.with(panel, |panel| panel.outputs(&by_rows, block));
        });
    }

    /// Those of a product of so many rows with so many columns.
    fn flops(&self, rows: usize, columns: usize) -> f64 {
        2.0 * (rows * self.state.width() * columns) as f64
    }

    /// U' T for the first rows, as many as T has.
    pub(crate) fn products(&self, t: MatRef<'_, f64>) -> Mat<f64> {
        let blocks = (0..t.nrows()).step_by(self.height);
        let blocks = blocks.map(|start| t.subrows(start, self.height.min(t.nrows() - start)));
        let flops = self.flops(t.nrows(), t.ncols());
        self.sum(blocks.collect(), t.ncols(), flops, |panel, t, sum| panel.add_products(t, sum))
    }

    /// U' T for the first rows, where T follows from the outputs U W: both in one pass. `turn` gets the
    /// rows of a panel and their outputs, which are written into `outputs` too.
    pub(crate) fn there_and_back(
        &self,
        w: MatRef<'_, f64>,
        outputs: MatMut<'_, f64>,
        turn: impl Fn(Range<usize>, MatRef<'_, f64>) -> Mat<f64> + Sync,
    ) -> Mat<f64> {
        let by_rows = by_rows(w);
        let flops = 2.0 * self.flops(outputs.nrows(), w.ncols());
        let blocks = split_rows(outputs, self.height).into_iter().enumerate().collect();
        self.sum(blocks, w.ncols(), flops, |panel, (place, mut block), sum| {
            panel.outputs(&by_rows, block.as_mut());
            let rows = place * self.height..place * self.height + block.nrows();
            panel.add_products(turn(rows, block.as_ref()).as_ref(), sum);
        })
    }

    /// The sum of what the first panels, as many as there are blocks, add to an L x C matrix by rows.
    fn sum<B: Send>(
        &self,
        blocks: Vec<B>,
        columns: usize,
        flops: f64,
        add: impl Fn(&Panel, B, &mut [f64]) + Sync + Send,
    ) -> Mat<f64> {
        // The parts are the same whether panels are kept or not. What is left to one thread has one part.
        let parts = if self.flops(blocks.len() * self.height, columns) < 1e7 { 1 } else { PARTS };
        let (count, parts) = (blocks.len(), parts.min(blocks.len()));
        let mut blocks = blocks.into_iter().enumerate();
        let sizes = (0..parts).map(|part| (part + 1) * count / parts - part * count / parts);
        let parts: Vec<Vec<(usize, B)>> =
            sizes.map(|size| blocks.by_ref().take(size).collect()).collect();
        let sums = on_threads(parts, flops, |blocks| {
            let mut sum = vec![0.0; self.state.width() * columns];
            for (panel, block) in blocks {
                self.with(panel, |panel| add(panel, block, &mut sum));
            }
            sum
        });
        let total = sums.into_iter().reduce(|mut total, sum| {
            total.iter_mut().zip(&sum).for_each(|(total, sum)| *total += sum);
            total
        });
        match total {
            Some(total) => from_rows(&total, self.state.width(), columns),
            None => Mat::zeros(self.state.width(), columns),
        }
    }
}

/// A matrix as its rows, one after the other.
pub(crate) fn by_rows(matrix: MatRef<'_, f64>) -> Vec<f64> {
    let mut rows = vec![0.0; matrix.nrows() * matrix.ncols()];
    for (place, column) in matrix.col_iter().enumerate() {
        let rows = rows[place..].iter_mut().step_by(matrix.ncols());
        rows.zip(column.iter()).for_each(|(row, value)| *row = *value);
    }
    rows
}

/// A matrix from its rows, one after the other.
pub(crate) fn from_rows(rows: &[f64], count: usize, columns: usize) -> Mat<f64> {
    let mut matrix = Mat::zeros(count, columns);
    for (place, column) in matrix.as_mut().col_iter_mut().enumerate() {
        let values = rows[place..].iter().step_by(columns);
        slice_of_column(column).iter_mut().zip(values).for_each(|(into, value)| *into = *value);
    }
    matrix
}

impl Panel {
    /// Rows of a column-major matrix, at most as many as the height, which is a multiple of 8.
    pub(crate) fn new(u: MatRef<'_, f64>, height: usize, precision: Precision) -> Self {
        let mut panel = Self::empty(height, precision);
        panel.pack(u);
        panel
    }

    fn empty(height: usize, precision: Precision) -> Self {
        let values = match precision {
            Precision::Whole => Values::Whole(Vec::new()),
            Precision::Double => Values::Double(Vec::new()),
        };
        Self { values, units: Vec::new(), height }
    }

    /// As [`new`](Self::new), in the memory of another panel.
    fn pack(&mut self, u: MatRef<'_, f64>) {
        let (size, height) = (u.ncols() * self.height, self.height);
        self.units.clear();
        match &mut self.values {
            Values::Whole(values) => {
                make_room(values, size);
                for column in u.col_iter() {
                    self.units.push(pack_column(slice_of(column), values));
                    values.resize(values.len() + height - column.nrows(), 0);
                }
            }
            Values::Double(values) => {
                make_room(values, size);
                self.units.resize(u.ncols(), 1.0);
                for column in u.col_iter() {
                    values.extend_from_slice(slice_of(column));
                    values.resize(values.len() + height - column.nrows(), 0.0);
                }
            }
        }
    }

    /// Writes U W, with W by rows.
    pub(crate) fn outputs(&self, w: &[f64], mut into: MatMut<'_, f64>) {
        let (height, outputs) = (self.height, into.ncols());
        let mut sums = vec![0.0; height * outputs];
        let units = &self.units;
        match &self.values {
            Values::Whole(values) => {
                products::add_outputs(values, height, units, w, outputs, &mut sums);
            }
            Values::Double(values) => {
                products::add_outputs(values, height, units, w, outputs, &mut sums);
            }
        }
        for (column, sums) in into.as_mut().col_iter_mut().zip(sums.chunks_exact(height)) {
            let column = slice_of_column(column);
            column.copy_from_slice(&sums[..column.len()]);
        }
    }

    /// Adds U' T to a matrix by rows.
    pub(crate) fn add_products(&self, t: MatRef<'_, f64>, into: &mut [f64]) {
        let (height, outputs) = (self.height, t.ncols());
        let mut rows = vec![0.0; height * outputs];
        for (column, rows) in t.col_iter().zip(rows.chunks_exact_mut(height)) {
            rows.iter_mut().zip(column.iter()).for_each(|(row, value)| *row = *value);
        }
        let units = &self.units;
        match &self.values {
            Values::Whole(values) => {
                products::add_inputs(values, height, units, &rows, outputs, into);
            }
            Values::Double(values) => {
                products::add_inputs(values, height, units, &rows, outputs, into);
            }
        }
    }
}

/// An empty vector with room for so many values.
fn make_room<T>(values: &mut Vec<T>, size: usize) {
    values.clear();
    values.reserve_exact(size);
}

/// Appends a column as whole numbers and returns their unit.
fn pack_column(column: &[f64], into: &mut Vec<i32>) -> f64 {
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
    into.extend(column.iter().map(|value| rounded(value * factor)));
    if factor > 0.0 { 1.0 / factor } else { 0.0 }
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
                let mut packed = Packed::new(&state, order.clone());
                packed.fill(bytes);
                let (mut f, mut again) = (Mat::zeros(n, outputs), Mat::zeros(n, outputs));
                packed.outputs(w.as_ref(), f.as_mut());
                let g = packed.products(f.as_ref());
                let at_once =
                    packed.there_and_back(w.as_ref(), again.as_mut(), |_, f| f.to_owned());
                assert!(again == f && at_once == g, "{n} x {nodes}");
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
        let mut packed = Packed::new(&state, (0..900).collect());
        let mut visited = 0;
        packed.visit_first(300, u64::MAX, |range, u| {
            visited += range.len() * usize::from(u.nrows() > 0);
        });
        assert_eq!(visited, 300);
        let (mut some, mut all) = (Mat::zeros(300, 3), Mat::zeros(900, 3));
        packed.outputs(w.as_ref(), some.as_mut());
        packed.outputs(w.as_ref(), all.as_mut());
        assert_eq!(some, all.subrows(0, 300));
    }
}
