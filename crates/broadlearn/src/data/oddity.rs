//! Columns that are read as text and were hardly meant to be: every level becomes an input of its own, and what the column
//! had to say is lost without a word.

use super::batch::{Column, MISSING};
use super::cell::{excerpt, shell_word};
use super::number;
use std::fmt;

/// A column of text that looks like something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// The name of the column.
    pub column: String,
    /// What it looks like.
    pub looks: Looks,
}

/// What a text column may have been meant to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Numbers, but for these texts, the most frequent first.
    Numbers {
        /// Rows with a number.
        numbers: usize,
        /// Rows with any text.
        rows: usize,
        /// The others; three at most.
        others: Vec<String>,
    },
    /// Numbers with something around or in them, as in `52%`, `$10` or `1,234`.
    Adorned {
        /// One of them.
        example: String,
    },
    /// Dates.
    Dates {
        /// One of them.
        example: String,
    },
}

/// Fewer different numbers may as well be names.
const FEWEST_NUMBERS: usize = 10;
const MOSTLY: f64 = 0.5;
const NEARLY_ALL: f64 = 0.9;

impl Oddity {
    /// What is odd about a column, if anything is.
    pub(super) fn find(name: &str, column: &Column) -> Option<Self> {
        let Column::Text { codes, levels } = column else { return None };
        let mut counts = vec![0_usize; levels.len()];
        for &code in codes.iter().filter(|&&code| code != MISSING) {
            counts[code as usize] += 1;
        }
        let rows: usize = counts.iter().sum();
        let present = || levels.iter().zip(&counts).filter(|(_, count)| **count > 0);
        // How many levels and rows a test finds, and the first of these levels.
        let found = |test: &dyn Fn(&str) -> bool| {
            let hits = || present().filter(|(level, _)| test(level));
            let rows: usize = hits().map(|(_, count)| count).sum();
            (hits().count(), rows as f64, hits().next().map(|(level, _)| level.clone()))
        };
        let all = rows as f64;
        let is_number = |text: &str| number::parse(text.as_bytes()).is_some();
        let (different, numbers, _) = found(&is_number);
        let looks = if different >= FEWEST_NUMBERS && numbers >= MOSTLY * all {
            let mut others: Vec<(&String, &usize)> =
                present().filter(|(level, _)| !is_number(level)).collect();
            others.sort_by(|a, b| b.1.cmp(a.1));
            let others = others.iter().take(3).map(|(text, _)| excerpt(text.as_bytes())).collect();
            Looks::Numbers { numbers: numbers as usize, rows, others }
        } else if let (_, dates, Some(example)) = found(&is_date)
            && dates >= NEARLY_ALL * all
        {
            Looks::Dates { example }
        } else {
            let first = present().next()?.0;
            let dress = dress(first)?;
            let (different, adorned, example) = found(&|text| dress.is_worn_by(text));
            if different < FEWEST_NUMBERS || adorned < NEARLY_ALL * all {
                return None;
            }
            Looks::Adorned { example: example? }
        };
        Some(Self { column: name.to_owned(), looks })
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = shell_word(&self.column);
        write!(f, "column `{}`: ", self.column)?;
        match &self.looks {
            Looks::Numbers { others, .. } if others.is_empty() => write!(
                f,
                "numbers that are stored as text, each a category. If they are meant as numbers, store them as such; \
                 if they are names: --text {name}"
            ),
            Looks::Numbers { numbers, rows, others } => {
                let quoted: Vec<String> = others.iter().map(|text| format!("`{text}`")).collect();
                let options: Vec<String> =
                    others.iter().map(|text| format!("--missing={}", shell_word(text))).collect();
                write!(
                    f,
                    "{numbers} of {rows} values are numbers, others are {}; all are read as text, each a category. \
                     If the others mean a missing value: {}; if these are names: --text {name}",
                    quoted.join(", "),
                    options.join(" ")
                )
            }
            Looks::Adorned { example } => write!(
                f,
                "values such as `{}` are read as text, each a category. If they are meant as numbers, write \
                 the digits alone; if they are names: --text {name}",
                excerpt(example.as_bytes())
            ),
            Looks::Dates { example } => write!(
                f,
                "dates such as `{}` are read as text, each a category, and a later date is none of them. Write \
                 them as numbers (days, month, weekday), or leave them out: --ignore {name}; \
                 if they are names: --text {name}",
                excerpt(example.as_bytes())
            ),
        }
    }
}

/// What stands before and after a number.
struct Dress {
    before: String,
    after: String,
}

/// What a text wears that may be a number; `None` for one that is not, or that wears nothing. A letter before digits makes a
/// name.
fn dress(text: &str) -> Option<Dress> {
    let digit = |c: char| c.is_ascii_digit();
    let (start, end) = (text.find(digit)?, text.rfind(digit)? + 1);
    let before = text[..start].trim_end_matches(['-', '+', '.']);
    let dress = Dress { before: before.to_owned(), after: text[end..].to_owned() };
    (!before.contains(char::is_alphanumeric) && dress.is_worn_by(text)).then_some(dress)
}

impl Dress {
    fn is_worn_by(&self, text: &str) -> bool {
        let bare = text.strip_prefix(&self.before).and_then(|t| t.strip_suffix(&self.after));
        let bare = bare.map(|text| text.replace([',', ' ', '\'', '_'], ""));
        bare.is_some_and(|bare| number::parse(bare.as_bytes()).is_some())
    }
}

/// Whether a text is a day, perhaps with a time: three numbers, the first or last of them a year.
pub(super) fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or(text);
    let parts: Vec<&str> = day.split(['-', '/', '.']).collect();
    let is_count = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let [first, middle, last] = parts.as_slice() else { return false };
    parts.iter().all(is_count)
        && middle.len() <= 2
        && matches!((first.len(), last.len()), (4, 1 | 2) | (1 | 2, 4 | 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(texts: impl IntoIterator<Item = String>) -> Column {
        let (mut codes, mut levels): (Vec<u32>, Vec<String>) = (Vec::new(), Vec::new());
        for text in texts {
            let place = levels.iter().position(|level| *level == text).unwrap_or_else(|| {
                levels.push(text);
                levels.len() - 1
            });
            codes.push(place as u32);
        }
        Column::Text { codes, levels }
    }

    fn looks(texts: impl IntoIterator<Item = String>) -> Option<Looks> {
        Oddity::find("c", &column(texts)).map(|oddity| oddity.looks)
    }

    #[test]
    fn numbers_with_marks_among_them() {
        let texts = |i: usize| if i.is_multiple_of(5) { "-".into() } else { format!("{i}.5") };
        let others = vec!["-".into()];
        assert_eq!(
            looks((0..100).map(texts)),
            Some(Looks::Numbers { numbers: 80, rows: 100, others })
        );
        let oddity = Oddity::find("my col", &column((0..100).map(texts))).map(|o| o.to_string());
        let said = oddity.unwrap_or_default();
        assert!(said.contains("80 of 100") && said.contains("--missing=-"), "{said}");
        assert!(said.contains("--text 'my col'"), "{said}");
    }

    #[test]
    fn numbers_as_text() {
        let oddity = Oddity::find("zip", &column((0..30).map(|i| i.to_string())));
        let said = oddity.map(|oddity| oddity.to_string()).unwrap_or_default();
        assert!(said.contains("stored as text") && said.contains("--text zip"), "{said}");
    }

    #[test]
    fn numbers_with_units() {
        let adorned = |format: fn(usize) -> String| match looks((0..50).map(format)) {
            Some(Looks::Adorned { example }) => Some(example),
            _ => None,
        };
        assert_eq!(adorned(|i| format!("{i}%")).as_deref(), Some("0%"));
        assert_eq!(adorned(|i| format!("$ {}.50", i)).as_deref(), Some("$ 0.50"));
        assert_eq!(adorned(|i| format!("-{i} °C")).as_deref(), Some("-0 °C"));
        assert_eq!(adorned(|i| format!("{},{:03}", i + 1, i)).as_deref(), Some("1,000"));
    }

    #[test]
    fn dates() {
        for format in ["2024-01-{}", "{}.01.2024", "1/{}/2024", "2024-01-{}T10:00", "{}/1/24"] {
            let texts = (1..29).map(|day| format.replace("{}", &day.to_string()));
            assert!(matches!(looks(texts), Some(Looks::Dates { .. })), "{format}");
        }
    }

    #[test]
    fn names_are_names() {
        for format in ["A{}", "room {}", "{}th floor {}", "x-{}", "10.0.0.{}", "ORD-{}-2"] {
            let texts = (0..40).map(|i| format.replace("{}", &i.to_string()));
            assert_eq!(looks(texts), None, "{format}");
        }
        // Few numbers may be names of classes.
        let grades = (0..60).map(|i| ["1", "2", "3", "4+"][i % 4].to_owned());
        assert_eq!(looks(grades), None);
        assert_eq!(Oddity::find("c", &Column::Number(vec![1.0, 2.0])), None);
    }
}
