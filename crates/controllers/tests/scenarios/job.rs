//! What a Job promises.

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, LONG_AGO, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    pods_run_until_enough_have_succeeded on cluster,
    each_index_has_a_pod_that_knows_it on cluster,
    failures_beyond_the_limit_fail_the_job on cluster,
    an_index_fails_alone_and_the_others_go_on on cluster,
    an_exit_code_can_fail_the_job_and_a_disruption_can_be_ignored on cluster,
    some_indexes_can_be_enough on cluster,
    a_suspended_job_has_no_pods_until_it_is_resumed on cluster,
    a_job_ends_at_its_deadline on cluster,
    an_indexed_job_can_be_scaled_with_its_completions on cluster,
    a_pod_is_replaced_only_after_its_end_if_the_policy_says_so on cluster,
    pods_of_a_deleted_job_lose_their_finalizer on cluster,
    a_finalizer_without_a_job_is_removed on cluster,
    a_job_of_another_controller_is_left_alone on cluster,
    an_orphan_is_adopted_with_a_finalizer_and_released_without on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::JOB])
}

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Returns a Job with this in its spec.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn job(spec: Value) -> Job {
    objects::job("sums").with(json!({ "spec": spec }))
}

/// The classic story: pods come two at a time, and when three have succeeded, the Job is complete.
pub(crate) async fn pods_run_until_enough_have_succeeded(cluster: &TestCluster) -> Result<(), Failure> {
    let job = cluster.create(job(json!({ "completions": 3, "parallelism": 2 }))).await?;
    let first = active(cluster, &job, 2).await?;
    expect(first.iter().all(is_tracked), "every pod has the finalizer", &first)?;
    cluster.until_eq("two are active", || count(cluster, |status| status.active), Some(2)).await?;
    exit(cluster, &first[0], 0).await?;
    exit(cluster, &first[1], 0).await?;
    let last = active(cluster, &job, 1).await?;
    let counts = || async {
        let status = status(cluster).await?;
        Ok((status.succeeded, status.failed, status.active))
    };
    cluster.until_eq("two have succeeded", counts, (Some(2), None, Some(1))).await?;
    exit(cluster, &last[0], 0).await?;
    until_conditions(cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await?;
    let status = status(cluster).await?;
    expect_eq("succeeded, failed, active", &(status.succeeded, status.failed, status.active), &(Some(3), None, None))?;
    expect(status.completion_time.is_some() && status.start_time.is_some(), "it has its times", &status)?;
    expect(!pods(cluster).await?.iter().any(is_tracked), "no pod has the finalizer", &"one does")?;
    let reported = || async {
        let mut reported = events(cluster).await?;
        reported.retain(|reason| reason != "SuccessfulCreate");
        Ok(reported)
    };
    cluster.until_eq("the events", reported, vec!["Completed".to_owned()]).await
}

/// The index is in the name, an annotation, a label, the hostname and the environment.
pub(crate) async fn each_index_has_a_pod_that_knows_it(cluster: &TestCluster) -> Result<(), Failure> {
    let spec = json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed" });
    let job = cluster.create(job(spec)).await?;
    let pods = active(cluster, &job, 3).await?;
    for (index, pod) in pods.iter().enumerate() {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(INDEX)).cloned();
        expect(name.starts_with(&format!("sums-{index}-")), "the index in the name", &name)?;
        expect_eq("annotation and label", &(index_of(pod), label), &(Some(index), Some(index.to_string())))?;
        expect_eq("the hostname", &spec.hostname, &Some(format!("sums-{index}")))?;
        let variable = spec.containers[0].env.iter().flatten().find(|it| it.name == "JOB_COMPLETION_INDEX");
        expect(variable.is_some(), "the variable", &spec.containers[0].env)?;
    }
    exit(cluster, &pods[0], 0).await?;
    exit(cluster, &pods[2], 0).await?;
    let indexes = || async { Ok(status(cluster).await?.completed_indexes) };
    cluster.until_eq("two indexes have succeeded", indexes, Some("0,2".to_owned())).await?;
    exit(cluster, &pods[1], 1).await?;
    let again = || async { active(cluster, &job, 1).await.map(|pods| index_of(&pods[0])) };
    cluster.until_eq("the failed index has another pod", again, Some(1)).await?;
    exit(cluster, &active(cluster, &job, 1).await?[0], 0).await?;
    until_conditions(cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await?;
    let status = status(cluster).await?;
    let counts = (status.succeeded, status.failed, status.completed_indexes);
    expect_eq("the counts", &counts, &(Some(3), Some(1), Some("0-2".to_owned())))
}

/// Failed pods are replaced until the limit is exceeded.
pub(crate) async fn failures_beyond_the_limit_fail_the_job(cluster: &TestCluster) -> Result<(), Failure> {
    let job = cluster.create(job(json!({ "backoffLimit": 1 }))).await?;
    for _ in 0..2 {
        exit(cluster, &active(cluster, &job, 1).await?[0], 1).await?;
    }
    until_conditions(cluster, &["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]).await?;
    let status = status(cluster).await?;
    expect_eq("succeeded, failed, active", &(status.succeeded, status.failed, status.active), &(None, Some(2), None))?;
    expect(status.completion_time.is_none(), "it has not completed", &status)?;
    let reported = || async { Ok(events(cluster).await?.contains(&"BackoffLimitExceeded".to_owned())) };
    cluster.until_eq("an event reports it", reported, true).await
}

/// With a limit per index, an index that fails too often is given up, and the Job fails when all others are through.
pub(crate) async fn an_index_fails_alone_and_the_others_go_on(cluster: &TestCluster) -> Result<(), Failure> {
    let spec = json!({ "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1 });
    let job = cluster.create(job(spec)).await?;
    let first = active(cluster, &job, 2).await?;
    exit(cluster, &first[0], 1).await?;
    let failures = |pod: &Pod| {
        let notes = pod.metadata.annotations.clone().unwrap_or_default();
        notes.get("batch.kubernetes.io/job-index-failure-count").cloned()
    };
    let is_second = |pod: &&Pod| index_of(pod) == Some(0) && failures(pod).as_deref() == Some("1");
    let look = || async { active_now(cluster).await };
    let pods =
        cluster.until_right("another pod of index 0", look, |pods| pods.iter().any(|pod| is_second(&pod))).await?;
    exit(cluster, pods.iter().find(is_second).unwrap_or(&pods[0]), 1).await?;
    let failed = || async { Ok(status(cluster).await?.failed_indexes) };
    cluster.until_eq("index 0 has failed", failed, Some("0".to_owned())).await?;
    exit(cluster, &first[1], 0).await?;
    until_conditions(cluster, &["FailureTarget FailedIndexes", "Failed FailedIndexes"]).await?;
    let status = status(cluster).await?;
    let counts = (status.succeeded, status.failed, status.completed_indexes);
    expect_eq("the counts", &counts, &(Some(1), Some(2), Some("1".to_owned())))
}

/// A failure policy: a disruption does not count, an exit code ends it all.
pub(crate) async fn an_exit_code_can_fail_the_job_and_a_disruption_can_be_ignored(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let rules = json!([
        { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
        { "action": "FailJob", "onExitCodes": { "operator": "In", "values": [42] } },
    ]);
    let spec = json!({ "completions": 2, "parallelism": 2, "backoffLimit": 0, "podFailurePolicy": { "rules": rules } });
    let job = cluster.create(job(spec)).await?;
    let pods = active(cluster, &job, 2).await?;
    let disrupted = json!({ "type": "DisruptionTarget", "status": "True", "lastTransitionTime": LONG_AGO });
    patch_status(cluster, &pods[0], json!({ "conditions": [disrupted] })).await?;
    exit(cluster, &pods[0], 137).await?;
    let pods = active(cluster, &job, 2).await?;
    expect_eq("nothing has failed", &status(cluster).await?.failed, &None)?;
    exit(cluster, &pods[0], 42).await?;
    until_conditions(cluster, &["FailureTarget PodFailurePolicy", "Failed PodFailurePolicy"]).await?;
    let conditions = status(cluster).await?.conditions.unwrap_or_default();
    let text = conditions[0].message.clone().unwrap_or_default();
    expect(text.contains("failed with exit code 42 matching FailJob rule at index 1"), "the message", &text)?;
    // The other pod ends with the Job, and counts as failed.
    expect_eq("failed", &status(cluster).await?.failed, &Some(2))
}

/// A success policy: the leader's index is enough, and the others end.
pub(crate) async fn some_indexes_can_be_enough(cluster: &TestCluster) -> Result<(), Failure> {
    let policy = json!({ "rules": [{ "succeededIndexes": "0" }] });
    let spec = json!({ "completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": policy });
    let job = cluster.create(job(spec)).await?;
    let pods = active(cluster, &job, 3).await?;
    exit(cluster, &pods[0], 0).await?;
    until_conditions(cluster, &["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]).await?;
    let status = status(cluster).await?;
    let counts = (status.succeeded, status.failed, status.completed_indexes);
    expect_eq("the counts", &counts, &(Some(1), None, Some("0".to_owned())))?;
    expect_eq("the other pods are gone", &active_now(cluster).await?.len(), &0)
}

/// Suspending deletes the pods, and nothing counts as failed.
pub(crate) async fn a_suspended_job_has_no_pods_until_it_is_resumed(cluster: &TestCluster) -> Result<(), Failure> {
    let job = cluster.create(job(json!({ "completions": 2, "parallelism": 2 }))).await?;
    active(cluster, &job, 2).await?;
    patch(cluster, json!({ "suspend": true })).await?;
    active(cluster, &job, 0).await?;
    until_conditions(cluster, &["Suspended JobSuspended"]).await?;
    let look = || async {
        let status = status(cluster).await?;
        Ok((status.active, status.failed, status.start_time.is_some()))
    };
    cluster.until_eq("it is at rest", look, (None, None, false)).await?;
    patch(cluster, json!({ "suspend": false })).await?;
    let pods = active(cluster, &job, 2).await?;
    cluster.until_eq("it runs again", look, (Some(2), None, true)).await?;
    for pod in &pods {
        exit(cluster, pod, 0).await?;
    }
    let both = ["Suspended JobResumed", "SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"];
    until_conditions(cluster, &both).await
}

/// The controller wakes up for the deadline, though nothing happens then.
pub(crate) async fn a_job_ends_at_its_deadline(cluster: &TestCluster) -> Result<(), Failure> {
    let job = cluster.create(job(json!({ "activeDeadlineSeconds": 2 }))).await?;
    active(cluster, &job, 1).await?;
    until_conditions(cluster, &["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]).await?;
    expect_eq("its pods are gone", &active_now(cluster).await?.len(), &0)
}

/// Completions and parallelism of an indexed Job can be changed together: what is not wanted any more does not count.
pub(crate) async fn an_indexed_job_can_be_scaled_with_its_completions(cluster: &TestCluster) -> Result<(), Failure> {
    let spec = |count: i32| json!({ "completions": count, "parallelism": count, "completionMode": "Indexed" });
    let job = cluster.create(job(spec(3))).await?;
    let pods = active(cluster, &job, 3).await?;
    exit(cluster, &pods[2], 0).await?;
    let counts = || async {
        let status = status(cluster).await?;
        Ok((status.completed_indexes.unwrap_or_default(), status.succeeded, status.failed))
    };
    cluster.until_eq("index 2 has succeeded", counts, ("2".to_owned(), Some(1), None)).await?;
    patch(cluster, json!({ "completions": 1, "parallelism": 1 })).await?;
    let left = || async { active_now(cluster).await.map(|pods| pods.iter().map(index_of).collect::<Vec<_>>()) };
    cluster.until_eq("only index 0 runs", left, vec![Some(0)]).await?;
    cluster.until_eq("nothing has succeeded", counts, (String::new(), None, None)).await?;
    patch(cluster, json!({ "completions": 2, "parallelism": 2 })).await?;
    cluster.until_eq("index 1 runs again", left, vec![Some(0), Some(1)]).await?;
    for pod in active_now(cluster).await? {
        exit(cluster, &pod, 0).await?;
    }
    until_conditions(cluster, &["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]).await?;
    cluster.until_eq("both have succeeded", counts, ("0,1".to_owned(), Some(2), None)).await
}

/// With `podReplacementPolicy: Failed`, a terminating pod holds its place until it has ended.
pub(crate) async fn a_pod_is_replaced_only_after_its_end_if_the_policy_says_so(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let job = cluster.create(job(json!({ "podReplacementPolicy": "Failed" }))).await?;
    let pod = active(cluster, &job, 1).await?.remove(0);
    cluster.delete::<Pod>(&name(&pod)).await?;
    let look = || async {
        let status = status(cluster).await?;
        Ok((status.active, status.terminating, pods(cluster).await?.len()))
    };
    cluster.until_eq("it terminates, and there is no other", look, (None, Some(1), 1)).await?;
    exit(cluster, &pod, 1).await?;
    active(cluster, &job, 1).await?;
    let look = || async {
        let status = status(cluster).await?;
        Ok((status.active, status.terminating, status.failed))
    };
    cluster.until_eq("it has failed, and another one runs", look, (Some(1), Some(0), Some(1))).await
}

/// The Job is gone before it has counted its pods: they do not wait for it for ever.
pub(crate) async fn pods_of_a_deleted_job_lose_their_finalizer(cluster: &TestCluster) -> Result<(), Failure> {
    let job = cluster.create(job(json!({ "completions": 2, "parallelism": 2 }))).await?;
    let left = active(cluster, &job, 2).await?;
    cluster.api::<Job>().delete("sums", &DeleteParams::background()).await?;
    cluster.until_gone::<Job>("sums").await?;
    for pod in &left {
        cluster.api::<Pod>().delete(&name(pod), &DeleteParams::background()).await?;
    }
    let left = || async { Ok(pods(cluster).await?.len()) };
    cluster.until_eq("no pod is left", left, 0).await
}

/// A pod with the finalizer that belongs to nobody.
pub(crate) async fn a_finalizer_without_a_job_is_removed(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(objects::pod("stray").finalizer(FINALIZER)).await?;
    let look = || async { Ok(is_tracked(&cluster.api::<Pod>().get("stray").await?)) };
    cluster.until_eq("the finalizer is removed", look, false).await
}

/// `spec.managedBy` names another controller.
pub(crate) async fn a_job_of_another_controller_is_left_alone(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(job(json!({ "managedBy": "example.dev/queue" }))).await?;
    let other = cluster.create(objects::job("other")).await?;
    cluster.pods_of(&other).until_count(1).await?;
    let job = cluster.api::<Job>().get("sums").await?;
    expect_eq("its pods", &cluster.pods_of(&job).list().await?.len(), &0)?;
    expect(job.status.is_none_or(|status| status.start_time.is_none()), "it is not started", &"it is")
}

/// A pod that matches a selector of the user's own is adopted, and gets the finalizer; one that does not match any more
/// loses both.
pub(crate) async fn an_orphan_is_adopted_with_a_finalizer_and_released_without(
    cluster: &TestCluster,
) -> Result<(), Failure> {
    let own = json!({ "app": "sums" });
    cluster.create(objects::pod("orphan").app("sums").with(json!({ "spec": { "restartPolicy": "Never" } }))).await?;
    let spec = json!({
        "manualSelector": true, "selector": { "matchLabels": own }, "template": { "metadata": { "labels": own } },
        "completions": 2, "parallelism": 2,
    });
    let job = cluster.create(job(spec)).await?;
    let pods = active(cluster, &job, 2).await?;
    let orphan = pods.iter().find(|pod| name(pod) == "orphan");
    expect(orphan.is_some_and(is_tracked), "the orphan is one of the two, with the finalizer", &orphan)?;
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": "other" } } }));
    cluster.api::<Pod>().patch("orphan", &PatchParams::default(), &patch).await?;
    let look = || async {
        let orphan = cluster.api::<Pod>().get("orphan").await?;
        Ok((is_tracked(&orphan), orphan.metadata.owner_references.map_or(0, |owners| owners.len())))
    };
    cluster.until_eq("it is released", look, (false, 0)).await?;
    cluster.pods_of(&job).until_count(2).await.map(drop)
}

pub(crate) async fn status(cluster: &TestCluster) -> Result<JobStatus, Failure> {
    Ok(cluster.api::<Job>().get("sums").await?.status.unwrap_or_default())
}

async fn count<T>(cluster: &TestCluster, field: impl Fn(&JobStatus) -> T) -> Result<T, Failure> {
    Ok(field(&status(cluster).await?))
}

/// Waits for these conditions: type and reason, in this order.
pub(crate) async fn until_conditions(cluster: &TestCluster, want: &[&str]) -> Result<(), Failure> {
    let look = || async {
        let conditions = status(cluster).await?.conditions.unwrap_or_default();
        let text =
            |it: k8s_openapi::api::batch::v1::JobCondition| format!("{} {}", it.type_, it.reason.unwrap_or_default());
        Ok(conditions.into_iter().map(text).collect::<Vec<_>>())
    };
    let want: Vec<String> = want.iter().map(|&text| text.to_owned()).collect();
    cluster.until_eq("the conditions", look, want).await
}

pub(crate) async fn patch(cluster: &TestCluster, spec: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": spec }));
    cluster.api::<Job>().patch("sums", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Ends a pod as a kubelet would: its container has exited with this code, a long time ago, so that nobody waits for the
/// back-off.
pub(crate) async fn exit(cluster: &TestCluster, pod: &Pod, code: i32) -> Result<(), Failure> {
    let terminated = json!({ "exitCode": code, "finishedAt": LONG_AGO, "startedAt": LONG_AGO });
    let container = json!({
        "name": "main", "image": objects::IMAGE, "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": terminated },
    });
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    patch_status(cluster, pod, json!({ "phase": phase, "containerStatuses": [container] })).await
}

async fn patch_status(cluster: &TestCluster, pod: &Pod, status: Value) -> Result<(), Failure> {
    let patch = Patch::Strategic(json!({ "status": status }));
    cluster.api::<Pod>().patch_status(&name(pod), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// All pods of the test.
pub(crate) async fn pods(cluster: &TestCluster) -> Result<Vec<Pod>, Failure> {
    Ok(cluster.api::<Pod>().list(&ListParams::default()).await?.items)
}

/// The pods that run, by index and name.
pub(crate) async fn active_now(cluster: &TestCluster) -> Result<Vec<Pod>, Failure> {
    let mut pods = pods(cluster).await?;
    let ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    pods.retain(|pod| !ended(pod) && pod.metadata.deletion_timestamp.is_none());
    pods.sort_by_key(|pod| (index_of(pod), name(pod)));
    Ok(pods)
}

/// Waits for this number of active pods of a Job.
pub(crate) async fn active(cluster: &TestCluster, job: &Job, want: usize) -> Result<Vec<Pod>, Failure> {
    let uid = job.metadata.uid.clone();
    let own = |pods: Vec<Pod>| {
        let is_own =
            |pod: &Pod| pod.metadata.owner_references.iter().flatten().any(|owner| Some(&owner.uid) == uid.as_ref());
        pods.into_iter().filter(is_own).collect::<Vec<Pod>>()
    };
    let look = || async {
        let pods = own(active_now(cluster).await?);
        let names: Vec<String> = pods.iter().map(name).collect();
        Ok(if pods.len() == want { Ok(pods) } else { Err(format!("{names:?}")) })
    };
    cluster.until(&format!("{want} active pods"), look).await
}

pub(crate) fn index_of(pod: &Pod) -> Option<usize> {
    pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok()
}

pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

pub(crate) fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

/// The reasons of the events about the Job.
pub(crate) async fn events(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let about = ListParams::default().fields("involvedObject.kind=Job,involvedObject.name=sums");
    let events = cluster.api::<Event>().list(&about).await?.items;
    Ok(events.into_iter().filter_map(|event| event.reason).collect())
}
