//! Pure: the one key: the ConfigMap, which every token concerns.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::core::{BootstrapTokenView, ConfigMapView};

use super::{NAME, NAMESPACE};

/// Returns the ConfigMap, unless it was deleted.
pub(super) fn changed_map(change: &Change<ConfigMapView>) -> Option<ObjectKey> {
    match change {
        Change::Added { .. } | Change::Updated { .. } => Some(key()),
        Change::Deleted { .. } => None,
    }
}

/// Returns the ConfigMap.
pub(super) fn changed_token(_: &Change<BootstrapTokenView>) -> ObjectKey {
    key()
}

fn key() -> ObjectKey {
    ObjectKey::new(NAMESPACE, NAME)
}
