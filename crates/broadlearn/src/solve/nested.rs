//! Every row predicted without itself, by every network that begins another one.
//!
//! With the Cholesky factor F of R + gamma I and V' = F^-1 U', c = F^-1 P, the network of the first
//! k nodes predicts V_k c_k, and row i has the leverage w_i |v_i,k|^2: the leading block of a factor
//! is the factor of the leading block. So one factor and one triangular solve, L^3 / 3 + N L^2 flops,
//! give the leave-one-out residuals e / (1 - h) of all sizes together.

use super::factor::Factor;
use crate::error::Result;
use crate::linalg::product;
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatRef, Par};

/// 1 - h is a difference, with an error of about |R| eps / gamma at worst: below this it says nothing.
const LEAST_FREEDOM: f64 = 1e-3;

/// The leave-one-out squared residual norms of every row, for every size; `None` where a row has the
/// model to itself (h = 1), so that nothing is known about its prediction without it.
///
/// `equations` are those of `u`, `y` and `weights`; sizes ascend.
pub(crate) fn left_out_squares(
    equations: &NormalEquations,
    u: MatRef<'_, f64>,
    y: MatRef<'_, f64>,
    weights: &[f64],
    ridge: f64,
    sizes: &[usize],
    par: Par,
) -> Result<Vec<Option<Vec<f64>>>> {
    let factor = Factor::new(equations.r().to_owned(), ridge, par)?;
    let mut v = u.transpose().to_owned();
    factor.solve_lower_in_place(v.as_mut(), par);
    let mut c = equations.p().to_owned();
    factor.solve_lower_in_place(c.as_mut(), par);

    let (rows, mut from) = (u.nrows(), 0);
    let mut outputs = Mat::zeros(rows, y.ncols());
    let mut leverage = vec![0.0; rows];
    let mut results = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let nodes = size - from;
        let part = v.subrows(from, nodes);
        product(outputs.as_mut(), Accum::Add, part.transpose(), c.subrows(from, nodes), par);
        for (leverage, column) in leverage.iter_mut().zip(part.col_iter()) {
            *leverage += column.squared_norm_l2();
        }
        from = size;
        results.push(squares(&outputs, y, weights, &leverage));
    }
    Ok(results)
}

fn squares(
    outputs: &Mat<f64>,
    y: MatRef<'_, f64>,
    weights: &[f64],
    leverage: &[f64],
) -> Option<Vec<f64>> {
    let mut squares = vec![0.0; y.nrows()];
    for (outputs, y) in outputs.col_iter().zip(y.col_iter()) {
        for ((square, f), y) in squares.iter_mut().zip(outputs.iter()).zip(y.iter()) {
            *square += (y - f) * (y - f);
        }
    }
    for ((square, weight), leverage) in squares.iter_mut().zip(weights).zip(leverage) {
        let freedom = 1.0 - weight * leverage;
        if freedom.is_nan() || freedom < LEAST_FREEDOM {
            return None;
        }
        *square /= freedom * freedom;
    }
    Some(squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};
    use crate::linalg::select_rows;

    #[test]
    fn every_size_and_row_equals_a_fit_without_the_row() {
        let mut stream = Stream::new(4, Purpose::Noise, 0);
        let u = Mat::from_fn(30, 12, |_, _| stream.normal());
        let y = Mat::from_fn(30, 2, |_, _| stream.normal());
        let weights: Vec<f64> = (0..30).map(|_| 0.1 + stream.unit()).collect();
        let equations = NormalEquations::of(u.clone(), y.as_ref(), Some(&weights));
        let sizes = [1, 5, 12];
        let (u_ref, y_ref) = (u.as_ref(), y.as_ref());
        let found = left_out_squares(&equations, u_ref, y_ref, &weights, 0.3, &sizes, Par::Seq)
            .expect("a solution");
        for (size, squares) in sizes.into_iter().zip(found) {
            let squares = squares.expect("no row has a node to itself");
            for (row, square) in squares.into_iter().enumerate() {
                let others: Vec<usize> = (0..30).filter(|&other| other != row).collect();
                let part = u.subcols(0, size);
                let kept: Vec<f64> = others.iter().map(|&other| weights[other]).collect();
                let equations = NormalEquations::of(
                    select_rows(part, &others),
                    select_rows(y.as_ref(), &others).as_ref(),
                    Some(&kept),
                );
                let factor =
                    Factor::new(equations.r().to_owned(), 0.3, Par::Seq).expect("a solution");
                let w = factor.solve(equations.p(), Par::Seq);
                let e = y.row(row) - part.row(row) * &w;
                assert!((e.squared_norm_l2() - square).abs() < 1e-10, "{size}, row {row}");
            }
        }
    }

    #[test]
    fn a_row_that_owns_its_node_is_not_judged() {
        let u = Mat::from_fn(4, 4, |i, j| f64::from(u8::from(i == j)));
        let y = Mat::from_fn(4, 1, |i, _| i as f64);
        let equations = NormalEquations::of(u.clone(), y.as_ref(), None);
        let (ones, par) = ([1.0; 4], Par::Seq);
        let found = left_out_squares(&equations, u.as_ref(), y.as_ref(), &ones, 1e-9, &[4], par)
            .expect("a solution");
        assert_eq!(found, [None]);
    }
}
