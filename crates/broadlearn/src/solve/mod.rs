//! Stage 5: the output weights W.
//!
//! [`system`](self) holds U and Y and solves one weighted ridge problem, in primal or dual form;
//! [`fixed_point`](self) repeats that with the weights of a [`Loss`]; [`automatic`](self) chooses
//! the ridge and the kernel size.

mod cholesky;
pub(crate) mod factor;
mod ridge;
pub mod loss;
pub(crate) mod system;
pub(crate) mod pseudo_inverse;
pub(crate) mod start;
pub(crate) mod trimmed;
pub(crate) mod fixed_point;
pub(crate) mod least_absolute;
pub(crate) mod huber_weights;
pub(crate) mod anderson;
pub(crate) mod preconditioner;
pub(crate) mod inexact;
pub(crate) mod cross_fit;
pub(crate) mod nested;
pub(crate) mod automatic;
pub mod report;

pub use fixed_point::Solver;
pub use loss::{Loss, RobustLoss};
pub use report::{Candidate, Form, NetworkCandidate, SolveReport};
pub use ridge::ridge;
pub use start::Start;
