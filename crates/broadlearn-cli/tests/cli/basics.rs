use crate::bench::Bench;
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::Path;

#[test]
fn fit_predict_evaluate_inspect() {
    let bench = Bench::new();
    let fit =
        bench.run("fit ok.csv --target y --holdout 0.3 --model ok.broad --report page.html --json");
    let report = fit.json();
    assert_eq!(report["n_rows"], 36);
    assert_eq!(report["scored_on"], "held-out rows");
    for metric in ["rmse", "mae", "r2"] {
        assert!(report[metric].is_number(), "{metric}");
    }
    assert!(report["rmse"].as_f64().unwrap() < 1.0, "{report}");
    assert!(bench.read("page.html").contains("</html>"));

    let evaluation = bench.run("evaluate ok.broad ok.csv --json").json();
    assert_eq!(evaluation["n_rows"], 120);

    let predictions = bench.run("predict ok.broad ok.csv");
    let lines: Vec<&str> = predictions.stdout.lines().collect();
    assert_eq!((lines[0], lines.len()), ("y", 121));

    // RMSE recomputed from what predict wrote.
    let given: Vec<f64> = bench
        .read("ok.csv")
        .lines()
        .skip(1)
        .map(|l| l.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    let squares: f64 =
        given.iter().zip(&lines[1..]).map(|(y, f)| (y - f.parse::<f64>().unwrap()).powi(2)).sum();
    let rmse = (squares / 120.0).sqrt();
    assert!((rmse - evaluation["rmse"].as_f64().unwrap()).abs() < 1e-12);

    let inspection = bench.run("inspect ok.broad --json").json();
    assert_eq!(inspection["rows"], 84);
    assert_eq!(inspection["inputs"], 5);
    assert!(bench.run("inspect ok.broad").stdout.contains("regression of y"));
}

#[test]
fn no_output_takes_the_place_of_an_input_or_of_another_output() {
    let bench = Bench::new();
    bench.run("fit ok.csv --target y --model ok.broad").ok();
    let (table, model) = (bench.read("ok.csv"), std::fs::read(bench.path("ok.broad")).unwrap());
    for arguments in [
        "fit ok.csv --target y --model ok.csv",
        "fit ok.csv --target y --model ./ok.csv",
        "fit ok.csv --target y --model new.broad --report new.broad",
        "predict ok.broad ok.csv --out ok.csv",
        "predict ok.broad ok.csv --out ok.broad",
        "audit ok.csv --target y --out ok.csv",
        "learn ok.broad ok.csv --out ok.csv",
        "learn ok.broad ok.csv --quarantine 0.1 --quarantine-out ok.broad",
        "forget ok.broad ok.csv --certificate ok.csv",
        "tune ok.csv --target y --model ok.csv",
    ] {
        bench.run(arguments).fails(2, &["output", "a file of its own"]);
    }
    for arguments in ["audit ok.csv --target y --out -", "learn ok.broad ok.csv --out -"] {
        bench.run(&format!("{arguments} --json")).fails(2, &["json", "--out FILE"]);
    }
    assert!(!bench.path("new.broad").exists());
    assert_eq!(bench.read("ok.csv"), table);
    assert_eq!(std::fs::read(bench.path("ok.broad")).unwrap(), model);
}

/// Numbers with marks among them, or dates, become categories; that is said.
#[test]
fn text_that_looks_like_something_else_is_mentioned() {
    use std::fmt::Write;
    let bench = Bench::new();
    let mut text = "size,share,when,kind,y\n".to_owned();
    for i in 0..60 {
        let size = if i % 4 == 0 { "--".into() } else { format!("{}.5", i) };
        let _ = writeln!(text, "{size},{i}%,2024-03-{:02},k{},{}", 1 + i % 28, i % 3, i % 7);
    }
    bench.write("odd.csv", &text);
    let fit = "fit odd.csv --target y --task regression --model odd.broad";
    let said = bench.run(fit).stderr;
    for part in ["45 of 60", "--missing=--", "`0%`", "dates such as", "--ignore when"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("column `kind`"), "{said}");
    let said = bench.run(&format!("{fit} --missing=-- --text share --ignore when")).stderr;
    assert!(!said.contains("warning"), "{said}");
    let said = bench.run("audit odd.csv --target y").stderr;
    assert!(said.contains("dates such as"), "{said}");
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let bench = Bench::new();
    bench.run("fit ok.csv --target y --model ok.broad").ok();
    for (arguments, part) in [
        ("fit ok.csv --target y --model x.broad --one-step", "--like"),
        ("fit ok.csv --target y --model x.broad --fan-in 100", "at most 5"),
        ("predict ok.broad ok.csv --scores", "a classifier"),
        ("audit ok.broad ok.csv --seed 3", "seed"),
        ("audit ok.broad ok.csv --ignore a", "ignore"),
        ("learn ok.broad ok.csv --history ok.csv", "--verify"),
    ] {
        bench.run(arguments).fails(2, &[part]);
    }
}

#[test]
fn single_precision_is_close_or_not_used() {
    let bench = Bench::new();
    bench.run("fit ok.csv --target y --model ok.broad").ok();
    let values = |text: &str| -> Vec<f64> {
        text.lines().skip(1).map(|line| line.parse().unwrap()).collect()
    };
    let double = bench.run("predict ok.broad ok.csv").stdout;
    assert_eq!(bench.run("predict ok.broad ok.csv --precision double").stdout, double);
    let single = bench.run("predict ok.broad ok.csv --precision single");
    assert!(!single.stderr.contains("precision"), "{}", single.stderr);
    assert_ne!(single.stdout, double);
    let double = values(&double);
    let spread = double.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    for (single, double) in values(&single.stdout).iter().zip(&double) {
        assert!((single - double).abs() < 1e-3 * spread);
    }

    // The target is in the difference of nearly equal columns, and no ridge keeps the weights small.
    let mut table = String::from("a,b,y\n");
    for i in 0..300 {
        let _ =
            writeln!(table, "{},{},{}", i % 17, f64::from(i % 17) + 1e-6 * f64::from(i % 5), i % 5);
    }
    bench.write("cancel.csv", &table);
    let fit = "fit cancel.csv --target y --recipe plain --loss squared --ridge pinv --enhancement-nodes 40";
    bench.run(&format!("{fit} --model cancel.broad")).ok();
    let double = bench.run("predict cancel.broad cancel.csv").stdout;
    let single = bench.run("predict cancel.broad cancel.csv --precision single");
    assert!(single.stderr.contains("300 of 300 rows were predicted in double precision"));
    assert_eq!(single.stdout, double);
    bench.run("predict ok.broad ok.csv --precision half").fails(2, &["half", "double", "single"]);
}

#[test]
fn classes_keep_their_names() {
    let bench = Bench::new();
    let mut table = String::from("x,\"the, class\"\n");
    for i in 0..90 {
        let _ = writeln!(table, "{i},{}", if i < 45 { "\"no, never\"" } else { "yes" });
    }
    bench.write("classes.csv", &table);
    let report = bench.run("fit classes.csv --target last --model c.broad --json").json();
    assert!(report["accuracy"].as_f64().unwrap() > 0.95);
    for metric in ["macro_f1", "log_loss"] {
        assert!(report[metric].is_number(), "{metric}");
    }
    let predictions = bench.run("predict c.broad classes.csv --scores");
    let mut lines = predictions.stdout.lines();
    assert_eq!(lines.next().unwrap(), "\"the, class\",\"p(no, never)\",p(yes)");
    assert!(lines.next().unwrap().starts_with("\"no, never\",0."));
    let json = bench.run("predict c.broad classes.csv --json").json();
    assert_eq!(json["predictions"][89], "yes");
    assert_eq!(json["n_rows"], 90);
    bench.write("unknown.csv", "x,\"the, class\"\n1,maybe\n");
    bench
        .run("evaluate c.broad unknown.csv")
        .fails(65, &["unknown.csv, line 2, column `the, class`", "class `maybe`", "`yes`"]);
}

#[test]
fn columns_are_matched_by_name() {
    let bench = Bench::new();
    bench.fit();
    let reordered: String = bench
        .read("ok.csv")
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},extra,{},{}\n", cells[2], cells[1], cells[0])
        })
        .collect();
    bench.write("reordered.csv", &reordered.replacen("extra", "unused", 1));
    let expected = bench.run("predict ok.broad ok.csv").stdout;
    assert_eq!(bench.run("predict ok.broad reordered.csv").stdout, expected);
    let stdin = bench.run_with("predict ok.broad -", &bench.read("ok.csv"));
    assert_eq!(stdin.stdout, expected);
    bench.write("missing.csv", "a,colour\n1,red\n");
    bench.run("predict ok.broad missing.csv").fails(65, &["missing.csv", "no column `b`", "help:"]);
}

#[test]
fn unseen_categories_are_counted_and_missing_values_filled() {
    let bench = Bench::new();
    bench.fit();
    bench.write("new.csv", "a,b,colour\n1,1,purple\n2,,red\n3,1,mauve\n");
    let outcome = bench.run("predict ok.broad new.csv");
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.stdout.lines().count(), 4);
    assert!(
        outcome.stderr.contains("column `colour`: 2 rows with a category"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn bad_tables_give_one_clear_message_and_no_file() {
    let bench = Bench::new();
    let ok = bench.read("ok.csv");
    let case = |table: &str, options: &str, parts: &[&str]| {
        bench.write("bad.csv", table);
        bench.run(&format!("fit bad.csv --target y --model m.broad {options}")).fails(65, parts);
        bench.assert_nothing_written();
    };
    case("", "", &["bad.csv: found an empty file"]);
    case("a,b,y\n", "", &["bad.csv: found no rows"]);
    case("a,b,y\n1,2,3\n4,5\n", "", &["bad.csv, line 3: found 2 fields; expected 3"]);
    let text = ok.replacen("\n5,2,blue", "\n5,oops,blue", 1);
    assert_ne!(text, ok);
    case(
        &text,
        "",
        &["bad.csv, line 7, column `b`: found text `oops`; expected a number", "--missing oops"],
    );
    case(&ok.replacen("\n5,2,blue", "\n5,inf,blue", 1), "", &["line 7, column `b`", "infinite"]);
    case("b,y\n,2.5\n,3.5\n", "", &["no input column", "`b` is left out: it has no value"]);
    case("a,y\n1,2.5\n2,2.5\n3,2.5\n", "", &["column `y`: found the same target 2.5"]);
    case("a,y\n1,2.5\n", "", &["column `y`: found the same target"]);
    case("a,y\n1,yes\n2,yes\n", "", &["found the one class `yes` in every row"]);
    case("a,a,y\n1,2,3\n", "", &["more than one column named `a`"]);
    case(
        "a,y\n1,2.5\n2,\n3,4.5\n",
        "",
        &["line 3, column `y`: found 1 row without a target", "--drop-missing-target"],
    );
    case(&ok, "--ignore nothing", &["no column `nothing`", "one of `a`, `b`, `colour`, `y`"]);
    case(&ok, "--weight b", &["column `b`: found weight -"]);
    let ids = |times: usize| {
        let row = |i| format!("id{},{i}.5\n", i / times);
        (0..1000).map(row).fold(String::from("id,y\n"), |all, row| all + &row)
    };
    case(&ids(1), "", &["no input column", "1000 different texts in 1000 rows", "--text id"]);
    case(&ids(1), "--text id", &["column `id`: found 1000 different texts", "--max-categories"]);
    case(&ids(2), "", &["column `id`: found 500 different texts", "--max-categories"]);
}

/// Times, names of rows and empty columns are in nearly every table; the model is that of the table without them.
#[test]
fn columns_that_tell_nothing_are_left_out() {
    let bench = Bench::new();
    let mut full = String::new();
    for (i, line) in bench.read("ok.csv").lines().enumerate() {
        let _ = match i {
            0 => writeln!(full, "when,empty,{line},id"),
            _ => writeln!(full, "2024-05-{:02}T{:02}:30,,{line},row {i}", 1 + i / 24, i % 24),
        };
    }
    bench.write("full.csv", &full);
    let fit = |table: &str, stdin: &str| {
        let said = bench.run_with(&format!("fit {table} --target y --model m.broad"), stdin);
        assert_eq!(said.code, 0, "{}", said.stderr);
        (std::fs::read(bench.path("m.broad")).unwrap(), said.stderr)
    };
    let (expected, said) = fit("ok.csv", "");
    assert!(!said.contains("left out"), "{said}");
    for (table, stdin) in [("full.csv", ""), ("-", full.as_str())] {
        let (found, said) = fit(table, stdin);
        assert!(found == expected, "{table}");
        for part in ["`when` is left out: dates", "`empty` is left out", "`id` is left out: 120"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    bench.run("predict m.broad full.csv").ok();
    bench.run("learn m.broad ok.csv --out n.broad").ok();
    let said = bench.run("audit full.csv --target y");
    assert!(said.code == 0 && said.stderr.contains("`when` is left out"), "{}", said.stderr);
}

#[test]
fn constant_columns_are_harmless_and_targets_may_be_dropped() {
    let bench = Bench::new();
    let mut table = String::from("a,one,y\n");
    for i in 0..50 {
        let target = if i == 7 { String::new() } else { format!("{i}.5") };
        let _ = writeln!(table, "{i},1,{target}");
    }
    bench.write("t.csv", &table);
    let outcome = bench.run("fit t.csv --target y --drop-missing-target --model t.broad");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("left out 1 row without a target"));
}

#[test]
fn wrong_settings_are_usage_errors() {
    let bench = Bench::new();
    for (options, part) in [
        ("--ridge 0", "expected auto or a positive number"),
        ("--sigma -1", "expected auto or a positive number"),
        ("--sigma nan", "expected auto or a positive number"),
        ("--holdout 1.5", "expected a share between 0 and 1"),
        ("--recipe fancy", "rich, classic, unscaled, plain"),
        ("--feature-groups 3", "use --recipe classic"),
        ("--recipe classic --gain 2", "use --recipe rich"),
        ("--recipe classic --feature-nodes 0", "at least 1"),
        ("--ridge pinv", "use --loss squared"),
        ("--loss squared --sigma 1", "no kernel size"),
        ("--loss cubic", "correntropy, squared, huber"),
        ("--loss huber --ridge pinv", "use --loss squared"),
        ("--shape 1", "--shape with --loss generalised only"),
        ("--loss squared --shape 1", "--shape with --loss generalised only"),
        ("--loss generalised --shape 2.5", "above 0, at most 2"),
        ("--loss generalised --shape -1", "above 0, at most 2"),
        ("--loss generalised --mixture 0.5,2", "--mixture with --loss mixture only"),
        ("--loss mixture --mixture 0.5", "two numbers, as in 0.8,4"),
        ("--loss mixture --mixture 1.5,4", "share above 0, at most 1"),
        ("--loss mixture --mixture 0.5,0.5", "at least 1"),
        ("--enhancement-nodes 9999999", "at most 65536"),
        ("--max-iterations 0", "at least 1"),
        ("--threads 0", "threads"),
        ("--delimiter ab", "one character"),
        ("--test ok.csv --holdout 0.2", "cannot be used with"),
        ("--unknown", "unexpected argument"),
    ] {
        bench.run(&format!("fit ok.csv --target y --model m.broad {options}")).fails(2, &[part]);
    }
    bench.assert_nothing_written();
    bench.run("fit ok.csv --model m.broad").fails(2, &["--target"]);
    bench.run("evaluate - -").fails(2, &["stdin for one of them only"]);
}

#[test]
fn every_loss_fits_predicts_and_learns() {
    let bench = Bench::new();
    let table = bench.read("ok.csv");
    let lines: Vec<&str> = table.lines().collect();
    bench.write("more.csv", &format!("{}\n", lines[..31].join("\n")));
    for (options, json, words) in [
        ("squared", r#"{"name":"squared"}"#, "squared"),
        ("correntropy", r#"{"name":"correntropy"}"#, "correntropy, sigma"),
        ("huber", r#"{"name":"huber"}"#, "huber, sigma"),
        ("absolute", r#"{"name":"absolute"}"#, "absolute, sigma"),
        ("bisquare", r#"{"name":"bisquare"}"#, "bisquare, sigma"),
        ("generalised", r#"{"name":"generalised","shape":1.0}"#, "correntropy, shape 1, sigma"),
        ("generalised --shape 0.5", r#"{"name":"generalised","shape":0.5}"#, "shape 0.5"),
        ("mixture", r#"{"name":"mixture","ratio":4.0,"share":0.8}"#, "share 0.8, ratio 4, sigma"),
        (
            "mixture --mixture 0.6,3 --sigma 1",
            r#"{"name":"mixture","ratio":3.0,"share":0.6,"sigma":1.0}"#,
            "share 0.6, ratio 3, sigma 1",
        ),
    ] {
        let fit = format!(
            "fit ok.csv --target y --enhancement-nodes 30 --loss {options} --model m.broad \
             --report m.html --json"
        );
        let mut loss = bench.run(&fit).json()["report"]["loss"].clone();
        if !options.contains("sigma") {
            let sigma = loss.as_object_mut().unwrap().remove("sigma");
            assert_eq!(sigma.is_none(), options == "squared", "{options}");
        }
        assert_eq!(loss.to_string(), json);
        let inspected = bench.run("inspect m.broad").ok();
        assert!(inspected.contains(words), "{inspected}");
        let page = bench.read("m.html");
        assert!(page.contains(words), "{options}");
        let family = ["correntropy", "generalised", "mixture"];
        let correntropy = family.iter().any(|name| options.starts_with(name));
        assert_eq!(page.contains("correntropy"), correntropy, "{options}");
        assert_eq!(bench.run("predict m.broad ok.csv").ok().lines().count(), 121);
        let learnt = bench.run("learn m.broad more.csv --json").json();
        assert_eq!(learnt["rows"], 150, "{options}");
    }
    bench.run("fit ok.csv --like m.broad --shape 1 --model x.broad").fails(2, &["--shape"]);
}

#[test]
fn inputs_and_outputs_that_cannot_be_opened() {
    let bench = Bench::new();
    bench.run("fit absent.csv --target y --model m.broad").fails(66, &["absent.csv: cannot open"]);
    bench.run("fit ok.csv --target y --test absent.csv --model m.broad").fails(66, &["absent.csv"]);
    bench.run("predict absent.broad ok.csv").fails(66, &["absent.broad: cannot open"]);
    bench.run("fit ok.csv --target y --model no/folder/m.broad").fails(73, &["mkdir -p no/folder"]);
    bench.run("fit ok.csv --target y --model .").fails(73, &["is a directory"]);
    bench.fit();
    bench.run("predict ok.broad ok.csv --out no/folder/p.csv").fails(73, &["cannot create"]);
    if Path::new("/dev/full").exists() {
        bench
            .run("fit ok.csv --target y --model /dev/full")
            .fails(74, &["/dev/full: cannot write"]);
        bench
            .run("predict ok.broad ok.csv --out /dev/full")
            .fails(74, &["/dev/full: cannot write"]);
    }
}

#[test]
fn damaged_models_are_refused() {
    let bench = Bench::new();
    bench.fit();
    let bytes = fs::read(bench.path("ok.broad")).unwrap();
    fs::write(bench.path("cut.broad"), &bytes[..bytes.len() - 9]).unwrap();
    bench.run("predict cut.broad ok.csv").fails(65, &["cut.broad: found", "damaged"]);
    let mut edited = bytes.clone();
    let middle = edited.len() / 2;
    edited[middle] ^= 1;
    fs::write(bench.path("edited.broad"), edited).unwrap();
    bench.run("inspect edited.broad").fails(65, &["checksum"]);
    bench.run("inspect ok.csv").fails(65, &["expected a broadlearn model"]);
}

#[test]
fn tables_are_written_as_their_names_say() {
    let bench = Bench::new();
    bench.fit();
    let plain = bench.run("predict ok.broad ok.csv").ok();
    bench.run("predict ok.broad ok.csv --out p.csv.gz").ok();
    let packed = fs::File::open(bench.path("p.csv.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain);
    for name in ["p.parquet", "p.tsv", "p.json.gz"] {
        for command in ["predict ok.broad ok.csv", "audit ok.broad ok.csv"] {
            bench.run(&format!("{command} --out {name}")).fails(2, &[name, ".csv.gz"]);
        }
    }
    bench
        .run("learn ok.broad ok.csv --out m.broad --quarantine 0.1 --quarantine-out odd.csv.gz")
        .fails(2, &["odd.csv.gz", ".csv"]);
    assert!(!bench.path("m.broad").exists());
}

#[test]
fn a_failed_prediction_leaves_the_old_file() {
    let bench = Bench::new();
    bench.fit();
    bench.write("predictions.csv", "precious\n");
    let mut table = bench.read("ok.csv");
    (0..20_000).for_each(|_| table.push_str("1,2,red,3\n"));
    table.push_str("1,oops,red,3\n");
    bench.write("late.csv", &table);
    bench
        .run("predict ok.broad late.csv --out predictions.csv")
        .fails(65, &["line 20122", "`oops`"]);
    assert_eq!(bench.read("predictions.csv"), "precious\n");
    let leftovers = fs::read_dir(bench.folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"))
        .count();
    assert_eq!(leftovers, 0);
}

#[test]
fn same_seed_same_bytes_on_any_number_of_threads() {
    let bench = Bench::new();
    let model = |threads: u32, seed: u32| {
        let outcome = bench.run(&format!(
            "fit ok.csv --target y --threads {threads} --seed {seed} --model t.broad"
        ));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        fs::read(bench.path("t.broad")).unwrap()
    };
    let one = model(1, 5);
    assert_eq!(one, model(2, 5));
    assert_eq!(one, model(3, 5));
    assert_ne!(one, model(1, 6));
}

#[test]
#[cfg(unix)]
fn a_closed_pipe_is_quiet_and_an_interruption_says_so() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let bench = Bench::new();
    bench.fit();
    let mut table = bench.read("ok.csv");
    (0..200_000).for_each(|_| table.push_str("1,2,red,3\n"));
    bench.write("long.csv", &table);
    let binary = assert_cmd::cargo::cargo_bin("broadlearn");
    let mut child = Command::new(&binary)
        .args(["predict", "ok.broad", "long.csv"])
        .current_dir(bench.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(74));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");

    // Waits for its input; interrupted, it must leave nothing behind.
    let child = Command::new(&binary)
        .args(["fit", "-", "--target", "y", "--model", "never.broad"])
        .current_dir(bench.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    // The pipe stays open until the child is gone.
    let mut child = child;
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stderr).unwrap().contains("interrupted"));
    assert!(!bench.path("never.broad").exists());
}

#[test]
fn formats_and_pipes() {
    let bench = Bench::new();
    bench.fit();
    let expected = bench.run("predict ok.broad ok.csv").stdout;
    let semicolons = bench.read("ok.csv").replace(',', ";");
    bench.write("semicolons.csv", &semicolons);
    assert_eq!(bench.run("predict ok.broad semicolons.csv").stdout, expected);
    let commas = semicolons.replace('.', ",");
    bench.write("commas.csv", &commas);
    assert_eq!(bench.run("predict ok.broad commas.csv --decimal-comma").stdout, expected);
    let table = bench.read("ok.csv");
    let names: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let object = |line: &str| -> String {
        let members: Vec<String> = names
            .iter()
            .zip(line.split(','))
            .map(|(name, cell)| format!("{name:?}:{cell:?}"))
            .collect();
        format!("{{{}}}\n", members.join(","))
    };
    let objects: String = table.lines().skip(1).map(object).collect();
    bench.write("ok.jsonl", &objects);
    assert_eq!(bench.run("predict ok.broad ok.jsonl").stdout, expected);
    bench.write("objects.txt", &objects);
    assert_eq!(bench.run("predict ok.broad objects.txt --format jsonl").stdout, expected);
    let body: String = semicolons.lines().skip(1).map(|line| format!("{line}\n")).collect();
    bench.write("bare.csv", &body);
    let options = "fit bare.csv --no-header --target last --ridge 1e-3 --sigma 1 --model b.broad";
    assert_eq!(bench.run(options).code, 0);
    let bare = bench.run("predict b.broad bare.csv --no-header").stdout;
    assert_eq!(
        bare.lines().skip(1).collect::<Vec<_>>(),
        expected.lines().skip(1).collect::<Vec<_>>()
    );
    assert_eq!(bare.lines().next(), Some("column4"));
}

#[test]
fn help_version_and_completions() {
    let bench = Bench::new();
    assert!(bench.run("--version").stdout.starts_with("broadlearn "));
    let help = bench.run("--help").stdout;
    for part in ["fit", "predict", "evaluate", "inspect", "demo", "Exit codes", "130"] {
        assert!(help.contains(part), "{part}");
    }
    for command in ["fit", "predict", "evaluate", "inspect", "demo"] {
        let help = bench.run(&format!("{command} --help"));
        assert!(help.stdout.contains("Example"), "{command}");
    }
    assert!(bench.run("completions bash").stdout.contains("_broadlearn"));
    bench.run("").fails(2, &["Usage"]);
}

#[test]
fn demo_writes_a_model_and_an_offline_page() {
    let bench = Bench::new();
    let report = bench.run("demo --json --quiet --out-dir show").json();
    let score =
        |noise: &str, name: &str| report["test_rmse"][noise][name]["rmse"].as_f64().unwrap();
    assert!(score("the targets only", "C-BLS automatic") < score("the targets only", "BLS"));
    let page = bench.read("show/demo.html");
    assert!(page.contains("<svg") && page.trim_end().ends_with("</html>"));
    assert!(!page.contains("http://") || !page.contains("src=\"http"), "nothing is loaded");
    assert_eq!(bench.run("inspect show/demo.broad").code, 0);
}

#[test]
fn intervals_sets_and_novelty() {
    let bench = Bench::new();
    bench.run("fit ok.csv --target y --model ok.broad").ok();
    let predictions = bench.run("predict ok.broad ok.csv --interval 0.9 --novelty");
    let mut lines = predictions.stdout.lines();
    assert_eq!(lines.next().unwrap(), "y,y low,y high,novelty");
    for line in lines {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        assert!(cells[1] < cells[0] && cells[0] < cells[2] && cells[3] > 0.0, "{line}");
    }
    for (level, words) in [("1.5", "between 0 and 1"), ("0.9999", "there are only")] {
        let error = bench.run(&format!("predict ok.broad ok.csv --interval {level}"));
        assert_eq!(error.code, 2);
        assert!(error.stderr.contains(words), "{}", error.stderr);
    }
    let mut table = String::from("x,kind\n");
    for i in 0..90 {
        let _ = writeln!(table, "{i},{}", if i < 45 { "no" } else { "yes" });
    }
    bench.write("classes.csv", &table);
    bench.run("fit classes.csv --target kind --model c.broad").ok();
    let predictions = bench.run("predict c.broad classes.csv --interval 0.8");
    assert_eq!(predictions.stdout.lines().next().unwrap(), "kind,kind set");
    assert!(predictions.stdout.lines().skip(1).all(|line| {
        let (class, set) = line.split_once(',').unwrap();
        set.split('|').any(|one| one == class)
    }));
    let json = bench.run("predict c.broad classes.csv --interval 0.8 --json").json();
    assert!(json["predictions"][0][1].is_array());
}

#[test]
fn the_budget_and_a_constant_target() {
    let bench = Bench::new();
    bench.run("fit ok.csv --target y --budget 500ms --start trimmed --model ok.broad").ok();
    let error = bench.run("fit ok.csv --target y --budget soon --model ok.broad");
    assert_eq!(error.code, 2);
    assert!(error.stderr.contains("30s"), "{}", error.stderr);
    let table: String = (0..40).map(|i| format!("{i},7\n")).collect();
    bench.write("constant.csv", &format!("x,y\n{table}"));
    let error = bench.run("fit constant.csv --target y --task regression --model constant.broad");
    assert_eq!(error.code, 65);
    assert!(error.stderr.contains("in every row"), "{}", error.stderr);
    assert!(!bench.path("constant.broad").exists());
}

#[test]
fn what_comes_through_a_pipe_is_answered_at_once() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let bench = Bench::new();
    bench.fit();
    let expected = bench.run("predict ok.broad ok.csv").ok();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("broadlearn"))
        .args(["predict", "ok.broad", "-"])
        .current_dir(bench.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut answers =
        BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    // The next row is written only when the answer to the last one is there.
    for (line, expected) in bench.read("ok.csv").lines().zip(expected.lines()).take(5) {
        writeln!(questions, "{line}").unwrap();
        if expected != "y" {
            let answer = answers.find(|answer| answer != "y").unwrap();
            let [answer, expected] = [&answer, expected].map(|cell| cell.parse::<f64>().unwrap());
            assert!((answer - expected).abs() < 1e-9 * expected.abs(), "{answer} {expected}");
        }
    }
    drop(questions);
    assert!(child.wait().unwrap().success());
}

#[test]
fn metrics_say_when_a_few_rows_decide_them_and_name_every_target() {
    let bench = Bench::new();
    bench.fit();
    let table = bench.read("ok.csv");
    let plain = bench.run("evaluate ok.broad ok.csv").ok();
    assert!(plain.contains("median error") && !plain.contains("A few rows"), "{plain}");
    bench.write("wild.csv", &format!("{table}1,1,red,1e9\n"));
    let wild = bench.run("evaluate ok.broad wild.csv");
    assert!(wild.ok().contains("A few rows with large errors decide RMSE and R2"));

    bench.run("fit ok.csv --target y --target a --ridge 1e-3 --sigma 1 --model two.broad").ok();
    let scores = bench.run("evaluate two.broad ok.csv --json").json();
    let targets = scores["targets"].as_array().unwrap();
    assert_eq!((&targets[0]["name"], &targets[1]["name"]), (&"y".into(), &"a".into()));
    let squares: f64 = targets.iter().map(|target| target["rmse"].as_f64().unwrap().powi(2)).sum();
    let rmse = scores["rmse"].as_f64().unwrap();
    assert!(((squares / 2.0).sqrt() - rmse).abs() < 1e-12 * rmse);
}

#[test]
fn all_columns_of_too_many_categories_are_named_together() {
    let bench = Bench::new();
    bench.write("texts.csv", "a,b,c,y\n1,u,v,2\n2,w,x,3\n3,u,v,5\n");
    let fit = bench.run("fit texts.csv --target y --model m.broad --max-categories 1");
    fit.fails(65, &["column `b`", "2 columns are like this", "--ignore b --ignore c"]);
    bench.assert_nothing_written();
    bench.run("fit texts.csv --target z --model m.broad").fails(65, &["no column `z`"]);
    bench.run("fit ok.csv --target color --model m.broad").fails(65, &["did you mean `colour`?"]);
}

#[test]
fn a_table_in_place_of_a_model_is_told_as_such() {
    let bench = Bench::new();
    bench.fit();
    bench.run("predict ok.csv ok.broad").fails(65, &["the order of MODEL and DATA"]);
    bench.run("fit ok.csv --like ok.broad --model ok.broad").fails(2, &["ok.broad, which is read"]);
    let learn = bench.run("learn ok.broad ok.csv --predictions ok.csv --stream");
    learn.fails(2, &["ok.csv, which is read"]);
}
