//! The progress of a search in a file: a line for its key, then one for each network that is done.

use super::judge::Judged;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    broadlearn_tuning: u32,
    key: String,
}

const VERSION: u32 = 1;

/// A network by its number in the grid, and its settings in order.
#[derive(Serialize, Deserialize)]
struct Line {
    network: usize,
    judged: Vec<Option<Judged>>,
}

pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// What is known already, by the number of the network.
pub(super) type Known = BTreeMap<usize, Vec<Option<Judged>>>;

impl Journal {
    /// Opens or begins the file of the search with this key. A last line that was cut short is dropped.
    pub(super) fn open(path: &Path, key: &str) -> Result<(Self, Known)> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(|error| Error::cannot_create(path, error))?;
        let name = || path.display().to_string();
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| Error::io(name(), "read", error))?;
        let head = Head { broadlearn_tuning: VERSION, key: key.to_owned() };
        let mut first = serde_json::to_vec(&head).unwrap_or_default();
        first.push(b'\n');

        let (mut known, mut good) = (Known::new(), 0);
        if !first.starts_with(&text) {
            let mut lines = text.split_inclusive(|&byte| byte == b'\n');
            let found = lines.next().unwrap_or_default();
            let Ok(head) = serde_json::from_slice::<Head>(found) else {
                return Err(Error::data("something else than the progress of a search")
                    .at(name())
                    .expected("a file that a search has left, or none")
                    .advice("name another file with --progress"));
            };
            let is_other = head.broadlearn_tuning != VERSION || head.key != key;
            let mut lines = lines.peekable();
            if is_other && lines.peek().is_some() {
                return Err(Error::data("the progress of another search")
                    .at(name())
                    .expected("that of the same rows, grid, loss, score and seed")
                    .advice("remove the file to begin anew, or name another one with --progress"));
            }
            // Of another search that had not come to anything nothing is lost.
            good = if is_other { 0 } else { found.len() };
            for line in lines {
                let Ok(Line { network, judged }) = serde_json::from_slice(line) else { break };
                if line.last() != Some(&b'\n') {
                    break;
                }
                known.insert(network, judged);
                good += line.len();
            }
        }
        let mut journal = Self { file, path: path.to_owned() };
        let rewound = journal.file.set_len(good as u64).and_then(|()| {
            journal.file.seek(SeekFrom::End(0))?;
            if good == 0 { journal.file.write_all(&first) } else { Ok(()) }
        });
        rewound.map_err(|error| Error::io(name(), "write", error))?;
        Ok((journal, known))
    }

    /// Adds a network that is done, in one write.
    pub(super) fn add(&mut self, network: usize, judged: &[Option<Judged>]) -> Result<()> {
        let line = Line { network, judged: judged.to_vec() };
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        let written = self.file.write_all(&text);
        written.map_err(|error| Error::io(self.path.display().to_string(), "write", error))
    }
}
