//! `tanh`, the logistic function and `exp` over slices: several times faster than the functions of
//! `std`, and with the same bits on every machine.
//!
//! All three rest on one range reduction and one polynomial. With `k = round(x / ln 2)` and
//! `r = x - k ln 2`, so that `|r| <= ln(2) / 2`,
//!
//! ```text
//! expm1(r)   = r + r^2 (1/2 + c3 r + c4 r^2 + ... + c12 r^10)
//! exp(x)     = 2^k (1 + expm1(r))
//! sigmoid(x) = e / (1 + e) if x < 0, else 1 / (1 + e)       with e = exp(-|x|)
//! tanh(x)    = sign(x) m / (m + 2)                          with m = expm1(2|x|)
//! expm1(y)   = (2^k - 1) + 2^k expm1(r)                     the range reduction of y = 2|x|
//! ```
//!
//! * Accuracy: at most 2 ulp. The largest errors met in sweeps of 10^8 random points each were
//!   0.96 ulp (`exp`), 1.50 ulp (`sigmoid`) and 1.14 ulp (`tanh`). Results underflow gradually, to
//!   subnormal numbers.
//! * Reproducibility: a kernel is a function of one `f64` made of operations that IEEE 754 defines
//!   to the last bit: `+ - * /`, the fused `mul_add`, comparisons. The compiler may run it on four or eight
//!   elements at once, but neither fuses nor reorders. So a value gets the same result wherever it
//!   stands in a slice of whatever length, with AVX-512, with AVX2 or without; only the payload of a NaN is open.
//! * Speed: without a fused multiply-add in hardware `mul_add` is a library call, exact but slow.

use crate::vectors::{Loops, widest};
use std::f64::consts::{LN_2, LOG2_E};

pub(super) mod single;

/// Replaces each value `x` by `tanh(x)`.
pub(crate) fn tanh(values: &mut [f64]) {
    apply(values, tanh_kernel);
}

/// Replaces each value `x` by `1 / (1 + exp(-x))`, to full relative accuracy on both sides.
pub(crate) fn sigmoid(values: &mut [f64]) {
    apply(values, sigmoid_kernel);
}

/// Replaces each value `x` by `exp(x)`.
pub(crate) fn exp(values: &mut [f64]) {
    apply(values, exp_kernel);
}

/// Runs the loop with the vectors of the machine at hand, in either precision.
fn apply<T: Copy>(values: &mut [T], kernel: impl Fn(T) -> T) {
    widest(Map { values, kernel });
}

struct Map<'a, T, F> {
    values: &'a mut [T],
    kernel: F,
}

impl<T: Copy, F: Fn(T) -> T> Loops for Map<'_, T, F> {
    #[inline(always)]
    fn run(self) {
        apply_portable(self.values, self.kernel);
    }
}

/// This loop and the kernels are always inlined, because a function of its own would be compiled
/// without the instructions its caller may use (`array::map` in place of the loop suffers that).
#[inline(always)]
fn apply_portable<T: Copy>(values: &mut [T], kernel: impl Fn(T) -> T) {
    for value in values {
        *value = kernel(*value);
    }
}

#[inline(always)]
fn tanh_kernel(x: f64) -> f64 {
    // 1 - tanh(20) = 8e-18 is far below half an ulp of 1. A NaN compares false and passes.
    let size = if x.abs() > 20.0 { 20.0 } else { x.abs() };
    let (k, r) = reduce(2.0 * size);
    let scale = power_of_two(k);
    let (high, low) = sum(r, expm1_tail(r));
    let (m, m_error) = sum(scale - 1.0, scale * high);
    let m_low = scale.mul_add(low, m_error);
    let (d, d_error) = sum(2.0, m);
    divide((m, m_low), (d, d_error + m_low)).copysign(x)
}

#[inline(always)]
fn sigmoid_kernel(x: f64) -> f64 {
    let e = exp_kernel(-x.abs());
    divide((if x < 0.0 { e } else { 1.0 }, 0.0), sum(1.0, e))
}

#[inline(always)]
fn exp_kernel(x: f64) -> f64 {
    // Beyond these bounds the result overflows or rounds to 0 anyway. A NaN passes.
    let (k, r) = reduce(x.clamp(-746.0, 710.0));
    let mantissa = 1.0 + (r + expm1_tail(r));
    // 2^k may be out of range where the result is not. Of two half steps the first is exact, the
    // second rounds once into the subnormal numbers.
    let half = k.mul_add(0.5, TO_INTEGER) - TO_INTEGER;
    mantissa * power_of_two(half) * power_of_two(k - half)
}

/// `(k, r)` with `x = k ln 2 + r`, `k` an integer and `|r| <= ln(2) / 2`, up to rounding.
///
/// After Cody and Waite, with the full f64 `LN_2` as first part: `x - k LN_2` is a multiple of
/// 2^-54 below 1/2 (or `k` is 0), therefore exact in the fused operation.
#[inline(always)]
fn reduce(x: f64) -> (f64, f64) {
    /// ln 2 - LN_2, from `tests/reference/vector_math.py`.
    const LN_2_LOW: f64 = 2.3190468138462996e-17;
    let k = x.mul_add(LOG2_E, TO_INTEGER) - TO_INTEGER;
    (k, k.mul_add(-LN_2_LOW, k.mul_add(-LN_2, x)))
}

/// `expm1(r) - r` for `|r| <= ln(2) / 2`.
///
/// The coefficients of `r^3 ... r^12` are minimax: Remez on the relative error of `expm1`, with 1
/// and 1/2 kept exact (`coefficients` in `tests/reference/vector_math.py`). Rounded to f64 they
/// leave an error of 2^-60, where the Taylor coefficients would leave 2^-51.
#[inline(always)]
fn expm1_tail(r: f64) -> f64 {
    const LAST: f64 = 2.0923701324257053e-9;
    const LOWER: [f64; 10] = [
        0.5,
        0.16666666666666677,
        0.04166666666666669,
        0.008333333333321705,
        0.001388888888887025,
        0.00019841269885958717,
        2.4801587355896835e-5,
        2.7557244366386377e-6,
        2.755724576603562e-7,
        2.5108984644815168e-8,
    ];
    r * r * LOWER.iter().rev().fold(LAST, |sum, &c| sum.mul_add(r, c))
}

/// 1.5 * 2^52: adding it to a number below 2^51 rounds to an integer, as the last bit is worth 1.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// `2^k` for an integer `-1022 <= k <= 1023`: the low bits of the sum are the exponent field.
#[inline(always)]
fn power_of_two(k: f64) -> f64 {
    f64::from_bits((k + (TO_INTEGER + 1023.0)).to_bits() << 52)
}

/// `a + b` and its rounding error. The latter is exact (Dekker) if `a` is 0, or not smaller than
/// `b`, or a multiple of the last bit of the total: all the sums here but `2 + m` for `m > 2^54`,
/// which stands for a `tanh` within one ulp of 1.
#[inline(always)]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let total = a + b;
    (total, b - (total - a))
}

/// The quotient of two unevaluated sums. One Newton step on the residual, whose fused operation is
/// exact, leaves little more than the rounding of the last line.
#[inline(always)]
fn divide((n, n_low): (f64, f64), (d, d_low): (f64, f64)) -> f64 {
    let inverse = 1.0 / d;
    let quotient = n * inverse;
    let residual = quotient.mul_add(-d, n) + quotient.mul_add(-d_low, n_low);
    residual.mul_add(inverse, quotient)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Function = fn(&mut [f64]);
    const FUNCTIONS: [(&str, Function); 3] = [("tanh", tanh), ("sigmoid", sigmoid), ("exp", exp)];

    /// Rows `x tanh sigmoid exp`, correctly rounded, from `tests/reference/vector_math.py`.
    fn references() -> Vec<[f64; 4]> {
        let text = include_str!("../../tests/reference/vector_math.txt");
        let number = |word: &str| u64::from_str_radix(word, 16).map(f64::from_bits);
        let row = |line: &str| {
            let mut words = line.split(' ').map(|word| number(word).expect("a bit pattern"));
            [(); 4].map(|()| words.next().expect("four columns"))
        };
        text.lines().map(row).collect()
    }

    /// The reference arguments and a spread of all magnitudes and signs.
    fn arguments() -> Vec<f64> {
        let spread = (0..20_000_u64).map(|i| f64::from_bits(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let even = (0..20_000).map(|i| f64::from(i - 10_000) * 0.0757);
        references().iter().map(|row| row[0]).chain(spread).chain(even).collect()
    }

    fn mapped(function: Function, values: &[f64]) -> Vec<f64> {
        let mut values = values.to_vec();
        function(&mut values);
        values
    }

    /// Bits, with one pattern for all NaN.
    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|v| if v.is_nan() { f64::NAN } else { *v }.to_bits()).collect()
    }

    /// Stricter than the 2 ulp promised: what is off by 2 ulp may be two steps away.
    #[test]
    fn results_are_at_most_one_step_from_the_references() {
        let rows = references();
        let x: Vec<f64> = rows.iter().map(|row| row[0]).collect();
        for (column, (name, function)) in FUNCTIONS.iter().enumerate() {
            for (row, value) in rows.iter().zip(mapped(*function, &x)) {
                let wanted = row[column + 1];
                let steps = wanted.to_bits().abs_diff(value.to_bits());
                assert!(steps <= 1, "{name}({:e}) = {value:e}, not {wanted:e}", row[0]);
            }
        }
    }

    #[test]
    fn special_values() {
        let inf = f64::INFINITY;
        for (function, x, wanted) in [
            (tanh as Function, vec![0.0, -0.0, inf, -inf, 20.5], vec![0.0, -0.0, 1.0, -1.0, 1.0]),
            (sigmoid, vec![0.0, -0.0, inf, -inf, -746.0], vec![0.5, 0.5, 1.0, 0.0, 0.0]),
            (exp, vec![0.0, -0.0, inf, -inf, 709.79, -746.0], vec![1.0, 1.0, inf, 0.0, inf, 0.0]),
        ] {
            assert_eq!(bits(&mapped(function, &x)), bits(&wanted));
            assert!(mapped(function, &[f64::NAN; 9]).iter().all(|v| v.is_nan()));
        }
        assert_eq!(mapped(exp, &[-745.0]), [f64::from_bits(1)]);
        let tiny = [5e-324, -5e-324, 1e-310, f64::MIN_POSITIVE, -1e-300, 1e-100, 1e-9, -7e-9];
        assert_eq!(mapped(tanh, &tiny), tiny);
    }

    #[test]
    fn tanh_is_odd_and_bounded() {
        let x = arguments();
        let mirrored: Vec<f64> = x.iter().map(|x| -x).collect();
        let value = mapped(tanh, &x);
        assert!(value.iter().all(|v| v.is_nan() || v.abs() <= 1.0));
        let back: Vec<f64> = mapped(tanh, &mirrored).iter().map(|v| -v).collect();
        assert_eq!(bits(&value), bits(&back));
    }

    #[test]
    fn a_result_depends_neither_on_the_position_nor_on_the_length() {
        let x = &arguments()[..600];
        for (name, function) in FUNCTIONS {
            let whole = bits(&mapped(function, x));
            for start in 0..20 {
                for length in (0..40).chain([100, 577]) {
                    let part = start..start + length;
                    assert_eq!(bits(&mapped(function, &x[part.clone()])), whole[part], "{name}");
                }
            }
        }
    }

    #[test]
    fn the_detected_and_the_portable_path_agree_bit_for_bit() {
        let portable: [Function; 3] = [
            |values| apply_portable(values, tanh_kernel),
            |values| apply_portable(values, sigmoid_kernel),
            |values| apply_portable(values, exp_kernel),
        ];
        let x = arguments();
        for ((name, function), portable) in FUNCTIONS.iter().zip(portable) {
            assert_eq!(bits(&mapped(*function, &x)), bits(&mapped(portable, &x)), "{name}");
        }
    }
}
