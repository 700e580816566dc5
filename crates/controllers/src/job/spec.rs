//! Pure: what a Job asks for, with the API server's defaults for what is absent.

use serde::Deserialize;
use steersman_base::{Condition, Selector, condition};
use steersman_model::batch::JobView;

use crate::claim::Selecting;

/// The name of this controller in `spec.managedBy`.
const CONTROLLER: &str = "kubernetes.io/job-controller";

impl Selecting for JobView {
    fn selector(&self) -> Option<Selector> {
        Selector::from_declared(self.spec.selector.as_ref()).ok()
    }
}

/// Whether the Job has finished, for whatever result: nothing is done for it any more.
pub(crate) fn is_finished(job: &JobView) -> bool {
    finish(job).is_some()
}

/// Whether the Job may have fewer pods than it wants.
pub(super) fn lacks_pods(job: &JobView) -> bool {
    !is_finished(job) && job.spec.suspend != Some(true) && job.status.active < job.spec.parallelism.unwrap_or(1)
}

/// Returns the condition that ends the Job, if it has finished.
pub(crate) fn finish(job: &JobView) -> Option<&Condition> {
    let is_end = |condition: &&Condition| matches!(&*condition.type_, "Complete" | "Failed") && condition.is_true();
    job.status.conditions.iter().find(is_end)
}

/// Whether the Job has completed.
pub(crate) fn is_complete(job: &JobView) -> bool {
    condition::is_true(&job.status.conditions, "Complete")
}

/// Returns the other controller that manages the Job, if there is one.
pub(super) fn managed_elsewhere(job: &JobView) -> Option<&str> {
    job.spec.managed_by.as_deref().filter(|manager| *manager != CONTROLLER)
}

/// The completion mode of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    NonIndexed,
    Indexed,
}

/// Returns the completion mode; `None` if it is newer than this program.
pub(super) fn mode(job: &JobView) -> Option<Mode> {
    match job.spec.completion_mode.as_deref() {
        None | Some("NonIndexed") => Some(Mode::NonIndexed),
        Some("Indexed") => Some(Mode::Indexed),
        Some(_) => None,
    }
}

/// Returns the number of indexes of an indexed Job; `None` if it is not indexed.
pub(super) fn indexes(job: &JobView) -> Option<i32> {
    (mode(job) == Some(Mode::Indexed)).then(|| job.spec.completions.unwrap_or(0))
}

/// Returns how often an index may fail, if indexes fail by themselves.
pub(super) fn limit_per_index(job: &JobView) -> Option<i32> {
    job.spec.backoff_limit_per_index.filter(|_| indexes(job).is_some())
}

/// Returns the maximum number of active pods.
pub(super) fn parallelism(job: &JobView) -> i32 {
    job.spec.parallelism.unwrap_or(1)
}

/// Returns the number of failures that the Job survives.
pub(super) fn backoff_limit(job: &JobView) -> i32 {
    job.spec.backoff_limit.unwrap_or(6)
}

/// Whether the Job is suspended.
pub(super) fn is_suspended(job: &JobView) -> bool {
    job.spec.suspend == Some(true)
}

/// Whether a terminating pod is replaced only after it has ended.
pub(super) fn replaces_ended_only(job: &JobView) -> bool {
    job.spec.pod_replacement_policy.as_deref() == Some("Failed")
}

/// Whether containers of the pods are restarted in place.
pub(super) fn restarts_in_place(job: &JobView) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Spec<'a> {
        #[serde(borrow, rename = "restartPolicy")]
        restart_policy: Option<std::borrow::Cow<'a, str>>,
    }
    let spec: Spec<'_> = serde_json::from_str(job.spec.template.spec().as_str()).unwrap_or_default();
    spec.restart_policy.as_deref() == Some("OnFailure")
}
