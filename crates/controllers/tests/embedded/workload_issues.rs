//! Issues of kubernetes/kubernetes about workloads that need faults, or nodes, to show.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::{Failure, TestCluster, expect, expect_eq};

use crate::scenarios::job::{self, exit, pods, status};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers;
use crate::scenarios::support::line::{Line, Trouble};
use crate::scenarios::{cronjob, daemonset};

/// 63465: a pod that cannot be deleted, because its node is lost, stopped the roll-out on all other nodes.
#[tokio::test(start_paused = true)]
async fn issue_63465_a_daemon_that_cannot_be_deleted_holds_back_no_other_node() -> Result<(), Failure> {
    let cluster = daemonset::cluster().start().await?;
    let rolling = json!({ "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 2 } } });
    cluster.create(daemonset::set(rolling)).await?;
    daemonset::until_complete(&cluster, 3).await?;
    let stuck = daemonset::images(&cluster).await?.into_keys().next().unwrap_or_default();
    let of_node = async |node: &str| -> Result<String, Failure> {
        let pods = pods(&cluster).await?;
        let on_node = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        Ok(pods.iter().find(on_node).map(job::name).unwrap_or_default())
    };
    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/held"] } }));
    let name = of_node(&stuck).await?;
    cluster.api::<Pod>().patch(&name, &PatchParams::default(), &held).await?;
    cluster.api::<Pod>().delete(&name, &DeleteParams::default()).await?;
    daemonset::roll(&cluster, "agent:2").await?;
    let others = async || {
        let mut images = daemonset::images(&cluster).await?;
        images.remove(&stuck);
        Ok(images)
    };
    let is_new = |images: &BTreeMap<String, Vec<String>>| images.values().all(|images| images == &["agent:2"]);
    cluster.until_right("the other nodes have the new image", others, is_new).await?;
    cluster.stop().await
}

/// 105200, 130103: with a cache of pods that lags behind, a pod was counted twice, and a Job of one pod made a second.
#[tokio::test(start_paused = true)]
async fn issue_105200_a_pod_that_a_stale_cache_shows_is_counted_once() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let line = Line::to(cluster.faulty_client(), Trouble::Lags(&["/pods"], Duration::from_secs(4)));
    let manager = Beside::start_within(&cluster, line.client(), &[controllers::JOB])?;
    let made = cluster.create(job::job(json!({ "completions": 2, "parallelism": 1, "backoffLimit": 0 }))).await?;
    for succeeded in 1..=2 {
        let active = job::active(&cluster, &made, 1).await?;
        exit(&cluster, &active[0], 0).await?;
        // The status changes, and with it the Job, long before the cache shows the end of the finalizer.
        let look = async || Ok(status(&cluster).await?.succeeded.unwrap_or_default());
        cluster.until_eq("it is counted", look, succeeded).await?;
        cluster.advance(Duration::from_secs(10)).await;
        expect_eq("and not again", &status(&cluster).await?.succeeded, &Some(succeeded))?;
    }
    job::until_conditions(&cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await?;
    expect_eq("one pod for each completion", &line.count(&Method::POST, "/pods"), &2)?;
    manager.stop().await?;
    cluster.stop().await
}

/// 109485: pods that the cache did not show yet when the Job failed kept their finalizer for ever.
#[tokio::test(start_paused = true)]
async fn issue_109485_no_pod_of_a_failed_job_keeps_its_finalizer() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let line = Line::to(cluster.faulty_client(), Trouble::Lags(&["/pods"], Duration::from_secs(2)));
    let manager = Beside::start_within(&cluster, line.client(), &[controllers::JOB])?;
    let spec = json!({ "completions": 30, "parallelism": 30, "backoffLimit": 0, "completionMode": "Indexed" });
    let made = cluster.create(job::job(spec)).await?;
    let active = job::active(&cluster, &made, 30).await?;
    exit(&cluster, &active[7], 1).await?;
    job::until_conditions(&cluster, &["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]).await?;
    let tracked = async || Ok(pods(&cluster).await?.iter().filter(|pod| job::is_tracked(pod)).count());
    cluster.until_eq("no pod is tracked", tracked, 0).await?;
    manager.stop().await?;
    cluster.stop().await
}

/// 36311: after more than a hundred missed times a CronJob was never started again.
#[tokio::test(start_paused = true)]
async fn issue_36311_after_many_missed_times_the_last_one_is_started() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    cluster.create(cronjob::cron_job(json!({ "schedule": "*/1 * * * *", "concurrencyPolicy": "Forbid" }))).await?;
    // Nobody is there for two days: 2880 times.
    cluster.advance(Duration::from_secs(2 * 24 * 3600)).await;
    let manager = Beside::start_within(&cluster, cluster.client(), &[controllers::CRON_JOB])?;
    let jobs = cronjob::until_jobs(&cluster, 1).await?;
    let name = jobs[0].metadata.name.clone().unwrap_or_default();
    let minutes: i64 = name.trim_start_matches("report-").parse().unwrap_or_default();
    let now = cluster.clock().now().unix() / 60;
    expect((now - 1..=now).contains(&minutes), "the last missed time", &(name, now))?;
    manager.stop().await?;
    cluster.stop().await
}
