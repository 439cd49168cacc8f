//! The rules of `deny.toml`: allowed licences, crates.io as the only source, no wildcard versions.
//!
//! Building cargo-deny takes longer than all our checks together, so the rules that matter are
//! enforced here with the lists of the same file; cargo-deny runs too where it is installed.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::run;

/// Checks all packages that the workspace can build, for every target and with every feature.
pub(crate) fn check() -> Result<()> {
    let file = crate::root().join("deny.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let allowed = allow_list(&text).context("deny.toml: no list `allow` in [licenses]")?;

    let mut metadata = run::cargo(&["metadata", "--format-version", "1", "--all-features"]);
    println!("$ {}", run::shown(&metadata));
    let metadata: Value = serde_json::from_str(&run::output(&mut metadata)?)?;
    let packages = metadata["packages"].as_array().context("cargo metadata: no packages")?;

    let wrong: Vec<String> =
        packages.iter().flat_map(|package| complaints(package, &allowed)).collect();
    if !wrong.is_empty() {
        bail!("deny.toml forbids:\n  {}", wrong.join("\n  "));
    }
    println!("{} packages: licences and sources ok", packages.len());

    if cargo_deny_is_there() {
        run::run(&mut run::cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"]))?;
    } else {
        println!("cargo-deny is not installed: own check only");
    }
    Ok(())
}

/// What is wrong with one package of `cargo metadata`.
fn complaints(package: &Value, allowed: &[String]) -> Vec<String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let who = format!("{} {}", text("name"), text("version"));
    let mut wrong = Vec::new();

    match package["license"].as_str() {
        None => wrong.push(format!("{who}: names no licence")),
        Some(licence) => match permits(licence, allowed) {
            Ok(true) => {}
            Ok(false) => wrong.push(format!("{who}: licence {licence} is not in the allow list")),
            Err(error) => wrong.push(format!("{who}: licence '{licence}': {error}")),
        },
    }

    match package["source"].as_str() {
        // A package of the workspace.
        None => {
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                if dependency["req"] == "*" && dependency["path"].is_null() {
                    let on = dependency["name"].as_str().unwrap_or_default();
                    wrong.push(format!("{who}: any version of {on}"));
                }
            }
        }
        Some(source) if source.starts_with("registry+") && source.ends_with("/crates.io-index") => {
        }
        Some(source) => wrong.push(format!("{who}: comes from {source}, not from crates.io")),
    }
    wrong
}

/// The strings of `allow = [...]` in the section `[licenses]`.
fn allow_list(toml: &str) -> Option<Vec<String>> {
    let mut list = String::new();
    let mut section = "";
    let mut inside = false;
    for line in toml.lines() {
        // No licence has a '#' in its name.
        let line = line.split('#').next().unwrap_or_default().trim();
        if !inside && line.starts_with('[') {
            section = line;
        } else if inside {
            list += line;
        } else if let Some((key, value)) = line.split_once('=')
            && section == "[licenses]"
            && key.trim() == "allow"
        {
            inside = true;
            list += value;
        }
        if inside && list.ends_with(']') {
            return Some(list.split('"').skip(1).step_by(2).map(String::from).collect());
        }
    }
    None
}

/// Whether the allowed licences satisfy an SPDX expression (`/`, the old form of OR, included).
fn permits(expression: &str, allowed: &[String]) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let holds = parser.any()?;
    match parser.peek() {
        None => Ok(holds),
        Some(word) => bail!("'{word}' is not expected"),
    }
}

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [String],
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn skip(&mut self, word: &str) -> bool {
        let here = self.peek() == Some(word);
        self.at += usize::from(here);
        here
    }

    /// `a OR b OR ...`
    fn any(&mut self) -> Result<bool> {
        let mut holds = self.all()?;
        while self.skip("OR") {
            holds |= self.all()?;
        }
        Ok(holds)
    }

    /// `a AND b AND ...`, which binds more tightly than OR.
    fn all(&mut self) -> Result<bool> {
        let mut holds = self.one()?;
        while self.skip("AND") {
            holds &= self.one()?;
        }
        Ok(holds)
    }

    /// `( ... )`, `licence` or `licence WITH exception`.
    fn one(&mut self) -> Result<bool> {
        if self.skip("(") {
            let holds = self.any()?;
            if !self.skip(")") {
                bail!("')' is missing");
            }
            return Ok(holds);
        }
        let mut licence = self.name()?.to_string();
        if self.skip("WITH") {
            licence = format!("{licence} WITH {}", self.name()?);
        }
        Ok(self.allowed.contains(&licence))
    }

    fn name(&mut self) -> Result<&'a str> {
        match self.peek() {
            None | Some("(" | ")" | "AND" | "OR" | "WITH") => bail!("a licence is missing"),
            Some(name) => {
                self.at += 1;
                Ok(name)
            }
        }
    }
}

fn cargo_deny_is_there() -> bool {
    Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn expressions() -> Result<()> {
        let allowed = list(&["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]);
        for (expression, right) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND Zlib", true),
            ("GPL-3.0 AND Zlib OR MIT", true),
            ("GPL-3.0 AND (Zlib OR MIT)", false),
            ("(MIT OR GPL-3.0) AND Zlib", true),
            ("Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
        ] {
            assert_eq!(permits(expression, &allowed)?, right, "{expression}");
        }
        for expression in ["", "MIT OR", "(MIT", "MIT Zlib", "MIT)", "MIT WITH"] {
            assert!(permits(expression, &allowed).is_err(), "{expression}");
        }
        Ok(())
    }

    #[test]
    fn the_list_of_the_section_licenses_is_read() {
        let toml = "[bans]\nallow = [\"x\"]\n[licenses] # here\nconfidence = 1\nallow = [ # all\n \
                    \"MIT\", # one\n \"A WITH B\",\n]\n[sources]\nallow = [\"y\"]\n";
        assert_eq!(allow_list(toml), Some(list(&["MIT", "A WITH B"])));
        assert_eq!(allow_list("[licenses]\nallow = [\"MIT\"]"), Some(list(&["MIT"])));
        assert_eq!(allow_list("[bans]\nallow = [\"MIT\"]"), None);
    }

    #[test]
    fn the_file_itself_is_readable() -> Result<()> {
        let text = fs::read_to_string(crate::root().join("deny.toml"))?;
        let allowed = allow_list(&text).context("no list")?;
        assert!(permits("MIT OR Apache-2.0", &allowed)?);
        assert!(!permits("GPL-3.0-only", &allowed)?);
        Ok(())
    }

    #[test]
    fn packages_are_judged() {
        let judge = |package: Value| complaints(&package, &list(&["MIT"])).len();
        let index = "registry+anywhere/crates.io-index";
        assert_eq!(judge(json!({"license": "MIT", "source": index})), 0);
        assert_eq!(judge(json!({"license": null, "source": index})), 1);
        assert_eq!(judge(json!({"license": "GPL-3.0", "source": "git+x"})), 2);
        assert_eq!(judge(json!({"license": "MIT", "source": "registry+other"})), 1);
        let mine = |req, path: Value| {
            json!({"license": "MIT", "source": null,
                   "dependencies": [{"name": "d", "req": req, "path": path}]})
        };
        assert_eq!(judge(mine("^1", Value::Null)), 0);
        assert_eq!(judge(mine("*", Value::Null)), 1);
        assert_eq!(judge(mine("*", "/x".into())), 0);
    }
}
