//! Pure: which services a change of a slice or node concerns.

use steersman_base::{Condition, ConditionStatus, Istr, Meta, ObjectKey, condition, names};
use steersman_informer::{Change, Scope};
use steersman_model::core::NodeView;
use steersman_model::{EndpointSliceView, View};

use super::MANAGER;
use super::memory::Tracker;

/// Whether the slice is ours to keep.
fn is_ours(slice: &Meta) -> bool {
    slice.labels.get(names::labels::ENDPOINTSLICE_MANAGED_BY).is_some_and(|manager| *manager == *MANAGER)
}

/// The service that the slice says it belongs to.
fn claimed(slice: &Meta) -> Option<ObjectKey> {
    let name = slice.labels.get(names::labels::SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(ObjectKey { namespace: slice.namespace.clone(), name: name.clone() })
}

/// Index function: the service of a slice that is ours.
pub(super) fn service_of(slice: &Meta) -> Option<ObjectKey> {
    claimed(slice).filter(|_| is_ours(slice))
}

/// What to list for the slices of a service that are ours.
pub(super) fn slices_of(service: &ObjectKey) -> Scope {
    let name = names::labels::SERVICE_NAME;
    let manager = names::labels::ENDPOINTSLICE_MANAGED_BY;
    Scope::namespace(&service.namespace).with_labels(&format!("{name}={},{manager}={MANAGER}", service.name))
}

/// The services that what happened to a slice concerns: unless we did it ourselves.
pub(super) fn services_of(change: &Change<EndpointSliceView>, tracker: &Tracker) -> Vec<ObjectKey> {
    let key = match change {
        // Every service is looked at once at the start anyway.
        Change::Added { initial: true, .. } => None,
        Change::Added { new: slice, .. } => service_of(slice.meta()).filter(|_| tracker.is_news(slice.meta())),
        Change::Updated { old, new } => {
            let before = service_of(old.meta());
            let now = service_of(new.meta());
            if before != now {
                // It was given to another service, or to another manager, or to us.
                return before.into_iter().chain(now).collect();
            }
            now.filter(|_| tracker.is_news(new.meta()))
        }
        Change::Deleted { last, .. } => {
            let expected = tracker.gone(&last.meta().uid);
            service_of(last.meta()).filter(|_| !expected)
        }
    };
    key.into_iter().collect()
}

/// Whether what happened to a node may change how much of the cluster is in which zone.
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

/// The zone that the node is in, if it says so.
pub(super) fn zone(node: &NodeView) -> Option<&Istr> {
    node.meta().labels.get(names::labels::TOPOLOGY_ZONE).filter(|zone| !zone.is_empty())
}
