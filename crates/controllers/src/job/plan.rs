//! Pure: a Job and its pods → whether it ends, and which pods to create or delete.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, Time, condition};
use steersman_model::View;
use steersman_model::batch::JobView;
use steersman_model::core::PodView;

use super::tally::{Tally, count};
use super::{BURST, backoff, failure, pods, ranking, spec, success};
use crate::pod;

/// The way in which a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) end: End,
    pub(super) reason: Istr,
    pub(super) message: Istr,
}

/// The result of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    Failed,
}

/// The action on the pods.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing: the number is right, or the Job is terminating.
    Nothing,
    /// The Job ends: delete the active pods, which are counted.
    Finish { pods: Vec<Arc<PodView>> },
    /// Delete these pods, which are not counted: they are not wanted any more.
    Remove { pods: Vec<Arc<PodView>>, want: usize },
    /// Create pods.
    Create { pods: Wanted, want: usize },
    /// Create pods later: some have failed.
    Wait,
}

/// The pods to create.
#[derive(Debug, PartialEq)]
pub(super) enum Wanted {
    /// This number of pods.
    Any(usize),
    /// A pod for each of these indexes.
    Indexes(Vec<Replacement>),
}

/// An index that needs a pod, and the failures of its earlier pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) index: i32,
    pub(super) failures: i32,
    pub(super) ignored: i32,
}

/// The actions, and the time of the next decision.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) step: Step,
    /// The end of the Job, which is reported if the step succeeds.
    pub(super) verdict: Option<Verdict>,
    pub(super) again_in: Option<Duration>,
}

/// Decides. `start` is when the Job was started, in this pass or before.
pub(super) fn plan(job: &JobView, pods: &[Arc<PodView>], tally: &Tally, start: Option<Time>, now: Time) -> Plan {
    if let Some(verdict) = verdict(job, pods, tally, start, now) {
        return Plan { step: Step::Finish { pods: tally.active.clone() }, verdict: Some(verdict), again_in: None };
    }
    let deadline = deadline_in(job, start, now);
    if job.meta().is_terminating() {
        return Plan { step: Step::Nothing, verdict: None, again_in: deadline };
    }
    let (step, wait) = step(job, pods, tally, now);
    Plan { step, verdict: None, again_in: deadline.into_iter().chain(wait).min() }
}

/// Returns whether the Job is complete because enough pods have succeeded and none is active.
pub(super) fn completed(job: &JobView, tally: &Tally, active: i32) -> Option<Verdict> {
    // Without a number, the first success is enough.
    let is_enough = tally.succeeded >= job.spec.completions.unwrap_or(1);
    let is_complete = is_enough && active == 0;
    is_complete.then(|| Verdict::new(End::Complete, "CompletionsReached", "Reached expected number of succeeded pods"))
}

/// The ladder of ends: what was decided before, failures, successes.
fn verdict(job: &JobView, pods: &[Arc<PodView>], tally: &Tally, start: Option<Time>, now: Time) -> Option<Verdict> {
    let decided = |type_: &str, end: End| {
        let condition = condition::find(&job.status.conditions, type_).filter(|condition| condition.is_true())?;
        Some(Verdict { end, reason: condition.reason.clone(), message: condition.message.clone() })
    };
    let failed = |reason: &str, message: &str| Some(Verdict::new(End::Failed, reason, message));
    if let Some(verdict) =
        decided("SuccessCriteriaMet", End::Complete).or_else(|| decided("FailureTarget", End::Failed))
    {
        return Some(verdict);
    }
    if let Some(message) = failure::fails_job(job, pods) {
        return failed("PodFailurePolicy", &message);
    }
    if tally.failed > spec::backoff_limit(job) || has_restarted_too_often(job, pods) {
        return failed("BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if deadline_in(job, start, now).is_some_and(|left| left.is_zero()) {
        return failed("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    let completions = spec::indexes(job)?;
    let failed_count = tally.failed_indexes.as_ref().map_or(0, super::indexes::Indexes::len);
    if job.spec.max_failed_indexes.is_some_and(|max| failed_count > max) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return failed("MaxFailedIndexesExceeded", message);
    }
    if failed_count > 0 && failed_count.saturating_add(tally.completed.len()) >= completions {
        return failed("FailedIndexes", "Job has failed indexes");
    }
    let message = success::met(job.spec.success_policy.as_ref(), completions, &tally.completed)?;
    Some(Verdict::new(End::Complete, "SuccessPolicy", &message))
}

/// Returns how long the Job may still be active; zero if it was active for too long.
fn deadline_in(job: &JobView, start: Option<Time>, now: Time) -> Option<Duration> {
    let allowed = job.spec.active_deadline_seconds.filter(|_| !spec::is_suspended(job))?;
    let allowed = Duration::from_secs(u64::try_from(allowed).unwrap_or(0));
    Some(allowed.saturating_sub(now.since(start?)))
}

/// Whether containers that are restarted in place have failed too often.
fn has_restarted_too_often(job: &JobView, pods: &[Arc<PodView>]) -> bool {
    if !spec::restarts_in_place(job) {
        return false;
    }
    let living = pods.iter().filter(|pod| matches!(&*pod.status.phase, "Running" | "Pending"));
    let statuses =
        living.flat_map(|pod| pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses));
    let restarts: i64 = statuses.map(|status| i64::from(status.restart_count)).sum();
    // A limit of zero allows no restart, a limit of one none either: upstream's arithmetic.
    restarts >= i64::from(spec::backoff_limit(job)).max(1)
}

/// Decides about the pods of a Job that goes on.
fn step(job: &JobView, pods: &[Arc<PodView>], tally: &Tally, now: Time) -> (Step, Option<Duration>) {
    let active = count(tally.active.len());
    let want = wanted(job, tally, active);
    let surplus = usize::try_from(active - want).unwrap_or(0);
    let mut remove = ranking::surplus(job, &tally.active, surplus);
    // A suspended Job loses all its pods at once.
    if !spec::is_suspended(job) {
        remove.truncate(BURST);
    }
    let shown = usize::try_from(want).unwrap_or(0);
    // Deletions come first: creations have to wait until indexes are free again.
    if !remove.is_empty() {
        return (Step::Remove { pods: remove, want: shown }, None);
    }
    let held = if spec::replaces_ended_only(job) { tally.terminating } else { 0 };
    let missing = usize::try_from(want - held - active).unwrap_or(0).min(BURST);
    if missing == 0 || spec::is_suspended(job) {
        return (Step::Nothing, None);
    }
    if spec::limit_per_index(job).is_none() {
        let wait = tally.record.remaining(now);
        if !wait.is_zero() {
            return (Step::Wait, Some(wait));
        }
    }
    let Some(completions) = spec::indexes(job) else {
        return (Step::Create { pods: Wanted::Any(missing), want: shown }, None);
    };
    let (indexes, wait) = due(job, tally, free_indexes(job, pods, tally, missing, completions), now);
    if indexes.is_empty() {
        return (wait.map_or(Step::Nothing, |_| Step::Wait), wait);
    }
    (Step::Create { pods: Wanted::Indexes(indexes), want: shown }, wait)
}

/// Returns the wanted number of active pods.
fn wanted(job: &JobView, tally: &Tally, active: i32) -> i32 {
    let parallelism = spec::parallelism(job);
    match job.spec.completions {
        _ if spec::is_suspended(job) => 0,
        // Any success is enough: what still runs may end, and nothing is added.
        None if tally.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => (completions - tally.succeeded).min(parallelism).max(0),
    }
}

/// Returns the first indexes that need a pod.
fn free_indexes(job: &JobView, pods: &[Arc<PodView>], tally: &Tally, count: usize, completions: i32) -> Vec<i32> {
    let is_held = |pod: &&Arc<PodView>| spec::replaces_ended_only(job) && pod::is_terminating(pod);
    let held = tally.active.iter().chain(pods.iter().filter(is_held));
    let taken = tally.completed.union(&held.filter_map(|pod| pods::index(pod)).collect());
    let taken = tally.failed_indexes.as_ref().map_or(taken.clone(), |failed| taken.union(failed));
    taken.first_absent(count, completions)
}

/// Returns the indexes whose back-off is over, and when the next one's is.
fn due(job: &JobView, tally: &Tally, indexes: Vec<i32>, now: Time) -> (Vec<Replacement>, Option<Duration>) {
    let mut due = Vec::with_capacity(indexes.len());
    let mut next: Option<Duration> = None;
    for index in indexes {
        let Some(failed) = tally.to_replace.get(&index) else {
            due.push(Replacement { index, ..Replacement::default() });
            continue;
        };
        let failures = pods::earlier_failures(failed);
        let ignored = pods::earlier_ignored(failed);
        let all = u32::try_from(failures.saturating_add(ignored)).unwrap_or(0).saturating_add(1);
        let wait = backoff::remaining(all, backoff::ended_at(failed), now);
        if wait.is_zero() {
            let is_counted = failure::counts(job.spec.pod_failure_policy.as_ref(), failed);
            due.push(Replacement {
                index,
                failures: failures.saturating_add(i32::from(is_counted)),
                ignored: ignored.saturating_add(i32::from(!is_counted)),
            });
        } else {
            next = Some(next.map_or(wait, |next| next.min(wait)));
        }
    }
    (due, next)
}

// === impl Verdict ===

impl Verdict {
    fn new(end: End, reason: &str, message: &str) -> Self {
        Self { end, reason: Istr::interned(reason), message: Istr::new(message) }
    }
}

// === impl End ===

impl End {
    /// Returns the condition of a Job that has ended so.
    pub(super) fn condition(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }

    /// Returns the condition that announces the end while pods are still to be counted or to end.
    pub(super) fn announcement(self) -> &'static str {
        match self {
            Self::Complete => "SuccessCriteriaMet",
            Self::Failed => "FailureTarget",
        }
    }
}
