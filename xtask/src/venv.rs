//! Python virtual environments under `target/`: `venv` for tests that ask NumPy and for the data, `peers-venv` for
//! benchmarks against other learning machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// The environment of tests and data.
pub(crate) fn ensure() -> Result<PathBuf> {
    make("venv", &crate::root().join("xtask").join("requirements.txt"))
}

/// The environment of the peers in benchmarks.
pub(crate) fn ensure_peers() -> Result<PathBuf> {
    make("peers-venv", &crate::root().join("xtask").join("bench").join("requirements.txt"))
}

/// Makes an environment unless it is there and made from the same Python and requirements.
/// Returns its Python.
fn make(name: &str, requirements: &Path) -> Result<PathBuf> {
    let venv = crate::root().join("target").join(name);
    let wanted = fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let (python, version) = system_python()?;
    let inside = python_of(&venv);

    // What the environment was made from, written last: a half-made one has no stamp.
    let stamp_file = venv.join("xtask.stamp");
    let stamp = format!("{version}\n{wanted}");
    if fs::read_to_string(&stamp_file).is_ok_and(|held| held == stamp) && works(&inside) {
        return Ok(inside);
    }

    if venv.exists() {
        fs::remove_dir_all(&venv).with_context(|| format!("cannot remove {}", venv.display()))?;
    }
    run::run(Command::new(python).args(["-m", "venv"]).arg(&venv))
        .context("cannot make a virtual environment (Debian: apt-get install python3-venv)")?;
    run::run(
        Command::new(&inside)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--prefer-binary", "-r"])
            .arg(requirements),
    )?;
    fs::write(&stamp_file, stamp)
        .with_context(|| format!("cannot write {}", stamp_file.display()))?;
    Ok(inside)
}

/// The machine's Python 3: its command, and its version and place.
fn system_python() -> Result<(&'static str, String)> {
    let ask = "import sys; assert sys.version_info >= (3, 9); print(sys.version, sys.prefix)";
    // Windows has no `python3` as a rule.
    for name in ["python3", "python"] {
        if let Ok(version) = run::output(Command::new(name).args(["-c", ask])) {
            return Ok((name, version));
        }
    }
    bail!("Python 3.9 or newer is needed: neither `python3` nor `python` is one")
}

fn python_of(venv: &Path) -> PathBuf {
    if cfg!(windows) {
        venv.join("Scripts").join("python.exe")
    } else {
        venv.join("bin").join("python")
    }
}

fn works(python: &Path) -> bool {
    run::output(Command::new(python).args(["-c", "import numpy"])).is_ok()
}
