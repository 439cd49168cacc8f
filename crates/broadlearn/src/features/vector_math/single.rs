//! `tanh` and the logistic function in single precision, for predictions that ask for it.
//!
//! With `s = x^2` and all coefficients positive, so that nothing cancels,
//!
//! ```text
//! tanh(x)    = x (p0 + p1 s + ... + p4 s^4) / (q0 + q1 s + ... + q4 s^4)     for |x| <= 8.8, and +-1 beyond
//! sigmoid(x) = (1 + tanh(x / 2)) / 2
//! ```
//!
//! The coefficients are those of the least relative error, 2^-25.8 (`rational` in `tests/reference/vector_math.py`).
//! As in the parent module, bits depend neither on the machine nor on the place in a slice.

use super::apply;

/// Replaces each value `x` by `tanh(x + bias)`, off by at most 5 ulp.
pub(crate) fn tanh(values: &mut [f32], bias: f32) {
    apply(values, |x| tanh_kernel(x + bias));
}

/// Replaces each value `x` by `1 / (1 + exp(-x - bias))`, off by at most 3e-7.
pub(crate) fn sigmoid(values: &mut [f32], bias: f32) {
    apply(values, |x| sigmoid_kernel(x + bias));
}

#[inline(always)]
fn tanh_kernel(x: f32) -> f32 {
    /// 1 - tanh(8.8) = 4.6e-8 is less than an ulp of 1.
    const MOST: f32 = 8.8;
    const P: [f32; 5] = [1.0, 0.133_939_5, 0.003_510_971_5, 2.086_406_9e-5, 1.371_289_6e-8];
    const Q: [f32; 5] = [1.0, 0.467_272_7, 0.025_935_417, 0.000_331_086_42, 7.922_049_4e-7];
    // A NaN compares false and passes.
    let x = if x > MOST { MOST } else { x };
    let x = if x < -MOST { -MOST } else { x };
    x * polynomial(P, x * x) / polynomial(Q, x * x)
}

#[inline(always)]
fn sigmoid_kernel(x: f32) -> f32 {
    tanh_kernel(0.5 * x).mul_add(0.5, 0.5)
}

#[inline(always)]
fn polynomial([lower @ .., last]: [f32; 5], s: f32) -> f32 {
    lower.iter().rev().fold(last, |sum, &c| sum.mul_add(s, c))
}

#[cfg(test)]
mod tests {
    use super::super::apply_portable;
    use super::*;

    type Function = fn(&mut [f32], f32);

    /// Positive and negative numbers of all sizes up to 100, evenly over the bit patterns.
    fn arguments() -> Vec<f32> {
        let sizes = (0..100_f32.to_bits()).step_by(997).map(f32::from_bits);
        sizes.flat_map(|size| [size, -size]).collect()
    }

    fn mapped(function: Function, values: &[f32]) -> Vec<f32> {
        let mut values = values.to_vec();
        function(&mut values, 0.0);
        values
    }

    /// What was found for every argument, and what is right.
    fn pairs(function: Function, exact: fn(f64) -> f64) -> impl Iterator<Item = (f64, f64)> {
        let x = arguments();
        let found = mapped(function, &x);
        found.into_iter().zip(x).map(move |(found, x)| (found.into(), exact(x.into())))
    }

    #[test]
    fn tanh_is_off_by_at_most_five_ulp() {
        for (found, exact) in pairs(tanh, f64::tanh) {
            let nearest = (exact as f32).abs().max(f32::MIN_POSITIVE);
            let ulp = f32::from_bits(nearest.to_bits() + 1) - nearest;
            assert!((found - exact).abs() <= 5.0 * f64::from(ulp), "{found:e}, not {exact:e}");
        }
    }

    #[test]
    fn sigmoid_is_off_by_at_most_3e_7() {
        for (found, exact) in pairs(sigmoid, |x| 1.0 / (1.0 + (-x).exp())) {
            assert!((found - exact).abs() <= 3e-7, "{found:e}, not {exact:e}");
        }
    }

    #[test]
    fn special_values() {
        let inf = f32::INFINITY;
        let ends = mapped(tanh, &[inf, -inf]);
        assert!((ends[0] - 1.0).abs() < 3e-7 && ends[1] == -ends[0]);
        assert_eq!(mapped(tanh, &[0.0, -0.0, 1e-30]), [0.0, -0.0, 1e-30]);
        assert_eq!(mapped(sigmoid, &[0.0]), [0.5]);
        for function in [tanh, sigmoid] {
            assert!(mapped(function, &[f32::NAN; 9]).iter().all(|value| value.is_nan()));
        }
    }

    #[test]
    fn the_detected_and_the_portable_path_agree_bit_for_bit() {
        let x = arguments();
        let portable: [(Function, Function); 2] = [
            (tanh, |values, bias| apply_portable(values, |x| tanh_kernel(x + bias))),
            (sigmoid, |values, bias| apply_portable(values, |x| sigmoid_kernel(x + bias))),
        ];
        for (detected, portable) in portable {
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(mapped(detected, &x)), bits(mapped(portable, &x)));
        }
    }

    #[test]
    fn the_bias_is_added_first() {
        let mut values = [0.25_f32; 9];
        tanh(&mut values, 0.5);
        assert_eq!(values.to_vec(), mapped(tanh, &[0.75; 9]));
    }
}
