//! Pure: the kinds that keep a number of pods.

use steersman_base::Selector;
use steersman_model::apps::{ReplicaSetStatus, ReplicaSetView};
use steersman_model::template::Template;

use crate::claim::Selecting;

/// A kind that keeps a number of pods: ReplicaSet or ReplicationController.
///
/// The status of both is written in the same form: fields that one of them does not have stay absent.
pub(crate) trait Replicated: Selecting {
    /// Whether the status reports the number of terminating pods.
    const COUNTS_TERMINATING: bool;

    /// Returns `spec.replicas`.
    fn replicas(&self) -> Option<i32>;

    /// Returns the pod template.
    fn template(&self) -> &Template;

    /// Returns `spec.minReadySeconds`.
    fn min_ready_seconds(&self) -> i32;

    /// Returns the status.
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
