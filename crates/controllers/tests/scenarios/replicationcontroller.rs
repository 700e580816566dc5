//! What a ReplicationController promises: the same as a ReplicaSet.

use k8s_openapi::api::core::v1::{Event, Pod, ReplicationController};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect};

use crate::scenarios::support::controllers;

scenarios! {
    a_deleted_pod_is_replaced_and_the_surplus_is_deleted on cluster,
    an_orphan_is_adopted_and_an_event_names_the_created_pod on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::REPLICATION_CONTROLLER])
}

/// Pods come, a deleted one is replaced, the surplus goes; status follows.
pub(crate) async fn a_deleted_pod_is_replaced_and_the_surplus_is_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(objects::replication_controller("web").replicas(2)).await?;
    let pods = cluster.pods_of(&web).until_count(2).await?;
    cluster.delete::<Pod>(&pods[0].metadata.name.clone().unwrap_or_default()).await?;
    cluster.pods_of(&web).until_count(2).await?;
    cluster.pods_of(&web).make_ready().await?;
    until_status(cluster, 2, 2).await?;
    let scale = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    cluster.api::<ReplicationController>().patch("web", &PatchParams::default(), &scale).await?;
    cluster.pods_of(&web).until_count(1).await?;
    until_status(cluster, 1, 1).await
}

/// An orphan is adopted and counts; events come from upstream's source.
pub(crate) async fn an_orphan_is_adopted_and_an_event_names_the_created_pod(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    cluster.create(objects::pod("orphan").app("web")).await?;
    let web = cluster.create(objects::replication_controller("web").replicas(2)).await?;
    let pods = cluster.pods_of(&web).until_count(2).await?;
    let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    expect(names.contains(&"orphan"), "the orphan is one of the two", &names)?;
    let about = ListParams::default().fields("involvedObject.kind=ReplicationController,involvedObject.name=web");
    let events = async || {
        let events = cluster.api::<Event>().list(&about).await?.items.into_iter();
        let texts = events.map(|event| [event.reason, event.reporting_component, event.message]);
        Ok(texts.map(|texts| texts.map(Option::unwrap_or_default)).collect::<Vec<_>>())
    };
    let created = names.into_iter().find(|name| *name != "orphan").unwrap_or_default();
    let want = ["SuccessfulCreate".to_owned(), "replication-controller".to_owned(), format!("Created pod: {created}")];
    cluster.until_eq("the event of the pod that was created", events, [want]).await
}

async fn until_status(cluster: &TestCluster, replicas: i32, ready: i32) -> Result<(), Failure> {
    let seen = async || {
        let web = cluster.api::<ReplicationController>().get("web").await?;
        let status = web.status.unwrap_or_default();
        let is_observed = status.observed_generation == web.metadata.generation;
        Ok((
            is_observed,
            [Some(status.replicas), status.ready_replicas, status.available_replicas].map(Option::unwrap_or_default),
        ))
    };
    cluster.until_eq("status that is observed, and its counts", seen, (true, [replicas, ready, ready])).await
}
