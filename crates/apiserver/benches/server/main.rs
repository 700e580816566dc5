//! An API server under load, over TLS: one JSON object per line.
//!
//! The load is the same for both servers. Without further ado it is for `steersman up`, started here as a child, so that
//! its start and its memory are a real process's; with `STEERSMAN_BENCH_KUBECONFIG=FILE` (or inside the rig) it is for
//! the server of that file. `cargo xtask bench apiserver` runs both, and what counts is the ratio within one run.
//!
//! 1. Bodies are made before the clock starts, and connections are kept: the generator should not be what is measured.
//! 2. Best of several rounds where a round can be repeated: the machine's other work only ever adds to one.
//! 3. Every loop has a bound, and so has the whole.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures the real clock")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a benchmark that meets trouble ends with it")]

mod author;
mod client;
mod load;
mod process;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use steersman_apiserver::{ApiServer, Options};
use tower::ServiceExt;

use client::Target;
use process::{Child, Resident};

/// The whole; the slow one of both takes about a minute on two cores.
const TIMEOUT: Duration = Duration::from_secs(300);
const STARTS: usize = 5;
const IDLE: Duration = Duration::from_secs(3);
/// For a server to give back what only the requests needed.
const SETTLE: Duration = Duration::from_secs(1);

fn main() {
    let is = |flag: &str| std::env::args().any(|arg| arg == flag);
    if is(process::START_ONCE) {
        return println!("{}", start_in_process().as_secs_f64());
    }
    // `cargo test --benches` runs benchmarks too: there, briefly.
    if !is("--bench") {
        return report("start to first list, in process", millis(start_in_process()), "ms");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let all = async {
        match process::peer_kubeconfig() {
            Some(file) => under_load(&Target::read(&file), &Resident::rig()).await,
            None => ours().await,
        }
    };
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, all).await.expect("all is over in time") });
    // Watches that a server would hold open do not hold us.
    runtime.shutdown_background();
}

async fn ours() {
    let starts = (0..STARTS).map(|_| process::start_once());
    report("start to first list, in process", millis(starts.min().unwrap_or_default()), "ms");

    let mut best = Duration::MAX;
    let mut last = None;
    for _ in 0..STARTS {
        // The one before ends first.
        drop(last.take());
        let started = Instant::now();
        let child = Child::start();
        let target = Target::read(child.kubeconfig());
        target.connect().await.get("/api/v1/namespaces").await;
        best = best.min(started.elapsed());
        last = Some(child);
    }
    report("process start to serving TLS", millis(best), "ms");
    let child = last.expect("at least one start");
    under_load(&Target::read(child.kubeconfig()), &Resident::child(&child)).await;
}

/// What both servers go through, the rig's first second included in its own start.
async fn under_load(target: &Target, resident: &Resident) {
    tokio::time::sleep(IDLE).await;
    report("idle memory", megabytes(resident.bytes()), "MB");

    let load = load::Load::new(target).await;
    let before = resident.bytes();
    load.create_pods().await;
    tokio::time::sleep(SETTLE).await;
    let grown = resident.bytes().saturating_sub(before);
    let list = load.list_pods().await;
    eprintln!("{} bytes per pod in the list; {} per pod in memory", list.bytes / load::PODS, grown / load::PODS);
    report("list of 10,000 pods", megabytes(list.bytes) / list.best.as_secs_f64(), "MB/s");
    if resident.is_ours() {
        report("bytes kept per stored byte of JSON", grown as f64 / list.bytes as f64, "×");
    }
    report("creates of 1 KB ConfigMaps by 64 clients", load.create_maps().await, "/s");
    report("applies of a 5 KB Deployment by 64 clients", load.apply_deployments().await, "/s");
    let (first, creates) = load.create_custom().await;
    report("definition to its first object served", millis(first), "ms");
    report("creates of custom resources, 200 fields and 10 rules", creates, "/s");
    report("one change reaches 1,000 watchers", millis(load.watch(target).await), "ms");
    eprintln!("{:.0} MB at the end", megabytes(resident.bytes()));
}

/// From nothing to the answer of the first list; only the first in a process is cold.
fn start_in_process() -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let started = Instant::now();
        let server = ApiServer::new(Options::default());
        let request = http::Request::get("/api/v1/namespaces").body(Full::new(Bytes::new())).expect("a request");
        let response = server.oneshot(request).await.expect("an answer");
        assert!(response.status().is_success(), "{}", response.status());
        let list = response.into_body().collect().await.expect("a body").to_bytes();
        let took = started.elapsed();
        assert!(!list.is_empty());
        took
    })
}

fn report(bench: &str, value: f64, unit: &str) {
    println!("{}", json!({"bench": bench, "value": value, "unit": unit}));
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
