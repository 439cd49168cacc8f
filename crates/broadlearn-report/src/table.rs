//! Tables for pages.

use crate::escape::escape;

/// Which value of a column is the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// The smallest, as for errors and times.
    Smallest,
    /// The largest, as for accuracies.
    Largest,
}

/// A table of a [`Page`](crate::Page).
///
/// Columns of numbers are recognised and set flush right; numbers may have a percent sign, a unit
/// after a space, or a spread after `±`. Rows may be shorter or longer than the header.
#[derive(Clone, Debug)]
pub struct Table {
    caption: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    best: Vec<(usize, Best)>,
    marked: Vec<(usize, usize)>,
}

impl Table {
    /// A table without rows.
    pub fn new<T: Into<String>>(header: impl IntoIterator<Item = T>) -> Table {
        let header = header.into_iter().map(Into::into).collect();
        let (rows, best, marked) = (Vec::new(), Vec::new(), Vec::new());
        Table { caption: String::new(), header, rows, best, marked }
    }

    /// Adds a row of cells.
    pub fn row<T: Into<String>>(mut self, cells: impl IntoIterator<Item = T>) -> Table {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Says above the table what it shows.
    pub fn caption(mut self, text: impl Into<String>) -> Table {
        self.caption = text.into();
        self
    }

    /// Highlights the best value of a column, and those equal to it.
    pub fn best(mut self, column: usize, best: Best) -> Table {
        self.best.push((column, best));
        self
    }

    /// Highlights one cell; the first row under the header is row zero.
    pub fn highlight(mut self, row: usize, column: usize) -> Table {
        self.marked.push((row, column));
        self
    }

    pub(crate) fn to_html(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.header.len());
        let numeric: Vec<bool> = (0..columns).map(|c| self.is_numeric(c)).collect();
        let best: Vec<Option<f64>> = (0..columns).map(|c| self.best_of(c)).collect();
        let class = |c: usize| if numeric[c] { " class=\"num\"" } else { "" };

        // A table wider than the screen moves within its frame, which the keyboard can reach.
        // The caption stays outside, where it wraps instead of moving along.
        let mut out = String::from("<div class=\"table\">\n");
        let caption = escape(&self.caption);
        if !caption.is_empty() {
            out += &format!("<p class=\"caption\">{caption}</p>\n");
        }
        let label = if caption.is_empty() { "Table" } else { &caption };
        out += &format!(
            "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table>\n"
        );
        out += "<thead><tr>";
        for c in 0..columns {
            let name = self.header.get(c).map_or("", String::as_str);
            out += &format!("<th scope=\"col\"{}>{}</th>", class(c), escape(name));
        }
        out += "</tr></thead>\n<tbody>\n";
        for (r, row) in self.rows.iter().enumerate() {
            out += "<tr>";
            for c in 0..columns {
                let cell = row.get(c).map_or("", String::as_str);
                let is_best = best[c].is_some() && leading_number(cell) == best[c];
                out += &if is_best || self.marked.contains(&(r, c)) {
                    let class = if numeric[c] { "num best" } else { "best" };
                    format!("<td class=\"{class}\"><strong>{}</strong></td>", escape(cell))
                } else {
                    format!("<td{}>{}</td>", class(c), escape(cell))
                };
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n</div>\n"
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |row| row.get(column)).map(String::as_str)
    }

    fn is_numeric(&self, column: usize) -> bool {
        let blank = |cell: &str| matches!(cell.trim(), "" | "-" | "–" | "—" | "n/a" | "NaN");
        self.cells(column).any(|cell| leading_number(cell).is_some())
            && self.cells(column).all(|cell| blank(cell) || leading_number(cell).is_some())
    }

    fn best_of(&self, column: usize) -> Option<f64> {
        let (_, best) = self.best.iter().find(|(c, _)| *c == column)?;
        let pick = if *best == Best::Smallest { f64::min } else { f64::max };
        self.cells(column).filter_map(leading_number).reduce(pick)
    }
}

/// The number a cell starts with, in the ways people and [`number`](crate::number) write it.
fn leading_number(cell: &str) -> Option<f64> {
    let word = cell.trim().replace('−', "-").replace(['\u{2009}', '\u{202f}', ','], "");
    let word = word.split([' ', '±', '\u{a0}']).next()?.trim_end_matches('%');
    let value = match word.split_once("×10") {
        None => word.parse::<f64>().ok()?,
        Some((mantissa, power)) => {
            let lowered: String = power.chars().map(lower).collect();
            format!("{mantissa}e{lowered}").parse::<f64>().ok()?
        }
    };
    value.is_finite().then_some(value)
}

fn lower(raised: char) -> char {
    match raised {
        '⁻' => '-',
        '¹' => '1',
        '²' => '2',
        '³' => '3',
        c => (c as u32).checked_sub(0x2070).and_then(|d| char::from_digit(d, 10)).unwrap_or(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_cells() {
        for (cell, value) in [
            ("0.12", Some(0.12)),
            ("−3 ms", Some(-3.0)),
            ("12.5 %", Some(12.5)),
            ("99%", Some(99.0)),
            ("0.1 ± 0.02", Some(0.1)),
            ("0.1±0.02", Some(0.1)),
            ("12\u{2009}345", Some(12345.0)),
            ("1,234.5", Some(1234.5)),
            ("2.5×10⁻⁷", Some(2.5e-7)),
            ("", None),
            ("–", None),
            ("3-layer", None),
            ("2026-01-01", None),
            ("NaN", None),
        ] {
            assert_eq!(leading_number(cell), value, "{cell}");
        }
        for value in [1.5, -2.5e-9, 123_456.0, 4.2e12, 0.0] {
            assert_eq!(leading_number(&crate::number(value)), Some(value));
        }
    }

    #[test]
    fn best_cells_and_number_columns_are_marked() {
        let html = Table::new(["model", "RMSE", "acc"])
            .row(["a", "0.2", "90 %"])
            .row(["b", "0.1", "95 %"])
            .row(["c"])
            .best(1, Best::Smallest)
            .best(2, Best::Largest)
            .highlight(2, 0)
            .to_html();
        assert_eq!(html.matches("class=\"num best\"").count(), 2);
        assert!(html.contains("<strong>0.1</strong>") && html.contains("<strong>95 %</strong>"));
        assert!(html.contains("<td class=\"best\"><strong>c</strong></td><td class=\"num\"></td>"));
        assert!(html.contains("<th scope=\"col\">model</th><th scope=\"col\" class=\"num\">RMSE"));
    }

    #[test]
    fn empty_tables_work() {
        assert!(Table::new([""; 0]).to_html().contains("</table>"));
    }
}
