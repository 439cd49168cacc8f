//! The library against other broad learners, with as many nodes.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::document::{Rounds, Told, ratios};
use super::figures::{Spread, ours, shown, theirs};
use super::speed::{head, table};
use super::{Machine, Options, example, mnist_folder};
use crate::venv;

const PACKAGES: [&str; 2] = ["tbls", "rvfln"];
/// Enhancement nodes: the packages hold all of U in memory, several times.
const NODES: &str = "1000";
/// The share of wrong labels, as everywhere with MNIST.
const WRONG: &str = "0.2";

pub(super) fn measure(options: &Options) -> Result<Rounds> {
    let (folder, python) = (mnist_folder()?, venv::ensure_peers()?);
    let (program, threads) = (example("mnist")?, options.threads(None));
    let with = |mut command: Command, words: &[&str]| {
        command.args(words).args(["--nodes", NODES]);
        command
    };
    let mine = |words: &[&str]| {
        let mut command = ours(&program, threads);
        command.arg(&folder);
        with(command, words)
    };
    let other = |package: &str, words: &[&str]| {
        let mut command = theirs(&python, "broad", threads);
        command.arg(Path::new(&folder)).arg(package);
        with(command, words)
    };
    options.in_turn(
        threads,
        &mut [
            ("broadlearn", &mut || mine(&[])),
            ("tbls", &mut || other("tbls", &[])),
            ("rvfln", &mut || other("rvfln", &[])),
            ("broadlearn, wrong labels", &mut || mine(&["--wrong", WRONG, "--sigma", "0.5"])),
            ("tbls, wrong labels", &mut || other("tbls", &["--wrong", WRONG])),
            ("rvfln, wrong labels", &mut || other("rvfln", &["--wrong", WRONG])),
        ],
    )
}

pub(super) fn tell(rounds: &Rounds, _: Option<Machine>) -> Told {
    let mine = rounds.runs("broadlearn");
    let own = ["building", "solving"];
    let mut rows = vec![vec![
        "broadlearn".to_owned(),
        shown(Spread::of(mine, &own)),
        "1.00".to_owned(),
        shown(Spread::of(mine, &["peak_mb"])),
        shown(Spread::of(mine, &["accuracy"])),
        shown(Spread::of(rounds.runs("broadlearn, wrong labels"), &["accuracy"])),
    ]];
    let mut spreads = Vec::new();
    for package in PACKAGES {
        let runs = rounds.runs(package);
        let pairs = runs.iter().zip(mine);
        let ratio = pairs.map(|(theirs, ours)| {
            let seconds: Option<f64> = own.iter().map(|name| ours.get(*name).copied()).sum();
            Some(theirs.get("fitting")? / seconds?)
        });
        let ratio = ratio.collect::<Option<Vec<f64>>>().and_then(|ratios| Spread::over(&ratios));
        rows.push(vec![
            package.to_owned(),
            shown(Spread::of(runs, &["fitting"])),
            shown(ratio),
            shown(Spread::of(runs, &["peak_mb"])),
            shown(Spread::of(runs, &["accuracy"])),
            shown(Spread::of(rounds.runs(&format!("{package}, wrong labels")), &["accuracy"])),
        ]);
        spreads.push((package.to_owned(), ratio));
    }
    let title = head(rounds, "broadlearn");
    let columns = [
        &title,
        "fit, s",
        "this / broadlearn",
        "memory, MB",
        "accuracy, %",
        "with 20 % wrong labels",
    ];
    let picture = ratios("Other broad learners", "time of a fit, this / broadlearn", &spreads);
    Told { text: table(&columns, &rows), picture: Some(picture) }
}
