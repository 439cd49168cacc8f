//! Every row predicted without itself, by every network that begins another one.
//!
//! With the Cholesky factor F of R + gamma I and V = U F'^-1, c = F^-1 P, the network of the first
//! k nodes predicts V_k c_k, and row i has the leverage w_i |v_i,k|^2: the leading block of a factor
//! is the factor of the leading block. So one factor and one triangular solve, L^3 / 3 + N L^2 flops,
//! give the leave-one-out residuals e / (1 - h) of all sizes together.

use super::factor::Factor;
use crate::error::Result;
use crate::linalg::{product, slice_of};
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatRef, Par};

/// 1 - h is a difference, with an error of about |R| eps / gamma at worst: below this it says nothing.
pub(crate) const LEAST_FREEDOM: f64 = 1e-3;

/// The networks that begin one network, all solved by its factor.
pub(crate) struct Nested {
    /// U F'^-1.
    v: Mat<f64>,
    /// F^-1 P.
    c: Mat<f64>,
}

impl Nested {
    /// For the rows `u`, which need not be those of the equations; N L^2 flops.
    pub(crate) fn new(
        equations: &NormalEquations,
        factor: &Factor,
        u: MatRef<'_, f64>,
        par: Par,
    ) -> Self {
        let mut v = u.to_owned();
        factor.solve_lower_in_place(v.as_mut().transpose_mut(), par);
        let mut c = equations.p().to_owned();
        factor.solve_lower_in_place(c.as_mut(), par);
        Self { v, c }
    }

    /// Outputs and |v_i|^2 of all rows, for one network of so many nodes after another; sizes ascend.
    pub(crate) fn visit(
        &self,
        sizes: &[usize],
        par: Par,
        mut visitor: impl FnMut(usize, MatRef<'_, f64>, &[f64]),
    ) {
        let (rows, mut from) = (self.v.nrows(), 0);
        let mut outputs = Mat::zeros(rows, self.c.ncols());
        let mut lengths = vec![0.0; rows];
        for (place, &size) in sizes.iter().enumerate() {
            let nodes = size - from;
            let part = self.v.subcols(from, nodes);
            let c = self.c.subrows(from, nodes);
            product(outputs.as_mut(), Accum::Add, part, c, par);
            for column in part.col_iter() {
                for (length, value) in lengths.iter_mut().zip(slice_of(column)) {
                    *length += value * value;
                }
            }
            from = size;
            visitor(place, outputs.as_ref(), &lengths);
        }
    }
}

/// 1 - h for a row of this weight and |v|^2; `None` where it says nothing.
pub(crate) fn freedom(weight: f64, length: f64) -> Option<f64> {
    Some(1.0 - weight * length).filter(|freedom| *freedom >= LEAST_FREEDOM)
}

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
    let mut results = Vec::with_capacity(sizes.len());
    Nested::new(equations, &factor, u, par).visit(sizes, par, |_, outputs, lengths| {
        results.push(squares(outputs, y, weights, lengths));
    });
    Ok(results)
}

fn squares(
    outputs: MatRef<'_, f64>,
    y: MatRef<'_, f64>,
    weights: &[f64],
    lengths: &[f64],
) -> Option<Vec<f64>> {
    let mut squares = vec![0.0; y.nrows()];
    for (outputs, y) in outputs.col_iter().zip(y.col_iter()) {
        for ((square, f), y) in squares.iter_mut().zip(outputs.iter()).zip(y.iter()) {
            *square += (y - f) * (y - f);
        }
    }
    for ((square, &weight), &length) in squares.iter_mut().zip(weights).zip(lengths) {
        *square /= freedom(weight, length)?.powi(2);
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
        let equations = NormalEquations::of(u.as_ref(), y.as_ref(), Some(&weights));
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
                    select_rows(part, &others).as_ref(),
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
        let equations = NormalEquations::of(u.as_ref(), y.as_ref(), None);
        let (ones, par) = ([1.0; 4], Par::Seq);
        let found = left_out_squares(&equations, u.as_ref(), y.as_ref(), &ones, 1e-9, &[4], par)
            .expect("a solution");
        assert_eq!(found, [None]);
    }
}
