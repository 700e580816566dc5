//! [`Change`]: the one type for "this object changed" above the store.

use std::fmt;
use std::sync::Arc;

use steersman_base::ObjectKey;
use steersman_model::{HasMeta, View};

use crate::delta_fifo::End;

/// A change of one object, as subscribers, handlers and predicates see it.
///
/// `Change<PodView>` holds the objects of a subscriber; [`Change<dyn HasMeta>`](HasMeta) is the same change for readers of
/// metadata, who need not know the view.
pub enum Change<V: ?Sized> {
    /// The subscriber sees the object for the first time.
    Added {
        /// The object.
        new: Arc<V>,
        /// Whether the object is part of the state the subscriber began with.
        initial: bool,
    },
    /// The object differs from what the subscriber saw last; in a resync ([`is_resync`](Change::is_resync)), `old` and
    /// `new` are the same allocation.
    Updated {
        /// The state that the subscriber saw last.
        old: Arc<V>,
        /// The current state, of the same uid.
        new: Arc<V>,
    },
    /// The object was deleted.
    Deleted {
        /// The last known state.
        last: Arc<V>,
        /// Whether the deletion was observed or inferred from a list.
        end: End,
    },
}

// === impl Change ===

impl<V: ?Sized> Change<V> {
    /// Returns the object in its current state, or in its last one if it was deleted.
    #[must_use]
    pub fn object(&self) -> &Arc<V> {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// Returns the object as it was before an update.
    #[must_use]
    pub fn before(&self) -> Option<&Arc<V>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            Self::Added { .. } | Self::Deleted { .. } => None,
        }
    }

    /// Whether the object did not change: everything is delivered again.
    #[must_use]
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if Arc::ptr_eq(old, new))
    }

    /// Whether the object is part of the state the subscriber began with.
    #[must_use]
    pub fn is_initial(&self) -> bool {
        matches!(self, Self::Added { initial: true, .. })
    }

    /// Whether nothing happened just now: the object is part of the initial state or of a resync.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.is_initial() || self.is_resync()
    }
}

impl<V: HasMeta + ?Sized> Change<V> {
    /// Returns the object's namespace and name.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        self.object().meta().key()
    }
}

impl<V: View> Change<V> {
    /// Returns the same change for a reader of metadata. No object is copied.
    #[must_use]
    pub fn metadata(&self) -> Change<dyn HasMeta> {
        match self.clone() {
            Self::Added { new, initial } => Change::Added { new, initial },
            Self::Updated { old, new } => Change::Updated { old, new },
            Self::Deleted { last, end } => Change::Deleted { last, end },
        }
    }
}

impl<V: ?Sized> Clone for Change<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { new, initial } => Self::Added { new: Arc::clone(new), initial: *initial },
            Self::Updated { old, new } => Self::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Deleted { last, end } => Self::Deleted { last: Arc::clone(last), end: *end },
        }
    }
}

impl<V: HasMeta + ?Sized> fmt::Debug for Change<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = |object: &Arc<V>| object.meta().resource_version.clone();
        let key = self.key();
        match self {
            Self::Added { new, initial: true } => write!(f, "Added(initial) {key}@{}", version(new)),
            Self::Added { new, initial: false } => write!(f, "Added {key}@{}", version(new)),
            Self::Updated { new, .. } if self.is_resync() => write!(f, "Resync {key}@{}", version(new)),
            Self::Updated { old, new } => write!(f, "Updated {key}@{}->{}", version(old), version(new)),
            Self::Deleted { last, end: End::Observed } => write!(f, "Deleted {key}@{}", version(last)),
            Self::Deleted { last, end: End::Missed } => write!(f, "Deleted(missed) {key}@{}", version(last)),
        }
    }
}
