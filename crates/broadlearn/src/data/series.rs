//! Generated data: the Mackey-Glass series and impulsive noise (the paper's Section IV-C).

use crate::features::draw::Stream;
use faer::Mat;

/// The parameters of the Mackey-Glass equation
///
/// ```text
/// dx/dt = a x(t - tau) / (1 + x(t - tau)^10) - b x(t)
/// ```
///
/// integrated by Runge-Kutta steps of fourth order with cubic interpolation of the delayed value.
/// The paper prints a = 0.1, b = 0.2, with which the series dies out; a = 0.2, b = 0.1 is chaotic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MackeyGlass {
    /// The strength of the feedback.
    pub a: f64,
    /// The rate of decay.
    pub b: f64,
    /// The delay.
    pub tau: f64,
    /// The time between two points of the series.
    pub period: f64,
    /// The value before time 0.
    pub initial: f64,
    /// The number of points that are left out at the beginning.
    pub burn_in: usize,
}

impl Default for MackeyGlass {
    fn default() -> Self {
        Self { a: 0.2, b: 0.1, tau: 30.0, period: 6.0, initial: 1.2, burn_in: 100 }
    }
}

impl MackeyGlass {
    /// The first `n` points after the burn-in.
    ///
    /// ```
    /// use broadlearn::data::series::MackeyGlass;
    /// let series = MackeyGlass::default().generate(500);
    /// assert!(series.iter().all(|&x| 0.1 < x && x < 1.6));
    /// // Without feedback the series decays by exp(-b t).
    /// let decay = MackeyGlass { a: 0.0, burn_in: 0, ..MackeyGlass::default() }.generate(3);
    /// assert!((decay[2] - 1.2 * (-1.2_f64).exp()).abs() < 1e-9);
    /// ```
    pub fn generate(&self, n: usize) -> Vec<f64> {
        // A step of a tenth divides delay and period evenly for the usual parameters.
        let per_period = (self.period / 0.1).round().max(1.0) as usize;
        let step = self.period / per_period as f64;
        let mut history = vec![self.initial];
        let slope = |x: f64, delayed: f64| self.a * delayed / (1.0 + delayed.powi(10)) - self.b * x;
        let points = self.burn_in + n;
        let mut series = Vec::with_capacity(n);
        for point in 0..points {
            if point >= self.burn_in {
                series.push(history[history.len() - 1]);
            }
            for _ in 0..per_period {
                let x = history[history.len() - 1];
                let now = (history.len() - 1) as f64;
                let delay = self.tau / step;
                let delayed = |offset: f64| self.interpolate(&history, now + offset - delay);
                let (start, middle, end) = (delayed(0.0), delayed(0.5), delayed(1.0));
                let k1 = slope(x, start);
                let k2 = slope(x + 0.5 * step * k1, middle);
                let k3 = slope(x + 0.5 * step * k2, middle);
                let k4 = slope(x + step * k3, end);
                history.push(x + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4));
            }
        }
        series
    }

    /// The series at a place between its computed points, by the cubic through the four nearest.
    fn interpolate(&self, history: &[f64], place: f64) -> f64 {
        let value = |index: i64| {
            if index < 0 { self.initial } else { history[(index as usize).min(history.len() - 1)] }
        };
        let left = place.floor();
        let t = place - left;
        let left = left as i64;
        if t == 0.0 || left + 2 >= history.len() as i64 {
            return value(left) * (1.0 - t) + value(left + 1) * t;
        }
        let (p, q, r, s) = (value(left - 1), value(left), value(left + 1), value(left + 2));
        -p * t * (t - 1.0) * (t - 2.0) / 6.0 + q * (t + 1.0) * (t - 1.0) * (t - 2.0) / 2.0
            - r * (t + 1.0) * t * (t - 2.0) / 2.0
            + s * (t + 1.0) * t * (t - 1.0) / 6.0
    }
}

/// Symmetric alpha-stable noise with the characteristic function exp(-|scale w|^alpha), by the
/// method of Chambers, Mallows and Stuck. alpha = 2 is normal with variance 2 scale^2.
pub fn alpha_stable(alpha: f64, scale: f64, stream: &mut Stream) -> f64 {
    let angle = std::f64::consts::PI * (stream.unit() - 0.5);
    let waiting = -(1.0 - stream.unit()).ln();
    let direction = (alpha * angle).sin() / angle.cos().powf(1.0 / alpha);
    let size = (((1.0 - alpha) * angle).cos() / waiting).powf((1.0 - alpha) / alpha);
    scale * direction * size
}

/// Inputs x(t - lags) .. x(t - 1) and targets x(t) of a series.
///
/// ```
/// let (x, y) = broadlearn::data::series::lagged(&[1.0, 2.0, 3.0, 4.0], 2);
/// assert_eq!((x[(1, 0)], x[(1, 1)], y[(1, 0)]), (2.0, 3.0, 4.0));
/// ```
pub fn lagged(series: &[f64], lags: usize) -> (Mat<f64>, Mat<f64>) {
    let rows = series.len().saturating_sub(lags);
    let x = Mat::from_fn(rows, lags, |i, j| series[i + j]);
    let y = Mat::from_fn(rows, 1, |i, _| series[i + lags]);
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::draw::Purpose;

    #[test]
    fn halving_the_step_changes_little() {
        // The default step is exact to far below the noise of any experiment, before chaos
        // amplifies rounding; compare with a period split twice as finely.
        let coarse = MackeyGlass { burn_in: 0, ..Default::default() }.generate(20);
        let fine = MackeyGlass { burn_in: 0, period: 3.0, ..Default::default() }.generate(40);
        for (i, value) in coarse.iter().enumerate() {
            assert!((value - fine[2 * i]).abs() < 1e-9, "point {i}");
        }
    }

    #[test]
    fn alpha_two_is_normal_and_alpha_one_is_cauchy() {
        let mut stream = Stream::new(5, Purpose::Noise, 0);
        let n = 100_000;
        let normal: Vec<f64> = (0..n).map(|_| alpha_stable(2.0, 1.0, &mut stream)).collect();
        let variance = normal.iter().map(|v| v * v).sum::<f64>() / n as f64;
        assert!((variance - 2.0).abs() < 5.0 * 2.0 * (2.0 / n as f64).sqrt());
        // Half of a Cauchy variable lies within its scale.
        let inside = (0..n).filter(|_| alpha_stable(1.0, 0.3, &mut stream).abs() < 0.3).count();
        assert!((inside as f64 / n as f64 - 0.5).abs() < 5.0 * 0.5 / (n as f64).sqrt());
    }
}
