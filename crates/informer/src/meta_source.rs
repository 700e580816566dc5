//! Any informer, read as metadata.

use std::sync::Arc;

use steersman_base::{Meta, ObjectKey};
use steersman_model::View;

use crate::delta_fifo::End;
use crate::informer::{Change, SharedInformer, Subscription};

/// Any informer read as metadata: whoever needs only that rides on a full watch where one runs, and gets a
/// `PartialObjectMetadata` watch where none does. See [`InformerFactory::meta`](crate::InformerFactory::meta).
pub trait MetaSource: Send + Sync {
    /// Calls `handler` for every change, in a task of its own; who comes late gets the state first.
    fn subscribe_meta(&self, handler: MetaHandler) -> Subscription;

    /// Looks at the metadata of one object, if it is there.
    fn with_meta(&self, key: &ObjectKey, look: &mut dyn FnMut(&Meta));

    /// Whether the first list is in the store.
    fn has_synced(&self) -> bool;
}

/// What is called for every change.
pub type MetaHandler = Box<dyn Fn(MetaChange<'_>) + Send + Sync>;

/// [`Change`], of which only the metadata is shown.
#[derive(Clone, Copy, Debug)]
pub enum MetaChange<'a> {
    /// This subscriber sees the object for the first time.
    Added {
        /// The object.
        new: &'a Meta,
        /// Whether it is part of the state the subscriber began with.
        initial: bool,
    },
    /// The object is not what this subscriber saw last. Its metadata may be the same.
    Updated {
        /// What this subscriber saw last.
        old: &'a Meta,
        /// What the object is now; of the same uid.
        new: &'a Meta,
    },
    /// The object is gone.
    Deleted {
        /// The last known state.
        last: &'a Meta,
        /// How its end was learnt of.
        end: End,
    },
}

// === impl MetaChange ===

impl<'a, V: View> From<&'a Change<V>> for MetaChange<'a> {
    fn from(change: &'a Change<V>) -> Self {
        match change {
            Change::Added { new, initial } => Self::Added { new: new.meta(), initial: *initial },
            Change::Updated { old, new } => Self::Updated { old: old.meta(), new: new.meta() },
            Change::Deleted { last, end } => Self::Deleted { last: last.meta(), end: *end },
        }
    }
}

// === impl MetaSource ===

impl<V: View> MetaSource for SharedInformer<V> {
    fn subscribe_meta(&self, handler: MetaHandler) -> Subscription {
        self.subscribe(move |change| handler(change.into()))
    }

    fn with_meta(&self, key: &ObjectKey, look: &mut dyn FnMut(&Meta)) {
        if let Some(object) = self.store().get(key) {
            look(object.meta());
        }
    }

    fn has_synced(&self) -> bool {
        SharedInformer::has_synced(self)
    }
}

impl<T: MetaSource + ?Sized> MetaSource for Arc<T> {
    fn subscribe_meta(&self, handler: MetaHandler) -> Subscription {
        (**self).subscribe_meta(handler)
    }

    fn with_meta(&self, key: &ObjectKey, look: &mut dyn FnMut(&Meta)) {
        (**self).with_meta(key, look);
    }

    fn has_synced(&self) -> bool {
        (**self).has_synced()
    }
}
