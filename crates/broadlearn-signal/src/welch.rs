//! Power spectral densities by Welch's method, as SciPy's `welch` gives them.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use broadlearn::{Error, Result};
use realfft::num_complex::Complex64;
use realfft::{RealFftPlanner, RealToComplex};

/// Longer transforms are refused.
const LONGEST: usize = 1 << 24;

/// How a segment fades in and out. The windows are periodic, as those of `scipy.signal.get_window`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Window {
    /// 0.5 - 0.5 cos.
    Hann,
    /// 0.54 - 0.46 cos.
    #[default]
    Hamming,
    /// No fading.
    Boxcar,
}

impl Window {
    /// The weights of so many samples.
    pub fn weights(self, count: usize) -> Vec<f64> {
        let share = match self {
            Self::Hann => 0.5,
            Self::Hamming => 0.54,
            Self::Boxcar => 1.0,
        };
        let angle = |i: usize| 2.0 * PI * i as f64 / count as f64;
        match count {
            // What SciPy gives; the formula would vanish.
            1 => vec![1.0],
            _ => (0..count).map(|i| share - (1.0 - share) * angle(i).cos()).collect(),
        }
    }
}

/// Welch's method: the mean of the spectra of overlapping segments, each without its mean and
/// faded in and out. One-sided, in squared units per Hz.
///
/// ```
/// use broadlearn_signal::{Welch, Window};
/// let rate = 250.0;
/// let wave = |i: usize| (2.0 * std::f64::consts::PI * 10.0 * i as f64 / rate).sin();
/// let signal: Vec<f64> = (0..1000).map(wave).collect();
/// let welch = Welch::new(rate, Window::Hann, 250, 125, 500)?;
/// let power = welch.spectrum(&signal)?;
/// let strongest = (0..power.len()).max_by(|a, b| power[*a].total_cmp(&power[*b])).unwrap();
/// assert_eq!(welch.frequencies()[strongest], 10.0);
/// // The power of a sine is one half.
/// assert!((power.iter().sum::<f64>() * rate / 500.0 - 0.5).abs() < 0.01);
/// # Ok::<(), broadlearn::Error>(())
/// ```
#[derive(Clone)]
pub struct Welch {
    rate: f64,
    weights: Vec<f64>,
    overlap: usize,
    transform: Arc<dyn RealToComplex<f64>>,
}

impl Welch {
    /// Segments of `segment` samples, `overlap` of them shared with the one before; `length`
    /// samples are transformed, zeros added.
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn new(
        rate: f64,
        window: Window,
        segment: usize,
        overlap: usize,
        length: usize,
    ) -> Result<Self> {
        if !(rate.is_finite() && rate > 0.0) {
            let expected = "a number of samples a second above 0";
            return Err(Error::setting("rate", rate).expected(expected));
        }
        if segment == 0 || segment > LONGEST {
            return Err(Error::setting("segment", format!("{segment} samples"))
                .expected(format!("from 1 to {LONGEST} samples")));
        }
        if overlap >= segment {
            return Err(Error::setting("overlap", format!("{overlap} samples"))
                .expected(format!("fewer than the {segment} samples of a segment")));
        }
        if length < segment || length > LONGEST {
            return Err(Error::setting("nfft", length)
                .expected(format!("from {segment}, the samples of a segment, to {LONGEST}")));
        }
        let transform = RealFftPlanner::new().plan_fft_forward(length);
        Ok(Self { rate, weights: window.weights(segment), overlap, transform })
    }

    /// The frequencies in Hz, from 0 to half of the rate.
    pub fn frequencies(&self) -> Vec<f64> {
        let length = self.transform.len();
        (0..=length / 2).map(|bin| bin as f64 * self.rate / length as f64).collect()
    }

    /// The samples of a segment.
    pub fn segment(&self) -> usize {
        self.weights.len()
    }

    /// How many segments a signal of so many samples has.
    pub fn segments(&self, samples: usize) -> usize {
        let step = self.segment() - self.overlap;
        samples.checked_sub(self.segment()).map_or(0, |rest| rest / step + 1)
    }

    /// The power of a signal at each of the [`frequencies`](Self::frequencies).
    ///
    /// # Errors
    /// If the signal is shorter than a segment. (SciPy takes a shorter segment then; spectra of
    /// different resolution would stand side by side.)
    pub fn spectrum(&self, signal: &[f64]) -> Result<Vec<f64>> {
        let segment = self.segment();
        let count = self.segments(signal.len());
        if count == 0 {
            return Err(Error::data(format!("a signal of {} samples", signal.len()))
                .expected(format!("at least {segment}, the samples of a segment"))
                .advice("take longer trials or a shorter `--segment`"));
        }
        let length = self.transform.len();
        let mut input = self.transform.make_input_vec();
        let mut output = self.transform.make_output_vec();
        let mut scratch = self.transform.make_scratch_vec();
        let mut power = vec![0.0; output.len()];
        for start in (0..count).map(|k| k * (segment - self.overlap)) {
            let part = &signal[start..start + segment];
            let mean = part.iter().sum::<f64>() / segment as f64;
            input.fill(0.0);
            for ((cell, value), weight) in input.iter_mut().zip(part).zip(&self.weights) {
                *cell = (value - mean) * weight;
            }
            // The lengths are those of the plan: nothing else can fail.
            let done = self.transform.process_with_scratch(&mut input, &mut output, &mut scratch);
            done.map_err(|error| Error::numeric("no transform of this length").caused_by(error))?;
            let squares = output.iter().map(Complex64::norm_sqr);
            power.iter_mut().zip(squares).for_each(|(sum, square)| *sum += square);
        }
        let energy: f64 = self.weights.iter().map(|weight| weight * weight).sum();
        let scale = 1.0 / (self.rate * energy * count as f64);
        for (bin, value) in power.iter_mut().enumerate() {
            // Each frequency stands for its negative, too, but for those that have none.
            let alone = bin == 0 || 2 * bin == length;
            *value *= if alone { scale } else { 2.0 * scale };
        }
        Ok(power)
    }
}

impl fmt::Debug for Welch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Welch")
            .field("rate", &self.rate)
            .field("segment", &self.segment())
            .field("overlap", &self.overlap)
            .field("length", &self.transform.len())
            .finish()
    }
}
