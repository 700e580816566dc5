//! The shell: observe → claim → plan → create or delete pods → count them.

mod gangs;
mod orphans;
mod pass;

use std::sync::Arc;

use serde_json::json;
use steersman_base::names::finalizers;
use steersman_base::{Istr, Meta, ObjectKey, Resource};
use steersman_informer::Lister;
use steersman_model::batch::JobView;
use steersman_model::core::PodView;
use steersman_model::{Kind, View};
use steersman_runtime::__internal::Children;
use steersman_runtime::events::About;
use steersman_runtime::writer::Behalf;
use steersman_runtime::{Action, Context, Error, Patch, Reconciler, WriteError, reasons};
use tokio::time::Instant;

use super::memory::Memory;
use super::metrics::Metrics;
use super::{Options, spec};
pub(super) use gangs::Gangs;
pub(super) use orphans::Orphans;
use pass::Pass;

const JOBS: &Resource = &JobView::RESOURCE;
const PODS: &Resource = &PodView::RESOURCE;

/// The controller's shell: the caches that it reads from, and its memory.
pub(super) struct Jobs {
    pub(super) jobs: Lister<JobView>,
    pub(super) pods: Children<PodView>,
    /// Absent unless Jobs have Workloads.
    pub(super) gangs: Option<Gangs>,
    pub(super) options: Options,
    pub(super) memory: Arc<Memory>,
    pub(super) metrics: Metrics,
}

reasons! {
    /// Why the Job controller writes.
    pub enum Why {
        /// Fewer pods are active than wanted.
        TooFew { have: usize, want: usize } => "{have} of {want} pods are active"
            event "SuccessfulCreate" |pod| "Created pod: {pod}"
            or "FailedCreate" |error| "Error creating: {error}",
        /// More pods are active than wanted, or two for one index.
        TooMany { have: usize, want: usize } => "{have} pods are active, {want} are wanted"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// The Job ends.
        Ends { reason: Istr } => "the Job ends: {reason}"
            event "SuccessfulDelete" |pod| "Deleted pod: {pod}"
            or "FailedDelete" |error| "Error deleting: {error}",
        /// The pod is not wanted any more, and does not count.
        Unwanted { pod: Istr } => "pod {pod} is not wanted any more",
        /// The pod is counted.
        Counted { pod: Istr } => "pod {pod} is counted",
        /// No Job will count the pod.
        Orphaned { pod: Istr } => "no Job will count pod {pod}",
        /// Pods have ended, or the numbers have changed.
        Status { active: i32, succeeded: i32, failed: i32 } => "{active} active, {succeeded} succeeded, {failed} failed",
        /// The Job has no Workload.
        NoWorkload { job: Istr } => "Job {job} has no Workload"
            event "WorkloadCreated" |workload| "Created Workload {workload} for Job {job}"
            or "FailedWorkloadCreate" |error| "Failed to create Workload for Job {job}: {error}",
        /// The Job has no PodGroup.
        NoGroup { job: Istr } => "Job {job} has no PodGroup"
            event "PodGroupCreated" |group| "Created PodGroup {group} for Job {job}",
        /// The number of pods that are scheduled together has changed.
        GangSize { have: i32, want: i32 } => "{want} pods are to be scheduled together, not {have}",
        /// The Job has finished.
        Finished { reason: Istr } => "the Job has finished: {reason}",
    }
}

// === impl Jobs ===

impl Reconciler for Jobs {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(job) = cx.main(&self.jobs, key).await? else {
            self.memory.forget(key);
            return Ok(Action::Done);
        };
        if spec::managed_elsewhere(&job).is_some() {
            return Ok(Action::Done);
        }
        if spec::is_finished(&job) {
            self.memory.forget(key);
            return Ok(Action::Done);
        }
        if spec::mode(&job).is_none() {
            let note = "Skipped Job sync because completion mode is unknown";
            cx.events.warning(&About::new(JOBS, job.meta()), "UnknownCompletionMode", note);
            return Ok(Action::Done);
        }
        let begun = Instant::now();
        let mut pass = Pass::new(self, cx, &job);
        let outcome = pass.run().await;
        self.metrics.synced(&job, pass.action(), outcome.is_ok(), begun.elapsed());
        outcome
    }
}

/// Removes the tracking finalizer of a pod. That the pod is gone is fine: it has no finalizer any more, and a cache that still
/// shows it must not have it counted again.
async fn release(write: &Behalf<'_>, pod: &Meta, unchanged_only: bool, why: &Why) -> Result<(), WriteError> {
    let mut metadata = json!({
        "uid": pod.uid,
        "$deleteFromPrimitiveList/finalizers": [finalizers::JOB_TRACKING],
    });
    if unchanged_only {
        metadata["resourceVersion"] = json!(pod.resource_version);
    }
    let patch = json!({ "metadata": metadata });
    match write.patch(PODS, &pod.key(), Patch::Strategic(&patch), why).await {
        Ok(_) => Ok(()),
        Err(WriteError::NotFound) => {
            write.saw_gone(PODS, pod);
            Ok(())
        }
        // Also of a pod that was replaced: the caches will show it.
        Err(error) => Err(error),
    }
}
