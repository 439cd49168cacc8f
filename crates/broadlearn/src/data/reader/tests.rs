//! The readers as their callers see them: rules, messages, and input that nobody meant.

#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::{Batch, Column, Format, Kind, ReadOptions, TableReader};
use crate::data::MISSING;
use crate::error::{Category, Error, Result};

fn open(name: &str, bytes: impl Into<Vec<u8>>) -> Result<TableReader> {
    open_with(name, bytes, &ReadOptions::default())
}

fn open_with(name: &str, bytes: impl Into<Vec<u8>>, options: &ReadOptions) -> Result<TableReader> {
    TableReader::from_reader(name, Box::new(Cursor::new(bytes.into())), options)
}

/// All rows as texts; a missing value is a `-`.
pub(in super::super) fn rows(table: &mut TableReader, max_rows: usize) -> Result<Vec<Vec<String>>> {
    let mut rows = vec![];
    while let Some(batch) = table.next_batch(max_rows)? {
        assert_eq!(batch.first_row, rows.len() as u64 + 1);
        rows.extend((0..batch.rows()).map(|row| cells(&batch, row)));
    }
    assert!(table.next_batch(max_rows)?.is_none());
    Ok(rows)
}

fn cells(batch: &Batch, row: usize) -> Vec<String> {
    let cell = |column: &Column| match column {
        Column::Number(values) if values[row].is_nan() => "-".to_owned(),
        Column::Number(values) => values[row].to_string(),
        Column::Text { codes, .. } if codes[row] == MISSING => "-".to_owned(),
        Column::Text { codes, levels } => levels[codes[row] as usize].clone(),
    };
    batch.columns.iter().map(cell).collect()
}

fn error(name: &str, bytes: impl Into<Vec<u8>>) -> Error {
    open(name, bytes).and_then(|mut table| rows(&mut table, 100).map(drop)).unwrap_err()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

mod delimited;

mod json_lines;

/// Streams that come piece by piece.
mod live;

/// The bytes of a NumPy array.
fn npy(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(values);
    bytes
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn unicode(texts: &[&str], length: usize) -> Vec<u8> {
    let padded = texts
        .iter()
        .flat_map(|text| text.chars().map(u32::from).chain(std::iter::repeat(0)).take(length));
    padded.flat_map(u32::to_le_bytes).collect()
}

/// The bytes of an archive, with the headers that NumPy writes: no sizes before the members.
fn npz(members: &[(&str, Vec<u8>)], deflated: bool) -> Vec<u8> {
    let (mut archive, mut directory) = (vec![], vec![]);
    for (name, bytes) in members {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        let packed = if deflated {
            let mut encoder = DeflateEncoder::new(vec![], Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        } else {
            bytes.clone()
        };
        let method: u16 = if deflated { 8 } else { 0 };
        let begin = archive.len() as u32;
        archive.extend(b"PK\x03\x04\x2d\0\0\0");
        archive.extend(method.to_le_bytes());
        archive.extend([0; 8]);
        archive.extend([0xff; 8]);
        archive.extend((name.len() as u16).to_le_bytes());
        archive.extend([20, 0]);
        archive.extend(name.as_bytes());
        archive.extend([1, 0, 16, 0]);
        archive.extend([0; 16]);
        archive.extend(&packed);
        directory.extend(b"PK\x01\x02\x2d\0\x2d\0\0\0");
        directory.extend(method.to_le_bytes());
        directory.extend([0; 4]);
        directory.extend(sum.sum().to_le_bytes());
        directory.extend((packed.len() as u32).to_le_bytes());
        directory.extend((bytes.len() as u32).to_le_bytes());
        directory.extend((name.len() as u16).to_le_bytes());
        directory.extend([0; 12]);
        directory.extend(begin.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let begin = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend((members.len() as u16).to_le_bytes());
    archive.extend((members.len() as u16).to_le_bytes());
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(begin.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

mod numpy;

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_another_build() {
    for name in ["t.parquet", "t"] {
        let error = error(name, *b"PAR1\x15\x04");
        assert_eq!(
            error.to_string(),
            format!(
                "{name}: found a Parquet file, which this build cannot read; expected delimited \
                 text or NumPy arrays"
            )
        );
        assert!(error.help().unwrap().contains("--features parquet"));
    }
}

/// Whatever the bytes are: rows or an error, never a panic and never much memory.
#[test]
fn damaged_files_do_no_harm() {
    let text = "a,b,c\n1,x,yes\n2.5,\"y \"\"z\"\"\",no\n,NA,?\n1e5,\"m\nn\",true\n";
    let json =
        "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"\\u00e9\",\"a\":-2.5e3}\n\n{\"a\":null,\"c\":[true]}\n";
    let array = npy("'<f8'", true, "(2, 3)", &doubles(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let labels = npy("'<U3'", false, "(2,)", &unicode(&["cat", "dog"], 3));
    let members = [("X.npy", array.clone()), ("y.npy", labels.clone())];
    #[cfg_attr(not(feature = "parquet"), allow(unused_mut))]
    let mut files = vec![
        ("t.csv", text.into()),
        ("t", gzip(text.as_bytes())),
        ("t.jsonl", json.into()),
        ("t.npy", array),
        ("t.npy", labels),
        ("t.npz", npz(&members, false)),
        ("t.npz", npz(&members, true)),
    ];
    #[cfg(feature = "parquet")]
    files.push(("t.parquet", super::super::parquet::tests::sample()));
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut good, mut bad) = (0, 0);
    for (name, bytes) in files {
        for _ in 0..3000 {
            let mut bytes: Vec<u8> = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(6) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes[at] ^= 1 << random(8),
                    2 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'"', b'9'][random(6)],
                    3 => bytes.truncate(at.max(1)),
                    4 => {
                        bytes.remove(at);
                        bytes.push(0);
                    }
                    _ => bytes.insert(at, b"\",\n0123456789"[random(13)]),
                }
            }
            let result = open(Path::new(name).to_str().unwrap(), bytes)
                .and_then(|mut table| rows(&mut table, 1 + random(5)));
            match result {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}
