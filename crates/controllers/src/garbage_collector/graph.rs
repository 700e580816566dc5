//! The graph of owners and dependents: observed changes go in, objects to process come out.
//!
//! 1. There is one node per uid. A node is *virtual* while its object was only referred to, and *observed* from its
//!    first event on.
//! 2. An object that is referred to and was not observed is enqueued: it may be absent.
//! 3. When an object is deleted, its dependents are enqueued, and each owner that waited for it alone.
//! 4. When foreground deletion of an object starts, its dependents are enqueued and then the object itself; when its
//!    deletion requests `orphan`, it is enqueued for orphaning.
//! 5. References that contradict what was observed, or each other, enqueue the dependents; a reference into another
//!    namespace is [reported](Work::misplaced).
//! 6. The graph does not decide that an object is deleted: the worker asks the server.
//!
//! The cost of a change is proportional to the object's references, also for an owner with 100,000 dependents. Follows
//! `graph_builder.go` of Kubernetes 1.37.1; differences are noted where they are.

mod absence;
mod edges;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use steersman_base::meta::Owners;
use steersman_base::names::finalizers;
use steersman_base::{Meta, OwnerRef, Uid};
use steersman_informer::End;

use super::absent::Absent;
use super::identity::{Identity, Kind};
use super::plan::Dependents;
use edges::{Edge, Edges, List, NONE};

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// Indexes of removed nodes, for reuse.
    free: Vec<u32>,
    by_uid: HashMap<Uid, u32>,
    edges: Edges,
    /// Owners known to be absent.
    pub(crate) absent: Absent,
}

/// The work that follows from a change.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Objects to check: they may have to be deleted.
    pub(crate) to_check: Vec<Uid>,
    /// Owners whose dependents are to be orphaned.
    pub(crate) orphan: Vec<Uid>,
    /// Objects that refer to an owner in another namespace.
    pub(crate) misplaced: Vec<Misplaced>,
}

/// An object that refers to an owner in another namespace.
#[derive(Debug, PartialEq)]
pub(crate) struct Misplaced {
    pub(crate) dependent: Identity,
    pub(crate) reference: OwnerRef,
}

/// The state of an object in the graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeState {
    pub(crate) identity: Identity,
    pub(crate) is_virtual: bool,
    pub(crate) is_being_deleted: bool,
    pub(crate) is_deleting_dependents: bool,
}

/// An object. Owners and dependents are [`Edges`], so that a node needs no allocation of its own.
#[derive(Debug)]
struct Node {
    identity: Identity,
    owners: Owners,
    /// The first edge to a dependent.
    dependents: u32,
    /// The first edge to an owner.
    owned_by: u32,
    is_virtual: bool,
    is_being_deleted: bool,
    is_deleting_dependents: bool,
    /// Whether its deletion orphans its dependents.
    is_orphaning: bool,
    /// Whether the node was enqueued for a reason other than being virtual. A node that was only virtual, and is
    /// observed by the time it is processed, needs no check: at a restart, that is nearly every owner.
    is_wanted: bool,
}

// === impl Graph ===

impl Graph {
    /// Applies an observed object; `before` is its previous state.
    pub(crate) fn observed(&mut self, kind: &Kind, meta: &Meta, before: Option<&Meta>, work: &mut Work) {
        let identity = Identity::observed(kind, meta);
        // A server that was restored brings uids back.
        self.absent.forget(&identity);
        let node = match self.find(&meta.uid) {
            Some(node) => {
                self.identify(node, identity, work);
                self.change_owners(node, &meta.owner_references, work);
                node
            }
            None => {
                let node = self.insert(Node::observed(identity, meta.owner_references.clone()));
                self.connect(node, &mut meta.owner_references.iter(), work);
                node
            }
        };
        let held = self.node_mut(node);
        held.is_being_deleted = meta.is_terminating();
        held.is_deleting_dependents = waits_with(meta, finalizers::FOREGROUND_DELETION);
        held.is_orphaning = waits_with(meta, finalizers::ORPHAN);
        let starts = |finalizer| waits_with(meta, finalizer) && !before.is_some_and(|meta| waits_with(meta, finalizer));
        if starts(finalizers::ORPHAN) {
            work.orphan.push(meta.uid.clone());
        } else if starts(finalizers::FOREGROUND_DELETION) {
            let dependents: Vec<u32> = self.dependents(node).filter(|other| *other != node).collect();
            dependents.into_iter().for_each(|dependent| self.want(dependent, work));
            self.want(node, work);
        }
    }

    /// Applies a deletion. If the object was only missing in a list, its absence is not recorded: the check of its
    /// dependents asks the server. (Upstream records it, even if the list was incomplete by mistake.)
    pub(crate) fn deleted(&mut self, kind: &Kind, last: &Meta, end: End, work: &mut Work) {
        if let Some(node) = self.find(&last.uid) {
            let absent = (end == End::Observed).then(|| Identity::observed(kind, last));
            self.remove(node, absent, work);
        }
    }

    /// Returns what is known of an object that is about to be checked; `None` if that is no longer needed.
    pub(crate) fn take(&mut self, uid: &Uid) -> Option<NodeState> {
        let held = &mut self.nodes[self.by_uid.get(uid).copied()? as usize];
        let is_wanted = std::mem::take(&mut held.is_wanted);
        (is_wanted || held.is_virtual).then(|| held.state())
    }

    /// Records that the check of an object failed, and is pending again.
    pub(crate) fn put_back(&mut self, uid: &Uid) {
        if let Some(node) = self.find(uid) {
            self.node_mut(node).is_wanted = true;
        }
    }

    /// Returns the objects to check, for a new leader.
    pub(crate) fn to_check(&self) -> Vec<Uid> {
        self.those(|node| node.is_wanted || node.is_virtual)
    }

    /// Returns the owners whose dependents are to be orphaned, for a new leader.
    pub(crate) fn to_orphan(&self) -> Vec<Uid> {
        self.those(|node| node.is_orphaning)
    }

    fn those(&self, is_meant: impl Fn(&Node) -> bool) -> Vec<Uid> {
        // By index and not by hash: the same history gives the same order.
        let is_held =
            |(at, node): &(usize, &Node)| self.by_uid.get(&node.identity.uid).is_some_and(|held| *held as usize == *at);
        let nodes = self.nodes.iter().enumerate().filter(|(_, node)| is_meant(node)).filter(is_held);
        nodes.map(|(_, node)| node.identity.uid.clone()).collect()
    }

    /// Whether an object was only referred to so far.
    pub(crate) fn is_virtual(&self, uid: &Uid) -> bool {
        self.find(uid).is_some_and(|node| self.node(node).is_virtual)
    }

    /// Returns what is known about an object's dependents.
    pub(crate) fn dependents_known(&self, uid: &Uid) -> Dependents {
        let Some(node) = self.find(uid) else { return Dependents::default() };
        let mut others = self.dependents(node).filter(|other| *other != node).peekable();
        let any = others.peek().is_some();
        Dependents { any, any_waiting: others.any(|other| self.node(other).is_deleting_dependents) }
    }

    /// Enqueues the dependents that block the deletion of an object; returns whether there are any.
    ///
    /// Dependents that are terminating already are not enqueued. (Upstream enqueues them each time.)
    pub(crate) fn want_blocking(&mut self, uid: &Uid, work: &mut Work) -> bool {
        let Some(node) = self.find(uid) else { return false };
        let blocking: Vec<u32> = self.dependents(node).filter(|other| self.blocks(*other, node)).collect();
        for dependent in &blocking {
            if !self.node(*dependent).is_being_deleted {
                self.want(*dependent, work);
            }
        }
        !blocking.is_empty()
    }

    /// Returns an owner and its dependents, except itself.
    pub(crate) fn family(&self, uid: &Uid) -> Option<(Identity, Vec<Identity>)> {
        let node = self.find(uid)?;
        let others = self.dependents(node).filter(|other| *other != node);
        Some((self.node(node).identity.clone(), others.map(|other| self.node(other).identity.clone()).collect()))
    }

    /// Returns every object with owners or dependents, and its owner references, in no order.
    pub(crate) fn related(&self) -> impl Iterator<Item = (NodeState, &Owners)> {
        let nodes = self.by_uid.values().map(|node| self.node(*node));
        let related = nodes.filter(|node| node.dependents != NONE || !node.owners.is_empty());
        related.map(|node| (node.state(), &node.owners))
    }

    /// Returns the uids of all objects that are connected to one of these, over any number of steps.
    pub(crate) fn around(&self, uids: &[Uid]) -> HashSet<Uid> {
        let mut found = HashSet::new();
        let mut open: Vec<u32> = uids.iter().filter_map(|uid| self.find(uid)).collect();
        while let Some(node) = open.pop() {
            let held = self.node(node);
            if found.insert(held.identity.uid.clone()) {
                open.extend(self.dependents(node));
                open.extend(self.owners(node));
            }
        }
        found
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        self.by_uid.len()
    }

    fn find(&self, uid: &Uid) -> Option<u32> {
        self.by_uid.get(uid).copied()
    }

    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn dependents(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.edges.walk(List::Dependents, self.node(node).dependents).map(|(_, edge)| edge.dependent)
    }

    fn owners(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.edges.walk(List::Owners, self.node(node).owned_by).map(|(_, edge)| edge.owner)
    }

    fn want(&mut self, node: u32, work: &mut Work) {
        let held = self.node_mut(node);
        held.is_wanted = true;
        work.to_check.push(held.identity.uid.clone());
    }

    fn insert(&mut self, node: Node) -> u32 {
        let uid = node.identity.uid.clone();
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                // Grown by a quarter, not doubled: half of the manager's largest allocation would be empty.
                if self.nodes.len() == self.nodes.capacity() {
                    self.nodes.reserve_exact(self.nodes.len() / 4 + 16);
                }
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
            }
        };
        self.by_uid.insert(uid, at);
        at
    }

    /// Makes a node observed. Dependents that referred to another identity are enqueued.
    fn identify(&mut self, node: u32, observed: Identity, work: &mut Work) {
        let held = self.node(node);
        if held.identity == observed {
            self.node_mut(node).is_virtual = false;
            return;
        }
        if held.is_virtual {
            let (_, others) = self.partition(node, &observed);
            for dependent in others {
                if !observed.namespace.is_empty() && self.node(dependent).identity.namespace != observed.namespace {
                    self.report(dependent, &observed.uid, work);
                }
                self.want(dependent, work);
            }
        } else if held.identity.group() != observed.group() || held.identity.kind != observed.kind {
            // One uid under two names: the first counts. For another API version of one name, the served one counts.
            return;
        }
        let held = self.node_mut(node);
        held.identity = observed;
        held.is_virtual = false;
    }

    fn change_owners(&mut self, node: u32, owners: &Owners, work: &mut Work) {
        let before = std::mem::replace(&mut self.node_mut(node).owners, owners.clone());
        if before == *owners {
            return;
        }
        let mut left: BTreeMap<&Uid, &OwnerRef> = before.iter().map(|owner| (&owner.uid, owner)).collect();
        let mut added = Vec::new();
        let mut unblocked = Vec::new();
        for owner in owners.iter() {
            match left.remove(&owner.uid) {
                Some(old) if is_blocking(old) && !is_blocking(owner) => unblocked.push(&owner.uid),
                Some(_) => {}
                None => added.push(owner),
            }
        }
        self.connect(node, &mut added.into_iter(), work);
        let gone: BTreeSet<u32> = left.keys().filter_map(|uid| self.find(uid)).collect();
        let edges = self.edges.walk(List::Owners, self.node(node).owned_by);
        let edges: Vec<u32> = edges.filter(|(_, edge)| gone.contains(&edge.owner)).map(|(at, _)| at).collect();
        edges.into_iter().for_each(|edge| self.disconnect(edge));
        for owner in &gone {
            self.drop_if_unreferred(*owner);
        }
        unblocked.extend(left.values().filter(|owner| is_blocking(owner)).map(|owner| &owner.uid));
        for uid in unblocked {
            if let Some(owner) = self.find(uid) {
                self.note_unblocked(owner, work);
            }
        }
    }

    /// Adds a node to the dependents of the owners that it refers to.
    fn connect(&mut self, node: u32, owners: &mut dyn ExactSizeIterator<Item = &OwnerRef>, work: &mut Work) {
        let is_only = owners.len() <= 1 && self.node(node).owned_by == NONE;
        let mut connected: HashSet<u32> = self.owners(node).collect();
        let mut is_doubtful = false;
        let mut is_waited_for = false;
        for reference in owners {
            let (owner, is_new) = match self.find(&reference.uid) {
                Some(owner) => (owner, false),
                None => {
                    let identity = Identity::referred_to(reference, &self.node(node).identity.namespace);
                    (self.insert(Node::referred_to(identity)), true)
                }
            };
            if is_only || connected.insert(owner) {
                let dependents = self.node(owner).dependents;
                let owned_by = self.node(node).owned_by;
                let edge = self.edges.add(owner, node, dependents, owned_by);
                self.node_mut(owner).dependents = edge;
                self.node_mut(node).owned_by = edge;
            }
            if is_new {
                work.to_check.push(reference.uid.clone());
            } else {
                // The owner is in foreground deletion and has not enqueued this dependent yet. (Upstream lets it wait
                // for another.)
                is_waited_for |= self.node(owner).is_deleting_dependents;
                // One mismatch is enough to enqueue.
                is_doubtful = is_doubtful || self.is_doubtful(node, owner, reference, work);
            }
        }
        if is_doubtful || is_waited_for {
            self.want(node, work);
        }
    }

    /// Whether a reference contradicts what is known of the owner.
    fn is_doubtful(&self, node: u32, owner: u32, reference: &OwnerRef, work: &mut Work) -> bool {
        let dependent = self.node(node);
        let owner = self.node(owner);
        let is_elsewhere = owner.identity.namespace != dependent.identity.namespace;
        if !owner.identity.namespace.is_empty() && is_elsewhere {
            if !owner.is_virtual {
                self.report(node, &reference.uid, work);
            }
            return true;
        }
        // A virtual owner without namespace may be of a namespaced kind, if a cluster-scoped object referred to it
        // first.
        !owner.identity.is_meant_by(reference) || (is_elsewhere && owner.is_virtual)
    }

    fn report(&self, node: u32, owner: &Uid, work: &mut Work) {
        let dependent = self.node(node);
        if let Some(reference) = dependent.owners.iter().find(|reference| reference.uid == *owner) {
            work.misplaced.push(Misplaced { dependent: dependent.identity.clone(), reference: reference.clone() });
        }
    }

    /// Removes a virtual owner that is no longer referred to: a standby checks nothing, so it would stay forever.
    fn drop_if_unreferred(&mut self, node: u32) {
        let held = self.node(node);
        if held.is_virtual && held.dependents == NONE && self.find(&held.identity.uid) == Some(node) {
            let empty = Node::referred_to(Identity::default());
            let removed = std::mem::replace(self.node_mut(node), empty);
            self.by_uid.remove(&removed.identity.uid);
            self.free.push(node);
        }
    }

    fn disconnect(&mut self, at: u32) {
        let Edge { owner, dependent, .. } = self.edges.get(at);
        if let Some(first) = self.edges.take_out(at, List::Dependents) {
            self.node_mut(owner).dependents = first;
        }
        if let Some(first) = self.edges.take_out(at, List::Owners) {
            self.node_mut(dependent).owned_by = first;
        }
        self.edges.free(at);
    }

    /// Whether a dependent blocks the deletion of its owner. An object does not block itself. (With upstream it does,
    /// forever.)
    fn blocks(&self, dependent: u32, owner: u32) -> bool {
        let uid = &self.node(owner).identity.uid;
        let blocks = |reference: &OwnerRef| reference.uid == *uid && is_blocking(reference);
        dependent != owner && self.node(dependent).owners.iter().any(blocks)
    }

    /// Records that one dependent less blocks an owner. If it was the last, the owner is enqueued. (Upstream enqueues
    /// each time.)
    fn note_unblocked(&mut self, owner: u32, work: &mut Work) {
        if self.node(owner).is_deleting_dependents && !self.dependents(owner).any(|other| self.blocks(other, owner)) {
            self.want(owner, work);
        }
    }
}

// === impl Node ===

impl Node {
    fn observed(identity: Identity, owners: Owners) -> Self {
        Self { owners, is_virtual: false, ..Self::referred_to(identity) }
    }

    fn referred_to(identity: Identity) -> Self {
        Self {
            identity,
            owners: Owners::default(),
            dependents: NONE,
            owned_by: NONE,
            is_virtual: true,
            is_being_deleted: false,
            is_deleting_dependents: false,
            is_orphaning: false,
            is_wanted: false,
        }
    }

    fn state(&self) -> NodeState {
        NodeState {
            identity: self.identity.clone(),
            is_virtual: self.is_virtual,
            is_being_deleted: self.is_being_deleted,
            is_deleting_dependents: self.is_deleting_dependents,
        }
    }
}

/// Whether an object is terminating and has this finalizer.
fn waits_with(meta: &Meta, finalizer: &str) -> bool {
    meta.is_terminating() && meta.has_finalizer(finalizer)
}

fn is_blocking(reference: &OwnerRef) -> bool {
    reference.block_owner_deletion == Some(true)
}
