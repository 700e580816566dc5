//! Pure: whether a CronJob starts a Job now.

use std::time::Duration;

use steersman_base::cron::{Schedule, Zone};
use steersman_base::names::annotations;
use steersman_base::{Istr, MicroTime, StringMap, Time};
use steersman_model::batch::{CronJobStatus, CronJobView, JobView};
use steersman_model::template::raw_body;
use steersman_model::{Kind, NewPodMeta, PodName, View};

use super::due::{self, Missed};
use crate::claim::owner_ref;

/// The actions, the time of the next pass, and the events.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) start: Option<Start>,
    pub(super) again_in: Option<Duration>,
    pub(super) notices: Vec<Notice>,
}

/// A Job to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The time for which it is started.
    pub(super) time: Time,
    /// Whether the running Jobs are deleted first.
    pub(super) is_replacement: bool,
}

/// An event about the CronJob.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Normal(&'static str, String),
    Warning(&'static str, String),
}

/// Decides; `status` is the status after a look at the Jobs.
pub(super) fn plan(job: &CronJobView, status: &CronJobStatus, now: MicroTime) -> Plan {
    let mut plan = Plan { start: None, again_in: None, notices: Vec::new() };
    if job.meta().is_terminating() {
        return plan;
    }
    let warn = |reason: &'static str, text: String| Notice::Warning(reason, text);
    if let Some(zone) = job.spec.time_zone.as_deref()
        && let Err(error) = Zone::find(zone)
    {
        plan.notices.push(warn("UnknownTimeZone", format!("invalid timeZone: {zone:?}: {error}")));
        return plan;
    }
    if job.spec.suspend == Some(true) {
        return plan;
    }
    let text = &job.spec.schedule;
    if text.contains("TZ") {
        let more = "see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
        let text = format!("CRON_TZ or TZ used in schedule {text:?} is not officially supported, {more}");
        plan.notices.push(warn("UnsupportedSchedule", text));
    }
    let schedule = match due::schedule(job) {
        Ok(schedule) => schedule,
        Err(error) => {
            plan.notices.push(warn("UnparseableSchedule", format!("unparseable schedule: {text:?} : {error}")));
            return plan;
        }
    };
    started(&mut plan, job, status, &schedule, now);
    plan
}

fn started(plan: &mut Plan, job: &CronJobView, status: &CronJobStatus, schedule: &Schedule, now: MicroTime) {
    let text = &job.spec.schedule;
    let due = match due::due(job, schedule, now.to_seconds()) {
        Ok(due) => due,
        Err(error) => {
            plan.notices.push(Notice::Warning("InvalidSchedule", format!("invalid schedule: {text} : {error}")));
            return;
        }
    };
    plan.again_in = due::next_in(job, schedule, now);
    let Some(due) = due else { return };
    if due.missed == Missed::Many {
        let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        plan.notices.push(Notice::Warning("TooManyMissedTimes", text.to_owned()));
    }
    if is_too_late(job, due.time, now) {
        let text = format!("Missed scheduled time to start a job: {}", rfc1123(due.time));
        plan.notices.push(Notice::Warning("MissSchedule", text));
        return;
    }
    let is_listed = status.active.iter().any(|entry| *entry.name == *job_name(job, due.time));
    if is_listed || status.last_schedule_time == Some(due.time) {
        return;
    }
    if job.spec.concurrency_policy == "Forbid" && !status.active.is_empty() {
        let text = "Not starting job because prior execution is running and concurrency policy is Forbid";
        plan.notices.push(Notice::Normal("JobAlreadyActive", text.to_owned()));
        return;
    }
    plan.start = Some(Start { time: due.time, is_replacement: job.spec.concurrency_policy == "Replace" });
}

/// Whether the deadline for the start of a Job has passed.
fn is_too_late(job: &CronJobView, time: Time, now: MicroTime) -> bool {
    let deadline = job.spec.starting_deadline_seconds.map(|seconds| time.plus_seconds(seconds));
    deadline.is_some_and(|deadline| MicroTime::from(deadline) < now)
}

/// Returns the name of the Job for a time: its minutes since 1970, so that it is made once.
pub(super) fn job_name(job: &CronJobView, time: Time) -> String {
    format!("{}-{}", job.meta().name, time.unix() / 60)
}

/// Returns the body of the Job for a time.
pub(super) fn job_body(job: &CronJobView, time: Time) -> Vec<u8> {
    let template = &job.spec.job_template;
    let zone = job.spec.time_zone.as_deref().and_then(|name| Zone::find(name).ok()).unwrap_or_else(Zone::utc);
    let name = job_name(job, time);
    let metadata = template.new_pod(PodName::Exactly(&name), &job.meta().namespace, &owner_ref(job));
    let stamp = (Istr::interned(annotations::CRONJOB_SCHEDULED_TIMESTAMP), Istr::from(zone.rfc3339(time)));
    let kept = metadata.annotations.iter().filter(|(key, _)| **key != stamp.0);
    let kept: Vec<_> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    let annotations = StringMap::new(kept.into_iter().chain([stamp]).collect());
    let metadata = NewPodMeta { annotations, finalizers: Box::default(), ..metadata };
    let spec = template.spec().as_str();
    let spec = if spec.is_empty() { "{}" } else { spec };
    raw_body(&JobView::RESOURCE.api_version(), &JobView::RESOURCE.kind, &metadata, spec)
}

/// Returns a time in the form of RFC 1123: `Tue, 17 Nov 2026 15:04:05 +0000`.
fn rfc1123(time: Time) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = time.to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    let weekday = usize::try_from(time.unix().div_euclid(24 * 3600).rem_euclid(7)).unwrap_or(0);
    let clock = part(11, 19);
    format!("{}, {} {} {} {clock} +0000", DAYS[weekday], part(8, 10), month.unwrap_or(&""), part(0, 4))
}
