//! The readers as their callers see them: rules, messages, and input that nobody meant.

#![allow(clippy::unwrap_used)]

use std::io::{Cursor, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::{Batch, Column, Format, Kind, ReadOptions, TableReader};
use crate::data::MISSING;
use crate::error::{Category, Error, Result};

fn open(name: &str, bytes: impl Into<Vec<u8>>) -> Result<TableReader> {
    open_with(name, bytes, &ReadOptions::default())
}

fn open_with(name: &str, bytes: impl Into<Vec<u8>>, options: &ReadOptions) -> Result<TableReader> {
    TableReader::from_reader(name, Box::new(Cursor::new(bytes.into())), options)
}

/// All rows as texts; a missing value is a `-`.
pub(in super::super) fn rows(table: &mut TableReader, max_rows: usize) -> Result<Vec<Vec<String>>> {
    let mut rows = vec![];
    while let Some(batch) = table.next_batch(max_rows)? {
        assert_eq!(batch.first_row, rows.len() as u64 + 1);
        rows.extend((0..batch.rows()).map(|row| cells(&batch, row)));
    }
    assert!(table.next_batch(max_rows)?.is_none());
    Ok(rows)
}

fn cells(batch: &Batch, row: usize) -> Vec<String> {
    let cell = |column: &Column| match column {
        Column::Number(values) if values[row].is_nan() => "-".to_owned(),
        Column::Number(values) => values[row].to_string(),
        Column::Text { codes, .. } if codes[row] == MISSING => "-".to_owned(),
        Column::Text { codes, levels } => levels[codes[row] as usize].clone(),
    };
    batch.columns.iter().map(cell).collect()
}

fn error(name: &str, bytes: impl Into<Vec<u8>>) -> Error {
    open(name, bytes).and_then(|mut table| rows(&mut table, 100).map(drop)).unwrap_err()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

mod delimited {
    use super::*;

    #[test]
    fn a_plain_table() {
        let text = "age,city,member\n31,Oslo,yes\n NA , Bergen ,No\n,?,\n-1.5e1,Oslo,TRUE\n";
        let mut table = open("t.csv", text).unwrap();
        assert_eq!(table.name(), "t.csv");
        assert_eq!(table.columns(), ["age", "city", "member"]);
        assert_eq!(table.kinds(), [Kind::Number, Kind::Text, Kind::Boolean]);
        let expected =
            [["31", "Oslo", "1"], ["-", "Bergen", "0"], ["-", "-", "-"], ["-15", "Oslo", "1"]];
        assert_eq!(rows(&mut table, 3).unwrap(), expected);
    }

    #[test]
    fn levels_are_those_of_the_batch() {
        let mut table = open("t.csv", "name\na\nb\na\nb\nc\n").unwrap();
        let text = |codes: &[u32], levels: &[&str]| Column::Text {
            codes: codes.to_vec(),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
        };
        let batch = table.next_batch(3).unwrap().unwrap();
        assert_eq!(batch.columns, [text(&[0, 1, 0], &["a", "b"])]);
        let batch = table.next_batch(3).unwrap().unwrap();
        assert_eq!((batch.first_row, batch.columns), (4, vec![text(&[0, 1], &["b", "c"])]));
    }

    #[test]
    fn odd_spellings_of_a_file() {
        let expected = [["1", "x,\ny"], ["2", "z"]];
        let plain = "a,b\n1,\"x,\ny\"\n2,z\n";
        let mut two_members = gzip(b"a,b\n1,\"x,");
        two_members.extend(gzip(b"\ny\"\n2,z\n"));
        for bytes in [
            plain.into(),
            format!("\u{feff}{plain}").into(),
            plain.replace("\n2", "\r\n2").into(),
            plain.trim_end().into(),
            "a|b\n1|\"x,\ny\"\n2|z".into(),
            "a;b\n1;\"x,\ny\"\n\n2;z".into(),
            "a b\n1  \"x,\ny\"\n  2\tz  \n".into(),
            gzip(plain.as_bytes()),
            two_members,
        ] {
            let mut table = open("input", bytes).unwrap();
            assert_eq!(table.columns(), ["a", "b"]);
            assert_eq!(rows(&mut table, 100).unwrap(), expected);
        }
    }

    #[test]
    fn options() {
        let options = ReadOptions {
            format: Some(Format::Delimited),
            delimiter: Some(b':'),
            header: Some(false),
            missing: vec!["unknown".into(), "-9".into()],
            kinds: vec![("column2".into(), Kind::Text)],
            live: false,
        };
        let mut table = open_with("t.npy", "1:2\nunknown:-9\n-9.0:3\n", &options).unwrap();
        assert_eq!(table.columns(), ["column1", "column2"]);
        assert_eq!(table.kinds(), [Kind::Number, Kind::Text]);
        assert_eq!(rows(&mut table, 9).unwrap(), [["1", "2"], ["-", "-"], ["-", "3"]]);

        let options = ReadOptions { kinds: vec![("z".into(), Kind::Text)], ..Default::default() };
        let error = open_with("t.csv", "a,b\n1,2\n", &options).err().unwrap();
        assert_eq!(error.to_string(), "t.csv: found no column `z`; expected one of `a`, `b`");
        let options = ReadOptions { delimiter: Some(b'"'), ..Default::default() };
        let error = open_with("t.csv", "a,b\n1,2\n", &options).err().unwrap();
        assert_eq!(error.category(), Category::Setting);
    }

    #[test]
    fn a_header_may_be_declared() {
        let options = ReadOptions { header: Some(true), ..Default::default() };
        let mut table = open_with("t.csv", "2019,2020\n1,2\n", &options).unwrap();
        assert_eq!(table.columns(), ["2019", "2020"]);
        assert_eq!(rows(&mut table, 9).unwrap(), [["1", "2"]]);
        let options = ReadOptions { header: Some(false), ..Default::default() };
        let table = open_with("t.csv", "a,b\nc,d\n", &options).unwrap();
        assert_eq!(table.columns(), ["column1", "column2"]);
    }

    #[test]
    fn names() {
        assert_eq!(open("t.csv", ", b ,\n1,2,3\n").unwrap().columns(), ["column1", "b", "column3"]);
        assert_eq!(
            error("t.csv", "a,b,a,b,a\n1,2,3,4,5\n").to_string(),
            "t.csv: found more than one column named `a`, `b`; expected a different name for each \
             column"
        );
        let bytes = b"a,caf\xe9\n1,2\n";
        assert_eq!(
            error("t.csv", *bytes).to_string(),
            "t.csv, header: found bytes that are not UTF-8 in the column name `caf\u{fffd}`; \
             expected text in UTF-8"
        );
    }

    #[test]
    fn selected_columns_only() {
        let text = b"a,b,c\n1,caf\xe9,3\n4,5,6\n";
        let mut table = open("t.csv", *text).unwrap();
        table.select(&[(2, Kind::Text), (0, Kind::Number), (2, Kind::Number)]).unwrap();
        assert_eq!(rows(&mut table, 9).unwrap(), [["3", "1", "3"], ["6", "4", "6"]]);
        let error = table.select(&[(0, Kind::Number)]).unwrap_err().to_string();
        assert_eq!(
            error,
            "t.csv: found a selection of columns after the first rows; expected it before them"
        );

        let mut table = open("t.csv", *text).unwrap();
        assert_eq!(
            table.select(&[(3, Kind::Number)]).unwrap_err().to_string(),
            "t.csv: found column number 3; expected a number below 3, the number of columns"
        );
        assert!(table.select(&[]).is_err());
        assert_eq!(
            rows(&mut table, 9).unwrap_err().to_string(),
            "t.csv, line 2, column `b`: found bytes that are not UTF-8 in `caf\u{fffd}`; expected \
             text in UTF-8"
        );
    }

    #[test]
    fn an_odd_cell() {
        let mut text = "id,age of dog\n".to_owned() + &"1,2\n".repeat(50);
        text.insert_str(text.len() - 4, "7,unkn own\n");
        let error = error("train.csv", text.as_str());
        assert_eq!(error.category(), Category::Data);
        assert_eq!(
            error.to_string(),
            "train.csv, line 51, column `age of dog`: found text `unkn own`; expected a number"
        );
        assert_eq!(
            error.help().unwrap(),
            "correct it, declare it missing with `--missing 'unkn own'`, or read the column as \
             text with `--text 'age of dog'`"
        );

        let options = ReadOptions { missing: vec!["unkn own".into()], ..Default::default() };
        let mut table = open_with("train.csv", text.as_str(), &options).unwrap();
        assert_eq!(rows(&mut table, 100).unwrap()[49], ["7", "-"]);
        let kinds = vec![("age of dog".into(), Kind::Text)];
        let options = ReadOptions { kinds, ..Default::default() };
        let mut table = open_with("train.csv", text.as_str(), &options).unwrap();
        assert_eq!(rows(&mut table, 100).unwrap()[49], ["7", "unkn own"]);
    }

    #[test]
    fn an_odd_cell_behind_the_sample() {
        let text = "x,y\n".to_owned() + &"1,2\r\n".repeat(20_000) + "3,\"a\r\nb\"\r\n";
        assert_eq!(
            error("t.csv", text).to_string(),
            "t.csv, line 20002, column `y`: found text `a  b`; expected a number"
        );
    }

    #[test]
    fn infinite_values() {
        for (cell, shown) in [("inf", "inf"), (" 1e999", "1e999"), ("-Infinity", "-Infinity")] {
            let text = format!("x\n1\n{cell}\n");
            let expected = format!(
                "t.csv, line 3, column `x`: found the infinite value `{shown}`; expected a finite number"
            );
            assert_eq!(error("t.csv", text.as_str()).to_string(), expected);
        }
        let options = ReadOptions { missing: vec!["inf".into()], ..Default::default() };
        let mut table = open_with("t.csv", "x\n1\ninf\n", &options).unwrap();
        assert_eq!(rows(&mut table, 9).unwrap(), [["1"], ["-"]]);
    }

    #[test]
    fn decimal_commas() {
        let error = error("t.csv", "x;y\n1,5;1\n2,5;2\n3,5;3\n");
        let expected = "t.csv, line 2, column `x`: found text `1,5`; expected a number";
        assert_eq!(error.to_string(), expected);
        assert_eq!(
            error.help().unwrap(),
            "write numbers with a decimal point instead of a decimal comma, or read the column as \
             text with `--text x`"
        );
    }

    #[test]
    fn forced_booleans() {
        let kinds = vec![("x".into(), Kind::Boolean)];
        let options = ReadOptions { kinds, ..Default::default() };
        let mut table = open_with("t.csv", "x\n1\n0\nyes\n2\n", &options).unwrap();
        assert_eq!(
            rows(&mut table, 9).unwrap_err().to_string(),
            "t.csv, line 5, column `x`: found `2`; expected `true`, `false`, `yes` or `no`"
        );
    }

    #[test]
    fn ragged_rows() {
        let error = error("t.csv", "a,b,c\r\n1,2,3\r\n\r\n4,5\r\n");
        let expected = "t.csv, line 4: found 2 fields; expected 3, as in the first record";
        assert_eq!(error.to_string(), expected);
        let mut table = open("t.csv", "a,b\n1,2\n   \n3,4\n").unwrap();
        assert_eq!(rows(&mut table, 9).unwrap(), [["1", "2"], ["3", "4"]]);
    }

    #[test]
    fn files_without_rows() {
        for bytes in [&b""[..], b"\n\r\n", b"\xef\xbb\xbf"] {
            assert_eq!(
                error("t.csv", bytes).to_string(),
                "t.csv: found an empty file; expected a table with a header and at least one row"
            );
        }
        let mut table = open("t.csv", "a,b\n").unwrap();
        assert_eq!(table.columns(), ["a", "b"]);
        assert!(table.next_batch(10).unwrap().is_none());
        let mut table = open("t.csv", "a,b\nNA,\n").unwrap();
        assert_eq!(table.kinds(), [Kind::Number, Kind::Number]);
        assert_eq!(rows(&mut table, 9).unwrap(), [["-", "-"]]);
    }

    #[test]
    fn places() {
        let mut table = open("t.csv", "a,b\n1,x\n\n2,y\n3,z\n").unwrap();
        assert_eq!(table.place(2, Some(1)), "t.csv, row 2, column `b`");
        table.next_batch(2).unwrap();
        assert_eq!(table.place(2, Some(1)), "t.csv, line 4, column `b`");
        assert_eq!(table.place(1, None), "t.csv, line 2");
        table.next_batch(2).unwrap();
        assert_eq!(table.place(3, Some(7)), "t.csv, line 5");
        assert_eq!(table.place(1, None), "t.csv, row 1");
    }

    #[test]
    fn failures_of_the_input() {
        /// Some good bytes, then an error.
        struct Failing(&'static [u8]);
        impl Read for Failing {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                if self.0.is_empty() {
                    return Err(std::io::Error::other("the cable fell out"));
                }
                self.0.read(buffer)
            }
        }
        let input = Box::new(Failing(b"a,b\n1,2\n"));
        let error =
            TableReader::from_reader("t.csv", input, &ReadOptions::default()).err().unwrap();
        assert_eq!(error.category(), Category::Io);
        assert_eq!(error.to_string(), "t.csv: cannot read: the cable fell out");
        let mut cut = gzip("a,b\n1,2\n".repeat(100).as_bytes());
        cut.truncate(cut.len() - 10);
        assert_eq!(super::error("t.csv.gz", cut).category(), Category::Io);

        let mut table =
            open("t.csv", "x\n1\n2\n3\n4\ny\n".repeat(4).replace("y\nx", "5\n5")).unwrap();
        assert!(rows(&mut table, 2).is_err());
        assert!(table.next_batch(2).is_err(), "no silent end after an error");
    }

    #[test]
    fn files_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let options = ReadOptions::default();
        let gone = TableReader::open(&path("gone.csv"), &options).err().unwrap();
        assert_eq!(gone.category(), Category::NoInput);
        let error = TableReader::open(folder.path(), &options).err().unwrap();
        assert_eq!(error.category(), Category::NoInput);
        assert!(error.to_string().ends_with(": cannot open: this is a directory"), "{error}");

        for (name, bytes) in [
            ("t.csv", b"a\tb\n1\t2\n".to_vec()),
            ("t.tsv", b"a\tb\n1\t2\n".to_vec()),
            ("noname", gzip(b"a,b\n1,2\n")),
            ("t.csv.gz", gzip(b"a,b\n1,2\n")),
        ] {
            std::fs::write(path(name), bytes).unwrap();
            let mut table = TableReader::open(&path(name), &options).unwrap();
            assert_eq!(table.columns(), ["a", "b"]);
            assert_eq!(rows(&mut table, 9).unwrap(), [["1", "2"]]);
        }
    }

    #[test]
    fn foreign_files() {
        assert_eq!(
            error("t.csv", *b"\xff\xfea\0,\0b\0").to_string(),
            "t.csv: found text in UTF-16; expected plain or gzip-compressed text in UTF-8, NumPy, \
             or Parquet"
        );
        assert!(error("t", *b"\x28\xb5\x2f\xfd....").to_string().contains("zstd"));
        assert_eq!(open("t", "BZh,b\n1,2\n").unwrap().columns(), ["BZh", "b"]);
        assert_eq!(open("t", "PAR1,PAR2\n1,2\n").unwrap().columns(), ["PAR1", "PAR2"]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            cells in prop::collection::vec(("-?[0-9]{1,9}(\\.[0-9]{1,9})?", "[a-z][ -~é\n\r]{0,6}[a-z]"), 1..60),
            style in 0usize..4,
            delimiter in prop::sample::select(vec![b',', b';', b'\t', b'|']),
            max_rows in 1usize..70,
        ) {
            let quoting = [
                csv::QuoteStyle::Necessary,
                csv::QuoteStyle::Always,
                csv::QuoteStyle::NonNumeric,
                csv::QuoteStyle::Necessary,
            ][style];
            let line_end =
                if style == 3 { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer = csv::WriterBuilder::new()
                .quote_style(quoting)
                .delimiter(delimiter)
                .terminator(line_end)
                .from_writer(vec![]);
            writer.write_record(["n", "t"]).unwrap();
            for (number, text) in &cells {
                writer.write_record([number, text]).unwrap();
            }
            let bytes = writer.into_inner().unwrap();
            let options = ReadOptions {
                delimiter: Some(delimiter),
                header: Some(true),
                kinds: vec![("t".into(), Kind::Text)],
                ..Default::default()
            };
            let mut table = open_with("t.csv", bytes, &options).unwrap();
            let expected: Vec<Vec<String>> = cells
                .iter()
                .map(|(number, text)| {
                    let text = if text == "nan" || text == "null" { "-" } else { text };
                    vec![number.parse::<f64>().unwrap().to_string(), text.to_owned()]
                })
                .collect();
            prop_assert_eq!(rows(&mut table, max_rows).unwrap(), expected);
        }
    }
}

mod json_lines {
    use super::*;

    #[test]
    fn a_plain_table() {
        let text = "{\"age\":31,\"city\":\"Oslo\",\"member\":true}\n\n  \r\n\
                    {\"city\":\" Bergen \",\"age\":null,\"member\":\"No\",\"zip\":\"0150\"}\r\n\
                    {\"age\":\"NA\",\"city\":\"?\"}\n{\"age\":\"-1.5e1\",\"city\":\"Os\\u006co\"}";
        let mut table = open("t.jsonl", text).unwrap();
        assert_eq!(table.name(), "t.jsonl");
        assert_eq!(table.columns(), ["age", "city", "member", "zip"]);
        assert_eq!(table.kinds(), [Kind::Number, Kind::Text, Kind::Boolean, Kind::Number]);
        let expected = [
            ["31", "Oslo", "1", "-"],
            ["-", "Bergen", "0", "150"],
            ["-", "-", "-", "-"],
            ["-15", "Oslo", "-", "-"],
        ];
        assert_eq!(rows(&mut table, 3).unwrap(), expected);
        let mut table = open("t.jsonl", text).unwrap();
        table.next_batch(9).unwrap();
        assert_eq!(table.place(4, Some(1)), "t.jsonl, line 6, column `city`");
    }

    #[test]
    fn every_type_becomes_every_kind() {
        let text = "{\"x\":1}\n{\"x\":1.0}\n{\"x\":\"1\"}\n{\"x\":\" 1 \"}\n{\"x\":10e-1}\n{\"x\":true}\n\
                    {\"x\":null}\n{}\n{\"x\":\"\"}\n";
        for (kind, expected) in [
            (Kind::Number, "1 1 1 1 1 1 - - -"),
            (Kind::Boolean, "1 1 1 1 1 1 - - -"),
            (Kind::Text, "1 1.0 1 1 10e-1 true - - -"),
        ] {
            let kinds = vec![("x".into(), kind)];
            let options = ReadOptions { kinds, ..Default::default() };
            let mut table = open_with("t.jsonl", text, &options).unwrap();
            let cells: Vec<String> = rows(&mut table, 9).unwrap().into_iter().flatten().collect();
            let expected: Vec<&str> = expected.split(' ').collect();
            assert_eq!(cells, expected, "{kind:?}");
        }
    }

    #[test]
    fn the_same_as_csv() {
        let csv =
            "id,x,name,ok\n18446744073709551617,1.50,a b,true\n2,,?,false\n-9,1e5,\"q\"\"é\",\n";
        let json = "{\"id\":18446744073709551617,\"x\":1.50,\"name\":\"a b\",\"ok\":true}\n\
                    {\"id\":2,\"name\":\"?\",\"ok\":false}\n\
                    {\"x\":1e5,\"name\":\"q\\\"é\",\"id\":-9,\"ok\":null}\n";
        let missing = vec!["-9".into()];
        let options = ReadOptions { missing, ..Default::default() };
        let mut text_options = options.clone();
        text_options.kinds = ["id", "x", "name", "ok"].map(|name| (name.into(), Kind::Text)).into();
        let as_numbers = [(1, Kind::Number), (3, Kind::Boolean), (2, Kind::Text), (1, Kind::Text)];
        for (options, selection) in
            [(&options, None), (&options, Some(as_numbers)), (&text_options, None)]
        {
            for max_rows in [1, 2, 9] {
                let mut tables =
                    [open_with("t.csv", csv, options), open_with("t.jsonl", json, options)]
                        .map(Result::unwrap);
                assert_eq!(tables[0].columns(), tables[1].columns());
                assert_eq!(tables[0].kinds(), tables[1].kinds());
                if let Some(selection) = selection {
                    tables.iter_mut().for_each(|table| table.select(&selection).unwrap());
                }
                loop {
                    let [csv, json] = tables.each_mut().map(|table| {
                        // NaN is not equal to itself.
                        table.next_batch(max_rows).unwrap().map(|batch| format!("{batch:?}"))
                    });
                    assert_eq!(csv, json);
                    if csv.is_none() {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn how_it_is_recognised() {
        let plain = "{\"a\":1,\"b\":\"x\"}\n";
        let marked = format!("\u{feff}{plain}");
        for (name, bytes) in [
            ("t.jsonl", plain.into()),
            ("t.ndjson", plain.into()),
            ("T.JSONL.GZ", gzip(plain.as_bytes())),
            ("t.ndjson.gz", plain.into()),
            ("standard input", plain.into()),
            ("standard input", marked.clone().into()),
            ("standard input", gzip(marked.as_bytes())),
            ("t.jsonl", format!("\n {plain}").into()),
            ("t.jsonl", plain.trim_end().into()),
        ] {
            let mut table = open(name, bytes).unwrap();
            assert_eq!(table.columns(), ["a", "b"], "{name}");
            assert_eq!(rows(&mut table, 9).unwrap(), [["1", "x"]]);
        }
        let options = ReadOptions { format: Some(Format::JsonLines), ..Default::default() };
        assert_eq!(open_with("t.csv", plain, &options).unwrap().columns(), ["a", "b"]);
        assert_eq!(open("t.csv", "{a},b\n1,2\n").unwrap().columns(), ["{a}", "b"]);
    }

    #[test]
    fn keys_behind_the_sample_are_passed_over() {
        let mut text = "{\"x\":1}\n".repeat(10_000);
        text += "{\"late\":{\"deep\":[]},\"x\":2}\n{\"late\":1}\n";
        let mut table = open("t.jsonl", text.as_str()).unwrap();
        assert_eq!(table.columns(), ["x"]);
        assert_eq!(rows(&mut table, 4096).unwrap()[9_999..], [["1"], ["2"], ["-"]]);
        text += "{\"late\":1,\"late\":2}\n";
        assert_eq!(
            error("t.jsonl", text).to_string(),
            "t.jsonl, line 10003: found the key `late` twice; expected each key once in an object"
        );
    }

    #[test]
    fn nested_values() {
        let text = "{\"a\":1,\"my b\":2}\n{\"a\":[1],\"my b\":{\"c\":1}}\n";
        let error = error("t.jsonl", text);
        assert_eq!(error.category(), Category::Data);
        assert_eq!(
            error.to_string(),
            "t.jsonl, line 2, column `a`: found an array; expected a number, a text in double \
             quotes, true, false or null"
        );
        let mut table = open("t.jsonl", text).unwrap();
        table.select(&[(1, Kind::Number)]).unwrap();
        let error = rows(&mut table, 9).unwrap_err();
        assert!(error.to_string().contains("column `my b`: found an object;"), "{error}");
        assert_eq!(
            error.help().unwrap(),
            "give each value within it a key of its own, or leave the column out with `--ignore \
             'my b'`"
        );
        // Who does not read it need not care.
        let text = "{\"x\":1,\"tags\":[\"a\"]}\n{\"x\":2,\"tags\":\"\\ud800\"}\n";
        let mut table = open("t.jsonl", text).unwrap();
        table.select(&[(0, Kind::Number)]).unwrap();
        assert_eq!(rows(&mut table, 9).unwrap(), [["1"], ["2"]]);
    }

    #[test]
    fn odd_lines() {
        let good = "{\"x\":1}\n".repeat(3);
        for (line, expected) in [
            (
                &b"{\"x\":1"[..],
                "found an object that is cut off; expected the whole of it on one line",
            ),
            (
                b"[1]",
                "found an array; expected one object per line, such as {\"age\": 31, \"city\": \"Oslo\"}",
            ),
            (b"{\"x\":1,\"x\":1}", "found the key `x` twice; expected each key once in an object"),
            (
                b"{\"x\":\"caf\xe9\"}",
                "found bytes that are not UTF-8 in `{\"x\":\"caf\u{fffd}\"}`; expected text in UTF-8",
            ),
            (b"{\"x\" 1}", "found `1}` at character 6; expected `:` behind the key"),
        ] {
            let mut text = good.clone().into_bytes();
            text.extend(line);
            text.extend(b"\n{\"x\":1}\n");
            let error = error("t.jsonl", text);
            assert_eq!(error.to_string(), format!("t.jsonl, line 4: {expected}"));
            assert_eq!(error.category(), Category::Data);
            assert!(error.help().is_some());
        }
        for (cell, expected) in [
            ("\"abc\"", "found text `abc`; expected a number"),
            ("1e999", "found the infinite value `1e999`; expected a finite number"),
            (
                "\"\\ud800\"",
                "found `\"\\ud800\"`, which is no text in JSON (unexpected end of hex escape); \
                 expected escapes that stand for characters",
            ),
        ] {
            let text = format!("{}{{\"x\":{cell}}}\n", "{\"x\":1}\n".repeat(30));
            assert_eq!(
                error("t.jsonl", text).to_string(),
                format!("t.jsonl, line 31, column `x`: {expected}")
            );
        }
    }

    #[test]
    fn files_without_rows() {
        let expected = "expected one object per line, such as {\"age\": 31, \"city\": \"Oslo\"}";
        for bytes in [&b""[..], b"\n \r\n", b"\xef\xbb\xbf"] {
            let message = format!("t.jsonl: found an empty file; {expected}");
            assert_eq!(error("t.jsonl", bytes).to_string(), message);
        }
        let message = format!("t.jsonl: found objects without any key; {expected}");
        assert_eq!(error("t.jsonl", "{}\n{}\n").to_string(), message);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let input = Box::new(std::io::Read::chain(&b"{\"x\":\""[..], std::io::repeat(b'x')));
        let error = TableReader::from_reader("t", input, &ReadOptions::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "t, line 1: found a record of more than 64 MB; expected a shorter one"
        );
        assert_eq!(error.help(), Some("end each record with a line end"));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            cells in prop::collection::vec((any::<f64>(), any::<i64>(), "\\PC{0,6}[a-z\n\"\\\\é]x"), 1..40),
            max_rows in 1usize..50,
        ) {
            let mut text = String::new();
            for (float, integer, word) in &cells {
                let object = serde_json::json!({ "word": word, "float": float, "integer": integer });
                text += &format!("{object}\r\n");
            }
            let mut table = open("t.jsonl", text).unwrap();
            let column = |name: &str| table.columns().iter().position(|column| column == name).unwrap();
            let selection = [
                (column("float"), Kind::Number),
                (column("integer"), Kind::Text),
                (column("word"), Kind::Text),
            ];
            table.select(&selection).unwrap();
            let expected: Vec<Vec<String>> = cells
                .iter()
                .map(|(float, integer, word)| {
                    let float = if float.is_finite() { float.to_string() } else { "-".into() };
                    let word = word.trim_matches(|char: char| char.is_ascii_whitespace());
                    vec![float, integer.to_string(), word.to_owned()]
                })
                .collect();
            prop_assert_eq!(rows(&mut table, max_rows).unwrap(), expected);
        }
    }
}

/// Streams that come piece by piece.
mod live {
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
        let mut stream =
            Stream::opened("t.jsonl", 1, &["{\"a\":1}"], ReadOptions::default()).unwrap();
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
        let pieces: Vec<Vec<u8>> = ["x,y\n", "1,2\n3,4\n", "5,6\n", "7,8"]
            .iter()
            .map(|text| gzip(text.as_bytes()))
            .collect();
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
}

/// The bytes of a NumPy array.
fn npy(descr: &str, fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(values);
    bytes
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn unicode(texts: &[&str], length: usize) -> Vec<u8> {
    let padded = texts
        .iter()
        .flat_map(|text| text.chars().map(u32::from).chain(std::iter::repeat(0)).take(length));
    padded.flat_map(u32::to_le_bytes).collect()
}

/// The bytes of an archive, with the headers that NumPy writes: no sizes before the members.
fn npz(members: &[(&str, Vec<u8>)], deflated: bool) -> Vec<u8> {
    let (mut archive, mut directory) = (vec![], vec![]);
    for (name, bytes) in members {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        let packed = if deflated {
            let mut encoder = DeflateEncoder::new(vec![], Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        } else {
            bytes.clone()
        };
        let method: u16 = if deflated { 8 } else { 0 };
        let begin = archive.len() as u32;
        archive.extend(b"PK\x03\x04\x2d\0\0\0");
        archive.extend(method.to_le_bytes());
        archive.extend([0; 8]);
        archive.extend([0xff; 8]);
        archive.extend((name.len() as u16).to_le_bytes());
        archive.extend([20, 0]);
        archive.extend(name.as_bytes());
        archive.extend([1, 0, 16, 0]);
        archive.extend([0; 16]);
        archive.extend(&packed);
        directory.extend(b"PK\x01\x02\x2d\0\x2d\0\0\0");
        directory.extend(method.to_le_bytes());
        directory.extend([0; 4]);
        directory.extend(sum.sum().to_le_bytes());
        directory.extend((packed.len() as u32).to_le_bytes());
        directory.extend((bytes.len() as u32).to_le_bytes());
        directory.extend((name.len() as u16).to_le_bytes());
        directory.extend([0; 12]);
        directory.extend(begin.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let begin = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend((members.len() as u16).to_le_bytes());
    archive.extend((members.len() as u16).to_le_bytes());
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(begin.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

mod numpy {
    use super::*;

    #[test]
    fn every_type() {
        for (descr, values) in [
            ("'<f8'", doubles(&[1.0, 0.0])),
            ("'<f4'", [1f32, 0.0].iter().flat_map(|value| value.to_le_bytes()).collect()),
            ("'>f4'", [1f32, 0.0].iter().flat_map(|value| value.to_be_bytes()).collect()),
            ("'|i1'", vec![1, 0]),
            ("'|u1'", vec![1, 0]),
            ("'<i2'", vec![1, 0, 0, 0]),
            ("'>u2'", vec![0, 1, 0, 0]),
            ("'>i4'", vec![0, 0, 0, 1, 0, 0, 0, 0]),
            ("'<u8'", vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            ("'|b1'", vec![1, 0]),
            ("'<U2'", unicode(&["1", "0"], 2)),
            ("'|S3'", b"1\0\x000\0\0".to_vec()),
        ] {
            for version in [1, 2, 3] {
                let mut bytes = npy(descr, false, "(2,)", &values);
                if version > 1 {
                    bytes[6] = version;
                    bytes.splice(10..10, [0, 0]);
                }
                let mut table = open("input", bytes).unwrap();
                assert_eq!(table.columns(), ["column1"]);
                assert_eq!(rows(&mut table, 1).unwrap(), [["1"], ["0"]], "{descr}");
            }
        }
        let mut table = open("a.npy", npy("'<i2'", false, "(1,)", &[0xfe, 0xff])).unwrap();
        assert_eq!(rows(&mut table, 1).unwrap(), [["-2"]]);
    }

    #[test]
    fn both_orders() {
        let by_rows = npy("'<f8'", false, "(3, 2)", &doubles(&[1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0]));
        let by_columns =
            npy("'<f8'", true, "(3, 2)", &doubles(&[1.0, 3.0, 5.0, 2.0, f64::NAN, 6.0]));
        let folder = tempfile::tempdir().unwrap();
        for bytes in [by_rows, by_columns] {
            for max_rows in 1..5 {
                let path = folder.path().join("a.npy");
                std::fs::write(&path, &bytes).unwrap();
                for mut table in [
                    open("a.npy", bytes.clone()).unwrap(),
                    open("a.npy", gzip(&bytes)).unwrap(),
                    TableReader::open(&path, &ReadOptions::default()).unwrap(),
                ] {
                    assert_eq!(table.columns(), ["column1", "column2"]);
                    table.select(&[(1, Kind::Number), (0, Kind::Text)]).unwrap();
                    let expected = [["2", "1"], ["-", "3"], ["6", "5"]];
                    assert_eq!(rows(&mut table, max_rows).unwrap(), expected);
                }
            }
        }
    }

    #[test]
    fn archives() {
        let members = [
            ("X.npy", npy("'<f8'", true, "(2, 3)", &doubles(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]))),
            ("fs.npy", npy("'|O'", false, "()", b"pickle")),
            ("notes.txt", b"hello".to_vec()),
            ("y.npy", npy("'<U3'", false, "(2,)", &unicode(&["cat", "NA"], 3))),
            ("w.npy", npy("'|u1'", false, "(2, 1)", &[7, 8])),
        ];
        for deflated in [false, true] {
            for max_rows in [1, 2, 3] {
                let mut table = open("a", npz(&members, deflated)).unwrap();
                assert_eq!(table.columns(), ["X1", "X2", "X3", "y", "w1"]);
                assert_eq!(table.kinds()[2..4], [Kind::Number, Kind::Text]);
                let expected = [["1", "2", "3", "cat", "7"], ["4", "5", "6", "-", "8"]];
                assert_eq!(rows(&mut table, max_rows).unwrap(), expected);
            }
            let mut table = open("a.npz", npz(&members, deflated)).unwrap();
            table.select(&[(3, Kind::Text), (1, Kind::Number)]).unwrap();
            assert_eq!(rows(&mut table, 9).unwrap(), [["cat", "2"], ["-", "5"]]);
        }
    }

    #[test]
    fn lies_and_damage() {
        let values = doubles(&[1.0, 2.0]);
        let message = |bytes| error("a.npy", bytes).to_string();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let huge = npy("'<f8'", false, "(1000000000000, 4)", &values);
        std::fs::write(&path, &huge).unwrap();
        let error = TableReader::open(&path, &ReadOptions::default()).err().unwrap().to_string();
        let end = "a.npy: found 16 bytes of values; expected 32000000000000 as its header says";
        assert!(error.ends_with(end), "{error}");
        assert_eq!(
            message(huge),
            "a.npy: found the end of the file soon after row 0; expected as many rows as its \
             header says"
        );
        assert_eq!(
            message(npy("'<f8'", true, "(1000000000000, 4)", &values)),
            "a.npy: found 16 bytes of values; expected 32000000000000 as its header says"
        );
        let shape = "(4294967296, 4294967296)";
        assert!(message(npy("'<f8'", false, shape, &values)).starts_with("a.npy: found the shape"));
        assert_eq!(
            message(npy("'<f8'", false, "(2, 2, 2)", &values)),
            "a.npy: found an array of the shape (2, 2, 2); expected one or two dimensions"
        );
        assert_eq!(
            message(npy("'<f8'", false, "()", &values)),
            "a.npy: found a single value without dimensions; expected an array of one or two \
             dimensions"
        );
        assert_eq!(
            message(npy("'<f8'", false, "(2, 0)", &values)),
            "a.npy: found an array of the shape (2, 0); expected from 1 to 1048576 columns"
        );
        assert_eq!(
            message(b"\x93NUMPY\x02\0\xff\xff\xff\xff".to_vec()),
            "a.npy: found a header of 4294967295 bytes; expected a NumPy array as written by \
             `numpy.save`"
        );
        assert_eq!(
            message(b"a,b\n1,2\n3,4\n".to_vec()),
            "a.npy: found other first bytes than those of a NumPy array; expected a NumPy array \
             as written by `numpy.save`"
        );
        assert_eq!(
            message(npy("'<f8'", false, "(1, 2)", &doubles(&[1.0, f64::INFINITY]))),
            "a.npy, row 1, column `column2`: found the infinite value `inf`; expected a finite \
             number"
        );
    }

    #[test]
    fn damaged_archives() {
        let message = |members: &[(&str, Vec<u8>)]| error("a.npz", npz(members, true)).to_string();
        let array = |rows: usize| npy("'|u1'", false, &format!("({rows},)"), &vec![1; rows]);
        assert_eq!(
            message(&[("X.npy", array(3)), ("y.npy", array(2))]),
            "a.npz: found arrays with different numbers of rows (`X` has 3, `y` has 2); expected \
             the same number in all"
        );
        assert_eq!(
            message(&[("X.npy", npy("'|u1'", false, "(1, 1, 1)", &[1]))]),
            "a.npz, array `X`: found an array of the shape (1, 1, 1); expected one or two \
             dimensions"
        );
        assert_eq!(
            message(&[("X1.npy", array(3)), ("X.npy", npy("'|u1'", false, "(3, 1)", &[1, 2, 3]))]),
            "a.npz: found more than one column named `X1`; expected a different name for each \
             column"
        );
        assert_eq!(
            message(&[("a.txt", vec![])]),
            "a.npz: found an archive without arrays; expected arrays as written by `numpy.savez`"
        );
        assert_eq!(
            error("a.npz", "not an archive").to_string(),
            "a.npz: found no directory of an archive; expected an archive as written by \
             `numpy.savez`"
        );

        let good = npz(&[("X.npy", array(3))], false);
        let mut wrong = good.clone();
        let at = wrong.windows(3).position(|bytes| bytes == [1, 1, 1]).unwrap();
        wrong[at] = 2;
        assert_eq!(
            error("a.npz", wrong).to_string(),
            "a.npz, array `X`: cannot read: the checksum is wrong"
        );
        let mut zip64 = good;
        let end = zip64.len() - 22;
        zip64[end + 16..end + 20].fill(0xff);
        assert_eq!(
            error("a.npz", zip64).to_string(),
            "a.npz: found an archive in the ZIP64 format, which this library cannot read; \
             expected less than 4 GB"
        );
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_another_build() {
    for name in ["t.parquet", "t"] {
        let error = error(name, *b"PAR1\x15\x04");
        assert_eq!(
            error.to_string(),
            format!(
                "{name}: found a Parquet file, which this build cannot read; expected delimited \
                 text or NumPy arrays"
            )
        );
        assert!(error.help().unwrap().contains("--features parquet"));
    }
}

/// Whatever the bytes are: rows or an error, never a panic and never much memory.
#[test]
fn damaged_files_do_no_harm() {
    let text = "a,b,c\n1,x,yes\n2.5,\"y \"\"z\"\"\",no\n,NA,?\n1e5,\"m\nn\",true\n";
    let json =
        "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"\\u00e9\",\"a\":-2.5e3}\n\n{\"a\":null,\"c\":[true]}\n";
    let array = npy("'<f8'", true, "(2, 3)", &doubles(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let labels = npy("'<U3'", false, "(2,)", &unicode(&["cat", "dog"], 3));
    let members = [("X.npy", array.clone()), ("y.npy", labels.clone())];
    #[cfg_attr(not(feature = "parquet"), allow(unused_mut))]
    let mut files = vec![
        ("t.csv", text.into()),
        ("t", gzip(text.as_bytes())),
        ("t.jsonl", json.into()),
        ("t.npy", array),
        ("t.npy", labels),
        ("t.npz", npz(&members, false)),
        ("t.npz", npz(&members, true)),
    ];
    #[cfg(feature = "parquet")]
    files.push(("t.parquet", super::super::parquet::tests::sample()));
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut good, mut bad) = (0, 0);
    for (name, bytes) in files {
        for _ in 0..3000 {
            let mut bytes: Vec<u8> = bytes.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(6) {
                    0 => bytes[at] = random(256) as u8,
                    1 => bytes[at] ^= 1 << random(8),
                    2 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'"', b'9'][random(6)],
                    3 => bytes.truncate(at.max(1)),
                    4 => {
                        bytes.remove(at);
                        bytes.push(0);
                    }
                    _ => bytes.insert(at, b"\",\n0123456789"[random(13)]),
                }
            }
            let result = open(Path::new(name).to_str().unwrap(), bytes)
                .and_then(|mut table| rows(&mut table, 1 + random(5)));
            match result {
                Ok(_) => good += 1,
                Err(_) => bad += 1,
            }
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}
