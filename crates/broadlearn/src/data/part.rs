//! Rows held out of a table that is never in memory as a whole.

use crate::features::draw::{Purpose, Stream};

/// One side of a split of a table: the rows to learn from, or those to score on. Every row is drawn by its
/// number alone, so that each pass over the table finds the same ones, however many there are.
///
/// ```
/// use broadlearn::data::Part;
/// let (training, test) = (Part::training(0.25, 7), Part::held_out(0.25, 7));
/// assert!((1..=1000).all(|row| training.has(row) != test.has(row)));
/// assert!((200..300).contains(&(1..=1000).filter(|&row| test.has(row)).count()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    share: f64,
    seed: u64,
    is_held_out: bool,
}

impl Part {
    /// The rows that remain when about this share of them is held out.
    pub fn training(share: f64, seed: u64) -> Self {
        Self { share, seed, is_held_out: false }
    }

    /// The rows that are held out, about this share of them.
    pub fn held_out(share: f64, seed: u64) -> Self {
        Self { share, seed, is_held_out: true }
    }

    /// Whether the row of this number, counted from 1, belongs to the part.
    pub fn has(&self, row: u64) -> bool {
        // The split of a table in memory has the stream 0.
        let drawn = Stream::new(self.seed, Purpose::Holdout, row as u32).unit();
        (drawn < self.share) == self.is_held_out
    }
}
