//! Deployments under faults.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use serde_json::json;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::scenarios::deployment::{self as scenarios, CONTROLLERS};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

/// Far longer than any deadline here.
const QUIET: Duration = Duration::from_secs(600);

/// The whole life of a Deployment: created, rolled out, rolled back, scaled, cleaned up.
async fn a_whole_life(scene: &Scene<'_>) -> Result<(), Failure> {
    let cluster = scene.cluster();
    cluster.create(scenarios::deployment(1, json!({}))).await?;
    scene.rest().await?;
    for image in ["web:2", "web:1"] {
        scenarios::patch(cluster, json!({ "spec": { "template": scenarios::image_of(image) } })).await?;
        scene.rest().await?;
    }
    scenarios::patch(cluster, json!({ "spec": { "replicas": 2, "revisionHistoryLimit": 0 } })).await
}

/// The final state.
async fn what_is_left(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    scenarios::until_sizes(cluster, [("web:1", 2)]).await?;
    let web = scenarios::until_reason(cluster, "Progressing", "NewReplicaSetAvailable").await?;
    // What was only observed when is left out: the conditions' times.
    let status = DeploymentStatus { conditions: None, ..web.status.unwrap_or_default() };
    let mut reported = vec![format!("{:?} {status:?}", web.metadata.annotations)];
    for set in scenarios::sets(cluster).await? {
        let kept = set.metadata.annotations.unwrap_or_default();
        let pods = set.status.map(|status| (status.replicas, status.available_replicas));
        reported.push(format!("{:?} {kept:?} {:?} {pods:?}", set.metadata.name, set.spec.replicas));
    }
    Ok(reported)
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_deployment_changes_nothing() -> Result<(), Failure> {
    let builder = || TestCluster::builder().nodes(1);
    let crashes = crash_after_each_write(builder, CONTROLLERS, a_whole_life, what_is_left).await?;
    assert!(crashes > 30, "the story takes {crashes} writes");
    Ok(())
}

/// Upstream's Deployments act on stale caches; ours wait.
#[tokio::test(start_paused = true)]
async fn lost_replies_and_lagging_caches_make_no_second_replica_set() -> Result<(), Failure> {
    let falsified = Fault::DoThenRefuse(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (lost, fault) in [(1, Fault::LoseReply), (2, Fault::LoseReply), (1, falsified.clone()), (2, falsified)] {
        let faults = Faults::default();
        faults.on(Verb::Watch, "replicasets").happens(Fault::Lag(Duration::from_secs(2)));
        faults.on(Verb::Watch, "deployments").happens(Fault::Lag(Duration::from_secs(1)));
        faults.on(Verb::Create, "replicasets").nth(lost).happens(fault.clone());
        faults.on(Verb::Update, "replicasets").nth(lost).happens(fault);
        let cluster = scenarios::with_nodes().faults(&faults).start().await?;
        cluster.create(scenarios::deployment(2, json!({}))).await?;
        scenarios::until_complete(&cluster, 2).await?;
        scenarios::patch(&cluster, json!({ "spec": { "template": scenarios::image_of("web:2") } })).await?;
        scenarios::until_complete(&cluster, 2).await?;
        cluster.settle().await?;
        assert_eq!(scenarios::sets(&cluster).await?.len(), 2, "reply {lost} was lost");
        let web = cluster.api::<Deployment>().get("web").await?;
        assert_eq!(web.status.and_then(|status| status.collision_count), None, "reply {lost} was lost");
        cluster.expect_quiet(QUIET).await?;
        cluster.stop().await?;
    }
    Ok(())
}

/// One status of a ReplicaSet is held back, while everything else goes on: each of them in turn.
#[tokio::test(start_paused = true)]
async fn a_status_that_is_held_back_costs_no_available_pod() -> Result<(), Failure> {
    for held_back in 1..=6 {
        let cluster = scenarios::with_nodes().start().await?;
        let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 0 } });
        cluster.create(scenarios::deployment(20, json!({ "strategy": rolling }))).await?;
        scenarios::until_complete(&cluster, 20).await?;
        let before = scenarios::pods(&cluster).await?;
        let long = Duration::from_secs(20);
        cluster.faults().on(Verb::Update, "replicasets/status").nth(held_back).delay(long);
        scenarios::patch(&cluster, json!({ "spec": { "template": scenarios::image_of("web:2") } })).await?;
        scenarios::until_complete(&cluster, 20).await?;
        let least = scenarios::least_ready(&cluster, before).await?;
        assert!(least >= 20, "{least} of 20 were ready, none may be missing; status {held_back} was held back");
        cluster.stop().await?;
    }
    Ok(())
}

/// The same step by step: only this test reports statuses.
#[tokio::test(start_paused = true)]
async fn pods_that_are_condemned_and_still_reported_are_not_counted() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(&[controllers::DEPLOYMENT]).start().await?;
    let rolling = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 5, "maxUnavailable": 0 } });
    cluster.create(scenarios::deployment(20, json!({ "strategy": rolling }))).await?;
    scenarios::until_sizes(&cluster, [("web:1", 20)]).await?;
    report(&cluster, "web:1", 20, 20).await?;
    scenarios::patch(&cluster, json!({ "spec": { "template": scenarios::image_of("web:2") } })).await?;
    scenarios::until_sizes(&cluster, [("web:1", 20), ("web:2", 5)]).await?;
    report(&cluster, "web:2", 5, 5).await?;
    scenarios::until_sizes(&cluster, [("web:1", 15), ("web:2", 10)]).await?;
    report(&cluster, "web:2", 10, 10).await?;
    cluster.settle().await?;
    scenarios::until_sizes(&cluster, [("web:1", 15), ("web:2", 10)]).await?;
    // The first one has observed its new size, and counts what it is about to delete.
    report(&cluster, "web:1", 20, 20).await?;
    scenarios::until_sizes(&cluster, [("web:1", 10), ("web:2", 15)]).await?;
    cluster.stop().await
}

/// Writes the status of the ReplicaSet with this image, as its controller does when it has observed its spec.
async fn report(cluster: &TestCluster, image: &str, replicas: i32, available: i32) -> Result<(), Failure> {
    let sets = scenarios::sets(cluster).await?;
    let set = sets.into_iter().find(|set| scenarios::image_in(set) == image);
    let mut set = set.ok_or_else(|| Failure::new(format!("there is no ReplicaSet of {image}")))?;
    set.status = Some(ReplicaSetStatus {
        replicas,
        ready_replicas: Some(available),
        available_replicas: Some(available),
        observed_generation: set.metadata.generation,
        ..ReplicaSetStatus::default()
    });
    let name = set.metadata.name.clone().unwrap_or_default();
    cluster.api::<ReplicaSet>().replace_status(&name, &PostParams::default(), &set).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_that_cannot_be_made_shows_as_condition_and_event() -> Result<(), Failure> {
    let cluster = scenarios::with_nodes().start().await?;
    cluster.faults().on(Verb::Create, "replicasets").next(3).refuse(http::StatusCode::FORBIDDEN);
    cluster.create(scenarios::deployment(1, json!({}))).await?;
    let web = scenarios::until_reason(&cluster, "Progressing", "ReplicaSetCreateError").await?;
    let reported =
        web.status.and_then(|status| status.conditions).unwrap_or_default().remove(0).message.unwrap_or_default();
    assert!(reported.starts_with("Failed to create new replica set \"web-"), "{reported}");
    assert!(reported.ends_with("\": refused with 403 Forbidden, on purpose"), "{reported}");
    scenarios::until_events(&cluster, &[("ReplicaSetCreateError", &reported)]).await?;
    scenarios::until_complete(&cluster, 1).await?;
    scenarios::until_reason(&cluster, "Progressing", "NewReplicaSetAvailable").await?;
    cluster.expect_quiet(QUIET).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn in_a_namespace_that_goes_away_it_is_quiet() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    cluster.create(scenarios::deployment(1, json!({}))).await?;
    cluster.settle().await?;
    let namespaces = kube::Api::<Namespace>::all(cluster.client());
    namespaces.delete(cluster.namespace(), &kube::api::DeleteParams::default()).await?;
    scenarios::patch(&cluster, json!({ "spec": { "template": scenarios::image_of("web:2") } })).await?;
    cluster.settle().await?;
    cluster.expect_quiet(QUIET).await?;
    assert_eq!(scenarios::sets(&cluster).await?.len(), 1);
    let failed = cluster.api::<k8s_openapi::api::core::v1::Event>().list(&kube::api::ListParams::default()).await?;
    let failed = failed.iter().filter(|event| event.type_.as_deref() == Some("Warning")).count();
    assert_eq!(failed, 0, "no event says so");
    Ok(())
}

/// What kube-controller-manager 1.37.1 leaves behind of a Deployment that is through: the same objects, byte for byte of
/// what counts. Taking over writes nothing at all.
#[tokio::test(start_paused = true)]
async fn taking_over_from_the_go_manager_writes_nothing() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let web = cluster.create(scenarios::deployment(1, json!({ "progressDeadlineSeconds": 600 }))).await?;
    let labels = json!({ "app": "web", "pod-template-hash": "5d78c9869d" });
    let mut template = serde_json::to_value(&web.spec)?["template"].take();
    template["metadata"]["labels"] = labels.clone();
    let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": web.metadata.uid,
        "controller": true, "blockOwnerDeletion": true });
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": {
            "name": "web-5d78c9869d", "labels": labels, "ownerReferences": [owner],
            "annotations": {
                scenarios::REVISION: "1",
                "deployment.kubernetes.io/desired-replicas": "1",
                "deployment.kubernetes.io/max-replicas": "2",
            },
        },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": template },
    }))?;
    let set = cluster.create(set).await?;
    let pod_owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d78c9869d",
        "uid": set.metadata.uid, "controller": true, "blockOwnerDeletion": true });
    cluster
        .create::<k8s_openapi::api::core::v1::Pod>(serde_json::from_value(json!({
            "metadata": { "name": "web-5d78c9869d-abcde", "labels": labels, "ownerReferences": [pod_owner] },
            "spec": template["spec"],
        }))?)
        .await?;
    cluster.pods_of(&set).make_ready().await?;
    let counts = json!({ "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "terminatingReplicas": 0,
        "observedGeneration": 1 });
    let mut set_status = counts.clone();
    set_status["fullyLabeledReplicas"] = json!(1);
    let mut web_status = counts;
    web_status["updatedReplicas"] = json!(1);
    // A change of annotations counts as one of a Deployment's spec.
    web_status["observedGeneration"] = json!(2);
    let condition = |type_: &str, reason: &str, text: &str| {
        json!({ "type": type_, "status": "True", "reason": reason, "message": text,
            "lastUpdateTime": "2026-11-15T11:00:00Z", "lastTransitionTime": "2026-11-15T11:00:00Z" })
    };
    web_status["conditions"] = json!([
        condition("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        condition(
            "Progressing",
            "NewReplicaSetAvailable",
            "ReplicaSet \"web-5d78c9869d\" has successfully progressed."
        ),
    ]);
    let params = kube::api::PatchParams::default();
    let merge = |value| kube::api::Patch::Merge(json!({ "status": value }));
    cluster.api::<ReplicaSet>().patch_status("web-5d78c9869d", &params, &merge(set_status)).await?;
    cluster.api::<Deployment>().patch_status("web", &params, &merge(web_status)).await?;
    scenarios::patch(&cluster, json!({ "metadata": { "annotations": { scenarios::REVISION: "1" } } })).await?;

    let manager = Beside::start(&cluster, cluster.faulty_client(), CONTROLLERS)?;
    cluster.advance(QUIET).await;
    assert!(cluster.last_writes().is_empty(), "{:?}", cluster.last_writes());
    manager.stop().await?;
    cluster.stop().await
}
