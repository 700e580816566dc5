//! Pure: which namespace a change of a service account concerns.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::ServiceAccountView;

use super::DEFAULT;

/// Returns the namespace whose account `default` was deleted.
pub(super) fn namespace_of(change: &Change<ServiceAccountView>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { last, .. } if last.meta().name == DEFAULT => Some(ObjectKey::cluster(&last.meta().namespace)),
        _ => None,
    }
}
