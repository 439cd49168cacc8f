//! A Cholesky factor in 32 bits, for the many solves of conjugate gradients.
//!
//! A solve with few right-hand sides waits for memory, and to conjugate gradients it need not be exact:
//! any positive definite matrix near the right one will do. So all of the factor F but blocks on its
//! diagonal is kept in tiles of whole numbers, as U is ([`Panel`]): a fourth of the memory of a square
//! matrix in double precision. The solution is that of F~ F~', with F~ off by 2^-32 of the largest value
//! in a column of a tile. Of the blocks on the diagonal the inverses are kept, in double precision, so that a solve consists of
//! products: to solve with a block of 248 rows and few right-hand sides takes many times as long.

use super::factor::Factor;
use crate::linalg::on_threads;
use crate::state::packed::{by_rows, from_rows, panel_height};
use crate::state::{PANEL, Panel, Precision};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::{Mat, MatMut, MatRef, Par};
use std::ops::Range;

/// F~, band by band of as many rows.
pub(crate) struct Preconditioner {
    bands: Vec<Band>,
    height: usize,
    nodes: usize,
}

/// Some rows of a factor: tiles left of the diagonal, and the inverse of the block on it.
struct Band {
    tiles: Vec<Panel>,
    corner: Triangle,
    rows: usize,
}

/// A lower triangle in steps: panels of some rows that end where the diagonal does, so that little of what is multiplied is
/// nothing.
struct Triangle {
    steps: Vec<(Range<usize>, Panel)>,
}

impl Triangle {
    /// Rows of a step, at most: with fewer the sums are too short, with more there are more zeros.
    const STEP: usize = 88;

    fn new(lower: MatRef<'_, f64>) -> Self {
        let n = lower.nrows();
        let height = n.div_ceil(n.div_ceil(Self::STEP)).next_multiple_of(8);
        let step = |start: usize| {
            let rows = start..n.min(start + height);
            let panel = lower.submatrix(start, 0, rows.len(), rows.end);
            (rows, Panel::new(panel, height, Precision::Double))
        };
        Self { steps: (0..n).step_by(height).map(step).collect() }
    }

    /// Writes its product with a matrix by rows.
    fn outputs(&self, right: &[f64], mut into: MatMut<'_, f64>) {
        let columns = into.ncols();
        for (rows, panel) in &self.steps {
            let into = into.as_mut().subrows_mut(rows.start, rows.len());
            panel.outputs(&right[..rows.end * columns], into);
        }
    }

    /// The product of its transpose with a matrix.
    fn transposed(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        let (n, columns) = right.shape();
        let mut found = vec![0.0; n * columns];
        for (rows, panel) in &self.steps {
            let right = right.subrows(rows.start, rows.len());
            panel.add_products(right, &mut found[..rows.end * columns]);
        }
        from_rows(&found, n, columns)
    }
}

impl Preconditioner {
    /// `None` if the factor is not one of a positive definite matrix.
    pub(crate) fn new(factor: &Factor) -> Option<Self> {
        let lower = factor.lower();
        let nodes = lower.nrows();
        let height = panel_height(nodes);
        let starts: Vec<usize> = (0..nodes).step_by(height).collect();
        let flops = (nodes * nodes * height) as f64;
        let bands = on_threads(starts, flops, |start| {
            let rows = lower.subrows(start, height.min(nodes - start));
            let whole = |column| Panel::new(rows.subcols(column, height), height, Precision::Whole);
            let tiles = (0..start).step_by(height).map(whole).collect();
            let corner = Triangle::new(inverse(rows.subcols(start, rows.nrows()))?.as_ref());
            Some(Band { tiles, corner, rows: rows.nrows() })
        });
        Some(Self { bands: bands.into_iter().collect::<Option<_>>()?, height, nodes })
    }

    /// Bytes for so many nodes.
    pub(crate) fn bytes(nodes: usize) -> u64 {
        (nodes * nodes / 2 * size_of::<i32>() + nodes * PANEL * size_of::<f64>()) as u64
    }

    /// The solution for a right-hand side. Tiles are worked on in parallel, their sums added in order.
    pub(crate) fn solve(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        let columns = right.ncols();
        let flops = |tiles: usize| 2.0 * (tiles * self.height * self.height * columns) as f64;
        let mut parts: Vec<Vec<f64>> = Vec::with_capacity(self.bands.len());
        for (place, band) in self.bands.iter().enumerate() {
            let mut block = right.subrows(place * self.height, band.rows).to_owned();
            let tiles: Vec<(&Panel, &Vec<f64>)> = band.tiles.iter().zip(&parts).collect();
            let found = on_threads(tiles, flops(place), |(tile, part)| {
                let mut found = Mat::zeros(band.rows, columns);
                tile.outputs(part, found.as_mut());
                found
            });
            found.iter().for_each(|found| block -= found);
            let right = by_rows(block.as_ref());
            band.corner.outputs(&right, block.as_mut());
            parts.push(by_rows(block.as_ref()));
        }
        let mut solution = Mat::zeros(self.nodes, columns);
        for (place, band) in self.bands.iter().enumerate().rev() {
            let right = from_rows(&parts[place], band.rows, columns);
            let found = band.corner.transposed(right.as_ref());
            solution.subrows_mut(place * self.height, band.rows).copy_from(&found);
            let taken_away: Mat<f64> = -found;
            let tiles: Vec<(&Panel, &mut Vec<f64>)> = band.tiles.iter().zip(&mut parts).collect();
            on_threads(tiles, flops(place), |(tile, part)| {
                tile.add_products(taken_away.as_ref(), part);
            });
        }
        solution
    }
}

/// The inverse of a lower triangle, zeros above it; `None` unless the diagonal is positive.
fn inverse(lower: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let n = lower.nrows();
    let mut inverse = Mat::zeros(n, n);
    invert_lower_triangular(inverse.as_mut(), lower, Par::Seq);
    (0..n).all(|i| lower[(i, i)] > 0.0).then_some(inverse)
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
