//! EDF, the European Data Format, and EDF+ with its annotations.
//!
//! The specifications are B. Kemp et al., "A simple format for exchange of digitized polygraphic
//! recordings" (1992), and "European data format 'plus' (EDF+)" (2003).

use broadlearn::{Error, Result};

use crate::bytes::{Bytes, signed, text};
use crate::recording::{Channel, Event, Recording};

/// The fixed part of the header, and the part of each channel.
const HEADER: usize = 256;
/// The label of channels that hold no samples but texts.
const ANNOTATIONS: &str = "EDF Annotations";

/// One channel as the header describes it.
struct Plan {
    name: String,
    unit: String,
    /// Samples in each record.
    count: usize,
    scale: f64,
    offset: f64,
}

pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Recording> {
    let mut file = Bytes::new(name, "an EDF", bytes);
    file.go_to(184)?;
    let header: f64 = number(&mut file, 8, "length of the header")?;
    let plus = file.text(44)?;
    let records: f64 = number(&mut file, 8, "number of records")?;
    let duration: f64 = number(&mut file, 8, "length of a record")?;
    let count = number(&mut file, 4, "number of channels")?;
    if !(1.0..=9999.0).contains(&count) || (count + 1.0) * HEADER as f64 != header {
        return Err(file.damaged(format!("{count} channels with a header of {header} bytes")));
    }
    let count = count as usize;
    let plans = plans(&mut file, count)?;
    let has_samples = plans.iter().any(|plan| plan.name != ANNOTATIONS);
    if has_samples && !(duration.is_finite() && duration > 0.0) {
        return Err(file.damaged(format!("records of {duration} seconds")));
    }
    let record: usize = plans.iter().map(|plan| 2 * plan.count).sum();
    if record == 0 {
        return Err(file.damaged("records without samples"));
    }
    // -1 stands for a number that was not known when the recording began.
    let records = match records {
        -1.0 => file.left() / record,
        _ if records >= 0.0 && records * record as f64 <= file.left() as f64 => records as usize,
        _ => {
            return Err(file.damaged(format!(
                "{} bytes of data where the header promises {records} records of {record}",
                file.left()
            )));
        }
    };
    let mut channels: Vec<Channel> = plans
        .iter()
        .map(|plan| Channel {
            name: plan.name.clone(),
            unit: plan.unit.clone(),
            rate: plan.count as f64 / duration,
            samples: Vec::new(),
        })
        .collect();
    let mut events = Vec::new();
    // When the first record began: EDF+ counts from a whole second before it.
    let mut start = None;
    for number in 0..records {
        let mut first_of_record = true;
        for (channel, plan) in channels.iter_mut().zip(&plans) {
            let part = file.take(2 * plan.count)?;
            if plan.name != ANNOTATIONS {
                let value = |cell| signed(cell) as f64 * plan.scale + plan.offset;
                channel.samples.extend(part.chunks_exact(2).map(value));
                continue;
            }
            let Some(onset) = annotations(part, &mut events) else {
                let found = format!("a damaged list of annotations in record {}", number + 1);
                return Err(file.damaged(found));
            };
            if let (true, Some(onset)) = (first_of_record, onset) {
                let start = *start.get_or_insert(onset);
                let expected = start + number as f64 * duration;
                if (onset - expected).abs() > 1e-3 && has_samples {
                    return Err(Error::data(format!(
                        "a gap: record {} begins at {onset} seconds, not at {expected}",
                        number + 1
                    ))
                    .at(name)
                    .expected(format!("a recording without gaps (it is `{plus}`)"))
                    .advice("split the recording at its gaps with another program"));
                }
            }
            first_of_record = false;
        }
    }
    let start = start.unwrap_or(0.0);
    events.iter_mut().for_each(|event: &mut Event| event.time -= start);
    channels.retain(|channel| channel.name != ANNOTATIONS && channel.rate > 0.0);
    Ok(Recording { name: name.to_owned(), channels, events })
}

/// The headers of the channels: field after field, each for all channels.
fn plans(file: &mut Bytes<'_>, count: usize) -> Result<Vec<Plan>> {
    let names: Vec<String> = file.table(count, 16)?.into_iter().map(text).collect();
    file.take(80 * count)?;
    let units: Vec<String> = file.table(count, 8)?.into_iter().map(text).collect();
    let mut column = |what| (0..count).map(|_| number(file, 8, what)).collect::<Result<Vec<_>>>();
    let (low, high) = (column("physical minimum")?, column("physical maximum")?);
    let (lowest, highest) = (column("digital minimum")?, column("digital maximum")?);
    file.take(80 * count)?;
    let mut column = |what| (0..count).map(|_| number(file, 8, what)).collect::<Result<Vec<_>>>();
    let counts = column("number of samples in a record")?;
    file.take(32 * count)?;
    let mut plans = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let name = if name.is_empty() { format!("channel{}", at + 1) } else { name };
        // A record has at most 61440 bytes by the specification; many files have more.
        if !(0.0..=1e8).contains(&counts[at]) || counts[at].fract() != 0.0 {
            let found = format!("{} samples in a record of the channel `{name}`", counts[at]);
            return Err(file.damaged(found));
        }
        let scale = (high[at] - low[at]) / (highest[at] - lowest[at]);
        if !scale.is_finite() && name != ANNOTATIONS {
            return Err(file.damaged(format!(
                "the digital range {} to {} in the channel `{name}`",
                lowest[at], highest[at]
            )));
        }
        let (count, offset) = (counts[at] as usize, low[at] - lowest[at] * scale);
        plans.push(Plan { name, unit: units[at].clone(), count, scale, offset });
    }
    Ok(plans)
}

/// A number in letters.
fn number(file: &mut Bytes<'_>, size: usize, what: &str) -> Result<f64> {
    let text = file.text(size)?;
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(file.damaged(format!("`{text}` as the {what}"))),
    }
}

/// The annotations of a record: `+onset 21 duration 20 text 20 text 20 0`. Gives the time of the
/// record, if it is there: the first onset, whose text is empty. `None` if they are damaged.
fn annotations(part: &[u8], events: &mut Vec<Event>) -> Option<Option<f64>> {
    let mut start = None;
    for (number, list) in part.split(|byte| *byte == 0).enumerate() {
        if list.is_empty() {
            continue;
        }
        let mut pieces = list.split(|byte| *byte == 20);
        let mut times = pieces.next()?.split(|byte| *byte == 21);
        let seconds =
            |bytes: &[u8]| text(bytes).parse::<f64>().ok().filter(|time| time.is_finite());
        let time = seconds(times.next()?)?;
        let duration = match times.next() {
            Some(duration) => seconds(duration)?,
            None => 0.0,
        };
        for piece in pieces {
            match text(piece) {
                code if code.is_empty() => {
                    if number == 0 {
                        start.get_or_insert(time);
                    }
                }
                code => events.push(Event { time, duration, code }),
            }
        }
    }
    Some(start)
}
