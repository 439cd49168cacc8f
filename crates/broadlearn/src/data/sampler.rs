//! A random sample of the rows of a table that is too large for memory.

use super::batch::{Column, MISSING, bytes_of};
use crate::features::draw::{Purpose, Stream};
use std::collections::BTreeSet;

/// What becomes of a table that takes more memory than this.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// It is read all the same.
    None,
    /// It is read to its end, and a random sample of its rows is kept.
    Sample {
        /// Bytes up to which all rows are kept.
        bytes: u64,
        /// The rows that are kept otherwise.
        rows: usize,
        /// The seed of the choice.
        seed: u64,
    },
    /// The rest of it is left in the reader.
    Prefix {
        /// Bytes up to which rows are read.
        bytes: u64,
    },
}

/// Keeps a random sample of the rows of a table: those with the smallest of as many random numbers as there
/// are rows.
pub(super) struct Sampler {
    bytes: u64,
    most: usize,
    stream: Stream,
    keys: Vec<f64>,
    threshold: f64,
    pub(super) is_sampling: bool,
    pub(super) rows: u64,
    pub(super) lacking: Vec<bool>,
    /// The different targets so far, if there is one column and they are few.
    distinct: Option<BTreeSet<u64>>,
    levels: Option<Vec<String>>,
}

impl Sampler {
    /// More different targets than this are no classes.
    const MOST_CLASSES: usize = 1001;

    pub(super) fn new(bound: Bound, inputs: usize) -> Option<Self> {
        let Bound::Sample { bytes, rows, seed } = bound else { return None };
        Some(Self {
            bytes,
            most: rows.max(1),
            stream: Stream::new(seed, Purpose::Sample, 0),
            keys: Vec::new(),
            threshold: f64::INFINITY,
            is_sampling: false,
            rows: 0,
            lacking: vec![false; inputs],
            distinct: Some(BTreeSet::new()),
            levels: None,
        })
    }

    /// Looks at inputs and targets before most of them are dropped.
    pub(super) fn note(&mut self, columns: &[Column]) {
        self.rows += columns.first().map_or(0, Column::len) as u64;
        let (inputs, targets) = columns.split_at(self.lacking.len());
        for (lacking, column) in self.lacking.iter_mut().zip(inputs) {
            *lacking |= match column {
                Column::Number(values) => values.iter().any(|value| value.is_nan()),
                Column::Text { codes, .. } => codes.contains(&MISSING),
            };
        }
        match (targets, &mut self.distinct) {
            ([Column::Number(values)], Some(distinct)) => {
                distinct.extend(values.iter().map(|value| value.to_bits()));
                if distinct.len() > Self::MOST_CLASSES {
                    self.distinct = None;
                }
            }
            ([Column::Text { levels, .. }], Some(_)) => {
                let known = self.levels.get_or_insert_default();
                let fresh: Vec<String> =
                    levels.iter().filter(|level| !known.contains(level)).cloned().collect();
                known.extend(fresh);
                if known.len() > Self::MOST_CLASSES {
                    self.distinct = None;
                }
            }
            _ => self.distinct = None,
        }
    }

    /// The rows that may yet belong to the sample.
    pub(super) fn admit(&mut self, columns: Vec<Column>) -> Vec<Column> {
        let rows = columns.first().map_or(0, Column::len);
        let keys: Vec<f64> = (0..rows).map(|_| self.stream.unit()).collect();
        let kept: Vec<usize> = (0..rows).filter(|&row| keys[row] < self.threshold).collect();
        self.keys.extend(kept.iter().map(|&row| keys[row]));
        if kept.len() == rows {
            return columns;
        }
        columns.iter().map(|column| column.select(&kept)).collect()
    }

    /// Drops rows once there are too many, and from then on whenever they have doubled.
    pub(super) fn prune(&mut self, columns: &mut [Column]) {
        self.is_sampling |= bytes_of(columns) > self.bytes;
        if self.is_sampling && self.keys.len() > 2 * self.most {
            self.finish(columns);
        }
    }

    pub(super) fn finish(&mut self, columns: &mut [Column]) {
        if self.keys.len() > self.most {
            let mut sorted = self.keys.clone();
            let (_, threshold, _) = sorted.select_nth_unstable_by(self.most, f64::total_cmp);
            self.threshold = *threshold;
            let kept: Vec<usize> =
                (0..self.keys.len()).filter(|&row| self.keys[row] < self.threshold).collect();
            columns.iter_mut().for_each(|column| *column = column.select(&kept));
            self.keys = kept.iter().map(|&row| self.keys[row]).collect();
        }
    }

    /// A column of all different targets.
    pub(super) fn seen(&mut self) -> Option<Column> {
        let distinct = self.distinct.take()?;
        Some(match self.levels.take() {
            Some(levels) => Column::Text { codes: (0..levels.len() as u32).collect(), levels },
            None => Column::Number(distinct.into_iter().map(f64::from_bits).collect()),
        })
    }
}

/// Adds a row for every level of a column and one without a value where there is one in the table, so that what
/// is found on a sample holds for all rows.
pub(super) fn show_all(column: &mut Column, lacking: bool) {
    match column {
        Column::Number(values) if lacking => values.push(f64::NAN),
        Column::Number(_) => {}
        Column::Text { codes, levels } => {
            codes.extend(0..levels.len() as u32);
            codes.extend(lacking.then_some(MISSING));
        }
    }
}
