//! The scheduler: every pod gets a node that fits, or is told why there is none.
//!
//! 1. What a pod asks for fits into what the node has left, decided pods counted before the cache shows them.
//! 2. Node selector, required node affinity, taints, cordons, ports of nodes and scheduling gates are kept to.
//! 3. The more important pod is decided first, then the older one.
//! 4. A pod for which there is no node says so in its condition `PodScheduled` and in an event, in upstream's words, and is
//!    tried again when a node or a freed place may have changed that, and not before.
//! 5. Deterministic: the same pods and nodes in the same order give the same places.
//!
//! It is a simulation. It looks at no preferences but `PreferNoSchedule`, at no affinity between pods, spread constraints
//! or volumes, and takes no place away from anybody.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey};
use steersman_informer::{Change, SharedInformer};
use steersman_model::core::NodeView;
use steersman_runtime::handler::Keys;
use steersman_runtime::{BuildContext, Controller};

use self::ledger::Ledger;
use self::map::{Part, part};
use crate::fleet::Fleet;
use crate::options::NodesOptions;
use crate::view::SimPodView;

mod affinity;
mod filter;
mod ledger;
mod map;
mod message;
mod ports;
mod request;
mod score;
mod sync;
#[cfg(test)]
mod tests;

pub use sync::Why;

/// The scheduler's name: pods that name none have it.
pub const NAME: &str = "default-scheduler";
/// Pods without a node are tried again this long after something changed: many changes, one try.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The key that stands for all pods without a node.
fn try_again() -> ObjectKey {
    ObjectKey::cluster("try-again")
}

pub(crate) fn build(
    cx: &BuildContext,
    pods: &SharedInformer<SimPodView>,
    options: &NodesOptions,
    fleet: &Fleet,
) -> Controller {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let name = Istr::interned(&options.scheduler_name);
    let nodes = cx.informers.informer::<NodeView>();
    let (of_nodes, ours) = (Arc::clone(&ledger), options.own_nodes_only.then(|| fleet.clone()));
    let pods_of_node = move |change: &Change<NodeView>| {
        let is_ours = ours.as_ref().is_none_or(|fleet| fleet.get(&change.object().metadata.name).is_some());
        if is_ours { see_node(&mut of_nodes.lock(), change) } else { Keys::default() }
    };
    let (of_pods, scheduler) = (Arc::clone(&ledger), name.clone());
    let pods_of_pod = move |change: &Change<SimPodView>| see_pod(&mut of_pods.lock(), &scheduler, change);
    let builder = cx.controller_on(NAME, pods).queue_name("scheduler").workers(options.workers).without_main_watch();
    let builder = builder.watch(&nodes, pods_of_node).watch(pods, pods_of_pod);
    let pods = pods.lister();
    let events = cx.events.for_component(name.clone());
    builder.build_with(|queue| sync::Scheduler { pods, ledger, name, events, queue: queue.clone() })
}

/// Keeps the ledger, and says who is to be looked at.
fn see_node(ledger: &mut Ledger, change: &Change<NodeView>) -> Keys {
    let node = change.object();
    let may_help = match change {
        Change::Deleted { .. } => {
            ledger.remove_node(&node.metadata.name);
            // What is said about those without a node counts the nodes.
            true
        }
        _ => ledger.put_node(Arc::clone(node)),
    };
    Keys::after((may_help && ledger.has_unschedulable()).then(try_again), TRY_AGAIN_AFTER)
}

/// Keeps the ledger, and says who is to be looked at.
fn see_pod(ledger: &mut Ledger, scheduler: &str, change: &Change<SimPodView>) -> Keys {
    let mut keys = Keys::default();
    let pod = change.object();
    let key = pod.metadata.key();
    let now = if matches!(change, Change::Deleted { .. }) { Part::Apart } else { part(pod, scheduler) };
    let mut frees = false;
    match now {
        Part::Waiting => {
            // A pod's own news, such as that there is no node, is no reason to look again.
            let is_news = match change {
                Change::Updated { old, new } => old.spec != new.spec || part(old, scheduler) != now,
                _ => true,
            };
            if is_news {
                ledger.await_turn(pod);
                keys.add(key);
            }
        }
        Part::Placed => {
            ledger.leave(&key);
            frees = ledger.place(pod, &pod.spec.node_name);
        }
        Part::Apart => {
            ledger.leave(&key);
            frees = ledger.free(&key);
        }
    }
    if frees && ledger.has_unschedulable() {
        keys.add_after(try_again(), TRY_AGAIN_AFTER);
    }
    keys
}
