//! Butterworth filters as second-order sections, as SciPy's `butter(..., output='sos')` gives them.

use std::f64::consts::PI;
use std::fmt;

use broadlearn::{Error, Result};
use realfft::num_complex::Complex64;

use crate::sections::{Section, Sections};

/// Higher orders are refused: their sections lose digits, and nobody needs them.
const HIGHEST_ORDER: usize = 32;

/// A Butterworth filter: its order and what passes, in Hz.
///
/// ```
/// use broadlearn_signal::Butterworth;
/// let filter = Butterworth::band_pass(4, 8.0, 35.0).sections(250.0)?;
/// assert_eq!(filter.len(), 4);
/// let slow: Vec<f64> = (0..500).map(|i| 100.0 + (i as f64 / 100.0).sin()).collect();
/// let kept = filter.both_ways(&slow)?;
/// assert!(kept[50..450].iter().all(|value| value.abs() < 0.01));
/// # Ok::<(), broadlearn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Butterworth {
    order: usize,
    pass: Pass,
}

/// What a filter lets pass, by its corner frequencies in Hz.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pass {
    Below(f64),
    Above(f64),
    Between(f64, f64),
    Outside(f64, f64),
}

impl Butterworth {
    /// What is below a frequency passes.
    pub fn low_pass(order: usize, frequency: f64) -> Self {
        Self { order, pass: Pass::Below(frequency) }
    }

    /// What is above a frequency passes.
    pub fn high_pass(order: usize, frequency: f64) -> Self {
        Self { order, pass: Pass::Above(frequency) }
    }

    /// What is between two frequencies passes. As in SciPy, the filter has twice this order.
    pub fn band_pass(order: usize, low: f64, high: f64) -> Self {
        Self { order, pass: Pass::Between(low, high) }
    }

    /// What is between two frequencies is stopped. As in SciPy, the filter has twice this order.
    pub fn band_stop(order: usize, low: f64, high: f64) -> Self {
        Self { order, pass: Pass::Outside(low, high) }
    }

    /// The filter for signals of this many samples a second.
    ///
    /// # Errors
    /// If the order is 0 or absurd, or a corner is not between 0 and half of the rate.
    pub fn sections(&self, rate: f64) -> Result<Sections> {
        self.check(rate)?;
        // The analog prototype for half of 4 samples a second, as in SciPy.
        let warped = |frequency: f64| 4.0 * (PI * frequency / rate).tan();
        let prototype = Roots::prototype(self.order);
        let analog = match self.pass {
            Pass::Below(frequency) => prototype.low_pass(warped(frequency)),
            Pass::Above(frequency) => prototype.high_pass(warped(frequency)),
            Pass::Between(low, high) => prototype.band_pass(warped(low), warped(high)),
            Pass::Outside(low, high) => prototype.band_stop(warped(low), warped(high)),
        };
        Ok(Sections::new(analog.digital().paired()))
    }

    fn check(&self, rate: f64) -> Result<()> {
        if !(rate.is_finite() && rate > 0.0) {
            let expected = "a number of samples a second above 0";
            return Err(Error::setting("rate", rate).expected(expected));
        }
        if self.order == 0 || self.order > HIGHEST_ORDER {
            let expected = format!("a number from 1 to {HIGHEST_ORDER}");
            return Err(Error::setting("order", self.order).expected(expected));
        }
        let half = rate / 2.0;
        let inside = |frequency: f64| frequency > 0.0 && frequency < half;
        let (right, expected) = match self.pass {
            Pass::Below(frequency) | Pass::Above(frequency) => (inside(frequency), "a frequency"),
            Pass::Between(low, high) | Pass::Outside(low, high) => {
                (inside(low) && inside(high) && low < high, "two rising frequencies")
            }
        };
        if right {
            return Ok(());
        }
        let expected = format!("{expected} above 0 and below {half} Hz, half of the sampling rate");
        Err(Error::setting("band", format!("{self}")).expected(expected))
    }
}

impl fmt::Display for Butterworth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pass {
            Pass::Below(frequency) => write!(f, "below {frequency} Hz"),
            Pass::Above(frequency) => write!(f, "above {frequency} Hz"),
            Pass::Between(low, high) => write!(f, "{low} to {high} Hz"),
            Pass::Outside(low, high) => write!(f, "all but {low} to {high} Hz"),
        }
    }
}

/// A filter as zeros, poles and gain.
#[derive(Clone, Debug)]
struct Roots {
    zeros: Vec<Complex64>,
    poles: Vec<Complex64>,
    gain: f64,
}

const ZERO: Complex64 = Complex64::new(0.0, 0.0);

/// The product of (at - root).
fn product(roots: &[Complex64], at: f64) -> Complex64 {
    roots.iter().map(|root| at - root).product()
}

impl Roots {
    /// The analog low-pass with its corner at 1.
    fn prototype(order: usize) -> Self {
        let pole = |k: usize| {
            let m = 2.0 * k as f64 + 1.0 - order as f64;
            -Complex64::from_polar(1.0, PI * m / (2.0 * order as f64))
        };
        Self { zeros: Vec::new(), poles: (0..order).map(pole).collect(), gain: 1.0 }
    }

    /// By how many the poles outnumber the zeros.
    fn degree(&self) -> usize {
        self.poles.len() - self.zeros.len()
    }

    fn low_pass(self, corner: f64) -> Self {
        let gain = self.gain * corner.powi(self.degree() as i32);
        let scaled = |roots: Vec<Complex64>| roots.into_iter().map(|root| root * corner).collect();
        Self { zeros: scaled(self.zeros), poles: scaled(self.poles), gain }
    }

    /// Roots become `numerator / root`; the gain at infinity is the former one at 0.
    fn inverted(&self, numerator: f64) -> Self {
        let gain = self.gain * (product(&self.zeros, 0.0) / product(&self.poles, 0.0)).re;
        let turned =
            |roots: &[Complex64]| roots.iter().map(|root| numerator / root).collect::<Vec<_>>();
        Self { zeros: turned(&self.zeros), poles: turned(&self.poles), gain }
    }

    fn high_pass(self, corner: f64) -> Self {
        let mut roots = self.inverted(corner);
        roots.zeros.resize(roots.poles.len(), ZERO);
        roots
    }

    /// Roots of a low-pass are moved to both sides of the centre.
    fn split(roots: &[Complex64], centre: f64) -> Vec<Complex64> {
        let width = |root: &Complex64| (root * root - centre * centre).sqrt();
        let above = roots.iter().map(|root| root + width(root));
        above.chain(roots.iter().map(|root| root - width(root))).collect()
    }

    fn band_pass(self, low: f64, high: f64) -> Self {
        let (width, centre) = (high - low, (low * high).sqrt());
        let degree = self.degree();
        let gain = self.gain * width.powi(degree as i32);
        let halved =
            |roots: &[Complex64]| roots.iter().map(|root| root * (width / 2.0)).collect::<Vec<_>>();
        let mut zeros = Self::split(&halved(&self.zeros), centre);
        zeros.resize(zeros.len() + degree, ZERO);
        Self { zeros, poles: Self::split(&halved(&self.poles), centre), gain }
    }

    fn band_stop(self, low: f64, high: f64) -> Self {
        let (width, centre) = (high - low, (low * high).sqrt());
        let degree = self.degree();
        let turned = self.inverted(width / 2.0);
        let mut zeros = Self::split(&turned.zeros, centre);
        zeros.resize(zeros.len() + degree, Complex64::new(0.0, centre));
        zeros.resize(zeros.len() + degree, Complex64::new(0.0, -centre));
        Self { zeros, poles: Self::split(&turned.poles, centre), gain: turned.gain }
    }

    /// The bilinear transform at 2 samples a second.
    fn digital(self) -> Self {
        const TWICE: f64 = 4.0;
        let gain = self.gain * (product(&self.zeros, TWICE) / product(&self.poles, TWICE)).re;
        let moved = |roots: &[Complex64]| {
            roots.iter().map(|root| (TWICE + root) / (TWICE - root)).collect::<Vec<_>>()
        };
        let mut zeros = moved(&self.zeros);
        zeros.resize(self.poles.len(), Complex64::new(-1.0, 0.0));
        Self { zeros, poles: moved(&self.poles), gain }
    }

    /// Sections of two poles and two zeros each: the pole next to the unit circle, with the zeros
    /// next to it, comes last. This is the pairing `nearest` of SciPy's `zpk2sos`.
    fn paired(mut self) -> Vec<Section> {
        if self.poles.len() % 2 == 1 {
            self.poles.push(ZERO);
            self.zeros.push(ZERO);
        }
        let mut sections = Vec::with_capacity(self.poles.len() / 2);
        let (mut zeros, mut poles) = (upper_half(&self.zeros), upper_half(&self.poles));
        while let Some(at) = worst(&poles, |_| true) {
            let pole = poles.remove(at);
            let second = if !is_real(pole) {
                pole.conj()
            } else {
                worst(&poles, is_real).map_or(ZERO, |at| poles.remove(at))
            };
            let reals = |roots: &[Complex64]| roots.iter().filter(|root| is_real(**root)).count();
            // A single real zero must be left for a single real pole.
            let must_be_complex = !is_real(pole)
                && poles.len() + 1 == zeros.len()
                && reals(&poles) == 1
                && reals(&zeros) == 1;
            let kind: fn(Complex64) -> bool =
                if must_be_complex { |zero| !is_real(zero) } else { |_| true };
            let zero = take_nearest(&mut zeros, pole, kind);
            let other = match zero {
                Some(zero) if !is_real(zero) => Some(zero.conj()),
                _ => take_nearest(&mut zeros, pole, is_real),
            };
            let (zero, other) = (zero.unwrap_or(ZERO), other.unwrap_or(ZERO));
            sections.push(Section {
                b: [1.0, -(zero + other).re, (zero * other).re],
                a: [1.0, -(pole + second).re, (pole * second).re],
            });
        }
        sections.reverse();
        if let Some(first) = sections.first_mut() {
            first.b.iter_mut().for_each(|value| *value *= self.gain);
        }
        sections
    }
}

fn is_real(root: Complex64) -> bool {
    root.im == 0.0
}

/// One root of each conjugate pair, the mean of the two, and all real ones; sorted.
fn upper_half(roots: &[Complex64]) -> Vec<Complex64> {
    const NEARLY: f64 = 100.0 * f64::EPSILON;
    let real = |root: &&Complex64| root.im.abs() <= NEARLY * root.norm();
    let mut above: Vec<Complex64> =
        roots.iter().filter(|root| !real(root) && root.im > 0.0).copied().collect();
    let mut below: Vec<Complex64> =
        roots.iter().filter(|root| !real(root) && root.im < 0.0).map(Complex64::conj).collect();
    let mut reals: Vec<Complex64> =
        roots.iter().filter(real).map(|root| Complex64::new(root.re, 0.0)).collect();
    for list in [&mut above, &mut below, &mut reals] {
        list.sort_by(|one, other| {
            // Real parts that agree but for rounding are equal.
            match (one.re - other.re).abs() <= NEARLY * one.norm() {
                true => one.im.total_cmp(&other.im),
                false => one.re.total_cmp(&other.re),
            }
        });
    }
    let pairs = above.iter().zip(&below).map(|(one, other)| (one + other) / 2.0);
    pairs.chain(reals).collect()
}

/// The place of the root of this kind that is next to the unit circle.
fn worst(roots: &[Complex64], kind: impl Fn(Complex64) -> bool) -> Option<usize> {
    let distance = |at: &usize| (1.0 - roots[*at].norm()).abs();
    let of_kind = (0..roots.len()).filter(|at| kind(roots[*at]));
    of_kind.min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

fn take_nearest(
    roots: &mut Vec<Complex64>,
    to: Complex64,
    kind: impl Fn(Complex64) -> bool,
) -> Option<Complex64> {
    let distance = |at: &usize| (roots[*at] - to).norm();
    let of_kind = (0..roots.len()).filter(|at| kind(roots[*at]));
    let nearest = of_kind.min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    Some(roots.remove(nearest))
}
