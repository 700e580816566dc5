//! `steersman up --demo`: shows a newcomer what controllers do, line by line; its first act.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use super::super::CommandError;
use super::act::{Act, PATIENCE, changed, follow, refused, say};
use super::outages::ThirdAct;
use super::story::{Change, Line, Story};
use super::workloads::SecondAct;

/// The polling period for nodes.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The name of all objects of the demo.
const NAME: &str = "web";
/// The number of its pods.
const PODS: usize = 3;
const IMAGES: [&str; 2] = ["example/web:1", "example/web:2"];

/// The controllers without which there is nothing to show.
pub(super) const NEEDS: [&str; 10] = [
    "endpointslice-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "job-controller",
    "horizontal-pod-autoscaler-controller",
    "disruption-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
];

/// Flags of the controller manager that make the demo shorter: an autoscaler looks every second, a silent node is lost after six,
/// and of the nodes of a lost zone one is emptied each second.
pub(super) const FLAGS: [&str; 4] = [
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=6s",
    "--node-eviction-rate=1",
];
/// The duration of the nodes' leases, which they renew every second.
pub(super) const LEASES: Duration = Duration::from_secs(4);
/// The zones of the nodes, in turns.
pub(super) const ZONES: [&str; 2] = ["a", "b"];
/// The least number of nodes: one of two zones is lost, and before that one of its nodes.
pub(super) const NODES_MIN: usize = 3;

/// The first act.
struct Demo(Act<Story>);

/// Runs the demo.
///
/// # Errors
/// Something did not happen; the error says what, and which controller should have done it.
pub(super) async fn run(client: Client, nodes: usize) -> Result<(), CommandError> {
    until_ready(&Api::all(client.clone()), nodes).await?;
    let mut demo = Demo::new(client.clone()).await.map_err(refused)?;
    demo.roll_out().await?;
    demo.lose_a_pod().await?;
    demo.update().await?;
    demo.delete().await?;
    SecondAct::play(client.clone(), demo.0.begun).await?;
    ThirdAct::play(client, demo.0.begun).await?;
    say("\nThat was it. The cluster is yours now: see above for kubectl. Ctrl-C stops it.");
    Ok(())
}

/// Waits for the nodes, so that pods spread over all of them.
async fn until_ready(nodes: &Api<Node>, wanted: usize) -> Result<(), CommandError> {
    let deadline = Instant::now() + PATIENCE;
    let is_ready = |node: &Node| {
        // A node that is new has a taint for a moment, and pods would all go to the first one without.
        let is_free = node.spec.as_ref().is_none_or(|spec| spec.taints.as_ref().is_none_or(Vec::is_empty));
        let mut conditions = node.status.iter().flat_map(|status| &status.conditions).flatten();
        is_free && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    while Instant::now() < deadline {
        let found = nodes.list(&ListParams::default()).await.map_err(refused)?;
        if found.items.iter().filter(|node| is_ready(node)).count() >= wanted {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(CommandError(format!("the demo waited {} s, and the nodes are not ready", PATIENCE.as_secs())))
}

// === impl Demo ===

impl Demo {
    async fn new(client: Client) -> Result<Self, kube::Error> {
        let sets = follow::<ReplicaSet, _>(Api::default_namespaced(client.clone()), "app=web", |event| match event {
            WatchEvent::Added(set) | WatchEvent::Modified(set) => Some(Change::Set(Box::new(set))),
            WatchEvent::Deleted(set) => Some(Change::SetGone(Box::new(set))),
            _ => None,
        });
        let pods = follow::<Pod, _>(Api::default_namespaced(client.clone()), "app=web", |event| match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => Some(Change::Pod(Box::new(pod))),
            WatchEvent::Deleted(pod) => Some(Change::PodGone(Box::new(pod))),
            _ => None,
        });
        let of_service = "kubernetes.io/service-name=web";
        let slices = follow::<EndpointSlice, _>(Api::default_namespaced(client.clone()), of_service, |event| {
            changed(event).map(|slice| Change::Slice(Box::new(slice)))
        });
        let (sets, pods, slices) = futures::try_join!(sets, pods, slices)?;
        Ok(Self(Act::new(client, Instant::now(), Story::default(), [sets, pods, slices])))
    }

    async fn roll_out(&mut self) -> Result<(), CommandError> {
        say("\n1. A Deployment that wants three pods, and a Service in front of them:\n");
        let labels = json!({ "app": NAME });
        let deployment = json!({
            "metadata": { "name": NAME },
            "spec": {
                "replicas": PODS,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": IMAGES[0] }] }
                }
            }
        });
        let service =
            json!({ "metadata": { "name": NAME }, "spec": { "selector": labels, "ports": [{ "port": 80 }] } });
        self.0.begun = Instant::now();
        self.0.state.deleted_by("replicaset");
        self.0.you("create deployment/web and service/web");
        self.0.create::<Deployment>(deployment).await?;
        self.0.create::<Service>(service).await?;
        self.until_ready("three pods ready, and behind the Service", IMAGES[0]).await
    }

    async fn lose_a_pod(&mut self) -> Result<(), CommandError> {
        say("\n2. A pod is deleted, and another one takes its place:\n");
        let Some(victim) = self.0.state.any_pod() else { return Ok(()) };
        self.0.you(format!("delete pod/{victim}"));
        self.0.state.shown(&victim);
        self.0.api::<Pod>().delete(&victim, &DeleteParams::default()).await.map_err(refused)?;
        self.0.until("the pod gone", |story| story.any_pod().as_deref() != Some(&victim)).await?;
        self.until_ready("another pod in its place", IMAGES[0]).await
    }

    async fn update(&mut self) -> Result<(), CommandError> {
        say("\n3. A new image is rolled out, a pod at a time, so that the Service always leads somewhere:\n");
        self.0.you(format!("set the image of deployment/web to {}", IMAGES[1]));
        let image =
            json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": IMAGES[1] }] } } } });
        let deployments = self.0.api::<Deployment>();
        deployments.patch(NAME, &PatchParams::default(), &Patch::Strategic(image)).await.map_err(refused)?;
        self.until_ready("three pods with the new image, and no other", IMAGES[1]).await
    }

    async fn delete(&mut self) -> Result<(), CommandError> {
        say("\n4. The Deployment is deleted, and all that it owned goes with it:\n");
        self.0.state.deleted_by("garbage-collector");
        self.0.you("delete deployment/web and service/web");
        self.0.api::<Service>().delete(NAME, &DeleteParams::default()).await.map_err(refused)?;
        self.0.api::<Deployment>().delete(NAME, &DeleteParams::background()).await.map_err(refused)?;
        self.0.until("nothing left of it", Story::is_empty).await
    }

    /// Waits until all pods are as they should be, and the Service leads to them.
    async fn until_ready(&mut self, what: &str, image: &str) -> Result<(), CommandError> {
        self.0.until(what, |story| story.is_ready(PODS, image)).await?;
        let addresses = self.0.state.addresses();
        self.0.print(&Line::new("endpointslice", format!("service/web leads to {addresses}")));
        Ok(())
    }
}
