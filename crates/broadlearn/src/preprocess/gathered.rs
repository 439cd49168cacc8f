//! What scalers need to know of columns that pass by in blocks of rows.

use super::scaler::{ColumnFacts, Scaling};
use super::statistics::{self, QUARTILES};
use faer::MatRef;

/// Facts about columns, gathered block by block: extremes, mean and deviation exactly (to rounding); quartiles
/// exactly where they lie near those of a sample, which is known beforehand.
pub(crate) struct Gathered {
    columns: Vec<Column>,
    weight: f64,
}

#[derive(Clone)]
struct Column {
    least: f64,
    most: f64,
    mean: f64,
    /// The weighted sum of squares about the mean.
    squares: f64,
    brackets: Vec<Bracket>,
}

/// Where a quartile is expected: values inside are kept, of others only the weight.
#[derive(Clone)]
struct Bracket {
    low: f64,
    high: f64,
    below: f64,
    above: f64,
    inside: Vec<(f64, f64)>,
    /// Whether the quartile is taken from the sample.
    is_settled: bool,
}

impl Gathered {
    /// Facts without quartiles.
    pub(crate) fn new(columns: usize) -> Self {
        let column = Column {
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            mean: 0.0,
            squares: 0.0,
            brackets: Vec::new(),
        };
        Self { columns: vec![column; columns], weight: 0.0 }
    }

    /// Facts with quartiles, for columns of which this is a sample.
    pub(crate) fn with_quartiles(sample: MatRef<'_, f64>, weights: Option<&[f64]>) -> Self {
        let mut gathered = Self::new(sample.ncols());
        // Five standard errors of the share of rows below: once in a million tables it is farther off.
        let margin = 5.0 * 0.5 / (sample.nrows() as f64).sqrt();
        for (column, values) in gathered.columns.iter_mut().zip(sample.col_iter()) {
            let values: Vec<f64> = values.iter().copied().collect();
            let sorted = statistics::sorted(&values, weights);
            column.brackets = QUARTILES
                .map(|level| Bracket {
                    low: statistics::quantile(&sorted, level - margin)
                        .filter(|_| level > margin)
                        .unwrap_or(f64::NEG_INFINITY),
                    high: statistics::quantile(&sorted, level + margin)
                        .filter(|_| level + margin < 1.0)
                        .unwrap_or(f64::INFINITY),
                    below: 0.0,
                    above: 0.0,
                    inside: Vec::new(),
                    is_settled: false,
                })
                .to_vec();
        }
        gathered
    }

    /// Facts as this scaling needs them. Values near the quartiles of many columns would fill the memory: there
    /// the sample must do, and so it must where quartiles only tell wild values from others.
    pub(crate) fn with_quartiles_if_few(
        sample: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        scaling: Scaling,
    ) -> Self {
        const FEW: usize = 16;
        match (scaling, sample.ncols()) {
            (Scaling::Robust, ..=FEW) => Self::with_quartiles(sample, weights),
            (Scaling::Robust | Scaling::Tamed, _) => {
                let mut gathered = Self::with_quartiles(sample, weights);
                for (column, values) in gathered.columns.iter_mut().zip(sample.col_iter()) {
                    let values: Vec<f64> = values.iter().copied().collect();
                    let quartiles = statistics::quartiles(&values, weights);
                    for (bracket, quartile) in column.brackets.iter_mut().zip(quartiles) {
                        (bracket.low, bracket.high) = (quartile, quartile);
                        bracket.is_settled = true;
                    }
                }
                gathered
            }
            _ => Self::new(sample.ncols()),
        }
    }

    /// Takes note of some rows with their weights, none of them 0.
    pub(crate) fn add(&mut self, rows: MatRef<'_, f64>, weights: Option<&[f64]>) {
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let added: f64 = (0..rows.nrows()).map(weight).sum();
        if added == 0.0 {
            return;
        }
        let total = self.weight + added;
        for (column, values) in self.columns.iter_mut().zip(rows.col_iter()) {
            let values: Vec<f64> = values.iter().copied().collect();
            let (mean, deviation) = statistics::mean_and_deviation(&values, weights);
            // Chan, Golub and LeVeque's formula for the moments of two sets together.
            let difference = mean - column.mean;
            column.mean += difference * (added / total);
            column.squares += added * deviation * deviation
                + difference * difference * (self.weight * added / total);
            for (row, &value) in values.iter().enumerate() {
                column.least = column.least.min(value);
                column.most = column.most.max(value);
                for bracket in column.brackets.iter_mut().filter(|bracket| !bracket.is_settled) {
                    match value {
                        value if value < bracket.low => bracket.below += weight(row),
                        value if value > bracket.high => bracket.above += weight(row),
                        value => bracket.inside.push((value, weight(row))),
                    }
                }
            }
        }
        self.weight = total;
    }

    /// The columns.
    pub(crate) fn facts(self) -> Vec<ColumnFacts> {
        let weight = self.weight;
        let facts = |column: Column| {
            let mut quartiles = [0.0; 3];
            for ((quartile, bracket), level) in
                quartiles.iter_mut().zip(column.brackets).zip(QUARTILES)
            {
                *quartile = bracket.quantile(level);
            }
            ColumnFacts {
                least: column.least,
                most: column.most,
                mean: column.mean,
                deviation: (column.squares / weight).sqrt(),
                quartiles,
            }
        };
        self.columns.into_iter().map(facts).collect()
    }
}

impl Bracket {
    /// The quantile of all values; the end of the bracket if it lies beyond it.
    fn quantile(mut self, level: f64) -> f64 {
        if self.is_settled {
            return self.low;
        }
        self.inside.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut values = Vec::with_capacity(self.inside.len() + 2);
        values.extend((self.below > 0.0).then_some((self.low, self.below)));
        values.append(&mut self.inside);
        values.extend((self.above > 0.0).then_some((self.high, self.above)));
        statistics::quantile(&values, level).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scaler;
    use super::*;
    use faer::Mat;

    #[test]
    fn blocks_give_the_scaler_of_all_rows() {
        let x = Mat::from_fn(5000, 2, |i, j| ((i * 7919) % 5003) as f64 * (1.0 + j as f64) + 1e6);
        let weights: Vec<f64> = (0..5000).map(|i| 1.0 + (i % 3) as f64).collect();
        for weights in [None, Some(weights.as_slice())] {
            for scaling in Scaling::ALL {
                let sample = weights.map(|weights| &weights[..700]);
                let mut gathered = Gathered::with_quartiles(x.subrows(0, 700), sample);
                for start in (0..5000).step_by(300) {
                    let rows = start..(start + 300).min(5000);
                    let part = weights.map(|weights| &weights[rows.clone()]);
                    gathered.add(x.subrows(rows.start, rows.len()), part);
                }
                let (mut one, mut other) = (x.clone(), x.clone());
                Scaler::fit(scaling, x.as_ref(), weights).apply(one.as_mut());
                Scaler::from_facts(scaling, &gathered.facts()).apply(other.as_mut());
                assert!((one - other).norm_max() < 1e-12, "{scaling:?}");
            }
        }
    }
}
