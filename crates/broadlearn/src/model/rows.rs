//! Rows with their targets: what models are fitted on and learn later.

use crate::data::{Samples, Schema, TargetSchema, Targets};
use crate::error::{Error, Result};
use crate::linalg::select_rows;
use faer::{Mat, MatRef};

/// Rows with their targets.
#[derive(Clone, Copy)]
pub struct Labelled<'a> {
    /// Inputs, one row per sample.
    pub x: MatRef<'a, f64>,
    /// Targets.
    pub targets: &'a Targets,
    /// Sample weights: a row of weight 2 counts as two rows, one of weight 0 as none.
    pub weights: Option<&'a [f64]>,
}

impl<'a> From<&'a Samples> for Labelled<'a> {
    fn from(samples: &'a Samples) -> Self {
        let Samples { x, targets, weights, .. } = samples;
        Self { x: x.as_ref(), targets, weights: weights.as_deref() }
    }
}

impl Labelled<'_> {
    /// Checks shapes and values against a schema, and that some row counts.
    pub(super) fn check(&self, schema: &Schema) -> Result<()> {
        self.check_shape(schema)?;
        match self.weights {
            Some(weights) if weights.iter().all(|&weight| weight == 0.0) => {
                Err(Error::data("weight 0 in every row").expected("a row that counts"))
            }
            _ => Ok(()),
        }
    }

    /// Checks shapes and values against a schema.
    pub(super) fn check_shape(&self, schema: &Schema) -> Result<()> {
        let (rows, columns) = (self.x.nrows(), self.x.ncols());
        if rows == 0 || columns == 0 {
            return Err(Error::data(format!("inputs of {rows} rows and {columns} columns"))
                .expected("at least one row and one column"));
        }
        if columns != schema.width() {
            return Err(Error::data(format!("{columns} input columns"))
                .expected(format!("{}, as the schema has", schema.width())));
        }
        if self.targets.len() != rows {
            return Err(Error::data(format!("{} targets", self.targets.len()))
                .expected(format!("{rows}, one for each row of the inputs")));
        }
        check_finite(self.x, "inputs")?;
        match (self.targets, &schema.target) {
            (Targets::Values(values), TargetSchema::Regression { names }) => {
                if values.ncols() != names.len() || names.is_empty() {
                    return Err(Error::data(format!("{} target columns", values.ncols()))
                        .expected(format!("{}, as the schema has, and at least 1", names.len())));
                }
                check_finite(values.as_ref(), "targets")?;
            }
            (Targets::Classes(codes), TargetSchema::Classification { classes, .. }) => {
                if let Some(code) = codes.iter().find(|code| **code as usize >= classes.len()) {
                    return Err(Error::data(format!("class number {code}"))
                        .expected(format!("a number below {}", classes.len())));
                }
            }
            _ => {
                return Err(Error::data("targets of another task than the schema's")
                    .expected("values for a regression, classes for a classification"));
            }
        }
        if let Some(weights) = self.weights {
            if weights.len() != rows {
                return Err(Error::data(format!("{} sample weights", weights.len()))
                    .expected(format!("{rows}, one for each row of the inputs")));
            }
            if let Some(row) = weights.iter().position(|&w| !(w >= 0.0 && w.is_finite())) {
                return Err(Error::data(format!("weight {}", weights[row]))
                    .at(format!("row {}", row + 1))
                    .expected("a weight of 0 or more"));
            }
        }
        Ok(())
    }
}

pub(super) fn check_finite(matrix: MatRef<'_, f64>, what: &str) -> Result<()> {
    for (j, column) in matrix.col_iter().enumerate() {
        if let Some(row) = column.iter().position(|value| !value.is_finite()) {
            return Err(Error::data(format!("{}", column[row]))
                .at(format!("{what}, row {}, column {}", row + 1, j + 1))
                .expected("a finite number"));
        }
    }
    Ok(())
}

/// The rows that count: those of weight 0 are left out before anything is learnt.
pub(super) enum Kept<'a> {
    All(Labelled<'a>),
    Some { x: Mat<f64>, targets: Targets, weights: Vec<f64> },
}

impl<'a> Kept<'a> {
    pub(super) fn new(rows: Labelled<'a>) -> Self {
        let Some(weights) = rows.weights.filter(|weights| weights.contains(&0.0)) else {
            return Self::All(rows);
        };
        let kept: Vec<usize> = (0..weights.len()).filter(|&row| weights[row] > 0.0).collect();
        Self::select(rows, &kept)
    }

    /// The rows of these numbers.
    pub(super) fn select(rows: Labelled<'_>, kept: &[usize]) -> Self {
        Self::Some {
            x: select_rows(rows.x, kept),
            targets: match rows.targets {
                Targets::Values(values) => Targets::Values(select_rows(values.as_ref(), kept)),
                Targets::Classes(codes) => {
                    Targets::Classes(kept.iter().map(|&row| codes[row]).collect())
                }
            },
            weights: kept.iter().map(|&row| rows.weights.map_or(1.0, |w| w[row])).collect(),
        }
    }

    /// The same rows with these weights.
    pub(super) fn weighing(self, new: Vec<f64>) -> Self {
        match self {
            Self::All(_) => self,
            Self::Some { x, targets, .. } => Self::Some { x, targets, weights: new },
        }
    }

    pub(super) fn rows(&self) -> Labelled<'_> {
        match self {
            Self::All(rows) => *rows,
            Self::Some { x, targets, weights } => {
                Labelled { x: x.as_ref(), targets, weights: Some(weights) }
            }
        }
    }
}

/// Y: values as they are, classes as 0 and 1 in one column per class.
pub(super) fn target_matrix(targets: &Targets, outputs: usize) -> Mat<f64> {
    match targets {
        Targets::Values(values) => values.clone(),
        Targets::Classes(codes) => {
            Mat::from_fn(codes.len(), outputs, |i, j| f64::from(codes[i] as usize == j))
        }
    }
}
