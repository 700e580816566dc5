//! `cargo xtask k8s differential` and `cargo xtask k8s churn`: our manager beside Go's, on kube-apiservers of their own, with the
//! same requests of users.
//!
//! The program is `crates/sim/src/differential.rs`; this only starts it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{process, workspace};

const USAGE: &str = "\
usage: cargo xtask k8s differential [--seed S] [--seeds N] [--sequences N] [--only FAMILY,...] [--controllers LIST] [--save]
       cargo xtask k8s churn [--minutes N] [--seed S] [--ours-only] [--save]

  --seed S            the seed, or the first of several (1 by default)
  --seeds N           how many seeds, each on fresh servers (1 by default)
  --sequences N       how many sequences for each seed, one after the other (1 by default)
  --only FAMILY,...   some families of the load
  --controllers LIST  the flag of both managers; all 49 by default
  --minutes N         how long the churn lasts for each manager (10 by default)
  --ours-only         without kube-controller-manager
  --save              writes the tables to docs/differential.md";

/// An hour is the longest that anybody waits for, twice.
const MINUTES_MAX: u64 = 60;

#[derive(Debug, PartialEq)]
struct Wanted {
    seed: u64,
    seeds: u64,
    sequences: u64,
    minutes: u64,
    ours_only: bool,
    save: bool,
    passed: Vec<String>,
}

/// Compares the two managers for each seed, and prints the tables of all.
pub(crate) fn run(bin: &Path, args: &[String]) -> Result<()> {
    let wanted = parse(args)?;
    let program = built()?;
    let folder = workspace::root().join("target/differential");
    let mut outcomes = Vec::new();
    let mut failed = None;
    for seed in wanted.seed..wanted.seed + wanted.seeds {
        let scratch = folder.join(format!("seed-{seed}"));
        let mut compare = command(&program, bin, "compare", &scratch)?;
        compare.args(["--seed", &seed.to_string(), "--sequences", &wanted.sequences.to_string()]).args(&wanted.passed);
        failed = process::run(&mut compare).err().or(failed);
        outcomes.push(scratch.join("outcome.json"));
    }
    let mut table = Command::new(&program);
    table.current_dir(workspace::root()).arg("table").args(&outcomes).args(wanted.save.then_some("--save"));
    let shown = process::run(&mut table);
    failed.map_or(shown, Err)
}

/// Lets both managers work for a time, one after the other.
pub(crate) fn churn(bin: &Path, args: &[String]) -> Result<()> {
    let wanted = parse(args)?;
    let program = built()?;
    let mut churn = command(&program, bin, "churn", &workspace::root().join("target/churn"))?;
    churn.args(["--seed", &wanted.seed.to_string(), "--minutes", &wanted.minutes.to_string()]);
    churn.args(wanted.ours_only.then_some("--ours-only")).args(wanted.save.then_some("--save"));
    process::run(&mut churn)
}

fn built() -> Result<PathBuf> {
    let target = ["--package", "steersman-sim", "--features", "steersman-sim/chaos", "--bin", "steersman-differential"];
    process::run(&mut process::cargo(["build"].into_iter().chain(target)))?;
    let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
    Ok(this.with_file_name("steersman-differential"))
}

fn command(program: &Path, bin: &Path, name: &str, scratch: &Path) -> Result<Command> {
    std::fs::create_dir_all(scratch).map_err(Failure::io("making", scratch))?;
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).env("STEERSMAN_RIG_BIN", bin).arg(name).arg("--scratch").arg(scratch);
    Ok(command)
}

fn parse(args: &[String]) -> Result<Wanted> {
    let mut wanted =
        Wanted { seed: 1, seeds: 1, sequences: 1, minutes: 10, ours_only: false, save: false, passed: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| Failure::usage(&format!("{arg} needs a value"), USAGE));
        let number =
            |text: &String| text.parse::<u64>().map_err(|_| Failure::usage(&format!("{arg} needs a number"), USAGE));
        match arg.as_str() {
            "--seed" => wanted.seed = number(value()?)?,
            "--seeds" => wanted.seeds = number(value()?)?,
            "--sequences" => wanted.sequences = number(value()?)?,
            "--minutes" => wanted.minutes = number(value()?)?.clamp(1, MINUTES_MAX),
            "--only" | "--controllers" => wanted.passed.extend([arg.clone(), value()?.clone()]),
            "--ours-only" => wanted.ours_only = true,
            "--save" => wanted.save = true,
            other => return Err(Failure::usage(&format!("unknown option {other}"), USAGE)),
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn options_are_parsed_and_the_time_is_bounded() {
        let parsed = |text: &str| parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let wanted = parsed("--seed 3 --seeds 2 --sequences 4 --only job,quota --save").unwrap();
        assert_eq!((wanted.seed, wanted.seeds, wanted.sequences, wanted.save), (3, 2, 4, true));
        assert_eq!(wanted.passed, ["--only", "job,quota"]);
        assert_eq!(parsed("--minutes 999").unwrap().minutes, 60);
        assert!(parsed("--minutes soon").is_err());
        assert!(parsed("--seed").is_err());
        assert!(parsed("--hours 2").is_err());
    }
}
