//! Services some of whose pods are on nodes that nobody knows, so that they are looked at when the node comes.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use steersman_base::{Istr, ObjectKey};

/// The nodes that services wait for. There are entries for services in trouble only.
#[derive(Debug, Default)]
pub(in crate::endpointslice) struct Nodeless(Mutex<BTreeMap<ObjectKey, BTreeSet<Istr>>>);

// === impl Nodeless ===

impl Nodeless {
    /// A service waits for these nodes, and for no others.
    pub(in crate::endpointslice) fn set(&self, key: &ObjectKey, nodes: BTreeSet<Istr>) {
        let mut waiting = self.0.lock();
        if nodes.is_empty() {
            waiting.remove(key);
        } else {
            waiting.insert(key.clone(), nodes);
        }
    }

    /// The services that wait for a node.
    pub(in crate::endpointslice) fn waiting_for(&self, node: &Istr) -> Vec<ObjectKey> {
        let waiting = self.0.lock();
        waiting.iter().filter(|(_, nodes)| nodes.contains(node)).map(|(key, _)| key.clone()).collect()
    }
}
