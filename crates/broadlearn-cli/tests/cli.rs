//! The command as a user meets it.
#![allow(clippy::unwrap_used, missing_docs)]

use assert_cmd::Command;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with a few tables and, on demand, a model.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        let mut table = String::from("a,b,colour,y\n");
        for i in 0..120 {
            let (a, b) = (f64::from(i % 17), f64::from(i % 7) - 3.0);
            let colour = ["red", "green", "blue"][i as usize % 3];
            let _ = writeln!(table, "{a},{b},{colour},{}", 2.0 * a - b * b + f64::from(i % 3));
        }
        bench.write("ok.csv", &table);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, arguments: &str) -> Outcome {
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &str, stdin: &str) -> Outcome {
        let output = Command::cargo_bin("broadlearn")
            .unwrap()
            .current_dir(self.folder.path())
            .args(arguments.split_whitespace())
            .write_stdin(stdin)
            .output()
            .unwrap();
        Outcome {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn fit(&self) {
        let outcome = self.run("fit ok.csv --target y --ridge 1e-3 --sigma 1 --model ok.broad");
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }

    /// Nothing but the tables may be there: no model, no half-written file.
    fn assert_nothing_written(&self) {
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name.ends_with(".csv"), "{name} was left behind");
        }
    }
}

struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Outcome {
    /// What was printed, if all went well.
    #[track_caller]
    fn ok(&self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout.clone()
    }

    #[track_caller]
    fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.stderr);
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.stdout, "");
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

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
    case("a,b,y\n1,,2.5\n2,,3.5\n", "", &["column `b`: found no value at all", "--ignore"]);
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
    let mut ids = String::from("id,y\n");
    (0..1000).for_each(|i| ids.push_str(&format!("id{i},{i}.5\n")));
    case(&ids, "", &["column `id`: found 1000 different texts", "--max-categories"]);
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

/// The rows of ok.csv in two tables, and a model of the first.
fn two_shards() -> Bench {
    let bench = Bench::new();
    let table = bench.read("ok.csv");
    let lines: Vec<&str> = table.lines().collect();
    let part = |rows: &[&str]| format!("{}\n{}\n", lines[0], rows.join("\n"));
    bench.write("first.csv", &part(&lines[1..81]));
    bench.write("second.csv", &part(&lines[81..]));
    bench.write("few.csv", &part(&lines[81..84]));
    bench.run("fit first.csv --target y --ridge 1e-3 --sigma 1 --model m.broad").ok();
    bench
}

#[test]
fn what_is_learnt_is_what_a_refit_gives() {
    let bench = two_shards();
    let original = fs::read(bench.path("m.broad")).unwrap();
    let learnt =
        bench.run("learn m.broad second.csv --out n.broad --verify --history first.csv --json");
    let learnt = learnt.json();
    assert_eq!((&learnt["rows"], &learnt["rows_learnt"]), (&120.into(), &40.into()));
    assert!(learnt["verified_difference"].as_f64().unwrap() < 1e-8, "{learnt}");
    assert!(fs::read(bench.path("m.broad")).unwrap() == original, "--out leaves MODEL alone");

    // In place; then back again.
    bench.run("learn m.broad second.csv").ok();
    let same = bench.run("diff m.broad n.broad --json");
    let same = same.json();
    assert_eq!(same["relative_difference"]["W"], 0.0);
    let forget = "forget m.broad second.csv --certificate c.json --verify --history ok.csv";
    bench.run(forget).ok();
    let certificate: serde_json::Value = serde_json::from_str(&bench.read("c.json")).unwrap();
    assert_eq!(certificate["removed"].as_array().unwrap().len(), 40);
    assert!(certificate["verified_difference"].as_f64().unwrap() < 1e-8, "{certificate}");
    fs::write(bench.path("original.broad"), original).unwrap();
    let back = bench.run("diff m.broad original.broad --data ok.csv --json");
    let back = back.json();
    assert!(back["predictions"].as_f64().unwrap() < 1e-9, "{back}");

    let grown = bench.run("grow n.broad ok.csv --enhancement-nodes 30 --verify");
    grown.ok();
    let refined = bench.run("refine n.broad first.csv second.csv --json");
    let refined = refined.json();
    assert!(refined["drift"]["mean"].as_f64() <= refined["drift_before"]["mean"].as_f64());
    let drift = bench.run("refine n.broad ok.csv --check");
    assert!(drift.ok().contains("drifted by"));
}

#[test]
fn shards_are_merged() {
    let bench = two_shards();
    bench.run("fit second.csv --like m.broad --model s.broad").ok();
    let merge = "merge m.broad s.broad --out all.broad --verify --history ok.csv --json";
    let merged = bench.run(merge).json();
    assert_eq!(merged["rows"], 120);
    assert!(merged["verified_difference"].as_f64().unwrap() < 1e-8, "{merged}");
    // A step of the joint fit, shard by shard, is a step on all rows.
    for (data, model) in [("first", "a"), ("second", "b"), ("ok", "whole")] {
        let fit = format!("fit {data}.csv --like all.broad --one-step --model {model}.broad");
        bench.run(&fit).ok();
    }
    bench.run("merge a.broad b.broad --out joint.broad").ok();
    let same = bench.run("diff joint.broad whole.broad --data ok.csv --json");
    let same = same.json();
    assert!(same["predictions"].as_f64().unwrap() < 1e-9, "{same}");
}

#[test]
fn streams_are_scored_learnt_and_snapshotted() {
    let bench = two_shards();
    let rows = bench.read("second.csv");
    let stream = "learn m.broad - --out n.broad --predictions p.csv --snapshot-rows 10";
    let outcome = bench.run_with(stream, &rows);
    outcome.ok();
    assert!(outcome.stderr.contains("since last"), "{}", outcome.stderr);
    assert_eq!(bench.read("p.csv").lines().count(), 41);
    // The same rows as JSON lines, and from a file, in batches of one.
    let mut lines = String::new();
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let _ = writeln!(
            lines,
            "{{\"a\": {}, \"b\": {}, \"colour\": \"{}\", \"y\": {}}}",
            cells[0], cells[1], cells[2], cells[3]
        );
    }
    bench.run_with("learn m.broad - --out j.broad", &lines).ok();
    bench.run("learn m.broad second.csv --stream --batch 1 --out f.broad").ok();
    for other in ["j.broad", "f.broad"] {
        let same = bench.run(&format!("diff n.broad {other} --data ok.csv --json"));
        let same = same.json();
        assert!(same["predictions"].as_f64().unwrap() < 1e-9, "{same}");
    }

    // A poisoned row goes to the side file, from which it can be learnt after all.
    let poisoned = format!("{rows}3,1,red,9999\n");
    let quarantine =
        "learn m.broad - --quarantine 0.01 --quarantine-out q.csv --out q.broad --json";
    let report = bench.run_with(quarantine, &poisoned).json();
    assert_eq!(report["rows_read"], 41);
    let side = bench.read("q.csv");
    assert!(side.lines().last().unwrap().starts_with("3,1,red,9999"), "{side}");
    bench.run("learn q.broad q.csv").ok();

    // What came before a bad row is learnt and saved; the row is named.
    let bad = format!("{rows}3,oops,red,1\n");
    bench.run_with("learn m.broad - --out b.broad", &bad).fails(65, &["line 42", "oops"]);
    assert!(bench.run("inspect b.broad").ok().contains("120 rows"));
}

#[test]
fn new_classes_must_be_welcome() {
    let bench = Bench::new();
    let table = |classes: &[&str]| {
        let mut text = String::from("x,kind\n");
        for i in 0..60 {
            let class = classes[i % classes.len()];
            let shift = class.len() as f64;
            let _ = writeln!(text, "{},{class}", shift + 0.01 * i as f64);
        }
        text
    };
    bench.write("old.csv", &table(&["cat", "horse"]));
    bench.write("new.csv", &table(&["cat", "elephant"]));
    bench.run("fit old.csv --target kind --ridge 1e-3 --sigma 1 --model m.broad").ok();
    let before = fs::read(bench.path("m.broad")).unwrap();
    bench.run("learn m.broad new.csv").fails(65, &["elephant", "--new-classes"]);
    assert!(fs::read(bench.path("m.broad")).unwrap() == before);
    bench.run("learn m.broad new.csv --new-classes").ok();
    let found = bench.run("predict m.broad new.csv").ok();
    assert!(found.lines().filter(|line| *line == "elephant").count() > 25, "{found}");
}

#[test]
fn changes_that_cannot_be_made_leave_the_model_alone() {
    let bench = two_shards();
    bench.write("other.csv", "a,b,y\n1,2,3\n");
    bench.run("fit first.csv --target y --ridge 1e-3 --sigma 1 --compact --model c.broad").ok();
    bench.run("fit first.csv --target y --ridge 1e-3 --sigma 1 --seed 5 --model s.broad").ok();
    let before = fs::read(bench.path("m.broad")).unwrap();
    for (arguments, code, parts) in [
        ("learn m.broad other.csv", 65, &["`colour`"][..]),
        ("learn c.broad second.csv", 65, &["compact", "--compact"]),
        ("forget c.broad first.csv", 65, &["compact"]),
        ("grow c.broad first.csv --enhancement-nodes 3", 65, &["compact"]),
        ("forget m.broad few.csv", 65, &["few.csv, row 1", "not on record"]),
        ("forget m.broad first.csv", 65, &["rows to be left"]),
        ("merge m.broad s.broad --out x.broad", 65, &["s.broad", "seed"]),
        ("merge m.broad c.broad --out x.broad", 65, &["c.broad", "compact"]),
        ("merge m.broad m.broad", 2, &["--out"]),
        ("grow m.broad", 2, &["DATA"]),
        ("grow m.broad first.csv", 2, &["--enhancement-nodes"]),
        ("grow m.broad ok.csv --enhancement-nodes 3", 65, &["not on record"]),
        ("grow m.broad first.csv --feature-groups 3", 2, &["recipe classic"]),
        ("learn m.broad second.csv --forgetting 0", 2, &["forgetting"]),
        ("learn m.broad second.csv --quarantine 1", 2, &["quarantine"]),
        ("learn m.broad second.csv --batch 5", 2, &["--stream"]),
        ("learn m.broad second.csv --verify", 65, &["40 of the model's rows", "all 120"]),
        ("merge m.broad m.broad --out x.broad --verify", 2, &["--history"]),
        ("learn m.broad second.csv --verify --history few.csv", 65, &["all 120"]),
        ("refine m.broad ok.csv", 65, &["not on record"]),
        ("fit second.csv --like m.broad --sigma 2 --model x.broad", 2, &["--sigma"]),
        ("learn m.broad nowhere.csv", 66, &["nowhere.csv"]),
        ("learn m.broad second.csv --out no/where.broad", 73, &["mkdir"]),
    ] {
        bench.run(arguments).fails(code, parts);
        assert!(fs::read(bench.path("m.broad")).unwrap() == before, "{arguments}");
        assert!(!bench.path("x.broad").exists(), "{arguments}");
    }
}

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

/// What a review found: each once did harm.
#[test]
fn absurd_rows_do_not_harm_a_model() {
    let bench = two_shards();
    bench.run("fit first.csv --target y --loss squared --ridge 1e-3 --model q.broad").ok();
    for (name, row) in [("y", "1,1,red,1.7e308"), ("x", "1e300,1,red,1")] {
        bench.write("absurd.csv", &format!("a,b,colour,y\n{row}\n"));
        for model in ["m.broad", "q.broad"] {
            let before = fs::read(bench.path(model)).unwrap();
            bench.run(&format!("learn {model} absurd.csv")).fails(65, &["so large"]);
            assert!(fs::read(bench.path(model)).unwrap() == before, "{name} {model}");
        }
        let rows = format!("{}{row}\n", bench.read("second.csv"));
        bench.run_with("learn q.broad - --out s.broad", &rows).fails(65, &["so large"]);
        bench.run("inspect s.broad").ok();
    }
    // The rows before a bad one are learnt, whatever is wrong with it.
    for bad in ["1,1,red,", "1,1,red,oops"] {
        let rows = format!("{}{bad}\n", bench.read("few.csv"));
        bench.run_with("learn m.broad - --out b.broad", &rows).fails(65, &["line 5"]);
        assert!(bench.run("inspect b.broad").ok().contains("83 rows"));
    }
    bench.run("learn m.broad few.csv --new-classes").fails(2, &["a classifier"]);
    let certificate = "forget m.broad first.csv --certificate no/where.json";
    bench.run(certificate).fails(73, &["mkdir"]);
}

#[test]
fn bad_weights_are_found_on_their_own_line() {
    let bench = Bench::new();
    let mut table = String::from("a,y,w\n");
    (0..40).for_each(|i| {
        let _ = writeln!(table, "{},{},1", i % 13, 2 * (i % 13) + i % 3);
    });
    bench.write("ok.csv", &table);
    bench.run("fit ok.csv --target y --weight w --ridge 1e-3 --sigma 1 --model m.broad").ok();
    // Lines 2 and 3 have no target and are left out; the bad weight stands on line 5.
    bench.write("bad.csv", "a,y,w\n1,,1\n2,,1\n3,4,1\n4,5,-1\n");
    for command in ["learn m.broad bad.csv", "fit bad.csv --target y --weight w --model x.broad"] {
        bench.run(&format!("{command} --drop-missing-target")).fails(65, &["line 5", "weight -1"]);
    }
}

#[test]
fn rows_of_weight_zero_are_no_rows_in_a_stream() {
    let bench = Bench::new();
    let mut table = String::from("a,y,w\n");
    (0..80).for_each(|i| {
        let _ = writeln!(table, "{},{},{}", i % 13, 2 * (i % 13) + i % 3, 1 + i % 2);
    });
    bench.write("w.csv", &table);
    bench.run("fit w.csv --target y --weight w --ridge 1e-3 --sigma 1 --model m.broad").ok();
    let rows = "a,y,w\n1,2,0\n";
    let report = bench.run_with("learn m.broad - --json", rows).json();
    assert_eq!((&report["rows_read"], &report["rows_learnt"]), (&1.into(), &0.into()));
    // Of equal rows, the one with the given weight leaves.
    bench.run("fit w.csv --target y --weight w --loss squared --ridge 1e-3 --model q.broad").ok();
    bench.write("heavy.csv", "a,y,w\n50,99,2\n");
    bench.write("light.csv", "a,y,w\n50,99,1\n");
    let weight = || bench.run("diff q.broad m.broad --json").json()["differing"].clone();
    let before = weight();
    bench.run("learn q.broad heavy.csv").ok();
    bench.run("learn q.broad light.csv").ok();
    bench.run("forget q.broad heavy.csv").ok();
    bench.run("forget q.broad light.csv").ok();
    assert_eq!(weight(), before);
    bench.run("learn q.broad light.csv").ok();
    bench.run("learn q.broad heavy.csv").ok();
    let certificate = bench.run("forget q.broad light.csv --certificate c.json");
    certificate.ok();
    assert!(bench.read("c.json").contains("\"weight\": 1.0"), "{}", bench.read("c.json"));
}
