//! Just enough of the ZIP format to read the archives that NumPy writes.
//!
//! All facts are taken from the directory at the end of the archive: the headers before the
//! members may lack the sizes.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::super::cell::excerpt;
use super::super::input::Window;
use super::super::npy::Part;
use crate::error::{Error, Result};

/// The end record without its comment, and the longest comment.
const END: usize = 22;
const LONGEST_COMMENT: usize = 0xffff;
/// A longer directory is refused.
const LONGEST_DIRECTORY: u64 = 16 << 20;
/// The value that refers to the fields of the 64-bit extension.
const ELSEWHERE: u64 = 0xffff_ffff;

/// A member of an archive.
#[derive(Clone, Debug)]
pub(in super::super) struct Member {
    pub(in super::super) name: String,
    deflated: bool,
    checksum: u32,
    /// Where the compressed bytes begin.
    begin: u64,
    /// The number of bytes, compressed and not.
    packed: u64,
    length: u64,
}

/// The members, in the order of the directory.
pub(in super::super) fn members(name: &str, file: &mut File, length: u64) -> Result<Vec<Member>> {
    let damaged = |found: &str| {
        Error::data(found)
            .at(name)
            .expected("an archive as written by `numpy.savez`")
            .advice("the file may have been cut short: copy or save it again")
    };
    let too_large = || {
        Error::data("an archive in the ZIP64 format, which this library cannot read")
            .at(name)
            .expected("less than 4 GB")
            .advice("save the arrays as several smaller files, or as CSV or Parquet")
    };
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => damaged("the end of the file within its directory"),
        _ => Error::io(name, "read", error),
    };

    let tail_length = length.min((END + LONGEST_COMMENT) as u64);
    let tail = read_at(file, length - tail_length, tail_length).map_err(failed)?;
    let is_end = |end: &[u8]| {
        end.starts_with(b"PK\x05\x06") && end.len() == END + number(end, 20, 2) as usize
    };
    let end = (0..=tail.len().saturating_sub(END)).rev().map(|at| &tail[at..]);
    let Some(end) = end.into_iter().find(|end| end.len() >= END && is_end(end)) else {
        return Err(damaged("no directory of an archive"));
    };
    let (count, size, begin) = (number(end, 10, 2), number(end, 12, 4), number(end, 16, 4));
    if count == 0xffff || size == ELSEWHERE || begin == ELSEWHERE {
        return Err(too_large());
    }
    if size > LONGEST_DIRECTORY || begin + size > length {
        return Err(damaged("a directory outside of the file"));
    }

    let directory = read_at(file, begin, size).map_err(failed)?;
    let mut rest = directory.as_slice();
    let mut members = Vec::new();
    for _ in 0..count {
        const FIXED: usize = 46;
        if rest.len() < FIXED || !rest.starts_with(b"PK\x01\x02") {
            return Err(damaged("a damaged directory"));
        }
        let name_end = FIXED + number(rest, 28, 2) as usize;
        let next = name_end + (number(rest, 30, 2) + number(rest, 32, 2)) as usize;
        if next > rest.len() {
            return Err(damaged("a damaged directory"));
        }
        let (flags, method) = (number(rest, 8, 2), number(rest, 10, 2));
        let (packed, unpacked) = (number(rest, 20, 4), number(rest, 24, 4));
        let header = number(rest, 42, 4);
        let member = excerpt(&rest[FIXED..name_end]);
        if [packed, unpacked, header].contains(&ELSEWHERE) {
            return Err(too_large());
        }
        if flags & 1 != 0 {
            return Err(damaged(&format!("the encrypted member `{member}`")));
        }
        if method != 0 && method != 8 || method == 0 && packed != unpacked {
            let found = format!("the member `{member}` compressed by method {method}");
            return Err(damaged(&found));
        }
        // The header before the member repeats the name, but may have other extra fields.
        let start = read_at(file, header, 30).map_err(failed)?;
        let begin = header + 30 + number(&start, 26, 2) + number(&start, 28, 2);
        if !start.starts_with(b"PK\x03\x04") || begin + packed > length {
            return Err(damaged(&format!("the member `{member}` outside of the file")));
        }
        members.push(Member {
            name: String::from_utf8_lossy(&rest[FIXED..name_end]).into_owned(),
            deflated: method == 8,
            checksum: number(rest, 16, 4) as u32,
            begin,
            packed,
            length: unpacked,
        });
        rest = &rest[next..];
    }
    Ok(members)
}

impl Member {
    /// The bytes of the member.
    pub(in super::super) fn part(&self, file: &Arc<Mutex<File>>) -> Part {
        let window = Window::new(file, self.begin, self.packed);
        let stream: Box<dyn Read + Send> = if self.deflated {
            Box::new(DeflateDecoder::new(BufReader::with_capacity(1 << 14, window)))
        } else {
            Box::new(window)
        };
        let stream =
            Checked { stream, sum: Crc::new(), left: self.length, expected: self.checksum };
        Part::Stream { stream: Box::new(stream), length: Some(self.length) }
    }
}

/// Compares the checksum when the last byte has been read.
struct Checked<R> {
    stream: R,
    sum: Crc,
    left: u64,
    expected: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.stream.read(&mut buffer[..wanted])?;
        self.sum.update(&buffer[..count]);
        self.left -= count as u64;
        if self.left == 0 && self.sum.sum() != self.expected {
            return Err(io::Error::new(ErrorKind::InvalidData, "the checksum is wrong"));
        }
        Ok(count)
    }
}

/// Some bytes of a file; their number has been compared with the file's length.
fn read_at(file: &mut File, begin: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A little-endian number of `size` bytes; the caller knows that they exist.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let little_first = bytes.iter().skip(at).take(size).rev();
    little_first.fold(0, |number, byte| number << 8 | u64::from(*byte))
}
