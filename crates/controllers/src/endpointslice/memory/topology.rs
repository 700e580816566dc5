//! How the cluster's CPUs are spread over zones, and which services have hints that depend on it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use steersman_base::ObjectKey;
use steersman_informer::Lister;
use steersman_model::core::NodeView;

use crate::endpointslice::zones::{self, Allotted, Shares};
use crate::service_pods::address::Family;

/// The state. Nodes are counted when somebody asks, not with every event.
pub(in crate::endpointslice) struct Topology {
    nodes: Lister<NodeView>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What was counted last; nothing, if nodes changed since.
    counted: Option<Option<Shares>>,
    hinted: BTreeMap<ObjectKey, BTreeMap<Family, Allotted>>,
}

// === impl Topology ===

impl Topology {
    pub(in crate::endpointslice) fn new(nodes: Lister<NodeView>) -> Self {
        Self { nodes, state: Mutex::default() }
    }

    /// The shares of the zones now.
    pub(in crate::endpointslice) fn shares(&self) -> Option<Shares> {
        self.counted(&mut self.state.lock()).clone()
    }

    /// Nodes changed. Answers the services that have too few endpoints for a zone now.
    pub(in crate::endpointslice) fn nodes_changed(&self) -> Vec<ObjectKey> {
        let mut state = self.state.lock();
        state.counted = None;
        if state.hinted.is_empty() {
            return Vec::new();
        }
        let shares = self.counted(&mut state).clone();
        let overloaded = |families: &BTreeMap<Family, Allotted>| {
            families.values().any(|allotted| zones::is_overloaded(allotted, shares.as_ref()))
        };
        let services = state.hinted.iter().filter(|(_, families)| overloaded(families));
        services.map(|(key, _)| key.clone()).collect()
    }

    /// The service has these hints. Answers whether it had some before.
    pub(in crate::endpointslice) fn set(&self, key: &ObjectKey, family: Family, allotted: Allotted) -> bool {
        self.state.lock().hinted.entry(key.clone()).or_default().insert(family, allotted).is_some()
    }

    /// The service has no hints by topology. Answers whether it had some before.
    pub(in crate::endpointslice) fn clear(&self, key: &ObjectKey, family: Family) -> bool {
        let mut state = self.state.lock();
        let Some(families) = state.hinted.get_mut(key) else { return false };
        let had = families.remove(&family).is_some();
        if families.is_empty() {
            state.hinted.remove(key);
        }
        had
    }

    /// The service is gone.
    pub(in crate::endpointslice) fn forget(&self, key: &ObjectKey) {
        self.state.lock().hinted.remove(key);
    }

    fn counted<'a>(&self, state: &'a mut State) -> &'a Option<Shares> {
        state.counted.get_or_insert_with(|| zones::shares(self.nodes.list().iter().map(|node| &**node)))
    }
}
