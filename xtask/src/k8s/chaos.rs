//! `cargo xtask k8s chaos`: a random load and faults on a real kube-apiserver, judged by the invariants of the simulator; our
//! managers and Go's one after the other, each in a rig of its own, and a table of both.
//!
//! The program is `crates/sim/src/chaos.rs`; this only starts it.

use std::ffi::OsString;
use std::path::Path;

use super::supervisor;
use crate::failure::{Failure, Result};
use crate::{process, workspace};

const USAGE: &str = "\
usage: cargo xtask k8s chaos [--minutes N] [--seed S] [--ours-only] [--short]

  --minutes N   how long each storm lasts (2 by default); healing and rest take up to three minutes more
  --seed S      the seed of load and faults (1 by default)
  --ours-only   without kube-controller-manager, and without writing the table to docs/reliability.md
  --short       half a minute, ours only: what the rig tier does";

/// More is not what this is for: it compares, it does not soak.
const MINUTES_MAX: u64 = 30;
const SHORT_SECONDS: u64 = 30;

#[derive(Debug, PartialEq)]
struct Wanted {
    seconds: u64,
    seed: u64,
    ours_only: bool,
}

pub(crate) fn run(bin: &Path, args: &[String]) -> Result<()> {
    let wanted = parse(args)?;
    let target = ["--package", "steersman-sim", "--features", "steersman-sim/chaos", "--bin", "steersman-chaos"];
    process::run(&mut process::cargo(["build"].into_iter().chain(target)))?;
    let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
    let program = this.with_file_name("steersman-chaos");
    let folder = workspace::root().join("target/chaos");
    let mut outcomes = Vec::new();
    for kind in if wanted.ours_only { &["ours"][..] } else { &["ours", "go"] } {
        let scratch = folder.join(kind);
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).map_err(Failure::io("removing", &scratch))?;
        }
        std::fs::create_dir_all(&scratch).map_err(Failure::io("making", &scratch))?;
        let outcome = scratch.join("outcome.json");
        let mut command: Vec<OsString> = vec![program.clone().into(), "storm".into()];
        for (name, value) in [
            ("--kind", (*kind).into()),
            ("--seed", wanted.seed.to_string().into()),
            ("--seconds", wanted.seconds.to_string().into()),
            ("--scratch", scratch.into_os_string()),
            ("--out", outcome.clone().into_os_string()),
        ] {
            command.extend([OsString::from(name), value]);
        }
        process::run(&mut supervisor::with_own_rig(bin, &command)?)?;
        outcomes.push(outcome);
    }
    let mut table = std::process::Command::new(&program);
    table.current_dir(workspace::root()).arg("table").args(&outcomes);
    if !wanted.ours_only {
        table.arg("--save");
    }
    process::run(&mut table)
}

fn parse(args: &[String]) -> Result<Wanted> {
    let mut wanted = Wanted { seconds: 120, seed: 1, ours_only: false };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().and_then(|value| value.parse::<u64>().ok());
            value.ok_or_else(|| Failure::usage(&format!("{arg} needs a number"), USAGE))
        };
        match arg.as_str() {
            "--minutes" => wanted.seconds = 60 * number()?.clamp(1, MINUTES_MAX),
            "--seed" => wanted.seed = number()?,
            "--ours-only" => wanted.ours_only = true,
            "--short" => wanted = Wanted { seconds: SHORT_SECONDS, ours_only: true, ..wanted },
            other => return Err(Failure::usage(&format!("unknown option {other}"), USAGE)),
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::{Wanted, parse};

    #[test]
    fn a_storm_is_bounded_and_the_short_one_is_ours_only() {
        let parsed = |text: &str| parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parsed("").unwrap(), Wanted { seconds: 120, seed: 1, ours_only: false });
        assert_eq!(parsed("--minutes 5 --seed 9").unwrap(), Wanted { seconds: 300, seed: 9, ours_only: false });
        assert_eq!(parsed("--minutes 999").unwrap().seconds, 1800);
        assert_eq!(parsed("--short").unwrap(), Wanted { seconds: 30, seed: 1, ours_only: true });
        assert!(parsed("--minutes soon").is_err());
        assert!(parsed("--hours 2").is_err());
    }
}
