//! Axes: from values to places between zero and one, and ticks at round values.

use crate::text::{fixed, superscript};

/// Beyond this size differences overflow; such values are treated like missing ones.
const LARGEST: f64 = 1e150;
/// Below this distance a range counts as a single point.
const SMALLEST: f64 = 1e-150;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log10,
}

impl Scale {
    /// The value on the inner, evenly spaced scale, or nothing when it cannot be shown.
    pub(crate) fn inner(self, value: f64) -> Option<f64> {
        let inner = match self {
            Scale::Linear => value,
            Scale::Log10 if value > 0.0 => value.log10(),
            Scale::Log10 => return None,
        };
        (value.abs() <= LARGEST).then_some(inner)
    }

    fn outer(self, inner: f64) -> f64 {
        match self {
            Scale::Linear => inner,
            Scale::Log10 => 10f64.powf(inner),
        }
    }
}

/// The smallest interval around values seen so far, on the inner scale.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent(Option<(f64, f64)>);

impl Extent {
    pub(crate) fn add(&mut self, inner: f64) {
        let (lo, hi) = self.0.unwrap_or((inner, inner));
        self.0 = Some((lo.min(inner), hi.max(inner)));
    }
}

/// One axis: a scale and a never empty range of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    lo: f64,
    hi: f64,
}

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Between zero (start) and one (end).
    pub(crate) at: f64,
    pub(crate) label: String,
}

impl Axis {
    /// An axis that shows the extent with a margin, as a share of its length. `stop_at_zero` keeps
    /// the margin from suggesting negative values where there are none.
    pub(crate) fn around(scale: Scale, extent: Extent, margin: f64, stop_at_zero: bool) -> Axis {
        let (lo, hi) = extent.0.unwrap_or((0.0, 1.0));
        let axis = Axis::spanning(scale, lo, hi);
        if (axis.lo, axis.hi) != (lo, hi) {
            return axis;
        }
        let pad = (hi - lo) * margin;
        let (mut low, mut high) = (lo - pad, hi + pad);
        if scale == Scale::Linear && stop_at_zero {
            low = if lo >= 0.0 { low.max(0.0) } else { low };
            high = if hi <= 0.0 { high.min(0.0) } else { high };
        }
        Axis { scale, lo: low, hi: high }
    }

    /// An axis over exactly this inner range, widened only when there is no usable length.
    pub(crate) fn spanning(scale: Scale, lo: f64, hi: f64) -> Axis {
        let (lo, hi) = if lo <= hi { (lo, hi) } else { (hi, lo) };
        let size = lo.abs().max(hi.abs());
        let enough = match scale {
            Scale::Linear => (size * 1e-9).max(SMALLEST),
            Scale::Log10 => 1e-3,
        };
        if hi - lo >= enough {
            return Axis { scale, lo, hi };
        }
        let widen = match scale {
            Scale::Linear if size <= SMALLEST => 1.0,
            Scale::Linear => size * 0.1,
            Scale::Log10 => 0.5,
        };
        Axis { scale, lo: lo - widen, hi: hi + widen }
    }

    /// The place of a value, with zero at the start and one at the end; values beyond the ends are
    /// beyond zero and one.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        self.scale.inner(value).map(|inner| self.place_inner(inner))
    }

    /// As [`Axis::place`], for a value on the inner scale.
    pub(crate) fn place_inner(&self, inner: f64) -> f64 {
        (inner - self.lo) / (self.hi - self.lo)
    }

    /// The ends of the axis as values.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.scale.outer(self.lo), self.scale.outer(self.hi))
    }

    /// Labelled ticks at round values, about `most` of them at the most.
    pub(crate) fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2);
        let ticks = match self.scale {
            Scale::Linear => round_values(self.lo, self.hi, most),
            // Within less than a decade the powers of ten say too little.
            Scale::Log10 if self.hi - self.lo < 0.7 => {
                let (lo, hi) = self.ends();
                round_values(lo, hi, most)
            }
            Scale::Log10 => log_values(self.lo, self.hi, most),
        };
        let place = |(value, label)| Some(Tick { at: self.place(value)?.clamp(0.0, 1.0), label });
        ticks.into_iter().filter_map(place).collect()
    }

    /// Places of the fine lines between decades of a logarithmic axis.
    pub(crate) fn fine_lines(&self) -> Vec<f64> {
        if self.scale == Scale::Linear || !(0.7..=6.0).contains(&(self.hi - self.lo)) {
            return Vec::new();
        }
        let decades = self.lo.floor() as i32..=self.hi.floor() as i32;
        decades
            .flat_map(|d| (2..10).map(move |m| f64::from(d) + f64::from(m).log10()))
            .filter(|inner| (self.lo..=self.hi).contains(inner))
            .map(|inner| self.place_inner(inner))
            .collect()
    }
}

/// Multiples of one, two or five times a power of ten, with labels that agree with each other.
fn round_values(lo: f64, hi: f64, most: usize) -> Vec<(f64, String)> {
    // One tick alone does not show what the scale is; rather one more than wanted then.
    let attempts = (most..most + 4).map(|most| multiples(lo, hi, most));
    attempts.reduce(|a, b| if a.len() >= 2 { a } else { b }).unwrap_or_default()
}

fn multiples(lo: f64, hi: f64, most: usize) -> Vec<(f64, String)> {
    let rough = (hi - lo) / most as f64;
    let mut power = rough.log10().floor() as i32;
    let unit = 10f64.powi(power);
    let mut factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * unit >= rough * (1.0 - 1e-9));
    if factor == Some(10.0) {
        power += 1;
        factor = Some(1.0);
    }
    let step = factor.unwrap_or(1.0) * 10f64.powi(power);
    // A tick that misses the end only by rounding still belongs to the axis.
    let first = (lo / step - 1e-6).ceil();
    let last = (hi / step + 1e-6).floor();
    let count = (last - first).clamp(0.0, 2.0 * most as f64) as usize;
    // Adding zero turns a negative zero into a plain one.
    let values: Vec<f64> = (0..=count).map(|i| (first + i as f64) * step + 0.0).collect();

    let size = values.iter().fold(step, |size, v| size.max(v.abs()));
    let exponent = (size * (1.0 + 1e-9)).log10().floor() as i32;
    let digits = exponent - power;
    let scientific = !(1e-3..1e6).contains(&size) && digits <= 5;
    let label = |value: f64| {
        if value == 0.0 {
            "0".to_owned()
        } else if scientific {
            let mantissa = fixed(value / 10f64.powi(exponent), digits.max(0) as usize);
            format!("{mantissa}×10{}", superscript(exponent))
        } else {
            fixed(value, (-power).max(0) as usize)
        }
    };
    values.into_iter().map(|value| (value, label(value))).collect()
}

/// Powers of ten, and round multiples of them when there is room.
fn log_values(lo: f64, hi: f64, most: usize) -> Vec<(f64, String)> {
    let (first, last) = ((lo - 1e-9).floor() as i32, (hi + 1e-9).floor() as i32);
    let inside = |inner: f64| inner >= lo - 1e-9 && inner <= hi + 1e-9;
    let mut found: Vec<(u8, i32)> = Vec::new();
    for factors in [&[1u8, 2, 5][..], &[1, 3], &[1]] {
        let all = (first..=last).flat_map(|d| factors.iter().map(move |&f| (f, d)));
        let here: Vec<(u8, i32)> =
            all.filter(|&(f, d)| inside(f64::from(d) + f64::from(f).log10())).collect();
        // A single power of ten does not show what the scale is; rather some more ticks then.
        if here.len() >= 2 {
            found = here;
        }
        if found.len() <= most {
            break;
        }
    }
    if found.len() > most {
        // Whole numbers of decades between ticks, counted from one, so that 10⁰ stays if possible.
        let stride = i32::try_from(found.len().div_ceil(most)).unwrap_or(1);
        let thinned: Vec<(u8, i32)> =
            found.iter().copied().filter(|(f, d)| *f == 1 && d.rem_euclid(stride) == 0).collect();
        if thinned.len() >= 2 {
            found = thinned;
        }
    }
    let plain = found.iter().all(|(_, d)| (-3..=4).contains(d));
    let label = |factor: u8, decade: i32| match (plain, factor) {
        (true, _) => fixed(f64::from(factor) * 10f64.powi(decade), (-decade).max(0) as usize),
        (false, 1) => format!("10{}", superscript(decade)),
        (false, _) => format!("{factor}×10{}", superscript(decade)),
    };
    found.into_iter().map(|(f, d)| (f64::from(f) * 10f64.powi(d), label(f, d))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(axis: Axis, most: usize, what: &str) {
        let ticks = axis.ticks(most);
        assert!(ticks.len() >= 2, "{what}: {ticks:?}");
        assert!(ticks.len() <= most.max(5) + 1, "{what}: {ticks:?}");
        for pair in ticks.windows(2) {
            assert!(pair[0].at < pair[1].at, "{what}: {ticks:?}");
            assert_ne!(pair[0].label, pair[1].label, "{what}");
        }
        for tick in &ticks {
            assert!((0.0..=1.0).contains(&tick.at), "{what}: {ticks:?}");
            assert!(tick.label.chars().count() <= 18, "{what}: {ticks:?}");
            assert!(!tick.label.contains("NaN") && !tick.label.contains("inf"), "{what}");
        }
    }

    #[test]
    fn linear_ticks_are_sane_over_many_ranges() {
        for power in (-140..=140).step_by(7) {
            for lo in [-9.7, -1.0, -0.003, 0.0, 0.1, 1.0, 3.33] {
                for span in [0.017, 0.1, 0.99, 1.0, 1.5, 7.0, 42.0] {
                    let unit = 10f64.powi(power);
                    let axis = Axis::spanning(Scale::Linear, lo * unit, (lo + span) * unit);
                    for most in [4, 5, 8, 12] {
                        check(axis, most, &format!("{lo} + {span}, 1e{power}, {most}"));
                    }
                }
            }
        }
    }

    #[test]
    fn log_ticks_are_sane_over_many_ranges() {
        for start in -60..=60 {
            for span in [0.05, 0.3, 0.69, 0.71, 1.0, 1.9, 2.5, 4.0, 11.0, 77.0] {
                let lo = f64::from(start) * 0.73;
                let axis = Axis::spanning(Scale::Log10, lo, lo + span);
                for most in [4, 5, 8, 12] {
                    check(axis, most, &format!("log {lo} + {span}, {most}"));
                }
            }
        }
    }

    #[test]
    fn degenerate_ranges_work() {
        for scale in [Scale::Linear, Scale::Log10] {
            for value in [0.0, 1e-200, -3.0, 5.0, 140.0] {
                check(Axis::spanning(scale, value, value), 6, &format!("{scale:?} {value}"));
                let mut extent = Extent::default();
                extent.add(value);
                check(Axis::around(scale, extent, 0.05, true), 6, &format!("{scale:?} {value}"));
            }
            check(Axis::around(scale, Extent::default(), 0.05, false), 6, "empty");
        }
        check(Axis::spanning(Scale::Linear, -1e150, 1e150), 6, "huge");
    }

    #[test]
    fn labels_are_the_expected_ones() {
        let labels = |axis: Axis, most| -> Vec<String> {
            axis.ticks(most).into_iter().map(|t| t.label).collect()
        };
        let linear = |lo, hi| Axis::spanning(Scale::Linear, lo, hi);
        assert_eq!(labels(linear(0.0, 1.0), 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(linear(-3.0, 8.0), 4), ["0", "5"]);
        assert_eq!(labels(linear(0.0, 2e6), 4), ["0", "0.5×10⁶", "1.0×10⁶", "1.5×10⁶", "2.0×10⁶"]);
        let log = |lo, hi| Axis::spanning(Scale::Log10, lo, hi);
        assert_eq!(labels(log(-2.0, 2.0), 6), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(log(-8.0, 0.0), 5), ["10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"]);
        assert_eq!(labels(log(0.0, 1.0), 6), ["1", "2", "5", "10"]);
    }

    #[test]
    fn what_cannot_be_shown_has_no_place() {
        let axis = Axis::spanning(Scale::Log10, 0.0, 2.0);
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e200] {
            assert_eq!(axis.place(value), None);
        }
        assert_eq!(axis.place(10.0), Some(0.5));
    }
}
