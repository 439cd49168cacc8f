//! `broadlearn psd`: trials of multichannel signals to a table of spectra.

use crate::context::{Context, interrupted};
use crate::fault::Fault;
use crate::output::Output;
use crate::{format, output};
use broadlearn::{Error, Progress};
use broadlearn_report::{Card, Chart, Page, Series, Table};
use broadlearn_signal::{
    Butterworth, Cut, Dropped, Features, Input, InputOptions, Sections, Trials, Welch, Window,
    matches,
};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::predict::quoted;

/// What is cut from a recording after each event, in seconds, if nothing is said.
const USUAL_CUT: (f64, f64) = (0.5, 2.5);
/// The length of the transform, if nothing is said and segments are not longer.
const USUAL_LENGTH: usize = 256;
/// How far below the highest power a picture reaches, in dB.
const DEPTH: f64 = 40.0;

#[derive(Args)]
#[command(after_help = "\
Examples:
  broadlearn psd B0401T.gdf B0402T.gdf --channels C3,C4 --events 769,770 \\
      --class 769=left --class 770=right --log --out train.csv
  broadlearn psd sleep.edf --events T1,T2 --from 0 --to 4 --band none --page sleep.html --out s.csv
  broadlearn psd trials.npz --trials 'X_*T' --channel-names C3,Cz,C4 --from 0.5 --to 2.5 --out t.csv
  broadlearn psd signal.csv --rate 250 --events 1,2 --out t.csv
  broadlearn fit train.csv --target label --model hands.broad

One line of the table for each trial, one column for each channel and frequency, such as C3_8.79Hz.
The filter runs forwards and backwards, so that nothing is shifted; filter and spectra are those of
SciPy (butter, sosfiltfilt, welch). Trials with missing samples are left out and counted.")]
pub(crate) struct PsdArgs {
    /// Recordings (EDF, EDF+, GDF), archives of trials (.npz) or tables (CSV and its relatives)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where the table goes, as CSV [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page with the mean spectra of the classes
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The name of the column of labels
    #[arg(long, value_name = "NAME", default_value = "label")]
    label: String,
    /// Also write a column with the name of the file
    #[arg(long)]
    with_file: bool,
    #[command(flatten)]
    trials: TrialArgs,
    #[command(flatten)]
    spectrum: SpectrumArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// What the trials are.
#[derive(Args)]
#[command(next_help_heading = "Trials")]
struct TrialArgs {
    /// The channels, by name or number; EEG:C3 is C3, too [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    channels: Vec<String>,
    /// The events of a recording at which trials are cut
    #[arg(long, value_name = "CODE,...", value_delimiter = ',')]
    events: Vec<String>,
    /// The class that a code, label or file name stands for, such as 769=left; * stands for any
    /// text (repeatable)
    #[arg(long = "class", value_name = "CODE=NAME", value_parser = class)]
    classes: Vec<(String, String)>,
    /// The beginning of a trial, in seconds after its event [default: 0.5 in recordings, else all]
    #[arg(long, value_name = "S", value_parser = seconds, allow_hyphen_values = true)]
    from: Option<f64>,
    /// The end of a trial, in seconds after its event [default: 2.5 in recordings, else all]
    #[arg(long, value_name = "S", value_parser = seconds, allow_hyphen_values = true)]
    to: Option<f64>,
    /// The time of the first sample of stored trials, in seconds after the event
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = seconds, allow_hyphen_values = true)]
    trial_start: f64,
    /// Keep trials that are marked as rejected (event 1023 of GDF)
    #[arg(long)]
    keep_rejected: bool,
}

/// What becomes of them.
#[derive(Args)]
#[command(next_help_heading = "Filter and spectrum")]
struct SpectrumArgs {
    /// What passes the Butterworth filter: LOW-HIGH in Hz, LOW- or -HIGH for one side, none for
    /// no filter
    #[arg(long, value_name = "LOW-HIGH", default_value = "8-35", allow_hyphen_values = true)]
    band: String,
    /// The order of the filter; a band has twice as many poles
    #[arg(long, value_name = "N", default_value_t = 4)]
    order: usize,
    /// Filter all that a file holds before trials are cut, or each trial after it
    #[arg(long, value_name = "YES|NO", default_value = "yes", action = clap::ArgAction::Set, value_parser = yes_or_no)]
    filter_first: bool,
    /// How segments fade in and out
    #[arg(long, value_enum, default_value_t = WindowName::Hamming)]
    window: WindowName,
    /// The length of a segment in seconds (whole samples, rounded down)
    #[arg(long, value_name = "S", default_value_t = 0.25, value_parser = seconds, allow_hyphen_values = true)]
    segment: f64,
    /// How much of it is shared with the segment before, in seconds (whole samples, rounded down)
    #[arg(long, value_name = "S", default_value_t = 0.125, value_parser = seconds, allow_hyphen_values = true)]
    overlap: f64,
    /// Samples that are transformed, zeros added [default: 256, or more if a segment has more]
    #[arg(long, value_name = "N")]
    nfft: Option<usize>,
    /// The frequencies that go into the table, in Hz, both ends included [default: all]
    #[arg(long, value_name = "LOW-HIGH", value_parser = range)]
    frequencies: Option<(f64, f64)>,
    /// Decimal logarithms of the powers
    #[arg(long)]
    log: bool,
}

/// What files do not say themselves.
#[derive(Args)]
#[command(next_help_heading = "Archives and tables")]
struct SourceArgs {
    /// Samples a second [default: array `fs` or the like of an archive, column `time` of a table]
    #[arg(long, value_name = "HZ", value_parser = seconds, allow_hyphen_values = true)]
    rate: Option<f64>,
    /// What samples are multiplied by [default: array `scale...` of an archive, else 1]
    #[arg(long, value_name = "F", value_parser = seconds, allow_hyphen_values = true)]
    scale: Option<f64>,
    /// The names of the channels of an archive [default: array `channels`, else ch1, ch2, ...]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    channel_names: Vec<String>,
    /// The arrays of an archive that hold trials x channels x samples; * stands for any text
    /// [default: all of three dimensions]
    #[arg(long, value_name = "ARRAY,...", value_delimiter = ',')]
    trials: Vec<String>,
    /// The arrays of their labels [default: y_1 for X_1, labels for trials, or the only one that
    /// fits]
    #[arg(long, value_name = "ARRAY,...", value_delimiter = ',')]
    labels: Vec<String>,
    /// The column of a table with the codes of events, empty or 0 elsewhere [default: event]
    #[arg(long, value_name = "COLUMN")]
    event_column: Option<String>,
    /// The column of a table that tells trials apart [default: trial; without it a table that has
    /// no events is one trial]
    #[arg(long, value_name = "COLUMN")]
    trial_column: Option<String>,
    /// The column of a table with the labels of trials [default: label]
    #[arg(long, value_name = "COLUMN")]
    label_column: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WindowName {
    Hann,
    Hamming,
    Boxcar,
}

fn class(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((code, name)) if !code.trim().is_empty() && !name.trim().is_empty() => {
            Ok((code.trim().to_owned(), name.trim().to_owned()))
        }
        _ => Err("expected CODE=NAME, such as 769=left".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("expected a number".into()),
    }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err("expected yes or no".into()),
    }
}

fn range(text: &str) -> Result<(f64, f64), String> {
    let ends = text.split_once('-').map(|(low, high)| (low.trim().parse(), high.trim().parse()));
    match ends {
        Some((Ok(low), Ok(high))) if low < high && high < f64::INFINITY => Ok((low, high)),
        _ => Err("expected two rising frequencies such as 8-35".into()),
    }
}

/// What was done with the trials of all files.
#[derive(Default)]
struct Tally {
    dropped: Dropped,
    rate: f64,
    segments: usize,
    samples: usize,
    /// The file of each row.
    files: Vec<String>,
}

pub(crate) fn run(args: &PsdArgs, context: &Context) -> Result<(), Fault> {
    if context.json && args.out.is_none() {
        return Err(Error::setting("json", "no --out")
            .expected("a file for the table, as stdout holds the summary")
            .advice("add --out features.csv")
            .into());
    }
    output::check_table(args.out.as_deref())?;
    output::check_places(args.out.iter().chain(&args.page), &args.files)?;
    let filter = args.spectrum.filter()?;
    let mut tally = Tally::default();
    let mut features: Option<Features> = None;
    for (number, path) in args.files.iter().enumerate() {
        let progress = Progress {
            stage: "reading files",
            done: number as u64,
            total: Some(args.files.len() as u64),
            member: None,
        };
        let mut observer = context.observer();
        if observer(progress).is_break() || interrupted() {
            return Err(Error::interrupted().into());
        }
        for trials in args.trials_of(path, filter.as_ref())? {
            let welch = args.spectrum.welch(trials.rate)?;
            tally.add(path, &trials, &welch);
            let spectra = Features::new(&trials, &welch, args.spectrum.frequencies)?;
            match &mut features {
                None => features = Some(spectra),
                Some(features) => features.append(spectra, &trials.name)?,
            }
        }
    }
    context.end_progress();
    let left_out = tally.left_out();
    let Some(mut features) = features.filter(|features| !features.rows.is_empty()) else {
        return Err(Error::data(format!("no trial that can be used ({left_out})"))
            .expected("at least one")
            .advice("see --events, --from, --to and --keep-rejected")
            .into());
    };
    name_classes(&mut features.labels, &args.trials.classes, &tally.files)?;
    if !left_out.is_empty() {
        context.warn(format_args!("left out: {left_out}"));
    }
    let page = args.page.as_ref().map(|path| (path, page(args, &features, &tally)));
    if args.spectrum.log {
        features = features.log();
    }
    write(args, &features, &tally)?;
    if let Some((path, page)) = page {
        output::write_file(path, &page)?;
    }

    let counts = counts(&features.labels);
    if context.json {
        return output::print_json(&json!({
            "n_trials": features.rows.len(),
            "n_columns": features.channels.len() * features.frequencies.len(),
            "classes": counts,
            "channels": features.channels,
            "frequencies": features.frequencies,
            "rate": tally.rate,
            "samples": tally.samples,
            "segments": tally.segments,
            "left_out": {
                "rejected": tally.dropped.rejected,
                "missing": tally.dropped.missing,
                "outside": tally.dropped.outside,
            },
            "out": args.out,
            "page": args.page,
        }));
    }
    let classes: Vec<String> =
        counts.iter().map(|(class, count)| format!("{class} {count}")).collect();
    context.say(format_args!(
        "{} ({}) of {} samples at {} Hz\n{}, {} from {} to {} Hz; {} a trial",
        format::plural(features.rows.len() as u64, "trial"),
        if classes.is_empty() { "no labels".into() } else { classes.join(", ") },
        tally.samples,
        tally.rate,
        format::plural(features.channels.len() as u64, "channel"),
        match features.frequencies.len() {
            1 => "1 frequency".into(),
            count => format!("{count} frequencies"),
        },
        format::number(features.frequencies[0]),
        format::number(features.frequencies[features.frequencies.len() - 1]),
        format::plural(tally.segments as u64, "segment"),
    ));
    for (what, path) in [("table", &args.out), ("page", &args.page)] {
        if let Some(path) = path.as_ref().filter(|path| path.as_path() != Path::new("-")) {
            context.say(format_args!("{what:<6} {}", path.display()));
        }
    }
    Ok(())
}

impl PsdArgs {
    /// The trials of a file, filtered and cut.
    fn trials_of(&self, path: &Path, filter: Option<&Butterworth>) -> Result<Vec<Trials>, Fault> {
        let source = &self.source;
        let options = InputOptions {
            rate: source.rate,
            scale: source.scale,
            channel_names: source.channel_names.clone(),
            trials: source.trials.clone(),
            labels: source.labels.clone(),
            start: self.trials.trial_start,
            event_column: source.event_column.clone(),
            trial_column: source.trial_column.clone(),
            label_column: source.label_column.clone(),
        };
        let design = |rate: f64| filter.map(|filter| filter.sections(rate)).transpose();
        let first = self.spectrum.filter_first;
        let wanted = &self.trials.channels;
        let groups = match Input::open(path, &options)? {
            Input::Recording(mut recording) => {
                if !wanted.is_empty() {
                    recording = recording.select(wanted)?;
                }
                if self.trials.events.is_empty() {
                    return Err(Error::setting("events", "none")
                        .expected(format!("some of those in {}", path.display()))
                        .advice(format!("choose with --events from {}", recording.list_events()))
                        .into());
                }
                let filter = design(recording.rate()?)?;
                if let (true, Some(filter)) = (first, &filter) {
                    recording = recording.filtered(filter)?;
                }
                let cut = Cut {
                    codes: self.trials.events.clone(),
                    from: self.trials.from.unwrap_or(USUAL_CUT.0),
                    to: self.trials.to.unwrap_or(USUAL_CUT.1),
                    keep_rejected: self.trials.keep_rejected,
                };
                let trials = recording.trials(&cut)?.without_missing();
                vec![after(trials, filter.filter(|_| !first))?]
            }
            Input::Trials(groups) => {
                let mut done = Vec::new();
                for mut trials in groups {
                    if !wanted.is_empty() {
                        trials = trials.select(wanted)?;
                    }
                    if !self.trials.events.is_empty() {
                        let wanted = &self.trials.events;
                        let known = |label: &Option<String>| {
                            label.as_ref().is_some_and(|label| wanted.contains(label))
                        };
                        trials.trials.retain(|trial| known(&trial.label));
                    }
                    let filter = design(trials.rate)?;
                    let (now, later) = if first { (filter, None) } else { (None, filter) };
                    let (from, to) = (self.trials.from, self.trials.to);
                    let trials = if first { trials.without_missing() } else { trials };
                    let trials = after(trials, now)?.cut(from, to)?.without_missing();
                    done.push(after(trials, later)?);
                }
                done
            }
        };
        Ok(groups)
    }
}

/// Filters trials, if there is a filter.
fn after(trials: Trials, filter: Option<Sections>) -> Result<Trials, Error> {
    match filter {
        Some(filter) => trials.filtered(&filter),
        None => Ok(trials),
    }
}

impl SpectrumArgs {
    fn filter(&self) -> Result<Option<Butterworth>, Fault> {
        let text = self.band.trim();
        if text == "none" {
            return Ok(None);
        }
        let wrong = || {
            Error::setting("band", text)
                .expected("LOW-HIGH in Hz such as 8-35, LOW-, -HIGH, or none")
        };
        let (low, high) = text.split_once('-').ok_or_else(wrong)?;
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse::<f64>().map(Some).map_err(|_| wrong()),
        };
        Ok(Some(match (number(low)?, number(high)?) {
            (Some(low), Some(high)) => Butterworth::band_pass(self.order, low, high),
            (Some(low), None) => Butterworth::high_pass(self.order, low),
            (None, Some(high)) => Butterworth::low_pass(self.order, high),
            (None, None) => return Err(wrong().into()),
        }))
    }

    fn welch(&self, rate: f64) -> Result<Welch, Fault> {
        let window = match self.window {
            WindowName::Hann => Window::Hann,
            WindowName::Hamming => Window::Hamming,
            WindowName::Boxcar => Window::Boxcar,
        };
        let samples = |name: &str, seconds: f64| {
            // 0.29 s at 100 Hz are 29 samples, though the product is a little less.
            let samples = (seconds * rate + 1e-6).floor();
            if (0.0..1e9).contains(&samples) {
                return Ok(samples as usize);
            }
            Err(Error::setting(name, format!("{seconds} seconds"))
                .expected("0 or more, not absurd"))
        };
        let segment = samples("segment", self.segment)?;
        let overlap = samples("overlap", self.overlap)?;
        let usual =
            if segment <= USUAL_LENGTH { USUAL_LENGTH } else { segment.next_power_of_two() };
        Ok(Welch::new(rate, window, segment, overlap, self.nfft.unwrap_or(usual))?)
    }
}

impl Tally {
    fn add(&mut self, path: &Path, trials: &Trials, welch: &Welch) {
        self.dropped.rejected += trials.dropped.rejected;
        self.dropped.missing += trials.dropped.missing;
        self.dropped.outside += trials.dropped.outside;
        self.rate = trials.rate;
        if trials.samples() > 0 {
            self.samples = trials.samples();
            self.segments = welch.segments(self.samples);
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        self.files.extend(std::iter::repeat_n(name, trials.trials.len()));
    }

    /// What was left out, in words; empty if nothing was.
    fn left_out(&self) -> String {
        let Dropped { rejected, missing, outside } = self.dropped;
        let parts = [
            (rejected, "marked as rejected"),
            (missing, "with missing samples"),
            (outside, "beyond the ends of the recording"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, why)| format!("{} {why}", format::plural(count as u64, "trial")))
            .collect();
        parts.join(", ")
    }
}

/// Puts names of classes in place of codes; a trial without one is known by its file.
fn name_classes(
    labels: &mut [Option<String>],
    classes: &[(String, String)],
    files: &[String],
) -> Result<(), Fault> {
    let mut used = vec![false; classes.len()];
    for (label, file) in labels.iter_mut().zip(files) {
        let code = label.as_deref().unwrap_or(file);
        let found = classes.iter().position(|(pattern, _)| matches(pattern, code));
        if let Some(found) = found {
            used[found] = true;
            *label = Some(classes[found].1.clone());
        }
    }
    let unused = used.iter().position(|used| !used).map(|at| &classes[at].0);
    match unused {
        None => Ok(()),
        Some(code) => Err(Error::setting("class", format!("`{code}`, which no trial has"))
            .expected(match counts(labels).is_empty() {
                true => "a name of a file, as the trials have no labels".to_owned(),
                false => {
                    let known: Vec<String> = counts(labels).into_keys().collect();
                    format!("a code or label that occurs; there are {}", known.join(", "))
                }
            })
            .into()),
    }
}

/// The classes and how many trials each has.
fn counts(labels: &[Option<String>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for label in labels.iter().flatten() {
        *counts.entry(label.clone()).or_insert(0) += 1;
    }
    counts
}

/// Writes the table: powers, then the label if any is known, then the file if asked for.
fn write(args: &PsdArgs, features: &Features, tally: &Tally) -> Result<(), Fault> {
    let mut output = Output::open(args.out.as_deref())?;
    let labelled = features.labels.iter().any(Option::is_some);
    let mut names = features.names();
    let label = labelled.then_some(args.label.as_str());
    let file = args.with_file.then_some("file");
    for name in label.into_iter().chain(file) {
        if names.iter().any(|known| known == name) {
            return Err(Error::setting(
                "label",
                format!("`{name}`, a column that is there already"),
            )
            .expected("another name")
            .into());
        }
        names.push(name.to_owned());
    }
    let head: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    output.write(format!("{}\n", head.join(",")).as_bytes())?;
    for (number, row) in features.rows.iter().enumerate() {
        let mut cells: Vec<String> = row.iter().map(|value| format!("{value:?}")).collect();
        if labelled {
            cells.push(features.labels[number].as_deref().map_or(String::new(), quoted));
        }
        if args.with_file {
            cells.push(quoted(&tally.files[number]));
        }
        output.write(format!("{}\n", cells.join(",")).as_bytes())?;
    }
    output.finish()
}

/// The mean spectra of the classes, channel by channel.
fn page(args: &PsdArgs, features: &Features, tally: &Tally) -> String {
    let counts = counts(&features.labels);
    let classes: Vec<Option<String>> = match counts.is_empty() {
        true => vec![None],
        false => counts.keys().cloned().map(Some).collect(),
    };
    let files: Vec<String> =
        args.files.iter().map(|path| path.display().to_string()).take(4).collect();
    let more = if args.files.len() > 4 { " and others" } else { "" };
    let mut page = Page::new("Spectra of trials")
        .lead(format!("Mean power spectral densities of {}{more}.", files.join(", ")))
        .cards([
            Card::new("trials", format::count(features.rows.len() as u64)).note(tally.left_out()),
            Card::new("channels", features.channels.len().to_string())
                .note(features.channels.join(", ")),
            Card::new("seconds", format::setting(tally.samples as f64 / tally.rate)).note(format!(
                "{} samples at {} Hz, {} segments",
                tally.samples, tally.rate, tally.segments
            )),
            match args.spectrum.band.as_str() {
                "none" => Card::new("filter", "none"),
                band => Card::new("filter", format!("{band} Hz"))
                    .note(format!("Butterworth of order {}, both ways", args.spectrum.order)),
            },
        ]);
    let width = features.frequencies.len();
    let mean = |class: &Option<String>, column: usize| {
        let rows = features.rows.iter().zip(&features.labels);
        let values = rows.filter(|(_, label)| *label == class).map(|(row, _)| row[column]);
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        sum / f64::from(count)
    };
    page = page.section("Mean spectra");
    for (at, channel) in features.channels.iter().enumerate() {
        let mut chart = Chart::new(format!("Channel {channel}"))
            .x_label("frequency in Hz")
            .y_label("power per Hz in dB");
        let mut points: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for class in &classes {
            let decibels = |bin| 10.0 * mean(class, at * width + bin).log10();
            let values = features.frequencies.iter().enumerate();
            let name = class.clone().unwrap_or_else(|| "all trials".into());
            points.push((name, values.map(|(bin, &f)| (f, decibels(bin))).collect()));
        }
        // What the filter has stopped would fill the picture otherwise.
        let values = || points.iter().flat_map(|(_, line)| line).map(|point| point.1);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        let lowest = values().fold(f64::INFINITY, f64::min).max(highest - DEPTH);
        let room = 0.05 * (highest - lowest);
        chart = chart.y_range(lowest - room, highest + room);
        for (name, line) in points {
            chart = chart.series(Series::line(name, line));
        }
        page = page.chart(chart, "10 log10 of the mean over all trials of a class.");
    }
    if !counts.is_empty() {
        let mut table = Table::new(["class", "trials"]);
        for (class, count) in &counts {
            table = table.row([class.clone(), count.to_string()]);
        }
        page = page.section("Classes").table(table);
    }
    page.footer("Made by broadlearn psd.").to_html()
}
