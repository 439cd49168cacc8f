//! How the columns of a table become numbers: found on the training rows, then frozen.

use super::batch::{Column, Kind, MISSING};
use super::schema_reader::Surprises;
use super::target::TargetSchema;
use crate::error::{Error, Result};
use crate::preprocess::statistics;
use faer::{Mat, MatMut};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::HashMap;

/// How one input column becomes one or more columns of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "as")]
pub enum Encoding {
    /// The number itself; a missing one becomes `fill`, the training median. With `indicator`,
    /// which training columns with missing values get, a second column says 1 where it was missing.
    Number {
        /// What takes the place of a missing value.
        fill: f64,
        /// Whether a second column marks missing values.
        indicator: bool,
    },
    /// One column per level, 1 where the cell has that level. A level not seen in training becomes
    /// all zeros.
    Category {
        /// The levels, in ascending order.
        levels: Vec<String>,
        /// Whether missing is a level of its own, the last column.
        missing: bool,
    },
}

impl Encoding {
    /// The number of columns that it makes.
    pub fn width(&self) -> usize {
        match self {
            Self::Number { indicator, .. } => 1 + usize::from(*indicator),
            Self::Category { levels, missing } => levels.len() + usize::from(*missing),
        }
    }
}

/// An input column: its name, how its cells are read, how they become numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputColumn {
    /// The name by which it is found.
    pub name: String,
    /// How its cells are read.
    pub kind: Kind,
    /// How they become numbers.
    pub encoding: Encoding,
}

/// The columns of a table and their meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The input columns, in the order of the model's inputs.
    pub inputs: Vec<InputColumn>,
    /// The target.
    pub target: TargetSchema,
    /// The column of sample weights, if there was one.
    pub weight: Option<String>,
    /// The texts that the user declared to mean a missing value, beside the usual ones.
    pub missing: Vec<String>,
}

impl Schema {
    /// The schema of plain numeric columns `x1` .. `xM`, as a matrix has them.
    pub fn numeric(inputs: usize, target: TargetSchema) -> Self {
        let column = |index| InputColumn {
            name: format!("x{index}"),
            kind: Kind::Number,
            encoding: Encoding::Number { fill: 0.0, indicator: false },
        };
        Self {
            inputs: (1..=inputs).map(column).collect(),
            target,
            weight: None,
            missing: Vec::new(),
        }
    }

    /// The number of columns after encoding: the model's inputs M.
    pub fn width(&self) -> usize {
        self.inputs.iter().map(|input| input.encoding.width()).sum()
    }

    /// The names of the columns after encoding.
    pub fn encoded_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.width());
        for input in &self.inputs {
            match &input.encoding {
                Encoding::Number { indicator, .. } => {
                    names.push(input.name.clone());
                    if *indicator {
                        names.push(format!("{} is missing", input.name));
                    }
                }
                Encoding::Category { levels, missing } => {
                    names.extend(levels.iter().map(|level| format!("{}={level}", input.name)));
                    if *missing {
                        names.push(format!("{} is missing", input.name));
                    }
                }
            }
        }
        names
    }

    /// The cells of the input columns that encode to this row; empty for a missing value and for a
    /// level that training had not seen.
    pub fn decode(&self, row: &[f64]) -> Vec<String> {
        let mut rest = row;
        let cells = self.inputs.iter().map(|input| {
            let (cell, further) = rest.split_at(input.encoding.width().min(rest.len()));
            rest = further;
            match &input.encoding {
                Encoding::Number { indicator, .. } => match (cell, input.kind) {
                    ([_, missing], _) if *indicator && *missing == 1.0 => String::new(),
                    ([value, ..], Kind::Boolean) => (*value != 0.0).to_string(),
                    ([value, ..], _) => value.to_string(),
                    _ => String::new(),
                },
                Encoding::Category { levels, .. } => {
                    let level = cell.iter().position(|&value| value == 1.0);
                    level.and_then(|level| levels.get(level)).cloned().unwrap_or_default()
                }
            }
        });
        cells.collect()
    }

    /// Turns columns, one per input and in its order, into the model's inputs. Owned columns are
    /// freed one by one.
    pub(super) fn encode<C: Borrow<Column>>(
        &self,
        rows: usize,
        columns: impl IntoIterator<Item = C>,
        surprises: &mut Surprises,
    ) -> Mat<f64> {
        let mut x = Mat::zeros(rows, self.width());
        let mut start = 0;
        for (place, (input, column)) in self.inputs.iter().zip(columns).enumerate() {
            let width = input.encoding.width();
            let unseen =
                input.encoding.write(column.borrow(), x.as_mut().subcols_mut(start, width));
            if unseen > 0 {
                surprises.add_unseen(place, unseen);
            }
            start += width;
        }
        x
    }
}

impl Encoding {
    /// Finds the encoding of a column on training rows with their weights.
    pub(super) fn find(
        column: &Column,
        kind: Kind,
        weights: Option<&[f64]>,
        max_categories: usize,
        place: &str,
    ) -> Result<Self> {
        let all_missing = || {
            Error::data("no value at all, only missing ones")
                .at(place)
                .expected("at least one value in the training rows")
                .advice("leave the column out with --ignore")
        };
        match column {
            Column::Number(values) => {
                let (mut present, mut present_weights) = (Vec::new(), Vec::new());
                for (row, &value) in values.iter().enumerate().filter(|(_, value)| !value.is_nan())
                {
                    present.push(value);
                    present_weights.push(weights.map_or(1.0, |weights| weights[row]));
                }
                let fill =
                    statistics::median(&present, Some(&present_weights)).ok_or_else(all_missing)?;
                // The median of an even number of booleans may lie between them: that is fine.
                Ok(Self::Number { fill, indicator: present.len() < values.len() })
            }
            Column::Text { codes, levels } => {
                debug_assert_eq!(kind, Kind::Text);
                let mut used = vec![false; levels.len()];
                let mut missing = false;
                for &code in codes {
                    match used.get_mut(code as usize) {
                        Some(used) => *used = true,
                        None => missing = true,
                    }
                }
                let mut levels: Vec<String> = levels
                    .iter()
                    .zip(used)
                    .filter(|(_, used)| *used)
                    .map(|(l, _)| l.clone())
                    .collect();
                if levels.is_empty() {
                    return Err(all_missing());
                }
                if levels.len() > max_categories {
                    let found = format!("{} different texts in {} rows", levels.len(), codes.len());
                    return Err(Error::data(found)
                        .at(place)
                        .expected(format!("at most {max_categories} categories in a text column"))
                        .advice(
                            "if it is an identifier or free text, leave it out with --ignore; if \
                             these are real categories, raise --max-categories",
                        ));
                }
                levels.sort_unstable();
                Ok(Self::Category { levels, missing })
            }
        }
    }

    /// Writes the encoded column; returns the number of levels not seen in training.
    fn write(&self, column: &Column, mut x: MatMut<'_, f64>) -> u64 {
        match (self, column) {
            (Self::Number { fill, indicator }, Column::Number(values)) => {
                for (row, &value) in values.iter().enumerate() {
                    x[(row, 0)] = if value.is_nan() { *fill } else { value };
                    if *indicator && value.is_nan() {
                        x[(row, 1)] = 1.0;
                    }
                }
                0
            }
            (Self::Category { levels, missing }, Column::Text { codes, levels: found }) => {
                let places: HashMap<&str, usize> =
                    levels.iter().enumerate().map(|(place, l)| (l.as_str(), place)).collect();
                let translated: Vec<Option<usize>> =
                    found.iter().map(|level| places.get(level.as_str()).copied()).collect();
                let mut unseen = 0;
                for (row, &code) in codes.iter().enumerate() {
                    let place = if code == MISSING {
                        missing.then_some(levels.len())
                    } else {
                        translated.get(code as usize).copied().flatten()
                    };
                    match place {
                        Some(place) => x[(row, place)] = 1.0,
                        None => unseen += 1,
                    }
                }
                unseen
            }
            // Readers deliver the kinds that the schema asks for.
            _ => unreachable!("a column of another kind than the schema's"),
        }
    }
}
