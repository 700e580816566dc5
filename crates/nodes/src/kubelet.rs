//! The kubelets of all simulated nodes, in one controller: they run, end and report pods.
//!
//! 1. A pod that is bound to a simulated node is accepted, gets its own address, and its containers start in order:
//!    init containers one by one, sidecars in their place, then the others. It is ready when they are.
//! 2. Containers end as their command, an annotation or the [stages](Stages) define, and are restarted by the restart
//!    policy, with the kubelet's backoff.
//! 3. A terminating pod stops within its grace period; then the object is deleted, by uid. Its last status is written
//!    only if finalizers keep the object: otherwise nobody could read it.
//! 4. Nothing is remembered: the next step follows from the pod's own status, so that another process can continue.
//! 5. Statuses are patched, with one write for everything that happens at a time: two or three in the life of a pod.
//! 6. Events report what happened, as kubelets do; in a flood of events, only warnings are sent.

use std::sync::Arc;

use steersman_base::{Istr, ObjectKey};
use steersman_informer::{Change, SharedInformer};
use steersman_model::core::NodeView;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::Fleet;
use crate::node::is_silenced;
use crate::options::NodesOptions;
use crate::view::SimPodView;
use crate::volumes::{Volumes, awaiting_pods};

mod backoff;
mod command;
mod events;
mod ids;
mod ipam;
mod life;
mod logs;
mod script;
mod stages;
mod status;
mod step;
mod sync;
#[cfg(test)]
mod tests;

use crate::duration::go_text as duration_text;
pub(crate) use events::budget;
pub use logs::{Log, LogError, LogQuery};
pub(crate) use logs::{log, text as log_text};
pub use stages::{Stages, StagesError};
pub use sync::Why;

pub(crate) fn build(
    cx: &BuildContext,
    pods: &SharedInformer<SimPodView>,
    options: &Arc<NodesOptions>,
    fleet: &Fleet,
    volumes: Option<Volumes>,
) -> Controller {
    let by_node = pods.shared_index(node_of);
    let is_ours = fleet.clone();
    let builder = cx.controller_on("simulated-kubelets", pods).queue_name("kubelets").workers(options.workers);
    let builder = builder.when(move |event| {
        let node: &Istr = &event.object().spec.node_name;
        !node.is_empty() && is_ours.get(node).is_some()
    });
    let nodes = cx.informers.informer::<NodeView>();
    let mut builder = builder.watch(&nodes, resumed_pods(fleet, pods));
    if volumes.is_some() {
        builder = builder.watch(&nodes, awaiting_pods(pods));
    }
    builder.reconcile_with(sync::Kubelets {
        pods: pods.lister(),
        nodes: nodes.lister(),
        by_node,
        fleet: fleet.clone(),
        options: Arc::clone(options),
        volumes,
        addresses: parking_lot::Mutex::default(),
        events: cx.events.for_component("kubelet"),
    })
}

/// Index function: the node of a bound pod.
pub(crate) fn node_of(pod: &SimPodView) -> Option<Istr> {
    let node = &pod.spec.node_name;
    (!node.is_empty()).then(|| node.clone())
}

/// Returns a handler that resumes the pods of a node whose annotation has kept it silent, or that had no range for them.
fn resumed_pods(
    fleet: &Fleet,
    pods: &SharedInformer<SimPodView>,
) -> impl Fn(&Change<NodeView>) -> Vec<ObjectKey> + Send + Sync + use<> {
    let by_node = pods.shared_index(node_of);
    let fleet = fleet.clone();
    move |change| {
        let Change::Updated { old, new } = change else { return Vec::new() };
        let is_resumed = is_silenced(&old.metadata) && !is_silenced(&new.metadata);
        if is_resumed {
            fleet.obey(&new.metadata.name, false);
        }
        if !is_resumed && old.spec.pod_cidr == new.spec.pod_cidr {
            return Vec::new();
        }
        by_node.get(&new.metadata.name).iter().map(|pod| pod.metadata.key()).collect()
    }
}
