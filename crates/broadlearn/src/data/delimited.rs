//! Tables as lines of text: CSV and its relatives.

use super::batch::{Column, Kind};
use super::builder::Value;
use super::cell::{Spelling, excerpt};
use super::input::Input;
use super::reader::{Place, ReadOptions, Source, Table};
use super::records::{Mark, Records};
use super::rows::{Rows, Skipped};
use super::sniff::{self, Sample};
use crate::error::{Category, Error, Result};

/// How many bytes are looked at to find the delimiter.
const DELIMITER_SAMPLE: usize = 64 << 10;
/// How many rows, or bytes if these are fewer rows, are looked at to find the kinds.
pub(super) const KIND_ROWS: usize = 10_000;
pub(super) const KIND_BYTES: usize = 4 << 20;

/// A table as lines of text.
pub(super) struct Delimited {
    records: Records,
    table: Table,
    rows: Rows,
}

/// Looks at the first rows and stands before the first one of them.
pub(super) fn open(input: Input, options: &ReadOptions) -> Result<Delimited> {
    let name = input.name.clone();
    let tabs = [".tsv", ".tab", ".tsv.gz", ".tab.gz"];
    let tabs = tabs.iter().any(|extension| name.to_ascii_lowercase().ends_with(extension));
    let mut records = Records::new(&name, input.stream());
    records.set_live(options.live);
    let spelling = Spelling::new(&options.missing, options.decimal_comma);
    let told = options.delimiter.or(tabs.then_some(b'\t'));
    let (mark, delimiter, most_rows) = if options.live {
        live_form(&mut records, told, options.header, &spelling)?
    } else {
        let (text, ended) = records.peek(DELIMITER_SAMPLE)?;
        let mark = byte_order_mark(text);
        let (own, line) = separator_line(&text[mark..]).unzip();
        let mark = mark + line.unwrap_or(0);
        let found = || sniff::delimiter(&text[mark..], ended);
        (mark, options.delimiter.or(own).or(told).unwrap_or_else(found), KIND_ROWS)
    };
    if matches!(delimiter, b'"' | b'\n' | b'\r') {
        return Err(Error::setting("delimiter", excerpt(&[delimiter]))
            .expected("another character than a quote or a line end"));
    }
    records.skip(mark);
    records.set_delimiter(delimiter);

    let start = records.mark();
    let (mut samples, below, names) =
        look(&mut records, start, &name, &spelling, most_rows, options.skip_malformed)?;
    let header = options.header.unwrap_or_else(|| sniff::has_header(&samples, delimiter));
    records.rewind(if header { below } else { start });
    records.release();
    if !header {
        samples.iter_mut().for_each(Sample::add_first);
    }
    let kinds = samples.iter().map(|sample| sample.kind(delimiter)).collect();
    let columns = if header { header_names(&name, names)? } else { numbered(names.len()) };
    let table = Table { name, columns, kinds, spelling };
    Ok(Delimited { records, table, rows: Rows::new(options) })
}

/// The length of the mark that some programs put before a text in UTF-8.
pub(super) fn byte_order_mark(text: &[u8]) -> usize {
    if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}

/// The delimiter that a spreadsheet names in a line of its own before the table, `sep=;`, and the length of that line.
fn separator_line(text: &[u8]) -> Option<(u8, usize)> {
    let [delimiter, end @ ..] = text.strip_prefix(b"sep=")? else { return None };
    let end = if end.starts_with(b"\r\n") { 2 } else { usize::from(end.starts_with(b"\n")) };
    (end > 0).then_some((*delimiter, b"sep=;".len() + end))
}

/// Waits until the form of a live stream can be told: the length of its byte order mark, its
/// delimiter, and how many records below the first one are to be looked at.
fn live_form(
    records: &mut Records,
    told: Option<u8>,
    header: Option<bool>,
    spelling: &Spelling,
) -> Result<(usize, u8, usize)> {
    let mut seen = 0;
    loop {
        let (text, ended) = records.here();
        // No record is whole without a line end: a long one is not looked at again and again.
        if ended || text[seen..].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let mark = byte_order_mark(text);
            let form = sniff::live_form(&text[mark..], ended, told, header, spelling);
            if let Some((delimiter, rows)) = form {
                return Ok((mark, delimiter, rows));
            }
        }
        seen = text.len();
        records.wait()?;
    }
}

/// Samples of all columns, the place below the first record, and the cells of that record.
type Looked = (Vec<Sample>, Mark, Vec<Vec<u8>>);

fn look(
    records: &mut Records,
    start: Mark,
    name: &str,
    spelling: &Spelling,
    most_rows: usize,
    skip_malformed: bool,
) -> Result<Looked> {
    if !records.advance()? {
        return Err(Error::data("an empty file")
            .at(name)
            .expected("a table with a header and at least one row"));
    }
    let width = records.len();
    let names: Vec<Vec<u8>> = (0..width).map(|index| records.field(index).to_vec()).collect();
    let mut samples: Vec<Sample> = names.iter().map(|cell| Sample::new(cell, spelling)).collect();
    let below = records.mark();
    let mut rows = 0;
    while rows < most_rows && (rows == 0 || records.bytes_since(start) < KIND_BYTES) {
        match advance(records, name, width, true) {
            Ok(true) => {
                for (index, sample) in samples.iter_mut().enumerate() {
                    sample.add(records.field(index), spelling);
                }
                rows += 1;
            }
            Ok(false) => break,
            Err(error)
                if skip_malformed && error.category() == Category::Data && records.move_on() => {}
            Err(error) => return Err(error),
        }
    }
    Ok((samples, below, names))
}

/// The next record, which must have as many fields as the table has columns.
fn advance(records: &mut Records, name: &str, width: usize, wait: bool) -> Result<bool> {
    while records.advance_if(wait)? {
        if records.len() == width {
            return Ok(true);
        }
        if !records.is_only_blanks() {
            return Err(ragged(records, name, width));
        }
    }
    Ok(false)
}

#[cold]
fn ragged(records: &Records, name: &str, width: usize) -> Error {
    let fields =
        |count: usize| if count == 1 { "1 field".into() } else { format!("{count} fields") };
    let delimiter = match records.delimiter() {
        b'\t' => "a tab".to_owned(),
        b' ' => "a blank".to_owned(),
        other => format!("`{}`", excerpt(&[other])),
    };
    Error::data(fields(records.len()))
        .at(format!("{name}, line {}", records.line()))
        .expected(format!("{width}, as in the first record"))
        .advice(format!(
            "correct the line, quote fields that contain {delimiter}, give the right delimiter with \
             `--delimiter`, or learn without such lines: `--skip-malformed`"
        ))
}

fn header_names(name: &str, cells: Vec<Vec<u8>>) -> Result<Vec<String>> {
    let named = |(index, cell): (usize, Vec<u8>)| match String::from_utf8(cell) {
        Ok(text) if text.trim().is_empty() => Ok(format!("column{}", index + 1)),
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => {
            let text = excerpt(error.as_bytes());
            Err(Error::data(format!("bytes that are not UTF-8 in the column name `{text}`"))
                .at(format!("{name}, header"))
                .expected("text in UTF-8")
                .advice("convert the file, for example with `iconv -f latin1 -t utf-8`"))
        }
    };
    cells.into_iter().enumerate().map(named).collect()
}

/// The names of columns that have none.
pub(super) fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("column{number}")).collect()
}

impl Source for Delimited {
    fn table(&self) -> &Table {
        &self.table
    }

    fn read(&mut self, selection: &[(usize, Kind)], max_rows: usize) -> Result<Vec<Column>> {
        let Self { records, table, rows } = self;
        let width = table.columns.len();
        rows.read(records, selection, max_rows, |records, wait, builders| {
            if !advance(records, &table.name, width, wait)? {
                return Ok(false);
            }
            for (builder, (index, _)) in builders.iter_mut().zip(selection) {
                let cell = Value::Cell(records.field(*index));
                if let Err(fault) = builder.push(cell, &table.spelling) {
                    let place = table.place(Place::Line(records.line()), Some(*index));
                    let column = &table.columns[*index];
                    return Err(fault.error(place, column, Some(records.delimiter())));
                }
            }
            Ok(true)
        })
    }

    fn line(&self, row: u64) -> Option<u64> {
        self.rows.line(row)
    }

    fn skipped(&self) -> Option<&Skipped> {
        self.rows.skipped()
    }
}
