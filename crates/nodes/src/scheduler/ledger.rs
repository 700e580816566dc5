//! The scheduler's state: nodes, the used resources of each, and waiting pods.
//!
//! 1. A pod counts on its node from the decision on, not from when the cache shows it, so that no resource is assigned
//!    twice.
//! 2. The state of the caches replaces assumptions.
//! 3. Pods are decided by priority, then by age.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use steersman_base::{Istr, ObjectKey, Time, Uid};
use steersman_model::core::NodeView;

use super::affinity::{Named, named};
use super::filter::{Refusal, fits};
use super::message;
use super::ports::Taken;
use super::request::{Amounts, Request, request};
use super::score::score;
use crate::view::SimPodView;

/// The nodes, the used resources of each, and the waiting pods.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Existing nodes, and nodes that pods are bound to.
    nodes: BTreeMap<Istr, Place>,
    placed: HashMap<ObjectKey, Placed>,
    /// Pods to schedule, the next one first.
    active: BTreeSet<Turn>,
    turns: HashMap<ObjectKey, Turn>,
    /// Pods that fit no node.
    unschedulable: BTreeSet<Turn>,
    /// The node after which the next search starts, so that all get their share.
    last: Istr,
}

/// A node, if it exists, and its used resources.
#[derive(Debug, Default)]
struct Place {
    node: Option<NodeState>,
    used: Used,
}

/// A node and its capacity.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) view: Arc<NodeView>,
    pub(super) allocatable: Amounts,
    pub(super) pods: i64,
}

/// The resources that the pods of a node use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) asked: Amounts,
    pub(super) counted_milli_cpu: i64,
    pub(super) counted_memory: i64,
    pub(super) pods: i64,
    pub(super) ports: Taken,
}

#[derive(Debug)]
struct Placed {
    uid: Uid,
    /// The generation of its spec: a pod can be resized in place.
    generation: i64,
    node: Istr,
    request: Request,
}

/// The order of pods: by priority, then by age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    priority: Reverse<i32>,
    created: Option<Time>,
    key: ObjectKey,
}

/// The decision about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It runs on this node, and counts there from now on.
    Bind(Istr),
    /// No node fits, for this reason.
    Wait(String),
    /// It was decided before; the cache will show it.
    Decided,
}

/// Of this many nodes that fit, the best is taken: upstream considers no fewer, and more only in large clusters.
const COMPARED_MAX: usize = 100;

// === impl Ledger ===

impl Ledger {
    /// Updates a node. Returns whether pods that did not fit might fit now.
    pub(super) fn put_node(&mut self, view: Arc<NodeView>) -> bool {
        let quantities = &view.status.allocatable;
        let pods = quantities.get("pods").map_or(0, |pods| pods.value());
        let state = NodeState { allocatable: Amounts::of(quantities), pods, view };
        let place = self.nodes.entry(state.view.metadata.name.clone()).or_default();
        let old = place.node.replace(state);
        let (Some(old), Some(new)) = (old, &place.node) else { return true };
        old.view.spec.unschedulable != new.view.spec.unschedulable
            || old.view.spec.taints != new.view.spec.taints
            || old.view.metadata.labels != new.view.metadata.labels
            || (old.allocatable != new.allocatable || old.pods != new.pods)
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        if let Some(place) = self.nodes.get_mut(name) {
            place.node = None;
        }
        self.forget_if_empty(name);
    }

    /// Updates a pod that is bound and has not ended: it uses resources of its node. Returns whether that may have
    /// freed resources.
    pub(super) fn place(&mut self, pod: &SimPodView, node: &Istr) -> bool {
        let key = pod.metadata.key();
        let meta = &pod.metadata;
        let is_held = |held: &Placed| held.uid == meta.uid && held.node == *node && held.generation == meta.generation;
        if self.placed.get(&key).is_some_and(is_held) {
            return false;
        }
        let request = request(&pod.spec);
        // A deletion increments the generation, too, with the same requests.
        let is_new = self.placed.get(&key).is_some_and(|held| held.node != *node || held.request != request);
        self.free(&key);
        self.nodes.entry(node.clone()).or_default().used.add(&request);
        let uid = meta.uid.clone();
        let generation = meta.generation;
        self.placed.insert(key, Placed { uid, generation, node: node.clone(), request });
        is_new
    }

    /// Removes a pod. Returns whether it used resources.
    pub(super) fn free(&mut self, key: &ObjectKey) -> bool {
        let Some(placed) = self.placed.remove(key) else { return false };
        if let Some(place) = self.nodes.get_mut(&placed.node) {
            place.used.subtract(&placed.request);
        }
        self.forget_if_empty(&placed.node);
        true
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.nodes.get(name).is_some_and(|place| place.node.is_none() && place.used == Used::default()) {
            self.nodes.remove(name);
        }
    }

    /// Adds a pod to schedule.
    pub(super) fn await_turn(&mut self, pod: &SimPodView) {
        let key = pod.metadata.key();
        let priority = Reverse(pod.spec.priority.unwrap_or(0));
        let turn = Turn { priority, created: pod.metadata.creation_timestamp, key: key.clone() };
        if let Some(old) = self.turns.insert(key, turn.clone())
            && old != turn
        {
            self.active.remove(&old);
            self.unschedulable.remove(&old);
        }
        self.unschedulable.remove(&turn);
        self.active.insert(turn);
    }

    /// Whether a pod waits for its turn, or to fit.
    pub(super) fn is_waiting(&self, key: &ObjectKey) -> bool {
        self.turns.contains_key(key)
    }

    /// Removes a waiting pod.
    pub(super) fn leave(&mut self, key: &ObjectKey) {
        if let Some(turn) = self.turns.remove(key) {
            self.active.remove(&turn);
            self.unschedulable.remove(&turn);
        }
    }

    /// Returns a waiting pod that comes before this one. This one is not returned again before
    /// [`await_turn`](Self::await_turn).
    pub(super) fn take_before(&mut self, key: &ObjectKey) -> Option<ObjectKey> {
        let first = self.active.first()?;
        let own = self.turns.get(key)?;
        if !self.active.contains(own) || first >= own {
            return None;
        }
        self.active.pop_first().map(|turn| turn.key)
    }

    /// Returns the pods that fit no node, by priority: they may be retried.
    pub(super) fn try_again(&mut self) -> Vec<ObjectKey> {
        let turns = std::mem::take(&mut self.unschedulable);
        let keys = turns.iter().map(|turn| turn.key.clone()).collect();
        self.active.extend(turns);
        keys
    }

    pub(super) fn has_unschedulable(&self) -> bool {
        !self.unschedulable.is_empty()
    }

    /// Sets a waiting pod aside, as one that fits no node. Returns the number of nodes.
    pub(super) fn set_aside(&mut self, key: &ObjectKey) -> usize {
        if let Some(turn) = self.turns.get(key) {
            self.active.remove(turn);
            self.unschedulable.insert(turn.clone());
        }
        self.count()
    }

    /// Decides where a pod runs.
    pub(super) fn decide(&mut self, pod: &SimPodView) -> Decision {
        let key = pod.metadata.key();
        if self.placed.get(&key).is_some_and(|held| held.uid == pod.metadata.uid) {
            return Decision::Decided;
        }
        match self.best(pod) {
            Ok(node) => {
                self.place(pod, &node);
                self.leave(&key);
                Decision::Bind(node)
            }
            Err(refusals) => {
                self.set_aside(&key);
                Decision::Wait(message::unschedulable(&refusals, pod.spec.preemption_policy == "Never"))
            }
        }
    }

    /// Returns the best node for a pod, or the reason of each node.
    fn best(&mut self, pod: &SimPodView) -> Result<Istr, Vec<Refusal>> {
        let request = request(&pod.spec);
        let named = named(&pod.spec);
        let mut refusals = Vec::new();
        let mut best = None;
        let mut fitting = 0;
        let mut considered = 0;
        let mut last = None;
        for (name, place) in self.in_turn(&named) {
            let Some(node) = &place.node else { continue };
            considered += 1;
            last = Some(name);
            match fits(&pod.spec, &request, node, &place.used) {
                Ok(()) => {
                    let score = score(&pod.spec, &request, node, &place.used);
                    // Among equals, the first one wins.
                    if best.as_ref().is_none_or(|(best, _)| score > *best) {
                        best = Some((score, name));
                    }
                    fitting += 1;
                    if fitting == COMPARED_MAX {
                        break;
                    }
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        let best = best.map(|(_, name)| name.clone());
        let last = last.cloned();
        if let Some(last) = last {
            self.last = last;
        }
        best.ok_or_else(|| {
            refusals.extend(std::iter::repeat_n(named.refusal(), self.count().saturating_sub(considered)));
            refusals
        })
    }

    /// Returns the nodes to consider, from the one behind the last one that was. Where a pod names its node, as each pod of a
    /// DaemonSet does, no other is looked at: these pods are as many as the nodes.
    fn in_turn<'a>(&'a self, named: &'a Named<'_>) -> Box<dyn Iterator<Item = (&'a Istr, &'a Place)> + 'a> {
        let last: &str = &self.last;
        let behind = (Bound::Excluded(last), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Included(last));
        match named {
            Named::None => Box::new(self.nodes.range::<str, _>(behind).chain(self.nodes.range::<str, _>(before))),
            Named::Only(names) => {
                let names = names.range::<str, _>(behind).chain(names.range::<str, _>(before));
                Box::new(names.filter_map(|name| self.nodes.get_key_value(*name)))
            }
            Named::Conflict => Box::new(std::iter::empty()),
        }
    }

    /// Returns the number of nodes.
    fn count(&self) -> usize {
        self.nodes.values().filter(|place| place.node.is_some()).count()
    }
}

// === impl Used ===

impl Used {
    fn add(&mut self, request: &Request) {
        self.asked.add(&request.asked);
        self.counted_milli_cpu += request.counted_milli_cpu;
        self.counted_memory += request.counted_memory;
        self.pods += 1;
        self.ports.add(&request.ports);
    }

    fn subtract(&mut self, request: &Request) {
        self.asked.subtract(&request.asked);
        self.counted_milli_cpu -= request.counted_milli_cpu;
        self.counted_memory -= request.counted_memory;
        self.pods -= 1;
        self.ports.subtract(&request.ports);
    }
}
