//! Autoscalers of Deployments with one pod each, which use as much as they should: every pass reads, and none scales.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steersman_testing::TestCluster;

use crate::api::{Api, Call};
use crate::load;
use crate::managers::Rig;
use crate::measured::Measured;
use crate::report_time;
use crate::sizes::Workloads;

/// Kubelets run at most 110 pods, and daemons need room.
const PODS_PER_NODE: usize = 100;
/// A list of all autoscalers is a large answer.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The condition that the first pass sets.
const SEEN: &str = r#""type":"ScalingActive""#;

/// The namespace of the autoscalers and their targets.
pub(crate) struct Autoscaled<'a> {
    pub(crate) api: &'a Api,
    pub(crate) namespace: &'a str,
    pub(crate) count: usize,
}

/// The row of the rig. Nodes of this process run the pods and serve the metrics APIs, behind `APIService`s.
pub(crate) async fn on_rig(rig: &Rig, sizes: &Workloads, measured: &mut Measured) {
    let api = Api::connect(&rig.admin()).await;
    let builder = TestCluster::builder().nodes(nodes_for(sizes.autoscalers)).metrics();
    let cluster = builder.start_on(rig.admin()).await.expect("nodes and metrics");
    let autoscaled = Autoscaled { api: &api, namespace: cluster.namespace(), count: sizes.autoscalers };
    autoscaled.add_targets().await;
    measured.process.quiet().await;

    measured.begin();
    let since = Instant::now();
    autoscaled.add().await;
    autoscaled.until_seen().await;
    report_time("Autoscalers, wall", since.elapsed());
    // They are looked at again and again: for the same time beside every manager.
    tokio::time::sleep(sizes.autoscaled_for.saturating_sub(since.elapsed())).await;
    measured.used("Autoscalers");
    autoscaled.check().await;
    cluster.stop().await.expect("nodes that end");
}

/// The nodes that so many pods need.
pub(crate) fn nodes_for(pods: usize) -> usize {
    pods.div_ceil(PODS_PER_NODE)
}

// === impl Autoscaled ===

impl Autoscaled<'_> {
    /// Deployments are created; over when their pods are ready.
    pub(crate) async fn add_targets(&self) {
        let path = load::deployments(self.namespace);
        let calls = (0..self.count).map(|at| Call::create(&path, &load::deployment(at, 1)));
        self.api.send_all(calls.collect()).await;
        self.api.until_matches(&path, r#""readyReplicas":1"#, self.count, LOOK_EVERY).await;
    }

    pub(crate) async fn add(&self) {
        let path = self.path();
        let calls = (0..self.count).map(|at| Call::create(&path, &autoscaler(at)));
        self.api.send_all(calls.collect()).await;
    }

    /// Waits until a pass has been made over each.
    pub(crate) async fn until_seen(&self) {
        self.api.until_matches(&self.path(), SEEN, self.count, LOOK_EVERY).await;
    }

    /// Every autoscaler has read its metric: a pass that fails at once would be a fast one.
    pub(crate) async fn check(&self) {
        let found = self.api.get(&self.path()).await;
        for autoscaler in found["items"].as_array().into_iter().flatten() {
            let status = &autoscaler["status"];
            let current = &status["currentMetrics"][0]["resource"]["current"]["averageUtilization"];
            assert_eq!(*current, 50, "an autoscaler that has read its metric: {status}");
        }
    }

    fn path(&self) -> String {
        format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", self.namespace)
    }
}

/// Half of the requests are what simulated pods use.
fn autoscaler(at: usize) -> Value {
    let name = load::deployment_name(at);
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    json!({"metadata": {"name": name}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": 1, "maxReplicas": 5,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }})
}
