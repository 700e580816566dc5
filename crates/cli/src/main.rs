//! The `steersman` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_cli::main(std::env::args_os())
}
