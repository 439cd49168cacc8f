//! SVM: a support vector machine for two classes, by sequential minimal optimisation with second-order
//! choice of pairs, as LIBSVM does it (Fan, Chen and Lin, JMLR 6, 2005).
//!
//! The crate linfa-svm computes the kernel anew for every regularisation parameter (5.9 s for the 121 settings of one
//! fold, of 27), and brings a second ndarray and some twenty other crates.

use broadlearn::faer::Mat;

/// LIBSVM's stop rule: by so much the two ends of the margin may differ.
const TOLERANCE: f64 = 1e-3;
/// Steps after which a machine is taken as it is: hard margins need some ten thousand.
const MOST_STEPS: usize = 1_000_000;
/// LIBSVM's least curvature, for rows that coincide.
const LEAST_CURVATURE: f64 = 1e-12;

/// A trained machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The multiplier of each training row with the sign of its class.
    pub coefficients: Vec<f64>,
    /// What is added to all outputs.
    pub bias: f64,
}

/// exp(-d / (2 sigma^2)) of squared distances.
pub fn gaussian(squared_distances: &Mat<f64>, sigma: f64) -> Mat<f64> {
    let factor = -0.5 / (sigma * sigma);
    Mat::from_fn(squared_distances.nrows(), squared_distances.ncols(), |i, j| {
        (factor * squared_distances[(i, j)]).exp()
    })
}

impl Machine {
    /// Trains on the kernel of the training rows, classes as signs (1 or -1); multipliers reach up to `c`.
    pub fn train(kernel: &Mat<f64>, signs: &[f64], c: f64) -> Self {
        let count = signs.len();
        let mut alphas = vec![0.0_f64; count];
        // What is left of the targets but for the bias: y - K (alpha y).
        let mut rest = signs.to_vec();
        let mut ends = (1.0, -1.0);
        for _ in 0..MOST_STEPS {
            let may_grow = |t: usize| if signs[t] > 0.0 { alphas[t] < c } else { alphas[t] > 0.0 };
            let may_fall = |t: usize| if signs[t] > 0.0 { alphas[t] > 0.0 } else { alphas[t] < c };
            let first =
                (0..count).filter(|t| may_grow(*t)).max_by(|a, b| rest[*a].total_cmp(&rest[*b]));
            let least = (0..count).filter(|t| may_fall(*t)).map(|t| rest[t]).reduce(f64::min);
            let (Some(i), Some(least)) = (first, least) else { break };
            ends = (rest[i], least);
            if rest[i] - least < TOLERANCE {
                break;
            }
            let column = kernel.col(i);
            let curvature =
                |t: usize| (column[i] + kernel[(t, t)] - 2.0 * column[t]).max(LEAST_CURVATURE);
            let gain = |t: usize| (rest[i] - rest[t]).powi(2) / curvature(t);
            let second = (0..count)
                .filter(|t| may_fall(*t) && rest[*t] < rest[i])
                .map(|t| (t, gain(t)))
                .max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((j, _)) = second else { break };
            // alpha_i y_i grows by the step, alpha_j y_j falls by it, as far as the bounds allow.
            let room_i = if signs[i] > 0.0 { c - alphas[i] } else { alphas[i] };
            let room_j = if signs[j] > 0.0 { alphas[j] } else { c - alphas[j] };
            let step = ((rest[i] - rest[j]) / curvature(j)).min(room_i).min(room_j);
            for (t, change, room) in [(i, step * signs[i], room_i), (j, -step * signs[j], room_j)] {
                let at_bound = if change > 0.0 { c } else { 0.0 };
                alphas[t] = if step == room { at_bound } else { alphas[t] + change };
            }
            let other = kernel.col(j);
            for (t, rest) in rest.iter_mut().enumerate() {
                *rest -= step * (column[t] - other[t]);
            }
        }
        let coefficients = alphas.iter().zip(signs).map(|(alpha, sign)| alpha * sign).collect();
        Self { coefficients, bias: 0.5 * (ends.0 + ends.1) }
    }

    /// The outputs for rows of which the kernel with the training rows is known, one row each.
    pub fn outputs(&self, kernel: &Mat<f64>) -> Vec<f64> {
        let mut outputs = vec![self.bias; kernel.nrows()];
        for (j, coefficient) in self.coefficients.iter().enumerate().filter(|(_, c)| **c != 0.0) {
            for (output, value) in outputs.iter_mut().zip(kernel.col(j).iter()) {
                *output += coefficient * value;
            }
        }
        outputs
    }
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::squared_distances;
    use super::*;
    use broadlearn::features::draw::{Purpose, Stream};
    use std::f64::consts::PI;

    /// Two noisy circles, one in the other.
    fn circles(count: usize, noise: f64, seed: u64) -> (Mat<f64>, Vec<f64>) {
        let mut stream = Stream::new(seed, Purpose::Noise, 0);
        let signs: Vec<f64> = (0..count).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let mut x = Mat::zeros(count, 2);
        for i in 0..count {
            let angle = 2.0 * PI * stream.unit();
            let radius = if signs[i] > 0.0 { 1.0 } else { 2.0 };
            x[(i, 0)] = radius * angle.cos() + noise * stream.normal();
            x[(i, 1)] = radius * angle.sin() + noise * stream.normal();
        }
        (x, signs)
    }

    #[test]
    fn it_separates_noisy_circles() {
        let (x, signs) = circles(120, 0.15, 1);
        let (other, truth) = circles(200, 0.15, 2);
        let machine = Machine::train(&gaussian(&squared_distances(&x, &x), 0.5), &signs, 10.0);
        let outputs = machine.outputs(&gaussian(&squared_distances(&other, &x), 0.5));
        let right = outputs.iter().zip(&truth).filter(|(a, b)| **a * **b > 0.0).count();
        assert!(right >= 196, "{right} of 200");
    }

    #[test]
    fn multipliers_are_feasible_and_primal_meets_dual() {
        let (x, signs) = circles(80, 0.5, 3);
        let distances = squared_distances(&x, &x);
        for sigma in [0.1, 0.5, 2.0] {
            let kernel = gaussian(&distances, sigma);
            for c in [1e-5, 0.1, 10.0, 1e3] {
                let machine = Machine::train(&kernel, &signs, c);
                let alphas: Vec<f64> =
                    machine.coefficients.iter().zip(&signs).map(|(a, sign)| a * sign).collect();
                assert!(alphas.iter().all(|alpha| (0.0..=c).contains(alpha)));
                let balance: f64 = machine.coefficients.iter().sum();
                assert!(balance.abs() < 1e-9 * c * 80.0, "{balance}");
                let outputs = machine.outputs(&kernel);
                let plain = outputs.iter().map(|output| output - machine.bias);
                let square: f64 = plain.zip(&machine.coefficients).map(|(f, a)| f * a).sum();
                let losses: f64 =
                    outputs.iter().zip(&signs).map(|(f, sign)| (1.0 - f * sign).max(0.0)).sum();
                let primal = 0.5 * square + c * losses;
                let dual = alphas.iter().sum::<f64>() - 0.5 * square;
                // No pair is off by more than the tolerance, so the gap is at most that for every row.
                assert!(primal >= dual - 1e-9 * primal && primal - dual < 80.0 * c * TOLERANCE);
            }
        }
    }
}
