//! A perceptron of sigmoid layers, trained by gradient descent on small batches: what stacked autoencoders
//! and deep belief networks end in. It learns as the DeepLearnToolbox does, which the paper used.

use broadlearn::faer::Mat;
use broadlearn::features::draw::Stream;

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// Passes over the rows.
    pub epochs: usize,
    /// Rows in a batch; fewer in the last one if they do not come out even.
    pub batch: usize,
    /// The step in the direction of the gradient.
    pub rate: f64,
    /// The share of the last step that is taken again.
    pub momentum: f64,
}

/// Layers of sigmoid units. Each has a matrix with one row per unit, the bias first.
#[derive(Clone, Debug, PartialEq)]
pub struct Perceptron {
    layers: Vec<Mat<f64>>,
}

impl Perceptron {
    /// A network of these sizes, inputs first, with weights uniform in 4 sqrt(6 / (in + out)) [-1, 1).
    pub fn new(sizes: &[usize], stream: &mut Stream) -> Self {
        let layer = |pair: &[usize]| {
            let bound = 4.0 * (6.0 / (pair[0] + pair[1]) as f64).sqrt();
            let mut weights = Mat::zeros(pair[1], pair[0] + 1);
            for i in 0..pair[1] {
                for j in 0..=pair[0] {
                    weights[(i, j)] = bound * stream.symmetric();
                }
            }
            weights
        };
        let mut layer = layer;
        Self { layers: sizes.windows(2).map(&mut layer).collect() }
    }

    /// The weights of a layer, one row per unit, the bias first.
    pub fn layer(&self, place: usize) -> &Mat<f64> {
        &self.layers[place]
    }

    /// Puts other weights of the same shape in place of a layer's.
    pub fn set_layer(&mut self, place: usize, weights: Mat<f64>) {
        self.layers[place] = weights;
    }

    /// The outputs for rows of inputs.
    pub fn predict(&self, x: &Mat<f64>) -> Mat<f64> {
        self.layers.iter().fold(x.clone(), |a, weights| forward(&a, weights))
    }

    /// Half the mean squared error over rows.
    pub fn loss(&self, x: &Mat<f64>, y: &Mat<f64>) -> f64 {
        (self.predict(x) - y).squared_norm_l2() / (2.0 * x.nrows() as f64)
    }

    /// The gradient of the loss, layer by layer.
    fn gradient(&self, x: &Mat<f64>, y: &Mat<f64>) -> Vec<Mat<f64>> {
        let mut outputs = vec![x.clone()];
        for weights in &self.layers {
            outputs.push(forward(&outputs[outputs.len() - 1], weights));
        }
        let rows = x.nrows() as f64;
        let last = &outputs[self.layers.len()];
        let mut delta = Mat::from_fn(last.nrows(), last.ncols(), |i, j| {
            (last[(i, j)] - y[(i, j)]) * slope(last[(i, j)])
        });
        let mut gradients = Vec::with_capacity(self.layers.len());
        for (place, weights) in self.layers.iter().enumerate().rev() {
            let input = &outputs[place];
            let product = delta.transpose() * input;
            gradients.push(Mat::from_fn(weights.nrows(), weights.ncols(), |i, j| match j {
                0 => delta.col(i).iter().sum::<f64>() / rows,
                _ => product[(i, j - 1)] / rows,
            }));
            let back = &delta * weights.subcols(1, weights.ncols() - 1);
            delta = Mat::from_fn(back.nrows(), back.ncols(), |i, j| {
                back[(i, j)] * slope(input[(i, j)])
            });
        }
        gradients.reverse();
        gradients
    }

    /// Trains on rows and their targets, in an order drawn anew for every epoch.
    pub fn train(&mut self, x: &Mat<f64>, y: &Mat<f64>, descent: Descent, stream: &mut Stream) {
        let mut steps: Vec<Mat<f64>> =
            self.layers.iter().map(|layer| Mat::zeros(layer.nrows(), layer.ncols())).collect();
        for _ in 0..descent.epochs {
            for rows in stream.permutation(x.nrows()).chunks(descent.batch.max(1)) {
                let gradients = self.gradient(&select(x, rows), &select(y, rows));
                for ((layer, step), gradient) in
                    self.layers.iter_mut().zip(&mut steps).zip(gradients)
                {
                    for j in 0..layer.ncols() {
                        for i in 0..layer.nrows() {
                            let next =
                                descent.rate * gradient[(i, j)] + descent.momentum * step[(i, j)];
                            step[(i, j)] = next;
                            layer[(i, j)] -= next;
                        }
                    }
                }
            }
        }
    }
}

/// These rows of a matrix.
pub(super) fn select(x: &Mat<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), x.ncols(), |i, j| x[(rows[i], j)])
}

/// sigmoid(b + x W').
pub(super) fn forward(x: &Mat<f64>, weights: &Mat<f64>) -> Mat<f64> {
    let product = x * weights.subcols(1, weights.ncols() - 1).transpose();
    Mat::from_fn(x.nrows(), weights.nrows(), |i, j| sigmoid(product[(i, j)] + weights[(j, 0)]))
}

pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The slope of the sigmoid where it has this value.
fn slope(value: f64) -> f64 {
    value * (1.0 - value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use broadlearn::features::draw::Purpose;

    fn task() -> (Mat<f64>, Mat<f64>) {
        let x = Mat::from_fn(40, 3, |i, j| f64::from((i * (j + 2) % 7) as u32) / 7.0);
        let y = Mat::from_fn(40, 2, |i, j| if (x[(i, 0)] > 0.5) == (j == 0) { 1.0 } else { 0.0 });
        (x, y)
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let (x, y) = task();
        let network = Perceptron::new(&[3, 5, 4, 2], &mut Stream::new(1, Purpose::Features, 0));
        for (place, gradient) in network.gradient(&x, &y).iter().enumerate() {
            for i in 0..gradient.nrows() {
                for j in 0..gradient.ncols() {
                    let moved = |by: f64| {
                        let mut other = network.clone();
                        other.layers[place][(i, j)] += by;
                        other.loss(&x, &y)
                    };
                    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!(
                        (difference - gradient[(i, j)]).abs() < 1e-8,
                        "layer {place}, {i}, {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn training_lowers_the_loss_and_repeats() {
        let (x, y) = task();
        let trained = || {
            let mut stream = Stream::new(3, Purpose::Features, 0);
            let mut network = Perceptron::new(&[3, 8, 2], &mut stream);
            let before = network.loss(&x, &y);
            let descent = Descent { epochs: 100, batch: 8, rate: 1.0, momentum: 0.5 };
            network.train(&x, &y, descent, &mut stream);
            (before, network)
        };
        let (before, network) = trained();
        assert!(network.loss(&x, &y) < 0.3 * before, "{} after {before}", network.loss(&x, &y));
        assert_eq!(trained().1, network);
    }
}
