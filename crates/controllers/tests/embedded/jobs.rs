//! Jobs under faults, and on simulated nodes.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use steersman_testing::objects::ObjectBuilder as _;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect, expect_eq};

use crate::quiet;
use crate::scenarios::job::{self as scenarios, active, active_now, exit, index_of, job, pods, status};
use crate::scenarios::support::controllers;
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

const CONTROLLERS: &[controllers::Controller] = &[controllers::JOB];

/// Counts and conditions of the Job, without times, and what is left of its pods.
async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let status = status(cluster).await?;
    let conditions = status.conditions.clone().unwrap_or_default();
    let conditions: Vec<_> =
        conditions.iter().map(|it| format!("{} {} {:?}", it.type_, it.status, it.reason)).collect();
    let status = JobStatus { conditions: None, start_time: None, completion_time: None, ..status };
    let pods = pods(cluster).await?;
    let tracked = pods.iter().filter(|pod| scenarios::is_tracked(pod)).count();
    Ok(vec![format!("{status:?}"), format!("{conditions:?}"), format!("{tracked} pods with the finalizer")])
}

/// Ends the running pods, the first with this code, the others well.
async fn end_all(scene: &Scene<'_>, first: i32) -> Result<(), Failure> {
    for (at, pod) in active_now(scene.cluster()).await?.iter().enumerate() {
        exit(scene.cluster(), pod, if at == 0 { first } else { 0 }).await?;
    }
    scene.rest().await
}

async fn the_life_of(scene: &Scene<'_>, spec: Value) -> Result<(), Failure> {
    scene.cluster().create(job(spec)).await?;
    scene.rest().await?;
    for first in [1, 0, 0] {
        end_all(scene, first).await?;
    }
    scenarios::until_conditions(
        scene.cluster(),
        &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"],
    )
    .await
}

/// The manager dies after each of its writes, in turn: between the note of a pod and the loss of its finalizer, between that
/// and the count. The counts are the same every time.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_job_counts_no_pod_twice() -> Result<(), Failure> {
    for spec in [
        json!({ "completions": 3, "parallelism": 2 }),
        json!({ "completions": 3, "parallelism": 2, "completionMode": "Indexed" }),
        json!({ "completions": 3, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 3 }),
    ] {
        let story = async |scene: &Scene<'_>| the_life_of(scene, spec.clone()).await;
        let crashes = crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
        assert!(crashes > 10, "the story takes {crashes} writes");
    }
    Ok(())
}

/// A Job that fails, with pods that still run.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_failing_job_changes_nothing() -> Result<(), Failure> {
    let story = async |scene: &Scene<'_>| {
        let cluster = scene.cluster();
        cluster.create(job(json!({ "completions": 4, "parallelism": 3, "backoffLimit": 0 }))).await?;
        scene.rest().await?;
        let pods = active_now(cluster).await?;
        exit(cluster, &pods[0], 0).await?;
        exit(cluster, &pods[1], 1).await?;
        scene.rest().await
    };
    crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    Ok(())
}

/// Lost replies and lagging caches: no pod too many, no index twice, nothing counted twice.
#[tokio::test(start_paused = true)]
async fn lost_replies_and_lagging_caches_count_nothing_twice() -> Result<(), Failure> {
    for lost in 1..=3 {
        let faults = Faults::default();
        faults.on(Verb::Watch, "pods").happens(Fault::Lag(Duration::from_secs(3)));
        faults.on(Verb::Watch, "jobs").happens(Fault::Lag(Duration::from_secs(5)));
        faults.on(Verb::Create, "pods").nth(lost).happens(Fault::LoseReply);
        faults.on(Verb::Update, "jobs/status").nth(lost).happens(Fault::LoseReply);
        faults.on(Verb::Patch, "pods").nth(lost).happens(Fault::LoseReply);
        let cluster = scenarios::cluster().faults(&faults).start().await?;
        let spec = json!({ "completions": 6, "parallelism": 3, "completionMode": "Indexed" });
        cluster.create(job(spec)).await?;
        let mut has_failed = false;
        for _ in 0..12 {
            let running = active_now(&cluster).await?;
            let mut indexes: Vec<_> = running.iter().map(index_of).collect();
            indexes.dedup();
            expect_eq("one pod for each index", &indexes.len(), &running.len())?;
            expect(running.len() <= 3, "no more pods than may run", &running.len())?;
            let done = status(&cluster).await?.completed_indexes.unwrap_or_default();
            for pod in &running {
                let index = index_of(pod).unwrap_or_default().to_string();
                expect(!done.split(',').any(|it| it == index), "no pod for an index that has succeeded", &done)?;
                let fails = index == "1" && !has_failed;
                has_failed |= fails;
                exit(&cluster, pod, i32::from(fails)).await?;
            }
            cluster.advance(Duration::from_secs(20)).await;
        }
        let want = ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"];
        scenarios::until_conditions(&cluster, &want).await?;
        let end = status(&cluster).await?;
        let counts = (end.succeeded, end.failed, end.completed_indexes.as_deref());
        expect_eq("the counts", &counts, &(Some(6), Some(1), Some("0-5")))?;
        quiet(cluster).await?;
    }
    Ok(())
}

/// Failed pods are replaced after ten seconds, then after twenty.
#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_after_growing_waits() -> Result<(), Failure> {
    let cluster = scenarios::cluster().nodes(1).start().await?;
    let failing = json!({ "metadata": { "annotations": { "nodes.steersman.dev/exit-code": "1" } } });
    cluster.create(job(json!({ "backoffLimit": 3, "template": failing }))).await?;
    cluster.advance(Duration::from_secs(60)).await;
    scenarios::until_conditions(&cluster, &["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"])
        .await?;
    let mut times: Vec<i64> = pods(&cluster)
        .await?
        .iter()
        .filter_map(|pod| Some(pod.metadata.creation_timestamp.as_ref()?.0.as_second()))
        .collect();
    times.sort_unstable();
    let waits: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    expect_eq("the number of pods", &times.len(), &4)?;
    for (wait, least) in waits.iter().zip([10, 20, 40]) {
        expect((least..least + 5).contains(wait), "each wait is twice as long", &waits)?;
    }
    quiet(cluster).await
}

/// On simulated nodes a Job runs by itself; a status write counts many pods.
#[tokio::test(start_paused = true)]
async fn many_completions_take_few_status_writes() -> Result<(), Failure> {
    let cluster = scenarios::cluster().nodes(20).start().await?;
    let quick = json!({ "metadata": { "annotations": { "nodes.steersman.dev/run-time": "1s" } } });
    let spec = json!({ "completions": 1000, "parallelism": 200, "completionMode": "Indexed", "template": quick });
    cluster.create(job(spec)).await?;
    let look = || async { Ok(status(&cluster).await?.completed_indexes) };
    cluster.until_eq("all have succeeded", look, Some("0-999".to_owned())).await?;
    scenarios::until_conditions(&cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"])
        .await?;
    let writes = cluster.done(Verb::Update, "jobs/status");
    expect(writes <= 60, "few status writes for a thousand completions", &writes)?;
    let failed = status(&cluster).await?.failed;
    expect_eq("none has failed", &failed, &None)?;
    quiet(cluster).await
}

/// A quota that was exhausted for hours: pods are created soon after it is raised (upstream 136853).
#[tokio::test(start_paused = true)]
async fn issue_136853_pods_are_created_soon_after_the_server_takes_them_again() -> Result<(), Failure> {
    let cluster = scenarios::cluster().start().await?;
    crate::refuse_pods(&cluster, true).await?;
    let job = cluster.create(job(json!({}))).await?;
    cluster.advance(Duration::from_secs(3 * 3600)).await;
    expect_eq("no pod yet", &pods(&cluster).await?.len(), &0)?;
    crate::refuse_pods(&cluster, false).await?;
    cluster.advance(Duration::from_secs(61)).await;
    expect_eq("a pod within a minute", &active(&cluster, &job, 1).await?.len(), &1)?;
    cluster.stop().await
}

/// A Job that is deleted in the foreground, with its pods: the finalizers do not keep them.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_with_its_pods_is_gone() -> Result<(), Failure> {
    let builder = TestCluster::builder().controllers(&[controllers::JOB, controllers::GARBAGE_COLLECTOR]).nodes(1);
    for how in [DeleteParams::foreground(), DeleteParams::background()] {
        let cluster = builder.clone().start().await?;
        let job = cluster.create(job(json!({ "completions": 3, "parallelism": 3 })).annotation("a", "b")).await?;
        active(&cluster, &job, 3).await?;
        cluster.api::<Job>().delete("sums", &how).await?;
        cluster.until_gone::<Job>("sums").await?;
        let left = || async { Ok(pods(&cluster).await?.len()) };
        cluster.until_eq("no pod is left", left, 0).await?;
        cluster.stop().await?;
    }
    Ok(())
}
