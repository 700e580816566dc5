//! Pure: which service a change of an Endpoints object concerns.

use steersman_base::{Meta, ObjectKey, names};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::EndpointsView;

/// Whether this controller manages the object.
pub(super) fn is_ours(endpoints: &Meta) -> bool {
    endpoints.labels.get(names::labels::ENDPOINTS_MANAGED_BY).is_some_and(|keeper| *keeper == *super::KEEPER)
}

/// Whether the object is a lock of an old leader election, which belongs to no service.
pub(super) fn is_lock(endpoints: &Meta) -> bool {
    endpoints.annotations.contains_key(names::annotations::LEADER)
}

/// Returns the service of the same name, if it has to be reconciled: its Endpoints were deleted; or they existed before
/// the start and may be obsolete; or they were written by us, and the service was deleted meanwhile.
pub(super) fn service_of(
    change: &Change<EndpointsView>,
    service_exists: impl Fn(&ObjectKey) -> bool,
) -> Option<ObjectKey> {
    let meta = change.object().meta();
    let concerns = |key: &ObjectKey| match change {
        // Existing services are enqueued by their own events.
        Change::Added { initial: true, .. } => !is_lock(meta) && !service_exists(key),
        Change::Added { .. } => is_ours(meta) && !service_exists(key),
        Change::Deleted { .. } => true,
        Change::Updated { .. } => false,
    };
    Some(meta.key()).filter(concerns)
}
