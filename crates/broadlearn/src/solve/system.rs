//! One weighted ridge problem:  minimise  sum_i w_i |y_i - u_i W|^2 + gamma |W|^2.
//!
//! Primal, L x L:  (U' Λ U + gamma I) W = U' Λ Y,  N L^2 + L^3 / 3 flops.
//! Dual, N x N:  W = U' D a,  (D K D + gamma I) a = D Y  with K = U U' and D = Λ^(1/2);
//! K is formed once (N^2 L flops), later solves cost N^3 / 3, less than the primal for N < 1.88 L.
//!
//! The dual has a = (residual) / gamma, from which U' makes something of the size of W again: where
//! residuals remain, about |K| / gamma of the precision is lost. Random features are rank-deficient
//! by design, so residuals remain even for N < L; a ridge that is tiny beside |K| is left to the
//! primal.

use super::Loss;
use super::factor::Factor;
use super::fixed_point::check_not_vanished;
use super::report::Form;
use super::trimmed::{TRIMMED_KERNEL, least_trimmed_squares};
use crate::error::Result;
use crate::linalg::{BLOCK_ROWS, product, scale_rows, select_rows, worth};
use crate::state::{NormalEquations, StateRows};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatRef, Par};

/// U and Y, ready to be solved with any sample weights and ridge.
pub(crate) struct System<'a> {
    state: &'a StateRows<'a>,
    y: MatRef<'a, f64>,
    kernel: Option<Kernel>,
    par: Par,
}

/// K = U U', lower triangle, and the least ridge for which it is used.
struct Kernel {
    k: Mat<f64>,
    least_ridge: f64,
}

/// W, and the equations it solves with their factor, if they were formed.
pub(crate) struct Solution {
    pub(crate) w: Mat<f64>,
    pub(crate) equations: Option<(NormalEquations, Factor)>,
    /// The outputs U W of all rows, if they are known, up to the tolerance of a fixed point.
    pub(crate) outputs: Option<Mat<f64>>,
}

impl<'a> System<'a> {
    /// A system whose outputs may be off by a relative `error` where the dual saves work.
    pub(crate) fn new(state: &'a StateRows<'a>, y: MatRef<'a, f64>, error: f64, par: Par) -> Self {
        let kernel = match state {
            StateRows::Whole(u) if u.nrows() < u.ncols() => {
                let k = lower_product(u.as_ref(), par);
                let trace: f64 = (0..k.nrows()).map(|i| k[(i, i)]).sum();
                Some(Kernel { least_ridge: f64::EPSILON * trace / error, k })
            }
            _ => None,
        };
        Self { state, y, kernel, par }
    }

    /// The kernel, if a solve with this ridge uses it.
    fn kernel(&self, ridge: f64) -> Option<&Mat<f64>> {
        self.kernel.as_ref().filter(|kernel| ridge >= kernel.least_ridge).map(|kernel| &kernel.k)
    }

    pub(crate) fn form(&self, ridge: f64) -> Form {
        if self.kernel(ridge).is_some() { Form::Dual } else { Form::Primal }
    }

    pub(crate) fn rows(&self) -> usize {
        self.state.len()
    }

    pub(crate) fn state(&self) -> &'a StateRows<'a> {
        self.state
    }

    pub(crate) fn y(&self) -> MatRef<'a, f64> {
        self.y
    }

    /// W for these sample weights (all 1 if not given).
    pub(crate) fn solve(&self, weights: Option<&[f64]>, ridge: f64) -> Result<Solution> {
        match (self.kernel(ridge), self.state) {
            (Some(kernel), StateRows::Whole(u)) => {
                let w = self.solve_dual(kernel, u.as_ref(), weights, ridge)?;
                Ok(Solution { w, equations: None, outputs: None })
            }
            _ => {
                let equations = self.equations(weights)?;
                let factor = Factor::new(equations.r().to_owned(), ridge, self.par)?;
                let w = factor.solve(equations.p(), self.par);
                Ok(Solution { w, equations: Some((equations, factor)), outputs: None })
            }
        }
    }

    fn solve_dual(
        &self,
        kernel: &Mat<f64>,
        u: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        ridge: f64,
    ) -> Result<Mat<f64>> {
        let mut matrix = kernel.clone();
        let mut a = self.y.to_owned();
        let root: Option<Vec<f64>> =
            weights.map(|weights| weights.iter().map(|weight| weight.sqrt()).collect());
        if let Some(root) = &root {
            for (j, column) in matrix.as_mut().col_iter_mut().enumerate() {
                for (i, value) in column.iter_mut().enumerate().skip(j) {
                    *value *= root[i] * root[j];
                }
            }
            scale_rows(a.as_mut(), root);
        }
        Factor::new(matrix, ridge, self.par)?.solve_in_place(a.as_mut(), self.par);
        if let Some(root) = &root {
            scale_rows(a.as_mut(), root);
        }
        let mut w = Mat::zeros(u.ncols(), a.ncols());
        product(w.as_mut(), Accum::Replace, u.transpose(), a.as_ref(), self.par);
        Ok(w)
    }

    /// R and P for these sample weights.
    pub(crate) fn equations(&self, weights: Option<&[f64]>) -> Result<NormalEquations> {
        let mut equations = NormalEquations::empty(self.state.width(), self.y.ncols());
        self.state.visit(|rows, u| {
            let y = self.y.subrows(rows.start, rows.len());
            equations.add(u, y, weights.map(|weights| &weights[rows]), self.par);
            Ok(())
        })?;
        Ok(equations)
    }

    /// The outputs U W of all rows.
    pub(crate) fn outputs(&self, w: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let mut outputs = Mat::zeros(self.rows(), w.ncols());
        self.state.visit(|rows, u| {
            let block = outputs.as_mut().subrows_mut(rows.start, rows.len());
            product(block, Accum::Replace, u, w, self.par);
            Ok(())
        })?;
        Ok(outputs)
    }

    /// R and P with the weights of the residuals of this W, its outputs, and the weights, the user's
    /// multiplied in: all in one pass.
    pub(crate) fn equations_at(
        &self,
        w: MatRef<'_, f64>,
        loss: Loss,
        user: Option<&[f64]>,
    ) -> Result<(NormalEquations, Mat<f64>, Vec<f64>)> {
        let mut equations = NormalEquations::empty(self.state.width(), self.y.ncols());
        let mut outputs = Mat::zeros(self.rows(), w.ncols());
        let mut weights = vec![0.0; self.rows()];
        self.state.visit(|rows, u| {
            let mut f = outputs.as_mut().subrows_mut(rows.start, rows.len());
            product(f.as_mut(), Accum::Replace, u, w, self.par);
            let y = self.y.subrows(rows.start, rows.len());
            let block = &mut weights[rows.clone()];
            for (y, f) in y.col_iter().zip(f.as_ref().col_iter()) {
                for ((square, y), f) in block.iter_mut().zip(y.iter()).zip(f.iter()) {
                    *square += (y - f) * (y - f);
                }
            }
            loss.weigh(block);
            if let Some(user) = user {
                block.iter_mut().zip(&user[rows]).for_each(|(weight, user)| *weight *= user);
            }
            equations.add(u, y, Some(block), self.par);
            Ok(())
        })?;
        check_not_vanished(&weights, loss)?;
        Ok((equations, outputs, weights))
    }

    /// What a fit needs in memory beside the state of all rows and anything of the size of R: inputs,
    /// targets and some matrices like them, and the program itself.
    pub(crate) fn bytes_of_rows(&self) -> u64 {
        const PROGRAM: usize = 50 << 20;
        let numbers = (self.state.inputs() + 12 * self.y.ncols()) * self.rows();
        (size_of::<f64>() * numbers + PROGRAM) as u64
    }

    /// What forming R takes: itself, and blocks of rows.
    pub(crate) fn bytes_of_equations(&self) -> u64 {
        let nodes = self.state.width();
        (size_of::<f64>() * (nodes * nodes + 3 * BLOCK_ROWS * nodes)) as u64
    }

    /// A linear model of the first columns of U by least trimmed squares, and the widest kernel with
    /// which a fixed point should go on from there. Of many rows, some thousand at even distances speak
    /// for all.
    pub(crate) fn trimmed(&self, linear: usize, user: Option<&[f64]>) -> Result<(Mat<f64>, f64)> {
        const MOST_ROWS: usize = 5000;
        let every = self.rows().div_ceil(MOST_ROWS).max(1);
        let rows: Vec<usize> = (0..self.rows()).step_by(every).collect();
        let u = self.state.select(&rows);
        let weights: Option<Vec<f64>> =
            user.map(|user| rows.iter().map(|&row| user[row]).collect());
        let y = select_rows(self.y, &rows);
        let trimmed = least_trimmed_squares(u.subcols(0, linear), y.as_ref(), weights.as_deref())?;
        let mut w = Mat::zeros(self.state.width(), self.y.ncols());
        w.subrows_mut(0, linear).copy_from(&trimmed.w);
        Ok((w, TRIMMED_KERNEL * trimmed.spread))
    }

    /// |y_i - f_i|^2 for every row, given the outputs f.
    pub(crate) fn squared_residuals(&self, outputs: MatRef<'_, f64>) -> Vec<f64> {
        let mut squares = vec![0.0; self.rows()];
        for (y, f) in self.y.col_iter().zip(outputs.col_iter()) {
            for ((square, y), f) in squares.iter_mut().zip(y.iter()).zip(f.iter()) {
                *square += (y - f) * (y - f);
            }
        }
        squares
    }
}

fn lower_product(u: MatRef<'_, f64>, par: Par) -> Mat<f64> {
    let mut kernel = Mat::zeros(u.nrows(), u.nrows());
    triangular::matmul(
        kernel.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Replace,
        u,
        BlockStructure::Rectangular,
        u.transpose(),
        BlockStructure::Rectangular,
        1.0,
        worth(par, u.nrows() as f64 * u.nrows() as f64 * u.ncols() as f64),
    );
    kernel
}
