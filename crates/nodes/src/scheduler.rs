//! The scheduler: every pod gets a node that fits, or a condition that says why there is none.
//!
//! 1. The requests of a pod fit into what the node has left; decided pods count before the cache shows them.
//! 2. Node selector, required node affinity, taints, cordons, host ports and scheduling gates are respected.
//! 3. Pods are decided by priority, then by age.
//! 4. A pod that fits no node gets the condition `PodScheduled=False` and an event, in upstream's words, and is retried
//!    when a node or a freed resource may have changed that, and not before.
//! 5. Decisions are deterministic: the same pods and nodes in the same order give the same bindings.
//!
//! 6. Beside a [provisioner](crate::provisioner), a pod waits until its claims are bound; those that wait for their first pod
//!    get the name of the chosen node. Without one, claims are ignored.
//! 7. Beside a [driver of devices](crate::devices), a pod waits until its claims of devices are allocated.
//!
//! It is a simulation: it ignores preferences except `PreferNoSchedule`, affinity between pods, spread constraints and the
//! node affinity of volumes, and preempts no pod.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey};
use steersman_informer::{Change, SharedInformer};
use steersman_model::core::{NodeView, PersistentVolumeClaimView};
use steersman_model::resource::ResourceClaimView;
use steersman_model::storage::StorageClassView;
use steersman_runtime::handler::Keys;
use steersman_runtime::{BuildContext, Controller};

use self::ledger::Ledger;
use self::map::{Part, part};
use crate::devices;
use crate::fleet::Fleet;
use crate::options::NodesOptions;
use crate::view::SimPodView;

mod affinity;
mod claims;
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

/// The name of the default scheduler, for pods that name none.
pub const NAME: &str = "default-scheduler";
/// The delay before unschedulable pods are retried after a change: many changes, one retry.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The key that stands for all unschedulable pods.
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
    let of_nodes = Arc::clone(&ledger);
    let ours = options.own_nodes_only.then(|| fleet.clone());
    let pods_of_node = move |change: &Change<NodeView>| {
        let is_ours = ours.as_ref().is_none_or(|fleet| fleet.get(&change.object().metadata.name).is_some());
        if is_ours { see_node(&mut of_nodes.lock(), change) } else { Keys::default() }
    };
    let of_pods = Arc::clone(&ledger);
    let scheduler = name.clone();
    let pods_of_pod = move |change: &Change<SimPodView>| see_pod(&mut of_pods.lock(), &scheduler, change);
    let builder = cx.controller_on(NAME, pods).queue_name("scheduler").workers(options.workers).without_main_watch();
    let mut builder = builder.watch(&nodes, pods_of_node).watch(pods, pods_of_pod);
    let mut volumes = None;
    if options.provisioner.is_some() {
        let claims = cx.informers.informer::<PersistentVolumeClaimView>();
        let classes = cx.informers.informer::<StorageClassView>();
        let of_claims = Arc::clone(&ledger);
        let scheduler = name.clone();
        let by_claim = pods.index(claims::keys);
        let pods_of_claim = move |change: &Change<PersistentVolumeClaimView>| {
            let users = by_claim.get(&change.key());
            see_claim(&mut of_claims.lock(), &scheduler, &users)
        };
        builder = builder.watch(&claims, pods_of_claim).needs_cache(&classes);
        volumes = Some(sync::Volumes { claims: claims.lister(), classes: classes.lister() });
    }
    let mut devices = None;
    if options.devices.is_some() {
        let claims = cx.informers.informer::<ResourceClaimView>();
        let users = pods.index(devices::claims_of);
        let of_claim = move |change: &Change<ResourceClaimView>| -> Vec<ObjectKey> {
            users.get(&change.key()).iter().map(|pod| pod.metadata.key()).collect()
        };
        let of_status = |change: &Change<SimPodView>| devices::has_new_claims(change).then(|| change.key());
        builder = builder.watch(&claims, of_claim).watch(pods, of_status);
        devices = Some(claims.lister());
    }
    let pods = pods.lister();
    let events = cx.events.for_component(name.clone());
    builder.build_with(|queue| sync::Scheduler { pods, volumes, devices, ledger, name, events, queue: queue.clone() })
}

/// Updates the ledger with a change of a node; returns the keys to enqueue.
fn see_node(ledger: &mut Ledger, change: &Change<NodeView>) -> Keys {
    let node = change.object();
    let may_help = match change {
        Change::Deleted { .. } => {
            ledger.remove_node(&node.metadata.name);
            // The message about unschedulable pods counts the nodes.
            true
        }
        _ => ledger.put_node(Arc::clone(node)),
    };
    Keys::after((may_help && ledger.has_unschedulable()).then(try_again), TRY_AGAIN_AFTER)
}

/// Returns the waiting pods of a claim that has changed: they may be schedulable now.
fn see_claim(ledger: &mut Ledger, scheduler: &str, users: &[Arc<SimPodView>]) -> Keys {
    let mut keys = Keys::default();
    for pod in users.iter().filter(|pod| part(pod, scheduler) == Part::Waiting) {
        // One that is decided already is not waiting in the ledger.
        if ledger.is_waiting(&pod.metadata.key()) {
            ledger.await_turn(pod);
            keys.add(pod.metadata.key());
        }
    }
    keys
}

/// Updates the ledger with a change of a pod; returns the keys to enqueue.
fn see_pod(ledger: &mut Ledger, scheduler: &str, change: &Change<SimPodView>) -> Keys {
    let mut keys = Keys::default();
    let pod = change.object();
    let key = pod.metadata.key();
    let now = if matches!(change, Change::Deleted { .. }) { Part::Apart } else { part(pod, scheduler) };
    let mut frees = false;
    match now {
        Part::Waiting => {
            // A change of a pod's condition is no reason to retry.
            let is_relevant = match change {
                Change::Updated { old, new } => old.spec != new.spec || part(old, scheduler) != now,
                _ => true,
            };
            if is_relevant {
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
