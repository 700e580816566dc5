//! Budgets of disruptions, and what evictions do to them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, Verb, expect, expect_eq};

use crate::scenarios::support::controllers::{self, Controller};

scenarios! {
    a_budget_counts_healthy_pods_and_grants_as_many_evictions on cluster,
    a_share_is_of_the_scale_of_the_owner on cluster,
    the_scale_of_a_stateful_set_is_not_asked_for on cluster,
    a_budget_whose_pods_cannot_be_counted_grants_nothing on cluster,
    a_pod_that_was_not_disrupted_loses_the_condition on cluster,
}

pub(crate) const CONTROLLERS: &[Controller] = &[controllers::DISRUPTION, controllers::REPLICA_SET];

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(CONTROLLERS)
}

/// Two of three pods must be healthy: one may be evicted, and no second one before there are three again.
pub(crate) async fn a_budget_counts_healthy_pods_and_grants_as_many_evictions(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    for name in ["a", "b", "c"] {
        running(cluster, name).await?;
    }
    cluster.create(budget(json!({ "minAvailable": 2 }))).await?;
    until_counts(cluster, [3, 3, 2, 1]).await?;
    evict(cluster, "a").await?;
    let refused = evict(cluster, "b").await.err().map(|error| error.to_string()).unwrap_or_default();
    expect(refused.contains("disruption budget"), "the second eviction is refused", &refused)?;
    cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await.ok();
    until_counts(cluster, [2, 2, 2, 0]).await?;
    running(cluster, "d").await?;
    until_counts(cluster, [3, 3, 2, 1]).await?;
    let allowed = condition(cluster).await?;
    expect_eq("the condition", &allowed, &("True".to_owned(), "SufficientPods".to_owned(), String::new()))?;
    evict(cluster, "b").await?;
    Ok(())
}

/// Half of four pods, even while only some of them exist or are ready.
pub(crate) async fn a_share_is_of_the_scale_of_the_owner(cluster: &TestCluster) -> Result<(), Failure> {
    let web = cluster.create(objects::replica_set("web").replicas(4)).await?;
    let pods = cluster.pods_of(&web);
    pods.until_count(4).await?;
    cluster.create(budget(json!({ "maxUnavailable": "50%" }))).await?;
    until_counts(cluster, [4, 0, 2, 0]).await?;
    pods.make_ready().await?;
    until_counts(cluster, [4, 4, 2, 2]).await?;
    let patch = Patch::Merge(json!({ "spec": { "minAvailable": "75%", "maxUnavailable": null } }));
    cluster.api::<PodDisruptionBudget>().patch("web", &PatchParams::default(), &patch).await?;
    until_counts(cluster, [4, 4, 3, 1]).await
}

/// It is in a cache, as it is upstream.
pub(crate) async fn the_scale_of_a_stateful_set_is_not_asked_for(cluster: &TestCluster) -> Result<(), Failure> {
    let set = cluster.create(objects::stateful_set("web").replicas(4)).await?;
    cluster.create(objects::pod("web-0").label("app", "web").owned_by(&set)).await?;
    cluster.create(budget(json!({ "maxUnavailable": "50%" }))).await?;
    until_counts(cluster, [4, 0, 2, 0]).await?;
    expect_eq("requests for its scale", &cluster.done(Verb::Get, "statefulsets/scale"), &0)
}

/// The owner of its pod does not exist.
pub(crate) async fn a_budget_whose_pods_cannot_be_counted_grants_nothing(cluster: &TestCluster) -> Result<(), Failure> {
    let gone = objects::replica_set("gone").uid("00000000-0000-0000-0000-000000000001");
    let orphan = objects::pod("orphan").label("app", "web").owned_by(&gone);
    cluster.create(orphan).await?;
    cluster.create(budget(json!({ "maxUnavailable": 1 }))).await?;
    let want = ("False".to_owned(), "SyncFailed".to_owned(), "found no controllers for pod \"orphan\"".to_owned());
    cluster.until_eq("the condition says why", async || condition(cluster).await, want).await?;
    cluster.api::<Pod>().delete("orphan", &DeleteParams::default().grace_period(0)).await?;
    let want = ("False".to_owned(), "InsufficientPods".to_owned(), String::new());
    cluster.until_eq("it recovers", async || condition(cluster).await, want).await
}

/// Somebody wanted to end it, and did not.
pub(crate) async fn a_pod_that_was_not_disrupted_loses_the_condition(cluster: &TestCluster) -> Result<(), Failure> {
    running(cluster, "a").await?;
    // Two minutes ago but for a few seconds.
    let since = steersman_base::Time::from_unix(cluster.clock().now().unix() - 115);
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "lastTransitionTime": since,
    });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [target] } }));
    cluster.api::<Pod>().patch_status("a", &PatchParams::default(), &patch).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let status = async || {
        let conditions = cluster.api::<Pod>().get("a").await?.status.and_then(|status| status.conditions);
        let mut conditions = conditions.unwrap_or_default().into_iter();
        let target = conditions.find(|condition| condition.type_ == "DisruptionTarget");
        Ok(target.map(|target| (target.status, target.reason.unwrap_or_default())))
    };
    cluster.until_eq("the condition is reset", status, Some(("False".to_owned(), String::new()))).await
}

/// A ready pod.
pub(crate) async fn running(cluster: &TestCluster, name: &str) -> Result<(), Failure> {
    cluster.create(objects::pod(name).label("app", "web").on_node("somewhere")).await?;
    let status = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let patch = Patch::Strategic(json!({ "status": status }));
    cluster.api::<Pod>().patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(crate) fn budget(spec: Value) -> PodDisruptionBudget {
    let budget = json!({
        "metadata": { "name": "web" },
        "spec": objects::merged(json!({ "selector": { "matchLabels": { "app": "web" } } }), spec),
    });
    serde_json::from_value(budget).expect("it is a budget")
}

pub(crate) async fn evict(cluster: &TestCluster, pod: &str) -> Result<(), kube::Error> {
    cluster.api::<Pod>().evict(pod, &EvictParams::default()).await.map(drop)
}

/// Waits until the budget expects, has, requires and grants this many.
pub(crate) async fn until_counts(cluster: &TestCluster, want: [i32; 4]) -> Result<(), Failure> {
    let counts = async || {
        let status = cluster.api::<PodDisruptionBudget>().get("web").await?.status.unwrap_or_default();
        let counts = [status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed];
        Ok(counts.map(Option::unwrap_or_default))
    };
    cluster.until_eq("expected, healthy, required, granted", counts, want).await
}

async fn condition(cluster: &TestCluster) -> Result<(String, String, String), Failure> {
    let status = cluster.api::<PodDisruptionBudget>().get("web").await?.status.unwrap_or_default();
    let mut conditions = status.conditions.unwrap_or_default().into_iter();
    let allowed = conditions.find(|condition| condition.type_ == "DisruptionAllowed");
    Ok(allowed.map(|allowed| (allowed.status, allowed.reason, allowed.message)).unwrap_or_default())
}
