//! `cargo xtask k8s test`: everything that wants a real kube-apiserver.
//!
//! 1. Packages with a feature `rig` have a test target `rig` that needs it: `cargo test -p … --features …/rig --test rig`.
//! 2. Examples with `[package.metadata.rig] run = true` are run; exit code 0 in time is success.
//!
//! 3. Each package has a kube-apiserver and an etcd of its own: nothing that one package leaves behind, such as namespaces,
//!    webhook configurations or leases, reaches another.
//!
//! All is compiled before the first rig starts, so that a slow compiler does not count as a slow test. To find nothing is a
//! failure: a tier that silently lost its tests would stay green.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use super::supervisor;
use crate::clock::{Stopwatch, pause};
use crate::failure::{Failure, Result};
use crate::process;
use crate::timings::Timings;
use crate::workspace::{self, Package};

/// The hidden command that runs between the rig's start and its end.
pub(crate) const INSIDE: &str = "test-inside-the-rig";

/// From the start of an example that is compiled already; the real ones take seconds.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(120);

/// One thing to run in the rig.
#[derive(Debug, PartialEq)]
enum Task {
    Tests { package: String },
    Example { package: String },
}

/// Compiles, then runs every package in a rig of its own, also after a failure, and lists those that failed.
pub(crate) fn run(bin: &Path, filter: Option<&str>, timings: &mut Timings) -> Result<()> {
    let tasks = tasks(&workspace::packages()?);
    // xtask's own tests are about the rig itself: alone they prove nothing about Steersman.
    if !tasks.iter().any(|task| matches!(task, Task::Tests { package } if package != "xtask")) {
        return Err(Failure::error(
            "no rig tests were found: a package has them if its Cargo.toml has a feature `rig` \
             and a `[[test]]` named `rig` with `required-features = [\"rig\"]`",
        ));
    }
    // Before compiling: xtask's own rig tests put another binary in our place, and then we are "(deleted)".
    let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
    timings.time("rig: compiling", || tasks.iter().try_for_each(|task| process::run(&mut task.compile())))?;
    let mut failed = Vec::new();
    for task in tasks.iter().filter(|task| task.is_wanted(filter)) {
        let mut command: Vec<OsString> = vec![this.clone().into(), "k8s".into(), INSIDE.into(), task.package().into()];
        command.extend(filter.map(Into::into));
        let status = timings.time(&format!("rig: {}", task.package()), || {
            let status = supervisor::with_own_rig(bin, &command)?.status();
            status.map_err(|error| Failure::error(format!("cannot start a rig: {error}")))
        })?;
        if !status.success() {
            failed.push(task.package().to_owned());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::error(format!("rig tier failed in: {}", failed.join(", ")))) }
}

/// Runs one package; [`run`] has started a rig around this.
pub(crate) fn inside(package: &str, filter: Option<&str>) -> Result<()> {
    if std::env::var_os("STEERSMAN_RIG_KUBECONFIG").is_none() {
        return Err(Failure::error("this runs inside the rig only: cargo xtask k8s test"));
    }
    let tasks = tasks(&workspace::packages()?);
    match tasks.iter().find(|task| task.package() == package) {
        Some(task @ Task::Tests { .. }) => process::run(&mut task.command(filter)),
        Some(task @ Task::Example { .. }) => run_in_time(&mut task.command(None), EXAMPLE_TIMEOUT),
        None => Err(Failure::error(format!("{package} has no rig tests"))),
    }
}

fn tasks(packages: &[Package]) -> Vec<Task> {
    let tests = packages.iter().filter(|package| package.features.iter().any(|feature| feature == "rig"));
    let examples = packages.iter().filter(|package| {
        package.manifest.starts_with("examples") && package.metadata["rig"]["run"].as_bool() == Some(true)
    });
    tests
        .map(|package| Task::Tests { package: package.name.clone() })
        .chain(examples.map(|package| Task::Example { package: package.name.clone() }))
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
    fn package(&self) -> &str {
        match self {
            Self::Tests { package } | Self::Example { package } => package,
        }
    }

    /// Whether a filter leaves it in: a filter is about test functions, unless it names the example.
    fn is_wanted(&self, filter: Option<&str>) -> bool {
        match (self, filter) {
            (Self::Example { package }, Some(filter)) => package.contains(filter),
            _ => true,
        }
    }

    fn compile(&self) -> Command {
        match self {
            Self::Tests { .. } => {
                let mut command = self.command(None);
                command.arg("--no-run");
                command
            }
            Self::Example { package } => process::cargo(["build", "--package", package]),
        }
    }

    fn command(&self, filter: Option<&str>) -> Command {
        match self {
            Self::Tests { package } => {
                let feature = format!("{package}/rig");
                let mut command =
                    process::cargo(["test", "--package", package, "--features", &feature, "--test", "rig"]);
                command.args(filter);
                command
            }
            Self::Example { package } => process::cargo(["run", "--package", package]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use serde_json::json;

    use super::{Task, run_in_time, tasks};
    use crate::workspace::Package;

    #[test]
    fn tests_come_from_the_feature_and_examples_from_their_metadata() {
        let package = |name: &str, folder: &str, features: &[&str], metadata| Package {
            name: name.to_owned(),
            manifest: format!("{folder}/Cargo.toml").into(),
            features: features.iter().map(ToString::to_string).collect(),
            metadata,
            ..Package::default()
        };
        let found = tasks(&[
            package("plain", "crates/plain", &["default"], json!(null)),
            package("with-rig", "crates/with-rig", &["rig"], json!(null)),
            package("shown", "examples/shown", &[], json!({"rig": {"run": true}})),
            package("read-only", "examples/read-only", &[], json!({"rig": {"run": false}})),
            package("not-an-example", "crates/x", &[], json!({"rig": {"run": true}})),
        ]);
        let tests = Task::Tests { package: "with-rig".to_owned() };
        let example = Task::Example { package: "shown".to_owned() };
        assert_eq!(found, [tests, example]);
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
