#![doc = include_str!("../docs/replicaset-controller.md")]
//!
//! ReplicationControllers are reconciled by the same code; the differences are in the trait `Replicated`.
//!
//! Follows `pkg/controller/replicaset` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;
use steersman_runtime::__internal::descriptor::{Built, BuiltIn, ControllerContext, Disabled, Flags};
use steersman_runtime::Descriptor;
use steersman_runtime::handler::Keys;

use crate::claim::map::Owners;
use crate::quota_room::room;
use crate::{pod, table};

mod metrics;
mod plan;
pub(crate) mod ranking;
mod replicated;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use replicated::Replicated;
pub use sync::Why;

/// The descriptor of the replicaset controller.
pub const DESCRIPTOR: Descriptor = table::controller(&BuiltIn {
    name: "replicaset-controller",
    needs: const { &[ReplicaSetView::RESOURCE, PodView::RESOURCE] },
    options: Options::from_flags,
    build: build::<ReplicaSetView>,
});

/// Options of the controller, set by feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Whether pods with a lower `pod-deletion-cost` are deleted first: `PodDeletionCost`.
    pub pod_deletion_cost: bool,
    /// Whether the status of a ReplicaSet counts terminating pods: `DeploymentReplicaSetTerminatingReplicas`.
    pub terminating_replicas: bool,
}

/// The maximum number of pods that one pass creates or deletes: upstream's figure, chosen to keep other ReplicaSets
/// from starving.
pub const BURST: usize = 500;

/// The time for which pod changes that concern only the status are batched. Short enough to go unnoticed, and long
/// enough that forty pods that become ready one after the other cause a few status writes instead of forty. (Upstream's
/// Job controller waits a second; its ReplicaSet controller does not wait.)
pub const GATHERED_FOR: Duration = Duration::from_millis(50);

// === impl Options ===

impl Options {
    /// Returns the options that flags and feature gates set.
    #[must_use]
    pub fn from_flags(flags: &Flags<'_>) -> Self {
        Self {
            pod_deletion_cost: flags.gate("PodDeletionCost", true),
            terminating_replicas: flags.gate("DeploymentReplicaSetTerminatingReplicas", true),
        }
    }

    /// Sets whether pods with a lower `pod-deletion-cost` are deleted first.
    #[must_use]
    pub fn pod_deletion_cost(mut self, pod_deletion_cost: bool) -> Self {
        self.pod_deletion_cost = pod_deletion_cost;
        self
    }

    /// Sets whether the status of a ReplicaSet counts terminating pods.
    #[must_use]
    pub fn terminating_replicas(mut self, terminating_replicas: bool) -> Self {
        self.terminating_replicas = terminating_replicas;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::from_flags(&Flags::defaults())
    }
}

/// Builds the controller of a kind that keeps a number of pods.
pub(crate) fn build<V: Replicated>(cx: &ControllerContext, options: Options) -> Result<Built, Disabled> {
    let sets = cx.informer::<V>();
    let pods = cx.informer::<PodView>();
    let owners = Owners::new(&sets);
    let sets_of_pod = move |change: &Change<PodView>| {
        let delay = if pod::changes_status_only(change) { GATHERED_FOR } else { Duration::ZERO };
        Keys::after(owners.of(change), delay)
    };
    let room = room(cx, sets.lister(), |set: &V| status::lacks_pods(set));
    Ok(cx.controller(&sets).watch(&pods, sets_of_pod).source(room).reads_live().reconcile(sync::Sets {
        sets: sets.lister(),
        siblings: cx.children(&sets),
        pods: cx.children(&pods),
        options,
        metrics: metrics::Metrics::new(cx.metrics())?,
    }))
}
