//! A continuous recording: channels, and events in time.

use std::collections::BTreeMap;
use std::path::Path;

use broadlearn::{Error, Result};

use crate::sections::Sections;

/// A continuous recording of several channels, with events.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Where it comes from, for messages.
    pub name: String,
    /// The channels; those of one recording may have different rates.
    pub channels: Vec<Channel>,
    /// What happened, in the order of the file.
    pub events: Vec<Event>,
}

/// One channel of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The unit of its samples, as the file writes it.
    pub unit: String,
    /// Samples a second.
    pub rate: f64,
    /// The samples; `NaN` where there is none.
    pub samples: Vec<f64>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it began, in seconds from the first sample.
    pub time: f64,
    /// How long it lasted, in seconds; 0 if that is not said.
    pub duration: f64,
    /// What it was: the text of an annotation, the code of an event table.
    pub code: String,
}

impl Recording {
    /// Reads a recording: GDF or EDF, by its first bytes.
    ///
    /// # Errors
    /// If the file is neither, or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = crate::bytes::whole(path)?;
        Self::from_bytes(&path.display().to_string(), &bytes)
    }

    /// The same from the bytes of a file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        if bytes.starts_with(b"GDF") {
            return crate::gdf::read(name, bytes);
        }
        if bytes.starts_with(b"0       ") {
            return crate::edf::read(name, bytes);
        }
        let found = match bytes {
            [] => "an empty file",
            [0xff, b'B', b'I', b'O', ..] => "a BDF file, which this library cannot read",
            _ => "other first bytes than those of a recording",
        };
        Err(Error::data(found).at(name).expected("a GDF or EDF file"))
    }

    /// The channels of these names or numbers (counted from 1), in this order.
    ///
    /// # Errors
    /// If there is no such channel, or one is named twice.
    pub fn select(mut self, wanted: &[String]) -> Result<Self> {
        let names: Vec<String> = self.channels.iter().map(|channel| channel.name.clone()).collect();
        let places = select(&self.name, &names, wanted)?;
        self.channels = places.into_iter().map(|place| self.channels[place].clone()).collect();
        Ok(self)
    }

    /// Samples a second.
    ///
    /// # Errors
    /// If there are no channels, or they have different rates.
    pub fn rate(&self) -> Result<f64> {
        let Some(first) = self.channels.first() else {
            return Err(Error::data("no channels").at(&self.name).expected("at least one"));
        };
        match self.channels.iter().find(|channel| channel.rate != first.rate) {
            None => Ok(first.rate),
            Some(other) => Err(Error::data(format!(
                "channels of different rates (`{}` {} Hz, `{}` {} Hz)",
                first.name, first.rate, other.name, other.rate
            ))
            .at(&self.name)
            .expected("the same rate for all")
            .advice("choose channels of one rate with `--channels`")),
        }
    }

    /// Filters all channels both ways. Parts between missing samples are filtered on their own;
    /// those too short for the filter become missing.
    ///
    /// # Errors
    /// If nothing is left of a channel.
    pub fn filtered(mut self, filter: &Sections) -> Result<Self> {
        for channel in &mut self.channels {
            let place = || format!("{}, channel `{}`", self.name, channel.name);
            channel.samples =
                by_parts(&channel.samples, filter).map_err(|error| error.within(&place()))?;
        }
        Ok(self)
    }

    /// The codes of the events, and how often each occurs.
    pub fn codes(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for event in &self.events {
            *counts.entry(event.code.as_str()).or_insert(0) += 1;
        }
        counts
    }
}

/// Filters what lies between missing samples.
fn by_parts(samples: &[f64], filter: &Sections) -> Result<Vec<f64>> {
    let mut out = Vec::with_capacity(samples.len());
    let mut longest: &[f64] = &[];
    let mut parts = 0;
    for (number, part) in samples.split(|value| !value.is_finite()).enumerate() {
        if number > 0 {
            out.push(f64::NAN);
        }
        longest = if part.len() > longest.len() { part } else { longest };
        if part.len() <= filter.padding() {
            out.resize(out.len() + part.len(), f64::NAN);
        } else {
            out.extend(filter.both_ways(part)?);
            parts += 1;
        }
    }
    match parts {
        0 => filter.both_ways(longest),
        _ => Ok(out),
    }
}

/// The places of wanted names or numbers among those that there are.
pub(crate) fn select(place: &str, names: &[String], wanted: &[String]) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for name in wanted {
        let exact = names.iter().position(|known| known == name);
        // "EEG:C3" and "EEG C3" are known as C3, too, if only one channel is.
        let ends = |known: &String| {
            let short = known.rsplit([':', ' ']).next().unwrap_or(known);
            short.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(name)
        };
        let alike: Vec<usize> = (0..names.len()).filter(|at| ends(&names[*at])).collect();
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = exact
            .or(if let [only] = alike[..] { Some(only) } else { None })
            .or(number.filter(|number| *number < names.len()));
        let Some(found) = found else {
            return Err(Error::data(format!("no channel `{name}`"))
                .at(place)
                .expected(format!("one of {}", list(names))));
        };
        if places.contains(&found) {
            return Err(
                Error::setting("channels", format!("`{name}` twice")).expected("each channel once")
            );
        }
        places.push(found);
    }
    Ok(places)
}

/// Some names for a message, not too many.
pub(crate) fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(MOST);
    let shown = shown.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
