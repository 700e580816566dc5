//! Pure: which services a change of a slice or node concerns.

use steersman_base::{Condition, ConditionStatus, Istr, Meta, ObjectKey, condition, names};
use steersman_informer::{Change, Selection};
use steersman_model::core::NodeView;
use steersman_model::{EndpointSliceView, View};

use super::MANAGER;
use super::memory::Tracker;

/// Whether this controller manages the slice.
fn is_ours(slice: &Meta) -> bool {
    slice.labels.get(names::labels::ENDPOINTSLICE_MANAGED_BY).is_some_and(|manager| *manager == *MANAGER)
}

/// Returns the service that the slice's label names.
fn claimed(slice: &Meta) -> Option<ObjectKey> {
    let name = slice.labels.get(names::labels::SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(ObjectKey { namespace: slice.namespace.clone(), name: name.clone() })
}

/// Index function: the service of a slice that we manage.
pub(super) fn service_of(slice: &Meta) -> Option<ObjectKey> {
    claimed(slice).filter(|_| is_ours(slice))
}

/// Returns the label selector for the slices of a service that we manage.
pub(super) fn slices_of(service: &ObjectKey) -> Selection {
    let name = names::labels::SERVICE_NAME;
    let manager = names::labels::ENDPOINTSLICE_MANAGED_BY;
    Selection::namespace(&service.namespace).with_labels(&format!("{name}={},{manager}={MANAGER}", service.name))
}

/// Returns the services that a change of a slice concerns: none, if the change is our own write.
pub(super) fn services_of(change: &Change<EndpointSliceView>, tracker: &Tracker) -> Vec<ObjectKey> {
    let key = match change {
        // Every service is reconciled once at the start anyway.
        Change::Added { initial: true, .. } => None,
        Change::Added { new: slice, .. } => service_of(slice.meta()).filter(|_| tracker.is_foreign(slice.meta())),
        Change::Updated { old, new } => {
            let before = service_of(old.meta());
            let now = service_of(new.meta());
            if before != now {
                // The slice was moved to another service or another manager, or to us.
                return before.into_iter().chain(now).collect();
            }
            now.filter(|_| tracker.is_foreign(new.meta()))
        }
        Change::Deleted { last, .. } => {
            let expected = tracker.take_deleted(&last.meta().uid);
            service_of(last.meta()).filter(|_| !expected)
        }
    };
    key.into_iter().collect()
}

/// Whether a change of a node may change the distribution of CPUs over zones.
pub(super) fn changes_zones(change: &Change<NodeView>) -> bool {
    match change {
        Change::Updated { old, new } => is_ready(old) != is_ready(new) || zone(old) != zone(new),
        Change::Added { .. } | Change::Deleted { .. } => true,
    }
}

/// Whether the node is ready.
pub(super) fn is_ready(node: &NodeView) -> bool {
    let ready: Option<&Condition> = condition::find(&node.status.conditions, "Ready");
    ready.is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Returns the zone of the node, if it has a zone label.
pub(super) fn zone(node: &NodeView) -> Option<&Istr> {
    node.meta().labels.get(names::labels::TOPOLOGY_ZONE).filter(|zone| !zone.is_empty())
}
