//! Waiting for a store: for a version it is to reach, for an object it is to show as gone.

use std::sync::{Arc, Weak};

use steersman_base::{ObjectKey, ResourceVersion, Uid};
use steersman_model::View;
use tokio::time::Instant;

use super::Store;
use crate::delta_fifo::ListInfo;

/// How a wait for a version ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Waited {
    /// The store shows it (or nobody can tell, and who cannot tell does not wait).
    Reached,
    /// A list went back to an older version: the server was restored, and the version may never come.
    Restored,
}

/// How far a store got with one batch.
#[derive(Debug)]
pub struct Advance<'a> {
    /// The version it shows; `None` if it has not seen a list yet.
    pub reached: Option<&'a ResourceVersion>,
    /// The list that was in the batch, if any.
    pub list: Option<&'a ListInfo>,
    /// Whether that list went back to an older version: the server was restored.
    pub went_back: bool,
    /// Uids that the batch shows to be gone or terminating; `None` if nobody kept count.
    pub ended: Option<&'a [Uid]>,
}

/// Who wants to hear of every batch, after readers can see it.
pub trait Watcher: Send + Sync {
    /// The store has applied a batch. Called from the informer's task: be quick.
    fn advanced(&self, advance: &Advance<'_>);
}

/// An object that a store shows, and that was not asked to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive {
    /// Which object.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: Uid,
    /// Its version.
    pub version: ResourceVersion,
}

/// What a consistency book asks of a store, whatever its view.
pub trait Ledger: Send + Sync {
    /// The version the store shows; `None` before the first list.
    fn reached(&self) -> Option<ResourceVersion>;
    /// Whether the store shows this object alive: there, with this uid, and not terminating.
    fn shows_alive(&self, key: &ObjectKey, uid: &Uid) -> bool;
    /// The objects that the store shows alive: the one with this key; without a name, those of the namespace; without a
    /// namespace, all.
    fn alive_in(&self, place: &ObjectKey) -> Vec<Alive>;
    /// Has every batch reported from now on, for as long as the watcher lives.
    fn watch(&self, watcher: Weak<dyn Watcher>);
}

// === impl Store ===

impl<V: View> Store<V> {
    /// When the last list that it shows was begun: it shows at least what the server had then.
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

    /// Waits until `look` finds something: it looks now, and again after every batch. `look` must be quick.
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

    /// Waits until the store shows this object gone or terminating.
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

    /// Whether somebody wants to hear of batches.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.lock().is_empty()
    }

    /// Tells the watchers of a batch. Called without a lock, after readers can see it.
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

impl<V: View> Ledger for Store<V> {
    fn reached(&self) -> Option<ResourceVersion> {
        Store::reached(self)
    }

    fn shows_alive(&self, key: &ObjectKey, uid: &Uid) -> bool {
        self.get(key).is_some_and(|held| held.meta().uid == *uid && !held.meta().is_terminating())
    }

    fn alive_in(&self, place: &ObjectKey) -> Vec<Alive> {
        let alive = |object: &V| {
            let meta = object.meta();
            let (key, uid, version) = (meta.key(), meta.uid.clone(), meta.resource_version.clone());
            (!meta.is_terminating()).then_some(Alive { key, uid, version })
        };
        if !place.name.is_empty() {
            return self.get(place).and_then(|held| alive(&held)).into_iter().collect();
        }
        let is_meant = |object: &&Arc<V>| place.namespace.is_empty() || object.meta().namespace == place.namespace;
        self.snapshot().iter().filter(is_meant).filter_map(|held| alive(held)).collect()
    }

    fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watchers.lock().push(watcher);
    }
}
