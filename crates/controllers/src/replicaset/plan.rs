//! Pure: what is seen of a ReplicaSet → what is to be done about its pods.

use std::sync::Arc;

use steersman_base::Time;
use steersman_model::core::PodView;

use super::{BURST, Options, Replicated, ranking};

/// What is to be done about a ReplicaSet's pods.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    /// There are as many as wanted, or nobody wants any more.
    Nothing,
    /// So many more are to be created.
    Create { count: usize },
    /// These are to be deleted.
    Delete { pods: Vec<Arc<PodView>> },
}

/// How many pods are wanted. An absent count means one: the API server's default.
pub(super) fn wanted(set: &impl Replicated) -> usize {
    usize::try_from(set.replicas().unwrap_or(1)).unwrap_or(0)
}

/// Decides. `active` are the pods that count; `related` finds those of the same Deployment, if it comes to that.
pub(super) fn plan(
    set: &impl Replicated,
    active: &[Arc<PodView>],
    related: impl FnOnce() -> Vec<Arc<PodView>>,
    options: Options,
    now: Time,
) -> Plan {
    let (have, want) = (active.len(), wanted(set));
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
