//! A series from a table: its points in their order, with further columns and labels.

use super::batch::{Column, Kind};
use super::embedding::Embedding;
use super::reader::TableReader;
use super::roles::find;
use crate::error::{Error, Result};
use crate::progress::{Observer, report};
use faer::Mat;

/// Rows are parsed in batches of this size.
const BATCH_ROWS: usize = 8192;

/// A series: one point per row, in the order of the table; NaN stands for a missing value.
#[derive(Clone, Debug, Default)]
pub struct TimeSeries {
    /// The name of the series.
    pub column: String,
    /// Its points.
    pub values: Vec<f64>,
    /// Further columns, as long as the series.
    pub exogenous: Vec<(String, Vec<f64>)>,
    /// The name of the column of labels, and a label for each point.
    pub labels: Option<(String, Vec<String>)>,
}

/// Which columns of a table make a series.
#[derive(Clone, Debug, Default)]
pub struct SeriesColumns {
    /// The series; `None` for a table of further columns alone, such as of days to come.
    pub column: Option<String>,
    /// Further columns.
    pub exogenous: Vec<String>,
    /// Labels of the points.
    pub time: Option<String>,
}

impl TimeSeries {
    /// A series without further columns.
    pub fn new(column: impl Into<String>, values: Vec<f64>) -> Self {
        Self { column: column.into(), values, ..Self::default() }
    }

    /// Reads a table to its end.
    ///
    /// # Errors
    /// Columns that are not there, cells that are no numbers, no rows.
    pub fn read(
        reader: &mut TableReader,
        columns: &SeriesColumns,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let series =
            columns.column.as_ref().map(|name| find(reader, "series", name)).transpose()?;
        let mut selection: Vec<(usize, Kind)> = Vec::new();
        selection.extend(series.map(|column| (column, Kind::Number)));
        for name in &columns.exogenous {
            let column = find(reader, "further column", name)?;
            let kind = match reader.kinds()[column] {
                Kind::Boolean => Kind::Boolean,
                _ => Kind::Number,
            };
            selection.push((column, kind));
        }
        if let Some(name) = &columns.time {
            let column = find(reader, "time", name)?;
            selection.push((column, reader.kinds()[column]));
        }
        let mut used: Vec<usize> = selection.iter().map(|(column, _)| *column).collect();
        used.sort_unstable();
        if let Some(pair) = used.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = &reader.columns()[pair[0]];
            return Err(Error::data(format!("column `{name}` in two roles"))
                .at(reader.name())
                .expected("each column as series, further column or time, not two of them"));
        }
        reader.select(&selection)?;
        let names: Vec<String> =
            selection.iter().map(|(column, _)| reader.columns()[*column].clone()).collect();
        let mut all: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
        let mut labels: Vec<String> = Vec::new();
        let last = columns.time.is_some().then(|| names.len() - 1);
        while let Some(batch) = reader.next_batch(BATCH_ROWS)? {
            for (place, column) in batch.columns.iter().enumerate() {
                if last == Some(place) {
                    labels.extend((0..column.len()).map(|row| label(column, row)));
                } else if let Column::Number(values) = column {
                    all[place].extend(values);
                }
            }
            report(observer, "reading rows", batch.first_row + batch.rows() as u64 - 1, None)?;
        }
        let rows = all.first().map_or(labels.len(), Vec::len).max(labels.len());
        if rows == 0 {
            return Err(Error::data("no rows").at(reader.name()).expected("at least one point"));
        }
        let mut named = names.into_iter().zip(all);
        let (column, values) = match series.and_then(|_| named.next()) {
            Some(series) => series,
            None => (String::new(), vec![f64::NAN; rows]),
        };
        let exogenous = named.by_ref().take(columns.exogenous.len()).collect();
        let labels = named.next().map(|(name, _)| (name, labels));
        Ok(Self { column, values, exogenous, labels })
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of points without a value.
    pub fn missing(&self) -> usize {
        self.values.iter().filter(|value| value.is_nan()).count()
    }

    /// The points before this one, and the others.
    pub fn split(&self, at: usize) -> (Self, Self) {
        let at = at.min(self.len());
        let part = |range: std::ops::Range<usize>| Self {
            column: self.column.clone(),
            values: self.values[range.clone()].to_vec(),
            exogenous: self
                .exogenous
                .iter()
                .map(|(name, values)| (name.clone(), values[range.clone()].to_vec()))
                .collect(),
            labels: self
                .labels
                .as_ref()
                .map(|(name, labels)| (name.clone(), labels[range.clone()].to_vec())),
        };
        (part(0..at), part(at..self.len()))
    }

    /// The values of the further columns of an embedding, in its order.
    ///
    /// # Errors
    /// A column that the series does not have.
    pub(crate) fn columns_of(&self, embedding: &Embedding) -> Result<Vec<Vec<f64>>> {
        let column = |name: &String| {
            let found = self.exogenous.iter().find(|(own, _)| own == name);
            let values = found.map(|(_, values)| values.clone()).filter(|v| v.len() == self.len());
            values.ok_or_else(|| {
                Error::data(format!("no further column `{name}`, or one of another length"))
                    .expected("the columns of the embedding")
            })
        };
        embedding.exogenous.iter().map(|own| column(&own.name)).collect()
    }

    /// The rows of the points that have all their inputs and a value themselves, and the places of these
    /// points.
    ///
    /// ```
    /// use broadlearn::data::{Embedding, TimeSeries};
    /// let series = TimeSeries::new("y", vec![1.0, 2.0, 3.0, f64::NAN, 5.0, 6.0, 7.0]);
    /// let rows = series.embed(&Embedding::of("y", 2))?;
    /// // The gap and the two points after it have no row.
    /// assert_eq!(rows.points, [2, 6]);
    /// assert_eq!((rows.x[(1, 0)], rows.x[(1, 1)], rows.y[(1, 0)]), (6.0, 5.0, 7.0));
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    ///
    /// # Errors
    /// A further column that the series does not have.
    pub fn embed(&self, embedding: &Embedding) -> Result<EmbeddedRows> {
        let exogenous = self.columns_of(embedding)?;
        Ok(embed(embedding, &self.values, &exogenous, 0))
    }
}

/// Rows made of a series.
#[derive(Clone, Debug)]
pub struct EmbeddedRows {
    /// Inputs, one row per point.
    pub x: Mat<f64>,
    /// What is learnt: the points or their differences.
    pub y: Mat<f64>,
    /// The places of the points in the series.
    pub points: Vec<usize>,
}

/// The rows of the points from `first` on.
pub(crate) fn embed(
    embedding: &Embedding,
    y: &[f64],
    exogenous: &[Vec<f64>],
    first: usize,
) -> EmbeddedRows {
    let (plan, w) = (embedding.plan(), embedding.differenced(y));
    let width = embedding.input_names().len();
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for (t, target) in w.iter().enumerate().skip(first) {
        let row = plan.inputs(y, exogenous, t);
        if target.is_finite() && row.iter().all(|value| value.is_finite()) {
            points.push(t);
            rows.push(row);
        }
    }
    let x = Mat::from_fn(points.len(), width, |i, j| rows[i][j]);
    let y = Mat::from_fn(points.len(), 1, |i, _| w[points[i]]);
    EmbeddedRows { x, y, points }
}

fn label(column: &Column, row: usize) -> String {
    match column {
        Column::Number(values) if values[row].is_nan() => String::new(),
        Column::Number(values) => values[row].to_string(),
        Column::Text { .. } => column.text(row).unwrap_or_default().to_owned(),
    }
}
