//! From settings and training rows to a finished map.

use super::draw::{Purpose, Stream};
use super::orthonormal::orthonormalised;
use super::sparse_autoencoder::sparse_weights;
use super::{Activation, Enhancement, FeatureMap, Features, Network, NodeGroup, Source};
use crate::error::{Error, Result};
use crate::linalg::{parallelism, product, row_blocks, scale_rows};
use crate::preprocess::ScaledRows;
use faer::{Accum, Mat, MatRef};

/// The constant beside the inputs of a layer: biases are this times a random weight.
const BIAS_INPUT: f64 = 0.1;

/// Draws the weights and fits on the training rows what the recipe wants fitted.
///
/// `weights` are the users' sample weights: a row of weight 2 counts as two rows.
pub(crate) fn build(
    network: &Network,
    rows: &ScaledRows<'_>,
    weights: Option<&[f64]>,
    seed: u64,
) -> Result<FeatureMap> {
    let inputs = rows.columns();
    let mut groups = match network.features {
        Features::Inputs => vec![NodeGroup::Constant, NodeGroup::Inputs],
        Features::Groups { groups, nodes, fine_tuned, activation } => {
            let drawn: Vec<Layer> = (0..groups as u32)
                .map(|group| {
                    let mut stream = Stream::new(seed, Purpose::Features, group);
                    Layer::uniform(inputs, nodes, &mut stream)
                })
                .collect();
            let layers = if fine_tuned { fine_tune(drawn, rows, weights)? } else { drawn };
            layers.into_iter().map(|layer| layer.into_group(Source::Inputs, activation)).collect()
        }
    };
    if network.enhancement.nodes > 0 {
        let features = match network.features {
            Features::Inputs => 1,
            Features::Groups { groups, .. } => groups,
        };
        let group = enhancement_group(&network.enhancement, &groups, 0..features, rows, seed, 0)?;
        groups.push(group);
    }
    map_of(inputs, groups)
}

fn map_of(inputs: usize, groups: Vec<NodeGroup>) -> Result<FeatureMap> {
    FeatureMap::new(inputs, groups)
        .ok_or_else(|| Error::numeric("the groups of the network do not fit together"))
}

/// Weights and biases of a group before they become part of a map.
#[derive(Clone)]
struct Layer {
    weights: Mat<f64>,
    bias: Vec<f64>,
}

impl Layer {
    /// Weights uniform in [-1, 1], biases in [-0.1, 0.1]; node by node, so that a larger group
    /// begins with the nodes of a smaller one.
    fn uniform(inputs: usize, nodes: usize, stream: &mut Stream) -> Self {
        Self::from_stacked(&Mat::from_fn(inputs + 1, nodes, |_, _| stream.symmetric()))
    }

    /// Normal weights of standard deviation gain / sqrt(inputs), biases uniform in [-gain, gain].
    fn normal(inputs: usize, nodes: usize, gain: f64, stream: &mut Stream) -> Self {
        let scale = gain / (inputs.max(1) as f64).sqrt();
        let mut weights = Mat::zeros(inputs, nodes);
        let mut bias = vec![0.0; nodes];
        for j in 0..nodes {
            for i in 0..inputs {
                weights[(i, j)] = scale * stream.normal();
            }
            bias[j] = gain * stream.symmetric();
        }
        Self { weights, bias }
    }

    /// Splits off the last row, which the constant [`BIAS_INPUT`] multiplies.
    fn from_stacked(stacked: &Mat<f64>) -> Self {
        let inputs = stacked.nrows() - 1;
        let bias = stacked.row(inputs).iter().map(|value| BIAS_INPUT * value).collect();
        Self { weights: stacked.subrows(0, inputs).to_owned(), bias }
    }

    /// Makes every node v into factor v + offset.
    fn rescale(&mut self, factor: &[f64], offset: &[f64]) {
        for (j, bias) in self.bias.iter_mut().enumerate() {
            *bias = *bias * factor[j] + offset[j];
            self.weights.col_mut(j).iter_mut().for_each(|weight| *weight *= factor[j]);
        }
    }

    fn into_group(self, source: Source, activation: Activation) -> NodeGroup {
        NodeGroup::Dense { source, weights: self.weights, bias: self.bias, activation }
    }
}

/// Replaces random feature weights by those of a sparse autoencoder and scales every node to [0, 1].
fn fine_tune(
    drawn: Vec<Layer>,
    rows: &ScaledRows<'_>,
    weights: Option<&[f64]>,
) -> Result<Vec<Layer>> {
    let mut random = drawn;
    scale_nodes(&mut random, rows, -1.0, 1.0);

    let inputs = rows.columns();
    let nodes = random[0].bias.len();
    let mut grams: Vec<_> = random.iter().map(|_| Mat::<f64>::zeros(nodes, nodes)).collect();
    let mut crosses: Vec<_> = random.iter().map(|_| Mat::<f64>::zeros(nodes, inputs + 1)).collect();
    for range in row_blocks(rows.len()) {
        let x = rows.block(range.clone());
        let mut h1 =
            Mat::from_fn(
                x.nrows(),
                inputs + 1,
                |i, j| {
                    if j < inputs { x[(i, j)] } else { BIAS_INPUT }
                },
            );
        let root = weights
            .map(|weights| weights[range].iter().map(|weight| weight.sqrt()).collect::<Vec<_>>());
        if let Some(root) = &root {
            scale_rows(h1.as_mut(), root);
        }
        for ((layer, gram), cross) in random.iter().zip(&mut grams).zip(&mut crosses) {
            let mut a = nodes_of(layer, x.as_ref());
            if let Some(root) = &root {
                scale_rows(a.as_mut(), root);
            }
            product(gram.as_mut(), Accum::Add, a.transpose(), a.as_ref(), parallelism());
            product(cross.as_mut(), Accum::Add, a.transpose(), h1.as_ref(), parallelism());
        }
    }

    let mut tuned = Vec::with_capacity(random.len());
    for (gram, cross) in grams.iter().zip(&crosses) {
        let sparse = sparse_weights(gram.as_ref(), cross.as_ref()).ok_or_else(|| {
            Error::numeric("the sparse autoencoder met values that are not finite")
        })?;
        tuned.push(Layer::from_stacked(&sparse.transpose().to_owned()));
    }
    scale_nodes(&mut tuned, rows, 0.0, 1.0);
    Ok(tuned)
}

/// Scales every node to [low, high] on the training rows; a constant node becomes 0.
fn scale_nodes(layers: &mut [Layer], rows: &ScaledRows<'_>, low: f64, high: f64) {
    let nodes = layers[0].bias.len();
    let mut least = vec![vec![f64::INFINITY; nodes]; layers.len()];
    let mut most = vec![vec![f64::NEG_INFINITY; nodes]; layers.len()];
    for range in row_blocks(rows.len()) {
        let x = rows.block(range);
        for (group, layer) in layers.iter().enumerate() {
            let values = nodes_of(layer, x.as_ref());
            for (j, column) in values.col_iter().enumerate() {
                for &value in column.iter() {
                    least[group][j] = least[group][j].min(value);
                    most[group][j] = most[group][j].max(value);
                }
            }
        }
    }
    for (group, layer) in layers.iter_mut().enumerate() {
        let (mut factor, mut offset) = (vec![0.0; nodes], vec![0.0; nodes]);
        for j in 0..nodes {
            let (least, most) = (least[group][j], most[group][j]);
            let range = most - least;
            // A range of mere rounding errors belongs to a constant node: keep noise out.
            if range > 64.0 * f64::EPSILON * least.abs().max(most.abs()) && range.is_finite() {
                factor[j] = (high - low) / range;
                offset[j] = low - least * factor[j];
            }
        }
        layer.rescale(&factor, &offset);
    }
}

fn nodes_of(layer: &Layer, x: MatRef<'_, f64>) -> Mat<f64> {
    let mut values = Mat::from_fn(x.nrows(), layer.bias.len(), |_, j| layer.bias[j]);
    product(values.as_mut(), Accum::Add, x, layer.weights.as_ref(), parallelism());
    values
}

/// An enhancement group that reads the features of these ordinals.
fn enhancement_group(
    enhancement: &Enhancement,
    features: &[NodeGroup],
    ordinals: std::ops::Range<usize>,
    rows: &ScaledRows<'_>,
    seed: u64,
    index: u32,
) -> Result<NodeGroup> {
    let width = features
        .iter()
        .filter(|group| !matches!(group, NodeGroup::Constant))
        .map(|group| group.width(rows.columns()))
        .sum();
    let mut stream = Stream::new(seed, Purpose::Enhancement, index);
    let mut layer = match enhancement.gain {
        Some(gain) => Layer::normal(width, enhancement.nodes, gain, &mut stream),
        None => Layer::uniform(width, enhancement.nodes, &mut stream),
    };
    if enhancement.orthonormal {
        let stacked = Mat::from_fn(width + 1, enhancement.nodes, |i, j| {
            if i < width { layer.weights[(i, j)] } else { layer.bias[j] / BIAS_INPUT }
        });
        layer = Layer::from_stacked(&orthonormalised(stacked.as_ref()));
    }
    let source = Source::Features(ordinals);
    if let Some(shrink) = enhancement.shrink {
        let linear = layer.clone().into_group(source.clone(), Activation::Identity);
        let size = largest_argument(features, linear, rows)?;
        let factor = if size > 0.0 { shrink / size } else { 1.0 };
        layer.rescale(&vec![factor; enhancement.nodes], &vec![0.0; enhancement.nodes]);
    }
    Ok(layer.into_group(source, enhancement.activation))
}

/// The largest value over the training rows of a linear group that reads these features. The
/// original takes the signed maximum; where that is not positive only the size is left.
fn largest_argument(
    features: &[NodeGroup],
    linear: NodeGroup,
    rows: &ScaledRows<'_>,
) -> Result<f64> {
    let nodes = linear.width(rows.columns());
    let mut groups = features.to_vec();
    groups.push(linear);
    let map = map_of(rows.columns(), groups)?;
    let (mut largest, mut largest_size) = (f64::NEG_INFINITY, 0.0_f64);
    for range in row_blocks(rows.len()) {
        let u = map.state(rows.block(range).as_ref());
        for column in u.subcols(u.ncols() - nodes, nodes).col_iter() {
            for &value in column.iter() {
                largest = largest.max(value);
                largest_size = largest_size.max(value.abs());
            }
        }
    }
    Ok(if largest > 0.0 { largest } else { largest_size })
}
