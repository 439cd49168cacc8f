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
    let by_columns = npy("'<f8'", true, "(3, 2)", &doubles(&[1.0, 3.0, 5.0, 2.0, f64::NAN, 6.0]));
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
