//! Finds the form of delimited text by looking at its beginning: the delimiter, whether there is
//! a header, and what the columns hold.

use super::batch::Kind;
use super::cell::{Look, Spelling, look};
use super::records::{BLANKS, Splitter, Step};

/// The delimiters that are tried, the less ambiguous first: a comma or a blank may well be part
/// of a number or a name in a file whose fields are separated by something else.
const DELIMITERS: [u8; 5] = [b'\t', b';', b'|', b',', BLANKS];

/// How many records are looked at to find the delimiter.
const RECORDS: usize = 100;

/// The delimiter that splits the records most evenly; a comma if none splits them at all.
/// `text` is the whole of the input if `ended`.
pub(super) fn delimiter(text: &[u8], ended: bool) -> u8 {
    most_even(text, ended, RECORDS, Splitter::new)
}

fn most_even(text: &[u8], ended: bool, records: usize, splitter: fn(u8) -> Splitter) -> u8 {
    let mut best = (0.0, b',');
    for delimiter in DELIMITERS {
        let evenness = evenness(text, ended, records, delimiter, splitter(delimiter));
        if evenness > best.0 {
            best = (evenness, delimiter);
        }
    }
    best.1
}

/// The share of the first `records` records that have the most frequent number of fields; 0 if
/// that is 1.
fn evenness(
    text: &[u8],
    ended: bool,
    records: usize,
    delimiter: u8,
    mut splitter: Splitter,
) -> f64 {
    let mut counts: Vec<usize> = Vec::new();
    // Whether each column has but numbers below the first record.
    let mut numeric: Vec<bool> = Vec::new();
    let mut rest = text;
    while counts.len() < records {
        // The last record may be cut short: it counts only if there is no other.
        let whole = ended || counts.is_empty() && !rest.is_empty();
        let Step::Record { bytes, .. } = splitter.split(rest, ended) else {
            if whole && !ended && matches!(splitter.split(rest, true), Step::Record { .. }) {
                counts.push(splitter.len());
            }
            break;
        };
        if !splitter.is_blank() {
            let first = counts.len() < 2;
            counts.push(splitter.len());
            numeric.resize(numeric.len().max(splitter.len()), true);
            for (index, numeric) in numeric.iter_mut().enumerate().take(splitter.len()) {
                let seen = look(splitter.field(rest, index), &Spelling::default());
                *numeric = (*numeric || first) && matches!(seen, Look::Number | Look::Missing);
            }
        }
        rest = &rest[bytes..];
    }
    let Some((width, frequency)) = most_frequent(&counts) else { return 0.0 };
    let share = frequency as f64 / counts.len() as f64;
    // Sentences have blanks too: these separate fields only where they separate numbers.
    let doubtful = delimiter == BLANKS && (share < 1.0 || !numeric.contains(&true));
    if width < 2 || doubtful { 0.0 } else { share }
}

/// The value that occurs most often, the larger one if several do, and how often.
fn most_frequent(counts: &[usize]) -> Option<(usize, usize)> {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    sorted
        .chunk_by(|left, right| left == right)
        .map(|run| (run[0], run.len()))
        .max_by_key(|(value, length)| (*length, *value))
}

/// The delimiter of a live stream, and how many records below the first one are to be looked at;
/// `None` if that cannot be said before more has come. What can be told from the first record is
/// not left to others, which may be long in coming. More records than needed are not looked at
/// even if they have come: it would be a matter of chance how many.
///
/// Without `header`, a first record of texts alone is taken for a header, and one without any text
/// for a row. One with both is judged together with the record below it, by [`has_header`]. The
/// record below is also wanted if it is to tell which of several delimiters a header has.
pub(super) fn live_form(
    text: &[u8],
    ended: bool,
    told: Option<u8>,
    header: Option<bool>,
    spelling: &Spelling,
) -> Option<(u8, usize)> {
    let found =
        |records: usize| told.unwrap_or_else(|| most_even(text, ended, records, Splitter::live));
    let delimiter = found(1);
    let mut looks = Vec::new();
    let whole = first_records(text, ended, delimiter, 1, |splitter, record| {
        let cells = (0..splitter.len()).map(|index| splitter.field(record, index));
        looks.extend(cells.map(|cell| (cell.trim_ascii().is_empty(), look(cell, spelling))));
    });
    let (splitting, open) = candidates(text, ended);
    if !ended && (whole == 0 || told.is_none() && open && looks.len() == 1) {
        return None;
    }
    let all_texts = looks.iter().all(|(empty, look)| *empty || *look == Look::Other);
    let no_text = looks.iter().all(|(_, look)| !matches!(look, Look::Other | Look::Boolean));
    let enough = match header {
        Some(false) => true,
        None if no_text => true,
        None if !all_texts => false,
        _ => told.is_some() || splitting == 1,
    };
    if enough {
        return Some((delimiter, 0));
    }
    let delimiter = found(2);
    let whole = first_records(text, ended, delimiter, 2, |_, _| {});
    (whole == 2 || ended).then_some((delimiter, 1))
}

/// How many of the unambiguous delimiters split the first record, and whether one of them makes it
/// go on beyond the text, by a quote that is not closed yet.
fn candidates(text: &[u8], ended: bool) -> (usize, bool) {
    let (mut splitting, mut open) = (0, false);
    for delimiter in DELIMITERS.into_iter().filter(|delimiter| *delimiter != BLANKS) {
        let mut fields = 0;
        let whole = first_records(text, ended, delimiter, 1, |splitter, _| fields = splitter.len());
        splitting += usize::from(fields > 1);
        open |= whole == 0;
    }
    (splitting, open)
}

/// Visits the first whole records, at most `most` of them, and says how many there are.
fn first_records(
    text: &[u8],
    ended: bool,
    delimiter: u8,
    most: usize,
    mut visit: impl FnMut(&Splitter, &[u8]),
) -> usize {
    let mut splitter = Splitter::live(delimiter);
    let (mut rest, mut count, mut width) = (text, 0, 0);
    while count < most {
        let bytes = match splitter.split(rest, ended) {
            Step::Record { bytes, .. } => bytes,
            // An error for whoever reads it, not something to wait for.
            Step::TooWide => return most,
            _ => break,
        };
        // Blanks on a line of their own are a cell only where there is but one column.
        let blank = count > 0 && splitter.len() != width && splitter.is_only_blanks(rest);
        if !splitter.is_blank() && !blank {
            visit(&splitter, rest);
            (count, width) = (count + 1, splitter.len());
        }
        rest = &rest[bytes..];
    }
    count
}

/// What has been seen of one column.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// The cell of the first record, and what it looks like.
    first: Vec<u8>,
    first_look: Option<Look>,
    /// Whether this cell recurs below.
    recurs: bool,
    numbers: u64,
    comma_numbers: u64,
    booleans: u64,
    others: u64,
}

impl Sample {
    /// Begins with the cell of the first record, which may be the column's name.
    pub(super) fn new(first: &[u8], spelling: &Spelling) -> Self {
        let first_look = Some(look(first, spelling));
        Self { first: first.trim_ascii().to_vec(), first_look, ..Self::default() }
    }

    /// Looks at a cell below the first.
    pub(super) fn add(&mut self, cell: &[u8], spelling: &Spelling) {
        self.count(look(cell, spelling));
        self.recurs = self.recurs || cell.trim_ascii() == self.first;
    }

    /// Looks at a cell of a table whose columns have their names.
    pub(super) fn see(&mut self, cell: &[u8], spelling: &Spelling) {
        self.count(look(cell, spelling));
    }

    /// Counts the first cell with the others: it turned out not to be a name.
    pub(super) fn add_first(&mut self) {
        if let Some(look) = self.first_look.take() {
            self.count(look);
        }
    }

    fn count(&mut self, look: Look) {
        match look {
            Look::Missing => {}
            Look::Number => self.numbers += 1,
            Look::CommaNumber => self.comma_numbers += 1,
            Look::Boolean => self.booleans += 1,
            Look::Other => self.others += 1,
        }
    }

    /// The kind of the column. A column of numbers but for a few odd cells is still meant to be
    /// one of numbers, and so is one of numbers with decimal commas: the odd cells will be
    /// errors, for silently making each number a text of its own would be worse.
    pub(super) fn kind(&self, delimiter: u8) -> Kind {
        let all = self.numbers + self.comma_numbers + self.booleans + self.others;
        let meant = self.numbers + if delimiter == b',' { 0 } else { self.comma_numbers };
        if meant == all || (meant >= 3 && meant * 100 >= all * 95) {
            Kind::Number
        } else if self.booleans == all {
            Kind::Boolean
        } else {
            Kind::Text
        }
    }

    fn named(&self) -> bool {
        !matches!(self.first_look, None | Some(Look::Missing | Look::Number | Look::CommaNumber))
    }
}

/// Whether the first record names the columns: a text stands above numbers, or all of its cells
/// are texts that do not occur again below them.
pub(super) fn has_header(columns: &[Sample], delimiter: u8) -> bool {
    let above_numbers = |column: &Sample| {
        let any = column.numbers + column.comma_numbers > 0;
        column.named() && any && column.kind(delimiter) == Kind::Number
    };
    let no_value = |column: &Sample| column.first.is_empty() || column.named() && !column.recurs;
    columns.iter().any(above_numbers)
        || (columns.iter().all(no_value) && columns.iter().any(Sample::named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters() {
        for (text, expected) in [
            ("a,b,c\n1,2,3\n", b','),
            ("a;b\n1,5;2,5\n3;4\n", b';'),
            ("1,5;2,5\n3,1;4,2\n", b';'),
            ("a\tb\n1\t2\n", b'\t'),
            ("a|b|c\n1|2|3\n", b'|'),
            ("name,text\nx,\"a;b;c\"\ny,d\n", b','),
            ("  1.0   2.0  3.0\n 10.5  2.0 -3.0\n", BLANKS),
            ("height weight\n1 2\n3 4\n", BLANKS),
            ("full name\nJohn Smith\nJane Doe\n", b','),
            ("x\n1\n2\n", b','),
            ("", b','),
            ("a,b,c\n1,2,3\n1,2\n4,5,6\n", b','),
            ("when,x\n2020-01-01 10:00,1\n2020-01-02 11:00,2\n", b','),
        ] {
            assert_eq!(delimiter(text.as_bytes(), true), expected, "{text}");
        }
        // The cut last record does not count, unless it is the only one.
        assert_eq!(delimiter(b"a;b;c\n1;2;3\n4,", false), b';');
        assert_eq!(delimiter(b"a;b;c", false), b';');
    }

    fn form(rows: &[&[&str]]) -> (bool, Vec<Kind>) {
        let spelling = Spelling::default();
        let mut columns: Vec<Sample> =
            rows[0].iter().map(|cell| Sample::new(cell.as_bytes(), &spelling)).collect();
        for row in &rows[1..] {
            for (column, cell) in columns.iter_mut().zip(*row) {
                column.add(cell.as_bytes(), &spelling);
            }
        }
        let header = has_header(&columns, b',');
        if !header {
            columns.iter_mut().for_each(Sample::add_first);
        }
        (header, columns.iter().map(|column| column.kind(b',')).collect())
    }

    #[test]
    fn headers_and_kinds() {
        use Kind::{Boolean, Number, Text};
        assert_eq!(form(&[&["a", "b"], &["1", "x"]]), (true, vec![Number, Text]));
        assert_eq!(form(&[&["1", "x"], &["2", "y"]]), (false, vec![Number, Text]));
        assert_eq!(form(&[&["a", "b"], &["x", "yes"]]), (true, vec![Text, Boolean]));
        assert_eq!(form(&[&["x", "y"], &["y", "z"], &["x", "y"]]), (false, vec![Text, Text]));
        assert_eq!(form(&[&["", "b"], &["0", "1"]]), (true, vec![Number, Number]));
        assert_eq!(form(&[&["a", "2019"], &["x", "1"]]), (false, vec![Text, Number]));
        assert_eq!(form(&[&["a", "2019"], &["7", "1"]]), (true, vec![Number, Number]));
        assert_eq!(form(&[&["a", "b"]]), (true, vec![Number, Number]));
        assert_eq!(form(&[&["1", "2"]]), (false, vec![Number, Number]));
        assert_eq!(form(&[&["a", "b"], &["NA", ""]]), (true, vec![Number, Number]));
    }

    #[test]
    fn odd_cells() {
        let column = |numbers, others| Sample { numbers, others, ..Sample::default() };
        assert_eq!(column(95, 5).kind(b','), Kind::Number);
        assert_eq!(column(94, 6).kind(b','), Kind::Text);
        assert_eq!(column(2, 1).kind(b','), Kind::Text);
        let commas = Sample { numbers: 1, comma_numbers: 5, ..Sample::default() };
        assert_eq!(commas.kind(b';'), Kind::Number);
        assert_eq!(commas.kind(b','), Kind::Text);
    }
}
