//! The ReplicationController controller: the ReplicaSet controller for the kind that came before ReplicaSets.
//!
//! It is the same code (`replicaset`), with the same guarantees. What differs: the selector is a map of labels, status does
//! not tell how many pods terminate, and events come from `replication-controller`.
//!
//! Follows `pkg/controller/replication` of Kubernetes 1.37.1, which wraps upstream's ReplicaSet controller in the same way.

use steersman_base::Selector;
use steersman_model::Kind;
use steersman_model::apps::ReplicaSetStatus;
use steersman_model::core::{PodView, ReplicationControllerView};
use steersman_model::template::Template;
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

use crate::claim::Selecting;
use crate::replicaset::{self, Replicated};

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "replicationcontroller-controller",
    aliases: &["replicationcontroller"],
    account: "replication-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[ReplicationControllerView::RESOURCE, PodView::RESOURCE],
    workers: Workers::flag("concurrent-rc-syncs", 5),
    stage: Stage::Normal,
    build,
};

/// Whom upstream's events name as their source.
const COMPONENT: &str = "replication-controller";

fn build(cx: &BuildContext, workers: usize) -> Build {
    let mut cx = cx.clone();
    cx.events = cx.events.for_component(COMPONENT);
    replicaset::build::<ReplicationControllerView>(&cx, DESCRIPTOR.name, "replicationmanager", workers)
}

// === impl ReplicationControllerView ===

impl Selecting for ReplicationControllerView {
    /// Without labels it selects nothing: the API server takes those of the template then, so there are always some.
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
