//! The Cholesky factor of R + gamma I.

use crate::error::{Error, Result};
use crate::linalg::worth;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::{Mat, MatMut, MatRef, Par, Spec};

/// The lower Cholesky factor of a positive definite matrix. n^3 / 3 flops, in place.
pub(crate) struct Factor(Mat<f64>);

impl Factor {
    /// Factors `matrix` + `ridge` I; only the lower triangle of `matrix` is read.
    pub(crate) fn new(mut matrix: Mat<f64>, ridge: f64, par: Par) -> Result<Self> {
        let n = matrix.nrows();
        let par = worth(par, (n as f64).powi(3) / 3.0);
        for i in 0..n {
            matrix[(i, i)] += ridge;
        }
        let params = Spec::default();
        let need = llt::factor::cholesky_in_place_scratch::<f64>(n, par, params);
        llt::factor::cholesky_in_place(
            matrix.as_mut(),
            Default::default(),
            par,
            MemStack::new(&mut MemBuffer::new(need)),
            params,
        )
        .map_err(|_| {
            Error::numeric(format!(
                "the normal equations with ridge {ridge:e} are not positive definite in double precision"
            ))
            .advice("raise the ridge (--ridge), or let it be chosen (--ridge auto)")
        })?;
        Ok(Self(matrix))
    }

    /// Overwrites `right` with the solution. A single right-hand side is left to one thread, for
    /// the reason given at [`product`](crate::linalg::product).
    pub(crate) fn solve_in_place(&self, right: MatMut<'_, f64>, par: Par) {
        let flops = 2.0 * (self.0.nrows() as f64).powi(2) * right.ncols() as f64;
        let par = if right.ncols() == 1 { Par::Seq } else { worth(par, flops) };
        llt::solve::solve_in_place(self.0.as_ref(), right, par, MemStack::new(&mut []));
    }

    /// The solution for a right-hand side.
    pub(crate) fn solve(&self, right: MatRef<'_, f64>, par: Par) -> Mat<f64> {
        let mut solution = right.to_owned();
        self.solve_in_place(solution.as_mut(), par);
        solution
    }
}
