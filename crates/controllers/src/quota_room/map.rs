//! Pure: whether a change of a quota lets more objects in.

use steersman_informer::Change;
use steersman_model::core::ResourceQuotaView;

/// Whether the namespace may use more than before: a quota is gone, a limit was raised or removed, or something was freed.
pub(super) fn makes_room(change: &Change<ResourceQuotaView>) -> bool {
    match change {
        Change::Added { .. } => false,
        Change::Deleted { .. } => true,
        Change::Updated { old, new } => {
            let before = &old.status;
            let now = &new.status;
            let is_raised = before.hard.iter().any(|(name, limit)| now.hard.get(name).is_none_or(|now| now > limit));
            let is_freed = before.used.iter().any(|(name, used)| now.used.get(name).is_none_or(|now| now < used));
            // What could not be charged is refused, too.
            let is_known = now.used.iter().any(|(name, _)| before.used.get(name).is_none());
            is_raised || is_freed || is_known || old.spec.scopes != new.spec.scopes
        }
    }
}
