//! The nodes themselves: they register, and let the cluster know that they live.
//!
//! 1. Each node is created once, with its status. A Node object that somebody deletes stays deleted, as with a kubelet.
//! 2. One task is the heart of all: a lease in `kube-node-lease` is renewed every [`LEASE_EVERY`], each node's at a moment of
//!    its own, so that a thousand nodes are a hundred small writes each second and no burst. Its status follows every
//!    [`STATUS_EVERY`].
//! 3. It tells in events that it starts, is ready, is cordoned or is free again, as kubelets do.
//! 4. The taint that a server gives to new nodes goes when the node is ready, as the node lifecycle controller would have
//!    it; where one runs, the two agree.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, ObjectKey};
use steersman_model::core::NodeView;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::Fleet;
use crate::options::NodesOptions;

mod beat;
mod object;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use object::{host_address, pod_range};
pub use sync::Why;

/// How often a lease is renewed: a quarter of its duration, as kubelets do.
pub const LEASE_EVERY: Duration = Duration::from_secs(10);
/// How long a lease lasts.
pub const LEASE_DURATION: Duration = Duration::from_secs(40);
/// How often the status is written if nothing changes.
pub const STATUS_EVERY: Duration = Duration::from_secs(300);

/// Answers are waited for so many at once: at the start, each node makes a handful of writes.
const WORKERS: usize = 16;

pub(crate) fn build(cx: &BuildContext, options: &Arc<NodesOptions>, fleet: &Fleet) -> Controller {
    let builder = cx.controller::<NodeView>("simulated-nodes").workers(WORKERS);
    let (ours, wanted) = (fleet.clone(), Arc::clone(options));
    let builder = builder.when(move |change| {
        let node = change.object();
        ours.get(&node.metadata.name).is_some() && object::is_news(change, &wanted)
    });
    let nodes = builder.main().lister();
    let heart = sync::Heart {
        nodes: nodes.clone(),
        fleet: fleet.clone(),
        options: Arc::clone(options),
        writer: cx.writer.clone(),
        clock: cx.clock.clone(),
    };
    cx.add(heart);
    let events = cx.events.for_component("kubelet");
    let registry = sync::Registry { nodes, fleet: fleet.clone(), options: Arc::clone(options), events };
    let controller = builder.reconcile_with(registry);
    let keys: Vec<ObjectKey> = fleet.names().iter().map(Istr::as_str).map(ObjectKey::cluster).collect();
    controller.trigger_all(&keys);
    controller
}
