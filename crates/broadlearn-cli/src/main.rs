//! The `broadlearn` command.
//!
//! `args` says what can be typed, `commands` has one file per command, `context` is what they all
//! share: talk on stderr, progress, interruption. `fault` maps errors to exit codes.

mod args;
mod commands;
mod context;
mod data_args;
mod fault;
mod format;
mod learning_args;
mod live_input;
mod output;

use args::{Cli, Command};
use clap::Parser;
use context::Context;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let context = match Context::new(&cli.global) {
        Ok(context) => context,
        Err(fault) => return fault.report(false),
    };
    let result = match cli.command {
        Command::Fit(args) => commands::fit::run(&args, &context),
        Command::Tune(args) => commands::tune::run(&args, &context),
        Command::Predict(args) => commands::predict::run(&args, &context),
        Command::Evaluate(args) => commands::evaluate::run(&args, &context),
        Command::Audit(args) => commands::audit::run(&args, &context),
        Command::Forecast(args) => commands::forecast::run(&args, &context),
        Command::Learn(args) => commands::learn::run(&args, &context),
        Command::Forget(args) => commands::forget::run(&args, &context),
        Command::Grow(args) => commands::grow::run(&args, &context),
        Command::Merge(args) => commands::merge::run(&args, &context),
        Command::Refine(args) => commands::refine::run(&args, &context),
        Command::Diff(args) => commands::diff::run(&args, &context),
        Command::Inspect(args) => commands::inspect::run(&args, &context),
        Command::Psd(args) => commands::psd::run(&args, &context),
        Command::Demo(args) => commands::demo::run(&args, &context),
        Command::Paper(args) => commands::paper::run(&args, &context),
        Command::Completions(args) => commands::completions::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.report(context.colour()),
    }
}
