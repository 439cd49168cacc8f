//! A broad learning machine that keeps learning when the data are dirty.
//!
//! A broad learning system maps inputs by random weights to many nodes, U = [Z | H], and finds the
//! output weights W by one regularised least-squares problem. Trained under the correntropy
//! criterion (C-BLS) it gives rows with wild targets hardly any weight. The stages, in the order in
//! which data flow through them, are the modules of this crate:
//!
//! 1. [`data`] - tables in, columns and their meaning
//! 2. [`preprocess`] - scalers
//! 3. [`features`] - the random map x -> u
//! 4. [`state`] - U in blocks, the normal equations R = U'ΛU and P = U'ΛY
//! 5. [`solve`] - W by ridge, pseudo-inverse, or the fixed point of a robust loss
//! 6. [`increment`] - rows in, rows out, nodes in, sums: R and P change without the old rows
//! 7. [`model`] - settings -> checked settings -> fitted model; learn, forget, grow,
//!    merge; its file
//! 8. [`evaluate`] - metrics, and the audit of suspicious rows
//! 9. [`forecast`] - series: forecasts, their intervals, rolling-origin evaluation
//!
//! ```
//! use broadlearn::{Settings, faer::Mat};
//! // y = 2 x, but every tenth target is far off.
//! let x = Mat::from_fn(200, 1, |i, _| i as f64 / 100.0);
//! let y = Mat::from_fn(200, 1, |i, _| 2.0 * x[(i, 0)] + if i % 10 == 3 { 40.0 } else { 0.0 });
//! let model = Settings::new().fit_regression(&x, &y)?;
//! let robust = model.predict(&x)?.values()[(50, 0)];
//! let plain = Settings::new().squared().fit_regression(&x, &y)?.predict(&x)?.values()[(50, 0)];
//! assert!((robust - 1.0).abs() < 0.02);
//! assert!((plain - 1.0).abs() > 1.0);
//! # Ok::<(), broadlearn::Error>(())
//! ```

mod error;
mod linalg;
mod matrix;
pub mod memory;
mod progress;
mod vectors;

pub mod data;
pub mod preprocess;
pub mod features;
pub mod state;
pub mod solve;
pub mod increment;
pub mod model;
pub mod evaluate;
pub mod forecast;
#[cfg(feature = "linfa")]
mod linfa_traits;

pub use error::{Category, Error, Result};
pub use forecast::Forecaster;
pub use matrix::{IntoMatrix, Matrix};
pub use model::{Model, Predictions, Settings};
pub use progress::{Observer, Progress, unobserved};

pub use faer;
pub use ndarray;
