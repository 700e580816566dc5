//! What a ReplicaSet promises.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_controllers::{replicaset, replicationcontroller};
use steersman_testing::{Builder, Failure, TestCluster, objects};

use crate::beside::Beside;
use crate::line::{Line, Trouble};
use crate::namespace;
use crate::replication_controller::controller;

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[replicaset::DESCRIPTOR])
}

/// The classic story: three pods come, a deleted one is replaced, and status follows in a second pass.
pub(crate) async fn a_deleted_pod_is_replaced_and_status_follows(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web", 3)).await?;
    let pods = cluster.pods_of(&set).until_count(3).await?;
    until_status(cluster, "web", 3, 0).await?;

    let victim = pods[0].metadata.name.clone().unwrap_or_default();
    cluster.delete::<Pod>(&victim).await?;
    cluster
        .until("another pod in place of the deleted one", || async {
            let pods = cluster.pods_of(&set).list().await?;
            let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
            Ok(if pods.len() == 3 && !names.contains(&victim) { Ok(()) } else { Err(format!("{names:?}")) })
        })
        .await?;

    cluster.pods_of(&set).make_ready().await?;
    until_status(cluster, "web", 3, 3).await
}

/// Scaling down deletes the surplus and nothing else; scaling up makes up for it.
pub(crate) async fn scaling_down_deletes_the_surplus_and_keeps_the_ready_ones(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web", 2)).await?;
    let ready = cluster.pods_of(&set).until_count(2).await?;
    cluster.pods_of(&set).make_ready().await?;
    until_status(cluster, "web", 2, 2).await?;

    scale(cluster, "web", 5).await?;
    cluster.pods_of(&set).until_count(5).await?;
    scale(cluster, "web", 2).await?;
    let left = cluster.pods_of(&set).until_count(2).await?;
    if names(&left) == names(&ready) {
        return Ok(());
    }
    Err(Failure::new(format!("{:?} are left, but {:?} were ready", names(&left), names(&ready))))
}

/// An orphan that matches is adopted, and counts; a pod whose labels change is let go, and replaced.
pub(crate) async fn an_orphan_is_adopted_and_a_stranger_is_released(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(objects::pod("orphan", "web")).await?;
    let set = cluster.create(objects::replica_set("web", 2)).await?;
    let pods = cluster.pods_of(&set).until_count(2).await?;
    if !pods.iter().any(|pod| pod.metadata.name.as_deref() == Some("orphan")) {
        return Err(Failure::new("two pods were created beside the orphan"));
    }

    let patch = Patch::Merge(json!({ "metadata": { "labels": { objects::APP: "other" } } }));
    cluster.api::<Pod>().patch("orphan", &PatchParams::default(), &patch).await?;
    cluster
        .until("the pod is let go, and replaced", || async {
            let orphan = cluster.api::<Pod>().get("orphan").await?;
            let owners = orphan.metadata.owner_references.unwrap_or_default();
            let pods = cluster.pods_of(&set).list().await?;
            let seen = format!("{} owners, {} pods", owners.len(), pods.len());
            Ok(if owners.is_empty() && pods.len() == 2 { Ok(()) } else { Err(seen) })
        })
        .await
}

/// `kubectl describe` shows which pods came and went, in upstream's words.
pub(crate) async fn events_tell_which_pods_were_created_and_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web", 2)).await?;
    let before = names(&cluster.pods_of(&set).until_count(2).await?);
    scale(cluster, "web", 1).await?;
    let left = names(&cluster.pods_of(&set).until_count(1).await?);
    let told = |reason: &str, text: String| ("Normal".to_owned(), reason.to_owned(), text);
    let mut want: Vec<_> = before.iter().map(|pod| told("SuccessfulCreate", format!("Created pod: {pod}"))).collect();
    let gone = before.iter().filter(|pod| !left.contains(pod));
    want.extend(gone.map(|pod| told("SuccessfulDelete", format!("Deleted pod: {pod}"))));
    want.sort();
    cluster
        .until("an event for each pod", || async {
            let mut seen = events_of(cluster, "web").await?;
            seen.sort();
            Ok(if seen == want { Ok(()) } else { Err(format!("{seen:?}")) })
        })
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

fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect()
}

pub(crate) async fn scale(cluster: &TestCluster, name: &str, replicas: i32) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    cluster.api::<ReplicaSet>().patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) async fn until_status(cluster: &TestCluster, name: &str, replicas: i32, ready: i32) -> Result<(), Failure> {
    cluster
        .until(&format!("status with {replicas} replicas, {ready} ready"), || async {
            let set = cluster.api::<ReplicaSet>().get(name).await?;
            let status = set.status.unwrap_or_default();
            let observed = status.observed_generation == set.metadata.generation;
            let seen = format!("{status:?}");
            let as_wanted = status.replicas == replicas && status.ready_replicas.unwrap_or(0) == ready;
            Ok(if observed && as_wanted { Ok(()) } else { Err(seen) })
        })
        .await
}

/// A pod counts as available when it has been ready for `minReadySeconds`: the controller wakes up for that, though nothing
/// happens then.
pub(crate) async fn a_pod_becomes_available_when_its_time_has_come(cluster: &TestCluster) -> Result<(), Failure> {
    let mut set = objects::replica_set("web", 2);
    set.spec.min_ready_seconds = Some(2);
    let set = cluster.create(set).await?;
    cluster.pods_of(&set).until_count(2).await?;
    for pod in cluster.pods_of(&set).list().await? {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": cluster.clock().now() });
        let patch = Patch::Strategic(json!({ "status": { "phase": "Running", "conditions": [ready] } }));
        let name = pod.metadata.name.unwrap_or_default();
        cluster.api::<Pod>().patch_status(&name, &PatchParams::default(), &patch).await?;
    }
    until_status(cluster, "web", 2, 2).await?;
    cluster
        .until("both are available", || async {
            let status = cluster.api::<ReplicaSet>().get("web").await?.status.unwrap_or_default();
            Ok(if status.available_replicas == Some(2) { Ok(()) } else { Err(format!("{status:?}")) })
        })
        .await
}

/// A pod that was asked to end is replaced at once, and counted as terminating until it is gone.
pub(crate) async fn a_pod_that_ends_slowly_is_replaced_and_counted(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::replica_set("web", 2)).await?;
    let slow = names(&cluster.pods_of(&set).until_count(2).await?).remove(0);
    let hold = |finalizers: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let pods = cluster.api::<Pod>();
    pods.patch(&slow, &PatchParams::default(), &hold(json!(["example.dev/slow"]))).await?;
    cluster.delete::<Pod>(&slow).await?;
    let until_terminating = async |count: i32| {
        cluster
            .until(&format!("{count} terminate"), || async {
                let status = cluster.api::<ReplicaSet>().get("web").await?.status.unwrap_or_default();
                let is_so = status.terminating_replicas == Some(count) && status.replicas == 2;
                Ok(if is_so { Ok(()) } else { Err(format!("{status:?}")) })
            })
            .await
    };
    until_terminating(1).await?;
    cluster.pods_of(&set).until_count(2).await?;
    pods.patch(&slow, &PatchParams::default(), &hold(json!([]))).await?;
    until_terminating(0).await
}

/// What was refused because the namespace is going away is not tried again for each pod that goes with it.
pub(crate) async fn in_a_terminating_namespace_pods_that_go_are_not_missed(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let line = Line::to(cluster.faulty_client(), Trouble::None);
    let both = [replicaset::DESCRIPTOR, replicationcontroller::DESCRIPTOR];
    let manager = Beside::start_within(cluster, line.client(), &both)?;
    let (set, other) = (objects::replica_set("set", 3), controller("other", 3)?);
    let (set, other) = (cluster.create(set).await?, cluster.create(other).await?);
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
    if creates != 3 + 3 + 2 {
        return Err(Failure::new(format!("{creates} creates: three pods for each owner, and then one try each")));
    }
    Ok(())
}
