//! What was found out about a table, in words, as a table and as a page.

use super::places::Places;
use super::suspect::Suspect;
use super::{AuditArgs, MARK};
use crate::commands::predict::quoted;
use crate::fault::Fault;
use crate::format;
use crate::output::Output;
use broadlearn::Model;
use broadlearn::data::{Kind, TargetSchema, Targets};
use broadlearn::evaluate::Audit;
use broadlearn::model::LeftOut;
use std::path::Path;

/// What was found out about a table.
pub(super) struct Finding<'a> {
    pub(super) model: &'a Model,
    pub(super) places: &'a Places,
    pub(super) audit: Audit,
    /// Only for --fix and --report.
    pub(super) expected: Expected,
    /// The first target of every row, only for --report.
    pub(super) given: Vec<f64>,
}

/// What the model expects of every row.
#[derive(Default)]
pub(super) struct Expected {
    /// All values of a row together.
    pub(super) values: Vec<f64>,
    pub(super) classes: Vec<u32>,
}

impl Expected {
    pub(super) fn add(&mut self, left_out: &LeftOut, targets: &Targets) {
        match targets {
            Targets::Values(_) => {
                let values = left_out.predictions.values();
                values.row_iter().for_each(|row| self.values.extend(row.iter()));
            }
            Targets::Classes(_) => self.classes.extend(left_out.predictions.classes()),
        }
    }

    /// The cells of a row.
    pub(super) fn cells(&self, row: usize, target: &TargetSchema) -> Vec<String> {
        match target {
            TargetSchema::Regression { names } => {
                let values = &self.values[row * names.len()..][..names.len()];
                values.iter().map(f64::to_string).collect()
            }
            TargetSchema::Classification { classes, .. } => {
                vec![classes[self.classes[row] as usize].clone()]
            }
        }
    }
}

impl Finding<'_> {
    pub(super) fn describe(&self, suspects: &[Suspect]) -> String {
        let share = self.audit.contamination;
        let count = self.audit.suspects.iter().filter(|suspect| **suspect).count() as u64;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut text = format!(
            "{} of {} suspicious; wrong targets: about {} ({} to {})\n\n",
            format::plural(count, "row"),
            format::count(self.audit.scores.len() as u64),
            percent(share.estimate),
            percent(share.low),
            percent(share.high)
        );
        text.push_str(&format::table(&self.rows(suspects)));
        text
    }

    fn rows(&self, suspects: &[Suspect]) -> Vec<Vec<String>> {
        let target = &self.model.schema().target;
        let classes = matches!(target, TargetSchema::Classification { .. });
        let mut head = vec!["row", "", "given", "expected"];
        if classes {
            head.push("probability");
        }
        head.extend(["score", "weight", "effect", "because of"]);
        let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
        let short = |cells: &[String]| {
            let cell = |cell: &String| match cell.parse::<f64>() {
                Ok(number) if !classes => format::number(number),
                _ => cell.clone(),
            };
            cells.iter().map(cell).collect::<Vec<_>>().join(" ")
        };
        for suspect in suspects {
            let mut row = vec![
                self.places.number(suspect.row).to_string(),
                if suspect.suspect { "*" } else { "" }.into(),
                short(&suspect.given),
                short(&suspect.expected),
            ];
            row.extend(suspect.probability.map(|p| format!("{p:.2}")));
            row.push(format::number(suspect.score));
            row.push(suspect.weight.map_or("-".into(), |weight| format!("{weight:.2}")));
            row.push(match suspect.effect {
                effect if effect < 1e-9 => "0".into(),
                effect => format!("{effect:.1e}"),
            });
            let names: Vec<&str> = suspect.columns.iter().map(|(name, _)| name.as_str()).collect();
            row.push(names.join(", "));
            rows.push(row);
        }
        rows
    }

    /// The audited table with a column `suspect`, or without the suspects, or with their targets as
    /// expected.
    pub(super) fn write_table(
        &self,
        path: &Path,
        data: &Path,
        args: &AuditArgs,
    ) -> Result<(), Fault> {
        let mut reader = args.table.open(data)?;
        let names = reader.columns().to_vec();
        let selection: Vec<(usize, Kind)> = (0..names.len()).map(|c| (c, Kind::Text)).collect();
        reader.select(&selection)?;
        let targets: Vec<Option<usize>> = names
            .iter()
            .map(|name| self.model.schema().target.names().iter().position(|t| t == name))
            .collect();
        let mut out = Output::open(Some(path))?;
        // Earlier marks give way to these.
        let kept = |name: &String| !args.marks() || name != MARK;
        let mut head: Vec<String> =
            names.iter().filter(|name| kept(name)).map(|name| quoted(name)).collect();
        if args.marks() {
            head.push(MARK.into());
        }
        out.write(format!("{}\n", head.join(",")).as_bytes())?;
        while let Some(batch) = reader.next_batch(8192)? {
            for place in 0..batch.rows() {
                // A row without a target stays, unmarked.
                let row = self.places.audited((batch.first_row - 1) as usize + place);
                let suspect = row.and_then(|row| self.audit.suspects.get(row).copied());
                let row = row.filter(|_| suspect == Some(true));
                if args.drop && row.is_some() {
                    continue;
                }
                let mut cells: Vec<String> = Vec::with_capacity(names.len() + 1);
                let columns = names.iter().zip(batch.columns.iter().zip(&targets));
                for (_, (column, target)) in columns.filter(|(name, _)| kept(name)) {
                    let cell = column.text(place).unwrap_or_default();
                    cells.push(match (target, row.filter(|_| args.fix)) {
                        (Some(target), Some(row)) => {
                            quoted(&self.expected.cells(row, &self.model.schema().target)[*target])
                        }
                        _ if cell.is_empty() => String::new(),
                        _ => quoted(cell),
                    });
                }
                if args.marks() {
                    cells.push(
                        suspect.map_or(String::new(), |suspect| u8::from(suspect).to_string()),
                    );
                }
                out.write(format!("{}\n", cells.join(",")).as_bytes())?;
            }
        }
        out.finish()
    }

    pub(super) fn page(&self, data: &Path, suspects: &[Suspect]) -> String {
        use broadlearn_report::{Card, Chart, Page, Series, Table};
        let share = self.audit.contamination;
        let count = self.audit.suspects.iter().filter(|suspect| **suspect).count() as u64;
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut page = Page::new(format!("Audit of {}", data.display()))
            .lead(
                "Every row was predicted by a model that has learnt all rows but this one, and that \
                 gives rows with wild targets hardly any weight.",
            )
            .cards(vec![
                Card::new("rows", format::count(self.audit.scores.len() as u64)),
                Card::new("suspects", format::count(count)),
                Card::new("wrong targets, about", percent(share.estimate)),
                Card::new("between", format!("{:.1} and {:.1} %", 100.0 * share.low, 100.0 * share.high)),
            ]);
        let points = |suspect: bool| -> Vec<(f64, f64)> {
            (0..self.audit.scores.len())
                .filter(|&row| self.audit.suspects[row] == suspect)
                .map(|row| (self.places.number(row) as f64, self.audit.scores[row]))
                .collect()
        };
        let chart = Chart::new("Scores")
            .x_label("row")
            .y_label("score")
            .series(Series::points("rows", points(false)))
            .series(Series::points("suspects", points(true)));
        page = page.chart(chart, "The residual of each row without itself.");
        if !self.given.is_empty() && self.model.weights().ncols() == 1 {
            let pairs = |suspect: bool| -> Vec<(f64, f64)> {
                (0..self.given.len())
                    .filter(|&row| self.audit.suspects[row] == suspect)
                    .map(|row| (self.expected.values[row], self.given[row]))
                    .collect()
            };
            let chart = Chart::new("Given and expected")
                .x_label("expected")
                .y_label("given")
                .series(Series::points("rows", pairs(false)))
                .series(Series::points("suspects", pairs(true)));
            page = page.chart(chart, "Suspects lie far from the diagonal.");
        }
        let rows = self.rows(suspects);
        if let Some((head, body)) = rows.split_first() {
            let mut table = Table::new(head.clone())
                .caption("Most suspicious first; * marks those whose target is taken to be wrong.");
            for row in body {
                table = table.row(row.clone());
            }
            page = page.section("Most suspicious rows").table(table);
        }
        page.footer("Made by broadlearn.").to_html()
    }
}
