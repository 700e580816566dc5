//! `cargo xtask bench workloads`: Jobs, sets and CronJobs, our manager beside Go's.
//!
//! As the benchmark of the controllers: each manager has a kube-apiserver and an etcd of its own, and simulated nodes of
//! ours run the pods of both. The API calls of a row are those in its namespace, by the audit log.

use std::fs;

use super::{Driver, Goals, Measurement, PEER, Scratch, beside};
use crate::bench::report;
use crate::failure::{Failure, Result};
use crate::k8s;

const NAME: &str = "workloads";

/// The rows of the rig, and the namespace of each, as the benchmark `manager` names it.
const ROWS: [(&str, &str); 4] = [
    ("Indexed Job", "bench-job"),
    ("StatefulSets", "bench-sets"),
    ("CronJobs", "bench-cron"),
    ("DaemonSet", "bench-daemons"),
];

const EMBEDDED: Goals = &[
    ("Indexed Job, wall", "≤ 30 s"),
    ("Indexed Job, completions per status write", "≥ 100"),
    ("StatefulSets, wall", "≤ 3 s"),
    ("DaemonSet, wall", "≤ 5 s"),
    ("CronJobs, wall", "≤ 5 s"),
];

const RIG: Goals = &[
    ("Indexed Job, wall", "≥ 1 ×"),
    ("Indexed Job, CPU", "≥ 3 ×"),
    ("Indexed Job, API calls", "≥ 1 ×"),
    ("StatefulSets, wall", "≥ 1 ×"),
    ("StatefulSets, CPU", "≥ 3 ×"),
    ("StatefulSets, API calls", "≥ 1 ×"),
    ("CronJobs, wall", "≥ 1 ×"),
    ("CronJobs, CPU", "≥ 3 ×"),
    ("CronJobs, API calls", "≥ 1 ×"),
    ("DaemonSet, wall", "≥ 1 ×"),
    ("DaemonSet, CPU", "≥ 3 ×"),
    ("DaemonSet, API calls", "≥ 1 ×"),
    ("all rows, CPU", "≥ 4 ×"),
    ("memory, peak of the run", "≥ 5 ×"),
];

pub(in crate::bench) fn run(quick: bool, save: bool) -> Result<()> {
    let driver = Driver::build(quick)?;
    let embedded = driver.run(&[NAME])?;
    let embedded = beside(embedded, &[], EMBEDDED);
    let mut text = format!("Embedded, `steersman up`:\n\n{embedded}");
    let is_rig = k8s::Go::find().is_some();
    if is_rig {
        let scratch = Scratch::new()?;
        let ours = on_rig(&driver, &scratch, "ours")?;
        let go = on_rig(&driver, &scratch, "go")?;
        let rig = beside(ours, &go, RIG);
        text += &format!("\nOn kube-apiserver, both with the same controllers and flags:\n\n{rig}");
    } else {
        println!("{PEER} SKIPPED: Go is not installed, so there is neither a rig nor a ratio");
    }
    println!("\n{text}");
    if !save {
        return Ok(());
    }
    if !is_rig {
        return Err(Failure::error("not saved: half of the figures are missing, because Go is not installed"));
    }
    report::save(NAME, Some(&format!("{PEER} of Kubernetes {}", k8s::versions()?.kubernetes)), &text)
}

/// The figures of one manager, with the sum of CPU and the calls of each row.
fn on_rig(driver: &Driver, scratch: &Scratch, manager: &str) -> Result<Vec<Measurement>> {
    let log = scratch.0.join(format!("{NAME}-{manager}.log"));
    let mut figures = driver.run_in_rig(&scratch.audit(&log)?, &[NAME, manager])?;
    let text = fs::read_to_string(&log).map_err(Failure::io("reading", &log))?;
    let cpu = figures.iter().filter(|figure| figure.bench.ends_with(", CPU")).map(|figure| figure.value).sum();
    figures.push(figure("all rows, CPU".to_owned(), cpu, "s"));
    for (row, namespace) in ROWS {
        let calls = super::audit::calls_in(&text, namespace);
        figures.push(figure(format!("{row}, API calls"), calls as f64, "calls"));
    }
    Ok(figures)
}

fn figure(bench: String, value: f64, unit: &str) -> Measurement {
    Measurement { bench, value, unit: unit.to_owned(), of_peer: false }
}
