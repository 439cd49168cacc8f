//! The rounds of a benchmark in a file, and what docs/benchmarks.md says of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use broadlearn_report::{Chart, Series};
use serde_json::{Value, json};

use super::figures::{Figures, Spread};

/// All that was measured: enough to write the document again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rounds {
    pub(super) threads: usize,
    /// What else the machine did in the beginning: its load average.
    pub(super) load: f64,
    /// The runs of each program.
    pub(super) programs: BTreeMap<String, Vec<Figures>>,
    /// Lines of Markdown that a program has printed itself.
    pub(super) text: Vec<String>,
}

impl Rounds {
    pub(super) fn runs(&self, program: &str) -> &[Figures] {
        self.programs.get(program).map_or(&[], Vec::as_slice)
    }

    /// A figure of the last run.
    pub(super) fn last(&self, program: &str, name: &str) -> Option<f64> {
        self.runs(program).last()?.get(name).copied()
    }

    fn file(folder: &Path, name: &str) -> PathBuf {
        folder.join(format!("{name}.rounds.json"))
    }

    pub(super) fn save(&self, folder: &Path, name: &str) -> Result<()> {
        let file = Self::file(folder, name);
        let value = json!({
            "threads": self.threads,
            "load": self.load,
            "programs": self.programs,
            "text": self.text,
        });
        fs::create_dir_all(folder)?;
        fs::write(&file, format!("{value:#}\n"))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// What was kept of an earlier round.
    pub(super) fn load(folder: &Path, name: &str) -> Result<Self> {
        let file = Self::file(folder, name);
        let text = fs::read_to_string(&file)
            .with_context(|| format!("nothing kept of `{name}`: no {}", file.display()))?;
        let value: Value = serde_json::from_str(&text)
            .with_context(|| format!("{} is damaged", file.display()))?;
        let runs = |runs: &Value| -> Vec<Figures> {
            let figures = |run: &Value| -> Figures {
                let pairs = run.as_object().into_iter().flatten();
                pairs.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
            };
            runs.as_array().into_iter().flatten().map(figures).collect()
        };
        let programs = value["programs"].as_object().into_iter().flatten();
        let lines = value["text"].as_array().into_iter().flatten();
        Ok(Self {
            threads: value["threads"].as_u64().unwrap_or(0) as usize,
            load: value["load"].as_f64().unwrap_or(0.0),
            programs: programs.map(|(name, value)| (name.clone(), runs(value))).collect(),
            text: lines.filter_map(|line| line.as_str().map(str::to_owned)).collect(),
        })
    }
}

/// What is said of a benchmark: Markdown, and a picture.
pub(super) struct Told {
    pub(super) text: String,
    pub(super) picture: Option<Chart>,
}

/// Ratios as points with their spread, one beside the other.
pub(super) fn ratios(title: &str, what: &str, all: &[(String, Option<Spread>)]) -> Chart {
    let known: Vec<(&String, Spread)> =
        all.iter().filter_map(|(name, spread)| Some((name, (*spread)?))).collect();
    let at = |place: usize| place as f64;
    Chart::new(title)
        .y_label(what)
        .log_y()
        .categories(known.iter().map(|(name, _)| name.as_str()))
        .series(Series::whiskers(
            "all rounds",
            known.iter().enumerate().map(|(i, (_, s))| (at(i), s.least, s.most)),
        ))
        .series(Series::points(
            "median",
            known.iter().enumerate().map(|(i, (_, s))| (at(i), s.median)),
        ))
        .h_line("equal", 1.0)
}

/// Puts a text between the markers of this name: `<!-- bench:name -->` and `<!-- /bench:name -->`. What stands around
/// them stays.
pub(super) fn replaced(document: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- bench:{name} -->"), format!("<!-- /bench:{name} -->"));
    let Some((before, rest)) = document.split_once(&begin) else {
        bail!("no `{begin}` in the document");
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("no `{end}` behind `{begin}` in the document");
    };
    Ok(format!("{before}{begin}\n{}\n{end}{after}", text.trim_end()))
}

/// Writes what is said of a benchmark into the folder of the documents.
pub(super) fn write(docs: &Path, name: &str, told: &Told) -> Result<()> {
    let file = docs.join("benchmarks.md");
    let document =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut text = told.text.trim_end().to_owned();
    if let Some(picture) = &told.picture {
        let picture_file = format!("bench-{name}.svg");
        fs::write(docs.join(&picture_file), picture.to_svg())
            .with_context(|| format!("cannot write {picture_file}"))?;
        text += &format!("\n\n![{name}]({picture_file})");
    }
    fs::write(&file, replaced(&document, name, &text)?)
        .with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_around_the_markers_stays() {
        let document = "before\n<!-- bench:a -->\nold\n<!-- /bench:a -->\nafter <!-- bench:b -->";
        let new = replaced(document, "a", "| new |\n\n").map_err(|error| error.to_string());
        let expected =
            "before\n<!-- bench:a -->\n| new |\n<!-- /bench:a -->\nafter <!-- bench:b -->";
        assert_eq!(new.as_deref(), Ok(expected));
        assert!(replaced(document, "b", "").is_err());
        assert!(replaced(document, "c", "").is_err());
    }

    #[test]
    fn rounds_come_back_as_they_were_kept() {
        let folder = std::env::temp_dir().join(format!("xtask-rounds-{}", std::process::id()));
        let run = Figures::from([("seconds".to_owned(), 1.25), ("tiny".to_owned(), 1e-12)]);
        let programs = BTreeMap::from([("ours".to_owned(), vec![run.clone(), run])]);
        let rounds = Rounds { threads: 2, load: 0.25, programs, text: vec!["| a |".into()] };
        rounds.save(&folder, "test").map_err(|error| error.to_string()).unwrap_or_default();
        let back = Rounds::load(&folder, "test").map_err(|error| error.to_string());
        assert_eq!(back, Ok(rounds));
        let _ = fs::remove_dir_all(folder);
    }
}
