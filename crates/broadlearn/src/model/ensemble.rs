//! Several networks as one model: all are asked and changed, one after another.

use super::{Member, Model};
use crate::error::Result;
use crate::progress::{Observer, Progress};
use faer::Mat;
use std::ops::ControlFlow;

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
        let members = self.each(observer, become_other)?;
        let (calibration, continuation) = (self.calibration.clone(), self.continuation.clone());
        let discriminant = self.discriminant.clone();
        Ok(Self { members, discriminant, calibration, continuation })
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
pub(super) fn naming<'a, 'b>(
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
