//! What can be typed.

use crate::commands;
use clap::{Args, Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes:
  0    all went well
  2    a wrong option or setting
  65   the data or the model are not as they should be
  66   an input cannot be opened
  73   an output cannot be created
  74   reading or writing failed (a closed pipe among them)
  130  interrupted

Data go to stdout, talk goes to stderr. A file name of - means stdin or stdout.
NO_COLOR and --quiet are obeyed.";

const EXAMPLES: &str = "\
Examples:
  broadlearn demo
  broadlearn fit train.csv --target price --model price.broad
  broadlearn predict price.broad new.csv > predictions.csv
  broadlearn evaluate price.broad test.csv --json
  broadlearn learn price.broad may.csv
  broadlearn forecast sales.csv --column sales --lags 7 --horizon 14 --evaluate 60
  tail -f sensors.csv | broadlearn learn sensors.broad - --quarantine 0.1";

/// A broad learning machine that keeps learning when the data are dirty.
#[derive(Parser)]
#[command(name = "broadlearn", version, about, after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args)]
pub(crate) struct Global {
    /// Print one JSON object on stdout instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Threads to use [default: all cores]; the results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Learn from a table and write a model
    Fit(Box<commands::fit::FitArgs>),
    /// Search a grid of settings for the best ones, and write their model
    Tune(Box<commands::tune::TuneArgs>),
    /// Predict the rows of a table with a model
    Predict(commands::predict::PredictArgs),
    /// Score a model on a table that has the target
    Evaluate(commands::evaluate::EvaluateArgs),
    /// List the rows of a table whose target is probably wrong
    Audit(commands::audit::AuditArgs),
    /// Forecast the next points of a series, with intervals, and score such forecasts
    Forecast(Box<commands::forecast::ForecastArgs>),
    /// Learn further rows without the earlier ones; from - a stream without end
    Learn(Box<commands::learn::LearnArgs>),
    /// Forget rows, as if they had never been learnt
    Forget(commands::forget::ForgetArgs),
    /// Add nodes to the network
    Grow(commands::grow::GrowArgs),
    /// Join models of different rows
    #[command(mut_arg("out", |out| out.help("Where the merged model goes").required(true)))]
    Merge(commands::merge::MergeArgs),
    /// Bring the weights of all learnt rows up to date
    Refine(commands::refine::RefineArgs),
    /// Say in what two models differ
    Diff(commands::diff::DiffArgs),
    /// Say what is in a model file
    Inspect(commands::inspect::InspectArgs),
    /// Turn trials of multichannel signals (EDF, GDF, .npz, CSV) into a table of spectra
    Psd(Box<commands::psd::PsdArgs>),
    /// Show it: a noisy series, plain and robust learning, a model and a page
    Demo(commands::demo::DemoArgs),
    /// Do the experiments of the C-BLS paper again
    Paper(commands::paper::PaperArgs),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
}
