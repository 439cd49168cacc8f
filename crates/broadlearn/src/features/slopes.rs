//! How strongly the outputs depend on the inputs.

use super::{Activation, FeatureMap, NodeGroup, Source};
use crate::linalg::{BLOCK_ROWS, parallelism, product};
use faer::{Accum, Mat, MatMut, MatRef, unzip, zip};

impl FeatureMap {
    /// The mean over the rows of `x` (scaled inputs) of the squared slope of U W along every input, the
    /// outputs added up. About 2 n C (L_h L_z + L_z M) flops: the map again, backwards, for every output.
    pub(crate) fn mean_squared_slopes(&self, x: MatRef<'_, f64>, w: MatRef<'_, f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.inputs()];
        for start in (0..x.nrows()).step_by(BLOCK_ROWS) {
            let block = x.subrows(start, BLOCK_ROWS.min(x.nrows() - start));
            let u = self.state(block);
            for output in w.col_iter() {
                let slopes = self.slopes(block, u.as_ref(), |node| output[node]);
                for (sum, column) in sums.iter_mut().zip(slopes.col_iter()) {
                    *sum += column.squared_norm_l2();
                }
            }
        }
        sums.iter_mut().for_each(|sum| *sum /= x.nrows() as f64);
        sums
    }

    /// The slope of sum_j u_j w_j along every input, row by row: group by group from the last to the
    /// first, each hands on to what it reads.
    fn slopes(&self, x: MatRef<'_, f64>, u: MatRef<'_, f64>, w: impl Fn(usize) -> f64) -> Mat<f64> {
        let mut along = Mat::from_fn(u.nrows(), u.ncols(), |_, node| w(node));
        let mut inputs = Mat::zeros(u.nrows(), self.inputs());
        let mut end = self.width();
        for group in self.groups().iter().rev() {
            let start = end - group.width(self.inputs());
            let (mut before, mut nodes) =
                along.as_mut().subcols_mut(0, end).split_at_col_mut(start);
            match group {
                NodeGroup::Constant => {}
                NodeGroup::Inputs => inputs += nodes.as_ref(),
                NodeGroup::Relevant(relevance) => {
                    for (j, factor) in relevance.iter().enumerate() {
                        zip!(inputs.col_mut(j), nodes.as_ref().col(j))
                            .for_each(|unzip!(input, node)| *input += factor * *node);
                    }
                }
                NodeGroup::Dense { source, weights, activation, .. } => {
                    through(nodes.as_mut(), u.subcols(start, end - start), *activation);
                    let nodes = nodes.as_ref();
                    match source {
                        Source::Inputs | Source::Straight => {
                            hand_on(inputs.as_mut(), nodes, weights.as_ref());
                        }
                        Source::Features(range) => {
                            let mut row = 0;
                            for columns in self.feature_columns(range) {
                                let part = weights.subrows(row, columns.len());
                                let into =
                                    before.as_mut().subcols_mut(columns.start, columns.len());
                                hand_on(into, nodes, part);
                                row += columns.len();
                            }
                        }
                    }
                }
                NodeGroup::Convolution(group) => group.hand_on(x, nodes.as_ref(), inputs.as_mut()),
                NodeGroup::Fuzzy(group) => group.hand_on(x, nodes.as_ref(), inputs.as_mut()),
                NodeGroup::Recurrent(group) => group.hand_on(x, nodes.as_ref(), inputs.as_mut()),
            }
            end = start;
        }
        inputs
    }
}

fn hand_on(into: MatMut<'_, f64>, nodes: MatRef<'_, f64>, weights: MatRef<'_, f64>) {
    product(into, Accum::Add, nodes, weights.transpose(), parallelism());
}

/// Multiplies by the slope of the activation where it has the values `u`.
fn through(mut along: MatMut<'_, f64>, u: MatRef<'_, f64>, activation: Activation) {
    for (along, u) in along.as_mut().col_iter_mut().zip(u.col_iter()) {
        along.iter_mut().zip(u.iter()).for_each(|(along, u)| *along *= activation.slope(*u));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::build::build;
    use crate::features::draw::{Purpose, Stream};
    use crate::features::{Features, Growth, Network, Recipe};
    use crate::preprocess::{ScaledRows, Scaler, Scaling};

    #[test]
    fn they_are_the_differences_of_near_outputs() {
        let mut stream = Stream::new(3, Purpose::Noise, 0);
        let x = Mat::from_fn(7, 4, |_, _| stream.normal());
        let scaler = Scaler::fit(Scaling::None, x.as_ref(), None);
        let rows = ScaledRows::new(x.as_ref(), &scaler);
        let mut networks = Recipe::ALL.map(Recipe::network).to_vec();
        for features in [Features::Inputs, Features::RelevantInputs] {
            let mut network = Network { features, ..Recipe::Rich.network() };
            network.enhancement.relevance = Some(vec![0.3, 2.0, 0.0, 1.1]);
            network.enhancement.fan_in = Some(2);
            networks.push(network);
        }
        for mut network in networks {
            for activation in [Activation::Tanh, Activation::Sigmoid, Activation::Identity] {
                network.enhancement.nodes = 9;
                network.enhancement.activation = activation;
                let growth = Growth { enhancement_nodes: 3, ..Growth::default() };
                let network = network.clone().grown(growth).expect("a larger network");
                let map = build(&network, &rows, None, 1).expect("a map");
                let w = Mat::from_fn(map.width(), 2, |_, _| stream.normal());
                let slopes = map.mean_squared_slopes(x.as_ref(), w.as_ref());
                for (input, slope) in slopes.into_iter().enumerate() {
                    let step = 1e-5;
                    let moved = |by: f64| {
                        let mut x = x.clone();
                        x.col_mut(input).iter_mut().for_each(|value| *value += by);
                        map.state(x.as_ref()) * &w
                    };
                    let numeric = (moved(step) - moved(-step)).squared_norm_l2();
                    let numeric = numeric / (2.0 * step).powi(2) / 7.0;
                    let error = (slope - numeric).abs() / numeric.max(1e-3);
                    assert!(error < 1e-6, "{network:?}: {slope} {numeric}");
                }
            }
        }
    }
}
