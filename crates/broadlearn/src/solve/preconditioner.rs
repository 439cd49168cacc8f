//! A Cholesky factor in 32 bits, for the many solves of conjugate gradients.
//!
//! A solve with few right-hand sides waits for memory, and to conjugate gradients it need not be exact:
//! any positive definite matrix near the right one will do. So all of the factor F but blocks on its
//! diagonal is kept in tiles of whole numbers, as U is ([`Panel`]): a fourth of the memory of a square
//! matrix in double precision. The solution is that of F~ F~', with F~ off by 2^-32 of the largest value
//! in a column of a tile.

use super::factor::Factor;
use crate::linalg::slice_of_column;
use crate::state::packed::by_rows;
use crate::state::{PANEL, Panel};
use faer::{Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// F~, band by band of [`PANEL`] rows.
pub(crate) struct Preconditioner {
    bands: Vec<Band>,
}

/// Some rows of a factor: tiles left of the diagonal, and the block on it.
struct Band {
    tiles: Vec<Panel>,
    corner: Factor,
}

impl Preconditioner {
    pub(crate) fn new(factor: &Factor) -> Option<Self> {
        let lower = factor.lower();
        let nodes = lower.nrows();
        let starts: Vec<usize> = (0..nodes).step_by(PANEL).collect();
        let band = |&start: &usize| {
            let rows = lower.subrows(start, PANEL.min(nodes - start));
            let tile = |column: usize| Panel::new(rows.subcols(column, PANEL));
            let tiles = (0..start).step_by(PANEL).map(tile).collect();
            let corner = Factor::from_lower(rows.subcols(start, rows.nrows()).to_owned())?;
            Some(Band { tiles, corner })
        };
        Some(Self { bands: starts.par_iter().map(band).collect::<Option<_>>()? })
    }

    /// Bytes for so many nodes.
    pub(crate) fn bytes(nodes: usize) -> u64 {
        (nodes * nodes / 2 * size_of::<i32>() + nodes * PANEL * size_of::<f64>()) as u64
    }

    /// The solution for a right-hand side. Tiles are worked on in parallel, their sums added in order.
    pub(crate) fn solve(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        let columns = right.ncols();
        let mut parts: Vec<Vec<f64>> = Vec::with_capacity(self.bands.len());
        for (place, band) in self.bands.iter().enumerate() {
            let mut block = right.subrows(place * PANEL, band.corner.lower().nrows()).to_owned();
            let found: Vec<Mat<f64>> = (band.tiles.par_iter().zip(&parts))
                .map(|(tile, part)| {
                    let mut found = Mat::zeros(block.nrows(), columns);
                    tile.outputs(part, found.as_mut());
                    found
                })
                .collect();
            found.iter().for_each(|found| block -= found);
            band.corner.solve_lower_in_place(block.as_mut(), Par::Seq);
            parts.push(by_rows(block.as_ref()));
        }
        let mut solution = Mat::zeros(right.nrows(), columns);
        for (place, band) in self.bands.iter().enumerate().rev() {
            let rows = band.corner.lower().nrows();
            let mut block = solution.as_mut().subrows_mut(place * PANEL, rows);
            copy_rows(&parts[place], block.as_mut());
            band.corner.solve_upper_in_place(block.as_mut());
            let taken_away: Mat<f64> = -block.as_ref();
            band.tiles.par_iter().zip(&mut parts).for_each(|(tile, part)| {
                tile.add_products(taken_away.as_ref(), part);
            });
        }
        solution
    }
}

/// Writes rows that stand one after the other.
fn copy_rows(rows: &[f64], into: MatMut<'_, f64>) {
    let columns = into.ncols();
    for (place, column) in into.col_iter_mut().enumerate() {
        let values = rows[place..].iter().step_by(columns);
        slice_of_column(column).iter_mut().zip(values).for_each(|(into, value)| *into = *value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::NormalEquations;

    #[test]
    fn solutions_are_nearly_those_of_the_factor() {
        for (nodes, outputs) in [(1, 1), (5, 3), (248, 2), (249, 1), (700, 10)] {
            let u = Mat::from_fn(nodes + 50, nodes, |i, j| ((i * 37 + j * j * 11) as f64).sin());
            let y = Mat::from_fn(nodes + 50, outputs, |i, j| ((i + 5 * j) as f64).cos());
            let equations = NormalEquations::of(u.as_ref(), y.as_ref(), None);
            let (r, p) = equations.into_parts();
            let factor = Factor::new(r, 1e-2, Par::Seq).expect("positive definite");
            let expected = factor.solve(p.as_ref(), Par::Seq);
            let found = Preconditioner::new(&factor).expect("finite tiles").solve(p.as_ref());
            let error = factor.norm((&found - &expected).as_ref()) / factor.norm(expected.as_ref());
            assert!(error < 1e-6, "{nodes} nodes: {error:e}");
        }
    }

    #[test]
    fn threads_change_no_bit() {
        let r = Mat::from_fn(600, 600, |i, j| if i == j { 300.0 } else { ((i * j) as f64).sin() });
        let right = Mat::from_fn(600, 4, |i, j| ((i + 7 * j) as f64).sin());
        let factor = Factor::new(r, 0.0, Par::Seq).expect("positive definite");
        let [one, three] = [1, 3].map(|threads| {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| {
                Preconditioner::new(&factor).expect("finite tiles").solve(right.as_ref())
            })
        });
        assert!(one == three);
    }
}
