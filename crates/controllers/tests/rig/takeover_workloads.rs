//! Workloads of every kind, for the take-over: sets, Jobs, an autoscaler, a budget.

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

/// Those of the test, and the simulated ones.
const NODES: i32 = 4;

/// Creates workloads, and lets each become what it should be: sets that have been rolled, Jobs that run, an autoscaler that
/// has a reading, a budget that has counted.
pub(crate) async fn create(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(stateful_set(cluster, "db", 2)).await?;
    until_rolled(cluster, "db", 2).await?;
    for image in ["two:1", "one:1", "three:1"] {
        patch::<StatefulSet>(cluster, "db", &image_of(image)).await?;
        until_rolled(cluster, "db", 2).await?;
    }
    cluster.create(daemon_set("agent")).await?;
    until_everywhere(cluster, "agent").await?;
    patch::<DaemonSet>(cluster, "agent", &image_of("two:1")).await?;
    until_everywhere(cluster, "agent").await?;

    cluster.create(job(cluster, "run", json!({ "parallelism": 2, "completions": 4 }))).await?;
    let indexed = json!({ "parallelism": 2, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1 });
    cluster.create(job(cluster, "indexed", indexed)).await?;
    until_active(cluster, "run", 2).await?;
    until_active(cluster, "indexed", 2).await?;
    cluster.create(objects::cron_job("yearly").with(json!({ "spec": { "schedule": "0 0 1 1 *" } }))).await?;

    cluster.metrics().set_external(cluster.namespace(), "queue-depth", &[], "2")?;
    cluster.create(autoscaler("again")).await?;
    until_scaling(cluster, "again").await?;
    cluster.create(budget("web", 2)).await?;
    until_counted(cluster, "web").await
}

/// What happens while we are in charge: everything is rolled or changed once more, and there are new ones.
pub(crate) async fn change(cluster: &TestCluster) -> Result<(), Failure> {
    patch::<StatefulSet>(cluster, "db", &image_of("four:1")).await?;
    until_rolled(cluster, "db", 2).await?;
    patch::<DaemonSet>(cluster, "agent", &image_of("three:1")).await?;
    until_everywhere(cluster, "agent").await?;
    cluster.create(stateful_set(cluster, "db-of-ours", 2)).await?;
    until_rolled(cluster, "db-of-ours", 2).await?;
    cluster.create(daemon_set("agent-of-ours")).await?;
    until_everywhere(cluster, "agent-of-ours").await?;
    cluster.create(job(cluster, "run-of-ours", json!({ "parallelism": 1 }))).await?;
    until_active(cluster, "run-of-ours", 1).await?;
    cluster.create(autoscaler("ours")).await?;
    until_scaling(cluster, "ours").await?;
    cluster.create(budget("ours", 1)).await?;
    until_counted(cluster, "ours").await
}

fn stateful_set(cluster: &TestCluster, name: &str, replicas: i32) -> StatefulSet {
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    objects::stateful_set(name).replicas(replicas).image("one:1").with(json!({ "spec": {
        "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claim }],
        "template": { "spec": { "nodeName": node(cluster) } },
    } }))
}

/// Nobody says that the nodes of the test are ready.
fn daemon_set(name: &str) -> DaemonSet {
    let tolerations = json!([{ "operator": "Exists" }]);
    objects::daemon_set(name)
        .image("one:1")
        .with(json!({ "spec": { "template": { "spec": { "tolerations": tolerations } } } }))
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn job(cluster: &TestCluster, name: &str, spec: Value) -> Job {
    let template = json!({ "spec": { "template": { "spec": { "nodeName": node(cluster) } } } });
    objects::job(name).with(json!({ "spec": spec })).with(template)
}

fn autoscaler(deployment: &str) -> HorizontalPodAutoscaler {
    let target = json!({ "type": "AverageValue", "averageValue": "2" });
    let metric = json!({ "type": "External", "external": { "metric": { "name": "queue-depth" }, "target": target } });
    let autoscaler = json!({
        "metadata": { "name": deployment },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment },
            "maxReplicas": 3, "metrics": [metric],
        },
    });
    serde_json::from_value(autoscaler).expect("it is an autoscaler")
}

fn budget(of: &str, available: i32) -> PodDisruptionBudget {
    let budget = json!({
        "metadata": { "name": of },
        "spec": { "minAvailable": available, "selector": { "matchLabels": { "of": of } } },
    });
    serde_json::from_value(budget).expect("it is a budget")
}

/// A node of the test, since nobody binds pods.
fn node(cluster: &TestCluster) -> String {
    format!("{}-a", cluster.namespace())
}

fn image_of(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

pub(crate) async fn patch<K>(cluster: &TestCluster, name: &str, patch: &Value) -> Result<(), Failure>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    cluster.api::<K>().patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}

async fn until_rolled(cluster: &TestCluster, name: &str, replicas: i32) -> Result<(), Failure> {
    let look = async || Ok(cluster.api::<StatefulSet>().get(name).await?);
    let is_rolled = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        status.observed_generation == set.metadata.generation
            && status.ready_replicas == Some(replicas)
            && status.updated_replicas == Some(replicas)
            && status.current_revision == status.update_revision
    };
    cluster.until_right(&format!("{name} is rolled out"), look, is_rolled).await.map(drop)
}

async fn until_everywhere(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let look = async || Ok(cluster.api::<DaemonSet>().get(name).await?);
    let is_everywhere = |set: &DaemonSet| {
        let status = set.status.clone().unwrap_or_default();
        let wanted = status.desired_number_scheduled;
        status.observed_generation == set.metadata.generation
            && wanted == NODES
            && status.number_ready == wanted
            && status.updated_number_scheduled == Some(wanted)
            && status.number_available == Some(wanted)
    };
    cluster.until_right(&format!("{name} is on all nodes"), look, is_everywhere).await.map(drop)
}

async fn until_active(cluster: &TestCluster, name: &str, pods: i32) -> Result<(), Failure> {
    let look = async || {
        let status = cluster.api::<Job>().get(name).await?.status.unwrap_or_default();
        Ok((status.active, status.ready))
    };
    cluster.until_eq(&format!("the pods of {name} run"), look, (Some(pods), Some(pods))).await
}

async fn until_scaling(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let look = async || {
        let status = cluster.api::<HorizontalPodAutoscaler>().get(name).await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        Ok(conditions.iter().any(|it| it.type_ == "ScalingActive" && it.status == "True"))
    };
    cluster.until_eq(&format!("the autoscaler of {name} has a reading"), look, true).await
}

async fn until_counted(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    let look = async || {
        let status = cluster.api::<PodDisruptionBudget>().get(name).await?.status.unwrap_or_default();
        Ok(status.disruptions_allowed)
    };
    cluster.until_eq(&format!("the budget of {name} has counted"), look, Some(1)).await
}
