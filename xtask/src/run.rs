//! Running other programs: the command is echoed, and a failure names it.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// The cargo that runs us, else the one on the path.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::root());
    command
}

/// Echoes and runs a command; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    echo(command);
    let status = command.status().with_context(|| format!("cannot run `{}`", shown(command)))?;
    succeeded(command, status)
}

/// As [`run`], and hands each line of its standard output, which is shown too, to `see`.
pub(crate) fn run_seeing(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    echo(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run `{}`", shown(command)))?;
    if let Some(output) = child.stdout.take() {
        let mut shown = io::stdout();
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            shown.write_all(&line)?;
            shown.write_all(b"\n")?;
            see(&String::from_utf8_lossy(&line));
        }
    }
    let status = child.wait()?;
    succeeded(command, status)
}

/// Runs a command quietly and returns its standard output; an error, with what it said, unless it
/// succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", shown(command), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command as one would type it, with the variables set for it.
pub(crate) fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), quoted(value)));
        }
    }
    // Cargo's full path says nothing and hides the rest of the line.
    let program = command.get_program();
    let is_cargo = env::var_os("CARGO").is_some_and(|cargo| cargo == program);
    words.push(if is_cargo { "cargo".into() } else { quoted(program) });
    words.extend(command.get_args().map(quoted));
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+\\".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{word}'")
    }
}

fn echo(command: &Command) {
    println!("$ {}", shown(command));
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_typed() {
        let mut command = Command::new("tool");
        command.env("LIST", "a b").args(["--flag", "x y", ""]);
        assert_eq!(shown(&command), "LIST='a b' tool --flag 'x y' ''");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program-here")).map_err(|e| format!("{e:#}"));
        assert!(error.is_err_and(|text| text.contains("no-such-program-here")));
    }
}
