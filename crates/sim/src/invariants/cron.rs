//! CronJobs: which Jobs they start, and which they delete.

use std::sync::Arc;

use steersman_base::ObjectKey;

use super::jobs::JOBS;
use super::replicas::stays;
use super::{CRON_JOB, Case, Findings, Rest, Verdict};
use crate::world::{CronJob, Object, Owner};

const CRON_JOBS: &str = "cronjobs.batch";

/// What the CronJob was like by what was shown.
fn versions<'a>(case: &Case<'a>, job: &Object, owner: &Owner) -> Vec<&'a CronJob> {
    let key = ObjectKey { namespace: job.key.namespace.clone(), name: owner.name.clone() };
    let Some(versions) = case.window().of_key(CRON_JOBS, &key) else { return Vec::new() };
    let mine = versions.objects().flatten().filter(|object| object.uid == owner.uid);
    mine.filter_map(|object| object.cron_job()).collect()
}

/// A Job that the CronJob controller created, and its CronJob.
fn started<'a>(case: &Case<'a>) -> Option<(&'a Arc<Object>, &'a Owner)> {
    if !case.is(JOBS) || !case.by(&[CRON_JOB]) {
        return None;
    }
    let job = case.created()?;
    Some((job, job.controller()?))
}

fn runs(job: &Object) -> bool {
    !job.is_terminating() && job.job().is_some_and(|job| !job.is_finished() && !job.scheduled.is_empty())
}

/// "Forbid: The CronJob does not allow concurrent runs; if it is time for a new Job run and the previous Job run hasn't
/// finished yet, the CronJob skips the new Job run." "Replace: If it is time for a new Job run and the previous Job run hasn't
/// finished yet, the CronJob replaces the currently running Job run with a new Job run." (website: CronJob, Concurrency policy)
///
/// Asked when the CronJob controller starts a Job, and the policy is not `Allow`: no other one of it runs. Judged against
/// the store; staleness excuses Jobs that had finished, or were not there, at some time by what was shown, unless the controller
/// started them itself.
pub(super) fn jobs_do_not_run_beside_each_other(case: &Case<'_>) -> Verdict {
    let Some((job, owner)) = started(case) else { return Verdict::NotMine };
    let versions = versions(case, job, owner);
    if versions.is_empty() || versions.iter().any(|cron_job| !matches!(&*cron_job.policy, "Forbid" | "Replace")) {
        return Verdict::NotMine;
    }
    let is_other = |other: &Object| other.uid != job.uid && other.is_controlled_by(&owner.uid) && runs(other);
    let others = || case.world.controlled(JOBS, &owner.uid).filter(|other| is_other(other));
    let window = case.window();
    let as_shown = || {
        let mut histories = case.world.histories(JOBS, &owner.uid);
        !histories.any(|history| window.of(JOBS, history).always(is_other))
    };
    Verdict::judge(others().next().is_none(), as_shown, || {
        let names: Vec<_> = others().map(|other| other.key.name.to_string()).collect();
        format!(
            "{job} is started while {} runs; the policy of CronJob {} is {}",
            names.join(", "),
            owner.name,
            versions[0].policy
        )
    })
}

/// "A CronJob creates a Job object approximately once per execution time of its schedule." (website: CronJob, Job creation)
///
/// Asked when the CronJob controller starts a Job: none was started for this time before, over the whole run. Judged against
/// the store; staleness excuses one of which nothing was shown when the request was sent: a request that was answered with an
/// error and is carried out later may come after the one that repeated it, and after the end of the Job that this one made.
pub(super) fn no_time_is_started_twice(case: &Case<'_>) -> Verdict {
    let Some((job, owner)) = started(case) else { return Verdict::NotMine };
    let time = job.job().map(|job| job.scheduled.clone()).unwrap_or_default();
    // The Job before has the same name: what was shown of it is in the same history.
    let window = case.window();
    let was_shown = || {
        let history = case.world.history(JOBS, &job.key);
        history.is_some_and(|history| window.until_sent(JOBS, history).ever(|other| other.uid != job.uid))
    };
    Verdict::judge(
        !case.memory.is_started_again,
        || !was_shown(),
        || format!("{job} is started for {time} by CronJob {}, which was done before", owner.name),
    )
}

/// "The number of successful finished jobs to retain." "The number of failed finished jobs to retain."
/// (CronJobSpec, successfulJobsHistoryLimit and failedJobsHistoryLimit)
///
/// Asked when the CronJob controller deletes a Job: it has finished, and as many of its kind as the limit says are left;
/// or the policy is `Replace`. Judged against the store; staleness excuses a limit, and Jobs, that were so at some time by what
/// was shown.
pub(super) fn running_jobs_and_the_history_are_kept(case: &Case<'_>) -> Verdict {
    if !case.is(JOBS) || !case.by(&[CRON_JOB]) {
        return Verdict::NotMine;
    }
    let Some(gone) = case.deleted() else { return Verdict::NotMine };
    let Some((owner, job)) = gone.controller().zip(gone.job()) else {
        return Verdict::Violated(format!("{gone} is deleted, and belongs to nobody"));
    };
    let versions = versions(case, gone, owner);
    if versions.iter().any(|cron_job| cron_job.policy == "Replace") {
        return Verdict::Holds;
    }
    if !job.is_finished() {
        return Verdict::Violated(format!("{gone} is deleted while it runs"));
    }
    let is_like = |other: &Object| {
        other.uid != gone.uid
            && other.is_controlled_by(&owner.uid)
            && other.job().is_some_and(|other| other.is_finished() && other.has_succeeded() == job.has_succeeded())
    };
    let limit = |cron_job: &CronJob| if job.has_succeeded() { cron_job.succeeded_kept } else { cron_job.failed_kept };
    let kept = case.world.controlled(JOBS, &owner.uid).filter(|other| is_like(other)).count();
    let now = case.world.by_uid(&owner.uid).and_then(|object| object.cron_job());
    let at_store = now.is_some_and(|cron_job| kept >= limit(cron_job));
    let window = case.window();
    let as_shown = || {
        let histories = case.world.histories(JOBS, &owner.uid);
        let kept = histories.filter(|history| window.of(JOBS, history).ever(is_like)).count();
        versions.iter().any(|cron_job| kept >= limit(cron_job))
    };
    Verdict::judge(at_store, as_shown, || {
        format!("{gone} is deleted: {kept} like it are left, CronJob {} keeps {:?}", owner.name, now.map(limit))
    })
}

/// "A list of pointers to currently running jobs." (CronJobStatus, active) "The number of successful finished jobs to
/// retain." (CronJobSpec, successfulJobsHistoryLimit)
///
/// At rest: the list is that of the running Jobs, and no more finished ones are there than are kept.
pub(super) fn cron_jobs_know_their_jobs(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(CRON_JOB) {
        return;
    }
    for object in rest.world.all(CRON_JOBS).filter(|object| !object.is_terminating() && stays(rest, object)) {
        let Some(cron_job) = object.cron_job() else { continue };
        let jobs = || rest.world.controlled(JOBS, &object.uid).filter(|job| !job.is_terminating());
        let mut running: Vec<_> = jobs().filter(|job| runs(job)).map(|job| job.uid.clone()).collect();
        let mut listed = cron_job.active.clone();
        running.sort();
        listed.sort();
        let finished = |succeeded: bool| {
            let is_so =
                |job: &&Arc<Object>| job.job().is_some_and(|job| job.is_finished() && job.has_succeeded() == succeeded);
            jobs().filter(is_so).count()
        };
        let succeeded = finished(true);
        let failed = finished(false);
        let is_right = running == listed && succeeded <= cron_job.succeeded_kept && failed <= cron_job.failed_kept;
        found.expect(is_right, || {
            format!(
                "{object} lists {} Jobs, {} run; {succeeded} of {} that succeeded are kept, {failed} of {} that failed",
                listed.len(),
                running.len(),
                cron_job.succeeded_kept,
                cron_job.failed_kept
            )
        });
    }
}
