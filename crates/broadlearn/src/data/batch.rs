//! Rows as they come from a file: typed columns, a few thousand rows at a time.

use std::collections::HashMap;

/// How the values of a column are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Numbers; an empty cell is missing.
    Number,
    /// `true`/`false` or `yes`/`no` in any case; kept as 1 and 0.
    Boolean,
    /// Anything else; each distinct text is a level.
    Text,
}

/// The values of one column in one batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers and booleans; `NaN` stands for a missing value, infinities do not occur.
    Number(Vec<f64>),
    /// Texts, coded by their place in `levels`, which are in order of first appearance in this
    /// batch; [`MISSING`] stands for a missing value.
    Text {
        /// One code per row.
        codes: Vec<u32>,
        /// The distinct texts of this batch.
        levels: Vec<String>,
    },
}

/// The code of a missing text.
pub const MISSING: u32 = u32::MAX;

impl Column {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Number(values) => values.len(),
            Self::Text { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of these rows.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Number(values) => Self::Number(rows.iter().map(|&row| values[row]).collect()),
            Self::Text { codes, levels } => Self::Text {
                codes: rows.iter().map(|&row| codes[row]).collect(),
                levels: levels.clone(),
            },
        }
    }

    /// Drops these rows, in ascending order.
    pub(super) fn remove(&mut self, rows: &[usize]) {
        let mut row = 0;
        let mut keep = || {
            row += 1;
            rows.binary_search(&(row - 1)).is_err()
        };
        match self {
            Self::Number(values) => values.retain(|_| keep()),
            Self::Text { codes, .. } => codes.retain(|_| keep()),
        }
    }

    /// The text of a row; `None` if it is missing, or the column one of numbers.
    pub fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::Text { codes, levels } => {
                let code = *codes.get(row)?;
                levels.get(code as usize).map(String::as_str)
            }
        }
    }
}

/// Some consecutive rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The number of the first row, counted from 1 without the header.
    pub first_row: u64,
    /// The selected columns, in the order of the selection, all of one length.
    pub columns: Vec<Column>,
}

impl Batch {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }
}

/// Puts the rows of a batch behind those that are there.
pub(super) fn append(columns: &mut Vec<Column>, batch: Vec<Column>) {
    if columns.is_empty() {
        *columns = batch;
        return;
    }
    for (column, part) in columns.iter_mut().zip(batch) {
        match (column, part) {
            (Column::Number(values), Column::Number(more)) => values.extend(more),
            (Column::Text { codes, levels }, Column::Text { codes: more, levels: found }) => {
                let known: HashMap<&str, u32> =
                    levels.iter().zip(0..).map(|(level, code)| (level.as_str(), code)).collect();
                let mut fresh = Vec::new();
                let translated: Vec<u32> = found
                    .into_iter()
                    .map(|level| match known.get(level.as_str()) {
                        Some(&code) => code,
                        None => {
                            fresh.push(level);
                            (known.len() + fresh.len() - 1) as u32
                        }
                    })
                    .collect();
                levels.extend(fresh);
                codes.extend(
                    more.iter()
                        .map(|&c| if c == MISSING { MISSING } else { translated[c as usize] }),
                );
            }
            _ => unreachable!("a reader keeps the kinds of its columns"),
        }
    }
}

/// The bytes that columns take.
pub(super) fn bytes_of(columns: &[Column]) -> u64 {
    let bytes = |column: &Column| match column {
        Column::Number(values) => 8 * values.len(),
        Column::Text { codes, .. } => 4 * codes.len(),
    };
    columns.iter().map(bytes).sum::<usize>() as u64
}
