//! Saving and loading: versioned, validated, atomic.

use super::calibration::{Calibration, Facts, LEVELS};
use super::container::{self, Contents, Tensor};
use super::continuation::{Continuation, SeriesFacts};
use super::discriminant::Discriminant;
use super::map_file::{GroupKind, add_map_tensors, read_map};
use super::spread::{FIGURES, HIGHEST, LOWEST, Spread, SpreadFacts};
use super::{CheckedSettings, Criterion, Member, Model};
use crate::data::{Encoding, InputColumn, Kind, Schema, Task};
use crate::error::{Error, Result};
use crate::features::draw::GENERATOR;
use crate::increment::{Knowledge, Ledger};
use crate::preprocess::Scaler;
use crate::solve::factor::Factor;
use crate::solve::{Loss, SolveReport};
use crate::state::NormalEquations;
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Cursor, Write};
use std::path::Path;

/// The version of the format.
pub const FORMAT_VERSION: u32 = 4;

/// More rows than this no table has; counts beyond it could overflow.
pub(super) const MOST_ROWS: u64 = 1 << 53;

/// Everything but the numbers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    settings: CheckedSettings,
    generator: String,
    schema: Schema,
    input_scaler: ScalerKind,
    target_scaler: ScalerKind,
    inputs: usize,
    groups: Vec<GroupKind>,
    report: SolveReport,
    rows: u64,
    knowledge: Option<KnowledgeFacts>,
    /// Whether classes are told by multinomial regression on the outputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    discriminant: bool,
    calibration: Option<Facts>,
    /// What the further members of an ensemble have of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<MemberDescription>,
    /// The series that is forecast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forecast: Option<SeriesFacts>,
}

/// What a further member does not share with the first.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberDescription {
    seed: u64,
    groups: Vec<GroupKind>,
    report: SolveReport,
    knowledge: Option<KnowledgeFacts>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScalerKind {
    Columns,
    Tamed,
    Rows,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnowledgeFacts {
    /// Rows in R and P, and the sum of their weights.
    rows: u64,
    weight: f64,
    ridge: f64,
    /// Rows that are no longer on record.
    dropped: u64,
    /// Whether a forgetting factor was at work.
    decayed: bool,
    /// Rows by which the factor was updated; 0 if it is a function of R and not in the file.
    updates: u64,
}

impl Model {
    /// Saves the model: written beside `path`, synced, then put in its place, so that there is
    /// never half a model. The mode of an existing file is kept.
    ///
    /// ```
    /// use broadlearn::{Model, Settings, faer::Mat};
    /// let x = Mat::from_fn(50, 1, |i, _| i as f64);
    /// let y = Mat::from_fn(50, 1, |i, _| (i as f64 / 9.0).sin());
    /// let model = Settings::new().fit_regression(&x, &y)?;
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("sine.broad");
    /// model.save(&path)?;
    /// let again = Model::load(&path)?;
    /// assert_eq!(again.predict(&x)?.values(), model.predict(&x)?.values());
    /// # Ok::<(), broadlearn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `CannotCreate` or `Io`; what was at `path` is then still there.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.check_numbers()?;
        let failed = |error: io::Error| {
            let full = matches!(
                error.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::WriteZero
            );
            if full {
                Error::io(path.display().to_string(), "write", error)
                    .advice("free some space; what was there before is unchanged")
            } else {
                Error::cannot_create(path, error)
            }
        };
        // Through a link, the file that it points to is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            // A device or a pipe: there is nothing that could be replaced.
            let mut file = File::options().write(true).open(&target).map_err(failed)?;
            return file.write_all(&self.to_bytes()?).map_err(failed);
        }
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".broadlearn-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = existing.as_ref().map_or(0o666, |metadata| metadata.permissions().mode());
            builder.permissions(fs::Permissions::from_mode(mode & 0o7777));
        }
        let temporary = builder.tempfile_in(folder).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 20, temporary);
        self.write(&mut out).map_err(failed)?;
        let temporary = out.into_inner().map_err(|error| failed(error.into_error()))?;
        if let Some(metadata) = existing {
            // The mode given at creation went through the umask.
            temporary.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
        }
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(&target).map_err(|error| failed(error.error))?;
        // The new name is durable only when the folder is; some file systems cannot sync one.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// The bytes of a model file.
    ///
    /// # Errors
    /// If the description cannot be written as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check_numbers()?;
        let mut out = Cursor::new(Vec::new());
        self.write(&mut out).map_err(|error| Error::io("model", "write", error))?;
        Ok(out.into_inner())
    }

    /// Loads a model.
    ///
    /// # Errors
    /// `NoInput` or `Io`, or `Model` if the file is not a sound model of this version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::no_input(path, error))?;
        let metadata = file.metadata().map_err(|error| Error::no_input(path, error))?;
        if metadata.is_dir() {
            return Err(Error::no_input(path, io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            let bytes = fs::read(path).map_err(|error| Error::io(&name, "read", error))?;
            return Self::from_bytes(&bytes).map_err(|error| error.within(&name));
        }
        let mut input = BufReader::with_capacity(1 << 20, file);
        container::read(&mut input, metadata.len())
            .and_then(Self::from_contents)
            .map_err(|error| error.within(&name))
    }

    /// A model from the bytes of a model file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        container::read(&mut &*bytes, bytes.len() as u64).and_then(Self::from_contents)
    }

    /// A model with numbers that are not finite could not be loaded again.
    fn check_numbers(&self) -> Result<()> {
        if self.members.iter().all(Member::is_finite) {
            return Ok(());
        }
        Err(Error::numeric("the model holds numbers that are not finite, and was not saved")
            .advice("look for absurdly large inputs, targets or weights"))
    }

    fn write(&self, out: &mut (impl Write + io::Seek)) -> io::Result<()> {
        let scaler_kind = |scaler: &Scaler| match scaler {
            Scaler::Columns { tamed: false, .. } => ScalerKind::Columns,
            Scaler::Columns { tamed: true, .. } => ScalerKind::Tamed,
            Scaler::Rows => ScalerKind::Rows,
        };
        let first = self.first();
        let description = Description {
            settings: first.settings.clone(),
            generator: GENERATOR.into(),
            schema: first.schema.clone(),
            input_scaler: scaler_kind(&first.input_scaler),
            target_scaler: scaler_kind(&first.target_scaler),
            inputs: first.map.inputs(),
            groups: first.group_kinds(),
            report: first.report.clone(),
            rows: first.rows,
            knowledge: first.knowledge.as_ref().map(KnowledgeFacts::of),
            discriminant: self.discriminant.is_some(),
            calibration: self.calibration.as_ref().map(|calibration| calibration.facts),
            members: self.members[1..].iter().map(MemberDescription::of).collect(),
            forecast: self.continuation.as_ref().map(|series| series.facts.clone()),
        };
        let metadata = BTreeMap::from([
            ("format".into(), "broadlearn".into()),
            ("format_version".into(), FORMAT_VERSION.to_string()),
            ("model".into(), serde_json::to_string(&description)?),
        ]);

        let mut tensors = Vec::new();
        for (name, scaler) in
            [("input_scaler", &first.input_scaler), ("target_scaler", &first.target_scaler)]
        {
            if let Scaler::Columns { centre, factor, offset, .. } = scaler {
                tensors.push((format!("{name}.centre"), Tensor::Vector(centre)));
                tensors.push((format!("{name}.factor"), Tensor::Vector(factor)));
                tensors.push((format!("{name}.offset"), Tensor::Vector(offset)));
            }
        }
        if let Some(discriminant) = &self.discriminant {
            let coefficients = Tensor::Matrix(discriminant.coefficients.as_ref());
            tensors.push(("discriminant".into(), coefficients));
        }
        if let Some(calibration) = &self.calibration {
            let quantiles = Tensor::Matrix(calibration.quantiles.as_ref());
            tensors.push(("calibration.quantiles".into(), quantiles));
            if let Some(spread) = &calibration.spread {
                let columns = Tensor::Matrix(spread.columns.as_ref());
                tensors.push(("calibration.spread".into(), columns));
            }
        }
        if let Some(series) = self.continuation.as_ref().filter(|s| s.quantiles.ncols() > 0) {
            let quantiles = Tensor::Matrix(series.quantiles.as_ref());
            tensors.push(("forecast.quantiles".into(), quantiles));
        }
        for (place, member) in self.members.iter().enumerate() {
            member.add_tensors(&prefix(place), &mut tensors);
        }
        container::write(out, metadata, &tensors)
    }

    fn from_contents(mut contents: Contents) -> Result<Self> {
        let text = |key: &str| contents.metadata.get(key).map_or("", String::as_str);
        if text("format") != "broadlearn" {
            return Err(Error::model("another kind of safetensors file")
                .expected("a model that `broadlearn fit` wrote"));
        }
        let version = text("format_version");
        if version != FORMAT_VERSION.to_string() {
            return Err(Error::model(format!("format version {version}"))
                .expected(format!("format version {FORMAT_VERSION}"))
                .advice("use the release of broadlearn that wrote it, or fit the model anew"));
        }
        let description: Description = serde_json::from_str(text("model")).map_err(|error| {
            Error::model(format!("a description that cannot be read ({error})"))
                .expected("a model that `broadlearn fit` wrote")
        })?;

        description.check()?;
        let inputs = description.inputs;
        let outputs = description.schema.target.outputs();
        if description.schema.width() != inputs {
            return Err(Error::model(format!("{} encoded columns", description.schema.width()))
                .expected(format!("{inputs}, the inputs of the map")));
        }
        let input_scaler =
            read_scaler(&mut contents, &description.input_scaler, "input_scaler", inputs)?;
        let target_scaler =
            read_scaler(&mut contents, &description.target_scaler, "target_scaler", outputs)?;
        let discriminant = match description.discriminant {
            false => None,
            true => Some(read_discriminant(&mut contents, &description.schema)?),
        };
        let calibration = match description.calibration {
            None => None,
            Some(facts) => Some(read_calibration(&mut contents, facts, &description.schema)?),
        };
        let continuation = match description.forecast.clone() {
            None => None,
            Some(facts) => Some(read_continuation(&mut contents, facts, &description.schema)?),
        };
        let Description { settings, schema, report, rows, groups, knowledge, members, .. } =
            description;
        let first = MemberDescription { seed: settings.seed, groups, report, knowledge };
        let members = std::iter::once(first).chain(members).enumerate();
        let members = members.map(|(place, own)| {
            let prefix = &prefix(place);
            let map = read_map(&mut contents, prefix, inputs, &own.groups)?;
            let w = contents.matrix(&format!("{prefix}output.weights"), map.width(), outputs)?;
            let knowledge = match &own.knowledge {
                None => None,
                Some(facts) => {
                    Some(read_knowledge(&mut contents, prefix, facts, map.width(), outputs)?)
                }
            };
            Ok(Member {
                settings: CheckedSettings { seed: own.seed, ..settings.clone() },
                schema: schema.clone(),
                input_scaler: input_scaler.clone(),
                target_scaler: target_scaler.clone(),
                map,
                w,
                knowledge,
                report: own.report,
                rows,
            })
        });
        let model = Self {
            members: members.collect::<Result<_>>()?,
            discriminant,
            calibration,
            continuation,
        };
        contents.finish()?;
        model.check_members()?;
        Ok(model)
    }

    /// An error unless the members have as many nodes and the same rows on record as the first.
    fn check_members(&self) -> Result<()> {
        let first = self.first();
        for (place, member) in self.members.iter().enumerate().skip(1) {
            if member.map.width() != first.map.width() || member.prints() != first.prints() {
                return Err(Error::model(
                    "other nodes or other rows than those of the first member",
                )
                .at(format!("member {}", place + 1))
                .expected("members of one ensemble"));
            }
        }
        Ok(())
    }
}

fn read_calibration(contents: &mut Contents, facts: Facts, schema: &Schema) -> Result<Calibration> {
    let columns = match schema.target.task() {
        Task::Regression => schema.target.outputs(),
        Task::Classification => 1,
    };
    let quantiles = contents.matrix("calibration.quantiles", LEVELS, columns)?;
    let sound = facts.rows >= 1.0 && facts.usual_leverage > 0.0;
    if !(sound && ascend(&quantiles)) {
        return Err(Error::model("quantiles that do not ascend, or of no rows")
            .at("calibration")
            .expected("the quantiles of residuals"));
    }
    let spread = match facts.spread {
        None => None,
        Some(spread) => Some(read_spread(contents, spread, schema)?),
    };
    Ok(Calibration { quantiles, spread, facts })
}

fn read_discriminant(contents: &mut Contents, schema: &Schema) -> Result<Discriminant> {
    if schema.target.task() != Task::Classification {
        return Err(Error::model("a discriminant of a regression")
            .expected("a model that `broadlearn fit` wrote"));
    }
    let classes = schema.target.outputs();
    let coefficients = contents.matrix("discriminant", classes + 1, classes)?;
    Ok(Discriminant { coefficients })
}

fn read_spread(contents: &mut Contents, facts: SpreadFacts, schema: &Schema) -> Result<Spread> {
    let rows = schema.width() + schema.target.outputs();
    let columns = contents.matrix("calibration.spread", rows, FIGURES)?;
    let units = columns.col(1).iter().all(|unit| *unit > 0.0);
    let ends = LOWEST <= facts.low && facts.low <= facts.high && facts.high <= HIGHEST;
    if !(units && ends && facts.offset.is_finite()) {
        return Err(Error::model("a spread of errors without units or with ends that none has")
            .at("calibration")
            .expected("how errors depend on the inputs"));
    }
    Ok(Spread { columns, facts })
}

fn ascend(quantiles: &Mat<f64>) -> bool {
    quantiles.col_iter().all(|column| (1..column.nrows()).all(|i| column[i - 1] <= column[i]))
}

fn read_continuation(
    contents: &mut Contents,
    facts: SeriesFacts,
    schema: &Schema,
) -> Result<Continuation> {
    facts.check()?;
    let own = facts.embedding.schema();
    let names = |schema: &Schema| -> Vec<String> {
        schema.inputs.iter().map(|input| input.name.clone()).collect()
    };
    if names(&own) != names(schema) || own.target != schema.target {
        return Err(Error::model("an embedding that does not make the model's columns")
            .at("forecast")
            .expected("a model that `broadlearn forecast` wrote"));
    }
    let quantiles = match facts.shape() {
        (_, 0) => Mat::new(),
        (levels, steps) => contents.matrix("forecast.quantiles", levels, steps)?,
    };
    if !ascend(&quantiles) {
        return Err(Error::model("quantiles that do not ascend")
            .at("forecast")
            .expected("the quantiles of errors"));
    }
    Ok(Continuation { facts, quantiles })
}

/// What the names of a member's tensors begin with.
fn prefix(place: usize) -> String {
    match place {
        0 => String::new(),
        place => format!("members.{place}."),
    }
}

impl Member {
    fn group_kinds(&self) -> Vec<GroupKind> {
        self.map.groups().iter().map(GroupKind::of).collect()
    }

    /// The rows on record.
    fn prints(&self) -> Option<&[u64]> {
        self.knowledge.as_ref().map(|knowledge| knowledge.ledger().fingerprints())
    }

    fn is_finite(&self) -> bool {
        let finite = |matrix: MatRef<'_, f64>| {
            matrix.col_iter().all(|column| column.iter().all(|value| value.is_finite()))
        };
        let known = self.knowledge.as_ref().is_none_or(|known| {
            let (equations, ledger) = (known.equations(), known.ledger());
            let r = equations.r();
            (0..r.nrows()).all(|i| r[(i, i)].is_finite())
                && finite(equations.p())
                && equations.weight().is_finite()
                && ledger.weights().iter().all(|weight| weight.is_finite())
        });
        known && finite(self.w.as_ref()) && self.report.spread.is_finite()
    }

    fn add_tensors<'a>(&'a self, prefix: &str, tensors: &mut Vec<(String, Tensor<'a>)>) {
        add_map_tensors(&self.map, prefix, tensors);
        let mut add = |name: &str, tensor| tensors.push((format!("{prefix}{name}"), tensor));
        add("output.weights", Tensor::Matrix(self.w.as_ref()));
        if let Some(knowledge) = &self.knowledge {
            let (equations, ledger) = (knowledge.equations(), knowledge.ledger());
            add("equations.r", Tensor::Lower(equations.r()));
            add("equations.p", Tensor::Matrix(equations.p()));
            if let Some((factor, _)) = knowledge.updated_factor() {
                add("equations.factor", Tensor::Lower(factor));
            }
            add("ledger.fingerprints", Tensor::Integers(ledger.fingerprints()));
            add("ledger.weights", Tensor::Vector(ledger.weights()));
        }
    }
}

impl MemberDescription {
    fn of(member: &Member) -> Self {
        Self {
            seed: member.settings.seed,
            groups: member.group_kinds(),
            report: member.report.clone(),
            knowledge: member.knowledge.as_ref().map(KnowledgeFacts::of),
        }
    }
}

impl KnowledgeFacts {
    fn of(knowledge: &Knowledge) -> Self {
        Self {
            rows: knowledge.equations().rows(),
            weight: knowledge.equations().weight(),
            ridge: knowledge.ridge(),
            dropped: knowledge.ledger().dropped(),
            decayed: knowledge.decayed(),
            updates: knowledge.updated_factor().map_or(0, |(_, updates)| updates),
        }
    }
}

impl Description {
    /// What holds for every description that this library writes.
    fn check(&self) -> Result<()> {
        self.settings
            .verify(self.schema.target.task())
            .map_err(|error| Error::model(format!("bad settings ({error})")).caused_by(error))?;
        if self.generator != GENERATOR {
            return Err(Error::model(format!("random generator `{}`", self.generator))
                .expected(format!("`{GENERATOR}`"))
                .advice("use the release of broadlearn that wrote it, or fit the model anew"));
        }
        self.check_members()?;
        let counts_agree = self.facts().all(|known| {
            known.rows == self.rows && known.ridge == self.report.ridge.unwrap_or(0.0)
        });
        if self.rows > MOST_ROWS || !counts_agree {
            return Err(Error::model("numbers of rows or ridges that contradict each other")
                .expected("a model that broadlearn wrote"));
        }
        // Later rows are weighed by the loss of the report.
        let losses_agree = match (self.settings.criterion, self.report.loss) {
            (Criterion::Squared, Loss::Squared) => true,
            (Criterion::Robust { kind, .. }, Loss::Robust { kind: used, sigma }) => {
                kind == used && sigma > 0.0 && sigma.is_finite()
            }
            _ => false,
        };
        if !losses_agree {
            return Err(Error::model("a loss that is not that of the settings")
                .expected("a model that broadlearn wrote"));
        }
        let fits = |input: &InputColumn| match input.encoding {
            Encoding::Number { .. } => input.kind != Kind::Text,
            Encoding::Category { .. } => input.kind == Kind::Text,
        };
        match self.schema.inputs.iter().find(|input| !fits(input)) {
            None => Ok(()),
            Some(input) => Err(Error::model("an encoding for another kind of cells")
                .at(format!("column `{}`", input.name))
                .expected("numbers as numbers, text as a category")),
        }
    }

    /// What the members have on record.
    fn facts(&self) -> impl Iterator<Item = &KnowledgeFacts> {
        let others = self.members.iter().map(|member| &member.knowledge);
        std::iter::once(&self.knowledge).chain(others).flatten()
    }

    /// An error unless the members differ in nothing but seed, weights and how these were found.
    fn check_members(&self) -> Result<()> {
        if self.settings.members != self.members.len() + 1 {
            return Err(Error::model(format!("{} members", self.members.len() + 1))
                .expected(format!("{}, as the settings say", self.settings.members)));
        }
        for (place, member) in self.members.iter().enumerate() {
            let history = |facts: &KnowledgeFacts| (facts.rows, facts.dropped, facts.decayed);
            let differing = if member.groups != self.groups {
                "groups of nodes"
            } else if member.report.loss != self.report.loss
                || member.report.ridge != self.report.ridge
            {
                "kernel size or ridge"
            } else if member.knowledge.as_ref().map(history) != self.knowledge.as_ref().map(history)
            {
                "rows"
            } else {
                continue;
            };
            return Err(Error::model(format!("other {differing} than those of the first member"))
                .at(format!("member {}", place + 2))
                .expected("members of one ensemble"));
        }
        Ok(())
    }
}

fn read_scaler(
    contents: &mut Contents,
    kind: &ScalerKind,
    name: &str,
    columns: usize,
) -> Result<Scaler> {
    match kind {
        ScalerKind::Rows => Ok(Scaler::Rows),
        ScalerKind::Columns | ScalerKind::Tamed => Ok(Scaler::Columns {
            centre: contents.vector(&format!("{name}.centre"), columns)?,
            factor: contents.vector(&format!("{name}.factor"), columns)?,
            offset: contents.vector(&format!("{name}.offset"), columns)?,
            tamed: matches!(kind, ScalerKind::Tamed),
        }),
    }
}

fn read_knowledge(
    contents: &mut Contents,
    prefix: &str,
    facts: &KnowledgeFacts,
    nodes: usize,
    outputs: usize,
) -> Result<Knowledge> {
    let unsound = || Error::model("a record of rows that does not fit together");
    let r = contents.lower(&format!("{prefix}equations.r"), nodes)?;
    let p = contents.matrix(&format!("{prefix}equations.p"), nodes, outputs)?;
    let equations =
        NormalEquations::from_parts(r, p, facts.rows, facts.weight).ok_or_else(unsound)?;
    let factor = match facts.updates {
        0 => None,
        updates => {
            let lower = contents.lower(&format!("{prefix}equations.factor"), nodes)?;
            Some((Factor::from_lower(lower).ok_or_else(unsound)?, updates))
        }
    };
    let fingerprints = contents.integers(&format!("{prefix}ledger.fingerprints"))?;
    let weights = contents.vector(&format!("{prefix}ledger.weights"), fingerprints.len())?;
    let sound = facts.ridge >= 0.0
        && facts.ridge.is_finite()
        && facts.updates <= nodes as u64
        && facts.rows.max(facts.dropped) <= MOST_ROWS;
    if !sound {
        return Err(unsound());
    }
    let ledger = Ledger::from_parts(fingerprints, weights, facts.dropped).ok_or_else(unsound)?;
    Ok(Knowledge::from_parts(equations, facts.ridge, ledger, factor, facts.decayed))
}
