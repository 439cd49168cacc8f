//! Tukey's bisquare: rho = (1 - (1 - r^2)^3) / 6 up to r = 1, and 1/6 beyond.

pub(super) fn weigh(squares: &mut [f64]) {
    for square in squares {
        *square = (1.0 - *square).max(0.0).powi(2);
    }
}

pub(super) fn rho(square: f64) -> f64 {
    // (1 - (1 - x)^3) / 6 without its cancellation.
    let x = square.min(1.0);
    x * (3.0 - x * (3.0 - x)) / 6.0
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
    fn rows_beyond_sigma_have_no_weight_at_all() {
        assert_eq!(weight(weigh, 0.0), 1.0);
        assert_eq!(weight(weigh, 0.5), 0.5625);
        for r in [1.0, 1.001, 1e9] {
            assert_eq!(weight(weigh, r), 0.0);
        }
        assert_eq!(rho(2.0), 1.0 / 6.0);
    }
}
