//! `cargo xtask bench`: our benchmarks, beside a peer where there is one.
//!
//! A benchmark prints one JSON object per line, `{"bench": "name", "value": 12.3, "unit": "ns"}`; other lines are for
//! people. Figures of one machine mean little on another, so what counts is the ratio within one run. `--save` writes
//! the tables to `docs/benchmarks.md`.

mod controllers;
mod report;
mod rig;
mod table;

use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::{k8s, process};
use table::{Row, Table};

const USAGE: &str = "\
usage: cargo xtask bench workqueue|informer|apiserver|runtime|controllers|workloads|scale|nodes|all [--quick] [--save]
       cargo xtask bench large [--nodes N] [--pods-per-node N] [--quick] [--save]

`controllers` and those behind it take `--built DIR`: nothing is compiled, and the programs are DIR/steersman and
DIR/deps/manager, the load. So a build is measured that was made elsewhere, or one is compared with another.";

/// A benchmark of the workspace.
struct Suite {
    name: &'static str,
    package: &'static str,
    target: &'static str,
    peer: Option<Peer>,
    /// The goals, by the name of the bench.
    goals: &'static [(&'static str, &'static str)],
}

/// Beside what we are measured.
#[derive(Clone, Copy)]
enum Peer {
    /// A program of the rig runs the same loops on client-go.
    ClientGo { program: &'static str },
    /// Our own program runs again, inside the rig, on kube-apiserver; the rig measures its start for this bench.
    Rig { start: &'static str },
    /// Our own program runs again, inside the rig, and runs this program of the rig and kube-controller-manager beside
    /// our own: what it prints then is of both.
    ControllerRuntime { program: &'static str },
}

const SUITES: [Suite; 4] = [
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
            ("creates of 1 KB ConfigMaps by 64 clients", "≥ 10 × peer"),
            ("applies of a 5 KB Deployment by 64 clients", "≥ 10 × peer"),
            ("definition to its first object served", "≤ 20 ms"),
            ("creates of custom resources, 200 fields and 10 rules", "≥ 8 × peer"),
            ("one change reaches 1,000 watchers", "≤ 20 ms"),
        ],
    },
    Suite {
        name: "runtime",
        package: "steersman-cli",
        target: "runtime",
        peer: Some(Peer::ControllerRuntime { program: "bench-runtime" }),
        goals: &[
            ("process start to first reconcile as leader, server in process", "≤ 50 ms"),
            ("CPU per irrelevant pod event, JSON", "≤ 20 µs"),
            ("CPU per irrelevant pod event, protobuf", "≤ 20 µs"),
            ("event to reconcile at 2,000/s, in process, p99", "≤ 2 ms"),
            ("event to reconcile at 2,000/s, over TLS, p99", "≤ 2 ms"),
            ("controller of 30 lines: memory, idle", "≤ 15 MB"),
            ("manager idle: memory", "≤ 15 MB"),
            ("manager idle: CPU", "≤ 0.1 %"),
            ("fail-over to next pod, leader ends", "≤ 1 s"),
            // The default lease's 15 s and one retry period.
            ("fail-over to next pod, leader killed", "≤ 17 s"),
        ],
    },
];

/// One line of a benchmark's output.
#[derive(Clone, Debug, PartialEq)]
struct Measurement {
    bench: String,
    value: f64,
    unit: String,
    /// A program that runs both names the subject of a figure.
    of_peer: bool,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let save = args.iter().any(|arg| arg == "--save");
    // Small sizes, where a benchmark has them.
    let quick = args.iter().any(|arg| arg == "--quick");
    let is_name = |arg: &&String| !["--save", "--quick"].contains(&arg.as_str());
    let names: Vec<_> = args.iter().filter(is_name).map(String::as_str).collect();
    if quick && save {
        return Err(Failure::error("figures of --quick mean nothing, so they are not saved: leave out --save"));
    }
    if let [name @ ("controllers" | "workloads" | "scale" | "nodes" | "large"), rest @ ..] = names.as_slice() {
        return controllers::dispatch(name, rest, quick, save);
    }
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
        if let Some(Peer::Rig { .. } | Peer::ControllerRuntime { .. }) = suite.peer {
            build_for_users()?;
        }
    }
    for suite in suites {
        let table = suite.measure()?;
        println!("\n{table}");
        if save {
            report::save(suite.name, suite.peer.map(Peer::versions).transpose()?.as_deref(), &table)?;
        }
    }
    if names == ["all"] {
        for name in ["controllers", "workloads", "scale", "nodes"] {
            controllers::dispatch(name, &[], quick, save)?;
        }
    }
    Ok(())
}

/// The real binary, as users get it.
fn build_for_users() -> Result<()> {
    process::run(&mut process::cargo(["build", "--release", "--package", "steersman-cli"]))
}

/// The measurements in a program's output.
fn parse(output: &str) -> Vec<Measurement> {
    let measurement = |line: &str| {
        let json: Value = serde_json::from_str(line).ok()?;
        Some(Measurement {
            bench: json["bench"].as_str()?.to_owned(),
            value: json["value"].as_f64()?,
            // "per operation" is implied.
            unit: json["unit"].as_str()?.trim_end_matches("/op").to_owned(),
            of_peer: json["of"] == "peer",
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
        let mut ours = measurements(&mut process::cargo(["bench", "--package", self.package, "--bench", self.target]))?;
        let peers = match self.peer {
            None => Vec::new(),
            Some(peer) if k8s::Go::find().is_none() => {
                println!("{} SKIPPED: Go is not installed, so there is no ratio", peer.name());
                Vec::new()
            }
            Some(Peer::ClientGo { program }) => measurements(&mut Command::new(k8s::binary(program)?))?,
            Some(Peer::Rig { start }) => rig::measure(&rig::program(self.package, self.target)?, Some(start), &[])?,
            Some(Peer::ControllerRuntime { program }) => {
                let peer = (rig::PEER, k8s::binary(program)?);
                let program = rig::program(self.package, self.target)?;
                // What cargo makes for a benchmark has the features of tests, and took the place of the other.
                build_for_users()?;
                let both = rig::measure(&program, None, &[peer])?;
                let (peers, more) = both.into_iter().partition(|measurement| measurement.of_peer);
                ours.extend::<Vec<_>>(more);
                peers
            }
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
            Self::ControllerRuntime { .. } => "Go",
        }
    }

    /// Returns its composition, for the paragraph above a table.
    fn versions(self) -> Result<String> {
        let name = match self {
            Self::ClientGo { .. } | Self::Rig { .. } => self.name().to_owned(),
            Self::ControllerRuntime { .. } => {
                let version = k8s::pinned("rig/bench-runtime/go.mod", "sigs.k8s.io/controller-runtime")?;
                format!("controller-runtime {version} and kube-controller-manager")
            }
        };
        Ok(format!("{name} of Kubernetes {}", k8s::versions()?.kubernetes))
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
            (Measurement { bench: bench.to_owned(), value, unit: unit.to_owned(), of_peer: false }, peer, goal)
        };
        let want = [row("add", 50.0, "ns", Some(150.5), None), row("kept", 790.0, "bytes", None, Some("≤ 800"))];
        assert_eq!(rows, want);
    }

    #[test]
    fn a_figure_is_ours_unless_it_says_that_it_is_the_peers() {
        let both = parse(
            "{\"bench\":\"idle\",\"value\":1,\"unit\":\"MB\"}\n\
             {\"bench\":\"idle\",\"value\":2,\"unit\":\"MB\",\"of\":\"peer\"}\n",
        );
        assert_eq!(both.iter().map(|measurement| measurement.of_peer).collect::<Vec<_>>(), [false, true]);
    }
}
