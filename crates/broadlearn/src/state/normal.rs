//! The weighted normal equations R = U' Λ U, P = U' Λ Y.

use crate::linalg::{product, scale_rows, worth};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// What all that was learnt from amounts to: R = U' Λ U and P = U' Λ Y with the sample weights Λ that
/// made them.
///
/// R does not contain the ridge term γ I: that is added when the equations are solved, so that the
/// equations of disjoint sets of rows simply add. Only the lower triangle of R is meaningful.
/// Adding n rows costs n L^2 flops and no memory.
#[derive(Clone, Debug)]
pub struct NormalEquations {
    r: Mat<f64>,
    p: Mat<f64>,
    rows: u64,
    weight: f64,
}

impl NormalEquations {
    /// The equations of no rows at all, for L nodes and C outputs.
    pub fn empty(nodes: usize, outputs: usize) -> Self {
        Self { r: Mat::zeros(nodes, nodes), p: Mat::zeros(nodes, outputs), rows: 0, weight: 0.0 }
    }

    /// Equations from their parts; `None` unless the shapes fit.
    pub fn from_parts(r: Mat<f64>, p: Mat<f64>, rows: u64, weight: f64) -> Option<Self> {
        let fits = r.nrows() == r.ncols() && r.nrows() == p.nrows();
        fits.then_some(Self { r, p, rows, weight })
    }

    /// R = U' Λ U; only its lower triangle is meaningful.
    pub fn r(&self) -> MatRef<'_, f64> {
        self.r.as_ref()
    }

    /// P = U' Λ Y.
    pub fn p(&self) -> MatRef<'_, f64> {
        self.p.as_ref()
    }

    /// The number of rows that were added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The sum of their sample weights.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Adds rows with their sample weights (1 if not given). The block of U is overwritten.
    pub(crate) fn add(
        &mut self,
        mut u: MatMut<'_, f64>,
        y: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        par: Par,
    ) {
        self.rows += u.nrows() as u64;
        self.weight += weights.map_or(u.nrows() as f64, |weights| weights.iter().sum());
        let weighted;
        let y = match weights {
            None => y,
            Some(weights) => {
                let root: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
                scale_rows(u.as_mut(), &root);
                weighted = Mat::from_fn(y.nrows(), y.ncols(), |i, j| root[i] * y[(i, j)]);
                weighted.as_ref()
            }
        };
        let flops = u.nrows() as f64 * (u.ncols() as f64).powi(2);
        triangular::matmul(
            self.r.as_mut(),
            BlockStructure::TriangularLower,
            Accum::Add,
            u.as_ref().transpose(),
            BlockStructure::Rectangular,
            u.as_ref(),
            BlockStructure::Rectangular,
            1.0,
            worth(par, flops),
        );
        product(self.p.as_mut(), Accum::Add, u.as_ref().transpose(), y, par);
    }
}
