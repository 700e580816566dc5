//! Pure: which CronJobs a change concerns, and when.

use std::time::Duration;

use steersman_base::{Meta, MicroTime, ObjectKey, Uid};
use steersman_informer::Change;
use steersman_model::batch::{CronJobView, JobView};
use steersman_model::{Kind, View};

use super::due;
use crate::job::spec::finish;

/// Returns when a change of a CronJob is looked at. A new schedule takes effect at its next time: what it would have missed
/// before it was set is not started.
pub(super) fn delay(change: &Change<CronJobView>, now: MicroTime) -> Duration {
    let Change::Updated { old, new } = change else { return Duration::ZERO };
    if old.spec.schedule == new.spec.schedule && old.spec.time_zone == new.spec.time_zone {
        return Duration::ZERO;
    }
    let schedule = due::schedule(new).ok();
    schedule.and_then(|schedule| due::next_in(new, &schedule, now)).unwrap_or_default()
}

/// Returns the CronJobs that a change of a Job concerns. `uid_of` returns the uid of the current CronJob of a name.
pub(super) fn owners(change: &Change<JobView>, uid_of: impl Fn(&ObjectKey) -> Option<Uid>) -> Vec<ObjectKey> {
    if let Change::Updated { old, new } = change
        && is_same_to_its_owner(old, new)
    {
        return Vec::new();
    }
    let before = change.before().map(|job| job.meta());
    let now = change.object().meta();
    let owner = |job: &Meta| {
        let owner = job.controller().filter(|owner| owner.kind == *CronJobView::RESOURCE.kind)?;
        let key = ObjectKey { namespace: job.namespace.clone(), name: owner.name.clone() };
        (uid_of(&key).as_ref() == Some(&owner.uid)).then_some(key)
    };
    let mut owners: Vec<ObjectKey> = before.into_iter().chain([now]).filter_map(owner).collect();
    owners.dedup();
    owners
}

/// Whether nothing has changed that a CronJob looks at: whether and how its Job has finished, and whose Job it is. The numbers of pods
/// of a running Job are of no interest.
fn is_same_to_its_owner(old: &JobView, new: &JobView) -> bool {
    let meta = |job: &JobView| {
        let Meta { uid, annotations, owner_references, .. } = job.meta().clone();
        (uid, annotations, owner_references, job.meta().is_terminating())
    };
    let is_same_end = match (finish(old), finish(new)) {
        (None, None) => true,
        (Some(before), Some(now)) => {
            let times = |job: &JobView| (job.status.start_time, job.status.completion_time);
            before == now && times(old) == times(new)
        }
        _ => false,
    };
    is_same_end && meta(old) == meta(new)
}
