//! StatefulSets and DaemonSets under faults.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::ListParams;
use serde_json::json;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};
use crate::scenarios::{daemonset, statefulset};

/// Far longer than any delay here.
const QUIET: Duration = Duration::from_secs(600);

const STATEFUL: &[Controller] = &[controllers::STATEFUL_SET];
const DAEMON: &[Controller] = &[controllers::DAEMON_SET];

/// The life of a StatefulSet: created with claims, rolled out, rolled back, scaled down.
async fn a_stateful_life(scene: &Scene<'_>) -> Result<(), Failure> {
    let cluster = scene.cluster();
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    let templates = json!([{ "metadata": { "name": "data" }, "spec": claim }]);
    cluster.create(statefulset::set(2, json!({ "volumeClaimTemplates": templates }))).await?;
    scene.rest().await?;
    for image in ["web:2", "web:1"] {
        statefulset::roll(cluster, image).await?;
        scene.rest().await?;
    }
    statefulset::patch(cluster, json!({ "spec": { "replicas": 1, "revisionHistoryLimit": 0 } })).await
}

async fn what_is_left_of_it(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let set = statefulset::until_complete(cluster, 1).await?;
    let claims = cluster.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?.items;
    let claims: Vec<_> = claims.into_iter().filter_map(|claim| claim.metadata.name).collect();
    Ok(vec![
        format!("{:?}", set.status),
        format!("{:?}", statefulset::images(cluster).await?),
        format!("{:?}", statefulset::revisions(cluster).await?),
        format!("{claims:?}"),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_stateful_set_changes_nothing() -> Result<(), Failure> {
    let builder = || TestCluster::builder().nodes(1);
    let crashes = crash_after_each_write(builder, STATEFUL, a_stateful_life, what_is_left_of_it).await?;
    assert!(crashes > 20, "the story takes {crashes} writes");
    Ok(())
}

/// The life of a DaemonSet: created, rolled out, rolled back.
async fn a_daemons_life(scene: &Scene<'_>) -> Result<(), Failure> {
    let cluster = scene.cluster();
    cluster.create(daemonset::set(json!({ "revisionHistoryLimit": 0 }))).await?;
    scene.rest().await?;
    for image in ["agent:2", "agent:1"] {
        daemonset::roll(cluster, image).await?;
        scene.rest().await?;
    }
    Ok(())
}

async fn what_is_left_of_daemons(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let status = daemonset::until_complete(cluster, 2).await?;
    let images = daemonset::images(cluster).await?;
    Ok(vec![
        format!("{status:?}"),
        format!("{images:?}"),
        format!("{:?}", statefulset::revisions(cluster).await?.len()),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_daemon_set_changes_nothing() -> Result<(), Failure> {
    let builder = || TestCluster::builder().nodes(2);
    let crashes = crash_after_each_write(builder, DAEMON, a_daemons_life, what_is_left_of_daemons).await?;
    assert!(crashes > 15, "the story takes {crashes} writes");
    Ok(())
}

/// Lost replies to creates and deletes, and caches that lag behind.
fn troubles(lost: u64, fault: &Fault) -> Faults {
    let faults = Faults::default();
    for (resource, seconds) in [("pods", 2), ("controllerrevisions", 1), ("statefulsets", 1), ("daemonsets", 1)] {
        faults.on(Verb::Watch, resource).happens(Fault::Lag(Duration::from_secs(seconds)));
    }
    for verb in [Verb::Create, Verb::Delete] {
        faults.on(verb, "pods").nth(lost).happens(fault.clone());
        faults.on(verb, "controllerrevisions").nth(lost).happens(fault.clone());
    }
    faults
}

fn lost_replies() -> impl Iterator<Item = (u64, Fault)> {
    let falsified = Fault::DoThenRefuse(http::StatusCode::INTERNAL_SERVER_ERROR);
    [1, 2].into_iter().flat_map(move |lost| [(lost, Fault::LoseReply), (lost, falsified.clone())])
}

#[tokio::test(start_paused = true)]
async fn lost_replies_and_lagging_caches_make_no_second_pod_on_a_node() -> Result<(), Failure> {
    for (lost, fault) in lost_replies() {
        let faults = troubles(lost, &fault);
        let cluster = daemonset::cluster().faults(&faults).start().await?;
        cluster.create(daemonset::set(json!({}))).await?;
        daemonset::until_complete(&cluster, 3).await?;
        daemonset::roll(&cluster, "agent:2").await?;
        daemonset::until_complete(&cluster, 3).await?;
        cluster.settle().await?;
        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items;
        assert_eq!(pods.len(), 3, "reply {lost} was lost");
        assert_eq!(statefulset::revisions(&cluster).await?.len(), 2, "reply {lost} was lost");
        assert_eq!(cluster.done(Verb::Create, "pods"), 6, "reply {lost} was lost");
        let set = cluster.api::<DaemonSet>().get("agent").await?;
        assert_eq!(set.status.and_then(|status| status.collision_count), None, "reply {lost} was lost");
        cluster.expect_quiet(QUIET).await?;
        cluster.stop().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn lost_replies_and_lagging_caches_roll_a_stateful_set_once() -> Result<(), Failure> {
    for (lost, fault) in lost_replies() {
        for policy in ["OrderedReady", "Parallel"] {
            let faults = troubles(lost, &fault);
            let cluster = statefulset::with_nodes().faults(&faults).start().await?;
            cluster.create(statefulset::set(3, json!({ "podManagementPolicy": policy }))).await?;
            statefulset::until_complete(&cluster, 3).await?;
            statefulset::roll(&cluster, "web:2").await?;
            let images = async || statefulset::images(&cluster).await;
            let all = ["web-0", "web-1", "web-2"].map(|pod| (pod.to_owned(), "web:2".to_owned()));
            cluster.until_eq("all are new", images, BTreeMap::from(all)).await?;
            statefulset::until_complete(&cluster, 3).await?;
            cluster.settle().await?;
            assert_eq!(statefulset::revisions(&cluster).await?.len(), 2, "reply {lost} was lost, {policy}");
            assert_eq!(cluster.done(Verb::Create, "pods"), 6, "reply {lost} was lost, {policy}");
            let set = cluster.api::<StatefulSet>().get("web").await?;
            assert_eq!(
                set.status.and_then(|status| status.collision_count),
                Some(0),
                "reply {lost} was lost, {policy}"
            );
            cluster.expect_quiet(QUIET).await?;
            cluster.stop().await?;
        }
    }
    Ok(())
}

/// The event of the pod names the claim, as upstream's does; the other claim is created all the same.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_refused_is_reported_and_does_not_hold_back_the_others() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Create, "persistentvolumeclaims").nth(1).refuse(http::StatusCode::FORBIDDEN);
    faults.on(Verb::Create, "persistentvolumeclaims").nth(3).refuse(http::StatusCode::FORBIDDEN);
    let cluster = statefulset::cluster().faults(&faults).start().await?;
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
    let templates = json!([
        { "metadata": { "name": "data" }, "spec": spec },
        { "metadata": { "name": "logs" }, "spec": spec },
    ]);
    cluster.create(statefulset::set(1, json!({ "volumeClaimTemplates": templates }))).await?;
    let pods = async || Ok(statefulset::images(&cluster).await?.len());
    cluster.until_eq("the pod comes", pods, 1).await?;
    cluster.settle().await?;
    let reported = statefulset::events(&cluster).await?;
    let refused: Vec<_> =
        reported.iter().filter(|(reason, _)| reason == "FailedCreate").map(|(_, text)| text).collect();
    let [claim, pod] = &refused[..] else { panic!("{reported:?}") };
    let begins = "Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ";
    let said = claim.strip_prefix(begins).unwrap_or_else(|| panic!("{reported:?}"));
    let want = format!("Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: {said}");
    assert_eq!(**pod, want);
    // The first and the third were refused: between them, the other claim was created.
    assert_eq!(cluster.done(Verb::Create, "persistentvolumeclaims"), 2);
    cluster.stop().await
}

/// A heartbeat of a node, which is a status write, costs no pass and no request.
#[tokio::test(start_paused = true)]
async fn an_hour_of_heartbeats_writes_nothing() -> Result<(), Failure> {
    let cluster = daemonset::cluster().start().await?;
    cluster.create(daemonset::set(json!({}))).await?;
    daemonset::until_complete(&cluster, 3).await?;
    cluster.settle().await?;
    cluster.expect_quiet(Duration::from_secs(3600)).await?;
    cluster.stop().await
}

/// The name is taken by a revision with other data: another one is tried, and the count of collisions says so.
#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_counts_as_a_collision() -> Result<(), Failure> {
    use k8s_openapi::api::apps::v1::ControllerRevision;
    let cluster = statefulset::with_nodes().start().await?;
    cluster.create(statefulset::set(1, json!({}))).await?;
    let first = statefulset::until_complete(&cluster, 1).await?.status.unwrap_or_default();
    let name = first.update_revision.unwrap_or_default();
    cluster.delete::<StatefulSet>("web").await?;
    cluster.delete::<Pod>("web-0").await?;
    let revisions = cluster.api::<ControllerRevision>();
    let mut taken = revisions.get(&name).await?;
    cluster.delete::<ControllerRevision>(&name).await?;
    taken.metadata = steersman_testing::objects::named(&name);
    taken.data = k8s_openapi::apimachinery::pkg::runtime::RawExtension(json!({ "other": 1 }));
    cluster.create(taken).await?;
    cluster.create(statefulset::set(1, json!({}))).await?;
    let second = statefulset::until_complete(&cluster, 1).await?.status.unwrap_or_default();
    assert_eq!(second.collision_count, Some(1));
    assert_ne!(second.update_revision, Some(name));
    cluster.stop().await
}
