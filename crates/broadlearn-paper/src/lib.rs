//! The experiments of the C-BLS paper (Zheng, Chen, Wang and Wang, "Broad Learning System Based on
//! Maximum Correntropy Criterion", Section IV), run with `broadlearn` on the paper's data.
//!
//! An experiment is a file of `experiments`: a table of what the paper says, the runs that it takes,
//! and what is made of them. The [`Laboratory`] runs them, keeps what is done in a journal, and gives
//! back a [`Section`] for each.

mod choose;
pub mod comparators;
mod contamination;
mod eeg;
mod engine;
mod experiments;
mod folder;
pub mod increments;
mod journal;
mod report;
mod score;
mod sets;
mod statistics;

pub use report::{Section, page};

use broadlearn::{Category, Error, Observer, Result};
use engine::run_all;
use experiments::{ALL, Experiment};
use folder::Folder;
use increments::Increments;
use journal::Journal;
use sets::{Set, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder of the data sets.
    pub data: PathBuf,
    /// The folder of the journal, which must be there.
    pub out: PathBuf,
    /// Fewer seeds.
    pub quick: bool,
    /// So many seeds in place of those of the mode.
    pub seeds: Option<u64>,
    /// Only these sets; all of them if empty.
    pub sets: Vec<String>,
}

/// The names of the experiments, in the order of the paper.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|experiment| experiment.name)
}

/// Runs experiments.
pub struct Laboratory {
    plan: Plan,
    journal: Journal,
}

impl Laboratory {
    /// Opens the journal.
    ///
    /// # Errors
    /// If a set is asked for that there is not, or the journal cannot be written.
    pub fn open(request: &Request) -> Result<Self> {
        let known: Vec<&str> = sets::ALL.iter().map(|set| set.id).chain(EXTRA_SETS).collect();
        if let Some(set) = request.sets.iter().find(|set| !known.contains(&set.as_str())) {
            return Err(Error::setting("sets", set).expected(known.join(", ")));
        }
        let journal = Journal::open(&request.out)?;
        let plan = Plan {
            folder: Folder::new(&request.data),
            quick: request.quick,
            seeds: request.seeds,
            sets: request.sets.clone(),
            tables: Mutex::default(),
            missing: Mutex::default(),
            mnist: LazyMnist::new(&request.data),
        };
        Ok(Self { plan, journal })
    }

    /// Runs an experiment, as far as it has not been run.
    ///
    /// # Errors
    /// If there is no such experiment, all of its data are missing, or the work was interrupted.
    pub fn run(&mut self, name: &str, observer: &mut Observer<'_>) -> Result<Section> {
        let Some(experiment) = ALL.iter().find(|experiment| experiment.name == name) else {
            return Err(
                Error::setting("experiment", name).expected(names().collect::<Vec<_>>().join(", "))
            );
        };
        let Experiment { name, title, runs, report } = experiment;
        let runs = run_all(name, runs(&self.plan)?, &mut self.journal, observer)?;
        let parts = report(&self.plan, &runs)?;
        Ok(Section { name, title, parts, runs })
    }

    /// What was missing so far, with how to get it.
    pub fn missing(&self) -> Vec<String> {
        let Ok(missing) = self.plan.missing.lock() else { return Vec::new() };
        missing.values().cloned().collect()
    }

    /// What the figures were made with, in a sentence or two.
    pub fn mode(&self) -> String {
        let runs = match (self.plan.seeds, self.plan.quick) {
            (Some(1), _) => "one seed".into(),
            (Some(seeds), _) => format!("{seeds} seeds"),
            (None, true) => "quick mode: fewer seeds than the paper has runs".into(),
            (None, false) => "full mode: as many seeds as the paper has runs".into(),
        };
        format!(
            "broadlearn {}, {runs}. Figures are means ± standard deviations over seeds; a seed stands for a \
             network and, where splits are random, for a split.",
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// Sets beside those of Table I that an experiment may be confined to.
const EXTRA_SETS: [&str; 4] = ["mnist", "mackey_glass", "sunspot_monthly", eeg::SET];

/// What an experiment has to know to plan its runs.
pub(crate) struct Plan {
    pub(crate) folder: Folder,
    pub(crate) quick: bool,
    seeds: Option<u64>,
    sets: Vec<String>,
    tables: Mutex<BTreeMap<&'static str, Arc<Table>>>,
    missing: Mutex<BTreeMap<&'static str, String>>,
    mnist: LazyMnist,
}

impl Plan {
    /// The number of seeds, which experiments state for both modes.
    pub(crate) fn seeds(&self, full: u64, quick: u64) -> u64 {
        self.seeds.unwrap_or(if self.quick { quick } else { full })
    }

    /// Whether a set is asked for.
    pub(crate) fn wants(&self, set: &str) -> bool {
        self.sets.is_empty() || self.sets.iter().any(|wanted| wanted == set)
    }

    /// A set, if it is asked for and there. That it is not is remembered.
    pub(crate) fn table(&self, set: &'static Set) -> Result<Option<Arc<Table>>> {
        if !self.wants(set.id) {
            return Ok(None);
        }
        let known = self.tables.lock().ok().and_then(|tables| tables.get(set.name).cloned());
        if known.is_some() {
            return Ok(known);
        }
        let table = self.note_missing(set.id, Table::read(&self.folder, set))?.map(Arc::new);
        if let (Some(table), Ok(mut tables)) = (&table, self.tables.lock()) {
            tables.insert(set.name, table.clone());
        }
        Ok(table)
    }

    /// Remembers what cannot be opened; other errors are errors.
    pub(crate) fn note_missing<T>(
        &self,
        set: &'static str,
        result: Result<T>,
    ) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.category() == Category::NoInput => {
                let text = match error.help() {
                    Some(help) => format!("{error} ({help})"),
                    None => error.to_string(),
                };
                if let Ok(mut missing) = self.missing.lock() {
                    missing.insert(set, text);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// MNIST, if it is asked for and there.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn mnist(&self) -> Result<LazyMnist> {
        if !self.wants("mnist") {
            return Err(Error::setting("sets", self.sets.join(",")).expected("mnist"));
        }
        self.note_missing("mnist", self.folder.find_mnist())?;
        self.folder.find_mnist().map(|_| self.mnist.clone())
    }

    /// Those of some sets that are asked for and there.
    ///
    /// # Errors
    /// If there are none.
    pub(crate) fn tables(
        &self,
        sets: impl IntoIterator<Item = &'static Set>,
    ) -> Result<Vec<Arc<Table>>> {
        let mut found = Vec::new();
        let mut wanted = Vec::new();
        for set in sets {
            if self.wants(set.id) {
                wanted.push(set);
            }
            found.extend(self.table(set)?);
        }
        match wanted.first() {
            Some(set) if found.is_empty() => match Table::read(&self.folder, set) {
                Err(error) => Err(error),
                Ok(table) => Ok(vec![Arc::new(table)]),
            },
            Some(_) => Ok(found),
            None => Err(Error::setting("sets", self.sets.join(","))
                .expected("sets that this experiment has")),
        }
    }
}

/// MNIST, read when it is first needed: 0.4 GB that runs on record do not need.
#[derive(Clone)]
pub(crate) struct LazyMnist {
    folder: Folder,
    found: Arc<Mutex<Option<Arc<Increments>>>>,
}

impl LazyMnist {
    fn new(folder: &Path) -> Self {
        Self { folder: Folder::new(folder), found: Arc::default() }
    }

    pub(crate) fn get(&self) -> Result<Arc<Increments>> {
        // A thread that panicked while it read leaves nothing behind.
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digits) = &*found {
            return Ok(digits.clone());
        }
        let digits = Arc::new(Increments::read_from(&self.folder)?);
        *found = Some(digits.clone());
        Ok(digits)
    }
}
