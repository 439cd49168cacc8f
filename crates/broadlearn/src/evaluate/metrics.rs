//! Metrics, accumulated block by block in constant memory.

use crate::data::{TargetSchema, Targets};
use crate::error::{Error, Result};
use crate::model::Predictions;
use crate::preprocess::statistics;
use serde::Serialize;

/// How good predictions were.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Metrics {
    /// Of a regression.
    Regression {
        /// The number of rows.
        n_rows: u64,
        /// The root of the mean squared error, over all targets.
        rmse: f64,
        /// The mean absolute error, over all targets.
        mae: f64,
        /// 1 - squared error / squared deviation from the mean, averaged over the targets; `None`
        /// where all targets are the same.
        r2: Option<f64>,
        /// Half of the absolute errors, over all targets, are not larger: a few wild rows do not matter to it. Of more than
        /// 65 536 of them, of some that lie evenly among them.
        median_error: f64,
        /// For every target by itself, if there are several.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        targets: Vec<TargetScore>,
    },
    /// Of a classification.
    Classification {
        /// The number of rows.
        n_rows: u64,
        /// The share of right classes.
        accuracy: f64,
        /// The mean over the classes that occur (given or predicted) of the harmonic mean of
        /// precision and recall.
        macro_f1: f64,
        /// The mean of -log(probability of the right class).
        log_loss: f64,
        /// Row: given class; column: predicted class.
        #[serde(skip)]
        confusion: Vec<Vec<u64>>,
    },
}

/// How good the predictions of one target of several were.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetScore {
    /// Its column.
    pub name: String,
    /// The root of the mean squared error.
    pub rmse: f64,
    /// The mean absolute error.
    pub mae: f64,
    /// 1 - squared error / squared deviation from the mean; `None` where all targets are the same.
    pub r2: Option<f64>,
}

/// Gathers what metrics need.
///
/// ```
/// use broadlearn::evaluate::{Metrics, metrics::Scorer};
/// use broadlearn::{Settings, data::Targets, faer::Mat};
/// let x = Mat::from_fn(40, 1, |i, _| i as f64);
/// let classes: Vec<u32> = (0..40).map(|i| u32::from(i >= 20)).collect();
/// let model = Settings::new().fit_classes(&x, &classes)?;
/// let mut scorer = Scorer::new(&model.schema().target);
/// scorer.add(&model.predict(&x)?, &Targets::Classes(classes), None)?;
/// let Metrics::Classification { accuracy, .. } = scorer.metrics()? else { unreachable!() };
/// assert!(accuracy > 0.97);
/// # Ok::<(), broadlearn::Error>(())
/// ```
pub struct Scorer {
    rows: u64,
    weight: f64,
    kind: Kind,
}

enum Kind {
    /// For every target: weighted sums of squared and absolute errors, and of y - origin and its
    /// square, where the origin is the first target met.
    Regression {
        names: Vec<String>,
        sums: Vec<Sums>,
        sizes: Sizes,
    },
    Classification {
        confusion: Vec<Vec<u64>>,
        weighted: Vec<Vec<f64>>,
        log_loss: f64,
    },
}

#[derive(Clone, Default)]
struct Sums {
    origin: Option<f64>,
    squared: f64,
    absolute: f64,
    first: f64,
    second: f64,
}

impl Sums {
    /// 1 - squared error / squared deviation from the mean, for rows of this weight in all.
    fn r2(&self, weight: f64) -> Option<f64> {
        let spread = self.second - self.first * self.first / weight;
        (spread > 0.0).then(|| 1.0 - self.squared / spread)
    }
}

/// Absolute errors with their weights: all of them, or every second, fourth, ... once they are many.
#[derive(Default)]
struct Sizes {
    kept: Vec<(f64, f64)>,
    seen: usize,
    doublings: u32,
}

impl Sizes {
    const MOST: usize = 1 << 16;

    fn add(&mut self, size: f64, weight: f64) {
        if self.seen.trailing_zeros() >= self.doublings {
            if self.kept.len() == Self::MOST {
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.doublings += 1;
            }
            if self.seen.trailing_zeros() >= self.doublings {
                self.kept.push((size, weight));
            }
        }
        self.seen += 1;
    }

    fn median(&self) -> Option<f64> {
        let (sizes, weights): (Vec<f64>, Vec<f64>) = self.kept.iter().copied().unzip();
        statistics::median(&sizes, Some(&weights))
    }
}

impl Scorer {
    /// For predictions of this target.
    pub fn new(target: &TargetSchema) -> Self {
        let outputs = target.outputs();
        let kind = match target {
            TargetSchema::Regression { names } => Kind::Regression {
                names: names.clone(),
                sums: vec![Sums::default(); outputs],
                sizes: Sizes::default(),
            },
            TargetSchema::Classification { .. } => Kind::Classification {
                confusion: vec![vec![0; outputs]; outputs],
                weighted: vec![vec![0.0; outputs]; outputs],
                log_loss: 0.0,
            },
        };
        Self { rows: 0, weight: 0.0, kind }
    }

    /// Adds some rows; a row of weight 2 counts as two rows.
    ///
    /// # Errors
    /// If the targets are of another kind or number than the predictions.
    pub fn add(
        &mut self,
        predictions: &Predictions,
        targets: &Targets,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        let rows = predictions.len();
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let mismatch = || {
            Error::data("targets that do not match the predictions")
                .expected("one target for every prediction, of the same task")
        };
        if targets.len() != rows || weights.is_some_and(|weights| weights.len() != rows) {
            return Err(mismatch());
        }
        match (&mut self.kind, targets) {
            (Kind::Regression { sums, sizes, .. }, Targets::Values(y))
                if y.ncols() == sums.len() =>
            {
                let f = predictions.values();
                for (j, sums) in sums.iter_mut().enumerate() {
                    for i in 0..rows {
                        let origin = *sums.origin.get_or_insert(y[(i, j)]);
                        let (error, deviation) = (y[(i, j)] - f[(i, j)], y[(i, j)] - origin);
                        sums.squared += weight(i) * error * error;
                        sums.absolute += weight(i) * error.abs();
                        sizes.add(error.abs(), weight(i));
                        sums.first += weight(i) * deviation;
                        sums.second += weight(i) * deviation * deviation;
                    }
                }
            }
            (Kind::Classification { confusion, weighted, log_loss }, Targets::Classes(given)) => {
                let probabilities = predictions.probabilities();
                for (i, (&given, predicted)) in given.iter().zip(predictions.classes()).enumerate()
                {
                    let (given, predicted) = (given as usize, predicted as usize);
                    if given >= confusion.len() {
                        return Err(mismatch());
                    }
                    confusion[given][predicted] += 1;
                    weighted[given][predicted] += weight(i);
                    *log_loss -= weight(i) * probabilities[(i, given)].ln();
                }
            }
            _ => return Err(mismatch()),
        }
        self.rows += rows as u64;
        self.weight += (0..rows).map(weight).sum::<f64>();
        Ok(())
    }

    /// The metrics of all rows so far.
    ///
    /// # Errors
    /// If there were none, or all had weight 0.
    pub fn metrics(&self) -> Result<Metrics> {
        if self.weight <= 0.0 {
            return Err(Error::data("no rows to score").expected("at least one row that counts"));
        }
        match &self.kind {
            Kind::Regression { names, sums, sizes } => {
                let score = |(name, sums): (&String, &Sums)| TargetScore {
                    name: name.clone(),
                    rmse: (sums.squared / self.weight).sqrt(),
                    mae: sums.absolute / self.weight,
                    r2: sums.r2(self.weight),
                };
                let targets: Vec<TargetScore> = names.iter().zip(sums).map(score).collect();
                let mean = |value: &dyn Fn(&TargetScore) -> f64| {
                    targets.iter().map(value).sum::<f64>() / targets.len() as f64
                };
                let known = targets.iter().all(|target| target.r2.is_some());
                Ok(Metrics::Regression {
                    n_rows: self.rows,
                    rmse: mean(&|target| target.rmse * target.rmse).sqrt(),
                    mae: mean(&|target| target.mae),
                    r2: known.then(|| mean(&|target| target.r2.unwrap_or_default())),
                    median_error: sizes.median().unwrap_or(f64::NAN),
                    targets: if targets.len() > 1 { targets } else { Vec::new() },
                })
            }
            Kind::Classification { confusion, weighted, log_loss } => {
                let right: f64 = (0..weighted.len()).map(|class| weighted[class][class]).sum();
                Ok(Metrics::Classification {
                    n_rows: self.rows,
                    accuracy: right / self.weight,
                    macro_f1: macro_f1(weighted),
                    log_loss: log_loss / self.weight,
                    confusion: confusion.clone(),
                })
            }
        }
    }
}

fn macro_f1(confusion: &[Vec<f64>]) -> f64 {
    let scores: Vec<f64> = (0..confusion.len())
        .filter_map(|class| {
            let given: f64 = confusion[class].iter().sum();
            let predicted: f64 = confusion.iter().map(|row| row[class]).sum();
            (given + predicted > 0.0).then(|| 2.0 * confusion[class][class] / (given + predicted))
        })
        .collect();
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_many_errors_is_that_of_some_which_lie_evenly_among_them() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.median(), None);
        // 0, 1, 2, ... in an order that has nothing to do with powers of two.
        let count = 1_000_003_u64;
        for place in 0..count {
            sizes.add((place * 7919 % count) as f64, 1.0);
        }
        assert!(sizes.kept.len() <= Sizes::MOST);
        let median = sizes.median().expect("some errors") / count as f64;
        assert!((median - 0.5).abs() < 0.01, "{median}");
    }

    #[test]
    fn a_few_errors_are_all_kept() {
        let mut sizes = Sizes::default();
        for (size, weight) in [(5.0, 1.0), (1.0, 1.0), (2.0, 3.0)] {
            sizes.add(size, weight);
        }
        // 1, 2, 2, 2, 5.
        assert_eq!(sizes.median(), Some(2.0));
    }
}
