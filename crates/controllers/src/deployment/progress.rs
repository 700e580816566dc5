//! Pure: whether a rollout makes progress, and the conditions that report it.
//!
//! 1. A rollout makes progress when pods of the new template appear, become ready or available, or old pods are
//!    deleted.
//! 2. Without progress for `progressDeadlineSeconds` the condition says `ProgressDeadlineExceeded`. It has no other
//!    effect.
//! 3. Paused time does not count.
//! 4. A complete Deployment is not checked again, even if its pods fail later. It is complete when its ReplicaSets
//!    report the numbers for their current specs, and not for older ones.
//!
//! Follows `progress.go` and `deployment_util.go` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_base::condition;
use steersman_base::{Condition, ConditionStatus, Time};
use steersman_model::apps::{DeploymentSpec, DeploymentStatus, DeploymentView};

use super::status::is_complete;

/// The condition: whether enough pods are available.
pub(super) const AVAILABLE: &str = "Available";
/// The condition: whether the rollout makes progress, or is complete.
pub(super) const PROGRESSING: &str = "Progressing";
/// The condition: pods cannot be created or deleted.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

const THROUGH: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Returns the time without progress after which a rollout has failed, if there is a limit. The largest number means no
/// limit.
fn deadline(spec: &DeploymentSpec) -> Option<i64> {
    spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX).map(i64::from)
}

/// Whether there is a limit to the time without progress.
pub(super) fn has_deadline(spec: &DeploymentSpec) -> bool {
    deadline(spec).is_some()
}

/// Replaces the condition of the same type, as upstream does: equal status and reason change nothing, and a changed
/// condition is moved to the end.
pub(super) fn set(conditions: &mut Vec<Condition>, condition: Condition, now: Time) {
    set_as_it_is(conditions, Condition { last_update_time: Some(now), last_transition_time: Some(now), ..condition });
}

/// As [`set`], with the times that the condition has.
pub(super) fn set_as_it_is(conditions: &mut Vec<Condition>, mut condition: Condition) {
    if let Some(held) = condition::find(conditions, &condition.type_) {
        if held.status == condition.status && held.reason == condition.reason {
            return;
        }
        if held.status == condition.status {
            condition.last_transition_time = held.last_transition_time;
        }
    }
    condition::remove(conditions, &condition.type_);
    conditions.push(condition);
}

/// Reports that the Deployment is paused or resumed, if that was not reported yet: both restart the deadline. An
/// exceeded deadline is kept.
pub(super) fn pause(deployment: &DeploymentView) -> Option<Condition> {
    let held = condition::find(&deployment.status.conditions, PROGRESSING).map(|condition| &*condition.reason);
    if deployment.metadata.is_terminating() || held == Some(TIMED_OUT) {
        return None;
    }
    let say = |reason, text| Some(Condition::new(PROGRESSING, ConditionStatus::Unknown).because(reason, text));
    match (deployment.spec.paused, held == Some(PAUSED)) {
        (true, false) => say(PAUSED, "Deployment is paused"),
        (false, true) => say("DeploymentResumed", "Deployment is resumed"),
        (true, true) | (false, false) => None,
    }
}

/// Reports that the new ReplicaSet was created.
pub(super) fn created(set: &str) -> Condition {
    let text = format!("Created new replica set {set:?}");
    Condition::new(PROGRESSING, ConditionStatus::True).because("NewReplicaSetCreated", &text)
}

/// Reports that the new ReplicaSet existed already.
pub(super) fn found(set: &str) -> Condition {
    let text = format!("Found new replica set {set:?}");
    Condition::new(PROGRESSING, ConditionStatus::True).because("FoundNewReplicaSet", &text)
}

/// Reports that the new ReplicaSet cannot be created.
pub(super) fn not_created(text: &str) -> Condition {
    Condition::new(PROGRESSING, ConditionStatus::False).because(super::FAILED_CREATE, text)
}

/// The current state of a rollout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) status: &'a DeploymentStatus,
    /// Whether the ReplicaSets have observed their specs: otherwise the counts may be those of an earlier rollout.
    pub(super) observed: bool,
}

/// Sets the conditions of progress. `current` is the previous condition.
pub(super) fn estimate(
    deployment: &DeploymentView,
    current: Option<&Condition>,
    Seen { status, observed }: Seen<'_>,
    new_set: Option<&str>,
    conditions: &mut Vec<Condition>,
    now: Time,
) {
    let Some(deadline) = deadline(&deployment.spec) else {
        condition::remove(conditions, PROGRESSING);
        return;
    };
    let was_through = current.is_some_and(|current| current.reason == THROUGH);
    if was_through && status.replicas == status.updated_replicas {
        return;
    }
    let who = match new_set {
        Some(name) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", deployment.metadata.name.as_str()),
    };
    let say =
        |status, reason, text: &str| Condition::new(PROGRESSING, status).because(reason, &format!("{who} {text}"));
    if is_complete(deployment, status) && !observed {
        // The numbers look complete; the next status of a ReplicaSet decides.
    } else if is_complete(deployment, status) {
        let through = say(ConditionStatus::True, THROUGH, "has successfully progressed.");
        set(conditions, through, now);
    } else if gets_somewhere(&deployment.status, status) {
        let on_its_way = say(ConditionStatus::True, "ReplicaSetUpdated", "is progressing.");
        // Written with every progress, because the deadline counts from its time.
        let since = current.filter(|current| current.is_true()).and_then(|current| current.last_transition_time);
        condition::remove(conditions, PROGRESSING);
        let last_transition_time = since.or(Some(now));
        conditions.push(Condition { last_update_time: Some(now), last_transition_time, ..on_its_way });
    } else if has_timed_out(current, deadline, now) {
        let timed_out = say(ConditionStatus::False, TIMED_OUT, "has timed out progressing.");
        set(conditions, timed_out, now);
    }
}

fn gets_somewhere(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| status.replicas - status.updated_replicas;
    now.updated_replicas > before.updated_replicas
        || old(now) < old(before)
        || now.ready_replicas > before.ready_replicas
        || now.available_replicas > before.available_replicas
}

fn has_timed_out(current: Option<&Condition>, deadline: i64, now: Time) -> bool {
    let Some(current) = current else { return false };
    match &*current.reason {
        // The condition is that of an earlier rollout; the start of the new one is about to be observed.
        THROUGH => false,
        TIMED_OUT => true,
        // Without a time, as a tool may have written it, it is as old as can be.
        _ => current.last_update_time.is_none_or(|said| said.plus_seconds(deadline) < now),
    }
}

/// Returns when to check whether the deadline has passed, if there is one.
pub(super) fn next_check(deployment: &DeploymentView, status: &DeploymentStatus, now: Time) -> Option<Duration> {
    let deadline = deadline(&deployment.spec)?;
    let current = condition::find(&status.conditions, PROGRESSING)?;
    // A complete rollout cannot time out any more; checking again would never end.
    if is_complete(deployment, status) || matches!(&*current.reason, TIMED_OUT | THROUGH) {
        return None;
    }
    let due = current.last_update_time?.plus_seconds(deadline);
    // One second more, because times are truncated to seconds.
    Some(due.since(now) + Duration::from_secs(1))
}
