//! From multichannel recordings to tables of spectra, for trials of an EEG experiment and the like.
//!
//! 1. [`Input`] - a [`Recording`] (EDF, EDF+, GDF, tables) or [`Trials`] (`.npz`, tables)
//! 2. [`Butterworth`] - filters, applied both ways so that nothing is shifted
//! 3. [`Recording::trials`] - pieces around events
//! 4. [`Welch`] - power spectral densities
//! 5. [`Features`] - one row for each trial, one column for each channel and frequency
//!
//! Filters and spectra are those of SciPy (`butter`, `sosfiltfilt`, `welch`), to rounding.
//!
//! ```no_run
//! use broadlearn_signal::{Butterworth, Cut, Features, Recording, Welch, Window};
//!
//! let channels = ["C3".to_owned(), "C4".to_owned()];
//! let recording = Recording::open("B0401T.gdf".as_ref())?.select(&channels)?;
//! let rate = recording.rate()?;
//! let filter = Butterworth::band_pass(4, 8.0, 35.0).sections(rate)?;
//! let codes = vec!["769".to_owned(), "770".to_owned()];
//! let cut = Cut { codes, from: 0.5, to: 2.5, keep_rejected: false };
//! let trials = recording.filtered(&filter)?.trials(&cut)?.without_missing();
//! let welch = Welch::new(rate, Window::Hamming, 62, 31, 256)?;
//! let features = Features::new(&trials, &welch, Some((8.0, 35.0)))?.log();
//! assert_eq!(features.names()[0], "C3_8.79Hz");
//! # Ok::<(), broadlearn::Error>(())
//! ```

mod bytes;
mod sections;
mod butterworth;
mod recording;
mod edf;
mod gdf;
mod trials;
mod input;
mod welch;
mod features;

pub use butterworth::Butterworth;
pub use features::Features;
pub use input::{Input, InputOptions, matches};
pub use recording::{Channel, Event, Recording};
pub use sections::{Section, Sections};
pub use trials::{Cut, Dropped, Trial, Trials};
pub use welch::{Welch, Window};
