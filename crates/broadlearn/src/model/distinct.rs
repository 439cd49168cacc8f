//! Equal rows as one.
//!
//! A row of weight 2 is two rows, so equal rows can be learnt as a single one with the sum of their weights. They have to be, because
//! whatever is chosen is judged by rows that a model has not seen: one that is left out while its copy stays has been
//! seen. (300 rows written twice: the choice took them for free of noise, test error 55 to 115, intervals of width 0.)

use super::rows::{Kept, Labelled};
use crate::data::Targets;
use crate::increment::Ledger;
use crate::increment::ledger::fingerprints;
use std::collections::HashMap;

/// Rows without their copies, and what stands on record of all.
pub(super) struct Distinct<'a> {
    rows: Kept<'a>,
    /// Of all rows.
    fingerprints: Vec<u64>,
    copies: Option<Copies>,
}

/// For each of all rows:
struct Copies {
    /// the place of the row that stands for it,
    places: Vec<usize>,
    /// and its share of that row's weight.
    shares: Vec<f64>,
}

impl<'a> Distinct<'a> {
    /// The first of equal rows, inputs and targets, stands for all of them.
    pub(super) fn of(rows: Labelled<'a>) -> Self {
        let fingerprints = fingerprints(rows.x, rows.targets);
        let (mut firsts, mut places) = (Vec::new(), Vec::with_capacity(fingerprints.len()));
        let mut known: HashMap<u64, usize> = HashMap::with_capacity(fingerprints.len());
        for (row, &print) in fingerprints.iter().enumerate() {
            let place = *known.entry(print).or_insert(firsts.len());
            match firsts.get(place) {
                // Fingerprints may agree by chance.
                Some(&first) if are_equal(rows, first, row) => places.push(place),
                _ => {
                    places.push(firsts.len());
                    firsts.push(row);
                }
            }
        }
        if firsts.len() == fingerprints.len() {
            return Self { rows: Kept::All(rows), fingerprints, copies: None };
        }
        let weight = |row: usize| rows.weights.map_or(1.0, |weights| weights[row]);
        let mut sums = vec![0.0; firsts.len()];
        places.iter().enumerate().for_each(|(row, &place)| sums[place] += weight(row));
        let shares =
            places.iter().enumerate().map(|(row, &place)| weight(row) / sums[place]).collect();
        let rows = Kept::select(rows, &firsts).weighing(sums);
        Self { rows, fingerprints, copies: Some(Copies { places, shares }) }
    }

    /// All rows as they are.
    pub(super) fn as_they_are(rows: Labelled<'a>) -> Self {
        let fingerprints = fingerprints(rows.x, rows.targets);
        Self { rows: Kept::All(rows), fingerprints, copies: None }
    }

    /// Those that differ.
    pub(super) fn rows(&self) -> Labelled<'_> {
        self.rows.rows()
    }

    /// The number of all rows.
    pub(super) fn count(&self) -> u64 {
        self.fingerprints.len() as u64
    }

    /// All rows on record, if those that differ have these sample weights.
    pub(super) fn ledger(&self, weights: Vec<f64>) -> Ledger {
        let weights = match &self.copies {
            None => weights,
            Some(Copies { places, shares }) => {
                places.iter().zip(shares).map(|(&place, share)| share * weights[place]).collect()
            }
        };
        let mut ledger = Ledger::default();
        ledger.record(&self.fingerprints, &weights);
        ledger
    }
}

fn are_equal(rows: Labelled<'_>, one: usize, other: usize) -> bool {
    let targets = match rows.targets {
        Targets::Values(values) => values.row(one) == values.row(other),
        Targets::Classes(classes) => classes[one] == classes[other],
    };
    targets && rows.x.row(one) == rows.x.row(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn equal_rows_are_one_and_stay_on_record() {
        let x = Mat::from_fn(5, 2, |i, j| [1.0, 2.0, 1.0, 1.0, 2.0][i] + j as f64);
        let targets = Targets::Classes(vec![0, 1, 0, 1, 1]);
        let weights = [1.0, 2.0, 3.0, 4.0, 6.0];
        let rows = Labelled { x: x.as_ref(), targets: &targets, weights: Some(&weights) };
        let distinct = Distinct::of(rows);
        assert_eq!(distinct.count(), 5);
        assert_eq!(distinct.rows().weights, Some(&[4.0, 8.0, 4.0][..]));
        let first: Vec<f64> = distinct.rows().x.col(0).iter().copied().collect();
        assert_eq!(first, [1.0, 2.0, 1.0]);
        let ledger = distinct.ledger(vec![2.0, 4.0, 1.0]);
        assert_eq!(ledger.weights(), [0.5, 1.0, 1.5, 1.0, 3.0]);
        assert_eq!(ledger.fingerprints(), fingerprints(x.as_ref(), &targets));
    }

    #[test]
    fn rows_that_differ_stay_as_they_are() {
        let x = Mat::from_fn(3, 1, |i, _| i as f64);
        let targets = Targets::Values(Mat::zeros(3, 1));
        let distinct = Distinct::of(Labelled { x: x.as_ref(), targets: &targets, weights: None });
        assert_eq!((distinct.count(), distinct.rows().weights), (3, None));
    }
}
