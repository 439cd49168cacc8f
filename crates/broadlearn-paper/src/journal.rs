//! Finished runs in a file: a line for each, written at once.

use crate::engine::Values;
use broadlearn::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The first line, so that no other file is taken for a journal.
const HEAD: &str = "{\"broadlearn_paper\":1}\n";

#[derive(Serialize, Deserialize)]
struct Line {
    experiment: String,
    key: String,
    run: String,
    values: Values,
}

/// What has been run, by experiment and key.
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    known: BTreeMap<(String, String), Values>,
}

impl Journal {
    /// Opens or begins `journal.jsonl` in a folder. A last line that was cut short is dropped.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("journal.jsonl");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|error| Error::cannot_create(&path, error))?;
        let name = || path.display().to_string();
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| Error::io(name(), "read", error))?;
        let (mut known, mut good) = (BTreeMap::new(), 0);
        if !HEAD.as_bytes().starts_with(&text) {
            let Some(lines) = text.strip_prefix(HEAD.as_bytes()) else {
                return Err(Error::data("something else than finished runs")
                    .at(name())
                    .expected("a file that `broadlearn paper` has left, or none")
                    .advice("name another folder with --out"));
            };
            good = HEAD.len();
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                let Ok(found) = serde_json::from_slice::<Line>(line) else { break };
                if line.last() != Some(&b'\n') {
                    break;
                }
                known.insert((found.experiment, found.key), found.values);
                good += line.len();
            }
        }
        let begun = file.set_len(good as u64).and_then(|()| {
            file.seek(SeekFrom::End(0))?;
            if good == 0 { file.write_all(HEAD.as_bytes()) } else { Ok(()) }
        });
        begun.map_err(|error| Error::io(name(), "write", error))?;
        Ok(Self { file, path, known })
    }

    pub(crate) fn find(&self, experiment: &str, key: &str) -> Option<&Values> {
        self.known.get(&(experiment.to_owned(), key.to_owned()))
    }

    pub(crate) fn add(
        &mut self,
        experiment: &str,
        key: &str,
        run: &str,
        values: &Values,
    ) -> Result<()> {
        let (experiment, key) = (experiment.to_owned(), key.to_owned());
        let line = Line { experiment, key, run: run.to_owned(), values: values.clone() };
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        let written = self.file.write_all(&text);
        written.map_err(|error| Error::io(self.path.display().to_string(), "write", error))?;
        self.known.insert((line.experiment, line.key), line.values);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_is_dropped_and_another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut values = Values::default();
        values.set_all("test", [Some(0.1), None]);
        let mut journal = Journal::open(folder.path()).unwrap();
        for key in ["a", "b"] {
            journal.add("table2", key, "run", &values).unwrap();
        }
        drop(journal);
        let path = folder.path().join("journal.jsonl");
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 7]).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.find("table2", "a"), Some(&values));
        assert_eq!(journal.find("table2", "b"), None);
        journal.add("table2", "b", "run", &values).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), text);
        std::fs::write(&path, "shopping list").unwrap();
        assert!(Journal::open(folder.path()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"shopping list");
    }
}
