//! What an experiment has to say: as text, as a table of its runs, as pictures, as part of a page.

use crate::engine::Done;
use broadlearn_report::{Chart, Page, Table};
use serde_json::{Value, json};

/// What came of an experiment.
pub struct Section {
    /// Its name, such as `table2`.
    pub name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) parts: Vec<Part>,
    pub(crate) runs: Vec<Done>,
}

/// A piece of a section.
pub(crate) enum Part {
    Text(String),
    List(Vec<String>),
    Table(Grid),
    /// A picture, the name of its file, and what it shows.
    Picture {
        file: &'static str,
        chart: Box<Chart>,
        caption: String,
    },
}

impl Part {
    pub(crate) fn picture(file: &'static str, chart: Chart, caption: impl Into<String>) -> Self {
        Self::Picture { file, chart: Box::new(chart), caption: caption.into() }
    }
}

/// A table of texts.
pub(crate) struct Grid {
    pub(crate) caption: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    pub(crate) fn new(caption: impl Into<String>, header: &[&str]) -> Self {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Self { caption: caption.into(), header, rows: Vec::new() }
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Aligned columns, so that it can be read as it is as well as be set.
    fn markdown(&self) -> String {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.header.len()).map(|column| width(column).unwrap_or(0).max(3)).collect();
        let line = |cells: &[String]| {
            let cell = |(column, width): (usize, &usize)| {
                let text = cells.get(column).map_or("", String::as_str).replace('|', "\\|");
                format!(" {text:<width$} |")
            };
            format!("|{}\n", widths.iter().enumerate().map(cell).collect::<String>())
        };
        let rule: String =
            widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}\n\n{}|{rule}\n{rows}", self.caption, line(&self.header))
    }

    fn json(&self) -> Value {
        let row = |row: &Vec<String>| -> Value {
            let cells = self.header.iter().zip(row);
            cells
                .map(|(name, cell)| (name.clone(), json!(cell)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        json!({ "caption": self.caption, "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

impl Section {
    /// The section as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n", self.title);
        for part in &self.parts {
            text.push('\n');
            match part {
                Part::Text(paragraph) => text.push_str(&format!("{paragraph}\n")),
                Part::List(items) => {
                    items.iter().for_each(|item| text.push_str(&format!("- {item}\n")));
                }
                Part::Table(grid) => text.push_str(&grid.markdown()),
                Part::Picture { file, caption, .. } => {
                    text.push_str(&format!("![{caption}]({file}.svg)\n"));
                }
            }
        }
        text
    }

    /// Every figure of every run, one a line (CSV).
    pub fn csv(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.runs.iter().flat_map(|run| &run.labels) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let quoted = |cell: &str| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.to_owned(),
        };
        let mut text = String::from("experiment,");
        names.iter().for_each(|name| text.push_str(&format!("{name},")));
        text.push_str("measure,step,value\n");
        for Done { labels, values } in &self.runs {
            let label = |name: &&str| {
                let found = labels.iter().find(|(label, _)| label == name);
                quoted(found.map_or("", |(_, value)| value))
            };
            let cells: Vec<String> = names.iter().map(label).collect();
            for (measure, figures) in values.iter() {
                for (step, figure) in figures.iter().enumerate() {
                    let figure = figure.map_or(String::new(), |figure| figure.to_string());
                    let start =
                        if cells.is_empty() { String::new() } else { cells.join(",") + "," };
                    text.push_str(&format!("{},{start}{measure},{step},{figure}\n", self.name));
                }
            }
        }
        text
    }

    /// The tables, and the notes, as one JSON object.
    pub fn json(&self) -> Value {
        let tables: Vec<Value> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Table(grid) => Some(grid.json()),
                _ => None,
            })
            .collect();
        let notes: Vec<&String> = self
            .parts
            .iter()
            .flat_map(|part| match part {
                Part::Text(note) => std::slice::from_ref(note),
                Part::List(items) => items.as_slice(),
                _ => &[],
            })
            .collect();
        json!({ "title": self.title, "tables": tables, "notes": notes, "n_runs": self.runs.len() })
    }

    /// Names of files, and pictures as SVG.
    pub fn pictures(&self) -> Vec<(String, String)> {
        let picture = |part: &Part| match part {
            Part::Picture { file, chart, .. } => Some((format!("{file}.svg"), chart.to_svg())),
            _ => None,
        };
        self.parts.iter().filter_map(picture).collect()
    }

    fn add_to(&self, page: Page) -> Page {
        let page = page.section(self.title);
        self.parts.iter().fold(page, |page, part| match part {
            Part::Text(text) => page.paragraph(text),
            Part::List(items) => page.list(items),
            Part::Table(grid) => {
                let table = Table::new(&grid.header).caption(&grid.caption);
                page.table(grid.rows.iter().fold(table, |table, row| table.row(row)))
            }
            Part::Picture { chart, caption, .. } => page.chart((**chart).clone(), caption),
        })
    }
}

/// All sections on one page that needs nothing else.
pub fn page(sections: &[Section], mode: &str, missing: &[String]) -> String {
    let lead = "The experiments of \"Broad Learning System Based on Maximum Correntropy Criterion\" \
                (Zheng, Chen, Wang, Wang), run with broadlearn.";
    let mut page = Page::new("The C-BLS paper, done again").lead(lead).paragraph(mode);
    if !missing.is_empty() {
        page = page.note("Some data are missing. What needs them was left out:").list(missing);
    }
    let page = sections.iter().fold(page, |page, section| section.add_to(page));
    page.footer("Made by broadlearn paper.").to_html()
}
