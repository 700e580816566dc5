//! `cargo xtask bench`: our benchmarks, beside a peer where there is one.
//!
//! A benchmark prints one JSON object per line, `{"bench": "name", "value": 12.3, "unit": "ns"}`; other lines are for
//! people. Figures of one machine mean little on another, so what counts is the ratio within one run. `--save` writes
//! the tables to `docs/benchmarks.md`.

mod report;
mod rig;
mod table;

use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::{k8s, process};
use table::{Row, Table};

const USAGE: &str = "usage: cargo xtask bench workqueue|informer|apiserver|all [--save]";

/// A benchmark of the workspace.
struct Suite {
    name: &'static str,
    package: &'static str,
    target: &'static str,
    peer: Option<Peer>,
    /// What we want to reach, by the name of the bench.
    goals: &'static [(&'static str, &'static str)],
}

/// Beside what we are measured.
#[derive(Clone, Copy)]
enum Peer {
    /// A program of the rig runs the same loops on client-go.
    ClientGo { program: &'static str },
    /// Our own program runs again, inside the rig, on kube-apiserver; the rig measures its start for this bench.
    Rig { start: &'static str },
}

const SUITES: [Suite; 3] = [
    Suite {
        name: "workqueue",
        package: "steersman-workqueue",
        target: "queue",
        peer: Some(Peer::ClientGo { program: "bench-workqueue" }),
        goals: &[],
    },
    Suite { name: "informer", package: "steersman-informer", target: "informer", peer: None, goals: &[] },
    Suite {
        name: "apiserver",
        package: "steersman-apiserver",
        target: "server",
        peer: Some(Peer::Rig { start: "process start to serving TLS" }),
        goals: &[
            ("start to first list, in process", "≤ 5 ms"),
            ("process start to serving TLS", "≤ 100 ms"),
            ("idle memory", "≤ 20 MB"),
            ("list of 10,000 pods", "≥ 3 × peer"),
            ("bytes kept per stored byte of JSON", "≤ 1.3 ×"),
            ("creates of 1 KB ConfigMaps by 64 clients", "≥ 8 × peer"),
            ("one change reaches 1,000 watchers", "≤ 20 ms"),
        ],
    },
];

/// One line of a benchmark's output.
#[derive(Clone, Debug, PartialEq)]
struct Measurement {
    bench: String,
    value: f64,
    unit: String,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let save = args.iter().any(|arg| arg == "--save");
    let names: Vec<_> = args.iter().filter(|arg| *arg != "--save").map(String::as_str).collect();
    let suites: Vec<_> = match names.as_slice() {
        ["all"] => SUITES.iter().collect(),
        [name] => SUITES.iter().filter(|suite| suite.name == *name).collect(),
        _ => Vec::new(),
    };
    if suites.is_empty() {
        return Err(Failure::usage("say which benchmark", USAGE));
    }
    // Compiled before anything is measured: the compiler would be measured too.
    for suite in &suites {
        process::run(process::cargo(["bench", "--package", suite.package, "--bench", suite.target]).arg("--no-run"))?;
        if let Some(Peer::Rig { .. }) = suite.peer {
            // Our side is the real binary, as users get it.
            process::run(&mut process::cargo(["build", "--release", "--package", "steersman"]))?;
        }
    }
    for suite in suites {
        let table = suite.measure()?;
        println!("\n{table}");
        if save {
            report::save(suite.name, suite.peer.map(Peer::name), &table)?;
        }
    }
    Ok(())
}

/// The measurements in a program's output.
fn parse(output: &str) -> Vec<Measurement> {
    let measurement = |line: &str| {
        let json: Value = serde_json::from_str(line).ok()?;
        Some(Measurement {
            bench: json["bench"].as_str()?.to_owned(),
            value: json["value"].as_f64()?,
            // Per operation goes without saying.
            unit: json["unit"].as_str()?.trim_end_matches("/op").to_owned(),
        })
    };
    output.lines().filter_map(|line| measurement(line.trim())).collect()
}

/// One row per bench of ours, in our order, with the peer's value where it has the same bench.
fn join(ours: Vec<Measurement>, peers: &[Measurement], goals: &[(&str, &'static str)]) -> Vec<Row> {
    ours.into_iter()
        .map(|ours| {
            let same = |peer: &&Measurement| peer.bench == ours.bench && peer.unit == ours.unit;
            let goal = goals.iter().find(|(bench, _)| *bench == ours.bench).map(|(_, goal)| *goal);
            Row { peer: peers.iter().find(same).map(|peer| peer.value), ours, goal }
        })
        .collect()
}

// === impl Suite ===

impl Suite {
    fn measure(&self) -> Result<Table> {
        let ours = measurements(&mut process::cargo(["bench", "--package", self.package, "--bench", self.target]))?;
        let peers = match self.peer {
            None => Vec::new(),
            Some(peer) if k8s::Go::find().is_none() => {
                println!("{} SKIPPED: Go is not installed, so there is no ratio", peer.name());
                Vec::new()
            }
            Some(Peer::ClientGo { program }) => measurements(&mut Command::new(k8s::binary(program)?))?,
            Some(Peer::Rig { start }) => rig::measure(&rig::program(self.package, self.target)?, start)?,
        };
        let rows = join(ours, &peers, self.goals);
        Ok(match self.peer {
            Some(peer) if !peers.is_empty() => Table::beside(peer.name(), rows),
            _ => Table::alone(rows),
        })
    }
}

// === impl Peer ===

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::ClientGo { .. } => "client-go",
            Self::Rig { .. } => "kube-apiserver + etcd",
        }
    }
}

fn measurements(command: &mut Command) -> Result<Vec<Measurement>> {
    eprintln!("+ {}", process::shown(command));
    let measurements = parse(&process::output(command)?);
    if measurements.is_empty() {
        return Err(Failure::error(format!(
            "`{}` printed no measurements (one JSON object per line)",
            process::shown(command)
        )));
    }
    Ok(measurements)
}

#[cfg(test)]
mod tests {
    use super::{Measurement, join, parse};

    #[test]
    fn measurements_are_found_among_other_lines_and_joined_by_name_and_unit() {
        let ours = parse(
            "running\n{\"bench\":\"add\",\"value\":50,\"unit\":\"ns/op\"}\n{\"other\":1}\n\
             {\"bench\":\"kept\",\"value\":790,\"unit\":\"bytes\"}\n",
        );
        let peers = parse(
            "{\"bench\":\"kept\",\"value\":1,\"unit\":\"ns\"}\n{\"bench\":\"add\",\"value\":150.5,\"unit\":\"ns\"}\n",
        );
        let rows: Vec<_> =
            join(ours, &peers, &[("kept", "≤ 800")]).into_iter().map(|row| (row.ours, row.peer, row.goal)).collect();
        let row = |bench: &str, value, unit: &str, peer, goal| {
            (Measurement { bench: bench.to_owned(), value, unit: unit.to_owned() }, peer, goal)
        };
        let want = [row("add", 50.0, "ns", Some(150.5), None), row("kept", 790.0, "bytes", None, Some("≤ 800"))];
        assert_eq!(rows, want);
    }
}
