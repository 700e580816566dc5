//! `cargo xtask sim`: runs worlds.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    steersman_sim::cli::run(&args)
}
