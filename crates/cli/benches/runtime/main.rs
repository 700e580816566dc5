//! The runtime as a whole: how soon it works, what it costs while nothing happens, and how soon it sees what does. One JSON
//! object per line.
//!
//! Without further ado, on our own API server; inside the rig (`STEERSMAN_RIG_KUBECONFIG`) on kube-apiserver, beside two
//! programs in Go that do the same there: a controller of thirty lines on controller-runtime (`rig/bench-runtime`), and
//! kube-controller-manager with the same list of controllers. `cargo xtask bench runtime` runs both parts; lines of a
//! peer say so, and what counts is the ratio within one run.
//!
//! 1. What is measured is a process of its own where memory, processor time or a start is the figure.
//! 2. Load comes at a fixed rate, whether it is kept up with or not, and an event's age counts from before it is sent.
//! 3. Every wait has a bound, and so has the whole.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures the real clock")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a benchmark that meets trouble ends with it")]

mod controller;
mod events;
mod latency;
mod load;
mod managers;
mod process;
mod start;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

/// The whole; the part on the rig takes about four minutes.
const TIMEOUT: Duration = Duration::from_secs(900);

/// Whose figure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Peer,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [start::ONCE] => start::once(),
        [controller::RUN, namespace] => controller::run(namespace),
        _ if args.contains(&"--bench") => {
            let only = args.iter().find(|arg| !arg.starts_with('-')).copied().unwrap_or_default();
            bench(only);
        }
        // `cargo test --benches` runs benchmarks too: there, briefly.
        _ => events::measure(100),
    }
}

/// Runs the parts whose name contains `only`.
fn bench(only: &str) {
    let wanted = |name: &str| name.contains(only);
    let rig = std::env::var_os("STEERSMAN_RIG_KUBECONFIG").filter(|file| !file.is_empty()).map(PathBuf::from);
    if rig.is_none() {
        if wanted("start") {
            start::measure();
        }
        if wanted("events") {
            events::measure(events::COUNT);
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let rest = async {
        // First, while the cluster is empty: managers see all that there is.
        if wanted("managers") {
            match &rig {
                Some(kubeconfig) => managers::on_rig(kubeconfig).await,
                None => managers::on_ours().await,
            }
        }
        if wanted("latency") {
            match &rig {
                Some(kubeconfig) => latency::on_rig(kubeconfig).await,
                None => latency::on_ours().await,
            }
        }
    };
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, rest).await.expect("all is over in time") });
    runtime.shutdown_background();
}

pub(crate) fn report(side: Side, bench: &str, value: f64, unit: &str) {
    match side {
        Side::Ours => println!("{}", json!({"bench": bench, "value": value, "unit": unit})),
        Side::Peer => println!("{}", json!({"bench": bench, "value": value, "unit": unit, "of": "peer"})),
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
