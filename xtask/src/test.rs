//! `cargo xtask test`: the one command that people and CI run.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{data, licences, run, venv};

/// For the list of commands.
pub(crate) const SUMMARY: &str = "check everything: format, lints, docs, tests, licences";

/// For `cargo xtask test --help`.
pub(crate) const HELP: &str = "\
cargo xtask test [--quick]

Runs, and stops at the first failure:
  format     cargo fmt --check
  lints      cargo clippy, warnings are errors
  docs       cargo doc, warnings are errors
  python     target/venv from xtask/requirements.txt
  data       the small public data sets into data/
  tests      cargo test, doc tests too
  licences   the rules of deny.toml

  --quick   without docs and licences

Tests get BROADLEARN_PYTHON, the environment's Python, and BROADLEARN_DATA, the folder of data sets:
that variable if set, and nothing is fetched then; else data/.";

/// A step: its name, whether `--quick` keeps it, and what it does.
type Step<'a> = (&'static str, bool, Box<dyn FnMut() -> Result<()> + 'a>);

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut quick = false;
    for argument in arguments {
        match argument.as_str() {
            "--quick" => quick = true,
            _ => bail!("no option '{argument}'\n\n{HELP}"),
        }
    }

    let mut tally = Tally::default();
    let mut steps: Vec<Step<'_>> = vec![
        ("format", true, Box::new(format)),
        ("lints", true, Box::new(lints)),
        ("docs", false, Box::new(docs)),
        ("python", true, Box::new(|| venv::ensure().map(drop))),
        ("data", true, Box::new(data::ensure_small)),
        ("tests", true, Box::new(|| tests(&mut tally))),
        ("licences", false, Box::new(licences::check)),
    ];
    steps.retain(|(_, kept, _)| *kept || !quick);

    let start = Instant::now();
    let count = steps.len();
    for (i, (name, _, step)) in steps.iter_mut().enumerate() {
        println!("\n==> {}/{count} {name}", i + 1);
        let begun = Instant::now();
        step().with_context(|| {
            format!("FAILED at step {}/{count} {name} after {}", i + 1, seconds(begun.elapsed()))
        })?;
        println!("<== {name} ok, {}", seconds(begun.elapsed()));
    }
    drop(steps);

    let Tally { passed, failed, ignored } = tally;
    println!("\n{passed} passed, {failed} failed, {ignored} skipped");
    println!("xtask test: all {count} steps ok in {}", seconds(start.elapsed()));
    Ok(())
}

fn format() -> Result<()> {
    run::run(&mut run::cargo(&["fmt", "--all", "--check"]))
}

fn lints() -> Result<()> {
    run::run(&mut run::cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))
}

fn docs() -> Result<()> {
    run::run(
        run::cargo(&["doc", "--workspace", "--no-deps", "--all-features"])
            .env("RUSTDOCFLAGS", "-Dwarnings"),
    )
}

fn tests(tally: &mut Tally) -> Result<()> {
    let mut command = run::cargo(&["test", "--workspace", "--all-features"]);
    command.env("BROADLEARN_PYTHON", venv::ensure()?);
    if let Some(folder) = data::folder()? {
        command.env("BROADLEARN_DATA", folder);
    }
    run::run_seeing(&mut command, |line| tally.see(line))?;
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The tests of all binaries together; cargo counts those of each one.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`; others are nothing.
    fn see(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = counts.split([' ', ';']).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tally_adds_the_binaries() {
        let mut tally = Tally::default();
        tally.see("test a::b ... ok");
        tally.see("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tally.see("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out");
        assert_eq!(tally, Tally { passed: 7, failed: 2, ignored: 1 });
    }
}
