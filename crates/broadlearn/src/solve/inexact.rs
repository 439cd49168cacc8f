//! The fixed point at the price of about one ridge solution.
//!
//! Every step of the plain iteration forms and factors a weighted N x L x L product. But far from the
//! fixed point nobody needs a step to be exact, and near it the next weights are nearly the last
//! ones. So the objective itself is climbed by conjugate gradients, in which U appears only in
//! products with L x C matrices:
//!
//! 1. R of a sample of the rows, 2 L of them or more, with U in sixteen bits, is factored once ([`Preconditioner`]). It
//!    preconditions everything that follows, whatever the weights: U' Λ U of all rows looks much like it.
//! 2. Start, annealing and some steps at the final kernel size take place on the sample.
//! 3. All rows join: 4 N L C flops for a step, of some twenty, on U in 32 bits ([`Packed`]). Near the end one pass over U
//!    itself tells what is wrong with that.
//! 4. One exact step in double precision: the weights of the residuals, their R and P, which the
//!    model keeps anyway, and W. What it changes tells whether the fixed point is reached. If not, its
//!    factor is the preconditioner of the next round.

use super::factor::Factor;
use super::fixed_point::{FixedPoint, SMALL, annealing, downweighted, normalised_objective};
use super::preconditioner::Preconditioner;
use super::report::Form;
use super::start::{L1_STEPS, Start, least_absolute_weights};
use super::system::{Solution, System};
use super::{Loss, SolveReport};
use crate::error::{Category, Result};
use crate::linalg::{parallelism, select_rows, squared_norm};
use crate::progress::{Observer, report};
use crate::state::{NormalEquations, Packed};
use faer::Mat;
use slope::{CHANGE_ON_THE_WAY, Goal, Point, Rule, SAMPLE_CHANGE, STEPS_ON_THE_WAY, Slope};

mod slope;

const SAMPLE_STEPS: usize = 30;
/// Times the ridge in the sample's factor: directions in which U hardly varies look even smaller in a sample than they are,
/// and conjugate gradients take long over what a preconditioner underrates (MNIST with 5100 nodes: 25 steps
/// with the ridge itself, 22 with four times, 25 with eight times as much; 23 with four times and R in sixteen bits).
const RIDGE_OF_SAMPLE: f64 = 4.0;
/// Flops of the sample's R from which on rounding U to sixteen bits saves more than it costs in further steps, one or two of twenty: with
/// 5100 nodes the product takes .4 instead of 1.5 s, with 300 nodes a third less and three steps of thirty more.
const LONG_PRODUCT: f64 = 2e9;
/// The part of the sample's ridge that rounding may amount to. With 5100 nodes, where it is a 23rd, there are 23 steps instead of 22;
/// with coarser units, where it was an eleventh and a sixth, there were 24 and 27. Twelve steps take as long as the product in double precision.
const PART_OF_RIDGE: f64 = 0.1;
/// The climb ends where an exact step is expected to change the outputs by this part of the tolerance. What is expected
/// is right to a third or so.
const PART_OF_TOLERANCE: f64 = 0.6;
/// An exact step that changes the outputs by so many times what was to be expected does so by rounding errors.
const SURPRISE: f64 = 10.0;
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
        let count = sample_rows(n, nodes, system.y().ncols());
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
        let total = user.map_or(n as f64, |user| user.iter().sum());
        let of_sample = user_in_order.as_deref().map(|user| &user[..count]);
        let share = of_sample.map_or(count as f64, |user| user.iter().sum()) / total;
        let ridge_of_sample = if count < n { RIDGE_OF_SAMPLE } else { 1.0 } * ridge * share;
        let is_long = count as f64 * (nodes as f64).powi(2) > LONG_PRODUCT;
        let most_noise = is_long.then_some(PART_OF_RIDGE * ridge_of_sample / count as f64);
        packed.visit_first(count, room, |range, u| {
            let weights = of_sample.map(|user| &user[range.clone()]);
            let y = y.subrows(range.start, range.len());
            match most_noise {
                Some(noise) => equations.add_roughly(u, y, weights, noise, parallelism()),
                None => equations.add(u, y, weights, parallelism()),
            }
        });
        let (r, p) = equations.into_parts();
        let Some(sample_factor) = sample_factor(r, ridge_of_sample)? else { return Ok(None) };
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
            user: of_sample,
            ridge: ridge * share,
            error: None,
        };
        let mut beginnings = Vec::new();
        for &start in self.starts() {
            let (w, widest) = match start {
                Start::Zero => (Mat::zeros(nodes, y.ncols()), f64::INFINITY),
                Start::Trimmed => system.trimmed(self.linear, user)?,
                _ => (sample_factor.solve(p.as_ref()), f64::INFINITY),
            };
            beginnings.push(Beginning { start, w, widest });
        }
        // If all rows are the sample and there is one way only, nothing has to be compared.
        let steps = if count == n && beginnings.len() == 1 { 0 } else { SAMPLE_STEPS };
        let found = self.on_sample(&sample, beginnings, &sample_factor, sigma, steps, observer)?;
        let Some(w) = found else { return Ok(None) };

        // 3 and 4. On all rows.
        let mut point = Point { f: Mat::zeros(n, y.ncols()), w };
        packed.outputs(point.w.as_ref(), point.f.as_mut());
        let (mut steps, mut objective) = (0, Vec::new());
        let mut goal = PART_OF_TOLERANCE * self.tolerance;
        let mut preconditioner = Some(sample_factor);
        let mut error_of_gradient = None;
        let mut change_before = f64::INFINITY;
        for _ in 0..MOST_ROUNDS {
            let Some(factor) = preconditioner.take() else { break };
            let (y, user_in_order) = (y.as_ref(), user_in_order.as_deref());
            let error = error_of_gradient.take();
            let all = Slope { packed: &packed, y, user: user_in_order, ridge, error };
            if count < n && objective.is_empty() {
                all.anneal(&mut point, self.kind, sigma, &factor, observer)?;
            }
            let most = self.max_iterations.saturating_sub(steps + 1);
            let (rule, end) = (Rule::Loss(loss), Goal::FixedPoint(goal));
            let climb = all.climb(&mut point, rule, &factor, end, most, observer)?;
            let is_exact = climb.is_exact;
            steps += climb.objective.len();
            objective.extend(climb.objective);

            report(observer, "fixed point, exactly", steps as u64, None)?;
            // Memory need not hold U beside R and its factor. To compute it again, if this is not the
            // last step, takes little beside the step itself.
            drop(factor);
            packed.clear();
            let step = ExactStep::take(system, &point.w, loss, ridge, user)?;
            let last_change = step.change;
            let mut losses = system.squared_residuals(step.outputs.as_ref());
            self.kind.rho(&mut losses, sigma);
            let penalty = ridge / (2.0 * sigma * sigma) * squared_norm(point.w.as_ref());
            objective.push(normalised_objective(&losses, user, penalty));
            steps += 1;
            // A small change is the rounding error of the exact step if less was to be expected, or if a further round,
            // which goes further than the tolerance, does not even halve it.
            let unexpected = is_exact && last_change > SURPRISE * goal;
            let rounding = last_change < SMALL && (unexpected || last_change > 0.5 * change_before);
            change_before = last_change;
            let converged = last_change <= self.tolerance || rounding;
            if converged || steps >= self.max_iterations {
                let report = SolveReport {
                    loss,
                    iterations: steps,
                    converged,
                    last_change,
                    objective,
                    downweighted: downweighted(&step.weights, user),
                    ..SolveReport::plain(Some(ridge), Form::Primal, None)
                };
                let ExactStep { w, equations, factor, outputs, weights, .. } = step;
                let equations = Some((equations, factor));
                let solution = Solution { w, equations, outputs: Some(outputs) };
                return Ok(Some((solution, weights, report)));
            }
            // The gradient at the old W is known exactly now: A times the change of W. So are the
            // outputs, and what a small change adds to them loses no digits.
            let ExactStep { w, equations, factor, outputs, difference, .. } = step;
            let gradient = factor.product(difference.as_ref());
            preconditioner = Preconditioner::new(&factor);
            drop((equations, factor));
            packed.fill(room);
            point.f = select_rows(outputs.as_ref(), packed.rows());
            let all = Slope { packed: &packed, y, user: user_in_order, ridge, error: None };
            error_of_gradient = Some(all.gradient_at(&point, Rule::Loss(loss)) - gradient);
            let mut change = Mat::zeros(n, y.ncols());
            packed.outputs(difference.as_ref(), change.as_mut());
            point = Point { f: point.f + change, w };
            goal *= 0.5;
        }
        Ok(None)
    }

    /// W of the sample, near the best of the fixed points to which these beginnings lead.
    fn on_sample(
        &self,
        sample: &Slope<'_>,
        beginnings: Vec<Beginning>,
        factor: &Preconditioner,
        sigma: f64,
        steps: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Mat<f64>>> {
        let loss = self.kind.at(sigma);
        let is_all = sample.y.nrows() == sample.packed.rows().len();
        let goal = Goal::SmallStep(if is_all { CHANGE_ON_THE_WAY } else { SAMPLE_CHANGE });
        let mut best: Option<(f64, Mat<f64>)> = None;
        for Beginning { start, w, widest } in beginnings {
            let mut f = Mat::zeros(sample.y.nrows(), sample.y.ncols());
            sample.packed.outputs(w.as_ref(), f.as_mut());
            let mut point = Point { w, f };
            if start == Start::L1 || start == Start::Best {
                for _ in 0..L1_STEPS {
                    let squares = sample.squares(point.f.as_ref());
                    let Some(weights) = least_absolute_weights(squares, sample.user) else { break };
                    let rule = Rule::Frozen(&weights);
                    let climb =
                        sample.climb(&mut point, rule, factor, goal, STEPS_ON_THE_WAY, observer)?;
                    if climb.steps < STEPS_ON_THE_WAY {
                        break;
                    }
                }
            }
            if self.anneal {
                let squares = sample.squares(point.f.as_ref());
                for wide in annealing(&squares, sigma, sample.user) {
                    if wide <= widest {
                        let rule = Rule::Loss(self.kind.at(wide));
                        sample.climb(&mut point, rule, factor, goal, STEPS_ON_THE_WAY, observer)?;
                    }
                }
            }
            let rule = Rule::Loss(loss);
            let climb = sample.climb(&mut point, rule, factor, goal, steps, observer)?;
            let objective = climb.objective.last().copied().unwrap_or(f64::NEG_INFINITY);
            if best.as_ref().is_none_or(|(most, _)| objective > *most) {
                best = Some((objective, point.w));
            }
        }
        Ok(best.map(|(_, w)| w))
    }
}

/// Where the way on the sample begins: W, and the widest kernel of the annealing from there.
struct Beginning {
    start: Start,
    w: Mat<f64>,
    widest: f64,
}

/// The factor of R plus a ridge, unless that is not positive definite.
fn sample_factor(r: Mat<f64>, ridge: f64) -> Result<Option<Preconditioner>> {
    match Factor::new(r, ridge, parallelism()) {
        Ok(factor) => Ok(Preconditioner::new(&factor)),
        Err(error) if error.category() == Category::Numeric => Ok(None),
        Err(error) => Err(error),
    }
}

/// A step of the plain iteration, in double precision.
struct ExactStep {
    /// The weights of the rows before it, and what follows from them.
    weights: Vec<f64>,
    outputs: Mat<f64>,
    equations: NormalEquations,
    factor: Factor,
    w: Mat<f64>,
    /// By how much W has changed, and the size of that in the outputs, relatively.
    difference: Mat<f64>,
    change: f64,
}

impl ExactStep {
    fn take(
        system: &System<'_>,
        from: &Mat<f64>,
        loss: Loss,
        ridge: f64,
        user: Option<&[f64]>,
    ) -> Result<Self> {
        let (equations, outputs, weights) = system.equations_at(from.as_ref(), loss, user)?;
        let factor = Factor::new(equations.r().to_owned(), ridge, parallelism())?;
        let w = factor.solve(equations.p(), parallelism());
        let difference: Mat<f64> = &w - from;
        let change = factor.norm(difference.as_ref()) / factor.norm(w.as_ref());
        let change = if change.is_finite() { change } else { f64::MAX };
        Ok(Self { weights, outputs, equations, factor, w, difference, change })
    }
}

/// The number of rows in the sample: all, unless that would take long and many fewer will do. For every node there are at least
/// two, and more as long as their R takes less than the steps it saves.
fn sample_rows(n: usize, nodes: usize, outputs: usize) -> usize {
    const LONG: f64 = 1e11;
    let flops = n as f64 * (nodes as f64).powi(2);
    if flops <= LONG {
        return n;
    }
    // In flops of double precision, as long as they take: of the R of as many rows as there are nodes, and of a step.
    let rows = 0.35 * (nodes as f64).powi(3);
    let step = (n * nodes) as f64 * (25.0 + 3.0 * outputs as f64);
    let cost = |per_node: usize| per_node as f64 * rows + steps(per_node) * step;
    let candidates = 2..=(n / nodes).max(2);
    let best = candidates.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(2);
    let enough = best * nodes;
    if n > enough + enough / 2 { enough } else { n }
}

/// About so many steps follow, besides those that no sample spares, with so many rows of the sample for every node.
fn steps(per_node: usize) -> f64 {
    12.0 / (per_node as f64).ln()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_all_rows_or_much_less() {
        for nodes in [100, 1000, 5100] {
            for outputs in [1, 10] {
                let mut before = 0;
                for n in (12..=26).map(|power| 1_usize << power) {
                    let count = sample_rows(n, nodes, outputs);
                    assert!(count == n || (2 * nodes..=2 * n / 3).contains(&count));
                    // Longer steps are worth a larger sample.
                    assert!(count == n || before == n / 2 || count >= before, "{n} x {nodes}");
                    before = count;
                }
            }
        }
        assert_eq!(sample_rows(20_000, 300, 1), 20_000);
    }
}
