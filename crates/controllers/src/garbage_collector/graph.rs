//! Who owns whom: what is observed goes in, what is to be looked at comes out.
//!
//! 1. One node per uid. A node is *virtual* while its object was only referred to, and *observed* from its first event on.
//! 2. An object that is referred to and was not observed is looked at: it may be gone.
//! 3. When an object has gone, its dependents are looked at, and each owner that waited for it alone.
//! 4. When an object begins to be deleted in the foreground, its dependents are looked at and then the object itself; when it
//!    is to leave its dependents behind, it is handed out for that.
//! 5. References that disagree with what was observed, or with each other, make the dependents be looked at; a reference
//!    into another namespace is [reported](Work::misplaced).
//! 6. Nothing here decides that an object goes: whoever looks asks the server.
//!
//! A change costs what the object has references, also for an owner with 100,000 dependents. Follows `graph_builder.go` of
//! Kubernetes 1.37.1; what differs is said where it does.

mod edges;
mod gone;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use steersman_base::meta::Owners;
use steersman_base::names::finalizers;
use steersman_base::{Meta, OwnerRef, Uid};
use steersman_informer::End;

use super::absent::Absent;
use super::classify::Dependents;
use super::identity::{Identity, Kind};
use edges::{Edge, Edges, List, NONE};

/// Who owns whom.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    /// Places of nodes that have gone.
    free: Vec<u32>,
    by_uid: HashMap<Uid, u32>,
    edges: Edges,
    /// Owners that are known not to be there.
    pub(crate) absent: Absent,
}

/// What is to be done about a change.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// These are looked at: they may have to go.
    pub(crate) look_at: Vec<Uid>,
    /// These leave their dependents behind.
    pub(crate) orphan: Vec<Uid>,
    /// These refer to an owner in another namespace.
    pub(crate) misplaced: Vec<Misplaced>,
}

/// An object that refers to an owner in another namespace.
#[derive(Debug, PartialEq)]
pub(crate) struct Misplaced {
    pub(crate) dependent: Identity,
    pub(crate) reference: OwnerRef,
}

/// What the graph knows of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Look {
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
    /// The first of the edges to its dependents.
    dependents: u32,
    /// The first of the edges to its owners.
    owned_by: u32,
    is_virtual: bool,
    is_being_deleted: bool,
    is_deleting_dependents: bool,
    /// Whether it is being deleted and leaves its dependents behind.
    is_orphaning: bool,
    /// Whether somebody asked for a look for another reason than that it is virtual. A node that was only virtual, and is
    /// observed by the time it is looked at, needs none: at a restart, that is nearly every owner.
    is_wanted: bool,
}

// === impl Graph ===

impl Graph {
    /// An object is there, as an informer shows it; `before` is what the informer showed before.
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

    /// An object has gone, as an informer shows it. If it was only missed in a list, its absence is not taken for granted:
    /// whoever looks at its dependents asks for it. (Upstream takes it for granted, also if the list was short by mistake.)
    pub(crate) fn deleted(&mut self, kind: &Kind, last: &Meta, end: End, work: &mut Work) {
        if let Some(node) = self.find(&last.uid) {
            let absent = (end == End::Observed).then(|| Identity::observed(kind, last));
            self.remove(node, absent, work);
        }
    }

    /// What is known of an object that is about to be looked at; none if there is no need to any more.
    pub(crate) fn take_up(&mut self, uid: &Uid) -> Option<Look> {
        let held = &mut self.nodes[self.by_uid.get(uid).copied()? as usize];
        let is_wanted = std::mem::take(&mut held.is_wanted);
        (is_wanted || held.is_virtual).then(|| held.look())
    }

    /// The look at an object came to nothing, and is to be had again.
    pub(crate) fn put_back(&mut self, uid: &Uid) {
        if let Some(node) = self.find(uid) {
            self.node_mut(node).is_wanted = true;
        }
    }

    /// What is to be looked at now, whatever was said of it before: for a leader that begins.
    pub(crate) fn to_look_at(&self) -> Vec<Uid> {
        self.those(|node| node.is_wanted || node.is_virtual)
    }

    /// What leaves its dependents behind now.
    pub(crate) fn to_orphan(&self) -> Vec<Uid> {
        self.those(|node| node.is_orphaning)
    }

    fn those(&self, is_meant: impl Fn(&Node) -> bool) -> Vec<Uid> {
        // By place and not by hash: the same history gives the same order.
        let is_held =
            |(at, node): &(usize, &Node)| self.by_uid.get(&node.identity.uid).is_some_and(|held| *held as usize == *at);
        let nodes = self.nodes.iter().enumerate().filter(|(_, node)| is_meant(node)).filter(is_held);
        nodes.map(|(_, node)| node.identity.uid.clone()).collect()
    }

    /// Whether an object was only referred to so far.
    pub(crate) fn is_virtual(&self, uid: &Uid) -> bool {
        self.find(uid).is_some_and(|node| self.node(node).is_virtual)
    }

    /// What is known of an object's dependents.
    pub(crate) fn dependents_known(&self, uid: &Uid) -> Dependents {
        let Some(node) = self.find(uid) else { return Dependents::default() };
        let mut others = self.dependents(node).filter(|other| *other != node).peekable();
        let any = others.peek().is_some();
        Dependents { any, any_waiting: others.any(|other| self.node(other).is_deleting_dependents) }
    }

    /// Asks for a look at the dependents that keep an object from going; the answer is whether there are any.
    ///
    /// Those that are being deleted already have nothing to be asked. (Upstream asks them each time.)
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

    /// An owner, and its dependents but for itself.
    pub(crate) fn family(&self, uid: &Uid) -> Option<(Identity, Vec<Identity>)> {
        let node = self.find(uid)?;
        let others = self.dependents(node).filter(|other| *other != node);
        Some((self.node(node).identity.clone(), others.map(|other| self.node(other).identity.clone()).collect()))
    }

    /// Every object that owns or is owned, and the references to its owners; in no order.
    pub(crate) fn related(&self) -> impl Iterator<Item = (Look, &Owners)> {
        let nodes = self.by_uid.values().map(|node| self.node(*node));
        let related = nodes.filter(|node| node.dependents != NONE || !node.owners.is_empty());
        related.map(|node| (node.look(), &node.owners))
    }

    /// The uids of all that are connected to one of these, over any number of steps.
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

    /// How many objects there are.
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
        work.look_at.push(held.identity.uid.clone());
    }

    fn insert(&mut self, node: Node) -> u32 {
        let uid = node.identity.uid.clone();
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                // By a quarter, not twofold: of the largest block that the manager has, half would be empty.
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

    /// A node is what an informer says it is. Dependents that thought otherwise are looked at.
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
            // One object under two names: the first counts. Another version of one name follows what is served.
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
        let (mut added, mut unblocked) = (Vec::new(), Vec::new());
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

    /// Makes a node the dependent of the owners that it refers to.
    fn connect(&mut self, node: u32, owners: &mut dyn ExactSizeIterator<Item = &OwnerRef>, work: &mut Work) {
        let is_only = owners.len() <= 1 && self.node(node).owned_by == NONE;
        let mut connected: HashSet<u32> = self.owners(node).collect();
        let (mut is_doubtful, mut is_waited_for) = (false, false);
        for reference in owners {
            let (owner, is_new) = match self.find(&reference.uid) {
                Some(owner) => (owner, false),
                None => {
                    let identity = Identity::referred_to(reference, &self.node(node).identity.namespace);
                    (self.insert(Node::referred_to(identity)), true)
                }
            };
            if is_only || connected.insert(owner) {
                let (dependents, owned_by) = (self.node(owner).dependents, self.node(node).owned_by);
                let edge = self.edges.add(owner, node, dependents, owned_by);
                self.node_mut(owner).dependents = edge;
                self.node_mut(node).owned_by = edge;
            }
            if is_new {
                work.look_at.push(reference.uid.clone());
            } else {
                // An owner that waits for its dependents has not asked this one yet. (Upstream lets it wait for another.)
                is_waited_for |= self.node(owner).is_deleting_dependents;
                // One doubt is enough for a look.
                is_doubtful = is_doubtful || self.is_doubtful(node, owner, reference, work);
            }
        }
        if is_doubtful || is_waited_for {
            self.want(node, work);
        }
    }

    /// Whether a reference does not fit what is known of the owner.
    fn is_doubtful(&self, node: u32, owner: u32, reference: &OwnerRef, work: &mut Work) -> bool {
        let (dependent, owner) = (self.node(node), self.node(owner));
        let is_elsewhere = owner.identity.namespace != dependent.identity.namespace;
        if !owner.identity.namespace.is_empty() && is_elsewhere {
            if !owner.is_virtual {
                self.report(node, &reference.uid, work);
            }
            return true;
        }
        // A virtual owner without namespace: it may be of a namespaced kind, if a cluster-wide object referred to it first.
        !owner.identity.is_meant_by(reference) || (is_elsewhere && owner.is_virtual)
    }

    fn report(&self, node: u32, owner: &Uid, work: &mut Work) {
        let dependent = self.node(node);
        if let Some(reference) = dependent.owners.iter().find(|reference| reference.uid == *owner) {
            work.misplaced.push(Misplaced { dependent: dependent.identity.clone(), reference: reference.clone() });
        }
    }

    /// An owner that was only referred to, and is not any more, is nothing to look at: nobody would ever take it out on a
    /// standby, which looks at nothing.
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

    /// Whether a dependent keeps its owner from going. Nobody waits for itself. (With upstream, it does, for ever.)
    fn blocks(&self, dependent: u32, owner: u32) -> bool {
        let uid = &self.node(owner).identity.uid;
        let blocks = |reference: &OwnerRef| reference.uid == *uid && is_blocking(reference);
        dependent != owner && self.node(dependent).owners.iter().any(blocks)
    }

    /// One dependent less blocks an owner. If it was the last, the owner is looked at. (Upstream looks each time.)
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

    fn look(&self) -> Look {
        Look {
            identity: self.identity.clone(),
            is_virtual: self.is_virtual,
            is_being_deleted: self.is_being_deleted,
            is_deleting_dependents: self.is_deleting_dependents,
        }
    }
}

/// Whether an object is being deleted and waits for what this finalizer asks for.
fn waits_with(meta: &Meta, finalizer: &str) -> bool {
    meta.is_terminating() && meta.has_finalizer(finalizer)
}

fn is_blocking(reference: &OwnerRef) -> bool {
    reference.block_owner_deletion == Some(true)
}
