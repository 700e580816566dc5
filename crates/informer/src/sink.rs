//! The interface between the reflector, which reads from the server, and the delta FIFO, which feeds the store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use steersman_base::{ObjectKey, ResourceVersion};
use steersman_model::View;
use tokio::time::Instant;

use crate::delta_fifo::ListInfo;
use crate::informer::SharedInformer;
use crate::wire::Peeked;

/// The receiver of what a reflector reads. Calls come from one task, in order.
pub trait Sink<V: View>: Send {
    /// Returns the newest known state of an object: a relisted object of the same uid and resourceVersion keeps this
    /// allocation.
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>>;

    /// Called right before a list is requested, so that its answer shows everything that was written before this call.
    /// A list that is older than such a write comes from a server that was restored.
    fn listing(&mut self) {}

    /// Takes the whole state at `version`, after a list or a relist. It is applied as one batch.
    fn replace(&mut self, objects: Vec<Arc<V>>, version: ResourceVersion);

    /// Takes one watch event and decides whether it is stale. If it is not, the store has then reached its
    /// resourceVersion.
    fn apply(&mut self, event: WatchEvent<V>) -> Verdict;

    /// Takes a bookmark: nothing else happened up to this version.
    fn reached(&mut self, version: ResourceVersion);
}

/// A watch event, decoded.
#[derive(Debug)]
pub enum WatchEvent<V> {
    /// The object is new to this watch.
    Added(Arc<V>),
    /// The object changed.
    Modified(Arc<V>),
    /// The object was deleted; this is its last state, with the resourceVersion of the deletion.
    Deleted(Arc<V>),
    /// The object cannot be decoded. What is known of it stays, unless it was deleted or another object has its name.
    Unreadable {
        /// The identity of the object, which can be read.
        object: Peeked,
        /// Whether the event is a deletion.
        deleted: bool,
    },
}

/// The meaning of a watch event, given what was known before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The event changes what is known.
    News,
    /// The event is current, and changes nothing that is known.
    NoNews,
    /// The event is older than what is known, or the same again.
    Stale,
}

/// The reflector's end of an informer.
#[derive(Debug)]
pub struct InformerSink<V> {
    informer: SharedInformer<V>,
    /// The time at which the list being read was requested.
    list_begun: Option<Instant>,
}

// === impl WatchEvent ===

impl<V: View> WatchEvent<V> {
    /// Returns the decoded object.
    #[must_use]
    pub fn object(&self) -> Option<&Arc<V>> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Unreadable { .. } => None,
        }
    }

    /// Returns the identity of the object and the version of the event.
    #[must_use]
    pub fn identity(&self) -> Peeked {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => {
                let meta = object.meta();
                Peeked { key: meta.key(), uid: meta.uid.clone(), resource_version: meta.resource_version.clone() }
            }
            Self::Unreadable { object, .. } => object.clone(),
        }
    }
}

// === impl InformerSink ===

impl<V: View> InformerSink<V> {
    pub(crate) fn new(informer: SharedInformer<V>) -> Self {
        Self { informer, list_begun: None }
    }

    /// Applies the transform to a new object. An object that is shared is in the store already, and was transformed.
    fn transform(&self, object: &mut Arc<V>) {
        let Some(transform) = self.informer.transform_function() else { return };
        let Some(fresh) = Arc::get_mut(object) else { return };
        if catch_unwind(AssertUnwindSafe(|| transform(fresh))).is_err() {
            tracing::error!(object = %fresh.meta().key(), "a transform panicked; the object is stored as it is");
        }
    }
}

impl<V: View> Sink<V> for InformerSink<V> {
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.informer.fifo().newest(key, &**self.informer.store())
    }

    fn listing(&mut self) {
        self.list_begun = Some(Instant::now());
    }

    fn replace(&mut self, mut objects: Vec<Arc<V>>, version: ResourceVersion) {
        if self.informer.transform_function().is_some() {
            objects.iter_mut().for_each(|object| self.transform(object));
        }
        let list = ListInfo { version, begun: self.list_begun.take() };
        self.informer.fifo().replace(objects, list, &**self.informer.store());
        self.informer.count_queued();
    }

    fn apply(&mut self, mut event: WatchEvent<V>) -> Verdict {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) = &mut event {
            self.transform(object);
        }
        let verdict = self.informer.fifo().apply(event, &**self.informer.store());
        self.informer.count_queued();
        verdict
    }

    fn reached(&mut self, version: ResourceVersion) {
        self.informer.fifo().advance(version);
    }
}
