//! Least absolute residuals by alternating directions: L2RBLS.
//!
//! ```text
//! minimise  sum_ij |y_ij - (U W)_ij| + (lambda / 2) |W|^2
//! ```
//!
//! over every output alone, unlike the loss `absolute`, which takes the norms of rows. One factor serves
//! all steps; a step is one pass over U, 4 N L C flops.

use super::factor::Factor;
use super::fixed_point::relative_change;
use super::system::{Solution, System};
use super::{Form, RobustLoss, SolveReport};
use crate::error::Result;
use crate::linalg::{parallelism, product, scale_rows, squared_norm};
use crate::progress::{Observer, report};
use faer::{Accum, Mat, MatRef};

/// W after so many steps, and the factor of U' Λ U + (lambda / mu) I.
pub(crate) fn solve(
    system: &System<'_>,
    lambda: f64,
    steps: usize,
    user: Option<&[f64]>,
    observer: &mut Observer<'_>,
) -> Result<(Solution, Factor, SolveReport)> {
    let (y, par) = (system.y(), parallelism());
    let rows = user.map_or(y.nrows() as f64, |user| user.iter().sum());
    let mu = penalty(y, rows, user);
    let equations = system.equations(user)?;
    let factor = Factor::new(equations.r().to_owned(), lambda / mu, par)?;
    let mut w = factor.solve(equations.p(), par);
    drop(equations);
    // E stands for the residuals, M / mu for what is left between them and the true ones.
    let mut dual = Mat::<f64>::zeros(y.nrows(), y.ncols());
    let mut outputs = Mat::<f64>::zeros(y.nrows(), y.ncols());
    let (mut objective, mut last_change) = (Vec::with_capacity(steps), 0.0);
    for step in 0..steps {
        report(observer, "alternating directions", step as u64, Some(steps as u64))?;
        let before = outputs.clone();
        let mut right = Mat::zeros(w.nrows(), w.ncols());
        let mut sum = 0.0;
        system.state().visit(|rows, u| {
            let mut f = outputs.as_mut().subrows_mut(rows.start, rows.len());
            product(f.as_mut(), Accum::Replace, u, w.as_ref(), par);
            let mut target = y.subrows(rows.start, rows.len()).to_owned();
            for j in 0..target.ncols() {
                for i in 0..target.nrows() {
                    let row = rows.start + i;
                    let residual = target[(i, j)] - f[(i, j)];
                    sum += user.map_or(1.0, |user| user[row]) * residual.abs();
                    let shifted = residual + dual[(row, j)];
                    let shrunk = shifted.signum() * (shifted.abs() - 1.0 / mu).max(0.0);
                    dual[(row, j)] = shifted - shrunk;
                    target[(i, j)] += dual[(row, j)] - shrunk;
                }
            }
            if let Some(user) = user {
                scale_rows(target.as_mut(), &user[rows]);
            }
            product(right.as_mut(), Accum::Add, u.transpose(), target.as_ref(), par);
            Ok(())
        })?;
        if step > 0 {
            last_change = relative_change(before.as_ref(), outputs.as_ref());
        }
        let penalty = 0.5 * lambda * squared_norm(w.as_ref());
        objective.push(1.0 - (sum + penalty) / rows);
        if step + 1 < steps {
            w = factor.solve(right.as_ref(), par);
        }
    }
    let report = SolveReport {
        loss: RobustLoss::Absolute.at(1.0),
        iterations: steps,
        last_change,
        objective,
        ..SolveReport::plain(Some(lambda), Form::Primal, None)
    };
    Ok((Solution { w, equations: None, outputs: Some(outputs) }, factor, report))
}

/// mu = 2 N / sum |y|.
fn penalty(y: MatRef<'_, f64>, rows: f64, user: Option<&[f64]>) -> f64 {
    let weight = |row: usize| user.map_or(1.0, |user| user[row]);
    let size = |row: usize| y.row(row).iter().map(|value| value.abs()).sum::<f64>();
    let sum: f64 = (0..y.nrows()).map(|row| weight(row) * size(row)).sum();
    if sum > 0.0 { 2.0 * rows / sum } else { 1.0 }
}
