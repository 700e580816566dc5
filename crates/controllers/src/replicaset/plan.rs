//! Pure: a ReplicaSet and its pods → the pods to create or delete.

use std::sync::Arc;

use steersman_base::Time;
use steersman_model::core::PodView;

use super::{BURST, Options, Replicated, ranking};

/// The action on a ReplicaSet's pods.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// Nothing: the number is right, or the ReplicaSet is terminating.
    Nothing,
    /// Create this many pods.
    Create { count: usize },
    /// Delete these pods.
    Delete { pods: Vec<Arc<PodView>> },
}

/// Returns the wanted number of pods. An absent count means one: the API server's default.
pub(super) fn wanted(set: &impl Replicated) -> usize {
    usize::try_from(set.replicas().unwrap_or(1)).unwrap_or(0)
}

/// Decides. `active` are the active pods; `related` finds those of the same Deployment, if needed.
pub(super) fn plan(
    set: &impl Replicated,
    active: &[Arc<PodView>],
    related: impl FnOnce() -> Vec<Arc<PodView>>,
    options: Options,
    now: Time,
) -> Plan {
    let have = active.len();
    let want = wanted(set);
    if set.meta().is_terminating() || have == want {
        return Plan::Nothing;
    }
    if have < want {
        return Plan::Create { count: (want - have).min(BURST) };
    }
    let count = (have - want).min(BURST);
    let mut pods = active.to_vec();
    if count < have {
        ranking::rank(&mut pods, &related(), options, now);
    }
    pods.truncate(count);
    Plan::Delete { pods }
}
