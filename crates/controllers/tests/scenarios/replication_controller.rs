//! What a ReplicationController promises: the same as a ReplicaSet.

use k8s_openapi::api::core::v1::{Event, Pod, ReplicationController};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_controllers::replicationcontroller;
use steersman_testing::{Builder, Failure, TestCluster, objects};

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[replicationcontroller::DESCRIPTOR])
}

/// One that wants so many pods labelled `app=<name>`.
pub(crate) fn controller(name: &str, replicas: i32) -> Result<ReplicationController, Failure> {
    let labels = json!({ objects::APP: name });
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": labels,
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
            },
        },
    }))?)
}

/// Pods come, a deleted one is replaced, the surplus goes; status follows.
pub(crate) async fn a_controller_keeps_its_number_of_pods(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(controller("web", 2)?).await?;
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
pub(crate) async fn a_controller_adopts_and_tells(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(objects::pod("orphan", "web")).await?;
    let web = cluster.create(controller("web", 2)?).await?;
    let pods = cluster.pods_of(&web).until_count(2).await?;
    if !pods.iter().any(|pod| pod.metadata.name.as_deref() == Some("orphan")) {
        return Err(Failure::new("two pods were created beside the orphan"));
    }
    let about = ListParams::default().fields("involvedObject.kind=ReplicationController,involvedObject.name=web");
    cluster
        .until("the event of the pod that was made", || async {
            let events = cluster.api::<Event>().list(&about).await?.items;
            let told: Vec<_> = events
                .iter()
                .map(|event| (event.reason.as_deref(), event.reporting_component.as_deref(), event.message.as_deref()))
                .collect();
            let made = pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).find(|name| *name != "orphan");
            let text = format!("Created pod: {}", made.unwrap_or_default());
            let want = (Some("SuccessfulCreate"), Some("replication-controller"), Some(text.as_str()));
            Ok(if told == [want] { Ok(()) } else { Err(format!("{told:?}")) })
        })
        .await
}

async fn until_status(cluster: &TestCluster, replicas: i32, ready: i32) -> Result<(), Failure> {
    cluster
        .until(&format!("status with {replicas} replicas, {ready} ready"), || async {
            let web = cluster.api::<ReplicationController>().get("web").await?;
            let status = web.status.unwrap_or_default();
            let observed = status.observed_generation == web.metadata.generation;
            let counts = (status.replicas, status.ready_replicas.unwrap_or(0), status.available_replicas.unwrap_or(0));
            let seen = format!("{status:?}");
            Ok(if observed && counts == (replicas, ready, ready) { Ok(()) } else { Err(seen) })
        })
        .await
}
