//! Pure: whether a pod has failed, and what its failure means.

use std::sync::Arc;

use steersman_model::View;
use steersman_model::batch::{ExitCodes, FailurePolicy, FailureRule, JobView};
use steersman_model::core::PodView;
use steersman_model::core::pod::{ContainerState, ContainerStatus};

use super::spec;

/// The meaning of a pod's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// The Job fails.
    FailJob,
    /// The pod's index fails.
    FailIndex,
    /// The pod is replaced, and its failure does not count.
    Ignore,
    /// The failure counts: as without a policy.
    Count,
}

/// The rule that applies to a failed pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) meaning: Meaning,
    /// The match in upstream's words.
    pub(super) message: String,
}

/// Whether the pod has failed. A terminating pod has, too, unless it has succeeded or is replaced only after its end: it
/// may never reach the phase.
pub(super) fn is_failed(job: &JobView, pod: &PodView) -> bool {
    match &*pod.status.phase {
        "Failed" => true,
        "Succeeded" => false,
        _ => pod.meta().is_terminating() && !spec::replaces_ended_only(job),
    }
}

/// Returns the rule that applies to a failed pod, if the Job has one that does.
pub(super) fn applied(policy: Option<&FailurePolicy>, pod: &PodView) -> Option<Applied> {
    let rules = policy?.rules.iter().enumerate();
    rules.into_iter().find_map(|(at, rule)| {
        let meaning = meaning(rule)?;
        let matched = matched(rule, pod)?;
        Some(Applied { meaning, message: format!("{matched} matching {} rule at index {at}", rule.action) })
    })
}

/// Whether the failure of a pod counts.
pub(super) fn counts(policy: Option<&FailurePolicy>, pod: &PodView) -> bool {
    applied(policy, pod).is_none_or(|applied| applied.meaning != Meaning::Ignore)
}

/// Returns why the Job fails, if one of the failed pods says so.
pub(super) fn fails_job(job: &JobView, pods: &[Arc<PodView>]) -> Option<String> {
    let policy = job.spec.pod_failure_policy.as_ref()?;
    let failed = pods.iter().filter(|pod| is_failed(job, pod));
    let mut applied = failed.filter_map(|pod| applied(Some(policy), pod));
    applied.find(|applied| applied.meaning == Meaning::FailJob).map(|applied| applied.message)
}

/// Returns the meaning of a rule; `None` if its action is newer than this program.
fn meaning(rule: &FailureRule) -> Option<Meaning> {
    [Meaning::FailJob, Meaning::FailIndex, Meaning::Ignore, Meaning::Count]
        .into_iter()
        .find(|meaning| rule.action == *meaning.as_str())
}

/// Returns what of the pod a rule matches, as a sentence.
fn matched(rule: &FailureRule, pod: &PodView) -> Option<String> {
    let name = pod.meta().key();
    if let Some(codes) = &rule.on_exit_codes {
        let mut statuses = pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
        let (container, code) = statuses.find_map(|status| Some((&status.name, exited(status, codes)?)))?;
        return Some(format!("Container {container} for pod {name} failed with exit code {code}"));
    }
    let is_wanted = |type_: &str, status| {
        rule.on_pod_conditions.iter().any(|pattern| pattern.type_ == *type_ && pattern.status == status)
    };
    let condition = pod.status.conditions.iter().find(|condition| is_wanted(condition.type_, condition.status))?;
    Some(format!("Pod {name} has condition {}", condition.type_))
}

/// Returns the exit code of a container that has failed, if it is one of these.
fn exited(status: &ContainerStatus, codes: &ExitCodes) -> Option<i32> {
    let ContainerState::Terminated { exit_code, .. } = status.state else { return None };
    let is_meant = codes.container_name.as_ref().is_none_or(|name| *name == status.name);
    let is_listed = codes.values.contains(&exit_code);
    let is_wanted = match &*codes.operator {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    };
    (is_meant && exit_code != 0 && is_wanted).then_some(exit_code)
}

// === impl Meaning ===

impl Meaning {
    /// Returns the name in the API.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::FailJob => "FailJob",
            Self::FailIndex => "FailIndex",
            Self::Ignore => "Ignore",
            Self::Count => "Count",
        }
    }
}
