//! The second act of `steersman up --demo`: workloads of other kinds, and what keeps them in their limits.
//!
//! As in the first act, what is shown are the events of watches, and every part ends when the cluster is as it should be.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, WatchEvent};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::CommandError;
use super::act::{Act, Changes, changed, follow, refused, say};
use super::story::Line;
use super::workloads_story::{Change, INDEX, Workloads};

const IMAGES: [&str; 2] = ["example/db:1", "example/db:2"];
const SHOP: &str = "example/shop:1";
/// The pods of all parts.
const LABELS: &str = "app in (db,batch,shop)";
/// The CPU that a pod of the shop requests, and uses under load: four pods share it.
const REQUEST: &str = "100m";
const LOAD: &str = "200m";

/// The second act.
pub(super) struct SecondAct(Act<Workloads>);

// === impl SecondAct ===

impl SecondAct {
    /// Plays it.
    ///
    /// # Errors
    /// Something did not happen; the error says what.
    pub(super) async fn play(client: Client, begun: Instant) -> Result<(), CommandError> {
        let mut act = Self::new(client, begun).await.map_err(refused)?;
        act.roll_a_set().await?;
        act.retry_an_index().await?;
        act.follow_the_load().await?;
        act.hold_an_eviction_back().await?;
        act.clean_up().await
    }

    async fn new(client: Client, begun: Instant) -> Result<Self, kube::Error> {
        let pods = follow_pods(&client, LABELS);
        let claims = follow::<PersistentVolumeClaim, _>(Api::default_namespaced(client.clone()), "app=db", |event| {
            changed(event).map(|claim| Change::Claim(Box::new(claim)))
        });
        let deployments = follow::<Deployment, _>(Api::default_namespaced(client.clone()), LABELS, |event| {
            changed(event).map(|deployment| Change::Deployment(Box::new(deployment)))
        });
        let jobs = follow::<Job, _>(Api::default_namespaced(client.clone()), LABELS, |event| {
            changed(event).map(|job| Change::Job(Box::new(job)))
        });
        let budgets = follow_budgets(&client, LABELS);
        let (pods, claims, deployments, jobs, budgets) = futures::try_join!(pods, claims, deployments, jobs, budgets)?;
        let changes = [pods, claims, deployments, jobs, budgets];
        Ok(Self(Act::new(client, begun, Workloads::default(), changes)))
    }

    async fn roll_a_set(&mut self) -> Result<(), CommandError> {
        say("\n5. A StatefulSet: pods with names and volumes of their own, one after the other:\n");
        let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        let mut set = workload("db", IMAGES[0]);
        set["spec"]["replicas"] = json!(3);
        set["spec"]["serviceName"] = json!("db");
        set["spec"]["volumeClaimTemplates"] =
            json!([{ "metadata": { "name": "data", "labels": { "app": "db" } }, "spec": claim }]);
        self.0.you("create statefulset/db");
        self.0.create::<StatefulSet>(set).await?;
        self.0.until("three pods with volumes", |it| it.is_ready("db", 3, IMAGES[0]) && it.are_bound(3)).await?;
        say("\n   Its pods are replaced from the last to the first, and each finds its volume again:\n");
        self.0.you(format!("set the image of statefulset/db to {}", IMAGES[1]));
        let image =
            json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": IMAGES[1] }] } } } });
        let patch = Patch::Strategic(image);
        self.0.api::<StatefulSet>().patch("db", &PatchParams::default(), &patch).await.map_err(refused)?;
        self.0.until("three pods with the new image", |it| it.is_ready("db", 3, IMAGES[1])).await
    }

    async fn retry_an_index(&mut self) -> Result<(), CommandError> {
        say("\n6. A Job with three indexes. The pod of one fails, and its index is tried again after ten seconds:\n");
        let mut job = workload("batch", "example/batch:1");
        job["spec"] = json!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 2,
            "template": {
                "metadata": { "labels": { "app": "batch" } },
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "main", "image": "example/batch:1", "command": ["sleep", "2"] }],
                },
            },
        });
        self.0.you("create job/batch");
        self.0.create::<Job>(job).await?;
        self.0.until("a pod for each index", |it| it.pods("batch").len() == 3).await?;
        let pods = self.0.api::<Pod>().list(&ListParams::default().labels("app=batch")).await.map_err(refused)?;
        let index = |pod: &Pod| pod.metadata.annotations.as_ref().and_then(|held| held.get(INDEX).cloned());
        let victim = pods.items.iter().find(|pod| index(pod).as_deref() == Some("1"));
        let victim = victim.and_then(|pod| pod.metadata.name.clone()).unwrap_or_default();
        self.0.you(format!("let pod/{victim} crash"));
        self.annotate(&victim, "crash-after", "0s").await?;
        self.0.until("the Job complete", Workloads::is_job_complete).await
    }

    async fn follow_the_load(&mut self) -> Result<(), CommandError> {
        say("\n7. An autoscaler: as many pods as the load needs:\n");
        let mut deployment = workload("shop", SHOP);
        deployment["spec"]["replicas"] = json!(1);
        let container = json!({ "name": "main", "image": SHOP, "resources": { "requests": { "cpu": REQUEST } } });
        deployment["spec"]["template"]["spec"]["containers"] = json!([container]);
        let target = json!({ "type": "Utilization", "averageUtilization": 50 });
        let autoscaler = json!({
            "metadata": { "name": "shop" },
            "spec": {
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop" },
                "minReplicas": 1, "maxReplicas": 4,
                "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": target } }],
            },
        });
        self.0.you("create deployment/shop, and an autoscaler: half of the CPU, four pods at most");
        self.0.create::<Deployment>(deployment).await?;
        self.0.until("one pod", |it| it.is_ready("shop", 1, SHOP)).await?;
        self.0.create::<HorizontalPodAutoscaler>(autoscaler).await?;
        let Some(pod) = self.0.state.pods("shop").into_iter().next() else { return Ok(()) };
        self.0.you(format!("let pod/{pod} use {LOAD} of CPU, where it requested {REQUEST}"));
        self.annotate(&pod, "cpu-usage", LOAD).await?;
        self.0.until("four pods", |it| it.is_ready("shop", 4, SHOP)).await
    }

    async fn hold_an_eviction_back(&mut self) -> Result<(), CommandError> {
        say("\n8. A budget: who wants to evict a pod waits until there are enough of them:\n");
        let budget = json!({
            "metadata": { "name": "shop", "labels": { "app": "shop" } },
            "spec": { "minAvailable": 4, "selector": { "matchLabels": { "app": "shop" } } },
        });
        self.0.you("create a budget for the shop: four pods must be available");
        self.0.create::<PodDisruptionBudget>(budget).await?;
        self.0.until("a budget that allows nothing", |it| it.allows(0)).await?;
        let Some(pod) = self.0.state.pods("shop").into_iter().next() else { return Ok(()) };
        self.0.you(format!("evict pod/{pod}"));
        match self.0.api::<Pod>().evict(&pod, &EvictParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 429 => {
                self.0.print(&Line::new("API server", format!("refuses: {}", first_sentence(&status.message))));
            }
            outcome => return Err(CommandError(format!("the budget should have held the eviction back: {outcome:?}"))),
        }
        self.0.you("lower the budget to three");
        let patch = Patch::Merge(json!({ "spec": { "minAvailable": 3 } }));
        let budgets = self.0.api::<PodDisruptionBudget>();
        budgets.patch("shop", &PatchParams::default(), &patch).await.map_err(refused)?;
        self.0.until("a budget that allows one eviction", |it| it.allows(1)).await?;
        self.0.you(format!("evict pod/{pod}"));
        self.0.state.shown(&pod);
        self.0.api::<Pod>().evict(&pod, &EvictParams::default()).await.map_err(refused)?;
        self.0
            .until("another pod in its place", |it| {
                it.is_ready("shop", 4, SHOP) && !it.pods("shop").contains(&pod) && it.allows(1)
            })
            .await
    }

    async fn clean_up(&mut self) -> Result<(), CommandError> {
        say("\n9. Everything is deleted again:\n");
        self.0.state.deleted_by("garbage-collector");
        self.0.you("delete all of it");
        let how = DeleteParams::background();
        self.0.api::<HorizontalPodAutoscaler>().delete("shop", &how).await.map_err(refused)?;
        self.0.api::<PodDisruptionBudget>().delete("shop", &how).await.map_err(refused)?;
        self.0.api::<Deployment>().delete("shop", &how).await.map_err(refused)?;
        self.0.api::<Job>().delete("batch", &how).await.map_err(refused)?;
        self.0.api::<StatefulSet>().delete("db", &how).await.map_err(refused)?;
        let of_set = ListParams::default().labels("app=db");
        self.0.api::<PersistentVolumeClaim>().delete_collection(&how, &of_set).await.map_err(refused)?;
        self.0.until("nothing left of it", Workloads::is_empty).await
    }

    /// Sets an annotation that scripts a pod.
    async fn annotate(&self, pod: &str, what: &str, value: &str) -> Result<(), CommandError> {
        let annotations = json!({ format!("{}{what}", steersman_nodes::view::PREFIX): value });
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        self.0.api::<Pod>().patch(pod, &PatchParams::default(), &patch).await.map_err(refused)?;
        Ok(())
    }
}

/// Follows pods.
pub(super) async fn follow_pods(client: &Client, labels: &str) -> Result<Changes<Change>, kube::Error> {
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let change = |event| match event {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) => Some(Change::Pod(Box::new(pod))),
        WatchEvent::Deleted(pod) => Some(Change::PodGone(Box::new(pod))),
        _ => None,
    };
    follow(pods, labels, change).await
}

/// Follows budgets.
pub(super) async fn follow_budgets(client: &Client, labels: &str) -> Result<Changes<Change>, kube::Error> {
    let budgets = Api::<PodDisruptionBudget>::default_namespaced(client.clone());
    follow(budgets, labels, |event| changed(event).map(|budget| Change::Budget(Box::new(budget)))).await
}

/// Returns a workload with pods of this image.
pub(super) fn workload(name: &str, image: &str) -> Value {
    let labels = json!({ "app": name });
    json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": image }] },
            },
        },
    })
}

pub(super) fn first_sentence(text: &str) -> &str {
    text.split_inclusive('.').next().unwrap_or(text)
}
