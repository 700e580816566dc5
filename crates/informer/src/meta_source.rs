//! Any informer, read as metadata.

use std::sync::Arc;

use steersman_base::{Meta, ObjectKey};
use steersman_model::{HasMeta, View};

use crate::change::Change;
use crate::informer::{SharedInformer, SubscribeOptions, Subscription};

/// An informer that is read for metadata only. It shares the watch of a full view where there is one, and is a
/// `PartialObjectMetadata` watch where there is none. See [`InformerFactory::meta`](crate::InformerFactory::meta).
pub trait MetaSource: Send + Sync {
    /// Calls `handler` for every change; it must be [quick](SubscribeOptions::quick). A late subscriber gets the current state first.
    fn subscribe_meta(&self, handler: MetaHandler) -> Subscription;

    /// Calls `look` with the metadata of an object, if it is in the store.
    fn with_meta(&self, key: &ObjectKey, look: &mut dyn FnMut(&Meta));

    /// Whether the first list is in the store.
    fn has_synced(&self) -> bool;
}

/// The function that a subscriber of metadata has called for every change.
pub type MetaHandler = Box<dyn Fn(&Change<dyn HasMeta>) + Send + Sync>;

// === impl MetaSource ===

impl<V: View> MetaSource for SharedInformer<V> {
    fn subscribe_meta(&self, handler: MetaHandler) -> Subscription {
        let options = SubscribeOptions { quick: true, ..SubscribeOptions::default() };
        self.subscribe_with(options, move |change| handler(&change.metadata()))
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
