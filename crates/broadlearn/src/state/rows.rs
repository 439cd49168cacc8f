//! U for the training rows, block by block.

use crate::error::Result;
use crate::features::FeatureMap;
use crate::linalg::{row_blocks, select_rows};
use crate::preprocess::ScaledRows;
use faer::{Mat, MatMut, MatRef, Par};
use std::ops::Range;

/// U is kept in memory up to this size; a larger one is computed anew in every pass, which costs
/// 2 N L_z L_h flops against the N L^2 of the product that follows.
const WHOLE_BYTES: usize = 256 << 20;

/// The state U of the training rows.
pub(crate) enum StateRows<'a> {
    /// In memory.
    Whole(Mat<f64>),
    /// Computed when it is needed.
    Streamed { map: &'a FeatureMap, inputs: ScaledRows<'a> },
}

impl<'a> StateRows<'a> {
    pub(crate) fn new(map: &'a FeatureMap, inputs: ScaledRows<'a>) -> Self {
        let bytes = inputs.len().saturating_mul(map.width()).saturating_mul(size_of::<f64>());
        if bytes > WHOLE_BYTES {
            return Self::Streamed { map, inputs };
        }
        let mut u = Mat::zeros(inputs.len(), map.width());
        for rows in row_blocks(inputs.len()) {
            let block = u.as_mut().subrows_mut(rows.start, rows.len());
            map.apply(inputs.block(rows).as_ref(), block);
        }
        Self::Whole(u)
    }

    /// The number of rows N.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(u) => u.nrows(),
            Self::Streamed { inputs, .. } => inputs.len(),
        }
    }

    /// The number of nodes L.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Whole(u) => u.ncols(),
            Self::Streamed { map, .. } => map.width(),
        }
    }

    /// The number of inputs that are kept in memory for every row.
    pub(crate) fn inputs(&self) -> usize {
        match self {
            Self::Whole(u) => u.ncols(),
            Self::Streamed { inputs, .. } => inputs.columns(),
        }
    }

    /// U for the chosen rows only.
    pub(crate) fn select(&self, rows: &[usize]) -> Mat<f64> {
        match self {
            Self::Whole(u) => select_rows(u.as_ref(), rows),
            Self::Streamed { map, inputs } => map.state(inputs.select(rows).as_ref()),
        }
    }

    /// Writes U for the chosen rows into a column-major matrix, on one thread.
    pub(crate) fn select_into(&self, rows: &[usize], mut into: MatMut<'_, f64>) {
        match self {
            Self::Whole(u) => into.copy_from(select_rows(u.as_ref(), rows)),
            Self::Streamed { map, inputs } => {
                map.apply_on(inputs.select(rows).as_ref(), into, Par::Seq);
            }
        }
    }

    /// Visits U block by block, in order.
    pub(crate) fn visit(
        &self,
        mut visitor: impl FnMut(Range<usize>, MatRef<'_, f64>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Whole(u) => {
                for rows in row_blocks(u.nrows()) {
                    let block = u.subrows(rows.start, rows.len());
                    visitor(rows, block)?;
                }
                Ok(())
            }
            Self::Streamed { map, inputs } => map.visit(inputs, visitor),
        }
    }
}
