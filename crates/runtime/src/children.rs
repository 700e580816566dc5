//! The objects that an owner controls, and orphans.
//!
//! 1. They are found by an index, never by a walk through the namespace. All controllers share the index.
//! 2. In a pass whose caches lag behind the controller's writes, they are read from the server instead: the reconciler
//!    does not choose, and so cannot forget it.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use steersman_base::{Istr, Meta, Uid};
use steersman_informer::WireError;
use steersman_informer::{Index, Selection, SharedInformer};
use steersman_model::{Kind, View};

use crate::Context;
use crate::reconcile::Freshness;

/// Objects of kind `V` by their controller. Cheap to clone.
pub struct Children<V> {
    by_controller: Index<ControllerKey, V>,
}

/// The key of an object in the index: its controller, or the namespace that it is an orphan in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum ControllerKey {
    Controller(Uid),
    OrphanIn(Istr),
}

// === impl Children ===

impl<V: Kind> Children<V> {
    /// Indexes the objects of an informer by their controller.
    #[must_use]
    pub fn new(informer: &SharedInformer<V>) -> Self {
        Self { by_controller: informer.shared_index(key::<V>) }
    }

    /// Returns the objects that `owner` controls, and the orphans in its namespace, which it may adopt.
    ///
    /// # Errors
    /// See [`WireError`]; only in a pass that reads from the server.
    pub async fn own_and_orphaned(&self, cx: &Context, owner: &Meta) -> Result<Vec<Arc<V>>, WireError> {
        if cx.freshness == Freshness::CaughtUp {
            let mut objects = self.cached(owner);
            objects.extend(self.by_controller.get(&ControllerKey::OrphanIn(owner.namespace.clone())));
            return Ok(objects);
        }
        let mut objects: Vec<Arc<V>> = cx.live.list(Selection::namespace(&owner.namespace)).await?;
        objects.retain(|object| object.meta().controller().is_none_or(|controller| controller.uid == owner.uid));
        Ok(objects)
    }

    /// Returns the objects in a namespace that one of `owners` controls.
    ///
    /// # Errors
    /// See [`WireError`]; only in a pass that reads from the server.
    pub async fn of_any(&self, cx: &Context, namespace: &str, owners: &[&Meta]) -> Result<Vec<Arc<V>>, WireError> {
        if cx.freshness == Freshness::CaughtUp {
            return Ok(owners.iter().flat_map(|owner| self.cached(owner)).collect());
        }
        let mut objects: Vec<Arc<V>> = cx.live.list(Selection::namespace(namespace)).await?;
        objects.retain(|object| owners.iter().any(|owner| object.meta().is_controlled_by(owner)));
        Ok(objects)
    }

    /// Returns the objects that `owner` controls according to the cache, however stale: for hints, never for counting.
    #[must_use]
    pub fn cached(&self, owner: &Meta) -> Vec<Arc<V>> {
        self.cached_by_uid(&owner.uid)
    }

    /// As [`cached`](Self::cached), by the owner's uid.
    #[must_use]
    pub fn cached_by_uid(&self, owner: &Uid) -> Vec<Arc<V>> {
        self.by_controller.get(&ControllerKey::Controller(owner.clone()))
    }
}

/// The index function: all controllers share the index.
fn key<V: View>(object: &V) -> [ControllerKey; 1] {
    let meta = object.meta();
    [match meta.controller() {
        Some(owner) => ControllerKey::Controller(owner.uid.clone()),
        None => ControllerKey::OrphanIn(meta.namespace.clone()),
    }]
}

impl<V> Clone for Children<V> {
    fn clone(&self) -> Self {
        Self { by_controller: self.by_controller.clone() }
    }
}

impl<V> std::fmt::Debug for Children<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Children").finish_non_exhaustive()
    }
}
