//! `cargo xtask test`: the README's test command. Green here means done.

use crate::failure::{Failure, Result};
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
    process::run(&mut process::cargo(runner.iter().chain(&TARGETS)))?;
    process::run(&mut process::cargo(["test", "--workspace", "--doc"]))?;
    k8s::test(None)
}
