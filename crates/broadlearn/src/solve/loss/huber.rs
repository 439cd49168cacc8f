//! Huber's loss: rho = r^2 / 2 up to r = 1, and r - 1/2 beyond.

pub(super) fn weigh(squares: &mut [f64]) {
    for square in squares {
        *square = if *square <= 1.0 { 1.0 } else { 1.0 / square.sqrt() };
    }
}

pub(super) fn rho(square: f64) -> f64 {
    if square <= 1.0 { 0.5 * square } else { square.sqrt() - 0.5 }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_slope, weight};
    use super::*;

    #[test]
    fn weight_times_residual_is_the_slope_of_rho() {
        check_slope(weigh, rho);
    }

    #[test]
    fn it_is_the_squared_loss_inside_and_pulls_alike_outside() {
        for r in [0.0, 0.5, 1.0] {
            assert_eq!(weight(weigh, r), 1.0);
        }
        for r in [2.0, 64.0] {
            assert_eq!(weight(weigh, r) * r, 1.0);
        }
    }
}
