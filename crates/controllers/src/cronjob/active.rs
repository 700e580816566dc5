//! Pure: the list of running Jobs of a CronJob.

use std::sync::Arc;

use steersman_base::names::annotations;
use steersman_base::{Istr, Meta, ResourceVersion, Time};
use steersman_model::batch::{CronJobStatus, CronJobView, JobView};
use steersman_model::core::ObjectReference;
use steersman_model::{Kind, View};

use super::plan::job_name;
use crate::job::spec::{finish, is_complete, is_finished};

/// The status after a look at the Jobs, and the events to record.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) status: CronJobStatus,
    pub(super) notices: Vec<Notice>,
    /// Entries of the list whose Job is not in the cache: it may be gone.
    pub(super) unseen: Vec<ObjectReference>,
}

/// An event about the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// A Job of the list has finished, with this condition.
    Finished { name: Istr, condition: Istr },
    /// A running Job is not in the list.
    Unexpected { name: Istr },
}

/// The holder of the name of a Job that is to be created.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Holder {
    /// A Job of this CronJob: the manager ended before it was noted.
    Ours(Meta),
    /// A Job that somebody else made: nothing can be started under the name.
    Another,
    /// Nobody any more: the Job can be created now.
    Nobody,
}

/// Returns who has a name, by what the server says about it.
pub(super) fn holder(cron_job: &CronJobView, live: Option<Meta>) -> Holder {
    match live {
        None => Holder::Nobody,
        Some(job) if job.is_controlled_by(cron_job.meta()) => Holder::Ours(job),
        Some(_) => Holder::Another,
    }
}

/// Compares the list with the Jobs of a CronJob.
///
/// A running Job that the controller made, and that is not in the list because the manager ended in between, is added to it.
/// For the same reason, the time of the last start is at least that of the newest Job that the controller made: were it
/// older, a Job that has finished and is deleted as history would be started a second time.
pub(super) fn look(cron_job: &CronJobView, jobs: &[Arc<JobView>]) -> Seen {
    let mut status = cron_job.status.clone();
    let mut notices = Vec::new();
    for job in jobs {
        let meta = job.meta();
        let is_listed = status.active.iter().any(|entry| entry.uid == meta.uid);
        status.last_schedule_time = status.last_schedule_time.max(scheduled(cron_job, meta));
        if let Some(condition) = finish(job) {
            if is_listed {
                status = without(&status, meta);
                notices.push(Notice::Finished { name: meta.name.clone(), condition: condition.type_.clone() });
            }
            if is_complete(job) {
                status.last_successful_time = status.last_successful_time.max(job.status.completion_time);
            }
        } else if !is_listed {
            notices.push(Notice::Unexpected { name: meta.name.clone() });
            if is_ours(meta) {
                status = with(&status, reference(meta));
            }
        }
    }
    let is_seen = |entry: &&ObjectReference| jobs.iter().any(|job| job.meta().uid == entry.uid);
    let unseen = status.active.iter().filter(|entry| !is_seen(entry)).cloned().collect();
    Seen { status, notices, unseen }
}

/// Returns the time for which the controller made a Job. The annotation alone is no proof: people copy it.
fn scheduled(cron_job: &CronJobView, job: &Meta) -> Option<Time> {
    let time = job.annotations.get(annotations::CRONJOB_SCHEDULED_TIMESTAMP)?.parse().ok()?;
    (*job.name == *job_name(cron_job, time)).then_some(time)
}

/// Whether the controller made a Job: it has the time for which it was made. Those that people make have not.
fn is_ours(job: &Meta) -> bool {
    job.annotations.contains_key(annotations::CRONJOB_SCHEDULED_TIMESTAMP)
        && !job.annotations.contains_key(annotations::CRONJOB_INSTANTIATE)
        && !job.is_terminating()
}

/// Returns the status without a Job in its list.
pub(super) fn without(status: &CronJobStatus, job: &Meta) -> CronJobStatus {
    let active = status.active.iter().filter(|entry| entry.uid != job.uid).cloned().collect();
    CronJobStatus { active, ..status.clone() }
}

/// Returns the status with a Job in its list.
pub(super) fn with(status: &CronJobStatus, job: ObjectReference) -> CronJobStatus {
    let active = status.active.iter().cloned().chain([job]).collect();
    CronJobStatus { active, ..status.clone() }
}

/// Returns the reference to a Job.
pub(super) fn reference(job: &Meta) -> ObjectReference {
    let version: &ResourceVersion = &job.resource_version;
    ObjectReference {
        kind: Istr::interned(&JobView::RESOURCE.kind),
        namespace: job.namespace.clone(),
        name: job.name.clone(),
        uid: job.uid.clone(),
        api_version: Istr::interned(&JobView::RESOURCE.api_version()),
        resource_version: Istr::from(version.to_string()),
        field_path: Istr::default(),
    }
}

/// Whether a Job runs.
pub(super) fn is_running(job: &JobView) -> bool {
    !is_finished(job)
}
