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

    // All suspects are listed for programs, twenty rows for people.
    let count = report["n_suspects"].as_u64().unwrap() as usize;
    assert_eq!(found.len(), count.max(20));
    // Marks of an audit are no inputs of the next one, and give way to its own.
    bench.run("audit c.csv --target y --out e.csv").fails(2, &["suspect", "--ignore suspect"]);
    bench.run("audit c.csv --target y --ignore suspect --out e.csv").ok();
    assert_eq!(bench.read("e.csv"), bench.read("c.csv"));

    // Without the suspects, and with their targets as expected.
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

/// A table of some thousand rows, some of them spoilt, with a class beside the number.
fn large() -> Bench {
    let bench = Bench::new();
    let mut text = String::from("a,b,y,kind\n");
    for i in 0_u32..9000 {
        let (a, b) = (f64::from(i * 7 % 101) / 50.0, f64::from(i * 13 % 97) / 40.0);
        let noise = f64::from(i * 31 % 89) / 500.0;
        let error = if i % 300 == 7 { 5.0 + f64::from(i) / 1000.0 } else { 0.0 };
        let kind = if (a > b) == (i % 250 == 9) { "low" } else { "high" };
        let _ = writeln!(text, "{a},{b},{},{kind}", a * a - b + noise + error);
    }
    bench.write("large.csv", &text);
    bench
}

#[test]
fn an_audit_in_passes_says_what_one_in_memory_says() {
    let bench = large();
    for (target, other) in [("y", "kind"), ("kind", "y")] {
        let fit =
            format!("fit large.csv --target {target} --ignore {other} --recipe rich --gain 0.7");
        let fit = format!("{fit} --enhancement-nodes 60 --ridge 1e-3 --sigma 1 --model m.broad");
        bench.run(&fit).ok();
        let audit = |options: &str| {
            bench.run(&format!("audit m.broad large.csv --top 40 --json {options}")).json()
        };
        let whole = audit("--out a.csv --fix");
        let passes = audit("--out b.csv --fix --memory 100K --report p.html");
        assert_eq!(whole["n_suspects"], passes["n_suspects"]);
        assert_eq!(whole["contamination"], passes["contamination"]);
        let (one, other) = (&whole["suspects"], &passes["suspects"]);
        for (a, b) in one.as_array().unwrap().iter().zip(other.as_array().unwrap()) {
            for name in ["row", "given", "suspect"] {
                assert_eq!(a[name], b[name]);
            }
            for name in ["score", "weight", "removal_effect"] {
                let (a, b) = (a[name].as_f64().unwrap(), b[name].as_f64().unwrap());
                assert!((a - b).abs() <= 1e-8 * a.abs(), "{name}: {a} {b}");
            }
        }
        let (one, other) = (bench.read("a.csv"), bench.read("b.csv"));
        assert_eq!(one.lines().count(), 9001);
        let number = |cell: &str| cell.parse::<f64>();
        for (a, b) in one.lines().zip(other.lines()) {
            for (a, b) in a.split(',').zip(b.split(',')) {
                match (number(a), number(b)) {
                    (Ok(a), Ok(b)) => assert!((a - b).abs() < 1e-8, "{a} {b}"),
                    _ => assert_eq!(a, b),
                }
            }
        }
    }
    // Without a model, the fit goes in passes, too, and all rows are on record.
    let report =
        bench.run("audit large.csv --target y --ignore kind --top 30 --memory 100K --json");
    let report = report.json();
    let rows = report["suspects"].as_array().unwrap().iter();
    assert!(rows.clone().all(|suspect| suspect["weight"].is_number()));
    let spoilt = rows.filter(|suspect| (suspect["row"].as_u64().unwrap() - 1) % 300 == 7).count();
    assert!(spoilt >= 28, "{spoilt} of 30");
}

#[test]
fn rows_are_held_out_of_a_table_larger_than_memory() {
    let bench = large();
    let fit = "fit large.csv --target y --ignore kind --loss squared --ridge 1e-3 --recipe rich --gain 0.7 \
               --enhancement-nodes 60 --holdout 0.25 --memory 100K --model m.broad --json";
    let report = bench.run(fit).json();
    let inspected = bench.run("inspect m.broad --json").json();
    let learnt = inspected["rows"].as_u64().unwrap();
    assert!((6500..7000).contains(&learnt), "{learnt} of 9000\n{report}");
    bench.run_with(&fit.replace("large.csv", "-"), &bench.read("large.csv")).fails(2, &["--test"]);
}

#[test]
fn a_file_of_many_blocks_is_learnt() {
    let bench = large();
    let text = bench.read("large.csv");
    let first = text.lines().take(501).fold(String::new(), |all, line| all + line + "\n");
    bench.write("first.csv", &first);
    bench.run("fit first.csv --target y --ignore kind --ridge 1e-3 --sigma 1 --model m.broad").ok();
    let learn = "learn m.broad large.csv --quarantine 0.01 --quarantine-out odd.csv --verify \
                 --history first.csv --json";
    let learnt = bench.run(learn).json();
    let left_out = learnt["rows_quarantined"].as_u64().unwrap();
    assert!(left_out >= 30, "{learnt}");
    assert_eq!(learnt["rows"].as_u64().unwrap(), 500 + 9000 - left_out);
    assert_eq!(learnt["route"], "factored anew");
    assert!(learnt["verified_difference"].as_f64().unwrap() < 1e-8, "{learnt}");
    assert_eq!(bench.read("odd.csv").lines().count() as u64, left_out + 1);
}

/// The table of `ok.csv` as cells, header first.
fn cells(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn lines(cells: &[Vec<String>]) -> String {
    cells.iter().fold(String::new(), |text, row| text + &row.join(",") + "\n")
}

#[test]
fn rows_without_a_target_keep_their_numbers() {
    let bench = Bench::new();
    let mut table = cells(&bench.read("ok.csv"));
    let (empty, spoilt) = ([1, 2, 41, 90], [7, 40, 77, 111]);
    for row in empty {
        table[row][3].clear();
    }
    for row in spoilt {
        table[row][3] = (table[row][3].parse::<f64>().unwrap() + 500.0).to_string();
    }
    bench.write("gaps.csv", &lines(&table));
    bench.run("audit gaps.csv --target y").fails(65, &["line 2", "--drop-missing-target"]);
    let audit = "audit gaps.csv --target y --drop-missing-target";
    let report = bench.run(&format!("{audit} --json --out marked.csv --report a.html")).json();
    assert_eq!(
        (report["n_rows"].as_u64(), report["n_without_target"].as_u64()),
        (Some(116), Some(4))
    );
    let listed = report["suspects"].as_array().unwrap();
    let mut first: Vec<u64> = listed[..4].iter().map(|s| s["row"].as_u64().unwrap()).collect();
    first.sort_unstable();
    assert_eq!(first, spoilt.map(|row| row as u64));
    let marked = cells(&bench.read("marked.csv"));
    assert_eq!(marked.len(), 121);
    for (row, cells) in marked.iter().enumerate().skip(1) {
        let mark = match (empty.contains(&row), spoilt.contains(&row)) {
            (true, _) => "",
            (_, true) => "1",
            _ => continue,
        };
        assert_eq!(cells[4], mark, "row {row}");
    }
    // They stay where the table is cleaned.
    let count = report["n_suspects"].as_u64().unwrap() as usize;
    bench.run(&format!("{audit} --out d.csv --drop")).ok();
    assert_eq!(bench.read("d.csv").lines().count(), 121 - count);
    bench.run(&format!("{audit} --out f.csv --fix")).ok();
    let fixed = cells(&bench.read("f.csv"));
    assert!(empty.iter().all(|row| fixed[*row][3].is_empty()));
    assert!(spoilt.iter().all(|row| fixed[*row][3] != table[*row][3]));

    // With a model, and in passes, it is the same.
    bench.run("fit ok.csv --target y --model m.broad").ok();
    for memory in ["1G", "1K"] {
        let audit =
            format!("audit m.broad gaps.csv --drop-missing-target --memory {memory} --json");
        let report = bench.run(&audit).json();
        let listed = report["suspects"].as_array().unwrap();
        let mut first: Vec<u64> = listed[..4].iter().map(|s| s["row"].as_u64().unwrap()).collect();
        first.sort_unstable();
        assert_eq!(first, spoilt.map(|row| row as u64), "{memory}");
    }
    let table = bench.read("gaps.csv");
    bench.run_with("audit m.broad - --drop-missing-target", &table).fails(2, &["more than once"]);
    bench.run("audit m.broad gaps.csv --weight a").fails(2, &["weight", "with a MODEL"]);
}

#[test]
fn weights_speak_for_rows_in_an_audit() {
    let bench = Bench::new();
    let mut table = cells(&bench.read("ok.csv"));
    table[0].push("times".into());
    for (row, cells) in table.iter_mut().enumerate().skip(1) {
        cells.push((row % 3).to_string());
        if row == 60 || row == 61 {
            cells[3] = (cells[3].parse::<f64>().unwrap() + 500.0).to_string();
        }
    }
    bench.write("weighed.csv", &lines(&table));
    let report = bench.run("audit weighed.csv --target y --weight times --json").json();
    let listed = report["suspects"].as_array().unwrap();
    assert_eq!(report["n_rows"], 120);
    let mut first: Vec<u64> = listed[..2].iter().map(|s| s["row"].as_u64().unwrap()).collect();
    first.sort_unstable();
    assert_eq!(first, [60, 61]);
    // Row 60 counts for nothing, and so says nothing of what it counts for; 61 once, and is not believed.
    let weight = |row: u64| &listed.iter().find(|s| s["row"] == row).unwrap()["weight"];
    assert!(weight(60).is_null());
    assert!(weight(61).as_f64().unwrap() < 0.1);
}

#[test]
fn the_last_decimal_is_no_suspect() {
    let bench = Bench::new();
    let mut text = String::from("a,b,y\n");
    for row in 0..300 {
        let (a, b) = (f64::from(row * 37 % 101) / 11.3, f64::from(row * 53 % 97) / 10.7);
        let wrong = if row == 200 { 0.7 } else { 0.0 };
        let _ = writeln!(text, "{a:.2},{b:.2},{:.2}", a + b + wrong);
    }
    bench.write("rounded.csv", &text);
    let report = bench.run("audit rounded.csv --target y --json").json();
    assert_eq!(
        (report["n_suspects"].as_u64(), &report["suspects"][0]["row"]),
        (Some(1), &201.into())
    );
}
