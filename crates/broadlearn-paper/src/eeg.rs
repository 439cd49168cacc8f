//! Data set 2b of BCI Competition IV: trials of imagined movements of the left or the right hand, as spectra.

use crate::folder::Folder;
use crate::score::Rows;
use crate::sets::fingerprint;
use broadlearn::data::{Arrays, Kind, Schema, TargetSchema, Targets};
use broadlearn::faer::Mat;
use broadlearn::{Error, Result};
use broadlearn_signal::{Butterworth, Dropped, Features, Trial, Trials, Welch, Window};
use std::path::PathBuf;

/// Its name among the sets.
pub(crate) const SET: &str = "bci_iv_2b";
/// All trials as recorded, or the part of them that was restored from filtered ones.
const FILES: [&str; 2] = ["bci_iv_2b.npz", "bci_iv_2b_restored_int16.npz"];

pub(crate) const SUBJECTS: [&str; 9] =
    ["B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B09"];
/// Three for training (T), two for evaluation (E).
const SESSIONS: [&str; 5] = ["01T", "02T", "03T", "04E", "05E"];
pub(crate) const TRAINING_SESSIONS: usize = 3;

const CHANNELS: [&str; 3] = ["C3", "Cz", "C4"];
/// The part of a trial that is used, in seconds after the cue.
const PART: (f64, f64) = (0.5, 2.5);
const BAND: (f64, f64) = (8.0, 35.0);
/// That of `broadlearn psd`; the paper does not say.
const ORDER: usize = 4;
/// A segment and what it shares with the one before, in seconds.
const SEGMENT: (f64, f64) = (0.25, 0.125);
const TRANSFORM: usize = 256;

/// The file of the trials, or an error that says how to get it.
pub(crate) fn find(folder: &Folder) -> Result<PathBuf> {
    match folder.find(SET, FILES[0]) {
        Ok(path) => Ok(path),
        Err(error) => folder.find(SET, FILES[1]).map_err(|_| error),
    }
}

/// Whether a file holds the restored trials.
pub(crate) fn is_restored(path: &std::path::Path) -> bool {
    path.ends_with(FILES[1])
}

/// The spectra of the trials of a session, and the hands.
struct Session {
    x: Mat<f64>,
    classes: Vec<u32>,
}

/// All sessions of a subject.
pub(crate) struct Subject {
    pub(crate) fingerprint: u64,
    sessions: Vec<Session>,
}

impl Subject {
    pub(crate) fn read(archive: &Arrays, name: &str) -> Result<Self> {
        let mut sessions = Vec::with_capacity(SESSIONS.len());
        let mut bytes = Vec::new();
        for session in SESSIONS {
            let session = read_session(archive, &format!("{name}{session}"))?;
            let values = session.x.col_iter().flat_map(|column| column.iter());
            bytes.extend(values.flat_map(|value| value.to_le_bytes()));
            bytes.extend(session.classes.iter().flat_map(|class| class.to_le_bytes()));
            sessions.push(session);
        }
        Ok(Self { fingerprint: fingerprint(&bytes), sessions })
    }

    /// The training sessions, and those for testing.
    pub(crate) fn whole(&self) -> Rows {
        let places: Vec<usize> = (0..self.sessions.len()).collect();
        self.rows(&places[..TRAINING_SESSIONS], &places[TRAINING_SESSIONS..])
    }

    /// The training sessions, each held out in turn.
    pub(crate) fn folds(&self) -> Vec<Rows> {
        let fold = |held_out: usize| {
            let others: Vec<usize> = (0..TRAINING_SESSIONS).filter(|k| *k != held_out).collect();
            self.rows(&others, &[held_out])
        };
        (0..TRAINING_SESSIONS).map(fold).collect()
    }

    fn rows(&self, train: &[usize], test: &[usize]) -> Rows {
        let part = |places: &[usize]| {
            let all = || places.iter().map(|place| &self.sessions[*place]);
            let rows: Vec<(&Mat<f64>, usize)> =
                all().flat_map(|s| (0..s.x.nrows()).map(|row| (&s.x, row))).collect();
            let columns = rows.first().map_or(0, |(x, _)| x.ncols());
            let x = Mat::from_fn(rows.len(), columns, |i, j| rows[i].0[(rows[i].1, j)]);
            (x, Targets::Classes(all().flat_map(|session| session.classes.clone()).collect()))
        };
        let classes = vec!["left".to_owned(), "right".to_owned()];
        let target =
            TargetSchema::Classification { name: "hand".into(), kind: Kind::Text, classes };
        let (train, test) = (part(train), part(test));
        Rows { schema: Schema::numeric(train.0.ncols(), target), train, test }
    }
}

/// How many trials a subject has for training, and for testing.
pub(crate) fn count(archive: &Arrays, subject: &str) -> (u64, u64) {
    let trials = |session: &str| {
        let name = format!("X_{subject}{session}");
        let found = archive.list().iter().find(|array| array.name == name);
        found.and_then(|array| array.shape.first().copied()).unwrap_or(0)
    };
    let (train, test) = SESSIONS.split_at(TRAINING_SESSIONS);
    (
        train.iter().map(|session| trials(session)).sum(),
        test.iter().map(|session| trials(session)).sum(),
    )
}

fn read_session(archive: &Arrays, session: &str) -> Result<Session> {
    let single = |name: &str| Ok(archive.numbers(name)?.1.first().copied().unwrap_or(f64::NAN));
    let (rate, scale): (Result<f64>, Result<f64>) = (single("fs"), single("scale_uV"));
    let (rate, scale) = (rate?, scale?);
    let (shape, values) = archive.numbers(&format!("X_{session}"))?;
    let (_, hands) = archive.numbers(&format!("y_{session}"))?;
    let wrong = |found: String, expected: &str| {
        Error::data(found).at(format!("{}, session {session}", archive.name())).expected(expected)
    };
    let samples = match shape[..] {
        [trials, 3, samples] if trials > 0 && trials as usize == hands.len() => samples as usize,
        _ => {
            return Err(wrong(
                format!("trials of shape {shape:?} and {} hands", hands.len()),
                "trials x 3 channels (C3, Cz, C4) x samples from the cue on, and a hand for each trial",
            ));
        }
    };
    let class = |hand: &f64| match *hand {
        1.0 => Ok(0),
        2.0 => Ok(1),
        other => Err(wrong(format!("the hand {other}"), "1 (left) or 2 (right)")),
    };
    let classes = hands.iter().map(class).collect::<Result<_>>()?;
    let channels: Vec<Vec<f64>> = values
        .chunks_exact(samples.max(1))
        .map(|channel| channel.iter().map(|value| value * scale).collect())
        .collect();
    let trials = Trials {
        name: format!("{}, session {session}", archive.name()),
        rate,
        start: 0.0,
        channels: CHANNELS.map(str::to_owned).to_vec(),
        trials: channels
            .chunks_exact(CHANNELS.len())
            .map(|samples| Trial { label: None, samples: samples.to_vec() })
            .collect(),
        dropped: Dropped::default(),
    };
    Ok(Session { x: spectra(trials)?, classes })
}

/// The paper's inputs: the part of the trials after the cue, C3 and C4, filtered both ways, the power at 129
/// frequencies of the one and of the other.
fn spectra(trials: Trials) -> Result<Mat<f64>> {
    let rate = trials.rate;
    let filter = Butterworth::band_pass(ORDER, BAND.0, BAND.1).sections(rate)?;
    let samples = |seconds: f64| (seconds * rate) as usize;
    let (segment, overlap) = (samples(SEGMENT.0), samples(SEGMENT.1));
    let welch = Welch::new(rate, Window::Hamming, segment, overlap, TRANSFORM)?;
    let wanted = ["C3".to_owned(), "C4".to_owned()];
    let trials = trials.select(&wanted)?.cut(Some(PART.0), Some(PART.1))?.filtered(&filter)?;
    let rows = Features::new(&trials, &welch, None)?.rows;
    let columns = rows.first().map_or(0, Vec::len);
    Ok(Mat::from_fn(rows.len(), columns, |i, j| rows[i][j]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use broadlearn::features::draw::{Purpose, Stream};

    #[test]
    fn inputs_are_the_spectra_of_the_filtered_parts() {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let mut trial = || {
            let mut channel = || (0..1000).map(|_| 10.0 * stream.normal()).collect::<Vec<f64>>();
            Trial { label: None, samples: vec![channel(), channel(), channel()] }
        };
        let trials = Trials {
            name: "test".into(),
            rate: 250.0,
            start: 0.0,
            channels: CHANNELS.map(str::to_owned).to_vec(),
            trials: vec![trial(), trial()],
            dropped: Dropped::default(),
        };
        let x = spectra(trials.clone()).unwrap();
        assert_eq!((x.nrows(), x.ncols()), (2, 258));
        let filter = Butterworth::band_pass(4, 8.0, 35.0).sections(250.0).unwrap();
        let welch = Welch::new(250.0, Window::Hamming, 62, 31, 256).unwrap();
        for (row, trial) in trials.trials.iter().enumerate() {
            for (channel, first) in [(0, 0), (2, 129)] {
                let part = filter.both_ways(&trial.samples[channel][125..625]).unwrap();
                let power = welch.spectrum(&part).unwrap();
                assert!((0..129).all(|j| x[(row, first + j)] == power[j]), "channel {channel}");
            }
        }
    }

    /// A subject whose right hand shows in one input.
    pub(crate) fn made_up(trials: usize) -> Subject {
        let mut stream = Stream::new(7, Purpose::Noise, 0);
        let mut session = || {
            let classes: Vec<u32> = (0..trials as u32).map(|i| i % 2).collect();
            let x = Mat::from_fn(trials, 6, |i, j| {
                stream.normal() + if j == 2 { 4.0 * f64::from(classes[i]) } else { 0.0 }
            });
            Session { x, classes }
        };
        let sessions = SESSIONS.map(|_| session()).into();
        Subject { fingerprint: 0, sessions }
    }

    #[test]
    fn test_sessions_are_in_no_fold() {
        let subject = made_up(10);
        let whole = subject.whole();
        assert_eq!((whole.train.0.nrows(), whole.test.0.nrows()), (30, 20));
        let folds = subject.folds();
        assert_eq!(folds.len(), 3);
        for (held_out, fold) in folds.iter().enumerate() {
            assert_eq!(fold.train.0.nrows(), 20);
            assert_eq!(fold.test.0, subject.sessions[held_out].x);
            let first = if held_out == 0 { 1 } else { 0 };
            assert_eq!(fold.train.0.subrows(0, 10), subject.sessions[first].x.as_ref());
        }
    }
}
