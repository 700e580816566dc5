//! Times to live of Jobs.

use steersman_base::{Time, condition};

use super::replicas::stays;
use super::{Case, Findings, Rest, TTL_AFTER_FINISHED, Verdict};
use crate::world::{Job, Object};

const JOBS: &str = "jobs.batch";

/// Returns when a Job expires; none if it does not.
fn expires(job: &Job) -> Option<Time> {
    let end = job.status.conditions.iter().find(|condition| {
        matches!(&*condition.type_, "Complete" | "Failed")
            && condition::is_true(&job.status.conditions, &condition.type_)
    })?;
    Some(end.last_transition_time?.plus_seconds(job.time_to_live?))
}

/// "If this field is set, ttlSecondsAfterFinished after the Job finishes, it is eligible to be automatically deleted. [...] If
/// this field is unset, the Job won't be automatically deleted." (JobSpec, ttlSecondsAfterFinished)
///
/// Asked when the ttl-after-finished controller deletes a Job: it has finished, and its time to live is over. Judged against
/// the store alone: the controller reads the Job from the server, and deletes it as it was read.
pub(super) fn jobs_live_for_their_time_to_live(case: &Case<'_>) -> Verdict {
    let Some(deleted) = case.deleted().filter(|_| case.is(JOBS) && case.by(&[TTL_AFTER_FINISHED])) else {
        return Verdict::NotMine;
    };
    let Some(job) = deleted.job() else { return Verdict::NotMine };
    Verdict::at_store(expires(job).is_some_and(|at| at <= case.latest()), || {
        format!(
            "{deleted} is deleted; its time to live is {:?} s, and it expires at {:?}",
            job.time_to_live,
            expires(job)
        )
    })
}

/// "limits the lifetime of a Job that has finished execution (either Complete or Failed)" (JobSpec,
/// ttlSecondsAfterFinished)
///
/// At rest: no Job that is still there has expired.
pub(super) fn expired_jobs_are_deleted(rest: &Rest<'_>, found: &mut Findings) {
    if !rest.options.runs(TTL_AFTER_FINISHED) {
        return;
    }
    let latest = rest.world.now().plus_seconds(-rest.options.clock_skew_seconds);
    let stay = |object: &&std::sync::Arc<Object>| !object.is_terminating() && stays(rest, object);
    for object in rest.world.all(JOBS).filter(stay) {
        let at = object.job().and_then(expires);
        found.expect(at.is_none_or(|at| at >= latest), || format!("{object} has expired at {at:?}"));
    }
}
