//! SAE: layers that were first taught to give back their inputs, one upon the other, then trained as a
//! whole.

use super::perceptron::{Descent, Perceptron, forward};
use broadlearn::faer::Mat;
use broadlearn::features::draw::{Purpose, Stream};

/// Trains a stacked autoencoder of these hidden sizes on rows with inputs in [0, 1] and one-hot targets.
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
        let mut autoencoder = Perceptron::new(&[input.ncols(), *size, input.ncols()], &mut stream);
        autoencoder.train(&input, &input, unsupervised, &mut stream);
        let weights = autoencoder.layer(0).clone();
        input = forward(&input, &weights);
        network.set_layer(place, weights);
    }
    network.train(x, y, supervised, &mut stream);
    network
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns_and_repeats() {
        let x = Mat::from_fn(60, 4, |i, j| f64::from((i * (j + 3) % 11) as u32) / 10.0);
        let y = Mat::from_fn(60, 2, |i, j| if (x[(i, 1)] > 0.5) == (j == 0) { 1.0 } else { 0.0 });
        let descent = |epochs, rate| Descent { epochs, batch: 20, rate, momentum: 0.5 };
        let trained = |epochs| train(&x, &y, &[10, 6], descent(20, 1.5), descent(epochs, 1.0), 5);
        let (before, after) = (trained(0).loss(&x, &y), trained(150).loss(&x, &y));
        assert!(after < 0.5 * before, "{after} after {before}");
        assert_eq!(trained(3), trained(3));
    }
}
