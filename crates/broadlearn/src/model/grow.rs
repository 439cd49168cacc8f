//! More nodes: new columns of U, with the rows that the model has learnt at hand.

use super::distinct::Distinct;
use super::rows::{Kept, Labelled};
use super::{Member, Model};
use crate::error::{Error, Result};
use crate::features::build::extend;
use crate::features::{Growth, Network};
use crate::increment::Knowledge;
use crate::increment::ledger::fingerprints;
use crate::linalg::{BLOCK_ROWS, parallelism, product, row_blocks, scale_rows, squared_norm};
use crate::progress::{Observer, report};
use faer::{Accum, Mat, MatRef};

impl Model {
    /// A model with more nodes. Only the new columns of U meet all others: 2 N m (L + m) flops for m
    /// nodes beside L, then m L^2 for the factor. `rows` must be those that the model has learnt; they
    /// keep their weights, so that the result is that of a fit of the larger network with these
    /// weights. The new nodes are those that the larger network would have had from the beginning
    /// ([`Settings::growth`](super::Settings::growth)).
    ///
    /// # Errors
    /// Other rows than those of the model, no nodes to add, a compact model, `Interrupted`.
    pub fn grow(
        &self,
        growth: Growth,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let grown =
            self.map_members(observer, |member, observer| member.grow(growth, rows, observer))?;
        // Rows that are off the record cannot be left out: what was known of errors has to do.
        match grown.first().knowledge.as_ref().is_some_and(Knowledge::is_complete) {
            true => grown.calibrated(rows, observer),
            false => Ok(grown),
        }
    }
}

impl Member {
    fn grow(
        &self,
        growth: Growth,
        rows: Labelled<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let knowledge = self.updatable()?;
        let network = self.settings.network.clone().grown(growth)?;
        let inputs = self.map.inputs();
        if network.width(inputs) > Network::MAX_WIDTH {
            return Err(Error::setting("nodes", network.width(inputs))
                .expected(format!("at most {} nodes in all", Network::MAX_WIDTH)));
        }
        network.check_memory(inputs)?;
        rows.check(&self.schema)?;
        let kept = Kept::new(rows);
        let rows = kept.rows();
        let weights = self.weights_of_all(knowledge, rows)?;

        report(observer, "building the network", 0, None)?;
        // As a fit builds it.
        let distinct = Distinct::of(rows);
        let Labelled { x, weights: user, .. } = distinct.rows();
        let map = extend(&self.map, &network, &self.scaled(x), user, self.settings.seed)?;
        let scaled = self.scaled(rows.x);
        let (old, all) = (self.map.width(), map.width());
        let new = all - old;

        let y = self.scaled_targets(rows);
        let mut r = Mat::zeros(new, all);
        // Rows that are all on record are the right ones; others show it by P of the old nodes.
        let proven = knowledge.is_complete();
        let first = if proven { old } else { 0 };
        let mut p = Mat::zeros(all - first, y.ncols());
        let mut buffer = Mat::zeros(BLOCK_ROWS.min(rows.x.nrows()), all);
        for range in row_blocks(rows.x.nrows()) {
            let total = rows.x.nrows() as u64;
            report(observer, "adding up columns", range.start as u64, Some(total))?;
            let root: Vec<f64> =
                weights[range.clone()].iter().map(|weight| weight.sqrt()).collect();
            let mut y = y.subrows(range.start, range.len()).to_owned();
            let mut u = buffer.as_mut().subrows_mut(0, range.len());
            map.apply(scaled.block(range).as_ref(), u.as_mut());
            if root.iter().any(|root| *root != 1.0) {
                scale_rows(u.as_mut(), &root);
                scale_rows(y.as_mut(), &root);
            }
            let u = u.as_ref();
            let columns = u.subcols(old, new).transpose();
            product(r.as_mut(), Accum::Add, columns, u, parallelism());
            let columns = u.subcols(first, all - first).transpose();
            product(p.as_mut(), Accum::Add, columns, y.as_ref(), parallelism());
        }
        if !proven {
            check_same_rows(knowledge, p.as_ref())?;
        }

        report(observer, "solving", 0, None)?;
        let mut knowledge = knowledge.border(r.as_ref(), p.subrows(old - first, new))?;
        let mut settings = self.settings.clone();
        settings.network = network;
        Ok(Self {
            w: knowledge.solve()?,
            knowledge: Some(knowledge),
            map,
            settings,
            schema: self.schema.clone(),
            input_scaler: self.input_scaler.clone(),
            target_scaler: self.target_scaler.clone(),
            report: self.report.clone(),
            rows: self.rows,
        })
    }

    /// The weights on record of these rows, which must be all that the model has learnt.
    pub(super) fn weights_of_all(
        &self,
        knowledge: &Knowledge,
        rows: Labelled<'_>,
    ) -> Result<Vec<f64>> {
        let (found, expected) = (rows.x.nrows() as u64, knowledge.equations().rows());
        let prints = fingerprints(rows.x, rows.targets);
        let (weights, _) = self.recorded_weights(knowledge, rows, &prints)?;
        if found != expected {
            return Err(Error::data(format!("{found} rows")).expected(format!(
                "all {expected} rows that the model has learnt, and no others"
            )));
        }
        Ok(weights)
    }
}

/// P of the old nodes, summed up once more, shows whether these are the model's rows: an incomplete
/// record does not.
pub(super) fn check_same_rows(knowledge: &Knowledge, p: MatRef<'_, f64>) -> Result<()> {
    let known = knowledge.equations().p();
    let difference = p.subrows(0, known.nrows()) - known;
    if squared_norm(difference.as_ref()) <= 1e-12 * squared_norm(known) {
        return Ok(());
    }
    Err(Error::data("rows that do not add up to what the model has learnt")
        .expected("all rows that the model has learnt, with the same values and weights"))
}
