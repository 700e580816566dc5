//! `steersman up --demo`: shows a newcomer what controllers do, line by line.
//!
//! 1. What is shown is what the API server's watches tell, at the time when they tell it: nothing is acted.
//! 2. Every part ends when the cluster is as it should be. One that does not get there ends the demo with an error that
//!    says how far it got.

use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::super::CommandError;
use super::story::{Change, Line, Story};
use super::workloads::SecondAct;

/// Far more than any part takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The polling period for nodes.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The name of all objects of the demo.
const NAME: &str = "web";
/// The number of its pods.
const PODS: usize = 3;
const IMAGES: [&str; 2] = ["example/web:1", "example/web:2"];
/// The one in front of the screen.
pub(super) const YOU: &str = "you";

/// The controllers without which there is nothing to show.
pub(super) const NEEDS: [&str; 8] = [
    "endpointslice-controller",
    "garbage-collector-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "job-controller",
    "horizontal-pod-autoscaler-controller",
    "disruption-controller",
];

/// A flag of the controller manager that makes the demo shorter: an autoscaler looks every second.
pub(super) const FLAGS: [&str; 1] = ["--horizontal-pod-autoscaler-sync-period=1s"];

/// The parts of the demo.
struct Demo {
    deployments: Api<Deployment>,
    services: Api<Service>,
    pods: Api<Pod>,
    changes: SelectAll<BoxStream<'static, Result<Option<Change>, kube::Error>>>,
    story: Story,
    begun: Instant,
}

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
    SecondAct::play(client, demo.begun).await?;
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

/// Follows objects of a kind from now on.
pub(super) async fn follow<K, C>(
    api: Api<K>,
    labels: &str,
    change: impl Fn(WatchEvent<K>) -> Option<C> + Send + Sync + 'static,
) -> Result<BoxStream<'static, Result<Option<C>, kube::Error>>, kube::Error>
where
    C: Send + 'static,
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let from = api.list_metadata(&ListParams::default().limit(1)).await?.metadata.resource_version.unwrap_or_default();
    let events = api.watch(&WatchParams::default().labels(labels), &from).await?;
    Ok(events.map_ok(change).boxed())
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
        let slices =
            follow::<EndpointSlice, _>(Api::default_namespaced(client.clone()), of_service, |event| match event {
                WatchEvent::Added(slice) | WatchEvent::Modified(slice) => Some(Change::Slice(Box::new(slice))),
                _ => None,
            });
        let (sets, pods, slices) = futures::try_join!(sets, pods, slices)?;
        Ok(Self {
            deployments: Api::default_namespaced(client.clone()),
            services: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client),
            changes: futures::stream::select_all([sets, pods, slices]),
            story: Story::default(),
            begun: Instant::now(),
        })
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
        self.begun = Instant::now();
        self.story.deleted_by("replicaset");
        self.tell(&Line::new(YOU, "create deployment/web and service/web"));
        self.deployments.create(&PostParams::default(), &typed(deployment)?).await.map_err(refused)?;
        self.services.create(&PostParams::default(), &typed(service)?).await.map_err(refused)?;
        self.until_ready("three pods ready, and behind the Service", IMAGES[0]).await
    }

    async fn lose_a_pod(&mut self) -> Result<(), CommandError> {
        say("\n2. A pod is deleted, and another one takes its place:\n");
        let Some(victim) = self.story.any_pod() else { return Ok(()) };
        self.tell(&Line::new(YOU, format!("delete pod/{victim}")));
        self.story.told(&victim);
        self.pods.delete(&victim, &DeleteParams::default()).await.map_err(refused)?;
        self.until("the pod gone", |story| story.any_pod().as_deref() != Some(&victim)).await?;
        self.until_ready("another pod in its place", IMAGES[0]).await
    }

    async fn update(&mut self) -> Result<(), CommandError> {
        say("\n3. A new image is rolled out, a pod at a time, so that the Service always leads somewhere:\n");
        self.tell(&Line::new(YOU, format!("set the image of deployment/web to {}", IMAGES[1])));
        let image =
            json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": IMAGES[1] }] } } } });
        self.deployments.patch(NAME, &PatchParams::default(), &Patch::Strategic(image)).await.map_err(refused)?;
        self.until_ready("three pods with the new image, and no other", IMAGES[1]).await
    }

    async fn delete(&mut self) -> Result<(), CommandError> {
        say("\n4. The Deployment is deleted, and all that it owned goes with it:\n");
        self.story.deleted_by("garbage-collector");
        self.tell(&Line::new(YOU, "delete deployment/web and service/web"));
        self.services.delete(NAME, &DeleteParams::default()).await.map_err(refused)?;
        self.deployments.delete(NAME, &DeleteParams::background()).await.map_err(refused)?;
        self.until("nothing left of it", Story::is_empty).await
    }

    /// Waits until all pods are as they should be, and the Service leads to them.
    async fn until_ready(&mut self, what: &str, image: &str) -> Result<(), CommandError> {
        self.until(what, |story| story.is_ready(PODS, image)).await?;
        let addresses = self.story.addresses();
        self.tell(&Line::new("endpointslice", format!("service/web leads to {addresses}")));
        Ok(())
    }

    /// Tells what happens until the cluster is as it should be.
    async fn until(&mut self, what: &str, is_done: impl Fn(&Story) -> bool) -> Result<(), CommandError> {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(&self.story) {
            let failed = |why: String| {
                CommandError(format!("the demo waited for this: {what}. {why}; there are {}", self.story.so_far()))
            };
            let change = match timeout_at(deadline, self.changes.next()).await {
                Ok(Some(change)) => change.map_err(refused)?,
                Ok(None) => return Err(failed("The watches have ended".to_owned())),
                Err(_) => return Err(failed(format!("It did not happen within {} s", PATIENCE.as_secs()))),
            };
            if let Some(line) = change.and_then(|change| self.story.take(&change)) {
                self.tell(&line);
            }
        }
        Ok(())
    }

    fn tell(&self, line: &Line) {
        tell(self.begun, line);
    }
}

/// Prints a line with its time.
pub(super) fn tell(begun: Instant, line: &Line) {
    say(&format!("   {:>7.3} s  {:<18} {}", begun.elapsed().as_secs_f64(), line.who, line.what));
}

/// Standard output may be closed: that is not an error.
pub(super) fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub(super) fn typed<K: serde::de::DeserializeOwned>(object: serde_json::Value) -> Result<K, CommandError> {
    serde_json::from_value(object).map_err(|error| CommandError(format!("the demo is broken: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
pub(super) fn refused(error: kube::Error) -> CommandError {
    CommandError(format!("the API server refused what the demo asked for: {error}"))
}
