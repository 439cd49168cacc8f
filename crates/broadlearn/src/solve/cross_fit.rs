//! Residuals from models that have not seen the rows.
//!
//! The fixed point weighs a row by its own residual, and so it lets wrong rows bend the model until they
//! look right; the smaller the ridge, the more. Here five models, each of four fifths of the rows with
//! the sample weights known so far, judge the remaining fifth.

use super::system::System;
use crate::error::Result;
use crate::linalg::{parallelism, product, select_rows};
use crate::state::StateRows;
use faer::{Accum, Mat, MatRef};

const FOLDS: usize = 5;

/// Sample weights by residuals of models that have not seen the rows; the user's multiplied in.
pub(crate) struct HonestWeights {
    /// The numbers of the rows, in random order.
    pub(crate) rows: Vec<usize>,
    pub(crate) weights: Vec<f64>,
}

impl HonestWeights {
    /// The residuals of all rows, each from a model of other rows: of rows with weights from models of
    /// four fifths of these, of any others from a model of all that have weights. 5 or 6 solves.
    pub(crate) fn residuals(&self, system: &System<'_>, ridge: f64) -> Result<Mat<f64>> {
        let (state, y) = (system.state(), system.y());
        let mut residuals = y.to_owned();
        if self.rows.len() < y.nrows() {
            let all: Vec<usize> = (0..self.rows.len()).collect();
            residuals -= system.outputs(self.solve(&all, state, y, ridge)?.as_ref())?;
        }
        for fold in 0..FOLDS {
            let (test, train): (Vec<usize>, Vec<usize>) =
                (0..self.rows.len()).partition(|place| place % FOLDS == fold);
            let w = self.solve(&train, state, y, ridge)?;
            let test: Vec<usize> = test.into_iter().map(|place| self.rows[place]).collect();
            let mut outputs = Mat::zeros(test.len(), w.ncols());
            let u = state.select(&test);
            product(outputs.as_mut(), Accum::Replace, u.as_ref(), w.as_ref(), parallelism());
            for (place, &row) in test.iter().enumerate() {
                for column in 0..y.ncols() {
                    residuals[(row, column)] = y[(row, column)] - outputs[(place, column)];
                }
            }
        }
        Ok(residuals)
    }

    /// W from the rows at these places.
    fn solve(
        &self,
        places: &[usize],
        state: &StateRows<'_>,
        y: MatRef<'_, f64>,
        ridge: f64,
    ) -> Result<Mat<f64>> {
        let rows: Vec<usize> = places.iter().map(|&place| self.rows[place]).collect();
        let weights: Vec<f64> = places.iter().map(|&place| self.weights[place]).collect();
        let part = StateRows::Whole(state.select(&rows));
        let y = select_rows(y, &rows);
        let system = System::new(&part, y.as_ref(), 1e-9, parallelism());
        Ok(system.solve(Some(&weights), ridge)?.w)
    }
}
