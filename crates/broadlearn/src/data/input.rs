//! Where the bytes of a table come from: a file, or something that can be read only once.

use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

/// How many bytes are looked at to recognise a format.
const HEAD: usize = 8;

/// An input that has been opened, and its first bytes.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) head: Vec<u8>,
    bytes: Bytes,
}

enum Bytes {
    File { file: File, length: u64 },
    Stream(Box<dyn Read + Send>),
}

impl Input {
    /// Opens a file. Of a `live` stream no more is waited for than its first line.
    pub(super) fn open(path: &Path, live: bool) -> Result<Self> {
        let refuse = |error| Error::no_input(path, error);
        let mut file = File::open(path).map_err(refuse)?;
        let metadata = file.metadata().map_err(refuse)?;
        if metadata.is_dir() {
            let reason = io::Error::new(ErrorKind::IsADirectory, "this is a directory");
            return Err(refuse(reason).advice("give the files in it one by one"));
        }
        let name = path.display().to_string();
        if !metadata.is_file() {
            // A named pipe or a device cannot be read twice.
            return Self::from_reader(&name, Box::new(file), live);
        }
        let head = head(&name, &mut file, false)?;
        file.rewind().map_err(|error| Error::io(name.as_str(), "read", error))?;
        Self { name, head, bytes: Bytes::File { file, length: metadata.len() } }.gunzipped(live)
    }

    pub(super) fn from_reader(
        name: &str,
        mut input: Box<dyn Read + Send>,
        live: bool,
    ) -> Result<Self> {
        let head = head(name, &mut input, live)?;
        let stream = Box::new(Cursor::new(head.clone()).chain(input));
        Self { name: name.to_owned(), head, bytes: Bytes::Stream(stream) }.gunzipped(live)
    }

    /// Decompresses what is recognised as gzip; refuses what is recognised as something else that
    /// would have to be decompressed.
    fn gunzipped(self, live: bool) -> Result<Self> {
        if self.head.starts_with(&[0x1f, 0x8b]) {
            let name = self.name.clone();
            let mut input = MultiGzDecoder::new(BufReader::with_capacity(1 << 16, self.stream()));
            let head = head(&name, &mut input, live)?;
            let stream = Box::new(Cursor::new(head.clone()).chain(input));
            return Ok(Self { name, head, bytes: Bytes::Stream(stream) });
        }
        let foreign: [(&[u8], &str, &str); 5] = [
            (b"\x28\xb5\x2f\xfd", "a file compressed with zstd", "zstd -dc"),
            (b"BZh", "a file compressed with bzip2", "bzip2 -dc"),
            (b"\xfd7zXZ\0", "a file compressed with xz", "xz -dc"),
            (b"\xff\xfe", "text in UTF-16", "iconv -f utf-16 -t utf-8"),
            (b"\xfe\xff", "text in UTF-16", "iconv -f utf-16 -t utf-8"),
        ];
        for (magic, found, command) in foreign {
            let compressed = magic != b"BZh" || self.head.get(3).is_some_and(u8::is_ascii_digit);
            if self.head.starts_with(magic) && compressed {
                let name = &self.name;
                return Err(Error::data(found)
                    .at(name)
                    .expected("plain or gzip-compressed text in UTF-8, NumPy, or Parquet")
                    .advice(format!("convert it, for example with `{command}`")));
            }
        }
        Ok(self)
    }

    /// The number of bytes, if it is known beforehand.
    pub(super) fn length(&self) -> Option<u64> {
        match self.bytes {
            Bytes::File { length, .. } => Some(length),
            Bytes::Stream(_) => None,
        }
    }

    /// All bytes from the beginning, in order.
    pub(super) fn stream(self) -> Box<dyn Read + Send> {
        match self.bytes {
            Bytes::File { file, .. } => Box::new(file),
            Bytes::Stream(stream) => stream,
        }
    }

    /// All bytes in any order: what can be read only once is copied to a temporary file.
    pub(super) fn file(self) -> Result<(File, u64)> {
        match self.bytes {
            Bytes::File { file, length } => Ok((file, length)),
            Bytes::Stream(stream) => spool(&self.name, stream),
        }
    }
}

/// Copies a stream to a temporary file, which vanishes with its handle.
pub(super) fn spool(name: &str, stream: impl Read) -> Result<(File, u64)> {
    let failed = |error| Error::io("temporary file", "write", error);
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut stream = Watched { stream, failed: false };
    let length = match io::copy(&mut stream, &mut file) {
        Ok(length) => length,
        Err(error) if stream.failed => return Err(Error::io(name, "read", error)),
        Err(error) => return Err(failed(error)),
    };
    file.rewind().map_err(failed)?;
    Ok((file, length))
}

/// Remembers that it was the reading that failed, not the writing.
struct Watched<R> {
    stream: R,
    failed: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.stream.read(buffer);
        self.failed = result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted);
        result
    }
}

/// The first bytes, fewer if there are not so many. If `live`, they may be more or, if they
/// contain a line end, fewer.
fn head(name: &str, input: &mut impl Read, live: bool) -> Result<Vec<u8>> {
    if live {
        return live_head(input).map_err(|error| Error::io(name, "read", error));
    }
    let mut head = Vec::with_capacity(HEAD);
    input
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(|error| Error::io(name, "read", error))?;
    Ok(head)
}

fn live_head(input: &mut impl Read) -> io::Result<Vec<u8>> {
    // No format is recognised by a line end: what has one so early is text. And much is taken at
    // once: a decoder that is asked for little keeps the rest until more comes.
    let mut piece = vec![0; 1 << 16];
    let mut head = Vec::new();
    while head.len() < HEAD && !head.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        match input.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => head.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// A part of a file, read independently of other parts of the same file.
pub(super) struct Window {
    file: Arc<Mutex<File>>,
    at: u64,
    end: u64,
}

impl Window {
    pub(super) fn new(file: &Arc<Mutex<File>>, begin: u64, length: u64) -> Self {
        Self { file: Arc::clone(file), at: begin, end: begin.saturating_add(length) }
    }
}

impl Read for Window {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        // Nothing is half-done when a reader panics: the place is sought anew each time.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.at))?;
        let count = file.read(&mut buffer[..wanted])?;
        self.at += count as u64;
        Ok(count)
    }
}
