//! Rows of a table as numbers.

use super::schema_reader::Surprises;
use super::target::Targets;
use faer::Mat;

/// Numbers ready to be fitted or scored.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Inputs, one row per sample.
    pub x: Mat<f64>,
    /// Targets.
    pub targets: Targets,
    /// Sample weights.
    pub weights: Option<Vec<f64>>,
    /// What did not fit the schema.
    pub surprises: Surprises,
}

impl Samples {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.x.nrows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the rows of other samples by the same schema behind these.
    pub fn append(&mut self, other: &Self) {
        let (rows, more) = (self.len(), other.len());
        if self.weights.is_some() || other.weights.is_some() {
            let ones = |rows| vec![1.0; rows];
            let weights = self.weights.get_or_insert_with(|| ones(rows));
            weights.extend(other.weights.clone().unwrap_or_else(|| ones(more)));
        }
        stack(&mut self.x, &other.x);
        match (&mut self.targets, &other.targets) {
            (Targets::Values(values), Targets::Values(more)) => stack(values, more),
            (Targets::Classes(codes), Targets::Classes(more)) => codes.extend(more),
            _ => unreachable!("one schema has one task"),
        }
        self.surprises.add(&other.surprises);
    }
}

fn stack(matrix: &mut Mat<f64>, more: &Mat<f64>) {
    let rows = matrix.nrows();
    matrix.resize_with(rows + more.nrows(), more.ncols(), |i, j| more[(i - rows, j)]);
}
