//! Pure: which changes of a namespace are worth a look.

use steersman_base::ObjectKey;
use steersman_model::View;
use steersman_model::core::NamespaceView;
use steersman_runtime::event::Event;

/// The namespace of an event, if it is to be reconciled.
pub(super) fn terminating(event: Event<'_, NamespaceView>) -> Option<ObjectKey> {
    if let Event::Deleted { .. } = event {
        return None;
    }
    let now = event.object();
    is_news(event.before().map(|before| &**before), now).then(|| now.meta().key())
}

/// Whether there may be something to do: the namespace is being deleted, and it is not only its status that changed,
/// which we mostly wrote ourselves. When everything is looked at again, both are the same, and that is news.
pub(super) fn is_news(before: Option<&NamespaceView>, now: &NamespaceView) -> bool {
    let told_before = |before: &NamespaceView| {
        before.meta().is_terminating() && before.spec == now.spec && before.status != now.status
    };
    now.meta().is_terminating() && !before.is_some_and(told_before)
}
