//! The passes over an audited table.

use super::finding::{Expected, Finding};
use super::places::Places;
use super::suspect::{Details, EXPLAINED, Suspect};
use super::{AuditArgs, about};
use crate::context::Context;
use crate::fault::Fault;
use broadlearn::data::{Samples, SchemaReader, Targets};
use broadlearn::evaluate::{Audit, Auditor};
use broadlearn::model::{Labelled, LeavingOut, Removals};
use broadlearn::{Error, Model, Observer, Progress, unobserved};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Rows that are read together in a pass: two of the library's blocks.
const BLOCK_ROWS: usize = 4000;

/// Where the rows are: in memory, or in a file that is read again in every pass.
pub(super) enum Rows {
    InMemory(Box<Samples>),
    InPasses,
}

/// A table, and a model that judges it.
pub(super) struct Table<'a> {
    pub(super) model: &'a Model,
    pub(super) rows: Rows,
    pub(super) places: Places,
    pub(super) data: &'a Path,
    pub(super) args: &'a AuditArgs,
    pub(super) context: &'a Context,
}

impl Table<'_> {
    /// Hands all rows to `see`, in order, with the number of those before them.
    fn pass(
        &self,
        stage: &'static str,
        total: Option<u64>,
        mut see: impl FnMut(usize, Labelled<'_>, &mut Observer<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut observer = self.context.observer();
        if let Rows::InMemory(samples) = &self.rows {
            return see(0, samples.as_ref().into(), &mut observer);
        }
        let reader = self.args.table.open_for(self.model, self.data)?;
        let drop = self.args.columns.drop_missing_target;
        let mut reader = SchemaReader::new(reader, self.model.schema(), true, drop)?;
        let mut done = 0;
        reader.for_each_block(BLOCK_ROWS, |block| {
            let progress = Progress { stage, done: done as u64, total, member: None };
            if observer(progress) == ControlFlow::Break(()) {
                return Err(Error::interrupted().into());
            }
            if let Some(targets) = &block.targets {
                let (x, weights) = (block.x.as_ref(), block.weights.as_deref());
                see(done, Labelled { x, targets, weights }, &mut unobserved)?;
            }
            done += block.x.nrows();
            Ok(())
        })
    }

    /// Judges all rows: n L^2 flops, and some numbers a row.
    pub(super) fn audit(&self, leaving: &mut LeavingOut<'_>) -> Result<Finding<'_>, Fault> {
        let mut auditor = Auditor::default();
        let (mut expected, mut given) = (Expected::default(), Vec::new());
        let (is_shown, is_fixed) = (self.args.report.is_some(), self.args.fix);
        self.pass("leaving rows out", None, |_, rows, observer| {
            let left_out = leaving.next_rows(rows, observer).map_err(|e| about(e, self.data))?;
            auditor.add(&left_out, rows.targets)?;
            if is_fixed || is_shown {
                expected.add(&left_out, rows.targets);
            }
            if let (Targets::Values(y), true) = (rows.targets, is_shown) {
                given.extend(y.col(0).iter());
            }
            Ok(())
        })?;
        let (model, places) = (self.model, &self.places);
        Ok(Finding { model, places, audit: auditor.finish()?, expected, given })
    }

    /// What is to be said of the listed rows: one pass to find them, one for what their removal would change.
    pub(super) fn suspects(
        &self,
        leaving: &mut LeavingOut<'_>,
        audit: &Audit,
        listed: &[usize],
    ) -> Result<Vec<Suspect>, Fault> {
        let mut places = listed.to_vec();
        places.sort_unstable();
        let total = Some(audit.scores.len() as u64);
        let first = &listed[..listed.len().min(EXPLAINED)];
        let mut removals = Removals::new(self.model);
        let mut suspects: Vec<Suspect> = Vec::with_capacity(listed.len());
        self.pass("looking at suspects", total, |before, rows, _| {
            let inside = before..before + rows.x.nrows();
            let chosen: Vec<usize> = places
                .iter()
                .filter(|place| inside.contains(place))
                .map(|place| place - before)
                .collect();
            if let Some((left_out, more)) = leaving.next_chosen(rows, &chosen)? {
                let details = Details::new(self.model, rows, &left_out);
                for (place, &row) in chosen.iter().enumerate() {
                    let number = before + row;
                    let explained = audit.suspects[number] || first.contains(&number);
                    suspects.push(details.suspect(number, row, place, audit, explained)?);
                }
                removals.append(more);
            }
            Ok(())
        })?;
        self.pass("removing rows", total, |_, rows, observer| Ok(removals.see(rows.x, observer)?))?;
        for (suspect, effect) in suspects.iter_mut().zip(removals.effects()) {
            suspect.effect = effect;
        }
        let ranks: HashMap<usize, usize> =
            listed.iter().enumerate().map(|(rank, &row)| (row, rank)).collect();
        suspects.sort_by_key(|suspect| ranks.get(&suspect.row).copied());
        Ok(suspects)
    }
}
