//! The finished map x -> u: groups of nodes with fixed weights, in the order of U's columns.

use super::Activation;
use super::convolution::Convolution;
use super::fuzzy::Fuzzy;
use super::recurrent::Recurrent;
use crate::error::Result;
use crate::linalg::{BLOCK_ROWS, dot, parallelism, product, row_blocks, slice_of, slice_of_column};
use crate::preprocess::ScaledRows;
use faer::{Accum, Mat, MatMut, MatRef, Par, unzip, zip};
use rayon::prelude::*;
use std::ops::Range;

/// Where the inputs of a group of nodes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The scaled inputs: the group is a feature group.
    Inputs,
    /// The scaled inputs, past any features: the group is an enhancement group.
    Straight,
    /// The feature groups of these ordinals (the first feature group of the map is 0): the group is
    /// an enhancement group.
    Features(Range<usize>),
}

/// Some columns of U.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeGroup {
    /// One column of ones.
    Constant,
    /// The scaled inputs themselves; a feature group.
    Inputs,
    /// The scaled inputs, each times how much it matters; a feature group.
    Relevant(Vec<f64>),
    /// activation(S weights + bias), where S are the columns that `source` names.
    Dense {
        /// What S is.
        source: Source,
        /// One row per column of S, one column per node.
        weights: Mat<f64>,
        /// One value per node.
        bias: Vec<f64>,
        /// The function applied to every value.
        activation: Activation,
    },
    /// Responses to patches of images; a feature group.
    Convolution(Convolution),
    /// Fuzzy rules; a feature group.
    Fuzzy(Fuzzy),
    /// Nodes that read the inputs step by step; an enhancement group.
    Recurrent(Recurrent),
}

impl NodeGroup {
    pub(crate) fn is_feature(&self) -> bool {
        matches!(
            self,
            Self::Inputs
                | Self::Relevant(_)
                | Self::Dense { source: Source::Inputs, .. }
                | Self::Convolution(_)
                | Self::Fuzzy(_)
        )
    }

    /// The number of nodes, for a map of `inputs` inputs.
    pub fn width(&self, inputs: usize) -> usize {
        match self {
            Self::Constant => 1,
            Self::Inputs => inputs,
            Self::Relevant(relevance) => relevance.len(),
            Self::Dense { weights, .. } => weights.ncols(),
            Self::Convolution(group) => group.centre.len(),
            Self::Fuzzy(group) => group.bias.len(),
            Self::Recurrent(group) => group.bias.len(),
        }
    }

    /// Writes the nodes of a group that is not dense for the rows of `x`: all but dense ones read the inputs alone.
    pub(super) fn apply_to_inputs(&self, x: MatRef<'_, f64>, mut nodes: MatMut<'_, f64>, par: Par) {
        match self {
            Self::Constant => nodes.fill(1.0),
            Self::Inputs => nodes.copy_from(x),
            Self::Relevant(relevance) => {
                for (j, factor) in relevance.iter().enumerate() {
                    zip!(nodes.as_mut().col_mut(j), x.col(j))
                        .for_each(|unzip!(node, input)| *node = factor * input);
                }
            }
            Self::Dense { .. } => unreachable!("dense groups may read features"),
            Self::Convolution(group) => group.apply(x, nodes),
            Self::Fuzzy(group) => group.apply(x, nodes, par),
            Self::Recurrent(group) => group.apply(x, nodes),
        }
    }
}

/// The map from scaled inputs X (n x M) to the state U (n x L).
///
/// Applying it costs 2 n (M L_z + L_z L_h) flops for L_z feature and L_h enhancement nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureMap {
    inputs: usize,
    groups: Vec<NodeGroup>,
}

impl FeatureMap {
    /// A map of these groups. Every enhancement group must come after the feature groups that it
    /// reads, and every weight matrix must have as many rows as its source has columns.
    pub fn new(inputs: usize, groups: Vec<NodeGroup>) -> Option<Self> {
        let map = Self { inputs, groups };
        map.is_consistent().then_some(map)
    }

    /// The number of scaled inputs M.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of nodes L, the columns of U.
    pub fn width(&self) -> usize {
        self.groups.iter().map(|group| group.width(self.inputs)).sum()
    }

    /// The number of leading columns of U that are linear in the inputs or nearly so: features, before any
    /// enhancement node.
    pub(crate) fn leading_features(&self) -> usize {
        let curved =
            |group: &NodeGroup| matches!(group, NodeGroup::Convolution(_) | NodeGroup::Fuzzy(_));
        let first = |group: &&NodeGroup| {
            matches!(group, NodeGroup::Constant) || group.is_feature() && !curved(group)
        };
        self.groups.iter().take_while(first).map(|group| group.width(self.inputs)).sum()
    }

    /// The groups in the order of U's columns.
    pub fn groups(&self) -> &[NodeGroup] {
        &self.groups
    }

    /// The columns of U that hold the feature groups of these ordinals; neighbours are joined.
    pub(super) fn feature_columns(&self, ordinals: &Range<usize>) -> Vec<Range<usize>> {
        let mut columns = Vec::new();
        self.visit_feature_columns(ordinals, |range| columns.push(range));
        columns
    }

    fn visit_feature_columns(
        &self,
        ordinals: &Range<usize>,
        mut visitor: impl FnMut(Range<usize>),
    ) {
        let (mut start, mut ordinal) = (0, 0);
        let mut open: Option<Range<usize>> = None;
        for group in &self.groups {
            let end = start + group.width(self.inputs);
            if group.is_feature() {
                if ordinals.contains(&ordinal) {
                    match &mut open {
                        Some(last) if last.end == start => last.end = end,
                        _ => open.replace(start..end).into_iter().for_each(&mut visitor),
                    }
                }
                ordinal += 1;
            }
            start = end;
        }
        open.into_iter().for_each(visitor);
    }

    fn is_consistent(&self) -> bool {
        let mut features_so_far = 0;
        self.groups.iter().all(|group| {
            let fits = match group {
                NodeGroup::Constant | NodeGroup::Inputs => true,
                NodeGroup::Relevant(relevance) => relevance.len() == self.inputs,
                NodeGroup::Dense { source, weights, bias, .. } => {
                    let rows = match source {
                        Source::Inputs | Source::Straight => Some(self.inputs),
                        Source::Features(range) => (range.start < range.end
                            && range.end <= features_so_far)
                            .then(|| self.feature_columns(range).iter().map(Range::len).sum()),
                    };
                    rows == Some(weights.nrows()) && weights.ncols() == bias.len()
                }
                NodeGroup::Convolution(group) => group.is_consistent(self.inputs),
                NodeGroup::Fuzzy(group) => group.is_consistent(self.inputs),
                NodeGroup::Recurrent(group) => group.is_consistent(self.inputs),
            };
            features_so_far += usize::from(group.is_feature());
            fits
        })
    }

    /// U for the rows of `x`, which are scaled inputs.
    ///
    /// # Panics
    /// If `x` has not as many columns as the map has inputs.
    pub fn state(&self, x: MatRef<'_, f64>) -> Mat<f64> {
        let mut u = Mat::zeros(x.nrows(), self.width());
        self.apply(x, u.as_mut());
        u
    }

    /// Visits U of scaled rows block by block, in order, in the same buffers: fresh ones for every block
    /// would cost more than some maps.
    pub(crate) fn visit(
        &self,
        rows: &ScaledRows<'_>,
        mut visitor: impl FnMut(Range<usize>, MatRef<'_, f64>) -> Result<()>,
    ) -> Result<()> {
        let most = BLOCK_ROWS.min(rows.len());
        let (mut x, mut u) = (Mat::zeros(most, self.inputs), Mat::zeros(most, self.width()));
        for range in row_blocks(rows.len()) {
            let mut x = x.as_mut().subrows_mut(0, range.len());
            let mut u = u.as_mut().subrows_mut(0, range.len());
            rows.block_into(range.clone(), x.as_mut());
            self.apply(x.as_ref(), u.as_mut());
            visitor(range, u.as_ref())?;
        }
        Ok(())
    }

    /// Writes U for the rows of `x` into the column-major matrix `u`.
    pub(crate) fn apply(&self, x: MatRef<'_, f64>, u: MatMut<'_, f64>) {
        self.apply_on(x, u, parallelism());
    }

    /// As [`apply`](Self::apply), its products on these threads: on one alone where the caller has
    /// work for all of them.
    pub(crate) fn apply_on(&self, x: MatRef<'_, f64>, mut u: MatMut<'_, f64>, par: Par) {
        assert_eq!((x.ncols(), u.ncols(), u.nrows()), (self.inputs, self.width(), x.nrows()));
        let mut start = 0;
        for group in &self.groups {
            let width = group.width(self.inputs);
            let (before, after) = u.as_mut().split_at_col_mut(start);
            let mut nodes = after.subcols_mut(0, width);
            match group {
                NodeGroup::Dense { source, weights, bias, activation } => {
                    match source {
                        Source::Inputs | Source::Straight => {
                            let nodes = nodes.as_mut();
                            product(nodes, Accum::Replace, x, weights.as_ref(), par);
                        }
                        Source::Features(range) => {
                            let mut row = 0;
                            for columns in self.feature_columns(range) {
                                let accumulate = if row == 0 { Accum::Replace } else { Accum::Add };
                                let part = weights.subrows(row, columns.len());
                                let z = before.as_ref().subcols(columns.start, columns.len());
                                product(nodes.as_mut(), accumulate, z, part, par);
                                row += columns.len();
                            }
                        }
                    }
                    activate(nodes, bias, *activation, par);
                }
                other => other.apply_to_inputs(x, nodes, par),
            }
            start += width;
        }
    }
}

impl FeatureMap {
    /// Writes the state of one row of scaled inputs into `u`, without further memory but for convolutions
    /// and fuzzy rules.
    pub(crate) fn apply_to_row(&self, x: &[f64], u: &mut [f64]) {
        let mut start = 0;
        for group in &self.groups {
            let width = group.width(self.inputs);
            let (before, after) = u.split_at_mut(start);
            let nodes = &mut after[..width];
            match group {
                NodeGroup::Constant => nodes.fill(1.0),
                NodeGroup::Inputs => nodes.copy_from_slice(x),
                NodeGroup::Relevant(relevance) => {
                    for (node, (factor, input)) in nodes.iter_mut().zip(relevance.iter().zip(x)) {
                        *node = factor * input;
                    }
                }
                NodeGroup::Dense { source, weights, bias, activation } => {
                    nodes.copy_from_slice(bias);
                    let mut add = |row: usize, inputs: &[f64]| {
                        for (node, column) in nodes.iter_mut().zip(weights.col_iter()) {
                            *node += dot(&slice_of(column)[row..row + inputs.len()], inputs);
                        }
                    };
                    match source {
                        Source::Inputs | Source::Straight => add(0, x),
                        Source::Features(range) => {
                            let mut row = 0;
                            self.visit_feature_columns(range, |columns| {
                                let width = columns.len();
                                add(row, &before[columns]);
                                row += width;
                            });
                        }
                    }
                    activation.apply(nodes);
                }
                NodeGroup::Convolution(group) => group.apply_to_row(x, nodes),
                NodeGroup::Fuzzy(group) => {
                    let x = MatRef::from_row_major_slice(x, 1, x.len());
                    let nodes = MatMut::from_column_major_slice_mut(nodes, 1, width);
                    group.apply(x, nodes, Par::Seq);
                }
                NodeGroup::Recurrent(group) => group.apply_to_row(x, nodes),
            }
            start += width;
        }
    }
}

fn activate(nodes: MatMut<'_, f64>, bias: &[f64], activation: Activation, par: Par) {
    let finish = |(column, bias): (faer::ColMut<'_, f64>, &f64)| {
        let values = slice_of_column(column);
        if *bias != 0.0 {
            values.iter_mut().for_each(|value| *value += bias);
        }
        activation.apply(values);
    };
    // Below some ten thousand values the threads cost more than they bring.
    if par.degree() == 1 || nodes.nrows() * nodes.ncols() < 16_384 {
        nodes.col_iter_mut().zip(bias).for_each(finish);
    } else {
        nodes.par_col_iter_mut().zip(bias).for_each(finish);
    }
}
