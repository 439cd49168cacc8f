//! Archives of trials (`reference/trials.py`) and tables.
#![allow(clippy::unwrap_used, missing_docs)]

use broadlearn_signal::{Input, InputOptions, Trials, matches};
use std::path::Path;

fn archive(options: &InputOptions) -> Result<Vec<Trials>, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/trials.npz");
    match Input::open(&path, options) {
        Ok(Input::Trials(trials)) => Ok(trials),
        Ok(Input::Recording(_)) => unreachable!("an archive holds trials"),
        Err(error) => Err(error.to_string()),
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_archive_tells_rate_scale_channels_and_labels() {
    let groups = archive(&InputOptions::default()).unwrap();
    assert_eq!(groups.len(), 2);
    for (group, more) in groups.iter().zip([0.0, 1000.0]) {
        assert_eq!((group.rate, group.start), (250.0, 0.0));
        assert_eq!(group.channels, ["C3", "C4"]);
        for (i, trial) in group.trials.iter().enumerate() {
            for (c, samples) in trial.samples.iter().enumerate() {
                let value = |k: usize| 0.5 * (more + (100 * i + 10 * c + k) as f64);
                assert_eq!(*samples, (0..8).map(value).collect::<Vec<_>>());
            }
        }
    }
    let labels = |group: &Trials| -> Vec<String> {
        group.trials.iter().map(|trial| trial.label.clone().unwrap()).collect()
    };
    assert_eq!(labels(&groups[0]), ["1", "2", "1"]);
    assert_eq!(labels(&groups[1]), ["left", "right", "left"]);
}

#[test]
fn what_is_said_counts_more_than_what_is_found() {
    let options = InputOptions {
        rate: Some(100.0),
        scale: Some(2.0),
        channel_names: names(&["a", "b"]),
        trials: names(&["X_?"]),
        labels: names(&["y_2", "y_1"]),
        start: -0.02,
        ..InputOptions::default()
    };
    let groups = archive(&options).unwrap();
    assert_eq!(groups[0].trials[0].label.as_deref(), Some("left"));
    assert_eq!((groups[0].rate, groups[0].trials[1].samples[1][3]), (100.0, 226.0));
    assert_eq!(groups[0].channels, ["a", "b"]);
    // Seconds count from the event, 2 samples after the first.
    let cut = groups[0].clone().cut(Some(0.0), Some(0.03)).unwrap();
    assert_eq!(cut.trials[0].samples[0], [4.0, 6.0, 8.0]);
    for (from, to) in [(-0.03, 0.0), (0.0, 0.07), (0.01, 0.01), (f64::NAN, 1.0)] {
        assert!(groups[0].clone().cut(Some(from), Some(to)).is_err(), "{from} {to}");
    }
}

#[test]
fn mistakes_are_named() {
    let cases = [
        (InputOptions { trials: names(&["Z*"]), ..Default::default() }, "no array `Z*`"),
        (InputOptions { labels: names(&["y_1"]), ..Default::default() }, "one for each of the 2"),
        (InputOptions { labels: names(&["y_1", "q"]), ..Default::default() }, "no array `q`"),
        (InputOptions { labels: names(&["y_1", "fs"]), ..Default::default() }, "1 labels"),
        (InputOptions { channel_names: names(&["C3"]), ..Default::default() }, "2 names"),
        (InputOptions { rate: Some(-1.0), ..Default::default() }, "above 0"),
    ];
    for (options, part) in cases {
        let error = archive(&options).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_damaged_archive_is_an_error_wherever_it_is_cut() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/trials.npz");
    let whole = std::fs::read(path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.npz");
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(Input::open(&path, &InputOptions::default()).is_err());
    }
    for at in (0..whole.len()).step_by(3) {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 0x55;
        std::fs::write(&path, &spoilt).unwrap();
        let _ = Input::open(&path, &InputOptions::default());
    }
}

#[test]
fn patterns() {
    for (pattern, name, fits) in [
        ("X_*T", "X_B0101T", true),
        ("X_*T", "X_B0101E", false),
        ("*", "", true),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("a**b", "ab", true),
        ("", "a", false),
        ("abc", "abc", true),
        ("ab", "abc", false),
    ] {
        assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
    }
}
