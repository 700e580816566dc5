//! CronJobs under faults: a time is started once, whatever the caches show and the answers say.

use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::batch::v1::CronJob;
use serde_json::json;
use steersman_testing::{Failure, Fault, Faults, TestCluster, Verb, expect, expect_eq};

use crate::quiet;
use crate::scenarios::cronjob::{self, cron_job, end, jobs, patch, status, suspend};
use crate::scenarios::support::controllers::{self, Controller};
use crate::scenarios::support::crash::{Scene, crash_after_each_write};

const CONTROLLERS: &[Controller] = &[controllers::CRON_JOB];

/// Far from the next time, so that a restart does not reach it.
const INTO_THE_MINUTE: i64 = 10;

/// Advances to a moment in the next minute.
async fn into_the_next_minute(cluster: &TestCluster) {
    let now = cluster.clock().now().unix();
    let wait = 60 - now.rem_euclid(60) + INTO_THE_MINUTE;
    cluster.advance(Duration::from_secs(u64::try_from(wait).unwrap_or_default())).await;
}

/// The Jobs that run, without those that have finished.
async fn running(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let jobs = jobs(cluster).await?.into_iter();
    let running = jobs.filter(|job| job.status.as_ref().is_none_or(|status| status.conditions.is_none()));
    Ok(running.filter_map(|job| job.metadata.name).collect())
}

/// A Job completes and goes, the next one runs for two minutes, and is replaced by one that fails.
async fn story(scene: &Scene<'_>) -> Result<(), Failure> {
    let cluster = scene.cluster();
    let limits = json!({ "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 1 });
    let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid" });
    into_the_next_minute(cluster).await;
    cluster.create(cron_job(steersman_testing::objects::merged(spec, limits))).await?;
    for policy in ["Forbid", "Forbid", "Forbid", "Replace"] {
        patch(cluster, json!({ "concurrencyPolicy": policy })).await?;
        scene.rest().await?;
        into_the_next_minute(cluster).await;
        scene.rest().await?;
        let first = cluster.api::<CronJob>().get("report").await?.status.and_then(|it| it.last_successful_time);
        if first.is_none() {
            for name in running(cluster).await? {
                end(cluster, &name, "Complete").await?;
            }
            scene.rest().await?;
        }
    }
    for name in running(cluster).await? {
        end(cluster, &name, "Failed").await?;
    }
    suspend(cluster).await
}

/// The Jobs and the status, by minutes since the CronJob was created.
async fn world(cluster: &TestCluster) -> Result<Vec<String>, Failure> {
    let cron_job = cluster.api::<CronJob>().get("report").await?;
    let created = cron_job.metadata.creation_timestamp.map_or(0, |time| time.0.as_second()) / 60;
    let minute = |name: &str| name.trim_start_matches("report-").parse::<i64>().map(|minutes| minutes - created);
    let jobs = jobs(cluster).await?;
    let jobs: Vec<_> = jobs
        .iter()
        .map(|job| {
            let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let conditions: Vec<_> = conditions.map(|condition| condition.type_.as_str()).collect();
            (minute(job.metadata.name.as_deref().unwrap_or_default()), conditions)
        })
        .collect();
    let status = status(cluster).await?;
    let last = status.last_schedule_time.map(|time| time.0.as_second() / 60 - created);
    let active = status.active.unwrap_or_default().len();
    let has_succeeded = status.last_successful_time.is_some();
    Ok(vec![format!("{jobs:?}, last {last:?}, {active} active, succeeded: {has_succeeded}")])
}

/// The manager dies between a Job and its entry, between the deletion of a Job and its successor, and so on: every time is
/// started once, and no finished Job is started again.
#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_of_a_cron_job_starts_nothing_twice() -> Result<(), Failure> {
    let crashes = crash_after_each_write(TestCluster::builder, CONTROLLERS, story, world).await?;
    expect(crashes >= 8, "two starts, their entries, a success, a deletion, a replacement", &crashes)
}

/// The answer to a write is lost, or says that it failed though it was made; caches lag, too.
#[tokio::test(start_paused = true)]
async fn writes_of_a_cron_job_without_an_answer_start_nothing_twice() -> Result<(), Failure> {
    let lies = [Fault::LoseReply, Fault::DoThenRefuse(StatusCode::INTERNAL_SERVER_ERROR)];
    for (lie, lost) in lies.into_iter().flat_map(|lie| [1, 2].map(|lost| (lie.clone(), lost))) {
        let faults = Faults::default();
        faults.on(Verb::Watch, "jobs").happens(Fault::Lag(Duration::from_secs(3)));
        faults.on(Verb::Watch, "cronjobs").happens(Fault::Lag(Duration::from_secs(5)));
        faults.on(Verb::Create, "jobs").nth(lost).happens(lie.clone());
        faults.on(Verb::Update, "cronjobs/status").nth(lost).happens(lie.clone());
        faults.on(Verb::Delete, "jobs").nth(lost).happens(lie.clone());
        let cluster = cronjob::cluster().faults(&faults).start().await?;
        let limits = json!({ "successfulJobsHistoryLimit": 1, "concurrencyPolicy": "Forbid" });
        into_the_next_minute(&cluster).await;
        let spec = steersman_testing::objects::merged(json!({ "schedule": "* * * * *" }), limits);
        cluster.create(cron_job(spec)).await?;
        let mut started = std::collections::BTreeSet::new();
        for minute in 1..=4 {
            into_the_next_minute(&cluster).await;
            cluster.settle().await?;
            let now = running(&cluster).await?;
            expect_eq(&format!("one Job runs in minute {minute}"), &now.len(), &1)?;
            expect(started.insert(now[0].clone()), "it was not started before", &now)?;
            end(&cluster, &now[0], "Complete").await?;
            // Longer than the caches lag; the finished one goes, or its predecessor does.
            cluster.advance(Duration::from_secs(30)).await;
            expect_eq("none is started again", &running(&cluster).await?, &Vec::new())?;
        }
        suspend(&cluster).await?;
        cluster.settle().await?;
        let left = async || Ok(jobs(&cluster).await?.len());
        cluster.until_eq("the history", left, 1).await?;
        expect_eq("none is active", &status(&cluster).await?.active.unwrap_or_default().len(), &0)?;
        quiet(cluster).await?;
    }
    Ok(())
}
