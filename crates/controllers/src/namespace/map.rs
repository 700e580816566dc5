//! Pure: which changes of a namespace trigger a pass.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::NamespaceView;

/// Returns the namespace, if it is terminating and there may be something to do.
pub(super) fn terminating(change: &Change<NamespaceView>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { .. } => None,
        Change::Added { new, .. } => is_relevant(None, new).then(|| new.meta().key()),
        Change::Updated { old, new } => is_relevant(Some(old), new).then(|| new.meta().key()),
    }
}

/// Whether there may be something to do: the namespace is terminating, and not only its status changed, which is mostly
/// our own write. In a resync both are the same, and that counts.
pub(super) fn is_relevant(before: Option<&NamespaceView>, now: &NamespaceView) -> bool {
    let was_terminating = |before: &NamespaceView| {
        before.meta().is_terminating() && before.spec == now.spec && before.status != now.status
    };
    now.meta().is_terminating() && !before.is_some_and(was_terminating)
}
