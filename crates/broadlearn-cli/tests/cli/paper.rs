use crate::bench::Bench;
use std::fmt::Write;

/// A table of the size of Bodyfat, and its folder.
fn bench_with_bodyfat() -> Bench {
    let bench = Bench::new();
    let mut table: String =
        (1..=14).fold(String::new(), |head, i| head + &format!("x{i},")) + "y\n";
    for i in 0..252_u32 {
        let inputs: Vec<f64> = (1..=14).map(|j| f64::from((i * (j + 2) + i * i) % 37)).collect();
        inputs.iter().for_each(|x| write!(table, "{x},").unwrap());
        writeln!(table, "{}", inputs[0] - 0.5 * inputs[3]).unwrap();
    }
    bench.write("bodyfat.csv", &table);
    bench
}

#[test]
fn paper_fills_tables_and_goes_on_where_it_was() {
    let bench = bench_with_bodyfat();
    let command = "paper table1 table2 --data . --sets bodyfat --seeds 2 --out out";
    let found = bench.run(&format!("{command} --json")).json();
    assert_eq!(found["missing"].as_array().unwrap().len(), 0);
    assert!(found["mode"].as_str().unwrap().contains("2 seeds"));
    let sets = &found["experiments"]["table1"]["tables"][0]["rows"];
    assert_eq!(sets[0]["rows"], "252 / 252");
    let table = &found["experiments"]["table2"]["tables"][0]["rows"];
    assert_eq!(table.as_array().unwrap().len(), 4);
    assert_eq!(table[1]["paper"], "0.0040 ± 0.0007");
    assert!(table[1]["random splits"].as_str().unwrap().contains('±'));

    // Two versions of the set, three methods, two kinds of splits, two seeds, three measures.
    let csv = bench.read("out/table2.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 3 * 2 * 2 * 3);
    let text = bench.read("out/table2.md");
    let page = bench.read("out/paper.html");
    assert!(page.contains("Table II") && page.contains("0.0040 ± 0.0007"));

    let journal = bench.read("out/journal.jsonl");
    assert_eq!(journal.lines().count(), 1 + 24);
    // As if the command had been killed while it wrote a line.
    bench.write("out/journal.jsonl", &journal[..journal.len() - 30]);
    let printed = bench.run(command).ok();
    assert_eq!(bench.read("out/journal.jsonl").lines().count(), 1 + 24);
    assert_eq!(bench.read("out/table2.md"), text);
    assert!(printed.contains(&text), "{printed}");
    assert_eq!(bench.read("out/paper.html"), page);
}

#[test]
fn paper_names_what_is_missing_and_how_to_get_it() {
    let bench = bench_with_bodyfat();
    let outcome = bench.run("paper table2 --data . --sets quake --out out");
    assert_eq!(outcome.code, 66);
    assert!(outcome.stderr.contains("quake.csv or quake/quake.csv"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("cargo xtask data quake"), "{}", outcome.stderr);
    let outcome = bench.run("paper table4 --data . --out out");
    assert_eq!(outcome.code, 66);
    assert!(outcome.stderr.contains("train-images-idx3-ubyte.gz"), "{}", outcome.stderr);

    let outcome = bench.run("paper table8 --data . --out out");
    assert_eq!(outcome.code, 66);
    assert!(outcome.stderr.contains("bci_iv_2b/bci_iv_2b.npz"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("BCI Competition IV"), "{}", outcome.stderr);

    // What is there is used, the rest is named, in the page as well.
    let outcome = bench.run("paper table1 --data . --out out");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("Bodyfat") && !outcome.stdout.contains("Quake"));
    assert!(outcome.stderr.contains("cargo xtask data quake"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("UCI Wireless"), "{}", outcome.stderr);
    assert!(bench.read("out/paper.html").contains("cargo xtask data quake"));

    let outcome = bench.run("paper table1 --data . --sets iris --out out");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("bodyfat"), "{}", outcome.stderr);
}

#[test]
fn paper_refuses_a_set_of_another_size_and_a_foreign_journal() {
    let bench = bench_with_bodyfat();
    bench.write("quake.csv", "a,b,c,y\n1,2,3,4\n2,3,4,5\n");
    let outcome = bench.run("paper table1 --data . --sets quake --out out");
    assert_eq!(outcome.code, 65);
    assert!(outcome.stderr.contains("expected 2178"), "{}", outcome.stderr);
    bench.write("out/journal.jsonl", "notes\n");
    let outcome = bench.run("paper table1 --data . --sets bodyfat --out out");
    assert_eq!(outcome.code, 65);
    assert_eq!(bench.read("out/journal.jsonl"), "notes\n");
}
