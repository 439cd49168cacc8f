//! Which rows a model has learnt, and with which weight.
//!
//! A row that is to be forgotten must leave with exactly the weight that it came with, and under a
//! robust loss that weight cannot be found out later: it came from the residual of another
//! W. So every row leaves 16 bytes: a fingerprint of its numbers and its weight.

use crate::data::Targets;
use faer::MatRef;
use std::collections::HashMap;
use std::ops::Range;

/// The rows that a model has learnt, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    fingerprints: Vec<u64>,
    weights: Vec<f64>,
    dropped: u64,
}

impl Ledger {
    /// A ledger from its parts; `None` unless there is one weight for each row.
    pub(crate) fn from_parts(
        fingerprints: Vec<u64>,
        weights: Vec<f64>,
        dropped: u64,
    ) -> Option<Self> {
        let fits =
            fingerprints.len() == weights.len() && weights.iter().all(|weight| *weight >= 0.0);
        fits.then_some(Self { fingerprints, weights, dropped })
    }

    /// The number of rows that are on record.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether no row is on record.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The fingerprints of the rows.
    pub fn fingerprints(&self) -> &[u64] {
        &self.fingerprints
    }

    /// The sample weights that the rows have in R and P, the user's multiplied in.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The number of learnt rows that are no longer on record.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn record(&mut self, fingerprints: &[u64], weights: &[f64]) {
        self.fingerprints.extend_from_slice(fingerprints);
        self.weights.extend_from_slice(weights);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.record(&other.fingerprints, &other.weights);
        self.dropped += other.dropped;
    }

    pub(crate) fn decay(&mut self, factor: f64) {
        self.weights.iter_mut().for_each(|weight| *weight *= factor);
    }

    /// Keeps only the latest rows on record: the ledger of an endless stream must end somewhere.
    pub(crate) fn keep_latest(&mut self, rows: usize) {
        let excess = self.len().saturating_sub(rows);
        self.fingerprints.drain(..excess);
        self.weights.drain(..excess);
        self.dropped += excess as u64;
    }

    /// The places of these rows, `None` for one that is not on record. Rows that occur several times
    /// have several places: those with the weight that is looked for are found first, then the
    /// latest.
    pub(crate) fn find_weighted(
        &self,
        fingerprints: &[u64],
        weights: Option<&[f64]>,
    ) -> Vec<Option<usize>> {
        let mut places = self.places(fingerprints);
        let find = |(row, fingerprint): (usize, &u64)| {
            let found = places.get_mut(fingerprint)?;
            let wanted = weights.map_or(1.0, |weights| weights[row]);
            let exact = found.iter().rposition(|&place| self.weights[place] == wanted);
            match exact {
                Some(place) => Some(found.remove(place)),
                None => found.pop(),
            }
        };
        fingerprints.iter().enumerate().map(find).collect()
    }

    fn places(&self, fingerprints: &[u64]) -> HashMap<u64, Vec<usize>> {
        let mut places: HashMap<u64, Vec<usize>> =
            fingerprints.iter().map(|&fingerprint| (fingerprint, Vec::new())).collect();
        for (place, fingerprint) in self.fingerprints.iter().enumerate() {
            if let Some(found) = places.get_mut(fingerprint) {
                found.push(place);
            }
        }
        places
    }

    /// The places of these rows, `None` for one that is not on record. Rows that occur several times
    /// have several places; the latest are found first.
    pub(crate) fn find(&self, fingerprints: &[u64]) -> Vec<Option<usize>> {
        let mut places = self.places(fingerprints);
        fingerprints
            .iter()
            .map(|fingerprint| places.get_mut(fingerprint).and_then(Vec::pop))
            .collect()
    }

    /// The rows in an order in which they are found fast, for many calls.
    pub(crate) fn index(&self) -> Index<'_> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&place| (self.fingerprints[place], place));
        Index { ledger: self, found: vec![0; order.len()], order }
    }

    /// Strikes out the rows at these places.
    pub(crate) fn strike(&mut self, places: &[usize]) {
        let mut keep = vec![true; self.len()];
        places.iter().for_each(|&place| keep[place] = false);
        let mut kept = keep.iter();
        self.fingerprints.retain(|_| kept.next().copied().unwrap_or(true));
        let mut kept = keep.iter();
        self.weights.retain(|_| kept.next().copied().unwrap_or(true));
    }
}

/// The rows of a ledger, ordered by their fingerprints.
pub(crate) struct Index<'a> {
    ledger: &'a Ledger,
    order: Vec<usize>,
    /// How often a fingerprint was found, at the first of its places in this order.
    found: Vec<u32>,
}

impl Index<'_> {
    /// The weights of these rows, `None` for one that is not on record. Rows that occur several times are found as
    /// [`Ledger::find`] finds them, the latest first, over all calls.
    pub(crate) fn weights(&mut self, fingerprints: &[u64]) -> Vec<Option<f64>> {
        let Self { ledger, order, found } = self;
        let mut weight = |fingerprint: u64| {
            let equal = equal(ledger, order, fingerprint);
            let before =
                found.get_mut(equal.start).filter(|before| (**before as usize) < equal.len())?;
            *before += 1;
            let place = order[equal.end - *before as usize];
            Some(ledger.weights[place])
        };
        fingerprints.iter().map(|&fingerprint| weight(fingerprint)).collect()
    }

    /// Of each of these rows the weights of all that are equal to it, added; `None` for one that is not on record.
    pub(crate) fn totals(&self, fingerprints: &[u64]) -> Vec<Option<f64>> {
        let total = |&fingerprint: &u64| {
            let equal = &self.order[equal(self.ledger, &self.order, fingerprint)];
            let sum = equal.iter().map(|&place| self.ledger.weights[place]).sum();
            (!equal.is_empty()).then_some(sum)
        };
        fingerprints.iter().map(total).collect()
    }

    /// Begins again: no row was found yet.
    pub(crate) fn restart(&mut self) {
        self.found.fill(0);
    }
}

/// Where in this order the rows with a fingerprint stand.
fn equal(ledger: &Ledger, order: &[usize], fingerprint: u64) -> Range<usize> {
    let print = |place: usize| ledger.fingerprints[place];
    let start = order.partition_point(|&place| print(place) < fingerprint);
    let count = order[start..].partition_point(|&place| print(place) == fingerprint);
    start..start + count
}

/// An odd constant with well-mixed bits (the golden ratio's).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The fingerprint of every row: its inputs as the schema encodes them, then its targets (values, or
/// the number of the class). For each number, `hash = fold((hash ^ bits) * MULTIPLIER)`, where fold
/// joins the halves of the 128-bit product; -0 counts as 0. Not a secret: it tells rows apart, it
/// does not hide them.
pub(crate) fn fingerprints(x: MatRef<'_, f64>, targets: &Targets) -> Vec<u64> {
    let mut hashes = vec![MULTIPLIER; x.nrows()];
    let mix = |hash: &mut u64, value: f64| {
        // The constant keeps the state from dying at 0.
        let mixed = (*hash ^ (value + 0.0).to_bits()) ^ 0x517c_c1b7_2722_0a95;
        let product = u128::from(mixed) * u128::from(MULTIPLIER);
        *hash = (product as u64) ^ (product >> 64) as u64;
    };
    let mut add_column = |column: &mut dyn Iterator<Item = f64>| {
        hashes.iter_mut().zip(column).for_each(|(hash, value)| mix(hash, value));
    };
    x.col_iter().for_each(|column| add_column(&mut column.iter().copied()));
    match targets {
        Targets::Values(values) => {
            values.col_iter().for_each(|column| add_column(&mut column.iter().copied()));
        }
        Targets::Classes(classes) => {
            add_column(&mut classes.iter().map(|&class| f64::from(class)));
        }
    }
    hashes
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    #[test]
    fn every_number_of_a_row_counts() {
        let x = Mat::from_fn(1, 3, |_, j| j as f64 + 0.5);
        let of = |x: &Mat<f64>, class| fingerprints(x.as_ref(), &Targets::Classes(vec![class]))[0];
        let original = of(&x, 1);
        assert_ne!(of(&x, 2), original);
        for j in 0..3 {
            let mut other = x.clone();
            other[(0, j)] = f64::from_bits(other[(0, j)].to_bits() + 1);
            assert_ne!(of(&other, 1), original);
        }
        let mut swapped = x.clone();
        (swapped[(0, 0)], swapped[(0, 1)]) = (x[(0, 1)], x[(0, 0)]);
        assert_ne!(of(&swapped, 1), original);
    }

    #[test]
    fn many_similar_rows_have_many_fingerprints() {
        let x = Mat::from_fn(
            100_000,
            2,
            |i, j| if j == 0 { (i / 300) as f64 } else { (i % 300) as f64 },
        );
        let mut found = fingerprints(x.as_ref(), &Targets::Classes(vec![0; 100_000]));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 100_000);
    }

    #[test]
    fn equal_rows_are_found_one_after_the_other() {
        let mut ledger = Ledger::default();
        ledger.record(&[7, 8, 7, 9], &[0.1, 0.2, 0.3, 0.4]);
        assert_eq!(ledger.find(&[7, 7, 7, 5]), [Some(2), Some(0), None, None]);
        let mut index = ledger.index();
        assert_eq!(index.weights(&[7, 8]), [Some(0.3), Some(0.2)]);
        assert_eq!(index.weights(&[7, 7, 5]), [Some(0.1), None, None]);
        index.restart();
        assert_eq!(index.weights(&[7]), [Some(0.3)]);
        assert_eq!(index.totals(&[7, 8, 7, 5]), [Some(0.4), Some(0.2), Some(0.4), None]);
        ledger.strike(&[2, 3]);
        assert_eq!((ledger.fingerprints(), ledger.weights()), (&[7, 8][..], &[0.1, 0.2][..]));
        ledger.keep_latest(1);
        assert_eq!((ledger.fingerprints(), ledger.dropped()), (&[8][..], 1));
    }
}
