//! Batches of rows from a text of records, and the lines that they stand on.

use super::batch::{Column, Kind};
use super::builder::Builder;
use super::records::Records;
use crate::error::Result;

/// The latest batch.
pub(super) struct Rows {
    /// The number of its first row.
    first: u64,
    /// The lines of all of its rows.
    lines: Vec<u64>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self { first: 1, lines: Vec::new() }
    }

    /// Reads the next batch. `row` moves on to the next record and appends its cells; it says
    /// whether there was one.
    pub(super) fn read(
        &mut self,
        records: &mut Records,
        selection: &[(usize, Kind)],
        max_rows: usize,
        mut row: impl FnMut(&mut Records, &mut [Builder]) -> Result<bool>,
    ) -> Result<Vec<Column>> {
        self.first += self.lines.len() as u64;
        self.lines.clear();
        let mut builders = Builder::all(selection);
        while self.lines.len() < max_rows && row(records, &mut builders)? {
            self.lines.push(records.line());
        }
        Ok(builders.into_iter().map(Builder::finish).collect())
    }

    /// The line of a row of the latest batch.
    pub(super) fn line(&self, row: u64) -> Option<u64> {
        let index = usize::try_from(row.checked_sub(self.first)?).ok()?;
        self.lines.get(index).copied()
    }
}
