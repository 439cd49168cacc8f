//! GDF, the General Data Format for biosignals, versions 1.x and 2.x.
//!
//! The specification is A. Schlögl, "GDF - A general dataformat for biosignals", arXiv cs/0608052.

use broadlearn::{Error, Result};

use crate::bytes::{Bytes, signed, text, unsigned};
use crate::recording::{Channel, Event, Recording};

/// More channels are refused.
const MOST_CHANNELS: usize = 65_536;
/// The fixed part of the header, and the part of each channel.
const HEADER: usize = 256;

/// How a sample is stored.
#[derive(Clone, Copy)]
enum Sample {
    Signed(usize),
    Unsigned(usize),
    Single,
    Double,
}

impl Sample {
    fn of_code(code: u64) -> Option<Self> {
        Some(match code {
            1 => Self::Signed(1),
            2 => Self::Unsigned(1),
            3 => Self::Signed(2),
            4 => Self::Unsigned(2),
            5 => Self::Signed(4),
            6 => Self::Unsigned(4),
            7 => Self::Signed(8),
            8 => Self::Unsigned(8),
            16 => Self::Single,
            17 => Self::Double,
            // 255 + N are N bits with a sign, 511 + N without; of those only whole bytes are used.
            279 => Self::Signed(3),
            535 => Self::Unsigned(3),
            _ => return None,
        })
    }

    fn size(self) -> usize {
        match self {
            Self::Signed(size) | Self::Unsigned(size) => size,
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// The number as it is stored. The lowest one that has a sign means that there is none: what
    /// was too much for the amplifier, and the gaps between runs.
    fn value(self, bytes: &[u8]) -> f64 {
        match self {
            Self::Signed(size) => match signed(bytes) {
                value if value == i64::MIN >> (64 - 8 * size) => f64::NAN,
                value => value as f64,
            },
            Self::Unsigned(_) => unsigned(bytes) as f64,
            Self::Single => f64::from(f32::from_bits(unsigned(bytes) as u32)),
            Self::Double => f64::from_bits(unsigned(bytes)),
        }
    }
}

/// One channel as the header describes it.
struct Plan {
    name: String,
    unit: String,
    sample: Sample,
    /// Samples in each record.
    count: usize,
    scale: f64,
    offset: f64,
}

pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Recording> {
    let mut file = Bytes::new(name, "a GDF", bytes);
    let version = file.text(8)?;
    let number = version.strip_prefix("GDF").and_then(|rest| rest.trim().parse::<f64>().ok());
    let old = match number {
        Some(number) if (1.0..1.9).contains(&number) => true,
        Some(number) if (1.9..3.0).contains(&number) => false,
        _ => {
            return Err(Error::data(format!("version `{version}`"))
                .at(name)
                .expected("version 1 or 2 of GDF"));
        }
    };
    file.go_to(184)?;
    let header = match old {
        true => file.number(8)?,
        false => file.number(2)? * HEADER as u64,
    };
    file.go_to(236)?;
    let records = file.number(8)? as i64;
    let (numerator, denominator) = (file.number(4)?, file.number(4)?);
    let count = if old { file.number(4)? } else { file.number(2)? } as usize;
    if count == 0 || count > MOST_CHANNELS || count * HEADER > bytes.len() {
        return Err(file.damaged(format!("{count} channels in a file of {} bytes", bytes.len())));
    }
    if numerator == 0 || denominator == 0 {
        let found = format!("records of {numerator}/{denominator} seconds");
        return Err(file.damaged(found));
    }
    let duration = numerator as f64 / denominator as f64;
    file.go_to(HEADER)?;
    let plans = plans(&mut file, count, old)?;
    let begin = usize::try_from(header).unwrap_or(usize::MAX);
    if begin < HEADER * (count + 1) {
        return Err(file.damaged(format!("a header of {header} bytes for {count} channels")));
    }
    file.go_to(begin)?;

    let record: Option<usize> = plans.iter().try_fold(0_usize, |sum, plan| {
        sum.checked_add(plan.count.checked_mul(plan.sample.size())?)
    });
    let Some(record) = record.filter(|record| *record > 0) else {
        return Err(file.damaged("records without samples"));
    };
    // -1 stands for a number that was not known when the recording began.
    let records = match usize::try_from(records) {
        Ok(records) => records,
        Err(_) if records == -1 => file.left() / record,
        Err(_) => return Err(file.damaged(format!("{records} records"))),
    };
    if records.checked_mul(record).is_none_or(|length| length > file.left()) {
        return Err(file.damaged(format!(
            "{} bytes of data where the header promises {records} records of {record}",
            file.left()
        )));
    }
    let mut channels: Vec<Channel> = plans
        .iter()
        .map(|plan| Channel {
            name: plan.name.clone(),
            unit: plan.unit.clone(),
            rate: plan.count as f64 / duration,
            samples: Vec::with_capacity(records * plan.count),
        })
        .collect();
    for _ in 0..records {
        for (channel, plan) in channels.iter_mut().zip(&plans) {
            let size = plan.sample.size();
            let cells = file.take(plan.count * size)?.chunks_exact(size);
            let value = |cell| plan.sample.value(cell) * plan.scale + plan.offset;
            channel.samples.extend(cells.map(value));
        }
    }
    let rate = channels.iter().map(|channel| channel.rate).fold(0.0, f64::max);
    channels.retain(|channel| channel.rate > 0.0);
    let events = events(&mut file, number.unwrap_or_default(), rate)?;
    Ok(Recording { name: name.to_owned(), channels, events })
}

/// The headers of the channels: field after field, each for all channels.
fn plans(file: &mut Bytes<'_>, count: usize, old: bool) -> Result<Vec<Plan>> {
    let names: Vec<String> = file.table(count, 16)?.into_iter().map(text).collect();
    file.take(80 * count)?;
    let units: Vec<String> = if old {
        file.table(count, 8)?.into_iter().map(text).collect()
    } else {
        file.take(6 * count)?;
        file.numbers(count, 2)?.into_iter().map(unit).collect()
    };
    let (low, high) = (file.floats(count)?, file.floats(count)?);
    let digital = |file: &mut Bytes<'_>| -> Result<Vec<f64>> {
        if !old {
            return file.floats(count);
        }
        Ok(file.numbers(count, 8)?.into_iter().map(|value| value as i64 as f64).collect())
    };
    let (lowest, highest) = (digital(file)?, digital(file)?);
    file.take(80 * count)?;
    let counts = file.numbers(count, 4)?;
    let codes = file.numbers(count, 4)?;
    let mut plans = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let place = if name.is_empty() { format!("channel{}", at + 1) } else { name };
        let Some(sample) = Sample::of_code(codes[at]) else {
            return Err(
                file.damaged(format!("samples of type {} in the channel `{place}`", codes[at]))
            );
        };
        // A range that is none would make all samples infinite.
        let scale = (high[at] - low[at]) / (highest[at] - lowest[at]);
        if !scale.is_finite() {
            return Err(file.damaged(format!(
                "the digital range {} to {} in the channel `{place}`",
                lowest[at], highest[at]
            )));
        }
        plans.push(Plan {
            name: place,
            unit: units[at].clone(),
            sample,
            count: counts[at] as usize,
            scale,
            offset: low[at] - lowest[at] * scale,
        });
    }
    Ok(plans)
}

/// The name of a unit by its code of ISO/IEEE 11073-10101; those that occur.
fn unit(code: u64) -> String {
    match code {
        4256 => "V".into(),
        4274 => "mV".into(),
        4275 => "uV".into(),
        4276 => "nV".into(),
        _ => String::new(),
    }
}

/// The table of events behind the data; a file may end before it.
fn events(file: &mut Bytes<'_>, version: f64, usual: f64) -> Result<Vec<Event>> {
    if file.left() < 8 {
        return Ok(Vec::new());
    }
    let mode = file.number(1)?;
    if mode != 1 && mode != 3 {
        return Err(file.damaged(format!("an event table of mode {mode}")));
    }
    let (count, rate) = if version < 1.94 {
        let rate = file.number(3)? as f64;
        (file.number(4)?, rate)
    } else {
        let count = file.number(3)?;
        (count, f64::from(f32::from_bits(file.number(4)? as u32)))
    };
    let size = if mode == 1 { 6 } else { 12 };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count.checked_mul(size).is_none_or(|length| length > file.left()) {
        return Err(file.damaged(format!("{count} events in {} bytes", file.left())));
    }
    let rate = if rate.is_finite() && rate > 0.0 { rate } else { usual };
    let positions = file.numbers(count, 4)?;
    let codes = file.numbers(count, 2)?;
    let durations = match mode {
        1 => vec![0; count],
        _ => {
            // Which channel an event belongs to does not matter here.
            file.take(2 * count)?;
            file.numbers(count, 4)?
        }
    };
    let events = positions.into_iter().zip(codes).zip(durations);
    Ok(events
        .map(|((position, code), duration)| Event {
            // The first sample has the number 1.
            time: position.saturating_sub(1) as f64 / rate,
            duration: duration as f64 / rate,
            code: code.to_string(),
        })
        .collect())
}
