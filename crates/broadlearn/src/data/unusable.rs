//! Input columns that tell nothing about a new row: they are left out, and that is said.
//!
//! A column without any value, times of measurement, names of the rows: nearly every table that people keep has one of them. As
//! categories their levels would have a row each, and no row that is predicted later has one of these levels.

use super::batch::{Column, MISSING};
use super::cell::{excerpt, shell_word};
use super::oddity::is_date;
use std::collections::HashSet;
use std::fmt;

/// An input column that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The name of the column.
    pub column: String,
    /// Why.
    pub why: Why,
}

/// Why a column tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has no value in any row.
    Empty,
    /// Dates, most of which occur once.
    Dates {
        /// One of them.
        example: String,
    },
    /// Texts, nearly all of which occur once.
    Names {
        /// Different ones.
        different: usize,
        /// Rows with one.
        rows: usize,
    },
}

/// With fewer rows nothing can be said of how often texts occur.
const FEWEST_ROWS: usize = 10;
/// Dates are left out if there are this many different ones for each row, other texts if there are nearly as many as rows.
const DATES: f64 = 0.5;
const NAMES: f64 = 0.9;

impl Unusable {
    /// Why a column tells nothing, if that is so.
    pub(super) fn find(name: &str, column: &Column) -> Option<Self> {
        let why = match column {
            Column::Number(values) => {
                values.iter().all(|value| value.is_nan()).then_some(Why::Empty)?
            }
            Column::Text { codes, levels } => {
                let present = || codes.iter().copied().filter(|&code| code != MISSING);
                let used: HashSet<u32> = present().collect();
                let (different, rows) = (used.len(), present().count());
                let each = different as f64 / rows as f64;
                if rows == 0 {
                    Why::Empty
                } else if rows < FEWEST_ROWS || each < DATES {
                    return None;
                } else {
                    let mut dates = levels.iter().filter(|level| is_date(level));
                    let count = dates.clone().count() as f64;
                    match dates.next() {
                        Some(example) if count >= NAMES * levels.len() as f64 => {
                            Why::Dates { example: example.clone() }
                        }
                        _ if each >= NAMES => Why::Names { different, rows },
                        _ => return None,
                    }
                }
            }
        };
        Some(Self { column: name.to_owned(), why })
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = shell_word(&self.column);
        write!(f, "column `{}` is left out: ", self.column)?;
        match &self.why {
            Why::Empty => write!(f, "it has no value in any row"),
            Why::Dates { example } => write!(
                f,
                "dates such as `{}` do not come again. If the hour, the weekday or the time since something matters, \
                 make it a column of numbers",
                excerpt(example.as_bytes())
            ),
            Why::Names { different, rows } => write!(
                f,
                "{different} different texts in {rows} rows tell nothing about others. If they are categories \
                 all the same: --text {name}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(texts: impl IntoIterator<Item = String>) -> Option<Why> {
        let (mut codes, mut levels): (Vec<u32>, Vec<String>) = (Vec::new(), Vec::new());
        for text in texts {
            let place = levels.iter().position(|level| *level == text).unwrap_or_else(|| {
                levels.push(text);
                levels.len() - 1
            });
            codes.push(place as u32);
        }
        Unusable::find("c", &Column::Text { codes, levels }).map(|unusable| unusable.why)
    }

    #[test]
    fn a_column_without_values_is_empty() {
        let found = |column| Unusable::find("c", &column).map(|unusable| unusable.why);
        assert_eq!(found(Column::Number(vec![f64::NAN; 3])), Some(Why::Empty));
        assert_eq!(found(Column::Number(vec![f64::NAN, 1.0])), None);
        let nothing = Column::Text { codes: vec![MISSING; 3], levels: vec!["a".into()] };
        assert_eq!(found(nothing), Some(Why::Empty));
    }

    #[test]
    fn times_are_dates_unless_they_come_again() {
        let time = |i: usize| format!("2024-01-{:02} {:02}:00", 1 + i / 24, i % 24);
        assert!(matches!(why((0..200).map(time)), Some(Why::Dates { .. })));
        assert_eq!(why((0..200).map(|i| time(i % 20))), None);
    }

    #[test]
    fn names_of_rows_are_not_categories() {
        let names = why((0..100).map(|i| format!("batch {i}")));
        assert_eq!(names, Some(Why::Names { different: 100, rows: 100 }));
        assert_eq!(why((0..100).map(|i| format!("batch {}", i / 2))), None);
        // Of few rows each may have its own by chance.
        assert_eq!(why((0..9).map(|i| format!("batch {i}"))), None);
    }
}
