//! The header of a NumPy array: what its values are and how many.
//!
//! The format is that of <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>:
//! a magic text, a version, a length, and a Python dictionary in its written form.

use std::io::{ErrorKind, Read};

use super::super::batch::Kind;
use super::super::cell::excerpt;
use super::super::reader::list;
use crate::error::{Error, Result};

/// How every file begins.
pub(in super::super) const MAGIC: &[u8] = b"\x93NUMPY";
/// A longer header is refused; NumPy itself refuses one of more than 10 000 bytes.
const LONGEST_HEADER: u32 = 1 << 16;
/// Longer texts are refused.
const LONGEST_TEXT: u64 = 1 << 20;

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Header {
    /// The number of bytes before the values.
    pub(in super::super) length: u64,
    pub(in super::super) shape: Vec<u64>,
    /// Whether the values of a column, not those of a row, are neighbours.
    pub(in super::super) fortran: bool,
    type_name: TypeName,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TypeName {
    Simple(String),
    /// A record with named fields.
    Structured(Vec<String>),
}

/// The type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Scalar {
    pub(in super::super) class: Class,
    /// The number of bytes of a value.
    pub(in super::super) size: usize,
    pub(in super::super) big_endian: bool,
}

/// What the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Class {
    Float,
    Signed,
    Unsigned,
    Boolean,
    /// Characters of four bytes each, filled up with zeros.
    Unicode,
    /// Characters of one byte each, filled up with zeros.
    Bytes,
}

impl Scalar {
    pub(in super::super) fn kind(self) -> Kind {
        match self.class {
            Class::Float | Class::Signed | Class::Unsigned => Kind::Number,
            Class::Boolean => Kind::Boolean,
            Class::Unicode | Class::Bytes => Kind::Text,
        }
    }
}

impl Header {
    /// Reads a header and leaves the input at the first value.
    pub(in super::super) fn read(place: &str, input: &mut impl Read) -> Result<Self> {
        let damaged = |found: &str| {
            Error::data(found).at(place).expected("a NumPy array as written by `numpy.save`")
        };
        let mut take = |bytes: &mut [u8]| match input.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(damaged("the end of the file within the header"))
            }
            Err(error) => Err(Error::io(place, "read", error)),
        };
        let mut start = [0; 8];
        take(&mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(damaged("other first bytes than those of a NumPy array"));
        }
        let (before, text_length) = match start[6] {
            1 => {
                let mut length = [0; 2];
                take(&mut length)?;
                (10, u32::from(u16::from_le_bytes(length)))
            }
            2 | 3 => {
                let mut length = [0; 4];
                take(&mut length)?;
                (12, u32::from_le_bytes(length))
            }
            version => return Err(damaged(&format!("version {version} of the NumPy format"))),
        };
        if text_length > LONGEST_HEADER {
            return Err(damaged(&format!("a header of {text_length} bytes")));
        }
        let mut text = vec![0; text_length as usize];
        take(&mut text)?;
        let length = before + u64::from(text_length);
        Self::parse(&text, length)
            .ok_or_else(|| damaged(&format!("the header `{}`", excerpt(text.trim_ascii()))))
    }

    fn parse(text: &[u8], length: u64) -> Option<Self> {
        let mut parser = Parser { rest: text, depth: 0 };
        let Literal::Dictionary(entries) = parser.literal()? else { return None };
        parser.blanks();
        if !parser.rest.is_empty() {
            return None;
        }
        let (mut type_name, mut fortran, mut shape) = (None, None, None);
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("descr", Literal::Text(name)) => type_name = Some(TypeName::Simple(name)),
                ("descr", Literal::Sequence(fields)) => {
                    let name = |field| match field {
                        Literal::Sequence(parts) => match parts.into_iter().next() {
                            Some(Literal::Text(name)) => Some(name),
                            _ => None,
                        },
                        _ => None,
                    };
                    let names = fields.into_iter().filter_map(name).collect();
                    type_name = Some(TypeName::Structured(names));
                }
                ("fortran_order", Literal::Boolean(value)) => fortran = Some(value),
                ("shape", Literal::Sequence(sizes)) => {
                    let size = |size| match size {
                        Literal::Integer(size) => Some(size),
                        _ => None,
                    };
                    shape = Some(sizes.into_iter().map(size).collect::<Option<_>>()?);
                }
                _ => return None,
            }
        }
        Some(Self { length, shape: shape?, fortran: fortran?, type_name: type_name? })
    }

    /// The type of the values, if it is one that a table can have.
    pub(in super::super) fn scalar(&self, place: &str) -> Result<Scalar> {
        let name = match &self.type_name {
            TypeName::Simple(name) => name,
            TypeName::Structured(fields) => {
                let names: Vec<&str> = fields.iter().map(String::as_str).collect();
                return Err(Error::data(format!(
                    "a structured array with the fields {}",
                    list(&names)
                ))
                .at(place)
                .expected("an array of numbers, booleans or texts")
                .advice("save each field as an array of its own with `numpy.savez`"));
            }
        };
        if let Some(scalar) = simple(name) {
            return Ok(scalar);
        }
        let advice = "convert the array with `.astype(float)` or `.astype(str)` before saving it";
        Err(Error::data(format!("an array of type `{}`", excerpt(name.as_bytes())))
            .at(place)
            .expected("numbers (f4, f8, i1 to i8, u1 to u8), booleans (b1) or texts (U, S)")
            .advice(advice))
    }
}

/// A type like `<f8`: the order of bytes, the class, the size.
fn simple(name: &str) -> Option<Scalar> {
    let mut chars = name.chars();
    let (order, class) = (chars.next()?, chars.next()?);
    let size: u64 = chars.as_str().parse().ok()?;
    let (class, size) = match (class, size) {
        ('f', 4 | 8) => (Class::Float, size),
        ('i', 1 | 2 | 4 | 8) => (Class::Signed, size),
        ('u', 1 | 2 | 4 | 8) => (Class::Unsigned, size),
        ('b', 1) => (Class::Boolean, size),
        ('U', 1..=LONGEST_TEXT) => (Class::Unicode, 4 * size),
        ('S', 1..=LONGEST_TEXT) => (Class::Bytes, size),
        _ => return None,
    };
    let big_endian = match order {
        '<' => false,
        '>' => true,
        '|' if size == 1 || class == Class::Bytes => false,
        '=' => cfg!(target_endian = "big"),
        _ => return None,
    };
    Some(Scalar { class, size: usize::try_from(size).ok()?, big_endian })
}

/// The parts of Python that occur in headers.
#[derive(Debug)]
enum Literal {
    Text(String),
    Boolean(bool),
    Integer(u64),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
    Dictionary(Vec<(String, Literal)>),
}

struct Parser<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl Parser<'_> {
    fn literal(&mut self) -> Option<Literal> {
        // Deeper nesting occurs in no header, and would take stack.
        const DEEPEST: usize = 8;
        self.blanks();
        let (first, after) = self.rest.split_first()?;
        match first {
            b'\'' | b'"' => {
                let end = after.iter().position(|byte| byte == first)?;
                let text = std::str::from_utf8(&after[..end]).ok()?;
                self.rest = &after[end + 1..];
                (!text.contains('\\')).then(|| Literal::Text(text.to_owned()))
            }
            b'0'..=b'9' => {
                let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = std::str::from_utf8(&self.rest[..length]).ok()?.parse().ok()?;
                self.rest = &self.rest[length..];
                // Python 2 marked long integers.
                self.take(b'L');
                Some(Literal::Integer(number))
            }
            b'(' | b'[' | b'{' if self.depth < DEEPEST => {
                self.rest = after;
                self.depth += 1;
                let literal = match first {
                    b'(' => Literal::Sequence(self.items(b')', Self::literal)?),
                    b'[' => Literal::Sequence(self.items(b']', Self::literal)?),
                    _ => Literal::Dictionary(self.items(b'}', Self::entry)?),
                };
                self.depth -= 1;
                Some(literal)
            }
            _ => {
                for (word, value) in [("True", true), ("False", false)] {
                    if let Some(rest) = self.rest.strip_prefix(word.as_bytes()) {
                        self.rest = rest;
                        return Some(Literal::Boolean(value));
                    }
                }
                None
            }
        }
    }

    fn entry(&mut self) -> Option<(String, Literal)> {
        let Literal::Text(key) = self.literal()? else { return None };
        self.take(b':').then_some(())?;
        Some((key, self.literal()?))
    }

    /// What stands between brackets, separated by commas, possibly with one at the end.
    fn items<T>(&mut self, close: u8, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(b',') {
                return self.take(close).then_some(items);
            }
        }
        Some(items)
    }

    fn take(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.rest.first() == Some(&byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Header> {
        Header::parse(text.as_bytes(), 128)
    }

    #[test]
    fn headers() {
        let header =
            parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }   \n").unwrap();
        assert_eq!((header.shape.as_slice(), header.fortran), ([3, 2].as_slice(), false));
        let scalar = Scalar { class: Class::Float, size: 8, big_endian: false };
        assert_eq!(header.scalar("a.npy").unwrap(), scalar);
        let header = parse("{\"shape\":(3L,),'fortran_order':True,'descr':'>U5'}").unwrap();
        assert_eq!(header.shape, [3]);
        let scalar = Scalar { class: Class::Unicode, size: 20, big_endian: true };
        assert_eq!(header.scalar("a.npy").unwrap(), scalar);
        let scalar = parse("{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap();
        assert!(scalar.shape.is_empty());
        for bad in [
            "",
            "{",
            "{'descr': '<f8'}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&"[".repeat(10_000)), None);
    }

    #[test]
    fn types_that_no_table_has() {
        let error = |descr: &str| {
            let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,)}}");
            parse(&text).unwrap().scalar("a.npy").unwrap_err()
        };
        assert_eq!(
            error("[('x', '<f8'), ('y', '<i4', (2,))]").to_string(),
            "a.npy: found a structured array with the fields `x`, `y`; expected an array of \
             numbers, booleans or texts"
        );
        for descr in ["'|O'", "'<c16'", "'<M8[ns]'", "'<f2'", "'<U0'", "'<U9999999999'", "'f8'"] {
            let found = format!("a.npy: found an array of type `{}`", descr.replace('\'', ""));
            assert!(error(descr).to_string().starts_with(&found), "{descr}");
        }
    }
}
