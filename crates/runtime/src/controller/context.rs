//! The context of building controllers.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use steersman_base::{Clock, Meta, Resource};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::{InformerFactory, SharedInformer, Target};
use steersman_model::{Kind, View};
use tokio_util::sync::CancellationToken;

use super::Builder;
use crate::decisions::Log;
use crate::events::Recorder;
use crate::manager::{Manager, Runnable};
use crate::metrics::Families;
use crate::{Writer, lease::Leadership};

/// The shared parts that controllers are built with. Cheap to clone.
#[derive(Clone)]
pub struct BuildContext {
    /// The client for live reads.
    pub client: kube::Client,
    /// The factory that informers are declared with.
    pub informers: InformerFactory,
    /// The only way to write.
    pub writer: Writer,
    /// The writes that the caches do not show yet.
    pub book: Book,
    /// The clock.
    pub clock: Clock,
    /// The recorder of Kubernetes events.
    pub events: Recorder,
    /// The decision log.
    pub decisions: Log,
    pub(crate) manager: Manager,
    pub(crate) options: TypeMap,
}

/// Values by their type. Cheap to clone; clones are the same map.
#[derive(Clone, Default)]
pub(crate) struct TypeMap(Arc<RwLock<HashMap<TypeId, Box<dyn Any + Send + Sync>>>>);

// === impl BuildContext ===

impl BuildContext {
    /// Starts building a controller of objects of kind `V`: each change of such an object enqueues its key.
    pub fn controller<V: Kind>(&self, name: &'static str) -> Builder<V> {
        self.controller_on(name, &self.informers.informer::<V>())
    }

    /// Starts building a controller of the objects of an informer: of a kind chosen at run time, of metadata only, of a
    /// part of a kind.
    pub fn controller_on<V: View>(&self, name: &'static str, main: &SharedInformer<V>) -> Builder<V> {
        Builder::new(self.clone(), name, main)
    }

    /// Starts building a controller without a main kind: only its sources and its reconciler know what its keys mean.
    /// Its keys never wait for caches; it writes [unowned](crate::Writer::unowned), and reads from the server what it
    /// must be sure of.
    pub fn controller_of_keys(&self, name: &'static str) -> Builder<Meta> {
        const NO_KIND: Resource = Resource::cluster("", "", "", "");
        // Outside of the factory: it is always empty.
        let nothing = SharedInformer::new(Target::all(NO_KIND), CancellationToken::new());
        self.controller_on(name, &nothing).without_main_watch()
    }

    /// Adds a runnable to the manager.
    pub fn add(&self, runnable: impl Runnable) {
        self.manager.add(runnable);
    }

    /// Returns the metrics of this manager, which controllers share.
    #[must_use]
    pub fn metrics(&self) -> &Families {
        self.manager.families()
    }

    /// Returns the manager.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Returns the leadership of this process.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.manager.leadership()
    }

    /// Returns the options that were set with [`Manager::set_options`], or the default.
    #[must_use]
    pub fn options<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        self.options.get().unwrap_or_default()
    }

    /// Returns the same context for another account: live reads and writes go through `client`.
    #[must_use]
    pub fn with_client(mut self, client: kube::Client) -> Self {
        self.writer = self.writer.through(client.clone());
        self.client = client;
        self
    }
}

impl std::fmt::Debug for BuildContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuildContext").finish_non_exhaustive()
    }
}

// === impl TypeMap ===

impl TypeMap {
    pub(crate) fn set<T: Send + Sync + 'static>(&self, value: T) {
        self.0.write().insert(TypeId::of::<T>(), Box::new(value));
    }

    pub(crate) fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.0.read().get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }
}
