//! What the controller remembers between passes. Decisions do not depend on it: without it, more services are
//! reconciled than necessary.

mod nodeless;
mod topology;

use steersman_base::ObjectKey;
use steersman_informer::{Change, Lister};
use steersman_model::View;
use steersman_model::core::NodeView;

pub(super) use nodeless::Nodeless;
pub(super) use topology::Topology;

use super::map;
use crate::service_pods::memory::{Once, Tracker, TriggerTimes};

/// The state that the controller keeps between passes.
pub(super) struct Memory {
    pub(super) topology: Topology,
    pub(super) tracker: Tracker,
    pub(super) nodeless: Nodeless,
    pub(super) times: TriggerTimes,
    pub(super) warned: Once,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(nodes: Lister<NodeView>) -> Self {
        Self {
            topology: Topology::new(nodes),
            tracker: Tracker::default(),
            nodeless: Nodeless::default(),
            times: TriggerTimes::default(),
            warned: Once::default(),
        }
    }

    /// Returns the services that a change of a node concerns.
    pub(super) fn services_of_node(&self, change: &Change<NodeView>) -> Vec<ObjectKey> {
        let mut services = Vec::new();
        if map::changes_zones(change) {
            services.extend(self.topology.nodes_changed());
        }
        if let Change::Added { new, .. } = change {
            services.extend(self.nodeless.waiting_for(&new.meta().name));
        }
        services
    }

    /// Forgets a service that was deleted, or whose slices we do not manage.
    pub(super) fn forget(&self, service: &ObjectKey) {
        self.topology.forget(service);
        self.nodeless.set(service, std::collections::BTreeSet::new());
        self.times.forget(service);
    }
}
