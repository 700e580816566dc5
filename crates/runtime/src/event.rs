//! What happened to an object, as sources tell it to handlers and predicates.

use std::fmt;
use std::sync::Arc;

use steersman_base::{Meta, ObjectKey, Resource};
use steersman_informer::{Change, End};
use steersman_model::View;

/// What happened to one object.
pub enum Event<'a, V> {
    /// It is seen for the first time.
    Created {
        /// The object.
        new: &'a Arc<V>,
        /// Whether it is part of the state the controller began with.
        initial: bool,
    },
    /// It is not what it was; or, when everything is looked at again, `old` and `new` are one.
    Updated {
        /// What was seen last.
        old: &'a Arc<V>,
        /// What it is now.
        new: &'a Arc<V>,
    },
    /// It is gone.
    Deleted {
        /// The last known state.
        last: &'a Arc<V>,
        /// How its end was learnt of.
        end: End,
    },
    /// Something outside of the cluster concerns it: a webhook of another system, a timer, a person.
    Generic {
        /// The object.
        object: &'a Arc<V>,
    },
}

/// [`Event`], of which only the metadata is shown: the same for every kind.
#[derive(Clone, Copy, Debug)]
pub enum MetaEvent<'a> {
    /// It is seen for the first time.
    Created {
        /// The object.
        new: &'a Meta,
        /// Whether it is part of the state the controller began with.
        initial: bool,
    },
    /// It is not what it was; or, when everything is looked at again, both are equal.
    Updated {
        /// What was seen last.
        old: &'a Meta,
        /// What it is now.
        new: &'a Meta,
    },
    /// It is gone.
    Deleted {
        /// The last known state.
        last: &'a Meta,
    },
    /// Something outside of the cluster concerns it.
    Generic {
        /// The object.
        object: &'a Meta,
    },
}

/// Why a key was looked at, for the decision log. The last of many is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// The first look, a retry or a look after some time: no event since.
    #[default]
    Again,
    /// Something happened to an object.
    Event {
        /// Kind of the object.
        kind: String,
        /// Which one.
        object: ObjectKey,
        /// What happened: `created`, `updated`, `deleted`, `generic`.
        what: &'static str,
    },
    /// Somebody asked for it.
    Manual,
}

// === impl Event ===

impl<'a, V: View> Event<'a, V> {
    /// The object as it is now, or was last.
    #[must_use]
    pub fn object(&self) -> &'a Arc<V> {
        match *self {
            Self::Created { new: object, .. }
            | Self::Updated { new: object, .. }
            | Self::Deleted { last: object, .. }
            | Self::Generic { object } => object,
        }
    }

    /// The object as it was before, if it changed.
    #[must_use]
    pub fn before(&self) -> Option<&'a Arc<V>> {
        match *self {
            Self::Updated { old, .. } => Some(old),
            Self::Created { .. } | Self::Deleted { .. } | Self::Generic { .. } => None,
        }
    }

    /// The same event of any kind.
    #[must_use]
    pub fn meta(&self) -> MetaEvent<'a> {
        match *self {
            Self::Created { new, initial } => MetaEvent::Created { new: new.meta(), initial },
            Self::Updated { old, new } => MetaEvent::Updated { old: old.meta(), new: new.meta() },
            Self::Deleted { last, .. } => MetaEvent::Deleted { last: last.meta() },
            Self::Generic { object } => MetaEvent::Generic { object: object.meta() },
        }
    }

    /// Whether nothing happened just now: it is part of what a cache was filled with, or everything is looked at again.
    #[must_use]
    pub fn is_background(&self) -> bool {
        match *self {
            Self::Created { initial, .. } => initial,
            Self::Updated { old, new } => Arc::ptr_eq(old, new),
            Self::Deleted { .. } | Self::Generic { .. } => false,
        }
    }

    /// The event as an informer's change; a generic event is none.
    #[must_use]
    pub fn change(&self) -> Option<Change<V>> {
        Some(match *self {
            Self::Created { new, initial } => Change::Added { new: Arc::clone(new), initial },
            Self::Updated { old, new } => Change::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Deleted { last, end } => Change::Deleted { last: Arc::clone(last), end },
            Self::Generic { .. } => return None,
        })
    }

    pub(crate) fn trigger(&self, resource: &Resource) -> Trigger {
        let what = match self {
            Self::Created { .. } => "created",
            Self::Updated { .. } => "updated",
            Self::Deleted { .. } => "deleted",
            Self::Generic { .. } => "generic",
        };
        Trigger::Event { kind: resource.kind.to_string(), object: self.object().meta().key(), what }
    }
}

impl<'a, V> From<&'a Change<V>> for Event<'a, V> {
    fn from(change: &'a Change<V>) -> Self {
        match change {
            Change::Added { new, initial } => Self::Created { new, initial: *initial },
            Change::Updated { old, new } => Self::Updated { old, new },
            Change::Deleted { last, end } => Self::Deleted { last, end: *end },
        }
    }
}

impl<V> Clone for Event<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Event<'_, V> {}

impl<V: View> fmt::Debug for Event<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.meta().fmt(f)
    }
}

// === impl Trigger ===

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Again => f.write_str("looked at again"),
            Self::Event { kind, object, what } => write!(f, "{kind} {object} {what}"),
            Self::Manual => f.write_str("asked for"),
        }
    }
}
