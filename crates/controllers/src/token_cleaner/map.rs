//! Pure: the tokens to look at.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::BootstrapTokenView;

/// Returns a token that is there.
pub(super) fn changed(change: &Change<BootstrapTokenView>) -> Option<ObjectKey> {
    match change {
        Change::Added { new, .. } | Change::Updated { new, .. } => Some(new.meta().key()),
        Change::Deleted { .. } => None,
    }
}
