//! Fills the columns of a batch, cell by cell.

use std::collections::HashMap;

use super::batch::{Column, Kind, MISSING};
use super::cell::{Fault, Spelling, boolean};

/// A cell as its file has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// A text that may spell a number, a truth value, or that nothing is known.
    Cell(&'a [u8]),
    Float(f64),
    Single(f32),
    Signed(i64),
    Unsigned(u64),
    Boolean(bool),
    Missing,
}

/// A column under way.
pub(super) enum Builder {
    Number(Vec<f64>),
    Boolean(Vec<f64>),
    Text(Texts),
}

impl Builder {
    pub(super) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Number(Vec::new()),
            Kind::Boolean => Self::Boolean(Vec::new()),
            Kind::Text => Self::Text(Texts::default()),
        }
    }

    /// One builder for each selected column.
    pub(super) fn all(selection: &[(usize, Kind)]) -> Vec<Self> {
        selection.iter().map(|(_, kind)| Self::new(*kind)).collect()
    }

    /// Appends a value; whatever the file's type is, it is read as this column's kind.
    #[inline]
    pub(super) fn push(&mut self, value: Value<'_>, spelling: &Spelling) -> Result<(), Fault> {
        match self {
            Self::Number(values) => values.push(as_number(value, spelling)?),
            Self::Boolean(values) => values.push(as_boolean(value, spelling)?),
            Self::Text(texts) => match value {
                Value::Cell(cell) => texts.push(cell.trim_ascii(), spelling)?,
                Value::Missing => texts.codes.push(MISSING),
                Value::Float(value) if value.is_nan() => texts.codes.push(MISSING),
                Value::Single(value) if value.is_nan() => texts.codes.push(MISSING),
                other => texts.push(other.spelled().as_bytes(), spelling)?,
            },
        }
        Ok(())
    }

    /// Takes back what was appended beyond the first `rows` values.
    #[cold]
    pub(super) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Number(values) | Self::Boolean(values) => values.truncate(rows),
            Self::Text(texts) => {
                texts.codes.truncate(rows);
                // Levels are numbered as they appear: those in use are the first ones.
                let codes = texts.codes.iter().filter(|code| **code != MISSING);
                let used = codes.max().map_or(0, |code| *code as usize + 1);
                for level in texts.levels.drain(used..) {
                    texts.known.remove(level.as_bytes());
                }
            }
        }
    }

    pub(super) fn finish(self) -> Column {
        match self {
            Self::Number(values) | Self::Boolean(values) => Column::Number(values),
            Self::Text(texts) => Column::Text { codes: texts.codes, levels: texts.levels },
        }
    }
}

impl Value<'_> {
    fn number(self) -> Option<f64> {
        match self {
            Value::Cell(_) | Value::Missing => None,
            Value::Float(value) => Some(value),
            Value::Single(value) => Some(value.into()),
            Value::Signed(value) => Some(value as f64),
            Value::Unsigned(value) => Some(value as f64),
            Value::Boolean(value) => Some(value.into()),
        }
    }

    /// The shortest text that spells the value, as it would stand in a CSV file.
    #[cold]
    fn spelled(self) -> String {
        match self {
            Value::Cell(cell) => String::from_utf8_lossy(cell).into_owned(),
            Value::Float(value) => value.to_string(),
            Value::Single(value) => value.to_string(),
            Value::Signed(value) => value.to_string(),
            Value::Unsigned(value) => value.to_string(),
            Value::Boolean(value) => value.to_string(),
            Value::Missing => String::new(),
        }
    }
}

#[inline]
fn as_number(value: Value<'_>, spelling: &Spelling) -> Result<f64, Fault> {
    let number = match value {
        Value::Missing => return Ok(f64::NAN),
        Value::Cell(cell) => match spelling.number(cell) {
            Some(number) => number,
            None => {
                let cell = cell.trim_ascii();
                match spelling.number(cell) {
                    Some(number) => number,
                    None if spelling.is_text(cell) => f64::NAN,
                    None => return Err(Fault::new(Kind::Number, cell)),
                }
            }
        },
        other => other.number().unwrap_or(f64::NAN),
    };
    if spelling.is_number(number) {
        Ok(f64::NAN)
    } else if number.is_infinite() {
        // A word for infinity can be declared missing like any other text.
        match value {
            Value::Cell(cell) if spelling.is_text(cell.trim_ascii()) => Ok(f64::NAN),
            Value::Cell(cell) => Err(Fault::new(Kind::Number, cell.trim_ascii())),
            other => Err(Fault::Infinite(other.spelled())),
        }
    } else {
        Ok(number)
    }
}

/// Besides the words, 1 and 0 are taken: this is how such a column leaves this library.
fn as_boolean(value: Value<'_>, spelling: &Spelling) -> Result<f64, Fault> {
    let number = match value {
        Value::Missing => return Ok(f64::NAN),
        Value::Cell(cell) => {
            let cell = cell.trim_ascii();
            if spelling.is_text(cell) {
                return Ok(f64::NAN);
            }
            match boolean(cell) {
                Some(value) => return Ok(value.into()),
                None => match spelling.number(cell) {
                    Some(number) => number,
                    None => return Err(Fault::new(Kind::Boolean, cell)),
                },
            }
        }
        other => other.number().unwrap_or(f64::NAN),
    };
    if spelling.is_number(number) {
        Ok(f64::NAN)
    } else if number == 0.0 || number == 1.0 {
        Ok(number)
    } else {
        Err(Fault::new(Kind::Boolean, value.spelled().trim().as_bytes()))
    }
}

/// Texts coded by their first appearance.
#[derive(Default)]
pub(super) struct Texts {
    codes: Vec<u32>,
    levels: Vec<String>,
    known: HashMap<Box<[u8]>, u32>,
}

impl Texts {
    fn push(&mut self, text: &[u8], spelling: &Spelling) -> Result<(), Fault> {
        let code = if spelling.is_text(text) {
            MISSING
        } else if let Some(code) = self.repeated(text) {
            code
        } else if let Some(code) = self.known.get(text) {
            *code
        } else {
            let level = std::str::from_utf8(text).map_err(|_| Fault::new(Kind::Text, text))?;
            // A batch has fewer rows than there are codes: memory ends long before.
            let code = self.levels.len() as u32;
            self.levels.push(level.to_owned());
            self.known.insert(text.into(), code);
            code
        };
        self.codes.push(code);
        Ok(())
    }

    /// Sorted tables have long runs of one text.
    fn repeated(&self, text: &[u8]) -> Option<u32> {
        let code = *self.codes.last()?;
        let level = self.levels.get(code as usize)?;
        (level.as_bytes() == text).then_some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: Kind, values: &[Value<'_>]) -> Result<Column, Fault> {
        let spelling = Spelling::new(&["-1".into()], false);
        let mut builder = Builder::new(kind);
        for value in values {
            builder.push(*value, &spelling)?;
        }
        Ok(builder.finish())
    }

    #[test]
    fn every_type_becomes_every_kind() {
        use Value::{Boolean, Cell, Float, Missing, Signed, Single, Unsigned};
        let values = [Cell(b" 1"), Float(1.0), Single(1.0), Signed(1), Unsigned(1), Boolean(true)];
        for kind in [Kind::Number, Kind::Boolean] {
            assert_eq!(column(kind, &values), Ok(Column::Number(vec![1.0; 6])));
        }
        let expected =
            Column::Text { codes: vec![0, 0, 0, 0, 0, 1], levels: vec!["1".into(), "true".into()] };
        assert_eq!(column(Kind::Text, &values), Ok(expected));

        let gone = [Cell(b" "), Cell(b"?"), Missing, Float(f64::NAN), Float(-1.0), Signed(-1)];
        for kind in [Kind::Number, Kind::Boolean] {
            match column(kind, &gone) {
                Ok(Column::Number(values)) => assert!(values.iter().all(|value| value.is_nan())),
                other => panic!("{other:?}"),
            }
        }
        let expected = Column::Text { codes: vec![MISSING; 6], levels: vec![] };
        assert_eq!(column(Kind::Text, &gone), Ok(expected));
    }

    #[test]
    fn faults() {
        let infinite = Fault::Infinite("inf".into());
        assert_eq!(column(Kind::Number, &[Value::Cell(b" inf ")]), Err(infinite.clone()));
        assert_eq!(column(Kind::Number, &[Value::Single(f32::INFINITY)]), Err(infinite));
        let fault = Fault::NotBoolean("2".into());
        assert_eq!(column(Kind::Boolean, &[Value::Signed(2)]), Err(fault));
        let fault = Fault::NotUtf8("caf\u{fffd}".into());
        assert_eq!(column(Kind::Text, &[Value::Cell(b"caf\xe9")]), Err(fault));
    }
}
