//! From settings and training rows to a finished map.

use super::convolution::Convolution;
use super::draw::{Purpose, Stream};
use super::fuzzy::Fuzzy;
use super::orthonormal::orthonormalised;
use super::recurrent::Recurrent;
use super::sparse_autoencoder::sparse_weights;
use super::{
    Activation, Enhancement, FeatureMap, Features, Growth, Manifold, Network, NodeGroup, Source,
    manifold,
};
use crate::error::{Error, Result};
use crate::linalg::{extremes, on_threads, parallelism, product, row_blocks, scale_rows, slice_of};
use crate::preprocess::ScaledRows;
use faer::{Accum, ColRef, Mat, MatRef};
use std::ops::Range;

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
    let mut builder = Builder { network, rows, weights, seed, groups: Vec::new() };
    match network.features {
        Features::Inputs => builder.groups.extend([NodeGroup::Constant, NodeGroup::Inputs]),
        Features::RelevantInputs => {
            let relevance = builder.relevance()?.unwrap_or_default().to_vec();
            builder.groups.extend([NodeGroup::Constant, NodeGroup::Relevant(relevance)]);
        }
        Features::InputsAlone => builder.groups.push(NodeGroup::Inputs),
        Features::Nothing => {}
        Features::Groups { groups, nodes, .. } => builder.add_features(groups, nodes)?,
        Features::Manifold { by, nodes, alpha, beta } => {
            builder.add_manifold(by, nodes, (alpha, beta))?;
        }
        Features::Convolution { image, filters, patch, pools } => {
            let mut stream = Stream::new(seed, Purpose::Features, 0);
            let shape = (image, filters, patch, pools);
            let group = Convolution::fit(shape, rows, weights, &mut stream)?;
            builder.groups.push(NodeGroup::Convolution(group));
        }
        Features::Fuzzy { systems, rules } => builder.add_rules(systems, rules)?,
    }
    builder.add_enhancement(network.enhancement.nodes, builder.all_features())?;
    for step in &network.growth {
        builder.grow(*step)?;
    }
    map_of(rows.columns(), builder.groups)
}

/// A map that begins with the groups of `map` and has those of one more step of growth behind them:
/// the last step of `network`, on rows that are the model's.
pub(crate) fn extend(
    map: &FeatureMap,
    network: &Network,
    rows: &ScaledRows<'_>,
    weights: Option<&[f64]>,
    seed: u64,
) -> Result<FeatureMap> {
    let mut builder = Builder { network, rows, weights, seed, groups: map.groups().to_vec() };
    if let Some(step) = network.growth.last() {
        builder.grow(*step)?;
    }
    map_of(rows.columns(), builder.groups)
}

/// The groups of a map so far, and what further ones are made of.
struct Builder<'a> {
    network: &'a Network,
    rows: &'a ScaledRows<'a>,
    weights: Option<&'a [f64]>,
    seed: u64,
    groups: Vec<NodeGroup>,
}

impl Builder<'_> {
    /// The number of feature groups so far.
    fn features(&self) -> usize {
        self.groups.iter().filter(|group| group.is_feature()).count()
    }

    /// The relevance of the inputs, if they have one.
    fn relevance(&self) -> Result<Option<&[f64]>> {
        let columns = self.rows.columns();
        match self.network.enhancement.relevance.as_deref() {
            Some(relevance) if relevance.len() != columns => {
                Err(Error::setting("relevance", format!("{} factors", relevance.len()))
                    .expected(format!("{columns}, one for each input of the network")))
            }
            relevance => Ok(relevance),
        }
    }

    /// [new feature groups | nodes that read these alone | nodes that read all features].
    fn grow(&mut self, step: Growth) -> Result<()> {
        let before = self.features();
        self.add_features(step.feature_groups, step.feature_nodes)?;
        self.add_enhancement(step.group_enhancement_nodes, before..self.features())?;
        self.add_enhancement(step.enhancement_nodes, self.all_features())
    }

    /// The features that enhancement nodes read which are not about single groups: all, but of manifold
    /// features only those that are more than the inputs.
    fn all_features(&self) -> Range<usize> {
        match self.network.features {
            Features::Manifold { .. } => 1..2,
            _ => 0..self.features(),
        }
    }

    /// [X | X We], each node of the latter scaled to [-1, 1] for the robust kind.
    fn add_manifold(&mut self, kind: Manifold, nodes: usize, penalties: (f64, f64)) -> Result<()> {
        let every = self.rows.len().div_ceil(manifold::GRAPH_ROWS).max(1);
        let some: Vec<usize> = (0..self.rows.len()).step_by(every).collect();
        let x = self.rows.select(&some);
        let mut stream = Stream::new(self.seed, Purpose::Features, 0);
        let weights = manifold::weights(kind, x.as_ref(), nodes, penalties, &mut stream)?;
        let mut layer = Layer { weights, bias: vec![0.0; nodes] };
        if kind == Manifold::Robust {
            scale_nodes(&mut layer, self.rows, -1.0, 1.0);
        }
        self.groups.push(NodeGroup::Inputs);
        self.groups.push(layer.into_group(Source::Inputs, Activation::Identity));
        Ok(())
    }

    /// Systems of fuzzy rules, whose centres come from at most so many rows at even distances.
    fn add_rules(&mut self, systems: usize, rules: usize) -> Result<()> {
        const ROWS: usize = 5000;
        let every = self.rows.len().div_ceil(ROWS).max(1);
        let some: Vec<usize> = (0..self.rows.len()).step_by(every).collect();
        let x = self.rows.select(&some);
        let weights: Option<Vec<f64>> =
            self.weights.map(|weights| some.iter().map(|&row| weights[row]).collect());
        for system in 0..systems {
            let mut stream = Stream::new(self.seed, Purpose::Features, system as u32);
            let group = Fuzzy::fit(x.as_ref(), weights.as_deref(), rules, &mut stream)?;
            self.groups.push(NodeGroup::Fuzzy(group));
        }
        Ok(())
    }

    fn add_features(&mut self, groups: usize, nodes: usize) -> Result<()> {
        let Features::Groups { fine_tuned, activation, .. } = self.network.features else {
            return Ok(());
        };
        if groups == 0 {
            return Ok(());
        }
        let first = self.features();
        let drawn: Vec<Layer> = (first..first + groups)
            .map(|group| {
                let mut stream = Stream::new(self.seed, Purpose::Features, group as u32);
                Layer::uniform(self.rows.columns(), 0..nodes, &mut stream)
            })
            .collect();
        let layers = if fine_tuned { fine_tune(&drawn, self.rows, self.weights)? } else { drawn };
        let groups = layers.into_iter().map(|layer| layer.into_group(Source::Inputs, activation));
        self.groups.extend(groups);
        Ok(())
    }

    /// Enhancement nodes that read the features of these ordinals. Nodes that read the same features
    /// come from one stream: a later group goes on where the earlier one ended, so that 200 nodes
    /// and 100 more are the 300 nodes of a larger network.
    fn add_enhancement(&mut self, nodes: usize, ordinals: Range<usize>) -> Result<()> {
        if nodes == 0 {
            return Ok(());
        }
        let features: Vec<NodeGroup> =
            self.groups.iter().filter(|group| group.is_feature()).cloned().collect();
        let columns = self.rows.columns();
        let (source, width) = match ordinals.is_empty() {
            true => (Source::Straight, columns),
            false => (
                Source::Features(ordinals.clone()),
                features[ordinals.clone()].iter().map(|group| group.width(columns)).sum(),
            ),
        };
        let drawn: usize = self
            .groups
            .iter()
            .filter(|group| match group {
                NodeGroup::Dense { source: other, .. } => *other == source,
                group => matches!(group, NodeGroup::Recurrent(_)),
            })
            .map(|group| group.width(columns))
            .sum();
        let mut stream = Stream::new(self.seed, Purpose::Enhancement, self.stream_of(&ordinals));
        let enhancement = &self.network.enhancement;
        let wanted = drawn..drawn + nodes;
        if let Some(step) = enhancement.time_step {
            let (gain, activation) = (enhancement.gain.unwrap_or(1.0), enhancement.activation);
            if !columns.is_multiple_of(step) {
                return Err(Error::setting("time_step", step)
                    .expected(format!("a number that divides the {columns} inputs")));
            }
            let group = Recurrent::draw(step, wanted, gain, activation, &mut stream);
            self.groups.push(NodeGroup::Recurrent(group));
            return Ok(());
        }
        let mut layer = match enhancement.gain {
            Some(gain) => {
                let connection = Connection::of(enhancement, width);
                Layer::normal(&connection, wanted, gain, &mut stream)
            }
            None => Layer::uniform(width, wanted, &mut stream),
        };
        if enhancement.positive_bias && enhancement.gain.is_none() {
            // From [-0.1, 0.1] to [0, 1].
            layer.bias.iter_mut().for_each(|bias| *bias = 0.5 * (*bias / BIAS_INPUT + 1.0));
        }
        if let (Some(relevance), Features::Inputs) = (self.relevance()?, self.network.features) {
            scale_rows(layer.weights.as_mut(), relevance);
        }
        if enhancement.orthonormal {
            let stacked = Mat::from_fn(width + 1, nodes, |i, j| {
                if i < width { layer.weights[(i, j)] } else { layer.bias[j] / BIAS_INPUT }
            });
            layer = Layer::from_stacked(&orthonormalised(stacked.as_ref()));
        }
        if let Some(shrink) = enhancement.shrink {
            let linear = layer.clone().into_group(source.clone(), Activation::Identity);
            let size = largest_argument(features, linear, self.rows)?;
            let factor = if size > 0.0 { shrink / size } else { 1.0 };
            layer.rescale(&vec![factor; nodes], &vec![0.0; nodes]);
        }
        self.groups.push(layer.into_group(source, enhancement.activation));
        Ok(())
    }

    /// The number of the stream for nodes that read these features: 0 for those of the network
    /// before it grew.
    fn stream_of(&self, ordinals: &Range<usize>) -> u32 {
        let original = match self.network.features {
            Features::Manifold { .. } => 1..2,
            features => 0..features.groups(),
        };
        if *ordinals == original {
            return 0;
        }
        (ordinals.start as u32) << 16 | ordinals.end as u32
    }
}

fn map_of(inputs: usize, groups: Vec<NodeGroup>) -> Result<FeatureMap> {
    FeatureMap::new(inputs, groups)
        .ok_or_else(|| Error::numeric("the groups of the network do not fit together"))
}

/// Which inputs the nodes of a layer read.
struct Connection<'a> {
    inputs: usize,
    fan_in: Option<usize>,
    relevance: Option<&'a [f64]>,
}

impl<'a> Connection<'a> {
    fn of(enhancement: &'a Enhancement, inputs: usize) -> Self {
        let relevance = enhancement.relevance.as_deref();
        Self { inputs, fan_in: enhancement.fan_in, relevance }
    }

    /// The number of inputs that a node reads.
    fn fan_in(&self) -> usize {
        self.fan_in.map_or(self.inputs, |fan_in| fan_in.min(self.inputs))
    }

    /// Leaves weights for as many inputs as a node reads: those that win a race in which an input is the
    /// faster the more it matters (drawing without replacement, in proportion to relevance).
    fn cut(&self, weights: &mut [f64], stream: &mut Stream) {
        if self.fan_in.is_none() {
            return;
        }
        let mut arrivals: Vec<(f64, usize)> = (0..self.inputs)
            .map(|input| {
                let speed = self.relevance.map_or(1.0, |relevance| relevance[input]);
                (-(1.0 - stream.unit()).ln() / speed, input)
            })
            .collect();
        arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
        arrivals.iter().skip(self.fan_in()).for_each(|&(_, input)| weights[input] = 0.0);
    }
}

/// Weights and biases of a group before they become part of a map.
#[derive(Clone)]
struct Layer {
    weights: Mat<f64>,
    bias: Vec<f64>,
}

impl Layer {
    /// Weights uniform in [-1, 1], biases in [-0.1, 0.1]; node by node, so that a larger group
    /// begins with the nodes of a smaller one. The nodes before the wanted ones are drawn and
    /// dropped.
    fn uniform(inputs: usize, nodes: Range<usize>, stream: &mut Stream) -> Self {
        (0..nodes.start * (inputs + 1)).for_each(|_| {
            stream.symmetric();
        });
        Self::from_stacked(&Mat::from_fn(inputs + 1, nodes.len(), |_, _| stream.symmetric()))
    }

    /// Normal weights of standard deviation gain / sqrt(number of inputs that a node reads), biases
    /// uniform in [-gain, gain]. The nodes before the wanted ones are drawn and dropped.
    fn normal(
        connection: &Connection<'_>,
        nodes: Range<usize>,
        gain: f64,
        stream: &mut Stream,
    ) -> Self {
        let inputs = connection.inputs;
        let scale = gain / (connection.fan_in().max(1) as f64).sqrt();
        let mut weights = Mat::zeros(inputs, nodes.len());
        let mut bias = vec![0.0; nodes.len()];
        let mut column = vec![0.0; inputs];
        for node in 0..nodes.end {
            column.iter_mut().for_each(|weight| *weight = scale * stream.normal());
            let offset = gain * stream.symmetric();
            connection.cut(&mut column, stream);
            if let Some(j) = node.checked_sub(nodes.start) {
                (0..inputs).for_each(|i| weights[(i, j)] = column[i]);
                bias[j] = offset;
            }
        }
        Self { weights, bias }
    }

    /// Splits off the last row, which the constant [`BIAS_INPUT`] multiplies.
    fn from_stacked(stacked: &Mat<f64>) -> Self {
        let inputs = stacked.nrows() - 1;
        let bias = stacked.row(inputs).iter().map(|value| BIAS_INPUT * value).collect();
        Self { weights: stacked.subrows(0, inputs).to_owned(), bias }
    }

    /// The nodes of several layers with the same inputs as one.
    fn side_by_side(layers: &[Self]) -> Self {
        let inputs = layers.first().map_or(0, |layer| layer.weights.nrows());
        let bias: Vec<f64> = layers.iter().flat_map(|layer| layer.bias.iter().copied()).collect();
        let mut weights = Mat::zeros(inputs, bias.len());
        let mut start = 0;
        for layer in layers {
            weights.subcols_mut(start, layer.bias.len()).copy_from(&layer.weights);
            start += layer.bias.len();
        }
        Self { weights, bias }
    }

    /// These nodes of it.
    fn part(&self, nodes: Range<usize>) -> Self {
        let weights = self.weights.subcols(nodes.start, nodes.len()).to_owned();
        Self { weights, bias: self.bias[nodes].to_vec() }
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
/// The groups, all of one size, go through the rows side by side: the inputs are read once for all.
fn fine_tune(
    drawn: &[Layer],
    rows: &ScaledRows<'_>,
    weights: Option<&[f64]>,
) -> Result<Vec<Layer>> {
    let mut random = Layer::side_by_side(drawn);
    scale_nodes(&mut random, rows, -1.0, 1.0);

    let (inputs, groups, all) = (rows.columns(), drawn.len(), random.bias.len());
    let nodes = all / groups;
    let mut grams = vec![Mat::<f64>::zeros(nodes, nodes); groups];
    let mut cross = Mat::<f64>::zeros(all, inputs + 1);
    for range in row_blocks(rows.len()) {
        let x = rows.block(range.clone());
        let mut a = nodes_of(&random, x.as_ref());
        let mut h1 = Mat::full(x.nrows(), inputs + 1, BIAS_INPUT);
        h1.subcols_mut(0, inputs).copy_from(&x);
        if let Some(weights) = weights {
            let root: Vec<f64> = weights[range].iter().map(|weight| weight.sqrt()).collect();
            scale_rows(h1.as_mut(), &root);
            scale_rows(a.as_mut(), &root);
        }
        for (group, gram) in grams.iter_mut().enumerate() {
            let a = a.subcols(group * nodes, nodes);
            product(gram.as_mut(), Accum::Add, a.transpose(), a, parallelism());
        }
        product(cross.as_mut(), Accum::Add, a.transpose(), h1.as_ref(), parallelism());
    }

    let mut tuned = Vec::with_capacity(groups);
    for (group, gram) in grams.iter().enumerate() {
        let cross = cross.subrows(group * nodes, nodes);
        let sparse = sparse_weights(gram.as_ref(), cross).ok_or_else(|| {
            Error::numeric("the sparse autoencoder met values that are not finite")
        })?;
        tuned.push(Layer::from_stacked(&sparse.transpose().to_owned()));
    }
    let mut tuned = Layer::side_by_side(&tuned);
    scale_nodes(&mut tuned, rows, 0.0, 1.0);
    Ok((0..groups).map(|group| tuned.part(group * nodes..(group + 1) * nodes)).collect())
}

/// Scales every node to [low, high] on the training rows; a constant node becomes 0.
fn scale_nodes(layer: &mut Layer, rows: &ScaledRows<'_>, low: f64, high: f64) {
    let nodes = layer.bias.len();
    let (mut least, mut most) = (vec![f64::INFINITY; nodes], vec![f64::NEG_INFINITY; nodes]);
    for range in row_blocks(rows.len()) {
        let values = nodes_of(layer, rows.block(range).as_ref());
        for (j, column) in values.col_iter().enumerate() {
            let (low, high) = extremes(slice_of(column));
            (least[j], most[j]) = (least[j].min(low), most[j].max(high));
        }
    }
    let (mut factor, mut offset) = (vec![0.0; nodes], vec![0.0; nodes]);
    for j in 0..nodes {
        let range = most[j] - least[j];
        // A range of mere rounding errors belongs to a constant node: keep noise out.
        if range > 64.0 * f64::EPSILON * least[j].abs().max(most[j].abs()) && range.is_finite() {
            factor[j] = (high - low) / range;
            offset[j] = low - least[j] * factor[j];
        }
    }
    layer.rescale(&factor, &offset);
}

fn nodes_of(layer: &Layer, x: MatRef<'_, f64>) -> Mat<f64> {
    let mut values = Mat::from_fn(x.nrows(), layer.bias.len(), |_, j| layer.bias[j]);
    product(values.as_mut(), Accum::Add, x, layer.weights.as_ref(), parallelism());
    values
}

/// The largest value over the training rows of a linear group that reads these features. The
/// original takes the signed maximum; where that is not positive only the size is left.
fn largest_argument(
    features: Vec<NodeGroup>,
    linear: NodeGroup,
    rows: &ScaledRows<'_>,
) -> Result<f64> {
    let nodes = linear.width(rows.columns());
    let mut groups = features;
    groups.push(linear);
    let map = map_of(rows.columns(), groups)?;
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    map.visit(rows, |_, u| {
        let columns: Vec<ColRef<'_, f64>> =
            u.subcols(u.ncols() - nodes, nodes).col_iter().collect();
        let flops = (u.nrows() * nodes) as f64;
        for (low, high) in on_threads(columns, flops, |column| extremes(slice_of(column))) {
            (least, most) = (least.min(low), most.max(high));
        }
        Ok(())
    })?;
    Ok(if most > 0.0 { most } else { -least })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Recipe;
    use crate::preprocess::{Scaler, Scaling};

    #[test]
    fn nodes_read_as_many_inputs_as_they_may_and_those_that_matter_more_often() {
        let x = Mat::from_fn(5, 6, |i, j| (i * j) as f64);
        let scaler = Scaler::fit(Scaling::None, x.as_ref(), None);
        let rows = ScaledRows::new(x.as_ref(), &scaler);
        let mut network = Recipe::Rich.network();
        network.enhancement.fan_in = Some(2);
        let weights = |network: &Network, nodes: usize| {
            let mut network = network.clone();
            network.enhancement.nodes = nodes;
            let map = build(&network, &rows, None, 3).expect("a map");
            match map.groups().last() {
                Some(NodeGroup::Dense { weights, .. }) => weights.clone(),
                other => panic!("{other:?}"),
            }
        };
        let reads = |weights: &Mat<f64>, input: usize| {
            weights.row(input).iter().filter(|weight| **weight != 0.0).count()
        };
        let alike = weights(&network, 3000);
        for column in alike.col_iter() {
            assert_eq!(column.iter().filter(|weight| **weight != 0.0).count(), 2);
        }
        for input in 0..6 {
            // Each in a third of the nodes, with a standard deviation of 26.
            assert!(reads(&alike, input).abs_diff(1000) < 110, "{}", reads(&alike, input));
        }
        assert_eq!(weights(&network, 40), alike.subcols(0, 40));

        network.enhancement.relevance = Some(vec![1.0, 1.0, 1.0, 1.0, 8.0, 0.0]);
        let unlike = weights(&network, 3000);
        assert_eq!(reads(&unlike, 5), 0);
        assert!(reads(&unlike, 4) > 2 * reads(&unlike, 0), "{}", reads(&unlike, 4));
    }
}
