//! Services with pods on unknown nodes, so that they are reconciled when the node appears.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey};

/// The nodes that services wait for. Only services with such pods have entries.
#[derive(Debug, Default)]
pub(in crate::endpointslice) struct Nodeless(Mutex<BTreeMap<ObjectKey, BTreeSet<Istr>>>);

// === impl Nodeless ===

impl Nodeless {
    /// Sets the nodes that a service waits for.
    pub(in crate::endpointslice) fn set(&self, key: &ObjectKey, nodes: BTreeSet<Istr>) {
        let mut waiting = self.0.lock();
        if nodes.is_empty() {
            waiting.remove(key);
        } else {
            waiting.insert(key.clone(), nodes);
        }
    }

    /// Returns the services that wait for a node.
    pub(in crate::endpointslice) fn waiting_for(&self, node: &Istr) -> Vec<ObjectKey> {
        let waiting = self.0.lock();
        waiting.iter().filter(|(_, nodes)| nodes.contains(node)).map(|(key, _)| key.clone()).collect()
    }
}
