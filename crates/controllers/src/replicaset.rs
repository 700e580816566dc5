//! The ReplicaSet controller: as many pods as wanted, no more and no fewer.
//!
//! 1. Pods are created from the template, as it is, until `spec.replicas` are active; at most [`BURST`] in one pass, slowly
//!    at first, so that a refusal (a quota, say) costs one request and not hundreds.
//! 2. Too many are deleted in upstream's order: those first that are missed least.
//! 3. An orphan that matches the selector is adopted, after a live look that the ReplicaSet still wants it; a pod that does
//!    not match any more is let go (`claim`).
//! 4. Status follows in a second pass, when the caches show what the first one did. What can change nothing but the status is
//!    gathered for [`GATHERED_FOR`]; a pod that is missed is replaced at once.
//! 5. Nothing is done twice: a pass waits until the caches show all that earlier passes wrote, and reads from the server if
//!    they do not in half a minute. Pods get names of our choice, so that a create whose answer is lost can be asked for, and
//!    is tried again under the same name.
//! 6. In a namespace that goes away it is quiet: nothing can be created, nobody is told so, and it is tried once.
//!
//! ReplicationControllers are kept by the same code: what differs is said by the trait `Replicated`.
//!
//! Follows `pkg/controller/replicaset` of Kubernetes 1.37.1.

use std::time::Duration;

use steersman_informer::Change;
use steersman_model::Kind;
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;
use steersman_runtime::handler::Keys;
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

use crate::claim::map;
use crate::doomed::Doomed;

mod metrics;
mod plan;
mod ranking;
mod replicated;
mod status;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use replicated::Replicated;
pub use sync::Why;

/// The controller's row.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "replicaset-controller",
    aliases: &["replicaset"],
    account: "replicaset-controller",
    default: Enabled::Yes,
    gates: &[],
    needs: &[ReplicaSetView::RESOURCE, PodView::RESOURCE],
    workers: Workers::flag("concurrent-replicaset-syncs", 5),
    stage: Stage::Normal,
    build: |cx, workers| build::<ReplicaSetView>(cx, DESCRIPTOR.name, "replicaset", workers),
};

/// What feature gates set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether pods that are cheaper to delete, as their annotation says, go first: `PodDeletionCost`.
    pub pod_deletion_cost: bool,
    /// Whether a ReplicaSet's status tells how many pods terminate: `DeploymentReplicaSetTerminatingReplicas`.
    pub terminating_replicas: bool,
}

/// How many pods one pass creates or deletes at most: upstream's figure, chosen to keep other ReplicaSets from starving.
pub const BURST: usize = 500;

/// How long changes of pods are gathered that concern nothing but the status. Short enough that nobody waits for it, and long
/// enough that forty pods which become ready one after the other make a few statuses, and not forty. (Upstream's Jobs gather
/// for a second; its ReplicaSets do not.)
pub const GATHERED_FOR: Duration = Duration::from_millis(50);

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { pod_deletion_cost: true, terminating_replicas: true }
    }
}

/// Builds the controller of any kind that keeps a number of pods.
pub(crate) fn build<V: Replicated>(
    cx: &BuildContext,
    name: &'static str,
    queue: &'static str,
    workers: usize,
) -> Build {
    let sets = cx.informers.informer::<V>();
    let pods = cx.informers.informer::<PodView>();

    let by_selector = sets.shared_index(map::selector_key);
    let sets_by_owner = sets.shared_index(map::owner_key);
    let pods_by_owner = pods.shared_index(map::owner_key);

    let lister = sets.lister();
    let sets_of_pod = move |change: &Change<PodView>| {
        let uid_of = |key: &_| lister.get(key).map(|set| set.meta().uid.clone());
        let delay = if status::is_all_that_changes(change) { GATHERED_FOR } else { Duration::ZERO };
        Keys::after(map::owners_of(change, uid_of, |key| by_selector.get(key)), delay)
    };
    let mut metrics = cx.options::<metrics::Metrics>();
    if let Some(registry) = cx.manager().metrics().filter(|_| !metrics.is_some()) {
        metrics = metrics::Metrics::new(registry);
        cx.manager().set_options(metrics.clone());
    }
    let builder =
        cx.controller_on(name, &sets).queue_name(queue).watch(&pods, sets_of_pod).workers(workers).reads_live();
    builder.reconcile_with(sync::Sets {
        client: cx.client.clone(),
        sets: sets.lister(),
        sets_by_owner,
        pods_by_owner,
        options: cx.options::<Options>(),
        metrics,
        doomed: Doomed::default(),
    });
    Build::Enabled
}
