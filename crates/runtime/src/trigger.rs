//! Why a key was reconciled, for the decision log.

use std::borrow::Cow;
use std::fmt;

use steersman_base::{ObjectKey, Resource};
use steersman_informer::Change;
use steersman_model::View;

/// The reason why a key was reconciled. The last of several is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The first reconcile, a retry or a requeue: nothing was reported since.
    #[default]
    Again,
    /// An object changed, or was sent through a [`channel`](crate::source::channel).
    Object {
        /// The kind of the object.
        kind: Cow<'static, str>,
        /// The object's key.
        object: ObjectKey,
        /// The kind of event: `created`, `updated`, `deleted`, `generic`.
        what: &'static str,
    },
    /// [`Controller::trigger`](crate::Controller::trigger) was called.
    Manual,
}

// === impl Trigger ===

impl Trigger {
    pub(crate) fn change<V: View>(resource: &Resource, change: &Change<V>) -> Self {
        let what = match change {
            Change::Added { .. } => "created",
            Change::Updated { .. } => "updated",
            Change::Deleted { .. } => "deleted",
        };
        Self::Object { kind: resource.kind.clone(), object: change.key(), what }
    }

    pub(crate) fn sent(object: ObjectKey) -> Self {
        Self::Object { kind: Cow::Borrowed("event"), object, what: "generic" }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Again => f.write_str("looked at again"),
            Self::Object { kind, object, what } => write!(f, "{kind} {object} {what}"),
            Self::Manual => f.write_str("asked for"),
        }
    }
}
