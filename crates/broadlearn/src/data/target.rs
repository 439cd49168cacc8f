//! Targets: numbers to be met, or classes to be told apart.

use super::batch::{Column, Kind, MISSING};
use crate::error::{Error, Result};
use faer::Mat;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is to be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Numbers.
    Regression,
    /// One of several classes.
    Classification,
}

impl Task {
    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Classification => "classification",
        }
    }
}

/// Up to this number of distinct integers, each occurring at least three times on average, a target
/// of numbers is taken for classes.
const FEW: usize = 20;

/// The target columns and what their values mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "task")]
pub enum TargetSchema {
    /// Numbers, one output per column.
    Regression {
        /// The names of the columns.
        names: Vec<String>,
    },
    /// Classes, one output per class.
    Classification {
        /// The name of the column.
        name: String,
        /// How its cells are read: as numbers or as text.
        kind: Kind,
        /// The names of the classes, in the order of the outputs.
        classes: Vec<String>,
    },
}

/// Target values of some rows.
#[derive(Clone, Debug)]
pub enum Targets {
    /// One row per sample, one column per target; in the original units.
    Values(Mat<f64>),
    /// One class number per sample.
    Classes(Vec<u32>),
}

impl Targets {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.nrows(),
            Self::Classes(classes) => classes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TargetSchema {
    /// The task.
    pub fn task(&self) -> Task {
        match self {
            Self::Regression { .. } => Task::Regression,
            Self::Classification { .. } => Task::Classification,
        }
    }

    /// The number of outputs C.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Regression { names } => names.len(),
            Self::Classification { classes, .. } => classes.len(),
        }
    }

    /// The names of the target columns.
    pub fn names(&self) -> Vec<&str> {
        self.columns().into_iter().map(|(name, _)| name).collect()
    }

    /// The names of the target columns with the kinds as which they are read.
    pub(super) fn columns(&self) -> Vec<(&str, Kind)> {
        match self {
            Self::Regression { names } => {
                names.iter().map(|name| (name.as_str(), Kind::Number)).collect()
            }
            Self::Classification { name, kind, .. } => vec![(name, *kind)],
        }
    }

    /// Finds out what the target columns mean. Missing values must have been dealt with.
    pub(super) fn find(
        names: &[String],
        columns: &[Column],
        task: Option<Task>,
        table: &str,
    ) -> Result<Self> {
        let looks_like_classes = columns.len() == 1 && few_integers_or_text(&columns[0]);
        let task = task.unwrap_or(match columns {
            [Column::Text { .. }] => Task::Classification,
            _ if looks_like_classes => Task::Classification,
            _ => Task::Regression,
        });
        let place = |index: usize| format!("{table}, column `{}`", names[index]);
        match task {
            Task::Regression => {
                for (index, column) in columns.iter().enumerate() {
                    let Column::Number(values) = column else {
                        return Err(Error::data("text in a target of a regression")
                            .at(place(index))
                            .expected("numbers")
                            .advice("learn classes instead: --task classification"));
                    };
                    let first = values.first().copied().unwrap_or(f64::NAN);
                    if values.iter().all(|&value| value == first) {
                        return Err(Error::data(format!("the same target {first} in every row"))
                            .at(place(index))
                            .expected("a target that varies")
                            .advice(
                                "choose another column as --target: here nothing is to be learnt",
                            ));
                    }
                }
                Ok(Self::Regression { names: names.to_vec() })
            }
            Task::Classification => {
                let [column] = columns else {
                    return Err(Error::data(format!("{} target columns", columns.len()))
                        .at(table)
                        .expected("one target column for a classification")
                        .advice("fit one model for each"));
                };
                let (kind, classes) = class_names(column);
                if classes.len() < 2 {
                    let found = classes.first().map_or("no class".to_owned(), |class| {
                        format!("the one class `{class}` in every row")
                    });
                    return Err(Error::data(found)
                        .at(place(0))
                        .expected("at least two classes")
                        .advice(
                            "choose another column as --target: here nothing is to be learnt",
                        ));
                }
                let rows = column.len();
                if classes.len() > 1000 || (classes.len() > FEW && 2 * classes.len() > rows) {
                    return Err(Error::data(format!("{} classes in {rows} rows", classes.len()))
                        .at(place(0))
                        .expected("at most 1000 classes, and several rows of each")
                        .advice(
                            "if the target is a quantity, use --task regression; if it is an \
                             identifier, choose another column",
                        ));
                }
                Ok(Self::Classification { name: names[0].clone(), kind, classes })
            }
        }
    }

    /// The target values of these columns; `place` names a row for messages. Classes that are not
    /// known are numbered on and noted in `fresh`, if there is one; else they are an error.
    pub(super) fn encode(
        &self,
        columns: &[Column],
        place: &dyn Fn(usize) -> String,
        mut fresh: Option<&mut Vec<String>>,
    ) -> Result<Targets> {
        match self {
            Self::Regression { .. } => {
                let rows = columns.first().map_or(0, Column::len);
                let mut values = Mat::zeros(rows, columns.len());
                for (j, column) in columns.iter().enumerate() {
                    let Column::Number(numbers) = column else {
                        return Err(Error::data("text").at(place(0)).expected("a number"));
                    };
                    for (i, &number) in numbers.iter().enumerate() {
                        values[(i, j)] = number;
                    }
                }
                Ok(Targets::Values(values))
            }
            Self::Classification { classes, .. } => {
                let mut places: BTreeMap<String, u32> = classes
                    .iter()
                    .chain(fresh.as_deref().into_iter().flatten())
                    .cloned()
                    .zip(0..)
                    .collect();
                let mut code_of = |row: usize, name: &str| match (places.get(name), &mut fresh) {
                    (Some(&code), _) => Ok(code),
                    (None, Some(fresh)) => {
                        let code = places.len() as u32;
                        fresh.push(name.to_owned());
                        places.insert(name.to_owned(), code);
                        Ok(code)
                    }
                    (None, None) => {
                        let known: Vec<&str> = classes.iter().map(String::as_str).collect();
                        Err(Error::data(format!("class `{name}`, which the model does not know"))
                            .at(place(row))
                            .expected(format!("one of {}", super::reader::list(&known)))
                            .advice("correct it, or learn it first with learn --new-classes"))
                    }
                };
                let codes = match columns.first() {
                    Some(Column::Number(numbers)) => numbers
                        .iter()
                        .enumerate()
                        .map(|(row, &number)| code_of(row, &number_name(number)))
                        .collect::<Result<_>>()?,
                    Some(Column::Text { codes, levels }) => codes
                        .iter()
                        .enumerate()
                        .map(|(row, &code)| {
                            code_of(row, levels.get(code as usize).map_or("", String::as_str))
                        })
                        .collect::<Result<_>>()?,
                    None => Vec::new(),
                };
                Ok(Targets::Classes(codes))
            }
        }
    }
}

/// The rows without a target value.
pub(super) fn missing_rows(columns: &[Column]) -> Vec<usize> {
    let rows = columns.first().map_or(0, Column::len);
    let missing = |column: &Column, row: usize| match column {
        Column::Number(values) => values[row].is_nan(),
        Column::Text { codes, .. } => codes[row] == MISSING,
    };
    (0..rows).filter(|&row| columns.iter().any(|column| missing(column, row))).collect()
}

fn few_integers_or_text(column: &Column) -> bool {
    let Column::Number(values) = column else { return true };
    let mut distinct = std::collections::BTreeSet::new();
    for &value in values {
        if value.fract() != 0.0 || value.abs() > 1e15 {
            return false;
        }
        distinct.insert(value as i64);
        if distinct.len() > FEW {
            return false;
        }
    }
    3 * distinct.len() <= values.len().max(6)
}

/// The classes in ascending order: numbers by size, texts by their bytes.
fn class_names(column: &Column) -> (Kind, Vec<String>) {
    match column {
        Column::Number(values) => {
            let mut distinct = values.clone();
            distinct.sort_unstable_by(f64::total_cmp);
            distinct.dedup();
            (Kind::Number, distinct.into_iter().map(number_name).collect())
        }
        Column::Text { codes, levels } => {
            let mut used = vec![false; levels.len()];
            codes
                .iter()
                .filter(|&&code| code != MISSING)
                .for_each(|&code| used[code as usize] = true);
            let mut classes: Vec<String> =
                levels.iter().zip(used).filter(|(_, used)| *used).map(|(l, _)| l.clone()).collect();
            classes.sort_unstable();
            (Kind::Text, classes)
        }
    }
}

/// The shortest text of a number: 3 for 3.0. Zero has no sign.
fn number_name(number: f64) -> String {
    (number + 0.0).to_string()
}
