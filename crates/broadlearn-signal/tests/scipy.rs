//! Filters and spectra against SciPy's (`reference/filters.py`).
#![allow(clippy::unwrap_used, missing_docs)]

use broadlearn_signal::{Butterworth, Welch, Window};
use serde_json::Value;

fn reference() -> Value {
    serde_json::from_str(include_str!("reference/filters.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// The largest difference, relative to the largest value.
fn difference(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = |values: &mut dyn Iterator<Item = f64>| values.map(f64::abs).fold(0.0, f64::max);
    let errors = &mut found.iter().zip(expected).map(|(one, other)| one - other);
    largest(errors) / largest(&mut expected.iter().copied())
}

#[test]
fn filters_agree() {
    let reference = reference();
    let signal = numbers(&reference["signal"]);
    let mut worst = [0.0_f64; 3];
    for case in reference["filters"].as_array().unwrap() {
        let order = case["order"].as_u64().unwrap() as usize;
        let corner = numbers(&case["corner"]);
        let rate = case["rate"].as_f64().unwrap_or(reference["rate"].as_f64().unwrap());
        let kind = case["kind"].as_str().unwrap();
        let filter = match kind {
            "lowpass" => Butterworth::low_pass(order, corner[0]),
            "highpass" => Butterworth::high_pass(order, corner[0]),
            "bandpass" => Butterworth::band_pass(order, corner[0], corner[1]),
            _ => Butterworth::band_stop(order, corner[0], corner[1]),
        };
        let filter = filter.sections(rate).unwrap();
        let what = format!("{kind} of order {order} at {corner:?}");
        let sections = case["sos"].as_array().unwrap();
        assert_eq!(filter.len(), sections.len(), "{what}");
        for (section, expected) in filter.as_slice().iter().zip(sections) {
            let found: Vec<f64> = section.b.iter().chain(&section.a).copied().collect();
            let error = difference(&found, &numbers(expected));
            assert!(error < 1e-12, "{what}: {found:?} for {expected}");
            worst[0] = worst[0].max(error);
        }
        assert_eq!(filter.padding() as u64, case["padding"].as_u64().unwrap(), "{what}");
        let error = difference(&filter.once(&signal[..20]), &numbers(&case["once"]));
        assert!(error < 1e-9, "{what}: {error:e}");
        worst[1] = worst[1].max(error);
        for output in case["outputs"].as_array().unwrap() {
            let length = output["length"].as_u64().unwrap() as usize;
            let expected = numbers(&output["both_ways"]);
            let found = filter.both_ways(&signal[..length]).unwrap();
            // Relative to the signal: a band-pass leaves little of it.
            let largest = signal.iter().copied().fold(0.0, f64::max);
            let errors = found.iter().zip(&expected).map(|(one, other)| (one - other).abs());
            let error = errors.fold(0.0, f64::max) / largest;
            assert!(error < 1e-9, "{what}, {length} samples: {error:e}");
            worst[2] = worst[2].max(error);
        }
        let refused = filter.both_ways(&signal[..filter.padding()]).unwrap_err();
        assert!(refused.to_string().contains("expected more than"), "{refused}");
    }
    println!("sections {:e}, once {:e}, both ways {:e}", worst[0], worst[1], worst[2]);
}

#[test]
fn spectra_agree() {
    let reference = reference();
    let signal = numbers(&reference["signal"]);
    let rate = reference["rate"].as_f64().unwrap();
    let mut worst = 0.0_f64;
    for case in reference["spectra"].as_array().unwrap() {
        let window = match case["window"].as_str().unwrap() {
            "hann" => Window::Hann,
            "hamming" => Window::Hamming,
            _ => Window::Boxcar,
        };
        let count = |key: &str| case[key].as_u64().unwrap() as usize;
        let welch =
            Welch::new(rate, window, count("segment"), count("overlap"), count("nfft")).unwrap();
        assert!(difference(&welch.frequencies(), &numbers(&case["frequencies"])) < 1e-15);
        let power = welch.spectrum(&signal[..count("length")]).unwrap();
        let expected = numbers(&case["power"]);
        // A segment of one sample is nothing without its mean.
        if count("segment") == 1 {
            assert!(power.iter().chain(&expected).all(|value| *value == 0.0));
            continue;
        }
        let error = difference(&power, &expected);
        assert!(error < 1e-9, "{case}: {error:e}");
        worst = worst.max(error);
    }
    println!("spectra {worst:e}");
}

#[test]
fn settings_out_of_range_are_refused() {
    let refused = |error: broadlearn::Error, part: &str| {
        assert_eq!(error.category(), broadlearn::Category::Setting);
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(Butterworth::low_pass(0, 10.0).sections(250.0).unwrap_err(), "from 1 to");
    refused(Butterworth::low_pass(33, 10.0).sections(250.0).unwrap_err(), "from 1 to");
    for (low, high) in [(0.0, 10.0), (10.0, 125.0), (20.0, 10.0), (f64::NAN, 10.0), (10.0, 10.0)] {
        refused(Butterworth::band_pass(2, low, high).sections(250.0).unwrap_err(), "below 125 Hz");
    }
    refused(Butterworth::low_pass(2, 10.0).sections(f64::NAN).unwrap_err(), "samples a second");
    refused(Welch::new(250.0, Window::Hann, 0, 0, 8).unwrap_err(), "from 1");
    refused(Welch::new(250.0, Window::Hann, 8, 8, 8).unwrap_err(), "fewer than the 8");
    refused(Welch::new(250.0, Window::Hann, 8, 0, 7).unwrap_err(), "from 8");
    refused(Welch::new(0.0, Window::Hann, 8, 0, 8).unwrap_err(), "samples a second");
    let welch = Welch::new(250.0, Window::Hann, 8, 4, 8).unwrap();
    let error = welch.spectrum(&[0.0; 7]).unwrap_err();
    assert!(error.to_string().contains("at least 8"), "{error}");
}
