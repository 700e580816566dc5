//! `cargo xtask k8s test`: everything that wants a real kube-apiserver.
//!
//! 1. Packages with a test target `rig` (`test = false`: it runs only if it is asked for by name).
//! 2. Examples with `[package.metadata.rig] run = true` are run; exit code 0 in time is success.
//!
//! 3. Each package has a kube-apiserver and an etcd of its own: nothing that one package leaves behind, such as namespaces,
//!    webhook configurations or leases, reaches another.
//!
//! All is compiled before the first rig starts, so that a slow compiler does not count as a slow test; in one go, with the
//! features of the default suite, so that no library is compiled a second time. To find nothing is a failure: a tier that silently
//! lost its tests would stay green.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use serde_json::Value;

use super::supervisor;
use crate::clock::{Stopwatch, pause};
use crate::failure::{Failure, Result};
use crate::process;
use crate::timings::Timings;
use crate::workspace::{self, Package};

/// The hidden command that runs an example between the rig's start and its end.
pub(crate) const INSIDE: &str = "example-inside-the-rig";

/// The test targets of this tier.
const TARGET: &str = "rig";

/// From the start of an example that is compiled already; the real ones take seconds.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Compiles the tests. The storm has a feature because users of the simulator need no server.
const TESTS: [&str; 7] = ["test", "--workspace", "--test", TARGET, "--features", "steersman-sim/chaos", "--no-run"];
/// Compiles the examples, and the program that the tests of leases start, with the same features. `cargo test` would make a test of it.
const EXAMPLES: [&str; 7] =
    ["build", "--workspace", "--bins", "--example", "rig-leader", "--features", "steersman-sim/chaos"];

/// One thing to run in the rig.
#[derive(Debug, PartialEq)]
struct Task {
    kind: Kind,
    package: String,
    manifest: PathBuf,
}

/// The kind of a [`Task`], which is also the kind of its target in the messages of cargo.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Tests,
    Example,
}

/// Compiles, then runs every package in a rig of its own, also after a failure, and lists those that failed.
pub(crate) fn run(bin: &Path, filter: Option<&str>, timings: &mut Timings) -> Result<()> {
    let tasks = tasks(&workspace::packages()?);
    // xtask's own tests are about the rig itself: alone they prove nothing about Steersman.
    if !tasks.iter().any(|task| task.kind == Kind::Tests && task.package != "xtask") {
        return Err(Failure::error(
            "no rig tests were found: a package has them if its Cargo.toml has a `[[test]]` named `rig` with `test = false`",
        ));
    }
    // Before compiling: xtask's own rig tests put another binary in our place, and then we are "(deleted)".
    let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
    let built = timings.time("rig: compiling", || Ok(built(&TESTS)? + &built(&EXAMPLES)?))?;
    let mut failed = Vec::new();
    for task in tasks.iter().filter(|task| task.is_wanted(filter)) {
        let program = task.program(&built)?;
        let mut command: Vec<OsString> = match task.kind {
            Kind::Tests => Vec::new(),
            Kind::Example => vec![this.clone().into(), "k8s".into(), INSIDE.into()],
        };
        command.push(program.into());
        command.extend(filter.filter(|_| task.kind == Kind::Tests).map(Into::into));
        eprintln!(
            "+ {}: {}",
            task.package,
            command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        );
        let status = timings.time(&format!("rig: {}", task.package), || {
            let status = task.inside(&mut supervisor::with_own_rig(bin, &command)?).status();
            status.map_err(|error| Failure::error(format!("cannot start a rig: {error}")))
        })?;
        if !status.success() {
            failed.push(task.package.clone());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::error(format!("rig tier failed in: {}", failed.join(", ")))) }
}

/// Runs one example; [`run`] has started a rig around this.
pub(crate) fn inside(program: &str) -> Result<()> {
    if std::env::var_os("STEERSMAN_RIG_KUBECONFIG").is_none() {
        return Err(Failure::error("this runs inside the rig only: cargo xtask k8s test"));
    }
    run_in_time(&mut Command::new(program), EXAMPLE_TIMEOUT)
}

/// Runs cargo, and returns its messages, one JSON object a line.
fn built(args: &[&str]) -> Result<String> {
    let mut command = process::cargo(args);
    eprintln!("+ {}", process::shown(&command));
    process::output(command.arg("--message-format=json-render-diagnostics"))
}

fn tasks(packages: &[Package]) -> Vec<Task> {
    let task = |kind, package: &Package| Task {
        kind,
        package: package.name.clone(),
        manifest: workspace::root().join(&package.manifest),
    };
    let tests = packages.iter().filter(|package| package.tests.iter().any(|test| test == TARGET));
    let examples = packages.iter().filter(|package| {
        package.manifest.starts_with("examples") && package.metadata["rig"]["run"].as_bool() == Some(true)
    });
    tests
        .map(|package| task(Kind::Tests, package))
        .chain(examples.map(|package| task(Kind::Example, package)))
        .collect()
}

fn run_in_time(command: &mut Command, timeout: Duration) -> Result<()> {
    let shown = process::shown(command);
    eprintln!("+ {shown}");
    let mut child = command.spawn().map_err(|error| Failure::error(format!("cannot run `{shown}`: {error}")))?;
    match wait(&mut child, timeout).map_err(|error| Failure::error(format!("waiting for `{shown}`: {error}")))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Failure::error(format!("`{shown}` failed ({status})"))),
        None => Err(Failure::error(format!("`{shown}` did not end within {} s", timeout.as_secs()))),
    }
}

/// The child's end, or `None` after having ended it.
fn wait(child: &mut Child, timeout: Duration) -> std::io::Result<Option<ExitStatus>> {
    let watch = Stopwatch::start();
    while watch.elapsed() < timeout {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        pause(Duration::from_millis(50));
    }
    // On Unix `cargo run` becomes the program, so this ends the program and not only cargo.
    child.kill()?;
    child.wait()?;
    Ok(None)
}

// === impl Task ===

impl Task {
    /// Whether a filter leaves it in: a filter is about test functions, unless it names the example.
    fn is_wanted(&self, filter: Option<&str>) -> bool {
        match (self.kind, filter) {
            (Kind::Example, Some(filter)) => self.package.contains(filter),
            _ => true,
        }
    }

    /// Returns the program that cargo has compiled for it, by cargo's messages. An example with several programs has one with its
    /// package's name.
    fn program(&self, messages: &str) -> Result<PathBuf> {
        let name = match self.kind {
            Kind::Tests => TARGET,
            Kind::Example => self.package.as_str(),
        };
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut found = messages.filter(|message| {
            message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == self.manifest)
                && message["target"]["name"] == name
                && message["profile"]["test"] == (self.kind == Kind::Tests)
        });
        let program = found.find_map(|message| message["executable"].as_str().map(PathBuf::from));
        program.ok_or_else(|| Failure::error(format!("cargo named no program `{name}` of {}", self.package)))
    }

    /// Runs a command as cargo would run the tests of the package.
    fn inside<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let folder = self.manifest.parent().unwrap_or(Path::new("."));
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use serde_json::json;

    use super::{Kind, Task, run_in_time, tasks};
    use crate::workspace::{self, Package};

    fn task(kind: Kind, package: &str, manifest: &str) -> Task {
        Task { kind, package: package.to_owned(), manifest: workspace::root().join(manifest) }
    }

    #[test]
    fn tests_come_from_their_target_and_examples_from_their_metadata() {
        let package = |name: &str, folder: &str, tests: &[&str], metadata| Package {
            name: name.to_owned(),
            manifest: format!("{folder}/Cargo.toml").into(),
            tests: tests.iter().map(ToString::to_string).collect(),
            metadata,
            ..Package::default()
        };
        let found = tasks(&[
            package("plain", "crates/plain", &["embedded"], json!(null)),
            package("with-rig", "crates/with-rig", &["embedded", "rig"], json!(null)),
            package("shown", "examples/shown", &[], json!({"rig": {"run": true}})),
            package("read-only", "examples/read-only", &[], json!({"rig": {"run": false}})),
            package("not-an-example", "crates/x", &[], json!({"rig": {"run": true}})),
        ]);
        let tests = task(Kind::Tests, "with-rig", "crates/with-rig/Cargo.toml");
        let example = task(Kind::Example, "shown", "examples/shown/Cargo.toml");
        assert_eq!(found, [tests, example]);
    }

    #[test]
    fn a_program_is_found_by_manifest_target_and_profile() {
        let tests = task(Kind::Tests, "a", "crates/a/Cargo.toml");
        let message = |manifest: &str, name: &str, test: bool, executable: &str| {
            let manifest = workspace::root().join(manifest);
            json!({"manifest_path": manifest, "target": {"name": name}, "profile": {"test": test}, "executable": executable})
        };
        let messages = [
            message("crates/b/Cargo.toml", "rig", true, "of-b"),
            message("crates/a/Cargo.toml", "a", true, "of-the-library"),
            message("crates/a/Cargo.toml", "rig", true, "of-a"),
        ];
        let lines = messages.map(|message| message.to_string()).join("\n");
        assert_eq!(tests.program(&lines).ok(), Some("of-a".into()));
        assert!(task(Kind::Example, "a", "crates/a/Cargo.toml").program(&lines).is_err());
    }

    #[test]
    fn a_program_that_fails_or_does_not_end_in_time_is_a_failure() {
        let run = |program: &str, arg: &str, timeout_ms| {
            run_in_time(Command::new(program).arg(arg), Duration::from_millis(timeout_ms)).is_ok()
        };
        assert!(run("true", "", 60_000));
        assert!(!run("false", "", 60_000));
        assert!(!run("sleep", "1000", 50));
    }
}
