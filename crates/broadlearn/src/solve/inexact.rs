//! The fixed point at the price of about one ridge solution.
//!
//! Every step of the plain iteration forms and factors a weighted N x L x L product. But far from the
//! fixed point nobody needs a step to be exact, and near it the next weights are nearly the last
//! ones. So the objective itself is climbed by conjugate gradients, in which U appears only in
//! products with L x C matrices:
//!
//! 1. R of a sample of the rows, 2 L of them, is factored once ([`Preconditioner`]). It preconditions
//!    everything that follows, whatever the weights: U' Λ U of all rows looks much like it.
//! 2. Start, annealing and some steps at the final kernel size take place on the sample.
//! 3. All rows join: 4 N L C flops for a step, of some twenty, on U in 32 bits ([`Packed`]).
//! 4. One exact step in double precision: the weights of the residuals, their R and P, which the
//!    model keeps anyway, and W. What it changes tells whether the fixed point is reached. If not, its
//!    factor is the preconditioner of the next round.

use super::factor::Factor;
use super::fixed_point::{FixedPoint, annealing, downweighted, normalised_objective};
use super::preconditioner::Preconditioner;
use super::report::Form;
use super::start::{L1_STEPS, Start, least_absolute_weights};
use super::system::{Solution, System};
use super::{Loss, RobustLoss, SolveReport};
use crate::error::{Category, Result};
use crate::linalg::{inner, parallelism, scale_rows, select_rows, squared_norm};
use crate::preprocess::statistics;
use crate::progress::{Observer, report};
use crate::state::{NormalEquations, Packed};
use faer::{Mat, MatRef};

/// Rows of the sample for every node: with fewer the preconditioner is poor, more cost more than the
/// steps that they save (MNIST with 5100 nodes: 1.5 L, 2 L and 3 L take about the same time).
const ROWS_PER_NODE: usize = 2;
/// Conjugate-gradient steps for each set of frozen weights, and at each kernel size of the annealing.
const STEPS_ON_THE_WAY: usize = 2;
/// On the sample, which is off by a tenth or so, nothing finer than this is sought.
const SAMPLE_CHANGE: f64 = 3e-3;
const SAMPLE_STEPS: usize = 30;
/// The widest kernel with which all rows begin, in units of their median residual.
const WIDE: f64 = 3.0;
/// Outputs of U in 32 bits are good for this; a finer tolerance takes another round.
const PACKED_CHANGE: f64 = 1e-7;
/// Rounds after which the plain iteration takes over.
const MOST_ROUNDS: usize = 4;

impl FixedPoint {
    /// As the plain iteration, up to the tolerance. `None` where it does not get there: no positive
    /// definite factor for the sample, or no end in sight.
    pub(crate) fn solve_inexactly(
        &self,
        system: &System<'_>,
        sigma: f64,
        ridge: f64,
        user: Option<&[f64]>,
        observer: &mut Observer<'_>,
    ) -> Result<Option<(Solution, Vec<f64>, SolveReport)>> {
        let (n, nodes) = (system.rows(), system.state().width());
        let count = sample_rows(n, nodes);
        let order = match count == n {
            true => (0..n).collect(),
            false => sample_first(n, count),
        };
        let y = select_rows(system.y(), &order);
        let user_in_order: Option<Vec<f64>> =
            user.map(|user| order.iter().map(|&row| user[row]).collect());
        let mut packed = Packed::new(system.state(), order);
        let memory = self.memory.saturating_sub(system.bytes_of_rows());

        // 1. The preconditioner.
        report(observer, "factoring a sample", 0, None)?;
        let mut equations = NormalEquations::empty(nodes, y.ncols());
        let room = memory.saturating_sub(system.bytes_of_equations());
        packed.visit_first(count, room, |range, u| {
            let weights = user_in_order.as_deref().map(|user| &user[range.clone()]);
            equations.add(u, y.subrows(range.start, range.len()), weights, parallelism());
        });
        let total = user.map_or(n as f64, |user| user.iter().sum());
        let share = equations.weight() / total;
        let (r, p) = equations.into_parts();
        let factor = match Factor::new(r, ridge * share, parallelism()) {
            Ok(factor) => factor,
            Err(error) if error.category() == Category::Numeric => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(sample_factor) = Preconditioner::new(&factor) else { return Ok(None) };
        drop(factor);
        let threads = rayon::current_num_threads() as u64;
        let room = memory.saturating_sub(
            Preconditioner::bytes(nodes) + threads * Packed::bytes_of_workspace(nodes),
        );
        packed.fill(room);

        // 2. On the sample.
        let loss = self.kind.at(sigma);
        let sample = Slope {
            packed: &packed,
            y: y.subrows(0, count),
            user: user_in_order.as_deref().map(|user| &user[..count]),
            ridge: ridge * share,
            error: None,
        };
        let mut beginnings = Vec::new();
        for &start in self.starts() {
            beginnings.push(match start {
                Start::Zero => (start, Mat::zeros(nodes, y.ncols()), f64::INFINITY),
                Start::Trimmed => {
                    let (w, widest) = system.trimmed(self.linear, user)?;
                    (start, w, widest)
                }
                _ => (start, sample_factor.solve(p.as_ref()), f64::INFINITY),
            });
        }
        let Some(w) = self.on_sample(&sample, beginnings, &sample_factor, sigma, observer)? else {
            return Ok(None);
        };

        // 3 and 4. On all rows.
        let mut point = Point { f: Mat::zeros(n, y.ncols()), w };
        packed.outputs(point.w.as_ref(), point.f.as_mut());
        let (mut steps, mut objective) = (0, Vec::new());
        let mut goal = (0.8 * self.tolerance).max(PACKED_CHANGE);
        let mut preconditioner = Some(sample_factor);
        let mut error_of_gradient = None;
        for _ in 0..MOST_ROUNDS {
            let Some(factor) = preconditioner.take() else { break };
            let (y, user_in_order) = (y.as_ref(), user_in_order.as_deref());
            let error = error_of_gradient.take();
            let all = Slope { packed: &packed, y, user: user_in_order, ridge, error };
            if count < n && objective.is_empty() {
                all.anneal(&mut point, self.kind, sigma, &factor, observer)?;
            }
            let most = self.max_iterations.saturating_sub(steps + 1);
            let climb = all.climb(&mut point, Rule::Loss(loss), &factor, goal, most, observer)?;
            steps += climb.objective.len();
            objective.extend(climb.objective);

            report(observer, "fixed point, exactly", steps as u64, None)?;
            // Memory need not hold U beside R and its factor. To compute it again, if this is not the
            // last step, takes little beside the step itself.
            drop(factor);
            packed.clear();
            let (equations, outputs, weights) =
                system.equations_at(point.w.as_ref(), loss, user)?;
            let exact = Factor::new(equations.r().to_owned(), ridge, parallelism())?;
            let w = exact.solve(equations.p(), parallelism());
            let difference: Mat<f64> = &w - &point.w;
            let last_change = exact.norm(difference.as_ref()) / exact.norm(w.as_ref());
            let last_change = if last_change.is_finite() { last_change } else { f64::MAX };
            let mut losses = system.squared_residuals(outputs.as_ref());
            self.kind.rho(&mut losses, sigma);
            let penalty = ridge / (2.0 * sigma * sigma) * squared_norm(point.w.as_ref());
            objective.push(normalised_objective(&losses, user, penalty));
            steps += 1;
            let converged = last_change <= self.tolerance;
            if converged || steps >= self.max_iterations {
                let report = SolveReport {
                    loss,
                    iterations: steps,
                    converged,
                    last_change,
                    objective,
                    downweighted: downweighted(&weights, user),
                    ..SolveReport::plain(Some(ridge), Form::Primal, None)
                };
                let equations = Some((equations, exact));
                let solution = Solution { w, equations, outputs: Some(outputs) };
                return Ok(Some((solution, weights, report)));
            }
            // The gradient at the old W is known exactly now: A times the change of W. So are the
            // outputs, and what a small change adds to them loses no digits.
            packed.fill(room);
            point.f = select_rows(outputs.as_ref(), packed.rows());
            let all = Slope { packed: &packed, y, user: user_in_order, ridge, error: None };
            let e: Mat<f64> = y - &point.f;
            let weights = all.weights(Rule::Loss(loss), squared_rows(e.as_ref()));
            let found = all.gradient(&point, e.as_ref(), &weights);
            error_of_gradient = Some(found - exact.product(difference.as_ref()));
            let mut change = Mat::zeros(n, y.ncols());
            packed.outputs(difference.as_ref(), change.as_mut());
            point = Point { f: point.f + change, w };
            preconditioner = Preconditioner::new(&exact);
            goal = 0.3 * self.tolerance;
        }
        Ok(None)
    }

    /// W of the sample, near the fixed point that is best of those to which some W with a widest kernel
    /// lead.
    fn on_sample(
        &self,
        sample: &Slope<'_>,
        beginnings: Vec<(Start, Mat<f64>, f64)>,
        factor: &Preconditioner,
        sigma: f64,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Mat<f64>>> {
        let loss = self.kind.at(sigma);
        let mut best: Option<(f64, Mat<f64>)> = None;
        for (start, w, widest) in beginnings {
            let mut f = Mat::zeros(sample.y.nrows(), sample.y.ncols());
            sample.packed.outputs(w.as_ref(), f.as_mut());
            let mut point = Point { w, f };
            if start == Start::L1 || start == Start::Best {
                for _ in 0..L1_STEPS {
                    let squares = sample.squares(point.f.as_ref());
                    let Some(weights) = least_absolute_weights(squares, sample.user) else { break };
                    let rule = Rule::Frozen(&weights);
                    sample.climb(
                        &mut point,
                        rule,
                        factor,
                        SAMPLE_CHANGE,
                        STEPS_ON_THE_WAY,
                        observer,
                    )?;
                }
            }
            if self.anneal {
                let squares = sample.squares(point.f.as_ref());
                for wide in annealing(&squares, sigma, sample.user) {
                    if wide <= widest {
                        let rule = Rule::Loss(self.kind.at(wide));
                        let most = STEPS_ON_THE_WAY;
                        sample.climb(&mut point, rule, factor, SAMPLE_CHANGE, most, observer)?;
                    }
                }
            }
            let rule = Rule::Loss(loss);
            let climb =
                sample.climb(&mut point, rule, factor, SAMPLE_CHANGE, SAMPLE_STEPS, observer)?;
            let objective = climb.objective.last().copied().unwrap_or(f64::NEG_INFINITY);
            if best.as_ref().is_none_or(|(most, _)| objective > *most) {
                best = Some((objective, point.w));
            }
        }
        Ok(best.map(|(_, w)| w))
    }
}

/// The number of rows in the sample: all, unless that would take long and there are many more than
/// needed.
fn sample_rows(n: usize, nodes: usize) -> usize {
    const LONG: f64 = 1e11;
    let enough = ROWS_PER_NODE * nodes;
    let flops = n as f64 * (nodes as f64).powi(2);
    if flops > LONG && n > enough + enough / 2 { enough } else { n }
}

/// All rows, in short runs that are evenly spread in the table and make up the sample first. Single rows
/// would have to be fetched one by one.
fn sample_first(n: usize, count: usize) -> Vec<usize> {
    const RUN: usize = 31;
    let (runs, chosen) = (n.div_ceil(RUN), count.div_ceil(RUN));
    let is_chosen = |run: usize| (run + 1) * chosen / runs > run * chosen / runs;
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..runs).partition(|&run| is_chosen(run));
    let rows = |run: usize| run * RUN..((run + 1) * RUN).min(n);
    first.into_iter().chain(rest).flat_map(rows).collect()
}

/// The objective on some rows, to be climbed.
struct Slope<'a> {
    packed: &'a Packed<'a>,
    y: MatRef<'a, f64>,
    user: Option<&'a [f64]>,
    ridge: f64,
    /// By how much the gradient of U in 32 bits is off, as far as that is known.
    error: Option<Mat<f64>>,
}

/// W and its outputs.
struct Point {
    w: Mat<f64>,
    f: Mat<f64>,
}

/// Where sample weights come from.
#[derive(Clone, Copy)]
enum Rule<'a> {
    /// They stay as they are: the objective is quadratic.
    Frozen(&'a [f64]),
    /// From the residuals.
    Loss(Loss),
}

/// How a climb went.
struct Climb {
    /// The normalised objective after every step; of a loss, that is.
    objective: Vec<f64>,
}

impl Slope<'_> {
    /// Climbs by conjugate gradients (Polak and Ribière's, never downhill) until a step changes the
    /// outputs by less than `goal`, relatively.
    fn climb(
        &self,
        point: &mut Point,
        rule: Rule<'_>,
        factor: &Preconditioner,
        goal: f64,
        most_steps: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Climb> {
        let mut climb = Climb { objective: Vec::new() };
        let mut e: Mat<f64> = self.y - &point.f;
        let mut weights = self.weights(rule, squared_rows(e.as_ref()));
        let mut direction: Mat<f64> = Mat::zeros(point.w.nrows(), point.w.ncols());
        let mut last: Option<(Mat<f64>, f64)> = None;
        for step in 0..most_steps {
            report(observer, "conjugate gradients", step as u64, None)?;
            let mut gradient = self.gradient(point, e.as_ref(), &weights);
            if let Some(error) = &self.error {
                gradient -= error;
            }
            let uphill = factor.solve(gradient.as_ref());
            let gain = inner(gradient.as_ref(), uphill.as_ref());
            if gain <= 0.0 || !gain.is_finite() {
                break;
            }
            let momentum = last.take().map_or(0.0, |(old, old_gain)| {
                ((gain - inner(old.as_ref(), uphill.as_ref())) / old_gain).max(0.0)
            });
            direction = uphill + faer::Scale(momentum) * &direction;
            if inner(direction.as_ref(), gradient.as_ref()) <= 0.0 {
                direction = factor.solve(gradient.as_ref());
            }
            let mut q = Mat::zeros(self.y.nrows(), self.y.ncols());
            self.packed.outputs(direction.as_ref(), q.as_mut());
            let penalty = Penalty {
                slope: self.ridge * inner(point.w.as_ref(), direction.as_ref()),
                curvature: self.ridge * squared_norm(direction.as_ref()),
            };
            let length = self.search(e.as_ref(), q.as_ref(), rule, &mut weights, penalty);
            point.w += faer::Scale(length) * &direction;
            point.f += faer::Scale(length) * &q;
            e = self.y - &point.f;
            let squares = squared_rows(e.as_ref());
            if let Rule::Loss(Loss::Robust { kind, sigma }) = rule {
                let mut losses = squares.clone();
                kind.rho(&mut losses, sigma);
                let penalised = self.ridge / (2.0 * sigma * sigma) * squared_norm(point.w.as_ref());
                climb.objective.push(normalised_objective(&losses, self.user, penalised));
            }
            weights = self.weights(rule, squares);
            let size = squared_norm(point.f.as_ref());
            let change = squared_norm(q.as_ref()) + penalty.curvature;
            if length * length * change <= goal * goal * size {
                break;
            }
            last = Some((gradient, gain));
        }
        Ok(climb)
    }

    /// U' Λ E - gamma W.
    fn gradient(&self, point: &Point, e: MatRef<'_, f64>, weights: &[f64]) -> Mat<f64> {
        let mut t = e.to_owned();
        scale_rows(t.as_mut(), weights);
        self.packed.products(t.as_ref()) - faer::Scale(self.ridge) * &point.w
    }

    /// How far to go in a direction whose outputs are `q`, from the residuals `e`: to where the slope is
    /// a small part of what it was. `weights` are those of `e`, and are used up.
    fn search(
        &self,
        e: MatRef<'_, f64>,
        q: MatRef<'_, f64>,
        rule: Rule<'_>,
        weights: &mut Vec<f64>,
        penalty: Penalty,
    ) -> f64 {
        /// The slope may be this part of the first one at the end.
        const REST: f64 = 0.02;
        const EVALUATIONS: usize = 4;
        let mut length = 0.0;
        let (first, bound) = slope_at(e, q, 0.0, weights, penalty);
        let mut before = (0.0, first);
        // For fixed weights this is exact, and for others never too far: the loss lies below.
        length += first / bound;
        if matches!(rule, Rule::Frozen(_)) {
            return length;
        }
        for _ in 0..EVALUATIONS {
            let moved: Mat<f64> = e - faer::Scale(length) * q;
            *weights = self.weights(rule, squared_rows(moved.as_ref()));
            let (slope, bound) = slope_at(e, q, length, weights, penalty);
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
    fn anneal(
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
                self.climb(point, rule, factor, SAMPLE_CHANGE, STEPS_ON_THE_WAY, observer)?;
            }
        }
        Ok(())
    }

    fn squares(&self, f: MatRef<'_, f64>) -> Vec<f64> {
        let e: Mat<f64> = self.y - f;
        squared_rows(e.as_ref())
    }

    /// Sample weights of rows with these squared residuals, the user's multiplied in.
    fn weights(&self, rule: Rule<'_>, mut squares: Vec<f64>) -> Vec<f64> {
        match rule {
            Rule::Frozen(weights) => weights.to_vec(),
            Rule::Loss(loss) => {
                loss.weigh(&mut squares);
                if let Some(user) = self.user {
                    squares.iter_mut().zip(user).for_each(|(weight, user)| *weight *= user);
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

/// The slope of the objective at this length, and a bound of its curvature.
fn slope_at(
    e: MatRef<'_, f64>,
    q: MatRef<'_, f64>,
    length: f64,
    weights: &[f64],
    penalty: Penalty,
) -> (f64, f64) {
    let (mut eq, mut qq) = (0.0, 0.0);
    for (e, q) in e.col_iter().zip(q.col_iter()) {
        for ((e, q), weight) in e.iter().zip(q.iter()).zip(weights) {
            eq += weight * e * q;
            qq += weight * q * q;
        }
    }
    let curvature = qq + penalty.curvature;
    (eq - penalty.slope - length * curvature, curvature)
}

fn squared_rows(e: MatRef<'_, f64>) -> Vec<f64> {
    let mut squares = vec![0.0; e.nrows()];
    for column in e.col_iter() {
        squares.iter_mut().zip(column.iter()).for_each(|(square, e)| *square += e * e);
    }
    squares
}
