//! Correntropy with the kernel share exp(-r^2 / 2) + (1 - share) exp(-r^2 / 2 ratio^2), scaled so that
//! the weight of r = 0 is 1.
//!
//! Reference: Chen, Wang, Lu, Wang, Cao, Qin, "Mixture Correntropy for Robust Learning".

use super::correntropy;

/// What the two kernels contribute to the weight of r = 0: a wide one is flat, and its slope small.
fn contributions(share: f64, ratio: f64) -> (f64, f64) {
    let (narrow, wide) = (share, (1.0 - share) / (ratio * ratio));
    (narrow / (narrow + wide), wide / (narrow + wide))
}

pub(super) fn weigh(squares: &mut [f64], share: f64, ratio: f64) {
    let mut others: Vec<f64> = squares.iter().map(|square| square / (ratio * ratio)).collect();
    correntropy::weigh(&mut others);
    correntropy::weigh(squares);
    let (narrow, wide) = contributions(share, ratio);
    for (kernel, other) in squares.iter_mut().zip(others) {
        *kernel = narrow * *kernel + wide * other;
    }
}

pub(super) fn rho(square: f64, share: f64, ratio: f64) -> f64 {
    let (narrow, wide) = contributions(share, ratio);
    let stretch = ratio * ratio;
    narrow * correntropy::rho(square) + wide * stretch * correntropy::rho(square / stretch)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_slope, weight};
    use super::*;

    #[test]
    fn weight_times_residual_is_the_slope_of_rho() {
        for (share, ratio) in [(0.8, 4.0), (0.01, 2.0), (0.5, 100.0)] {
            check_slope(|squares| weigh(squares, share, ratio), |square| rho(square, share, ratio));
        }
    }

    #[test]
    fn one_kernel_is_correntropy() {
        for r in [0.0, 0.3, 1.0, 4.0] {
            let expected = weight(correntropy::weigh, r);
            assert_eq!(weight(|squares| weigh(squares, 1.0, 4.0), r), expected);
            let equal = weight(|squares| weigh(squares, 0.3, 1.0), r);
            assert!((equal - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn far_off_rows_are_heard_by_the_wide_kernel() {
        let (far, alone) = (weight(|s| weigh(s, 0.8, 4.0), 6.0), weight(correntropy::weigh, 6.0));
        assert!(far > 1e4 * alone, "{far:e}, {alone:e}");
    }
}
