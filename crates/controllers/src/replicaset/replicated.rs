//! Pure: what the controller asks of a kind that keeps a number of pods.

use steersman_base::Selector;
use steersman_model::apps::{ReplicaSetStatus, ReplicaSetView};
use steersman_model::template::Template;

use crate::claim::Selecting;

/// A kind that keeps a number of pods: ReplicaSets, and ReplicationControllers before them.
///
/// The status of both is written in the same form: what one of them does not have stays absent.
pub(crate) trait Replicated: Selecting {
    /// Whether its status tells how many pods terminate.
    const COUNTS_TERMINATING: bool;

    /// How many pods there should be, as the object says it.
    fn replicas(&self) -> Option<i32>;

    /// What the pods are.
    fn template(&self) -> &Template;

    /// How long a pod must be ready to be available.
    fn min_ready_seconds(&self) -> i32;

    /// What the object says it is.
    fn status(&self) -> ReplicaSetStatus;
}

impl Selecting for ReplicaSetView {
    fn selector(&self) -> Option<Selector> {
        Selector::from_declared(self.spec.selector.as_ref()).ok()
    }
}

impl Replicated for ReplicaSetView {
    const COUNTS_TERMINATING: bool = true;

    fn replicas(&self) -> Option<i32> {
        self.spec.replicas
    }

    fn template(&self) -> &Template {
        &self.spec.template
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }

    fn status(&self) -> ReplicaSetStatus {
        self.status.clone()
    }
}
