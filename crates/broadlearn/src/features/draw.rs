//! Random numbers: one seed, one independent stream for every purpose and index.
//!
//! The generator is ChaCha8 with the seed in the first eight bytes of its key and the stream number
//! `purpose * 2^32 + index`. A stream never depends on how much was drawn from another one, so that
//! adding a group of nodes leaves the earlier ones as they were, on any number of threads. Numbers
//! are made from the raw 64-bit words by the formulas below, not by a library's distributions,
//! whose values may change from one release to the next.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The name of the generator, as written into model files.
pub const GENERATOR: &str = "chacha8-streams-1";

/// What a stream of random numbers is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// The weights of a feature group.
    Features = 1,
    /// The weights of an enhancement group.
    Enhancement = 2,
    /// Which rows are held out for testing.
    Holdout = 3,
    /// Which rows belong to which fold of a cross-validation.
    Folds = 4,
    /// Contamination and noise of generated data.
    Noise = 5,
    /// Which rows of a large table speak for all.
    Sample = 6,
}

/// The seed of a member of an ensemble: that of the first is `seed` itself. The others are words of
/// SplitMix64 (Steele, Lea and Flood 2014) that begins at the scrambled seed, so that neighbouring seeds
/// have no member in common, as those of `seed + member` would.
pub fn member_seed(seed: u64, member: usize) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let scramble = |word: u64| {
        let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    match member as u64 {
        0 => seed,
        member => {
            let begin = scramble(seed.wrapping_add(STEP));
            scramble(begin.wrapping_add(member.wrapping_mul(STEP)))
        }
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of `seed` for this purpose and index.
    pub fn new(seed: u64, purpose: Purpose, index: u32) -> Self {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream((purpose as u64) << 32 | u64::from(index));
        Self(generator)
    }

    /// A number uniform in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A number uniform in [-1, 1).
    pub fn symmetric(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// A standard normal number, by the transform of Box and Muller (cosine branch).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// An integer uniform in [0, bound), by Lemire's multiplication with rejection.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// A random order of the numbers 0 .. n (Fisher and Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for last in (1..n).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_independent_of_each_other_and_repeat() {
        let draw = |seed, purpose, index| {
            let mut stream = Stream::new(seed, purpose, index);
            std::array::from_fn::<f64, 4, _>(|_| stream.unit())
        };
        let reference = draw(7, Purpose::Features, 0);
        assert_eq!(reference, draw(7, Purpose::Features, 0));
        assert_ne!(reference, draw(7, Purpose::Features, 1));
        assert_ne!(reference, draw(7, Purpose::Enhancement, 0));
        assert_ne!(reference, draw(8, Purpose::Features, 0));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut stream = Stream::new(1, Purpose::Noise, 0);
        let n = 200_000;
        let moments = |values: Vec<f64>| {
            let mean = values.iter().sum::<f64>() / n as f64;
            (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64)
        };
        // Five standard errors of mean and variance.
        let (mean, variance) = moments((0..n).map(|_| stream.symmetric()).collect());
        assert!(mean.abs() < 0.0065 && (variance - 1.0 / 3.0).abs() < 0.0034);
        let (mean, variance) = moments((0..n).map(|_| stream.normal()).collect());
        assert!(mean.abs() < 0.0112 && (variance - 1.0).abs() < 0.0159);
    }

    #[test]
    fn a_permutation_holds_every_index_once() {
        let mut order = Stream::new(3, Purpose::Folds, 0).permutation(1000);
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
    }
}
