//! A consumer of metadata, declared before it is known which watch will serve it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use steersman_base::{Meta, ObjectKey, Resource};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::informer::{PendingSubscription, Subscription};
use crate::meta_source::{MetaHandler, MetaSource};

/// The metadata of one resource. Cheap to clone.
#[derive(Clone)]
pub struct MetaInformer(Arc<Shared>);

struct Shared {
    resource: Resource,
    source: OnceLock<Arc<dyn MetaSource>>,
    /// The subscribers from before there was a source.
    waiting: Mutex<Vec<(MetaHandler, PendingSubscription)>>,
    runtime: Handle,
    stop: CancellationToken,
}

// === impl MetaInformer ===

impl MetaInformer {
    pub(super) fn new(resource: Resource, stop: &CancellationToken) -> Self {
        Self(Arc::new(Shared {
            resource,
            source: OnceLock::new(),
            waiting: Mutex::default(),
            runtime: Handle::current(),
            stop: stop.clone(),
        }))
    }

    /// Returns the resource.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.0.resource
    }

    pub(super) fn is_bound(&self) -> bool {
        self.0.source.get().is_some()
    }

    pub(super) fn bind(&self, source: Arc<dyn MetaSource>) {
        let mut waiting = self.0.waiting.lock();
        let source = self.0.source.get_or_init(|| source);
        for (handler, pending) in waiting.drain(..) {
            self.0.runtime.spawn(pending.follow(source.subscribe_meta(handler)));
        }
    }
}

impl MetaSource for MetaInformer {
    fn subscribe_meta(&self, handler: MetaHandler) -> Subscription {
        let mut waiting = self.0.waiting.lock();
        if let Some(source) = self.0.source.get() {
            return source.subscribe_meta(handler);
        }
        let (subscription, pending) = Subscription::pending(&self.0.stop);
        waiting.push((handler, pending));
        subscription
    }

    fn with_meta(&self, key: &ObjectKey, look: &mut dyn FnMut(&Meta)) {
        if let Some(source) = self.0.source.get() {
            source.with_meta(key, look);
        }
    }

    fn has_synced(&self) -> bool {
        self.0.source.get().is_some_and(MetaSource::has_synced)
    }
}

impl fmt::Debug for MetaInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetaInformer").field("resource", &self.0.resource).finish_non_exhaustive()
    }
}
