//! The project's own commands, run as `cargo xtask COMMAND`. `cargo xtask help` lists them.

mod bench;
mod data;
mod licences;
mod run;
mod test;
mod venv;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One command: a module with a function from its arguments to a result.
struct Command {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

/// All commands. A new one is a module, its `mod` line above and an entry here.
const COMMANDS: &[Command] = &[
    Command { name: "test", summary: test::SUMMARY, help: test::HELP, run: test::run },
    Command { name: "data", summary: data::SUMMARY, help: data::HELP, run: data::run },
    Command { name: "bench", summary: bench::SUMMARY, help: bench::HELP, run: bench::run },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("help", String::as_str);
    if matches!(name, "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: no command '{name}'\n\n{}", help());
        return ExitCode::from(2);
    };
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{}", command.help);
        return ExitCode::SUCCESS;
    }
    match (command.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The list of the commands.
fn help() -> String {
    let mut text = String::from("cargo xtask COMMAND [OPTIONS]\n\n");
    for command in COMMANDS {
        text += &format!("  {:<6} {}\n", command.name, command.summary);
    }
    text += "  help   this list; `cargo xtask COMMAND --help` tells more of one\n";
    text
}

/// The workspace's root folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
