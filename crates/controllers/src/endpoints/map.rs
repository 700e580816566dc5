//! Pure: which service a change of an Endpoints object concerns.

use steersman_base::{Meta, ObjectKey, names};
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::EndpointsView;

/// Whether this controller keeps the object.
pub(super) fn is_ours(endpoints: &Meta) -> bool {
    endpoints.labels.get(names::labels::ENDPOINTS_MANAGED_BY).is_some_and(|keeper| *keeper == *super::KEEPER)
}

/// Whether the object is a lock of an old leader election, which belongs to no service.
pub(super) fn is_lock(endpoints: &Meta) -> bool {
    endpoints.annotations.contains_key(names::annotations::LEADER)
}

/// The service of the same name, if it has to be looked at: because its Endpoints are gone; because they were there before
/// us and nobody may want them; because they come from us, and the service went away meanwhile.
pub(super) fn service_of(
    change: &Change<EndpointsView>,
    service_exists: impl Fn(&ObjectKey) -> bool,
) -> Option<ObjectKey> {
    let meta = change.object().meta();
    let concerns = |key: &ObjectKey| match change {
        // Services that exist are looked at by themselves.
        Change::Added { initial: true, .. } => !is_lock(meta) && !service_exists(key),
        Change::Added { .. } => is_ours(meta) && !service_exists(key),
        Change::Deleted { .. } => true,
        Change::Updated { .. } => false,
    };
    Some(meta.key()).filter(concerns)
}
