//! Least trimmed squares: the linear model that fits a little more than half of the rows best.
//!
//! Least squares and least absolute residuals follow errors that all point one way (a sensor stuck
//! high) once they are frequent; a fit that may leave out 45 % of the rows does not. Concentration
//! steps (fit the kept rows, keep the rows that fit best) only go downhill, so what counts is where
//! they begin: with the rows nearest to the least-squares fit, and with those below and above it. One of
//! these halves holds mostly good rows however many inputs there are, whereas a random subset of
//! M + 1 rows is all good with probability (1 - p)^(M + 1) only. Nothing here is random, and a row
//! of weight 2 counts as two rows.

use super::factor::Factor;
use crate::error::Result;
use crate::linalg::product;
use crate::preprocess::statistics;
use crate::state::NormalEquations;
use faer::{Accum, Mat, MatRef, Par};

/// The share of the rows that is kept.
const KEPT: f64 = 0.55;
const CONCENTRATION_STEPS: usize = 30;
/// Outputs whose signs are used to begin with.
const SIGNED_OUTPUTS: usize = 4;
/// The ridge in units of the weight of all rows: only against columns that depend on each other.
const RIDGE: f64 = 1e-7;

/// A fixed point that begins with a trimmed fit knows the size of good residuals: it goes on with a
/// kernel of at most this many of their spreads, because a wider one would let go of what it knows.
pub(crate) const TRIMMED_KERNEL: f64 = 8.0;

/// A linear model of the rows that it fits best.
pub(crate) struct Trimmed {
    /// Its coefficients, one row per column of U.
    pub(crate) w: Mat<f64>,
    /// The spread of the residuals of the rows that were kept.
    pub(crate) spread: f64,
}

/// Fits `y` by the columns of `u`. n p^2 flops a step, some thirty steps.
pub(crate) fn least_trimmed_squares(
    u: MatRef<'_, f64>,
    y: MatRef<'_, f64>,
    user: Option<&[f64]>,
) -> Result<Trimmed> {
    let problem = Problem { u, y, user };
    let all: Vec<f64> = (0..u.nrows()).map(|row| problem.weight(row)).collect();
    let residuals = problem.residuals(problem.fit(&all)?.as_ref());
    let mut keys = vec![norms(residuals.as_ref())];
    for column in residuals.col_iter().take(SIGNED_OUTPUTS) {
        keys.push(column.iter().copied().collect());
        keys.push(column.iter().map(|e| -e).collect());
    }
    let mut best: Option<(f64, Trimmed)> = None;
    for key in &keys {
        let (cost, trimmed) = problem.concentrate(key)?;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, trimmed));
        }
    }
    Ok(best.map_or_else(|| Trimmed { w: Mat::zeros(u.ncols(), y.ncols()), spread: 0.0 }, |b| b.1))
}

struct Problem<'a> {
    u: MatRef<'a, f64>,
    y: MatRef<'a, f64>,
    user: Option<&'a [f64]>,
}

impl Problem<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.user.map_or(1.0, |user| user[row])
    }

    fn fit(&self, weights: &[f64]) -> Result<Mat<f64>> {
        let equations = NormalEquations::of(self.u, self.y, Some(weights));
        let ridge = RIDGE * equations.weight();
        let factor = Factor::new(equations.r().to_owned(), ridge, Par::Seq)?;
        Ok(factor.solve(equations.p(), Par::Seq))
    }

    fn residuals(&self, w: MatRef<'_, f64>) -> Mat<f64> {
        let mut residuals = self.y.to_owned();
        let mut outputs = Mat::zeros(self.y.nrows(), self.y.ncols());
        product(outputs.as_mut(), Accum::Replace, self.u, w, Par::Seq);
        residuals -= outputs;
        residuals
    }

    /// The weights of the rows with the smallest keys, of the kept share together: the last of them
    /// counts in part.
    fn keep(&self, keys: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
        let mut left = KEPT * order.iter().map(|&row| self.weight(row)).sum::<f64>();
        let mut weights = vec![0.0; keys.len()];
        for row in order {
            let taken = self.weight(row).min(left);
            weights[row] = taken;
            left -= taken;
        }
        weights
    }

    /// Fits and keeps in turn until nothing improves; the trimmed sum of squares, and the model.
    fn concentrate(&self, keys: &[f64]) -> Result<(f64, Trimmed)> {
        let mut weights = self.keep(keys);
        let mut cost = f64::INFINITY;
        let mut step = 0;
        loop {
            let w = self.fit(&weights)?;
            let norms = norms(self.residuals(w.as_ref()).as_ref());
            weights = self.keep(&norms);
            let next: f64 = norms.iter().zip(&weights).map(|(norm, w)| w * norm * norm).sum();
            step += 1;
            if next >= cost * (1.0 - 1e-9) || next == 0.0 || step == CONCENTRATION_STEPS {
                let kept: Vec<(f64, f64)> =
                    norms.into_iter().zip(weights).filter(|&(_, weight)| weight > 0.0).collect();
                let (norms, weights): (Vec<f64>, Vec<f64>) = kept.into_iter().unzip();
                let median = statistics::median(&norms, Some(&weights)).unwrap_or(0.0);
                return Ok((next, Trimmed { w, spread: 1.4826 * median }));
            }
            cost = next;
        }
    }
}

fn norms(residuals: MatRef<'_, f64>) -> Vec<f64> {
    residuals.row_iter().map(|row| row.norm_l2()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::{Purpose, Stream};

    /// y = 3 - 2 a + b with noise 0.1, 40 % of the rows 20 too high.
    fn stuck_sensor() -> (Mat<f64>, Mat<f64>) {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let u = Mat::from_fn(500, 3, |_, j| if j == 0 { 1.0 } else { stream.normal() });
        let y = Mat::from_fn(500, 1, |i, _| {
            let clean = 3.0 - 2.0 * u[(i, 1)] + u[(i, 2)] + 0.1 * stream.normal();
            if i % 5 < 2 { clean + 20.0 } else { clean }
        });
        (u, y)
    }

    #[test]
    fn forty_percent_on_one_side_do_not_move_it() {
        let (u, y) = stuck_sensor();
        for sign in [1.0, -1.0] {
            let y = faer::Scale(sign) * &y;
            let trimmed = least_trimmed_squares(u.as_ref(), y.as_ref(), None).expect("a solution");
            for (row, expected) in [3.0, -2.0, 1.0].into_iter().enumerate() {
                // Six standard errors of a fit of 275 rows.
                assert!((trimmed.w[(row, 0)] - sign * expected).abs() < 0.04, "{:?}", trimmed.w);
            }
            assert!(trimmed.spread < 0.2);
        }
    }

    #[test]
    fn weight_two_is_two_copies() {
        let (u, y) = stuck_sensor();
        let weights: Vec<f64> = (0..500).map(|i| f64::from(1 + u8::from(i % 3 == 0))).collect();
        let copies: Vec<usize> =
            (0..500).flat_map(|i| std::iter::repeat_n(i, weights[i] as usize)).collect();
        let weighted =
            least_trimmed_squares(u.as_ref(), y.as_ref(), Some(&weights)).expect("a solution");
        let u = crate::linalg::select_rows(u.as_ref(), &copies);
        let y = crate::linalg::select_rows(y.as_ref(), &copies);
        let copied = least_trimmed_squares(u.as_ref(), y.as_ref(), None).expect("a solution");
        assert!((weighted.w - copied.w).norm_max() < 1e-9);
    }
}
