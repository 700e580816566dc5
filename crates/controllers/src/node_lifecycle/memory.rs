//! What the controller remembers between passes: signs of life, zones, and how far the cache of leases must be.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_base::{Istr, Meta, ObjectKey, ResourceVersion};
use steersman_model::core::NodeView;
use steersman_model::{NodeLeaseView, View};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::health::Health;
use super::map;
use super::zones::{Count, Next, Rates, Turn, Zones};

/// The state that is kept of nodes and zones. Bounded by their number.
pub(super) struct Memory {
    /// Times are counted from here, on the monotonic clock: a wall clock that is set ends no node.
    start: Instant,
    rates: Rates,
    state: Mutex<State>,
    /// Notified when nodes wait for taints.
    changed: Notify,
}

#[derive(Default)]
struct State {
    nodes: HashMap<Istr, Known>,
    zones: Zones,
    /// Nodes that this pass found to need a taint. They wait for their turn when the states of their zones are known.
    found: Vec<(Istr, Istr)>,
    /// Nothing is decided before the cache of leases shows this version.
    leases_at_least: Option<ResourceVersion>,
    /// Whether all nodes were looked at once.
    has_begun: bool,
}

struct Known {
    node: Arc<NodeView>,
    health: Health,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(rates: Rates) -> Self {
        Self { start: Instant::now(), rates, state: Mutex::default(), changed: Notify::new() }
    }

    /// Returns the time on the monotonic clock.
    pub(super) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Records a look at a node, and returns what is known of it.
    pub(super) fn observe(&self, node: &Arc<NodeView>, lease: Option<&NodeLeaseView>) -> Health {
        let now = self.now();
        let mut state = self.state.lock();
        let name = &node.meta().name;
        let known = state.nodes.get(name).map(|known| known.health.clone());
        let health = Health::observed(known, node, lease, now);
        let known = Known { node: Arc::clone(node), health: health.clone() };
        if let Some(held) = state.nodes.get_mut(name) {
            *held = known;
        } else {
            state.nodes.insert(name.clone(), known);
        }
        health
    }

    /// Whether this is the first pass.
    pub(super) fn begins(&self) -> bool {
        !std::mem::replace(&mut self.state.lock().has_begun, true)
    }

    /// Whether this node was observed before.
    pub(super) fn knows(&self, node: &Meta) -> bool {
        self.state.lock().nodes.get(&node.name).is_some_and(|known| known.node.meta().uid == node.uid)
    }

    /// Forgets nodes that are gone, and returns them.
    pub(super) fn forget_absent(&self, is_there: impl Fn(&Meta) -> bool) -> Vec<Arc<NodeView>> {
        let mut gone = Vec::new();
        self.state.lock().nodes.retain(|_, known| {
            let stays = is_there(known.node.meta());
            if !stays {
                gone.push(Arc::clone(&known.node));
            }
            stays
        });
        gone.sort_by(|left, right| left.meta().name.cmp(&right.meta().name));
        gone
    }

    /// Records whether the pods of a node are marked as not ready.
    pub(super) fn set_marked(&self, node: &Istr, marked: bool) {
        if let Some(known) = self.state.lock().nodes.get_mut(node) {
            known.health.has_marked_pods = marked;
        }
    }

    /// Whether the pods of a node are marked as not ready.
    pub(super) fn has_marked(&self, node: &Istr) -> bool {
        self.state.lock().nodes.get(node).is_some_and(|known| known.health.has_marked_pods)
    }

    /// Lets a node wait for its taint, from when this pass has [assessed](Self::assess) its zone.
    pub(super) fn enqueue(&self, node: &Meta) {
        self.state.lock().found.push((map::zone(node), node.name.clone()));
    }

    /// Forgets what a pass has found that could not look at all nodes.
    pub(super) fn give_up(&self) {
        self.state.lock().found.clear();
    }

    /// Lets a node whose taint could not be set wait again, before all others.
    pub(super) fn put_back(&self, zone: &Istr, node: &Istr) {
        self.state.lock().zones.put_back(zone, node);
    }

    /// Records that the taint of a node has been set: the rate counts from here.
    pub(super) fn tainted(&self, zone: &Istr) {
        let now = self.now();
        self.state.lock().zones.tainted(zone, now);
    }

    /// A node needs no taint any more.
    pub(super) fn dequeue(&self, node: &Meta) {
        self.state.lock().zones.remove(&map::zone(node), &node.name);
    }

    /// Takes the count of all zones into account.
    pub(super) fn assess(&self, counts: &BTreeMap<Istr, Count>) -> Turn {
        let now = self.now();
        let mut state = self.state.lock();
        let turn = state.zones.assess(counts, &self.rates, now);
        let found = std::mem::take(&mut state.found);
        if !matches!(turn, Turn::AllLost | Turn::StillLost) {
            for (zone, node) in found {
                state.zones.enqueue(&zone, &node, &self.rates, now);
            }
        }
        if turn == Turn::SomeBack {
            // Nobody could be heard until now.
            state.nodes.values_mut().for_each(|known| known.health.forgive(now));
        }
        turn
    }

    /// Takes the next node of a zone.
    pub(super) fn next(&self, zone: &Istr, needs_taint: impl Fn(&Istr) -> bool) -> Next {
        let now = self.now();
        self.state.lock().zones.next(zone, now, needs_taint)
    }

    /// Returns the keys of the zones in which nodes wait for a taint.
    pub(super) fn zones_to_taint(&self) -> Vec<ObjectKey> {
        self.state.lock().zones.waiting().iter().map(map::key).collect()
    }

    /// Notifies the one who sets taints.
    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Waits until nodes wait for taints.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Decides nothing before the cache of leases shows this version.
    pub(super) fn await_leases(&self, version: ResourceVersion) {
        self.state.lock().leases_at_least = Some(version);
    }

    /// Whether the cache of leases, which has reached a version, shows less than it must.
    pub(super) fn lacks_leases(&self, reached: Option<&ResourceVersion>) -> bool {
        let mut state = self.state.lock();
        let lacks = |wanted: &ResourceVersion| !reached.is_some_and(|reached| reached.has_reached(wanted));
        let is_behind = state.leases_at_least.as_ref().is_some_and(lacks);
        if !is_behind {
            state.leases_at_least = None;
        }
        is_behind
    }
}
