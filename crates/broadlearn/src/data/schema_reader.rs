//! Reads tables by the schema of a model: columns matched by name, rows in blocks.

use super::batch::Kind;
use super::part::Part;
use super::reader::{TableReader, list};
use super::rows::Skipped;
use super::samples::Samples;
use super::schema::Schema;
use super::target::{Targets, missing_rows};
use super::{Batch, Column};
use crate::error::{Error, Result};
use crate::progress::{Observer, report};
use faer::Mat;
use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

/// What did not fit the schema but is no error: counted, so that it can be said once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surprises {
    /// By input column: cells with a category that training had not seen.
    pub unseen: BTreeMap<usize, u64>,
    /// Rows left out for want of a target.
    pub without_target: u64,
    /// Rows left out because they could not be read.
    pub skipped: Skipped,
    /// The table has no column of weights, unlike that of training: every row counts once.
    pub without_weights: bool,
}

impl Surprises {
    pub(super) fn add(&mut self, other: &Self) {
        other.unseen.iter().for_each(|(&column, &count)| self.add_unseen(column, count));
        self.without_target += other.without_target;
        self.without_weights |= other.without_weights;
        self.skipped.count += other.skipped.count;
        if let (None, Some(first)) = (&self.skipped.first, &other.skipped.first) {
            self.skipped.first = Some(first.clone());
        }
    }

    pub(super) fn add_unseen(&mut self, column: usize, count: u64) {
        *self.unseen.entry(column).or_default() += count;
    }
}

/// Some rows as numbers.
pub struct Block {
    /// The number of the first row, counted from 1.
    pub first_row: u64,
    /// Inputs, one row per row of the table.
    pub x: Mat<f64>,
    /// Targets, if they were asked for.
    pub targets: Option<Targets>,
    /// Sample weights, if targets were asked for and the table has the weight column.
    pub weights: Option<Vec<f64>>,
    /// Classes that the schema does not know and that no earlier block had, if they are welcome.
    pub new_classes: Vec<String>,
}

/// Reads blocks of numbers from a table.
pub struct SchemaReader<'a> {
    reader: TableReader,
    schema: &'a Schema,
    targets: Vec<usize>,
    weight: bool,
    drop_missing_target: bool,
    surprises: Surprises,
    /// Classes that the schema does not know, if they are welcome.
    fresh: Option<Vec<String>>,
    part: Option<Part>,
    delivers_good_rows: bool,
    held_back: Option<Error>,
}

impl<'a> SchemaReader<'a> {
    /// Matches the columns of a table with the schema. Other columns are ignored, the order is
    /// irrelevant.
    ///
    /// # Errors
    /// If a column is missing.
    pub fn new(
        mut reader: TableReader,
        schema: &'a Schema,
        with_target: bool,
        drop_missing_target: bool,
    ) -> Result<Self> {
        let mut selection: Vec<(usize, Kind)> = Vec::new();
        let mut absent: Vec<&str> = Vec::new();
        let place = |name: &str| reader.columns().iter().position(|column| column == name);
        for input in &schema.inputs {
            match place(&input.name) {
                Some(column) => selection.push((column, input.kind)),
                None => absent.push(&input.name),
            }
        }
        let mut targets = Vec::new();
        if with_target {
            for (name, kind) in schema.target.columns() {
                match place(name) {
                    Some(column) => {
                        selection.push((column, kind));
                        targets.push(column);
                    }
                    None => absent.push(name),
                }
            }
        }
        if !absent.is_empty() {
            let columns: Vec<&str> = reader.columns().iter().map(String::as_str).collect();
            let what = if absent.len() == 1 { "column" } else { "columns" };
            return Err(Error::data(format!("no {what} {}", list(&absent)))
                .at(reader.name())
                .expected("every column that the model was trained with")
                .advice(format!(
                    "the table has {}; if it has no header, give it the names of the training table",
                    list(&columns)
                )));
        }
        let weight = match schema.weight.as_deref().and_then(place) {
            Some(column) if with_target => {
                selection.push((column, Kind::Number));
                true
            }
            _ => false,
        };
        reader.select(&selection)?;
        let mut this = Self::over(reader, schema, targets, weight, drop_missing_target);
        this.surprises.without_weights = with_target && schema.weight.is_some() && !weight;
        Ok(this)
    }

    /// Goes on with a table of which [`TrainingData`](super::TrainingData) has read the first rows, and
    /// found this schema on them.
    pub(crate) fn resume(
        reader: TableReader,
        schema: &'a Schema,
        drop_missing_target: bool,
    ) -> Self {
        let place = |name: &str| reader.columns().iter().position(|column| column == name);
        let targets = schema.target.names().into_iter().filter_map(place).collect();
        let weight = schema.weight.is_some();
        Self::over(reader, schema, targets, weight, drop_missing_target)
    }

    fn over(
        reader: TableReader,
        schema: &'a Schema,
        targets: Vec<usize>,
        weight: bool,
        drop_missing_target: bool,
    ) -> Self {
        Self {
            reader,
            schema,
            targets,
            weight,
            drop_missing_target,
            surprises: Surprises::default(),
            fresh: None,
            part: None,
            delivers_good_rows: false,
            held_back: None,
        }
    }

    /// Lets classes pass that the schema does not know: they are numbered on behind the known ones.
    #[must_use]
    pub fn accepting_new_classes(mut self) -> Self {
        self.fresh = Some(Vec::new());
        self
    }

    /// Reads only the rows of this part of the table.
    #[must_use]
    pub fn only(mut self, part: Option<Part>) -> Self {
        self.part = part;
        self
    }

    /// The new classes so far, in the order of their numbers.
    pub fn new_classes(&self) -> &[String] {
        self.fresh.as_deref().unwrap_or_default()
    }

    /// All further rows.
    ///
    /// # Errors
    /// As [`next_block`](Self::next_block), and if there are none.
    pub fn read_to_end(&mut self, observer: &mut Observer<'_>) -> Result<Samples> {
        let all = self.read_within(u64::MAX, observer)?;
        all.ok_or_else(|| Error::data("more rows than can be counted").at(self.name()))
    }

    /// All further rows, if their numbers take no more bytes than this; else `None`, and some of them are gone.
    ///
    /// # Errors
    /// As [`next_block`](Self::next_block), and if there are none.
    pub fn read_within(
        &mut self,
        bytes: u64,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Samples>> {
        const ROWS: usize = 8192;
        let mut parts: Vec<Samples> = Vec::new();
        let (width, mut taken) = (self.schema.width() + self.schema.target.names().len(), 0);
        while let Some(block) = self.next_block(ROWS)? {
            let Some(targets) = block.targets else { break };
            report(observer, "reading rows", block.first_row + block.x.nrows() as u64 - 1, None)?;
            taken += 8 * (width * block.x.nrows()) as u64;
            if taken > bytes {
                return Ok(None);
            }
            let surprises = Surprises::default();
            parts.push(Samples { x: block.x, targets, weights: block.weights, surprises });
        }
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else {
            return Err(self.surprises.skipped.no_rows(self.name()));
        };
        parts.for_each(|part| all.append(&part));
        all.surprises = self.surprises.clone();
        Ok(Some(all))
    }

    /// Hands all further rows to `see`, in order, at most `max_rows` at a time. While it is at work on some, another
    /// thread reads the next.
    ///
    /// # Errors
    /// As [`next_block`](Self::next_block), and those of `see`.
    pub fn for_each_block<E: From<Error>>(
        &mut self,
        max_rows: usize,
        mut see: impl FnMut(Block) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        std::thread::scope(|scope| {
            // One block waits, one is read, one is looked at.
            let (sender, receiver) = sync_channel(1);
            scope.spawn(move || {
                while let Some(block) = self.next_block(max_rows).transpose() {
                    let is_last = block.is_err();
                    // Nobody listens any more if `see` has failed.
                    if sender.send(block).is_err() || is_last {
                        break;
                    }
                }
            });
            for block in receiver {
                let block = block?;
                if block.x.nrows() > 0 {
                    see(block)?;
                }
            }
            Ok(())
        })
    }

    /// The table's name, for messages.
    pub fn name(&self) -> &str {
        self.reader.name()
    }

    /// What did not fit the schema so far.
    pub fn surprises(&self) -> &Surprises {
        &self.surprises
    }

    /// Delivers the rows before a bad one first, and the error in the next call: whatever comes before
    /// it in a stream is good.
    #[must_use]
    pub fn delivering_good_rows(mut self) -> Self {
        self.delivers_good_rows = true;
        self
    }

    /// The next rows, at most `max_rows`; `None` after the last.
    pub fn next_block(&mut self, max_rows: usize) -> Result<Option<Block>> {
        if let Some(error) = self.held_back.take() {
            return Err(error);
        }
        let batch = self.reader.next_batch(max_rows)?;
        if let Some(skipped) = self.reader.skipped() {
            self.surprises.skipped.clone_from(skipped);
        }
        let Some(batch) = batch else { return Ok(None) };
        if !self.delivers_good_rows {
            return self.block(batch).map(Some);
        }
        let (copy, surprises, fresh) = (batch.clone(), self.surprises.clone(), self.fresh.clone());
        let error = match self.block(batch) {
            Ok(block) => return Ok(Some(block)),
            Err(error) => error,
        };
        let rows = |range: std::ops::Range<usize>| {
            let first_row = copy.first_row + range.start as u64;
            let numbers: Vec<usize> = range.collect();
            let columns = copy.columns.iter().map(|column| column.select(&numbers));
            Batch { first_row, columns: columns.collect() }
        };
        let bad = (0..copy.rows()).find(|&row| self.block(rows(row..row + 1)).is_err());
        (self.surprises, self.fresh) = (surprises, fresh);
        match bad {
            Some(bad) if bad > 0 => {
                self.held_back = Some(error);
                self.block(rows(0..bad)).map(Some)
            }
            _ => Err(error),
        }
    }

    fn block(&mut self, batch: Batch) -> Result<Block> {
        let Batch { first_row, mut columns } = batch;
        let inputs = self.schema.inputs.len();
        let mut rows: Vec<u64> = Vec::new();
        if !self.targets.is_empty() {
            let missing = missing_rows(&columns[inputs..inputs + self.targets.len()]);
            if let (Some(&row), false) = (missing.first(), self.drop_missing_target) {
                let empty = (0..self.targets.len())
                    .find(|&k| missing_rows(&columns[inputs + k..=inputs + k]).contains(&row));
                let column = self.targets.get(empty.unwrap_or(0)).copied();
                let place = self.reader.place(first_row + row as u64, column);
                return Err(Error::data("no target")
                    .at(place)
                    .expected("a target in every row")
                    .advice("fill it in, or leave such rows out with --drop-missing-target"));
            }
            self.surprises.without_target += missing.len() as u64;
            let is_other = |row: usize| self.part.is_some_and(|p| !p.has(first_row + row as u64));
            let left_out: Vec<usize> = (0..columns[0].len())
                .filter(|row| missing.binary_search(row).is_ok() || is_other(*row))
                .collect();
            rows = (0..columns[0].len())
                .filter(|row| left_out.binary_search(row).is_err())
                .map(|row| first_row + row as u64)
                .collect();
            if !left_out.is_empty() {
                columns.iter_mut().for_each(|column| column.remove(&left_out));
            }
        }
        let weights = if self.weight {
            if let Some(weights) = columns.last() {
                let column = self.schema.weight.as_deref().and_then(|weight| {
                    self.reader.columns().iter().position(|name| name == weight)
                });
                let number =
                    |kept: usize| rows.get(kept).copied().unwrap_or(first_row + kept as u64);
                super::training::check_weights(&self.reader, &number, weights, column)?;
            }
            match columns.pop() {
                Some(Column::Number(values)) => Some(values),
                _ => None,
            }
        } else {
            None
        };
        let known = self.new_classes().len();
        let target_columns = columns.split_off(inputs);
        let rows_left = columns.first().map_or(0, Column::len);
        let x = self.schema.encode(rows_left, columns, &mut self.surprises);
        let targets = if self.targets.is_empty() {
            None
        } else {
            let place = |row: usize| {
                let number = rows.get(row).copied().unwrap_or(first_row);
                self.reader.place(number, self.targets.first().copied())
            };
            Some(self.schema.target.encode(&target_columns, &place, self.fresh.as_mut())?)
        };
        let new_classes = self.new_classes()[known..].to_vec();
        Ok(Block { first_row, x, targets, weights, new_classes })
    }
}
