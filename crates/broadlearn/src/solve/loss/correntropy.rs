//! The correntropy-induced loss, rho = 1 - exp(-r^2 / 2).

use crate::features::vector_math;

pub(super) fn weigh(squares: &mut [f64]) {
    squares.iter_mut().for_each(|square| *square *= -0.5);
    vector_math::exp(squares);
}

pub(super) fn rho(square: f64) -> f64 {
    -(-0.5 * square).exp_m1()
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
    fn the_weight_is_the_kernel() {
        assert_eq!(weight(weigh, 0.0), 1.0);
        assert!((weight(weigh, 1.0) - 0.606_530_659_712_633_4).abs() < 1e-15);
        assert_eq!(rho(1e9), 1.0);
    }
}
