//! Fields of binary headers: a place in the bytes of a file, and what is to be read there.

use std::path::Path;

use broadlearn::{Error, Result};

/// The bytes of a file and how far they have been read.
pub(crate) struct Bytes<'a> {
    name: &'a str,
    kind: &'static str,
    bytes: &'a [u8],
    at: usize,
}

/// The whole of a file.
pub(crate) fn whole(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::no_input(path, error))
}

impl<'a> Bytes<'a> {
    /// All bytes of a file; `kind` says what it should be.
    pub(crate) fn new(name: &'a str, kind: &'static str, bytes: &'a [u8]) -> Self {
        Self { name, kind, bytes, at: 0 }
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn go_to(&mut self, at: usize) -> Result<()> {
        if at > self.bytes.len() {
            return Err(self.ended());
        }
        self.at = at;
        Ok(())
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.ended()),
        }
    }

    /// So many bytes of each of so many items.
    pub(crate) fn table(&mut self, count: usize, size: usize) -> Result<Vec<&'a [u8]>> {
        let Some(length) = count.checked_mul(size) else { return Err(self.ended()) };
        Ok(self.take(length)?.chunks_exact(size).collect())
    }

    /// A little-endian number of up to eight bytes.
    pub(crate) fn number(&mut self, size: usize) -> Result<u64> {
        Ok(unsigned(self.take(size)?))
    }

    /// So many numbers of `size` bytes.
    pub(crate) fn numbers(&mut self, count: usize, size: usize) -> Result<Vec<u64>> {
        Ok(self.table(count, size)?.into_iter().map(unsigned).collect())
    }

    /// So many floating-point numbers.
    pub(crate) fn floats(&mut self, count: usize) -> Result<Vec<f64>> {
        Ok(self.numbers(count, 8)?.into_iter().map(f64::from_bits).collect())
    }

    /// A text without the blanks and zeros around it.
    pub(crate) fn text(&mut self, size: usize) -> Result<String> {
        Ok(text(self.take(size)?))
    }

    /// Something that cannot be true.
    pub(crate) fn damaged(&self, found: impl Into<String>) -> Error {
        Error::data(found)
            .at(self.name)
            .expected(format!("{} file", self.kind))
            .advice("the file may be damaged or have been cut short: copy it again")
    }

    fn ended(&self) -> Error {
        self.damaged(format!("the end of the file after {} bytes", self.bytes.len()))
    }
}

/// A text without the blanks and zeros around it; Latin letters beyond ASCII are kept.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes[..end].iter().map(|byte| char::from(*byte)).collect(),
    };
    text.trim().to_owned()
}

/// A little-endian number of up to eight bytes.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The same with a sign.
pub(crate) fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len() as u32;
    ((unsigned(bytes) << unused) as i64) >> unused
}
