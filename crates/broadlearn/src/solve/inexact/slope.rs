//! The objective on some rows, climbed by conjugate gradients.
//!
//! A step needs the gradient U' Λ E and then Q = U D for its direction D: two passes over U, which are dear
//! where U has to be computed again. But the gradient after a step can be foretold. To first order a step
//! of length a changes the weighted residuals t = w(|e|^2) e by -a (w q + 2 w' (e'q) e), and U' times that
//! can be found in the same pass as Q. What is missed so is known row by row, without U; where it matters, the
//! gradient is computed.

use crate::error::Result;
use crate::linalg::{dot, inner, scale_rows, slice_of, slice_of_column, squared_norm};
use crate::preprocess::statistics;
use crate::progress::{Observer, report};
use crate::solve::fixed_point::{PATIENCE, SMALL, annealing, normalised_objective};
use crate::solve::preconditioner::Preconditioner;
use crate::solve::{Loss, RobustLoss};
use crate::state::Packed;
use faer::{Mat, MatRef};
use std::ops::Range;

/// Conjugate-gradient steps for each set of frozen weights, and at each kernel size of the annealing.
pub(super) const STEPS_ON_THE_WAY: usize = 2;
/// Starts and kernels on the way are left when a step changes the outputs by no more than this, relatively.
pub(super) const CHANGE_ON_THE_WAY: f64 = 3e-3;
/// The same on a sample of the rows, which is off by a tenth and more (MNIST with 5100 nodes: 0.28).
pub(super) const SAMPLE_CHANGE: f64 = 3e-2;
/// So near to the fixed point, relatively, errors of U in 32 bits begin to matter and do not change any more.
const NEAR: f64 = 1e-4;
/// The change of the outputs for which U in 32 bits is good, usually. Where U is at hand, more is made sure of.
const ROUNDING: f64 = 1e-7;
/// The widest kernel with which all rows begin, in units of their median residual.
const WIDE: f64 = 3.0;

/// The objective on some rows, to be climbed.
pub(super) struct Slope<'a> {
    pub(super) packed: &'a Packed<'a>,
    pub(super) y: MatRef<'a, f64>,
    pub(super) user: Option<&'a [f64]>,
    pub(super) ridge: f64,
    /// By how much the gradient of U in 32 bits is off, as far as that is known.
    pub(super) error: Option<Mat<f64>>,
}

/// W and its outputs.
pub(super) struct Point {
    pub(super) w: Mat<f64>,
    pub(super) f: Mat<f64>,
}

/// Where sample weights come from.
#[derive(Clone, Copy)]
pub(super) enum Rule<'a> {
    /// They stay as they are: the objective is quadratic.
    Frozen(&'a [f64]),
    /// From the residuals.
    Loss(Loss),
}

/// When a climb ends.
#[derive(Clone, Copy)]
pub(super) enum Goal {
    /// When a step changes the outputs by less than this, relatively.
    SmallStep(f64),
    /// When a step of the plain iteration would likely change them by less than this.
    FixedPoint(f64),
}

/// How a climb went.
pub(super) struct Climb {
    pub(super) steps: usize,
    /// The normalised objective after every step; of a loss, that is.
    pub(super) objective: Vec<f64>,
    /// Whether U itself has told what U in 32 bits gets wrong, if anything, so that the goal is known to be reached.
    pub(super) is_exact: bool,
}

/// Residuals and their sample weights.
struct Residuals {
    e: Mat<f64>,
    /// |e|^2 of every row.
    squares: Vec<f64>,
    weights: Vec<f64>,
}

impl Residuals {
    /// Λ E.
    fn weighted(&self) -> Mat<f64> {
        let mut t = self.e.clone();
        scale_rows(t.as_mut(), &self.weights);
        t
    }
}

/// How weighted residuals t = w(|e|^2) e change, to first order, when e does.
struct Tangent<'a> {
    at: &'a Residuals,
    /// w', the derivative of the weight by the squared residual.
    slopes: Vec<f64>,
}

impl Tangent<'_> {
    /// w q + 2 w' (e'q) e for some rows, of which `q` are the changes.
    fn along(&self, rows: Range<usize>, q: MatRef<'_, f64>) -> Mat<f64> {
        let e = self.at.e.subrows(rows.start, rows.len());
        let mut shared = vec![0.0; rows.len()];
        for (e, q) in e.col_iter().zip(q.col_iter()) {
            shared.iter_mut().zip(e.iter()).zip(q.iter()).for_each(|((sum, e), q)| *sum += e * q);
        }
        shared.iter_mut().zip(&self.slopes[rows.clone()]).for_each(|(sum, s)| *sum *= 2.0 * s);
        let mut change = q.to_owned();
        scale_rows(change.as_mut(), &self.at.weights[rows]);
        for (change, e) in change.as_mut().col_iter_mut().zip(e.col_iter()) {
            let change = slice_of_column(change).iter_mut();
            change.zip(e.iter()).zip(&shared).for_each(|((change, e), s)| *change += s * e);
        }
        change
    }
}

/// Where conjugate gradients go: Polak and Ribière's, never downhill.
struct Way {
    direction: Mat<f64>,
    /// The gradient before, and what it promised.
    last: Option<(Mat<f64>, f64)>,
}

impl Way {
    fn new(point: &Point) -> Self {
        Self { direction: Mat::zeros(point.w.nrows(), point.w.ncols()), last: None }
    }

    /// Takes the next direction.
    fn turn(&mut self, gradient: &Mat<f64>, Uphill { way: uphill, gain }: Uphill) {
        let momentum = self.last.take().map_or(0.0, |(old, old_gain)| {
            ((gain - inner(old.as_ref(), uphill.as_ref())) / old_gain).max(0.0)
        });
        let direction = &uphill + faer::Scale(momentum) * &self.direction;
        let upward = inner(direction.as_ref(), gradient.as_ref()) > 0.0;
        self.direction = if upward { direction } else { uphill };
        self.last = Some((gradient.clone(), gain));
    }
}

/// Where a gradient leads, M^-1 G, and what it promises, <G, M^-1 G>.
struct Uphill {
    way: Mat<f64>,
    gain: f64,
}

impl Uphill {
    /// `None` at the top.
    fn of(gradient: &Mat<f64>, factor: &Preconditioner) -> Option<Self> {
        let way = factor.solve(gradient.as_ref());
        let gain = inner(gradient.as_ref(), way.as_ref());
        (gain > 0.0 && gain.is_finite()).then_some(Self { way, gain })
    }
}

/// The gradient after a step, foretold.
#[derive(Default)]
struct Forecast {
    /// The gradient, if it is known well enough.
    gradient: Option<Mat<f64>>,
    /// By how much weighted residuals differ from those that the gradient was foretold from.
    missed: Option<Mat<f64>>,
    /// The square of its size.
    missed_square: f64,
    /// Its size after the last step, in units of what the gradient came from.
    drift: f64,
}

impl Forecast {
    /// The gradient may be off by this part of what it was before the step.
    const MOST_DRIFT: f64 = 0.2;

    /// Whether the next step will likely be foretold: each is shorter than the one before.
    fn pays(&self) -> bool {
        self.drift <= 2.0 * Self::MOST_DRIFT
    }

    /// Takes notice of how weighted residuals have changed beside what the tangent has said, and of the
    /// gradient that it would give, if that was looked for. `scale` is the size of residuals that make up
    /// the gradient, squared.
    fn judge(&mut self, beside: Mat<f64>, scale: f64, gradient: Option<Mat<f64>>) {
        let missed = match self.missed.take() {
            Some(missed) => missed + beside,
            None => beside,
        };
        let square = squared_norm(missed.as_ref());
        self.drift = (square / scale).sqrt();
        self.gradient = gradient.filter(|_| self.drift <= Self::MOST_DRIFT);
        self.missed_square = if self.gradient.is_some() { square } else { 0.0 };
        self.missed = self.gradient.is_some().then_some(missed);
    }
}

impl Slope<'_> {
    /// Climbs by conjugate gradients until the goal is reached.
    pub(super) fn climb(
        &self,
        point: &mut Point,
        rule: Rule<'_>,
        factor: &Preconditioner,
        goal: Goal,
        most_steps: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Climb> {
        let mut climb = Climb { steps: 0, objective: Vec::new(), is_exact: false };
        let mut at = self.residuals(point, rule);
        let mut way = Way::new(point);
        let mut forecast = Forecast::default();
        let mut error = self.error.clone();
        let mut length = 1.0;
        let (mut least, mut steps_since_least) = (f64::INFINITY, 0);
        for step in 0..most_steps {
            report(observer, "conjugate gradients", step as u64, None)?;
            let foretold = forecast.gradient.take();
            let mut gradient =
                foretold.unwrap_or_else(|| self.gradient(point, &at, error.as_ref()));
            let Some(mut uphill) = Uphill::of(&gradient, factor) else { break };
            if let Goal::FixedPoint(change) = goal {
                let size = self.size(point, &at);
                let ahead = |gain: f64, missed: f64| (length * (gain + missed) / size).sqrt();
                let mut expected = ahead(uphill.gain, forecast.missed_square);
                let matters = change < ROUNDING || self.packed.is_at_hand();
                if error.is_none() && expected <= NEAR && matters && self.packed.is_rounded() {
                    // From here on what U in 32 bits gets wrong does not change.
                    let exact = self.exact_gradient(point, rule);
                    at = self.residuals(point, rule);
                    error = Some(self.gradient(point, &at, None) - &exact);
                    gradient = exact;
                    forecast = Forecast::default();
                    let Some(again) = Uphill::of(&gradient, factor) else { break };
                    uphill = again;
                    expected = ahead(uphill.gain, 0.0);
                }
                steps_since_least = if expected < least { 0 } else { steps_since_least + 1 };
                least = least.min(expected);
                let rounding = expected < SMALL && steps_since_least >= PATIENCE;
                if expected <= change || rounding {
                    break;
                }
            }
            let gain = uphill.gain;
            way.turn(&gradient, uphill);
            let direction = &way.direction;

            // What is near need not be spared a second visit.
            let foresees = !self.packed.is_near();
            let tangent = foresees.then(|| self.tangent(&at, rule));
            let foretells = forecast.pays() && step + 1 < most_steps;
            let (q, fall) = self.look(direction, tangent.as_ref().filter(|_| foretells));
            let penalty = Penalty {
                slope: self.ridge * inner(point.w.as_ref(), direction.as_ref()),
                curvature: self.ridge * squared_norm(direction.as_ref()),
            };
            length = self.search(&at, q.as_ref(), rule, penalty);
            point.w += faer::Scale(length) * direction;
            point.f += faer::Scale(length) * &q;

            let next = self.residuals(point, rule);
            if let Some(tangent) = &tangent {
                let told = tangent.along(0..q.nrows(), q.as_ref());
                let beside = next.weighted() - at.weighted() + faer::Scale(length) * told;
                let foretold = fall.map(|fall| gradient - faer::Scale(length) * fall);
                forecast.judge(beside, length * gain, foretold);
            }
            at = next;
            climb.steps += 1;
            if let Rule::Loss(loss) = rule {
                climb.objective.extend(self.objective(point, &at, loss));
            }
            if let Goal::SmallStep(goal) = goal {
                let size = squared_norm(point.f.as_ref());
                let change = squared_norm(q.as_ref()) + penalty.curvature;
                if length * length * change <= goal * goal * size {
                    break;
                }
            }
        }
        climb.is_exact = error.is_some() || !self.packed.is_rounded();
        Ok(climb)
    }

    /// What a direction does to the outputs, Q; and, in the same pass, by how much the gradient falls along
    /// it if weighted residuals follow a tangent.
    fn look(
        &self,
        direction: &Mat<f64>,
        tangent: Option<&Tangent<'_>>,
    ) -> (Mat<f64>, Option<Mat<f64>>) {
        let mut q = Mat::zeros(self.y.nrows(), self.y.ncols());
        let Some(tangent) = tangent else {
            self.packed.outputs(direction.as_ref(), q.as_mut());
            return (q, None);
        };
        let turn = |rows, q: MatRef<'_, f64>| tangent.along(rows, q);
        let fall = self.packed.there_and_back(direction.as_ref(), q.as_mut(), turn);
        (q, Some(fall + faer::Scale(self.ridge) * direction))
    }

    /// The gradient at a point, as far as U in 32 bits tells.
    pub(super) fn gradient_at(&self, point: &Point, rule: Rule<'_>) -> Mat<f64> {
        self.gradient(point, &self.residuals(point, rule), None)
    }

    /// U' Λ E - gamma W, less what is known to be wrong with it.
    fn gradient(&self, point: &Point, at: &Residuals, error: Option<&Mat<f64>>) -> Mat<f64> {
        let gradient =
            self.packed.products(at.weighted().as_ref()) - faer::Scale(self.ridge) * &point.w;
        match error {
            Some(error) => gradient - error,
            None => gradient,
        }
    }

    /// The same from U itself, which also gives the outputs anew.
    fn exact_gradient(&self, point: &mut Point, rule: Rule<'_>) -> Mat<f64> {
        let weighted = |rows: Range<usize>, f: MatRef<'_, f64>| {
            let mut e: Mat<f64> = self.y.subrows(rows.start, rows.len()) - f;
            let weights = self.weights(rule, rows, squared_rows(e.as_ref()));
            scale_rows(e.as_mut(), &weights);
            e
        };
        let u = self.packed.unrounded();
        let gradient = u.there_and_back(point.w.as_ref(), point.f.as_mut(), weighted);
        gradient - faer::Scale(self.ridge) * &point.w
    }

    /// trace(W' (R + gamma I) W), R with the weights of these residuals.
    fn size(&self, point: &Point, at: &Residuals) -> f64 {
        dot(&squared_rows(point.f.as_ref()), &at.weights)
            + self.ridge * squared_norm(point.w.as_ref())
    }

    /// The normalised objective; of robust losses only.
    fn objective(&self, point: &Point, at: &Residuals, loss: Loss) -> Option<f64> {
        let Loss::Robust { kind, sigma } = loss else { return None };
        let mut losses = at.squares.clone();
        kind.rho(&mut losses, sigma);
        let penalty = self.ridge / (2.0 * sigma * sigma) * squared_norm(point.w.as_ref());
        Some(normalised_objective(&losses, self.user, penalty))
    }

    /// How far to go in a direction whose outputs are `q`: to where the slope is a small part of what
    /// it was.
    fn search(&self, at: &Residuals, q: MatRef<'_, f64>, rule: Rule<'_>, penalty: Penalty) -> f64 {
        /// The slope may be this part of the first one at the end.
        const REST: f64 = 0.02;
        const EVALUATIONS: usize = 4;
        let line = Line::new(at, q);
        let (first, bound) = line.slope_at(0.0, &at.weights, penalty);
        let mut before = (0.0, first);
        // For fixed weights this is exact, and for others never too far: the loss lies below.
        let mut length = first / bound;
        if matches!(rule, Rule::Frozen(_)) {
            return length;
        }
        for _ in 0..EVALUATIONS {
            let weights = self.weights(rule, 0..q.nrows(), line.squares_at(length));
            let (slope, bound) = line.slope_at(length, &weights, penalty);
            if slope.abs() <= REST * first {
                break;
            }
            let bend = (before.1 - slope) / (length - before.0);
            before = (length, slope);
            length += slope / if bend > 0.1 * bound { bend.min(10.0 * bound) } else { bound };
        }
        length
    }

    /// Lets the kernel shrink towards `sigma` once more, now on all rows. It need not be wider than the
    /// residuals of most rows, because the sample has seen to those that are far off.
    pub(super) fn anneal(
        &self,
        point: &mut Point,
        kind: RobustLoss,
        sigma: f64,
        factor: &Preconditioner,
        observer: &mut Observer<'_>,
    ) -> Result<()> {
        let squares = self.squares(point.f.as_ref());
        let usual = statistics::median(&squares, self.user).unwrap_or(0.0).sqrt();
        for wide in annealing(&squares, sigma, self.user) {
            if wide <= WIDE * usual {
                let rule = Rule::Loss(kind.at(wide));
                let goal = Goal::SmallStep(CHANGE_ON_THE_WAY);
                self.climb(point, rule, factor, goal, STEPS_ON_THE_WAY, observer)?;
            }
        }
        Ok(())
    }

    pub(super) fn squares(&self, f: MatRef<'_, f64>) -> Vec<f64> {
        let e: Mat<f64> = self.y - f;
        squared_rows(e.as_ref())
    }

    fn residuals(&self, point: &Point, rule: Rule<'_>) -> Residuals {
        let e: Mat<f64> = self.y - &point.f;
        let squares = squared_rows(e.as_ref());
        let weights = self.weights(rule, 0..squares.len(), squares.clone());
        Residuals { e, squares, weights }
    }

    /// The tangent of weighted residuals. A difference quotient stands for the derivative of the
    /// weight, so that a loss need not know it.
    fn tangent<'a>(&self, at: &'a Residuals, rule: Rule<'_>) -> Tangent<'a> {
        const APART: f64 = 1e-5;
        let squares = &at.squares;
        let further = squares.iter().map(|square| square * (1.0 + APART)).collect();
        let mut slopes = self.weights(rule, 0..squares.len(), further);
        for ((slope, weight), square) in slopes.iter_mut().zip(&at.weights).zip(squares) {
            let step = square * APART;
            *slope = if step > 0.0 { (*slope - weight) / step } else { 0.0 };
        }
        Tangent { at, slopes }
    }

    /// Sample weights of rows with these squared residuals, the user's multiplied in.
    fn weights(&self, rule: Rule<'_>, rows: Range<usize>, mut squares: Vec<f64>) -> Vec<f64> {
        match rule {
            Rule::Frozen(weights) => weights[rows].to_vec(),
            Rule::Loss(loss) => {
                loss.weigh(&mut squares);
                if let Some(user) = self.user {
                    squares.iter_mut().zip(&user[rows]).for_each(|(weight, user)| *weight *= user);
                }
                squares
            }
        }
    }
}

/// What the ridge adds along a direction.
#[derive(Clone, Copy)]
struct Penalty {
    slope: f64,
    curvature: f64,
}

/// Rows on a line of residuals e - length q: what of them does not depend on the length.
struct Line<'a> {
    /// |e|^2, e'q and |q|^2.
    ee: &'a [f64],
    eq: Vec<f64>,
    qq: Vec<f64>,
}

impl<'a> Line<'a> {
    fn new(at: &'a Residuals, q: MatRef<'_, f64>) -> Self {
        Self { ee: &at.squares, eq: row_products(at.e.as_ref(), q), qq: row_products(q, q) }
    }

    fn squares_at(&self, length: f64) -> Vec<f64> {
        let rows = self.ee.iter().zip(&self.eq).zip(&self.qq);
        rows.map(|((ee, eq), qq)| (ee - length * (2.0 * eq - length * qq)).max(0.0)).collect()
    }

    /// The slope of the objective at this length, and a bound of its curvature.
    fn slope_at(&self, length: f64, weights: &[f64], penalty: Penalty) -> (f64, f64) {
        let curvature = dot(&self.qq, weights) + penalty.curvature;
        (dot(&self.eq, weights) - penalty.slope - length * curvature, curvature)
    }
}

fn squared_rows(e: MatRef<'_, f64>) -> Vec<f64> {
    row_products(e, e)
}

/// The inner products of the rows of two matrices.
fn row_products(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Vec<f64> {
    let mut sums = vec![0.0; left.nrows()];
    for (left, right) in left.col_iter().zip(right.col_iter()) {
        let columns = slice_of(left).iter().zip(slice_of(right));
        sums.iter_mut().zip(columns).for_each(|(sum, (left, right))| *sum += left * right);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateRows;

    #[test]
    fn weighted_residuals_follow_their_tangent() {
        let u = Mat::from_fn(40, 3, |i, j| ((i * 3 + j * 7) as f64).sin());
        let y = Mat::from_fn(40, 2, |i, j| ((i + 5 * j) as f64).cos());
        let q = Mat::from_fn(40, 2, |i, j| ((2 * i + j) as f64).sin());
        let user: Vec<f64> = (0..40).map(|i| 0.5 + 0.1 * i as f64).collect();
        let state = StateRows::Whole(u);
        let packed = Packed::new(&state, (0..40).collect());
        let slope =
            Slope { packed: &packed, y: y.as_ref(), user: Some(&user), ridge: 0.0, error: None };
        let point = |f| Point { w: Mat::zeros(3, 2), f };
        for kind in [RobustLoss::Correntropy, RobustLoss::Mixture { share: 0.4, ratio: 3.0 }] {
            let rule = Rule::Loss(kind.at(0.8));
            let at = slope.residuals(&point(Mat::zeros(40, 2)), rule);
            let tangent = slope.tangent(&at, rule);
            let missed = [1e-2, 1e-3].map(|length| {
                let next = slope.residuals(&point(faer::Scale(length) * &q), rule);
                let told = faer::Scale(length) * tangent.along(0..40, q.as_ref());
                let beside: Mat<f64> = next.weighted() - at.weighted() + told;
                beside.norm_l2()
            });
            // A tenth of the way misses a hundredth.
            assert!(missed[1] < 0.02 * missed[0] && missed[0] < 1e-2, "{kind:?}: {missed:?}");
            let part = tangent.along(10..30, q.subrows(10, 20));
            assert!(part == tangent.along(0..40, q.as_ref()).subrows(10, 20));
        }
    }
}
