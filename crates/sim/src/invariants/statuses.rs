//! Statuses match the state.

use std::sync::Arc;

use super::availability::count;
use super::{Case, DEPLOYMENT, REPLICA_SET, REPLICATION, Verdict};
use crate::world::{Object, Phase, Set};

/// The maximum number of moments of a window that are checked.
const MOMENTS_MAX: usize = 256;

/// "The generation observed by the deployment controller." (DeploymentStatus, observedGeneration; those of ReplicaSets,
/// ReplicationControllers, StatefulSets, DaemonSets and budgets mean the same)
///
/// Checked after every write to one of them, of any author, against the object alone.
pub(super) fn observed_generation_is_never_ahead_and_never_goes_back(case: &Case<'_>) -> Verdict {
    let observed = |object: &Object| {
        let set = || object.set().map(|set| set.status.observed);
        let deployment = || object.deployment().map(|deployment| deployment.status.observed);
        let stateful_set = || object.stateful_set().map(|set| set.status.observed);
        let daemon_set = || object.daemon_set().map(|set| set.status.observed);
        let budget = || object.budget().map(|budget| budget.status.observed);
        set().or_else(deployment).or_else(stateful_set).or_else(daemon_set).or_else(budget)
    };
    let Some((after, is)) = case.step.after.as_ref().and_then(|after| Some((after, observed(after)?))) else {
        return Verdict::NotMine;
    };
    let same = case.step.before.as_ref().filter(|before| before.uid == after.uid);
    let was = same.and_then(|before| observed(before)).unwrap_or(0);
    Verdict::at_store(is <= after.generation && is >= was, || {
        format!("{after} says that generation {is} was observed, after {was}, and has generation {}", after.generation)
    })
}

/// What a ReplicaSet counts: active pods, those that have all labels of the template, the ready ones, and those on
/// their way out.
type Counts = (i32, i32, i32, i32);

fn counts<'a>(set: &Object, spec: &Set, pods: impl Iterator<Item = &'a Arc<Object>>) -> Counts {
    let matches = |pod: &Object| spec.selector.as_ref().is_none_or(|selector| selector.matches(&pod.labels));
    let labelled = |pod: &Object| spec.template_labels.iter().all(|(key, value)| pod.labels.get(key) == Some(value));
    let mut counts = (0, 0, 0, 0);
    for pod in pods.filter(|pod| matches(pod) && pod.key.namespace == set.key.namespace) {
        if pod.is_active_pod() {
            counts.0 += 1;
            counts.1 += i32::from(labelled(pod));
            counts.2 += i32::from(pod.is_ready_pod());
        } else if pod.is_terminating()
            && pod.controller().is_some()
            && pod.pod().is_some_and(|pod| pod.phase != Phase::Ended)
        {
            counts.3 += 1;
        }
    }
    counts
}

/// "Replicas is the most recently observed number of non-terminating pods." "The number of non-terminating pods
/// targeted by this ReplicaSet with a Ready Condition." "The number of available non-terminating pods (ready for at
/// least minReadySeconds) for this replica set." (ReplicaSetStatus: replicas, readyReplicas, availableReplicas)
///
/// Asked when the controller writes other counts: they must be those of the pods. Judged against the store; staleness
/// excuses counts that were right at a moment by what was shown. How many are available hangs on the time, so that is
/// only held to be no more than are ready, and all that are ready where `minReadySeconds` is zero.
pub(super) fn a_replica_set_counts_its_pods(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&[REPLICA_SET, REPLICATION])) else {
        return Verdict::NotMine;
    };
    let Some((was, spec)) = before.set().zip(after.set()).filter(|(was, is)| was.status != is.status) else {
        return Verdict::NotMine;
    };
    let status = &spec.status;
    if was.status.replicas == status.replicas
        && was.status.ready == status.ready
        && was.status.available == status.available
    {
        return Verdict::NotMine;
    }
    let is_available =
        if spec.min_ready == 0 { status.available == status.ready } else { status.available <= status.ready };
    if !is_available {
        return Verdict::Violated(format!(
            "{after} says that {} of {} ready pods are available, with minReadySeconds {}",
            status.available, status.ready, spec.min_ready
        ));
    }
    let is_told = |counts: Counts| {
        (counts.0, counts.1, counts.2) == (status.replicas, status.labelled, status.ready)
            && status.terminating.is_none_or(|told| told == counts.3)
    };
    let now = counts(after, spec, case.world.controlled("pods", &after.uid));
    if is_told(now) {
        return Verdict::Holds;
    }
    let Some(moments) = case.window().moments("pods", &after.uid, MOMENTS_MAX) else { return Verdict::Excused };
    let as_shown = || moments.into_iter().any(|moment| is_told(counts(after, spec, moment.controlled())));
    Verdict::judge(false, as_shown, || {
        format!(
            "{after} says {} pods, {} with all labels, {} ready, {:?} terminating; there are {}, {}, {}, {}, and never were so many",
            status.replicas, status.labelled, status.ready, status.terminating, now.0, now.1, now.2, now.3
        )
    })
}

/// "Total number of non-terminating pods targeted by this deployment (their labels match the selector)."
/// (DeploymentStatus, replicas) The sums follow `calculateStatus` in `sync.go` of Kubernetes 1.37.
///
/// Asked when the Deployment controller writes other counts: they must be the sums over its ReplicaSets' statuses.
/// Judged against the store; staleness excuses sums that were right at a moment by what was shown.
pub(super) fn a_deployment_adds_up_its_replica_sets(case: &Case<'_>) -> Verdict {
    let Some((before, after)) = case.updated().filter(|_| case.by(&[DEPLOYMENT])) else { return Verdict::NotMine };
    let Some((was, is)) = before.deployment().zip(after.deployment()) else { return Verdict::NotMine };
    let told = (is.status.replicas, is.status.ready, is.status.available, is.status.updated);
    if told == (was.status.replicas, was.status.ready, was.status.available, was.status.updated) {
        return Verdict::NotMine;
    }
    let is_told = |sets: &mut dyn Iterator<Item = &Arc<Object>>| {
        let sets: Vec<_> = sets.filter_map(|set| Some((set, set.set()?))).collect();
        let sum = |of: fn(&Set) -> i32| sets.iter().map(|(_, set)| of(set)).sum::<i32>();
        let counted = (sum(|set| set.status.replicas), sum(|set| set.status.ready), sum(|set| set.status.available));
        let newest: Vec<_> = sets.iter().filter(|(_, set)| set.template == is.template).collect();
        let is_updated = match &*newest {
            [] => told.3 == 0,
            // Of several, the oldest counts; where they cannot be distinguished, any is accepted.
            some => some.iter().any(|(_, set)| set.status.replicas == told.3),
        };
        (told.0, told.1, told.2) == counted && is_updated
    };
    if is_told(&mut case.world.controlled("replicasets.apps", &after.uid)) {
        return Verdict::Holds;
    }
    let Some(moments) = case.window().moments("replicasets.apps", &after.uid, MOMENTS_MAX) else {
        return Verdict::Excused;
    };
    let as_shown = || {
        moments
            .into_iter()
            .any(|moment| is_told(&mut moment.controlled().filter(|set| set.is_controlled_by(&after.uid))))
    };
    Verdict::judge(false, as_shown, || {
        let sets = case.world.controlled("replicasets.apps", &after.uid).filter_map(|set| set.set());
        let mut replicas = 0;
        let mut ready = 0;
        let mut available = 0;
        let mut sets_count = 0_usize;
        for set in sets {
            replicas += set.status.replicas;
            ready += set.status.ready;
            available += set.status.available;
            sets_count += 1;
        }
        format!(
            "{after} says {} pods, {} ready, {} available, {} updated; its {} ReplicaSets say {replicas}, {ready}, {available}, and \
             never said so",
            told.0,
            told.1,
            told.2,
            told.3,
            count(sets_count)
        )
    })
}
