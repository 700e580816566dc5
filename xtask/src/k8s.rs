//! `cargo xtask k8s …`: a real etcd and kube-apiserver on this machine, and the tests that want one.
//!
//! The binaries are built by Go from pinned modules in `rig/` ([`install`]) into a cache outside the source tree
//! ([`cache`]). What starts and ends them is `rigd`, a supervisor written in Go, because only unsafe code can ask the
//! kernel to end a child with its parent; [`supervisor`] replaces this process by it.

mod cache;
mod chaos;
mod differential;
mod install;
mod supervisor;
mod targets;
mod tier;

use std::path::PathBuf;

use crate::failure::{Failure, Result};
use crate::timings::Timings;

pub(crate) use install::{Go, binary};
pub(crate) use targets::{pinned, versions};

const USAGE: &str = "\
usage: cargo xtask k8s install
       cargo xtask k8s up [OPTIONS]
       cargo xtask k8s down
       cargo xtask k8s run [OPTIONS] -- CMD ARGS...
       cargo xtask k8s test [FILTER]
       cargo xtask k8s chaos [--minutes N] [--seed S] [--ours-only] [--short]
       cargo xtask k8s differential [--seed S] [--seeds N] [--sequences N] [--only FAMILY,...] [--controllers LIST] [--save]
       cargo xtask k8s churn [--minutes N] [--seed S] [--ours-only] [--save]
       cargo xtask k8s path

`cargo xtask k8s up --help` lists the options of `up` and `run`.";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        return Err(Failure::usage("no command given", USAGE));
    };
    match (command.as_str(), rest) {
        ("install", []) => install_or_skip().map(|_| ()),
        ("up", options) if !options.iter().any(|option| option == "--") => supervisor::up(&installed()?, options),
        ("down", []) => supervisor::down(),
        ("run", options) => match options.iter().position(|option| option == "--") {
            Some(at) if at + 1 < options.len() => supervisor::run(&installed()?, &options[..at], &options[at + 1..]),
            _ => Err(Failure::usage("`run` needs `--` and a command", USAGE)),
        },
        ("test", []) => timed_test(None),
        ("test", [filter]) if !filter.starts_with('-') => timed_test(Some(filter)),
        // The part of `test` that runs inside a rig; not for users.
        (tier::INSIDE, [program]) => tier::inside(program),
        ("chaos", options) => chaos::run(&installed()?, options),
        ("differential", options) => differential::run(&installed()?, options),
        ("churn", options) => differential::churn(&installed()?, options),
        ("path", []) => path(),
        ("install" | "up" | "down" | "test" | "path", _) => {
            Err(Failure::usage(&format!("unexpected arguments of `{command}`: {}", rest.join(" ")), USAGE))
        }
        (unknown, _) => Err(Failure::usage(&format!("unknown command `k8s {unknown}`"), USAGE)),
    }
}

/// Runs the rig tier, or prints in one line why not.
pub(crate) fn test(filter: Option<&str>, timings: &mut Timings) -> Result<()> {
    match install_or_skip()? {
        Some(bin) => tier::run(&bin, filter, timings),
        None => Ok(()),
    }
}

fn timed_test(filter: Option<&str>) -> Result<()> {
    let mut timings = Timings::default();
    let outcome = test(filter, &mut timings);
    timings.print();
    outcome
}

/// Returns the directory of the binaries; `None` after a line that says why the rig is skipped.
fn install_or_skip() -> Result<Option<PathBuf>> {
    if let Some(bin) = install::existing()? {
        println!("rig: binaries are in {}", bin.display());
        return Ok(Some(bin));
    }
    match Go::find() {
        Some(go) => {
            let bin = install::all(&go)?;
            println!("rig: binaries are in {}", bin.display());
            Ok(Some(bin))
        }
        // A CI that skips the rig would stay green forever.
        None if std::env::var_os("CI").is_some_and(|value| !value.is_empty()) => Err(Failure::error(install::NO_GO)),
        None => {
            println!("rig tier SKIPPED: {}", install::NO_GO);
            Ok(None)
        }
    }
}

/// As [`install_or_skip`] for commands that make no sense without the rig.
fn installed() -> Result<PathBuf> {
    if let Some(bin) = install::existing()? {
        return Ok(bin);
    }
    install::all(&Go::find().ok_or_else(|| Failure::error(install::NO_GO))?)
}

fn path() -> Result<()> {
    match install::existing()? {
        Some(bin) => {
            println!("{}", bin.display());
            Ok(())
        }
        None => Err(Failure::error("the rig's binaries are not built yet: cargo xtask k8s install")),
    }
}
