//! Means over seeds.

use crate::engine::Done;
use broadlearn::data::Task;

/// Figures of several seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// The standard deviation; 0 for a single figure.
    pub(crate) deviation: f64,
    pub(crate) count: usize,
    /// Runs without a figure, as the numbers left no answer.
    pub(crate) failed: usize,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let all: Vec<Option<f64>> = values.into_iter().collect();
        let found: Vec<f64> = all.iter().flatten().copied().collect();
        let count = found.len();
        let mean = found.iter().sum::<f64>() / count as f64;
        let squares = found.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Self { mean, deviation, count, failed: all.len() - count }
    }

    /// One step of a measure, over all runs that have these labels.
    pub(crate) fn step(runs: &[Done], labels: &[(&str, &str)], measure: &str, step: usize) -> Self {
        let chosen = select(runs, labels);
        Self::of(chosen.map(|run| run.values.get(measure).get(step).copied().flatten()))
    }

    /// A measure of a single figure.
    pub(crate) fn over(runs: &[Done], labels: &[(&str, &str)], measure: &str) -> Self {
        Self::step(runs, labels, measure, 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Mean and deviation.
    pub(crate) fn shown(&self, task: Task) -> String {
        if self.is_empty() {
            return if self.failed > 0 { "no answer".into() } else { "-".into() };
        }
        let mut text = figure(self.mean, task);
        if self.count > 1 {
            text.push_str(&format!(" ± {}", figure(self.deviation, task)));
        }
        if self.failed > 0 {
            text.push_str(&format!(" ({} without answer)", self.failed));
        }
        text
    }

    /// The mean alone.
    pub(crate) fn shown_mean(&self, task: Task) -> String {
        if self.is_empty() { "-".into() } else { figure(self.mean, task) }
    }

    /// How far the mean is above another figure.
    pub(crate) fn above(&self, other: f64, task: Task) -> String {
        if self.is_empty() { "-".into() } else { signed(self.mean - other, task) }
    }

    /// Whether the mean is at least as good as another figure, as far as digits are shown.
    pub(crate) fn reaches(&self, other: f64, task: Task) -> bool {
        match task {
            Task::Regression => self.mean < other + 0.5e-4,
            Task::Classification => self.mean > other - 0.5e-2,
        }
    }
}

/// The runs that have these labels.
pub(crate) fn select<'a>(
    runs: &'a [Done],
    labels: &'a [(&str, &str)],
) -> impl Iterator<Item = &'a Done> {
    runs.iter().filter(move |run| {
        labels.iter().all(|(name, value)| {
            run.labels.iter().any(|(label, found)| label == name && found == value)
        })
    })
}

/// An RMSE, or an accuracy in percent, with as many digits as the paper prints.
pub(crate) fn figure(value: f64, task: Task) -> String {
    match task {
        Task::Regression => format!("{value:.4}"),
        Task::Classification => format!("{value:.2}"),
    }
}

pub(crate) fn signed(value: f64, task: Task) -> String {
    match task {
        Task::Regression => format!("{value:+.4}"),
        Task::Classification => format!("{value:+.2}"),
    }
}

/// A power of two as the paper writes it.
pub(crate) fn power_of_two(value: f64) -> String {
    format!("2^{}", value.log2().round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_leave_out_what_has_no_answer() {
        let spread = Spread::of([Some(1.0), None, Some(3.0)]);
        assert_eq!((spread.mean, spread.count, spread.failed), (2.0, 2, 1));
        assert!((spread.deviation - 2.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(Spread::of([Some(0.5)]).shown(Task::Regression), "0.5000");
        assert_eq!(Spread::of([None]).shown(Task::Regression), "no answer");
        assert_eq!(Spread::of([]).shown(Task::Classification), "-");
        assert!(Spread::of([Some(0.09594)]).reaches(0.0959, Task::Regression));
        assert!(!Spread::of([Some(95.43)]).reaches(95.44, Task::Classification));
    }
}
