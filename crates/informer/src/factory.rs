//! The informer factory: one informer for all callers that need the same.
//!
//! Guarantees:
//! 1. **One watch** per (resource, view, selection): every caller gets the same informer.
//! 2. **Declare, then start.** Nothing runs before [`start`](InformerFactory::start); an informer that is declared
//!    later runs after the next `start`.
//! 3. **Metadata is shared**: consumers of metadata use a full watch of the whole resource, if one is declared by the
//!    time of the `start`, and a watch of the metadata alone otherwise.
//! 4. **No informer waits for another**: a resource that is forbidden or removed is retried, is named by
//!    [`synced_within`](InformerFactory::synced_within), and blocks no other.
//! 5. **Complete shutdown**: [`stop`](InformerFactory::stop) returns when no task and no handler runs any more;
//!    dropping the last clone of the factory does the same without waiting.

mod meta;
mod restart;
mod slot;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use kube::core::Resource as Named;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use steersman_base::{Istr, ObjectKey, Resource};
use steersman_model::{Kind, Projection, View};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::meta::MetaInformer;
use self::slot::{AnySlot, Slot};
use crate::consistency::Snapshot;
use crate::informer::{InformerState, SharedInformer};
use crate::metrics::Metrics;
use crate::reachability::Reachability;
use crate::reflector::{ReflectorOptions, ReflectorState};
use crate::store::Ledger;
use crate::target::{Selection, Target};
use crate::typed::{Typed, resource_of};
use crate::wire::{WireError, read_list};

/// Creates informers, starts them together, and lists them. Cheap to clone; clones are the same factory.
#[derive(Clone)]
pub struct InformerFactory(Arc<Shared>);

/// The options of a factory.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct FactoryOptions {
    /// The `name` label of its metrics.
    pub name: String,
    /// The metrics; none by default.
    pub metrics: Option<Metrics>,
    /// The options of its reflectors.
    pub reflector: ReflectorOptions,
    /// The one namespace that its informers see, for accounts without wider rights or needs; all namespaces by default.
    pub namespace: Option<Istr>,
}

/// The state of an informer of a factory, for display.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunningInformer {
    /// The type of its objects.
    pub view: &'static str,
    /// The part of each object that it requests.
    pub projection: Projection,
    /// The state of the informer.
    pub informer: InformerState,
    /// The state of its reflector; `None` if it was not started.
    pub reflector: Option<ReflectorState>,
}

/// The caches that are not filled, and why.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub struct NotSynced {
    /// The informers that are not filled.
    pub missing: Vec<RunningInformer>,
}

struct Shared {
    client: Client,
    options: FactoryOptions,
    declared: Mutex<Declared>,
    stop: CancellationToken,
    reachability: Reachability,
    /// Stops everything when the last clone of the factory is dropped.
    _end: DropGuard,
}

#[derive(Default)]
struct Declared {
    informers: BTreeMap<SlotKey, Arc<dyn AnySlot>>,
    metadata: BTreeMap<Resource, MetaInformer>,
    started: bool,
    /// The number of times that an informer came or went.
    changes: u64,
}

/// The identity of an informer. The name comes before the id, so that the order is the same in every build.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SlotKey {
    target: Target,
    projection: Projection,
    view: &'static str,
    id: TypeId,
}

/// The maximum time a live read may stall.
const READ_PATIENCE: Duration = Duration::from_secs(5);

// === impl InformerFactory ===

impl InformerFactory {
    /// Creates a factory whose informers read through this client.
    ///
    /// # Panics
    /// Outside of a tokio runtime; the client needs one too.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_options(client, FactoryOptions::default())
    }

    /// As [`new`](InformerFactory::new), with options.
    #[must_use]
    pub fn with_options(client: Client, mut options: FactoryOptions) -> Self {
        let stop = CancellationToken::new();
        let end = stop.clone().drop_guard();
        let reachability = Reachability::new(client.clone(), stop.clone());
        options.reflector.reachability.get_or_insert_with(|| reachability.clone());
        Self(Arc::new(Shared { client, options, declared: Mutex::default(), stop, reachability, _end: end }))
    }

    /// Returns the informer of a kind, over all namespaces of the factory.
    #[must_use]
    pub fn informer<V: Kind>(&self) -> SharedInformer<V> {
        self.informer_for(V::RESOURCE, Selection::everything())
    }

    /// Returns the informer of a part of a kind.
    #[must_use]
    pub fn informer_in<V: Kind>(&self, selection: Selection) -> SharedInformer<V> {
        self.informer_for(V::RESOURCE, selection)
    }

    /// Returns the informer of any view of a resource chosen at run time.
    #[must_use]
    pub fn informer_for<V: View>(&self, resource: Resource, selection: Selection) -> SharedInformer<V> {
        let target = self.0.within(Target { resource, selection });
        self.0.slot::<V>(&mut self.0.declared.lock(), target)
    }

    /// Returns the informer of a resource and view, if one is declared, without declaring one.
    #[doc(hidden)]
    #[must_use]
    pub fn existing<V: View>(&self, resource: &Resource, selection: Selection) -> Option<SharedInformer<V>> {
        let key = SlotKey::of::<V>(self.0.within(Target { resource: resource.clone(), selection }));
        let declared = self.0.declared.lock();
        let slot = declared.informers.get(&key)?.as_any().downcast_ref::<Slot<V>>()?;
        Some(slot.informer().clone())
    }

    /// Whether [`start`](InformerFactory::start) was called.
    #[doc(hidden)]
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.0.declared.lock().started
    }

    /// Returns the one namespace of the factory, if it has one.
    #[must_use]
    pub fn namespace(&self) -> Option<&Istr> {
        self.0.options.namespace.as_ref()
    }

    /// Returns the informer of a type of `k8s-openapi`, or of one that derives `kube::CustomResource`.
    #[must_use]
    pub fn typed<K>(&self, selection: Selection) -> SharedInformer<Typed<K>>
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        self.informer_for(resource_of::<K>(), selection)
    }

    /// Returns the metadata of a resource: from a full watch of it, if one is declared by the time of the next
    /// [`start`](InformerFactory::start), else from a watch of its own.
    #[must_use]
    pub fn meta(&self, resource: &Resource) -> MetaInformer {
        let mut declared = self.0.declared.lock();
        let made = || MetaInformer::new(resource.clone(), &self.0.stop);
        declared.metadata.entry(resource.clone()).or_insert_with(made).clone()
    }

    /// Returns the metadata of a resource, if it is declared, without starting a watch.
    #[doc(hidden)]
    #[must_use]
    pub fn declared_meta(&self, resource: &Resource) -> Option<MetaInformer> {
        self.0.declared.lock().metadata.get(resource).cloned()
    }

    /// Starts the informers that are declared and do not run yet.
    pub fn start(&self) {
        let mut declared = self.0.declared.lock();
        declared.started = true;
        self.0.bind_metadata(&mut declared);
        for slot in declared.informers.values() {
            slot.start(&self.0.client, &self.0.options.reflector);
        }
    }

    /// Waits until all started informers are filled.
    ///
    /// # Errors
    /// Nothing was started, or everything was stopped; the error names the informers.
    pub async fn synced(&self) -> Result<(), NotSynced> {
        let slots = self.started_slots();
        if slots.is_empty() && !self.0.declared.lock().started {
            return self.missing();
        }
        tokio::select! {
            biased;
            _ = join_all(slots.iter().map(|slot| slot.synced())) => Ok(()),
            () = self.0.stop.cancelled() => self.missing(),
        }
    }

    /// As [`synced`](InformerFactory::synced), for at most this time.
    ///
    /// # Errors
    /// Also when the time is over; the error names the informers, and why they are not filled.
    pub async fn synced_within(&self, time: Duration) -> Result<(), NotSynced> {
        tokio::time::timeout(time, self.synced()).await.unwrap_or_else(|_| self.missing())
    }

    /// Returns the state of every informer.
    #[must_use]
    pub fn running(&self) -> Vec<RunningInformer> {
        self.0.declared.lock().informers.values().map(|slot| slot.describe()).collect()
    }

    /// Stops the informers of a resource, whatever their selection, and forgets them: for an API that was removed.
    #[doc(hidden)]
    pub async fn retire(&self, resource: &Resource) {
        let slots: Vec<_> = {
            let mut declared = self.0.declared.lock();
            declared.metadata.remove(resource);
            let (gone, kept) = std::mem::take(&mut declared.informers)
                .into_iter()
                .partition(|(key, _): &(SlotKey, _)| key.target.resource == *resource);
            declared.informers = kept;
            declared.changes += 1;
            gone.into_values().collect::<Vec<_>>()
        };
        join_all(slots.iter().map(|slot| slot.stop())).await;
    }

    /// Forgets the metadata of a resource, for an API that was removed: a watch of metadata alone stops, unless it has
    /// other subscribers. A full watch belongs to others, and continues.
    #[doc(hidden)]
    pub async fn retire_meta(&self, resource: &Resource) {
        let own = {
            let mut declared = self.0.declared.lock();
            declared.metadata.remove(resource);
            let key = SlotKey::of::<steersman_base::Meta>(self.0.within(Target::all(resource.clone())));
            let is_unused = |slot: &Arc<dyn AnySlot>| slot.describe().informer.subscribers.is_empty();
            declared.changes += 1;
            if declared.informers.get(&key).is_some_and(is_unused) { declared.informers.remove(&key) } else { None }
        };
        if let Some(slot) = own {
            slot.stop().await;
        }
    }

    /// Stops everything, and waits until nothing runs any more. A stopped factory does not start again.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        let slots: Vec<_> = self.0.declared.lock().informers.values().cloned().collect();
        join_all(slots.iter().map(|slot| slot.stop())).await;
    }

    /// Returns the stores that show every object of a resource, for a consistency book.
    #[doc(hidden)]
    #[must_use]
    pub fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        let everything = self.0.within(Target::all(resource.clone()));
        let declared = self.0.declared.lock();
        let unfiltered = declared.informers.iter().filter(|(key, _)| key.target == everything);
        unfiltered.map(|(_, slot)| slot.ledger()).collect()
    }

    /// Returns a number that changes when an informer is declared or retired.
    #[doc(hidden)]
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.declared.lock().changes
    }

    /// Returns whether the server can be reached.
    #[doc(hidden)]
    #[must_use]
    pub fn reachability(&self) -> &Reachability {
        &self.0.reachability
    }

    /// Reads the object of this name from the server; without a name, all of the namespace; without a namespace, all of
    /// the factory's namespaces. `None` if the server does not serve the resource.
    ///
    /// # Errors
    /// As a list. It is not retried here.
    pub(crate) async fn read_now(&self, resource: &Resource, place: &ObjectKey) -> Result<Option<Snapshot>, WireError> {
        let is_named = |text: &Istr| !text.is_empty();
        let namespace = Some(place.namespace.clone()).filter(is_named);
        let fields = Some(&place.name).filter(|name| is_named(name));
        let fields = fields.map(|name| Istr::from(format!("metadata.name={name}")));
        let selection = Selection { namespace, fields, ..Selection::default() };
        let target = self.0.within(Target { resource: resource.clone(), selection });
        match read_list(&self.0.client, &target, READ_PATIENCE).await {
            Ok((objects, version)) => Ok(Some(Snapshot { objects, version })),
            Err(WireError::Status(status)) if matches!(status.code, 404 | 405) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Restarts the watch of a store that does not show the server's state, unless that was done just now.
    pub(crate) fn restart_stale(&self, resource: &Resource, store: &Arc<dyn Ledger>) {
        let declared = self.0.declared.lock();
        let of_resource = declared.informers.iter().filter(|(key, _)| key.target.resource == *resource);
        for (_, slot) in of_resource {
            if std::ptr::addr_eq(Arc::as_ptr(&slot.ledger()), Arc::as_ptr(store)) {
                slot.restart_stale();
            }
        }
    }

    fn started_slots(&self) -> Vec<Arc<dyn AnySlot>> {
        let declared = self.0.declared.lock();
        declared.informers.values().filter(|slot| slot.is_started()).cloned().collect()
    }

    /// Returns the informers that are not filled, as an error.
    fn missing(&self) -> Result<(), NotSynced> {
        let missing: Vec<_> = self.running().into_iter().filter(|running| !running.informer.synced).collect();
        if missing.is_empty() { Ok(()) } else { Err(NotSynced { missing }) }
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory").field("running", &self.running()).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    fn slot<V: View>(&self, declared: &mut Declared, target: Target) -> SharedInformer<V> {
        let key = SlotKey::of::<V>(target.clone());
        if let Some(slot) = declared.informers.get(&key)
            && let Some(slot) = slot.as_any().downcast_ref::<Slot<V>>()
        {
            return slot.informer().clone();
        }
        let metrics = self.options.metrics.as_ref().map(|all| all.of(&self.options.name, &target.resource));
        let slot = Slot::<V>::new(target, &self.stop, metrics);
        let informer = slot.informer().clone();
        declared.informers.insert(key, Arc::new(slot));
        declared.changes += 1;
        informer
    }

    /// Limits a target to the namespace of the factory.
    fn within(&self, mut target: Target) -> Target {
        if target.resource.scope == steersman_base::Scope::Namespaced && target.selection.namespace.is_none() {
            target.selection.namespace.clone_from(&self.options.namespace);
        }
        target
    }

    /// Binds every consumer of metadata to a full watch, or to a watch of its own.
    fn bind_metadata(&self, declared: &mut Declared) {
        let unbound: Vec<_> = declared.metadata.values().filter(|source| !source.is_bound()).cloned().collect();
        for source in unbound {
            let target = self.within(Target::all(source.resource().clone()));
            let full =
                declared.informers.iter().find(|(key, _)| key.target == target && key.projection == Projection::Whole);
            let bound = match full {
                Some((_, slot)) => slot.meta_source(),
                None => Arc::new(self.slot::<steersman_base::Meta>(declared, target)),
            };
            source.bind(bound);
        }
    }
}

// === impl SlotKey ===

impl SlotKey {
    fn of<V: View>(target: Target) -> Self {
        Self { target, projection: V::PROJECTION, view: std::any::type_name::<V>(), id: TypeId::of::<V>() }
    }
}

// === impl NotSynced ===

impl NotSynced {
    /// Creates an error that names these informers.
    #[doc(hidden)]
    #[must_use]
    pub fn new(missing: Vec<RunningInformer>) -> Self {
        Self { missing }
    }
}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these caches are not filled: ")?;
        for (at, missing) in self.missing.iter().enumerate() {
            let gap = if at == 0 { "" } else { "; " };
            write!(f, "{gap}{}: {missing}", missing.informer.target)?;
        }
        Ok(())
    }
}

// === impl RunningInformer ===

/// Describes the state in one phrase.
impl fmt::Display for RunningInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(reflector) = &self.reflector else { return f.write_str("not started") };
        let doing = format!("{:?}", reflector.phase).to_lowercase();
        match &reflector.problem {
            Some(problem) => write!(f, "{doing}, after {} ({} in a row)", problem.message, problem.failures),
            None => f.write_str(&doing),
        }
    }
}
