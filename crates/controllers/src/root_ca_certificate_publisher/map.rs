//! Pure: which namespace a change of a ConfigMap concerns.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::ConfigMapView;

/// Returns the namespace of a ConfigMap that was changed or deleted. A new one was created by us, or is checked with
/// its namespace.
pub(super) fn namespace_of(change: &Change<ConfigMapView>) -> Option<ObjectKey> {
    match change {
        Change::Added { .. } => None,
        Change::Updated { new: map, .. } | Change::Deleted { last: map, .. } => {
            Some(ObjectKey::cluster(&map.meta().namespace))
        }
    }
}
