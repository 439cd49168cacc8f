//! From multichannel recordings to tables of spectra.

mod butterworth;
mod sections;
mod welch;

pub use butterworth::Butterworth;
pub use sections::{Section, Sections};
pub use welch::{Welch, Window};
