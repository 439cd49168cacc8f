//! Tables as JSON lines: one object per line, whose keys name the columns.
//!
//! The parser of `serde_json` finds the end of each key and value and says whether it is sound;
//! what stands between them is read here, because the text of a number must be kept: `1.0` is
//! another text than `1`, and a long number is not the nearest double. So each cell means what it
//! would mean in a CSV file; only `true` and `false` are 1 and 0 among numbers, too.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::de::IgnoredAny;

use super::batch::{Column, Kind};
use super::builder::Value;
use super::cell::{Fault, Spelling, excerpt, shell_word};
use super::delimited::{KIND_BYTES, KIND_ROWS, byte_order_mark};
use super::input::Input;
use super::reader::{Place, ReadOptions, Source, Table};
use super::records::{MOST_FIELDS, Records};
use super::rows::{Rows, Skipped};
use super::sniff::Sample;
use crate::error::{Error, Result};

/// What a line should be.
const OBJECT: &str = "one object per line, such as {\"age\": 31, \"city\": \"Oslo\"}";
/// What a member of the object should be.
const SCALAR: &str = "a number, a text in double quotes, true, false or null";

/// A table as lines of JSON.
pub(super) struct JsonLines {
    records: Records,
    table: Table,
    rows: Rows,
    object: Object,
}

/// Looks at the first records, whose keys are the columns, and stands before the first of them.
pub(super) fn open(input: Input, options: &ReadOptions) -> Result<JsonLines> {
    let name = input.name.clone();
    let mut records = Records::lines(&name, input.stream());
    records.set_live(options.live);
    let (text, _) = records.peek(3)?;
    let mark = byte_order_mark(text);
    records.skip(mark);

    let start = records.mark();
    let spelling = Spelling::new(&options.missing, false);
    let mut object = Object::default();
    let mut samples: Vec<Sample> = Vec::new();
    let most = if options.live { 1 } else { KIND_ROWS };
    let mut seen = 0;
    while seen < most && (seen == 0 || records.bytes_since(start) < KIND_BYTES) {
        if !advance(&mut records, true)? {
            break;
        }
        let line = match object.read(records.field(0), true) {
            Ok(line) => line,
            Err(_) if options.skip_malformed => continue,
            Err(error) => return Err(at(&records, error)),
        };
        samples.resize_with(object.names.len(), Sample::default);
        for (sample, cell) in samples.iter_mut().zip(&object.cells) {
            let Some(cell) = cell else { continue };
            match cell_of(&line[cell.clone()]) {
                Ok(Cell::Scalar(text)) => sample.see(text.as_bytes(), &spelling),
                Ok(Cell::Boolean(_)) => sample.see(b"true", &spelling),
                // Told to whoever reads the column: others need not care.
                Ok(Cell::Nested(_)) | Err(_) => sample.see(b"{", &spelling),
            }
        }
        seen += 1;
    }
    if object.names.is_empty() {
        let found = if seen == 0 { "an empty file" } else { "objects without any key" };
        return Err(Error::data(found).at(name).expected(OBJECT));
    }
    records.rewind(start);
    records.release();
    // A comma is no part of a number in JSON, nor does it separate fields within a text.
    let kinds = samples.iter().map(|sample| sample.kind(b',')).collect();
    let table = Table { name, columns: object.names.clone(), kinds, spelling };
    Ok(JsonLines { records, table, rows: Rows::new(options), object })
}

/// The next line that is not blank.
fn advance(records: &mut Records, wait: bool) -> Result<bool> {
    while records.advance_if(wait)? {
        if !records.is_only_blanks() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cold]
fn at(records: &Records, error: Error) -> Error {
    error.at(format!("{}, line {}", records.name(), records.line()))
}

impl Source for JsonLines {
    fn table(&self) -> &Table {
        &self.table
    }

    fn read(&mut self, selection: &[(usize, Kind)], max_rows: usize) -> Result<Vec<Column>> {
        let Self { records, table, rows, object } = self;
        rows.read(records, selection, max_rows, |records, wait, builders| {
            if !advance(records, wait)? {
                return Ok(false);
            }
            let line = object.read(records.field(0), false).map_err(|error| at(records, error))?;
            for (builder, (index, _)) in builders.iter_mut().zip(selection) {
                let cell = object.cells[*index].clone().map(|cell| cell_of(&line[cell]));
                let place = || table.place(Place::Line(records.line()), Some(*index));
                let column = &table.columns[*index];
                let pushed = match cell {
                    None => builder.push(Value::Missing, &table.spelling),
                    Some(Ok(Cell::Scalar(text))) => {
                        builder.push(Value::Cell(text.as_bytes()), &table.spelling)
                    }
                    Some(Ok(Cell::Boolean(value))) => {
                        builder.push(Value::Boolean(value), &table.spelling)
                    }
                    Some(Ok(Cell::Nested(what))) => return Err(nested(what, column).at(place())),
                    Some(Err(error)) => return Err(error.at(place())),
                };
                if let Err(fault) = pushed {
                    return Err(fault.error(place(), column, None));
                }
            }
            Ok(true)
        })
    }

    fn line(&self, row: u64) -> Option<u64> {
        self.rows.line(row)
    }

    fn skipped(&self) -> Option<&Skipped> {
        self.rows.skipped()
    }
}

/// The value of a key.
enum Cell<'a> {
    /// A number, a text or nothing, as it would stand in a CSV file.
    Scalar(Cow<'a, str>),
    Boolean(bool),
    /// An object or an array.
    Nested(&'static str),
}

/// What a sound value is; an error if it is a text with an escape that means no character.
#[inline]
fn cell_of(value: &str) -> Result<Cell<'_>> {
    Ok(match value.as_bytes() {
        [b'"', ..] => Cell::Scalar(unquoted(value)?),
        b"true" => Cell::Boolean(true),
        b"false" => Cell::Boolean(false),
        [b'{', ..] => Cell::Nested("an object"),
        [b'[', ..] => Cell::Nested("an array"),
        _ => Cell::Scalar(Cow::Borrowed(value)),
    })
}

/// The text that a sound string stands for.
#[inline]
fn unquoted(string: &str) -> Result<Cow<'_, str>> {
    let inner = &string[1..string.len() - 1];
    if !inner.as_bytes().contains(&b'\\') {
        return Ok(Cow::Borrowed(inner));
    }
    match serde_json::from_str(string) {
        Ok(text) => Ok(Cow::Owned(text)),
        Err(error) => Err(Error::data(format!(
            "`{}`, which is no text in JSON ({})",
            excerpt(string.as_bytes()),
            reason(&error)
        ))
        .expected("escapes that stand for characters")
        .advice("correct the line")),
    }
}

#[cold]
fn nested(what: &str, column: &str) -> Error {
    Error::data(what).expected(SCALAR).advice(format!(
        "give each value within it a key of its own, or leave the column out with `--ignore {}`",
        shell_word(column)
    ))
}

/// The keys that are known, and where their values are in the latest line.
#[derive(Default)]
struct Object {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    cells: Vec<Option<Range<usize>>>,
}

impl Object {
    /// Finds the values in a line. Keys that are not known are learnt if `learn`, or else passed
    /// over. Errors are without their place.
    fn read<'a>(&mut self, line: &'a [u8], learn: bool) -> Result<&'a str> {
        let line = match std::str::from_utf8(line) {
            Ok(line) => line,
            Err(error) => return Err(not_utf8(line, error.valid_up_to())),
        };
        self.cells.fill(None);
        let mut strangers: HashSet<Cow<'a, str>> = HashSet::new();
        let mut next = 0;
        let mut scanner = Scanner { line, at: 0, first: true };
        scanner.open()?;
        while let Some((key, value)) = scanner.member()? {
            // Most objects have the same keys in the same order.
            let known = match self.names.get(next) {
                Some(name) if *name == key => Some(next),
                _ => self.numbers.get(key.as_ref()).copied(),
            };
            let new = match known {
                Some(number) => {
                    next = number + 1;
                    self.cells[number].replace(value).is_none()
                }
                None if learn && self.names.len() == MOST_FIELDS => {
                    return Err(Error::data(format!("more than {MOST_FIELDS} keys"))
                        .expected("fewer columns"));
                }
                None if learn => {
                    next = self.names.len() + 1;
                    self.numbers.insert(key.clone().into_owned(), self.names.len());
                    self.names.push(key.clone().into_owned());
                    self.cells.push(Some(value));
                    true
                }
                None => strangers.insert(key.clone()),
            };
            if !new {
                return Err(Error::data(format!("the key `{}` twice", excerpt(key.as_bytes())))
                    .expected("each key once in an object")
                    .advice("correct the line: only one of the two values can be meant"));
            }
        }
        Ok(line)
    }
}

#[cold]
fn not_utf8(line: &[u8], at: usize) -> Error {
    // Some of the text before the bad byte, to find it by.
    let before = String::from_utf8_lossy(&line[..at]);
    let skipped = before.chars().count().saturating_sub(20);
    let begin = before.char_indices().nth(skipped).map_or(at, |(index, _)| index);
    let end = line.len().min(at + 10);
    Fault::NotUtf8(excerpt(&line[begin..end])).error(String::new(), "", None)
}

/// Goes through an object, member by member.
struct Scanner<'a> {
    line: &'a str,
    at: usize,
    /// Whether no member has been read yet.
    first: bool,
}

impl<'a> Scanner<'a> {
    /// The next byte that is not a blank, which is not passed over.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.line.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Passes over the opening brace.
    fn open(&mut self) -> Result<()> {
        let found = match self.peek() {
            Some(b'{') => {
                self.at += 1;
                return Ok(());
            }
            Some(b'[') => {
                return Err(Error::data("an array")
                    .expected(OBJECT)
                    .advice("write one object per line, for example with `jq -c '.[]'`"));
            }
            Some(b'"') => "a text",
            Some(b'-' | b'0'..=b'9') => "a number",
            _ => return Err(self.malformed(OBJECT, None)),
        };
        Err(Error::data(found).expected(OBJECT).advice("write one object per line"))
    }

    /// The next key and the place of its value; `None` when the object and the line have ended.
    #[inline]
    fn member(&mut self) -> Result<Option<(Cow<'a, str>, Range<usize>)>> {
        let first = std::mem::replace(&mut self.first, false);
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return match self.peek() {
                    None => Ok(None),
                    Some(_) => Err(self.malformed("nothing behind the object", None)),
                };
            }
            Some(b',') if !first => self.at += 1,
            _ if first => {}
            _ => return Err(self.malformed("`,` or `}`", None)),
        }
        if self.peek() != Some(b'"') {
            return Err(self.malformed("a key in double quotes", None));
        }
        let key = self.value()?;
        let key = unquoted(&self.line[key])?;
        if self.peek() != Some(b':') {
            return Err(self.malformed("`:` behind the key", None));
        }
        self.at += 1;
        self.peek();
        let value = self.value()?;
        Ok(Some((key, value)))
    }

    /// Passes over a value and says where it is.
    #[inline]
    fn value(&mut self) -> Result<Range<usize>> {
        let begin = self.at;
        let rest = &self.line[begin..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => {
                self.at += values.byte_offset();
                Ok(begin..self.at)
            }
            Some(Err(error)) if error.is_eof() => {
                self.at = self.line.len();
                Err(self.malformed(SCALAR, None))
            }
            Some(Err(error)) => Err(self.malformed(SCALAR, Some(&error))),
            None => Err(self.malformed(SCALAR, None)),
        }
    }

    /// The error that something else than `expected` is next.
    #[cold]
    fn malformed(&mut self, expected: &str, cause: Option<&serde_json::Error>) -> Error {
        if self.peek().is_none() {
            return Error::data("an object that is cut off")
                .expected("the whole of it on one line")
                .advice("write one object per line, for example with `jq -c .`");
        }
        let (before, rest) = self.line.split_at(self.at);
        let why = cause.map(|error| format!(" ({})", reason(error))).unwrap_or_default();
        let advice = if ["NaN", "Infinity", "-Infinity"].iter().any(|word| rest.starts_with(word)) {
            "write null for a value that is missing"
        } else {
            "correct the line"
        };
        Error::data(format!(
            "`{}` at character {}{why}",
            excerpt(rest.as_bytes()),
            before.chars().count() + 1
        ))
        .expected(expected)
        .advice(advice)
    }
}

/// What the parser has to say, without the place, which is one within the value only.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn message(line: &str) -> String {
        Object::default().read(line.as_bytes(), true).unwrap_err().to_string()
    }

    #[test]
    fn keys_and_values() {
        let mut object = Object::default();
        let line = " { \"a\" : 1.0 ,\"b\\u0062\":\"x\\n\", \"\":[{}],\"é\":null}\t\r";
        assert_eq!(object.read(line.as_bytes(), true).unwrap(), line);
        assert_eq!(object.names, ["a", "bb", "", "é"]);
        let values = |object: &Object, line: &str| -> Vec<String> {
            let text = |cell: &Option<Range<usize>>| {
                cell.clone().map_or("-".to_owned(), |cell| line[cell].to_owned())
            };
            object.cells.iter().map(text).collect()
        };
        assert_eq!(values(&object, line), ["1.0", "\"x\\n\"", "[{}]", "null"]);
        let line = r#"{"é":-1e5,"new":2,"a":true}"#;
        object.read(line.as_bytes(), false).unwrap();
        assert_eq!(values(&object, line), ["true", "-", "-", "-1e5"]);
        assert_eq!(object.names.len(), 4);
        object.read(b"{}", false).unwrap();
        assert_eq!(values(&object, "{}"), ["-"; 4]);
    }

    #[test]
    fn what_is_wrong() {
        for (line, expected) in [
            (r#"{"a":1"#, "found an object that is cut off; expected the whole of it on one line"),
            (r#"{"a":"x"#, "found an object that is cut off; expected the whole of it on one line"),
            (
                r#"{"a":[1,"#,
                "found an object that is cut off; expected the whole of it on one line",
            ),
            ("{", "found an object that is cut off; expected the whole of it on one line"),
            (r#"{"a" 1}"#, "found `1}` at character 6; expected `:` behind the key"),
            (r#"{"é" 1}"#, "found `1}` at character 6; expected `:` behind the key"),
            (r#"{"a":1 "b":2}"#, "found `\"b\":2}` at character 8; expected `,` or `}`"),
            (r#"{"a":1,}"#, "found `}` at character 8; expected a key in double quotes"),
            ("{,}", "found `,}` at character 2; expected a key in double quotes"),
            ("{a:1}", "found `a:1}` at character 2; expected a key in double quotes"),
            ("{'a':1}", "found `'a':1}` at character 2; expected a key in double quotes"),
            (
                r#"{"a":1}{"a":2}"#,
                "found `{\"a\":2}` at character 8; expected nothing behind the object",
            ),
            (r#"{"a":1},"#, "found `,` at character 8; expected nothing behind the object"),
        ] {
            assert_eq!(message(line), expected, "{line}");
        }
        for (line, found) in [
            (r#"{"a":nul}"#, "`nul}` at character 6 (expected ident)"),
            (r#"{"a":NaN}"#, "`NaN}` at character 6 (expected value)"),
            (r#"{"a":01}"#, "`01}` at character 6 (invalid number)"),
            (r#"{"a":.5}"#, "`.5}` at character 6 (expected value)"),
            (r#"{"a":}"#, "`}` at character 6 (expected value)"),
            (r#"{"a":"\q"}"#, "`\"\\q\"}` at character 6 (invalid escape)"),
        ] {
            assert_eq!(message(line), format!("found {found}; expected {SCALAR}"), "{line}");
        }
        for (line, found) in [("[1]", "an array"), ("-1", "a number"), ("\"a\"", "a text")] {
            assert_eq!(message(line), format!("found {found}; expected {OBJECT}"));
        }
        assert_eq!(message("a,b"), format!("found `a,b` at character 1; expected {OBJECT}"));
        let twice = r#"{"a":1,"b":2,"\u0061":3}"#;
        assert_eq!(message(twice), "found the key `a` twice; expected each key once in an object");
        let error = Object::default().read(twice.as_bytes(), false).unwrap_err();
        assert_eq!(error.to_string(), message(twice), "keys of no interest, too");
        let advice = Object::default().read(br#"{"a":NaN}"#, true).unwrap_err();
        assert_eq!(advice.help(), Some("write null for a value that is missing"));
    }

    /// `serde_json` is the other opinion on what is an object.
    #[test]
    fn damaged_lines() {
        let line = r#"{"a":-1.5e+3,"bé":"x\"\u00e9\ud83d\ude00\\", "c" : [1,{"d":null}],"e":true}"#;
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut good, mut bad) = (0, 0);
        for _ in 0..30_000 {
            let mut line = line.as_bytes().to_vec();
            for _ in 0..=random(2) {
                let at = random(line.len());
                let byte = b"\"\\{}[]:,. eu019-\x01\xc3t"[random(19)];
                match random(4) {
                    0 => line[at] = byte,
                    1 => line.insert(at, byte),
                    2 => drop(line.remove(at)),
                    _ => line.truncate(at.max(1)),
                }
            }
            let mut object = Object::default();
            let read = object.read(&line, true).and_then(|line| {
                object
                    .cells
                    .iter()
                    .flatten()
                    .try_for_each(|cell| cell_of(&line[cell.clone()]).map(drop))
            });
            let other = serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(&line);
            match (read, other) {
                (Ok(()), Ok(_)) => good += 1,
                (Err(_), Err(_)) => bad += 1,
                (Err(error), Ok(_)) if error.to_string().contains("twice") => {}
                // A number too large for a double is told as one, by column, when it is read.
                (Ok(()), Err(error)) if error.to_string().contains("out of range") => {}
                (read, other) => {
                    panic!("{read:?} {other:?} {}", String::from_utf8_lossy(&line))
                }
            }
        }
        assert!(good > 1000 && bad > 1000, "{good} {bad}");
    }
}
