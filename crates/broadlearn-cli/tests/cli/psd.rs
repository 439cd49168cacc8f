use crate::bench::Bench;
use std::f64::consts::PI;
use std::fmt::Write;
use std::path::Path;

/// A recording in the tests of the signal crate.
fn recording(bench: &Bench, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../broadlearn-signal/tests/reference");
    std::fs::copy(folder.join(name), bench.path(name)).unwrap();
}

/// Twelve trials of 2 s at 100 Hz, one after another: 10 Hz after event 1, 20 Hz after event 2.
fn waves(header: &str, first: impl Fn(usize, usize) -> String) -> String {
    let mut text = String::from(header);
    for row in 0..2400_usize {
        let (trial, within) = (row / 200, row % 200);
        let frequency = if trial % 2 == 0 { 10.0 } else { 20.0 };
        let t = row as f64 / 100.0;
        let noise = ((row * 7919) % 101) as f64 / 1000.0;
        let wave = (2.0 * PI * frequency * t).sin() + noise;
        let _ = writeln!(text, "{},{:.6},{:.6}", first(trial, within), wave, 2.0 * noise);
    }
    text
}

/// The column with the largest mean in rows of this label.
fn strongest(table: &str, label: &str) -> String {
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut sums = vec![0.0; names.len() - 1];
    for line in lines.filter(|line| line.ends_with(&format!(",{label}"))) {
        let cells = line.split(',').map(|cell| cell.parse::<f64>().unwrap_or(0.0));
        sums.iter_mut().zip(cells).for_each(|(sum, value)| *sum += value);
    }
    let best = (0..sums.len()).max_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap();
    names[best].to_owned()
}

#[test]
fn events_in_a_table_become_labelled_spectra() {
    let bench = Bench::new();
    let event = |trial: usize, within| match within {
        0 => (trial % 2 + 1).to_string(),
        _ => String::new(),
    };
    bench.write("s.csv", &waves("event,C3,C4\n", event));
    let summary = bench
        .run("psd s.csv --rate 100 --events 1,2 --class 1=slow --class 2=fast --from 0.2 --to 1.8 --segment 1 --overlap 0.5 --nfft 100 --frequencies 8-35 --out f.csv --page p.html --json")
        .json();
    assert_eq!(summary["n_trials"], 12);
    assert_eq!(summary["classes"]["slow"], 6);
    assert_eq!(summary["n_columns"], 56);
    let table = bench.read("f.csv");
    assert!(table.starts_with("C3_8.00Hz,C3_9.00Hz,"), "{table}");
    assert_eq!(strongest(&table, "slow"), "C3_10.00Hz");
    assert_eq!(strongest(&table, "fast"), "C3_20.00Hz");
    assert!(bench.read("p.html").contains("Channel C4"));
    // The table is one for `fit`.
    bench.run("fit f.csv --target label --model m.broad").ok();
    let scores = bench.run("evaluate m.broad f.csv --json").json();
    assert!(scores["accuracy"].as_f64().unwrap() > 0.95, "{scores}");

    // On stdout, with logarithms, a file column and another name.
    let out =
        bench.run("psd s.csv --rate 100 --events 1 --band none --log --label y --with-file").ok();
    assert!(out.lines().next().unwrap().ends_with(",y,file"), "{out}");
    assert!(out.lines().nth(1).unwrap().ends_with(",1,s.csv"));
    // Filtering trials alone differs at their ends, not in the number of rows.
    let one = bench.run("psd s.csv --rate 100 --events 1 --filter-first no").ok();
    let other = bench.run("psd s.csv --rate 100 --events 1 --filter-first yes").ok();
    assert!(one != other && one.lines().count() == other.lines().count());
}

#[test]
fn trials_may_stand_in_one_table_or_in_files_of_their_own() {
    let bench = Bench::new();
    let first = |trial: usize, _| format!("{trial},{}", ["slow", "fast"][trial % 2]);
    bench.write("t.csv", &waves("trial,label,C3,C4\n", first));
    let out = bench.run("psd t.csv --rate 100").ok();
    assert_eq!(out.lines().count(), 13);
    let time = |trial: usize, within: usize| format!("{}", (trial * 200 + within) as f64 / 100.0);
    let all = waves("time,C3,C4\n", time);
    let lines: Vec<&str> = all.lines().collect();
    for (number, part) in lines[1..].chunks(200).enumerate() {
        let name = format!("{}{number}.csv", ["slow", "fast"][number % 2]);
        bench.write(&name, &format!("{}\n{}\n", lines[0], part.join("\n")));
    }
    let files = "psd slow0.csv fast1.csv slow2.csv";
    let alone = bench.run(&format!("{files} --class slow*=slow --class fast*=fast")).ok();
    let expected: Vec<&str> = out.lines().take(4).collect();
    assert_eq!(alone.lines().collect::<Vec<_>>(), expected);
    let bare = bench.run("psd slow0.csv").ok();
    assert!(!bare.lines().next().unwrap().contains("label"));
    bench.run("psd slow0.csv --class x=y").fails(2, &["no trial has"]);
    bench.run("psd slow0.csv --from 0.5 --to 2.5").fails(2, &["times within the trials"]);
    bench.run("psd slow0.csv --channels C3,C9").fails(65, &["no channel `C9`", "`C4`"]);
}

#[test]
fn recordings_are_read_and_rejected_trials_left_out() {
    let bench = Bench::new();
    for name in ["gdf2_int16.gdf", "plus.edf", "gdf1_mode3.gdf"] {
        recording(&bench, name);
    }
    let common = "--from 0 --to 0.8 --band -20 --order 2";
    let run = bench.run(&format!("psd gdf2_int16.gdf --events 769,770 --channels C3 {common}"));
    assert!(run.stderr.contains("1 trial marked as rejected"), "{}", run.stderr);
    assert_eq!(run.ok().lines().count(), 2);
    let run = format!("psd gdf2_int16.gdf --events 769,770 --keep-rejected {common}");
    assert_eq!(bench.run(&run).ok().lines().count(), 3);
    let out = bench.run(&format!("psd plus.edf --events T1,T2 {common}")).ok();
    assert!(out.starts_with("EEG:C3_0.00Hz,") && out.lines().count() == 3, "{out}");
    bench.run("psd plus.edf").fails(2, &["--events", "T1 (1 times)"]);
    bench.run("psd plus.edf --events 769 --band none").fails(65, &["no event `769`"]);
    bench
        .run("psd plus.edf --events T1 --from 5 --to 6 --band -20")
        .fails(65, &["beyond the ends"]);
    let cut = std::fs::read(bench.path("plus.edf")).unwrap();
    std::fs::write(bench.path("cut.edf"), &cut[..900]).unwrap();
    bench.run("psd cut.edf --events T1").fails(65, &["the end of the file"]);
}

#[test]
fn a_mistake_in_an_argument_is_named() {
    let bench = Bench::new();
    let event = |trial: usize, within| match within {
        0 => (trial % 2 + 1).to_string(),
        _ => String::new(),
    };
    bench.write("s.csv", &waves("event,C3,C4\n", event));
    for (arguments, code, part) in [
        ("", 2, "--events"),
        ("--events 1 --band 8", 2, "LOW-HIGH"),
        ("--events 1 --band 8-60", 2, "below 50 Hz"),
        ("--events 1 --band 35-8", 2, "rising"),
        ("--events 1 --order 0", 2, "from 1 to"),
        ("--events 1 --window kaiser", 2, "kaiser"),
        ("--events 1 --segment 0", 2, "setting `segment`"),
        ("--events 1 --segment x", 2, "expected a number"),
        ("--events 1 --overlap 0.25", 2, "setting `overlap`"),
        ("--events 1 --overlap -1", 2, "setting `overlap`"),
        ("--events 1 --nfft 8", 2, "setting `nfft`"),
        ("--events 1 --frequencies 60-70", 2, "setting `frequencies`"),
        ("--events 1 --frequencies 9-8", 2, "rising"),
        ("--events 1 --class 1", 2, "CODE=NAME"),
        ("--events 1 --from 2 --to 1", 2, "rising"),
        ("--events 1 --filter-first maybe", 2, "yes or no"),
        ("--events 1 --label C3_0.00Hz", 2, "another name"),
        ("--events 1 --segment 1.9 --from 0 --to 1", 65, "samples of a segment"),
        ("--events 1 --from 0 --to 0.2 --filter-first no", 65, "more than 27 samples"),
        ("--events 1 --event-column x", 65, "no column `x`"),
        ("--events 1 --json", 2, "--out"),
        ("--events 1 --out no/such/folder.csv", 73, "mkdir"),
    ] {
        bench.run(&format!("psd s.csv --rate 100 {arguments}")).fails(code, &[part]);
    }
    bench.run("psd s.csv --events 1").fails(65, &["--rate"]);
    bench.run("psd s.csv --events 1 --rate 0").fails(2, &["setting `rate`"]);
    bench.run("psd none.gdf --events 1").fails(66, &["none.gdf"]);
    bench.write("x.gdf", "hello");
    bench.run("psd x.gdf --events 1").fails(65, &["other first bytes"]);
    bench.write("x.npz", "hello");
    bench.run("psd x.npz").fails(65, &["archive"]);
    bench.write("a.csv", "time,C3\n0,1\n0.1,2\n0.25,3\n");
    bench.run("psd a.csv").fails(65, &["evenly spaced"]);
}

#[test]
fn times_beyond_all_bounds_are_no_reason_to_panic() {
    let bench = Bench::new();
    bench.write("s.csv", &waves("event,C3,C4\n", |trial, _| (trial % 2 + 1).to_string()));
    for options in ["--from 1e300 --to 2e300", "--from=-1e300 --to 1e300"] {
        let outcome =
            bench.run(&format!("psd s.csv --rate 100 --events 1,2 {options} --out t.csv"));
        assert_ne!(outcome.code, 0);
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    }
}
