//! Pure: the status of a Job, in the two steps in which pods are counted.
//!
//! 1. Pods that have ended are entered in `uncountedTerminatedPods`, or their index in `completedIndexes`: [`track`].
//! 2. After that is written, they lose their finalizer.
//! 3. Those that have lost it are added to the counters and removed from the list: [`settle`].
//!
//! After a crash between any two of these, the next pass goes on where the last one ended, and no pod is counted twice: a
//! pod with the finalizer is not in the counters, and one without it is never entered in the list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{Condition, ConditionStatus, Istr, Time, Uid, condition};
use steersman_model::View;
use steersman_model::batch::{JobStatus, JobView, UncountedPods};
use steersman_model::core::PodView;

use super::failure::{self, Meaning, is_failed};
use super::plan::{End, Verdict};
use super::tally::{Tally, Uncounted};
use super::{Options, UNCOUNTED_MAX, pods, spec};

/// The state of a Job after its pods were created and deleted.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) active: i32,
    pub(super) ready: i32,
    pub(super) terminating: i32,
    /// The time at which it was started, or resumed.
    pub(super) start: Option<Time>,
    /// The way in which it ends, if it does.
    pub(super) verdict: Option<Verdict>,
    /// Whether the pods were brought to the wanted number, so that it can be reported whether the Job is suspended.
    pub(super) is_managed: bool,
}

/// The first of the two steps.
#[derive(Debug)]
pub(super) struct Tracking {
    /// The status to write before the finalizers are removed.
    pub(super) status: JobStatus,
    /// The pods that lose their finalizer then.
    pub(super) release: Vec<Arc<PodView>>,
    /// Whether more pods are to be counted than one pass does.
    pub(super) is_cut: bool,
    /// The event about suspension, if there is one.
    pub(super) suspension: Option<Suspension>,
    /// The number of failed pods to which each action of the failure policy was applied.
    pub(super) actions: BTreeMap<Meaning, u64>,
}

/// An event about the Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspension {
    Suspended,
    Resumed,
}

/// Returns the uids of the pods that have the finalizer.
pub(super) fn tracked(pods: &[Arc<PodView>]) -> BTreeSet<Uid> {
    pods.iter().filter(|pod| pods::is_tracked(pod)).map(|pod| pod.meta().uid.clone()).collect()
}

/// Returns the status in which pods that have ended are noted, and the pods that can be released once it is written.
pub(super) fn track(
    job: &JobView,
    pods: &[Arc<PodView>],
    tally: &Tally,
    progress: &Progress,
    options: Options,
    now: Time,
) -> Tracking {
    let mut conditions: Vec<Condition> = job.status.conditions.to_vec();
    let mut start_time = progress.start;
    let suspension = (progress.is_managed && progress.verdict.is_none())
        .then(|| suspension(job, &mut conditions, &mut start_time, options, now))
        .flatten();
    if let Some(verdict) = &progress.verdict {
        announce(verdict, &mut conditions, now);
    }
    let settled = settle(&job.status, &tracked(pods));
    let mut noted = noted(job, pods, tally, progress);
    let uncounted = settled.uncounted_terminated_pods.unwrap_or_default();
    let joined = |before: Box<[Uid]>, new: Vec<Uid>| before.into_vec().into_iter().chain(new).collect();
    let mut status = JobStatus {
        conditions: conditions.into(),
        start_time,
        active: progress.active,
        ready: Some(progress.ready),
        terminating: Some(progress.terminating),
        uncounted_terminated_pods: Some(UncountedPods {
            succeeded: joined(uncounted.succeeded, std::mem::take(&mut noted.succeeded)),
            failed: joined(uncounted.failed, std::mem::take(&mut noted.failed)),
        }),
        ..settled
    };
    if spec::indexes(job).is_some() {
        status.succeeded = tally.completed.len();
        status.completed_indexes = Istr::from(tally.completed.to_string());
        status.failed_indexes = tally.failed_indexes.as_ref().map(|failed| Istr::from(failed.to_string()));
    }
    Tracking { status, release: noted.release, is_cut: noted.is_cut, suspension, actions: noted.actions }
}

/// Returns the status after pods have lost their finalizer: those that no longer have it are counted.
pub(super) fn settle(status: &JobStatus, tracked: &BTreeSet<Uid>) -> JobStatus {
    let mut settled = status.clone();
    let Some(uncounted) = &mut settled.uncounted_terminated_pods else { return settled };
    for (uids, counter) in
        [(&mut uncounted.succeeded, &mut settled.succeeded), (&mut uncounted.failed, &mut settled.failed)]
    {
        let left: Box<[Uid]> = uids.iter().filter(|uid| tracked.contains(uid)).cloned().collect();
        *counter += super::tally::count(uids.len() - left.len());
        *uids = left;
    }
    settled
}

/// Returns the status of a Job that ends; `None` while pods are to be counted, or have not ended.
pub(super) fn finished(status: &JobStatus, verdict: &Verdict, now: Time) -> Option<JobStatus> {
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let is_counted = uncounted.is_none_or(|pods| pods.succeeded.is_empty() && pods.failed.is_empty());
    if !is_counted || status.terminating.unwrap_or(0) > 0 {
        return None;
    }
    let mut finished = status.clone();
    let mut conditions = finished.conditions.into_vec();
    set(&mut conditions, verdict.end.condition(), ConditionStatus::True, &verdict.reason, &verdict.message, now);
    finished.conditions = conditions.into();
    if verdict.end == End::Complete {
        finished.completion_time = Some(now);
    }
    Some(finished)
}

/// The news about ended pods.
#[derive(Default)]
struct Noted {
    succeeded: Vec<Uid>,
    failed: Vec<Uid>,
    release: Vec<Arc<PodView>>,
    is_cut: bool,
    actions: BTreeMap<Meaning, u64>,
}

fn noted(job: &JobView, pods: &[Arc<PodView>], tally: &Tally, progress: &Progress) -> Noted {
    let uncounted = Uncounted::of(job.status.uncounted_terminated_pods.as_ref());
    let is_indexed = spec::indexes(job).is_some();
    let mut tracked: Vec<&Arc<PodView>> = pods.iter().filter(|pod| pods::is_tracked(pod)).collect();
    if is_indexed {
        tracked.sort_by_key(|pod| pods::index(pod));
    }
    let before = uncounted.succeeded.len() + uncounted.failed.len();
    let mut noted = Noted::default();
    let mut new_indexes = 0;
    for pod in tracked {
        if !can_be_released(job, pod, tally, progress) {
            continue;
        }
        let uid = &pod.meta().uid;
        noted.release.push(Arc::clone(pod));
        if pod.status.phase == "Succeeded" && !uncounted.failed.contains(uid) {
            let index = pods::valid_index(job, pod);
            if is_indexed {
                // The index is enough to count it once.
                new_indexes += usize::from(index.is_some_and(|index| !tally.completed_before.contains(index)));
            } else if !uncounted.succeeded.contains(uid) {
                noted.succeeded.push(uid.clone());
            }
        } else if is_failure(job, pod, progress) && !uncounted.failed.contains(uid) && pods::is_valid(job, pod) {
            let applied = failure::applied(job.spec.pod_failure_policy.as_ref(), pod).map(|applied| applied.meaning);
            if let Some(meaning) = applied {
                *noted.actions.entry(meaning).or_default() += 1;
            }
            if applied != Some(Meaning::Ignore) {
                noted.failed.push(uid.clone());
            }
        }
        let listed = before + new_indexes + noted.succeeded.len() + noted.failed.len();
        if listed >= UNCOUNTED_MAX || noted.release.len() >= UNCOUNTED_MAX {
            noted.is_cut = true;
            break;
        }
    }
    noted
}

/// Whether the end of a pod is a failure. When a Job fails, every pod that has not succeeded has failed.
fn is_failure(job: &JobView, pod: &PodView, progress: &Progress) -> bool {
    is_failed(job, pod) || progress.verdict.as_ref().is_some_and(|verdict| verdict.end == End::Failed)
}

/// Whether the finalizer of a pod can be removed: it has ended, or the Job has.
fn can_be_released(job: &JobView, pod: &PodView, tally: &Tally, progress: &Progress) -> bool {
    if job.meta().is_terminating() || progress.verdict.is_some() || pod.status.phase == "Succeeded" {
        return true;
    }
    let is_to_be_replaced = || {
        let waiting = pods::index(pod).and_then(|index| tally.to_replace.get(&index));
        waiting.is_some_and(|waiting| waiting.meta().uid == pod.meta().uid)
    };
    is_failed(job, pod) && !is_to_be_replaced()
}

/// Reports whether the Job is suspended. Its time starts anew when it is resumed.
fn suspension(
    job: &JobView,
    conditions: &mut Vec<Condition>,
    start_time: &mut Option<Time>,
    options: Options,
    now: Time,
) -> Option<Suspension> {
    if spec::is_suspended(job) {
        let is_new = set(conditions, "Suspended", ConditionStatus::True, "JobSuspended", "Job suspended", now);
        if is_new && options.mutable_scheduling_directives {
            *start_time = None;
        }
        return is_new.then_some(Suspension::Suspended);
    }
    // A Job that was never suspended has no such condition.
    condition::find(conditions, "Suspended")?;
    let is_new = set(conditions, "Suspended", ConditionStatus::False, "JobResumed", "Job resumed", now);
    if is_new {
        *start_time = Some(now);
    }
    is_new.then_some(Suspension::Resumed)
}

/// Announces the end, unless that was done before.
fn announce(verdict: &Verdict, conditions: &mut Vec<Condition>, now: Time) {
    let type_ = verdict.end.announcement();
    if !condition::is_true(conditions, type_) {
        set(conditions, type_, ConditionStatus::True, &verdict.reason, &verdict.message, now);
    }
}

/// Sets a condition. Both its times are those of the last change, as upstream.
fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    now: Time,
) -> bool {
    let times = Condition { last_probe_time: Some(now), last_transition_time: Some(now), ..Condition::default() };
    let new = Condition { type_: Istr::interned(type_), status, ..times }.because(reason, message);
    match conditions.iter_mut().find(|condition| condition.type_ == type_) {
        Some(held) if held.same_but_for_times(&new) => return false,
        Some(held) => *held = new,
        None => conditions.push(new),
    }
    true
}
