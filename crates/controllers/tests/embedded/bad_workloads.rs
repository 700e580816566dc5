//! Workloads that are hard to run: upstream's event or condition, bounded work, and recovery once the cause is gone.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster, Verb, expect, expect_eq};

use crate::quiet;
use crate::scenarios::job::{self, active, exit, index_of, job as sums, status, until_conditions};
use crate::scenarios::support::beside::Beside;
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::line::{Line, Trouble};
use crate::scenarios::{cronjob, daemonset, statefulset};

const WORKLOADS: &[Controller] =
    &[controllers::JOB, controllers::REPLICA_SET, controllers::STATEFUL_SET, controllers::DAEMON_SET];
const HELD: &str = "example.dev/held";
const COMPLETE: [&str; 2] = ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"];

/// A zone that the server knows and this manager does not: nothing is started, and an event says so. It goes on with a zone
/// that both know.
#[tokio::test(start_paused = true)]
async fn an_unknown_time_zone_is_reported_and_starts_nothing() -> Result<(), Failure> {
    let cluster = TestCluster::builder().start().await?;
    let line = Line::to(cluster.faulty_client(), Trouble::Forges("Asia/Tokyo", "Mars/Base0"));
    let manager = Beside::start_within(&cluster, line.client(), &[controllers::CRON_JOB])?;
    cluster.create(cronjob::cron_job(json!({ "timeZone": "Asia/Tokyo", "concurrencyPolicy": "Forbid" }))).await?;
    cronjob::until_reported(&cluster, "UnknownTimeZone").await?;
    cluster.advance(Duration::from_secs(600)).await;
    expect_eq("Jobs", &cronjob::names(&cluster).await?.len(), &0)?;
    cluster.expect_quiet(crate::LONG).await?;
    cronjob::patch(&cluster, json!({ "timeZone": "Asia/Kolkata" })).await?;
    cronjob::until_jobs(&cluster, 1).await?;
    manager.stop().await?;
    cluster.stop().await
}

/// An impossible schedule that is changed to a possible one is started, without a restart.
#[tokio::test(start_paused = true)]
async fn a_schedule_that_becomes_possible_is_started() -> Result<(), Failure> {
    let cluster = cronjob::cluster().start().await?;
    cluster.create(cronjob::cron_job(json!({ "schedule": "30 2 30 2 *" }))).await?;
    cronjob::until_reported(&cluster, "InvalidSchedule").await?;
    cluster.expect_quiet(crate::LONG).await?;
    cronjob::patch(&cluster, json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid" })).await?;
    // A new schedule begins with its next time.
    cluster.advance(Duration::from_secs(61)).await;
    cronjob::until_jobs(&cluster, 1).await?;
    cronjob::suspend(&cluster).await?;
    cluster.stop().await
}

/// A Job, a ReplicaSet, a StatefulSet and a DaemonSet that select the same pods: each has its own, and none takes or deletes
/// another's. An orphan goes to one of them.
#[tokio::test(start_paused = true)]
async fn workloads_that_select_the_same_pods_leave_each_other_alone() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(WORKLOADS).nodes(2).start().await?;
    let labels = json!({ "app": "web" });
    let metadata =
        json!({ "metadata": { "labels": labels, "annotations": { "nodes.steersman.dev/run-time": "10h" } } });
    let spec = json!({ "selector": { "matchLabels": labels }, "template": metadata });
    let all = |kind: serde_json::Value| objects::merged(json!({ "spec": spec }), kind);
    let job = objects::job("sums").with(all(json!({ "spec": { "manualSelector": true, "parallelism": 2 } })));
    let job = cluster.create(job).await?;
    let set = cluster.create(objects::replica_set("web").replicas(2)).await?;
    let stateful = cluster.create(statefulset::set(2, json!({})).with(all(json!({})))).await?;
    let daemon = cluster.create(daemonset::set(json!({})).with(all(json!({})))).await?;
    let uids = [job.metadata.uid, set.metadata.uid, stateful.metadata.uid, daemon.metadata.uid];
    let counts = async || {
        let pods = cluster.api::<Pod>().list(&ListParams::default()).await?.items;
        let of = |uid: &Option<String>| {
            let owns =
                |pod: &&Pod| pod.metadata.owner_references.iter().flatten().any(|it| Some(&it.uid) == uid.as_ref());
            pods.iter().filter(owns).count()
        };
        Ok(uids.iter().map(of).collect::<Vec<_>>())
    };
    cluster.until_eq("each has its own pods", &counts, vec![2; 4]).await?;
    cluster.settle().await?;
    let names = async || -> Result<BTreeSet<String>, Failure> {
        Ok(cluster.api::<Pod>().list(&ListParams::default()).await?.items.iter().map(job::name).collect())
    };
    let before = names().await?;
    let orphan = objects::pod("orphan").app("web").with(json!({ "spec": { "restartPolicy": "Never" } }));
    cluster.create(orphan).await?;
    let owners = async || {
        let orphan = cluster.api::<Pod>().get_opt("orphan").await?;
        Ok(orphan.map(|pod| pod.metadata.owner_references.map_or(0, |owners| owners.len())))
    };
    let is_settled = |owners: &Option<usize>| *owners == Some(1) || owners.is_none();
    cluster.until_right("one of them has it", owners, is_settled).await?;
    cluster.settle().await?;
    cluster.until_eq("each has its own pods again", &counts, vec![2; 4]).await?;
    let gone: Vec<_> = before.difference(&names().await?).cloned().collect();
    expect(gone.len() <= 1, "the orphan, or one pod in its place, was too many", &gone)?;
    quiet(cluster).await
}

/// Pods that somebody's finalizer holds after they have ended: a Job and a DaemonSet replace theirs, a StatefulSet waits for
/// the name.
#[tokio::test(start_paused = true)]
async fn workloads_wait_for_pods_that_a_finalizer_holds() -> Result<(), Failure> {
    let cluster = TestCluster::builder().controllers(WORKLOADS).nodes(1).start().await?;
    let long = json!({ "metadata": { "annotations": { "nodes.steersman.dev/run-time": "10h" } } });
    let made = cluster.create(sums(json!({ "template": long }))).await?;
    let stateful = cluster.create(statefulset::set(1, json!({}))).await?;
    let daemon = cluster.create(daemonset::set(json!({}))).await?;
    let first = cluster.pods_of(&made).until_count(1).await?.remove(0);
    let of_set = cluster.pods_of(&stateful).until_count(1).await?.remove(0);
    let of_daemon = cluster.pods_of(&daemon).until_count(1).await?.remove(0);
    let held = [&first, &of_set, &of_daemon].map(job::name);
    let pods = cluster.api::<Pod>();
    for pod in &held {
        let kept = pods.get(pod).await?.metadata.finalizers.unwrap_or_default();
        let finalizers: Vec<_> = kept.into_iter().chain([HELD.to_owned()]).collect();
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        pods.patch(pod, &PatchParams::default(), &patch).await?;
        pods.delete(pod, &DeleteParams::default()).await?;
    }
    cluster.settle().await?;
    // Pods that are terminating are not among these.
    let replaced = async || Ok(cluster.pods_of(&made).list().await?.len());
    cluster.until_eq("the Job has another pod", replaced, 1).await?;
    expect_eq("pods of the StatefulSet", &cluster.pods_of(&stateful).list().await?.len(), &0)?;
    let replaced = async || Ok(cluster.pods_of(&daemon).list().await?.len());
    cluster.until_eq("the DaemonSet has another pod", replaced, 1).await?;
    cluster.settle().await?;
    cluster.expect_quiet(crate::LONG).await?;
    for pod in &held {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        pods.patch(pod, &PatchParams::default(), &patch).await?;
    }
    let replaced = async || Ok(cluster.pods_of(&stateful).list().await?.len());
    cluster.until_eq("the StatefulSet has a new pod", replaced, 1).await?;
    let gone = async || Ok(pods.get_opt(&held[0]).await?.is_none());
    cluster.until_eq("the Job's first pod is gone", gone, true).await?;
    cluster.stop().await
}

/// All pods have ended well but one, which a finalizer holds: the end is announced, and comes when the pod is gone.
#[tokio::test(start_paused = true)]
async fn a_job_ends_when_the_last_terminating_pod_is_gone() -> Result<(), Failure> {
    let cluster = job::cluster().start().await?;
    let made = cluster.create(sums(json!({ "podReplacementPolicy": "TerminatingOrFailed" }))).await?;
    let first = active(&cluster, &made, 1).await?.remove(0);
    let pods = cluster.api::<Pod>();
    let name = job::name(&first);
    let finalizers = json!({ "metadata": { "finalizers": ["batch.kubernetes.io/job-tracking", HELD] } });
    pods.patch(&name, &PatchParams::default(), &Patch::Merge(finalizers)).await?;
    pods.delete(&name, &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(30)).await;
    let second = active(&cluster, &made, 1).await?.remove(0);
    exit(&cluster, &second, 0).await?;
    until_conditions(&cluster, &COMPLETE[..1]).await?;
    cluster.advance(Duration::from_secs(600)).await;
    until_conditions(&cluster, &COMPLETE[..1]).await?;
    expect_eq("terminating", &status(&cluster).await?.terminating, &Some(1))?;
    pods.patch(&name, &PatchParams::default(), &Patch::Merge(json!({ "metadata": { "finalizers": null } }))).await?;
    until_conditions(&cluster, &COMPLETE).await?;
    quiet(cluster).await
}

/// A hundred thousand completions, of which three are left: a few writes, and a status of a few bytes.
#[tokio::test(start_paused = true)]
async fn the_last_of_a_hundred_thousand_completions_cost_as_much_as_the_first() -> Result<(), Failure> {
    let cluster = job::cluster().start().await?;
    let spec = json!({ "completions": 100_000, "parallelism": 3, "completionMode": "Indexed", "suspend": true });
    let made = cluster.create(sums(spec)).await?;
    cluster.settle().await?;
    let done = json!({ "status": { "completedIndexes": "0-99996", "succeeded": 99_997 } });
    cluster.api::<Job>().patch_status("sums", &PatchParams::default(), &Patch::Merge(done)).await?;
    job::patch(&cluster, json!({ "suspend": false })).await?;
    let pods = active(&cluster, &made, 3).await?;
    let indexes: Vec<_> = pods.iter().map(index_of).collect();
    expect_eq("the indexes that are left", &indexes, &vec![Some(99_997), Some(99_998), Some(99_999)])?;
    for pod in &pods {
        exit(&cluster, pod, 0).await?;
    }
    until_conditions(&cluster, &["Suspended JobResumed", COMPLETE[0], COMPLETE[1]]).await?;
    let status = status(&cluster).await?;
    expect_eq(
        "the counts",
        &(status.succeeded, status.completed_indexes.as_deref()),
        &(Some(100_000), Some("0-99999")),
    )?;
    expect_eq("pods that were created", &cluster.done(Verb::Create, "pods"), &3)?;
    quiet(cluster).await
}
