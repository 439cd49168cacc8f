//! The paper's thirteen sets: what Table I says of them, their files, their splits.

use crate::folder::Folder;
use broadlearn::data::{ReadOptions, Roles, TableReader, Targets, Task, TrainingData, split};
use broadlearn::{Error, Result, unobserved};
use std::io::Cursor;

/// A set of Table I.
#[derive(Debug)]
pub(crate) struct Set {
    /// The name of its files and of its folder, and what `--sets` calls it.
    pub(crate) id: &'static str,
    /// What the tables call it.
    pub(crate) name: &'static str,
    pub(crate) files: &'static [&'static str],
    pub(crate) target: &'static str,
    pub(crate) task: Task,
    /// The paper's numbers of training and test rows, inputs and classes.
    pub(crate) rows: (usize, usize),
    pub(crate) inputs: usize,
    pub(crate) classes: Option<usize>,
    /// Rows that are left out, counted from 0.
    pub(crate) without: &'static [usize],
    /// Whether the set comes with training and test rows.
    pub(crate) given_split: bool,
}

const fn regression(
    id: &'static str,
    name: &'static str,
    rows: (usize, usize),
    inputs: usize,
) -> Set {
    Set {
        id,
        name,
        files: &[],
        target: "last",
        task: Task::Regression,
        rows,
        inputs,
        classes: None,
        without: &[],
        given_split: false,
    }
}

const fn classification(
    id: &'static str,
    name: &'static str,
    rows: (usize, usize),
    inputs: usize,
    classes: usize,
) -> Set {
    let set = regression(id, name, rows, inputs);
    Set { task: Task::Classification, classes: Some(classes), ..set }
}

pub(crate) const AIRFOIL: Set = regression("airfoil", "Airfoil", (1002, 501), 5);
pub(crate) const BODYFAT: Set = regression("bodyfat", "Bodyfat", (168, 84), 14);
/// Without the rows whose targets contradict the formula by which all others were computed.
pub(crate) const SOUND_BODYFAT: Set = Set {
    name: "Bodyfat, 248 rows",
    rows: (165, 83),
    without: &[47, 75, 95, 181],
    ..regression("bodyfat", "", (168, 84), 14)
};
pub(crate) const CLEVELAND: Set =
    Set { target: "chol", ..regression("cleveland", "Cleveland, chol", (202, 101), 13) };
pub(crate) const CLEVELAND_NUM: Set =
    Set { target: "num", ..regression("cleveland", "Cleveland, num", (202, 101), 13) };
pub(crate) const FORESTFIRES: Set = regression("forestfires", "Forestfires", (345, 172), 12);
pub(crate) const MORTGAGE: Set = regression("mortgage", "Mortgage", (699, 350), 15);
pub(crate) const QUAKE: Set = regression("quake", "Quake", (1452, 726), 3);
pub(crate) const WEATHER_IZMIR: Set = regression("weather_izmir", "Weather Izmir", (974, 487), 9);
pub(crate) const BALANCE_SCALE: Set =
    classification("balance_scale", "Balance Scale", (417, 208), 4, 3);
pub(crate) const CHESS: Set = classification("chess", "Chess", (2131, 1065), 36, 2);
pub(crate) const DIABETES: Set = classification("diabetes_pima", "Diabetes", (512, 256), 8, 2);
pub(crate) const ECOLI: Set = classification("ecoli", "Ecoli", (222, 114), 7, 8);
pub(crate) const HORSE_COLIC: Set = Set {
    files: &["horse_colic_train", "horse_colic_test"],
    given_split: true,
    ..classification("horse_colic", "Horse Colic", (300, 68), 27, 2)
};
pub(crate) const WIRELESS: Set = classification("wireless", "Wireless", (1332, 668), 7, 4);

/// The sets in the order of Table I.
pub(crate) static ALL: [&Set; 13] = [
    &AIRFOIL,
    &BODYFAT,
    &CLEVELAND,
    &FORESTFIRES,
    &MORTGAGE,
    &QUAKE,
    &WEATHER_IZMIR,
    &BALANCE_SCALE,
    &CHESS,
    &DIABETES,
    &ECOLI,
    &HORSE_COLIC,
    &WIRELESS,
];

/// How training and test rows are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// One split for all networks: the given one, or that of seed 0.
    Fixed,
    /// Another split for every network.
    Random,
}

impl Split {
    pub(crate) const ALL: [Self; 2] = [Self::Fixed, Self::Random];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Random => "random",
        }
    }
}

/// A set in memory.
pub(crate) struct Table {
    pub(crate) set: &'static Set,
    pub(crate) data: TrainingData,
    /// The least target and the range of all of them: 0 and 1 for classes.
    pub(crate) span: (f64, f64),
    /// Tells files with other contents apart.
    pub(crate) fingerprint: u64,
}

impl Table {
    /// All rows of a set, those of its second file after those of its first.
    pub(crate) fn read(folder: &Folder, set: &'static Set) -> Result<Self> {
        let mut text = String::new();
        let own = [set.id];
        let files = if set.files.is_empty() { &own[..] } else { set.files };
        for file in files {
            let path = folder.find(set.id, &format!("{file}.csv"))?;
            let more = std::fs::read_to_string(&path)
                .map_err(|error| Error::io(path.display().to_string(), "read", error))?;
            let rows = if text.is_empty() {
                &more
            } else {
                more.split_once('\n').map_or("", |(_, rows)| rows)
            };
            text.push_str(rows);
        }
        let fingerprint = fingerprint(text.as_bytes());
        let place = |error: Error| error.within(&format!("set {}", set.id));
        let bytes = Box::new(Cursor::new(text));
        let mut reader =
            TableReader::from_reader(set.id, bytes, &ReadOptions::default()).map_err(place)?;
        let roles = Roles { task: Some(set.task), ..Roles::target(set.target) };
        let data = TrainingData::read(&mut reader, &roles, &mut unobserved).map_err(place)?;
        let expected = set.rows.0 + set.rows.1 + set.without.len();
        if data.len() != expected {
            return Err(Error::data(format!("{} rows", data.len()))
                .at(format!("set {}", set.id))
                .expected(format!("{expected}, as in the paper's Table I")));
        }
        let all: Vec<usize> = (0..data.len()).collect();
        let span = match data.samples(&data.schema(&all)?, &all)?.targets {
            Targets::Classes(_) => (0.0, 1.0),
            Targets::Values(y) => {
                let values = || y.col(0).iter().copied();
                let least = values().fold(f64::INFINITY, f64::min);
                (least, values().fold(f64::NEG_INFINITY, f64::max) - least)
            }
        };
        Ok(Self { set, data, span, fingerprint })
    }

    /// Training and test rows of a run.
    pub(crate) fn rows(&self, division: Split, seed: u64) -> (Vec<usize>, Vec<usize>) {
        let set = self.set;
        let kept: Vec<usize> =
            (0..self.data.len()).filter(|row| !set.without.contains(row)).collect();
        let tests = set.rows.1;
        if division == Split::Fixed && set.given_split {
            let (train, test) = kept.split_at(kept.len() - tests);
            return (train.to_vec(), test.to_vec());
        }
        let seed = if division == Split::Fixed { 0 } else { seed };
        let (train, test) = split(kept.len(), tests as f64 / kept.len() as f64, seed);
        let numbers = |places: Vec<usize>| places.into_iter().map(|place| kept[place]).collect();
        (numbers(train), numbers(test))
    }
}

/// A short name for bytes (FNV-1a, 64 bits): equal ones have the same, others most likely not.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
