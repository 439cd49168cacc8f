//! Rows as they come from a file: typed columns, a few thousand rows at a time.

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
