//! Opens a table, whatever its format, and reads it a batch of rows at a time.

use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::path::Path;

use super::batch::{Batch, Column, Kind};
use super::cell::Spelling;
use super::delimited;
use super::input::Input;
use super::json_lines;
use super::npy;
use super::npz;
#[cfg(feature = "parquet")]
use super::parquet;
use super::rows::Skipped;
use crate::error::{Error, Result};

/// The formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Lines of text with fields separated by commas, semicolons, tabs, bars or blanks; plain or
    /// compressed with gzip.
    Delimited,
    /// Lines of text with one JSON object each, whose keys name the columns; plain or compressed
    /// with gzip. The columns are the keys of the first records; a key that is absent or `null` is
    /// a missing value.
    JsonLines,
    /// One NumPy array of one or two dimensions.
    Npy,
    /// Several NumPy arrays with the same number of rows.
    Npz,
    /// Apache Parquet (only if the library was built with the feature `parquet`).
    Parquet,
}

/// How to read a table; by default everything is found by looking.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The format; otherwise the extension of the file's name decides, then its first bytes.
    pub format: Option<Format>,
    /// What separates the fields of a text; a blank stands for any run of spaces and tabs.
    pub delimiter: Option<u8>,
    /// Whether the first record of a text names the columns.
    pub header: Option<bool>,
    /// Further texts that mean a missing value; a number among them also matches other
    /// spellings of it and the numbers of binary formats.
    pub missing: Vec<String>,
    /// Whether the numbers of delimited text have a decimal comma, as in `1,5`; what has a point is no number then.
    pub decimal_comma: bool,
    /// Kinds of columns that must not be guessed, by name.
    pub kinds: Vec<(String, Kind)>,
    /// Whether rows of a text that cannot be read are left out ([`TableReader::skipped`]) instead of being an error.
    pub skip_malformed: bool,
    /// Whether rows are wanted as soon as they come, from a stream that may never end.
    ///
    /// A live text is opened as soon as its first record has come, a batch is delivered as soon as
    /// it has one row, and it holds no more rows than have come by then. A row has come when its
    /// line end has. An error ends the batch before it and is told by the next: which rows come
    /// does not depend on the pieces in which the bytes come.
    ///
    /// - The columns of JSON lines are the keys of the first object alone.
    /// - The first record of delimited text is a header if all of its cells are texts, and a row if
    ///   none is (a truth value counts as neither). A mixture is judged together with the record
    ///   below it, as it would be in a file of these two; so is a header that no delimiter splits,
    ///   or several, unless the delimiter is given. Opening waits for that record then. Give
    ///   [`header`](Self::header) and [`delimiter`](Self::delimiter) to leave nothing to chance.
    /// - Kinds are found from no more than these records, so they are little more than a guess:
    ///   give them by [`kinds`](Self::kinds) or [`TableReader::select`].
    /// - A stream compressed with gzip comes when its writer flushes it; what a writer keeps back
    ///   cannot be read.
    ///
    /// Formats that are not text are read as ever.
    pub live: bool,
}

/// Reads a table from its first row to its last, once, never the whole of it at a time.
///
/// ```
/// use broadlearn::data::{Column, Kind, ReadOptions, TableReader};
/// let text = "age,city\n31,Oslo\n,Bergen\n";
/// let mut table =
///     TableReader::from_reader("people", Box::new(text.as_bytes()), &ReadOptions::default())?;
/// assert_eq!(table.columns(), ["age", "city"]);
/// assert_eq!(table.kinds(), [Kind::Number, Kind::Text]);
/// table.select(&[(1, Kind::Text)])?;
/// let batch = table.next_batch(1000)?.unwrap();
/// let levels = vec!["Oslo".to_owned(), "Bergen".to_owned()];
/// assert_eq!(batch.columns, [Column::Text { codes: vec![0, 1], levels }]);
/// assert!(table.next_batch(1000)?.is_none());
/// # Ok::<(), broadlearn::Error>(())
/// ```
pub struct TableReader {
    source: Box<dyn Source>,
    kinds: Vec<Kind>,
    /// Which of them the options give.
    given: Vec<bool>,
    selection: Vec<(usize, Kind)>,
    /// Places in the selection that batches are without.
    hidden: Vec<usize>,
    missing: Vec<String>,
    rows: u64,
    /// Whether an error has left the source at a place that nobody knows.
    failed: bool,
}

impl TableReader {
    /// Opens a file; `-` stands for the standard input.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self> {
        if path == Path::new("-") {
            return Self::from_reader("standard input", Box::new(std::io::stdin()), options);
        }
        Self::new(Input::open(path, options.live)?, options)
    }

    /// Reads from anything; `name` is for messages, and its extension tells the format like that
    /// of a file.
    pub fn from_reader(
        name: &str,
        input: Box<dyn Read + Send>,
        options: &ReadOptions,
    ) -> Result<Self> {
        Self::new(Input::from_reader(name, input, options.live)?, options)
    }

    fn new(input: Input, options: &ReadOptions) -> Result<Self> {
        let format = options.format.unwrap_or_else(|| format(&input));
        let source: Box<dyn Source> = match format {
            Format::Delimited => Box::new(delimited::open(input, options)?),
            Format::JsonLines => Box::new(json_lines::open(input, options)?),
            Format::Npy => Box::new(npy::open(input, options)?),
            Format::Npz => Box::new(npz::open(input, options)?),
            #[cfg(feature = "parquet")]
            Format::Parquet => Box::new(parquet::open(input, options)?),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => return Err(no_parquet(&input.name)),
        };
        let table = source.table();
        check_names(table)?;
        let mut kinds = table.kinds.clone();
        let mut given = vec![false; kinds.len()];
        for (column, kind) in &options.kinds {
            let index = table.columns.iter().position(|name| name == column);
            let Some(index) = index else { return Err(no_column(table, column)) };
            kinds[index] = *kind;
            given[index] = true;
        }
        let selection = kinds.iter().copied().enumerate().collect();
        let missing = options.missing.clone();
        let hidden = Vec::new();
        Ok(Self { source, kinds, given, selection, hidden, missing, rows: 0, failed: false })
    }

    /// The name of the table, for messages.
    pub fn name(&self) -> &str {
        &self.source.table().name
    }

    /// The texts that mean a missing value, beside the usual ones.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The names of all columns; each occurs once.
    pub fn columns(&self) -> &[String] {
        &self.source.table().columns
    }

    /// The kinds of all columns: forced by the options, declared by the file, or found by looking
    /// at the first rows.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Whether the options give the kind of a column.
    pub(super) fn is_given(&self, column: usize) -> bool {
        self.given.get(column).copied().unwrap_or(false)
    }

    /// Decides which columns are read, in which order, and as which kind: at the time of
    /// prediction this is for the model to say. Other columns are not even parsed.
    ///
    /// # Errors
    /// If there is no such column, none is selected, or rows have already been read.
    pub fn select(&mut self, columns: &[(usize, Kind)]) -> Result<()> {
        let count = self.columns().len();
        if let Some((index, _)) = columns.iter().find(|(index, _)| *index >= count) {
            let expected = format!("a number below {count}, the number of columns");
            return Err(Error::data(format!("column number {index}"))
                .at(self.name())
                .expected(expected));
        }
        if columns.is_empty() {
            let found = "a selection without columns";
            return Err(Error::data(found).at(self.name()).expected("at least one column"));
        }
        if self.rows > 0 {
            let found = "a selection of columns after the first rows";
            return Err(Error::data(found).at(self.name()).expected("it before them"));
        }
        self.selection = columns.to_vec();
        Ok(())
    }

    /// From now on batches are without these columns of the selection.
    pub(super) fn hide(&mut self, places: &[usize]) {
        self.hidden = places.to_vec();
    }

    /// The next rows, at most `max_rows` (and at least one) of them; `None` after the last.
    /// Of a [live](ReadOptions::live) text there are no more than have come.
    pub fn next_batch(&mut self, max_rows: usize) -> Result<Option<Batch>> {
        if self.failed {
            return Err(Error::data("an attempt to read on after an error").at(self.name()));
        }
        self.failed = true;
        let mut columns = self.source.read(&self.selection, max_rows.max(1))?;
        self.failed = false;
        for &place in self.hidden.iter().rev() {
            columns.remove(place);
        }
        let batch = Batch { first_row: self.rows + 1, columns };
        self.rows += batch.rows() as u64;
        Ok(if batch.rows() == 0 { None } else { Some(batch) })
    }

    /// The rows that were left out so far, if [the options](ReadOptions::skip_malformed) allow it.
    pub fn skipped(&self) -> Option<&Skipped> {
        self.source.skipped()
    }

    /// Names a cell or, without a column, a row for a message: by line if it is a line of the
    /// latest batch of a text, otherwise by row. Rows are counted from 1, columns of the table
    /// from 0.
    pub fn place(&self, row: u64, column: Option<usize>) -> String {
        let place = match self.source.line(row) {
            Some(line) => Place::Line(line),
            None => Place::Row(row),
        };
        self.source.table().place(place, column)
    }
}

impl fmt::Debug for TableReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableReader")
            .field("table", self.source.table())
            .field("selection", &self.selection)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// What all tables have.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    pub(super) spelling: Spelling,
}

/// Where a row is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Line(u64),
    Row(u64),
}

impl Table {
    /// Names a cell or a row for a message.
    pub(super) fn place(&self, place: Place, column: Option<usize>) -> String {
        let place = match place {
            Place::Line(line) => format!("{}, line {line}", self.name),
            Place::Row(row) => format!("{}, row {row}", self.name),
        };
        match column.and_then(|index| self.columns.get(index)) {
            Some(column) => format!("{place}, column `{column}`"),
            None => place,
        }
    }
}

/// A table of some format.
pub(super) trait Source: Send {
    fn table(&self) -> &Table;

    /// The next rows of the selected columns; columns without rows after the last.
    fn read(&mut self, selection: &[(usize, Kind)], max_rows: usize) -> Result<Vec<Column>>;

    /// The line of a row of the latest batch, if rows have lines.
    fn line(&self, _row: u64) -> Option<u64> {
        None
    }

    /// The rows that were left out, if some may be.
    fn skipped(&self) -> Option<&Skipped> {
        None
    }
}

/// The format that the name's extension tells, or else the first bytes.
fn format(input: &Input) -> Format {
    let name = input.name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    match extension {
        Some("csv" | "tsv" | "tab" | "txt" | "data" | "dat") => Format::Delimited,
        Some("jsonl" | "ndjson") => Format::JsonLines,
        Some("npy") => Format::Npy,
        Some("npz") => Format::Npz,
        Some("parquet") => Format::Parquet,
        _ if input.head.starts_with(npy::MAGIC) => Format::Npy,
        _ if input.head.starts_with(b"PK\x03\x04") => Format::Npz,
        // A column may well be called PAR1, but no control character follows it then.
        _ => match input.head.as_slice() {
            [b'P', b'A', b'R', b'1', next, ..]
                if next.is_ascii_control() && !next.is_ascii_whitespace() =>
            {
                Format::Parquet
            }
            [b'{', ..] | [0xef, 0xbb, 0xbf, b'{', ..] => Format::JsonLines,
            _ => Format::Delimited,
        },
    }
}

fn check_names(table: &Table) -> Result<()> {
    let (mut seen, mut reported) = (HashSet::new(), HashSet::new());
    let names = table.columns.iter().map(String::as_str);
    let twice: Vec<&str> =
        names.filter(|name| !seen.insert(*name) && reported.insert(*name)).collect();
    if twice.is_empty() {
        return Ok(());
    }
    let names = list(&twice);
    Err(Error::data(format!("more than one column named {names}"))
        .at(&table.name)
        .expected("a different name for each column")
        .advice("rename them; if the first record is not a header, use `--no-header`"))
}

fn no_column(table: &Table, column: &str) -> Error {
    let names: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let error = Error::data(format!("no column `{column}`"))
        .at(&table.name)
        .expected(format!("one of {}", list(&names)));
    with_likely_name(error, &names, column)
}

/// An error about a column that is not there, with the name that was probably meant.
pub(super) fn with_likely_name(error: Error, names: &[&str], wanted: &str) -> Error {
    let plain = |name: &str| name.trim().to_lowercase();
    let distances = names.iter().map(|name| (edits(&plain(name), &plain(wanted)), name));
    match distances.min_by_key(|(distance, _)| *distance) {
        Some((distance, name)) if distance <= wanted.len() / 3 => {
            error.advice(format!("did you mean `{name}`?"))
        }
        _ => error,
    }
}

/// Letters to put in, leave out or change to make one text of another; two neighbours in the wrong order are two.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], place + 1);
        for (column, &own) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != own);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// Some names for a message, not too many.
pub(super) fn list(names: &[&str]) -> String {
    const MOST: usize = 10;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(MOST);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(not(feature = "parquet"))]
fn no_parquet(name: &str) -> Error {
    Error::data("a Parquet file, which this build cannot read")
        .at(name)
        .expected("delimited text or NumPy arrays")
        .advice(
            "convert it, or build with `cargo install broadlearn-cli --features parquet` to read \
             Parquet",
        )
}

#[cfg(test)]
pub(super) mod tests;
