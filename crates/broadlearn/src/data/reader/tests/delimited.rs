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
        decimal_comma: false,
        format: Some(Format::Delimited),
        delimiter: Some(b':'),
        header: Some(false),
        missing: vec!["unknown".into(), "-9".into()],
        kinds: vec![("column2".into(), Kind::Text)],
        skip_malformed: false,
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
        "if numbers have a decimal comma, say so with `--decimal-comma`; or read the column as \
             text with `--text x`"
    );
    let options =
        ReadOptions { decimal_comma: true, missing: vec!["-9,5".into()], ..ReadOptions::default() };
    let open = |text: &'static str| {
        TableReader::from_reader("t.csv", Box::new(text.as_bytes()), &options).unwrap()
    };
    let mut table = open("x;y\n1,5;1\n -2,5e1 ;2\n3;,5\n-9,50;NA\n");
    assert_eq!(table.kinds(), [Kind::Number, Kind::Number]);
    let expected = [["1.5", "1"], ["-25", "2"], ["3", "0.5"], ["-", "-"]];
    assert_eq!(rows(&mut table, 9).unwrap(), expected);
    // A point may part thousands: better no number than a wrong one.
    let mut table =
        open("x;y\n1,5;1\n2,5;1\n3,5;1\n4,5;1\n5,5;1\n6,5;1\n7,5;1\n8,5;1\n9,5;1\n1.234;1\n");
    let error = rows(&mut table, 99).unwrap_err().to_string();
    assert_eq!(error, "t.csv, line 11, column `x`: found text `1.234`; expected a number");
    let mut table = open("x,y\n1.5,1\n2.5,2\n");
    let error = rows(&mut table, 9).unwrap_err();
    assert!(error.help().unwrap().contains("leave `--decimal-comma` out"), "{error:?}");
    // Fields that are quoted may have commas in a table of commas.
    let mut table = open("x,y\n\"1,5\",1\n\"2,5\",2\n");
    assert_eq!(rows(&mut table, 9).unwrap(), [["1.5", "1"], ["2.5", "2"]]);
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
    let error = TableReader::from_reader("t.csv", input, &ReadOptions::default()).err().unwrap();
    assert_eq!(error.category(), Category::Io);
    assert_eq!(error.to_string(), "t.csv: cannot read: the cable fell out");
    let mut cut = gzip("a,b\n1,2\n".repeat(100).as_bytes());
    cut.truncate(cut.len() - 10);
    assert_eq!(super::error("t.csv.gz", cut).category(), Category::Io);

    let mut table = open("t.csv", "x\n1\n2\n3\n4\ny\n".repeat(4).replace("y\nx", "5\n5")).unwrap();
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
    // No word for a missing value begins with one of a to m.
    #[test]
    fn what_was_written_is_read(
        cells in prop::collection::vec(("-?[0-9]{1,9}(\\.[0-9]{1,9})?", "[a-m][ -~é\n\r]{0,6}[a-z]"), 1..60),
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
            .map(|(number, text)| vec![number.parse::<f64>().unwrap().to_string(), text.to_owned()])
            .collect();
        prop_assert_eq!(rows(&mut table, max_rows).unwrap(), expected);
    }
}

#[test]
fn malformed_rows_are_left_out_if_that_is_wanted() {
    let options = ReadOptions { skip_malformed: true, ..Default::default() };
    let mut good = String::from("a,b\n");
    (0..30).for_each(|i| good.push_str(&format!("{i},x{}\n", i % 3)));
    // Too many fields, too few, a text among numbers, a quote that never ends, in the beginning and in the end.
    for bad in ["1,2,3", "7", "seven,x1", "1,\"x"] {
        for place in [1, 2, 17, 31] {
            let mut lines: Vec<&str> = good.lines().collect();
            lines.insert(place, bad);
            for text in [lines.join("\n"), lines.join("\n") + "\n", lines.join("\r\n")] {
                let mut table = open_with("t.csv", text, &options).unwrap();
                let found = rows(&mut table, 7).unwrap();
                let skipped = table.skipped().unwrap().clone();
                assert_eq!(found.len(), 30, "{bad} in line {place}");
                assert_eq!(skipped.count, 1);
                let first = skipped.first.unwrap();
                assert!(first.contains(&format!("line {}", place + 1)), "{first}");
            }
        }
    }
}

#[test]
fn a_spreadsheet_may_name_its_delimiter() {
    for text in ["sep=;\na;b\n1.5;x\n", "\u{feff}sep=;\r\na;b\r\n1.5;x\r\n"] {
        let mut table = open("t.csv", text).unwrap();
        assert_eq!(table.columns(), ["a", "b"], "{text:?}");
        assert_eq!(rows(&mut table, 3).unwrap(), [["1.5", "x"]], "{text:?}");
    }
    // A column may have such a name.
    let mut table = open("t.csv", "sep=,b\n1,x\n").unwrap();
    assert_eq!(table.columns(), ["sep=", "b"]);
    assert_eq!(rows(&mut table, 3).unwrap(), [["1", "x"]]);
}

#[test]
fn the_name_that_was_probably_meant_is_said() {
    let advice = |wanted: &str| {
        let table = open("t.csv", "Temperature,flow,y\n1,2,3\n").unwrap();
        format!("{:?}", crate::data::roles::find(&table, "target", wanted).unwrap_err())
    };
    for wanted in ["temperature", "temprature", "Temperatur ", "Tempreature"] {
        assert!(advice(wanted).contains("did you mean `Temperature`?"), "{}", advice(wanted));
    }
    for wanted in ["price", "z", "fl"] {
        assert!(!advice(wanted).contains("did you mean"), "{}", advice(wanted));
    }
}
