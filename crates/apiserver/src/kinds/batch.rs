//! The group `batch`: Jobs and CronJobs.

mod cron_job;
mod job;

use crate::kinds::Kinds;

/// The kinds of the group `batch`.
pub(super) const KINDS: Kinds = &[("CronJob", &cron_job::RULES), ("Job", &job::RULES)];
