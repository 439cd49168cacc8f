//! Features X W that keep neighbouring rows together, for rows that lie near a curved surface: two published
//! ways to find W from a graph of neighbours.
//!
//! * Structured (Han, Feng, Chen, Xu and Qiu, IEEE Transactions on Knowledge and Data Engineering 31, 2019):
//!   outputs Y of little change along the graph, rows of W that vanish together.
//! * Robust (Feng, Ren, Han and Chen, Neural Networks 117, 2019): the same by alternating directions with the
//!   constraint W' X' D X W = I. The size of its random start and its number of steps are not published.
//!
//! The graph has at most 800 rows, at even distances, where the authors take the first 5000: a decomposition
//! of so large a graph takes minutes. Rows stand in it whatever their weights are.

use super::draw::Stream;
use super::network::Manifold;
use crate::error::{Error, Result};
use crate::linalg::{Qr, parallelism, product, squared_norm};
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::{Accum, Mat, MatRef, Par, Spec};

/// The rows of a graph.
pub(super) const GRAPH_ROWS: usize = 800;
const NEIGHBOURS: usize = 12;
const STEPS: usize = 50;
/// Rows of W below this norm are set to 0.
const NEGLIGIBLE: f64 = 0.01;
/// Norms of rows count as no less.
const LEAST_NORM: f64 = 1e-4;
/// Eigenvectors of the graph that are looked at beyond those that are wanted.
const MORE_VECTORS: usize = 10;

/// W (M x nodes) for these rows. Nodes for which the rows have no directions left are 0.
pub(super) fn weights(
    kind: Manifold,
    x: MatRef<'_, f64>,
    nodes: usize,
    (alpha, beta): (f64, f64),
    stream: &mut Stream,
) -> Result<Mat<f64>> {
    let graph = Graph::of(x);
    let w = match kind {
        Manifold::Structured => structured(&graph, nodes, alpha, beta, stream)?,
        Manifold::Robust => robust(&graph, nodes, alpha, beta, stream)?,
    };
    if w.is_all_finite() {
        Ok(w)
    } else {
        Err(Error::numeric("manifold features met values that are not finite"))
    }
}

/// Rows with their nearest neighbours, the largest part that hangs together.
struct Graph {
    x: Mat<f64>,
    /// How near two rows are, 0 unless they are neighbours.
    near: Mat<f64>,
    degrees: Vec<f64>,
}

impl Graph {
    fn of(x: MatRef<'_, f64>) -> Self {
        let n = x.nrows();
        let mut distances = Mat::zeros(n, n);
        product(distances.as_mut(), Accum::Replace, x, x.transpose(), parallelism());
        let sizes: Vec<f64> = (0..n).map(|i| distances[(i, i)]).collect();
        for j in 0..n {
            for i in 0..n {
                distances[(i, j)] = (sizes[i] + sizes[j] - 2.0 * distances[(i, j)]).max(0.0);
            }
        }
        let mut near = Mat::<f64>::zeros(n, n);
        let mut order: Vec<usize> = Vec::with_capacity(n);
        let mut farthest = 0.0_f64;
        for j in 0..n {
            order.clear();
            order.extend((0..n).filter(|&i| i != j));
            let wanted = NEIGHBOURS.min(order.len());
            if wanted > 0 && wanted < order.len() {
                let by_distance =
                    |a: &usize, b: &usize| distances[(*a, j)].total_cmp(&distances[(*b, j)]);
                order.select_nth_unstable_by(wanted - 1, by_distance);
            }
            for &i in &order[..wanted] {
                farthest = farthest.max(distances[(i, j)]);
                (near[(i, j)], near[(j, i)]) = (1.0, 1.0);
            }
        }
        let unit = if farthest > 0.0 { farthest } else { 1.0 };
        for j in 0..n {
            for i in 0..n {
                if near[(i, j)] > 0.0 {
                    near[(i, j)] = (-0.5 * distances[(i, j)] / unit).exp();
                }
            }
        }
        let kept = largest_component(&near);
        let x = Mat::from_fn(kept.len(), x.ncols(), |i, j| x[(kept[i], j)]);
        let near = Mat::from_fn(kept.len(), kept.len(), |i, j| near[(kept[i], kept[j])]);
        let degrees = near.row_iter().map(|row| row.iter().sum()).collect();
        Self { x, near, degrees }
    }

    /// The Laplacian D - G.
    fn laplacian(&self) -> Mat<f64> {
        let n = self.degrees.len();
        Mat::from_fn(n, n, |i, j| {
            if i == j { self.degrees[i] - self.near[(i, i)] } else { -self.near[(i, j)] }
        })
    }
}

/// The rows of the largest part of the graph; of several, the one with the first row.
fn largest_component(near: &Mat<f64>) -> Vec<usize> {
    let n = near.nrows();
    let (mut seen, mut best) = (vec![false; n], Vec::new());
    for first in 0..n {
        if seen[first] {
            continue;
        }
        let (mut part, mut next) = (vec![first], 0);
        seen[first] = true;
        while next < part.len() {
            let row = part[next];
            next += 1;
            for other in (0..n).filter(|&other| near[(other, row)] > 0.0) {
                if !seen[other] {
                    seen[other] = true;
                    part.push(other);
                }
            }
        }
        if part.len() > best.len() {
            best = part;
        }
    }
    best.sort_unstable();
    best
}

/// The lowest eigenvectors are sought among those of the graph and the inputs themselves: the rest of the
/// matrix, of rank M, moves them there.
fn structured(
    graph: &Graph,
    nodes: usize,
    alpha: f64,
    beta: f64,
    stream: &mut Stream,
) -> Result<Mat<f64>> {
    let (x, inputs) = (&graph.x, graph.x.ncols());
    let laplacian = graph.laplacian();
    let (_, vectors) = eigen(&laplacian)?;
    let some = (nodes + inputs + MORE_VECTORS).min(vectors.ncols());
    let mut basis = Mat::zeros(x.nrows(), some + inputs);
    basis.subcols_mut(0, some).copy_from(vectors.subcols(0, some));
    basis.subcols_mut(some, inputs).copy_from(x);
    let basis = Qr::new(basis).thin_q();
    let small = basis.transpose() * &laplacian * &basis;
    let projected = basis.transpose() * x;
    let moments = x.transpose() * x;

    let count = nodes.min(basis.ncols());
    let mut w = Mat::from_fn(inputs, nodes, |_, _| stream.normal());
    for _ in 0..STEPS {
        let sparse: Vec<f64> = (0..inputs)
            .map(|i| alpha / squared_norm(w.subrows(i, 1)).sqrt().max(LEAST_NORM))
            .collect();
        let with = |scale: f64| {
            Mat::from_fn(inputs, inputs, |i, j| {
                scale * moments[(i, j)] + if i == j { sparse[i] } else { 0.0 }
            })
        };
        let regressed = solve(&with(1.0), &projected.transpose().to_owned())?;
        let matrix = &small - faer::Scale(beta) * (&projected * regressed);
        let (_, lowest) = eigen(&matrix)?;
        let right = projected.transpose() * lowest.subcols(0, count);
        let found = solve(&with(beta), &right)?;
        w = Mat::zeros(inputs, nodes);
        w.subcols_mut(0, count).copy_from(&found);
    }
    for i in 0..inputs {
        if squared_norm(w.subrows(i, 1)).sqrt() < NEGLIGIBLE {
            w.row_mut(i).fill(0.0);
        }
    }
    Ok(w)
}

fn robust(
    graph: &Graph,
    nodes: usize,
    alpha: f64,
    beta: f64,
    stream: &mut Stream,
) -> Result<Mat<f64>> {
    let (x, n, inputs) = (&graph.x, graph.x.nrows(), graph.x.ncols());
    let f = Mat::from_fn(n, nodes, |_, _| stream.normal());
    let root: Vec<f64> = graph.degrees.iter().map(|degree| degree.sqrt()).collect();
    let rooted = Mat::from_fn(n, inputs, |i, j| root[i] * x[(i, j)]);
    let moments = x.transpose() * x;
    let along = x.transpose() * (graph.laplacian() * x);
    let matrix = faer::Scale(2.0) * along
        + faer::Scale(2.0 * alpha) * moments
        + Mat::<f64>::identity(inputs, inputs)
        + rooted.transpose() * &rooted;
    let drawn = faer::Scale(2.0 * alpha) * (x.transpose() * &f);
    let mut q = Mat::<f64>::zeros(inputs, nodes);
    let mut p = Mat::<f64>::zeros(n, nodes);
    let (mut l1, mut l2) = (q.clone(), p.clone());
    for _ in 0..STEPS {
        let w = solve(&matrix, &(&drawn + &q + &l1 + rooted.transpose() * (&p + &l2)))?;
        let outputs = &rooted * &w;
        q = &w - &l1;
        for i in 0..inputs {
            let norm = squared_norm(q.subrows(i, 1)).sqrt();
            let factor = if norm > beta { 1.0 - beta / norm } else { 0.0 };
            q.row_mut(i).iter_mut().for_each(|value| *value *= factor);
        }
        p = polar(&(&outputs - &l2))?;
        l1 += &q - &w;
        l2 += &p - &outputs;
    }
    let largest = q.norm_max();
    if largest > 0.0 {
        q = faer::Scale(1.0 / largest) * q;
    }
    Ok(q)
}

/// The nearest matrix with orthonormal columns, as far as the rank goes: A (A' A)^-1/2.
fn polar(matrix: &Mat<f64>) -> Result<Mat<f64>> {
    let (values, vectors) = eigen(&(matrix.transpose() * matrix))?;
    let largest = values.last().copied().unwrap_or(0.0);
    let rotated = matrix * &vectors;
    let scaled = Mat::from_fn(rotated.nrows(), rotated.ncols(), |i, j| {
        if values[j] > 1e-12 * largest { rotated[(i, j)] / values[j].sqrt() } else { 0.0 }
    });
    Ok(scaled * vectors.transpose())
}

/// Solves a small symmetric positive system.
fn solve(matrix: &Mat<f64>, right: &Mat<f64>) -> Result<Mat<f64>> {
    let factor = crate::solve::factor::Factor::new(matrix.clone(), 0.0, Par::Seq)?;
    Ok(factor.solve(right.as_ref(), Par::Seq))
}

/// Eigenvalues of a symmetric matrix, the least first, and their vectors; on one thread, because several
/// round differently.
fn eigen(matrix: &Mat<f64>) -> Result<(Vec<f64>, Mat<f64>)> {
    let n = matrix.nrows();
    let (mut values, mut vectors) = (Diag::<f64>::zeros(n), Mat::zeros(n, n));
    let (par, params) = (Par::Seq, Spec::default());
    let need = evd::self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, par, params);
    evd::self_adjoint_evd(
        matrix.as_ref(),
        values.as_mut(),
        Some(vectors.as_mut()),
        par,
        MemStack::new(&mut MemBuffer::new(need)),
        params,
    )
    .map_err(|_| Error::numeric("the graph of neighbours has no eigenvectors that can be found"))?;
    Ok((values.column_vector().iter().copied().collect(), vectors))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::features::draw::Purpose;

    fn swiss_roll(rows: usize) -> Mat<f64> {
        let mut stream = Stream::new(5, Purpose::Noise, 0);
        let places: Vec<(f64, f64)> = (0..rows).map(|_| (stream.unit(), stream.unit())).collect();
        Mat::from_fn(rows, 3, |i, j| {
            let (turn, height) = (5.0 + 8.0 * places[i].0, places[i].1);
            [turn * turn.cos() / 10.0, height, turn * turn.sin() / 10.0][j]
        })
    }

    #[test]
    fn a_graph_is_symmetric_and_hangs_together() {
        let graph = Graph::of(swiss_roll(150).as_ref());
        assert_eq!(graph.near, graph.near.transpose());
        assert_eq!(largest_component(&graph.near).len(), graph.x.nrows());
        assert!(graph.near.row_iter().all(|row| row.iter().filter(|v| **v > 0.0).count() >= 12));
        let sums = graph.laplacian() * Mat::<f64>::full(graph.x.nrows(), 1, 1.0);
        assert!(sums.norm_max() < 1e-12);
    }

    #[test]
    fn two_far_clusters_leave_the_larger_one() {
        let mut x = swiss_roll(60);
        (0..20).for_each(|i| x[(i, 1)] += 1000.0);
        assert_eq!(Graph::of(x.as_ref()).x.nrows(), 40);
    }

    #[test]
    fn the_subspace_finds_the_lowest_eigenvectors() {
        // Against the whole matrix, for the projected problem of one step.
        let graph = Graph::of(swiss_roll(120).as_ref());
        let (x, laplacian) = (&graph.x, graph.laplacian());
        let inner = x.transpose() * x + Mat::<f64>::identity(3, 3);
        let regressed = solve(&inner, &x.transpose().to_owned()).unwrap();
        let whole = &laplacian - faer::Scale(0.1) * (x * regressed);
        let (lowest, _) = eigen(&whole).unwrap();
        let (_, vectors) = eigen(&laplacian).unwrap();
        let mut basis = Mat::zeros(x.nrows(), 5 + 3 + MORE_VECTORS + 3);
        let some = basis.ncols() - 3;
        basis.subcols_mut(0, some).copy_from(vectors.subcols(0, some));
        basis.subcols_mut(some, 3).copy_from(x);
        let basis = Qr::new(basis).thin_q();
        let (found, _) = eigen(&(basis.transpose() * whole * &basis)).unwrap();
        for k in 0..5 {
            assert!((found[k] - lowest[k]).abs() < 1e-3 * lowest[5].abs(), "{k}: {found:?}");
        }
    }

    #[test]
    fn a_polar_factor_has_orthonormal_columns() {
        let mut stream = Stream::new(5, Purpose::Noise, 1);
        let p = polar(&Mat::from_fn(30, 4, |_, _| stream.normal())).unwrap();
        let off = p.transpose() * &p - Mat::<f64>::identity(4, 4);
        assert!(off.norm_max() < 1e-12);
    }

    #[test]
    fn few_rows_and_many_nodes_give_weights() {
        for kind in [Manifold::Structured, Manifold::Robust] {
            for (rows, columns, nodes) in [(1, 2, 5), (3, 1, 10), (40, 3, 60)] {
                let x = Mat::from_fn(rows, columns, |i, j| ((i * 7 + j * 3) % 11) as f64);
                let mut stream = Stream::new(1, Purpose::Features, 0);
                let w = weights(kind, x.as_ref(), nodes, (0.1, 0.1), &mut stream).unwrap();
                assert_eq!((w.nrows(), w.ncols()), (columns, nodes));
            }
        }
    }
}
