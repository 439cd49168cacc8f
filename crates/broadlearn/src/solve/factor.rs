//! The Cholesky factor of R + gamma I.

use super::cholesky::factor_in_place;
use crate::error::{Error, Result};
use crate::linalg::worth;
use crate::state::gram;
use faer::diag::DiagMut;
use faer::dyn_stack::MemStack;
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve;
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// The lower Cholesky factor of a positive definite matrix. n^3 / 3 flops, in place.
#[derive(Clone, Debug)]
pub(crate) struct Factor(Mat<f64>);

impl Factor {
    /// Factors `matrix` + `ridge` I; only the lower triangle of `matrix` is read.
    pub(crate) fn new(mut matrix: Mat<f64>, ridge: f64, par: Par) -> Result<Self> {
        let n = matrix.nrows();
        let par = worth(par, (n as f64).powi(3) / 3.0);
        for i in 0..n {
            matrix[(i, i)] += ridge;
        }
        if !factor_in_place(matrix.as_mut(), par) {
            return Err(Error::numeric(format!(
                "the normal equations with ridge {ridge:e} are not positive definite in double precision"
            ))
            .advice("raise the ridge (--ridge), or let it be chosen (--ridge auto)"));
        }
        Ok(Self(matrix))
    }

    /// A factor from its lower triangle; `None` unless the diagonal is positive.
    pub(crate) fn from_lower(lower: Mat<f64>) -> Option<Self> {
        (0..lower.nrows()).all(|i| lower[(i, i)] > 0.0).then_some(Self(lower))
    }

    /// The lower triangle; what stands above the diagonal means nothing.
    pub(crate) fn lower(&self) -> MatRef<'_, f64> {
        self.0.as_ref()
    }

    /// Turns the factor of A into that of A + `sign` V V'; 2 r n^2 flops for r columns of V, which is
    /// overwritten. Where A - V V' is not safely positive definite the factor is spoilt and `false`
    /// returned.
    pub(crate) fn update(&mut self, v: MatMut<'_, f64>, sign: f64) -> bool {
        let mut signs = vec![sign; v.ncols()];
        let signs = DiagMut::from_slice_mut(&mut signs);
        llt::update::rank_r_update_clobber(self.0.as_mut(), v, signs).is_ok()
    }

    /// The factor of [[A, B'], [B, D]] from that of A:
    ///
    /// ```text
    /// [ F          ]      G F' = B,  S S' = D - G G'
    /// [ G        S ]
    /// ```
    ///
    /// `rows` holds [B, D + ridge I] (D's lower triangle counts). m n^2 + m^2 n + m^3 / 3 flops for m
    /// new rows, against (n + m)^3 / 3 from the beginning.
    pub(crate) fn border(&self, rows: MatRef<'_, f64>, ridge: f64, par: Par) -> Result<Self> {
        let (n, m) = (self.0.nrows(), rows.nrows());
        let mut all = Mat::zeros(n + m, n + m);
        all.submatrix_mut(0, 0, n, n).copy_from(&self.0);
        let mut g = rows.subcols(0, n).transpose().to_owned();
        let par = worth(par, m as f64 * (n as f64).powi(2));
        triangular_solve::solve_lower_triangular_in_place(self.0.as_ref(), g.as_mut(), par);
        let mut schur = rows.subcols(n, m).to_owned();
        gram::add(schur.as_mut(), g.as_ref(), None, -1.0, par);
        let corner = Self::new(schur, ridge, par)?;
        all.submatrix_mut(n, 0, m, n).copy_from(g.transpose());
        all.submatrix_mut(n, n, m, m).copy_from(&corner.0);
        Ok(Self(all))
    }

    /// Overwrites `right` with F^-1 `right`; see [`solve_in_place`](Self::solve_in_place) for threads.
    pub(crate) fn solve_lower_in_place(&self, right: MatMut<'_, f64>, par: Par) {
        let flops = (self.0.nrows() as f64).powi(2) * right.ncols() as f64;
        let par = if right.ncols() == 1 { Par::Seq } else { worth(par, flops) };
        triangular_solve::solve_lower_triangular_in_place(self.0.as_ref(), right, par);
    }

    /// Overwrites `right` with the solution. A single right-hand side is left to one thread, for
    /// the reason given at [`product`](crate::linalg::product).
    pub(crate) fn solve_in_place(&self, right: MatMut<'_, f64>, par: Par) {
        let flops = 2.0 * (self.0.nrows() as f64).powi(2) * right.ncols() as f64;
        let par = if right.ncols() == 1 { Par::Seq } else { worth(par, flops) };
        llt::solve::solve_in_place(self.0.as_ref(), right, par, MemStack::new(&mut []));
    }

    /// The solution of the equations in the first `size` unknowns alone: the leading block of a factor is the factor of
    /// the leading block. On one thread.
    pub(crate) fn solve_leading(&self, right: MatRef<'_, f64>, size: usize) -> Mat<f64> {
        let mut solution = right.subrows(0, size).to_owned();
        let leading = self.0.submatrix(0, 0, size, size);
        llt::solve::solve_in_place(leading, solution.as_mut(), Par::Seq, MemStack::new(&mut []));
        solution
    }

    /// F' X, of which the squares of the elements add up to the sum of x' A x over the columns x.
    pub(crate) fn half_product(&self, columns: MatRef<'_, f64>) -> Mat<f64> {
        let mut product = Mat::zeros(columns.nrows(), columns.ncols());
        triangular::matmul(
            product.as_mut(),
            BlockStructure::Rectangular,
            Accum::Replace,
            self.0.transpose(),
            BlockStructure::TriangularUpper,
            columns,
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
        product
    }

    /// The square root of the sum of x' A x over the columns x.
    pub(crate) fn norm(&self, columns: MatRef<'_, f64>) -> f64 {
        self.half_product(columns).norm_l2()
    }

    /// A X.
    pub(crate) fn product(&self, columns: MatRef<'_, f64>) -> Mat<f64> {
        let half = self.half_product(columns);
        let mut product = Mat::zeros(columns.nrows(), columns.ncols());
        triangular::matmul(
            product.as_mut(),
            BlockStructure::Rectangular,
            Accum::Replace,
            self.0.as_ref(),
            BlockStructure::TriangularLower,
            half.as_ref(),
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
        product
    }

    /// The solution for a right-hand side.
    pub(crate) fn solve(&self, right: MatRef<'_, f64>, par: Par) -> Mat<f64> {
        let mut solution = right.to_owned();
        self.solve_in_place(solution.as_mut(), par);
        solution
    }
}
