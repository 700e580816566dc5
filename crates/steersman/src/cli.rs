//! The command line.

use std::ffi::OsString;
use std::future::Future;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};

mod controller_manager;
mod selection;
mod signals;
mod up;

/// Why a command could not do what it was asked for: one sentence that says what to change.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(String);

/// Runs the command line and answers the process's exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            // As upstream's programs: help is a success, anything else exits with 1.
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match matches.subcommand() {
        Some(("controller-manager", matches)) => controller_manager::run(matches),
        Some(("up", matches)) => up::run(matches),
        _ => unreachable!("clap asks for a subcommand it knows"),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("steersman: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    Command::new("steersman")
        .about("The part of Kubernetes that steers")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(controller_manager::command())
        .subcommand(up::command())
}

/// A flag that takes a value; given twice, the last one counts, as with Go's flags.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::Set).overrides_with(name)
}

fn block_on(work: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError(format!("cannot start: {error}")))?;
    runtime.block_on(work)
}
