//! Jobs: each pod is counted once, and none is made for what is done.

use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_base::names::finalizers;

use super::availability::count;
use super::replicas::stays;
use super::{Case, Findings, JOB, Rest, Verdict};
use crate::world::{Job, Object, Owner, Phase};

pub(super) const JOBS: &str = "jobs.batch";

/// A pod that the Job controller created, and its Job.
fn made<'a>(case: &Case<'a>) -> Option<(&'a Arc<Object>, &'a Owner)> {
    if !case.is("pods") || !case.by(&[JOB]) {
        return None;
    }
    let pod = case.created()?;
    Some((pod, pod.controller()?))
}

/// What the Job was like by what was shown: what its controller has written, it knows.
fn versions<'a>(case: &Case<'a>, namespace: &steersman_base::Istr, owner: &Owner) -> Vec<&'a Job> {
    let key = ObjectKey { namespace: namespace.clone(), name: owner.name.clone() };
    let Some(history) = case.world.history(JOBS, &key) else { return Vec::new() };
    let versions = case.window().of(JOBS, history);
    let mine = versions.objects().flatten().filter(|object| object.uid == owner.uid && !object.is_terminating());
    mine.filter_map(|object| object.job()).collect()
}

/// The Job of an owner, if it is there and not terminating.
fn job_of<'a>(case: &Case<'a>, owner: &Owner) -> Option<&'a Job> {
    case.world.by_uid(&owner.uid).filter(|job| !job.is_terminating())?.job()
}

/// The Job before and after its controller changed it.
fn written<'a>(case: &Case<'a>) -> Option<(&'a Arc<Object>, &'a Job, &'a Job)> {
    let (before, after) = case.updated().filter(|_| case.is(JOBS) && case.by(&[JOB]))?;
    Some((after, before.job()?, after.job()?))
}

/// "The Job is considered complete when there is one successfully completed Pod for each index." (website: Jobs, Completion
/// mode)
///
/// Asked when the Job controller creates a pod: its index has not succeeded. Judged against the store; staleness excuses
/// an index that had not succeeded by what was shown, unless the controller said so itself.
pub(super) fn no_pod_is_created_for_a_completed_index(case: &Case<'_>) -> Verdict {
    let Some((pod, owner)) = made(case) else { return Verdict::NotMine };
    let Some(index) = pod.pod().and_then(|pod| pod.index) else { return Verdict::NotMine };
    let is_open = |job: &Job| !job.status.completed.contains(index) && !job.status.failed_indexes.contains(index);
    let at_store = job_of(case, owner).is_none_or(is_open);
    let as_shown = || versions(case, &pod.key.namespace, owner).into_iter().any(is_open);
    Verdict::judge(at_store, as_shown, || format!("{pod} is created for index {index}, which has ended"))
}

/// "Specifies the maximum desired number of pods the job should run at any given time." (JobSpec, parallelism)
///
/// Asked when the Job controller creates a pod: with it there are no more active ones than `parallelism`, nor than
/// completions are missing; none for a Job that is suspended or ends. Judged against the store; staleness excuses what was
/// right for the Job and the pods as shown, but for pods that the controller created itself.
pub(super) fn no_more_pods_are_active_than_the_parallelism(case: &Case<'_>) -> Verdict {
    let Some((pod, owner)) = made(case) else { return Verdict::NotMine };
    let job = job_of(case, owner);
    let have = count(case.world.controlled("pods", &owner.uid).filter(|pod| pod.is_active_pod()).count());
    let may = |job: &Job| if job.is_ending() { 0 } else { job.active_max() };
    let at_store = job.is_some_and(|job| have <= may(job));
    let window = case.window();
    let as_shown = || {
        let counts = |pod: &Object| pod.is_active_pod() && pod.is_controlled_by(&owner.uid);
        let histories = case.world.histories("pods", &owner.uid);
        let certain = count(histories.filter(|history| window.of("pods", history).always(counts)).count());
        versions(case, &pod.key.namespace, owner).into_iter().any(|job| certain <= may(job))
    };
    Verdict::judge(at_store, as_shown, || match job {
        Some(job) => format!("{pod} is created: {have} active pods of Job {}, {} may be", owner.name, may(job)),
        None => format!("{pod} is created for Job {}, which is gone or terminating", owner.name),
    })
}

/// "The number of pods which reached phase Failed. The value increases monotonically." "The number of pods which reached
/// phase Succeeded. The value increases monotonically for a given spec. However, it may decrease in reaction to scale down
/// of elastic indexed jobs." (JobStatus, failed and succeeded)
///
/// Asked when the Job controller writes a Job. Judged against the object alone.
pub(super) fn counts_of_a_job_never_fall(case: &Case<'_>) -> Verdict {
    let Some((after, was, is)) = written(case) else { return Verdict::NotMine };
    // What fell out of the range when completions shrank is gone at the next write.
    let may_fall = is.indexed && is.completions < Some(was.status.succeeded.max(was.status.completed.count()));
    let shrank = || {
        is.completions.is_some_and(|completions| {
            (0..completions).filter(|index| was.status.completed.contains(*index)).count()
                < usize::try_from(was.status.succeeded).unwrap_or(0)
        })
    };
    let holds = is.status.failed >= was.status.failed
        && (is.status.succeeded >= was.status.succeeded || may_fall || is.indexed && shrank());
    Verdict::at_store(holds, || {
        format!(
            "{after} says {} succeeded and {} failed, after {} and {}",
            is.status.succeeded, is.status.failed, was.status.succeeded, was.status.failed
        )
    })
}

/// "The Job controller creates Pods with the finalizer `batch.kubernetes.io/job-tracking`. The controller removes the
/// finalizer only after the Pod has been accounted for in the Job status." (website: Jobs, Job tracking with finalizers)
///
/// Asked when the Job controller writes a Job: it counts no more pods than have ended or were deleted, over the whole
/// run. Judged against the store.
pub(super) fn no_pod_is_counted_twice(case: &Case<'_>) -> Verdict {
    let Some((after, _, is)) = written(case) else { return Verdict::NotMine };
    let ended = case.memory.ended_of(&after.uid);
    let counted = i64::from(is.status.succeeded) + i64::from(is.status.failed);
    let counted = counted + i64::try_from(is.status.uncounted.len()).unwrap_or(0);
    Verdict::at_store(counted <= i64::try_from(ended).unwrap_or(i64::MAX), || {
        format!(
            "{after} counts {} succeeded, {} failed and {} to be counted; {ended} pods have ended",
            is.status.succeeded,
            is.status.failed,
            is.status.uncounted.len()
        )
    })
}

/// "The controller removes the finalizer only after the Pod has been accounted for in the Job status, allowing the Pod to
/// be removed by other controllers or users." (website: Jobs, Job tracking with finalizers)
///
/// Asked when the Job controller takes its finalizer off a pod that has ended by itself: the status of the Job lists it, or
/// its index. A Job that ends or is deleted, and one with a policy for failures, may let go of others. Judged against the store.
pub(super) fn pods_are_let_go_after_they_are_counted(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.is("pods") && case.by(&[JOB])) else {
        return Verdict::NotMine;
    };
    if !before.has_finalizer(finalizers::JOB_TRACKING) || after.has_finalizer(finalizers::JOB_TRACKING) {
        return Verdict::NotMine;
    }
    let Some((owner, pod)) = before.controller().zip(before.pod()) else { return Verdict::NotMine };
    if pod.phase != Phase::Ended || before.is_terminating() {
        return Verdict::NotMine;
    }
    let Some(job) = job_of(case, owner).filter(|job| !job.is_finished()) else { return Verdict::NotMine };
    if !pod.has_succeeded && (job.has_policy || job.is_ending()) {
        return Verdict::NotMine;
    }
    // It was asked for before the pod ended, because the pod was not wanted any more.
    let window = case.window();
    let was_active = window.of_key("pods", &before.key).is_some_and(|versions| versions.ever(Object::is_active_pod));
    let is_out = job.indexed && pod.index.is_none_or(|index| job.completions.is_some_and(|end| index >= end));
    let is_listed = job.status.uncounted.contains(&before.uid);
    let has_index =
        job.indexed && pod.has_succeeded && pod.index.is_some_and(|index| job.status.completed.contains(index));
    let is_later = job.indexed
        && pod
            .index
            .is_some_and(|index| job.status.completed.contains(index) || job.status.failed_indexes.contains(index));
    if is_listed || has_index {
        return Verdict::Holds;
    }
    if is_out || was_active || is_later {
        return Verdict::Excused;
    }
    Verdict::Violated(format!("{before} has ended and loses its finalizer before Job {} has counted it", owner.name))
}

/// "In Kubernetes v1.31 and later the Job controller delays the addition of the terminal conditions, `Failed` or
/// `Complete`, until all of the Job Pods are terminated." (website: Jobs, Terminal Job conditions)
///
/// Asked when the Job controller says that a Job is complete or has failed: this was announced, nothing is left to be
/// counted, and no pod runs. Judged against the store; staleness excuses pods that had ended, or were not there, at some time
/// by what was shown.
pub(super) fn a_job_ends_after_its_pods(case: &Case<'_>) -> Verdict {
    let Some((after, was, is)) = written(case) else { return Verdict::NotMine };
    if was.is_finished() || !is.is_finished() {
        return Verdict::NotMine;
    }
    let announced = if is.has_succeeded() { "SuccessCriteriaMet" } else { "FailureTarget" };
    let is_announced = steersman_base::condition::is_true(&is.status.conditions, announced);
    let status = &is.status;
    if !is_announced || !status.uncounted.is_empty() || status.active > 0 || status.terminating > 0 {
        return Verdict::Violated(format!(
            "{after} has finished, with {} active, {} terminating, {} to be counted; {announced}: {is_announced}",
            status.active,
            status.terminating,
            status.uncounted.len()
        ));
    }
    let runs =
        |pod: &Object| pod.is_controlled_by(&after.uid) && pod.pod().is_some_and(|pod| pod.phase != Phase::Ended);
    let running = || case.world.controlled("pods", &after.uid).filter(|pod| runs(pod));
    let window = case.window();
    let as_shown = || {
        let mut histories = case.world.histories("pods", &after.uid);
        !histories.any(|history| window.of("pods", history).always(runs))
    };
    Verdict::judge(running().next().is_none(), as_shown, || {
        let names: Vec<_> = running().map(|pod| pod.key.name.to_string()).collect();
        format!("{after} has finished, and {} have not ended", names.join(", "))
    })
}

/// "A job is considered finished when it is in a terminal condition, either "Complete" or "Failed"." (JobStatus, conditions)
/// Its controller leaves it alone then: follows `syncJob` in `job_controller.go` of Kubernetes 1.37.
///
/// Asked when the Job controller writes a Job that had finished. Judged against the object before.
pub(super) fn a_finished_job_is_left_alone(case: &Case<'_>) -> Verdict {
    let Some((after, was, _)) = written(case) else { return Verdict::NotMine };
    Verdict::at_store(!was.is_finished(), || format!("{after} had finished, and is changed"))
}

/// Jobs that have a controller.
fn jobs<'a>(rest: &Rest<'a>) -> impl Iterator<Item = (&'a Arc<Object>, &'a Job)> {
    let runs = rest.options.runs(JOB);
    let world = rest.world;
    let jobs = world.all(JOBS).filter(move |job| runs && !job.is_terminating());
    jobs.filter_map(|object| Some((object, object.job()?)))
}

/// "A Job creates one or more Pods and will continue to retry execution of the Pods until a specified number of them
/// successfully terminate." (website: Jobs)
///
/// At rest: a Job has finished, or has as many active pods as it may: all that are left to do. Excused are Jobs in
/// namespaces that go.
pub(super) fn every_job_goes_on_or_has_finished(rest: &Rest<'_>, found: &mut Findings) {
    for (object, job) in jobs(rest) {
        let have = count(rest.world.controlled("pods", &object.uid).filter(|pod| pod.is_active_pod()).count());
        let failed = if job.has_limit_per_index { job.status.failed_indexes.count() } else { 0 };
        let left = job.completions.map_or(i32::MAX, |completions| completions - job.status.succeeded - failed);
        let is_right = match job.is_finished() {
            true => have == 0,
            // Without a number of completions, the first success is enough, and what runs may end.
            false if job.completions.is_none() && job.status.succeeded > 0 => true,
            false => have == job.active_max().min(left),
        };
        if !is_right && !stays(rest, object) {
            found.excuse();
            continue;
        }
        found.expect(is_right, || {
            format!(
                "{object} has {have} active pods; parallelism {}, completions {:?}, {} succeeded, {failed} indexes failed, finished: {}",
                job.parallelism,
                job.completions,
                job.status.succeeded,
                job.is_finished()
            )
        });
    }
}

/// "The number of pending and running pods which are not terminating (without a deletionTimestamp)." (JobStatus, active)
///
/// At rest: the counts are those of the pods, and nothing is left to be counted.
pub(super) fn statuses_of_jobs_are_true_at_rest(rest: &Rest<'_>, found: &mut Findings) {
    for (object, job) in jobs(rest).filter(|(object, _)| stays(rest, object)) {
        let pods = || rest.world.controlled("pods", &object.uid);
        let active = count(pods().filter(|pod| pod.is_active_pod()).count());
        let ready = count(pods().filter(|pod| pod.is_ready_pod()).count());
        let status = &job.status;
        let is_true = status.active == active && status.ready == ready && status.uncounted.is_empty();
        found.expect(is_true, || {
            format!(
                "{object} says {} active, {} ready, {} to be counted; there are {active} and {ready}",
                status.active,
                status.ready,
                status.uncounted.len()
            )
        });
    }
}

/// "allowing the Pod to be removed by other controllers or users." (website: Jobs, Job tracking with finalizers)
///
/// At rest: no pod has the finalizer that nobody will take off: its Job is there and has not finished, and the pod has not
/// ended. A failed pod of an index that fails by itself keeps it until it is replaced.
pub(super) fn finalizers_of_jobs_are_taken_off(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(JOB) {
        return;
    }
    for pod in rest.world.all("pods").filter(|pod| pod.has_finalizer(finalizers::JOB_TRACKING)) {
        let job = pod.controller().and_then(|owner| rest.world.by_uid(&owner.uid)).and_then(|job| job.job());
        let is_kept = job.is_some_and(|job| !job.is_finished() && (pod.is_active_pod() || job.has_limit_per_index));
        found.expect(is_kept, || {
            format!("{pod} has the finalizer of its Job, which is gone or has finished, or has counted it")
        });
    }
}
