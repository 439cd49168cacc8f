//! Opens any file of signals: recordings, archives of trials, tables.

use std::path::Path;

use broadlearn::data::{Arrays, Column, Kind, ReadOptions, TableReader};
use broadlearn::{Error, Result};

use crate::recording::{Channel, Event, Recording, list};
use crate::trials::{Dropped, Trial, Trials};

/// Names of arrays or columns that are understood without being told.
const RATES: [&str; 6] = ["fs", "sfreq", "srate", "rate", "sampling_rate", "fsample"];
const CHANNELS: [&str; 4] = ["channels", "ch_names", "channel_names", "chans"];
const TIMES: [&str; 4] = ["time", "t", "seconds", "time_s"];

/// How files are read that do not say everything themselves.
#[derive(Clone, Debug, Default)]
pub struct InputOptions {
    /// Samples a second; otherwise the file must tell.
    pub rate: Option<f64>,
    /// What samples of archives and tables are multiplied by; otherwise by an array whose name
    /// begins with `scale`, if there is one.
    pub scale: Option<f64>,
    /// The names of the channels of archives.
    pub channel_names: Vec<String>,
    /// The arrays of an archive that hold trials (`*` and `?` stand for anything); otherwise all
    /// of three dimensions.
    pub trials: Vec<String>,
    /// The arrays of their labels, one for each; otherwise found by their names.
    pub labels: Vec<String>,
    /// The time of the first sample of stored trials, in seconds after the event.
    pub start: f64,
    /// The column of a table that holds the codes of events, `event` if not said.
    pub event_column: Option<String>,
    /// The column of a table that numbers the trials, `trial` if not said.
    pub trial_column: Option<String>,
    /// The column of a table that holds the labels of trials, `label` if not said.
    pub label_column: Option<String>,
}

/// What a file of signals holds.
#[derive(Clone, Debug)]
pub enum Input {
    /// A continuous recording.
    Recording(Recording),
    /// Trials that have been cut already; several groups if they differ in length.
    Trials(Vec<Trials>),
}

impl Input {
    /// Opens a file: GDF and EDF by their first bytes, `.npz` by its name, else a table.
    ///
    /// # Errors
    /// If the file cannot be read, or does not hold what the options say.
    pub fn open(path: &Path, options: &InputOptions) -> Result<Self> {
        if let Some(rate) = options.rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(Error::setting("rate", rate).expected("a number of Hz above 0"));
        }
        let extension = path.extension().map(|text| text.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("gdf" | "edf" | "bdf" | "rec") => Ok(Self::Recording(Recording::open(path)?)),
            Some("npz") => archive(path, options).map(Self::Trials),
            _ => table(path, options),
        }
    }
}

/// Trials from the arrays of an archive: trials x channels x samples.
fn archive(path: &Path, options: &InputOptions) -> Result<Vec<Trials>> {
    let archive = Arrays::open(path)?;
    let name = archive.name();
    let names = |dimensions: usize| -> Vec<&str> {
        let fit = archive.list().iter().filter(|array| array.shape.len() == dimensions);
        fit.map(|array| array.name.as_str()).collect()
    };
    let known = |list: &[&str], array: &str| list.iter().any(|k| k.eq_ignore_ascii_case(array));
    let single = |pick: &dyn Fn(&str) -> bool| -> Result<Option<f64>> {
        let found = archive.list().iter().find(|array| {
            array.shape.iter().product::<u64>() == 1 && array.shape.len() < 3 && pick(&array.name)
        });
        let Some(array) = found else { return Ok(None) };
        Ok(archive.numbers(&array.name)?.1.first().copied())
    };
    let rate = match options.rate {
        Some(rate) => rate,
        None => single(&|array| known(&RATES, array))?.ok_or_else(|| {
            Error::data("no array with the sampling rate")
                .at(name)
                .expected(format!("a number named {}", RATES.join(", ")))
                .advice("give the samples a second with `--rate`, such as `--rate 250`")
        })?,
    };
    let scale = match options.scale {
        Some(scale) => scale,
        None => single(&|array| array.to_ascii_lowercase().starts_with("scale"))?.unwrap_or(1.0),
    };
    if !(rate.is_finite() && rate > 0.0 && scale.is_finite()) {
        return Err(Error::data(format!("a rate of {rate} Hz and a scale of {scale}"))
            .at(name)
            .expected("a rate above 0, and a finite scale"));
    }
    let mut wanted: Vec<String> = Vec::new();
    for pattern in &options.trials {
        let fits = |array: &&str| matches(pattern, array);
        let found: Vec<String> = names(3).into_iter().filter(fits).map(str::to_owned).collect();
        if found.is_empty() {
            let all: Vec<String> = names(3).into_iter().map(str::to_owned).collect();
            return Err(Error::data(format!("no array `{pattern}` of three dimensions"))
                .at(name)
                .expected(format!("one of {}", list(&all))));
        }
        wanted.extend(found);
    }
    if options.trials.is_empty() {
        wanted = names(3).into_iter().map(str::to_owned).collect();
    }
    if wanted.is_empty() {
        return Err(Error::data("no array of three dimensions")
            .at(name)
            .expected("trials x channels x samples"));
    }
    if !options.labels.is_empty() && options.labels.len() != wanted.len() {
        return Err(Error::setting("labels", format!("{} arrays", options.labels.len()))
            .expected(format!("one for each of the {} arrays of trials", wanted.len())));
    }
    let mut groups = Vec::new();
    for (at, array) in wanted.iter().enumerate() {
        let place = format!("{name}, array `{array}`");
        let (shape, values) = archive.numbers(array)?;
        let [count, channels, samples] =
            [0, 1, 2].map(|at| shape.get(at).map_or(0, |size| *size as usize));
        if count == 0 || channels == 0 || samples == 0 {
            return Err(Error::data(format!("the shape {shape:?}"))
                .at(place)
                .expected("at least one trial, channel and sample"));
        }
        let labels = match options.labels.get(at) {
            Some(labels) => Some(labels.clone()),
            None => guess_labels(&archive, array, wanted.len(), count),
        };
        let labels = labels.map(|labels| archive.texts(&labels).map(|(_, texts)| (labels, texts)));
        let labels = match labels.transpose()? {
            Some((labels, texts)) if texts.len() != count => {
                return Err(Error::data(format!("{} labels in the array `{labels}`", texts.len()))
                    .at(place)
                    .expected(format!("{count}, one for each trial")));
            }
            labels => labels.map(|(_, texts)| texts),
        };
        let cells: Vec<Vec<f64>> = values
            .chunks_exact(samples)
            .map(|cells| cells.iter().map(|value| value * scale).collect())
            .collect();
        let trials = cells.chunks_exact(channels).enumerate().map(|(number, samples)| Trial {
            label: labels.as_ref().and_then(|labels| labels.get(number).cloned()),
            samples: samples.to_vec(),
        });
        let trials = trials.collect();
        groups.push(Trials {
            name: place.clone(),
            rate,
            start: options.start,
            channels: channel_names(&archive, &place, channels, options)?,
            trials,
            dropped: Dropped::default(),
        });
    }
    Ok(groups)
}

/// The array of labels: `y_1` for `X_1`, `labels` for `trials`, or the only one that fits.
fn guess_labels(archive: &Arrays, array: &str, groups: usize, count: usize) -> Option<String> {
    let fits = |name: &str| {
        let found = archive.list().iter().find(|known| known.name == name);
        found.is_some_and(|known| known.shape.iter().product::<u64>() == count as u64)
    };
    let pairs = [("X", "y"), ("x", "y"), ("X", "Y"), ("trials", "labels"), ("data", "labels")];
    for (from, to) in pairs {
        if let Some(rest) = array.strip_prefix(from)
            && fits(&format!("{to}{rest}"))
        {
            return Some(format!("{to}{rest}"));
        }
        if let Some(rest) = array.strip_suffix(from)
            && fits(&format!("{rest}{to}"))
        {
            return Some(format!("{rest}{to}"));
        }
    }
    let flat = archive.list().iter().filter(|known| known.shape == [count as u64]);
    let flat: Vec<&String> = flat.map(|known| &known.name).collect();
    match flat[..] {
        [only] if groups == 1 => Some(only.clone()),
        _ => None,
    }
}

fn channel_names(
    archive: &Arrays,
    place: &str,
    count: usize,
    options: &InputOptions,
) -> Result<Vec<String>> {
    let listed = archive.list().iter().find(|array| {
        array.shape == [count as u64]
            && CHANNELS.iter().any(|known| known.eq_ignore_ascii_case(&array.name))
    });
    let names = match listed {
        _ if !options.channel_names.is_empty() => options.channel_names.clone(),
        Some(array) => archive.texts(&array.name)?.1,
        None => (1..=count).map(|number| format!("ch{number}")).collect(),
    };
    if names.len() != count {
        return Err(Error::setting("channel-names", names.join(","))
            .expected(format!("{count} names for the channels of {place}")));
    }
    Ok(names)
}

/// Whether a name fits a pattern in which `*` stands for any text and `?` for any letter.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Which lengths of the name fit the pattern so far.
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for letter in pattern {
        let before = fits.clone();
        for end in 0..fits.len() {
            fits[end] = match letter {
                '*' => before[..=end].contains(&true),
                _ => end > 0 && before[end - 1] && (letter == '?' || letter == name[end - 1]),
            };
        }
    }
    fits[name.len()]
}

/// A table: one column for each channel, one row for each sample.
fn table(path: &Path, options: &InputOptions) -> Result<Input> {
    let mut reader = TableReader::open(path, &ReadOptions::default())?;
    let name = reader.name().to_owned();
    let columns = reader.columns().to_vec();
    let find = |given: &Option<String>, usual: &str| -> Result<Option<usize>> {
        let wanted = given.as_deref().unwrap_or(usual);
        let found = columns.iter().position(|column| column.eq_ignore_ascii_case(wanted));
        if found.is_none() && given.is_some() {
            return Err(Error::data(format!("no column `{wanted}`"))
                .at(&name)
                .expected(format!("one of {}", list(&columns))));
        }
        Ok(found)
    };
    let event = find(&options.event_column, "event")?;
    let trial = find(&options.trial_column, "trial")?;
    let label = find(&options.label_column, "label")?;
    let is_time = |column: &String| TIMES.iter().any(|known| known.eq_ignore_ascii_case(column));
    let time = columns.iter().position(is_time);
    let special = [event, trial, label, time];
    let signals: Vec<usize> =
        (0..columns.len()).filter(|column| !special.contains(&Some(*column))).collect();
    if signals.is_empty() {
        return Err(Error::data("no columns of samples").at(name).expected("one for each channel"));
    }
    let numbers = signals.iter().chain(&time).map(|column| (*column, Kind::Number));
    let texts = [event, trial, label].into_iter().flatten().map(|column| (column, Kind::Text));
    let selection: Vec<(usize, Kind)> = numbers.chain(texts).collect();
    reader.select(&selection)?;
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); signals.len() + usize::from(time.is_some())];
    let mut words: Vec<Vec<Option<String>>> = vec![Vec::new(); selection.len() - samples.len()];
    while let Some(batch) = reader.next_batch(8192)? {
        let mut columns = batch.columns.iter();
        for (all, column) in samples.iter_mut().zip(&mut columns) {
            if let Column::Number(values) = column {
                all.extend_from_slice(values);
            }
        }
        for (all, column) in words.iter_mut().zip(&mut columns) {
            all.extend((0..column.len()).map(|row| column.text(row).map(str::to_owned)));
        }
    }
    let times = time.and_then(|_| samples.pop());
    let count = samples[0].len();
    if count == 0 {
        return Err(Error::data("no rows").at(name).expected("one for each sample"));
    }
    let scale = options.scale.unwrap_or(1.0);
    samples.iter_mut().flatten().for_each(|value| *value *= scale);
    let groups = trial.is_some();
    let rate = match (options.rate, &times) {
        (Some(rate), _) => rate,
        (None, Some(times)) => rate_of(&name, times, groups)?,
        (None, None) => {
            return Err(Error::data("no column of times, such as `time`")
                .at(name)
                .expected("the sampling rate")
                .advice("give the samples a second with `--rate`, such as `--rate 250`"));
        }
    };
    let channels: Vec<String> = signals.iter().map(|column| columns[*column].clone()).collect();
    let mut words = words.into_iter();
    let event = event.and_then(|_| words.next());
    let trial = trial.and_then(|_| words.next());
    let label = label.and_then(|_| words.next());
    if let Some(event) = event {
        let codes = event.into_iter().enumerate();
        let events = codes.filter_map(|(row, code)| {
            let code = code.filter(|code| !matches!(code.as_str(), "" | "0" | "0.0"))?;
            Some(Event { time: row as f64 / rate, duration: 0.0, code })
        });
        let events = events.collect();
        let channel = |(name, samples)| Channel { name, unit: String::new(), rate, samples };
        let channels = channels.into_iter().zip(samples).map(channel).collect();
        return Ok(Input::Recording(Recording { name, channels, events }));
    }
    // Rows of one trial stand together; without a column of trials the file is one.
    let same = |one: usize, other: usize| trial.as_ref().is_none_or(|t| t[one] == t[other]);
    let mut trials = Vec::new();
    let mut begin = 0;
    for end in 1..=count {
        if end < count && same(begin, end) {
            continue;
        }
        let text = label.as_ref().and_then(|label| label[begin].clone());
        if let Some(row) = (begin..end).find(|row| label.as_ref().is_some_and(|l| l[*row] != text))
        {
            return Err(Error::data("two labels in one trial")
                .at(format!("{name}, row {}", row + 1))
                .expected("the same label in all rows of a trial"));
        }
        let part = |samples: &Vec<f64>| samples[begin..end].to_vec();
        trials.push(Trial { label: text, samples: samples.iter().map(part).collect() });
        begin = end;
    }
    let (start, dropped) = (options.start, Dropped::default());
    Ok(Input::Trials(vec![Trials { name, rate, start, channels, trials, dropped }]))
}

/// The rate of evenly spaced times; within trials they may begin anew.
fn rate_of(name: &str, times: &[f64], groups: bool) -> Result<f64> {
    let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = steps.clone();
    sorted.sort_by(f64::total_cmp);
    let step = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let even = |value: &f64| (value - step).abs() <= 0.01 * step.abs();
    let wrong = if groups { None } else { steps.iter().position(|value| !even(value)) };
    if !(step.is_finite() && step > 0.0) || wrong.is_some() {
        let place = match wrong {
            Some(row) => format!("{name}, row {}, column of times", row + 2),
            None => format!("{name}, column of times"),
        };
        return Err(Error::data("times that are not evenly spaced")
            .at(place)
            .expected("the same step from sample to sample")
            .advice("resample the signal, or give the samples a second with `--rate`"));
    }
    // Times are rounded: a rate that is nearly whole is whole.
    let rate = 1.0 / step;
    Ok(if (rate - rate.round()).abs() < 1e-3 * rate { rate.round() } else { rate })
}
