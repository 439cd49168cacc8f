//! Splits delimited text into records and fields.
//!
//! Written here rather than taken from the crate `csv`, which reports wrong lines after CRLF and
//! blank lines, takes the rest of a file for one field when a quote never closes, sets no bound to
//! the length of a record, and cannot separate fields by runs of blanks.

use std::io::{ErrorKind, Read};

use crate::error::{Error, Result};

/// The delimiter that stands for runs of spaces and tabs.
pub(super) const BLANKS: u8 = b' ';
/// The delimiter that stands for none: each line is one field.
const WHOLE_LINES: u8 = b'\n';

/// A longer record is refused: more likely a quote that never closes than a row.
const LONGEST_RECORD: usize = 64 << 20;
/// More fields are refused: the names of the columns alone would fill the memory.
pub(super) const MOST_FIELDS: usize = 1 << 20;
/// How much is read at once.
const CHUNK: usize = 256 << 10;
/// The same for a live stream: as much as a pipe holds, since more would not be there.
const LIVE_CHUNK: usize = 64 << 10;

/// Reads records one after the other; the current one can be looked at field by field.
pub(super) struct Records {
    name: String,
    input: Box<dyn Read + Send>,
    splitter: Splitter,
    buffer: Vec<u8>,
    /// Where the current record begins in the buffer.
    current: usize,
    /// Where the next record begins, in the buffer and in the file.
    next: Mark,
    /// The line on which the current record begins.
    line: u64,
    /// Whether what has been read must stay in the buffer.
    held: bool,
    /// Whether the input has no more bytes than the buffer has.
    ended: bool,
    /// Whether records are wanted as soon as they come.
    live: bool,
    /// Whether the last attempt found no end of a record, and so did not move on.
    stuck: bool,
}

/// A place to come back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    at: usize,
    line: u64,
    /// Whether a line feed here would belong to the line before.
    after_return: bool,
}

impl Records {
    /// Begins with the first line of the input and holds everything until [`Self::release`].
    pub(super) fn new(name: &str, input: Box<dyn Read + Send>) -> Self {
        Self {
            name: name.to_owned(),
            input,
            splitter: Splitter::new(b','),
            buffer: Vec::new(),
            current: 0,
            next: Mark { at: 0, line: 1, after_return: false },
            line: 1,
            held: true,
            ended: false,
            live: false,
            stuck: false,
        }
    }

    /// The same for records that are whole lines, of one field whatever is in it.
    pub(super) fn lines(name: &str, input: Box<dyn Read + Send>) -> Self {
        Self { splitter: Splitter::lines(), ..Self::new(name, input) }
    }

    /// Takes each record as soon as its line end has come.
    pub(super) fn set_live(&mut self, live: bool) {
        self.live = live;
        self.splitter.live = live;
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The next bytes, about `length` of them, and whether these are all.
    pub(super) fn peek(&mut self, length: usize) -> Result<(&[u8], bool)> {
        while !self.ended && self.buffer.len() - self.next.at < length {
            self.fill()?;
        }
        Ok((&self.buffer[self.next.at..], self.ended))
    }

    /// The bytes that have come, and whether these are all.
    pub(super) fn here(&self) -> (&[u8], bool) {
        (&self.buffer[self.next.at..], self.ended)
    }

    /// Waits for more bytes.
    pub(super) fn wait(&mut self) -> Result<()> {
        self.fill()
    }

    /// Passes over some of the bytes seen by [`Self::peek`].
    pub(super) fn skip(&mut self, bytes: usize) {
        self.next.at = self.buffer.len().min(self.next.at + bytes);
    }

    pub(super) fn set_delimiter(&mut self, delimiter: u8) {
        self.splitter = Splitter { live: self.live, ..Splitter::new(delimiter) };
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.splitter.delimiter
    }

    /// The place of the record that [`Self::advance`] will read.
    pub(super) fn mark(&self) -> Mark {
        self.next
    }

    /// Goes back to a place (only while everything is held).
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.next = mark;
    }

    /// Lets go of what has been read: from now on there is no way back.
    pub(super) fn release(&mut self) {
        self.held = false;
    }

    /// How many bytes lie between a place and the next record.
    pub(super) fn bytes_since(&self, mark: Mark) -> usize {
        self.next.at.saturating_sub(mark.at)
    }

    /// Reads one more record, blank lines left out. `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.advance_if(true)
    }

    /// The same, but without `wait` nothing is read: `false` also if no whole record has come.
    pub(super) fn advance_if(&mut self, wait: bool) -> Result<bool> {
        loop {
            if self.next.after_return
                && let Some(byte) = self.buffer.get(self.next.at)
            {
                self.next.at += usize::from(*byte == b'\n');
                self.next.after_return = false;
            }
            self.stuck = true;
            let step = self.splitter.split(&self.buffer[self.next.at..], self.ended);
            match step {
                Step::Record { bytes, lines } => {
                    self.stuck = false;
                    self.current = self.next.at;
                    self.line = self.next.line;
                    let at = self.next.at + bytes;
                    let after_return = self.live && self.buffer[..at].ends_with(b"\r");
                    self.next = Mark { at, line: self.next.line + lines, after_return };
                    if !self.splitter.is_blank() {
                        return Ok(true);
                    }
                }
                Step::Incomplete if wait => self.fill()?,
                Step::Incomplete => return Ok(false),
                Step::End => return Ok(false),
                Step::Unclosed => {
                    return Err(Error::data("a quoted field that never ends")
                        .at(format!("{}, line {}", self.name, self.next.line))
                        .expected("a closing quote `\"`"));
                }
                Step::TooWide => {
                    return Err(Error::data(format!("more than {MOST_FIELDS} fields"))
                        .at(format!("{}, line {}", self.name, self.next.line))
                        .expected("fewer columns"));
                }
            }
        }
    }

    /// After an error: whether the next attempt begins elsewhere. Where no end of the record could be found, a line is
    /// given up.
    pub(super) fn move_on(&mut self) -> bool {
        if !std::mem::take(&mut self.stuck) {
            return true;
        }
        let line_end = self.buffer[self.next.at..].iter().position(|byte| *byte == b'\n');
        let at = match line_end {
            Some(length) => self.next.at + length + 1,
            None if self.ended => self.buffer.len(),
            None => return false,
        };
        self.next = Mark { at, line: self.next.line + 1, after_return: false };
        true
    }

    /// The number of fields of the current record.
    pub(super) fn len(&self) -> usize {
        self.splitter.fields.len()
    }

    /// A field of the current record; nothing beyond the last.
    #[inline]
    pub(super) fn field(&self, index: usize) -> &[u8] {
        let Some(&(begin, end)) = self.splitter.fields.get(index) else { return &[] };
        let range = begin as usize..end as usize;
        if self.splitter.unquoted {
            &self.splitter.text[range]
        } else {
            &self.buffer[self.current..][range]
        }
    }

    /// The line on which the current record begins.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Whether the current record is but blanks without quotes.
    pub(super) fn is_only_blanks(&self) -> bool {
        self.splitter.is_only_blanks(&self.buffer[self.current..])
    }

    /// Makes the buffer longer.
    fn fill(&mut self) -> Result<()> {
        if !self.held {
            self.buffer.drain(..self.next.at);
            self.next.at = 0;
            self.current = 0;
        }
        let begun = self.buffer.len() - self.next.at;
        if begun > LONGEST_RECORD {
            return Err(Error::data(format!("a record of more than {} MB", LONGEST_RECORD >> 20))
                .at(format!("{}, line {}", self.name, self.next.line))
                .expected("a shorter one")
                .advice(if self.splitter.delimiter == WHOLE_LINES {
                    "end each record with a line end"
                } else {
                    "look for a quote `\"` that is never closed"
                }));
        }
        // A long record is scanned anew each time: doubling keeps the total linear in its length.
        let wanted = if begun < CHUNK { 1 } else { begun };
        let mut filled = self.buffer.len();
        let enough = filled + wanted;
        let chunk = if self.live { LIVE_CHUNK } else { CHUNK };
        self.buffer.resize(filled + wanted.max(chunk), 0);
        while filled < enough {
            match self.input.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => {
                    let came = &self.buffer[filled..filled + count];
                    let line_end =
                        self.live && came.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
                    filled += count;
                    if line_end {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(filled);
                    return Err(Error::io(self.name.as_str(), "read", error));
                }
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }
}

/// What the beginning of a text turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A whole record; it takes so many bytes and lines.
    Record { bytes: usize, lines: u64 },
    /// Nothing certain yet: the record may go on beyond the text.
    Incomplete,
    /// No record, and none will come.
    End,
    /// The text ends within quotes.
    Unclosed,
    /// More fields than are accepted.
    TooWide,
}

/// Finds the fields of one record.
pub(super) struct Splitter {
    delimiter: u8,
    /// Whether a carriage return ends a record even if a line feed may follow it.
    live: bool,
    classes: [Class; 256],
    /// Where the fields are: in the given text, or in `text` if that is in use.
    fields: Vec<(u32, u32)>,
    /// Whether the record has quotes, so that its fields had to be copied without them.
    unquoted: bool,
    text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Delimiter,
    LineFeed,
    CarriageReturn,
    Quote,
}

impl Splitter {
    pub(super) fn new(delimiter: u8) -> Self {
        let mut classes = [Class::Plain; 256];
        classes[usize::from(b'"')] = Class::Quote;
        classes[usize::from(delimiter)] = Class::Delimiter;
        if delimiter == BLANKS {
            classes[usize::from(b'\t')] = Class::Delimiter;
        }
        classes[usize::from(b'\n')] = Class::LineFeed;
        classes[usize::from(b'\r')] = Class::CarriageReturn;
        Self {
            delimiter,
            live: false,
            classes,
            fields: Vec::new(),
            unquoted: false,
            text: Vec::new(),
        }
    }

    /// The same for a live stream.
    pub(super) fn live(delimiter: u8) -> Self {
        Self { live: true, ..Self::new(delimiter) }
    }

    /// Splits at line feeds only: quotes and carriage returns are for others to understand.
    fn lines() -> Self {
        let mut classes = [Class::Plain; 256];
        classes[usize::from(b'\n')] = Class::LineFeed;
        Self { classes, ..Self::new(WHOLE_LINES) }
    }

    /// The number of fields of the record split last.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the record split last out of `text`.
    pub(super) fn field<'a>(&'a self, text: &'a [u8], index: usize) -> &'a [u8] {
        let Some(&(begin, end)) = self.fields.get(index) else { return &[] };
        let text = if self.unquoted { &self.text } else { text };
        &text[begin as usize..end as usize]
    }

    /// Whether the record split last has nothing in it, not even an empty pair of quotes.
    pub(super) fn is_blank(&self) -> bool {
        !self.unquoted && matches!(self.fields.as_slice(), [] | [(0, 0)])
    }

    /// Whether the record split last out of `text` is but blanks without quotes.
    pub(super) fn is_only_blanks(&self, text: &[u8]) -> bool {
        self.len() == 1 && !self.unquoted && self.field(text, 0).trim_ascii().is_empty()
    }

    /// Splits the record at the beginning of `text`, behind which nothing comes if `ended`.
    pub(super) fn split(&mut self, text: &[u8], ended: bool) -> Step {
        self.unquoted = false;
        self.fields.clear();
        match text {
            [] if ended => Step::End,
            [] => Step::Incomplete,
            _ if self.delimiter == BLANKS => self.split_plain::<true>(text, ended),
            _ => self.split_plain::<false>(text, ended),
        }
    }

    /// The fast way, as long as there is no quote.
    fn split_plain<const BLANKS: bool>(&mut self, text: &[u8], ended: bool) -> Step {
        let mut begin = 0;
        for (at, byte) in text.iter().enumerate() {
            let class = self.classes[usize::from(*byte)];
            if class == Class::Plain {
                continue;
            }
            if class == Class::Quote {
                return self.split_quoted(text, ended);
            }
            // Between blanks there is no field.
            if !BLANKS || at > begin {
                self.fields.push((begin as u32, at as u32));
            }
            begin = at + 1;
            match class {
                Class::Delimiter if self.fields.len() < MOST_FIELDS => {}
                Class::Delimiter => return Step::TooWide,
                _ => return line_end(text, at, ended || self.live, 0),
            }
        }
        if !ended {
            return Step::Incomplete;
        }
        if !BLANKS || text.len() > begin {
            self.fields.push((begin as u32, text.len() as u32));
        }
        Step::Record { bytes: text.len(), lines: 1 }
    }

    /// The careful way: fields are copied without their quotes.
    fn split_quoted(&mut self, text: &[u8], ended: bool) -> Step {
        let blanks = self.delimiter == BLANKS;
        self.unquoted = true;
        self.fields.clear();
        self.text.clear();
        let (mut at, mut inner_lines) = (0, 0);
        loop {
            let begin = self.text.len();
            let is_blank = |byte: &u8| *byte == b' ' || (*byte == b'\t' && self.delimiter != b'\t');
            let gap = text[at..].iter().take_while(|byte| is_blank(byte)).count();
            // Blanks may stand before a quote; elsewhere they belong to the field.
            if blanks || text.get(at + gap) == Some(&b'"') {
                at += gap;
            }
            let quoted = text.get(at) == Some(&b'"');
            if quoted {
                at += 1;
                loop {
                    let rest = &text[at..];
                    let run = rest.iter().position(|byte| *byte == b'"').unwrap_or(rest.len());
                    inner_lines += rest[..run].iter().filter(|byte| **byte == b'\n').count() as u64;
                    self.text.extend_from_slice(&rest[..run]);
                    at += run;
                    match (text.get(at), text.get(at + 1)) {
                        (Some(_), Some(b'"')) => {
                            self.text.push(b'"');
                            at += 2;
                        }
                        (Some(_), None) if !ended => return Step::Incomplete,
                        (Some(_), _) => break,
                        (None, _) if ended => return Step::Unclosed,
                        (None, _) => return Step::Incomplete,
                    }
                }
                at += 1;
            }
            let rest = &text[at..];
            let class = |byte: &u8| self.classes[usize::from(*byte)];
            let length = rest
                .iter()
                .position(|byte| !matches!(class(byte), Class::Plain | Class::Quote))
                .unwrap_or(rest.len());
            self.text.extend_from_slice(&rest[..length]);
            at += length;
            if at == text.len() && !ended {
                return Step::Incomplete;
            }
            if !blanks || quoted || length > 0 {
                self.fields.push((begin as u32, self.text.len() as u32));
            }
            match text.get(at).map(class) {
                None => return Step::Record { bytes: at, lines: inner_lines + 1 },
                Some(Class::Delimiter) if self.fields.len() < MOST_FIELDS => at += 1,
                Some(Class::Delimiter) => return Step::TooWide,
                Some(_) => return line_end(text, at, ended || self.live, inner_lines),
            }
        }
    }
}

/// The record ends with LF, CRLF or a lone CR at `at`; the last byte may be one if `lone`.
fn line_end(text: &[u8], at: usize, lone: bool, inner_lines: u64) -> Step {
    let bytes = match (text.get(at), text.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => at + 2,
        (Some(b'\r'), None) if !lone => return Step::Incomplete,
        _ => at + 1,
    };
    Step::Record { bytes, lines: inner_lines + 1 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Hands out one byte at a time: the hardest case for what is held over.
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Some(byte) = self.0.get(self.1) else { return Ok(0) };
            buffer[0] = *byte;
            self.1 += 1;
            Ok(1)
        }
    }

    fn read(text: &str, delimiter: u8) -> Vec<(u64, Vec<String>)> {
        let mut records = Records::new("t", Box::new(Drip(text.into(), 0)));
        records.set_delimiter(delimiter);
        records.release();
        let mut all = vec![];
        while records.advance().unwrap() {
            let field = |index| String::from_utf8(records.field(index).to_vec()).unwrap();
            all.push((records.line(), (0..records.len()).map(field).collect()));
        }
        all
    }

    fn row(line: u64, fields: &[&str]) -> (u64, Vec<String>) {
        (line, fields.iter().map(|field| (*field).to_owned()).collect())
    }

    #[test]
    fn lines_and_fields() {
        assert_eq!(read("a,b\n1,\n", b','), [row(1, &["a", "b"]), row(2, &["1", ""])]);
        assert_eq!(read("a,b\r\n\r\n1,2", b','), [row(1, &["a", "b"]), row(3, &["1", "2"])]);
        assert_eq!(read("a\rb\r\rc", b','), [row(1, &["a"]), row(2, &["b"]), row(4, &["c"])]);
        assert_eq!(read("\n\n", b','), []);
        assert_eq!(read(",", b','), [row(1, &["", ""])]);
    }

    #[test]
    fn quotes() {
        let text = "\"a,\"\"b\"\"\",\"x\r\ny\"\r\n \"p\" ,5\" pipe\n\"\"\n\"q\"r";
        let expected = [
            row(1, &["a,\"b\"", "x\r\ny"]),
            row(3, &["p ", "5\" pipe"]),
            row(4, &[""]),
            row(5, &["qr"]),
        ];
        assert_eq!(read(text, b','), expected);
    }

    #[test]
    fn runs_of_blanks() {
        let text = "  1  2\t3 \n\n   \n'a' \"b c\"  d\"e \n \"\" \n";
        let expected = [row(1, &["1", "2", "3"]), row(4, &["'a'", "b c", "d\"e"]), row(5, &[""])];
        assert_eq!(read(text, BLANKS), expected);
    }

    #[test]
    fn a_quote_that_never_closes() {
        let mut records = Records::new("t.csv", Box::new("a,b\n1,\"x\n2,y\n".as_bytes()));
        assert!(records.advance().unwrap());
        assert_eq!(
            records.advance().unwrap_err().to_string(),
            "t.csv, line 2: found a quoted field that never ends; expected a closing quote `\"`"
        );
    }

    #[test]
    fn an_endless_record_is_refused() {
        let mut records = Records::new("t.csv", Box::new(std::io::repeat(b'x')));
        assert_eq!(
            records.advance().unwrap_err().to_string(),
            "t.csv, line 1: found a record of more than 64 MB; expected a shorter one"
        );
        let mut records = Records::new("t.csv", Box::new(std::io::repeat(b',')));
        assert_eq!(
            records.advance().unwrap_err().to_string(),
            "t.csv, line 1: found more than 1048576 fields; expected fewer columns"
        );
    }
}
