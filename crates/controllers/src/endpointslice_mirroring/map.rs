//! Pure: which Endpoints a change concerns.

use steersman_base::{ObjectKey, names};
use steersman_informer::Change;
use steersman_model::core::ServiceView;
use steersman_model::{EndpointSliceView, EndpointsView, View};

use super::MANAGER;
use crate::service_pods::memory::Tracker;

/// Whether Endpoints are mirrored: not if they say so, and not if they are the lock of an old leader election.
pub(super) fn is_mirrored(endpoints: &EndpointsView) -> bool {
    let meta = endpoints.meta();
    let skips = meta.labels.get(names::labels::ENDPOINTSLICE_SKIP_MIRROR).is_some_and(|skips| *skips == *"true");
    !skips && !meta.annotations.contains_key(names::annotations::LEADER)
}

/// Whether the Endpoints of a service are mirrored: those of a service with a selector have slices of their own.
pub(super) fn has_mirror(service: &ServiceView) -> bool {
    service.spec.selector.is_empty()
}

/// Returns the changed Endpoints, if they are mirrored, or were.
pub(super) fn endpoints(change: &Change<EndpointsView>) -> Option<ObjectKey> {
    let mut states = change.before().into_iter().chain([change.object()]);
    states.any(|endpoints| is_mirrored(endpoints)).then(|| change.key())
}

/// Returns the Endpoints of a service, if it begins or ceases to be one without a selector.
pub(super) fn endpoints_of_service(change: &Change<ServiceView>) -> Option<ObjectKey> {
    let concerns = match change {
        Change::Added { new: service, .. } | Change::Deleted { last: service, .. } => has_mirror(service),
        Change::Updated { old, new } => has_mirror(old) != has_mirror(new),
    };
    concerns.then(|| change.key())
}

/// Returns the Endpoints that a change of a mirrored slice concerns: none, if the change is our own write.
///
/// Slices that exist at the start count: Endpoints that ceased to be mirrored while no controller ran enqueue nothing
/// themselves, and their slices would stay.
pub(super) fn endpoints_of_slice(change: &Change<EndpointSliceView>, tracker: &Tracker) -> Vec<ObjectKey> {
    match change {
        Change::Added { new, initial: true } => MANAGER.service_of(new.meta()).into_iter().collect(),
        change => MANAGER.services_of(change, tracker),
    }
}
