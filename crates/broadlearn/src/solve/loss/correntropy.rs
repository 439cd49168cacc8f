//! The correntropy-induced loss, rho = 1 - exp(-r^2 / 2).

use crate::features::vector_math;

pub(super) fn weigh(squares: &mut [f64]) {
    squares.iter_mut().for_each(|square| *square *= -0.5);
    vector_math::exp(squares);
}

pub(super) fn rho(square: f64) -> f64 {
    -(-0.5 * square).exp_m1()
}

/// [`rho`] of all, many at a time where 1 - exp loses no digits.
pub(super) fn rhos(squares: &mut [f64]) {
    const CHUNK: usize = 256;
    let mut kernels = [0.0; CHUNK];
    for squares in squares.chunks_mut(CHUNK) {
        let kernels = &mut kernels[..squares.len()];
        kernels.copy_from_slice(squares);
        weigh(kernels);
        for (square, kernel) in squares.iter_mut().zip(kernels) {
            *square = if *square > 0.1 { 1.0 - *kernel } else { rho(*square) };
        }
    }
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
    fn many_are_as_one() {
        let squares: Vec<f64> = (0..1000).map(|i| 1e-8 * 1.03_f64.powi(i)).collect();
        let mut found = squares.clone();
        rhos(&mut found);
        for (found, square) in found.iter().zip(squares) {
            assert!((found - rho(square)).abs() <= 1e-14 * rho(square), "{square:e}");
        }
    }

    #[test]
    fn the_weight_is_the_kernel() {
        assert_eq!(weight(weigh, 0.0), 1.0);
        assert!((weight(weigh, 1.0) - 0.606_530_659_712_633_4).abs() < 1e-15);
        assert_eq!(rho(1e9), 1.0);
    }
}
