//! Whole controller managers at work, as processes: one JSON object per line.
//!
//! ```text
//! manager --bench embedded              `steersman up`: API server, controllers and nodes in one process
//! manager --bench graph                 our garbage collector and its graph of 100,000 objects
//! manager --bench rig ours|go           one manager on the rig's kube-apiserver: roll-out, status changes, cascade, namespace
//! manager --bench load ours|go          as `rig`, without the idle minute and the namespace: for a comparison of two builds
//! manager --bench running go            as `rig`, with simulated nodes: until all pods run and are in EndpointSlices
//! manager --bench restart               both managers, one after the other, start on a full cluster
//! manager --bench workloads             `steersman up`: a Job, a StatefulSet, a DaemonSet and CronJobs, all large
//! manager --bench workloads ours|go     one manager on the rig's kube-apiserver: the same, smaller, and autoscalers
//! manager --bench scale                 `steersman up`: many claims, signing requests, pods of a quota, autoscalers
//! manager --bench nodes ours|go         one manager on the rig's kube-apiserver, beside thousands of nodes with heartbeats
//! manager --bench large NODES PODS      both managers, one after the other, start on nodes with so many pods each
//! manager --bench server-flags          the flags of kube-apiserver for a manager with all controllers
//! ```
//! `cargo xtask bench controllers`, `… workloads`, `… scale`, `… nodes` and `… large` run them, those of the rig inside one;
//! `--quick` makes everything small.
//!
//! 1. The load is the same for every manager, and so are the flags ([`managers::FLAGS`]) and the controllers.
//! 2. What is awaited is the state of the cluster, never what a manager says of itself; a look costs the server next to
//!    nothing (one object and how many more there are).
//! 3. A manager's CPU is counted until it is quiet again, so work that is put off is counted too.
//! 4. Every wait has a bound and so has the whole; children end with this process, however it ends (where `setpriv` is).
//! 5. All is on the loopback interface.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures the real clock")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a benchmark that meets trouble ends with it")]

mod api;
mod autoscalers;
mod embedded;
mod etcd;
mod fleet;
mod large;
mod load;
mod managers;
mod measured;
mod population;
mod process;
mod rig;
mod scale;
mod sizes;
mod steps;
mod workloads;

use std::time::Duration;

use serde_json::json;

use managers::Manager;
use population::Population;
use sizes::Sizes;

/// The longest mode takes about five minutes on two cores, but for the large cluster.
const TIMEOUT: Duration = Duration::from_secs(600);
const LARGE_TIMEOUT: Duration = Duration::from_secs(1_500);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` starts benchmarks too, and wants none.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let sizes = if args.iter().any(|arg| arg == "--quick") { Sizes::QUICK } else { Sizes::FULL };
    let words: Vec<_> = args.iter().map(String::as_str).filter(|arg| !arg.starts_with("--")).collect();
    let timeout = if words.first() == Some(&"large") { LARGE_TIMEOUT } else { TIMEOUT };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let all = async {
        match words.as_slice() {
            ["embedded"] => embedded::clusters(&sizes).await,
            ["graph"] => embedded::graph(&sizes).await,
            ["rig", manager] => rig::work(&sizes, Manager::named(manager)).await,
            ["load", manager] => rig::load(&sizes, Manager::named(manager)).await,
            ["running", manager] => rig::running(&sizes, Manager::named(manager)).await,
            ["restart"] => rig::restart(&sizes).await,
            ["workloads"] => embedded::workloads(&sizes.large).await,
            ["workloads", manager] => rig::workloads(&sizes.workloads, Manager::named(manager)).await,
            ["scale"] => scale::all(&sizes.scale).await,
            ["nodes", manager] => fleet::beside_nodes(sizes.fleet.0, sizes.fleet.1, Manager::named(manager)).await,
            ["large", nodes, pods_per_node] => {
                let number = |text: &str| text.parse().expect("a number");
                let population = Population { nodes: number(nodes), pods_per_node: number(pods_per_node) };
                large::both(population).await;
            }
            ["server-flags"] => managers::ALL.server.iter().for_each(|flag| println!("{flag}")),
            _ => eprintln!("nothing to do: `cargo xtask bench controllers` runs this program"),
        }
    };
    // Within `block_on`, so that whatever ends it drops the children.
    let ended = runtime.block_on(async {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("signals");
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Err("interrupted"),
            _ = terminate.recv() => Err("terminated"),
            ended = tokio::time::timeout(timeout, all) => ended.map_err(|_| "not over in time"),
        }
    });
    runtime.shutdown_background();
    if let Err(why) = ended {
        eprintln!("manager benchmark: {why}");
        std::process::exit(1);
    }
}

fn report(bench: &str, value: f64, unit: &str) {
    println!("{}", json!({"bench": bench, "value": value, "unit": unit}));
}

/// Of one manager of two that the same run measures.
fn report_of(manager: Manager, bench: &str, value: f64, unit: &str) {
    let of = if manager == Manager::Go { "peer" } else { "ours" };
    println!("{}", json!({"bench": bench, "value": value, "unit": unit, "of": of}));
}

fn report_time(bench: &str, time: Duration) {
    report(bench, time.as_secs_f64(), "s");
}

fn report_memory(bench: &str, bytes: usize) {
    report(bench, bytes as f64 / 1e6, "MB");
}
