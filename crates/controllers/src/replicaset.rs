//! The ReplicaSet controller: as many pods as wanted, no more and no fewer.
//!
//! 1. Pods are created from the template, as it is, until `spec.replicas` are active; at most [`BURST`] in one pass, slowly
//!    at first, so that a refusal (a quota, say) costs one request and not hundreds.
//! 2. Too many are deleted in upstream's order: those first that are missed least.
//! 3. An orphan that matches the selector is adopted, after a live look that the ReplicaSet still wants it; a pod that does
//!    not match any more is let go.
//! 4. Status follows in a second pass, when the caches show what the first one did.
//! 5. Nothing is done twice: a pass waits until the caches show all that earlier passes wrote.
//!
//! Follows `pkg/controller/replicaset` of Kubernetes 1.37.1.

use steersman_informer::Change;
use steersman_model::{Kind, View};
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;
use steersman_runtime::{Build, BuildContext, Descriptor, Enabled, Stage, Workers};

mod claim;
mod map;
mod plan;
mod ranking;
mod status;
mod sync;
#[cfg(test)]
mod tests;

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
    build,
};

/// How many pods one pass creates or deletes at most: upstream's figure, chosen to keep other ReplicaSets from starving.
pub const BURST: usize = 500;

fn build(cx: &BuildContext, workers: usize) -> Build {
    let sets = cx.informers.informer::<ReplicaSetView>();
    let pods = cx.informers.informer::<PodView>();

    let by_selector = sets.index(map::selector_keys);
    let by_deployment = sets.index(|set: &ReplicaSetView| set.meta().controller().map(|owner| owner.uid.clone()));
    let pods_by_owner = pods.index(map::owner_key);

    let lister = sets.lister();
    let sets_of_pod = move |change: &Change<PodView>| {
        map::replica_sets_of(
            change,
            |key| lister.get(key).map(|set| set.meta().uid.clone()),
            |key| by_selector.get(key),
        )
    };
    cx.controller_on(DESCRIPTOR.name, &sets)
        .queue_name("replicaset")
        .watch(&pods, sets_of_pod)
        .workers(workers)
        .reconcile_with(sync::ReplicaSets {
            client: cx.client.clone(),
            sets: sets.lister(),
            by_deployment,
            pods_by_owner,
        });
    Build::Enabled
}
