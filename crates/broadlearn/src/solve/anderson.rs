//! Anderson's acceleration of a fixed point W = g(W) whose steps are dear.
//!
//! With residuals f_k = g(W_k) - W_k, the next W is not g(W_k) but the same combination of the last few g(W_i)
//! that makes the combination of the f_i smallest. In the norm of R + gamma I that is a combination of outputs.

use super::factor::Factor;
use crate::linalg::{inner, squared_norm};
use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

/// Steps that are combined.
const DEPTH: usize = 3;

/// The last steps.
#[derive(Default)]
pub(crate) struct Anderson {
    /// W's residual and image, of every step.
    steps: Vec<(Mat<f64>, Mat<f64>)>,
}

impl Anderson {
    /// The next W, after `w` has led to its image `g`, which solves the equations of this factor.
    pub(crate) fn next(
        &mut self,
        w: MatRef<'_, f64>,
        g: MatRef<'_, f64>,
        factor: &Factor,
    ) -> Mat<f64> {
        let f: Mat<f64> = g - w;
        let mut next = g.to_owned();
        let half = factor.half_product(f.as_ref());
        let differences: Vec<Mat<f64>> = self
            .steps
            .iter()
            .map(|(earlier, _)| {
                let difference: Mat<f64> = &f - earlier;
                factor.half_product(difference.as_ref())
            })
            .collect();
        let count = differences.len();
        if count > 0 {
            let sizes: f64 = differences.iter().map(|d| squared_norm(d.as_ref())).sum();
            let normal = Mat::from_fn(count, count, |i, j| {
                let product = inner(differences[i].as_ref(), differences[j].as_ref());
                product + if i == j { 1e-12 * sizes } else { 0.0 }
            });
            let right =
                Mat::from_fn(count, 1, |i, _| inner(differences[i].as_ref(), half.as_ref()));
            if let Ok(factor) = normal.llt(Side::Lower) {
                let shares = factor.solve(&right);
                for (place, (_, image)) in self.steps.iter().enumerate() {
                    next -= faer::Scale(shares[(place, 0)]) * (g - image);
                }
            }
        }
        self.steps.push((f, g.to_owned()));
        if self.steps.len() > DEPTH {
            self.steps.remove(0);
        }
        next
    }

    /// Forgets the steps: they have led astray.
    pub(crate) fn restart(&mut self) {
        self.steps.clear();
    }
}
