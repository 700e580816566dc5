//! Running other programs: with a sentence when they are missing, and without hiding their output.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::failure::{Failure, Result};
use crate::workspace;

/// `cargo`, the one that runs us, in the workspace.
pub(crate) fn cargo<I, S>(args: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root()).args(args);
    command
}

/// Shows the command, runs it on our terminal and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("+ {}", shown(command));
    let status = command.status().map_err(|error| missing(command, &error))?;
    if status.success() { Ok(()) } else { Err(Failure::error(format!("`{}` failed ({status})", shown(command)))) }
}

/// Runs the command and returns what it printed; its errors go to our terminal.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| missing(command, &error))?;
    if !output.status.success() {
        return Err(Failure::error(format!("`{}` failed ({})", shown(command), output.status)));
    }
    String::from_utf8(output.stdout)
        .map_err(|error| Failure::error(format!("`{}` printed no UTF-8: {error}", shown(command))))
}

/// Whether the program starts and succeeds, silently.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program).chain(command.get_args()).map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

fn missing(command: &Command, error: &std::io::Error) -> Failure {
    Failure::error(format!("cannot run `{}`: {error}", command.get_program().to_string_lossy()))
}
