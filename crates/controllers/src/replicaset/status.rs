//! Pure: the status of a ReplicaSet, and when to check again.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Condition, ConditionStatus, Time, condition};
use steersman_model::View;
use steersman_model::apps::ReplicaSetStatus;
use steersman_model::core::PodView;

use super::{Options, Replicated, plan};
use crate::pod;

/// The condition that reports a failed pass.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Whether the ReplicaSet has fewer pods than it wants, by its status.
pub(super) fn lacks_pods<V: Replicated>(set: &V) -> bool {
    usize::try_from(set.status().replicas).unwrap_or_default() < plan::wanted(set)
}

/// Returns the status that the ReplicaSet should have. `failure` is the error of this pass.
pub(super) fn status<V: Replicated>(
    set: &V,
    active: &[Arc<PodView>],
    terminating: usize,
    failure: Option<&str>,
    options: Options,
    now: Time,
) -> ReplicaSetStatus {
    let labels = set.template().labels();
    let fully_labeled =
        |pod: &&Arc<PodView>| labels.iter().all(|(key, value)| pod.meta().labels.get(key) == Some(value));
    let available = |pod: &&Arc<PodView>| pod::available_in(pod, min_ready(set), now) == Some(Duration::ZERO);
    let count = |pods: usize| i32::try_from(pods).unwrap_or(i32::MAX);
    ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: count(active.iter().filter(fully_labeled).count()),
        ready_replicas: count(active.iter().filter(|pod| pod::is_ready(pod)).count()),
        available_replicas: count(active.iter().filter(available).count()),
        terminating_replicas: (V::COUNTS_TERMINATING && options.terminating_replicas).then(|| count(terminating)),
        observed_generation: set.meta().generation,
        conditions: conditions(set, active.len(), failure, now),
    }
}

fn conditions(set: &impl Replicated, have: usize, failure: Option<&str>, now: Time) -> Box<[Condition]> {
    let mut conditions = set.status().conditions.into_vec();
    match failure {
        None => drop(condition::remove(&mut conditions, REPLICA_FAILURE)),
        Some(_) if condition::find(&conditions, REPLICA_FAILURE).is_some() => {}
        Some(message) => {
            let failure = Condition::new(REPLICA_FAILURE, ConditionStatus::True);
            let failure = if have < plan::wanted(set) {
                failure.because("FailedCreate", message)
            } else {
                failure.because("FailedDelete", &format!("unable to delete pods: {message}"))
            };
            conditions.push(Condition { last_transition_time: Some(now), ..failure });
        }
    }
    conditions.into()
}

/// Returns when the next ready pod becomes available, if one is waiting for `minReadySeconds`.
pub(super) fn next_check(
    set: &impl Replicated,
    status: &ReplicaSetStatus,
    active: &[Arc<PodView>],
    now: Time,
) -> Option<Duration> {
    if min_ready(set).is_zero() || status.ready_replicas == status.available_replicas {
        return None;
    }
    let waits = active.iter().filter_map(|pod| pod::available_in(pod, min_ready(set), now));
    // A ready pod without a time is checked again after the whole period.
    Some(waits.filter(|wait| !wait.is_zero()).min().unwrap_or(min_ready(set)))
}

fn min_ready(set: &impl Replicated) -> Duration {
    Duration::from_secs(u64::try_from(set.min_ready_seconds()).unwrap_or(0))
}
