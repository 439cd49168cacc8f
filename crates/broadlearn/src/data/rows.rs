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
    /// Whether a batch ends with the records that have come, if there is at least one.
    live: bool,
}

impl Rows {
    pub(super) fn new(live: bool) -> Self {
        Self { first: 1, lines: Vec::new(), live }
    }

    /// Reads the next batch. `row` moves on to the next record, waiting for it if it is told to,
    /// and appends its cells; it says whether there was one.
    pub(super) fn read(
        &mut self,
        records: &mut Records,
        selection: &[(usize, Kind)],
        max_rows: usize,
        mut row: impl FnMut(&mut Records, bool, &mut [Builder]) -> Result<bool>,
    ) -> Result<Vec<Column>> {
        self.first += self.lines.len() as u64;
        self.lines.clear();
        let mut builders = Builder::all(selection);
        while self.lines.len() < max_rows {
            let content = self.live && !self.lines.is_empty();
            let before = records.mark();
            match row(records, !content, &mut builders) {
                Ok(true) => self.lines.push(records.line()),
                Ok(false) => break,
                // The error is left for the next batch. Otherwise it would be a matter of chance,
                // of the pieces in which the bytes came, which rows before it are delivered.
                // Nothing has been read since the mark, so it still holds.
                Err(_) if content => {
                    records.rewind(before);
                    builders.iter_mut().for_each(|builder| builder.truncate(self.lines.len()));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(builders.into_iter().map(Builder::finish).collect())
    }

    /// The line of a row of the latest batch.
    pub(super) fn line(&self, row: u64) -> Option<u64> {
        let index = usize::try_from(row.checked_sub(self.first)?).ok()?;
        self.lines.get(index).copied()
    }
}
