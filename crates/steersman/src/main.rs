//! The `steersman` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman::cli::main(std::env::args_os())
}
