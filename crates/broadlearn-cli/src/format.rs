//! Numbers and tables for people.

use broadlearn::evaluate::Metrics;

/// A number with four significant digits.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let magnitude = value.abs().log10().floor() as i32;
    match magnitude {
        -4..=5 => format!("{value:.*}", (3 - magnitude).max(0) as usize),
        _ => format!("{value:.3e}"),
    }
}

/// A setting, as short as it can be written: 1e-4, 0.25, 9.31e-10.
pub(crate) fn setting(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let (plain, scientific) = (format!("{rounded}"), format!("{rounded:e}"));
    if plain.len() <= scientific.len() { plain } else { scientific }
}

/// Names and values, one a line.
pub(crate) fn facts(facts: &[(&'static str, String)]) -> String {
    facts.iter().map(|(name, value)| format!("  {name:<12} {value}\n")).collect()
}

/// A count with thin groups of thousands.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// "1 row", "2 rows".
pub(crate) fn plural(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Lines of cells with aligned columns: the first to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| {
                let width = widths[column];
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            })
            .collect();
        text.push_str("  ");
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Metrics as name and value.
pub(crate) fn metrics(metrics: &Metrics) -> Vec<Vec<String>> {
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    match metrics {
        Metrics::Regression { n_rows, rmse, mae, r2, median_error, .. } => vec![
            row("rows", count(*n_rows)),
            row("RMSE", number(*rmse)),
            row("MAE", number(*mae)),
            row("median error", number(*median_error)),
            row("R2", r2.map_or("-".into(), number)),
        ],
        Metrics::Classification { n_rows, accuracy, macro_f1, log_loss, .. } => vec![
            row("rows", count(*n_rows)),
            row("accuracy", format!("{:.2} %", 100.0 * accuracy)),
            row("macro F1", number(*macro_f1)),
            row("log loss", number(*log_loss)),
        ],
    }
}

/// The metrics of every target by itself, if there are several.
pub(crate) fn targets(metrics: &Metrics) -> Vec<Vec<String>> {
    let Metrics::Regression { targets, .. } = metrics else { return Vec::new() };
    if targets.is_empty() {
        return Vec::new();
    }
    let head = ["target", "RMSE", "MAE", "R2"].map(str::to_owned).to_vec();
    let rows = targets.iter().map(|target| {
        let r2 = target.r2.map_or("-".into(), number);
        vec![target.name.clone(), number(target.rmse), number(target.mae), r2]
    });
    std::iter::once(head).chain(rows).collect()
}

/// Errors of normal size have a root mean square of 1.5 medians; beyond this many, few rows decide it.
const WILD: f64 = 8.0;

/// What to make of metrics that few rows with large errors decide.
pub(crate) fn remark(metrics: &Metrics) -> Option<&'static str> {
    match metrics {
        Metrics::Regression { rmse, median_error, .. } if *rmse > WILD * median_error => Some(
            "A few rows with large errors decide RMSE and R2; if their targets may be wrong, the median error says more.",
        ),
        _ => None,
    }
}

/// The confusion matrix, given classes down, predicted ones across; empty for many classes.
pub(crate) fn confusion(metrics: &Metrics, classes: &[String]) -> Vec<Vec<String>> {
    let Metrics::Classification { confusion, .. } = metrics else { return Vec::new() };
    if classes.len() > 20 {
        return Vec::new();
    }
    let mut rows = vec![vec!["given \\ predicted".to_owned()]];
    rows[0].extend(classes.iter().cloned());
    for (class, counts) in classes.iter().zip(confusion) {
        let mut row = vec![class.clone()];
        row.extend(counts.iter().map(|count| count.to_string()));
        rows.push(row);
    }
    rows
}
