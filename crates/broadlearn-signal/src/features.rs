//! A table of features: one row for each trial, one column for each channel and frequency.

use broadlearn::{Error, Result};

use crate::trials::Trials;
use crate::welch::Welch;

/// Powers of channels at frequencies, one row for each trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// The names of the channels.
    pub channels: Vec<String>,
    /// The frequencies in Hz.
    pub frequencies: Vec<f64>,
    /// Powers: the frequencies of the first channel, then those of the next.
    pub rows: Vec<Vec<f64>>,
    /// What each trial shows, if that is known.
    pub labels: Vec<Option<String>>,
}

impl Features {
    /// The spectra of all trials, as far as they lie between two frequencies, both included.
    ///
    /// # Errors
    /// If the trials are shorter than a segment, or no frequency lies there.
    pub fn new(trials: &Trials, welch: &Welch, frequencies: Option<(f64, f64)>) -> Result<Self> {
        let all = welch.frequencies();
        let (low, high) = frequencies.unwrap_or((0.0, f64::INFINITY));
        // Frequencies are products of rounded numbers.
        let near = 1e-9 * high.min(1e9);
        let kept: Vec<usize> = (0..all.len())
            .filter(|bin| all[*bin] >= low - near && all[*bin] <= high + near)
            .collect();
        if kept.is_empty() {
            let (last, step) = (all[all.len() - 1], all.get(1).copied().unwrap_or(0.0));
            return Err(Error::setting("frequencies", format!("{low} to {high} Hz"))
                .expected(format!("some of the frequencies 0 to {last} Hz in steps of {step}")));
        }
        let mut rows = Vec::with_capacity(trials.trials.len());
        for (number, trial) in trials.trials.iter().enumerate() {
            let mut row = Vec::with_capacity(kept.len() * trial.samples.len());
            for samples in &trial.samples {
                let power = welch.spectrum(samples).map_err(|error| {
                    error.within(&format!("{}, trial {}", trials.name, number + 1))
                })?;
                row.extend(kept.iter().map(|bin| power[*bin]));
            }
            rows.push(row);
        }
        Ok(Self {
            channels: trials.channels.clone(),
            frequencies: kept.into_iter().map(|bin| all[bin]).collect(),
            rows,
            labels: trials.trials.iter().map(|trial| trial.label.clone()).collect(),
        })
    }

    /// Decimal logarithms of the powers. No power at all becomes that of the smallest number,
    /// so that the table has no infinities.
    #[must_use]
    pub fn log(mut self) -> Self {
        for value in self.rows.iter_mut().flatten() {
            *value = value.max(f64::MIN_POSITIVE).log10();
        }
        self
    }

    /// The names of the columns, such as `C3_8.79Hz`.
    pub fn names(&self) -> Vec<String> {
        // As many digits as tell the frequencies apart, at least two.
        let texts = (2..=12).map(|digits| {
            self.frequencies.iter().map(|f| format!("{f:.digits$}")).collect::<Vec<_>>()
        });
        let distinct = |texts: &Vec<String>| texts.windows(2).all(|pair| pair[0] != pair[1]);
        let texts = texts.into_iter().find(distinct).unwrap_or_default();
        let of = |channel: &String| -> Vec<String> {
            texts.iter().map(|text| format!("{channel}_{text}Hz")).collect()
        };
        self.channels.iter().flat_map(of).collect()
    }

    /// Adds the rows of other trials.
    ///
    /// # Errors
    /// If their columns are others.
    pub fn append(&mut self, other: Self, name: &str) -> Result<()> {
        if other.channels != self.channels {
            return Err(Error::data(format!("the channels {}", other.channels.join(", ")))
                .at(name)
                .expected(format!("{} as in the files before", self.channels.join(", ")))
                .advice("choose the same channels of all files with `--channels`"));
        }
        if other.frequencies != self.frequencies {
            return Err(Error::data("other frequencies")
                .at(name)
                .expected("the same sampling rate as in the files before"));
        }
        self.rows.extend(other.rows);
        self.labels.extend(other.labels);
        Ok(())
    }
}
