//! The paper's incremental formulas, corrected: **a reference, not how this library updates**.
//!
//! The paper carries U⁺ (BLS) or (U' Λ U + γ I)⁻¹ (C-BLS) from step to step. Both are here as tested
//! identities, and to compare speed and lost digits with a refit (`examples/lost_digits.rs`). The
//! equations are those of sections II-B and III-C; several are wrong in print. Each method says what
//! was printed and what stands here instead.
//!
//! | the paper's increment | BLS, section II-B | C-BLS, section III-C |
//! |---|---|---|
//! | new samples | [`PseudoInverse::add_rows`] | [`CarriedInverse::add_rows`] |
//! | enhancement nodes | [`PseudoInverse::add_columns`] | [`CarriedInverse::add_columns`] |
//! | feature nodes | [`PseudoInverse::add_columns`] | [`CarriedInverse::add_columns`] |
//!
//! Feature nodes differ from enhancement nodes only in what the new columns are: the new group's
//! nodes and the enhancement nodes that read it, appended together. The algebra is the same.
//!
//! Letters are the paper's, except that V stands for the appended columns of all kinds (ξ and
//! \[Z H\] in section II, ξ and ϑ in section III). The paper's biases are N x q matrices, which no
//! new row could use; here U comes in finished, so that the question does not arise.
//!
//! An update that fails leaves everything as it was.
//!
//! ```
//! use broadlearn::faer::Mat;
//! use broadlearn::increment::published::{CarriedInverse, PseudoInverse, Rows};
//! let u = Mat::from_fn(6, 3, |i, j| ((i + 1) as f64).powi(j as i32));
//! let y = Mat::from_fn(6, 1, |i, _| 2.0 - 0.5 * (i as f64));
//! // Two nodes and four rows; then the third node; then two rows.
//! let (start, ridge) = (u.submatrix(0, 0, 4, 2), 1e-3);
//! let mut bls = PseudoInverse::new(start, y.subrows(0, 4))?;
//! bls.add_columns(u.submatrix(0, 2, 4, 1))?;
//! bls.add_rows(u.subrows(4, 2), y.subrows(4, 2))?;
//! let first = Rows { u: start, y: y.subrows(0, 4), weights: None };
//! let mut c_bls = CarriedInverse::new(first, ridge)?;
//! c_bls.add_columns(first, u.submatrix(0, 2, 4, 1))?;
//! c_bls.add_rows(Rows { u: u.subrows(4, 2), y: y.subrows(4, 2), weights: None })?;
//! let all = Rows { u: u.as_ref(), y: y.as_ref(), weights: None };
//! assert!((bls.w() - PseudoInverse::new(all.u, all.y)?.w()).norm_l2() < 1e-9);
//! assert!((c_bls.w() - CarriedInverse::new(all, ridge)?.w()).norm_l2() < 1e-9);
//! # Ok::<(), broadlearn::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::linalg::{parallelism, product, rank_cut, scale_rows, worth};
use crate::solve::factor::Factor;
use crate::state::NormalEquations;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::{Accum, Mat, MatMut, MatRef, Par, Spec};

#[cfg(test)]
mod tests;

/// BLS with its pseudo-inverse carried along: W = U⁺ Y, section II-B of the paper.
///
/// Holds U and U⁺, 2 N L numbers. For p appended columns an update costs about 10 N L p flops, for
/// n appended rows 10 N L n; four of the ten are the second projection of the border (see
/// [`add_columns`](Self::add_columns)).
#[derive(Clone, Debug)]
pub struct PseudoInverse {
    u: Mat<f64>,
    inverse: Mat<f64>,
    w: Mat<f64>,
    y: Mat<f64>,
}

impl PseudoInverse {
    /// U⁺ and W = U⁺ Y from the singular values of U, of which those up to
    /// `max(N, L, 1000) eps s_max` count as 0.
    ///
    /// The paper writes U⁺ as the limit of (U' U + λ I)⁻¹ U' for λ -> 0. In floating point there is
    /// no such limit for a rank-deficient U; the cut-off takes its place.
    pub fn new(u: MatRef<'_, f64>, y: MatRef<'_, f64>) -> Result<Self> {
        same_rows(u, y)?;
        finite(&[u, y])?;
        let svd = Svd::new(u, ComputeSvdVectors::Thin)?;
        let largest = svd.singular.first().copied().unwrap_or(0.0);
        let cut = rank_cut(u.nrows(), u.ncols(), largest);
        let inverse = svd.inverse(svd.rank(cut));
        let w = times(inverse.as_ref(), y);
        bounded(&[inverse.as_ref(), w.as_ref()])?;
        Ok(Self { u: u.to_owned(), inverse, w, y: y.to_owned() })
    }

    /// U.
    pub fn u(&self) -> MatRef<'_, f64> {
        self.u.as_ref()
    }

    /// U⁺.
    pub fn inverse(&self) -> MatRef<'_, f64> {
        self.inverse.as_ref()
    }

    /// W = U⁺ Y.
    pub fn w(&self) -> MatRef<'_, f64> {
        self.w.as_ref()
    }

    /// New samples: section II-B, "Increment of New Samples".
    ///
    /// ```text
    /// U(t+1)+ = [U+ - B D | B],     W(t+1) = W + B (Y_new - U_new W)
    /// D = U_new U+,     C = U_new - D U
    /// ```
    ///
    /// Printed: B = C⁺ if C != 0, else B = (I + D D')⁻¹ U⁺ D', whose factors do not fit together.
    /// Here B = U⁺ D' (I + D D')⁻¹ for C = 0, and Cline's form for every rank of C: it is that of
    /// [`add_columns`](Self::add_columns), transposed.
    pub fn add_rows(&mut self, u_new: MatRef<'_, f64>, y_new: MatRef<'_, f64>) -> Result<()> {
        same_rows(u_new, y_new)?;
        same_columns(u_new, self.u.as_ref(), "nodes")?;
        same_columns(y_new, self.y.as_ref(), "outputs")?;
        finite(&[u_new, y_new])?;
        let transposed =
            Border::new(self.u.transpose(), self.inverse.transpose(), u_new.transpose())?;
        let (b, d) = (transposed.b.transpose(), transposed.d.transpose());
        let old = &self.inverse - times(b, d);
        let surprise = y_new - times(u_new, self.w.as_ref());
        let w = &self.w + times(b, surprise.as_ref());
        let inverse = beside(old.as_ref(), b);
        bounded(&[inverse.as_ref(), w.as_ref()])?;
        (self.inverse, self.w) = (inverse, w);
        self.u = below(self.u.as_ref(), u_new);
        self.y = below(self.y.as_ref(), y_new);
        Ok(())
    }

    /// New nodes: section II-B, "Increment of Enhancement Mapping Nodes" with the new group's
    /// columns, and "Increment of Feature Mapping Nodes" with those of the new feature group and the
    /// enhancement nodes that read it.
    ///
    /// ```text
    /// U(t+1)+ = [U+ - D B'; B'],     W(t+1) = [W - D B' Y; B' Y]
    /// D = U+ V,     C = V - U D
    /// B' = C+ + (I - C+ C) K D' U+ (I - V C+),     K = (I + (I - C+ C) D'D (I - C+ C))^-1
    /// ```
    ///
    /// Printed: the top block with U(t+1)⁺ in place of U⁺; and B' = C⁺ if C != 0, else
    /// (I + D' D)⁻¹ D' U⁺. The first of these two holds only if C has full column rank. Both are
    /// special cases of Cline's form above, which holds for every rank.
    ///
    /// In floating point C is hardly ever 0, and C⁺ of its rounding noise has the size of its inverse.
    /// Singular values of C up to `max(N, L + p, 1000) eps (|V| + |U| |D|)` count as 0: so large can
    /// the rounding errors of V - U D be. For that to hold whatever the condition of U, the projection
    /// is done twice; the first one leaves errors of U⁺ itself, which lie in the range of U.
    pub fn add_columns(&mut self, columns: MatRef<'_, f64>) -> Result<()> {
        same_rows(columns, self.u.as_ref())?;
        finite(&[columns])?;
        let Border { d, b } = Border::new(self.u.as_ref(), self.inverse.as_ref(), columns)?;
        let bottom = times(b.as_ref(), self.y.as_ref());
        let top = &self.w - times(d.as_ref(), bottom.as_ref());
        let w = below(top.as_ref(), bottom.as_ref());
        let top = &self.inverse - times(d.as_ref(), b.as_ref());
        let inverse = below(top.as_ref(), b.as_ref());
        bounded(&[inverse.as_ref(), w.as_ref()])?;
        (self.inverse, self.w) = (inverse, w);
        self.u = beside(self.u.as_ref(), columns);
        Ok(())
    }
}

/// What the pseudo-inverse of [U V] adds to that of U: \[U V\]⁺ = [U⁺ - D B'; B'].
struct Border {
    d: Mat<f64>,
    /// B' of the paper.
    b: Mat<f64>,
}

impl Border {
    fn new(u: MatRef<'_, f64>, inverse: MatRef<'_, f64>, v: MatRef<'_, f64>) -> Result<Self> {
        let mut d = times(inverse, v);
        let mut c = v - times(u, d.as_ref());
        // Again: what is left in the range of U stems from errors of U⁺.
        let slip = times(inverse, c.as_ref());
        c -= times(u, slip.as_ref());
        d += slip;

        let size = v.norm_l2() + u.norm_l2() * d.norm_l2();
        let cut = rank_cut(u.nrows(), u.ncols() + v.ncols(), size);
        let svd = Svd::new(c.as_ref(), ComputeSvdVectors::Full)?;
        let rank = svd.rank(cut);
        let mut b = svd.inverse(rank);
        let blind = v.ncols() - rank;
        if blind > 0 {
            // I - C⁺ C = O O' with the right singular vectors O of the values cut off, so that
            // (I - C⁺ C) K = O (I + E' E)⁻¹ O' with E = D O: a smaller system, symmetric as it stands.
            let o = svd.right.subcols(rank, blind);
            let e = times(d.as_ref(), o);
            let ed = times(e.transpose(), d.as_ref());
            let right = times(e.transpose(), inverse) - times(ed.as_ref(), b.as_ref());
            let mut inner = Mat::zeros(blind, blind);
            add_lower(inner.as_mut(), e.transpose(), e.as_ref());
            let par = parallelism();
            let inner = definite(inner, 1.0)?.solve(right.as_ref(), par);
            product(b.as_mut(), Accum::Add, o, inner.as_ref(), par);
        }
        Ok(Self { d, b })
    }
}

/// Rows of U with their targets and sample weights.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// U, one row per sample, without the weights.
    pub u: MatRef<'a, f64>,
    /// Y, without the weights.
    pub y: MatRef<'a, f64>,
    /// The diagonal of Λ; 1 if not given.
    pub weights: Option<&'a [f64]>,
}

impl Rows<'_> {
    fn check(&self) -> Result<()> {
        same_rows(self.u, self.y)?;
        finite(&[self.u, self.y])?;
        let Some(weights) = self.weights else { return Ok(()) };
        if weights.len() != self.u.nrows() {
            let found = format!("{} sample weights", weights.len());
            return Err(Error::data(found).expected(format!("{}", self.u.nrows())));
        }
        match weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            Some(weight) => Err(Error::data(format!("the sample weight {weight}"))
                .expected("a finite number, 0 or above")),
            None => Ok(()),
        }
    }

    /// Λ^(1/2) `matrix`.
    fn weighted(&self, matrix: MatRef<'_, f64>) -> Mat<f64> {
        let mut matrix = matrix.to_owned();
        if let Some(weights) = self.weights {
            let root: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
            scale_rows(matrix.as_mut(), &root);
        }
        matrix
    }
}

/// C-BLS with its inverse carried along: W = R⁻¹ P with R = U' Λ U + γ I and P = U' Λ Y, section
/// III-C of the paper.
///
/// The sample weights Λ are those of the rows when they came in. The paper takes them from the last
/// step of the fixed point and W beside them from the same step, but W = R⁻¹ P holds for the two
/// only at the fixed point itself, and every update relies on it. Here W is always made from the
/// weights that were given. With weights found from W, refresh W first: that is what
/// [`new`](Self::new) does.
///
/// |R⁻¹| is up to 1/γ, and its rounding errors are up to eps |R| / γ² large from the start. New rows
/// leave the predictions as good as those of a refit. New nodes bring these errors into them: on a
/// broad state of 4000 rows 5e-8 for γ = 0.1, 6e-5 for γ = 1e-3, and the third group of nodes fails
/// for γ = 1e-5 (`examples/lost_digits.rs`).
#[derive(Clone, Debug)]
pub struct CarriedInverse {
    inverse: Mat<f64>,
    w: Mat<f64>,
    ridge: f64,
}

impl CarriedInverse {
    /// R⁻¹ and W from the Cholesky factor of R: the paper's W(t) = R⁻¹ P, before any update.
    pub fn new(rows: Rows<'_>, ridge: f64) -> Result<Self> {
        rows.check()?;
        if !(ridge.is_finite() && ridge > 0.0) {
            return Err(Error::setting("ridge", ridge).expected("a finite number above 0"));
        }
        let (nodes, par) = (rows.u.ncols(), parallelism());
        let mut equations = NormalEquations::empty(nodes, rows.y.ncols());
        equations.add(rows.u, rows.y, rows.weights, par);
        let factor = Factor::new(equations.r().to_owned(), ridge, par)?;
        let w = factor.solve(equations.p(), par);
        let mut inverse = factor.solve(Mat::identity(nodes, nodes).as_ref(), par);
        mirror(&mut inverse);
        bounded(&[inverse.as_ref(), w.as_ref()])?;
        Ok(Self { inverse, w, ridge })
    }

    /// R⁻¹ = (U' Λ U + γ I)⁻¹.
    pub fn inverse(&self) -> MatRef<'_, f64> {
        self.inverse.as_ref()
    }

    /// W = R⁻¹ P.
    pub fn w(&self) -> MatRef<'_, f64> {
        self.w.as_ref()
    }

    /// γ.
    pub fn ridge(&self) -> f64 {
        self.ridge
    }

    /// New samples: section III-C, "Increment of new samples", by the matrix inversion lemma.
    ///
    /// ```text
    /// S = (I + U_new R^-1 U_new')^-1,     U_new and Y_new times the root of their weights
    /// W(t+1) = W + R^-1 U_new' S (Y_new - U_new W)
    /// R(t+1)^-1 = R^-1 - R^-1 U_new' S U_new R^-1
    /// ```
    ///
    /// As printed, but that S is a Cholesky factor, and that of the second line only one triangle is
    /// computed, which halves the work and keeps the inverse symmetric. The signs ≈ of the paper
    /// stand for the old rows' weights, which are not found anew; for given weights they are =.
    pub fn add_rows(&mut self, new: Rows<'_>) -> Result<()> {
        new.check()?;
        same_columns(new.u, self.inverse.as_ref(), "nodes")?;
        same_columns(new.y, self.w.as_ref(), "outputs")?;
        let par = parallelism();
        let (u, y) = (new.weighted(new.u), new.weighted(new.y));
        let gain = times(self.inverse.as_ref(), u.transpose());
        let inner = definite(times(u.as_ref(), gain.as_ref()), 1.0)?;
        let mut surprise = y - times(u.as_ref(), self.w.as_ref());
        inner.solve_in_place(surprise.as_mut(), par);
        let w = &self.w + times(gain.as_ref(), surprise.as_ref());
        let reduced = inner.solve(gain.transpose(), par);
        let mut drop = Mat::zeros(gain.nrows(), gain.nrows());
        add_lower(drop.as_mut(), gain.as_ref(), reduced.as_ref());
        let mut inverse = &self.inverse - drop;
        mirror(&mut inverse);
        bounded(&[inverse.as_ref(), w.as_ref()])?;
        (self.inverse, self.w) = (inverse, w);
        Ok(())
    }

    /// New nodes: section III-C, "Increment of Enhancement Nodes" with the new group's columns V, and
    /// "Increment of Feature Mapping Nodes" with those of the new feature group and the enhancement
    /// nodes that read it; by the block inversion lemma.
    ///
    /// ```text
    /// Z = R^-1 U' V,     Q = (γ I + V'V - V'U Z)^-1,     U, V and Y times the root of the weights
    /// R(t+1)^-1 = [R^-1 + Z Q Z' | -Z Q; -Q Z' | Q]
    /// W(t+1) = [W - Z Q V' (Y - U W); Q V' (Y - U W)]
    /// ```
    ///
    /// `old` are all rows so far with the nodes so far, and with the very weights that made R⁻¹: the
    /// formulas need them again, and hold for no others. Printed for feature nodes: Z for R⁻¹ U' V
    /// and for the weighted new feature nodes alike, and Z^k for the weighted old ones; Z is only the
    /// first here. The roots of the weights multiply after the activation, never inside of it. The
    /// rest is as printed.
    ///
    /// Q⁻¹ is a difference of large matrices, at least γ I in exact arithmetic. Where rounding has
    /// made it indefinite, that is an error.
    pub fn add_columns(&mut self, old: Rows<'_>, columns: MatRef<'_, f64>) -> Result<()> {
        old.check()?;
        same_rows(columns, old.u)?;
        finite(&[columns])?;
        same_columns(old.u, self.inverse.as_ref(), "nodes")?;
        same_columns(old.y, self.w.as_ref(), "outputs")?;
        let par = parallelism();
        // Λ where the paper has its root on either side: spares a weighted copy of U.
        let mut v = columns.to_owned();
        if let Some(weights) = old.weights {
            scale_rows(v.as_mut(), weights);
        }
        let residual = old.y - times(old.u, self.w.as_ref());
        let across = times(old.u.transpose(), v.as_ref());
        let z = times(self.inverse.as_ref(), across.as_ref());
        let schur = times(columns.transpose(), v.as_ref()) - times(across.transpose(), z.as_ref());
        let schur = definite(schur, self.ridge)?;

        let mut bottom = times(v.transpose(), residual.as_ref());
        schur.solve_in_place(bottom.as_mut(), par);
        let top = &self.w - times(z.as_ref(), bottom.as_ref());
        let w = below(top.as_ref(), bottom.as_ref());

        let (nodes, new) = (z.nrows(), z.ncols());
        let qz = schur.solve(z.transpose(), par);
        let mut inverse = Mat::<f64>::zeros(nodes + new, nodes + new);
        let mut corner = inverse.as_mut().submatrix_mut(0, 0, nodes, nodes);
        corner.copy_from(&self.inverse);
        add_lower(corner, z.as_ref(), qz.as_ref());
        inverse.as_mut().submatrix_mut(nodes, 0, new, nodes).copy_from(-qz);
        let q = schur.solve(Mat::identity(new, new).as_ref(), par);
        inverse.as_mut().submatrix_mut(nodes, nodes, new, new).copy_from(&q);
        mirror(&mut inverse);
        bounded(&[inverse.as_ref(), w.as_ref()])?;
        (self.inverse, self.w) = (inverse, w);
        Ok(())
    }
}

/// A = Q S R', on one thread: with several, the rounding would depend on their number.
struct Svd {
    left: Mat<f64>,
    singular: Vec<f64>,
    right: Mat<f64>,
}

impl Svd {
    /// With the first min(m, n) right singular vectors, or all n of them.
    fn new(matrix: MatRef<'_, f64>, right_vectors: ComputeSvdVectors) -> Result<Self> {
        bounded(&[matrix])?;
        let (m, n, par, params) = (matrix.nrows(), matrix.ncols(), Par::Seq, Spec::default());
        let size = m.min(n);
        let kept = if right_vectors == ComputeSvdVectors::Full { n } else { size };
        let (mut left, mut singular, mut right) =
            (Mat::zeros(m, size), Diag::<f64>::zeros(size), Mat::zeros(n, kept));
        let thin = ComputeSvdVectors::Thin;
        let need = svd::svd_scratch::<f64>(m, n, thin, right_vectors, par, params);
        svd::svd(
            matrix,
            singular.as_mut(),
            Some(left.as_mut()),
            Some(right.as_mut()),
            par,
            MemStack::new(&mut MemBuffer::new(need)),
            params,
        )
        .map_err(|_| Error::numeric("the singular value decomposition did not converge"))?;
        let singular = singular.column_vector().iter().copied().collect();
        Ok(Self { left, singular, right })
    }

    /// The number of singular values above the cut-off.
    fn rank(&self, cut: f64) -> usize {
        self.singular.iter().filter(|&&value| value > cut).count()
    }

    /// A⁺ if A is cut down to this rank.
    fn inverse(&self, rank: usize) -> Mat<f64> {
        let mut right = self.right.subcols(0, rank).to_owned();
        for (column, singular) in right.as_mut().col_iter_mut().zip(&self.singular) {
            column.iter_mut().for_each(|value| *value /= singular);
        }
        times(right.as_ref(), self.left.subcols(0, rank).transpose())
    }
}

fn times(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut result = Mat::zeros(left.nrows(), right.ncols());
    product(result.as_mut(), Accum::Replace, left, right, parallelism());
    result
}

/// `into` += `left` `right`, the lower triangle only.
fn add_lower(into: MatMut<'_, f64>, left: MatRef<'_, f64>, right: MatRef<'_, f64>) {
    let flops = (into.nrows() as f64).powi(2) * left.ncols() as f64;
    triangular::matmul(
        into,
        BlockStructure::TriangularLower,
        Accum::Add,
        left,
        BlockStructure::Rectangular,
        right,
        BlockStructure::Rectangular,
        1.0,
        worth(parallelism(), flops),
    );
}

/// Overwrites the upper triangle with the lower one.
fn mirror(matrix: &mut Mat<f64>) {
    for j in 1..matrix.ncols() {
        for i in 0..j {
            matrix[(i, j)] = matrix[(j, i)];
        }
    }
}

/// [left | right].
fn beside(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut all = Mat::zeros(left.nrows(), left.ncols() + right.ncols());
    all.as_mut().subcols_mut(0, left.ncols()).copy_from(left);
    all.as_mut().subcols_mut(left.ncols(), right.ncols()).copy_from(right);
    all
}

/// [top; bottom].
fn below(top: MatRef<'_, f64>, bottom: MatRef<'_, f64>) -> Mat<f64> {
    let mut all = Mat::zeros(top.nrows() + bottom.nrows(), top.ncols());
    all.as_mut().subrows_mut(0, top.nrows()).copy_from(top);
    all.as_mut().subrows_mut(top.nrows(), bottom.nrows()).copy_from(bottom);
    all
}

/// Only finite numbers are taken.
fn finite(matrices: &[MatRef<'_, f64>]) -> Result<()> {
    if matrices.iter().all(|matrix| matrix.is_all_finite()) {
        return Ok(());
    }
    Err(Error::data("a value that is not finite").expected("finite numbers"))
}

/// Only finite numbers are kept.
fn bounded(matrices: &[MatRef<'_, f64>]) -> Result<()> {
    if matrices.iter().all(|matrix| matrix.is_all_finite()) {
        return Ok(());
    }
    Err(Error::numeric("the numbers grew beyond double precision").advice("scale the data"))
}

/// The factor of `matrix` + `ridge` I, which in exact arithmetic is positive definite.
fn definite(matrix: Mat<f64>, ridge: f64) -> Result<Factor> {
    Factor::new(matrix, ridge, parallelism()).map_err(|_| {
        Error::numeric("rounding errors have taken the last digit of what was carried along")
            .advice("refit, or raise the ridge")
    })
}

fn same_rows(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> Result<()> {
    if a.nrows() == b.nrows() {
        return Ok(());
    }
    Err(Error::data(format!("{} rows beside {}", a.nrows(), b.nrows())).expected("as many rows"))
}

fn same_columns(found: MatRef<'_, f64>, known: MatRef<'_, f64>, what: &str) -> Result<()> {
    if found.ncols() == known.ncols() {
        return Ok(());
    }
    Err(Error::data(format!("{} {what}", found.ncols())).expected(format!("{}", known.ncols())))
}
