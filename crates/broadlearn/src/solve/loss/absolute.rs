//! The absolute loss, rho = r, smooth near 0: rho = sqrt(r^2 + d^2) - d.

use super::SMOOTHING;

pub(super) fn weigh(squares: &mut [f64]) {
    for square in squares {
        *square = 1.0 / (*square + SMOOTHING).sqrt();
    }
}

pub(super) fn rho(square: f64) -> f64 {
    // sqrt(r^2 + d^2) - d without its cancellation; the other form for squares that overflow.
    let root = (square + SMOOTHING).sqrt();
    if root.is_finite() { square / (root + SMOOTHING.sqrt()) } else { root }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_slope, weight};
    use super::*;

    #[test]
    fn weight_times_residual_is_the_slope_of_rho() {
        check_slope(weigh, rho);
    }

    #[test]
    fn every_residual_pulls_alike_but_for_the_smallest() {
        for r in [0.2, 1.0, 1e6] {
            assert!((weight(weigh, r) * r - 1.0).abs() < 2e-3, "{r}");
        }
        assert_eq!(weight(weigh, 0.0), 100.0);
    }
}
