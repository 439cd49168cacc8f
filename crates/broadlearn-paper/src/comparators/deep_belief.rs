//! DBN: restricted Boltzmann machines, one upon the other, then trained as a whole.

use super::perceptron::{Descent, Perceptron, forward, select, sigmoid};
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};

/// Trains a deep belief network of these hidden sizes on rows with inputs in [0, 1] and one-hot targets.
pub fn train(
    x: &Mat<f64>,
    y: &Mat<f64>,
    hidden: &[usize],
    unsupervised: Descent,
    supervised: Descent,
    seed: u64,
) -> Perceptron {
    let mut stream = Stream::new(seed, Purpose::Features, 0);
    let sizes: Vec<usize> =
        std::iter::once(x.ncols()).chain(hidden.iter().copied()).chain([y.ncols()]).collect();
    let mut network = Perceptron::new(&sizes, &mut stream);
    let mut input = x.clone();
    for (place, size) in hidden.iter().enumerate() {
        let mut machine = Machine::new(input.ncols(), *size);
        machine.train(&input, unsupervised, &mut stream);
        let weights = machine.as_layer();
        input = forward(&input, &weights);
        network.set_layer(place, weights);
    }
    network.train(x, y, supervised, &mut stream);
    network
}

/// A restricted Boltzmann machine; all zeros at first.
struct Machine {
    /// One row per hidden unit.
    weights: Mat<f64>,
    visible: Vec<f64>,
    hidden: Vec<f64>,
}

impl Machine {
    fn new(visible: usize, hidden: usize) -> Self {
        Self {
            weights: Mat::zeros(hidden, visible),
            visible: vec![0.0; visible],
            hidden: vec![0.0; hidden],
        }
    }

    fn up(&self, v: &Mat<f64>) -> Mat<f64> {
        let product = v * self.weights.transpose();
        Mat::from_fn(v.nrows(), self.hidden.len(), |i, j| sigmoid(product[(i, j)] + self.hidden[j]))
    }

    fn down(&self, h: &Mat<f64>) -> Mat<f64> {
        let product = h * &self.weights;
        Mat::from_fn(h.nrows(), self.visible.len(), |i, j| {
            sigmoid(product[(i, j)] + self.visible[j])
        })
    }

    /// One step of contrastive divergence for each batch: hidden units drawn, visible units drawn from these,
    /// hidden probabilities of those.
    fn train(&mut self, x: &Mat<f64>, descent: Descent, stream: &mut Stream) {
        let mut step = Self::new(self.visible.len(), self.hidden.len());
        for _ in 0..descent.epochs {
            for rows in stream.permutation(x.nrows()).chunks(descent.batch.max(1)) {
                let v1 = select(x, rows);
                let h1 = drawn(self.up(&v1), stream);
                let v2 = drawn(self.down(&h1), stream);
                let h2 = self.up(&v2);
                let rate = descent.rate / rows.len() as f64;
                let (before, after) = (h1.transpose() * &v1, h2.transpose() * &v2);
                let next = |old: f64, slope: f64| descent.momentum * old + rate * slope;
                for j in 0..self.visible.len() {
                    for i in 0..self.hidden.len() {
                        step.weights[(i, j)] =
                            next(step.weights[(i, j)], before[(i, j)] - after[(i, j)]);
                        self.weights[(i, j)] += step.weights[(i, j)];
                    }
                    step.visible[j] = next(step.visible[j], sum(&v1, j) - sum(&v2, j));
                    self.visible[j] += step.visible[j];
                }
                for i in 0..self.hidden.len() {
                    step.hidden[i] = next(step.hidden[i], sum(&h1, i) - sum(&h2, i));
                    self.hidden[i] += step.hidden[i];
                }
            }
        }
    }

    /// Its upward half as a layer, the bias first.
    fn as_layer(&self) -> Mat<f64> {
        Mat::from_fn(self.hidden.len(), self.visible.len() + 1, |i, j| match j {
            0 => self.hidden[i],
            _ => self.weights[(i, j - 1)],
        })
    }
}

fn sum(m: &Mat<f64>, column: usize) -> f64 {
    m.col(column).iter().sum()
}

/// Ones with these probabilities.
fn drawn(mut probabilities: Mat<f64>, stream: &mut Stream) -> Mat<f64> {
    for j in 0..probabilities.ncols() {
        for i in 0..probabilities.nrows() {
            let one = probabilities[(i, j)] > stream.unit();
            probabilities[(i, j)] = if one { 1.0 } else { 0.0 };
        }
    }
    probabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two kinds, complements of each other.
    fn stripes() -> Mat<f64> {
        Mat::from_fn(60, 6, |i, j| if (i + j) % 2 == 0 { 1.0 } else { 0.0 })
    }

    #[test]
    fn a_machine_learns_to_give_back_what_it_sees() {
        let x = stripes();
        let mut stream = Stream::new(2, Purpose::Features, 0);
        let mut machine = Machine::new(6, 4);
        let error = |machine: &Machine| (machine.down(&machine.up(&x)) - &x).squared_norm_l2();
        let before = error(&machine);
        machine.train(
            &x,
            Descent { epochs: 200, batch: 10, rate: 0.5, momentum: 0.5 },
            &mut stream,
        );
        assert!(error(&machine) < 0.2 * before, "{} after {before}", error(&machine));
    }

    #[test]
    fn it_learns_and_repeats() {
        let x = stripes();
        let y = Mat::from_fn(60, 2, |i, j| if i % 2 == j { 1.0 } else { 0.0 });
        let descent = |epochs, rate| Descent { epochs, batch: 20, rate, momentum: 0.5 };
        let trained = |epochs| train(&x, &y, &[8, 5], descent(20, 1.5), descent(epochs, 1.0), 5);
        let (before, after) = (trained(0).loss(&x, &y), trained(150).loss(&x, &y));
        assert!(after < 0.3 * before, "{after} after {before}");
        assert_eq!(trained(3), trained(3));
    }
}
