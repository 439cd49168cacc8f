//! Progress and cancellation by callback: the library prints nothing.

use crate::error::{Error, Result};
use std::ops::ControlFlow;

/// How far a piece of work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, in one or two words.
    pub stage: &'static str,
    /// Steps done so far.
    pub done: u64,
    /// Steps in all, if that is known.
    pub total: Option<u64>,
    /// The member of an ensemble that is at work, counted from 1, and how many there are.
    pub member: Option<(usize, usize)>,
}

/// A callback that is told of progress and may ask to stop by `ControlFlow::Break(())`.
pub type Observer<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// Reports a step; an error of category `Interrupted` if the observer asked to stop.
pub(crate) fn report(
    observer: &mut Observer<'_>,
    stage: &'static str,
    done: u64,
    total: Option<u64>,
) -> Result<()> {
    match observer(Progress { stage, done, total, member: None }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::interrupted()),
    }
}

/// An observer that takes no notice and never asks to stop.
pub fn unobserved(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
