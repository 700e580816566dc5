//! Pure: which CronJobs a change concerns, and when.

use std::time::Duration;

use steersman_base::{Meta, MicroTime, ObjectKey, Uid};
use steersman_informer::Change;
use steersman_model::batch::{CronJobView, JobView};
use steersman_model::{Kind, View};

use super::due;

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
