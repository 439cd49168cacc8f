//! Correntropy with a generalised Gaussian kernel, rho = (2 / shape) (1 - exp(-r^shape / 2)), smooth
//! near 0: sqrt(r^2 + d^2) stands for r, and rho begins at 0.
//!
//! Reference: Chen, Xing, Zhao, Zheng, Principe, "Generalized Correntropy for Robust Adaptive
//! Filtering". Shapes above 2 are left out: their weight grows with small residuals, and the fixed point
//! need not improve the objective.

use super::SMOOTHING;
use crate::features::vector_math;

pub(super) fn weigh(squares: &mut [f64], shape: f64) {
    let mut kernels: Vec<f64> =
        squares.iter().map(|square| -0.5 * (square + SMOOTHING).powf(0.5 * shape)).collect();
    vector_math::exp(&mut kernels);
    for (square, kernel) in squares.iter_mut().zip(kernels) {
        *square = (*square + SMOOTHING).powf(0.5 * shape - 1.0) * kernel;
    }
}

pub(super) fn rho(square: f64, shape: f64) -> f64 {
    // exp(-a) - exp(-b) for the exponents a at 0 and b here, without its cancellation.
    let a = 0.5 * SMOOTHING.powf(0.5 * shape);
    let growth = (0.5 * shape * (square / SMOOTHING).ln_1p()).exp_m1();
    -2.0 / shape * (-a).exp() * (-a * growth).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::super::correntropy;
    use super::super::tests::{check_slope, weight};
    use super::*;

    #[test]
    fn weight_times_residual_is_the_slope_of_rho() {
        for shape in [0.1, 0.5, 1.0, 1.7, 2.0] {
            check_slope(|squares| weigh(squares, shape), |square| rho(square, shape));
        }
    }

    #[test]
    fn shape_2_is_correntropy_but_for_a_factor() {
        let factor = (-0.5 * SMOOTHING).exp();
        for r in [0.0, 0.01, 0.3, 1.0, 4.0] {
            let expected = factor * weight(correntropy::weigh, r);
            assert!((weight(|squares| weigh(squares, 2.0), r) / expected - 1.0).abs() < 1e-13);
            assert!((rho(r * r, 2.0) - factor * correntropy::rho(r * r)).abs() < 1e-13);
        }
    }
}
