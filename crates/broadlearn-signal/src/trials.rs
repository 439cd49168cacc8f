//! Trials: pieces of a recording, all of one length, each with the label of what it shows.

use broadlearn::{Error, Result};

use crate::recording::{Event, Recording, list, select};
use crate::sections::Sections;

/// The event that marks a trial as rejected by who has looked at it, in GDF.
const REJECTED: &str = "1023";
/// The event that begins a trial, in GDF.
const TRIAL_BEGINS: &str = "768";

/// Trials of several channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Trials {
    /// Where they come from, for messages.
    pub name: String,
    /// Samples a second.
    pub rate: f64,
    /// The time of the first sample, in seconds after the event.
    pub start: f64,
    /// The names of the channels.
    pub channels: Vec<String>,
    /// The trials.
    pub trials: Vec<Trial>,
    /// What was left out.
    pub dropped: Dropped,
}

/// One trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What it shows, if that is known: the code of its event, or a label from the file.
    pub label: Option<String>,
    /// The samples of each channel.
    pub samples: Vec<Vec<f64>>,
}

/// How many trials were left out, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Marked as rejected.
    pub rejected: usize,
    /// With missing samples.
    pub missing: usize,
    /// Beyond the ends of the recording.
    pub outside: usize,
}

/// How trials are cut from a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The codes of the events, which become the labels.
    pub codes: Vec<String>,
    /// From so many seconds after an event, to so many.
    pub from: f64,
    /// The end; the sample at this time is not taken.
    pub to: f64,
    /// Whether trials that are marked as rejected (by the event 1023 of GDF) are kept.
    pub keep_rejected: bool,
}

impl Recording {
    /// Cuts trials at events.
    ///
    /// ```
    /// use broadlearn_signal::{Channel, Cut, Event, Recording};
    /// let samples = (0..1000).map(f64::from).collect();
    /// let channel = Channel { name: "C3".into(), unit: "uV".into(), rate: 100.0, samples };
    /// let event = |time, code: &str| Event { time, duration: 0.0, code: code.into() };
    /// let recording = Recording {
    ///     name: "made up".into(),
    ///     channels: vec![channel],
    ///     events: vec![event(1.0, "769"), event(4.0, "770"), event(9.9, "769")],
    /// };
    /// let codes = vec!["769".to_owned(), "770".to_owned()];
    /// let cut = Cut { codes, from: 0.5, to: 2.5, keep_rejected: false };
    /// let trials = recording.trials(&cut)?;
    /// assert_eq!(trials.trials.len(), 2);
    /// assert_eq!(trials.trials[1].samples[0][0], 450.0);
    /// assert_eq!(trials.dropped.outside, 1);
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the channels have different rates, the times are wrong, or a code does not occur.
    pub fn trials(&self, cut: &Cut) -> Result<Trials> {
        let rate = self.rate()?;
        let (begin, length) = span(cut.from, cut.to, rate)?;
        for code in &cut.codes {
            if !self.events.iter().any(|event| event.code == *code) {
                return Err(Error::data(format!("no event `{code}`"))
                    .at(&self.name)
                    .expected(format!("one of {}", self.list_events())));
            }
        }
        let count = self.channels.iter().map(|channel| channel.samples.len()).min().unwrap_or(0);
        let mut trials = Vec::new();
        let mut dropped = Dropped::default();
        let mut cues: Vec<&Event> =
            self.events.iter().filter(|event| cut.codes.contains(&event.code)).collect();
        cues.sort_by(|one, other| one.time.total_cmp(&other.time));
        for cue in cues {
            if !cut.keep_rejected && self.rejected(cue, cut) {
                dropped.rejected += 1;
                continue;
            }
            let first = ((cue.time * rate).round() as i64).saturating_add(begin);
            let room = count.checked_sub(length);
            let Some(first) = usize::try_from(first).ok().filter(|first| Some(*first) <= room)
            else {
                dropped.outside += 1;
                continue;
            };
            let part = |samples: &Vec<f64>| samples[first..first + length].to_vec();
            let samples = self.channels.iter().map(|channel| part(&channel.samples)).collect();
            trials.push(Trial { label: Some(cue.code.clone()), samples });
        }
        let channels = self.channels.iter().map(|channel| channel.name.clone()).collect();
        Ok(Trials { name: self.name.clone(), rate, start: cut.from, channels, trials, dropped })
    }

    /// The events and their numbers, for messages.
    pub fn list_events(&self) -> String {
        let codes = self.codes();
        if codes.is_empty() {
            return "an event (there are none)".into();
        }
        let texts: Vec<String> =
            codes.iter().map(|(code, count)| format!("{code} ({count} times)")).collect();
        list(&texts).replace('`', "")
    }

    /// Whether the trial of this cue is marked as rejected. A mark stands where the trial begins,
    /// which may be before the cue.
    fn rejected(&self, cue: &Event, cut: &Cut) -> bool {
        let begins = |event: &&Event| event.code == TRIAL_BEGINS;
        let times = || self.events.iter().filter(begins).map(|event| event.time);
        let before = times().filter(|time| *time <= cue.time).fold(f64::NEG_INFINITY, f64::max);
        let after = times().filter(|time| *time > cue.time).fold(f64::INFINITY, f64::min);
        let begin = if before.is_finite() { before } else { cue.time + cut.from.min(0.0) };
        let end = after.min(cue.time + cut.to.max(0.0));
        let marks = self.events.iter().filter(|event| event.code == REJECTED);
        let mut marks = marks.map(|mark| (mark.time, mark.time + mark.duration));
        marks.any(|(from, to)| from < end && (to > begin || from >= begin))
    }
}

/// A stretch of time as whole samples: the first and how many.
fn span(from: f64, to: f64, rate: f64) -> Result<(i64, usize)> {
    // Times beyond this are a slip, and would not fit into the numbers below.
    const LONGEST: f64 = 1e6;
    if !(from.abs() <= LONGEST && to.abs() <= LONGEST && from < to) {
        return Err(Error::setting("from, to", format!("{from} to {to} seconds"))
            .expected("two rising numbers of seconds"));
    }
    let (first, last) = ((from * rate).round() as i64, (to * rate).round() as i64);
    if last <= first {
        return Err(Error::setting("from, to", format!("{from} to {to} seconds"))
            .expected(format!("at least one sample of {} s", 1.0 / rate)));
    }
    Ok((first, last.saturating_sub(first) as usize))
}

impl Trials {
    /// How many samples a trial has.
    pub fn samples(&self) -> usize {
        let first = self.trials.first().and_then(|trial| trial.samples.first());
        first.map_or(0, Vec::len)
    }

    /// The channels of these names or numbers (counted from 1), in this order.
    ///
    /// # Errors
    /// If there is no such channel, or one is named twice.
    pub fn select(mut self, wanted: &[String]) -> Result<Self> {
        let places = select(&self.name, &self.channels, wanted)?;
        self.channels = places.iter().map(|place| self.channels[*place].clone()).collect();
        for trial in &mut self.trials {
            trial.samples = places.iter().map(|place| trial.samples[*place].clone()).collect();
        }
        Ok(self)
    }

    /// A part of each trial, by seconds after the event. Without an end all is taken up to it.
    ///
    /// # Errors
    /// If the trials do not last so long.
    pub fn cut(mut self, from: Option<f64>, to: Option<f64>) -> Result<Self> {
        let from = from.unwrap_or(self.start);
        for trial in &mut self.trials {
            let count = trial.samples.first().map_or(0, Vec::len);
            let ends = self.start + count as f64 / self.rate;
            let (begin, length) =
                span(from - self.start, to.unwrap_or(ends) - self.start, self.rate)?;
            let Some(begin) = usize::try_from(begin).ok().filter(|begin| begin + length <= count)
            else {
                let to = to.unwrap_or(ends);
                return Err(Error::setting("from, to", format!("{from} to {to} seconds"))
                    .expected(format!(
                        "times within the trials of {}, {} to {ends} s",
                        self.name, self.start
                    )));
            };
            for samples in &mut trial.samples {
                *samples = samples[begin..begin + length].to_vec();
            }
        }
        self.start = from;
        Ok(self)
    }

    /// Leaves out trials with missing samples.
    #[must_use]
    pub fn without_missing(mut self) -> Self {
        let before = self.trials.len();
        self.trials.retain(|trial| trial.samples.iter().flatten().all(|value| value.is_finite()));
        self.dropped.missing += before - self.trials.len();
        self
    }

    /// Filters each trial on its own, both ways.
    ///
    /// # Errors
    /// If the trials are too short for the filter.
    pub fn filtered(mut self, filter: &Sections) -> Result<Self> {
        for (number, trial) in self.trials.iter_mut().enumerate() {
            for samples in &mut trial.samples {
                *samples = filter.both_ways(samples).map_err(|error| {
                    error.within(&format!("{}, trial {}", self.name, number + 1))
                })?;
            }
        }
        Ok(self)
    }
}
