//! Pure: what is known of a Job's pods: how many are active, have ended, and for which indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steersman_base::{Time, Uid};
use steersman_model::View;
use steersman_model::batch::{JobView, UncountedPods};
use steersman_model::core::PodView;

use super::backoff::{Record, ended_at};
use super::failure::{self, Meaning, is_failed};
use super::indexes::Indexes;
use super::{pods, spec};
use crate::pod;

/// The pods of a Job, counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The active pods.
    pub(super) active: Vec<Arc<PodView>>,
    /// The number of pods that are ready.
    pub(super) ready: i32,
    /// The number of pods that are terminating and have not ended.
    pub(super) terminating: i32,
    /// The number of successes: pods, or indexes of an indexed Job. Those that are not counted yet are included.
    pub(super) succeeded: i32,
    /// The number of pods that have failed. Those that are not counted yet are included, ignored ones are not.
    pub(super) failed: i32,
    /// The failures since the last success.
    pub(super) record: Record,
    /// The indexes that had succeeded before this pass.
    pub(super) completed_before: Indexes,
    /// The indexes that have succeeded.
    pub(super) completed: Indexes,
    /// The indexes that have failed; `None` if indexes do not fail by themselves.
    pub(super) failed_indexes: Option<Indexes>,
    /// The last failed pod of each index that has no active pod, where indexes fail by themselves: it keeps its finalizer
    /// until a new pod carries the number of failures on.
    pub(super) to_replace: BTreeMap<i32, Arc<PodView>>,
}

/// Pods that have ended and are not counted yet, as sets.
pub(super) struct Uncounted<'a> {
    pub(super) succeeded: BTreeSet<&'a Uid>,
    pub(super) failed: BTreeSet<&'a Uid>,
}

/// Counts the pods of a Job. `record` is what is remembered of earlier failures; `None` after a restart: then the pods that
/// are still there show.
pub(super) fn tally(job: &JobView, pods: &[Arc<PodView>], record: Option<Record>) -> Tally {
    let uncounted = Uncounted::of(job.status.uncounted_terminated_pods.as_ref());
    let is_new = |pod: &&Arc<PodView>, counted: &BTreeSet<&Uid>| {
        pods::is_tracked(pod) && pods::is_valid(job, pod) && !counted.contains(&pod.meta().uid)
    };
    let succeeded: Vec<_> =
        pods.iter().filter(|pod| is_new(pod, &uncounted.succeeded) && pod.status.phase == "Succeeded").collect();
    let failed: Vec<_> = pods.iter().filter(|pod| is_new(pod, &uncounted.failed) && is_failed(job, pod)).collect();
    let policy = job.spec.pod_failure_policy.as_ref();
    let failed_count = failed.iter().filter(|pod| failure::counts(policy, pod)).count();
    let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
    let times = |pods: &[&Arc<PodView>]| pods.iter().map(|pod| ended_at(pod)).collect::<Vec<Option<Time>>>();
    let tally = Tally {
        ready: count(active.iter().filter(|pod| pod::is_ready(pod)).count()),
        terminating: count(pods.iter().filter(|pod| pod::is_terminating(pod)).count()),
        succeeded: job.status.succeeded + count(succeeded.len() + uncounted.succeeded.len()),
        failed: job.status.failed + count(failed_count + uncounted.failed.len()),
        record: record.unwrap_or_else(|| seen(pods)).after(&times(&succeeded), &times(&failed)),
        active,
        ..Tally::default()
    };
    match spec::indexes(job) {
        Some(completions) => with_indexes(tally, job, pods, completions),
        None => tally,
    }
}

/// Returns the failures since the last success, of pods that are counted already and still there.
fn seen(pods: &[Arc<PodView>]) -> Record {
    let of_phase = |phase: &str| {
        let counted = pods.iter().filter(|pod| !pods::is_tracked(pod) && !pod.meta().is_terminating());
        counted.filter(|pod| pod.status.phase == *phase).map(|pod| ended_at(pod)).collect::<Vec<_>>()
    };
    Record::default().after(&of_phase("Succeeded"), &of_phase("Failed"))
}

fn with_indexes(tally: Tally, job: &JobView, pods: &[Arc<PodView>], completions: i32) -> Tally {
    let tracked = || {
        let tracked = pods.iter().filter(|pod| pods::is_tracked(pod));
        tracked.filter_map(|pod| Some((pods::valid_index(job, pod)?, pod)))
    };
    let completed_before = Indexes::parse(&job.status.completed_indexes, completions);
    let succeeded = tracked().filter(|(_, pod)| pod.status.phase == "Succeeded").map(|(index, _)| index);
    let completed = completed_before.union(&succeeded.collect());
    let tally = Tally { succeeded: completed.len(), completed_before, completed, ..tally };
    let Some(limit) = spec::limit_per_index(job) else { return tally };
    let before = Indexes::parse(job.status.failed_indexes.as_deref().unwrap_or_default(), completions);
    let failed = tracked().filter(|(_, pod)| fails_index(job, pod, limit)).map(|(index, _)| index);
    let failed = before.union(&failed.collect());
    let active: BTreeSet<i32> = tally.active.iter().filter_map(|pod| pods::index(pod)).collect();
    let mut to_replace: BTreeMap<i32, Arc<PodView>> = BTreeMap::new();
    for (index, pod) in tracked().filter(|(_, pod)| is_failed(job, pod)) {
        if tally.completed.contains(index) || failed.contains(index) || active.contains(&index) {
            continue;
        }
        let failures = |pod: &PodView| pods::earlier_failures(pod).saturating_add(pods::earlier_ignored(pod));
        let is_last = to_replace
            .get(&index)
            .is_none_or(|last| failures(last) <= failures(pod) && ended_at(last) <= ended_at(pod));
        if is_last {
            to_replace.insert(index, Arc::clone(pod));
        }
    }
    Tally { failed_indexes: Some(failed), to_replace, ..tally }
}

/// Whether the index of a pod has failed with it.
fn fails_index(job: &JobView, pod: &PodView, limit: i32) -> bool {
    if !is_failed(job, pod) {
        return false;
    }
    match failure::applied(job.spec.pod_failure_policy.as_ref(), pod).map(|applied| applied.meaning) {
        Some(Meaning::FailIndex) => true,
        Some(Meaning::Ignore) => false,
        Some(Meaning::FailJob | Meaning::Count) | None => pods::earlier_failures(pod) >= limit,
    }
}

/// Returns a number of pods as the API has it.
pub(super) fn count(pods: usize) -> i32 {
    i32::try_from(pods).unwrap_or(i32::MAX)
}

// === impl Uncounted ===

impl<'a> Uncounted<'a> {
    pub(super) fn of(pods: Option<&'a UncountedPods>) -> Self {
        let set = |uids: fn(&UncountedPods) -> &[Uid]| pods.map(uids).unwrap_or_default().iter().collect();
        Self { succeeded: set(|pods| &pods.succeeded), failed: set(|pods| &pods.failed) }
    }
}
