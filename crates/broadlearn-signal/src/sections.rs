//! Second-order sections: filtering once, and both ways without a shift.

use broadlearn::{Error, Result};

/// One section: (b0 + b1 z^-1 + b2 z^-2) / (1 + a1 z^-1 + a2 z^-2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Section {
    /// What comes in.
    pub b: [f64; 3],
    /// What has come out; the first is 1.
    pub a: [f64; 3],
}

/// A filter as a chain of second-order sections.
#[derive(Clone, Debug, PartialEq)]
pub struct Sections(Vec<Section>);

impl Sections {
    pub(crate) fn new(sections: Vec<Section>) -> Self {
        Self(sections)
    }

    /// The sections, in the order in which a signal passes them.
    pub fn as_slice(&self) -> &[Section] {
        &self.0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, so that nothing is filtered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many samples [`both_ways`](Self::both_ways) adds at each end. A signal must have more.
    pub fn padding(&self) -> usize {
        let zeros = |last: fn(&Section) -> f64| {
            self.0.iter().filter(|section| last(section) == 0.0).count()
        };
        let first_order = zeros(|section| section.b[2]).min(zeros(|section| section.a[2]));
        3 * (2 * self.0.len() + 1 - first_order)
    }

    /// The signal, filtered once; it is at rest before its first sample. As SciPy's `sosfilt`.
    pub fn once(&self, signal: &[f64]) -> Vec<f64> {
        let mut signal = signal.to_vec();
        self.apply(&mut signal, &vec![[0.0; 2]; self.0.len()]);
        signal
    }

    /// The signal, filtered forwards and backwards, so that nothing is shifted in time. At both
    /// ends it goes on, turned about its last sample. As SciPy's `sosfiltfilt`.
    ///
    /// # Errors
    /// If there are not more samples than [`padding`](Self::padding).
    pub fn both_ways(&self, signal: &[f64]) -> Result<Vec<f64>> {
        let pad = self.padding();
        let count = signal.len();
        if count <= pad {
            return Err(Error::data(format!("a signal of {count} samples"))
                .expected(format!("more than {pad} samples for this filter"))
                .advice("take longer trials, a lower order, or filter the whole recording first"));
        }
        let (first, last) = (signal[0], signal[count - 1]);
        let mut wide = Vec::with_capacity(count + 2 * pad);
        wide.extend(signal[1..=pad].iter().rev().map(|value| 2.0 * first - value));
        wide.extend_from_slice(signal);
        wide.extend(
            signal[count - 1 - pad..count - 1].iter().rev().map(|value| 2.0 * last - value),
        );
        let settled = self.settled();
        for _ in 0..2 {
            let start = wide[0];
            let states: Vec<[f64; 2]> =
                settled.iter().map(|state| [state[0] * start, state[1] * start]).collect();
            self.apply(&mut wide, &states);
            wide.reverse();
        }
        Ok(wide[pad..pad + count].to_vec())
    }

    /// The states in which a constant signal of 1 has been there forever. As `sosfilt_zi`.
    fn settled(&self) -> Vec<[f64; 2]> {
        let mut scale = 1.0;
        self.0
            .iter()
            .map(|Section { b, a }| {
                let first = b[1] - a[1] * b[0];
                let second = b[2] - a[2] * b[0];
                let state = (first + second) / (1.0 + a[1] + a[2]);
                let states = [scale * state, scale * ((1.0 + a[1]) * state - first)];
                scale *= b.iter().sum::<f64>() / a.iter().sum::<f64>();
                states
            })
            .collect()
    }

    /// Direct form II, transposed.
    fn apply(&self, signal: &mut [f64], states: &[[f64; 2]]) {
        for (Section { b, a }, states) in self.0.iter().zip(states) {
            let [mut one, mut two] = *states;
            for value in signal.iter_mut() {
                let x = *value;
                let y = b[0] * x + one;
                one = b[1] * x - a[1] * y + two;
                two = b[2] * x - a[2] * y;
                *value = y;
            }
        }
    }
}
