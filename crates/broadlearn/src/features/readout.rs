//! x -> U W without U: a map and the output weights behind it, applied tile by tile.
//!
//! U of many rows is far larger than any cache, and to write and read it takes as long as some of the products. Here
//! some rows go through some nodes at a time, and what these nodes add to the outputs is taken at once, while all
//! that is worked on is in the cache. Every thread has rows of its own, and which rows go together depends on their
//! number alone: bits do not depend on the threads.

pub(crate) use super::real::Real;
use super::real::{Held, copy_rounded};
use super::{Activation, FeatureMap, NodeGroup, Source};
use crate::linalg::{slice_of, slice_of_column, split_rows};
use crate::preprocess::ScaledRows;
use faer::{Mat, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::ops::Range;

/// Rows that go through the network together, at most: a multiple of the 12 or 24 rows of faer's innermost loop, but not
/// of 64, or the columns of a tile would fall into few lines of the first-level cache.
const MOST_ROWS: usize = 144;
/// Nodes that are computed before their outputs are taken.
const NODES: usize = 128;
/// Narrower groups with the same inputs are computed together: a product with few columns is slow.
const NARROW: usize = 64;
/// Flops below which threads cost more than they bring.
const WORTH_THREADS: f64 = 2e7;

/// A map with output weights, in one precision.
pub(crate) struct Readout<'a, T> {
    inputs: usize,
    steps: Vec<Step<'a, T>>,
    /// The number of feature nodes. They are kept, because others read them.
    features: usize,
    /// Where the rows of W for the feature nodes are.
    feature_runs: Vec<Run>,
    w: Held<'a, T>,
}

/// Some nodes, whose rows of W begin at `first`.
struct Step<'a, T> {
    nodes: Nodes<'a, T>,
    width: usize,
    first: usize,
    /// The first of their columns among the features, if they are features.
    kept_at: Option<usize>,
}

enum Nodes<'a, T> {
    Dense(Layer<'a, T>),
    /// Nodes that are no product of matrices, always in double precision.
    Other(&'a NodeGroup),
}

/// activation(S weights + bias).
struct Layer<'a, T> {
    /// The features that are S; `None` for the inputs.
    source: Option<Range<usize>>,
    weights: Held<'a, T>,
    bias: Vec<T>,
    activation: Activation,
}

/// Columns of the features whose rows of W begin at `first`.
struct Run {
    columns: Range<usize>,
    first: usize,
}

impl<'a, T: Real> Readout<'a, T> {
    pub(crate) fn new(map: &'a FeatureMap, w: MatRef<'a, f64>) -> Self {
        let mut readout = Self {
            inputs: map.inputs(),
            steps: Vec::new(),
            features: 0,
            feature_runs: Vec::new(),
            w: T::held(w),
        };
        // By ordinal of the feature groups, where they begin; and where the next one will.
        let (mut starts, mut first) = (vec![0], 0);
        for together in map.groups().chunk_by(may_be_joined) {
            let widths = together.iter().map(|group| group.width(map.inputs()));
            let width: usize = widths.clone().sum();
            let nodes = nodes_of(together, &starts);
            let kept_at = together[0].is_feature().then_some(readout.features);
            if kept_at.is_some() {
                for width in widths {
                    readout.features += width;
                    starts.push(readout.features);
                }
                readout.add_run(width, first);
            }
            readout.steps.push(Step { nodes, width, first, kept_at });
            first += width;
        }
        readout
    }

    /// Notes that the latest features have these rows of W.
    fn add_run(&mut self, width: usize, first: usize) {
        let columns = self.features - width..self.features;
        match self.feature_runs.last_mut() {
            Some(run) if run.first + run.columns.len() == first => run.columns.end = columns.end,
            _ => self.feature_runs.push(Run { columns, first }),
        }
    }

    /// U W of these rows; `None` if some of their values are not finite.
    pub(crate) fn outputs(&self, rows: &ScaledRows<'_>) -> Option<Mat<f64>> {
        let n = rows.len();
        let mut outputs = Mat::zeros(n, self.w.as_ref().ncols());
        let height = tile_rows(n);
        let mut tiles = split_rows(outputs.as_mut(), height);
        let threads = if self.flops_per_row() * (n as f64) < WORTH_THREADS {
            1
        } else {
            rayon::current_num_threads()
        };
        // Several parts for each thread, because some threads may be slower than others.
        let parts = if threads == 1 { 1 } else { 4 * threads };
        let some = tiles.len().div_ceil(parts).max(1);
        let work = |(part, tiles): (usize, &mut [MatMut<'_, f64>])| {
            let mut room = Room::new(self, height.min(n));
            tiles.iter_mut().enumerate().all(|(place, tile)| {
                let start = (part * some + place) * height;
                room.fill(self, rows, start..start + tile.nrows(), tile.as_mut())
            })
        };
        let finite = match threads {
            1 => tiles.chunks_mut(some).enumerate().all(work),
            _ => tiles.par_chunks_mut(some).enumerate().all(work),
        };
        finite.then_some(outputs)
    }

    fn flops_per_row(&self) -> f64 {
        let w = self.w.as_ref();
        let dense = self.steps.iter().map(|step| match &step.nodes {
            Nodes::Dense(layer) => layer.weights.as_ref().nrows() * step.width,
            Nodes::Other(_) => self.inputs * step.width,
        });
        2.0 * (dense.sum::<usize>() + w.nrows() * w.ncols()) as f64
    }

    /// The widest nodes of which all are computed before their outputs are taken.
    fn widest(&self) -> usize {
        let width = |step: &Step<'_, T>| match step.nodes {
            Nodes::Dense(_) => step.width.min(NODES),
            Nodes::Other(_) => step.width,
        };
        self.steps.iter().map(width).max().unwrap_or(0)
    }
}

/// Whether two neighbouring groups are computed as one.
fn may_be_joined(one: &NodeGroup, other: &NodeGroup) -> bool {
    match (one, other) {
        (
            NodeGroup::Dense { source, activation, bias, .. },
            NodeGroup::Dense { source: same, activation: alike, bias: others, .. },
        ) => source == same && activation == alike && bias.len().max(others.len()) < NARROW,
        _ => false,
    }
}

/// Groups that may be joined; `starts` are the first columns of the feature groups.
fn nodes_of<'a, T: Real>(together: &'a [NodeGroup], starts: &[usize]) -> Nodes<'a, T> {
    let NodeGroup::Dense { source, weights, activation, .. } = &together[0] else {
        return Nodes::Other(&together[0]);
    };
    let source = match source {
        Source::Inputs | Source::Straight => None,
        Source::Features(groups) => Some(starts[groups.start]..starts[groups.end]),
    };
    let bias: Vec<T> = dense(together).flat_map(|(_, bias)| bias).map(|&b| T::nearest(b)).collect();
    let weights = match together.len() {
        1 => T::held(weights.as_ref()),
        _ => {
            let columns: Vec<&[f64]> =
                dense(together).flat_map(|(weights, _)| weights.col_iter().map(slice_of)).collect();
            let value = |i: usize, j: usize| T::nearest(columns[j][i]);
            Held::Owned(Mat::from_fn(weights.nrows(), columns.len(), value))
        }
    };
    Nodes::Dense(Layer { source, weights, bias, activation: *activation })
}

/// Weights and bias of the dense groups.
fn dense(groups: &[NodeGroup]) -> impl Iterator<Item = (&Mat<f64>, &Vec<f64>)> {
    groups.iter().filter_map(|group| match group {
        NodeGroup::Dense { weights, bias, .. } => Some((weights, bias)),
        _ => None,
    })
}

/// As many rows as `n` allows without leaving a few tiles to many threads.
fn tile_rows(n: usize) -> usize {
    n.div_ceil(16).next_multiple_of(24).min(MOST_ROWS)
}

/// What one tile of rows needs.
struct Room<T> {
    inputs: Mat<f64>,
    rounded: Mat<T>,
    features: Mat<T>,
    nodes: Mat<T>,
    others: Mat<f64>,
    products: Mat<T>,
}

impl<T: Real> Room<T> {
    fn new(readout: &Readout<'_, T>, height: usize) -> Self {
        let other = |step: &Step<'_, T>| match step.nodes {
            Nodes::Dense(_) => 0,
            Nodes::Other(_) => step.width,
        };
        let others = readout.steps.iter().map(other).max().unwrap_or(0);
        let room = |columns: usize| Mat::from_fn(height, columns, |_, _| T::default());
        Self {
            inputs: Mat::zeros(height, readout.inputs),
            rounded: room(if T::ROUNDS { readout.inputs } else { 0 }),
            features: room(readout.features),
            nodes: room(readout.widest()),
            others: Mat::zeros(height, others),
            products: room(readout.w.as_ref().ncols()),
        }
    }

    /// Adds U W of these rows to `outputs`, unless some of their values are not finite.
    fn fill(
        &mut self,
        readout: &Readout<'_, T>,
        rows: &ScaledRows<'_>,
        range: Range<usize>,
        mut outputs: MatMut<'_, f64>,
    ) -> bool {
        let height = range.len();
        let mut inputs = self.inputs.as_mut().subrows_mut(0, height);
        if !rows.copy_if_finite(range, inputs.as_mut()) {
            return false;
        }
        rows.scale(inputs.as_mut());
        let inputs = inputs.as_ref();
        let rounded = T::rounded(inputs, &mut self.rounded);
        let mut features = self.features.as_mut().subrows_mut(0, height);
        let mut nodes = self.nodes.as_mut().subrows_mut(0, height);
        let mut products = self.products.as_mut().subrows_mut(0, height);
        let mut others = self.others.as_mut().subrows_mut(0, height);
        let w = readout.w.as_ref();
        let mut take = |nodes: MatRef<'_, T>, first: usize| {
            T::product(products.as_mut(), nodes, w.subrows(first, nodes.ncols()));
            for (sums, products) in
                outputs.as_mut().col_iter_mut().zip(products.as_ref().col_iter())
            {
                sums.iter_mut().zip(products.iter()).for_each(|(sum, add)| *sum += add.to_f64());
            }
        };
        for step in &readout.steps {
            match (&step.nodes, step.kept_at) {
                (Nodes::Dense(layer), Some(start)) => {
                    let (before, into) = features.as_mut().split_at_col_mut(start);
                    let source = layer.source_of(rounded, before.as_ref());
                    layer.apply(source, 0..step.width, into.subcols_mut(0, step.width));
                }
                (Nodes::Dense(layer), None) => {
                    let source = layer.source_of(rounded, features.as_ref());
                    for start in (0..step.width).step_by(NODES) {
                        let columns = start..(start + NODES).min(step.width);
                        let mut nodes = nodes.as_mut().subcols_mut(0, columns.len());
                        layer.apply(source, columns, nodes.as_mut());
                        take(nodes.as_ref(), step.first + start);
                    }
                }
                (Nodes::Other(group), kept_at) => {
                    let mut found = others.as_mut().subcols_mut(0, step.width);
                    group.apply_to_inputs(inputs, found.as_mut(), Par::Seq);
                    match kept_at {
                        Some(start) => {
                            let into = features.as_mut().subcols_mut(start, step.width);
                            copy_rounded(found.as_ref(), into);
                        }
                        None => {
                            let mut nodes = nodes.as_mut().subcols_mut(0, step.width);
                            copy_rounded(found.as_ref(), nodes.as_mut());
                            take(nodes.as_ref(), step.first);
                        }
                    }
                }
            }
        }
        for run in &readout.feature_runs {
            take(features.as_ref().subcols(run.columns.start, run.columns.len()), run.first);
        }
        true
    }
}

impl<T: Real> Layer<'_, T> {
    fn source_of<'b>(&self, inputs: MatRef<'b, T>, features: MatRef<'b, T>) -> MatRef<'b, T> {
        match &self.source {
            None => inputs,
            Some(columns) => features.subcols(columns.start, columns.len()),
        }
    }

    /// Writes these of its nodes.
    fn apply(&self, source: MatRef<'_, T>, columns: Range<usize>, mut nodes: MatMut<'_, T>) {
        let weights = self.weights.as_ref().subcols(columns.start, columns.len());
        T::product(nodes.as_mut(), source, weights);
        for (column, bias) in nodes.col_iter_mut().zip(&self.bias[columns]) {
            T::activate(slice_of_column(column), *bias, self.activation);
        }
    }
}
