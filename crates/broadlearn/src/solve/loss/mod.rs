//! Losses, as the weights that they give to samples.
//!
//! A robust loss is sigma^2 rho(|e|^2 / sigma^2). It has one file with rho and the weight, its slope:
//! d rho / d|e| = weight |e|. Every rho is concave in |e|^2, that is, no weight grows with the residual:
//! this is all that the fixed point needs in order never to make the objective worse.

mod correntropy;
mod huber;
mod absolute;
mod bisquare;
mod generalised_correntropy;
mod mixture_correntropy;

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// d^2 for d = 0.01: losses with a kink or worse at 0 see sqrt(r^2 + d^2) in place of r. Without it a row
/// that fits exactly would have an infinite weight. With d = 0.001 the fixed point took two to four
/// times as many steps, and predicted no better where the noise of the target exceeds d.
const SMOOTHING: f64 = 1e-4;

/// What is minimised over the residuals e of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "name")]
pub enum Loss {
    /// |e|^2: plain BLS.
    Squared,
    /// A loss that large residuals cannot dominate.
    #[serde(untagged)]
    Robust {
        /// Which one.
        #[serde(flatten)]
        kind: RobustLoss,
        /// The kernel size, in units of the scaled target.
        sigma: f64,
    },
}

/// Losses that large residuals cannot dominate, r = |e| / sigma.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "name")]
pub enum RobustLoss {
    /// 1 - exp(-r^2 / 2), the correntropy-induced loss: C-BLS.
    #[default]
    Correntropy,
    /// r^2 / 2 up to r = 1, a straight line beyond it: no row is left out, none pulls harder than
    /// one at sigma.
    Huber,
    /// r: a median rather than a mean. Sigma is only the residual at which the weight is 1, which gives
    /// the ridge its unit.
    Absolute,
    /// Tukey's: rows beyond sigma have no weight at all.
    Bisquare,
    /// 1 - exp(-r^shape / 2): correntropy whose kernel has a sharper peak and longer tails.
    Generalised {
        /// Above 0, at most 2, which is correntropy.
        shape: f64,
    },
    /// Correntropy with a mixture of two kernels, of which the wider one hears rows that are too far
    /// off for the other.
    Mixture {
        /// The share of the kernel of size sigma, above 0, at most 1.
        share: f64,
        /// The size of the other kernel in units of sigma, at least 1.
        ratio: f64,
    },
}

impl Loss {
    /// Turns squared residual norms into sample weights.
    pub(crate) fn weigh(&self, squares: &mut [f64]) {
        match self {
            Self::Squared => squares.fill(1.0),
            Self::Robust { kind, sigma } => {
                normalise(squares, *sigma);
                kind.weigh(squares);
            }
        }
    }
}

impl RobustLoss {
    /// The name used in model files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Correntropy => "correntropy",
            Self::Huber => "huber",
            Self::Absolute => "absolute",
            Self::Bisquare => "bisquare",
            Self::Generalised { .. } => "generalised",
            Self::Mixture { .. } => "mixture",
        }
    }

    /// This loss with a kernel size.
    pub fn at(self, sigma: f64) -> Loss {
        Loss::Robust { kind: self, sigma }
    }

    /// That the parameters are within their ranges.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Generalised { shape } if !(shape > 0.0 && shape <= 2.0) => {
                Err(Error::setting("shape", shape).expected("a number above 0, at most 2"))
            }
            Self::Mixture { share, .. } if !(share > 0.0 && share <= 1.0) => {
                Err(Error::setting("share", share).expected("a share above 0, at most 1"))
            }
            Self::Mixture { ratio, .. } if !(ratio >= 1.0 && ratio.is_finite()) => {
                Err(Error::setting("ratio", ratio).expected("a number of at least 1"))
            }
            _ => Ok(()),
        }
    }

    /// rho of every squared residual norm, in units of sigma^2.
    pub(crate) fn rho(self, squares: &mut [f64], sigma: f64) {
        normalise(squares, sigma);
        if self == Self::Correntropy {
            return correntropy::rhos(squares);
        }
        for square in squares {
            *square = match self {
                Self::Correntropy => correntropy::rho(*square),
                Self::Huber => huber::rho(*square),
                Self::Absolute => absolute::rho(*square),
                Self::Bisquare => bisquare::rho(*square),
                Self::Generalised { shape } => generalised_correntropy::rho(*square, shape),
                Self::Mixture { share, ratio } => mixture_correntropy::rho(*square, share, ratio),
            };
        }
    }

    /// Turns squared residual norms in units of sigma^2 into sample weights.
    fn weigh(self, squares: &mut [f64]) {
        match self {
            Self::Correntropy => correntropy::weigh(squares),
            Self::Huber => huber::weigh(squares),
            Self::Absolute => absolute::weigh(squares),
            Self::Bisquare => bisquare::weigh(squares),
            Self::Generalised { shape } => generalised_correntropy::weigh(squares, shape),
            Self::Mixture { share, ratio } => mixture_correntropy::weigh(squares, share, ratio),
        }
    }
}

/// Squared residual norms in units of sigma^2. Residuals of 0 stay 0, however small sigma is.
fn normalise(squares: &mut [f64], sigma: f64) {
    let factor = 1.0 / (sigma * sigma);
    for square in squares.iter_mut().filter(|square| **square > 0.0) {
        *square *= factor;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Some of every kind.
    const KINDS: [RobustLoss; 9] = [
        RobustLoss::Correntropy,
        RobustLoss::Huber,
        RobustLoss::Absolute,
        RobustLoss::Bisquare,
        RobustLoss::Generalised { shape: 0.3 },
        RobustLoss::Generalised { shape: 1.0 },
        RobustLoss::Generalised { shape: 2.0 },
        RobustLoss::Mixture { share: 0.8, ratio: 4.0 },
        RobustLoss::Mixture { share: 0.1, ratio: 30.0 },
    ];

    /// Residuals from a ten thousandth to some hundred, none of them at a kink.
    fn residuals() -> impl Iterator<Item = f64> {
        (0..80).map(|step| 1.03e-4 * 1.2_f64.powi(step))
    }

    /// The weight of the residual r.
    pub(super) fn weight(weigh: impl Fn(&mut [f64]), r: f64) -> f64 {
        let mut weight = [r * r];
        weigh(&mut weight);
        weight[0]
    }

    /// That weight(r) r is the slope of rho, by finite differences.
    pub(super) fn check_slope(weigh: impl Fn(&mut [f64]), rho: impl Fn(f64) -> f64) {
        assert_eq!(rho(0.0), 0.0);
        for r in residuals() {
            let h = 1e-5 * r;
            let slope = (rho((r + h) * (r + h)) - rho((r - h) * (r - h))) / (2.0 * h);
            let expected = weight(&weigh, r) * r;
            // Twice the rounding error of rho, divided by the step.
            let rounding = 1e-15 * rho(r * r) / h;
            assert!((expected - slope).abs() <= 1e-8 * expected + rounding, "{r}: {slope:e}");
        }
    }

    #[test]
    fn no_weight_grows_with_the_residual() {
        for kind in KINDS {
            let mut weights: Vec<f64> = residuals().map(|r| r * r).collect();
            weights.insert(0, 0.0);
            weights.push(f64::INFINITY);
            kind.weigh(&mut weights);
            assert!(weights.windows(2).all(|pair| pair[0] >= pair[1]), "{kind:?}: {weights:?}");
            assert_eq!(weights.last(), Some(&0.0), "{kind:?}");
        }
    }

    #[test]
    fn sigma_is_the_unit_of_the_residuals() {
        for kind in KINDS {
            for sigma in [0.01, 30.0] {
                for r in residuals() {
                    let e2 = (sigma * r).powi(2);
                    let (scaled, unit) = (
                        weight(|s| kind.at(sigma).weigh(s), sigma * r),
                        weight(|s| kind.weigh(s), r),
                    );
                    assert!(
                        (scaled - unit).abs() <= 1e-10 * unit + 1e-15,
                        "{kind:?}, {sigma}, {r}"
                    );
                    let (mut scaled, mut unit) = ([e2], [r * r]);
                    kind.rho(&mut scaled, sigma);
                    kind.rho(&mut unit, 1.0);
                    assert!((scaled[0] / unit[0] - 1.0).abs() < 1e-6, "{kind:?}, {sigma}, {r}");
                }
            }
            assert_eq!(weight(|s| kind.at(1e-200).weigh(s), 1.0), 0.0, "{kind:?}");
            assert!(weight(|s| kind.at(1e-200).weigh(s), 0.0) > 0.9, "{kind:?}");
        }
    }

    #[test]
    fn names_and_numbers_are_flat_in_json() {
        let text = |loss: Loss| serde_json::to_string(&loss).unwrap();
        assert_eq!(text(Loss::Squared), r#"{"name":"squared"}"#);
        let correntropy = RobustLoss::Correntropy.at(0.3);
        assert_eq!(text(correntropy), r#"{"name":"correntropy","sigma":0.3}"#);
        let mixture = RobustLoss::Mixture { share: 0.8, ratio: 4.0 }.at(0.3);
        assert_eq!(text(mixture), r#"{"name":"mixture","share":0.8,"ratio":4.0,"sigma":0.3}"#);
        for loss in KINDS.map(|kind| kind.at(0.1)).into_iter().chain([Loss::Squared]) {
            assert_eq!(serde_json::from_str::<Loss>(&text(loss)).unwrap(), loss);
            if let Loss::Robust { kind, .. } = loss {
                assert!(text(loss).contains(&format!(r#""name":"{}""#, kind.name())));
            }
        }
        for wrong in [r#"{"name":"huber"}"#, r#"{"name":"cubic","sigma":1}"#, r#"{"sigma":1}"#] {
            assert!(serde_json::from_str::<Loss>(wrong).is_err(), "{wrong}");
        }
    }
}
