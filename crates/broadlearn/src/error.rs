//! One error type for the whole library: where, what was found, what was expected, what to do.

use std::fmt;
use std::io;
use std::path::Path;

/// A shorthand for results of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in broad terms: front ends map it to exit codes, HTTP states and exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// A setting is out of its range, or settings contradict each other.
    Setting,
    /// The data do not have the form that was asked for.
    Data,
    /// A model file is damaged, of another version, or lacks what was asked of it.
    Model,
    /// An input cannot be opened.
    NoInput,
    /// An output cannot be created.
    CannotCreate,
    /// Reading or writing failed half-way.
    Io,
    /// The numbers leave no answer: all weights vanished, no scale could be estimated.
    Numeric,
    /// The caller asked to stop.
    Interrupted,
}

/// An error that names the place, what was found there, what was expected, and what to do.
///
/// ```
/// use broadlearn::{Category, Error};
/// let error = Error::data("text `abc`").at("train.csv, line 7, column `age`").expected("a number");
/// assert_eq!(error.category(), Category::Data);
/// assert_eq!(
///     error.to_string(),
///     "train.csv, line 7, column `age`: found text `abc`; expected a number"
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    category: Category,
    place: Option<String>,
    fact: Fact,
    expected: Option<String>,
    advice: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

enum Fact {
    Found(String),
    Happened(String),
}

impl Error {
    fn new(category: Category, fact: Fact) -> Self {
        let inner =
            Inner { category, place: None, fact, expected: None, advice: None, source: None };
        Self(Box::new(inner))
    }

    /// A setting is wrong; `found` is the value as the user gave it.
    pub fn setting(name: &str, found: impl fmt::Display) -> Self {
        Self::new(Category::Setting, Fact::Found(found.to_string())).at(format!("setting `{name}`"))
    }

    /// The data hold something that they should not; `found` completes "found ...".
    pub fn data(found: impl Into<String>) -> Self {
        Self::new(Category::Data, Fact::Found(found.into()))
    }

    /// A model file is not usable; `found` completes "found ...".
    pub fn model(found: impl Into<String>) -> Self {
        Self::new(Category::Model, Fact::Found(found.into()))
    }

    /// The numbers leave no answer; `what` is a whole sentence without its full stop.
    pub fn numeric(what: impl Into<String>) -> Self {
        Self::new(Category::Numeric, Fact::Happened(what.into()))
    }

    /// The caller's progress callback asked to stop.
    pub fn interrupted() -> Self {
        Self::new(Category::Interrupted, Fact::Happened("interrupted".into()))
    }

    /// An input that cannot be opened.
    pub fn no_input(path: &Path, source: io::Error) -> Self {
        Self::new(Category::NoInput, Fact::Happened(format!("cannot open: {source}")))
            .at(path.display().to_string())
            .caused_by(source)
    }

    /// An output that cannot be created or put in place.
    pub fn cannot_create(path: &Path, source: io::Error) -> Self {
        Self::new(Category::CannotCreate, Fact::Happened(format!("cannot create: {source}")))
            .at(path.display().to_string())
            .caused_by(source)
    }

    /// Reading or writing that failed after it had begun; `action` is "read" or "write".
    pub fn io(place: impl Into<String>, action: &str, source: io::Error) -> Self {
        Self::new(Category::Io, Fact::Happened(format!("cannot {action}: {source}")))
            .at(place)
            .caused_by(source)
    }

    /// Says where: a file with line and column, a setting, a tensor.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.0.place = Some(place.into());
        self
    }

    /// Puts a wider place (a file's name) before the place already known.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.0.place = Some(match self.0.place {
            Some(inner) => format!("{outer}, {inner}"),
            None => outer.to_owned(),
        });
        self
    }

    /// Says what would have been right; completes "expected ...".
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>) -> Self {
        self.0.expected = Some(expected.into());
        self
    }

    /// Says what to do about it, as an instruction.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// Keeps the error that this one stems from.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// What went wrong, in broad terms.
    pub fn category(&self) -> Category {
        self.0.category
    }

    /// What to do about it, if that is known.
    pub fn help(&self) -> Option<&str> {
        self.0.advice.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.0.place {
            write!(f, "{place}: ")?;
        }
        match &self.0.fact {
            Fact::Found(found) => write!(f, "found {found}")?,
            Fact::Happened(what) => f.write_str(what)?,
        }
        if let Some(expected) = &self.0.expected {
            write!(f, "; expected {expected}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self}", self.0.category)?;
        if let Some(advice) = &self.0.advice {
            write!(f, "; {advice}")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
