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
    let csv = "id,x,name,ok\n18446744073709551617,1.50,a b,true\n2,,?,false\n-9,1e5,\"q\"\"é\",\n";
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
        (&b"{\"x\":1"[..], "found an object that is cut off; expected the whole of it on one line"),
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

#[test]
fn malformed_lines_are_left_out_if_that_is_wanted() {
    let options = ReadOptions { skip_malformed: true, ..Default::default() };
    let text = "{\"a\":1}\n{\"a\":\n{\"a\":[1]}\nnothing\n{\"a\":2}\n{\"a\":3}\n";
    let mut table = open_with("t.jsonl", text, &options).unwrap();
    table.select(&[(0, Kind::Number)]).unwrap();
    assert_eq!(rows(&mut table, 2).unwrap(), [["1"], ["2"], ["3"]]);
    let skipped = table.skipped().unwrap();
    assert_eq!(skipped.count, 3);
    assert!(skipped.first.as_ref().unwrap().contains("line 2"));
    assert!(open("t.jsonl", text).is_err());
}
