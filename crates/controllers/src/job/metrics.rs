//! The metrics, under upstream's names.

use std::collections::BTreeMap;
use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, exponential_buckets};
use steersman_informer::Change;
use steersman_model::batch::{JobStatus, JobView};
use steersman_model::core::PodView;
use steersman_runtime::metrics::{Families, FamilyError};

use super::failure::Meaning;
use super::indexes::Indexes;
use super::plan::{End, Verdict};
use super::tally::Tally;
use super::{map, spec};

/// The metric families.
#[derive(Clone)]
pub(super) struct Metrics {
    sync_duration: HistogramVec,
    syncs: IntCounterVec,
    finished: IntCounterVec,
    by_external_controller: IntCounterVec,
    pods_finished: IntCounterVec,
    failures_handled: IntCounterVec,
    terminated_tracked: IntCounterVec,
    indexes_finished: IntCounterVec,
    pods_created: IntCounterVec,
}

// === impl Metrics ===

impl Metrics {
    /// # Errors
    /// Another metric of the same name is registered.
    pub(super) fn new(families: &Families) -> Result<Self, FamilyError> {
        let options = |name: &str, help: &str| Opts::new(name, help).subsystem("job_controller");
        let counters = |name: &str, help: &str, labels: &[&str]| families.counters(options(name, help), labels);
        let of_sync = ["completion_mode", "result", "action"];
        let duration = HistogramOpts::from(options("job_sync_duration_seconds", "The time it took to sync a job"))
            .buckets(exponential_buckets(0.004, 2.0, 15)?);
        Ok(Self {
            sync_duration: families.histograms(duration, &of_sync)?,
            syncs: counters("job_syncs_total", "The number of job syncs", &of_sync)?,
            finished: counters(
                "jobs_finished_total",
                "[STABLE] The number of finished jobs",
                &["completion_mode", "result", "reason"],
            )?,
            by_external_controller: counters(
                "jobs_by_external_controller_total",
                "[ALPHA] The number of Jobs managed by an external controller",
                &["controller_name"],
            )?,
            pods_finished: counters(
                "job_pods_finished_total",
                "The number of finished Pods that are fully tracked",
                &["completion_mode", "result"],
            )?,
            failures_handled: counters(
                "pod_failures_handled_by_failure_policy_total",
                // With the tabs of upstream's source.
                "[BETA] The number of failed Pods handled by failure policy with\n\t\t\trespect to the failure policy \
                 action applied based on the matched\n\t\t\trule. Possible values of the action label correspond to \
                 the\n\t\t\tpossible values for the failure policy rule action, which are:\n\t\t\t\"FailJob\", \"Ignore\" and \
                 \"Count\".",
                &["action"],
            )?,
            terminated_tracked: counters(
                "terminated_pods_tracking_finalizer_total",
                "[BETA] The number of terminated pods (phase=Failed|Succeeded)\nthat have the finalizer \
                 batch.kubernetes.io/job-tracking\nThe event label can be \"add\" or \"delete\".",
                &["event"],
            )?,
            indexes_finished: counters(
                "job_finished_indexes_total",
                "[ALPHA] The number of finished indexes. Possible values for the\n\t\t\tstatus label are: \"succeeded\", \
                 \"failed\". Possible values for the\n\t\t\tbackoffLimit label are: \"perIndex\" and \"global\"",
                &["status", "backoffLimit"],
            )?,
            pods_created: counters(
                "job_pods_creation_total",
                "[ALPHA] The number of Pods created by the Job controller labelled with a reason for the Pod creation.\n\
                 This metric also distinguishes between Pods created using different PodReplacementPolicy settings.\n\
                 Possible values of the \"reason\" label are:\n\"new\", \"recreate_terminating_or_failed\", \
                 \"recreate_failed\".\nPossible values of the \"status\" label are:\n\"succeeded\", \"failed\".",
                &["reason", "status"],
            )?,
        })
    }

    /// Counts a pass.
    pub(super) fn synced(&self, job: &JobView, action: &str, is_success: bool, time: Duration) {
        let labels = [mode(job), if is_success { "success" } else { "error" }, action];
        self.sync_duration.with_label_values(&labels).observe(time.as_secs_f64());
        self.syncs.with_label_values(&labels).inc();
    }

    /// Counts a Job that has finished.
    pub(super) fn finished(&self, job: &JobView, verdict: &Verdict) {
        let result = if verdict.end == End::Complete { "succeeded" } else { "failed" };
        self.finished.with_label_values(&[mode(job), result, &verdict.reason]).inc();
    }

    /// Counts the pods and indexes that a written status counts and the one before did not.
    pub(super) fn counted(&self, job: &JobView, before: &JobStatus, now: &JobStatus) {
        let more = |before: i32, now: i32| u64::try_from(now - before).unwrap_or(0);
        let add = |result: &str, count: u64| self.pods_finished.with_label_values(&[mode(job), result]).inc_by(count);
        add("failed", more(before.failed, now.failed));
        let Some(completions) = spec::indexes(job) else {
            add("succeeded", more(before.succeeded, now.succeeded));
            return;
        };
        let count = |text: &str| Indexes::parse(text, completions).len();
        let failed = |status: &JobStatus| count(status.failed_indexes.as_deref().unwrap_or_default());
        let succeeded = more(count(&before.completed_indexes), count(&now.completed_indexes));
        add("succeeded", succeeded);
        let limit = if spec::limit_per_index(job).is_some() { "perIndex" } else { "global" };
        self.indexes_finished.with_label_values(&["succeeded", limit]).inc_by(succeeded);
        self.indexes_finished.with_label_values(&["failed", limit]).inc_by(more(failed(before), failed(now)));
    }

    /// Counts failed pods that a failure policy was applied to.
    pub(super) fn handled(&self, actions: &BTreeMap<Meaning, u64>) {
        for (meaning, count) in actions {
            self.failures_handled.with_label_values(&[meaning.as_str()]).inc_by(*count);
        }
    }

    /// Counts created pods, and those that could not be created.
    pub(super) fn created(&self, job: &JobView, tally: &Tally, made: usize, failed: usize) {
        let reason = match (spec::replaces_ended_only(job), tally.failed > 0, tally.terminating > 0) {
            (true, true, _) => "recreate_failed",
            (false, true, _) | (_, false, true) => "recreate_terminating_or_failed",
            (_, false, false) => "new",
        };
        for (status, count) in [("succeeded", made), ("failed", failed)] {
            self.pods_created.with_label_values(&[reason, status]).inc_by(count as u64);
        }
    }

    /// Counts pods that have ended and are not counted yet.
    pub(super) fn pod_changed(&self, change: &Change<PodView>) {
        if let Some(event) = map::tracked_end(change) {
            self.terminated_tracked.with_label_values(&[event]).inc();
        }
    }

    /// Counts Jobs that another controller manages.
    pub(super) fn job_changed(&self, change: &Change<JobView>) {
        if let Change::Added { new, .. } = change
            && let Some(manager) = spec::managed_elsewhere(new)
        {
            self.by_external_controller.with_label_values(&[manager]).inc();
        }
    }
}

fn mode(job: &JobView) -> &'static str {
    if spec::indexes(job).is_some() { "Indexed" } else { "NonIndexed" }
}
