//! Errors of the command, and their exit codes.

use broadlearn::{Category, Error};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// What ends a command early.
pub(crate) enum Fault {
    /// The library says where, what and what to do.
    Library(Error),
    /// The reader of our output has gone: nothing to say, nobody to say it to.
    ClosedPipe,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl Fault {
    /// A failure to write to this place.
    pub(crate) fn writing(place: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Library(Error::io(place, "write", error)),
        }
    }

    /// Says what happened and gives the exit code.
    pub(crate) fn report(self, colour: bool) -> ExitCode {
        let Self::Library(error) = self else { return ExitCode::from(74) };
        let code = match error.category() {
            Category::Setting => 2,
            Category::NoInput => 66,
            Category::CannotCreate => 73,
            Category::Io => 74,
            Category::Interrupted => 130,
            // Data, Model, Numeric: what was given leaves no answer.
            _ => 65,
        };
        let label = |name: &str, code: &str| {
            if colour { format!("\u{1b}[{code}m{name}\u{1b}[0m") } else { name.to_owned() }
        };
        // Nothing can be done if stderr itself is gone.
        let text = as_options_are_spelt(error.to_string(), error.category());
        let _ = writeln!(io::stderr(), "{} {text}", label("error:", "1;31"));
        if let Some(help) = error.help() {
            let _ = writeln!(io::stderr(), " {} {help}", label("help:", "1;36"));
        }
        ExitCode::from(code)
    }
}

/// A message with the name of a setting as its option has it.
fn as_options_are_spelt(text: String, category: Category) -> String {
    match (category, text.split_once("setting `").and_then(|(_, rest)| rest.split_once('`'))) {
        (Category::Setting, Some((name, _))) => text.replace(name, &name.replace('_', "-")),
        _ => text,
    }
}

/// Whether stderr is a terminal that may be coloured.
pub(crate) fn colour_wanted() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
