//! Archives of NumPy arrays as tables: the columns of all arrays side by side.

pub(super) mod zip;

use std::fs::File;
use std::sync::{Arc, Mutex};

use super::batch::{Column, Kind};
use super::builder::Builder;
use super::cell::Spelling;
use super::input::Input;
use super::npy::{Array, Opened, Target};
use super::reader::{ReadOptions, Source, Table};
use super::records::MOST_FIELDS;
use crate::error::{Error, Result};
use zip::Member;

/// More arrays are refused: each needs the memory of a decompressor.
const MOST_ARRAYS: usize = 4096;

/// An archive whose arrays are read in step.
pub(super) struct Npz {
    table: Table,
    file: Arc<Mutex<File>>,
    members: Vec<Placed>,
    /// The arrays that columns were selected from; opened with the first rows.
    arrays: Option<Vec<(usize, Array)>>,
}

/// A member and the columns of the table that are its own.
struct Placed {
    member: Member,
    columns: std::ops::Range<usize>,
}

/// Reads the directory and all headers.
pub(super) fn open(input: Input, options: &ReadOptions) -> Result<Npz> {
    let name = input.name.clone();
    let (mut file, length) = input.file()?;
    let found = zip::members(&name, &mut file, length)?;
    let file = Arc::new(Mutex::new(file));
    let (mut columns, mut kinds) = (Vec::new(), Vec::new());
    let mut members = Vec::new();
    let mut rows: Vec<(String, u64)> = Vec::new();
    for member in found {
        let Some(array_name) = array_name(&member) else { continue };
        let part = member.part(&file);
        let Opened::Array(array) = Array::open(&place(&name, array_name), part)? else { continue };
        let begin = columns.len();
        if members.len() == MOST_ARRAYS || begin + array.columns > MOST_FIELDS {
            return Err(Error::data("too many arrays or columns")
                .at(name)
                .expected(format!("{MOST_ARRAYS} arrays, {MOST_FIELDS} columns or fewer")));
        }
        if array.flat {
            columns.push(array_name.to_owned());
        } else {
            columns.extend((1..=array.columns).map(|number| format!("{array_name}{number}")));
        }
        kinds.resize(columns.len(), array.scalar.kind());
        rows.push((array_name.to_owned(), array.rows));
        members.push(Placed { member, columns: begin..columns.len() });
    }
    check_rows(&name, &rows)?;
    let spelling = Spelling::new(&options.missing, false);
    let table = Table { name, columns, kinds, spelling };
    Ok(Npz { table, file, members, arrays: None })
}

/// Members with other names are no arrays.
pub(super) fn array_name(member: &Member) -> Option<&str> {
    member.name.strip_suffix(".npy")
}

pub(super) fn place(name: &str, array_name: &str) -> String {
    format!("{name}, array `{array_name}`")
}

fn check_rows(name: &str, rows: &[(String, u64)]) -> Result<()> {
    let Some((_, first)) = rows.first() else {
        return Err(Error::data("an archive without arrays")
            .at(name)
            .expected("arrays as written by `numpy.savez`"));
    };
    if rows.iter().all(|(_, count)| count == first) {
        return Ok(());
    }
    const MOST: usize = 10;
    let counts = rows.iter().take(MOST).map(|(array, count)| format!("`{array}` has {count}"));
    let counts: Vec<String> = counts.collect();
    let more = if rows.len() > MOST { ", ..." } else { "" };
    Err(Error::data(format!("arrays with different numbers of rows ({}{more})", counts.join(", ")))
        .at(name)
        .expected("the same number in all")
        .advice("save only arrays that belong together with `numpy.savez`"))
}

impl Npz {
    /// Opens the arrays that columns were selected from.
    fn open_arrays(&self, selection: &[(usize, Kind)]) -> Result<Vec<(usize, Array)>> {
        let mut arrays = Vec::new();
        for (number, placed) in self.members.iter().enumerate() {
            if selection.iter().any(|(index, _)| placed.columns.contains(index)) {
                let member = &placed.member;
                let place = place(&self.table.name, array_name(member).unwrap_or_default());
                if let Opened::Array(array) = Array::open(&place, member.part(&self.file))? {
                    arrays.push((number, array));
                }
            }
        }
        Ok(arrays)
    }
}

impl Source for Npz {
    fn table(&self) -> &Table {
        &self.table
    }

    fn read(&mut self, selection: &[(usize, Kind)], max_rows: usize) -> Result<Vec<Column>> {
        let mut arrays = match self.arrays.take() {
            Some(arrays) => arrays,
            None => self.open_arrays(selection)?,
        };
        let mut builders = Builder::all(selection);
        for (number, array) in &mut arrays {
            let columns = &self.members[*number].columns;
            let mut targets: Vec<Target<'_>> = builders
                .iter_mut()
                .zip(selection)
                .filter(|(_, (column, _))| columns.contains(column))
                .map(|(builder, (column, _))| Target {
                    within: *column - columns.start,
                    column: *column,
                    builder,
                })
                .collect();
            array.read(max_rows, &mut targets, &self.table)?;
        }
        self.arrays = Some(arrays);
        Ok(builders.into_iter().map(Builder::finish).collect())
    }
}
