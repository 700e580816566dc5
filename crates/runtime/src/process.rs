//! Child processes that do not outlive this one.

use std::path::Path;
use std::process::Command;

/// Returns the command of a program that the kernel kills when this process ends. Only unsafe code can request that, or
/// util-linux's `setpriv`, which then becomes the program; without it, the program may outlive this one.
#[must_use]
pub fn dies_with_parent(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
