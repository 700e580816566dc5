//! What a ReplicaSet promises.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::namespace;
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::line::{Line, Trouble};
pub(crate) use crate::scenarios::support::no_controllers;

scenarios! {
    a_deleted_pod_is_replaced_and_status_follows on cluster,
    scaling_down_deletes_the_surplus_and_keeps_the_ready_ones on cluster,
    an_orphan_is_adopted_and_a_stranger_is_released on cluster,
    events_tell_which_pods_were_created_and_deleted on cluster,
    a_pod_becomes_available_when_its_time_has_come on cluster,
    a_pod_that_ends_slowly_is_replaced_and_counted on cluster,
    in_a_terminating_namespace_deleted_pods_are_not_replaced on no_controllers,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::REPLICA_SET])
}

/// The classic story: three pods come, a deleted one is replaced, and status follows in a second pass.
pub(crate) async fn a_deleted_pod_is_replaced_and_status_follows(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web").replicas(3)).await?;
    let pods = cluster.pods_of(&set).until_count(3).await?;
    until_status(cluster, "web", 3, 0).await?;

    let victim = pods[0].metadata.name.clone().unwrap_or_default();
    cluster.delete::<Pod>(&victim).await?;
    let left = async || Ok(names(&cluster.pods_of(&set).list().await?));
    let is_replaced = |names: &Vec<String>| names.len() == 3 && !names.contains(&victim);
    cluster.until_right("another pod in place of the deleted one", left, is_replaced).await?;

    cluster.pods_of(&set).make_ready().await?;
    until_status(cluster, "web", 3, 3).await
}

/// Scaling down deletes the surplus and nothing else; scaling up makes up for it.
pub(crate) async fn scaling_down_deletes_the_surplus_and_keeps_the_ready_ones(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    let ready = cluster.pods_of(&set).until_count(2).await?;
    cluster.pods_of(&set).make_ready().await?;
    until_status(cluster, "web", 2, 2).await?;

    scale(cluster, "web", 5).await?;
    cluster.pods_of(&set).until_count(5).await?;
    scale(cluster, "web", 2).await?;
    let left = cluster.pods_of(&set).until_count(2).await?;
    expect_eq("what is left is what was ready", &names(&left), &names(&ready))
}

/// An orphan that matches is adopted, and counts; a pod whose labels change is let go, and replaced.
pub(crate) async fn an_orphan_is_adopted_and_a_stranger_is_released(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(objects::pod("orphan").app("web")).await?;
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    let pods = cluster.pods_of(&set).until_count(2).await?;
    expect(names(&pods).contains(&"orphan".to_owned()), "the orphan is one of the two", &names(&pods))?;

    let patch = Patch::Merge(json!({ "metadata": { "labels": { objects::APP: "other" } } }));
    cluster.api::<Pod>().patch("orphan", &PatchParams::default(), &patch).await?;
    let owners_and_pods = async || {
        let orphan = cluster.api::<Pod>().get("orphan").await?;
        let owners = orphan.metadata.owner_references.unwrap_or_default();
        Ok((owners.len(), cluster.pods_of(&set).list().await?.len()))
    };
    cluster.until_eq("the pod is released and replaced", owners_and_pods, (0, 2)).await
}

/// `kubectl describe` shows which pods came and went, in upstream's words.
pub(crate) async fn events_tell_which_pods_were_created_and_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    let before = names(&cluster.pods_of(&set).until_count(2).await?);
    scale(cluster, "web", 1).await?;
    let left = names(&cluster.pods_of(&set).until_count(1).await?);
    let reported = |reason: &str, text: String| ("Normal".to_owned(), reason.to_owned(), text);
    let mut want: Vec<_> =
        before.iter().map(|pod| reported("SuccessfulCreate", format!("Created pod: {pod}"))).collect();
    let gone = before.iter().filter(|pod| !left.contains(pod));
    want.extend(gone.map(|pod| reported("SuccessfulDelete", format!("Deleted pod: {pod}"))));
    want.sort();
    cluster
        .until_eq(
            "an event for each pod",
            || async {
                let mut seen = events_of(cluster, "web").await?;
                seen.sort();
                Ok(seen)
            },
            want,
        )
        .await?;
    let events = cluster.api::<Event>().list(&ListParams::default()).await?;
    let sources = events.items.iter().map(|event| {
        let source = event.source.as_ref().and_then(|source| source.component.clone());
        (source, event.reporting_component.clone(), event.involved_object.uid == set.metadata.uid)
    });
    let name = || Some("replicaset-controller".to_owned());
    match sources.into_iter().find(|source| *source != (name(), name(), true)) {
        None => Ok(()),
        Some(other) => Err(Failure::new(format!("an event is of another source, or about another object: {other:?}"))),
    }
}

/// Type, reason and text of the events about a ReplicaSet, oldest first.
pub(crate) async fn events_of(cluster: &TestCluster, name: &str) -> Result<Vec<(String, String, String)>, Failure> {
    let about = ListParams::default().fields(&format!("involvedObject.kind=ReplicaSet,involvedObject.name={name}"));
    let mut events = cluster.api::<Event>().list(&about).await?.items;
    events.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    let text = |text: Option<String>| text.unwrap_or_default();
    Ok(events.into_iter().map(|event| (text(event.type_), text(event.reason), text(event.message))).collect())
}

async fn status_of(cluster: &TestCluster, name: &str) -> Result<ReplicaSetStatus, Failure> {
    Ok(cluster.api::<ReplicaSet>().get(name).await?.status.unwrap_or_default())
}

fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect()
}

pub(crate) async fn scale(cluster: &TestCluster, name: &str, replicas: i32) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    cluster.api::<ReplicaSet>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_status(cluster: &TestCluster, name: &str, replicas: i32, ready: i32) -> Result<(), Failure> {
    let seen = async || {
        let set = cluster.api::<ReplicaSet>().get(name).await?;
        let status = set.status.unwrap_or_default();
        let is_observed = status.observed_generation == set.metadata.generation;
        Ok((is_observed, status.replicas, status.ready_replicas.unwrap_or(0)))
    };
    cluster.until_eq("status that is observed, replicas and ready ones", seen, (true, replicas, ready)).await
}

/// A pod counts as available when it has been ready for `minReadySeconds`: the controller wakes up for that, though nothing
/// happens then.
pub(crate) async fn a_pod_becomes_available_when_its_time_has_come(cluster: &TestCluster) -> Result<(), Failure> {
    let set = objects::replica_set("web").replicas(2).with(json!({ "spec": { "minReadySeconds": 2 } }));
    let set = cluster.create(set).await?;
    cluster.pods_of(&set).until_count(2).await?;
    for pod in cluster.pods_of(&set).list().await? {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": cluster.clock().now() });
        let patch = Patch::Strategic(json!({ "status": { "phase": "Running", "conditions": [ready] } }));
        let name = pod.metadata.name.unwrap_or_default();
        cluster.api::<Pod>().patch_status(&name, &PatchParams::default(), &patch).await?;
    }
    until_status(cluster, "web", 2, 2).await?;
    let available = async || Ok(status_of(cluster, "web").await?.available_replicas);
    cluster.until_eq("both are available", available, Some(2)).await
}

/// A pod that was asked to end is replaced at once, and counted as terminating until it is gone.
pub(crate) async fn a_pod_that_ends_slowly_is_replaced_and_counted(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    let slow = names(&cluster.pods_of(&set).until_count(2).await?).remove(0);
    let hold = |finalizers: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let pods = cluster.api::<Pod>();
    pods.patch(&slow, &PatchParams::default(), &hold(json!(["example.dev/slow"]))).await?;
    cluster.delete::<Pod>(&slow).await?;
    let until_terminating = async |count: i32| {
        let seen = async || {
            let status = status_of(cluster, "web").await?;
            Ok((status.terminating_replicas, status.replicas))
        };
        cluster.until_eq("how many terminate, of how many", seen, (Some(count), 2)).await
    };
    until_terminating(1).await?;
    cluster.pods_of(&set).until_count(2).await?;
    pods.patch(&slow, &PatchParams::default(), &hold(json!([]))).await?;
    until_terminating(0).await
}

/// What was refused because the namespace is going away is not tried again for each pod that goes with it.
pub(crate) async fn in_a_terminating_namespace_deleted_pods_are_not_replaced(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let line = Line::to(cluster.faulty_client(), Trouble::None);
    let both = [controllers::REPLICA_SET, controllers::REPLICATION_CONTROLLER];
    let manager = Beside::start_within(cluster, line.client(), &both)?;
    let set = cluster.create(objects::replica_set("set").replicas(3)).await?;
    let other = cluster.create(objects::replication_controller("other").replicas(3)).await?;
    let mut pods = names(&cluster.pods_of(&set).until_count(3).await?);
    pods.extend(names(&cluster.pods_of(&other).until_count(3).await?));
    namespace::delete(cluster).await?;
    for pod in pods {
        cluster.delete::<Pod>(&pod).await?;
        // Each is missed by itself.
        cluster.advance(Duration::from_millis(500)).await;
    }
    until_status(cluster, "set", 0, 0).await?;
    cluster.advance(Duration::from_secs(2)).await;
    let creates = line.count(&Method::POST, "/pods");
    manager.stop().await?;
    expect_eq("creates: three pods for each owner, and then one try each", &creates, &(3 + 3 + 2))
}
