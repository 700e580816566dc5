//! Budgets under faults: evictions are not forgotten, and no stale count grants more than there is.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::DeleteParams;
use serde_json::json;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb};

use crate::quiet;
use crate::scenarios::disruption::{CONTROLLERS, budget, evict, running, until_counts};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

/// 82149: a count that conflicted with an eviction was written again without a new count, and granted evictions beyond the
/// budget.
#[tokio::test(start_paused = true)]
async fn an_eviction_that_is_granted_while_a_count_is_written_is_not_lost() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    for name in ["a", "b", "c"] {
        running(&cluster, name).await?;
    }
    cluster.create(budget(json!({ "minAvailable": 2 }))).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    cluster.faults().on(Verb::Update, "poddisruptionbudgets/status").nth(1).delay(Duration::from_secs(5));
    running(&cluster, "d").await?;
    cluster.advance(Duration::from_secs(1)).await;
    // The count of four is on its way, and is made of the version before.
    evict(&cluster, "a").await?;
    cluster.advance(Duration::from_secs(60)).await;
    until_counts(&cluster, [4, 3, 2, 1]).await?;
    cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_that_the_cache_shows_as_healthy_does_not_count() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    for name in ["a", "b", "c"] {
        running(&cluster, name).await?;
    }
    cluster.create(budget(json!({ "minAvailable": 2 }))).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    evict(&cluster, "a").await?;
    for _ in 0..10 {
        cluster.advance(Duration::from_secs(1)).await;
        assert!(evict(&cluster, "b").await.is_err(), "two must stay");
    }
    cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await?;
    until_counts(&cluster, [2, 2, 2, 0]).await?;
    quiet(cluster).await
}

/// The status cannot be written, and the one that the server has allows an eviction: it is taken back first.
#[tokio::test(start_paused = true)]
async fn a_budget_whose_status_cannot_be_written_allows_nothing() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    for name in ["a", "b", "c"] {
        running(&cluster, name).await?;
    }
    cluster.create(budget(json!({ "minAvailable": 2 }))).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    cluster.settle().await?;
    let before = cluster.done(Verb::Update, "poddisruptionbudgets/status");
    let error = StatusCode::INTERNAL_SERVER_ERROR;
    cluster.faults().on(Verb::Update, "poddisruptionbudgets/status").nth(1).refuse(error);
    cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await?;
    until_counts(&cluster, [2, 2, 2, 0]).await?;
    cluster.settle().await?;
    let writes = cluster.done(Verb::Update, "poddisruptionbudgets/status") - before;
    assert_eq!(writes, 2, "nothing is allowed, then the counts");
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_eviction_failed_counts_again_after_two_minutes() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    for name in ["a", "b", "c"] {
        running(&cluster, name).await?;
    }
    cluster.create(budget(json!({ "minAvailable": 2 }))).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    // The server has granted it, and failed before it deleted the pod.
    let now = cluster.clock().now();
    let status = json!({ "status": { "disruptionsAllowed": 0, "disruptedPods": { "a": now } } });
    let patch = kube::api::Patch::Merge(status);
    cluster.api::<PodDisruptionBudget>().patch_status("web", &Default::default(), &patch).await?;
    until_counts(&cluster, [3, 2, 2, 0]).await?;
    cluster.advance(Duration::from_secs(60)).await;
    until_counts(&cluster, [3, 2, 2, 0]).await?;
    cluster.advance(Duration::from_secs(65)).await;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn nothing_is_granted_while_the_owner_cannot_be_read_and_it_recovers_by_itself() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    let web = cluster.create(objects::replica_set("web").replicas(3)).await?;
    let pods = cluster.pods_of(&web);
    pods.until_count(3).await?;
    pods.make_ready().await?;
    cluster.create(budget(json!({ "maxUnavailable": 1 }))).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    // Another owner, of a kind without a cache, whose scale the server does not return.
    cluster.faults().on(Verb::Get, "statefulsets/scale").refuse(StatusCode::INTERNAL_SERVER_ERROR);
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "00000000-0000-0000-0000-000000000001",
        "controller": true,
    }]);
    let pod = objects::ObjectBuilder::with(objects::pod("db-0"), json!({ "metadata": { "ownerReferences": owner } }));
    cluster.create(objects::ObjectBuilder::label(pod, "app", "web")).await?;
    let allowed = async || {
        let status = cluster.api::<PodDisruptionBudget>().get("web").await?.status.unwrap_or_default();
        let reasons = status.conditions.unwrap_or_default().into_iter().map(|condition| condition.reason);
        Ok((status.disruptions_allowed.unwrap_or_default(), reasons.collect::<Vec<_>>()))
    };
    cluster.until_eq("nothing is granted", allowed, (0, vec!["SyncFailed".to_owned()])).await?;
    cluster.api::<Pod>().delete("db-0", &DeleteParams::default().grace_period(0)).await?;
    until_counts(&cluster, [3, 3, 2, 1]).await?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_budgets_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        for name in ["a", "b", "c"] {
            running(cluster, name).await?;
        }
        cluster.create(budget(json!({ "minAvailable": "50%" }))).await?;
        scene.rest().await?;
        let patch = kube::api::Patch::Merge(json!({ "spec": { "minAvailable": 1 } }));
        cluster.api::<PodDisruptionBudget>().patch("web", &Default::default(), &patch).await?;
        scene.rest().await?;
        cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    };
    let world = async |cluster: &TestCluster| {
        let status = cluster.api::<PodDisruptionBudget>().get("web").await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default().into_iter().map(|it| (it.type_, it.status, it.reason));
        let counts = (status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed);
        Ok(vec![format!("{counts:?} {:?}", conditions.collect::<Vec<_>>())])
    };
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
}
