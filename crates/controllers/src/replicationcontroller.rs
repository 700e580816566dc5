#![doc = include_str!("../docs/replicationcontroller-controller.md")]
//!
//! Follows `pkg/controller/replication` of Kubernetes 1.37.1, which wraps upstream's ReplicaSet controller in the same way.

use steersman_base::Selector;
use steersman_model::Kind;
use steersman_model::apps::ReplicaSetStatus;
use steersman_model::core::{PodView, ReplicationControllerView};
use steersman_model::template::Template;
use steersman_runtime::__internal::descriptor::BuiltIn;
use steersman_runtime::Descriptor;

use crate::claim::Selecting;
use crate::replicaset::{self, Replicated};
use crate::table;

/// The descriptor of the replicationcontroller controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "replicationcontroller-controller",
    needs: const { &[ReplicationControllerView::RESOURCE, PodView::RESOURCE] },
    options: replicaset::Options::from_flags,
    build: replicaset::build::<ReplicationControllerView>,
});

// === impl ReplicationControllerView ===

impl Selecting for ReplicationControllerView {
    /// Without labels it selects nothing: the API server defaults them from the template, so there are always some.
    fn selector(&self) -> Option<Selector> {
        let labels = &self.spec.selector;
        Some(if labels.is_empty() { Selector::nothing() } else { Selector::from_labels(labels) })
    }
}

impl Replicated for ReplicationControllerView {
    const COUNTS_TERMINATING: bool = false;

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
        let status = &self.status;
        ReplicaSetStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            terminating_replicas: None,
            observed_generation: status.observed_generation,
            conditions: status.conditions.clone(),
        }
    }
}
