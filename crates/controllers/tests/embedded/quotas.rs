//! Quotas under faults and load, and workloads that a quota refuses.

use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, Faults, TestCluster, Verb, expect, expect_eq};

use crate::quiet;
use crate::scenarios::garbage_collector::definition_of_cakes;
use crate::scenarios::resourcequota::{self as scenarios, quota, set_hard, until_used, used};
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::{daemonset, job, statefulset, ttl_after_finished};

const HOURS: Duration = Duration::from_secs(3 * 3600);
/// Far less than the back-off after hours.
const SOON: Duration = Duration::from_secs(5);

async fn pods(cluster: &TestCluster) -> Result<usize, Failure> {
    Ok(cluster.api::<Pod>().list(&ListParams::default()).await?.items.len())
}

/// Starts a cluster with a quota of no pods at all.
async fn with_full_quota(controller: Controller, nodes: usize) -> Result<TestCluster, Failure> {
    let controllers = [controller, controllers::RESOURCE_QUOTA];
    let cluster = TestCluster::builder().controllers(&controllers).nodes(nodes).start().await?;
    quota(&cluster, "team", json!({ "hard": { "pods": "0" } })).await?;
    Ok(cluster)
}

/// After hours there is no pod; the quota is raised, and all pods come within seconds.
async fn pods_come_soon(cluster: TestCluster, count: usize) -> Result<(), Failure> {
    cluster.advance(HOURS).await;
    expect_eq("no pod yet", &pods(&cluster).await?, &0)?;
    set_hard(&cluster, "team", json!({ "pods": count.to_string() })).await?;
    cluster.advance(SOON).await;
    expect_eq("all pods, within seconds", &pods(&cluster).await?, &count)?;
    cluster.stop().await
}

#[tokio::test(start_paused = true)]
async fn issue_136853_a_replica_set_goes_on_soon_after_a_quota_is_raised() -> Result<(), Failure> {
    let cluster = with_full_quota(controllers::REPLICA_SET, 0).await?;
    cluster.create(objects::replica_set("web").replicas(3)).await?;
    pods_come_soon(cluster, 3).await
}

#[tokio::test(start_paused = true)]
async fn issue_136853_a_stateful_set_goes_on_soon_after_a_quota_is_raised() -> Result<(), Failure> {
    let cluster = with_full_quota(controllers::STATEFUL_SET, 0).await?;
    cluster.create(statefulset::set(3, json!({ "podManagementPolicy": "Parallel" }))).await?;
    pods_come_soon(cluster, 3).await
}

#[tokio::test(start_paused = true)]
async fn issue_136853_a_daemon_set_goes_on_soon_after_a_quota_is_raised() -> Result<(), Failure> {
    let cluster = with_full_quota(controllers::DAEMON_SET, 3).await?;
    cluster.create(daemonset::set(json!({}))).await?;
    pods_come_soon(cluster, 3).await
}

#[tokio::test(start_paused = true)]
async fn issue_136853_a_job_goes_on_soon_after_a_quota_is_raised() -> Result<(), Failure> {
    let cluster = with_full_quota(controllers::JOB, 0).await?;
    cluster.create(job::job(json!({ "completions": 3, "parallelism": 3 }))).await?;
    pods_come_soon(cluster, 3).await
}

/// What another workload frees is used at once, too.
#[tokio::test(start_paused = true)]
async fn a_refused_replica_set_goes_on_when_pods_of_another_are_deleted() -> Result<(), Failure> {
    let cluster = scenarios::with_replica_sets().start().await?;
    quota(&cluster, "team", json!({ "hard": { "pods": "2" } })).await?;
    let first = cluster.create(objects::replica_set("first").replicas(2)).await?;
    cluster.pods_of(&first).until_count(2).await?;
    let second = cluster.create(objects::replica_set("second").replicas(2)).await?;
    cluster.advance(HOURS).await;
    let none = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
    let sets = cluster.api::<k8s_openapi::api::apps::v1::ReplicaSet>();
    sets.patch("first", &PatchParams::default(), &none).await?;
    cluster.advance(SOON).await;
    cluster.pods_of(&second).until_count(2).await?;
    quiet(cluster).await
}

/// 80583, 71450, 98071: a monitor that could not sync stopped all quotas until the manager was restarted: usage stayed as it
/// was, new limits were not enforced, and a quota that was created again had no status at all.
#[tokio::test(start_paused = true)]
async fn issue_80583_a_resource_that_cannot_be_listed_stops_no_quota() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::List, "configmaps").refuse(StatusCode::FORBIDDEN);
    faults.on(Verb::Watch, "configmaps").refuse(StatusCode::FORBIDDEN);
    let cluster = scenarios::cluster().faults(&faults).start().await?;
    let hard = json!({ "pods": "5", "count/configmaps": "5" });
    let team: ResourceQuota =
        serde_json::from_value(json!({ "metadata": { "name": "team" }, "spec": { "hard": hard } }))?;
    cluster.create(team.clone()).await?;
    cluster.create(objects::pod("a")).await?;
    until_used(&cluster, "team", &[("pods", "1")]).await?;
    cluster.advance(HOURS).await;
    // Raised, and created again.
    set_hard(&cluster, "team", json!({ "pods": "6" })).await?;
    cluster.create(objects::pod("b")).await?;
    until_used(&cluster, "team", &[("pods", "2")]).await?;
    cluster.api::<ResourceQuota>().delete("team", &DeleteParams::default()).await?;
    cluster.create(team).await?;
    until_used(&cluster, "team", &[("pods", "2")]).await?;
    cluster.api::<Pod>().delete("b", &DeleteParams::default().grace_period(0)).await?;
    until_used(&cluster, "team", &[("pods", "1")]).await?;
    // What cannot be charged is refused, until it can be counted.
    let refused = cluster.api::<ConfigMap>().create(&PostParams::default(), &objects::config_map("c")).await;
    let is_refused =
        matches!(&refused, Err(kube::Error::Api(status)) if status.message.contains("status unknown for quota: team"));
    expect(is_refused, "its usage is not known", &refused)?;
    faults.heal();
    let is_counted = async || Ok(used(&cluster, "team").await?.contains_key("count/configmaps"));
    cluster.until_eq("it is counted at last", is_counted, true).await?;
    cluster.create(objects::config_map("c")).await?;
    quiet(cluster).await
}

/// 39599: usage that was charged for creates that failed was never given back. Here, an object and its charge are stored
/// together, or neither is.
#[tokio::test(start_paused = true)]
async fn issue_39599_creates_that_fail_are_not_charged() -> Result<(), Failure> {
    // No controller: nobody corrects the count.
    let cluster = TestCluster::builder().start().await?;
    let team: ResourceQuota =
        serde_json::from_value(json!({ "metadata": { "name": "team" }, "spec": { "hard": { "pods": "10" } } }))?;
    cluster.create(team).await?;
    let status = json!({ "status": { "hard": { "pods": "10" }, "used": { "pods": "0" } } });
    cluster.api::<ResourceQuota>().patch_status("team", &PatchParams::default(), &Patch::Merge(status)).await?;
    let api = cluster.api::<Pod>();
    // Every name twice, and more names than there is room for.
    let creates = (0..40).map(|at| {
        let api = api.clone();
        async move { api.create(&PostParams::default(), &objects::pod(&format!("p-{}", at / 2))).await.is_ok() }
    });
    let made = join_all(creates).await.into_iter().filter(|is_made| *is_made).count();
    expect_eq("as many as the quota allows", &(made, pods(&cluster).await?), &(10, 10))?;
    until_used(&cluster, "team", &[("pods", "10")]).await?;
    cluster.stop().await
}

/// A definition that comes after the quota: its objects are counted as soon as it is served.
#[tokio::test(start_paused = true)]
async fn a_resource_that_is_defined_later_is_counted() -> Result<(), Failure> {
    const CAKES: &str = "count/cakes.garbage.example.com";
    let cluster = scenarios::cluster().start().await?;
    let team = json!({ "metadata": { "name": "team" }, "spec": { "hard": { CAKES: "1", "pods": "1" } } });
    cluster.create(serde_json::from_value::<ResourceQuota>(team)?).await?;
    until_used(&cluster, "team", &[("pods", "0")]).await?;
    cluster.advance(HOURS).await;
    let definitions = kube::Api::<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    >::all(cluster.client());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition_of_cakes())?).await?;
    until_used(&cluster, "team", &[(CAKES, "0"), ("pods", "0")]).await?;
    let cakes = crate::scenarios::garbage_collector::cakes(&cluster);
    cakes.create(&PostParams::default(), &crate::scenarios::garbage_collector::cake("a", vec![])).await?;
    until_used(&cluster, "team", &[(CAKES, "1"), ("pods", "0")]).await?;
    quiet(cluster).await
}

/// The count is made of a cache that does not show the last pods: it is corrected, though nothing is deleted any more.
#[tokio::test(start_paused = true)]
async fn a_count_from_a_cache_that_lags_is_corrected() -> Result<(), Failure> {
    let faults = Faults::default();
    faults.on(Verb::Watch, "pods").happens(steersman_testing::Fault::Lag(Duration::from_secs(2)));
    let cluster = scenarios::cluster().faults(&faults).start().await?;
    quota(&cluster, "team", json!({ "hard": { "pods": "5" } })).await?;
    cluster.create(objects::pod("a")).await?;
    cluster.advance(SOON).await;
    cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(0)).await?;
    cluster.advance(Duration::from_millis(1990)).await;
    // The deletion arrives, and these do not.
    for name in ["b", "c", "d"] {
        cluster.create(objects::pod(name)).await?;
    }
    cluster.advance(Duration::from_secs(15)).await;
    until_used(&cluster, "team", &[("pods", "3")]).await?;
    quiet(cluster).await
}

/// A terminating pod on a lost node counts until its grace period is over, and then no more, without any event.
#[tokio::test(start_paused = true)]
async fn a_terminating_pod_is_free_when_its_grace_period_is_over() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    quota(&cluster, "team", json!({ "hard": { "pods": "5", "count/pods": "5" } })).await?;
    let node = json!({ "spec": { "nodeName": "lost" }, "metadata": { "finalizers": ["example.com/held"] } });
    use steersman_testing::objects::ObjectBuilder as _;
    cluster.create(objects::pod("a").with(node)).await?;
    cluster.api::<Pod>().delete("a", &DeleteParams::default().grace_period(30)).await?;
    cluster.advance(SOON).await;
    until_used(&cluster, "team", &[("count/pods", "1"), ("pods", "1")]).await?;
    cluster.advance(Duration::from_secs(60)).await;
    until_used(&cluster, "team", &[("count/pods", "1"), ("pods", "0")]).await?;
    quiet(cluster).await
}

/// The time to live is raised after the controller has read the Job, and before the deletion arrives.
#[tokio::test(start_paused = true)]
async fn a_time_to_live_that_is_raised_at_the_last_moment_counts() -> Result<(), Failure> {
    let cluster = ttl_after_finished::cluster().start().await?;
    ttl_after_finished::create(&cluster, "sums", json!(10)).await?;
    crate::scenarios::cronjob::end(&cluster, "sums", "Complete").await?;
    cluster.faults().on(Verb::Delete, "jobs").nth(1).delay(Duration::from_secs(5));
    cluster.advance(Duration::from_secs(12)).await;
    ttl_after_finished::set_ttl(&cluster, "sums", json!(100_000)).await?;
    cluster.advance(Duration::from_secs(600)).await;
    let job = cluster.api::<Job>().get("sums").await?;
    expect(job.metadata.deletion_timestamp.is_none(), "it is kept", &job.metadata)?;
    quiet(cluster).await
}
