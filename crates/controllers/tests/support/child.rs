//! Processes that do not outlive this one.

use std::path::Path;
use std::process::Command;

/// The program, to be killed by the kernel should we be killed: only unsafe code can ask for that, or util-linux's `setpriv`,
/// which then becomes the program.
pub(crate) fn ends_with_us(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
