//! `cargo xtask bench`: our benchmarks, beside a peer where there is one.
//!
//! A benchmark prints one JSON object per line, `{"bench": "name", "value": 12.3, "unit": "ns"}`; other lines are for
//! people. Figures of one machine mean little on another, so what counts is the ratio within one run. `--save` writes
//! the tables to `docs/benchmarks.md`.

mod report;
mod table;

use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::{k8s, process};
use table::{Row, Table};

const USAGE: &str = "usage: cargo xtask bench workqueue|informer|all [--save]";

/// A benchmark of the workspace.
struct Suite {
    name: &'static str,
    package: &'static str,
    target: &'static str,
    /// The rig's program that runs the same loops.
    peer: Option<&'static str>,
}

const SUITES: [Suite; 2] = [
    Suite { name: "workqueue", package: "steersman-workqueue", target: "queue", peer: Some("bench-workqueue") },
    Suite { name: "informer", package: "steersman-informer", target: "informer", peer: None },
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
    }
    for suite in suites {
        let table = suite.measure()?;
        println!("\n{table}");
        if save {
            report::save(suite.name, suite.peer.is_some(), &table)?;
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
fn join(ours: Vec<Measurement>, peers: &[Measurement]) -> Vec<Row> {
    ours.into_iter()
        .map(|ours| {
            let same = |peer: &&Measurement| peer.bench == ours.bench && peer.unit == ours.unit;
            Row { peer: peers.iter().find(same).map(|peer| peer.value), ours }
        })
        .collect()
}

// === impl Suite ===

impl Suite {
    fn measure(&self) -> Result<Table> {
        let ours = measurements(&mut process::cargo(["bench", "--package", self.package, "--bench", self.target]))?;
        let peers = match self.peer {
            None => Vec::new(),
            Some(_) if k8s::Go::find().is_none() => {
                println!("client-go SKIPPED: Go is not installed, so there is no ratio");
                Vec::new()
            }
            Some(peer) => measurements(&mut Command::new(k8s::binary(peer)?))?,
        };
        let rows = join(ours, &peers);
        Ok(if peers.is_empty() { Table::alone(rows) } else { Table::beside("client-go", rows) })
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
    use super::{join, parse};

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
            join(ours, &peers).into_iter().map(|row| (row.ours.bench, row.ours.value, row.peer)).collect();
        assert_eq!(rows, [("add".to_owned(), 50.0, Some(150.5)), ("kept".to_owned(), 790.0, None)]);
    }
}
