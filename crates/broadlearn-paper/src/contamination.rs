//! Wrong targets, made on purpose.

use broadlearn::data::Targets;
use broadlearn::features::draw::{Purpose, Stream};

/// What kind of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    /// As in the paper: a number uniform in [0, 1] is added to a target; a class becomes another one.
    Paper,
    /// Five standard deviations are added to a target: a sensor stuck high.
    OneSided,
}

impl Errors {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paper => "uniform",
            Self::OneSided => "one-sided",
        }
    }
}

/// Spoils a share of the targets, drawn by a seed.
pub(crate) fn spoil(targets: &mut Targets, errors: Errors, share: f64, classes: usize, seed: u64) {
    let mut stream = Stream::new(seed, Purpose::Noise, 0);
    let order = stream.permutation(targets.len());
    let chosen = &order[..(share * targets.len() as f64).round() as usize];
    match targets {
        Targets::Values(y) => {
            let rows = y.nrows() as f64;
            let mean = y.col(0).iter().sum::<f64>() / rows;
            let squares = y.col(0).iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            let shift = 5.0 * (squares / rows).sqrt();
            for &row in chosen {
                y[(row, 0)] += match errors {
                    Errors::Paper => stream.unit(),
                    Errors::OneSided => shift,
                };
            }
        }
        Targets::Classes(codes) => {
            for &row in chosen {
                let step = 1 + stream.below(classes.max(2) - 1);
                codes[row] = ((codes[row] as usize + step) % classes.max(2)) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broadlearn::faer::Mat;

    #[test]
    fn as_many_targets_are_wrong_as_was_asked() {
        let mut classes = Targets::Classes((0..200).map(|i| i % 3).collect());
        spoil(&mut classes, Errors::Paper, 0.3, 3, 1);
        let Targets::Classes(found) = classes else { unreachable!("classes") };
        let wrong = (0..200_u32).zip(&found).filter(|(i, class)| i % 3 != **class).count();
        assert_eq!(wrong, 60);
        assert!(found.iter().all(|class| *class < 3));
        for errors in [Errors::Paper, Errors::OneSided] {
            let mut values = Targets::Values(Mat::from_fn(100, 1, |i, _| i as f64));
            spoil(&mut values, errors, 0.4, 0, 1);
            let Targets::Values(found) = values else { unreachable!("values") };
            assert_eq!((0..100).filter(|i| found[(*i, 0)] != *i as f64).count(), 40);
        }
    }
}
