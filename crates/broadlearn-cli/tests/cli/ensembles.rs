use crate::bench::Bench;
use std::fs;

const FIT: &str = "--ridge 1e-3 --sigma 1 --enhancement-nodes 40 --members 3";

/// The rows of ok.csv in two tables, and an ensemble of the first.
fn bench() -> Bench {
    let bench = Bench::new();
    let table = bench.read("ok.csv");
    let lines: Vec<&str> = table.lines().collect();
    let part = |rows: &[&str]| format!("{}\n{}\n", lines[0], rows.join("\n"));
    bench.write("first.csv", &part(&lines[1..81]));
    bench.write("second.csv", &part(&lines[81..]));
    bench.run(&format!("fit first.csv --target y {FIT} --model m.broad")).ok();
    bench
}

#[test]
fn an_ensemble_is_used_like_one_model() {
    let bench = bench();
    let fit = format!("fit ok.csv --target y {FIT} --holdout 0.3 --model f.broad --json");
    assert_eq!(bench.run(&fit).json()["members"], 3);
    let fit = "fit ok.csv --target y --ridge 1e-3 --sigma 1 --model o.broad --json";
    assert_eq!(bench.run(fit).json()["members"], 5);
    let one = bench.run(&format!("{fit} --enhancement-nodes 20"));
    assert_eq!(one.json()["members"], 1);

    let inspected = bench.run("inspect m.broad --json").json();
    let members = inspected["members"].as_array().unwrap();
    assert_eq!((members.len(), &members[0]["seed"]), (3, &0.into()));
    assert_ne!(members[1]["seed"], members[2]["seed"]);
    let text = bench.run("inspect m.broad").ok();
    assert!(text.contains("3 networks"), "{text}");

    assert_eq!(bench.run("predict m.broad ok.csv").ok().lines().count(), 121);
    assert!(bench.run("evaluate m.broad ok.csv --json").json()["rmse"].as_f64().is_some());
    // Through a pipe, the same bytes.
    bench.run(&format!("fit first.csv --target y {FIT} --model again.broad")).ok();
    assert!(
        fs::read(bench.path("m.broad")).unwrap() == fs::read(bench.path("again.broad")).unwrap()
    );
    let audit = bench.run("audit m.broad first.csv --top 5 --json").json();
    assert_eq!(audit["suspects"].as_array().unwrap().len(), 5);
    assert!(audit["suspects"][0]["removal_effect"].as_f64().is_some());
}

#[test]
fn an_ensemble_is_changed_like_one_model() {
    let bench = bench();
    let learn = "learn m.broad second.csv --out n.broad --verify --history first.csv --json";
    let learnt = bench.run(learn).json();
    assert_eq!((&learnt["rows"], &learnt["rows_learnt"]), (&120.into(), &40.into()));
    assert!(learnt["verified_difference"].as_f64().unwrap() < 1e-8, "{learnt}");

    let forget = "forget n.broad second.csv --out b.broad --certificate c.json --verify \
                  --history first.csv";
    bench.run(forget).ok();
    let certificate: serde_json::Value = serde_json::from_str(&bench.read("c.json")).unwrap();
    assert_eq!(certificate["removed"].as_array().unwrap().len(), 40);
    let members = certificate["members"].as_array().unwrap();
    assert_eq!(members.len(), 3);
    assert!(members.iter().all(|member| member["weights"].as_array().unwrap().len() == 40));
    assert!(certificate["verified_difference"].as_f64().unwrap() < 1e-8, "{certificate}");
    let back = bench.run("diff b.broad m.broad --data first.csv --json").json();
    assert!(back["predictions"].as_f64().unwrap() < 1e-9, "{back}");
    assert!(back["relative_difference"]["R"].as_f64().unwrap() < 1e-9, "{back}");

    bench.run("fit second.csv --like m.broad --model s.broad").ok();
    let merge = "merge m.broad s.broad --out all.broad --verify --history ok.csv --json";
    let merged = bench.run(merge).json();
    assert_eq!(merged["rows"], 120);
    assert!(merged["verified_difference"].as_f64().unwrap() < 1e-8, "{merged}");
    let grow = "grow all.broad ok.csv --enhancement-nodes 10 --verify --json";
    let grown = bench.run(grow).json();
    assert_eq!(grown["nodes_added"], 10);
    assert!(grown["verified_difference"].as_f64().unwrap() < 1e-8, "{grown}");
    let refined = bench.run("refine all.broad ok.csv --json").json();
    assert!(refined["drift"]["mean"].as_f64() <= refined["drift_before"]["mean"].as_f64());

    // A stream with a poisoned row: one decision, one line in the side file.
    let poisoned = format!("{}3,1,red,9999\n", bench.read("second.csv"));
    let stream = "learn m.broad - --quarantine 0.01 --quarantine-out q.csv --out q.broad --json";
    let report = bench.run_with(stream, &poisoned).json();
    assert_eq!(report["rows_read"], 41);
    let side = bench.read("q.csv");
    assert_eq!(side.lines().count() as u64, 1 + report["rows_quarantined"].as_u64().unwrap());
    assert!(side.lines().last().unwrap().starts_with("3,1,red,9999"), "{side}");
}

#[test]
fn wrong_numbers_of_members_are_refused() {
    let bench = bench();
    for members in ["0", "1001"] {
        let fit = format!("fit ok.csv --target y --members {members} --model x.broad");
        bench.run(&fit).fails(2, &["members", "1 to 1000"]);
    }
    bench.run("fit ok.csv --target y --members few --model x.broad").fails(2, &["--members"]);
    bench.run("fit second.csv --like m.broad --members 2 --model x.broad").fails(2, &["--members"]);
    let two = "fit second.csv --target y --ridge 1e-3 --sigma 1 --members 2 --model two.broad";
    bench.run(two).ok();
    let merged = bench.run("merge m.broad two.broad --out x.broad");
    merged.fails(merged.code, &["two.broad", "2 members", "3 members", "--like"]);
    assert!(merged.code != 0);
    let differing = bench.run("diff m.broad two.broad --json").json();
    assert!(differing["relative_difference"]["W"].is_null());
    let members = differing["differing"].as_array().unwrap();
    assert!(members.iter().any(|d| d["what"] == "settings.members" && d["second"] == 2));
    // A file cut off.
    let bytes = fs::read(bench.path("m.broad")).unwrap();
    fs::write(bench.path("cut.broad"), &bytes[..bytes.len() / 2]).unwrap();
    let cut = bench.run("predict cut.broad ok.csv");
    cut.fails(cut.code, &["cut.broad"]);
    assert!(cut.code != 0);
}
