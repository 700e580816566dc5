//! Pure: which finished Jobs are deleted.

use std::sync::Arc;

use steersman_model::View;
use steersman_model::batch::{CronJobView, JobView};

use crate::job::spec::{is_complete, is_finished};

/// Returns the finished Jobs beyond the limits of the history, the oldest first. A limit that is absent keeps all.
pub(super) fn surplus(cron_job: &CronJobView, jobs: &[Arc<JobView>]) -> Vec<Arc<JobView>> {
    let (complete, failed): (Vec<_>, Vec<_>) =
        jobs.iter().filter(|job| is_finished(job)).cloned().partition(|job| is_complete(job));
    let spec = &cron_job.spec;
    let mut surplus = oldest(complete, spec.successful_jobs_history_limit);
    surplus.extend(oldest(failed, spec.failed_jobs_history_limit));
    // What is terminating is deleted already.
    surplus.retain(|job| !job.meta().is_terminating());
    surplus
}

fn oldest(mut jobs: Vec<Arc<JobView>>, limit: Option<i32>) -> Vec<Arc<JobView>> {
    let kept = limit.map_or(jobs.len(), |limit| usize::try_from(limit).unwrap_or(0));
    // Those that were never started come last.
    jobs.sort_by_key(|job| (job.status.start_time.is_none(), job.status.start_time, job.meta().name.clone()));
    jobs.truncate(jobs.len().saturating_sub(kept));
    jobs
}
