//! Which kernel sizes are compared.

use super::Judge;
use crate::preprocess::statistics;
use crate::solve::RobustLoss;
use faer::MatRef;

/// The widest kernel of the path in units of the spread of Y.
const WIDEST: f64 = 8.0;
/// Number of kernels and ratio of the widest to the narrowest: residuals of a regression may be any
/// part of the target's spread, those of 0/1 outputs lie between some tenths and sqrt(2).
const REGRESSION_PATH: (usize, f64) = (12, 256.0);
const CLASSES_PATH: (usize, f64) = (5, 16.0);
/// The first kernel of a regression, in units of the largest deviation of a target from the median: no
/// row has a weight below exp(-1/32), which is to say that the loss is the squared one.
const ALL_ROWS: f64 = 4.0;

/// Kernels from one that sees every row down to one that sees hardly any. The absolute loss gets only
/// one: another kernel would be the same as another ridge.
pub(super) fn kernel_path(
    y: MatRef<'_, f64>,
    user: Option<&[f64]>,
    judge: Judge,
    kind: RobustLoss,
) -> Vec<f64> {
    let columns: Vec<Vec<f64>> =
        y.col_iter().map(|column| column.iter().copied().collect()).collect();
    let variance: f64 = columns.iter().map(|values| spread(values, user, judge).powi(2)).sum();
    // A constant target leaves any kernel right.
    let widest = if variance > 0.0 { WIDEST * variance.sqrt() } else { 1.0 };
    if kind == RobustLoss::Absolute {
        return vec![widest / WIDEST];
    }
    let (count, span) = match judge {
        Judge::Residuals => REGRESSION_PATH,
        Judge::Classes => CLASSES_PATH,
    };
    let ratio = f64::powf(span, -1.0 / (count - 1) as f64);
    let (mut all_rows, mut narrowest) = (0.0, 0.0_f64);
    if judge == Judge::Residuals {
        let squares: f64 = columns.iter().map(|values| reach(values, user).powi(2)).sum();
        all_rows = ALL_ROWS * squares.sqrt();
        narrowest =
            columns.into_iter().map(|values| twice_the_gap(values, user)).fold(0.0, f64::max);
    }
    let narrowest = narrowest.min(widest);
    let path = (0..count).map(|k| widest * ratio.powi(k as i32)).filter(|&s| s >= narrowest);
    Some(all_rows).filter(|&sigma| sigma > widest).into_iter().chain(path).collect()
}

/// How far the values of an output spread: the interquartile range, in units of a normal standard
/// deviation, which a single wild target cannot move; the standard deviation for classes and where
/// that range is 0.
fn spread(values: &[f64], user: Option<&[f64]>, judge: Judge) -> f64 {
    let (_, deviation) = statistics::mean_and_deviation(values, user);
    match judge {
        Judge::Classes => deviation,
        Judge::Residuals => match statistics::interquartile_deviation(values, user) {
            0.0 => deviation,
            robust => robust,
        },
    }
}

/// The largest deviation from the median.
fn reach(values: &[f64], user: Option<&[f64]>) -> f64 {
    let centre = statistics::median(values, user).unwrap_or(0.0);
    values.iter().map(|value| (value - centre).abs()).fold(0.0, f64::max)
}

/// A target with many equal values (counts, grades, rounded readings) has a mode in each of them, in
/// which a narrow kernel would be caught: the kernel must span the gaps. 0 for other targets.
fn twice_the_gap(mut values: Vec<f64>, user: Option<&[f64]>) -> f64 {
    let rows = user.map_or(values.len() as f64, |user| user.iter().sum());
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    if 2.0 * values.len() as f64 > rows {
        return 0.0;
    }
    let gaps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    2.0 * statistics::median(&gaps, None).unwrap_or(0.0)
}
