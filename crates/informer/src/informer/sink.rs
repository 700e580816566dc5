//! Where a reflector puts what it reads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use steersman_base::{ObjectKey, ResourceVersion};
use steersman_model::View;
use tokio::time::Instant;

use super::SharedInformer;
use crate::delta_fifo::ListInfo;
use crate::sink::{Sink, WatchEvent};

/// The reflector's end of an informer.
#[derive(Debug)]
pub struct InformerSink<V> {
    informer: SharedInformer<V>,
    /// When the list being read was asked for.
    list_begun: Option<Instant>,
}

// === impl InformerSink ===

impl<V: View> InformerSink<V> {
    pub(super) fn new(informer: SharedInformer<V>) -> Self {
        Self { informer, list_begun: None }
    }

    /// Applies the transform to what is new. What others hold too is in the store already, and was transformed.
    fn transform(&self, object: &mut Arc<V>) {
        let Some(transform) = self.informer.0.transform.get() else { return };
        let Some(fresh) = Arc::get_mut(object) else { return };
        if catch_unwind(AssertUnwindSafe(|| transform(fresh))).is_err() {
            tracing::error!(object = %fresh.meta().key(), "a transform panicked; the object is stored as it is");
        }
    }

    fn count(&self) {
        if let Some(metrics) = &self.informer.0.metrics {
            metrics.set_queued(self.informer.0.fifo.len());
        }
    }
}

impl<V: View> Sink<V> for InformerSink<V> {
    fn known(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.informer.0.fifo.newest(key, &*self.informer.0.store)
    }

    fn listing(&mut self) {
        self.list_begun = Some(Instant::now());
    }

    fn replace(&mut self, mut objects: Vec<Arc<V>>, version: ResourceVersion) {
        if self.informer.0.transform.get().is_some() {
            objects.iter_mut().for_each(|object| self.transform(object));
        }
        let list = ListInfo { version, begun: self.list_begun.take() };
        self.informer.0.fifo.replace(objects, list, &*self.informer.0.store);
        self.count();
    }

    fn apply(&mut self, mut event: WatchEvent<V>) {
        let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = &mut event;
        self.transform(object);
        self.informer.0.fifo.apply(event, &*self.informer.0.store);
        self.count();
    }

    fn reached(&mut self, version: ResourceVersion) {
        self.informer.0.fifo.advance(version);
    }
}
