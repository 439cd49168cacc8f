//! Several networks as one model: all are fitted, asked and changed, one after another.

use super::{CheckedSettings, Criterion, Member, Model, Regularisation, Training};
use crate::error::Result;
use crate::features::draw::member_seed;
use crate::progress::{Observer, Progress};
use crate::solve::Loss;
use faer::Mat;
use std::ops::ControlFlow;

impl CheckedSettings {
    /// Fits a model. What is left open is chosen for the first member; the others take it over.
    ///
    /// # Errors
    /// Shapes that do not match, values that are not finite, `Interrupted`.
    pub fn fit(&self, training: Training<'_>, observer: &mut Observer<'_>) -> Result<Model> {
        let Training { x, targets, weights, schema } = training;
        let training = || Training { x, targets, weights, schema: schema.clone() };
        let count = self.members;
        let first = self.fit_member(training(), &mut naming(observer, 0, count))?;
        let mut members = vec![first];
        for place in 1..count {
            let settled = members[0].settled(member_seed(self.seed, place));
            let mut member = settled.fit_member(training(), &mut naming(observer, place, count))?;
            // The members' settings differ in the seed alone.
            member.settings = CheckedSettings { seed: settled.seed, ..members[0].settings.clone() };
            members.push(member);
        }
        Ok(Model { members })
    }
}

impl Member {
    /// The settings that leave nothing open, for a member with another seed.
    fn settled(&self, seed: u64) -> CheckedSettings {
        let mut settings = CheckedSettings { seed, ..self.settings.clone() };
        if let Regularisation::Ridge { ridge } = &mut settings.regularisation {
            *ridge = self.report.ridge;
        }
        if let (Criterion::Robust { sigma, .. }, Loss::Robust { sigma: found, .. }) =
            (&mut settings.criterion, self.report.loss)
        {
            *sigma = Some(found);
        }
        settings
    }
}

impl Model {
    /// What every member has to say.
    pub(super) fn each<T>(
        &self,
        observer: &mut Observer<'_>,
        mut ask: impl FnMut(&Member, &mut Observer<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.members.len();
        let members = self.members.iter().enumerate();
        members.map(|(place, member)| ask(member, &mut naming(observer, place, count))).collect()
    }

    /// A model of what every member becomes.
    pub(super) fn map_members(
        &self,
        observer: &mut Observer<'_>,
        become_other: impl FnMut(&Member, &mut Observer<'_>) -> Result<Member>,
    ) -> Result<Self> {
        Ok(Self { members: self.each(observer, become_other)? })
    }

    /// Changes all members, or none if there is an error. A change must leave its member as it was on
    /// error; only a model of several is copied.
    pub(super) fn change<T>(
        &mut self,
        observer: &mut Observer<'_>,
        mut change: impl FnMut(usize, &mut Member, &mut Observer<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if let [member] = self.members.as_mut_slice() {
            return Ok(vec![change(0, member, observer)?]);
        }
        let (mut changed, count) = (self.members.clone(), self.members.len());
        let members = changed.iter_mut().enumerate();
        let outcomes = members
            .map(|(place, member)| change(place, member, &mut naming(observer, place, count)))
            .collect::<Result<_>>()?;
        self.members = changed;
        Ok(outcomes)
    }
}

/// An observer that is told which member is at work, if there are several.
fn naming<'a, 'b>(
    observer: &'a mut Observer<'b>,
    place: usize,
    count: usize,
) -> impl FnMut(Progress) -> ControlFlow<()> + use<'a, 'b> {
    move |progress| {
        let member = (count > 1).then_some((place + 1, count));
        observer(Progress { member, ..progress })
    }
}

/// The mean of the members' outputs, one after another, so that no two are in memory beside the sum. That
/// of one member is its own, to the last bit.
pub(super) struct Mean {
    sum: Mat<f64>,
    count: usize,
}

impl Mean {
    pub(super) fn new() -> Self {
        Self { sum: Mat::new(), count: 0 }
    }

    pub(super) fn add(&mut self, outputs: Mat<f64>) {
        match self.count {
            0 => self.sum = outputs,
            _ => self.sum += outputs,
        }
        self.count += 1;
    }

    pub(super) fn finish(mut self) -> Mat<f64> {
        if self.count > 1 {
            self.sum *= faer::Scale(1.0 / self.count as f64);
        }
        self.sum
    }
}
