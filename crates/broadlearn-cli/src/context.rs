//! What all commands share: talk on stderr, progress, interruption.

use crate::args::Global;
use crate::fault::{Fault, colour_wanted};
use broadlearn::{Error, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Set while a finished file is put in its place, which takes no time and must not be cut short.
static FINISHING: AtomicBool = AtomicBool::new(false);
/// Unfinished files, removed if the command is interrupted.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A stage, and the member of an ensemble that is in it.
type Work = (&'static str, Option<(usize, usize)>);

/// The surroundings of a command.
pub(crate) struct Context {
    pub(crate) json: bool,
    quiet: bool,
    colour: bool,
    /// The progress bar, and what it shows: stage and member.
    bar: RefCell<Option<(Work, ProgressBar)>>,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Result<Self, Fault> {
        if let Some(threads) = global.threads {
            rayon::ThreadPoolBuilder::new()
                .num_threads(usize::from(threads))
                .build_global()
                .map_err(|error| {
                    Error::setting("threads", threads)
                        .expected("threads that can be started")
                        .caused_by(error)
                })?;
        }
        // Without a handler Ctrl-C still ends the process, only less tidily.
        let _ = ctrlc::set_handler(interrupt);
        let (json, quiet) = (global.json, global.quiet);
        Ok(Self { json, quiet, colour: colour_wanted(), bar: RefCell::new(None) })
    }

    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// Says something on stderr.
    pub(crate) fn say(&self, what: impl Display) {
        self.end_progress();
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{what}");
        }
    }

    /// Says something on stderr that the user should not miss.
    pub(crate) fn warn(&self, what: impl Display) {
        let label = if self.colour { "\u{1b}[1;33mwarning:\u{1b}[0m" } else { "warning:" };
        self.say(format_args!("{label} {what}"));
    }

    /// An observer for the library: shows progress on a terminal and passes on an interruption.
    pub(crate) fn observer(&self) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
        |progress| {
            self.show(progress);
            if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    /// Removes the progress bar, if there is one.
    pub(crate) fn end_progress(&self) {
        if let Some((_, bar)) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    fn show(&self, progress: Progress) {
        if self.quiet || !io::stderr().is_terminal() {
            return;
        }
        let mut current = self.bar.borrow_mut();
        let work = (progress.stage, progress.member);
        if current.as_ref().is_none_or(|(shown, _)| *shown != work) {
            if let Some((_, bar)) = current.take() {
                bar.finish_and_clear();
            }
            *current = Some((work, new_bar(&progress)));
        }
        if let Some((_, bar)) = current.as_ref() {
            bar.set_position(progress.done);
        }
    }
}

fn new_bar(progress: &Progress) -> ProgressBar {
    let bar = match progress.total {
        Some(total) => {
            let style = "{msg:28} {wide_bar} {pos}/{len}  {elapsed} (eta {eta})";
            ProgressBar::new(total).with_style(
                ProgressStyle::with_template(style)
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            )
        }
        None => {
            let style = "{spinner} {msg:28} {pos}  {elapsed}";
            ProgressBar::no_length().with_style(
                ProgressStyle::with_template(style)
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            )
        }
    };
    match progress.member {
        None => bar.set_message(progress.stage),
        Some((member, count)) => bar.set_message(format!("{member}/{count} {}", progress.stage)),
    }
    // Work that goes on from an earlier run has not been done in no time.
    bar.set_position(progress.done);
    bar.reset_eta();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Whether the user has asked to stop.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Runs what puts finished files in their places: an interruption waits for it.
pub(crate) fn finishing<T>(work: impl FnOnce() -> T) -> T {
    let before = FINISHING.swap(true, Ordering::SeqCst);
    let result = work();
    FINISHING.store(before, Ordering::SeqCst);
    result
}

/// Notes a file that is to be removed if the command is interrupted.
pub(crate) fn unfinished(path: PathBuf) {
    if let Ok(mut paths) = UNFINISHED.lock() {
        paths.push(path);
    }
}

/// The first Ctrl-C: work that looks at the flag stops by itself; work that cannot (a read that
/// waits, a long product) is ended after a moment.
fn interrupt() {
    if INTERRUPTED.swap(true, Ordering::SeqCst) {
        leave();
    }
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(700));
        while FINISHING.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = writeln!(io::stderr(), "error: interrupted");
        leave();
    });
}

fn leave() -> ! {
    if let Ok(paths) = UNFINISHED.lock() {
        for path in paths.iter() {
            let _ = std::fs::remove_file(path);
        }
    }
    std::process::exit(130)
}
