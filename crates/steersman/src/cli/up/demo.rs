//! `steersman up --demo`: shows a newcomer what controllers do, line by line.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use super::super::CommandError;

/// Far more than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What all objects of the demo are called.
const NAME: &str = "web";

/// What the demo works with.
struct Demo {
    deployments: Api<Deployment>,
    services: Api<Service>,
    pods: Api<Pod>,
    slices: Api<EndpointSlice>,
    begun: Instant,
}

/// Runs the demo.
///
/// # Errors
/// Something did not happen; the error says what, and which controller should have done it.
pub(super) async fn run(client: Client) -> Result<(), CommandError> {
    let demo = Demo {
        deployments: Api::default_namespaced(client.clone()),
        services: Api::default_namespaced(client.clone()),
        pods: Api::default_namespaced(client.clone()),
        slices: Api::default_namespaced(client),
        begun: Instant::now(),
    };
    demo.roll_out().await?;
    demo.lose_a_pod().await?;
    demo.update().await?;
    demo.delete().await?;
    println!("\nThat was it. The cluster is yours now: see above for kubectl, Ctrl-C stops it.");
    Ok(())
}

// === impl Demo ===

impl Demo {
    async fn roll_out(&self) -> Result<(), CommandError> {
        println!("\n1. A Deployment that wants three pods, and a Service in front of them:");
        let labels = json!({ "app": NAME });
        let deployment = json!({
            "metadata": { "name": NAME },
            "spec": {
                "replicas": 3,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "example/web:1" }] }
                }
            }
        });
        let service = json!({ "metadata": { "name": NAME }, "spec": { "selector": labels, "ports": [{ "port": 80 }] } });
        self.deployments.create(&PostParams::default(), &typed(deployment)?).await.map_err(refused)?;
        self.services.create(&PostParams::default(), &typed(service)?).await.map_err(refused)?;
        self.say("created deployment/web and service/web");
        self.until_ready(3).await?;
        self.until("the pods are in an EndpointSlice (endpointslice-controller)", || async {
            let found = self.slices.list(&ListParams::default().labels("kubernetes.io/service-name=web")).await?;
            let addresses = found.items.iter().flat_map(|slice| &slice.endpoints).flatten().flat_map(|end| &end.addresses);
            let addresses: Vec<_> = addresses.map(String::as_str).collect();
            Ok((addresses.len() == 3).then(|| format!("service/web leads to {}", addresses.join(", "))))
        })
        .await
    }

    async fn lose_a_pod(&self) -> Result<(), CommandError> {
        println!("\n2. A pod is deleted, and another one takes its place:");
        let before = self.names().await?;
        let Some(victim) = before.first() else { return Ok(()) };
        self.pods.delete(victim, &DeleteParams::default().grace_period(0)).await.map_err(refused)?;
        self.say(&format!("deleted pod/{victim}"));
        self.until("another pod takes its place (replicaset-controller)", || async {
            let now = self.list_names().await?;
            let new: Vec<_> = now.difference(&before).cloned().collect();
            Ok((!new.is_empty()).then(|| format!("created pod/{}", new.join(", pod/"))))
        })
        .await?;
        self.until_ready(3).await
    }

    async fn update(&self) -> Result<(), CommandError> {
        println!("\n3. A new image is rolled out, a pod at a time:");
        let image = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "example/web:2" }] } } } });
        self.deployments.patch(NAME, &PatchParams::default(), &Patch::Strategic(image)).await.map_err(refused)?;
        self.say("set the image of deployment/web to example/web:2");
        self.until("all pods run the new image (deployment-controller)", || async {
            let pods = self.pods.list(&ListParams::default().labels("app=web")).await?;
            let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.clone());
            let all_new = pods.items.iter().all(|pod| image(pod).as_deref() == Some("example/web:2"));
            Ok((all_new && pods.items.len() == 3).then(|| "all three pods run example/web:2".to_owned()))
        })
        .await?;
        self.until_ready(3).await
    }

    async fn delete(&self) -> Result<(), CommandError> {
        println!("\n4. The Deployment is deleted, and what it owned goes with it:");
        self.services.delete(NAME, &DeleteParams::default()).await.map_err(refused)?;
        self.deployments.delete(NAME, &DeleteParams::background()).await.map_err(refused)?;
        self.say("deleted deployment/web");
        self.until("its pods go (garbage-collector-controller)", || async {
            Ok(self.list_names().await?.is_empty().then(|| "its ReplicaSets and pods are gone".to_owned()))
        })
        .await
    }

    /// Waits until so many pods are ready; says what it sees whenever that changes.
    async fn until_ready(&self, wanted: usize) -> Result<(), CommandError> {
        let last = std::cell::RefCell::new(String::new());
        self.until("the pods are Ready (deployment-, replicaset-controller, nodes)", || async {
            let pods = self.pods.list(&ListParams::default().labels("app=web")).await?;
            let mut seen: Vec<_> = pods.items.iter().map(describe).collect();
            seen.sort_unstable();
            let shown = seen.join("  ");
            if *last.borrow() != shown && !shown.is_empty() {
                self.say(&shown);
                last.replace(shown);
            }
            let ready = pods.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod)).count();
            Ok((ready == wanted && pods.items.len() == wanted).then(|| format!("{ready} of {wanted} pods are ready")))
        })
        .await
    }

    async fn until<F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<(), CommandError>
    where
        F: Future<Output = Result<Option<String>, kube::Error>>,
    {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = look().await.map_err(refused)? {
                self.say(&seen);
                return Ok(());
            }
            if Instant::now() > deadline {
                let within = PATIENCE.as_secs();
                return Err(CommandError(format!("the demo waited {within} s and this did not happen: {what}")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn list_names(&self) -> Result<BTreeSet<String>, kube::Error> {
        let pods = self.pods.list(&ListParams::default().labels("app=web")).await?;
        Ok(pods.items.into_iter().filter_map(|pod| pod.metadata.name).collect())
    }

    async fn names(&self) -> Result<BTreeSet<String>, CommandError> {
        self.list_names().await.map_err(refused)
    }

    fn say(&self, text: &str) {
        println!("   {:>7.3} s  {text}", self.begun.elapsed().as_secs_f64());
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// A pod in a few words.
fn describe(pod: &Pod) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let short = name.rsplit('-').next().unwrap_or(name);
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let state = match (pod.metadata.deletion_timestamp.is_some(), is_ready(pod)) {
        (true, _) => "Terminating",
        (false, true) => "Ready",
        (false, false) => phase,
    };
    match pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
        Some(node) => format!("{short}: {state} on {node}"),
        None => format!("{short}: {state}"),
    }
}

fn typed<K: serde::de::DeserializeOwned>(object: serde_json::Value) -> Result<K, CommandError> {
    serde_json::from_value(object).map_err(|error| CommandError(format!("the demo is broken: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn refused(error: kube::Error) -> CommandError {
    CommandError(format!("the API server refused what the demo asked for: {error}"))
}
