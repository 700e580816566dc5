//! `cargo xtask fuzz`: runs the fuzz targets of `fuzz/`, a minute each.
//!
//! The targets are built with the coverage counters of LLVM that libFuzzer needs, as `cargo fuzz` does, but without a sanitizer:
//! so the stable toolchain is enough. A C++ compiler is needed for libFuzzer itself. Inputs that reach new code are kept
//! below `target/fuzz/corpus`; the corpus in the tree is only read.

use std::path::Path;
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::{process, workspace};

const USAGE: &str = "usage: cargo xtask fuzz [TARGET…] [--seconds N]";
const MANIFEST: &str = "fuzz/Cargo.toml";
const LOCK: &str = "fuzz/Cargo.lock";
const TARGETS: &str = "fuzz/fuzz_targets";
const CORPUS: &str = "fuzz/corpus";
const BUILT: &str = "target/fuzz";
const SECONDS: u32 = 60;
/// The maximum memory of a target, in MB, and the maximum time of one input, in seconds.
const MEMORY_MAX: u32 = 2048;
const INPUT_SECONDS_MAX: u32 = 10;
/// The maximum length of an input, in bytes.
const INPUT_MAX: u32 = 4096;

const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The arguments of the command.
#[derive(Debug, PartialEq)]
struct Choice {
    targets: Vec<String>,
    seconds: u32,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let choice = Choice::read(args, &targets()?)?;
    let triple = host()?;
    let built = workspace::root().join(BUILT);
    // With the versions of our dependencies that are tested here.
    let lock = workspace::root().join(LOCK);
    std::fs::copy(workspace::root().join("Cargo.lock"), &lock).map_err(Failure::io("writing", &lock))?;
    process::run(&mut build(&built, &triple))?;
    for target in &choice.targets {
        let found = built.join("corpus").join(target);
        std::fs::create_dir_all(&found).map_err(Failure::io("creating", &found))?;
        let program = built.join(&triple).join("release").join(target);
        process::run(&mut fuzz(&program, &found, target, choice.seconds))?;
    }
    println!("fuzz: {} targets, {} s each, nothing found", choice.targets.len(), choice.seconds);
    Ok(())
}

/// The names of the targets: the files of their folder.
fn targets() -> Result<Vec<String>> {
    let folder = workspace::root().join(TARGETS);
    let entries = std::fs::read_dir(&folder).map_err(Failure::io("reading", &folder))?;
    let stem = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
    let mut names: Vec<String> = entries.filter_map(|entry| stem(&entry.ok()?.path())).collect();
    names.sort();
    // A target may have a folder beside its file.
    names.dedup();
    Ok(names)
}

fn host() -> Result<String> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::error("`rustc -vV` names no host"))
}

/// Builds all targets. With a named target, build scripts and macros are built without counters.
fn build(built: &Path, triple: &str) -> Command {
    let mut command =
        process::cargo(["build", "--quiet", "--release", "--manifest-path", MANIFEST, "--target", triple]);
    command.arg("--target-dir").arg(built).env("RUSTFLAGS", COVERAGE).env_remove("K8S_OPENAPI_ENABLED_VERSION");
    command
}

/// Runs one target for a time. It ends with an error at the first input that panics, hangs or takes too much memory.
fn fuzz(program: &Path, found: &Path, target: &str, seconds: u32) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root()).arg(found);
    let corpus = Path::new(CORPUS).join(target);
    if workspace::root().join(&corpus).exists() {
        command.arg(corpus);
    }
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MAX}"));
    command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    command.arg(format!("-max_len={INPUT_MAX}"));
    command.arg(format!("-artifact_prefix={}/", found.parent().unwrap_or(found).display()));
    command.arg("-print_final_stats=1");
    command
}

impl Choice {
    fn read(args: &[String], known: &[String]) -> Result<Self> {
        let mut choice = Self { targets: Vec::new(), seconds: SECONDS };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--seconds" => {
                    let number = args.next().and_then(|number| number.parse().ok());
                    choice.seconds = number.ok_or_else(|| Failure::usage("--seconds needs a number", USAGE))?;
                }
                target if known.iter().any(|name| name == target) => choice.targets.push(target.to_owned()),
                unknown => {
                    let message = format!("no fuzz target `{unknown}`; there are: {}", known.join(", "));
                    return Err(Failure::usage(&message, USAGE));
                }
            }
        }
        if choice.targets.is_empty() {
            choice.targets = known.to_vec();
        }
        Ok(choice)
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, SECONDS, targets};

    fn read(args: &[&str]) -> Option<Choice> {
        let known = ["text".to_owned(), "view".to_owned()];
        Choice::read(&args.iter().map(ToString::to_string).collect::<Vec<_>>(), &known).ok()
    }

    #[test]
    fn without_a_name_all_targets_run() {
        let all = ["text".to_owned(), "view".to_owned()];
        assert_eq!(read(&[]), Some(Choice { targets: all.to_vec(), seconds: SECONDS }));
        assert_eq!(read(&["view", "--seconds", "5"]), Some(Choice { targets: all[1..].to_vec(), seconds: 5 }));
        assert_eq!(read(&["vieuw"]), None);
        assert_eq!(read(&["--seconds"]), None);
    }

    #[test]
    fn every_target_is_in_the_manifest_and_has_a_corpus() {
        let root = crate::workspace::root();
        let manifest = std::fs::read_to_string(root.join(super::MANIFEST)).expect("the manifest");
        for target in targets().expect("the targets") {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is not in the manifest");
            let seeds = std::fs::read_dir(root.join(super::CORPUS).join(&target)).expect("a corpus").count();
            assert!(seeds > 0, "{target} has no corpus");
        }
    }
}
