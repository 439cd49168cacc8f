use crate::bench::Bench;

const SMALL: &str = "--members 1 --fan-ins all --recipes rich,plain --gains 0.5..1 --feature-groups 2 --feature-nodes 3 \
                     --enhancement-nodes 0..20/10 --ridges 1e-4..1/100 --sigmas 0.5,2^1";

#[test]
fn tune_writes_model_table_and_page() {
    let bench = Bench::new();
    let command = format!("tune ok.csv --target y --model m.broad {SMALL}");
    let found = bench.run(&format!("{command} --out grid.csv --report grid.html --json")).json();
    // rich with 2 gains and plain; 3 sizes, 3 ridges, 2 kernels.
    assert_eq!(found["n_settings"], 3 * 3 * 3 * 2);
    assert_eq!(found["results"].as_array().unwrap().len(), 54);
    let scores: Vec<f64> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["score"].as_f64().unwrap())
        .collect();
    assert!(scores.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(found["finalists"].as_array().unwrap().len(), 3);
    assert_eq!(found["winner"], found["finalists"][0]);
    let table = bench.read("grid.csv");
    assert_eq!(table.lines().count(), 55);
    assert!(
        table.starts_with(
            "recipe,gain,fan_in,feature_groups,feature_nodes,enhancement_nodes,ridge,"
        )
    );
    assert!(bench.read("grid.html").contains("<svg"));
    assert!(!bench.path("m.broad.tuning").exists());

    // The model is the one that these settings give.
    let winner = &found["winner"];
    let fit = format!(
        "fit ok.csv --target y --model f.broad --recipe {} --enhancement-nodes {} --ridge {} \
         --sigma {} {}",
        winner["recipe"].as_str().unwrap(),
        winner["enhancement_nodes"],
        winner["ridge"],
        winner["sigma"],
        match winner["gain"].as_f64() {
            Some(gain) => format!("--gain {gain}"),
            None => "--feature-groups 2 --feature-nodes 3".into(),
        }
    );
    bench.run(&fit).ok();
    let bytes = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(bytes("m.broad") == bytes("f.broad"));

    let text = bench.run(&format!("{command} --top 3 --loss huber --score 3")).ok();
    assert!(text.contains("54 settings compared") && text.contains("exact"), "{text}");
}

#[test]
fn tune_goes_on_after_an_interruption() {
    let bench = Bench::new();
    let command = format!("tune ok.csv --target y --model m.broad {SMALL}");
    bench.run(&format!("{command} --keep")).ok();
    let model = std::fs::read(bench.path("m.broad")).unwrap();
    let progress = bench.read("m.broad.tuning");
    assert_eq!(progress.lines().count(), 4);
    // As if the command had been killed while it wrote the last line.
    bench.write("m.broad.tuning", &progress[..progress.len() - 30]);
    bench.run(&command).ok();
    assert!(std::fs::read(bench.path("m.broad")).unwrap() == model);
    assert!(!bench.path("m.broad.tuning").exists());

    bench.write("m.broad.tuning", &progress);
    bench.run(&format!("{command} --seed 3")).fails(65, &["m.broad.tuning", "another search"]);
    bench.run(&format!("{command} --seed 3 --progress other")).ok();
    // Nothing is lost with the file of a search that had not come to anything.
    let head = progress.lines().next().unwrap();
    bench.write("m.broad.tuning", &format!("{head}\n"));
    bench.run(&format!("{command} --seed 3")).ok();
}

#[test]
fn tune_refuses_what_makes_no_sense() {
    let bench = Bench::new();
    let fails = |options: &str, code: i32, parts: &[&str]| {
        bench.run(&format!("tune ok.csv --target y --model m.broad {options}")).fails(code, parts);
        bench.assert_nothing_written();
    };
    fails("--enhancement-nodes 20..10", 2, &["100..1000/100"]);
    fails("--enhancement-nodes ten", 2, &["100..1000/100"]);
    fails("--enhancement-nodes 1..9/0", 2, &["100..1000/100"]);
    fails("--enhancement-nodes 1..999999999", 2, &["100..1000/100"]);
    fails("--ridges 0", 2, &["positive numbers"]);
    fails("--ridges 1..2/1", 2, &["positive numbers"]);
    fails("--members 0", 2, &["members"]);
    fails("--fan-ins two", 2, &["all,2,5"]);
    fails("--fan-ins 0", 2, &["fan-ins"]);
    fails("--score 1", 2, &["folds"]);
    fails("--score 121", 2, &["121", "120"]);
    fails("--recipes rich --feature-groups 3", 2, &["feature-groups", "classic"]);
    fails("--recipes plain --gains 1", 2, &["gains", "rich"]);
    fails("--loss squared --sigmas 1", 2, &["sigmas"]);
    fails("--enhancement-nodes 100000", 2, &["65536"]);
    bench.run("tune ok.csv --target z --model m.broad").fails(65, &["z"]);
    bench.run("tune none.csv --target y --model m.broad").fails(66, &["none.csv"]);
}

#[test]
fn lists_are_for_recipes_that_have_such_a_thing() {
    let bench = Bench::new();
    let tune = |options: &str| {
        let rest = "--members 1 --enhancement-nodes 10 --ridges 1e-3 --sigmas 1";
        bench.run(&format!("tune ok.csv --target y --model m.broad {options} {rest} --json"))
    };
    tune("--recipes elm --gains 1").fails(2, &["gains", "rich, convolution or recurrent"]);
    tune("--recipes recurrent --fan-ins 2").fails(2, &["fan-ins", "rich"]);
    tune("--recipes elm --feature-groups 2").fails(2, &["feature-groups", "fuzzy"]);
    let recurrent = tune("--recipes recurrent --gains 0.5,1").json();
    assert_eq!(recurrent["n_settings"], 2);
    let fuzzy = tune("--recipes fuzzy --feature-groups 1,2 --feature-nodes 3").json();
    assert_eq!(fuzzy["n_settings"], 2);
}
