//! Measures how many nodes and pods one process can run: an embedded cluster, and figures.
//!
//! `cargo run --release -p steersman-nodes --example scale -- 1000 100000`

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use steersman_nodes::NodesOptions;
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Failure, TestCluster};
use tokio::time::Instant;

/// The number of pods created concurrently.
const CREATES_AT_ONCE: usize = 64;
/// The polling period.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Failure> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<usize>());
    let nodes = numbers.next().unwrap_or(Ok(100))?;
    let pods = numbers.next().unwrap_or(Ok(5_000))?;
    let room = pods.div_ceil(nodes.max(1)).max(110).to_string();
    let mut options = NodesOptions::count(nodes);
    options.capacity.insert("pods".into(), room);
    options.capacity.insert("cpu".into(), "1000".into());
    let cluster = TestCluster::builder().nodes_with(options).start().await?;

    let start = Instant::now();
    let api = cluster.api::<Pod>();
    let creates = (0..pods).map(|number| {
        let api = api.clone();
        async move { api.create(&PostParams::default(), &objects::pod(&format!("web-{number}")).app("web")).await }
    });
    let mut created = futures::stream::iter(creates).buffer_unordered(CREATES_AT_ONCE);
    while let Some(outcome) = created.next().await {
        outcome?;
    }
    println!("{pods} pods created in {:?}", start.elapsed());

    until(&api, "status.phase=Running", pods).await?;
    println!("{pods} pods running on {nodes} nodes after {:?}; resident {}", start.elapsed(), resident());

    let start = Instant::now();
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    until(&api, "", 0).await?;
    println!("{pods} pods gone after {:?}", start.elapsed());
    cluster.stop().await
}

/// Waits until there are this many pods.
async fn until(api: &kube::Api<Pod>, fields: &str, count: usize) -> Result<(), Failure> {
    while api.list_metadata(&ListParams::default().fields(fields)).await?.items.len() != count {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Returns the resident memory of this process, where the system reports it.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
