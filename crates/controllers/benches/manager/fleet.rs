//! A manager beside many nodes, which do nothing but report that they are alive.

use std::time::{Duration, Instant};

use crate::api::Api;
use crate::managers::{ALL, Manager, Rig};
use crate::measured::Measured;
use crate::process::Scratch;
use crate::rig::simulated_nodes;
use crate::workloads::until_nodes_ready;
use crate::{report_memory, report_time};

/// The heartbeats take this at most of a core: a manager that takes more has other things to do.
const BUSY_PERCENT_MAX: u32 = 30;
const CALM_FOR: Duration = Duration::from_secs(5);
/// The annotation that the TTL controller writes to every node.
const TTL: &str = r#""node.alpha.kubernetes.io/ttl":""#;
/// The list of all nodes is a large answer.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// One manager on the rig, with simulated nodes that renew their leases every ten seconds.
pub(crate) async fn beside_nodes(nodes: usize, window: Duration, manager: Manager) {
    let scratch = Scratch::new();
    let rig = Rig::around_us();
    let api = Api::connect(&rig.admin()).await;
    let fleet = simulated_nodes(&rig, nodes, &scratch);
    until_nodes_ready(&api, nodes).await;

    let started = Instant::now();
    let mut measured = Measured::new(manager.start(&rig, ALL, &scratch));
    // What it writes to each node is a part of its start; a process that gets no CPU looks calm, too.
    api.until_matches("/api/v1/nodes", TTL, nodes, LOOK_EVERY).await;
    measured.process.calm(CALM_FOR, BUSY_PERCENT_MAX).await;
    eprintln!("calm after {:.0} s", started.elapsed().as_secs_f64());
    report_time("5,000 nodes: start, CPU", measured.process.usage().cpu);

    measured.begin();
    tokio::time::sleep(window).await;
    measured.used("5,000 nodes: 90 s of heartbeats");
    let usage = measured.process.usage();
    report_memory("5,000 nodes: memory", usage.resident_bytes);
    report_memory("5,000 nodes: memory, peak", usage.peak_bytes);
    measured.process.end().await;
    fleet.end().await;
}
