use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Hands out its pieces one by one, and fails the test if one is asked for too early.
struct Pieces {
    pieces: VecDeque<Vec<u8>>,
    allowed: Arc<AtomicUsize>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(piece) = self.pieces.front_mut() else { return Ok(0) };
        assert!(self.allowed.load(Ordering::SeqCst) > 0, "read too early: {piece:?}");
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        piece.drain(..count);
        if piece.is_empty() {
            self.pieces.pop_front();
            self.allowed.fetch_sub(1, Ordering::SeqCst);
        }
        Ok(count)
    }
}

struct Stream {
    table: TableReader,
    allowed: Arc<AtomicUsize>,
}

impl Stream {
    /// Opens a stream with as many of its pieces as it may need for that.
    fn open<P: AsRef<[u8]>>(allowed: usize, pieces: &[P], options: ReadOptions) -> Self {
        Self::opened("live", allowed, pieces, options).unwrap()
    }

    fn opened<P: AsRef<[u8]>>(
        name: &str,
        allowed: usize,
        pieces: &[P],
        options: ReadOptions,
    ) -> Result<Self> {
        let allowed = Arc::new(AtomicUsize::new(allowed));
        let pieces = pieces.iter().map(|piece| piece.as_ref().to_vec()).collect();
        let input = Box::new(Pieces { pieces, allowed: Arc::clone(&allowed) });
        let options = ReadOptions { live: true, ..options };
        let table = TableReader::from_reader(name, input, &options)?;
        assert_eq!(allowed.load(Ordering::SeqCst), 0, "opened before it was expected");
        Ok(Self { table, allowed })
    }

    /// The next batch, for which so many further pieces are needed.
    fn batch(&mut self, pieces: usize) -> Vec<Vec<String>> {
        self.allowed.store(pieces, Ordering::SeqCst);
        let batch = self.table.next_batch(1000).unwrap();
        assert_eq!(self.allowed.load(Ordering::SeqCst), 0, "{batch:?}");
        batch.map_or(vec![], |batch| (0..batch.rows()).map(|row| cells(&batch, row)).collect())
    }
}

fn told(header: bool) -> ReadOptions {
    ReadOptions { header: Some(header), ..Default::default() }
}

#[test]
fn a_row_is_delivered_when_it_has_come() {
    let pieces = ["a,b\n", "1,2\n", "3,4\n5,6\n7,", "8\n9", ",10", "\n", "\n \n", "11,12"];
    let mut stream = Stream::open(1, &pieces, ReadOptions::default());
    assert_eq!(stream.table.columns(), ["a", "b"]);
    assert_eq!(stream.batch(1), [["1", "2"]]);
    assert_eq!(stream.batch(1), [["3", "4"], ["5", "6"]]);
    assert_eq!(stream.batch(1), [["7", "8"]]);
    assert_eq!(stream.batch(2), [["9", "10"]]);
    // Blank lines are no rows, and the last row has no line end but that of the stream.
    assert_eq!(stream.batch(2), [["11", "12"]]);
    assert_eq!(stream.table.place(7, None), "live, row 7");
    assert_eq!(stream.table.place(6, None), "live, line 9");
    assert!(stream.batch(0).is_empty());
}

#[test]
fn no_more_rows_than_asked_for() {
    let mut stream = Stream::open(1, &["a,b\n1,2\n3,4\n5,6\n"], ReadOptions::default());
    for expected in [2, 1] {
        assert_eq!(stream.table.next_batch(2).unwrap().unwrap().rows(), expected);
    }
    assert!(stream.table.next_batch(2).unwrap().is_none());
}

#[test]
fn json_lines() {
    let pieces = [
        "{\"a\":1,",
        "\"b\":\"x\"}\n",
        "{\"b\":\"y\",\"new\":[],\"a\":2}\r\n\r\n{\"a\":3}\n{\"a\"",
        ":4}",
        "\n",
        "{\"a\":5}",
    ];
    let mut stream = Stream::open(2, &pieces, ReadOptions::default());
    assert_eq!(stream.table.columns(), ["a", "b"]);
    assert_eq!(stream.batch(0), [["1", "x"]]);
    assert_eq!(stream.batch(1), [["2", "y"], ["3", "-"]]);
    assert_eq!(stream.batch(2), [["4", "-"]]);
    assert_eq!(stream.table.place(4, None), "live, line 5");
    assert_eq!(stream.batch(1), [["5", "-"]]);
    assert!(stream.batch(0).is_empty());
}

/// The same rows, with the same numbers, for any pieces.
#[test]
fn pieces_make_no_difference() {
    let csv = "\u{feff}näme,größe\r\n\"a\r\n\"\"é\"\"\",1\r\nÅ,2\r\n\r\n日本,3\r\n,4";
    let json = "\u{feff}{\"näme\":\"a\\r\\n\\\"é\\\"\",\"größe\":1}\r\n{\"größe\":2,\"näme\":\"Å\"}\n\n\
                    {\"näme\":\"日本\",\"größe\":3}\n{\"größe\":4}";
    for (text, lines) in [(csv, [2, 4, 6, 7]), (json, [1, 2, 4, 5])] {
        let mut sizes: Vec<usize> = (1..=text.len()).collect();
        sizes.extend([usize::MAX; 3]);
        for (style, size) in sizes.into_iter().enumerate() {
            // Cut at one place, or everywhere.
            let pieces: Vec<&[u8]> = if size > text.len() {
                text.as_bytes().chunks(1 + style % 3).collect()
            } else {
                let (left, right) = text.as_bytes().split_at(size);
                [left, right].into_iter().filter(|piece| !piece.is_empty()).collect()
            };
            let allowed = Arc::new(AtomicUsize::new(usize::MAX));
            let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
            let input = Box::new(Pieces { pieces, allowed });
            let kinds = vec![("näme".into(), Kind::Text)];
            let options = ReadOptions { live: true, kinds, ..Default::default() };
            let mut table = TableReader::from_reader("t", input, &options).unwrap();
            assert_eq!(table.columns(), ["näme", "größe"]);
            let mut all = vec![];
            while let Some(batch) = table.next_batch(3).unwrap() {
                for row in 0..batch.rows() {
                    let number = batch.first_row + row as u64;
                    assert_eq!(
                        table.place(number, None),
                        format!("t, line {}", lines[number as usize - 1]),
                        "{size}"
                    );
                    all.push(cells(&batch, row));
                }
            }
            let expected = [["a\r\n\"é\"", "1"], ["Å", "2"], ["日本", "3"], ["-", "4"]];
            assert_eq!(all, expected, "{size}");
        }
    }
}

#[test]
fn line_ends() {
    // A carriage return is the end, whether a line feed comes later or not.
    let pieces = ["a,b\r", "\n1,2\r\n3,4\r", "\n", "5,6\r", "7,8\r9,", "10\r\r"];
    let mut stream = Stream::open(1, &pieces, told(true));
    assert_eq!(stream.batch(1), [["1", "2"], ["3", "4"]]);
    assert_eq!(stream.table.place(2, None), "live, line 3");
    assert_eq!(stream.batch(2), [["5", "6"]]);
    assert_eq!(stream.table.place(3, None), "live, line 4");
    assert_eq!(stream.batch(1), [["7", "8"]]);
    assert_eq!(stream.batch(1), [["9", "10"]]);
    assert_eq!(stream.table.place(5, None), "live, line 6");
}

#[test]
fn headers() {
    let tabs = |header| ReadOptions { delimiter: Some(b'\t'), header, ..Default::default() };
    let open = ReadOptions::default;
    for (pieces, options, needed, columns, first) in [
        // Certain by the first line alone.
        (["x,y\n", "1,2\n"], open(), 1, "x y", ""),
        (["x,\n", "1,2\n"], open(), 1, "x column2", ""),
        (["1,2\n", "3,4\n"], open(), 1, "column1 column2", "1 2"),
        (["1 NA\n", "3 4\n"], open(), 1, "column1 column2", "1 -"),
        (["7\n", "8\n"], open(), 1, "column1", "7"),
        (["2019,x\n", "3,4\n"], told(true), 1, "2019 x", ""),
        (["3,x\n", "3,y\n"], told(false), 1, "column1 column2", "3 x"),
        (["x\n", "1\n"], tabs(None), 1, "x", ""),
        (["x\n", "1\n"], tabs(Some(true)), 1, "x", ""),
        // Numbers and texts: the row below decides.
        (["2019,x\n", "3,4\n"], open(), 2, "2019 x", "3 4"),
        (["3,x\n", "4,y\n"], open(), 2, "column1 column2", "3 x"),
        (["yes,x\n", "1,y\n"], open(), 2, "yes x", "1 y"),
        (["3,x\n", ""], open(), 1, "column1 column2", "3 x"),
        // The row below is to tell the delimiter.
        (["x y\n", "1 2\n"], open(), 2, "x y", "1 2"),
        (["x y\n", "1\n"], told(true), 2, "x_y", "1"),
        (["s(a;b),y\n", "1,2\n"], open(), 2, "s(a;b) y", "1 2"),
        (["x\n", "1\n"], open(), 2, "x", "1"),
        // The quote is not closed yet.
        (["3;\"x\n", "y\"\n"], told(false), 2, "column1 column2", "3 x y"),
    ] {
        let pieces: Vec<&str> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        let what = format!("{pieces:?} {options:?}");
        let kinds = [Kind::Number, Kind::Text];
        let mut stream = Stream::open(needed, &pieces, options);
        let found: Vec<String> =
            stream.table.columns().iter().map(|name| name.replace(' ', "_")).collect();
        assert_eq!(found.join(" "), columns, "{what}");
        if first.is_empty() {
            continue;
        }
        let text = first.ends_with(char::is_alphabetic);
        let select: Vec<(usize, Kind)> = (0..found.len())
            .map(|column| (column, kinds[usize::from(text && column > 0)]))
            .collect();
        stream.table.select(&select).unwrap();
        // The row that was looked at is there: nothing more is needed.
        let row = stream.batch(0).remove(0);
        assert_eq!(row.join(" ").replace('\n', " "), first, "{what}");
    }
}

#[test]
fn short_streams() {
    for (name, text) in [("t.csv", "a,b\n"), ("t.csv", "a,b"), ("t", "a\n")] {
        let stream = Stream::opened(name, 1, &[text], ReadOptions::default());
        assert!(stream.unwrap().table.next_batch(9).unwrap().is_none());
    }
    let none: [&str; 0] = [];
    for name in ["t.csv", "t.jsonl"] {
        let error = Stream::opened(name, 0, &none, ReadOptions::default()).err().unwrap();
        assert!(error.to_string().contains("found an empty file"), "{error}");
    }
    let mut stream = Stream::opened("t.jsonl", 1, &["{\"a\":1}"], ReadOptions::default()).unwrap();
    assert_eq!(stream.batch(0), [["1"]]);
}

#[test]
fn endless_first_records() {
    let options = ReadOptions { live: true, ..Default::default() };
    for name in ["t.csv", "t.jsonl"] {
        let input = Box::new(std::io::repeat(b'x'));
        let error = TableReader::from_reader(name, input, &options).err().unwrap();
        assert!(error.to_string().contains("found a record of more than 64 MB"), "{error}");
    }
    let wide = vec![",".repeat(2 << 20) + "\n"];
    let error = Stream::opened("t.csv", 1, &wide, options).err().unwrap();
    assert!(error.to_string().contains("found more than 1048576 fields"), "{error}");
}

#[test]
fn an_error_comes_after_the_rows_before_it() {
    for (pieces, needed, expected) in [
        (["a,b,c\n", "1,x,1\n2,x,2\n3,y,z\n"], 1, "t, line 4, column `c`: found text `z`"),
        (["a,b,c\n", "1,x,1\n2,x,2\n3,y\n"], 1, "t, line 4: found 2 fields"),
        (
            ["{\"a\":1,\"b\":\"x\",\"c\":1}\n{\"a\":2,\"b\":\"x\",\"c\":2}\n", "[]\n"],
            0,
            "t, line 3: found an array",
        ),
        (
            [
                "{\"a\":1,\"b\":\"x\",\"c\":1}\n",
                "{\"a\":2,\"b\":\"x\",\"c\":2}\n{\"a\":3,\"b\":\"y\",\"c\":{}}\n",
            ],
            0,
            "t, line 3, column `c`: found an object",
        ),
    ] {
        let mut stream = Stream::opened("t", 1, &pieces, ReadOptions::default()).unwrap();
        stream.table.select(&[(0, Kind::Number), (1, Kind::Text), (2, Kind::Number)]).unwrap();
        stream.allowed.store(needed, Ordering::SeqCst);
        let mut rows = 0;
        let error = loop {
            match stream.table.next_batch(9) {
                Ok(Some(batch)) => {
                    rows += batch.rows();
                    let text =
                        Column::Text { codes: vec![0; batch.rows()], levels: vec!["x".into()] };
                    assert_eq!(batch.columns[1], text);
                    stream.allowed.store(1, Ordering::SeqCst);
                }
                Ok(None) => panic!("no error"),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(rows, 2);
        assert!(error.starts_with(expected), "{error}");
        assert!(stream.table.next_batch(9).is_err());
    }
}

#[test]
fn long_rows_do_not_wait_for_more() {
    let long = "x".repeat(300 << 10);
    let pieces = ["a,b\n".to_owned(), format!("1,{long}"), "\n".to_owned(), "2,y\n".to_owned()];
    let mut stream = Stream::open(1, &pieces, ReadOptions::default());
    stream.table.select(&[(0, Kind::Number)]).unwrap();
    assert_eq!(stream.batch(2), [["1"]]);
    assert_eq!(stream.batch(1), [["2"]]);
}

/// Each flushed row is there at once, across many windows of the decoder.
#[test]
fn flushed_gzip() {
    for level in [0, 1, 6] {
        let mut encoder = GzEncoder::new(vec![], Compression::new(level));
        let mut flushed = |text: &str| {
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.flush().unwrap();
            std::mem::take(encoder.get_mut())
        };
        let mut pieces = vec![flushed("x,y\n")];
        // Rows of many lengths, some of them much longer than their compressed form.
        let text = |row: usize| "ab".repeat(row * 7919 % 2000);
        pieces.extend((0..1000).map(|row| flushed(&format!("{row},{}\n", text(row)))));
        let last = encoder.finish().unwrap();
        pieces.push(last);
        let mut stream = Stream::open(1, &pieces, ReadOptions::default());
        stream.table.select(&[(0, Kind::Number), (1, Kind::Text)]).unwrap();
        for row in 0..1000 {
            let expected = [row.to_string(), text(row)];
            let found = stream.batch(1).remove(0);
            assert_eq!(found[0], expected[0]);
            assert!(found[1] == expected[1] || found[1] == "-" && expected[1].is_empty());
        }
        assert!(stream.batch(1).is_empty());
    }
}

#[test]
fn one_member_of_gzip_for_each_row() {
    let pieces: Vec<Vec<u8>> =
        ["x,y\n", "1,2\n3,4\n", "5,6\n", "7,8"].iter().map(|text| gzip(text.as_bytes())).collect();
    let mut stream = Stream::open(1, &pieces, ReadOptions::default());
    assert_eq!(stream.batch(1), [["1", "2"], ["3", "4"]]);
    assert_eq!(stream.batch(1), [["5", "6"]]);
    assert_eq!(stream.batch(1), [["7", "8"]]);
    assert!(stream.batch(0).is_empty());
}

/// The decoder has more to give than it is asked for at once.
#[test]
fn a_burst_of_gzip() {
    let mut encoder = GzEncoder::new(vec![], Compression::new(6));
    encoder.write_all(b"{\"x\":1}\n").unwrap();
    encoder.write_all(&b"{\"x\":1}\n".repeat(100_000)).unwrap();
    encoder.flush().unwrap();
    let first = std::mem::take(encoder.get_mut());
    encoder.write_all(b"{\"x\":2}\n").unwrap();
    let pieces = [first, encoder.finish().unwrap()];
    let mut stream = Stream::open(1, &pieces, ReadOptions::default());
    let mut rows = 0;
    while rows < 100_001 {
        rows += stream.table.next_batch(1000).unwrap().unwrap().rows();
    }
    assert_eq!(stream.batch(1), [["2"]]);
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let options = ReadOptions { live: true, ..Default::default() };
    for (name, bytes) in [
        ("t.csv", b"a,b\n1,2\n3,4".to_vec()),
        ("t.csv.gz", gzip(b"a,b\n1,2\n3,4\n")),
        ("t.jsonl", b"{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}".to_vec()),
        ("t", gzip(b"{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}\n")),
        (
            "t.npz",
            npz(
                &[
                    ("a.npy", npy("'<f8'", false, "(2,)", &doubles(&[1.0, 3.0]))),
                    ("b.npy", npy("'<f8'", false, "(2,)", &doubles(&[2.0, 4.0]))),
                ],
                false,
            ),
        ),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut table = TableReader::open(&path, &options).unwrap();
        assert_eq!(table.columns(), ["a", "b"]);
        assert_eq!(rows(&mut table, 9).unwrap(), [["1", "2"], ["3", "4"]], "{name}");
    }
}
