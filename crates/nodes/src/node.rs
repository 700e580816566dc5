//! The nodes: they register, and send heartbeats.
//!
//! 1. Each node is created once, with its status. A Node object that somebody deletes stays deleted, as with a kubelet.
//! 2. One task sends the heartbeats of all nodes: a lease in `kube-node-lease` is renewed every [`LEASE_EVERY`] by default,
//!    spread over the nodes, so that a thousand nodes are a hundred small writes each second and no burst. The status follows
//!    every [`STATUS_EVERY`].
//! 3. Events report that a node starts, is ready, is cordoned or uncordoned, as kubelets do.
//! 4. The taint that a server gives to new nodes is removed when the node is ready, as the node lifecycle controller
//!    does; where one runs, the two agree.

use std::sync::Arc;
use std::time::Duration;

use steersman_base::{Istr, ObjectKey};
use steersman_model::core::NodeView;
use steersman_runtime::{BuildContext, Controller};

use crate::fleet::Fleet;
use crate::options::NodesOptions;

mod object;
mod schedule;
mod sync;
#[cfg(test)]
mod tests;

pub(crate) use object::{VERSION, host_address, is_silenced, pod_range};
pub use sync::Why;

/// The renewal period of a lease by default: a quarter of its duration, as kubelets.
pub const LEASE_EVERY: Duration = Duration::from_secs(10);
/// The duration of a lease by default.
pub const LEASE_DURATION: Duration = Duration::from_secs(40);
/// The duration of the shortest lease: leases count whole seconds.
pub const LEASE_DURATION_MIN: Duration = Duration::from_secs(1);
/// The period of status writes if nothing changes.
pub const STATUS_EVERY: Duration = Duration::from_secs(300);

/// The number of concurrent requests: at the start, each node makes a handful of writes.
const WORKERS: usize = 16;

pub(crate) fn build(cx: &BuildContext, options: &Arc<NodesOptions>, fleet: &Fleet) -> Controller {
    let builder = cx.controller::<NodeView>("simulated-nodes").workers(WORKERS);
    let ours = fleet.clone();
    let wanted = Arc::clone(options);
    let builder = builder.when(move |change| {
        let node = change.object();
        ours.obey(&node.metadata.name, is_silenced(&node.metadata));
        ours.get(&node.metadata.name).is_some() && object::is_relevant(change, &wanted)
    });
    let nodes = builder.main().lister();
    let heart = sync::Heartbeats {
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
