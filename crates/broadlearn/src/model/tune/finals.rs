//! The best settings of a search, fitted as they are and judged by their own models.

use super::judge::{Judged, Sums};
use super::{Finalist, Sample, Setting, Trial, Tuning, Validation};
use crate::data::{Schema, Task};
use crate::error::{Category, Error, Result};
use crate::features::draw::{Purpose, Stream};
use crate::model::rows::{Kept, Labelled, target_matrix};
use crate::model::{Model, Settings, Training};
use crate::progress::{Observer, Progress, report};
use crate::solve::nested::freedom;
use std::ops::ControlFlow;

impl Tuning {
    /// The best setting of each of the best networks, fitted and judged by its own model: judged by rows that differ, fitted to
    /// all of them.
    pub(super) fn decide(
        &self,
        rows: Labelled<'_>,
        all: Labelled<'_>,
        schema: &Schema,
        trials: &[Trial],
        sample: &Sample,
        observer: &mut Observer<'_>,
    ) -> Result<(Vec<Finalist>, Model)> {
        let kernel = self.kernel_by_folds(rows, schema, trials, sample, observer)?;
        let mut chosen: Vec<(Setting, Judged)> = Vec::new();
        for trial in trials.iter().filter(|trial| kernel.is_none() || trial.setting.sigma == kernel)
        {
            let Some(judged) = trial.judged else { break };
            let network = trial.setting.network;
            if chosen.iter().all(|(setting, _)| setting.network != network) {
                chosen.push((trial.setting, judged));
            }
            if chosen.len() == self.finalists {
                break;
            }
        }
        let mut chosen: Vec<(Settings, Option<(Setting, Judged)>)> = chosen
            .into_iter()
            .map(|found| (self.finalist(&found.0, sample.task), Some(found)))
            .collect();
        if self.automatic {
            chosen.push((self.automatic(), None));
        }
        let mut finalists: Vec<Finalist> = Vec::new();
        let mut best: Option<(f64, Settings, Model)> = None;
        let total = chosen.len() as u64;
        for (place, (settings, found)) in chosen.into_iter().enumerate() {
            let mut observer = one_bar(observer, "fitting the best", place as u64, total);
            let fitted = self.exactly(rows, all, schema, &settings, sample, &mut observer);
            let (exact, model) = match fitted {
                Ok(Some(fitted)) => fitted,
                Ok(None) => continue,
                Err(error) if error.category() == Category::Numeric => continue,
                Err(error) => return Err(error),
            };
            let setting = found.map_or_else(|| Setting::of(&model), |(setting, _)| setting);
            finalists.push(Finalist { setting, search: found.map(|(_, judged)| judged), exact });
            if best.as_ref().is_none_or(|(least, ..)| exact.score < *least) {
                best = Some((exact.score, settings, model));
            }
        }
        finalists.sort_by(|a, b| a.exact.score.total_cmp(&b.exact.score));
        let nothing = || {
            Error::numeric("no setting of the grid gave a model that could be judged")
                .advice("try larger ridges, wider kernels, fewer nodes, or --score 5")
        };
        let (_, settings, mut model) = best.ok_or_else(nothing)?;
        let count = all.x.nrows();
        let usual = || Ok::<_, Error>(Settings::new().check(sample.task)?.members_for(count));
        let members = self.members.map_or_else(usual, Ok)?;
        if members != 1 {
            model = settings.members(members).fit(rows_with(all, schema), observer)?;
        }
        Ok((finalists, model))
    }

    /// The kernel size with which the best network predicts folds best. Leave-one-out cannot tell: the weights of the others come of
    /// a fit that has seen the row, and the narrower the kernel, the more that fit believes the rows that it happens to pass by.
    fn kernel_by_folds(
        &self,
        rows: Labelled<'_>,
        schema: &Schema,
        trials: &[Trial],
        sample: &Sample,
        observer: &mut Observer<'_>,
    ) -> Result<Option<f64>> {
        const FOLDS: usize = 5;
        let best = trials.first().filter(|best| best.judged.is_some());
        let Some(Trial { setting: best, .. }) = best else { return Ok(None) };
        let sigmas = &self.grid.sigmas;
        if self.loss.is_none() || sigmas.len() < 2 || self.validation != Validation::LeaveOneOut {
            return Ok(None);
        }
        let is_of_best = |setting: &Setting| {
            setting.network == best.network && setting.enhancement_nodes == best.enhancement_nodes
        };
        let mut found: Option<(f64, f64)> = None;
        for (place, &sigma) in sigmas.iter().enumerate() {
            let mut observer =
                one_bar(observer, "choosing the kernel", place as u64, sigmas.len() as u64);
            let is_meant = |trial: &&Trial| {
                trial.judged.is_some()
                    && trial.setting.sigma == Some(sigma)
                    && is_of_best(&trial.setting)
            };
            let Some(trial) = trials.iter().find(is_meant) else { continue };
            let settings = self.settings(&trial.setting);
            match self.by_folds(FOLDS, rows, schema, &settings, sample, &mut observer) {
                Ok(Some(Judged { score, .. })) if found.is_none_or(|(least, _)| score < least) => {
                    found = Some((score, sigma));
                }
                Ok(_) => {}
                Err(error) if error.category() == Category::Numeric => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found.map(|(_, sigma)| sigma))
    }

    /// A setting as it is fitted in the end: its kernel was chosen.
    fn finalist(&self, setting: &Setting, task: Task) -> Settings {
        let settings = self.settings(setting);
        match (task, self.loss) {
            (Task::Classification, Some(_)) => settings.discriminant(true),
            _ => settings,
        }
    }

    /// What a fit with nothing given has: one network of it.
    pub(super) fn automatic(&self) -> Settings {
        let settings = Settings::new().members(1).seed(self.seed);
        match self.loss {
            Some(kind) => settings.loss(kind),
            None => settings.squared(),
        }
    }

    /// A setting as it is fitted, and how that model does.
    fn exactly(
        &self,
        rows: Labelled<'_>,
        all: Labelled<'_>,
        schema: &Schema,
        settings: &Settings,
        sample: &Sample,
        observer: &mut Observer<'_>,
    ) -> Result<Option<(Judged, Model)>> {
        let model = settings.clone().fit(rows_with(all, schema), observer)?;
        let judged = match self.validation {
            Validation::LeaveOneOut => {
                let left = model.leave_equal_rows_out(rows, observer)?;
                let y = target_matrix(rows.targets, schema.target.outputs());
                let f = left.predictions.values().as_ref();
                // The predictions are those without the row; only rows that own the model are refused.
                let whole = |row: usize| freedom(1.0, left.leverage[row]).map(|_| 1.0);
                let mut sums = Sums::default();
                let ones = vec![1.0; sample.unit.len()];
                let judge = sample.judge(&ones);
                let added = judge.add(&mut sums, y.as_ref(), f, rows.weights, whole);
                added.and_then(|()| judge.judged(sums))
            }
            Validation::Folds(folds) => {
                self.by_folds(folds, rows, schema, settings, sample, observer)?
            }
        };
        Ok(judged.map(|judged| (judged, model)))
    }

    /// How a setting predicts the rows of each fold if it is fitted to the others.
    fn by_folds(
        &self,
        folds: usize,
        rows: Labelled<'_>,
        schema: &Schema,
        settings: &Settings,
        sample: &Sample,
        observer: &mut Observer<'_>,
    ) -> Result<Option<Judged>> {
        let mut sums = Sums::default();
        let ones = vec![1.0; sample.unit.len()];
        let judge = sample.judge(&ones);
        let order = Stream::new(self.seed, Purpose::Folds, 0).permutation(rows.x.nrows());
        for fold in 0..folds {
            let part = |inside: bool| -> Vec<usize> {
                let places = (0..order.len()).filter(|place| (place % folds == fold) != inside);
                places.map(|place| order[place]).collect()
            };
            let (train, test) = (Kept::select(rows, &part(true)), Kept::select(rows, &part(false)));
            let model = settings.clone().fit(rows_with(train.rows(), schema), observer)?;
            let predictions = model.predict(test.rows().x)?;
            let y = target_matrix(test.rows().targets, schema.target.outputs());
            let f = predictions.values().as_ref();
            judge.add(&mut sums, y.as_ref(), f, test.rows().weights, |_| Some(1.0));
        }
        Ok(judge.judged(sums))
    }
}

/// One bar for several fits, whatever they say of themselves; all of them can be interrupted.
fn one_bar<'a>(
    observer: &'a mut Observer<'_>,
    stage: &'static str,
    done: u64,
    total: u64,
) -> impl FnMut(Progress) -> ControlFlow<()> + 'a {
    move |_| match report(observer, stage, done, Some(total)) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

fn rows_with<'a>(rows: Labelled<'a>, schema: &Schema) -> Training<'a> {
    let Labelled { x, targets, weights } = rows;
    Training { x, targets, weights, schema: schema.clone() }
}
