//! Pure: which Jobs and which pods a change concerns.

use std::time::Duration;

use steersman_base::{Meta, ObjectKey};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::batch::JobView;
use steersman_model::core::PodView;

use super::{BATCHED_FOR, pods, spec};
use crate::pod;

/// Returns how long a change of a Job waits for others: not at all, unless only the status has changed.
pub(super) fn delay(change: &Change<JobView>) -> Duration {
    match change {
        Change::Updated { old, new } if old.meta().generation == new.meta().generation && !spec::is_finished(new) => {
            BATCHED_FOR
        }
        _ => Duration::ZERO,
    }
}

/// Returns the pod of a change, if no Job will remove its finalizer: it has no controller, or a Job that has finished, or
/// it is terminating and its Job is gone. `job_of` returns the Job that controls a pod, if it exists.
pub(super) fn orphan<J: AsRef<JobView>>(
    change: &Change<PodView>,
    job_of: impl Fn(&Meta) -> Option<J>,
) -> Option<ObjectKey> {
    let pod = match change {
        Change::Added { new, .. } | Change::Updated { new, .. } => new,
        Change::Deleted { .. } => return None,
    };
    let is_orphan = || match pod.meta().controller() {
        None => true,
        Some(_) => {
            job_of(pod.meta()).map_or_else(|| pod.meta().is_terminating(), |job| spec::is_finished(job.as_ref()))
        }
    };
    (pods::is_tracked(pod) && is_orphan()).then(|| pod.meta().key())
}

/// Whether a Job will not count its pods any more, so that their finalizers are to be removed.
pub(super) fn abandons(change: &Change<JobView>) -> bool {
    match change {
        Change::Deleted { .. } => true,
        Change::Added { new, .. } | Change::Updated { new, .. } => spec::is_finished(new),
    }
}

/// Returns the change of the number of pods that have ended and have the finalizer: `add` or `delete`.
pub(super) fn tracked_end(change: &Change<PodView>) -> Option<&'static str> {
    let is_counted = |pod: &PodView| pod::has_ended(pod) && pods::is_tracked(pod);
    let (before, now) = match change {
        Change::Added { new, .. } => (false, is_counted(new)),
        Change::Updated { old, new } => (is_counted(old), is_counted(new)),
        Change::Deleted { last, .. } => (is_counted(last), false),
    };
    match (before, now) {
        (false, true) => Some("add"),
        (true, false) => Some("delete"),
        _ => None,
    }
}
