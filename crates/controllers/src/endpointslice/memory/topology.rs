//! The distribution of the cluster's CPUs over zones, and the services whose hints depend on it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::core::NodeView;

use crate::endpointslice::zones::{self, Allotted, Shares};
use crate::service_pods::address::Family;

/// The state. Nodes are counted on request, not with every event.
pub(in crate::endpointslice) struct Topology {
    nodes: Lister<NodeView>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counted: Counted,
    hinted: BTreeMap<ObjectKey, BTreeMap<Family, Allotted>>,
}

/// The last count of the nodes.
#[derive(Default)]
enum Counted {
    /// Nodes changed since.
    #[default]
    Stale,
    /// The shares of the zones, if every node has a zone and a capacity.
    Current(Option<Shares>),
}

// === impl Topology ===

impl Topology {
    pub(in crate::endpointslice) fn new(nodes: Lister<NodeView>) -> Self {
        Self { nodes, state: Mutex::default() }
    }

    /// Returns the current shares of the zones.
    pub(in crate::endpointslice) fn shares(&self) -> Option<Shares> {
        self.counted(&mut self.state.lock())
    }

    /// Records that nodes changed. Returns the services that now have too few endpoints for a zone.
    pub(in crate::endpointslice) fn nodes_changed(&self) -> Vec<ObjectKey> {
        let mut state = self.state.lock();
        state.counted = Counted::Stale;
        if state.hinted.is_empty() {
            return Vec::new();
        }
        let shares = self.counted(&mut state);
        let overloaded = |families: &BTreeMap<Family, Allotted>| {
            families.values().any(|allotted| zones::is_overloaded(allotted, shares.as_ref()))
        };
        let services = state.hinted.iter().filter(|(_, families)| overloaded(families));
        services.map(|(key, _)| key.clone()).collect()
    }

    /// Records the hints of a service. Returns whether it had some before.
    pub(in crate::endpointslice) fn set(&self, key: &ObjectKey, family: Family, allotted: Allotted) -> bool {
        self.state.lock().hinted.entry(key.clone()).or_default().insert(family, allotted).is_some()
    }

    /// Removes the topology hints of a service. Returns whether it had some before.
    pub(in crate::endpointslice) fn clear(&self, key: &ObjectKey, family: Family) -> bool {
        let mut state = self.state.lock();
        let Some(families) = state.hinted.get_mut(key) else { return false };
        let had = families.remove(&family).is_some();
        if families.is_empty() {
            state.hinted.remove(key);
        }
        had
    }

    /// Forgets a deleted service.
    pub(in crate::endpointslice) fn forget(&self, key: &ObjectKey) {
        self.state.lock().hinted.remove(key);
    }

    fn counted(&self, state: &mut State) -> Option<Shares> {
        if let Counted::Current(shares) = &state.counted {
            return shares.clone();
        }
        let shares = zones::shares(self.nodes.list().iter().map(|node| &**node));
        state.counted = Counted::Current(shares.clone());
        shares
    }
}
