//! Neuro-fuzzy features: the rules of a Takagi-Sugeno-Kang system (Feng and Chen, "Fuzzy Broad Learning
//! System", IEEE Transactions on Cybernetics 50, 2020).
//!
//! Rule k applies to x by the share exp(-|x - c_k|^2 / 2 s^2) among all rules, and says x a_k + b_k. The
//! centres come from the training rows by k-means, s is the mean distance of rows to the nearest centre, the
//! lines are random.

use super::draw::Stream;
use crate::error::{Error, Result};
use crate::linalg::{parallelism, product, squared_norm};
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// Steps of k-means: the centres need only be somewhere near the rows.
const STEPS: usize = 10;

/// Squared distances are equal up to this share of the mean squared size of a row: rounding errors.
const SAME: f64 = 1e-12;

/// The rules of one system.
#[derive(Clone, Debug, PartialEq)]
pub struct Fuzzy {
    /// One column per rule.
    pub centres: Mat<f64>,
    /// The width s.
    pub width: f64,
    /// The slopes of the lines, one column per rule.
    pub weights: Mat<f64>,
    /// Where they begin.
    pub bias: Vec<f64>,
}

impl Fuzzy {
    /// Rules for these rows, with these sample weights.
    pub(super) fn fit(
        x: MatRef<'_, f64>,
        user: Option<&[f64]>,
        rules: usize,
        stream: &mut Stream,
    ) -> Result<Self> {
        let inputs = x.ncols();
        let user = |row: usize| user.map_or(1.0, |user| user[row]);
        let total: f64 = (0..x.nrows()).map(user).sum();
        // Centres begin at random where the rows are, not at rows: so that weight 2 is two rows.
        let mut centres = Mat::zeros(inputs, rules);
        let moments: Vec<(f64, f64)> = (0..inputs)
            .map(|j| {
                let mean = (0..x.nrows()).map(|i| user(i) * x[(i, j)]).sum::<f64>() / total;
                let square = |i: usize| user(i) * (x[(i, j)] - mean).powi(2);
                (mean, ((0..x.nrows()).map(square).sum::<f64>() / total).sqrt())
            })
            .collect();
        let size: f64 =
            moments.iter().map(|(mean, deviation)| mean.powi(2) + deviation.powi(2)).sum();
        for rule in 0..rules {
            for (j, (mean, deviation)) in moments.iter().enumerate() {
                centres[(j, rule)] = mean + deviation * stream.normal();
            }
        }
        let mut width = 0.0;
        for _ in 0..STEPS {
            let distances = squared_distances(x, centres.as_ref(), parallelism());
            let mut sums = Mat::<f64>::zeros(inputs, rules);
            let (mut weights, mut spread) = (vec![0.0; rules], 0.0);
            for i in 0..x.nrows() {
                // The first of those that are equally near but for rounding errors.
                let least = distances.row(i).iter().copied().fold(f64::INFINITY, f64::min);
                let near = least + SAME * size;
                let nearest = (0..rules).find(|&rule| distances[(i, rule)] <= near).unwrap_or(0);
                spread += user(i) * distances[(i, nearest)];
                weights[nearest] += user(i);
                (0..inputs).for_each(|j| sums[(j, nearest)] += user(i) * x[(i, j)]);
            }
            for (rule, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                (0..inputs).for_each(|j| centres[(j, rule)] = sums[(j, rule)] / weight);
            }
            width = (spread / total).sqrt();
        }
        if !(width.is_finite() && centres.is_all_finite()) {
            return Err(Error::numeric("the rules met inputs that are not finite"));
        }
        // Rows that all lie on centres leave no distance to measure by but rounding errors.
        let width = if width.powi(2) > SAME * size { width } else { 1.0 };
        let weights = Mat::from_fn(inputs, rules, |_, _| stream.symmetric());
        let bias = (0..rules).map(|_| stream.symmetric()).collect();
        Ok(Self { centres, width, weights, bias })
    }

    /// Whether its parts fit together, for a map of `inputs` inputs.
    pub(super) fn is_consistent(&self, inputs: usize) -> bool {
        let shape = (inputs, self.bias.len());
        (self.centres.nrows(), self.centres.ncols()) == shape
            && (self.weights.nrows(), self.weights.ncols()) == shape
            && self.width > 0.0
            && self.width.is_finite()
    }

    /// By how much the rules apply: shares that add up to 1 in every row.
    fn shares(&self, x: MatRef<'_, f64>, par: Par) -> Mat<f64> {
        let mut shares = squared_distances(x, self.centres.as_ref(), par);
        let factor = -0.5 / (self.width * self.width);
        for i in 0..shares.nrows() {
            let least = shares.row(i).iter().copied().fold(f64::INFINITY, f64::min);
            let mut sum = 0.0;
            for rule in 0..shares.ncols() {
                let value = (factor * (shares[(i, rule)] - least)).exp();
                shares[(i, rule)] = value;
                sum += value;
            }
            (0..shares.ncols()).for_each(|rule| shares[(i, rule)] /= sum);
        }
        shares
    }

    /// What the rules say, whether they apply or not.
    fn lines(&self, x: MatRef<'_, f64>, par: Par) -> Mat<f64> {
        let mut lines = Mat::from_fn(x.nrows(), self.bias.len(), |_, rule| self.bias[rule]);
        product(lines.as_mut(), Accum::Add, x, self.weights.as_ref(), par);
        lines
    }

    /// The nodes of the rows of `x`.
    pub(super) fn apply(&self, x: MatRef<'_, f64>, mut nodes: MatMut<'_, f64>, par: Par) {
        let (shares, lines) = (self.shares(x, par), self.lines(x, par));
        for rule in 0..self.bias.len() {
            for i in 0..x.nrows() {
                nodes[(i, rule)] = shares[(i, rule)] * lines[(i, rule)];
            }
        }
    }

    /// Adds to `inputs` the slope along every input of sum_k along_k z_k.
    pub(super) fn hand_on(
        &self,
        x: MatRef<'_, f64>,
        along: MatRef<'_, f64>,
        mut inputs: MatMut<'_, f64>,
    ) {
        let par = parallelism();
        let (shares, lines) = (self.shares(x, par), self.lines(x, par));
        let factor = 1.0 / (self.width * self.width);
        for i in 0..x.nrows() {
            let rules = 0..self.bias.len();
            let mean: f64 =
                rules.clone().map(|k| along[(i, k)] * shares[(i, k)] * lines[(i, k)]).sum();
            for k in rules {
                // A share grows by its own distance from the mean of all.
                let pull = shares[(i, k)] * (along[(i, k)] * lines[(i, k)] - mean) * factor;
                let slope = along[(i, k)] * shares[(i, k)];
                for j in 0..x.ncols() {
                    inputs[(i, j)] +=
                        slope * self.weights[(j, k)] + pull * (self.centres[(j, k)] - x[(i, j)]);
                }
            }
        }
    }
}

/// |x_i - c_k|^2, n x K.
fn squared_distances(x: MatRef<'_, f64>, centres: MatRef<'_, f64>, par: Par) -> Mat<f64> {
    let mut distances = Mat::zeros(x.nrows(), centres.ncols());
    product(distances.as_mut(), Accum::Replace, x, centres, par);
    let centre_sizes: Vec<f64> =
        (0..centres.ncols()).map(|k| squared_norm(centres.subcols(k, 1))).collect();
    for i in 0..x.nrows() {
        let size = squared_norm(x.subrows(i, 1));
        for (k, centre) in centre_sizes.iter().enumerate() {
            distances[(i, k)] = (size - 2.0 * distances[(i, k)] + centre).max(0.0);
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::super::draw::Purpose;
    use super::*;

    /// The distances of rows from centres that are these rows were once taken for a width: 1e-8 or so.
    #[test]
    fn rounding_errors_are_no_width() {
        for seed in 0..50 {
            let mut stream = Stream::new(seed, Purpose::Noise, 0);
            let x = Mat::from_fn(3, 4, |_, _| 5.0 + stream.normal());
            let fuzzy = Fuzzy::fit(x.as_ref(), None, 40, &mut stream).expect("finite inputs");
            assert!(fuzzy.width > 1e-3, "seed {seed}: {}", fuzzy.width);
        }
    }
}
