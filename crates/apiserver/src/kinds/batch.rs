//! What runs to an end: Jobs and CronJobs.

mod cron_job;
mod index;
mod job;
mod schedule;
mod status;

use super::Rules;

pub(super) use status::validate as validate_status;

/// The rules of a kind of the group `batch`.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    match kind {
        "Job" => Some(&job::JOB),
        "CronJob" => Some(&cron_job::CRON_JOB),
        _ => None,
    }
}
