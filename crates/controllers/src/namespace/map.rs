//! Pure: which changes of a namespace are worth a look.

use steersman_base::ObjectKey;
use steersman_informer::Change;
use steersman_model::View;
use steersman_model::core::NamespaceView;

/// The namespace, if it is terminating and there may be something to do.
pub(super) fn terminating(change: &Change<NamespaceView>) -> Option<ObjectKey> {
    match change {
        Change::Deleted { .. } => None,
        Change::Added { new, .. } => is_news(None, new).then(|| new.meta().key()),
        Change::Updated { old, new } => is_news(Some(old), new).then(|| new.meta().key()),
    }
}

/// Whether there may be something to do: the namespace is being deleted, and it is not only its status that changed,
/// which we mostly wrote ourselves. When everything is looked at again, both are the same, and that is news.
pub(super) fn is_news(before: Option<&NamespaceView>, now: &NamespaceView) -> bool {
    let told_before = |before: &NamespaceView| {
        before.meta().is_terminating() && before.spec == now.spec && before.status != now.status
    };
    now.meta().is_terminating() && !before.is_some_and(told_before)
}
