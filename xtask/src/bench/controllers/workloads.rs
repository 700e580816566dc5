//! `cargo xtask bench workloads`: Jobs, sets, CronJobs and autoscalers, our manager beside Go's.
//!
//! As the benchmark of the controllers: each manager has a kube-apiserver and an etcd of its own, and simulated nodes of
//! ours run the pods of both. The API calls of a row are those of the manager while it is measured, by the audit log.

use super::{ALL_CPU, Driver, Goals, beside, both_on_rig, save_beside};
use crate::failure::Result;

const NAME: &str = "workloads";

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
    ("Autoscalers, wall", "≥ 1 ×"),
    ("Autoscalers, CPU", "≥ 3 ×"),
    ("Autoscalers, API calls", "≥ 1 ×"),
    (ALL_CPU, "≥ 4 ×"),
    ("memory, peak of the run", "≥ 5 ×"),
];

pub(super) fn run(driver: &Driver, save: bool) -> Result<()> {
    let embedded = beside(driver.run(&[NAME])?, &[], EMBEDDED);
    let mut text = format!("Embedded, `steersman up`:\n\n{embedded}");
    let rig = both_on_rig(driver, &[], NAME, RIG)?;
    if let Some(rig) = &rig {
        text += &format!("\nOn kube-apiserver, both with the same controllers and flags:\n\n{rig}");
    }
    println!("\n{text}");
    if save { save_beside(NAME, rig.is_some(), &text) } else { Ok(()) }
}
