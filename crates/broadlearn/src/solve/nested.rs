//! Every row predicted without itself, by every network that begins another one.
//!
//! With the Cholesky factor F of R + gamma I and V = U F'^-1, c = F^-1 P, the network of the first
//! k nodes predicts V_k c_k, and row i has the leverage w_i |v_i,k|^2: the leading block of a factor
//! is the factor of the leading block. So one factor and one triangular solve, L^3 / 3 + N L^2 flops,
//! give the leave-one-out residuals e / (1 - h) of all sizes together.

use super::factor::Factor;
use crate::error::Result;
use crate::linalg::{product, slice_of, worth};
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;
use std::ops::Range;

/// 1 - h is a difference, with an error of about |R| eps / gamma at worst: below this it says nothing.
pub(crate) const LEAST_FREEDOM: f64 = 1e-3;

/// Rows that are solved for together: V is needed for no longer than it takes to add up its squares, and so many rows of it
/// stay in a cache. 64 and 256 take some percent longer, all rows of a small network a quarter.
const BLOCK: usize = 128;

/// What one of the nested networks says about rows.
pub(crate) struct Outlook {
    pub(crate) outputs: Mat<f64>,
    /// |v_i|^2 of every row.
    pub(crate) lengths: Vec<f64>,
}

impl Outlook {
    fn empty(rows: usize, outputs: usize) -> Self {
        Self { outputs: Mat::zeros(rows, outputs), lengths: vec![0.0; rows] }
    }
}

/// The networks of these numbers of nodes, which ascend, all solved by one factor, on the rows `u`, which need not be those
/// of the equations; N L^2 flops.
pub(crate) fn outlooks(
    equations: &NormalEquations,
    factor: &Factor,
    u: MatRef<'_, f64>,
    sizes: &[usize],
    par: Par,
) -> Vec<Outlook> {
    let (rows, nodes) = u.shape();
    let mut c = equations.p().to_owned();
    factor.solve_lower_in_place(c.as_mut(), par);
    let blocks = (0..rows).step_by(BLOCK).map(|start| start..rows.min(start + BLOCK));
    let blocks: Vec<Range<usize>> = blocks.collect();
    let room = || Mat::zeros(rows.min(BLOCK), nodes);
    let look = |v: &mut Mat<f64>, rows: &Range<usize>| {
        let u = u.subrows(rows.start, rows.len());
        look_at(factor, c.as_ref(), u, sizes, v)
    };
    let flops = rows as f64 * (nodes as f64).powi(2);
    let parts: Vec<Vec<Outlook>> = match worth(par, flops).degree() {
        1 => {
            let mut v = room();
            blocks.iter().map(|rows| look(&mut v, rows)).collect()
        }
        _ => blocks.par_iter().map_init(room, look).collect(),
    };
    let mut all: Vec<Outlook> = sizes.iter().map(|_| Outlook::empty(rows, c.ncols())).collect();
    for (rows, parts) in blocks.into_iter().zip(parts) {
        for (all, part) in all.iter_mut().zip(parts) {
            all.outputs.subrows_mut(rows.start, rows.len()).copy_from(part.outputs);
            all.lengths[rows.clone()].copy_from_slice(&part.lengths);
        }
    }
    all
}

/// [`outlooks`] for the rows of a block, with room for V.
fn look_at(
    factor: &Factor,
    c: MatRef<'_, f64>,
    u: MatRef<'_, f64>,
    sizes: &[usize],
    room: &mut Mat<f64>,
) -> Vec<Outlook> {
    let mut v = room.subrows_mut(0, u.nrows());
    v.copy_from(u);
    factor.solve_lower_in_place(v.as_mut().transpose_mut(), Par::Seq);
    let (mut from, mut now) = (0, Outlook::empty(u.nrows(), c.ncols()));
    let mut found = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let part = v.as_ref().subcols(from, size - from);
        let c = c.subrows(from, size - from);
        product(now.outputs.as_mut(), Accum::Add, part, c, Par::Seq);
        for column in part.col_iter() {
            for (length, value) in now.lengths.iter_mut().zip(slice_of(column)) {
                *length += value * value;
            }
        }
        from = size;
        found.push(Outlook { outputs: now.outputs.clone(), lengths: now.lengths.clone() });
    }
    found
}

/// 1 - h for a row of this weight and |v|^2; `None` where it says nothing.
pub(crate) fn freedom(weight: f64, length: f64) -> Option<f64> {
    Some(1.0 - weight * length).filter(|freedom| *freedom >= LEAST_FREEDOM)
}

/// One of the nested networks: its output weights, and the leave-one-out squared residual norm of every row.
#[derive(Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) w: Mat<f64>,
    pub(crate) squares: Vec<f64>,
}

/// The nested networks of all sizes; `None` where a row has the model to itself (h = 1), so that nothing is known
/// about its prediction without it.
///
/// `equations` are those of `u`, `y` and `weights`; sizes ascend.
pub(crate) fn judged(
    equations: &NormalEquations,
    u: MatRef<'_, f64>,
    y: MatRef<'_, f64>,
    weights: &[f64],
    ridge: f64,
    sizes: &[usize],
    par: Par,
) -> Result<Vec<Option<Judged>>> {
    let factor = Factor::new(equations.r().to_owned(), ridge, par)?;
    let outlooks = outlooks(equations, &factor, u, sizes, par);
    let judged = outlooks.iter().zip(sizes).map(|(outlook, &size)| {
        let squares = squares(outlook, y, weights)?;
        Some(Judged { w: factor.solve_leading(equations.p(), size), squares })
    });
    Ok(judged.collect())
}

fn squares(outlook: &Outlook, y: MatRef<'_, f64>, weights: &[f64]) -> Option<Vec<f64>> {
    let mut squares = vec![0.0; y.nrows()];
    for (outputs, y) in outlook.outputs.col_iter().zip(y.col_iter()) {
        for ((square, f), y) in squares.iter_mut().zip(outputs.iter()).zip(y.iter()) {
            *square += (y - f) * (y - f);
        }
    }
    for ((square, &weight), &length) in squares.iter_mut().zip(weights).zip(&outlook.lengths) {
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
        let found =
            judged(&equations, u_ref, y_ref, &weights, 0.3, &sizes, Par::Seq).expect("a solution");
        for (size, judged) in sizes.into_iter().zip(found) {
            let judged = judged.expect("no row has a node to itself");
            let part = u.subcols(0, size);
            let equations = NormalEquations::of(part, y.as_ref(), Some(&weights));
            let factor = Factor::new(equations.r().to_owned(), 0.3, Par::Seq).expect("a solution");
            assert!((factor.solve(equations.p(), Par::Seq) - &judged.w).norm_max() < 1e-10);
            for (row, square) in judged.squares.into_iter().enumerate() {
                let others: Vec<usize> = (0..30).filter(|&other| other != row).collect();
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
    fn neither_threads_nor_neighbours_change_what_is_said_of_a_row() {
        let mut stream = Stream::new(5, Purpose::Noise, 0);
        let (rows, nodes) = (600, 200);
        let u = Mat::from_fn(rows, nodes, |_, _| stream.normal());
        let y = Mat::from_fn(rows, 2, |_, _| stream.normal());
        let equations = NormalEquations::of(u.as_ref(), y.as_ref(), None);
        let factor = Factor::new(equations.r().to_owned(), 0.1, Par::Seq).expect("a solution");
        let of = |u, par| outlooks(&equations, &factor, u, &[7, nodes], par);
        let one = of(u.as_ref(), Par::Seq);
        for (one, two) in one.iter().zip(of(u.as_ref(), Par::rayon(2))) {
            assert!(one.outputs == two.outputs && one.lengths == two.lengths);
        }
        // Rows of several blocks, each by itself.
        for row in [0, 127, 128, 300, 599] {
            for (all, alone) in one.iter().zip(of(u.subrows(row, 1), Par::Seq)) {
                assert!((all.outputs.row(row) - alone.outputs.row(0)).norm_max() < 1e-12);
                assert!((all.lengths[row] - alone.lengths[0]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_row_that_owns_its_node_is_not_judged() {
        let u = Mat::from_fn(4, 4, |i, j| f64::from(u8::from(i == j)));
        let y = Mat::from_fn(4, 1, |i, _| i as f64);
        let equations = NormalEquations::of(u.as_ref(), y.as_ref(), None);
        let (ones, par) = ([1.0; 4], Par::Seq);
        let found =
            judged(&equations, u.as_ref(), y.as_ref(), &ones, 1e-9, &[4], par).expect("a solution");
        assert_eq!(found, [None]);
    }
}
