//! Residuals from models that have not seen the rows.
//!
//! The fixed point weighs a row by its own residual, and so it lets wrong rows bend the model until they
//! look right; the smaller the ridge, the more. Here every row is judged by the model of all other rows
//! with the sample weights known so far, in closed form.

use super::factor::Factor;
use super::nested::{LEAST_FREEDOM, freedom, outlooks};
use super::system::System;
use crate::error::Result;
use crate::linalg::{parallelism, select_rows};
use crate::state::NormalEquations;
use faer::Mat;

/// Sample weights by residuals of models that have not seen the rows; the user's multiplied in.
pub(crate) struct HonestWeights {
    /// The numbers of the rows, in random order.
    pub(crate) rows: Vec<usize>,
    pub(crate) weights: Vec<f64>,
}

impl HonestWeights {
    /// W of the rows with weights.
    pub(crate) fn solution(&self, system: &System<'_>, ridge: f64) -> Result<Mat<f64>> {
        let par = parallelism();
        let u = system.state().select(&self.rows);
        let y = select_rows(system.y(), &self.rows);
        let equations = NormalEquations::of(u.as_ref(), y.as_ref(), Some(&self.weights));
        Ok(Factor::new(equations.r().to_owned(), ridge, par)?.solve(equations.p(), par))
    }

    /// The residuals of all rows, each from a model of other rows: of rows with weights from the model of
    /// all others of them, of any further rows from the model of all that have weights. 2 n L^2 + L^3 / 3
    /// flops for n rows with weights.
    pub(crate) fn residuals(&self, system: &System<'_>, ridge: f64) -> Result<Mat<f64>> {
        let par = parallelism();
        let u = system.state().select(&self.rows);
        let y = select_rows(system.y(), &self.rows);
        let equations = NormalEquations::of(u.as_ref(), y.as_ref(), Some(&self.weights));
        let factor = Factor::new(equations.r().to_owned(), ridge, par)?;
        let mut residuals = system.y().to_owned();
        if self.rows.len() < residuals.nrows() {
            residuals -= system.outputs(factor.solve(equations.p(), par).as_ref())?;
        }
        for outlook in outlooks(&equations, &factor, u.as_ref(), &[u.ncols()], par) {
            for (place, &row) in self.rows.iter().enumerate() {
                let length = outlook.lengths[place];
                let rest = freedom(self.weights[place], length).unwrap_or(LEAST_FREEDOM);
                for column in 0..y.ncols() {
                    let e = y[(place, column)] - outlook.outputs[(place, column)];
                    residuals[(row, column)] = e / rest;
                }
            }
        }
        Ok(residuals)
    }
}
