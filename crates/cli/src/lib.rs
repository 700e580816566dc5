//! The command line.
//!
//! 1. Called as `kube-controller-manager`, the program is that program: its flags are at the top.
//! 2. An error is one sentence on standard error that says what to change, and exit code 1.
//!
//! The controller manager's flags have Go's syntax and come from a table ([`flags`]); other commands are clap's.

use std::ffi::OsString;
use std::future::Future;
use std::num::NonZero;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, Command};
use tokio::runtime::Builder;

mod completion;
mod controller_manager;
mod flags;
mod gates;
mod log;
mod new;
mod nodes;
mod options;
mod rows;
mod selection;
mod up;
mod version;

/// Why a command failed: one sentence that says what to change.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CommandError(String);

/// The name under which the program is the controller manager alone.
const DROP_IN: &str = "kube-controller-manager";
/// The time that blocked threads may take to end with the program.
const LET_GO_WITHIN: Duration = Duration::from_secs(1);

/// Runs the command line and returns the exit code of the process.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let program = args.first().map(|arg| Path::new(arg).file_name().unwrap_or_default().to_string_lossy().into_owned());
    if program.as_deref() == Some(DROP_IN) {
        return exit(DROP_IN, words(args.drain(1..)).and_then(|words| controller_manager::run(DROP_IN, words)));
    }
    if args.get(1).is_some_and(|arg| arg == "controller-manager") {
        let words = words(args.drain(2..));
        return exit(
            "steersman",
            words.and_then(|words| controller_manager::run("steersman controller-manager", words)),
        );
    }
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let _ = error.print();
            // As upstream's programs: help is a success, anything else exits with 1.
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match matches.subcommand() {
        Some(("up", matches)) => up::run(matches),
        Some(("nodes", matches)) => nodes::run(matches),
        Some(("new", matches)) => new::run(matches),
        Some(("version", _)) => {
            println!("{}", version::all());
            Ok(())
        }
        Some(("completion", matches)) => {
            let shell = matches.get_one::<String>("shell").map(String::as_str).unwrap_or_default();
            print!("{}", completion::script(shell, &commands()).unwrap_or_default());
            Ok(())
        }
        _ => unreachable!("clap asks for a subcommand it knows"),
    };
    exit("steersman", outcome)
}

fn exit(program: &str, outcome: Result<(), CommandError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn words(args: impl Iterator<Item = OsString>) -> Result<Vec<String>, CommandError> {
    let word = |arg: OsString| arg.into_string().map_err(|arg| CommandError(format!("{arg:?} is not valid UTF-8")));
    args.map(word).collect()
}

fn command() -> Command {
    let shell = Arg::new("shell").required(true).value_parser(completion::SHELLS).help("The shell");
    Command::new("steersman")
        .about("The part of Kubernetes that steers")
        .version(version::OWN)
        .subcommand_required(true)
        .arg_required_else_help(true)
        // It is handled before clap; it is listed here for help and for suggestions.
        .subcommand(Command::new("controller-manager").about(
            "Runs the built-in controllers of Kubernetes against a cluster; takes kube-controller-manager's flags",
        ))
        .subcommand(up::command())
        .subcommand(nodes::command())
        .subcommand(new::command())
        .subcommand(Command::new("version").about("Says what this program is"))
        .subcommand(Command::new("completion").about("Prints a script that completes command lines").arg(shell))
}

/// Every command with its flags, for shells.
fn commands() -> completion::Commands {
    let of_table = || {
        let shown = flags::table().iter().filter(|flag| !flag.hidden);
        shown.map(|flag| (flag.name.to_owned(), flag.help.to_owned())).collect()
    };
    let of_clap = |command: &Command| {
        let long = |arg: &Arg| Some((arg.get_long()?.to_owned(), arg.get_help().map(ToString::to_string)?));
        command.get_arguments().filter_map(long).collect()
    };
    let flags = |command: &Command| match command.get_name() {
        "controller-manager" => of_table(),
        _ => of_clap(command),
    };
    command().get_subcommands().map(|command| (command.get_name().to_owned(), flags(command))).collect()
}

/// A flag that takes a value; given twice, the last one counts, as with Go's flags.
fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::Set).overrides_with(name)
}

/// Returns the number of worker threads.
#[derive(Clone, Copy)]
enum Threads {
    /// One per core: for a program that is a whole cluster.
    EveryCore,
    /// One for every four cores. A manager mostly waits for its server; more threads would wake each other for work
    /// that one of them does faster alone. One alone needs no other to hand work to, and no second heap.
    Few,
}

/// Does the work; `TOKIO_WORKER_THREADS` overrules how many threads do it.
fn block_on(threads: Threads, work: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    let few = || std::thread::available_parallelism().map_or(1, NonZero::get) / 4;
    let mut builder = match (threads, std::env::var_os("TOKIO_WORKER_THREADS")) {
        (Threads::Few, None) if few() <= 1 => Builder::new_current_thread(),
        (Threads::Few, None) => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(few());
            builder
        }
        _ => Builder::new_multi_thread(),
    };
    let runtime = builder.enable_all().build().map_err(|error| CommandError(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(work);
    // A thread that is blocked forever does not prevent the exit.
    runtime.shutdown_timeout(LET_GO_WITHIN);
    outcome
}
