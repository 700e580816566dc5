//! The seam between the reflector, which speaks to the server, and the delta FIFO, which feeds the store.

use std::sync::Arc;

use steersman_base::{ObjectKey, ResourceVersion};
use steersman_model::View;

/// Where a reflector puts what it reads. Calls come from one task, in order.
pub trait Sink<V: View>: Send {
    /// What is known of an object now: a relisted object of the same uid and resourceVersion keeps this allocation.
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>>;

    /// A list is about to be asked for, so its answer will show everything that was written before this call. What
    /// comes back older than such a write comes from a server that was restored.
    fn listing(&mut self) {}

    /// The whole state at `version`, after a list or a relist. Applied as one batch.
    fn replace(&mut self, objects: Vec<Arc<V>>, version: ResourceVersion);

    /// One watch event. The store then has reached the object's resourceVersion.
    fn apply(&mut self, event: WatchEvent<V>);

    /// A bookmark: nothing else happened up to this version.
    fn reached(&mut self, version: ResourceVersion);
}

/// What a watch says about an object.
#[derive(Debug)]
pub enum WatchEvent<V> {
    /// The object is new to this watch.
    Added(Arc<V>),
    /// The object changed.
    Modified(Arc<V>),
    /// The object is gone; this is its last state, with the resourceVersion of the deletion. If that state cannot be read,
    /// it is the one known before; how far the store has come is then told by [`Sink::reached`].
    Deleted(Arc<V>),
}
