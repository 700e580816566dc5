//! Pure: when a finished Job expires.

use std::time::Duration;

use steersman_base::{MicroTime, Time};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::batch::JobView;

use crate::job::spec::finish;

/// The action on a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The Job is kept: it has not finished, has no time to live, or is being deleted.
    Kept,
    /// The Job expires after this time.
    In {
        wait: Duration,
        /// Whether it has finished in the future: the clocks of the cluster differ.
        is_skewed: bool,
    },
    /// The Job has expired.
    Since(Time),
}

/// The Job has finished, and does not say when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the condition that ends the Job has no lastTransitionTime: the time since it has finished is not known")]
pub(super) struct NoFinishTime;

/// Returns what is to be done about a Job.
///
/// # Errors
/// It is not known when the Job has finished.
pub(super) fn due(job: &JobView, now: MicroTime) -> Result<Due, NoFinishTime> {
    let Some(ttl) = job.spec.ttl_seconds_after_finished else { return Ok(Due::Kept) };
    let Some(end) = finish(job).filter(|_| !job.meta().is_terminating()) else { return Ok(Due::Kept) };
    let finished_at = end.last_transition_time.ok_or(NoFinishTime)?;
    let expires_at = finished_at.plus_seconds(ttl.into());
    let wait = micros(expires_at).since(now);
    if wait.is_zero() {
        return Ok(Due::Since(expires_at));
    }
    Ok(Due::In { wait, is_skewed: micros(finished_at) > now })
}

/// Returns after which time a changed Job is looked at; none if it is kept.
pub(super) fn delay(change: &Change<JobView>, now: MicroTime) -> Option<Duration> {
    let (Change::Added { new: job, .. } | Change::Updated { new: job, .. }) = change else { return None };
    match due(job, now) {
        Ok(Due::Kept) => None,
        Ok(Due::In { wait, .. }) => Some(wait),
        // The pass reports an error.
        Ok(Due::Since(_)) | Err(NoFinishTime) => Some(Duration::ZERO),
    }
}

fn micros(time: Time) -> MicroTime {
    MicroTime::from_unix_micros(time.unix().saturating_mul(1_000_000))
}
