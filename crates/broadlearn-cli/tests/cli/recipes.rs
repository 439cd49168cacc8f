//! Networks and procedures of the literature, as options of `fit`.

use crate::bench::Bench;

#[test]
fn every_recipe_is_fitted_saved_and_goes_on() {
    for recipe in
        ["direct", "elm", "structured", "manifold", "recurrent", "fuzzy", "convolution --patch 2"]
    {
        let bench = Bench::new();
        let fit = format!("fit ok.csv --target y --recipe {recipe} --enhancement-nodes 20");
        bench.run(&format!("{fit} --ridge 0.01 --sigma 2 --model m.broad")).ok();
        bench.run("predict m.broad ok.csv --out p.csv").ok();
        assert_eq!(bench.read("p.csv").lines().count(), 121, "{recipe}");
        bench.run("grow m.broad ok.csv --enhancement-nodes 5").ok();
        bench.run("learn m.broad ok.csv").ok();
        let inspected = bench.run("inspect m.broad --json").json();
        let name = recipe.split(' ').next().unwrap();
        assert_eq!(inspected["settings"]["recipe"], name, "{recipe}");
    }
}

#[test]
fn published_procedures_are_losses() {
    let bench = Bench::new();
    let fit =
        "fit ok.csv --target y --recipe direct --enhancement-nodes 20 --ridge 1e-3 --model m.broad";
    bench.run(&format!("{fit} --loss huber-weights --tuning 0.7 --steps 3")).ok();
    bench.run("learn m.broad ok.csv").ok();
    bench.run(&format!("{fit} --loss least-absolute --steps 30")).ok();
    bench.run("predict m.broad ok.csv --out p.csv").ok();
    bench.run("learn m.broad ok.csv").fails(65, &["least absolute", "--loss absolute"]);
    bench.run(&format!("{fit} --loss least-absolute --sigma 1")).fails(2, &["no kernel size"]);
    bench.run(&format!("{fit} --loss huber --steps 3")).fails(2, &["--steps", "huber-weights"]);
    bench.run(&format!("{fit} --loss least-absolute --tuning 2")).fails(2, &["--tuning"]);
    bench.run(&format!("{fit} --loss huber-weights --tuning -1")).fails(2, &["tuning", "positive"]);
    bench.run(&format!("{fit} --loss least-absolute --steps 0")).fails(2, &["steps", "at least 1"]);
    bench
        .run("tune ok.csv --target y --loss least-absolute --model t.broad")
        .fails(2, &["--loss absolute"]);
}

#[test]
fn options_of_other_recipes_are_refused() {
    let bench = Bench::new();
    let fit = "fit ok.csv --target y --model m.broad";
    bench.run(&format!("{fit} --image 2x2")).fails(2, &["image", "--recipe convolution"]);
    bench.run(&format!("{fit} --recipe convolution --image 2x")).fails(2, &["28x28"]);
    bench.run(&format!("{fit} --recipe convolution --image 2x2")).fails(2, &["image", "5 numbers"]);
    bench.run(&format!("{fit} --recipe rich --time-step 2")).fails(2, &["--recipe recurrent"]);
    bench.run(&format!("{fit} --recipe recurrent --time-step 2")).fails(2, &["divides the 5"]);
    bench.run(&format!("{fit} --recipe elm --alpha 2")).fails(2, &["structured or manifold"]);
    bench.run(&format!("{fit} --recipe manifold --beta 0")).fails(2, &["beta", "positive"]);
    bench.run(&format!("{fit} --recipe elm --feature-groups 2")).fails(2, &["feature-groups"]);
}
