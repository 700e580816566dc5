//! `cargo xtask bench controllers`: whole managers at work, ours beside Go's.
//!
//! The load is the benchmark `manager` of the crate `steersman-controllers`; here it is decided what runs beside what.
//!
//! 1. Each manager works on a kube-apiserver and an etcd of its own, fresh and alike; only the restart has one for both. It runs
//!    all 49 controllers, and the server has the gates and APIs of those that need some ([`Driver::server`]).
//! 2. Go's figures of [`RIG`]'s steps are the peer of our embedded cluster too: same load, same run.
//! 3. The audit log contains only the calls of the managers ([`POLICY`]).
//! 4. Figures with holes are not saved.

mod audit;
mod chart;
mod large;
mod nodes;
mod scale;
mod workloads;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::table::Table;
use super::{Measurement, join, report, rig};
use crate::clock::Stopwatch;
use crate::failure::{Failure, Result};
use crate::{k8s, process, workspace};
use audit::Audit;

const NAME: &str = "controllers";
const CHART: &str = "docs/benchmark.svg";
const PEER: &str = "kube-controller-manager";

type Goals = &'static [(&'static str, &'static str)];

/// The goals for the embedded cluster, compared with Go's manager on kube-apiserver; the load is that of [`RIG`].
const EMBEDDED: Goals = &[
    ("roll-out, wall", "≥ 4 ×"),
    ("cascade delete, wall", "≥ 4 ×"),
    ("namespace delete, wall", "≥ 10 ×"),
    ("running and in EndpointSlices, wall", "≤ 3 s"),
    ("ownership graph, process start to all quiet", "about 1 s"),
    ("ownership graph, memory", "≤ 60 MB"),
];

/// The goals on kube-apiserver, compared with Go's manager with the same controllers and flags.
const RIG: Goals = &[
    ("memory, idle", "≥ 6 ×"),
    ("idle, CPU", "≥ 3 ×"),
    ("idle, API calls", "≥ 1 ×"),
    ("roll-out, wall", "≥ 1 ×"),
    ("roll-out, CPU", "≥ 3 ×"),
    ("roll-out, API calls", "≥ 1 ×"),
    ("status changes, wall", "≥ 1 ×"),
    ("status changes, CPU", "≥ 3 ×"),
    ("status changes, API calls", "≥ 1 ×"),
    ("cascade delete, wall", "≥ 1 ×"),
    ("cascade delete, CPU", "≥ 3 ×"),
    ("cascade delete, API calls", "≥ 1 ×"),
    ("namespace delete, CPU", "≥ 3 ×"),
    ("namespace delete, API calls", "≥ 1 ×"),
    ("memory, peak of the run", "≥ 6 ×"),
    ("restart, CPU", "≥ 3 ×"),
    ("restart, API calls", "≥ 1 ×"),
    ("restart, memory, peak", "≥ 6 ×"),
    (ALL_CPU, "≥ 4 ×"),
];

/// The sum of the rows of CPU.
const ALL_CPU: &str = "all rows, CPU";

/// The variable by which the load finds the audit log.
const AUDIT_LOG: &str = "STEERSMAN_BENCH_AUDIT_LOG";

/// Only what one compares two managers by; the load's own calls would be most of it.
const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: [\"system:kube-controller-manager\"]
- level: Metadata
  userGroups: [\"system:serviceaccounts:kube-system\"]
- level: None
";

/// The program of the load, and how it is run.
struct Driver {
    program: PathBuf,
    quick: bool,
    /// The options of a rig for managers with all controllers.
    server: Vec<String>,
}

/// A directory for the audit logs; removed when this is dropped.
struct Scratch(PathBuf);

/// An audit log that a rig is to write.
struct Log {
    path: PathBuf,
    policy: PathBuf,
}

/// Everything that was measured.
#[derive(Default)]
struct Figures {
    embedded: Vec<Measurement>,
    ours: Vec<Measurement>,
    go: Vec<Measurement>,
    audits: [Audit; 2],
}

/// Runs the benchmark of this name; the rest are its options.
pub(super) fn dispatch(name: &str, rest: &[&str], quick: bool, save: bool) -> Result<()> {
    let (built, rest) = match rest {
        ["--built", dir, rest @ ..] => (Some(PathBuf::from(dir)), rest),
        rest => (None, rest),
    };
    let size = match name {
        "large" => Some(large::Size::read(rest, quick)?),
        _ if rest.is_empty() => None,
        _ => return Err(Failure::usage(&format!("unexpected arguments: {}", rest.join(" ")), super::USAGE)),
    };
    let driver = match built {
        Some(dir) => Driver::find(&dir, quick)?,
        None => Driver::build(quick)?,
    };
    match (name, size) {
        ("workloads", _) => workloads::run(&driver, save),
        ("scale", _) => scale::run(&driver, save),
        ("nodes", _) => nodes::run(&driver, save),
        (_, Some(size)) => large::run(&driver, size, save),
        _ => run(&driver, save),
    }
}

fn run(driver: &Driver, save: bool) -> Result<()> {
    let watch = Stopwatch::start();
    let figures = measure(driver)?;
    let text = figures.text();
    println!("\n{text}\nmeasured in {:.0} s", watch.elapsed().as_secs_f64());
    let kubernetes = k8s::versions()?.kubernetes;
    let chart = chart::svg(&kubernetes, &figures.ours, &figures.go);
    if !save {
        // For looking at; the repository's own is that of a saved run.
        let path = driver.program.with_file_name("benchmark.svg");
        fs::write(&path, chart).map_err(Failure::io("writing", &path))?;
        println!("chart in {}", path.display());
        return Ok(());
    }
    if let Some(hole) = figures.hole() {
        return Err(Failure::error(format!(
            "not saved: there is no figure for \"{hole}\"; what was SKIPPED is said above"
        )));
    }
    let path = workspace::root().join(CHART);
    fs::write(&path, chart).map_err(Failure::io("writing", &path))?;
    println!("saved in {CHART}");
    let picture = "![CPU and memory of both managers](benchmark.svg)";
    report::save(NAME, Some(&format!("{PEER} of Kubernetes {kubernetes}")), &format!("{picture}\n\n{text}"))
}

fn measure(driver: &Driver) -> Result<Figures> {
    let mut figures = Figures { embedded: driver.run(&["embedded"])?, ..Figures::default() };
    figures.embedded.extend(driver.run(&["graph"])?);
    if k8s::Go::find().is_none() {
        println!("{PEER} SKIPPED: Go is not installed, so there is neither a rig nor a ratio");
        return Ok(figures);
    }
    let scratch = Scratch::new()?;
    let work = |manager: &str| {
        let log = scratch.log(manager)?;
        let measured = driver.run_in_rig(&driver.server, Some(&log), &["rig", manager])?;
        let audit = Audit::read(&fs::read_to_string(&log.path).map_err(Failure::io("reading", &log.path))?);
        Ok((measured, audit))
    };
    (figures.ours, figures.audits[0]) = work("ours")?;
    (figures.go, figures.audits[1]) = work("go")?;
    figures.go.extend(driver.run_in_rig(&driver.server, None, &["running", "go"])?);
    let restart = driver.run_in_rig(&driver.server, Some(&scratch.log("restart")?), &["restart"])?;
    let (go, ours): (Vec<_>, Vec<_>) = restart.into_iter().partition(|figure| figure.of_peer);
    figures.ours.extend(ours);
    figures.go.extend(go);
    add_sum(&mut figures.ours);
    add_sum(&mut figures.go);
    Ok(figures)
}

/// Adds the sum of the rows of CPU.
fn add_sum(figures: &mut Vec<Measurement>) {
    let rows = figures.iter().filter(|figure| figure.bench.ends_with(", CPU"));
    let value = rows.map(|figure| figure.value).sum();
    figures.push(Measurement { bench: ALL_CPU.to_owned(), value, unit: "s".to_owned(), of_peer: false });
}

/// The program of the load, compiled.
fn load(quick: bool) -> Result<PathBuf> {
    let package = "steersman-controllers";
    let bench = "manager";
    let mut build = process::cargo(["build", "--package", package, "--bench", bench]);
    rig::built(build.args(release(quick)), package, bench)
}

fn release(quick: bool) -> Option<&'static str> {
    (!quick).then_some("--release")
}

// === impl Driver ===

impl Driver {
    /// Compiles the load, and then the binary as users get it: nothing may be compiled while something is measured.
    fn build(quick: bool) -> Result<Self> {
        let program = load(quick)?;
        process::run(process::cargo(["build", "--package", "steersman-cli"]).args(release(quick)))?;
        Self::new(program, quick)
    }

    /// Takes what is in a directory: the load finds the binary beside its own.
    fn find(dir: &Path, quick: bool) -> Result<Self> {
        let program = dir.join("deps/manager");
        match dir.join("steersman").exists() && program.exists() {
            true => Self::new(program, quick),
            false => Err(Failure::error(format!("there is no {0}/steersman or no {0}/deps/manager", dir.display()))),
        }
    }

    fn new(program: PathBuf, quick: bool) -> Result<Self> {
        let flags = process::output(Command::new(&program).args(["--bench", "server-flags"]))?;
        let server = flags.lines().map(|flag| format!("--apiserver-flag={flag}")).collect();
        Ok(Self { program, quick, server })
    }

    fn run(&self, mode: &[&str]) -> Result<Vec<Measurement>> {
        figures_of(Command::new(&self.program).args(self.args(mode)))
    }

    fn run_in_rig(&self, options: &[String], log: Option<&Log>, mode: &[&str]) -> Result<Vec<Measurement>> {
        let this = std::env::current_exe().map_err(|error| Failure::error(format!("who am I: {error}")))?;
        let mut command = Command::new(this);
        command.args(["k8s", "run"]).args(options);
        if let Some(log) = log {
            command.arg("--audit-log").arg(&log.path).arg("--audit-policy").arg(&log.policy).env(AUDIT_LOG, &log.path);
        }
        figures_of(command.arg("--").arg(&self.program).args(self.args(mode)))
    }

    fn args<'a>(&self, mode: &[&'a str]) -> Vec<&'a str> {
        ["--bench"].into_iter().chain(mode.iter().copied()).chain(self.quick.then_some("--quick")).collect()
    }
}

/// Runs a mode on the rig for our manager and for Go's, each on a server of its own, and returns the table of both.
fn both_on_rig(driver: &Driver, options: &[String], mode: &str, goals: Goals) -> Result<Option<Table>> {
    if k8s::Go::find().is_none() {
        println!("{PEER} SKIPPED: Go is not installed, so there is neither a rig nor a ratio");
        return Ok(None);
    }
    let scratch = Scratch::new()?;
    let of = |manager: &str| {
        let mut figures = driver.run_in_rig(options, Some(&scratch.log(manager)?), &[mode, manager])?;
        if goals.iter().any(|(bench, _)| *bench == ALL_CPU) {
            add_sum(&mut figures);
        }
        Ok(figures)
    };
    let ours = of("ours")?;
    Ok(Some(beside(ours, &of("go")?, goals)))
}

/// Saves a section whose peer is Go's manager; without the peer's half, nothing.
fn save_beside(name: &str, is_whole: bool, text: &str) -> Result<()> {
    if !is_whole {
        return Err(Failure::error("not saved: half of the figures are missing, because Go is not installed"));
    }
    report::save(name, Some(&format!("{PEER} of Kubernetes {}", k8s::versions()?.kubernetes)), &text)
}

/// Returns the measurements of a mode; none where a controller is missing, which it has printed.
fn figures_of(command: &mut Command) -> Result<Vec<Measurement>> {
    eprintln!("+ {}", process::shown(command));
    let figures = super::parse(&process::output(command)?);
    for Measurement { bench, value, unit, .. } in &figures {
        eprintln!("  {bench}: {value:.2} {unit}");
    }
    Ok(figures)
}

// === impl Scratch ===

impl Scratch {
    fn new() -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("steersman-audit-{}", std::process::id()));
        fs::create_dir_all(&dir).map_err(Failure::io("making", &dir))?;
        Ok(Self(dir))
    }

    fn log(&self, name: &str) -> Result<Log> {
        let policy = self.0.join("policy.yaml");
        fs::write(&policy, POLICY).map_err(Failure::io("writing", &policy))?;
        Ok(Log { path: self.0.join(format!("{name}.log")), policy })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// === impl Figures ===

impl Figures {
    /// The tables with what they show.
    fn text(&self) -> String {
        // Our process has an API server in it, so only times compare.
        let times: Vec<_> = self.go.iter().filter(|figure| figure.bench.ends_with(", wall")).cloned().collect();
        let embedded = beside(self.embedded.clone(), &times, EMBEDDED);
        let mut text = format!("Embedded, `steersman up`, beside {PEER} on kube-apiserver and etcd:\n\n{embedded}");
        if !self.ours.is_empty() {
            let rig = beside(self.ours.clone(), &self.go, RIG);
            text += &format!("\nOn kube-apiserver, both with all controllers and the same flags:\n\n{rig}");
            let [ours, go] = &self.audits;
            let load = ours.load.beside(&go.load, PEER);
            text += &format!(
                "\nWhat roll-out, status changes and cascade asked of kube-apiserver, by its audit log:\n\n{load}"
            );
            let rest = ours.rest.beside(&go.rest, PEER);
            text += &format!("\nWhat all the rest asked, that is the start and the deleted namespace:\n\n{rest}");
        }
        text
    }

    /// A goal without a figure.
    fn hole(&self) -> Option<&'static str> {
        let missing = |goals: Goals, figures: &[Measurement]| {
            let has = |bench: &str| figures.iter().any(|figure| figure.bench == bench);
            goals.iter().map(|(bench, _)| *bench).find(|bench| !has(bench))
        };
        missing(EMBEDDED, &self.embedded).or_else(|| missing(RIG, &self.ours)).or_else(|| missing(RIG, &self.go))
    }
}

fn beside(ours: Vec<Measurement>, peers: &[Measurement], goals: Goals) -> Table {
    let rows = join(ours, peers, goals);
    if peers.is_empty() { Table::alone(rows) } else { Table::beside(PEER, rows) }
}

#[cfg(test)]
mod tests {
    use super::{EMBEDDED, Figures, Goals, RIG};
    use crate::bench::Measurement;

    fn all(goals: Goals) -> Vec<Measurement> {
        let figure =
            |bench: &str| Measurement { bench: bench.to_owned(), value: 1.0, unit: "s".to_owned(), of_peer: false };
        goals.iter().map(|(bench, _)| figure(bench)).collect()
    }

    #[test]
    fn figures_without_one_of_the_goals_have_a_hole() {
        let mut figures = Figures { embedded: all(EMBEDDED), ours: all(RIG), go: all(RIG), ..Figures::default() };
        assert_eq!(figures.hole(), None);
        figures.go.retain(|figure| figure.bench != "restart, CPU");
        assert_eq!(figures.hole(), Some("restart, CPU"));
        figures.embedded.clear();
        assert_eq!(figures.hole(), Some("roll-out, wall"));
    }

    #[test]
    fn only_times_of_the_embedded_cluster_are_held_against_the_peer() {
        let memory =
            || Measurement { bench: "memory, idle".to_owned(), value: 2.0, unit: "MB".to_owned(), of_peer: false };
        let mut figures = Figures { embedded: all(EMBEDDED), go: all(RIG), ..Figures::default() };
        figures.embedded.push(memory());
        figures.go.push(memory());
        let text = figures.text();
        let line = |bench: &str| text.lines().find(|line| line.contains(bench)).unwrap_or_default().to_owned();
        assert!(line("roll-out, wall").contains("1.0 ×"), "{text}");
        assert!(!line("memory, idle").contains("1.0 ×"), "{text}");
    }
}
