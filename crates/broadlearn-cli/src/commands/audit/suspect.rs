//! What is said of a listed row.

use super::finding::Expected;
use super::places::Places;
use crate::fault::Fault;
use broadlearn::Model;
use broadlearn::data::{Encoding, TargetSchema, Targets};
use broadlearn::evaluate::Audit;
use broadlearn::faer::Mat;
use broadlearn::model::{Labelled, LeftOut};
use serde_json::json;

/// Rows that are listed for people, and whose columns are looked at even if they are no suspects. Of the others nobody asks what speaks against them, and
/// every answer takes a prediction for each column.
pub(super) const EXPLAINED: usize = 20;

/// A listed row.
pub(super) struct Suspect {
    pub(super) row: usize,
    pub(super) given: Vec<String>,
    pub(super) expected: Vec<String>,
    /// Of the expected class.
    pub(super) probability: Option<f64>,
    pub(super) score: f64,
    pub(super) weight: Option<f64>,
    pub(super) effect: f64,
    pub(super) suspect: bool,
    /// Columns that speak most for what is expected, and by how much, in units of the outputs.
    pub(super) columns: Vec<(String, f64)>,
}

impl Suspect {
    pub(super) fn to_json(&self, places: &Places) -> serde_json::Value {
        let plain = |cells: &[String]| -> serde_json::Value {
            let value = |cell: &String| match cell.parse::<f64>() {
                Ok(number) if number.is_finite() => json!(number),
                _ => json!(cell),
            };
            match cells {
                [cell] => value(cell),
                cells => cells.iter().map(value).collect(),
            }
        };
        json!({
            "row": places.number(self.row),
            "given": plain(&self.given),
            "expected": plain(&self.expected),
            "probability": self.probability,
            "score": self.score,
            "weight": self.weight,
            "removal_effect": self.effect,
            "suspect": self.suspect,
            "columns": self.columns.iter()
                .map(|(name, by)| json!({"column": name, "effect": by})).collect::<Vec<_>>(),
        })
    }
}

/// Some rows, some of which are looked at closely.
pub(super) struct Details<'a> {
    model: &'a Model,
    rows: Labelled<'a>,
    /// Of these only.
    left_out: &'a LeftOut,
    expected: Expected,
}

impl<'a> Details<'a> {
    pub(super) fn new(model: &'a Model, rows: Labelled<'a>, left_out: &'a LeftOut) -> Self {
        let mut expected = Expected::default();
        expected.add(left_out, rows.targets);
        Self { model, rows, left_out, expected }
    }

    /// What is to be said of a row: its number in the table, among these rows, and among those that are looked at. Which
    /// columns speak against it is found out only where that is `explained`.
    pub(super) fn suspect(
        &self,
        number: usize,
        row: usize,
        place: usize,
        audit: &Audit,
        explained: bool,
    ) -> Result<Suspect, Fault> {
        let predictions = &self.left_out.predictions;
        let user = self.rows.weights.map_or(1.0, |weights| weights[row]);
        let class = self.expected.classes.get(place).copied();
        Ok(Suspect {
            row: number,
            given: self.given(row),
            expected: self.expected.cells(place, &self.model.schema().target),
            probability: class.map(|class| predictions.probabilities()[(place, class as usize)]),
            score: audit.scores[number],
            weight: self.left_out.weights[place].filter(|_| user > 0.0).map(|weight| weight / user),
            effect: 0.0,
            suspect: audit.suspects[number],
            columns: if explained { self.columns(row, class)? } else { Vec::new() },
        })
    }

    fn given(&self, row: usize) -> Vec<String> {
        match (self.rows.targets, &self.model.schema().target) {
            (Targets::Values(y), _) => (0..y.ncols()).map(|j| y[(row, j)].to_string()).collect(),
            (Targets::Classes(codes), TargetSchema::Classification { classes, .. }) => {
                vec![classes[codes[row] as usize].clone()]
            }
            _ => Vec::new(),
        }
    }

    /// The three columns that change the prediction most when a typical value takes their place: in
    /// favour of the expected class against the given one, or of the distance between the two values.
    fn columns(&self, row: usize, expected: Option<u32>) -> Result<Vec<(String, f64)>, Fault> {
        let schema = self.model.schema();
        let x: Vec<f64> = self.rows.x.row(row).iter().copied().collect();
        let mut variants = Mat::from_fn(schema.inputs.len() + 1, x.len(), |_, j| x[j]);
        let mut start = 0;
        for (variant, input) in schema.inputs.iter().enumerate() {
            let typical = match input.encoding {
                Encoding::Number { fill, .. } => fill,
                Encoding::Category { .. } => 0.0,
            };
            for j in start..start + input.encoding.width() {
                variants[(variant + 1, j)] = if j == start { typical } else { 0.0 };
            }
            start += input.encoding.width();
        }
        let outputs = self.model.predict(&variants)?.values().clone();
        let speaks = |variant: usize| match self.rows.targets {
            Targets::Values(y) => {
                let sign = (outputs[(0, 0)] - y[(row, 0)]).signum();
                sign * outputs[(variant, 0)]
            }
            Targets::Classes(codes) => {
                let expected = expected.unwrap_or(codes[row]) as usize;
                outputs[(variant, expected)] - outputs[(variant, codes[row] as usize)]
            }
        };
        let mut effects: Vec<(String, f64)> = schema
            .inputs
            .iter()
            .enumerate()
            .map(|(place, input)| (input.name.clone(), speaks(0) - speaks(place + 1)))
            .collect();
        effects.sort_by(|a, b| b.1.total_cmp(&a.1));
        effects.retain(|(_, by)| *by > 0.0);
        effects.truncate(3);
        Ok(effects)
    }
}
