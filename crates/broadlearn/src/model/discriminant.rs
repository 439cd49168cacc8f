//! Which class the outputs speak for, where that is not the class with the largest one.
//!
//! Least squares learns every class by itself. Of classes that lie in a row, those in the middle hardly ever have the largest
//! output: they are masked (Hastie, Tibshirani and Friedman 2009, 4.2). But all outputs together still tell where a row lies.
//! So multinomial regression on the outputs of left-out rows says how likely each class is, where that finds clearly
//! more of the given classes in rows that it has not seen. Some of these may be wrong: a row is taken to have been given any
//! class at all with a probability that is estimated with the rest.
//!
//! Rows are left out in folds. The output of a class for a row that alone is left out is lower if the row was given this class, for then
//! the others have one row less of it: where outputs tell little, a regression on them would learn just that.

use crate::linalg::{on_threads, parallelism, product};
use crate::preprocess::statistics::mean_and_deviation;
use crate::solve::factor::Factor;
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use std::ops::RangeInclusive;

/// Multinomial regression on the outputs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Discriminant {
    /// Of every output, and of 1, by class: class j has the probability exp(l_j) / sum exp(l), l = [f, 1] times this.
    pub(super) coefficients: Mat<f64>,
}

/// Two classes do not mask each other, and with more than these a step takes long: 2e8 multiplications for 5000 rows.
const CLASSES: RangeInclusive<usize> = 3..=34;
/// With fewer rows for a coefficient the regression knows the rows by heart.
const ROWS_PER_COEFFICIENT: usize = 2;
const FOLDS: usize = 10;
/// By how many standard errors more classes have to be found.
const CLEARLY: f64 = 2.5;
const FEWEST_MORE: f64 = 3.0;
/// The ridge of coefficients, in units of outputs with deviation 1.
const RIDGE: f64 = 1.0;
/// The share of classes given by chance with which the regression begins, and between which it must remain.
const BY_CHANCE: f64 = 0.05;
const BY_CHANCE_WITHIN: [f64; 2] = [1e-3, 0.9];
const MOST_STEPS: usize = 50;
/// Of the objective for a row: steps that gain less are the last.
const SMALL_GAIN: f64 = 1e-4;
/// A step is not shortened below this part.
const SHORTEST: f64 = 1e-3;

impl Discriminant {
    /// Whether it finds clearly more classes in rows that it has seen: if not, it need not be tried on others. From the outputs for rows
    /// that were left out, the classes that they were given, and their weights, 1 on average.
    pub(super) fn may_be_better(outputs: MatRef<'_, f64>, given: &[u32], weights: &[f64]) -> bool {
        let (n, classes) = outputs.shape();
        let enough = n >= ROWS_PER_COEFFICIENT * classes * (classes + 1);
        // A class of which there is no row would never be found again.
        let all = || (0..classes).all(|class| given.contains(&(class as u32)));
        if !(CLASSES.contains(&classes) && enough && all()) {
            return false;
        }
        let regression = Regression::new(outputs, given);
        regression.coefficients(weights).is_some_and(|coefficients| {
            let found = regression.found(&coefficients);
            finds_clearly_more(&found, &largest(outputs), given, weights)
        })
    }

    /// From the outputs for rows that were left out with all rows of their fold; and the probabilities that the other folds give each
    /// row. `None` where the largest output is about as good.
    pub(super) fn where_better(
        outputs: MatRef<'_, f64>,
        given: &[u32],
        weights: &[f64],
        folds: &[usize],
    ) -> Option<(Self, Mat<f64>)> {
        let regression = Regression::new(outputs, given);
        let mut unseen = outputs.to_owned();
        for fold in 0..FOLDS {
            let other = |(weight, own): (&f64, &usize)| if *own == fold { 0.0 } else { *weight };
            let others: Vec<f64> = weights.iter().zip(folds).map(other).collect();
            let by_others = regression.discriminant(&regression.coefficients(&others)?);
            for (row, _) in folds.iter().enumerate().filter(|(_, own)| **own == fold) {
                by_others.apply(unseen.as_mut().subrows_mut(row, 1));
            }
        }
        if !finds_clearly_more(&largest(unseen.as_ref()), &largest(outputs), given, weights) {
            return None;
        }
        Some((regression.discriminant(&regression.coefficients(weights)?), unseen))
    }

    /// Outputs become probabilities.
    pub(super) fn apply(&self, outputs: MatMut<'_, f64>) {
        let mut own = vec![0.0; outputs.ncols()];
        let mut probabilities = own.clone();
        for row in outputs.row_iter_mut() {
            own.iter_mut().zip(row.as_ref().iter()).for_each(|(own, output)| *own = *output);
            self.apply_to_row(&own, &mut probabilities);
            row.iter_mut().zip(&probabilities).for_each(|(into, value)| *into = *value);
        }
    }

    /// The same for one row.
    pub(super) fn apply_to_row(&self, outputs: &[f64], probabilities: &mut [f64]) {
        for (class, into) in probabilities.iter_mut().enumerate() {
            let column = self.coefficients.col(class);
            let sum = outputs.iter().zip(column.iter()).map(|(output, c)| output * c).sum::<f64>();
            *into = sum + column[outputs.len()];
        }
        shares(probabilities);
    }
}

/// Logits become shares of their exponentials.
fn shares(logits: &mut [f64]) {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for logit in &mut *logits {
        *logit = (*logit - largest).exp();
        sum += *logit;
    }
    logits.iter_mut().for_each(|share| *share /= sum);
}

/// The folds of rows, with the same share of every class in each.
pub(super) fn folds(given: &[u32]) -> Vec<usize> {
    let mut seen = vec![0; given.iter().max().map_or(0, |most| *most as usize + 1)];
    let fold = |class: &u32| {
        let seen = &mut seen[*class as usize];
        *seen += 1;
        (*seen - 1) % FOLDS
    };
    given.iter().map(fold).collect()
}

fn largest(outputs: MatRef<'_, f64>) -> Vec<usize> {
    (0..outputs.nrows()).map(|row| first_largest(outputs, row)).collect()
}

fn first_largest(values: MatRef<'_, f64>, row: usize) -> usize {
    (1..values.ncols()).fold(0, |first, other| {
        if values[(row, other)] > values[(row, first)] { other } else { first }
    })
}

/// Whether the one finds the given class in more rows than the other, by some standard errors.
fn finds_clearly_more(one: &[usize], other: &[usize], given: &[u32], weights: &[f64]) -> bool {
    let (mut more, mut square) = (0.0, 0.0);
    for (((one, other), given), weight) in one.iter().zip(other).zip(given).zip(weights) {
        let right = |found: &usize| if *found == *given as usize { *weight } else { 0.0 };
        let difference = right(one) - right(other);
        more += difference;
        square += difference * difference;
    }
    more >= FEWEST_MORE.max(CLEARLY * square.sqrt())
}

/// Multinomial regression on outputs with mean 0 and deviation 1, and on 1.
struct Regression<'a> {
    x: Mat<f64>,
    given: &'a [u32],
    centres: Vec<f64>,
    units: Vec<f64>,
}

impl<'a> Regression<'a> {
    fn new(outputs: MatRef<'_, f64>, given: &'a [u32]) -> Self {
        let (n, classes) = outputs.shape();
        let (mut centres, mut units) = (Vec::new(), Vec::new());
        for column in outputs.col_iter() {
            let values: Vec<f64> = column.iter().copied().collect();
            let (centre, unit) = mean_and_deviation(&values, None);
            centres.push(centre);
            units.push(if unit > 1e-12 { unit } else { 1.0 });
        }
        let x = Mat::from_fn(n, classes + 1, |row, j| match j {
            j if j < classes => (outputs[(row, j)] - centres[j]) / units[j],
            _ => 1.0,
        });
        Self { x, given, centres, units }
    }

    fn classes(&self) -> usize {
        self.centres.len()
    }

    /// Those with the largest penalised likelihood of what rows with these weights were given. Every step is a Newton step in which
    /// the classes do not see each other, with twice their curvature: diag p - p p' <= 2 diag p (1 - p). So it leads
    /// uphill, and if it leads too far, it is shortened.
    fn coefficients(&self, weights: &[f64]) -> Option<Mat<f64>> {
        let rows: f64 = weights.iter().sum();
        let mut coefficients = Mat::zeros(self.x.ncols(), self.classes());
        let mut by_chance = BY_CHANCE;
        let mut at = self.likelihood(&coefficients, by_chance, weights);
        for _ in 0..MOST_STEPS {
            let direction = self.uphill(&coefficients, &at, weights)?;
            let mut length = 1.0;
            let (next, reached) = loop {
                let next = &coefficients + faer::Scale(length) * &direction;
                let reached = self.likelihood(&next, by_chance, weights);
                if reached.objective > at.objective {
                    break (next, reached);
                }
                length *= 0.5;
                if length < SHORTEST {
                    return Some(coefficients);
                }
            };
            let gain = reached.objective - at.objective;
            coefficients = next;
            // The next step of expectation and maximisation.
            let right: f64 = reached.right.iter().zip(weights).map(|(r, w)| r * w).sum();
            let [least, most] = BY_CHANCE_WITHIN;
            by_chance = (1.0 - right / rows).clamp(least, most);
            at = self.likelihood(&coefficients, by_chance, weights);
            if gain <= SMALL_GAIN * rows {
                break;
            }
        }
        Some(coefficients)
    }

    fn likelihood(&self, coefficients: &Mat<f64>, by_chance: f64, weights: &[f64]) -> Likelihood {
        let (n, classes) = (self.x.nrows(), self.classes());
        let mut probabilities = Mat::zeros(n, classes);
        let (x, into) = (self.x.as_ref(), probabilities.as_mut());
        product(into, Accum::Replace, x, coefficients.as_ref(), parallelism());
        let (mut right, mut objective) = (Vec::with_capacity(n), 0.0);
        let mut row = vec![0.0; classes];
        for (i, (&given, weight)) in self.given.iter().zip(weights).enumerate() {
            row.iter_mut().zip(probabilities.row(i).iter()).for_each(|(to, from)| *to = *from);
            shares(&mut row);
            let own = (1.0 - by_chance) * row[given as usize];
            let all = own + by_chance / classes as f64;
            right.push(own / all);
            objective += weight * all.ln();
            for (into, share) in probabilities.row_mut(i).iter_mut().zip(&row) {
                *into = *share;
            }
        }
        objective -= 0.5 * RIDGE * coefficients.squared_norm_l2();
        Likelihood { probabilities, right, objective }
    }

    fn uphill(
        &self,
        coefficients: &Mat<f64>,
        at: &Likelihood,
        weights: &[f64],
    ) -> Option<Mat<f64>> {
        let (n, size, classes) = (self.x.nrows(), self.x.ncols(), self.classes());
        let believed: Vec<f64> = at.right.iter().zip(weights).map(|(r, w)| r * w).collect();
        let flops = (n * size * size * classes) as f64;
        let columns = on_threads((0..classes).collect(), flops, |class| {
            let share = |row: usize| at.probabilities[(row, class)];
            let missed = |row: usize| {
                let given = f64::from(u8::from(self.given[row] as usize == class));
                given - share(row)
            };
            let curvature: Vec<f64> =
                (0..n).map(|row| 2.0 * believed[row] * share(row) * (1.0 - share(row))).collect();
            let none = Mat::zeros(n, 0);
            let mut equations = NormalEquations::empty(size, 0);
            equations.add(self.x.as_ref(), none.as_ref(), Some(&curvature), Par::Seq);
            let missed = Mat::from_fn(n, 1, |row, _| believed[row] * missed(row));
            let mut gradient = Mat::zeros(size, 1);
            let (x, missed) = (self.x.transpose(), missed.as_ref());
            product(gradient.as_mut(), Accum::Replace, x, missed, Par::Seq);
            gradient -= faer::Scale(RIDGE) * coefficients.subcols(class, 1);
            let factor = Factor::new(equations.into_parts().0, RIDGE, Par::Seq).ok()?;
            Some(factor.solve(gradient.as_ref(), Par::Seq))
        });
        let mut direction = Mat::zeros(size, classes);
        for (class, column) in columns.into_iter().enumerate() {
            direction.subcols_mut(class, 1).copy_from(column?);
        }
        Some(direction)
    }

    /// The likeliest class of every row.
    fn found(&self, coefficients: &Mat<f64>) -> Vec<usize> {
        let mut logits = Mat::zeros(self.x.nrows(), self.classes());
        let (x, into) = (self.x.as_ref(), logits.as_mut());
        product(into, Accum::Replace, x, coefficients.as_ref(), parallelism());
        largest(logits.as_ref())
    }

    /// For the outputs as they are.
    fn discriminant(&self, coefficients: &Mat<f64>) -> Discriminant {
        let classes = self.classes();
        let coefficients = Mat::from_fn(classes + 1, classes, |j, class| match j {
            j if j < classes => coefficients[(j, class)] / self.units[j],
            _ => {
                let shift = |j: usize| coefficients[(j, class)] * self.centres[j] / self.units[j];
                coefficients[(classes, class)] - (0..classes).map(shift).sum::<f64>()
            }
        });
        Discriminant { coefficients }
    }
}

/// Of what rows were given.
struct Likelihood {
    /// Of every class, by row.
    probabilities: Mat<f64>,
    /// By row, the probability that the class was not given by chance.
    right: Vec<f64>,
    /// The penalised logarithm.
    objective: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    /// Classes that lie in a row, and what a line for each of them makes of a row: least squares on a position and 1. Some are given by
    /// chance.
    fn in_a_row(seed: u64, rows: usize, by_chance: f64) -> (Mat<f64>, Vec<u32>, Vec<u32>) {
        const CLASSES: usize = 7;
        let mut stream = Stream::new(seed, Purpose::Noise, 0);
        let positions: Vec<f64> = (0..rows).map(|_| stream.unit()).collect();
        let right: Vec<u32> =
            positions.iter().map(|position| (position * CLASSES as f64) as u32).collect();
        let given: Vec<u32> = right
            .iter()
            .map(|class| match stream.unit() < by_chance {
                true => stream.below(CLASSES) as u32,
                false => *class,
            })
            .collect();
        let x = Mat::from_fn(rows, 2, |i, j| if j == 0 { positions[i] } else { 1.0 });
        let y = Mat::from_fn(rows, CLASSES, |i, j| f64::from(u8::from(given[i] as usize == j)));
        let equations = NormalEquations::of(x.as_ref(), y.as_ref(), None);
        let w = crate::solve::ridge(&equations, 1e-6).expect("positive definite");
        (x * w, given, right)
    }

    fn share_of(found: impl Fn(usize) -> usize, right: &[u32]) -> f64 {
        let hits = right.iter().enumerate().filter(|(row, class)| found(*row) == **class as usize);
        hits.count() as f64 / right.len() as f64
    }

    #[test]
    fn classes_in_a_row_are_told_apart_although_many_are_given_by_chance() {
        for by_chance in [0.0, 0.3] {
            let (outputs, given, right) = in_a_row(1, 1500, by_chance);
            let largest = share_of(|row| first_largest(outputs.as_ref(), row), &right);
            assert!(largest < 0.5, "nothing is masked: {largest}");
            let weights = vec![1.0; given.len()];
            assert!(Discriminant::may_be_better(outputs.as_ref(), &given, &weights));
            let found =
                Discriminant::where_better(outputs.as_ref(), &given, &weights, &folds(&given));
            let (found, _) = found.expect("a discriminant");
            let mut probabilities = outputs;
            found.apply(probabilities.as_mut());
            let told = share_of(|row| first_largest(probabilities.as_ref(), row), &right);
            assert!(told > 0.9, "{by_chance}: {told}");
            let sums = probabilities.row_iter().map(|row| row.iter().sum::<f64>());
            assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-12));
        }
    }

    #[test]
    fn the_largest_output_is_kept_where_it_is_as_good() {
        let kept = (0..100).filter(|&seed| {
            let mut stream = Stream::new(seed, Purpose::Noise, 1);
            let given: Vec<u32> = (0..300).map(|_| stream.below(4) as u32).collect();
            let outputs = Mat::from_fn(300, 4, |i, j| {
                f64::from(u8::from(given[i] as usize == j)) + 0.5 * stream.normal()
            });
            Discriminant::where_better(outputs.as_ref(), &given, &[1.0; 300], &folds(&given))
                .is_none()
        });
        assert!(kept.count() >= 98);
    }

    #[test]
    fn a_row_of_weight_two_is_two_rows() {
        let (outputs, given, _) = in_a_row(2, 400, 0.1);
        let regression = Regression::new(outputs.as_ref(), &given);
        let twice = regression.coefficients(&[2.0; 400]).expect("positive definite");
        let order: Vec<usize> = (0..400).chain(0..400).collect();
        let (copies, given_twice): (Mat<f64>, Vec<u32>) = (
            crate::linalg::select_rows(outputs.as_ref(), &order),
            order.iter().map(|&row| given[row]).collect(),
        );
        let copied = Regression::new(copies.as_ref(), &given_twice);
        let copied = copied.coefficients(&[1.0; 800]).expect("positive definite");
        assert!((twice - copied).norm_max() < 1e-8);
    }
}
