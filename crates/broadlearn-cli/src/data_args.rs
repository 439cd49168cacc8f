//! Options about tables, shared by all commands that read one.

use crate::context::Context;
use crate::fault::Fault;
use crate::live_input::LiveInput;
use broadlearn::data::{
    Bound, Format, Kind, Part, ReadOptions, Roles, Schema, Skipped, Surprises, TableReader, Task,
    TrainingData,
};
use broadlearn::{Error, Model};
use clap::{Args, ValueEnum};
use std::io::Read;
use std::path::Path;

/// How a table is read; everything is found by looking unless it is said.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reading tables")]
pub(crate) struct DataArgs {
    /// The format [default: by extension, then by the first bytes]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// What separates the fields: a character, or tab or space [default: found by looking]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// The first line names the columns [default: found by looking]
    #[arg(long, conflicts_with = "no_header")]
    header: bool,
    /// The first line is data; columns are called column1, column2, ...
    #[arg(long)]
    no_header: bool,
    /// A further text that means a missing value (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    missing: Vec<String>,
    /// Numbers have a decimal comma, as in 1,5
    #[arg(long)]
    decimal_comma: bool,
    /// Leave out rows that cannot be read (too many fields, a text among numbers), and say how many; for fit, tune, learn,
    /// refine and evaluate
    #[arg(long)]
    skip_malformed: bool,
    /// Read this column as text, that is as a category (repeatable)
    #[arg(long, value_name = "COLUMN")]
    text: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    Csv,
    Jsonl,
    Npy,
    Npz,
    Parquet,
}

impl DataArgs {
    /// Opens a table.
    pub(crate) fn open(&self, path: &Path) -> Result<TableReader, Fault> {
        Ok(TableReader::open(path, &self.options())?)
    }

    /// Opens a table for a model: what meant a missing value in training means it here, too.
    pub(crate) fn open_for(&self, model: &Model, path: &Path) -> Result<TableReader, Fault> {
        let mut options = self.options();
        options.missing.extend(model.schema().missing.iter().cloned());
        Ok(TableReader::open(path, &options)?)
    }

    /// Opens a stream for a model: rows come as soon as they are there, and Ctrl-C ends a pipe.
    pub(crate) fn open_stream(&self, model: &Model, path: &Path) -> Result<TableReader, Fault> {
        let mut options = self.options();
        options.live = true;
        options.missing.extend(model.schema().missing.iter().cloned());
        if path == Path::new("-") {
            let input = Box::new(LiveInput::new(std::io::stdin()));
            return Ok(TableReader::from_reader("standard input", input, &options)?);
        }
        let regular = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
        if regular || path.is_dir() {
            return Ok(TableReader::open(path, &options)?);
        }
        let file = std::fs::File::open(path).map_err(|error| Error::no_input(path, error))?;
        let name = path.display().to_string();
        Ok(TableReader::from_reader(&name, Box::new(LiveInput::new(file)), &options)?)
    }

    /// An error if rows may be left out where each of them has its place.
    pub(crate) fn refuse_skipping(&self) -> Result<(), Fault> {
        match self.skip_malformed {
            false => Ok(()),
            true => Err(Error::setting("skip-malformed", "a command to which every row matters")
                .expected("fit, tune, learn, refine or evaluate")
                .into()),
        }
    }

    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format.map(|format| match format {
                FormatName::Csv => Format::Delimited,
                FormatName::Jsonl => Format::JsonLines,
                FormatName::Npy => Format::Npy,
                FormatName::Npz => Format::Npz,
                FormatName::Parquet => Format::Parquet,
            }),
            delimiter: self.delimiter,
            header: match (self.header, self.no_header) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            missing: self.missing.clone(),
            decimal_comma: self.decimal_comma,
            kinds: self.text.iter().map(|column| (column.clone(), Kind::Text)).collect(),
            skip_malformed: self.skip_malformed,
            live: false,
        }
    }
}

/// More levels of a text column hardly tell anything.
const MAX_CATEGORIES: usize = 256;

/// What the columns of a training table are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Columns")]
pub(crate) struct ColumnArgs {
    /// Columns that are not used (repeatable)
    #[arg(long, value_name = "COLUMN")]
    pub(crate) ignore: Vec<String>,
    /// A column of sample weights
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,
    /// What the target is [default: found by looking]
    #[arg(long, value_enum)]
    task: Option<TaskName>,
    /// Leave out rows without a target
    #[arg(long)]
    pub(crate) drop_missing_target: bool,
    /// Text columns with more levels are refused [default: 256]
    #[arg(long, value_name = "N")]
    max_categories: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TaskName {
    Regression,
    Classification,
}

impl From<TaskName> for Task {
    fn from(name: TaskName) -> Self {
        match name {
            TaskName::Regression => Self::Regression,
            TaskName::Classification => Self::Classification,
        }
    }
}

impl ColumnArgs {
    /// The first option that says what a model knows, if any was given.
    pub(crate) fn known_by_models(&self) -> Option<&'static str> {
        let given = [
            ("ignore", !self.ignore.is_empty()),
            ("weight", self.weight.is_some()),
            ("task", self.task.is_some()),
            ("max-categories", self.max_categories.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }

    /// The task, if it was said.
    pub(crate) fn task(&self) -> Option<Task> {
        self.task.map(Task::from)
    }

    /// Reads a training table and says what was found.
    pub(crate) fn read(
        &self,
        path: &Path,
        target: &[String],
        table: &DataArgs,
        context: &Context,
    ) -> Result<TrainingData, Fault> {
        let mut reader = table.open(path)?;
        self.read_within(&mut reader, target, Bound::None, context)
    }

    /// Reads a training table as far as there is room for it, and says what was found.
    pub(crate) fn read_within(
        &self,
        reader: &mut TableReader,
        target: &[String],
        bound: Bound,
        context: &Context,
    ) -> Result<TrainingData, Fault> {
        let data = self.read_part(reader, target, bound, None, context)?;
        if data.dropped() > 0 {
            context.say(format_args!(
                "left out {} without a target",
                crate::format::plural(data.dropped() as u64, "row")
            ));
        }
        warn_of_skipped(data.skipped(), context);
        warn_of_columns(&data, context);
        if self.task.is_none() {
            say_task(&data, context);
        }
        Ok(data)
    }

    /// Reads these rows of a training table as far as there is room for them.
    pub(crate) fn read_part(
        &self,
        reader: &mut TableReader,
        target: &[String],
        bound: Bound,
        part: Option<Part>,
        context: &Context,
    ) -> Result<TrainingData, Fault> {
        let roles = Roles {
            target: target.to_vec(),
            ignore: self.ignore.clone(),
            weight: self.weight.clone(),
            task: self.task(),
            drop_missing_target: self.drop_missing_target,
            max_categories: self.max_categories.unwrap_or(MAX_CATEGORIES),
        };
        let mut observer = context.observer();
        let data = TrainingData::read_part(reader, &roles, bound, part, &mut observer)?;
        drop(observer);
        context.end_progress();
        Ok(data)
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        "space" => Ok(b' '),
        _ => match text.as_bytes() {
            [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'"' => {
                Ok(*byte)
            }
            _ => Err("expected one character such as ; or |, or tab or space".into()),
        },
    }
}

/// Loads a model from a file or, for `-`, from stdin.
pub(crate) fn load_model(path: &Path, data: Option<&Path>) -> Result<Model, Fault> {
    let stdin = Path::new("-");
    if path != stdin {
        return Ok(Model::load(path)?);
    }
    if data == Some(stdin) {
        return Err(Error::setting("MODEL and DATA", "- for both")
            .expected("stdin for one of them only")
            .into());
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io("standard input", "read", error))?;
    Ok(Model::from_bytes(&bytes).map_err(|error| error.within("standard input"))?)
}

/// Says how many rows could not be read.
fn warn_of_skipped(skipped: &Skipped, context: &Context) {
    if let Some(first) = &skipped.first {
        let rows = crate::format::plural(skipped.count, "row");
        context.warn(format_args!("left out {rows} that could not be read; the first: {first}"));
    }
}

/// Says what was found out about the target.
fn say_task(data: &TrainingData, context: &Context) {
    context.say(format_args!(
        "{} of {} (force another task with --task)",
        data.target().task().name(),
        data.target().names().join(", ")
    ));
}

/// Warns of columns that are left out, or hardly meant as they are read.
fn warn_of_columns(data: &TrainingData, context: &Context) {
    for unusable in data.unusable() {
        context.warn(unusable);
    }
    for oddity in data.oddities() {
        context.warn(oddity);
    }
}

/// Warns of what did not fit the schema.
pub(crate) fn warn_of(surprises: &Surprises, schema: &Schema, context: &Context) {
    warn_of_skipped(&surprises.skipped, context);
    for (&column, &count) in &surprises.unseen {
        let name = schema.inputs.get(column).map_or("?", |input| input.name.as_str());
        context.warn(format_args!(
            "column `{name}`: {} with a category that training had not seen",
            crate::format::plural(count, "row")
        ));
    }
    if let (true, Some(weight)) = (surprises.without_weights, &schema.weight) {
        context.warn(format_args!(
            "no column `{weight}`, which held the weights in training: every row counts once"
        ));
    }
    if surprises.without_target > 0 {
        context.say(format_args!(
            "left out {} without a target",
            crate::format::plural(surprises.without_target, "row")
        ));
    }
}
