use crate::bench::Bench;
use std::fmt::Write;

#[test]
fn audit_finds_the_rows_that_were_spoilt() {
    let bench = Bench::new();
    let table = bench.read("ok.csv");
    let spoilt = [7, 40, 77, 111];
    let mut text = String::new();
    for (number, line) in table.lines().enumerate() {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        if spoilt.contains(&number) {
            cells[3] = (cells[3].parse::<f64>().unwrap() + 500.0).to_string();
        }
        let _ = writeln!(text, "{}", cells.join(","));
    }
    bench.write("spoilt.csv", &text);
    let report = bench.run("audit spoilt.csv --target y --out c.csv --report a.html --json").json();
    let found: Vec<u64> =
        report["suspects"].as_array().unwrap().iter().map(|s| s["row"].as_u64().unwrap()).collect();
    let mut first: Vec<usize> = found[..4].iter().map(|row| *row as usize).collect();
    first.sort_unstable();
    assert_eq!(first, spoilt);
    let scores: Vec<f64> = report["suspects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["score"].as_f64().unwrap())
        .collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]));
    let interval = &report["contamination_interval"];
    assert!(interval[0].as_f64() <= report["contamination"].as_f64());
    let marked = bench.read("c.csv");
    assert_eq!(marked.lines().next().unwrap(), "a,b,colour,y,suspect");
    assert!(spoilt.iter().all(|row| marked.lines().nth(*row).unwrap().ends_with(",1")));
    assert!(bench.read("a.html").contains("<svg"));

    // Without the suspects, and with their targets as expected.
    let count = report["n_suspects"].as_u64().unwrap() as usize;
    bench.run("audit spoilt.csv --target y --out d.csv --drop").ok();
    assert_eq!(bench.read("d.csv").lines().count(), 121 - count);
    bench.run("audit spoilt.csv --target y --out f.csv --fix").ok();
    let right: Vec<&str> = table.lines().collect();
    for (row, line) in bench.read("f.csv").lines().enumerate().filter(|(r, _)| spoilt.contains(r)) {
        let value = |line: &str| line.rsplit(',').next().unwrap().parse::<f64>().unwrap();
        assert!((value(line) - value(right[row])).abs() < 3.0, "{line} for {}", right[row]);
    }

    // A model audits the rows that it has learnt, and others.
    bench.run("fit spoilt.csv --target y --model m.broad").ok();
    let listed = bench.run("audit m.broad spoilt.csv --top 4").ok();
    assert!(listed.contains("wrong targets: about"), "{listed}");
    bench.run("audit m.broad ok.csv").ok();
    bench.run("audit spoilt.csv").fails(2, &["--target"]);
    bench.run("audit m.broad spoilt.csv --target y").fails(2, &["MODEL"]);
    bench.run("audit spoilt.csv --target y --drop").fails(2, &["--out"]);
}
