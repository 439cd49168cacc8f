//! Recordings against what MNE reads from the same files (`reference/recordings.py`).
#![allow(clippy::unwrap_used, missing_docs)]

use broadlearn::Category;
use broadlearn_signal::{Cut, Recording};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

#[test]
fn recordings_are_what_mne_reads() {
    let reference: Value = serde_json::from_str(include_str!("reference/recordings.json")).unwrap();
    let files = reference.as_object().unwrap();
    assert_eq!(files.len(), 25);
    let mut worst = 0.0_f64;
    for (name, expected) in files {
        let recording = Recording::open(&path(name)).unwrap();
        assert_eq!(recording.rate().unwrap(), expected["rate"].as_f64().unwrap(), "{name}");
        let channels = expected["channels"].as_array().unwrap();
        assert_eq!(recording.channels.len(), channels.len(), "{name}");
        for (at, channel) in recording.channels.iter().enumerate() {
            assert_eq!(channel.name, channels[at].as_str().unwrap());
            assert_eq!(channel.unit, "uV");
            let samples = expected["samples"][at].as_array().unwrap();
            assert_eq!(channel.samples.len(), samples.len(), "{name}");
            let samples: Vec<f64> = samples.iter().map(|value| value.as_f64().unwrap()).collect();
            let largest = samples.iter().map(|value| value.abs()).fold(0.0, f64::max);
            for (found, expected) in channel.samples.iter().zip(&samples) {
                let error = (found - expected).abs() / largest;
                assert!(error < 1e-12, "{name}: {found} for {expected}");
                worst = worst.max(error);
            }
        }
        let events = expected["events"].as_array().unwrap();
        assert_eq!(recording.events.len(), events.len(), "{name}");
        for (event, expected) in recording.events.iter().zip(events) {
            assert!((event.time - expected[0].as_f64().unwrap()).abs() < 1e-9, "{name}");
            assert_eq!(event.code, expected[1].as_str().unwrap(), "{name}");
        }
    }
    println!("largest difference {worst:e}");
}

#[test]
fn rejected_trials_are_left_out() {
    let codes = vec!["769".to_owned(), "770".to_owned()];
    let cut = Cut { codes, from: 0.0, to: 0.5, keep_rejected: false };
    for name in ["gdf1_mode3.gdf", "gdf2_int16.gdf", "gdf2_mode1.gdf"] {
        let recording = Recording::open(&path(name)).unwrap();
        let trials = recording.trials(&cut).unwrap();
        assert_eq!((trials.trials.len(), trials.dropped.rejected), (1, 1), "{name}");
        assert_eq!(trials.trials[0].label.as_deref(), Some("769"));
        assert_eq!(trials.trials[0].samples[0][..], recording.channels[0].samples[10..35]);
        let all = recording.trials(&Cut { keep_rejected: true, ..cut.clone() }).unwrap();
        assert_eq!(all.trials.len(), 2);
    }
    let recording = Recording::open(&path("plus.edf")).unwrap();
    let error = recording.trials(&cut).unwrap_err().to_string();
    assert!(error.contains("no event `769`") && error.contains("T1 (1 times)"), "{error}");
}

#[test]
fn channels_are_found_by_name_or_number() {
    let recording = Recording::open(&path("gdf1_mode3.gdf")).unwrap();
    let names = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let selected = recording.clone().select(&wanted);
        selected.map(|r| r.channels.iter().map(|c| c.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(names(&["C4", "EEG:C3"]).unwrap(), ["EEG:C4", "EEG:C3"]);
    assert_eq!(names(&["2"]).unwrap(), ["EEG:Cz"]);
    assert!(names(&["C5"]).unwrap_err().to_string().contains("one of `EEG:C3`"));
    assert!(names(&["C3", "1"]).unwrap_err().to_string().contains("twice"));
}

#[test]
fn missing_samples_of_gdf_are_missing_and_split_the_filter() {
    let mut file = bytes("gdf2_int16.gdf");
    // The first channel of the first record, sample 20.
    let at = 256 * 3 + 2 * 20;
    file[at..at + 2].copy_from_slice(&i16::MIN.to_le_bytes());
    let recording = Recording::from_bytes("gap.gdf", &file).unwrap();
    assert!(recording.channels[0].samples[20].is_nan());
    let filter = broadlearn_signal::Butterworth::low_pass(2, 10.0).sections(50.0).unwrap();
    let filtered = recording.clone().filtered(&filter).unwrap();
    let missing: Vec<usize> =
        (0..100).filter(|at| filtered.channels[0].samples[*at].is_nan()).collect();
    assert_eq!(missing, [20]);
    let alone = filter.both_ways(&recording.channels[0].samples[..20]).unwrap();
    assert_eq!(filtered.channels[0].samples[..20], alone[..]);
    let cut = Cut { codes: vec!["769".into()], from: 0.0, to: 0.5, keep_rejected: false };
    let trials = filtered.trials(&cut).unwrap().without_missing();
    assert_eq!((trials.trials.len(), trials.dropped.missing), (0, 1));
}

#[test]
fn a_damaged_file_is_an_error_wherever_it_is_cut_or_spoilt() {
    for name in ["gdf1_int16.gdf", "gdf2_float64.gdf", "gdf1_mode3.gdf", "plus.edf", "plain.edf"] {
        let whole = bytes(name);
        let end = whole.len();
        for length in 0..end {
            match Recording::from_bytes(name, &whole[..length]) {
                // A file may end before its table of events.
                Ok(recording) => assert!(recording.events.is_empty(), "{name}, {length}"),
                Err(error) => assert_eq!(error.category(), Category::Data, "{name}, {length}"),
            }
        }
        // Any byte of the header may be anything: an error or other numbers, never a panic.
        for at in 0..end.min(1200) {
            for value in [0, 1, 0x20, 0x39, 0x7f, 0x80, 0xff] {
                let mut spoilt = whole.clone();
                spoilt[at] = value;
                if let Ok(recording) = Recording::from_bytes(name, &spoilt) {
                    let count: usize = recording.channels.iter().map(|c| c.samples.len()).sum();
                    assert!(count <= end, "{name}, byte {at}");
                }
            }
        }
        // Counts beyond all reason, in fields of four and eight bytes.
        for at in (184..end.min(1100)).step_by(2) {
            let mut spoilt = whole.clone();
            let stop = (at + 8).min(end);
            spoilt[at..stop].fill(0xff);
            let _ = Recording::from_bytes(name, &spoilt);
            spoilt[at..stop].fill(b'9');
            let _ = Recording::from_bytes(name, &spoilt);
        }
    }
    for (start, part) in
        [("", "an empty file"), ("hello", "other first bytes"), ("GDF 7.00", "version")]
    {
        let error = Recording::from_bytes("x.gdf", start.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn channels_of_different_rates_are_not_mixed() {
    let mut file = bytes("gdf2_int16.gdf");
    // Samples per record of the second channel: 20 + 80 of 100, so that the file keeps its length.
    let at = 256 + 2 * (16 + 80 + 8 + 4 * 8 + 80);
    file[at..at + 4].copy_from_slice(&20_u32.to_le_bytes());
    file[at + 4..at + 8].copy_from_slice(&80_u32.to_le_bytes());
    let recording = Recording::from_bytes("two.gdf", &file).unwrap();
    let error = recording.rate().unwrap_err().to_string();
    assert!(error.contains("`EEG:C3` 20 Hz, `EEG:Cz` 80 Hz"), "{error}");
    assert_eq!(recording.select(&["C3".to_owned()]).unwrap().rate().unwrap(), 20.0);
}
