//! `up`, `run` and `down`: each replaces this process by `rigd`, so that there is one process to signal or to kill, and
//! the kernel ends the rig with it (see `rig/cmd/rigd`). [`with_own_rig`] starts one as a child, for one of several rigs.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::{cache, install};
use crate::failure::{Failure, Result};

/// A rig until Ctrl-C.
pub(crate) fn up(bin: &Path, options: &[String]) -> Result<()> {
    become_rigd(rigd(bin)?.args(options))
}

/// A rig for as long as the command runs; exits with the command's code.
pub(crate) fn run<S: Into<OsString> + Clone>(bin: &Path, options: &[String], command: &[S]) -> Result<()> {
    become_rigd(rigd(bin)?.args(options).arg("--").args(command.iter().cloned().map(Into::into)))
}

/// A command that runs another one in a rig of its own, and ends with its exit code.
pub(crate) fn with_own_rig(bin: &Path, command: &[OsString]) -> Result<Command> {
    let rigd = rigd(bin)?;
    // Only unsafe code can ask the kernel to end a child with its parent, or util-linux's `setpriv`, which then becomes rigd.
    let setpriv = Path::new("/usr/bin/setpriv");
    let mut own = Command::new(if setpriv.exists() { setpriv.as_os_str() } else { rigd.get_program() });
    if setpriv.exists() {
        own.args(["--pdeathsig", "KILL", "--"]).arg(rigd.get_program());
    }
    own.args(rigd.get_args()).arg("--").args(command);
    Ok(own)
}

/// Ends every `up` that runs.
pub(crate) fn down() -> Result<()> {
    match install::existing()? {
        Some(bin) => become_rigd(rigd(&bin)?.arg("--down")),
        None => {
            println!("no rig is running: its binaries are not even built (cargo xtask k8s install)");
            Ok(())
        }
    }
}

fn rigd(bin: &Path) -> Result<Command> {
    let mut command = Command::new(bin.join("rigd"));
    command.arg("--bin-dir").arg(bin).arg("--state-dir").arg(cache::rig_dir()?.join("running"));
    Ok(command)
}

/// Returns only if it fails.
fn become_rigd(command: &mut Command) -> Result<()> {
    let error = command.exec();
    Err(Failure::error(format!("cannot run {}: {error}", command.get_program().to_string_lossy())))
}
