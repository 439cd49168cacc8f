//! Batches of rows from a text of records, and the lines that they stand on.

use super::batch::{Column, Kind};
use super::builder::Builder;
use super::reader::ReadOptions;
use super::records::Records;
use crate::error::{Category, Error, Result};

/// Rows of a text that could not be read, and were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many there were.
    pub count: u64,
    /// What was wrong with the first one.
    pub first: Option<String>,
}

impl Skipped {
    /// The error of a table without any row to use.
    pub(crate) fn no_rows(&self, table: &str) -> Error {
        match &self.first {
            None => Error::data("no rows").at(table).expected("at least one row"),
            Some(first) => Error::data(format!("no row that can be read; the first: {first}"))
                .at(table)
                .expected("at least one row"),
        }
    }
}

/// The latest batch.
pub(super) struct Rows {
    /// The number of its first row.
    first: u64,
    /// The lines of all of its rows.
    lines: Vec<u64>,
    /// Whether a batch ends with the records that have come, if there is at least one.
    live: bool,
    /// Rows that were left out; `None` where such a row is an error.
    skipped: Option<Skipped>,
}

impl Rows {
    pub(super) fn new(options: &ReadOptions) -> Self {
        let skipped = options.skip_malformed.then(Skipped::default);
        Self { first: 1, lines: Vec::new(), live: options.live, skipped }
    }

    pub(super) fn skipped(&self) -> Option<&Skipped> {
        self.skipped.as_ref()
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
            match (row(records, !content, &mut builders), &mut self.skipped) {
                (Ok(true), _) => self.lines.push(records.line()),
                (Ok(false), _) => break,
                (Err(error), Some(skipped))
                    if error.category() == Category::Data && records.move_on() =>
                {
                    skipped.count += 1;
                    skipped.first.get_or_insert_with(|| error.to_string());
                    builders.iter_mut().for_each(|builder| builder.truncate(self.lines.len()));
                }
                // The error is left for the next batch. Otherwise it would be a matter of chance,
                // of the pieces in which the bytes came, which rows before it are delivered.
                // Nothing has been read since the mark, so it still holds.
                (Err(_), _) if content => {
                    records.rewind(before);
                    builders.iter_mut().for_each(|builder| builder.truncate(self.lines.len()));
                    break;
                }
                (Err(error), _) => return Err(error),
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
