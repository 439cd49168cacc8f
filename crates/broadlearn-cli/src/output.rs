//! Where data go: stdout, or a file that appears only when it is complete.

use crate::context;
use crate::fault::Fault;
use broadlearn::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// An output that is being written.
pub(crate) struct Output {
    sink: Sink,
    /// What compresses the bytes on their way, if the name ends in `.gz`.
    gzip: Option<GzEncoder<Vec<u8>>>,
}

enum Sink {
    Stdout(BufWriter<StdoutLock<'static>>),
    /// A device or a pipe, written directly.
    Direct(BufWriter<File>, PathBuf),
    /// A file, written beside its place.
    Atomic(BufWriter<NamedTempFile>, PathBuf),
}

impl Output {
    /// Opens an output; `None` and `-` mean stdout.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Fault> {
        let is_gzip = path.is_some_and(|path| has_extension(path, &["gz"]));
        let gzip = is_gzip.then(|| GzEncoder::new(Vec::new(), Compression::default()));
        Ok(Self { sink: Sink::open(path)?, gzip })
    }

    /// Writes bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let Some(gzip) = &mut self.gzip else { return self.sink.write(bytes) };
        gzip.write_all(bytes).map_err(|error| Fault::writing(&self.sink.place(), error))?;
        self.sink.write(&std::mem::take(gzip.get_mut()))
    }

    /// Hands on what was written so far.
    pub(crate) fn flush(&mut self) -> Result<(), Fault> {
        if let Some(gzip) = &mut self.gzip {
            gzip.flush().map_err(|error| Fault::writing(&self.sink.place(), error))?;
            self.sink.write(&std::mem::take(gzip.get_mut()))?;
        }
        self.sink.flush()
    }

    /// Completes the output and puts it in its place.
    pub(crate) fn finish(mut self) -> Result<(), Fault> {
        if let Some(gzip) = self.gzip.take() {
            let rest = gzip.finish().map_err(|error| Fault::writing(&self.sink.place(), error))?;
            self.sink.write(&rest)?;
        }
        self.sink.finish()
    }
}

impl Sink {
    fn open(path: Option<&Path>) -> Result<Self, Fault> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            return Ok(Self::Stdout(BufWriter::with_capacity(1 << 16, io::stdout().lock())));
        };
        let failed = |error: io::Error| Error::cannot_create(path, error);
        // Through a link, the file that it points to is replaced, not the link.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if std::fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(&target).map_err(failed)?;
            return Ok(Self::Direct(BufWriter::new(file), path.to_owned()));
        }
        check_folder(path)?;
        let folder = folder_of(&target);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".broadlearn-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(failed)?;
        context::unfinished(file.path().to_owned());
        Ok(Self::Atomic(BufWriter::with_capacity(1 << 16, file), target))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let result = match self {
            Self::Stdout(out) => out.write_all(bytes),
            Self::Direct(out, _) => out.write_all(bytes),
            Self::Atomic(out, _) => out.write_all(bytes),
        };
        result.map_err(|error| Fault::writing(&self.place(), error))
    }

    fn flush(&mut self) -> Result<(), Fault> {
        let result = match self {
            Self::Stdout(out) => out.flush(),
            Self::Direct(out, _) => out.flush(),
            Self::Atomic(out, _) => out.flush(),
        };
        result.map_err(|error| Fault::writing(&self.place(), error))
    }

    fn finish(self) -> Result<(), Fault> {
        let place = self.place();
        let failed = |error: io::Error| Fault::writing(&place, error);
        match self {
            Self::Stdout(mut out) => out.flush().map_err(failed),
            Self::Direct(mut out, _) => out.flush().map_err(failed),
            Self::Atomic(out, target) => {
                let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
                context::finishing(|| {
                    file.as_file().sync_all().map_err(failed)?;
                    let persisted = file.persist(&target);
                    persisted.map_err(|error| Error::cannot_create(&target, error.error))?;
                    Ok(())
                })
            }
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Stdout(_) => "standard output".into(),
            Self::Direct(_, path) | Self::Atomic(_, path) => path.display().to_string(),
        }
    }
}

/// Whether a name ends in one of these.
fn has_extension(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    endings.iter().any(|other| ending.eq_ignore_ascii_case(other))
}

/// An error if the name of a table that is written says that it is no CSV.
pub(crate) fn check_table(out: Option<&Path>) -> Result<(), Fault> {
    const OTHERS: [&str; 9] =
        ["tsv", "parquet", "npy", "npz", "json", "jsonl", "ndjson", "xlsx", "feather"];
    let Some(path) = out else { return Ok(()) };
    let plain = if has_extension(path, &["gz"]) { path.with_extension("") } else { path.into() };
    match has_extension(&plain, &OTHERS) {
        false => Ok(()),
        true => Err(Error::setting("output", path.display())
            .expected("a name that ends in .csv or .csv.gz: tables are written as CSV")
            .into()),
    }
}

/// The same for a table whose rows are there at once, so that they cannot be compressed.
pub(crate) fn check_live_table(out: Option<&Path>) -> Result<(), Fault> {
    check_table(out)?;
    match out.filter(|path| has_extension(path, &["gz"])) {
        None => Ok(()),
        Some(path) => Err(Error::setting("output", path.display())
            .expected("a name that ends in .csv: these rows are written one by one")
            .into()),
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// An error if there is no folder for one of these outputs, or if it would take the place of an input or of another output:
/// better said before long work than after it.
pub(crate) fn check_places<'a>(
    outputs: impl IntoIterator<Item = &'a PathBuf>,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Fault> {
    let mut taken: Vec<(PathBuf, &str)> =
        inputs.into_iter().filter_map(|path| Some((place_of(path)?, "is read"))).collect();
    for path in outputs {
        check_folder(path)?;
        let Some(place) = place_of(path) else { continue };
        if let Some((_, what)) = taken.iter().find(|(other, _)| *other == place) {
            return Err(Error::setting("output", format!("{}, which {what}", path.display()))
                .expected("a file of its own: nothing is to be lost")
                .into());
        }
        taken.push((place, "is written already"));
    }
    Ok(())
}

/// An error if both a table and the summary were to go to stdout.
pub(crate) fn check_stdout(json: bool, out: Option<&Path>) -> Result<(), Fault> {
    match json && out == Some(Path::new("-")) {
        true => Err(Error::setting("json", "--out -")
            .expected("--out FILE, as stdout holds the summary")
            .into()),
        false => Ok(()),
    }
}

/// Where a file is or will be, links followed; `None` for stdin, stdout, pipes and devices.
fn place_of(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") || std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return None;
    }
    let name = path.file_name()?;
    let new = || Some(std::fs::canonicalize(folder_of(path)).ok()?.join(name));
    std::fs::canonicalize(path).ok().or_else(new)
}

/// An error if there is no folder for this file.
pub(crate) fn check_folder(path: &Path) -> Result<(), Fault> {
    if path == Path::new("-") {
        return Ok(());
    }
    if path.is_dir() {
        let error = io::ErrorKind::IsADirectory.into();
        return Err(Error::cannot_create(path, error).into());
    }
    let folder = folder_of(path);
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Error::cannot_create(path, io::ErrorKind::NotADirectory.into()).into()),
        Err(error) => Err(Error::cannot_create(path, error)
            .advice(format!("make the folder first: mkdir -p {}", folder.display()))
            .into()),
    }
}

/// Writes a whole text to a file, atomically.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Fault> {
    let mut output = Output::open(Some(path))?;
    output.write(text.as_bytes())?;
    output.finish()
}

/// Prints a text on stdout.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    let mut output = Output::open(None)?;
    output.write(text.as_bytes())?;
    output.finish()
}

/// Prints a JSON object on stdout.
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Fault> {
    print(&format!("{value}\n"))
}
