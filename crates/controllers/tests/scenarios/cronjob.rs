//! What a CronJob promises.

use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use steersman_testing::objects::{self, ObjectBuilder as _};
use steersman_testing::{Builder, Failure, TestCluster, expect, expect_eq};

use crate::scenarios::support::controllers;

scenarios! {
    a_cron_job_that_is_due_starts_a_job on cluster,
    a_running_job_forbids_the_next_one on cluster,
    a_running_job_is_replaced_by_the_next_one on cluster,
    a_suspended_cron_job_starts_nothing on cluster,
    old_jobs_are_deleted on cluster,
    an_entry_whose_job_is_gone_is_removed on cluster,
    an_impossible_schedule_is_reported on cluster,
}

pub(crate) fn cluster() -> Builder {
    TestCluster::builder().controllers(&[controllers::CRON_JOB])
}

/// Returns a CronJob of every second, with this in its spec. Its Jobs are named by the minute: there is one in each.
#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn cron_job(spec: Value) -> CronJob {
    objects::cron_job("report").with(json!({ "spec": { "schedule": "@every 1s" } })).with(json!({ "spec": spec }))
}

/// The classic story: a Job comes, in the CronJob's name and for a time, and when it is complete, the CronJob knows.
pub(crate) async fn a_cron_job_that_is_due_starts_a_job(cluster: &TestCluster) -> Result<(), Failure> {
    let spec = json!({ "concurrencyPolicy": "Forbid", "timeZone": "Asia/Kolkata", "jobTemplate": { "metadata": { "labels": { "of": "report" } } } });
    let cron_job = cluster.create(cron_job(spec)).await?;
    let job = until_jobs(cluster, 1).await?.remove(0);
    let name = name(&job);
    let minutes: i64 = name.strip_prefix("report-").and_then(|minutes| minutes.parse().ok()).unwrap_or_default();
    let made = job.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()) / 60;
    expect((made - minutes).abs() <= 1, "the minutes since 1970 in its name", &name)?;
    let notes = job.metadata.annotations.clone().unwrap_or_default();
    let stamp = notes.get("batch.kubernetes.io/cronjob-scheduled-timestamp").cloned().unwrap_or_default();
    expect(stamp.ends_with("+05:30"), "the time for which it was made, in its zone", &stamp)?;
    let owner = job.metadata.owner_references.clone().unwrap_or_default();
    expect_eq("its owner", &owner.first().map(|owner| owner.uid.clone()), &cron_job.metadata.uid)?;
    let label = job.metadata.labels.as_ref().and_then(|labels| labels.get("of")).cloned();
    expect_eq("its label", &label.as_deref(), &Some("report"))?;
    suspend(cluster).await?;
    until_active(cluster, &[&name]).await?;
    end(cluster, &name, "Complete").await?;
    until_active(cluster, &[]).await?;
    let look = || async {
        let status = status(cluster).await?;
        Ok((status.last_schedule_time.is_some(), status.last_successful_time.is_some()))
    };
    cluster.until_eq("its times", look, (true, true)).await?;
    until_reported(cluster, "SuccessfulCreate").await?;
    until_reported(cluster, "SawCompletedJob").await
}

/// `Forbid`: while a Job runs, none is started. That it runs is known though the manager ended before it was listed.
pub(crate) async fn a_running_job_forbids_the_next_one(cluster: &TestCluster) -> Result<(), Failure> {
    with_a_forgotten_job(cluster, "Forbid").await?;
    until_reported(cluster, "JobAlreadyActive").await?;
    expect_eq("the Jobs", &names(cluster).await?, &vec!["report-1".to_owned()])?;
    suspend(cluster).await
}

/// `Replace`: a Job that still runs is deleted when the next one is due.
pub(crate) async fn a_running_job_is_replaced_by_the_next_one(cluster: &TestCluster) -> Result<(), Failure> {
    with_a_forgotten_job(cluster, "Replace").await?;
    let look = || async { names(cluster).await };
    let is_another = |names: &Vec<String>| names.len() == 1 && names[0] != "report-1";
    cluster.until_right("another Job in its place", look, is_another).await?;
    until_reported(cluster, "SuccessfulDelete").await?;
    suspend(cluster).await
}

/// A CronJob with a Job of an earlier minute that the controller made and did not list; it is listed now.
async fn with_a_forgotten_job(cluster: &TestCluster, policy: &str) -> Result<(), Failure> {
    let owner = cluster.create(cron_job(json!({ "suspend": true, "concurrencyPolicy": policy }))).await?;
    let stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp";
    let job = objects::job("report-1").annotation(stamp, "1970-01-01T00:01:00Z").owned_by(&owner);
    cluster.create(job).await?;
    until_active(cluster, &["report-1"]).await?;
    patch(cluster, json!({ "suspend": false })).await
}

/// `suspend`: nothing is started, and when it is over, it goes on.
pub(crate) async fn a_suspended_cron_job_starts_nothing(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(cron_job(json!({ "suspend": true }))).await?;
    cluster.advance(std::time::Duration::from_secs(3)).await;
    expect_eq("no Job", &names(cluster).await?, &Vec::<String>::new())?;
    patch(cluster, json!({ "suspend": false, "concurrencyPolicy": "Forbid" })).await?;
    until_jobs(cluster, 1).await?;
    suspend(cluster).await
}

/// The history is as long as the limits say.
pub(crate) async fn old_jobs_are_deleted(cluster: &TestCluster) -> Result<(), Failure> {
    let limits = json!({ "suspend": true, "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0 });
    let owner = cluster.create(cron_job(limits)).await?;
    for (name, condition) in [("old", "Complete"), ("bad", "Failed"), ("new", "Complete")] {
        cluster.create(objects::job(name).owned_by(&owner)).await?;
        end(cluster, name, condition).await?;
        // Their order is that of their starts.
        cluster.advance(std::time::Duration::from_secs(1)).await;
    }
    let look = || async { names(cluster).await };
    cluster.until_eq("the last success", look, vec!["new".to_owned()]).await
}

/// A Job of the list that somebody deleted.
pub(crate) async fn an_entry_whose_job_is_gone_is_removed(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(cron_job(json!({ "concurrencyPolicy": "Forbid" }))).await?;
    let name = name(&until_jobs(cluster, 1).await?[0]);
    suspend(cluster).await?;
    until_active(cluster, &[&name]).await?;
    cluster.api::<Job>().delete(&name, &DeleteParams::background()).await?;
    until_active(cluster, &[]).await?;
    until_reported(cluster, "MissingJob").await
}

/// There is no thirtieth of February: the CronJob says so, and nothing else happens.
pub(crate) async fn an_impossible_schedule_is_reported(cluster: &TestCluster) -> Result<(), Failure> {
    cluster.create(cron_job(json!({ "schedule": "30 2 30 2 *" }))).await?;
    until_reported(cluster, "InvalidSchedule").await?;
    expect_eq("no Job", &names(cluster).await?, &Vec::<String>::new())
}

pub(crate) async fn status(cluster: &TestCluster) -> Result<CronJobStatus, Failure> {
    Ok(cluster.api::<CronJob>().get("report").await?.status.unwrap_or_default())
}

pub(crate) async fn jobs(cluster: &TestCluster) -> Result<Vec<Job>, Failure> {
    let mut jobs = cluster.api::<Job>().list(&ListParams::default()).await?.items;
    jobs.retain(|job| job.metadata.deletion_timestamp.is_none());
    Ok(jobs)
}

pub(crate) async fn names(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    Ok(jobs(cluster).await?.iter().map(name).collect())
}

pub(crate) async fn until_jobs(cluster: &TestCluster, count: usize) -> Result<Vec<Job>, Failure> {
    let look = || async { jobs(cluster).await };
    cluster.until_right(&format!("{count} Jobs"), look, |jobs| jobs.len() == count).await
}

pub(crate) async fn until_active(cluster: &TestCluster, want: &[&str]) -> Result<(), Failure> {
    let look = || async {
        let active = status(cluster).await?.active.unwrap_or_default();
        Ok(active.into_iter().filter_map(|entry| entry.name).collect::<Vec<_>>())
    };
    let want: Vec<String> = want.iter().map(|&name| name.to_owned()).collect();
    cluster.until_eq("the list of running Jobs", look, want).await
}

pub(crate) async fn patch(cluster: &TestCluster, spec: Value) -> Result<(), Failure> {
    let patch = Patch::Merge(json!({ "spec": spec }));
    cluster.api::<CronJob>().patch("report", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Nothing more is started: the world comes to rest.
pub(crate) async fn suspend(cluster: &TestCluster) -> Result<(), Failure> {
    patch(cluster, json!({ "suspend": true })).await
}

/// Ends a Job as its controller would.
pub(crate) async fn end(cluster: &TestCluster, name: &str, condition: &str) -> Result<(), Failure> {
    let announced = if condition == "Complete" { "SuccessCriteriaMet" } else { "FailureTarget" };
    let of = |type_: &str| {
        let now = cluster.clock().now();
        json!({ "type": type_, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": "Test" })
    };
    let now = cluster.clock().now();
    let completion = if condition == "Complete" { json!(now) } else { json!(null) };
    let status =
        json!({ "conditions": [of(announced), of(condition)], "startTime": now, "completionTime": completion });
    let patch = Patch::Merge(json!({ "status": status }));
    cluster.api::<Job>().patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn name(job: &Job) -> String {
    job.metadata.name.clone().unwrap_or_default()
}

pub(crate) async fn until_reported(cluster: &TestCluster, reason: &str) -> Result<(), Failure> {
    let look = || async {
        let about = ListParams::default().fields("involvedObject.kind=CronJob,involvedObject.name=report");
        let events = cluster.api::<Event>().list(&about).await?.items;
        Ok(events.into_iter().filter_map(|event| event.reason).collect::<Vec<_>>())
    };
    let is_reported = |reasons: &Vec<String>| reasons.iter().any(|reported| reported == reason);
    cluster.until_right(&format!("an event {reason}"), look, is_reported).await.map(drop)
}
