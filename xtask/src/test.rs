//! `cargo xtask test`: the README's test command. Green here means done.

use crate::failure::{Failure, Result};
use crate::timings::Timings;
use crate::{k8s, process};

/// Everything but the benchmarks, which measure and do not judge.
const TARGETS: [&str; 5] = ["--workspace", "--lib", "--bins", "--tests", "--examples"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        return Err(Failure::usage("`test` takes no arguments", "usage: cargo xtask test"));
    }
    // nextest runs test binaries beside each other; plain cargo must do without it.
    let nextest = process::succeeds(&mut process::cargo(["nextest", "--version"]));
    let runner: &[&str] = if nextest { &["nextest", "run"] } else { &["test"] };
    let mut timings = Timings::default();
    let outcome = all(runner, &mut timings);
    timings.print();
    outcome
}

/// The compiler is timed apart from what it compiles, so that times of tests can be compared.
fn all(runner: &[&str], timings: &mut Timings) -> Result<()> {
    let compile = TARGETS.iter().chain(&["--no-run"]);
    timings.time("compiling", || process::run(&mut process::cargo(runner.iter().chain(compile))))?;
    timings.time("default suite", || process::run(&mut process::cargo(runner.iter().chain(&TARGETS))))?;
    timings.time("doctests", || process::run(&mut process::cargo(["test", "--workspace", "--doc"])))?;
    k8s::test(None, timings)
}
