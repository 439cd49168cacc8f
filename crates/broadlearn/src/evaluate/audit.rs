//! Which rows are suspicious, and how many are wrong in all.
//!
//! Rows are judged by their exact leave-one-out residuals from a robust fit: no row speaks for
//! itself, and wrong rows have hardly any weight in the verdict on others.

use super::resolution::Resolution;
use crate::data::Targets;
use crate::error::{Error, Result};
use crate::model::LeftOut;
use crate::preprocess::statistics::{BEYOND, trustworthy_spread};

/// A verdict on every row of a table.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The numbers of the rows, most suspicious first.
    pub order: Vec<usize>,
    /// By row: the residual without the row itself, in units of the spread of trustworthy rows like it
    /// (regression), or of the 0/1 outputs (classification).
    pub scores: Vec<f64>,
    /// By row: whether its target is taken to be wrong.
    pub suspects: Vec<bool>,
    /// The share of rows with a wrong target.
    pub contamination: Share,
}

/// A share with an interval that should hold it nine times out of ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The best guess.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The least spread that residuals are taken to have, in spreads of the target: what is closer agrees. Tables that follow an
/// exact rule leave residuals of rounding errors and ridges, of which some are always the largest.
const LEAST_SPREAD: f64 = 1e-6;

impl Audit {
    /// Judges rows by what a model says of them without having learnt them.
    ///
    /// # Errors
    /// If there are no rows, or other targets than rows.
    pub fn new(left_out: &LeftOut, targets: &Targets) -> Result<Self> {
        let mut gathered = Auditor::default();
        gathered.add(left_out, targets)?;
        gathered.finish()
    }
}

/// Gathers what an audit needs to know of rows that pass by in blocks: a distance for each, for classes a lead
/// too, and the outputs for rows whose given class is not the first.
#[derive(Clone, Debug, Default)]
pub struct Auditor {
    distances: Vec<f64>,
    spreads: Vec<f64>,
    resolution: Resolution,
    classes: Option<Classes>,
}

impl Auditor {
    /// Takes note of the next rows.
    ///
    /// # Errors
    /// If there are other targets than rows.
    pub fn add(&mut self, left_out: &LeftOut, targets: &Targets) -> Result<()> {
        let n = left_out.distances.len();
        if targets.len() != n {
            return Err(Error::data(format!("{} targets for {n} rows", targets.len()))
                .expected("one target for each of the rows"));
        }
        if let Targets::Classes(given) = targets {
            self.classes.get_or_insert_default().add(left_out, given);
        }
        self.resolution.add(left_out, targets);
        self.distances.extend(&left_out.distances);
        self.spreads.extend(&left_out.spreads);
        Ok(())
    }

    /// The verdict.
    ///
    /// # Errors
    /// If there were no rows.
    pub fn finish(self) -> Result<Audit> {
        let n = self.distances.len();
        if n == 0 {
            return Err(Error::data("no rows").expected("at least one row"));
        }
        let (scores, mut suspects, contamination) = match self.classes {
            None => {
                let least = self.resolution.half_unit().max(LEAST_SPREAD);
                residuals(self.distances, &self.spreads, least)
            }
            Some(classes) => (self.distances, classes.suspects(), classes.share_of_wrong()),
        };
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        // No more rows are suspected than may be wrong: classes that overlap, or that the model tells badly apart, leave many
        // rows in the wrong place.
        let most = (contamination.high * n as f64).ceil() as usize;
        let suspected: Vec<usize> = order.iter().copied().filter(|&row| suspects[row]).collect();
        suspected.iter().skip(most).for_each(|&row| suspects[row] = false);
        Ok(Audit { order, scores, suspects, contamination })
    }
}

/// What residuals tell, whose spread is in these proportions and at least so large.
fn residuals(distances: Vec<f64>, spreads: &[f64], least: f64) -> (Vec<f64>, Vec<bool>, Share) {
    let n = distances.len() as f64;
    let alike: Vec<f64> = distances.iter().zip(spreads).map(|(d, spread)| d / spread).collect();
    let usual = trustworthy_spread(&alike);
    let mut scores = distances;
    for (distance, spread) in scores.iter_mut().zip(spreads) {
        *distance /= (usual * spread).max(least);
    }
    let beyond = |cut: f64| scores.iter().filter(|&&score| score > cut).count() as f64;
    let suspects = scores.iter().map(|&score| score > BEYOND).collect();
    // Errors may be too small to be seen. If their sizes spread evenly, as many hide below the cut as
    // lie in a band of the same width above it.
    let (seen, hidden) = (beyond(BEYOND), beyond(BEYOND) - beyond(2.0 * BEYOND));
    // And if all errors are small, most of them hide.
    let largest = scores.iter().copied().fold(0.0, f64::max);
    let visible = (1.0 - BEYOND / largest.max(BEYOND)).max(0.2);
    let share = Share {
        estimate: ((seen + 0.5 * hidden) / n).min(1.0),
        low: wilson(beyond(5.0).min(seen), n, -1.0),
        high: wilson(((seen + hidden) / visible).min(n), n, 1.0),
    };
    (scores, suspects, share)
}

/// What is needed of rows with classes.
#[derive(Clone, Debug, Default)]
struct Classes {
    /// By class: the outputs for it of the rows that were given it, added up, and their number.
    sums: Vec<f64>,
    rows: Vec<f64>,
    /// By row: by how much the first output leads the second.
    leads: Vec<f64>,
    /// Rows whose given class is not the first: their numbers, classes and outputs, all outputs of a row together.
    disputed: Vec<usize>,
    given: Vec<u32>,
    outputs: Vec<f64>,
}

impl Classes {
    fn add(&mut self, left_out: &LeftOut, given: &[u32]) {
        let outputs = left_out.predictions.values();
        let found = left_out.predictions.classes();
        let count = outputs.ncols();
        self.sums.resize(count, 0.0);
        self.rows.resize(count, 0.0);
        for (row, &class) in given.iter().enumerate() {
            self.sums[class as usize] += outputs[(row, class as usize)].clamp(0.0, 1.0);
            self.rows[class as usize] += 1.0;
            if found[row] != class {
                self.disputed.push(self.leads.len());
                self.given.push(class);
                self.outputs.extend(outputs.row(row).iter());
            }
            let first = found[row] as usize;
            let others = (0..count).filter(|&c| c != first);
            let second = others.map(|c| outputs[(row, c)]).fold(f64::NEG_INFINITY, f64::max);
            self.leads.push(outputs[(row, first)] - second);
        }
    }

    /// A row is a suspect if its output for another class reaches the average of the rows that were given
    /// that class: the rule of confident learning (Northcutt, Jiang and Chuang 2021), on leave-one-out
    /// outputs.
    fn suspects(&self) -> Vec<bool> {
        let count = self.sums.len();
        let thresholds: Vec<f64> =
            self.sums.iter().zip(&self.rows).map(|(s, n)| s / f64::max(*n, 1.0)).collect();
        let mut suspects = vec![false; self.leads.len()];
        for (place, &row) in self.disputed.iter().enumerate() {
            let outputs = &self.outputs[place * count..][..count];
            let confident = (0..count)
                .filter(|&c| self.rows[c] > 0.0 && outputs[c] >= thresholds[c])
                .max_by(|&a, &b| outputs[a].total_cmp(&outputs[b]));
            suspects[row] = confident.is_some_and(|found| found != self.given[place] as usize);
        }
        suspects
    }

    /// Among rows on which the model is decided, the share that it decides against. How decided it is, by
    /// the lead of its first class over its second, does not depend on the class that a row was given,
    /// for it has not learnt the row: wrong rows are as frequent there as anywhere. Undecided rows are
    /// hard, not wrong.
    fn share_of_wrong(&self) -> Share {
        let mut sorted = self.leads.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let decided = |level: f64| {
            let cut = sorted[((sorted.len() - 1) as f64 * level) as usize];
            let all = self.leads.iter().filter(|lead| **lead >= cut).count();
            let against = self.disputed.iter().filter(|&&row| self.leads[row] >= cut).count();
            (against as f64, all as f64)
        };
        let ((a, n), (b, m)) = (decided(0.75), decided(0.5));
        Share {
            estimate: a / n,
            low: wilson(a, n, -1.0).min(wilson(b, m, -1.0)),
            high: wilson(a, n, 1.0).max(wilson(b, m, 1.0)),
        }
    }
}

/// An end of Wilson's interval of 95 % confidence for a share of `count` among `n`.
fn wilson(count: f64, n: f64, side: f64) -> f64 {
    const Z: f64 = 1.96;
    let p = count / n;
    let centre = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).max(0.0).sqrt();
    ((centre + side * half) / (1.0 + Z * Z / n)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilsons_interval_is_the_textbook_one() {
        // Newcombe 1998, table I: 81 of 263, and 0 of 20.
        assert!((wilson(81.0, 263.0, -1.0) - 0.2553).abs() < 5e-5);
        assert!((wilson(81.0, 263.0, 1.0) - 0.3662).abs() < 5e-5);
        assert!((wilson(0.0, 20.0, -1.0)).abs() < 1e-12);
        assert!((wilson(0.0, 20.0, 1.0) - 0.1611).abs() < 5e-5);
    }

    #[test]
    fn the_spread_does_not_see_the_wrong_rows() {
        // The quantiles of |z| for 700 normal residuals; 300 far away.
        let mut distances: Vec<f64> =
            (0..700).map(|i| half_normal((f64::from(i) + 0.5) / 700.0)).collect();
        distances.extend((0..300).map(|i| 20.0 + f64::from(i)));
        assert!((trustworthy_spread(&distances) - 1.0).abs() < 0.02);
        let (_, suspects, share) = residuals(distances, &[1.0; 1000], LEAST_SPREAD);
        assert_eq!(suspects.iter().filter(|suspect| **suspect).count(), 300);
        assert!(share.low < 0.3 && 0.3 <= share.estimate && share.estimate < share.high);
    }

    #[test]
    fn rounding_errors_are_no_suspects() {
        let mut distances: Vec<f64> = (0..200).map(|i| 1e-9 * f64::from(i % 7)).collect();
        distances[3] = 4e-8;
        let (_, suspects, share) = residuals(distances.clone(), &[1.0; 200], LEAST_SPREAD);
        assert!(suspects.iter().all(|suspect| !suspect));
        assert_eq!((share.estimate, share.low), (0.0, 0.0));
        distances[3] = 1e-3;
        let (_, suspects, _) = residuals(distances, &[1.0; 200], LEAST_SPREAD);
        assert_eq!(suspects.iter().position(|suspect| *suspect), Some(3));
    }

    #[test]
    fn no_more_rows_are_suspected_than_may_be_wrong() {
        // 900 rows on which the model is decided and right, and 100 hard ones of which it would give 50 to the other class.
        let mut classes = Classes {
            sums: vec![450.0 * 0.9 + 50.0 * 0.48; 2],
            rows: vec![500.0; 2],
            leads: vec![0.8; 900],
            ..Classes::default()
        };
        classes.leads.extend([0.05; 100]);
        for row in 0..50 {
            classes.disputed.push(950 + row);
            classes.given.push(0);
            classes.outputs.extend([0.0, 0.9 + 0.001 * row as f64]);
        }
        assert_eq!(classes.suspects().iter().filter(|suspect| **suspect).count(), 50);
        let distances = (0..1000).map(|row| f64::from(row) / 1000.0).collect();
        let auditor = Auditor { distances, classes: Some(classes), ..Auditor::default() };
        let audit = auditor.finish().expect("rows");
        let most = (audit.contamination.high * 1000.0).ceil() as usize;
        assert!((1..20).contains(&most), "{most}");
        // The most suspicious ones.
        let expected: Vec<usize> = (1000 - most..1000).rev().collect();
        let found: Vec<usize> =
            audit.order.iter().copied().filter(|&row| audit.suspects[row]).collect();
        assert_eq!(found, expected);
    }

    /// The quantile of |z| for a standard normal z, by bisection of its series.
    fn half_normal(p: f64) -> f64 {
        let cdf = |x: f64| {
            let (mut term, mut sum) = (x, x);
            for k in 1..200 {
                term *= x * x / f64::from(2 * k + 1);
                sum += term;
            }
            2.0 * sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
        };
        let (mut low, mut high) = (0.0, 6.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if cdf(middle) < p { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}
