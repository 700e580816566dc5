//! `cargo xtask k8s install`: builds with Go what the cache lacks.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::cache::{self, Key};
use super::targets::{TARGETS, Target, Versions, versions};
use crate::clock::{Stopwatch, pause};
use crate::failure::{Failure, Result};
use crate::{process, workspace};

pub(crate) const NO_GO: &str =
    "Go is not installed, and the rig builds Kubernetes with it: install Go 1.26 or newer (https://go.dev/dl)";

/// A registry under load answers 429 for a minute or two; after this many pauses the problem is another one.
const RETRY_PAUSES_S: [u64; 7] = [10, 20, 30, 60, 60, 120, 120];

/// Often enough to see that it is alive, seldom enough for a CI log.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// Lines of the compiler's output that are shown when it fails.
const SHOWN_LINES_MAX: usize = 30;

/// A Go toolchain.
#[derive(Debug)]
pub(crate) struct Go {
    pub(crate) version: String,
}

/// The directory with all binaries, if nothing has to be built.
pub(crate) fn existing() -> Result<Option<PathBuf>> {
    let bin = bin_dir(&versions()?)?;
    Ok(TARGETS.iter().all(|target| bin.join(target.name).exists()).then_some(bin))
}

/// Builds what is missing and returns the directory of the binaries.
pub(crate) fn all(go: &Go) -> Result<PathBuf> {
    let watch = Stopwatch::start();
    let versions = versions()?;
    let rig_dir = cache::rig_dir()?;
    let _lock = cache::lock(&rig_dir)?;
    println!("rig: building Kubernetes {} and etcd {} with {}", versions.kubernetes, versions.etcd, go.version);
    let bin = bin_dir(&versions)?;
    fs::create_dir_all(&bin).map_err(Failure::io("making", &bin))?;
    for (number, target) in TARGETS.iter().enumerate() {
        let label = format!("[{}/{}] {}", number + 1, TARGETS.len(), target.name);
        let built = build(target, &versions, &rig_dir, &label)?;
        cache::link(&built, &bin.join(target.name))?;
    }
    println!("rig: installed in {}", seconds(watch.elapsed()));
    Ok(bin)
}

/// Returns the path of one binary, built now if necessary; for callers that do not need the rest.
pub(crate) fn binary(name: &str) -> Result<PathBuf> {
    let target = TARGETS
        .iter()
        .find(|target| target.name == name)
        .ok_or_else(|| Failure::error(format!("the rig builds no `{name}`")))?;
    let versions = versions()?;
    let rig_dir = cache::rig_dir()?;
    let _lock = cache::lock(&rig_dir)?;
    build(target, &versions, &rig_dir, name)
}

/// Named after what is in it, for people, and after all keys, so that it never changes.
fn bin_dir(versions: &Versions) -> Result<PathBuf> {
    let mut all = Key::new();
    for target in &TARGETS {
        all.add(target.key(versions)?.to_string().as_bytes());
    }
    Ok(cache::rig_dir()?.join(format!("k8s-{}-etcd-{}-{all}", versions.kubernetes, versions.etcd)))
}

/// Builds one target unless it is there; the caller holds the lock.
fn build(target: &Target, versions: &Versions, rig_dir: &Path, label: &str) -> Result<PathBuf> {
    let store = rig_dir.join("built");
    let built = store.join(format!("{}-{}", target.name, target.key(versions)?));
    if built.exists() {
        return Ok(built);
    }
    fs::create_dir_all(&store).map_err(Failure::io("making", &store))?;
    // Only a finished binary gets the final name, so an interrupted build is never mistaken for one.
    let temporary = store.join(format!("{}.new", target.name));
    let watch = Stopwatch::start();
    let mut pauses = RETRY_PAUSES_S.iter();
    loop {
        println!("{label}: building");
        let Err(output) = compile(target, versions, &temporary, label)? else { break };
        let shown = output[output.len().saturating_sub(SHOWN_LINES_MAX)..].join("\n");
        match pauses.next() {
            Some(pause_s) if output.iter().any(|line| is_transient(line)) => {
                println!("{label}: the module registry did not answer; again in {pause_s} s\n{shown}");
                pause(Duration::from_secs(*pause_s));
            }
            _ => return Err(Failure::error(format!("`go build` of {} failed:\n{shown}", target.name))),
        }
    }
    fs::rename(&temporary, &built).map_err(Failure::io("writing", &built))?;
    println!("{label}: done in {}", seconds(watch.elapsed()));
    Ok(built)
}

/// Runs `go build` once and shows progress; the inner error is its output.
fn compile(
    target: &Target,
    versions: &Versions,
    output: &Path,
    label: &str,
) -> Result<std::result::Result<(), Vec<String>>> {
    let mut command = Command::new("go");
    command
        .current_dir(workspace::root().join(target.module))
        // With -v the compiler names each package when it is done: that is the progress.
        .args(["build", "-v", "-o"])
        .arg(output)
        .args(target.flags(versions))
        .arg(target.package)
        .env("CGO_ENABLED", "0")
        // go.sum is complete; a build that wants to change it is a mistake.
        .env("GOFLAGS", "-mod=readonly -buildvcs=false")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Failure::error(format!("cannot run `go`: {error}")))?;
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let reader = child.stderr.take().map(|stderr| {
        let lines = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        })
    });
    let watch = Stopwatch::start();
    let mut next = PROGRESS_INTERVAL;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| Failure::error(format!("waiting for `go`: {error}")))? {
            break status;
        }
        if watch.elapsed() >= next {
            next += PROGRESS_INTERVAL;
            let done = lines.lock().unwrap_or_else(PoisonError::into_inner).len();
            println!("{label}: {} ({done} packages so far)", seconds(watch.elapsed()));
        }
        pause(Duration::from_millis(100));
    };
    if let Some(reader) = reader {
        reader.join().map_err(|_| Failure::error("reading the output of `go` failed"))?;
    }
    if status.success() {
        return Ok(Ok(()));
    }
    let lines = std::mem::take(&mut *lines.lock().unwrap_or_else(PoisonError::into_inner));
    // Names of finished packages have no spaces; whatever has them is a message.
    Ok(Err(lines.into_iter().filter(|line| line.contains(' ')).collect()))
}

/// Whether a line of Go's output is a network error.
fn is_transient(line: &str) -> bool {
    const SIGNS: [&str; 14] = [
        "429 ",
        "Too Many Requests",
        "500 Internal",
        "502 ",
        "503 ",
        "504 ",
        "i/o timeout",
        "TLS handshake timeout",
        "connection reset",
        "connection refused",
        "no such host",
        "unexpected EOF",
        "stream error",
        "Client.Timeout",
    ];
    SIGNS.iter().any(|sign| line.contains(sign))
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

// === impl Go ===

impl Go {
    /// The toolchain on the `PATH`, if there is one.
    pub(crate) fn find() -> Option<Self> {
        // A missing program is not an error here.
        if !process::succeeds(Command::new("go").arg("version")) {
            return None;
        }
        let version = process::output(Command::new("go").arg("version")).ok()?;
        Some(Self { version: version.trim().trim_start_matches("go version ").to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::is_transient;

    #[test]
    fn a_registry_that_is_busy_is_asked_again_and_a_compile_error_is_not() {
        let busy = "reading https://example.org/k8s.io/api/@v/v0.37.1.zip: 429 Too Many Requests";
        for (line, want) in [
            (busy, true),
            ("dial tcp: lookup example.org: no such host", true),
            ("cmd/rigd/main.go:12:2: undefined: serve", false),
            ("go: updates to go.mod needed", false),
        ] {
            assert_eq!(is_transient(line), want, "{line}");
        }
    }
}
