//! The fixed point W = f(W) of Algorithm 1: weighted ridge solutions with the weights of their own
//! residuals.
//!
//! The loss is concave in |e|^2, so every step majorises and minimises: the objective never
//! decreases, whatever the kernel size. The kernel size only decides how many optima there are, which
//! is why the iteration starts robustly and lets the kernel shrink to its final size step by step.

use super::start::{L1_STEPS, Start, initial_outputs};
use super::system::{Solution, System};
use super::{Form, Loss, RobustLoss, SolveReport};
use crate::error::{Error, Result};
use crate::linalg::squared_norm;
use crate::progress::{Observer, report};
use faer::{Mat, MatRef};

/// How the fixed point is sought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedPoint {
    pub(crate) kind: RobustLoss,
    pub(crate) start: Start,
    /// The number of leading columns of U that are linear in the inputs, for the trimmed start; 0 where
    /// that makes no sense.
    pub(crate) linear: usize,
    /// Whether the kernel shrinks to its final size step by step.
    pub(crate) anneal: bool,
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
    pub(crate) solver: Solver,
    /// Bytes that may be in use.
    pub(crate) memory: u64,
}

/// How the steps of a fixed point are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Solver {
    /// Whichever is likely to be faster.
    #[default]
    Auto,
    /// A weighted product and a factor in every step: what Algorithm 1 of the paper says.
    Direct,
    /// Conjugate gradients, and one or two such steps in the end.
    Iterative,
}

impl Solver {
    /// All of them, the default first.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Direct, Self::Iterative];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Direct => "direct",
            Self::Iterative => "iterative",
        }
    }
}

/// With fewer nodes a step costs little more than what conjugate gradients cost.
const LEAST_NODES: usize = 64;

/// Weights below this sum to nothing: no row speaks for the model.
const VANISHED: f64 = 1e-6;
/// Steps after which starts are compared.
const STEPS_TO_COMPARE: usize = 4;

impl FixedPoint {
    pub(crate) fn solve(
        &self,
        system: &System<'_>,
        sigma: f64,
        ridge: f64,
        user: Option<&[f64]>,
        observer: &mut Observer<'_>,
    ) -> Result<(Solution, Vec<f64>, SolveReport)> {
        if self.is_inexact(system, ridge) {
            let solved = self.solve_inexactly(system, sigma, ridge, user, observer)?;
            if let Some(solved) = solved {
                return Ok(solved);
            }
        }
        let starts = self.starts();
        let mut best: Option<(f64, Mat<f64>)> = None;
        for &start in starts {
            let outputs = self.approach(system, start, sigma, ridge, user, observer)?;
            if starts.len() == 1 {
                return self.go_on(outputs, system, sigma, ridge, user, observer);
            }
            // A few steps tell which optimum is the better one.
            let few = Self { max_iterations: STEPS_TO_COMPARE, ..*self };
            match few.go_on(outputs, system, sigma, ridge, user, observer) {
                Ok((solution, _, report)) => {
                    let objective = report.objective.last().copied().unwrap_or(f64::NEG_INFINITY);
                    if best.as_ref().is_none_or(|(most, _)| objective > *most) {
                        best = Some((objective, system.outputs(solution.w.as_ref())?));
                    }
                }
                Err(error) if start == Start::Trimmed && best.is_some() => drop(error),
                Err(error) => return Err(error),
            }
        }
        let outputs = best.map_or_else(|| Mat::zeros(0, 0), |(_, outputs)| outputs);
        self.go_on(outputs, system, sigma, ridge, user, observer)
    }

    /// Whether the fixed point is sought by conjugate gradients.
    fn is_inexact(&self, system: &System<'_>, ridge: f64) -> bool {
        match self.solver {
            Solver::Direct => false,
            Solver::Iterative => true,
            // The dual is cheap enough, and so are small systems.
            Solver::Auto => {
                system.form(ridge) == Form::Primal && system.state().width() >= LEAST_NODES
            }
        }
    }

    /// The starts to compare.
    pub(super) fn starts(&self) -> &[Start] {
        match self.start {
            Start::Best if self.linear > 0 => &[Start::L1, Start::Trimmed],
            Start::Best => &[Start::L1],
            Start::Trimmed if self.linear == 0 => &[Start::L1],
            ref start => std::slice::from_ref(start),
        }
    }

    /// Outputs from which the final kernel size goes on: those of the start, annealed.
    fn approach(
        &self,
        system: &System<'_>,
        start: Start,
        sigma: f64,
        ridge: f64,
        user: Option<&[f64]>,
        observer: &mut Observer<'_>,
    ) -> Result<Mat<f64>> {
        let (mut outputs, widest) = match start {
            Start::Trimmed => {
                let (w, widest) = system.trimmed(self.linear, user)?;
                (system.outputs(w.as_ref())?, widest)
            }
            _ => (initial_outputs(system, start, user, ridge, L1_STEPS)?, f64::INFINITY),
        };
        if self.anneal {
            let squares = system.squared_residuals(outputs.as_ref());
            for wide in annealing(&squares, sigma, user) {
                if wide > widest {
                    continue;
                }
                report(observer, "annealing", 0, None)?;
                let weights = sample_weights(system, outputs.as_ref(), self.kind, wide, user)?;
                outputs = system.outputs(system.solve(Some(&weights), ridge)?.w.as_ref())?;
            }
        }
        Ok(outputs)
    }

    /// Iterates from the outputs of some W.
    pub(crate) fn go_on(
        &self,
        mut outputs: Mat<f64>,
        system: &System<'_>,
        sigma: f64,
        ridge: f64,
        user: Option<&[f64]>,
        observer: &mut Observer<'_>,
    ) -> Result<(Solution, Vec<f64>, SolveReport)> {
        let mut objective = Vec::new();
        let mut iterations = 0;
        let (mut least_change, mut steps_since_least) = (f64::INFINITY, 0);
        loop {
            report(observer, "fixed point", iterations as u64, Some(self.max_iterations as u64))?;
            let weights = sample_weights(system, outputs.as_ref(), self.kind, sigma, user)?;
            let mut solution = system.solve(Some(&weights), ridge)?;
            let next = system.outputs(solution.w.as_ref())?;
            let last_change = relative_change(outputs.as_ref(), next.as_ref());
            outputs = next;
            iterations += 1;
            let mut losses = system.squared_residuals(outputs.as_ref());
            self.kind.rho(&mut losses, sigma);
            let penalty = ridge / (2.0 * sigma * sigma) * squared_norm(solution.w.as_ref());
            objective.push(normalised_objective(&losses, user, penalty));
            steps_since_least = if last_change < least_change { 0 } else { steps_since_least + 1 };
            least_change = least_change.min(last_change);
            let rounding = last_change < SMALL && steps_since_least >= PATIENCE;
            let converged = last_change <= self.tolerance || rounding;
            if converged || iterations >= self.max_iterations {
                let report = SolveReport {
                    loss: self.kind.at(sigma),
                    iterations,
                    converged,
                    last_change,
                    objective,
                    downweighted: downweighted(&weights, user),
                    ..SolveReport::plain(Some(ridge), system.form(ridge), None)
                };
                solution.outputs = Some(outputs);
                return Ok((solution, weights, report));
            }
        }
    }
}

/// With a tiny ridge rounding errors alone may change the outputs by more than the tolerance, in every step.
/// Changes below this may be such, if the least of them is so many steps ago.
pub(super) const SMALL: f64 = 1e-6;
pub(super) const PATIENCE: usize = 10;

/// An error if no row is left to learn from.
pub(crate) fn check_not_vanished(weights: &[f64], loss: Loss) -> Result<()> {
    if weights.iter().all(|&weight| weight < VANISHED) {
        let sigma = match loss {
            Loss::Squared => f64::INFINITY,
            Loss::Robust { sigma, .. } => sigma,
        };
        return Err(Error::numeric(format!(
            "all sample weights vanish at kernel size {sigma:.3e}: no row lies near the model"
        ))
        .advice("use a larger kernel (--sigma), or let it be chosen (--sigma auto)"));
    }
    Ok(())
}

/// User weight times the weight that the loss gives, for every row.
pub(crate) fn sample_weights(
    system: &System<'_>,
    outputs: MatRef<'_, f64>,
    kind: RobustLoss,
    sigma: f64,
    user: Option<&[f64]>,
) -> Result<Vec<f64>> {
    let mut weights = system.squared_residuals(outputs);
    let loss = kind.at(sigma);
    loss.weigh(&mut weights);
    check_not_vanished(&weights, loss)?;
    if let Some(user) = user {
        weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= user);
    }
    Ok(weights)
}

/// 1 - (sum_i w_i rho(e_i) + penalty) / N, in which N is the sum of the user weights w. For the
/// correntropy loss that is the paper's (1/N)(sum_i w_i exp(-|e_i|^2 / 2 sigma^2) - penalty).
pub(crate) fn normalised_objective(losses: &[f64], user: Option<&[f64]>, penalty: f64) -> f64 {
    let (sum, total) = match user {
        None => (losses.iter().sum::<f64>(), losses.len() as f64),
        Some(user) => (losses.iter().zip(user).map(|(l, w)| l * w).sum(), user.iter().sum()),
    };
    1.0 - (sum + penalty) / total
}

/// Kernel sizes from one that sees every row down towards `sigma`, by a factor of two.
pub(super) fn annealing(squares: &[f64], sigma: f64, user: Option<&[f64]>) -> Vec<f64> {
    let weight = |row: usize| user.map_or(1.0, |user| user[row]);
    let (mut sum, mut total) = (0.0, 0.0);
    for (row, square) in squares.iter().enumerate() {
        sum += weight(row) * square;
        total += weight(row);
    }
    let widest = 2.0 * (sum / total).sqrt();
    let mut wide = sigma;
    let mut path = Vec::new();
    while wide < widest && path.len() < 60 {
        wide *= 2.0;
        path.push(wide);
    }
    path.reverse();
    path
}

pub(super) fn relative_change(old: MatRef<'_, f64>, new: MatRef<'_, f64>) -> f64 {
    let change: Mat<f64> = new - old;
    let (change, size) = (squared_norm(change.as_ref()), squared_norm(new));
    // Outputs that vanish altogether have changed beyond measure, but JSON knows no infinity.
    if change == 0.0 { 0.0 } else { (change / size).sqrt().min(f64::MAX) }
}

/// The share of user weight on rows whose own weight (without the user's) is below 0.5.
pub(crate) fn downweighted(weights: &[f64], user: Option<&[f64]>) -> f64 {
    match user {
        None => weights.iter().filter(|&&w| w < 0.5).count() as f64 / weights.len() as f64,
        Some(user) => {
            let low: f64 =
                weights.iter().zip(user).filter(|&(w, u)| *w < 0.5 * u).map(|(_, u)| u).sum();
            low / user.iter().sum::<f64>()
        }
    }
}
