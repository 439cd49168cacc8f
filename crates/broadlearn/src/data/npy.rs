//! NumPy arrays as tables.

mod header;

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::sync::{Arc, Mutex};

use super::batch::{Column, Kind};
use super::builder::{Builder, Value};
use super::cell::{Fault, Spelling};
use super::delimited::numbered;
use super::input::{Input, Window, spool};
use super::reader::{Place, ReadOptions, Source, Table};
use super::records::MOST_FIELDS;
use crate::error::{Error, Result};
use header::Class;

pub(super) use header::{Header, MAGIC, Scalar};

/// How much is read at once, if a row is not longer.
const CHUNK: usize = 1 << 20;
/// A longer row is refused.
const LONGEST_ROW: u64 = 64 << 20;

/// A file with one array.
pub(super) struct Npy {
    table: Table,
    array: Array,
}

/// Reads the header.
pub(super) fn open(input: Input, options: &ReadOptions) -> Result<Npy> {
    let name = input.name.clone();
    let part = match input.length() {
        None => Part::Stream { stream: input.stream(), length: None },
        Some(_) => {
            let (file, length) = input.file()?;
            Part::File { file: Arc::new(Mutex::new(file)), begin: 0, length }
        }
    };
    let array = match Array::open(&name, part)? {
        Opened::Array(array) => array,
        Opened::Scalar => {
            return Err(Error::data("a single value without dimensions")
                .at(name)
                .expected("an array of one or two dimensions"));
        }
    };
    let columns = numbered(array.columns);
    let kinds = vec![array.scalar.kind(); array.columns];
    let spelling = Spelling::new(&options.missing, false);
    Ok(Npy { table: Table { name, columns, kinds, spelling }, array })
}

impl Source for Npy {
    fn table(&self) -> &Table {
        &self.table
    }

    fn read(&mut self, selection: &[(usize, Kind)], max_rows: usize) -> Result<Vec<Column>> {
        let mut builders = Builder::all(selection);
        let mut targets: Vec<Target<'_>> = builders
            .iter_mut()
            .zip(selection)
            .map(|(builder, (index, _))| Target { within: *index, column: *index, builder })
            .collect();
        self.array.read(max_rows, &mut targets, &self.table)?;
        Ok(builders.into_iter().map(Builder::finish).collect())
    }
}

/// The bytes of an array with its header.
pub(super) enum Part {
    /// A part of a file, readable in any order.
    File { file: Arc<Mutex<File>>, begin: u64, length: u64 },
    /// Readable once; the length may be known nevertheless.
    Stream { stream: Box<dyn Read + Send>, length: Option<u64> },
}

/// An array whose rows are read in order.
pub(super) struct Array {
    place: String,
    pub(super) rows: u64,
    pub(super) columns: usize,
    /// Whether the array has but one dimension.
    pub(super) flat: bool,
    pub(super) scalar: Scalar,
    /// How many rows have been read.
    done: u64,
    body: Body,
    buffer: Vec<u8>,
}

enum Body {
    /// Row after row.
    Rows(Box<dyn Read + Send>),
    /// Column after column, from `begin` on.
    Columns { file: Arc<Mutex<File>>, begin: u64 },
    /// Column after column, to be copied to a temporary file before it can be read.
    Copy(Box<dyn Read + Send>),
}

/// What was found where an array was expected.
pub(super) enum Opened {
    Array(Array),
    /// A value without dimensions: not part of a table.
    Scalar,
}

/// A column of a table that a column of an array goes into.
pub(super) struct Target<'a> {
    /// The number of the column in the array and in the table.
    pub(super) within: usize,
    pub(super) column: usize,
    pub(super) builder: &'a mut Builder,
}

impl Array {
    /// Reads the header and checks that it can be true.
    pub(super) fn open(place: &str, part: Part) -> Result<Opened> {
        let (header, body, length) = match part {
            Part::File { file, begin, length } => {
                let mut window = BufReader::new(Window::new(&file, begin, length));
                let header = Header::read(place, &mut window)?;
                let begin = begin.saturating_add(header.length);
                let values = length.saturating_sub(header.length);
                let body = if by_columns(&header) {
                    Body::Columns { file, begin }
                } else {
                    Body::Rows(Box::new(Window::new(&file, begin, values)))
                };
                (header, body, Some(values))
            }
            Part::Stream { mut stream, length } => {
                let header = Header::read(place, &mut stream)?;
                let length = length.map(|length| length.saturating_sub(header.length));
                let body =
                    if by_columns(&header) { Body::Copy(stream) } else { Body::Rows(stream) };
                (header, body, length)
            }
        };
        let (rows, columns) = match header.shape[..] {
            [] => return Ok(Opened::Scalar),
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => return Err(too_deep(place, &header.shape)),
        };
        let scalar = header.scalar(place)?;
        let row_size = columns.checked_mul(scalar.size as u64);
        let size = row_size.and_then(|size| size.checked_mul(rows));
        let shape = shape(&header.shape);
        let (Some(row_size), Some(size)) = (row_size, size) else {
            return Err(Error::data(format!("the shape {shape}"))
                .at(place)
                .expected("a smaller one"));
        };
        if columns == 0 || columns > MOST_FIELDS as u64 || row_size > LONGEST_ROW {
            return Err(Error::data(format!("an array of the shape {shape}"))
                .at(place)
                .expected(format!("from 1 to {MOST_FIELDS} columns")));
        }
        if let Some(length) = length.filter(|length| *length < size) {
            return Err(cut_short(place, length, size));
        }
        Ok(Opened::Array(Self {
            place: place.to_owned(),
            rows,
            columns: columns as usize,
            flat: header.shape.len() == 1,
            scalar,
            done: 0,
            body,
            buffer: Vec::new(),
        }))
    }

    /// Reads the next rows, at most `max_rows`; none after the last.
    pub(super) fn read(
        &mut self,
        max_rows: usize,
        targets: &mut [Target<'_>],
        table: &Table,
    ) -> Result<()> {
        let left = usize::try_from(self.rows - self.done).unwrap_or(usize::MAX);
        let count = max_rows.min(left);
        let size = self.scalar.size;
        if let Body::Copy(stream) = &mut self.body {
            let length = self.rows * (self.columns * size) as u64;
            let (file, copied) = spool(&self.place, stream.take(length))?;
            if copied < length {
                return Err(cut_short(&self.place, copied, length));
            }
            self.body = Body::Columns { file: Arc::new(Mutex::new(file)), begin: 0 };
        }
        match &mut self.body {
            Body::Copy(_) => {}
            Body::Rows(input) => {
                let row_size = self.columns * size;
                let mut read = 0;
                while read < count {
                    let rows = (CHUNK / row_size).clamp(1, count - read);
                    self.buffer.resize(rows * row_size, 0);
                    let first = self.done + read as u64;
                    fill(input, &mut self.buffer, &self.place, first)?;
                    for target in targets.iter_mut() {
                        let cells = self.buffer.chunks_exact(row_size);
                        let begin = target.within * size;
                        let cells = cells.map(|row| &row[begin..begin + size]);
                        push(cells, self.scalar, first, target, table)?;
                    }
                    read += rows;
                }
            }
            Body::Columns { file, begin } => {
                for target in targets {
                    let cell = target.within as u64 * self.rows + self.done;
                    let begin = *begin + cell * size as u64;
                    let mut input = Window::new(file, begin, count as u64 * size as u64);
                    let mut read = 0;
                    while read < count {
                        let rows = (CHUNK / size).clamp(1, count - read);
                        self.buffer.resize(rows * size, 0);
                        let first = self.done + read as u64;
                        fill(&mut input, &mut self.buffer, &self.place, first)?;
                        let cells = self.buffer.chunks_exact(size);
                        push(cells, self.scalar, first, target, table)?;
                        read += rows;
                    }
                }
            }
        }
        self.done += count as u64;
        Ok(())
    }
}

/// Whether the order of the values is another than row after row.
fn by_columns(header: &Header) -> bool {
    header.fortran && matches!(header.shape[..], [rows, columns] if rows > 1 && columns > 1)
}

fn too_deep(place: &str, sizes: &[u64]) -> Error {
    Error::data(format!("an array of the shape {}", shape(sizes)))
        .at(place)
        .expected("one or two dimensions")
        .advice("save it as `array.reshape(len(array), -1)`")
}

fn cut_short(place: &str, length: u64, expected: u64) -> Error {
    Error::data(format!("{length} bytes of values"))
        .at(place)
        .expected(format!("{expected} as its header says"))
        .advice("the file was cut short: copy or save it again")
}

/// A shape as Python writes it.
pub(super) fn shape(sizes: &[u64]) -> String {
    let texts: Vec<String> = sizes.iter().map(u64::to_string).collect();
    format!("({}{})", texts.join(", "), if sizes.len() == 1 { "," } else { "" })
}

/// Reads as many bytes as fit.
fn fill(input: &mut impl Read, buffer: &mut [u8], place: &str, rows: u64) -> Result<()> {
    input.read_exact(buffer).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => {
            Error::data(format!("the end of the file soon after row {rows}"))
                .at(place)
                .expected("as many rows as its header says")
                .advice("the file was cut short: copy or save it again")
        }
        _ => Error::io(place, "read", error),
    })
}

/// Appends cells to a column; `done` rows precede them.
fn push<'a>(
    cells: impl Iterator<Item = &'a [u8]>,
    scalar: Scalar,
    done: u64,
    target: &mut Target<'_>,
    table: &Table,
) -> Result<()> {
    let mut text = String::new();
    for (index, cell) in cells.enumerate() {
        let pushed = match decode(cell, scalar, &mut text) {
            Some(value) => target.builder.push(value, &table.spelling),
            None => Err(Fault::new(Kind::Text, cell)),
        };
        if let Err(fault) = pushed {
            let place = table.place(Place::Row(done + index as u64 + 1), Some(target.column));
            return Err(fault.error(place, &table.columns[target.column], None));
        }
    }
    Ok(())
}

/// The value of some bytes; `None` for characters that do not exist.
#[inline]
pub(super) fn decode<'a>(
    cell: &'a [u8],
    scalar: Scalar,
    text: &'a mut String,
) -> Option<Value<'a>> {
    Some(match scalar.class {
        Class::Float if cell.len() == 4 => {
            Value::Single(f32::from_bits(unsigned(cell, scalar) as u32))
        }
        Class::Float => Value::Float(f64::from_bits(unsigned(cell, scalar))),
        Class::Unsigned => Value::Unsigned(unsigned(cell, scalar)),
        Class::Signed => {
            // The sign is in the highest of the bits that the cell has.
            let unused = 64 - 8 * cell.len() as u32;
            Value::Signed(((unsigned(cell, scalar) << unused) as i64) >> unused)
        }
        Class::Boolean => Value::Boolean(cell != [0]),
        Class::Bytes => {
            let length = cell.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Value::Cell(&cell[..length])
        }
        Class::Unicode => {
            text.clear();
            for code in cell.chunks_exact(4) {
                text.push(char::from_u32(unsigned(code, scalar) as u32)?);
            }
            Value::Cell(text.trim_end_matches('\0').as_bytes())
        }
    })
}

/// The bits of up to eight bytes.
#[inline]
fn unsigned(cell: &[u8], scalar: Scalar) -> u64 {
    let mut bytes = [0; 8];
    if scalar.big_endian {
        bytes[8 - cell.len()..].copy_from_slice(cell);
        u64::from_be_bytes(bytes)
    } else {
        bytes[..cell.len()].copy_from_slice(cell);
        u64::from_le_bytes(bytes)
    }
}
