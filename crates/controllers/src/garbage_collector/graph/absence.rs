//! Objects that are deleted, or never existed.

use std::collections::BTreeSet;

use steersman_base::OwnerRef;

use super::{Graph, Identity, NONE, Node, Work};

impl Graph {
    /// Applies the server's answer that an object is absent.
    ///
    /// If the object was observed under another identity, or dependents know it under others, only those that refer to
    /// this one are enqueued; the other possible identities of an owner that was never observed are tried next.
    pub(crate) fn mark_absent(&mut self, identity: &Identity, work: &mut Work) {
        let Some(node) = self.find(&identity.uid) else { return };
        let is_virtual = self.node(node).is_virtual;
        if is_virtual || self.node(node).identity != *identity {
            let (matching, others) = self.partition(node, identity);
            if !is_virtual || !others.is_empty() {
                if !matching.is_empty() {
                    self.absent.add(identity.clone());
                }
                matching.into_iter().for_each(|dependent| self.want(dependent, work));
                if is_virtual
                    && self.node(node).identity == *identity
                    && let Some(other) = self.alternative(&others, identity)
                {
                    self.node_mut(node).identity = other;
                }
                return;
            }
        }
        self.remove(node, Some(identity.clone()), work);
    }

    /// Removes a node; `absent` is recorded as absent. Its dependents are enqueued, and the owners that waited for it.
    pub(super) fn remove(&mut self, node: u32, absent: Option<Identity>, work: &mut Work) {
        let owners: Vec<u32> = self.owners(node).filter(|owner| *owner != node).collect();
        let dependents: Vec<u32> = self.dependents(node).filter(|dependent| *dependent != node).collect();
        while self.node(node).owned_by != NONE {
            self.disconnect(self.node(node).owned_by);
        }
        while self.node(node).dependents != NONE {
            self.disconnect(self.node(node).dependents);
        }
        if let Some(absent) = absent.filter(|_| !dependents.is_empty()) {
            self.absent.add(absent);
        }
        dependents.into_iter().for_each(|dependent| self.want(dependent, work));
        let empty = Node::referred_to(Identity::default());
        let removed = std::mem::replace(self.node_mut(node), empty);
        self.by_uid.remove(&removed.identity.uid);
        self.free.push(node);
        for owner in owners {
            self.note_unblocked(owner, work);
            self.drop_if_unreferred(owner);
        }
    }

    /// Returns the dependents with a reference to this identity, and those with a reference to another identity of its
    /// uid. A dependent can be both.
    pub(super) fn partition(&self, node: u32, identity: &Identity) -> (Vec<u32>, Vec<u32>) {
        let mut matching = Vec::new();
        let mut others = Vec::new();
        for dependent in self.dependents(node) {
            let held = self.node(dependent);
            let is_reachable = identity.namespace.is_empty() || identity.namespace == held.identity.namespace;
            let means = |reference: &OwnerRef| is_reachable && identity.is_meant_by(reference);
            let mut references = held.owners.iter().filter(|reference| reference.uid == identity.uid);
            if references.clone().any(means) {
                matching.push(dependent);
            }
            if !is_reachable || references.any(|reference| !means(reference)) {
                others.push(dependent);
            }
        }
        (matching, others)
    }

    /// Returns another possible identity of an owner that was never observed, from the references of its dependents:
    /// the next after the absent one, in order, so that all are tried.
    fn alternative(&self, dependents: &[u32], absent: &Identity) -> Option<Identity> {
        let mut all = BTreeSet::new();
        for dependent in dependents {
            let held = self.node(*dependent);
            for reference in held.owners.iter().filter(|reference| reference.uid == absent.uid) {
                let mut other = Identity::referred_to(reference, &held.identity.namespace);
                let is_of_one_kind = other.kind == absent.kind && other.api_version == absent.api_version;
                if absent.namespace.is_empty() && is_of_one_kind {
                    other = other.cluster_wide();
                }
                all.insert(other);
            }
        }
        all.remove(absent);
        all.range(absent..).next().or_else(|| all.first()).cloned()
    }
}
