//! Claims of devices: one for each pod, whatever the caches show and the answers say; and APIs of devices behind gates.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use steersman_testing::objects::{ObjectBuilder as _, PodBuilder as _};
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect, expect_eq};

use crate::quiet;
use crate::scenarios::protection::end;
use crate::scenarios::resourceclaim::{
    CONTROLLERS, FINALIZER, State, allocate, claim, claims, pod_with_claim, pod_with_template, remove_claims, state,
    template, until_claimed,
};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};
use crate::scenarios::support::gated;

/// A pod of a template gets one claim, whatever the faults are.
async fn expect_one_claim_with(faults: &Faults) -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(faults).start().await?;
    cluster.create(template("gpus")).await?;
    cluster.create(pod_with_template("web", "gpus")).await?;
    until_claimed(&cluster, "web", None).await?;
    cluster.settle().await?;
    expect_eq("claims", &claims(&cluster).await?.len(), &1)?;
    end(&cluster, "web").await?;
    remove_claims(&cluster).await?;
    quiet(cluster).await
}

/// The server has created the claim, and nobody hears of it; and the cache of claims lags, too.
#[tokio::test(start_paused = true)]
async fn a_create_without_an_answer_is_not_repeated() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "resourceclaims").happens(Fault::Lag(Duration::from_secs(20)));
    faults.on(Verb::Create, "resourceclaims").nth(1).lose_reply();
    expect_one_claim_with(&faults).await
}

/// The status of the pod is applied, and nobody hears of it.
#[tokio::test(start_paused = true)]
async fn a_status_without_an_answer_leads_to_no_other_claim() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(20)));
    faults.on(Verb::Patch, "pods/status").nth(1).lose_reply();
    expect_one_claim_with(&faults).await
}

/// The cache has an older pod of the name; a scheduler has reserved the claim for the new one.
#[tokio::test(start_paused = true)]
async fn a_reservation_of_a_pod_that_the_cache_does_not_show_yet_stays() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = TestCluster::builder().controllers(CONTROLLERS).faults(&faults).start().await?;
    cluster.create(claim("shared").finalizer(FINALIZER)).await?;
    cluster.create(pod_with_claim("web", "shared")).await?;
    cluster.advance(Duration::from_secs(30)).await;
    end(&cluster, "web").await?;
    let pod = cluster.create(pod_with_claim("web", "shared").on_node("somewhere")).await?;
    allocate(&cluster, "shared", &[&pod]).await?;
    let reserved = State { users: 1, is_allocated: true, is_held: true };
    cluster.advance(Duration::from_secs(5)).await;
    expect_eq("while the cache lags", &state(&cluster, "shared").await?, &reserved)?;
    cluster.settle().await?;
    expect_eq("afterwards", &state(&cluster, "shared").await?, &reserved)?;
    end(&cluster, "web").await?;
    cluster.until_eq("it is released", async || Ok(state(&cluster, "shared").await?.users), 0).await?;
    cluster.delete::<ResourceClaim>("shared").await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_leads_to_one_claim_and_to_its_release() -> Result<(), Failure> {
    async fn story(scene: &Scene<'_>) -> Result<(), Failure> {
        let cluster = scene.cluster();
        cluster.create(template("gpus")).await?;
        cluster.create(claim("shared").finalizer(FINALIZER)).await?;
        let user = cluster.create(pod_with_claim("user", "shared").on_node("somewhere")).await?;
        allocate(cluster, "shared", &[&user]).await?;
        cluster.create(pod_with_template("web", "gpus")).await?;
        scene.rest().await?;
        end(cluster, "user").await?;
        scene.rest().await?;
        cluster.delete::<ResourceClaim>("shared").await
    }
    async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
        let pod = cluster.api::<Pod>().get("web").await?;
        let named = pod.status.and_then(|status| status.resource_claim_statuses).unwrap_or_default();
        let claims = claims(cluster).await?;
        let is_named = named.len() == 1 && claims == [named[0].resource_claim_name.clone().unwrap_or_default()];
        Ok(vec![format!("{} claims, named: {is_named}", claims.len())])
    }
    let crashes = crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    expect(crashes >= 4, "a claim, a status, a release, a finalizer", &crashes)
}

/// With the gates: the claim is made for the group, once, and its pods share it.
#[tokio::test(start_paused = true)]
async fn the_pods_of_a_group_share_its_claim() -> Result<(), Failure> {
    let cluster = gated::group_claims().define(gated::pod_groups()).start().await?;
    gated::the_pods_of_a_group_share_its_claim(&cluster).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_group_stays_while_a_pod_of_it_runs() -> Result<(), Failure> {
    let cluster = gated::protection().define(gated::pod_groups()).start().await?;
    gated::a_group_stays_while_a_pod_of_it_runs(&cluster).await?;
    quiet(cluster).await
}

/// The cache does not show the pod yet.
#[tokio::test(start_paused = true)]
async fn a_group_stays_if_the_server_has_a_pod_of_it_that_the_cache_has_not() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(20)));
    let cluster = gated::protection().define(gated::pod_groups()).faults(&faults).start().await?;
    cluster.settle().await?;
    gated::create_group(&cluster, "gang", json!({})).await?;
    cluster.create(gated::member("one", "gang")).await?;
    let groups = gated::groups(&cluster);
    groups.delete("gang", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(10)).await;
    expect(groups.get_opt("gang").await?.is_some(), "it is protected", &"gone")?;
    end(&cluster, "one").await?;
    cluster.until_eq("it is gone", async || Ok(groups.get_opt("gang").await?.is_none()), true).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_from_slices_claims_and_rules() -> Result<(), Failure> {
    let cluster = gated::pool_status().define(gated::requests_defined()).start().await?;
    gated::a_request_is_answered_from_slices_claims_and_rules(&cluster).await?;
    quiet(cluster).await
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_slices_of_a_pool() -> Result<(), Failure> {
    let cluster = gated::pool_status().define(gated::requests_defined()).start().await?;
    gated::a_request_waits_for_the_slices_of_a_pool(&cluster).await?;
    quiet(cluster).await
}

/// An answered one after an hour, one without an answer after a day; looked for every ten minutes.
#[tokio::test(start_paused = true)]
async fn old_requests_are_deleted() -> Result<(), Failure> {
    let cluster = gated::pool_status().define(gated::requests_defined()).start().await?;
    gated::publish_pool(&cluster, "half", 2, &json!([{ "name": "gpu-0" }])).await?;
    gated::ask(&cluster, "answered", json!({ "poolName": "none" })).await?;
    gated::ask(&cluster, "pending", json!({ "poolName": "half" })).await?;
    gated::until_answered(&cluster, "answered").await?;
    let names = async || gated::asked(&cluster).await;
    cluster.advance(Duration::from_secs(50 * 60)).await;
    expect_eq("after 50 minutes", &names().await?, &vec!["answered".to_owned(), "pending".to_owned()])?;
    cluster.advance(Duration::from_secs(25 * 60)).await;
    expect_eq("after 75 minutes", &names().await?, &vec!["pending".to_owned()])?;
    cluster.advance(Duration::from_secs(22 * 3600)).await;
    expect_eq("after 23 hours", &names().await?.len(), &1)?;
    cluster.advance(Duration::from_secs(2 * 3600)).await;
    expect_eq("after a day", &names().await?.len(), &0)?;
    gated::remove_slices(&cluster).await?;
    quiet(cluster).await
}

/// Without the gates, a pod in a group gets nothing, and is not retried.
#[tokio::test(start_paused = true)]
async fn a_pod_in_a_group_waits_if_groups_are_off() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(CONTROLLERS).start().await?;
    cluster.create(template("gpus")).await?;
    let in_group = json!({ "spec": { "schedulingGroup": { "podGroupName": "gang" } } });
    cluster.create(pod_with_template("web", "gpus").with(in_group)).await?;
    cluster.settle().await?;
    expect_eq("claims", &cluster.api::<ResourceClaim>().list(&ListParams::default()).await?.items.len(), &0)?;
    end(&cluster, "web").await?;
    quiet(cluster).await
}
