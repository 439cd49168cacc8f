//! Recurrent enhancement nodes: they read the inputs of a row step by step, as the lags of a series, each
//! time together with what the nodes were before.
//!
//! Nodes stand in cells of ten, and hear the earlier nodes of their cell and themselves. So the first nodes
//! do not depend on later ones, and a larger network begins with the smaller one. No memory is needed but
//! for the nodes: from the last to the first, each replaces its value after those that hear it have done so.

use super::Activation;
use super::draw::Stream;
use crate::linalg::slice_of_column;
use faer::{Mat, MatMut, MatRef};
use rayon::prelude::*;
use std::ops::Range;

/// The nodes of a cell.
pub(crate) const CELL: usize = 10;
/// The size of what a node hears of itself: below 1, so that what was long ago fades.
const MEMORY: f64 = 0.9;

/// h(s) = activation(x(s) weights + h(s - 1) V + bias), s = 1 .. S, h(0) = 0; the nodes are h(S).
#[derive(Clone, Debug, PartialEq)]
pub struct Recurrent {
    /// One row for each input of a step, one column per node.
    pub weights: Mat<f64>,
    /// What a node hears of the nodes of its cell: one row for each of them, one column per node.
    pub recurrent: Mat<f64>,
    /// One value per node.
    pub bias: Vec<f64>,
    /// The function applied to every value.
    pub activation: Activation,
}

impl Recurrent {
    /// Random nodes: those of these numbers of a stream.
    pub(super) fn draw(
        step: usize,
        nodes: Range<usize>,
        gain: f64,
        activation: Activation,
        stream: &mut Stream,
    ) -> Self {
        let scale = gain / (step as f64).sqrt();
        // What a node hears of others is about as much as it hears of itself.
        let others = MEMORY / (CELL as f64).sqrt();
        let mut weights = Mat::zeros(step, nodes.len());
        let mut recurrent = Mat::zeros(CELL, nodes.len());
        let mut bias = vec![0.0; nodes.len()];
        for node in 0..nodes.end {
            let inputs: Vec<f64> = (0..step).map(|_| scale * stream.normal()).collect();
            // A group begins with a cell of its own.
            let own = node.checked_sub(nodes.start).unwrap_or(node) % CELL;
            let cell: Vec<f64> = (0..CELL)
                .map(|other| match other.cmp(&own) {
                    std::cmp::Ordering::Less => others * stream.normal(),
                    std::cmp::Ordering::Equal => MEMORY * stream.symmetric(),
                    std::cmp::Ordering::Greater => 0.0,
                })
                .collect();
            let offset = gain * stream.symmetric();
            if let Some(j) = node.checked_sub(nodes.start) {
                inputs.iter().enumerate().for_each(|(i, value)| weights[(i, j)] = *value);
                cell.iter().enumerate().for_each(|(i, value)| recurrent[(i, j)] = *value);
                bias[j] = offset;
            }
        }
        Self { weights, recurrent, bias, activation }
    }

    /// Whether its parts fit together, for a map of `inputs` inputs.
    pub(super) fn is_consistent(&self, inputs: usize) -> bool {
        let (step, nodes) = (self.weights.nrows(), self.bias.len());
        step > 0
            && inputs.is_multiple_of(step)
            && self.weights.ncols() == nodes
            && (self.recurrent.nrows(), self.recurrent.ncols()) == (CELL, nodes)
            && (0..nodes).all(|j| self.heard(j).end == j % CELL + 1)
            && (0..nodes).all(|j| (j % CELL + 1..CELL).all(|i| self.recurrent[(i, j)] == 0.0))
    }

    /// The places in its cell that node `j` hears, its own the last.
    fn heard(&self, j: usize) -> Range<usize> {
        0..j % CELL + 1
    }

    /// The nodes of the rows of `x`.
    pub(super) fn apply(&self, x: MatRef<'_, f64>, mut nodes: MatMut<'_, f64>) {
        nodes.fill(0.0);
        let count = nodes.ncols();
        nodes.par_col_chunks_mut(CELL).enumerate().for_each(|(cell, mut nodes)| {
            for time in 0..x.ncols() / self.weights.nrows() {
                self.go_on(x, time, cell * CELL..count.min((cell + 1) * CELL), nodes.as_mut());
            }
        });
    }

    /// One step of time for the nodes of one cell.
    fn go_on(
        &self,
        x: MatRef<'_, f64>,
        time: usize,
        cell: Range<usize>,
        mut nodes: MatMut<'_, f64>,
    ) {
        let step = self.weights.nrows();
        for own in (0..cell.len()).rev() {
            let j = cell.start + own;
            let (earlier, mut rest) = nodes.as_mut().split_at_col_mut(own);
            let values = slice_of_column(rest.as_mut().col_mut(0));
            let memory = self.recurrent[(own, j)];
            values.iter_mut().for_each(|value| *value = self.bias[j] + memory * *value);
            let mut add = |factor: f64, column: faer::ColRef<'_, f64>| {
                values.iter_mut().zip(column.iter()).for_each(|(v, c)| *v += factor * c);
            };
            for (other, column) in earlier.as_ref().col_iter().enumerate() {
                add(self.recurrent[(other, j)], column);
            }
            for input in 0..step {
                add(self.weights[(input, j)], x.col(time * step + input));
            }
            self.activation.apply(values);
        }
    }

    /// The nodes of one row.
    pub(super) fn apply_to_row(&self, x: &[f64], nodes: &mut [f64]) {
        let x = MatRef::from_row_major_slice(x, 1, x.len());
        let count = nodes.len();
        let mut nodes = MatMut::from_column_major_slice_mut(nodes, 1, count);
        nodes.fill(0.0);
        for time in 0..x.ncols() / self.weights.nrows() {
            for cell in (0..count).step_by(CELL) {
                let range = cell..count.min(cell + CELL);
                let part = nodes.as_mut().subcols_mut(cell, range.len());
                self.go_on(x, time, range, part);
            }
        }
    }

    /// Adds to `inputs` the slope along every input of sum_j along_j h_j.
    pub(super) fn hand_on(
        &self,
        x: MatRef<'_, f64>,
        along: MatRef<'_, f64>,
        mut inputs: MatMut<'_, f64>,
    ) {
        let (step, count) = (self.weights.nrows(), self.bias.len());
        let steps = x.ncols() / step;
        let mut history = vec![Mat::<f64>::zeros(x.nrows(), count); steps + 1];
        for time in 0..steps {
            let mut next = history[time].clone();
            for cell in (0..count).step_by(CELL) {
                let range = cell..count.min(cell + CELL);
                let part = next.as_mut().subcols_mut(cell, range.len());
                self.go_on(x, time, range, part);
            }
            history[time + 1] = next;
        }
        let mut along = along.to_owned();
        for time in (0..steps).rev() {
            let mut before = Mat::<f64>::zeros(x.nrows(), count);
            for j in 0..count {
                for row in 0..x.nrows() {
                    let slope = self.activation.slope(history[time + 1][(row, j)]);
                    let through = along[(row, j)] * slope;
                    for place in self.heard(j) {
                        before[(row, j - j % CELL + place)] += through * self.recurrent[(place, j)];
                    }
                    for input in 0..step {
                        inputs[(row, time * step + input)] += through * self.weights[(input, j)];
                    }
                }
            }
            along = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::Purpose;

    #[test]
    fn it_is_the_recurrence_with_a_matrix() {
        let mut stream = Stream::new(3, Purpose::Enhancement, 0);
        let group = Recurrent::draw(2, 0..23, 1.3, Activation::Tanh, &mut stream);
        assert!(group.is_consistent(8) && !group.is_consistent(7));
        let x = Mat::from_fn(5, 8, |_, _| stream.normal());
        let mut v = Mat::<f64>::zeros(23, 23);
        for j in 0..23 {
            for place in group.heard(j) {
                v[(j - j % CELL + place, j)] = group.recurrent[(place, j)];
            }
        }
        let mut h = Mat::<f64>::zeros(5, 23);
        for time in 0..4 {
            let next = x.subcols(2 * time, 2) * &group.weights + &h * &v;
            h = Mat::from_fn(5, 23, |i, j| (next[(i, j)] + group.bias[j]).tanh());
        }
        let mut nodes = Mat::zeros(5, 23);
        group.apply(x.as_ref(), nodes.as_mut());
        assert!((&nodes - &h).norm_max() < 1e-14);
    }

    #[test]
    fn a_larger_group_begins_with_a_smaller_one() {
        let draw = |nodes: Range<usize>| {
            let mut stream = Stream::new(3, Purpose::Enhancement, 0);
            Recurrent::draw(1, nodes, 1.0, Activation::Tanh, &mut stream)
        };
        let x = Mat::from_fn(4, 6, |i, j| ((i * 5 + j * 3) % 7) as f64 - 3.0);
        let nodes = |group: &Recurrent| {
            let mut nodes = Mat::zeros(4, group.bias.len());
            group.apply(x.as_ref(), nodes.as_mut());
            nodes
        };
        let (small, large) = (nodes(&draw(0..17)), nodes(&draw(0..30)));
        assert_eq!(large.subcols(0, 17), small.as_ref());
    }
}
