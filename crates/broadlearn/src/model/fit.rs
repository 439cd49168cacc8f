//! Fitting: the whole algorithm on one screen.

use super::Model;
use super::settings::{CheckedSettings, Criterion, Regularisation, Settings};
use crate::data::{Kind, Schema, TargetSchema, Targets, Task};
use crate::error::{Category, Error, Result};
use crate::features::build::build;
use crate::linalg::{parallelism, select_rows};
use crate::matrix::IntoMatrix;
use crate::preprocess::{ScaledRows, Scaler};
use crate::progress::{Observer, report, unobserved};
use crate::solve::automatic::{Choice, Judge, choose};
use crate::solve::fixed_point::FixedPoint;
use crate::solve::system::{Solution, System};
use crate::solve::{Form, Loss, SolveReport, pseudo_inverse};
use crate::state::StateRows;
use faer::{Mat, MatRef};

/// The relative error of the outputs that the choice of an equivalent system may bring.
const PRECISION: f64 = 1e-9;

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
    /// Fits a model.
    ///
    /// # Errors
    /// Shapes that do not match, values that are not finite, `Interrupted`.
    pub fn fit(&self, training: Training<'_>, observer: &mut Observer<'_>) -> Result<Model> {
        training.check(self)?;
        let rows = Rows::new(&training);
        let (x, user) = (rows.x(), rows.weights());
        let settings = self.sized_for(x.nrows(), user);
        let task = training.schema.target.task();

        // Stage 2: scalers.
        let input_scaler = Scaler::fit(settings.input_scaling, x, user);
        let mut y = rows.targets(&training.schema.target);
        let target_scaler = Scaler::fit(settings.target_scaling, y.as_ref(), user);
        target_scaler.apply(y.as_mut());

        // Stage 3: the random map.
        report(observer, "building the network", 0, None)?;
        let inputs = ScaledRows::new(x, &input_scaler);
        let map = build(&settings.network, &inputs, user, settings.seed)?;

        // Stages 4 and 5: the state and the output weights.
        let state = StateRows::new(&map, inputs);
        let (solution, report) = settings.solve(&state, y.as_ref(), user, task, observer)?;

        Ok(Model {
            settings,
            rows: x.nrows() as u64,
            schema: training.schema,
            w: solution.w,
            equations: solution.equations,
            input_scaler,
            target_scaler,
            map,
            report,
        })
    }

    fn sized_for(&self, rows: usize, user: Option<&[f64]>) -> Self {
        let mut settings = self.clone();
        if self.automatic_nodes {
            let rows = user.map_or(rows as f64, |user| user.iter().sum());
            settings.network = self.network.sized_for(rows);
            settings.automatic_nodes = false;
        }
        settings
    }

    fn solve(
        &self,
        state: &StateRows<'_>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
        task: Task,
        observer: &mut Observer<'_>,
    ) -> Result<(Solution, SolveReport)> {
        let Regularisation::Ridge { ridge } = self.regularisation else {
            return self.solve_by_pseudo_inverse(state, y, user);
        };
        let sigma = match self.criterion {
            Criterion::Squared => None,
            Criterion::Correntropy { sigma } => Some(sigma),
        };
        let automatic_sigma = sigma == Some(None);
        let judge = match task {
            Task::Regression => Judge::Residuals,
            Task::Classification => Judge::Classes,
        };
        let chosen = choose(state, y, user, Choice { ridge, sigma }, judge, self.seed, observer)?;

        let system = System::new(state, y, PRECISION, parallelism());
        let (mut solution, weights, mut report) = match chosen.sigma {
            Some(sigma) => {
                let method = FixedPoint {
                    start: self.start,
                    anneal: self.anneal,
                    tolerance: self.tolerance,
                    max_iterations: self.max_iterations,
                };
                let (mut sigma, mut attempts) = (sigma, 0);
                let (solution, weights, report) = loop {
                    match method.solve(&system, sigma, chosen.ridge, user, observer) {
                        // A kernel chosen on a part of the rows may be too narrow for all of them.
                        Err(error) if error.category() == Category::Numeric && automatic_sigma => {
                            sigma *= 2.0;
                            attempts += 1;
                            if attempts > 10 {
                                return Err(error);
                            }
                        }
                        result => break result?,
                    }
                };
                (solution, Some(weights), report)
            }
            None => {
                report(observer, "solving", 0, None)?;
                let solution = system.solve(user, chosen.ridge)?;
                let form = system.form(chosen.ridge);
                (solution, user.map(<[f64]>::to_vec), plain_report(Some(chosen.ridge), form, None))
            }
        };
        report.candidates = chosen.candidates;
        if self.compact {
            solution.equations = None;
        } else if solution.equations.is_none() {
            solution.equations = Some(system.equations(weights.as_deref())?);
        }
        Ok((solution, report))
    }

    fn solve_by_pseudo_inverse(
        &self,
        state: &StateRows<'_>,
        y: MatRef<'_, f64>,
        user: Option<&[f64]>,
    ) -> Result<(Solution, SolveReport)> {
        let (w, rank) = pseudo_inverse::solve(state, y, user)?;
        let equations = if self.compact {
            None
        } else {
            Some(System::new(state, y, PRECISION, parallelism()).equations(user)?)
        };
        Ok((Solution { w, equations }, plain_report(None, Form::Orthogonal, Some(rank))))
    }
}

fn plain_report(ridge: Option<f64>, form: Form, rank: Option<usize>) -> SolveReport {
    SolveReport {
        loss: Loss::Squared,
        ridge,
        form,
        rank,
        iterations: 0,
        converged: true,
        last_change: 0.0,
        objective: Vec::new(),
        downweighted: 0.0,
        candidates: Vec::new(),
    }
}

impl Training<'_> {
    fn check(&self, settings: &CheckedSettings) -> Result<()> {
        let (rows, columns) = (self.x.nrows(), self.x.ncols());
        if rows == 0 || columns == 0 {
            return Err(Error::data(format!("inputs of {rows} rows and {columns} columns"))
                .expected("at least one row and one column"));
        }
        if columns != self.schema.width() {
            return Err(Error::data(format!("{columns} input columns"))
                .expected(format!("{}, as the schema has", self.schema.width())));
        }
        let width = settings.network.width(columns);
        if width > crate::features::Network::MAX_WIDTH {
            return Err(Error::setting("nodes", width).expected(format!(
                "at most {} nodes in all, inputs included",
                crate::features::Network::MAX_WIDTH
            )));
        }
        if self.targets.len() != rows {
            return Err(Error::data(format!("{} targets", self.targets.len()))
                .expected(format!("{rows}, one for each row of the inputs")));
        }
        check_finite(self.x, "inputs")?;
        match (self.targets, &self.schema.target) {
            (Targets::Values(values), TargetSchema::Regression { names }) => {
                if values.ncols() != names.len() || names.is_empty() {
                    return Err(Error::data(format!("{} target columns", values.ncols()))
                        .expected(format!("{}, as the schema has, and at least 1", names.len())));
                }
                check_finite(values.as_ref(), "targets")?;
            }
            (Targets::Classes(codes), TargetSchema::Classification { classes, .. }) => {
                if let Some(code) = codes.iter().find(|code| **code as usize >= classes.len()) {
                    return Err(Error::data(format!("class number {code}"))
                        .expected(format!("a number below {}", classes.len())));
                }
            }
            _ => {
                return Err(Error::data("targets of another task than the schema's")
                    .expected("values for a regression, classes for a classification"));
            }
        }
        if let Some(weights) = self.weights {
            if weights.len() != rows {
                return Err(Error::data(format!("{} sample weights", weights.len()))
                    .expected(format!("{rows}, one for each row of the inputs")));
            }
            if let Some(row) = weights.iter().position(|&w| !(w >= 0.0 && w.is_finite())) {
                return Err(Error::data(format!("weight {}", weights[row]))
                    .at(format!("row {}", row + 1))
                    .expected("a weight of 0 or more"));
            }
            if weights.iter().all(|&weight| weight == 0.0) {
                return Err(Error::data("weight 0 in every row").expected("a row that counts"));
            }
        }
        Ok(())
    }
}

pub(super) fn check_finite(matrix: MatRef<'_, f64>, what: &str) -> Result<()> {
    for (j, column) in matrix.col_iter().enumerate() {
        if let Some(row) = column.iter().position(|value| !value.is_finite()) {
            return Err(Error::data(format!("{}", column[row]))
                .at(format!("{what}, row {}, column {}", row + 1, j + 1))
                .expected("a finite number"));
        }
    }
    Ok(())
}

/// The rows that count: those of weight 0 are left out before anything is fitted.
enum Rows<'a> {
    All(&'a Training<'a>),
    Some { x: Mat<f64>, targets: Targets, weights: Vec<f64> },
}

impl<'a> Rows<'a> {
    fn new(training: &'a Training<'a>) -> Self {
        let Some(weights) = training.weights.filter(|weights| weights.contains(&0.0)) else {
            return Self::All(training);
        };
        let kept: Vec<usize> = (0..weights.len()).filter(|&row| weights[row] > 0.0).collect();
        Self::Some {
            x: select_rows(training.x, &kept),
            targets: match training.targets {
                Targets::Values(values) => Targets::Values(select_rows(values.as_ref(), &kept)),
                Targets::Classes(codes) => {
                    Targets::Classes(kept.iter().map(|&row| codes[row]).collect())
                }
            },
            weights: kept.iter().map(|&row| weights[row]).collect(),
        }
    }

    fn x(&self) -> MatRef<'_, f64> {
        match self {
            Self::All(training) => training.x,
            Self::Some { x, .. } => x.as_ref(),
        }
    }

    fn weights(&self) -> Option<&[f64]> {
        match self {
            Self::All(training) => training.weights,
            Self::Some { weights, .. } => Some(weights),
        }
    }

    /// Y: values as they are, classes as 0 and 1 in one column per class.
    fn targets(&self, schema: &TargetSchema) -> Mat<f64> {
        let targets = match self {
            Self::All(training) => training.targets,
            Self::Some { targets, .. } => targets,
        };
        match targets {
            Targets::Values(values) => values.clone(),
            Targets::Classes(codes) => Mat::from_fn(codes.len(), schema.outputs(), |i, j| {
                f64::from(codes[i] as usize == j)
            }),
        }
    }
}
