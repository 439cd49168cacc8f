//! The sparse autoencoder that fine-tunes a feature group.
//!
//! ```text
//! minimise over O   |A O - H1|^2 / 2 + lasso |O|_1
//! ```
//!
//! where A are the random nodes of the group and H1 the inputs with their constant. The transpose of
//! O maps inputs to nodes. Solved by fifty steps of the alternating direction method of multipliers,
//! which is what the original authors' code does; the answer of the truncated iteration *is* the
//! definition, so the number of steps is not a setting.

use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

const LASSO: f64 = 1e-3;
const STEPS: usize = 50;

/// O from the products A'A (q x q, full) and A'H1 (q x m); `None` if A'A is not finite.
pub(super) fn sparse_weights(gram: MatRef<'_, f64>, cross: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let (q, m) = (cross.nrows(), cross.ncols());
    let penalised = gram + Mat::<f64>::identity(q, q);
    let factor = penalised.llt(Side::Lower).ok()?;
    let least_squares = factor.solve(cross);
    let mut sparse = Mat::<f64>::zeros(q, m);
    let mut dual = Mat::<f64>::zeros(q, m);
    for _ in 0..STEPS {
        let dense = &least_squares + factor.solve(&sparse - &dual);
        dual += &dense;
        for j in 0..m {
            for i in 0..q {
                sparse[(i, j)] = soft_threshold(dual[(i, j)], LASSO);
            }
        }
        dual -= &sparse;
    }
    Some(sparse)
}

fn soft_threshold(value: f64, threshold: f64) -> f64 {
    value.signum() * (value.abs() - threshold).max(0.0)
}
