//! Fitting: the whole algorithm on one screen.

use super::choose::Decision;
use super::distinct::Distinct;
use super::ensemble::naming;
use super::rows::{Kept, Labelled, target_matrix};
use super::{CheckedSettings, Criterion, Procedure, Settings};
use super::{Member, Model};
use crate::data::{Kind, Schema, TargetSchema, Targets, Task};
use crate::error::{Category, Error, Result};
use crate::features::build::build;
use crate::features::draw::member_seed;
use crate::features::{FeatureMap, Recipe};
use crate::increment::Knowledge;
use crate::linalg::{parallelism, squared_norm};
use crate::matrix::IntoMatrix;
use crate::memory;
use crate::preprocess::{ScaledRows, Scaler, statistics};
use crate::progress::{Observer, report, unobserved};
use crate::solve::factor::Factor;
use crate::solve::fixed_point::{FixedPoint, check_not_vanished, downweighted};
use crate::solve::system::{Solution, System};
use crate::solve::{
    Form, Loss, RobustLoss, SolveReport, Start, huber_weights, least_absolute, pseudo_inverse,
};
use crate::state::{NormalEquations, StateRows};
use faer::{Mat, MatRef};
use rayon::prelude::*;

/// The relative error of the outputs that the choice of an equivalent system may bring.
pub(super) const PRECISION: f64 = 1e-9;

/// What a model is fitted on.
pub struct Training<'a> {
    /// Inputs, one row per sample.
    pub x: MatRef<'a, f64>,
    /// Targets.
    pub targets: &'a Targets,
    /// Sample weights: a row of weight 2 counts as two rows, one of weight 0 as none.
    pub weights: Option<&'a [f64]>,
    /// What the columns mean.
    pub schema: Schema,
}

impl Settings {
    /// Fits numbers: `y` has one row per row of `x` and one column per target.
    ///
    /// # Errors
    /// Settings out of range, shapes that do not match, values that are not finite.
    pub fn fit_regression<'a>(
        self,
        x: impl IntoMatrix<'a>,
        y: impl IntoMatrix<'a>,
    ) -> Result<Model> {
        let (x, y) = (x.into_matrix(), y.into_matrix());
        let y = y.as_ref().to_owned();
        let names = (1..=y.ncols()).map(|j| format!("y{j}")).collect();
        let schema = Schema::numeric(x.as_ref().ncols(), TargetSchema::Regression { names });
        let training =
            Training { x: x.as_ref(), targets: &Targets::Values(y), weights: None, schema };
        self.fit(training, &mut unobserved)
    }

    /// Fits classes, numbered from 0.
    ///
    /// # Errors
    /// As [`fit_regression`](Self::fit_regression), and fewer than two classes.
    pub fn fit_classes<'a>(self, x: impl IntoMatrix<'a>, classes: &[u32]) -> Result<Model> {
        let x = x.into_matrix();
        let count = classes.iter().max().map_or(0, |most| *most as usize + 1);
        if !(2..=65_536).contains(&count) {
            return Err(Error::data(format!("class numbers below {count}"))
                .expected("at least two classes, numbered from 0 without large gaps"));
        }
        let target = TargetSchema::Classification {
            name: "class".into(),
            kind: Kind::Number,
            classes: (0..count).map(|class| class.to_string()).collect(),
        };
        let schema = Schema::numeric(x.as_ref().ncols(), target);
        let targets = Targets::Classes(classes.to_vec());
        self.fit(
            Training { x: x.as_ref(), targets: &targets, weights: None, schema },
            &mut unobserved,
        )
    }

    /// Fits whatever `training` holds and tells the observer how far it is.
    ///
    /// # Errors
    /// As [`fit_regression`](Self::fit_regression); `Interrupted` if the observer asked to stop.
    pub fn fit(self, training: Training<'_>, observer: &mut Observer<'_>) -> Result<Model> {
        self.check(training.schema.target.task())?.fit(training, observer)
    }
}

impl CheckedSettings {
    /// Fits a model. What is left open is chosen once, for all members.
    ///
    /// # Errors
    /// Shapes that do not match, values that are not finite, `Interrupted`.
    pub fn fit(&self, training: Training<'_>, observer: &mut Observer<'_>) -> Result<Model> {
        training.check(self)?;
        let Training { x, targets, weights, schema } = training;
        let kept = Kept::new(Labelled { x, targets, weights });
        let distinct = Distinct::of(kept.rows());
        let Labelled { x, targets, weights: user } = distinct.rows();
        let task = schema.target.task();

        // Stage 2: the scaler of the targets; then whatever was left open.
        let mut y = target_matrix(targets, schema.target.outputs());
        let target_scaler = Scaler::fit(self.target_scaling, y.as_ref(), user);
        target_scaler.apply(y.as_mut());
        let decision = self.decide(x, y.as_ref(), user, task, observer)?;
        decision.settings.network.check_memory(x.ncols())?;
        let scaled = Scaled { rows: &distinct, y: y.as_ref(), target_scaler: &target_scaler };
        let mut members = decision.members(self.seed, &scaled, &schema, observer)?;
        members[0].report.candidates = decision.candidates;
        members[0].report.networks = decision.networks;
        let model = Model { members, discriminant: None, calibration: None, continuation: None };
        let model = model.calibrated_on(distinct.rows(), observer)?;
        Ok(if self.compact { model.compact() } else { model })
    }
}

/// Rows, and their targets as the model sees them.
struct Scaled<'a> {
    rows: &'a Distinct<'a>,
    y: MatRef<'a, f64>,
    target_scaler: &'a Scaler,
}

/// The state of networks that are fitted at the same time, at most: numbers of all threads.
const MOST_NUMBERS: usize = 1 << 25;

impl Decision {
    /// All networks. Which rows are to be believed does not depend on the member, so once the first has found it out
    /// the others need not wait for each other.
    fn members(
        &self,
        seed: u64,
        scaled: &Scaled<'_>,
        schema: &Schema,
        observer: &mut Observer<'_>,
    ) -> Result<Vec<Member>> {
        let count = self.settings.members;
        let mut members = Vec::with_capacity(count);
        let mut believed = None;
        for place in 0..count {
            let mut observer = naming(observer, place, count);
            let numbers =
                scaled.y.nrows() * members.first().map_or(0, |first: &Member| first.map.width());
            if numbers * rayon::current_num_threads() <= MOST_NUMBERS
                && let Some(believed) = &believed
            {
                report(&mut observer, "building the network", 0, None)?;
                let others = (place..count).into_par_iter().map(|place| {
                    let seed = member_seed(seed, place);
                    let believed = Some(Clone::clone(believed));
                    self.member(seed, scaled, schema.clone(), believed, &mut unobserved)
                });
                let others: Vec<(Member, Option<Vec<f64>>)> = others.collect::<Result<_>>()?;
                members.extend(others.into_iter().map(|(member, _)| member));
                break;
            }
            let seed = member_seed(seed, place);
            let (member, weights) =
                self.member(seed, scaled, schema.clone(), believed.take(), &mut observer)?;
            let loss = member.report.loss;
            believed =
                weights.filter(|_| member.report.cross_fitted).map(|weights| (loss, weights));
            members.push(member);
        }
        Ok(members)
    }

    /// One network, fitted with these sample weights, or else with those of its own cross-fit; and the
    /// sample weights.
    fn member(
        &self,
        seed: u64,
        scaled: &Scaled<'_>,
        schema: Schema,
        believed: Option<(Loss, Vec<f64>)>,
        observer: &mut Observer<'_>,
    ) -> Result<(Member, Option<Vec<f64>>)> {
        let settings = CheckedSettings { seed, ..self.settings.clone() };
        let Labelled { x, weights: user, .. } = scaled.rows.rows();
        let input_scaler = Scaler::fit(settings.input_scaling, x, user);

        // Stage 3: the random map.
        report(observer, "building the network", 0, None)?;
        let inputs = ScaledRows::new(x, &input_scaler);
        let map = build(&settings.network, &inputs, user, settings.seed)?;

        // Stages 4 and 5: the state and the output weights.
        let state = StateRows::new(&map, inputs);
        let linear = linear_columns(&map, schema.target.task());
        let mut solved = match believed {
            Some((loss, weights)) => {
                let system = System::new(&state, scaled.y, PRECISION, parallelism());
                let ridge = self.ridge.unwrap_or(0.0);
                settings.with_weights(&system, weights, loss, ridge, user)?
            }
            None => settings.solve(&state, scaled.y, user, linear, self, observer)?,
        };

        // Stage 6: what later changes need.
        let weights = solved.weights.clone();
        let knowledge = solved.knowledge(scaled.rows);
        let member = Member {
            settings,
            rows: scaled.rows.count(),
            schema,
            w: solved.w,
            knowledge,
            input_scaler,
            target_scaler: scaled.target_scaler.clone(),
            map,
            report: solved.report,
        };
        Ok((member, weights))
    }
}

impl CheckedSettings {
    /// W for what was decided.
    fn solve(
        &self,
        state: &StateRows<'_>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        linear: usize,
        decision: &Decision,
        observer: &mut Observer<'_>,
    ) -> Result<Solved> {
        let Some(ridge) = decision.ridge else {
            return self.solve_by_pseudo_inverse(state, y, user);
        };
        let system = System::new(state, y, PRECISION, parallelism());
        match self.procedure {
            Procedure::FixedPoint => {}
            Procedure::LeastAbsolute { steps } => {
                let (solution, factor, report) =
                    least_absolute::solve(&system, ridge, steps, user, observer)?;
                return self.solved_for_good(&system, solution, &factor, user, report);
            }
            Procedure::HuberWeights { tuning, steps } => {
                let (solution, weights, report) = huber_weights::solve(
                    &system,
                    tuning,
                    steps,
                    self.tolerance,
                    ridge,
                    user,
                    observer,
                )?;
                return self.solved(&system, solution, weights, user, report);
            }
        }
        let (mut sigma, mut attempts) = (decision.sigma, 0);
        let automatic = matches!(self.criterion, Criterion::Robust { sigma: None, .. });
        let start = decision.start.as_ref().filter(|_| self.start == Start::Best);
        loop {
            let loss = match (self.criterion, sigma) {
                (Criterion::Robust { kind, .. }, Some(sigma)) => kind.at(sigma),
                _ => Loss::Squared,
            };
            let result = match (loss, start) {
                (Loss::Robust { kind, sigma }, Some(start)) => {
                    report(observer, "cross-fitting", 0, None)?;
                    let residuals = start.residuals(&system, ridge)?;
                    let squares: Vec<f64> =
                        residuals.row_iter().map(|row| row.squared_norm_l2()).collect();
                    let sigma = match automatic {
                        true => decision.not_boundless(sigma, &squares, user),
                        false => sigma,
                    };
                    self.cross_fitted(&system, squares, kind.at(sigma), ridge, user)
                }
                _ => self.solve_for(&system, loss, ridge, user, linear, observer),
            };
            match result {
                // A kernel chosen on a part of the rows may be too narrow for all of them.
                Err(error)
                    if error.category() == Category::Numeric && automatic && attempts < 10 =>
                {
                    sigma = sigma.map(|sigma| 2.0 * sigma);
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    /// W with the weights of these squared residual norms, each from a model that has not seen its row.
    fn cross_fitted(
        &self,
        system: &System<'_>,
        squares: Vec<f64>,
        loss: Loss,
        ridge: f64,
        user: Option<&[f64]>,
    ) -> Result<Solved> {
        let mut weights = squares;
        loss.weigh(&mut weights);
        check_not_vanished(&weights, loss)?;
        if let Some(user) = user {
            weights.iter_mut().zip(user).for_each(|(weight, user)| *weight *= user);
        }
        self.with_weights(system, weights, loss, ridge, user)
    }

    /// W with these sample weights, the user's multiplied in.
    fn with_weights(
        &self,
        system: &System<'_>,
        weights: Vec<f64>,
        loss: Loss,
        ridge: f64,
        user: Option<&[f64]>,
    ) -> Result<Solved> {
        let solution = system.solve(Some(&weights), ridge)?;
        let report = SolveReport {
            loss,
            cross_fitted: true,
            downweighted: downweighted(&weights, user),
            ..SolveReport::plain(Some(ridge), system.form(ridge), None)
        };
        self.solved(system, solution, Some(weights), user, report)
    }

    /// W for this loss and ridge.
    pub(super) fn solve_for(
        &self,
        system: &System<'_>,
        loss: Loss,
        ridge: f64,
        user: Option<&[f64]>,
        linear: usize,
        observer: &mut Observer<'_>,
    ) -> Result<Solved> {
        match loss {
            Loss::Squared => {
                report(observer, "solving", 0, None)?;
                let solution = system.solve(user, ridge)?;
                let report = SolveReport::plain(Some(ridge), system.form(ridge), None);
                self.solved(system, solution, user.map(<[f64]>::to_vec), user, report)
            }
            Loss::Robust { kind, sigma } => {
                let fixed_point = self.fixed_point(kind, linear);
                let (solution, weights, report) =
                    fixed_point.solve(system, sigma, ridge, user, observer)?;
                self.solved(system, solution, Some(weights), user, report)
            }
        }
    }

    /// How the fixed point of this loss is sought.
    pub(super) fn fixed_point(&self, kind: RobustLoss, linear: usize) -> FixedPoint {
        FixedPoint {
            kind,
            start: self.start,
            linear,
            anneal: self.anneal,
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
            solver: self.solver,
            memory: self.memory.unwrap_or_else(memory::share_of_free),
        }
    }

    /// A solution with the equations that later changes need.
    pub(super) fn solved(
        &self,
        system: &System<'_>,
        solution: Solution,
        weights: Option<Vec<f64>>,
        user: Option<&[f64]>,
        mut report: SolveReport,
    ) -> Result<Solved> {
        let equations = match (solution.equations, report.ridge) {
            (Some((equations, factor)), _) => Some((equations, Some(factor))),
            (None, ridge) => {
                let equations = system.equations(weights.as_deref())?;
                let factored = |ridge| Factor::new(equations.r().to_owned(), ridge, parallelism());
                let factor = ridge.map(factored).transpose()?;
                Some((equations, factor))
            }
        };
        let freedom = match (&equations, report.ridge) {
            (Some((_, Some(factor))), Some(ridge)) => degrees_of_freedom(factor, ridge),
            _ => solution.w.nrows() as f64,
        };
        let outputs = match solution.outputs {
            Some(outputs) => outputs,
            None => system.outputs(solution.w.as_ref())?,
        };
        report.spread = spread(system, outputs.as_ref(), user, freedom);
        Ok(Solved { w: solution.w, equations, weights, report })
    }

    /// A solution that no later change can build on.
    fn solved_for_good(
        &self,
        system: &System<'_>,
        solution: Solution,
        factor: &Factor,
        user: Option<&[f64]>,
        mut report: SolveReport,
    ) -> Result<Solved> {
        let outputs = match solution.outputs {
            Some(outputs) => outputs,
            None => system.outputs(solution.w.as_ref())?,
        };
        let freedom = degrees_of_freedom(factor, report.ridge.unwrap_or(0.0));
        report.spread = spread(system, outputs.as_ref(), user, freedom);
        Ok(Solved { w: solution.w, equations: None, weights: None, report })
    }

    fn solve_by_pseudo_inverse(
        &self,
        state: &StateRows<'_>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
    ) -> Result<Solved> {
        let (w, rank) = pseudo_inverse::solve(state, y, user)?;
        let report = SolveReport::plain(None, Form::Orthogonal, Some(rank));
        let system = System::new(state, y, PRECISION, parallelism());
        let solution = Solution { w, equations: None, outputs: None };
        self.solved(&system, solution, user.map(<[f64]>::to_vec), user, report)
    }
}

/// W, and what it was found from.
pub(super) struct Solved {
    pub(super) w: Mat<f64>,
    /// A pseudo-inverse has no factor.
    pub(super) equations: Option<(NormalEquations, Option<Factor>)>,
    /// The sample weights in the equations, the user's multiplied in; `None` for all 1.
    pub(super) weights: Option<Vec<f64>>,
    pub(super) report: SolveReport,
}

impl Solved {
    /// What later changes of a model of these rows need.
    pub(super) fn knowledge(&mut self, rows: &Distinct<'_>) -> Option<Knowledge> {
        let (equations, factor) = self.equations.take()?;
        let equations = equations.counting(rows.count());
        let weights = self.weights.take().unwrap_or_else(|| vec![1.0; rows.rows().x.nrows()]);
        let ledger = rows.ledger(weights);
        let factor = factor.map(|factor| (factor, 0));
        let ridge = self.report.ridge.unwrap_or(0.0);
        Some(Knowledge::from_parts(equations, ridge, ledger, factor, false))
    }
}

/// The number of leading columns of U on which a trimmed start makes sense: those that are linear in
/// the inputs; none for classes, whose errors have no size.
pub(super) fn linear_columns(map: &FeatureMap, task: Task) -> usize {
    match task {
        Task::Regression => map.leading_features(),
        Task::Classification => 0,
    }
}

/// p = trace(R (R + γ I)^-1) = L - γ |F^-1|^2, L^3 / 3 flops; for wide networks only the bound L, which
/// says enough about the many rows that they are for.
fn degrees_of_freedom(factor: &Factor, ridge: f64) -> f64 {
    const WIDE: usize = 1500;
    let nodes = factor.lower().nrows();
    if nodes > WIDE {
        return nodes as f64;
    }
    let mut inverse = Mat::identity(nodes, nodes);
    factor.solve_lower_in_place(inverse.as_mut(), parallelism());
    nodes as f64 - ridge * squared_norm(inverse.as_ref())
}

/// See [`SolveReport::spread`].
fn spread(
    system: &System<'_>,
    outputs: MatRef<'_, f64>,
    user: Option<&[f64]>,
    freedom: f64,
) -> f64 {
    let mut norms = system.squared_residuals(outputs);
    norms.iter_mut().for_each(|square| *square = square.sqrt());
    let rows = user.map_or(norms.len() as f64, |user| user.iter().sum());
    let left = (1.0 - freedom / rows).max(0.05);
    1.4826 * statistics::median(&norms, user).unwrap_or(0.0) / left
}

impl Training<'_> {
    fn rows(&self) -> Labelled<'_> {
        Labelled { x: self.x, targets: self.targets, weights: self.weights }
    }

    fn check(&self, settings: &CheckedSettings) -> Result<()> {
        self.rows().check(&self.schema)?;
        let inputs = self.x.ncols();
        if let Some(fan_in) = settings.network.enhancement.fan_in
            && fan_in > inputs
            && inputs > 0
            && settings.recipe == Recipe::Rich
        {
            return Err(Error::setting("fan_in", fan_in)
                .expected(format!("at most {inputs}, the inputs after encoding")));
        }
        let width = settings.network.width(inputs);
        if width > crate::features::Network::MAX_WIDTH {
            return Err(Error::setting("nodes", width).expected(format!(
                "at most {} nodes in all, inputs included",
                crate::features::Network::MAX_WIDTH
            )));
        }
        Ok(())
    }
}
