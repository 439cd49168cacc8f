//! One file per experiment: what the paper says, the runs, and what is made of them.

mod comparison;
mod fig2;
mod fig3;
mod fig4;
mod mnist;
mod table1;
mod table2;
mod table3;
mod table4;
mod table5;
mod table6;
mod table7;
mod table8;

use crate::Plan;
use crate::engine::{Done, Run};
use crate::report::Part;
use crate::sets::{self, Table};
use broadlearn::Result;
use comparison::Row;
use std::sync::Arc;

/// A table or a figure of the paper.
pub(crate) struct Experiment {
    /// What the command calls it.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// The runs that it takes; those on record are not done again.
    pub(crate) runs: fn(&Plan) -> Result<Vec<Run>>,
    /// What is made of them.
    pub(crate) report: fn(&Plan, &[Done]) -> Result<Vec<Part>>,
}

/// All of them, in the order of the paper.
pub(crate) static ALL: &[&Experiment] = &[
    &table1::EXPERIMENT,
    &table2::EXPERIMENT,
    &table3::EXPERIMENT,
    &fig2::EXPERIMENT,
    &fig3::EXPERIMENT,
    &fig4::EXPERIMENT,
    &table4::EXPERIMENT,
    &table5::EXPERIMENT,
    &table6::EXPERIMENT,
    &table7::EXPERIMENT,
    &table8::EXPERIMENT,
];

/// "20 seeds".
pub(crate) fn seeds_shown(seeds: u64) -> String {
    format!("{seeds} seed{}", if seeds == 1 { "" } else { "s" })
}

/// The sets of Tables II and III as the paper has them, with its networks: those that are there.
pub(crate) fn main_rows(plan: &Plan) -> Result<Vec<(&'static Row, Arc<Table>)>> {
    let rows = || table2::ROWS.iter().chain(&table3::ROWS);
    let tables = plan.tables(sets::ALL)?;
    let row = |table: Arc<Table>| {
        rows().find(|row| row.set.name == table.set.name).map(|row| (row, table))
    };
    Ok(tables.into_iter().filter_map(row).collect())
}
