//! A training table: inputs, targets and weights, in memory; all of it, or as much as there is room for.

use super::batch::{Column, MISSING};
use super::cell::shell_word;
use super::oddity::{Looks, Oddity};
use super::part::Part;
use super::reader::TableReader;
use super::roles::{Resolved, Roles};
use super::rows::Skipped;
use super::schema::{Encoding, InputColumn, Schema};
use super::schema_reader::Surprises;
use super::target::{TargetSchema, Targets, missing_rows};
use super::unusable::{Unusable, Why};
use crate::error::{Error, Result};
use crate::features::draw::{Purpose, Stream};
use crate::progress::{Observer, report};
use faer::Mat;
use std::collections::{BTreeSet, HashMap};

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

/// What becomes of a table that takes more memory than this.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// It is read all the same.
    None,
    /// It is read to its end, and a random sample of its rows is kept.
    Sample {
        /// Bytes up to which all rows are kept.
        bytes: u64,
        /// The rows that are kept otherwise.
        rows: usize,
        /// The seed of the choice.
        seed: u64,
    },
    /// The rest of it is left in the reader.
    Prefix {
        /// Bytes up to which rows are read.
        bytes: u64,
    },
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

/// Numbers ready to be fitted or scored.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Inputs, one row per sample.
    pub x: Mat<f64>,
    /// Targets.
    pub targets: Targets,
    /// Sample weights.
    pub weights: Option<Vec<f64>>,
    /// What did not fit the schema.
    pub surprises: Surprises,
}

impl Samples {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.x.nrows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts the rows of other samples by the same schema behind these.
    pub fn append(&mut self, other: &Self) {
        let (rows, more) = (self.len(), other.len());
        if self.weights.is_some() || other.weights.is_some() {
            let ones = |rows| vec![1.0; rows];
            let weights = self.weights.get_or_insert_with(|| ones(rows));
            weights.extend(other.weights.clone().unwrap_or_else(|| ones(more)));
        }
        stack(&mut self.x, &other.x);
        match (&mut self.targets, &other.targets) {
            (Targets::Values(values), Targets::Values(more)) => stack(values, more),
            (Targets::Classes(codes), Targets::Classes(more)) => codes.extend(more),
            _ => unreachable!("one schema has one task"),
        }
        self.surprises.add(&other.surprises);
    }
}

fn stack(matrix: &mut Mat<f64>, more: &Mat<f64>) {
    let rows = matrix.nrows();
    matrix.resize_with(rows + more.nrows(), more.ncols(), |i, j| more[(i - rows, j)]);
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
                batch.columns.iter_mut().for_each(|column| remove_rows(column, &missing));
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
                batch.columns.iter_mut().for_each(|column| remove_rows(column, &absent));
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
                let mut chosen = select(column, rows);
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
        let inputs = self.inputs.iter().map(|column| select(column, rows));
        let targets: Vec<Column> = self.targets.iter().map(|column| select(column, rows)).collect();
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

/// Adds a row for every level of a column and one without a value where there is one in the table, so that what
/// is found on a sample holds for all rows.
fn show_all(column: &mut Column, lacking: bool) {
    match column {
        Column::Number(values) if lacking => values.push(f64::NAN),
        Column::Number(_) => {}
        Column::Text { codes, levels } => {
            codes.extend(0..levels.len() as u32);
            codes.extend(lacking.then_some(MISSING));
        }
    }
}

/// The bytes that columns take.
fn bytes_of(columns: &[Column]) -> u64 {
    let bytes = |column: &Column| match column {
        Column::Number(values) => 8 * values.len(),
        Column::Text { codes, .. } => 4 * codes.len(),
    };
    columns.iter().map(bytes).sum::<usize>() as u64
}

/// Keeps a random sample of the rows of a table: those with the smallest of as many random numbers as there
/// are rows.
struct Sampler {
    bytes: u64,
    most: usize,
    stream: Stream,
    keys: Vec<f64>,
    threshold: f64,
    is_sampling: bool,
    rows: u64,
    lacking: Vec<bool>,
    /// The different targets so far, if there is one column and they are few.
    distinct: Option<BTreeSet<u64>>,
    levels: Option<Vec<String>>,
}

impl Sampler {
    /// More different targets than this are no classes.
    const MOST_CLASSES: usize = 1001;

    fn new(bound: Bound, inputs: usize) -> Option<Self> {
        let Bound::Sample { bytes, rows, seed } = bound else { return None };
        Some(Self {
            bytes,
            most: rows.max(1),
            stream: Stream::new(seed, Purpose::Sample, 0),
            keys: Vec::new(),
            threshold: f64::INFINITY,
            is_sampling: false,
            rows: 0,
            lacking: vec![false; inputs],
            distinct: Some(BTreeSet::new()),
            levels: None,
        })
    }

    /// Looks at inputs and targets before most of them are dropped.
    fn note(&mut self, columns: &[Column]) {
        self.rows += columns.first().map_or(0, Column::len) as u64;
        let (inputs, targets) = columns.split_at(self.lacking.len());
        for (lacking, column) in self.lacking.iter_mut().zip(inputs) {
            *lacking |= match column {
                Column::Number(values) => values.iter().any(|value| value.is_nan()),
                Column::Text { codes, .. } => codes.contains(&MISSING),
            };
        }
        match (targets, &mut self.distinct) {
            ([Column::Number(values)], Some(distinct)) => {
                distinct.extend(values.iter().map(|value| value.to_bits()));
                if distinct.len() > Self::MOST_CLASSES {
                    self.distinct = None;
                }
            }
            ([Column::Text { levels, .. }], Some(_)) => {
                let known = self.levels.get_or_insert_default();
                let fresh: Vec<String> =
                    levels.iter().filter(|level| !known.contains(level)).cloned().collect();
                known.extend(fresh);
                if known.len() > Self::MOST_CLASSES {
                    self.distinct = None;
                }
            }
            _ => self.distinct = None,
        }
    }

    /// The rows that may yet belong to the sample.
    fn admit(&mut self, columns: Vec<Column>) -> Vec<Column> {
        let rows = columns.first().map_or(0, Column::len);
        let keys: Vec<f64> = (0..rows).map(|_| self.stream.unit()).collect();
        let kept: Vec<usize> = (0..rows).filter(|&row| keys[row] < self.threshold).collect();
        self.keys.extend(kept.iter().map(|&row| keys[row]));
        if kept.len() == rows {
            return columns;
        }
        columns.iter().map(|column| select(column, &kept)).collect()
    }

    /// Drops rows once there are too many, and from then on whenever they have doubled.
    fn prune(&mut self, columns: &mut [Column]) {
        self.is_sampling |= bytes_of(columns) > self.bytes;
        if self.is_sampling && self.keys.len() > 2 * self.most {
            self.finish(columns);
        }
    }

    fn finish(&mut self, columns: &mut [Column]) {
        if self.keys.len() > self.most {
            let mut sorted = self.keys.clone();
            let (_, threshold, _) = sorted.select_nth_unstable_by(self.most, f64::total_cmp);
            self.threshold = *threshold;
            let kept: Vec<usize> =
                (0..self.keys.len()).filter(|&row| self.keys[row] < self.threshold).collect();
            columns.iter_mut().for_each(|column| *column = select(column, &kept));
            self.keys = kept.iter().map(|&row| self.keys[row]).collect();
        }
    }

    /// A column of all different targets.
    fn seen(&mut self) -> Option<Column> {
        let distinct = self.distinct.take()?;
        Some(match self.levels.take() {
            Some(levels) => Column::Text { codes: (0..levels.len() as u32).collect(), levels },
            None => Column::Number(distinct.into_iter().map(f64::from_bits).collect()),
        })
    }
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

fn append(columns: &mut Vec<Column>, batch: Vec<Column>) {
    if columns.is_empty() {
        *columns = batch;
        return;
    }
    for (column, part) in columns.iter_mut().zip(batch) {
        match (column, part) {
            (Column::Number(values), Column::Number(more)) => values.extend(more),
            (Column::Text { codes, levels }, Column::Text { codes: more, levels: found }) => {
                let known: HashMap<&str, u32> =
                    levels.iter().zip(0..).map(|(level, code)| (level.as_str(), code)).collect();
                let mut fresh = Vec::new();
                let translated: Vec<u32> = found
                    .into_iter()
                    .map(|level| match known.get(level.as_str()) {
                        Some(&code) => code,
                        None => {
                            fresh.push(level);
                            (known.len() + fresh.len() - 1) as u32
                        }
                    })
                    .collect();
                levels.extend(fresh);
                codes.extend(
                    more.iter()
                        .map(|&c| if c == MISSING { MISSING } else { translated[c as usize] }),
                );
            }
            _ => unreachable!("a reader keeps the kinds of its columns"),
        }
    }
}

pub(super) fn remove_rows(column: &mut Column, rows: &[usize]) {
    let mut row = 0;
    let mut keep = || {
        row += 1;
        rows.binary_search(&(row - 1)).is_err()
    };
    match column {
        Column::Number(values) => values.retain(|_| keep()),
        Column::Text { codes, .. } => codes.retain(|_| keep()),
    }
}

pub(super) fn select(column: &Column, rows: &[usize]) -> Column {
    match column {
        Column::Number(values) => Column::Number(rows.iter().map(|&row| values[row]).collect()),
        Column::Text { codes, levels } => Column::Text {
            codes: rows.iter().map(|&row| codes[row]).collect(),
            levels: levels.clone(),
        },
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
