//! One informer for everybody who needs the same.
//!
//! Guarantees:
//! 1. **One watch** per (resource, view, scope): every caller gets the same informer.
//! 2. **Declare, then start.** Nothing runs before [`start`](InformerFactory::start); what is declared later runs after
//!    the next `start`.
//! 3. **Metadata rides along**: who needs only metadata shares a full watch of the whole resource, where one is declared
//!    by the time of the `start`, and gets a watch of the metadata alone where none is.
//! 4. **No informer waits for another**: a resource that is forbidden or gone is tried again and again, is named by
//!    [`synced_within`](InformerFactory::synced_within), and stalls nobody else.
//! 5. **It ends what it began**: [`stop`](InformerFactory::stop) returns when no task and no handler runs any more; so
//!    does, without waiting, dropping the last clone of the factory.

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
use crate::target::{Scope, Target};
use crate::typed::{Typed, resource_of};
use crate::wire::{WireError, read_list};

/// Makes informers, starts them together, and knows them all. Cheap to clone; clones are the same factory.
#[derive(Clone)]
pub struct InformerFactory(Arc<Shared>);

/// How a factory works.
#[derive(Clone, Default)]
pub struct FactoryOptions {
    /// The `name` label of its metrics.
    pub name: String,
    /// Where it counts; nowhere by default.
    pub metrics: Option<Metrics>,
    /// How its reflectors work.
    pub reflector: ReflectorOptions,
    /// The one namespace it looks into: an informer of "everything" then sees all there is in it. For who may not, or
    /// need not, look further.
    pub namespace: Option<Istr>,
}

/// What an informer of a factory is doing, for people.
#[derive(Clone, Debug)]
pub struct RunningInformer {
    /// The type of its objects.
    pub view: &'static str,
    /// How much of each object it asks for.
    pub projection: Projection,
    /// What the informer is doing.
    pub informer: InformerState,
    /// What its reflector is doing; `None` if it was not started.
    pub reflector: Option<ReflectorState>,
}

/// Caches that are not filled, and why.
#[derive(Clone, Debug, thiserror::Error)]
pub struct NotSynced {
    /// Each of them.
    pub missing: Vec<RunningInformer>,
}

struct Shared {
    client: Client,
    options: FactoryOptions,
    declared: Mutex<Declared>,
    stop: CancellationToken,
    reachability: Reachability,
    /// Ends everything when the last clone of the factory goes.
    _end: DropGuard,
}

#[derive(Default)]
struct Declared {
    informers: BTreeMap<SlotKey, Arc<dyn AnySlot>>,
    metadata: BTreeMap<Resource, MetaInformer>,
    started: bool,
}

/// What makes two informers one. The name comes before the id, so that the order is the same in every build.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SlotKey {
    target: Target,
    projection: Projection,
    view: &'static str,
    id: TypeId,
}

/// How long a read of what the server has now may stand still.
const READ_PATIENCE: Duration = Duration::from_secs(5);

// === impl InformerFactory ===

impl InformerFactory {
    /// A factory whose informers read through this client.
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

    /// The informer of a kind, over all namespaces that the factory looks into.
    #[must_use]
    pub fn informer<V: Kind>(&self) -> SharedInformer<V> {
        self.informer_for(V::RESOURCE, Scope::everything())
    }

    /// The informer of a part of a kind.
    #[must_use]
    pub fn informer_in<V: Kind>(&self, scope: Scope) -> SharedInformer<V> {
        self.informer_for(V::RESOURCE, scope)
    }

    /// The informer of a resource that is told at run time, read as any view.
    #[must_use]
    pub fn informer_for<V: View>(&self, resource: Resource, scope: Scope) -> SharedInformer<V> {
        let target = self.0.within(Target { resource, scope });
        self.0.slot::<V>(&mut self.0.declared.lock(), target)
    }

    /// The informer of a resource and view, if somebody declared one: for who may not declare.
    #[must_use]
    pub fn existing<V: View>(&self, resource: &Resource, scope: Scope) -> Option<SharedInformer<V>> {
        let key = SlotKey::of::<V>(self.0.within(Target { resource: resource.clone(), scope }));
        let declared = self.0.declared.lock();
        let slot = declared.informers.get(&key)?.as_any().downcast_ref::<Slot<V>>()?;
        Some(slot.informer().clone())
    }

    /// Whether [`start`](InformerFactory::start) was called.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.0.declared.lock().started
    }

    /// The one namespace that it looks into, if it is one.
    #[must_use]
    pub fn namespace(&self) -> Option<&Istr> {
        self.0.options.namespace.as_ref()
    }

    /// The informer of a type of `k8s-openapi`, or one that derives `kube::CustomResource`.
    #[must_use]
    pub fn typed<K>(&self, scope: Scope) -> SharedInformer<Typed<K>>
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        self.informer_for(resource_of::<K>(), scope)
    }

    /// The metadata of a resource: read off a full watch of it, where one is declared by the time of the next
    /// [`start`](InformerFactory::start), else off a watch of its own.
    #[must_use]
    pub fn meta(&self, resource: &Resource) -> MetaInformer {
        let mut declared = self.0.declared.lock();
        let made = || MetaInformer::new(resource.clone(), &self.0.stop);
        declared.metadata.entry(resource.clone()).or_insert_with(made).clone()
    }

    /// The metadata of a resource, if somebody needs it already: who only looks must not begin a watch.
    #[must_use]
    pub fn declared_meta(&self, resource: &Resource) -> Option<MetaInformer> {
        self.0.declared.lock().metadata.get(resource).cloned()
    }

    /// Starts what is declared and does not run yet.
    pub fn start(&self) {
        let mut declared = self.0.declared.lock();
        declared.started = true;
        self.0.bind_metadata(&mut declared);
        for slot in declared.informers.values() {
            slot.start(&self.0.client, &self.0.options.reflector);
        }
    }

    /// Waits until all informers that were started are filled.
    ///
    /// # Errors
    /// Nothing was started, or everything was stopped; the error names what is missing.
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

    /// As [`synced`](InformerFactory::synced), for so long at most.
    ///
    /// # Errors
    /// Also when the time is over; the error names what is missing, and why.
    pub async fn synced_within(&self, time: Duration) -> Result<(), NotSynced> {
        tokio::time::timeout(time, self.synced()).await.unwrap_or_else(|_| self.missing())
    }

    /// Every informer, and what it is doing.
    #[must_use]
    pub fn running(&self) -> Vec<RunningInformer> {
        self.0.declared.lock().informers.values().map(|slot| slot.describe()).collect()
    }

    /// Stops the informers of a resource, whatever their scope, and forgets them: for an API that has gone.
    pub async fn retire(&self, resource: &Resource) {
        let slots: Vec<_> = {
            let mut declared = self.0.declared.lock();
            declared.metadata.remove(resource);
            let (gone, kept) = std::mem::take(&mut declared.informers)
                .into_iter()
                .partition(|(key, _): &(SlotKey, _)| key.target.resource == *resource);
            declared.informers = kept;
            gone.into_values().collect::<Vec<_>>()
        };
        join_all(slots.iter().map(|slot| slot.stop())).await;
    }

    /// Lets the metadata of a resource go, for an API that has gone: a watch of metadata alone stops, unless somebody else
    /// listens to it. A full watch belongs to others, and goes on.
    pub async fn retire_meta(&self, resource: &Resource) {
        let own = {
            let mut declared = self.0.declared.lock();
            declared.metadata.remove(resource);
            let key = SlotKey::of::<steersman_base::Meta>(self.0.within(Target::all(resource.clone())));
            let is_unused = |slot: &Arc<dyn AnySlot>| slot.describe().informer.subscribers.is_empty();
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

    /// The stores that show every object of a resource, for a consistency book.
    #[must_use]
    pub fn ledgers(&self, resource: &Resource) -> Vec<Arc<dyn Ledger>> {
        let everything = self.0.within(Target::all(resource.clone()));
        let declared = self.0.declared.lock();
        let unfiltered = declared.informers.iter().filter(|(key, _)| key.target == everything);
        unfiltered.map(|(_, slot)| slot.ledger()).collect()
    }

    /// Whether the server can be reached.
    #[must_use]
    pub fn reachability(&self) -> &Reachability {
        &self.0.reachability
    }

    /// The object of this name as the server has it now; without a name, all of the namespace; without a namespace, all that
    /// the factory looks into. `None` if the server does not serve the resource.
    ///
    /// # Errors
    /// As a list. Nobody retries here.
    pub async fn read_now(&self, resource: &Resource, place: &ObjectKey) -> Result<Option<Snapshot>, WireError> {
        let is_named = |text: &Istr| !text.is_empty();
        let namespace = Some(place.namespace.clone()).filter(is_named);
        let fields = Some(&place.name).filter(|name| is_named(name));
        let fields = fields.map(|name| Istr::from(format!("metadata.name={name}")));
        let scope = Scope { namespace, fields, ..Scope::default() };
        let target = self.0.within(Target { resource: resource.clone(), scope });
        match read_list(&self.0.client, &target, READ_PATIENCE).await {
            Ok((objects, version)) => Ok(Some(Snapshot { objects, version })),
            Err(WireError::Status(status)) if matches!(status.code, 404 | 405) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The store of a resource does not show what the server has: its watch is restarted, unless that was done just now.
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

    /// What is not filled; nothing is missing if all that runs is filled and something does.
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
        informer
    }

    /// What of a target lies in the namespace that the factory looks into.
    fn within(&self, mut target: Target) -> Target {
        if target.resource.scope == steersman_base::Scope::Namespaced && target.scope.namespace.is_none() {
            target.scope.namespace.clone_from(&self.options.namespace);
        }
        target
    }

    /// Gives every consumer of metadata a full watch to ride on, or a watch of its own.
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

/// What it is doing, in one phrase.
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
