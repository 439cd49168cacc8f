//! Weighted order statistics and moments: a row of weight 2 counts as two rows.

/// The quantile of the values: where the cumulated weight passes `level`, or the midpoint of the two
/// values where it meets `level` exactly (so that the median of an even number of values is the
/// usual one). Values must be finite and weights positive; `None` without values.
pub(crate) fn quantile(sorted: &[(f64, f64)], level: f64) -> Option<f64> {
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let goal = level * total;
    let slack = 1e-12 * total;
    let mut cumulated = 0.0;
    for (index, &(value, weight)) in sorted.iter().enumerate() {
        cumulated += weight;
        if cumulated > goal + slack {
            return Some(value);
        }
        if cumulated >= goal - slack {
            let next = sorted.get(index + 1).map_or(value, |&(next, _)| next);
            return Some(value + (next - value) / 2.0);
        }
    }
    sorted.last().map(|&(value, _)| value)
}

/// The values with their weights, in ascending order.
pub(crate) fn sorted(values: &[f64], weights: Option<&[f64]>) -> Vec<(f64, f64)> {
    let mut pairs: Vec<(f64, f64)> = values
        .iter()
        .enumerate()
        .map(|(index, &value)| (value, weights.map_or(1.0, |weights| weights[index])))
        .collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    pairs
}

/// The weighted median; `None` without values.
pub(crate) fn median(values: &[f64], weights: Option<&[f64]>) -> Option<f64> {
    quantile(&sorted(values, weights), 0.5)
}

/// Residuals of more spreads than this are suspicious: of normal ones five in ten thousand are.
pub(crate) const BEYOND: f64 = 3.5;

/// The spread of residual sizes, those left out that are beyond [`BEYOND`]: begun with all, until it stays.
pub(crate) fn trustworthy_spread(sizes: &[f64]) -> f64 {
    let sorted = sorted(sizes, None);
    let spread_of = |rows: &[(f64, f64)]| 1.4826 * quantile(rows, 0.5).unwrap_or(0.0);
    let mut spread = spread_of(&sorted);
    for _ in 0..30 {
        let kept = sorted.partition_point(|(size, _)| *size <= BEYOND * spread);
        let next = spread_of(&sorted[..kept]);
        if next == spread || next == 0.0 {
            break;
        }
        spread = next;
    }
    spread
}

/// The levels of the quartiles.
pub(crate) const QUARTILES: [f64; 3] = [0.25, 0.5, 0.75];

/// The weighted quartiles, the median between them; 0 without values.
pub(crate) fn quartiles(values: &[f64], weights: Option<&[f64]>) -> [f64; 3] {
    let sorted = sorted(values, weights);
    QUARTILES.map(|level| quantile(&sorted, level).unwrap_or(0.0))
}

/// The weighted interquartile range in the same unit.
pub(crate) fn interquartile_deviation(values: &[f64], weights: Option<&[f64]>) -> f64 {
    let [low, _, high] = quartiles(values, weights);
    spread_of_quartiles(low, high)
}

/// The interquartile range divided by 1.349, which is 1 for a standard normal variable.
pub(crate) fn spread_of_quartiles(low: f64, high: f64) -> f64 {
    (high - low) / 1.349
}

/// Weighted mean and population standard deviation, in two passes over values shifted by the first
/// one, so that a column with a large offset keeps its digits.
pub(crate) fn mean_and_deviation(values: &[f64], weights: Option<&[f64]>) -> (f64, f64) {
    let weight = |index: usize| weights.map_or(1.0, |weights| weights[index]);
    let Some(&origin) = values.first() else { return (0.0, 0.0) };
    let (mut total, mut sum) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        total += weight(index);
        sum += weight(index) * (value - origin);
    }
    let shift = sum / total;
    let mut squares = 0.0;
    for (index, value) in values.iter().enumerate() {
        squares += weight(index) * (value - origin - shift).powi(2);
    }
    (origin + shift, (squares / total).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_usual_one() {
        let median = |values: &[f64]| median(values, None);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn weight_two_is_two_copies() {
        let values = [4.0, -1.0, 7.5, 2.0, 2.0, 11.0];
        let weights = [1.0, 2.0, 1.0, 3.0, 1.0, 2.0];
        let copies: Vec<f64> = values
            .iter()
            .zip(weights)
            .flat_map(|(&value, weight)| std::iter::repeat_n(value, weight as usize))
            .collect();
        for level in [0.25, 0.5, 0.75] {
            let weighted = quantile(&sorted(&values, Some(&weights)), level);
            assert_eq!(weighted, quantile(&sorted(&copies, None), level));
        }
        let weighted = mean_and_deviation(&values, Some(&weights));
        let copied = mean_and_deviation(&copies, None);
        assert!((weighted.0 - copied.0).abs() < 1e-14 && (weighted.1 - copied.1).abs() < 1e-14);
    }

    #[test]
    fn an_offset_of_1e12_costs_no_digits_of_the_deviation() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i % 7)).collect();
        let shifted: Vec<f64> = values.iter().map(|value| 1e12 + value).collect();
        let (_, deviation) = mean_and_deviation(&shifted, None);
        let (_, plain) = mean_and_deviation(&values, None);
        assert!((deviation - plain).abs() < 1e-12);
    }
}
