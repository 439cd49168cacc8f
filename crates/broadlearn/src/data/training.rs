//! A training table: inputs, targets and weights, in memory; all of it, or as much as there is room for.

use super::batch::{Column, append, bytes_of};
use super::cell::shell_word;
use super::oddity::{Looks, Oddity};
use super::part::Part;
use super::reader::TableReader;
use super::roles::{Resolved, Roles};
use super::rows::Skipped;
use super::sampler::{Bound, Sampler, show_all};
use super::samples::Samples;
use super::schema::{Encoding, InputColumn, Schema};
use super::schema_reader::Surprises;
use super::target::{TargetSchema, missing_rows};
use super::unusable::{Unusable, Why};
use crate::error::{Error, Result};
use crate::features::draw::{Purpose, Stream};
use crate::progress::{Observer, report};

/// Rows are parsed in batches of this size.
const BATCH_ROWS: usize = 8192;

/// A table with known roles.
///
/// ```
/// use broadlearn::data::{ReadOptions, Roles, TableReader, TrainingData};
/// let text = "size,colour,price\n1,red,10\n2,blue,20\n3,red,30\n4,red,40\n";
/// let mut reader =
///     TableReader::from_reader("shop", Box::new(text.as_bytes()), &ReadOptions::default())?;
/// let data = TrainingData::read(&mut reader, &Roles::target("price"), &mut broadlearn::unobserved)?;
/// let all: Vec<usize> = (0..data.len()).collect();
/// let schema = data.schema(&all)?;
/// assert_eq!(schema.encoded_names(), ["size", "colour=blue", "colour=red"]);
/// let samples = data.samples(&schema, &all)?;
/// assert_eq!(samples.x[(1, 1)], 1.0);
/// # Ok::<(), broadlearn::Error>(())
/// ```
pub struct TrainingData {
    name: String,
    input_names: Vec<(String, super::Kind)>,
    inputs: Vec<Column>,
    target_names: Vec<String>,
    targets: Vec<Column>,
    weight: Option<(String, Vec<f64>)>,
    target: TargetSchema,
    max_categories: usize,
    dropped: usize,
    missing: Vec<String>,
    oddities: Vec<Oddity>,
    unusable: Vec<Unusable>,
    skipped: Skipped,
    extent: Extent,
    part: Option<Part>,
}

/// How much of a table was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Extent {
    All,
    /// Of so many rows some; for every input column whether any of them lacked a value.
    Sample {
        rows: u64,
        lacking: Vec<bool>,
    },
    Prefix,
}

impl TrainingData {
    /// Reads a table to its end.
    pub fn read(
        reader: &mut TableReader,
        roles: &Roles,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        Self::read_within(reader, roles, Bound::None, observer)
    }

    /// Reads a table as far as there is room for it.
    pub fn read_within(
        reader: &mut TableReader,
        roles: &Roles,
        bound: Bound,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        Self::read_part(reader, roles, bound, None, observer)
    }

    /// Reads these rows of a table as far as there is room for them.
    pub fn read_part(
        reader: &mut TableReader,
        roles: &Roles,
        bound: Bound,
        part: Option<Part>,
        observer: &mut Observer<'_>,
    ) -> Result<Self> {
        let resolved = Resolved::new(reader, roles)?;
        let selection = resolved.selection(reader);
        reader.select(&selection)?;
        let mut columns: Vec<Column> = Vec::new();
        let mut missing_places = MissingTargets::default();
        let mut weightless = 0;
        let (target_start, target_end) =
            (resolved.inputs.len(), resolved.inputs.len() + resolved.target.len());
        let mut sampler = Sampler::new(bound, target_start);
        let mut extent = Extent::All;
        while let Some(mut batch) = reader.next_batch(BATCH_ROWS)? {
            let read = batch.first_row + batch.rows() as u64 - 1;
            let missing = missing_rows(&batch.columns[target_start..target_end]);
            missing_places.note(reader, batch.first_row, &missing, &resolved.target);
            if !missing.is_empty() {
                batch.columns.iter_mut().for_each(|column| column.remove(&missing));
            }
            let number = |kept| batch.first_row + original_row(&missing, kept) as u64;
            let mut absent = Vec::new();
            if let (Some(_), Some(weights)) = (resolved.weight, batch.columns.last()) {
                check_weights(reader, &number, weights, resolved.weight)?;
                // A row of weight 0 is no row: it must not even bring a category.
                absent = zero_rows(weights);
                weightless += absent.len();
            }
            if let Some(part) = part {
                let count = batch.columns.first().map_or(0, Column::len);
                absent.extend((0..count).filter(|&row| !part.has(number(row))));
                absent.sort_unstable();
            }
            if !absent.is_empty() {
                batch.columns.iter_mut().for_each(|column| column.remove(&absent));
            }
            report(observer, "reading rows", read, None)?;
            if let Some(sampler) = &mut sampler {
                sampler.note(&batch.columns[..target_end]);
                batch.columns = sampler.admit(batch.columns);
            }
            append(&mut columns, batch.columns);
            match (bound, &mut sampler) {
                (Bound::Prefix { bytes }, _) if bytes_of(&columns) > bytes => {
                    extent = Extent::Prefix;
                    break;
                }
                (_, Some(sampler)) => sampler.prune(&mut columns),
                _ => {}
            }
        }
        let mut seen = None;
        if let Some(mut sampler) = sampler.filter(|sampler| sampler.is_sampling) {
            sampler.finish(&mut columns);
            seen = sampler.seen();
            extent = Extent::Sample { rows: sampler.rows, lacking: sampler.lacking };
        }
        missing_places.check(roles.drop_missing_target, reader)?;
        let rows = columns.first().map_or(0, Column::len);
        if rows == 0 {
            let found = match (missing_places.count, weightless) {
                (0, 0) => {
                    return Err(reader
                        .skipped()
                        .cloned()
                        .unwrap_or_default()
                        .no_rows(reader.name()));
                }
                (0, _) => "no row with a weight above 0",
                _ => "no row with a target",
            };
            return Err(Error::data(found).at(reader.name()).expected("at least one row"));
        }

        let name_of = |column: usize| reader.columns()[column].clone();
        let weight = resolved.weight.and_then(|column| match columns.pop() {
            Some(Column::Number(values)) => Some((name_of(column), values)),
            _ => None,
        });
        let targets = columns.split_off(target_start);
        let target_names: Vec<String> = resolved.target.iter().map(|&c| name_of(c)).collect();
        // A class that no row of the sample has is a class all the same.
        let mut all_targets = targets.clone();
        if let (Some(seen), [_]) = (seen, all_targets.as_slice()) {
            append(&mut all_targets, vec![seen]);
        }
        let target = TargetSchema::find(&target_names, &all_targets, roles.task, reader.name())?;
        drop(all_targets);
        let mut table = Self {
            name: reader.name().to_owned(),
            input_names: selection[..target_start].iter().map(|&(c, k)| (name_of(c), k)).collect(),
            inputs: columns,
            target_names,
            targets,
            weight,
            target,
            max_categories: roles.max_categories,
            dropped: missing_places.count,
            missing: reader.missing().to_vec(),
            oddities: Vec::new(),
            unusable: Vec::new(),
            skipped: reader.skipped().cloned().unwrap_or_default(),
            extent,
            part,
        };
        let given: Vec<bool> =
            resolved.inputs.iter().map(|&column| reader.is_given(column)).collect();
        reader.hide(&table.leave_out(&given)?);
        Ok(table)
    }

    /// Looks at the inputs whose kind the user has not given, and drops those that nothing can be learnt from; which these
    /// were.
    fn leave_out(&mut self, given: &[bool]) -> Result<Vec<usize>> {
        let mut left_out = Vec::new();
        for (place, (values, (name, _))) in self.inputs.iter().zip(&self.input_names).enumerate() {
            let oddity = Oddity::find(name, values).filter(|_| !given[place]);
            // Texts that may be meant as numbers are for the user to mend.
            let mendable =
                oddity.as_ref().is_some_and(|odd| !matches!(odd.looks, Looks::Dates { .. }));
            match Unusable::find(name, values).filter(|_| !mendable) {
                Some(unusable) if unusable.why == Why::Empty || !given[place] => {
                    self.unusable.push(unusable);
                    left_out.push(place);
                }
                _ => self.oddities.extend(oddity),
            }
        }
        if left_out.len() == self.inputs.len() {
            let reasons: Vec<String> = self.unusable.iter().map(Unusable::to_string).collect();
            return Err(Error::data("no input column that anything can be learnt from")
                .at(&self.name)
                .expected("at least one with numbers, or with texts that come again")
                .advice(reasons.join("; ")));
        }
        let mut lacking = match &mut self.extent {
            Extent::Sample { lacking, .. } => Some(lacking),
            _ => None,
        };
        for &place in left_out.iter().rev() {
            self.inputs.remove(place);
            self.input_names.remove(place);
            lacking.as_mut().map(|lacking| lacking.remove(place));
        }
        Ok(left_out)
    }

    /// Whether these are all rows of the table.
    pub fn is_complete(&self) -> bool {
        self.extent == Extent::All
    }

    /// The number of rows of the table, if it was read to its end.
    pub fn table_rows(&self) -> Option<u64> {
        match self.extent {
            Extent::All => Some(self.len() as u64),
            Extent::Sample { rows, .. } => Some(rows),
            Extent::Prefix => None,
        }
    }

    /// Which rows of the table are meant, if not all.
    pub(crate) fn part(&self) -> Option<Part> {
        self.part
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.targets.first().map_or(0, Column::len)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows that were left out for want of a target.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Inputs that are read as text, and look like something else.
    pub fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    /// Input columns that were left out because they tell nothing about other rows.
    pub fn unusable(&self) -> &[Unusable] {
        &self.unusable
    }

    /// Rows that were left out because they could not be read.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// What the target is.
    pub fn target(&self) -> &TargetSchema {
        &self.target
    }

    /// How the columns become numbers, found on these rows.
    pub fn schema(&self, rows: &[usize]) -> Result<Schema> {
        let weights = self.weights(rows);
        // The classes of the whole table are known: a class absent from the training rows would be
        // an output that is never right, and rows of it could not be scored.
        let inputs: Vec<std::result::Result<InputColumn, (&str, Error)>> = self
            .input_names
            .iter()
            .zip(&self.inputs)
            .enumerate()
            .map(|(index, ((name, kind), column))| {
                let place = format!("{}, column `{name}`", self.name);
                let mut chosen = column.select(rows);
                if let Extent::Sample { lacking, .. } = &self.extent {
                    show_all(&mut chosen, lacking[index]);
                }
                let mut weights = weights.clone();
                if let Some(weights) = &mut weights {
                    weights.resize(chosen.len(), 1.0);
                }
                let (weights, most) = (weights.as_deref(), self.max_categories);
                let encoding = Encoding::find(&chosen, *kind, weights, most, &place)
                    .map_err(|error| (name.as_str(), error))?;
                Ok(InputColumn { name: name.clone(), kind: *kind, encoding })
            })
            .collect();
        let inputs = all_usable(inputs)?;
        let weight = self.weight.as_ref().map(|(name, _)| name.clone());
        let missing = self.missing.clone();
        Ok(Schema { inputs, target: self.target.clone(), weight, missing })
    }

    /// These rows as numbers.
    pub fn samples(&self, schema: &Schema, rows: &[usize]) -> Result<Samples> {
        let mut surprises = Surprises::default();
        let inputs = self.inputs.iter().map(|column| column.select(rows));
        let targets: Vec<Column> = self.targets.iter().map(|column| column.select(rows)).collect();
        let place = |row: usize| {
            let names: Vec<&str> = self.target_names.iter().map(String::as_str).collect();
            format!("{}, row {}, column {}", self.name, rows[row] + 1, super::reader::list(&names))
        };
        Ok(Samples {
            x: schema.encode(rows.len(), inputs, &mut surprises),
            targets: schema.target.encode(&targets, &place, None)?,
            weights: self.weights(rows),
            surprises,
        })
    }

    /// All rows as numbers, in place of the table: its columns are freed one by one.
    pub fn into_samples(self, schema: &Schema) -> Result<Samples> {
        let rows = self.len();
        let mut surprises = Surprises::default();
        let place = |row: usize| format!("{}, row {}", self.name, row + 1);
        let targets = schema.target.encode(&self.targets, &place, None)?;
        let weights = self.weight.map(|(_, weights)| weights);
        let x = schema.encode(rows, self.inputs, &mut surprises);
        Ok(Samples { x, targets, weights, surprises })
    }

    fn weights(&self, rows: &[usize]) -> Option<Vec<f64>> {
        let (_, weights) = self.weight.as_ref()?;
        Some(rows.iter().map(|&row| weights[row]).collect())
    }
}

/// Splits the numbers 0 .. n into training and test rows, each in ascending order. At least one row
/// goes to either side if there are two.
pub fn split(n: usize, test_share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let order = Stream::new(seed, Purpose::Holdout, 0).permutation(n);
    let count = ((n as f64 * test_share).round() as usize).clamp(n.min(2) / 2, n.saturating_sub(1));
    let (test, train) = order.split_at(count);
    let sorted = |rows: &[usize]| {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        rows
    };
    (sorted(train), sorted(test))
}

/// Rows without a target: how many, and where the first ones are.
#[derive(Default)]
struct MissingTargets {
    count: usize,
    places: Vec<String>,
}

impl MissingTargets {
    fn note(&mut self, reader: &TableReader, first_row: u64, rows: &[usize], targets: &[usize]) {
        const NAMED: usize = 5;
        self.count += rows.len();
        for &row in rows.iter().take(NAMED.saturating_sub(self.places.len())) {
            let column = if self.places.is_empty() { targets.first().copied() } else { None };
            self.places.push(reader.place(first_row + row as u64, column));
        }
    }

    fn check(&self, drop: bool, reader: &TableReader) -> Result<()> {
        if drop || self.count == 0 {
            return Ok(());
        }
        // "data.csv, line 7, column `y`; line 9; line 12; ..." without repeating the file's name.
        let prefix = format!("{}, ", reader.name());
        let mut place = self.places.join("; ").replacen(&prefix, "\u{0}", 1).replace(&prefix, "");
        place = place.replace('\u{0}', &prefix);
        if self.count > self.places.len() {
            place.push_str("; ...");
        }
        let rows = if self.count == 1 { "row" } else { "rows" };
        Err(Error::data(format!("{} {rows} without a target", self.count))
            .at(place)
            .expected("a target in every row")
            .advice("fill them in, or leave these rows out with --drop-missing-target"))
    }
}

fn zero_rows(weights: &Column) -> Vec<usize> {
    match weights {
        Column::Number(values) => (0..values.len()).filter(|&row| values[row] == 0.0).collect(),
        Column::Text { .. } => Vec::new(),
    }
}

/// The place that a kept row had before those at these places, in ascending order, were removed.
pub(super) fn original_row(removed: &[usize], kept: usize) -> usize {
    removed.iter().fold(kept, |row, &gone| if gone <= row { row + 1 } else { row })
}

/// An error if a weight is missing or negative; `number` gives the number of a row.
pub(super) fn check_weights(
    reader: &TableReader,
    number: &dyn Fn(usize) -> u64,
    weights: &Column,
    column: Option<usize>,
) -> Result<()> {
    let Column::Number(values) = weights else { return Ok(()) };
    match values.iter().position(|&value| value.is_nan() || value < 0.0) {
        None => Ok(()),
        Some(row) => {
            let found = if values[row].is_nan() {
                "no weight".into()
            } else {
                format!("weight {}", values[row])
            };
            Err(Error::data(found)
                .at(reader.place(number(row), column))
                .expected("a weight of 0 or more"))
        }
    }
}

/// The inputs, or the first error, with advice for all of them together.
fn all_usable(
    inputs: Vec<std::result::Result<InputColumn, (&str, Error)>>,
) -> Result<Vec<InputColumn>> {
    let (mut usable, mut others, mut first) = (Vec::new(), Vec::new(), None);
    for input in inputs {
        match input {
            Ok(input) => usable.push(input),
            Err((name, error)) => {
                others.push(name);
                first.get_or_insert(error);
            }
        }
    }
    match first {
        None => Ok(usable),
        Some(error) if others.len() == 1 => Err(error),
        Some(error) => {
            let ignored: Vec<String> =
                others.iter().map(|name| format!("--ignore {}", shell_word(name))).collect();
            Err(error.advice(format!(
                "{} columns are like this; to leave them all out: {}",
                others.len(),
                ignored.join(" ")
            )))
        }
    }
}
