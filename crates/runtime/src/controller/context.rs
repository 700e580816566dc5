//! What controllers are built with.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use steersman_base::{Clock, Meta, Resource};
use steersman_informer::consistency::Book;
use steersman_informer::{InformerFactory, SharedInformer, Target};
use steersman_model::{Kind, View};
use tokio_util::sync::CancellationToken;

use super::Builder;
use crate::decisions::Log;
use crate::events::Recorder;
use crate::manager::{Manager, Runnable};
use crate::metrics::Families;
use crate::{Writer, lease::Leadership};

/// What controllers are built with. Cheap to clone.
#[derive(Clone)]
pub struct BuildContext {
    /// For live reads.
    pub client: kube::Client,
    /// Where informers are declared.
    pub informers: InformerFactory,
    /// The only way to write.
    pub writer: Writer,
    /// What was written and is not seen yet.
    pub book: Book,
    /// The only way to know the time.
    pub clock: Clock,
    /// Tells people what happened, as Kubernetes events.
    pub events: Recorder,
    /// What was decided, and why.
    pub decisions: Log,
    pub(crate) manager: Manager,
    pub(crate) options: TypeMap,
}

/// Values by their type. Cheap to clone; clones are the same map.
#[derive(Clone, Default)]
pub(crate) struct TypeMap(Arc<RwLock<HashMap<TypeId, Box<dyn Any + Send + Sync>>>>);

// === impl BuildContext ===

impl BuildContext {
    /// Begins a controller of objects of kind `V`: each change of such an object puts its key into the queue.
    pub fn controller<V: Kind>(&self, name: &'static str) -> Builder<V> {
        self.controller_on(name, &self.informers.informer::<V>())
    }

    /// Begins a controller of the objects that an informer sees: of a kind that is told at run time, of metadata alone,
    /// of a part of a kind.
    pub fn controller_on<V: View>(&self, name: &'static str, main: &SharedInformer<V>) -> Builder<V> {
        Builder::new(self.clone(), name, main)
    }

    /// Begins a controller without a main kind: what its keys mean, is between its sources and its reconciler. Nobody waits
    /// until caches show what it wrote; it writes [unowned](crate::Writer::unowned), and reads from the server what it
    /// must be sure of.
    pub fn controller_of_keys(&self, name: &'static str) -> Builder<Meta> {
        const NO_KIND: Resource = Resource::cluster("", "", "", "");
        // Outside of the factory: nothing is ever in it.
        let nothing = SharedInformer::new(Target::all(NO_KIND), CancellationToken::new());
        self.controller_on(name, &nothing).without_main_watch()
    }

    /// Adds something else that is to run.
    pub fn add(&self, runnable: impl Runnable) {
        self.manager.add(runnable);
    }

    /// The metrics of this manager, which controllers may share.
    #[must_use]
    pub fn metrics(&self) -> &Families {
        self.manager.families()
    }

    /// The manager that is built for.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Whether this process may write.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.manager.leadership()
    }

    /// What was set for controllers with [`Manager::set_options`], such as by flags; else the default.
    #[must_use]
    pub fn options<T: Clone + Default + Send + Sync + 'static>(&self) -> T {
        self.options.get().unwrap_or_default()
    }

    /// The same context for another account: its reads go round the cache with `client`, and its writes through it.
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
