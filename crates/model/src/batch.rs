//! The group `batch`.

mod cron_job;
mod job;

pub use cron_job::{CronJobSpec, CronJobStatus, CronJobView};
pub use job::{
    ExitCodes, FailurePolicy, FailureRule, JobSpec, JobStatus, JobView, PodConditionPattern, SuccessPolicy,
    SuccessRule, UncountedPods,
};
