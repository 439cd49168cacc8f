//! Parquet files as tables, one row group after the other.
//!
//! By the plain column readers of the crate `parquet`: its bridge to Arrow would give nothing that
//! is needed here and takes as long again to build.

use std::fs::File;
use std::io::{self, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::{AsBytes, DataType};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use ::parquet::schema::types::ColumnDescriptor;
use bytes::Bytes;

use super::batch::{Column, Kind};
use super::builder::{Builder, Value};
use super::cell::{Fault, Spelling};
use super::input::{Input, Window};
use super::number;
use super::reader::{Place, ReadOptions, Source, Table};
use crate::error::{Error, Result};

/// How many rows are decoded at once.
const CHUNK: usize = 8192;

/// A Parquet file.
pub(super) struct Parquet {
    table: Table,
    file: SerializedFileReader<Chunks>,
    meanings: Vec<Meaning>,
    /// The next row group.
    group: usize,
    /// How many rows of the current row group are left, and the readers of the selected columns.
    left: usize,
    readers: Vec<ColumnReader>,
    /// How many rows have been read.
    done: u64,
}

/// Reads the metadata at the end of the file.
pub(super) fn open(input: Input, options: &ReadOptions) -> Result<Parquet> {
    let name = input.name.clone();
    let (file, length) = input.file()?;
    let chunks = Chunks { file: Arc::new(Mutex::new(file)), length };
    let file = guarded(&name, || SerializedFileReader::new(chunks))?;
    let schema = file.metadata().file_metadata().schema_descr();
    let meanings: Vec<Meaning> = schema.columns().iter().map(|leaf| Meaning::of(leaf)).collect();
    let columns: Vec<String> = schema.columns().iter().map(|leaf| leaf.path().string()).collect();
    if columns.is_empty() {
        return Err(Error::data("a table without columns").at(name).expected("at least one"));
    }
    let kinds = meanings.iter().map(|meaning| meaning.kind()).collect();
    let spelling = Spelling::new(&options.missing, false);
    let table = Table { name, columns, kinds, spelling };
    Ok(Parquet { table, file, meanings, group: 0, left: 0, readers: Vec::new(), done: 0 })
}

impl Source for Parquet {
    fn table(&self) -> &Table {
        &self.table
    }

    fn read(&mut self, selection: &[(usize, Kind)], max_rows: usize) -> Result<Vec<Column>> {
        for (index, _) in selection {
            self.meanings[*index].check(&self.table, *index)?;
        }
        let mut builders = Builder::all(selection);
        let mut read = 0;
        while read < max_rows {
            if self.left == 0 && !self.open_group(selection)? {
                break;
            }
            let count = self.left.min(max_rows - read).min(CHUNK);
            let Self { table, meanings, readers, done, .. } = self;
            for ((reader, builder), (index, _)) in
                readers.iter_mut().zip(&mut builders).zip(selection)
            {
                let mut rows = 0;
                let mut fault = None;
                let levels = &meanings[*index];
                let pulled = guarded(&table.name, || {
                    pull_any(reader, levels, count, &table.spelling, builder, &mut rows, &mut fault)
                });
                if let Some(fault) = fault {
                    let place = table.place(Place::Row(*done + rows), Some(*index));
                    return Err(fault.error(place, &table.columns[*index], None));
                }
                pulled?;
                if rows < count as u64 {
                    let place = table.place(Place::Row(*done + rows + 1), Some(*index));
                    return Err(Error::data("the end of the column")
                        .at(place)
                        .expected("as many values as its row group has rows"));
                }
            }
            self.left -= count;
            self.done += count as u64;
            read += count;
        }
        Ok(builders.into_iter().map(Builder::finish).collect())
    }
}

impl Parquet {
    /// Goes to the next row group that has rows. `false` after the last.
    fn open_group(&mut self, selection: &[(usize, Kind)]) -> Result<bool> {
        while self.group < self.file.num_row_groups() {
            let (file, group) = (&self.file, self.group);
            let (rows, readers) = guarded(&self.table.name, || {
                let group = file.get_row_group(group)?;
                let readers = selection.iter().map(|(index, _)| group.get_column_reader(*index));
                Ok((group.metadata().num_rows(), readers.collect::<ParquetResult<_>>()?))
            })?;
            self.group += 1;
            self.readers = readers;
            self.left = usize::try_from(rows).map_err(|_| {
                Error::data(format!("a row group of {rows} rows")).at(&self.table.name)
            })?;
            if self.left > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What the values of a column stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Meaning {
    class: Class,
    /// The level of a value that is present; 0 if all are.
    level: i16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Class {
    Boolean,
    Signed,
    Unsigned,
    Float,
    /// A whole number to be divided by so many tens.
    Decimal(i32),
    Text,
    /// Days since the beginning of 1970.
    Date,
    /// Parts of a second since the beginning of 1970, so many to a second.
    Timestamp(i64),
    /// Not for a table; says what it is.
    Other(&'static str),
}

impl Meaning {
    fn of(leaf: &ColumnDescriptor) -> Self {
        let nested = leaf.path().parts().len() > 1 || leaf.max_rep_level() > 0;
        let class = if nested { Class::Other("a nested column") } else { class(leaf) };
        Self { class, level: leaf.max_def_level() }
    }

    /// The kind that a CSV file with the same values would be found to have.
    fn kind(&self) -> Kind {
        match self.class {
            Class::Boolean => Kind::Boolean,
            Class::Signed | Class::Unsigned | Class::Float | Class::Decimal(_) => Kind::Number,
            Class::Text | Class::Date | Class::Timestamp(_) | Class::Other(_) => Kind::Text,
        }
    }

    fn check(&self, table: &Table, index: usize) -> Result<()> {
        let Class::Other(found) = self.class else { return Ok(()) };
        Err(Error::data(found)
            .at(format!("{}, column `{}`", table.name, table.columns[index]))
            .expected("numbers, booleans, texts, dates or timestamps")
            .advice("leave the column out, or convert it before writing the file"))
    }
}

fn class(leaf: &ColumnDescriptor) -> Class {
    use ConvertedType as Old;
    let (old, logical) = (leaf.converted_type(), leaf.logical_type_ref());
    match leaf.physical_type() {
        Type::BOOLEAN => Class::Boolean,
        Type::FLOAT | Type::DOUBLE => Class::Float,
        Type::INT32 | Type::INT64 => match (old, logical) {
            (Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64, _) => Class::Unsigned,
            (Old::DECIMAL, _) => Class::Decimal(leaf.type_scale()),
            (Old::DATE, _) => Class::Date,
            (Old::TIMESTAMP_MILLIS, _) => Class::Timestamp(1_000),
            (Old::TIMESTAMP_MICROS, _) => Class::Timestamp(1_000_000),
            (Old::TIME_MILLIS | Old::TIME_MICROS, _) => Class::Other("times of day"),
            (_, Some(LogicalType::Integer(integer))) if !integer.is_signed => Class::Unsigned,
            (_, Some(LogicalType::Decimal(decimal))) => Class::Decimal(decimal.scale),
            (_, Some(LogicalType::Date)) => Class::Date,
            (_, Some(LogicalType::Timestamp(timestamp))) => {
                Class::Timestamp(match timestamp.unit {
                    TimeUnit::MILLIS => 1_000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                })
            }
            (_, Some(LogicalType::Time(_))) => Class::Other("times of day"),
            _ => Class::Signed,
        },
        Type::BYTE_ARRAY => match (old, logical) {
            (Old::DECIMAL, _) => Class::Decimal(leaf.type_scale()),
            (Old::UTF8 | Old::ENUM | Old::JSON, _) => Class::Text,
            (_, None | Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)) => {
                Class::Text
            }
            _ => Class::Other("bytes that are no text"),
        },
        Type::FIXED_LEN_BYTE_ARRAY => match (old, logical) {
            (Old::DECIMAL, _) => Class::Decimal(leaf.type_scale()),
            (_, Some(LogicalType::Decimal(decimal))) => Class::Decimal(decimal.scale),
            _ => Class::Other("bytes that are no text"),
        },
        Type::INT96 => Class::Other("timestamps of the old type INT96"),
    }
}

/// Appends the next `count` values of a column, whatever its type; `rows` counts those that were
/// looked at, the one with the fault included.
fn pull_any(
    reader: &mut ColumnReader,
    meaning: &Meaning,
    count: usize,
    spelling: &Spelling,
    builder: &mut Builder,
    rows: &mut u64,
    fault: &mut Option<Fault>,
) -> ParquetResult<()> {
    let class = &meaning.class;
    let mut push = |value: Value<'_>| {
        *rows += 1;
        builder.push(value, spelling).is_err_and(|found| {
            *fault = Some(found);
            true
        })
    };
    let level = meaning.level;
    match reader {
        ColumnReader::BoolColumnReader(reader) => pull(reader, level, count, |value| {
            push(value.map_or(Value::Missing, |value| Value::Boolean(*value)))
        }),
        ColumnReader::Int32ColumnReader(reader) => {
            pull(reader, level, count, |value| match value {
                None => push(Value::Missing),
                Some(value) if *class == Class::Unsigned => {
                    push(Value::Unsigned((*value as u32).into()))
                }
                Some(value) => push_integer((*value).into(), class, &mut push),
            })
        }
        ColumnReader::Int64ColumnReader(reader) => {
            pull(reader, level, count, |value| match value {
                None => push(Value::Missing),
                Some(value) => push_integer(*value, class, &mut push),
            })
        }
        ColumnReader::FloatColumnReader(reader) => pull(reader, level, count, |value| {
            push(value.map_or(Value::Missing, |value| Value::Single(*value)))
        }),
        ColumnReader::DoubleColumnReader(reader) => pull(reader, level, count, |value| {
            push(value.map_or(Value::Missing, |value| Value::Float(*value)))
        }),
        ColumnReader::ByteArrayColumnReader(reader) => pull(reader, level, count, |value| {
            push_bytes(value.map(AsBytes::as_bytes), class, &mut push)
        }),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            pull(reader, level, count, |value| {
                push_bytes(value.map(AsBytes::as_bytes), class, &mut push)
            })
        }
        // Refused before.
        ColumnReader::Int96ColumnReader(_) => Ok(()),
    }
}

/// Hands on the next `count` values, `None` for a missing one, until one is refused.
fn pull<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    level: i16,
    count: usize,
    mut push: impl FnMut(Option<&T::T>) -> bool,
) -> ParquetResult<()> {
    let mut left = count;
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    while left > 0 {
        levels.clear();
        values.clear();
        let (records, ..) = reader.read_records(left, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        let mut present = values.iter();
        for record in 0..records.min(left) {
            let is_present = level == 0 || levels.get(record) == Some(&level);
            if push(if is_present { present.next() } else { None }) {
                return Ok(());
            }
        }
        left -= records.min(left);
    }
    Ok(())
}

fn push_integer(value: i64, class: &Class, push: &mut impl FnMut(Value<'_>) -> bool) -> bool {
    match class {
        Class::Unsigned => push(Value::Unsigned(value as u64)),
        Class::Decimal(scale) => push(decimal(value.into(), *scale)),
        Class::Date => push(Value::Cell(date(value).as_bytes())),
        Class::Timestamp(unit) => push(Value::Cell(timestamp(value, *unit).as_bytes())),
        _ => push(Value::Signed(value)),
    }
}

fn push_bytes(
    value: Option<&[u8]>,
    class: &Class,
    push: &mut impl FnMut(Value<'_>) -> bool,
) -> bool {
    match (value, class) {
        (None, _) => push(Value::Missing),
        (Some(bytes), Class::Decimal(scale)) if (1..=16).contains(&bytes.len()) => {
            // Big-endian in two's complement.
            let sign: i128 = if bytes[0] >= 0x80 { -1 } else { 0 };
            let whole = bytes.iter().fold(sign, |whole, byte| whole << 8 | i128::from(*byte));
            push(decimal(whole, *scale))
        }
        (Some(bytes), _) => push(Value::Cell(bytes)),
    }
}

/// By way of the text, which gives the nearest number.
fn decimal(whole: i128, scale: i32) -> Value<'static> {
    let text = format!("{whole}e{}", -i64::from(scale));
    Value::Float(number::parse(text.as_bytes()).unwrap_or(f64::NAN))
}

/// `2024-02-29`, by the algorithm of <https://howardhinnant.github.io/date_algorithms.html>: years
/// begin in March, so that the leap day is the last.
fn date(days: i64) -> String {
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + later)
}

/// `2024-02-29 23:59:59`, with a fraction of the second only if there is one.
fn timestamp(value: i64, unit: i64) -> String {
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{} {hour:02}:{minute:02}:{second:02}", date(days));
    if fraction > 0 {
        let digits = unit.ilog10() as usize;
        text += &format!(".{fraction:0digits$}");
    }
    text
}

/// Turns the errors of the crate `parquet` into ours, and its panics on damaged files, too.
fn guarded<T>(name: &str, action: impl FnOnce() -> ParquetResult<T>) -> Result<T> {
    let damaged = |what: &str| {
        Error::data(format!("Parquet data that cannot be read ({what})"))
            .at(name)
            .expected("a whole Parquet file, uncompressed or compressed with Snappy or Zstandard")
    };
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(damaged(&error.to_string()).caused_by(error)),
        Err(_) => Err(damaged("it is damaged")),
    }
}

/// A file as the crate `parquet` wants it. Unlike its own implementation this one compares lengths
/// with that of the file before it takes memory.
struct Chunks {
    file: Arc<Mutex<File>>,
    length: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<Window>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let length = self.length.saturating_sub(start);
        Ok(BufReader::new(Window::new(&self.file, start, length)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!("no {length} bytes at {start}")));
        }
        let mut bytes = vec![0; length];
        let mut window = Window::new(&self.file, start, length as u64);
        io::Read::read_exact(&mut window, &mut bytes)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use ::parquet::basic::Compression;
    use ::parquet::data_type::{
        BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type,
    };
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use ::parquet::schema::parser::parse_message_type;

    use super::super::{ReadOptions, TableReader};
    use super::*;

    type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

    fn put<T: DataType>(group: &mut Group<'_>, values: &[T::T], levels: Option<&[i16]>) {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, levels, None).unwrap();
        column.close().unwrap();
    }

    fn write(schema: &str, groups: usize, mut fill: impl FnMut(&mut Group<'_>)) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer =
            SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        for _ in 0..groups {
            let mut group = writer.next_row_group().unwrap();
            fill(&mut group);
            group.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    /// A table of two row groups with two rows each.
    pub(in super::super) fn sample() -> Vec<u8> {
        let schema = "message table {
            required double x; optional float f; optional boolean b; optional int32 i;
            required int32 u (UINT_32); required int64 n; optional binary s (UTF8);
            required int32 d (DATE); required int64 t (TIMESTAMP_MILLIS);
            required int32 m (DECIMAL(5,2)); required fixed_len_byte_array(3) w (DECIMAL(6,1));
        }";
        write(schema, 2, |group| {
            put::<DoubleType>(group, &[1.5, f64::NAN], None);
            put::<FloatType>(group, &[0.1], Some(&[1, 0]));
            put::<BoolType>(group, &[true], Some(&[0, 1]));
            put::<Int32Type>(group, &[-7, 8], Some(&[1, 1]));
            put::<Int32Type>(group, &[-1, 1], None);
            put::<Int64Type>(group, &[1 << 40, -3], None);
            put::<ByteArrayType>(group, &[ByteArray::from("é ")], Some(&[0, 1]));
            put::<Int32Type>(group, &[0, 19_782], None);
            put::<Int64Type>(group, &[-1, 86_400_000], None);
            put::<Int32Type>(group, &[1234, -5], None);
            let bytes = |bytes: [u8; 3]| FixedLenByteArray::from(bytes.to_vec());
            put::<FixedLenByteArrayType>(group, &[bytes([255; 3]), bytes([0, 1, 0])], None);
        })
    }

    fn open(bytes: Vec<u8>) -> Result<TableReader> {
        TableReader::from_reader("t", Box::new(io::Cursor::new(bytes)), &ReadOptions::default())
    }

    #[test]
    fn every_type() {
        use Kind::{Boolean, Number, Text};
        for max_rows in 1..6 {
            let mut table = open(sample()).unwrap();
            assert_eq!(table.columns(), ["x", "f", "b", "i", "u", "n", "s", "d", "t", "m", "w"]);
            let kinds =
                [Number, Number, Boolean, Number, Number, Number, Text, Text, Text, Number, Number];
            assert_eq!(table.kinds(), kinds);
            let rows = super::super::reader::tests::rows(&mut table, max_rows).unwrap();
            let single = f64::from(0.1f32).to_string();
            let first = [
                "1.5",
                &single,
                "-",
                "-7",
                "4294967295",
                "1099511627776",
                "-",
                "1970-01-01",
                "1969-12-31 23:59:59.999",
                "12.34",
                "-0.1",
            ];
            let second = [
                "-",
                "-",
                "1",
                "8",
                "1",
                "-3",
                "é",
                "2024-02-29",
                "1970-01-02 00:00:00",
                "-0.05",
                "25.6",
            ];
            assert_eq!(rows, [first, second, first, second]);
        }
    }

    #[test]
    fn selected_columns() {
        let mut table = open(sample()).unwrap();
        table.select(&[(4, Kind::Text), (0, Kind::Number), (4, Kind::Number)]).unwrap();
        let rows = super::super::reader::tests::rows(&mut table, 3).unwrap();
        assert_eq!(rows[..2], [["4294967295", "1.5", "4294967295"], ["1", "-", "1"]]);
        let mut table = open(sample()).unwrap();
        table.select(&[(6, Kind::Number)]).unwrap();
        assert_eq!(
            table.next_batch(9).unwrap_err().to_string(),
            "t, row 2, column `s`: found text `é`; expected a number"
        );
    }

    #[test]
    fn nested_columns() {
        let schema = "message table { required double x; repeated int32 y; }";
        let bytes = write(schema, 1, |group| {
            put::<DoubleType>(group, &[1.0], None);
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int32Type>().write_batch(&[1, 2], Some(&[1, 1]), Some(&[0, 1])).unwrap();
            column.close().unwrap();
        });
        assert_eq!(
            open(bytes.clone()).unwrap().next_batch(9).unwrap_err().to_string(),
            "t, column `y`: found a nested column; expected numbers, booleans, texts, dates or \
             timestamps"
        );
        let mut table = open(bytes).unwrap();
        table.select(&[(0, Kind::Number)]).unwrap();
        assert_eq!(super::super::reader::tests::rows(&mut table, 9).unwrap(), [["1"]]);
    }

    #[test]
    fn many_rows() {
        let schema = "message table { optional double x; required binary s (UTF8); }";
        let count = 20_000;
        let levels: Vec<i16> = (0..count).map(|row| i16::from(row % 3 != 0)).collect();
        let values: Vec<f64> = (0..count).filter(|row| row % 3 != 0).map(f64::from).collect();
        let texts: Vec<ByteArray> =
            (0..count).map(|row| ByteArray::from(format!("t{}", row % 100).as_str())).collect();
        let bytes = write(schema, 2, |group| {
            put::<DoubleType>(group, &values, Some(&levels));
            put::<ByteArrayType>(group, &texts, None);
        });
        let mut table = open(bytes).unwrap();
        let rows = super::super::reader::tests::rows(&mut table, 9999).unwrap();
        assert_eq!(rows.len(), 40_000);
        for (row, cells) in rows.iter().enumerate() {
            let row = row % 20_000;
            let number = if row % 3 == 0 { "-".to_owned() } else { row.to_string() };
            assert_eq!(*cells, [number, format!("t{}", row % 100)]);
        }
    }

    #[test]
    fn damage() {
        let mut bytes = sample();
        bytes.truncate(bytes.len() - 9);
        let error = open(bytes).err().unwrap().to_string();
        assert!(error.starts_with("t: found Parquet data that cannot be read ("), "{error}");
    }
}
