//! How finely targets are written: differences in their last decimal are rounding, not errors.

use crate::data::Targets;
use crate::model::LeftOut;

/// The resolution of a single numeric target, gathered block by block.
#[derive(Clone, Debug, Default)]
pub(super) struct Resolution {
    /// Decimals that some value needs; more than [`MOST_DECIMALS`] if any number may occur.
    decimals: usize,
    /// The largest distance, and the difference of target and prediction there: their ratio is the scale.
    largest: f64,
    difference: f64,
}

/// Numbers with more decimals are taken as they are.
const MOST_DECIMALS: usize = 6;

impl Resolution {
    pub(super) fn add(&mut self, left_out: &LeftOut, targets: &Targets) {
        let Targets::Values(y) = targets else { return };
        if y.ncols() != 1 {
            return;
        }
        for value in y.col(0).iter() {
            while self.decimals <= MOST_DECIMALS && !has_decimals(*value, self.decimals) {
                self.decimals += 1;
            }
        }
        let predictions = left_out.predictions.values();
        for (row, &distance) in left_out.distances.iter().enumerate() {
            if distance > self.largest {
                self.largest = distance;
                self.difference = (y[(row, 0)] - predictions[(row, 0)]).abs();
            }
        }
    }

    /// Half a unit of the last decimal, as a distance. Whole numbers have none: they may be counts, which are exact.
    pub(super) fn half_unit(&self) -> f64 {
        let rounded = (1..=MOST_DECIMALS).contains(&self.decimals) && self.difference > 0.0;
        if rounded { 0.5 * unit(self.decimals) * self.largest / self.difference } else { 0.0 }
    }
}

fn unit(decimals: usize) -> f64 {
    0.1_f64.powi(decimals as i32)
}

/// Whether a number is what it is with so many decimals, up to what its last bits leave open.
fn has_decimals(value: f64, decimals: usize) -> bool {
    let scaled = value / unit(decimals);
    (scaled - scaled.round()).abs() <= 4.0 * f64::EPSILON * scaled.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_counted_as_people_write_them() {
        for (value, decimals) in [(3.0, 0), (0.1, 1), (-17.25, 2), (1e6 + 0.125, 3), (0.3, 1)] {
            assert!(has_decimals(value, decimals), "{value}");
            assert!(decimals == 0 || !has_decimals(value, decimals - 1), "{value}");
        }
        assert!(!has_decimals(1.0 / 3.0, MOST_DECIMALS));
    }
}
