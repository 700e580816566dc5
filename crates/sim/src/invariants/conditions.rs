//! Every condition is true when it is written.

use std::collections::BTreeSet;

use steersman_base::{Condition, ConditionStatus, condition};

use super::{Case, DEPLOYMENT, NAMESPACE, REPLICA_SET, REPLICATION, Verdict};
use crate::world::{Deployment, Object};

/// A Deployment's condition that the Deployment controller changed with this write: as it was, as it is.
fn changed<'a>(
    case: &Case<'a>,
    type_: &str,
) -> Option<(&'a Object, &'a Deployment, Option<&'a Condition>, &'a Condition)> {
    let (before, after) = case.updated().filter(|_| case.by(&[DEPLOYMENT]))?;
    let was = condition::find(before.conditions(), type_);
    let is = condition::find(after.conditions(), type_)?;
    let is_new = was.is_none_or(|was| was.status != is.status || was.reason != is.reason);
    is_new.then_some((&**after, after.deployment()?, was, is))
}

/// "Available means the deployment is available, ie. at least the minimum available replicas required are up and
/// running for at least minReadySeconds." (DeploymentConditionType)
///
/// Asked when the Deployment controller writes a status about the present generation: the condition must agree with
/// `status.availableReplicas` and the limits in the same object. Judged against the object alone.
pub(super) fn availability_is_told_as_it_is_counted(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&[DEPLOYMENT])) else { return Verdict::NotMine };
    let Some((was, is)) = before.deployment().zip(after.deployment()) else { return Verdict::NotMine };
    if is.status.observed != after.generation || was.status == is.status {
        return Verdict::NotMine;
    }
    let Some(told) = condition::find(&is.status.conditions, "Available") else { return Verdict::NotMine };
    let floor = is.available_min();
    let should = ConditionStatus::from(is.status.available >= floor);
    Verdict::at_store(told.status == should, || {
        format!(
            "{after} says Available={}, with {} of {} pods available and {floor} required",
            told.status, is.status.available, is.replicas
        )
    })
}

/// "All of the replicas associated with the Deployment are available." "No old replicas for the Deployment are
/// running." (website: Deployments, Complete Deployment: the condition Progressing with reason NewReplicaSetAvailable)
///
/// Asked when the Deployment controller begins to say so. Judged against the counts in the same object.
pub(super) fn a_roll_out_is_through_when_all_pods_are_new_and_available(case: &Case<'_>) -> Verdict {
    let Some((after, is, _, told)) = changed(case, "Progressing") else { return Verdict::NotMine };
    if told.reason != "NewReplicaSetAvailable" {
        return Verdict::NotMine;
    }
    let status = &is.status;
    let counts = [status.updated, status.replicas, status.available];
    let holds = counts.iter().all(|count| *count == is.replicas) && status.observed == after.generation;
    Verdict::at_store(holds, || {
        format!(
            "{after} says that it is through, with {} pods wanted, {} there, {} updated, {} available, generation {} of {} observed",
            is.replicas, status.replicas, status.updated, status.available, status.observed, after.generation
        )
    })
}

/// "The maximum time in seconds for a deployment to make progress before it is considered to be failed." "Note that
/// progress will not be estimated during the time a deployment is paused." (DeploymentSpec, progressDeadlineSeconds)
///
/// Asked when the Deployment controller begins to say `ProgressDeadlineExceeded`: so many seconds must have passed
/// since it last spoke of progress, and the Deployment is not paused. Judged against the object before; clocks may be
/// wrong by what the options say.
pub(super) fn a_deadline_is_exceeded_only_after_it(case: &Case<'_>) -> Verdict {
    let Some((after, is, was, told)) = changed(case, "Progressing") else { return Verdict::NotMine };
    if told.reason != "ProgressDeadlineExceeded" {
        return Verdict::NotMine;
    }
    let since = was.and_then(|was| was.last_update_time);
    let slack = 2 * case.options.clock_skew_seconds + 1;
    let is_due = |deadline: i64| since.is_some_and(|since| since.plus_seconds(deadline - slack) <= case.change.at);
    let holds = is.deadline.is_some_and(is_due) && !is.paused;
    Verdict::at_store(holds, || {
        format!(
            "{after} says that its deadline of {:?} s is exceeded at {}; it last progressed at {since:?}",
            is.deadline, case.change.at
        )
    })
}

/// "ReplicaFailure is added in a deployment when one of its pods fails to be created or deleted."
/// (DeploymentConditionType)
///
/// Asked when the Deployment controller begins to say so: one of its ReplicaSets must say it. Judged against the store;
/// staleness excuses what a ReplicaSet said by what was shown.
pub(super) fn a_failure_is_that_of_a_replica_set(case: &Case<'_>) -> Verdict {
    let Some((after, _, _, told)) = changed(case, "ReplicaFailure") else { return Verdict::NotMine };
    if told.status != ConditionStatus::True {
        return Verdict::NotMine;
    }
    let says =
        |set: &Object| set.is_controlled_by(&after.uid) && condition::is_true(set.conditions(), "ReplicaFailure");
    let window = case.window();
    let at_store = case.world.controlled("replicasets.apps", &after.uid).any(|set| says(set));
    let mut histories = case.world.histories("replicasets.apps", &after.uid);
    let as_shown = || histories.any(|history| window.of("replicasets.apps", history).ever(says));
    Verdict::judge(at_store, as_shown, || format!("{after} says ReplicaFailure, and none of its ReplicaSets does"))
}

/// "ReplicaSetReplicaFailure is added in a replica set when one of its pods fails to be created due to insufficient
/// quota, limit ranges, pod security policy, node selectors, etc. or deleted due to kubelet being down or finalizers
/// are failing." (ReplicaSetConditionType) The reasons follow `replica_set_utils.go` of Kubernetes 1.37.
///
/// Asked when the controller begins to say so: `FailedCreate` means that there were fewer pods than wanted,
/// `FailedDelete` that there were not. Judged against the counts in the same object.
pub(super) fn a_failed_create_is_told_while_pods_are_missing(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&[REPLICA_SET, REPLICATION])) else {
        return Verdict::NotMine;
    };
    let Some(set) = after.set() else { return Verdict::NotMine };
    let told = condition::find(&set.status.conditions, "ReplicaFailure").filter(|told| told.is_true());
    let Some(told) = told.filter(|_| condition::find(before.conditions(), "ReplicaFailure").is_none()) else {
        return Verdict::NotMine;
    };
    if set.status.observed != after.generation {
        return Verdict::Excused;
    }
    let is_missing = set.status.replicas < set.replicas;
    let should = if is_missing { "FailedCreate" } else { "FailedDelete" };
    Verdict::at_store(told.reason == should, || {
        format!("{after} says {} with {} of {} pods", told.reason, set.status.replicas, set.replicas)
    })
}

/// "Last time the condition transitioned from one status to another." (DeploymentCondition and NamespaceCondition,
/// lastTransitionTime; those of ReplicaSets and ReplicationControllers say the same)
///
/// Asked when a controller writes conditions: each type stands once, and a condition whose status stays keeps its time.
/// Judged against the object alone.
pub(super) fn a_condition_stands_once_and_changes_its_time_with_its_status(case: &Case<'_>) -> Verdict {
    if !case.by(&[DEPLOYMENT, REPLICA_SET, REPLICATION, NAMESPACE]) {
        return Verdict::NotMine;
    }
    let Some(after) = case.step.after.as_ref().filter(|after| !after.conditions().is_empty()) else {
        return Verdict::NotMine;
    };
    let before = case.step.before.as_ref().map_or(&[][..], |before| before.conditions());
    if before == after.conditions() {
        return Verdict::NotMine;
    }
    let mut types = BTreeSet::new();
    for told in after.conditions() {
        if !types.insert(&told.type_) {
            return Verdict::Violated(format!("{after} has two conditions {}", told.type_));
        }
        let was = condition::find(before, &told.type_).filter(|was| was.status == told.status);
        if was.is_some_and(|was| was.last_transition_time != told.last_transition_time) {
            return Verdict::Violated(format!(
                "{after} changes the time of {}={} from {:?} to {:?}",
                told.type_,
                told.status,
                was.and_then(|was| was.last_transition_time),
                told.last_transition_time
            ));
        }
    }
    Verdict::Holds
}
