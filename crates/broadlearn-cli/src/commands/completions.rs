//! `broadlearn completions`: completion scripts for shells.

use crate::args::Cli;
use crate::fault::Fault;
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

#[derive(Args)]
#[command(
    after_help = "Example:\n  broadlearn completions bash > ~/.local/share/bash-completion/completions/broadlearn"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Fault> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "broadlearn", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
