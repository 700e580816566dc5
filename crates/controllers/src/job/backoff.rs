//! Pure: how long to wait before failed pods are replaced. Follows `backoff_utils.go`.

use std::time::Duration;

use steersman_base::{ConditionStatus, Time};
use steersman_model::View;
use steersman_model::core::PodView;
use steersman_model::core::pod::{ContainerState, ContainerStatus};

/// The wait after the first failure; each further one doubles it. Upstream's figures.
const BACKOFF_MIN: Duration = Duration::from_secs(10);
const BACKOFF_MAX: Duration = Duration::from_secs(600);
/// The doublings after which the maximum is reached in any case.
const DOUBLINGS_MAX: u32 = 10;

/// The failures since the last success of a Job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) failures: u32,
    pub(super) last_failure: Option<Time>,
}

/// Returns the time when a pod ended, as well as it is known.
pub(super) fn ended_at(pod: &PodView) -> Option<Time> {
    let meta = pod.meta();
    let unready = || {
        let ready = pod.status.conditions.get("Ready")?;
        ready.last_transition_time.filter(|_| ready.status == ConditionStatus::False)
    };
    let deleted = || {
        let grace = meta.deletion_grace_period_seconds().unwrap_or(0);
        Some(meta.deletion_timestamp()?.plus_seconds(-grace))
    };
    containers_ended_at(pod).or_else(unready).or_else(deleted).or(meta.creation_timestamp)
}

/// Returns the time when the last container ended. Sidecars end after the others.
fn containers_ended_at(pod: &PodView) -> Option<Time> {
    let is_sidecar = |status: &&ContainerStatus| {
        let mut containers = pod.spec.init_containers.iter();
        containers.any(|container| container.name == status.name && container.restart_policy == "Always")
    };
    let containers = last_end(pod.status.container_statuses.iter(), None);
    last_end(pod.status.init_container_statuses.iter().filter(is_sidecar), containers)
}

/// Returns the last end, or `earlier`; `None` if one of the containers has not ended.
fn last_end<'a>(mut statuses: impl Iterator<Item = &'a ContainerStatus>, earlier: Option<Time>) -> Option<Time> {
    statuses
        .try_fold(earlier, |last, status| match status.state {
            ContainerState::Terminated { finished_at: Some(time), .. } => Some(last.max(Some(time))),
            _ => None,
        })
        .flatten()
}

/// Returns how long to wait after this number of failures, the last of which was then.
pub(super) fn remaining(failures: u32, last_failure: Option<Time>, now: Time) -> Duration {
    let Some(last_failure) = last_failure.filter(|_| failures > 0) else { return Duration::ZERO };
    let wait = BACKOFF_MIN * 2_u32.pow((failures - 1).min(DOUBLINGS_MAX));
    wait.min(BACKOFF_MAX).saturating_sub(now.since(last_failure))
}

// === impl Record ===

impl Record {
    /// Returns the record after these pods have ended. A success ends a series of failures.
    pub(super) fn after(self, succeeded: &[Option<Time>], failed: &[Option<Time>]) -> Self {
        let series = match succeeded.iter().max() {
            None => self,
            Some(_) => Self::default(),
        };
        let last_success = succeeded.iter().max();
        let later = failed.iter().filter(|time| last_success.is_none_or(|success| *time > success));
        later.fold(series, |record, time| Self {
            failures: record.failures.saturating_add(1),
            last_failure: record.last_failure.max(*time),
        })
    }

    /// Returns how long to wait before pods are created.
    pub(super) fn remaining(self, now: Time) -> Duration {
        remaining(self.failures, self.last_failure, now)
    }
}
