//! Which column is what.

use super::Task;
use super::batch::Kind;
use super::reader::{TableReader, list, with_likely_name};
use crate::error::{Error, Result};

/// What the columns of a training table are for. Columns are given by name, by number counted from
/// 1, or as `last`; a name wins over a number.
#[derive(Clone, Debug)]
pub struct Roles {
    /// The columns to be predicted; several only for regression.
    pub target: Vec<String>,
    /// Columns that are not used.
    pub ignore: Vec<String>,
    /// A column of sample weights, 0 or more.
    pub weight: Option<String>,
    /// What kind of target it is; found by looking if not given.
    pub task: Option<Task>,
    /// Whether rows without a target are left out; otherwise they are an error.
    pub drop_missing_target: bool,
    /// The number of levels up to which a text column is taken for a category.
    pub max_categories: usize,
}

impl Roles {
    /// All columns are inputs but the target.
    pub fn target(column: impl Into<String>) -> Self {
        Self {
            target: vec![column.into()],
            ignore: Vec::new(),
            weight: None,
            task: None,
            drop_missing_target: false,
            max_categories: 256,
        }
    }
}

/// The roles as column numbers of one table.
pub(super) struct Resolved {
    pub(super) inputs: Vec<usize>,
    pub(super) target: Vec<usize>,
    pub(super) weight: Option<usize>,
}

impl Resolved {
    pub(super) fn new(reader: &TableReader, roles: &Roles) -> Result<Self> {
        let find_all = |role: &str, names: &[String]| -> Result<Vec<usize>> {
            names.iter().map(|name| find(reader, role, name)).collect()
        };
        let target = find_all("target", &roles.target)?;
        let ignore = find_all("ignored column", &roles.ignore)?;
        let weight = roles.weight.as_ref().map(|name| find(reader, "weight", name)).transpose()?;
        for (place, &column) in target.iter().enumerate() {
            let name = &reader.columns()[column];
            let twice = target[..place].contains(&column);
            if twice || ignore.contains(&column) || weight == Some(column) {
                return Err(Error::data(format!("column `{name}` in two roles"))
                    .at(reader.name())
                    .expected("each column as target, weight or ignored, not two of them"));
            }
        }
        if let Some(column) = weight.filter(|column| ignore.contains(column)) {
            let name = &reader.columns()[column];
            return Err(Error::data(format!("column `{name}` as weight and as ignored"))
                .at(reader.name())
                .expected("one of the two"));
        }
        let inputs: Vec<usize> = (0..reader.columns().len())
            .filter(|column| {
                !target.contains(column) && !ignore.contains(column) && weight != Some(*column)
            })
            .collect();
        if inputs.is_empty() {
            return Err(Error::data("no column that is neither target, weight nor ignored")
                .at(reader.name())
                .expected("at least one input column")
                .advice("check the delimiter (--delimiter) and the columns in --ignore"));
        }
        Ok(Self { inputs, target, weight })
    }

    /// What is to be read: inputs, then targets, then the weight. A boolean target is read as text,
    /// so that its classes keep their names.
    pub(super) fn selection(&self, reader: &TableReader) -> Vec<(usize, Kind)> {
        let kind = |column: usize| reader.kinds()[column];
        let target_kind = |column: usize| match kind(column) {
            Kind::Boolean => Kind::Text,
            kind => kind,
        };
        let inputs = self.inputs.iter().map(|&column| (column, kind(column)));
        let targets = self.target.iter().map(|&column| (column, target_kind(column)));
        let weight = self.weight.iter().map(|&column| (column, Kind::Number));
        inputs.chain(targets).chain(weight).collect()
    }
}

pub(super) fn find(reader: &TableReader, role: &str, wanted: &str) -> Result<usize> {
    let columns = reader.columns();
    if let Some(column) = columns.iter().position(|name| name == wanted) {
        return Ok(column);
    }
    if wanted == "last" && !columns.is_empty() {
        return Ok(columns.len() - 1);
    }
    if let Ok(number) = wanted.parse::<usize>()
        && (1..=columns.len()).contains(&number)
    {
        return Ok(number - 1);
    }
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let error = Error::data(format!("no column `{wanted}` ({role})"))
        .at(reader.name())
        .expected(format!("one of {}, a number from 1 to {}, or last", list(&names), names.len()));
    Err(with_likely_name(error, &names, wanted))
}
