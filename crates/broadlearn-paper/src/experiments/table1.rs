//! Table I: the sets.

use super::Experiment;
use crate::Plan;
use crate::engine::Done;
use crate::report::{Grid, Part};
use crate::sets::ALL;
use broadlearn::Result;
use broadlearn::data::{Encoding, Schema, TargetSchema};
use broadlearn::faer::Mat;

pub(crate) static EXPERIMENT: Experiment = Experiment {
    name: "table1",
    title: "Table I: the data sets",
    runs: |plan| plan.tables(ALL).map(|_| Vec::new()),
    report,
};

fn report(plan: &Plan, _: &[Done]) -> Result<Vec<Part>> {
    let mut grid = Grid::new(
        "Paper / file. The paper's heading says fourteen sets; its table has thirteen.",
        &["set", "classes", "inputs", "rows", "training", "test", "cells missing", "agrees"],
    );
    for table in plan.tables(ALL)? {
        let (set, data) = (table.set, &table.data);
        let all: Vec<usize> = (0..data.len()).collect();
        let schema = data.schema(&all)?;
        let classes = match data.target() {
            TargetSchema::Classification { classes, .. } => Some(classes.len()),
            TargetSchema::Regression { .. } => None,
        };
        let shown = |classes: Option<usize>| classes.map_or("-".into(), |count| count.to_string());
        let inputs = schema.inputs.len();
        let agrees = inputs == set.inputs && classes == set.classes;
        let missing = missing_cells(&schema, &data.samples(&schema, &all)?.x);
        grid.row([
            set.name.to_owned(),
            format!("{} / {}", shown(set.classes), shown(classes)),
            format!("{} / {inputs}", set.inputs),
            format!("{} / {}", set.rows.0 + set.rows.1, data.len()),
            set.rows.0.to_string(),
            set.rows.1.to_string(),
            missing.to_string(),
            if agrees { "yes" } else { "no" }.to_owned(),
        ]);
    }
    Ok(vec![Part::Table(grid)])
}

/// The cells that lack a value, of which the columns beside them tell.
fn missing_cells(schema: &Schema, x: &Mat<f64>) -> usize {
    let (mut column, mut cells) = (0, 0.0);
    for input in &schema.inputs {
        if let Encoding::Number { indicator: true, .. } = input.encoding {
            cells += x.col(column + 1).iter().sum::<f64>();
        }
        column += input.encoding.width();
    }
    cells as usize
}
