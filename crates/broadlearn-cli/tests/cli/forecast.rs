//! `forecast`: series, models that go on, and every wrong argument.

use crate::bench::Bench;
use std::fmt::Write;

/// A bench with a daily series that has a season of 7, a further column, a gap and spikes.
fn bench() -> Bench {
    let bench = Bench::new();
    let mut text = String::from("day,y,z,note\n");
    for t in 0..200_u32 {
        let season = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0][t as usize % 7];
        let spike = if t % 31 == 30 && t < 190 { 80.0 } else { 0.0 };
        let z = f64::from(t * 7 % 11);
        let y = 20.0 + season + 0.2 * z + f64::from(t * 13 % 17) / 20.0 + spike;
        let y = if t == 50 { String::new() } else { y.to_string() };
        let _ = writeln!(text, "{:04}-{:02},{y},{z},a{t}", 1990 + t / 12, t % 12 + 1);
    }
    bench.write("all.csv", &text);
    let lines: Vec<&str> = text.lines().collect();
    let part =
        |range: std::ops::Range<usize>| format!("{}\n{}\n", lines[0], lines[range].join("\n"));
    bench.write("first.csv", &part(1..181));
    bench.write("rest.csv", &part(181..201));
    bench.write("short.csv", &part(1..6));
    bench.write("future.csv", "day,z\n2006-09,1\n2006-10,2\n2006-11,3\n");
    bench
}

const QUICK: &str =
    "--column y --lags 3 --season 7 --season-lags 1 --enhancement-nodes 20 --ridge 1e-3 --sigma 1";

#[test]
fn forecasts_are_csv_with_the_times_to_come() {
    let bench = bench();
    let outcome = bench.run(&format!("forecast all.csv {QUICK} --time day --horizon 3"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], "day,forecast,low,high");
    assert!(lines[1].starts_with("2006-09,") && lines[3].starts_with("2006-11,"), "{lines:?}");
    let cells: Vec<f64> = lines[2].split(',').skip(1).map(|cell| cell.parse().unwrap()).collect();
    assert!(cells[1] < cells[0] && cells[0] < cells[2]);
    assert!(
        outcome.stderr.contains("200 points, 188 rows of 4 inputs; left out 5 rows"),
        "{}",
        outcome.stderr
    );
    // The same command gives the same bytes.
    let again = bench.run(&format!("forecast all.csv {QUICK} --time day --horizon 3 --threads 1"));
    assert_eq!(again.stdout, outcome.stdout);
}

#[test]
fn a_model_goes_on_where_its_series_ended() {
    let bench = bench();
    let fit = format!("forecast first.csv {QUICK} --time day --horizon 3 --model y.broad");
    let fitted = bench.run(&fit);
    assert_eq!(fitted.code, 0, "{}", fitted.stderr);
    // Without a series: the same forecast.
    let alone = bench.run("forecast --model y.broad");
    assert_eq!((alone.code, &alone.stdout), (0, &fitted.stdout), "{}", alone.stderr);
    let before = std::fs::read(bench.path("y.broad")).unwrap();
    let noted = bench.run("forecast --model y.broad rest.csv --out next.csv");
    assert_eq!(noted.code, 0, "{}", noted.stderr);
    assert!(bench.read("next.csv").contains("2006-09,"));
    assert_eq!(std::fs::read(bench.path("y.broad")).unwrap(), before);
    let scored = bench.run("forecast --model y.broad rest.csv --evaluate 5 --json");
    let object: serde_json::Value = serde_json::from_str(&scored.stdout).unwrap();
    assert_eq!(object["evaluation"]["steps"][0]["forecasts"], 5);
    let learnt = bench.run("forecast --model y.broad rest.csv --update --json");
    assert_eq!(learnt.code, 0, "{}", learnt.stderr);
    let object: serde_json::Value = serde_json::from_str(&learnt.stdout).unwrap();
    assert_eq!((&object["points"], &object["rows"]), (&200.into(), &188.into()));
    assert_eq!(object["forecast"][2]["time"], "2006-11");
    let scored = bench.run("forecast --model y.broad rest.csv --evaluate 5");
    assert_eq!(scored.code, 65, "{}", scored.stderr);
    // Points that the model knows by their times are not learnt twice.
    let twice = bench.run("forecast --model y.broad all.csv --update");
    assert_eq!(twice.code, 65, "{}", twice.stderr);
    assert!(twice.stderr.contains("200 points that the model knows already"), "{}", twice.stderr);
    // As a model of a table it wants a table of its columns.
    let table = bench.run("predict y.broad all.csv");
    assert_eq!(table.code, 65);
    assert!(table.stderr.contains("y[t-1]"), "{}", table.stderr);
    bench.write("lags.csv", "y[t-1],y[t-2],y[t-3],y[t-7],y\n22,23,24,22,23\n");
    assert_eq!(bench.run("predict y.broad lags.csv").code, 0);
    assert_eq!(bench.run("learn y.broad lags.csv").code, 0);
    assert!(bench.run("inspect y.broad").stdout.contains("the series y"));
}

#[test]
fn evaluations_are_scored_by_step_and_shown_on_a_page() {
    let bench = bench();
    for update in ["", "--update"] {
        let command = format!(
            "forecast all.csv {QUICK} --time day --horizon 2 --evaluate 30 --json --page y.html {update}"
        );
        let outcome = bench.run(&command);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let object: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let steps = object["evaluation"]["steps"].as_array().unwrap();
        assert_eq!((steps.len(), &steps[1]["forecasts"]), (2, &29.into()));
        for name in
            ["rmse", "mae", "mase", "seasonal_mase", "naive_mae", "seasonal_naive_mae", "coverage"]
        {
            assert!(steps[0][name].is_number(), "{name}");
        }
        assert!(steps[0]["mae"].as_f64() < steps[0]["naive_mae"].as_f64());
        let page = bench.read("y.html");
        assert!(page.contains("What comes next") && page.contains("Residuals"));
    }
}

#[test]
fn further_columns_are_lagged_or_known_ahead() {
    let bench = bench();
    let quick = "--column y --lags 2 --enhancement-nodes 20 --ridge 1e-3 --sigma 1 --with z";
    let lagged = bench.run(&format!("forecast all.csv {quick} --horizon 3 --json"));
    assert_eq!(lagged.code, 0, "{}", lagged.stderr);
    let object: serde_json::Value = serde_json::from_str(&lagged.stdout).unwrap();
    assert_eq!(object["inputs"][2], "z[t-3]");
    let ahead = format!("forecast all.csv {quick} --known-ahead --time day --horizon 3");
    let outcome = bench.run(&ahead);
    assert_eq!(outcome.code, 65);
    assert!(outcome.stderr.contains("--future FILE"), "{}", outcome.stderr);
    // Scores need no future, and are not lost for want of it.
    let scored = bench.run(&format!("{ahead} --evaluate 20"));
    assert_eq!((scored.code, scored.stdout.as_str()), (0, "day,forecast,low,high\n"));
    assert!(
        scored.stderr.contains("no forecasts") && scored.stderr.contains("RMSE"),
        "{}",
        scored.stderr
    );
    let outcome = bench.run(&format!("{ahead} --future future.csv"));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("2006-11,"));
    let outcome = bench.run(&format!("forecast all.csv {quick} --with-lags 1 --horizon 2"));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
}

/// As many as the series bears.
#[test]
fn a_far_horizon_has_intervals_for_its_first_steps() {
    let bench = bench();
    let outcome = bench.run(&format!("forecast all.csv {QUICK} --horizon 120"));
    let known = outcome.stdout.lines().skip(1).take_while(|line| !line.ends_with(",,")).count();
    assert_eq!(outcome.stdout.lines().count(), 121);
    assert!((80..100).contains(&known), "{known}");
    assert!(outcome.stderr.contains("too short"), "{}", outcome.stderr);
}

#[test]
fn wrong_arguments_leave_nothing_behind() {
    let bench = bench();
    let cases = [
        ("all.csv", 2, "--column"),
        ("all.csv --column y", 2, "--lags"),
        ("--column y --lags 3", 2, "SERIES"),
        ("all.csv --column y --lags 3 --horizon 0", 2, "horizon"),
        ("all.csv --column y --lags 0", 2, "lags"),
        ("all.csv --column y --lags 3 --delay 0", 2, "delay"),
        ("all.csv --column y --lags 3 --season 1", 2, "season"),
        ("all.csv --column y --lags 3 --season-lags 1", 2, "--season"),
        ("all.csv --column y --lags 3 --difference 9", 2, "difference"),
        ("all.csv --column y --lags 3 --interval 1.5", 2, "share between 0 and 1"),
        ("all.csv --column y --lags 3 --evaluate 0", 2, "evaluate"),
        ("all.csv --column y --lags 3 --evaluate 200", 2, "evaluate"),
        ("all.csv --column y --lags 3 --update", 2, "update"),
        ("all.csv --column y --lags 3 --known-ahead", 2, "--with"),
        ("all.csv --column y --lags 3 --with y", 2, "with"),
        ("all.csv --column y --lags 3 --future future.csv", 2, "future"),
        ("all.csv --column y --lags 3 --ridge -1", 2, "ridge"),
        ("all.csv --column x --lags 3", 65, "no column `x`"),
        ("all.csv --column note --lags 3", 65, "note"),
        ("all.csv --column y --lags 3 --with note", 65, "note"),
        ("all.csv --column y --lags 3 --time y", 65, "two roles"),
        ("short.csv --column y --lags 7", 65, "at least 9 in a row"),
        ("none.csv --column y --lags 3", 66, "none.csv"),
        ("all.csv --column y --lags 3 --model no/y.broad", 73, "mkdir"),
        ("all.csv --column y --lags 3 --model -", 2, "stdout"),
        ("--model none.broad", 66, "none.broad"),
    ];
    for (arguments, code, words) in cases {
        let outcome = bench.run(&format!("forecast {arguments}"));
        assert_eq!(outcome.code, code, "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{arguments}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty());
    }
    bench.assert_nothing_written();
    bench.fit();
    let outcome = bench.run("forecast --model ok.broad");
    assert_eq!(outcome.code, 65);
    assert!(outcome.stderr.contains("a model of a table"), "{}", outcome.stderr);
    assert_eq!(bench.run("forecast --model ok.broad --seed 3").code, 2);
}

#[test]
fn intervals_that_held_too_little_are_warned_of() {
    let bench = Bench::new();
    // A level that goes on to where no training row was.
    let mut text = String::from("y\n");
    for t in 0..260_u32 {
        let _ = writeln!(text, "{}", f64::from(t).powf(1.8) / 40.0 + f64::from(t * 13 % 17) / 9.0);
    }
    bench.write("growing.csv", &text);
    let forecast = |options: &str| {
        let settings = "--column y --lags 3 --enhancement-nodes 20 --ridge 1e-3 --sigma 1";
        bench.run(&format!("forecast growing.csv {settings} --evaluate 60 --horizon 5 {options}"))
    };
    let outcome = forecast("");
    outcome.ok();
    assert!(outcome.stderr.contains("too narrow"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--difference 1"), "{}", outcome.stderr);
}
