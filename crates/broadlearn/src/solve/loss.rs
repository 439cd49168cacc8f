//! Losses, as the weights that they give to samples.

use crate::features::vector_math;
use serde::{Deserialize, Serialize};

/// What is minimised over the residuals e of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "name")]
pub enum Loss {
    /// |e|^2: plain BLS.
    Squared,
    /// 1 - exp(-|e|^2 / 2 sigma^2), the correntropy-induced loss: C-BLS.
    Correntropy {
        /// The kernel size, in units of the scaled target.
        sigma: f64,
    },
}

impl Loss {
    /// Turns squared residual norms into sample weights: the slope of the loss with respect to
    /// |e|^2, scaled to 1 at e = 0.
    pub(crate) fn weigh(&self, squares: &mut [f64]) {
        match self {
            Self::Squared => squares.fill(1.0),
            Self::Correntropy { sigma } => {
                let factor = -0.5 / (sigma * sigma);
                for square in squares.iter_mut().filter(|square| **square > 0.0) {
                    *square *= factor;
                }
                vector_math::exp(squares);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_times_residual_is_the_slope_of_the_loss() {
        for sigma in [0.1, 1.0, 30.0] {
            let loss = Loss::Correntropy { sigma };
            for step in 1..40 {
                let e = 0.1 * f64::from(step) * sigma;
                let mut weight = [e * e];
                loss.weigh(&mut weight);
                // rho(e) = sigma^2 (1 - exp(-e^2 / 2 sigma^2)) has slope weight(e) e.
                let rho = |e: f64| -sigma * sigma * (-e * e / (2.0 * sigma * sigma)).exp_m1();
                let h = 1e-5 * sigma;
                let slope = (rho(e + h) - rho(e - h)) / (2.0 * h);
                assert!((weight[0] * e - slope).abs() < 1e-8 * sigma, "sigma {sigma}, e {e}");
            }
        }
    }
}
