//! W of equations that are there already: those of several sets of rows, say, added up.

use super::factor::Factor;
use crate::error::{Error, Result};
use crate::linalg::parallelism;
use crate::state::NormalEquations;
use faer::Mat;

/// W = (R + gamma I)^-1 P, by Cholesky's factorisation: L^3 / 3 + 2 L^2 C flops and L^2 numbers.
///
/// ```
/// use broadlearn::{faer::mat, solve, state::NormalEquations};
/// let (u, y) = (mat![[1.0, 2.0], [1.0, 3.0]], mat![[5.0], [7.0]]);
/// let equations = NormalEquations::of(u.as_ref(), y.as_ref(), None);
/// let w = solve::ridge(&equations, 1e-12)?;
/// assert!((w[(0, 0)] - 1.0).abs() < 1e-6 && (w[(1, 0)] - 2.0).abs() < 1e-6);
/// # Ok::<(), broadlearn::Error>(())
/// ```
///
/// # Errors
/// If the ridge is not a number of 0 or more, or R + gamma I is not positive definite in double precision.
pub fn ridge(equations: &NormalEquations, ridge: f64) -> Result<Mat<f64>> {
    if !(ridge >= 0.0 && ridge.is_finite()) {
        return Err(Error::setting("ridge", ridge).expected("a number of 0 or more"));
    }
    let factor = Factor::new(equations.r().to_owned(), ridge, parallelism())?;
    Ok(factor.solve(equations.p(), parallelism()))
}
