//! What one cell may hold: the words for missing, the words for yes and no, and what to say about
//! a cell that does not fit its column.

use super::batch::Kind;
use super::number;
use crate::error::Error;

/// The texts that always mean that a value is missing, pandas' and `?`; so does a cell of blanks. A dash may be a class.
const ALWAYS: [&str; 12] =
    ["NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", "n/a", "<NA>", "#NA", "#N/A"];

/// How cells spell what they hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Spelling {
    /// Texts that mean a missing value.
    texts: Vec<Vec<u8>>,
    /// Those of the texts that are numbers: `-999` is meant to match `-999.0` too.
    numbers: Vec<f64>,
    /// Whether numbers are written as 1,5.
    decimal_comma: bool,
}

impl Spelling {
    /// The usual words for missing and `more`.
    pub(super) fn new(more: &[String], decimal_comma: bool) -> Self {
        let texts: Vec<Vec<u8>> = more.iter().map(|text| text.trim().into()).collect();
        let mut spelling = Self { texts, numbers: Vec::new(), decimal_comma };
        spelling.numbers = spelling.texts.iter().filter_map(|text| spelling.number(text)).collect();
        spelling
    }

    /// The number that a text without blanks around it spells.
    #[inline]
    pub(super) fn number(&self, text: &[u8]) -> Option<f64> {
        if self.decimal_comma { with_comma(text) } else { number::parse(text) }
    }

    /// Whether a text without blanks around it means a missing value.
    #[inline]
    pub(super) fn is_text(&self, text: &[u8]) -> bool {
        text.is_empty()
            || (text.len() <= 4 && ALWAYS.iter().any(|word| word.as_bytes() == text))
            || self.texts.iter().any(|word| word == text)
    }

    /// Whether a number means a missing value.
    #[inline]
    pub(super) fn is_number(&self, value: f64) -> bool {
        value.is_nan() || self.numbers.contains(&value)
    }
}

/// Of numbers with a decimal comma. The exact value of a double may have more digits, but nobody writes them.
const LONGEST_NUMBER: usize = 400;

/// What a cell looks like when its column's kind is not yet known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Missing,
    Number,
    /// A number with a decimal comma, which is worth a word where it is not accepted.
    CommaNumber,
    Boolean,
    Other,
}

/// Looks at a cell.
pub(super) fn look(cell: &[u8], spelling: &Spelling) -> Look {
    let cell = cell.trim_ascii();
    if spelling.is_text(cell) {
        return Look::Missing;
    }
    match spelling.number(cell) {
        Some(value) if spelling.is_number(value) => Look::Missing,
        Some(_) => Look::Number,
        None if boolean(cell).is_some() => Look::Boolean,
        None if is_comma_number(cell) => Look::CommaNumber,
        // With a point where commas are wanted: meant as a number, and an error where it is read.
        None if number::parse(cell).is_some() => Look::Number,
        None => Look::Other,
    }
}

/// The truth value that a text spells.
pub(super) fn boolean(text: &[u8]) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    if is("true") || is("yes") {
        Some(true)
    } else if is("false") || is("no") {
        Some(false)
    } else {
        None
    }
}

fn is_comma_number(text: &[u8]) -> bool {
    text.contains(&b',') && with_comma(text).is_some()
}

/// The number that `text` spells with a comma in place of the point; one with a point may be another, and is none.
fn with_comma(text: &[u8]) -> Option<f64> {
    let Some(comma) = text.iter().position(|byte| *byte == b',') else {
        return if text.contains(&b'.') { None } else { number::parse(text) };
    };
    let mut dotted = [0; LONGEST_NUMBER];
    let dotted = dotted.get_mut(..text.len())?;
    dotted.copy_from_slice(text);
    dotted[comma] = b'.';
    number::parse(dotted)
}

/// Why a cell does not fit its column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// Neither a number nor missing.
    NotNumber(String),
    /// A number without a size.
    Infinite(String),
    /// Neither a truth value nor missing.
    NotBoolean(String),
    /// Bytes that are no text.
    NotUtf8(String),
}

impl Fault {
    /// The fault of a cell that should have held a value of the kind.
    #[cold]
    pub(super) fn new(kind: Kind, cell: &[u8]) -> Self {
        let text = excerpt(cell);
        match kind {
            Kind::Number if number::parse(cell).is_some_and(f64::is_infinite) => {
                Self::Infinite(text)
            }
            Kind::Number => Self::NotNumber(text),
            Kind::Boolean => Self::NotBoolean(text),
            Kind::Text => Self::NotUtf8(text),
        }
    }

    /// The error to show, for the cell at `place` in `column` of a table whose fields are
    /// separated by `delimiter` (if it is such a table).
    #[cold]
    pub(super) fn error(self, place: String, column: &str, delimiter: Option<u8>) -> Error {
        let column = shell_word(column);
        let way_out = |text: &str| {
            format!(
                "correct it, declare it missing with `--missing {}`, or read the column as text \
                 with `--text {column}`",
                shell_word(text)
            )
        };
        let error = match self {
            Self::NotNumber(text) => {
                let comma = delimiter.is_some_and(|byte| byte != b',');
                let advice = if number::parse(text.as_bytes()).is_some() {
                    "it has a decimal point: leave `--decimal-comma` out, or correct it".to_owned()
                } else if comma && is_comma_number(text.as_bytes()) {
                    format!(
                        "if numbers have a decimal comma, say so with `--decimal-comma`; or read the \
                         column as text with `--text {column}`"
                    )
                } else {
                    way_out(&text)
                };
                Error::data(format!("text `{text}`")).expected("a number").advice(advice)
            }
            Self::Infinite(text) => Error::data(format!("the infinite value `{text}`"))
                .expected("a finite number")
                .advice(way_out(&text)),
            Self::NotBoolean(text) => Error::data(format!("`{text}`"))
                .expected("`true`, `false`, `yes` or `no`")
                .advice(way_out(&text)),
            Self::NotUtf8(text) => Error::data(format!("bytes that are not UTF-8 in `{text}`"))
                .expected("text in UTF-8")
                .advice("convert the file, for example with `iconv -f latin1 -t utf-8`"),
        };
        error.at(place)
    }
}

/// The beginning of a cell, for a message.
pub(super) fn excerpt(cell: &[u8]) -> String {
    const LONGEST: usize = 40;
    let mut head = cell;
    if cell.len() > LONGEST * 4 {
        head = &cell[..LONGEST * 4];
    }
    let text = String::from_utf8_lossy(head);
    let mut chars = text.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut short: String = chars.by_ref().take(LONGEST).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// A text as one would type it in a shell.
pub(super) fn shell_word(text: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "_-+./:,%@".contains(char);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks() {
        let spelling = Spelling::new(&["-999".into(), " unknown ".into()], false);
        for (cell, expected) in [
            ("", Look::Missing),
            ("  ", Look::Missing),
            (" NA ", Look::Missing),
            ("?", Look::Missing),
            ("#N/A", Look::Missing),
            ("-", Look::Other),
            ("-nan", Look::Missing),
            ("unknown", Look::Missing),
            ("-999.0", Look::Missing),
            (" 12 ", Look::Number),
            ("inf", Look::Number),
            ("Yes", Look::Boolean),
            ("FALSE", Look::Boolean),
            ("1,5", Look::CommaNumber),
            ("1,5,6", Look::Other),
            ("na", Look::Other),
            ("nonesuch", Look::Other),
        ] {
            assert_eq!(look(cell.as_bytes(), &spelling), expected, "{cell}");
        }
    }

    #[test]
    fn excerpts_are_short_and_words_are_quoted() {
        assert_eq!(excerpt("a\nb".as_bytes()), "a b");
        assert_eq!(excerpt("x".repeat(1000).as_bytes()), "x".repeat(40) + "…");
        assert_eq!(shell_word("age"), "age");
        assert_eq!(shell_word("it's so"), r"'it'\''s so'");
    }
}
