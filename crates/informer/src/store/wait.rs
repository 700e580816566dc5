//! Waiting for a store: for a version, or for the deletion of an object.

use std::sync::{Arc, Weak};

use steersman_base::{Meta, ObjectKey, ResourceVersion, Uid};
use steersman_model::View;
use tokio::time::Instant;

use super::Store;
use crate::delta_fifo::ListInfo;

/// The end of a wait for a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Waited {
    /// The store shows it (or the versions cannot be compared, which does not block).
    Reached,
    /// A list went back to an older version: the server was restored, and the version may never come.
    Restored,
}

/// The progress of a store with one batch.
#[derive(Debug)]
pub struct Advance<'a> {
    /// The version it shows; `None` if it has not seen a list yet.
    pub reached: Option<&'a ResourceVersion>,
    /// The list that was in the batch, if any.
    pub list: Option<&'a ListInfo>,
    /// Whether that list went back to an older version: the server was restored.
    pub went_back: bool,
    /// Uids that the batch shows as deleted or terminating; `None` if they were not collected.
    pub ended: Option<&'a [Uid]>,
}

/// A subscriber to every batch, after readers can see it.
pub trait Watcher: Send + Sync {
    /// Called when the store has applied a batch, from the informer's task: it must be quick.
    fn advanced(&self, advance: &Advance<'_>);
}

/// An object in one of its versions, as a store or a server has shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The key.
    pub key: ObjectKey,
    /// The uid.
    pub uid: Uid,
    /// The version.
    pub version: ResourceVersion,
}

/// The interface of a store for a consistency book, whatever its view.
pub trait Ledger: Send + Sync {
    /// Returns the version the store shows; `None` before the first list.
    fn reached(&self) -> Option<ResourceVersion>;
    /// Whether the store shows this object with this uid, terminating or not.
    fn shows(&self, key: &ObjectKey, uid: &Uid) -> bool;
    /// Whether the store shows this object with this uid, and not terminating.
    fn shows_alive(&self, key: &ObjectKey, uid: &Uid) -> bool;
    /// Returns the objects that the store shows: the one with this key; without a name, those of the namespace;
    /// without a namespace, all.
    fn shown_in(&self, place: &ObjectKey) -> Vec<Shown>;
    /// Subscribes a watcher to every batch, for as long as it lives.
    fn watch(&self, watcher: Weak<dyn Watcher>);
}

// === impl Store ===

impl<V: View> Store<V> {
    /// Returns the time at which the last list was requested: the store shows at least the server's state of then.
    #[must_use]
    pub fn listed_since(&self) -> Option<Instant> {
        self.inner.read().listed_since
    }

    /// Waits until the store shows at least this version.
    pub async fn reached_at_least(&self, version: &ResourceVersion) -> Waited {
        let mut batches = self.batches.subscribe();
        let restored_before = self.inner.read().restored;
        loop {
            batches.mark_unchanged();
            {
                let inner = self.inner.read();
                if inner.reached.as_ref().is_some_and(|reached| reached.has_reached(version)) {
                    return Waited::Reached;
                }
                if inner.restored != restored_before {
                    return Waited::Restored;
                }
            }
            if batches.changed().await.is_err() {
                return Waited::Reached;
            }
        }
    }

    /// Waits until `look` returns something: it is called now, and after every batch. It must be quick.
    pub async fn until<T>(&self, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let mut batches = self.batches.subscribe();
        loop {
            batches.mark_unchanged();
            if let Some(found) = look(self) {
                return found;
            }
            // The sender lives as long as `self`, so an error cannot come.
            let _ = batches.changed().await;
        }
    }

    /// Waits until the store shows this object as deleted or terminating.
    pub async fn gone_or_terminating(&self, key: &ObjectKey, uid: &Uid) {
        let mut batches = self.batches.subscribe();
        loop {
            batches.mark_unchanged();
            let has_list = self.inner.read().reached.is_some();
            if has_list && !self.shows_alive(key, uid) {
                return;
            }
            if batches.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether there are watchers.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.lock().is_empty()
    }

    /// Notifies the watchers of a batch. Called without a lock, after readers can see it.
    pub(crate) fn announce(&self, list: Option<&ListInfo>, went_back: bool, ended: Option<&[Uid]>) {
        let watchers: Vec<Arc<dyn Watcher>> = {
            let mut watchers = self.watchers.lock();
            if watchers.is_empty() {
                return;
            }
            watchers.retain(|watcher| watcher.strong_count() > 0);
            watchers.iter().filter_map(Weak::upgrade).collect()
        };
        let reached = Store::reached(self);
        let advance = Advance { reached: reached.as_ref(), list, went_back, ended };
        watchers.iter().for_each(|watcher| watcher.advanced(&advance));
    }
}

impl From<&Meta> for Shown {
    fn from(object: &Meta) -> Self {
        Self { key: object.key(), uid: object.uid.clone(), version: object.resource_version.clone() }
    }
}

impl<V: View> Ledger for Store<V> {
    fn reached(&self) -> Option<ResourceVersion> {
        Store::reached(self)
    }

    fn shows(&self, key: &ObjectKey, uid: &Uid) -> bool {
        self.get(key).is_some_and(|held| held.meta().uid == *uid)
    }

    fn shows_alive(&self, key: &ObjectKey, uid: &Uid) -> bool {
        self.get(key).is_some_and(|held| held.meta().uid == *uid && !held.meta().is_terminating())
    }

    fn shown_in(&self, place: &ObjectKey) -> Vec<Shown> {
        let shown = |object: &Arc<V>| Shown::from(object.meta());
        if !place.name.is_empty() {
            return self.get(place).iter().map(shown).collect();
        }
        let is_meant = |object: &&Arc<V>| place.namespace.is_empty() || object.meta().namespace == place.namespace;
        self.snapshot().iter().filter(is_meant).map(shown).collect()
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watchers.lock().push(watcher);
    }
}
