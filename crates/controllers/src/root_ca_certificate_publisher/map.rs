//! Pure: which namespace a change of a ConfigMap concerns.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::ConfigMapView;

/// The namespace of a ConfigMap that was changed or deleted. One that is new is as we made it, or is looked at with its
/// namespace.
pub(super) fn namespace_of(change: &Change<ConfigMapView>) -> Option<ObjectKey> {
    match change {
        Change::Added { .. } => None,
        Change::Updated { new: map, .. } | Change::Deleted { last: map, .. } => {
            Some(ObjectKey::cluster(&map.meta().namespace))
        }
    }
}
