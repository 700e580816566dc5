//! The manager of a process: one client, one set of informers, one writer, and the order in which everything runs.
//!
//! 1. All controllers are built before anything runs, so that every required cache is known when the caches start.
//!    Controllers and runnables that are added later start at once; those added during shutdown do not, and the log
//!    says so.
//! 2. Groups start in order: [servers](Group::Servers), [caches](Group::Caches), [others](Group::Others), then [those
//!    that need leadership](Group::Leading). A controller's workers start when its own caches are filled, so that a
//!    resource that cannot be read blocks only the controllers that need it.
//! 3. A part that fails stops the manager, with its error; so does a lost lease.
//! 4. On the stop signal, groups end in reverse order: running reconciles finish, the lease is given back, caches and
//!    servers end last; all within [`ManagerOptions::shutdown_within`].
//! 5. Nothing is global: several managers can live in one process, each with caches and metrics of its own.

mod barrier;
mod inspection;
mod observe;
mod options;
mod run;
mod runnable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Resource as Named;
use parking_lot::Mutex;
use prometheus::Registry;
use serde::de::DeserializeOwned;
use steersman_base::{Clock, Resource};
use steersman_informer::__internal::consistency::Book;
use steersman_informer::{FactoryOptions, InformerFactory, Metrics, Selection, Typed};
use steersman_workqueue::PrometheusMetrics;
use tokio::sync::Notify;

pub(crate) use barrier::Barriers;
pub use inspection::Inspection;
pub use options::ManagerOptions;
pub use run::ManagerError;
pub use runnable::{Group, Runnable, runnable};

use crate::Lister;
use crate::admin::Admin;
use crate::client::CachedClient;
use crate::controller::{Builder, Controller, ControllerContext, Engine, TypeMap};
use crate::decisions::Log;
use crate::descriptor::{Build, Disabled, FlagSource, FlagValue, Row};
use crate::events::{About, Broadcaster, Recorder};
use crate::health::Health;
use crate::lease::{Elector, Leadership, LeaseMetrics, LeaseOptionsError, Transition};
use crate::mapper::{RestMapper, Scheme};
use crate::metrics::{Exposition, Families, ReflectorCounters};
use crate::{BuildContext, Descriptor, Writer};
use observe::Observed;
use runnable::Part;

/// Controllers that share caches and a client. Cheap to clone; clones are the same manager.
#[derive(Clone)]
pub struct Manager(Arc<Shared>);

struct Shared {
    client: kube::Client,
    cached: CachedClient,
    mapper: RestMapper,
    scheme: Scheme,
    informers: InformerFactory,
    writer: Writer,
    book: Book,
    clock: Clock,
    events: Recorder,
    decisions: Log,
    leadership: Leadership,
    metrics: Option<Registry>,
    families: Families,
    queue_metrics: Option<PrometheusMetrics>,
    observed: Observed,
    options: TypeMap,
    shutdown_within: Duration,
    state: Mutex<State>,
    /// Notified when a part is added while the manager runs.
    added: Notify,
}

#[derive(Default)]
struct State {
    /// The parts that wait to be started.
    parts: Vec<Part>,
    controllers: Vec<Controller>,
    /// Taken by [`Manager::run`].
    machinery: Option<Machinery>,
    /// Whether added parts no longer start.
    ending: bool,
    /// The flags and feature gates; `None` without a command line.
    flags: Option<Arc<dyn FlagSource>>,
}

/// The tasks that run beside the parts.
struct Machinery {
    elector: Option<Elector>,
    broadcaster: Broadcaster,
}

/// An error of [`Manager::new`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewManagerError {
    /// The registry has another manager's metrics.
    #[error("the metrics registry holds metrics of another manager: {0}")]
    MetricsTaken(#[from] prometheus::Error),
    /// The options of the lease are invalid.
    #[error("the options of the lease: {0}")]
    Lease(#[from] LeaseOptionsError),
}

const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease");

// === impl Manager ===

impl Manager {
    /// Creates a manager without controllers.
    ///
    /// # Errors
    /// The registry has another manager's metrics, or the options of the lease are invalid.
    pub fn new(client: kube::Client, options: ManagerOptions) -> Result<Self, NewManagerError> {
        let registry = options.registry()?;
        let informer_metrics = registry.as_ref().map(Metrics::new).transpose()?;
        let queue_metrics = registry.as_ref().map(PrometheusMetrics::register).transpose()?;
        let mut factory = FactoryOptions::default();
        factory.name = options.component.clone();
        factory.metrics = informer_metrics;
        factory.namespace = options.namespace;
        if let Some(registry) = &registry {
            factory.reflector.metrics = Arc::new(ReflectorCounters::register(registry)?);
        }
        let informers = InformerFactory::with_options(client.clone(), factory);
        let clock = options.clock;

        let broadcaster = Broadcaster::new(client.clone(), clock.clone(), options.events);
        let events = if options.shadow { Recorder::nowhere() } else { broadcaster.recorder() };
        let lease_client = options.lease_client.unwrap_or_else(|| client.clone());
        let elector = match options.lease.filter(|_| !options.shadow) {
            Some(lease) => {
                let recorder = events.for_component(options.component.as_str());
                let mut elector = Elector::new(lease_client, lease, clock.clone())?
                    .on_transition(move |transition| record(&recorder, transition));
                if let Some(registry) = &registry {
                    elector = elector.metrics(&LeaseMetrics::new(registry)?);
                }
                Some(elector)
            }
            None => None,
        };
        let leadership = elector.as_ref().map_or_else(Leadership::always, Elector::leadership);

        let book = Book::new(&informers);
        let mut writer =
            Writer::new(client.clone(), book.clone()).led_by(leadership.clone()).with_caches(informers.clone());
        if options.shadow {
            writer = writer.in_shadow();
        }
        let mut cached =
            CachedClient::new(client.clone(), informers.clone(), options.client).led_by(leadership.clone());
        if options.shadow {
            cached = cached.dry_run();
        }
        let decisions = Log::with_bytes_max(clock.clone(), options.decisions_bytes_max);
        let machinery = Some(Machinery { elector, broadcaster });
        let observed = Observed::new(&options.component, &clock, registry.as_ref())?;
        let manager = Self(Arc::new(Shared {
            observed,
            mapper: RestMapper::new(client.clone()),
            scheme: options.scheme,
            client,
            cached,
            informers,
            writer,
            book,
            clock,
            events,
            decisions,
            leadership,
            families: Families::of(registry.as_ref()),
            metrics: registry,
            queue_metrics,
            options: TypeMap::default(),
            shutdown_within: options.shutdown_within,
            state: Mutex::new(State { machinery, ..State::default() }),
            added: Notify::new(),
        }));
        manager.show();
        Ok(manager)
    }

    /// Starts building a controller of a type of `k8s-openapi`, or of one that derives `kube::CustomResource`.
    ///
    /// For views, metadata and kinds chosen at run time there is [`BuildContext::controller_on`].
    pub fn controller<K>(&self, name: &'static str) -> Builder<Typed<K>>
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let informer = self.informers().typed::<K>(Selection::everything());
        self.context().controller_on(name, &informer)
    }

    /// Returns a lister of a kind's cache, which is filled once the manager runs, and empty before.
    ///
    /// A controller starts when the caches of its own sources are filled: for another kind that its reconciler reads, say
    /// [`.needs::<K>()`](Builder::needs).
    #[must_use]
    pub fn lister<K>(&self) -> Lister<K>
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let lister = self.informers().typed::<K>(Selection::everything()).lister();
        // Otherwise a kind that nobody read before would stay empty.
        if self.informers().is_started() {
            self.informers().start();
        }
        lister
    }

    /// Builds a controller from its descriptor. It runs when the manager runs.
    pub fn build(&self, descriptor: &Descriptor, workers: Option<usize>) -> Build {
        self.build_as(descriptor, workers, &self.context())
    }

    /// As [`build`](Self::build), with a context of its own, such as [another account's](BuildContext::with_client).
    #[doc(hidden)]
    pub fn build_as(&self, descriptor: &Descriptor, workers: Option<usize>, context: &BuildContext) -> Build {
        descriptor.prepare(self);
        let row = descriptor.row();
        let workers = workers.or_else(|| self.workers_of(&row)).unwrap_or(row.workers.default);
        match descriptor.build(&ControllerContext::new(context.clone(), row, workers)) {
            Ok(built) => {
                // The manager has a handle of each controller.
                drop(built.start());
                Build::Enabled
            }
            Err(Disabled(why)) => Build::Disabled(why),
        }
    }

    /// Sets the source of flags and feature gates: before controllers are built.
    #[doc(hidden)]
    pub fn set_flags(&self, flags: impl FlagSource + 'static) {
        self.0.state.lock().flags = Some(Arc::new(flags));
    }

    pub(crate) fn flags(&self) -> Option<Arc<dyn FlagSource>> {
        self.0.state.lock().flags.clone()
    }

    /// Returns the number of workers that a flag sets.
    fn workers_of(&self, row: &Row) -> Option<usize> {
        match self.flags()?.flag(row.workers.flag?)? {
            FlagValue::Int(workers) => usize::try_from(workers).ok(),
            _ => None,
        }
    }

    /// Adds a runnable, which runs when the manager runs, or at once if that runs already.
    pub fn add(&self, mut runnable: impl Runnable) {
        if self.metrics().is_some() {
            runnable.count_in(self.families());
        }
        runnable.report_to(self.health());
        self.add_part(Part::of(runnable));
    }

    /// Sets options of controllers that are built later, overriding flags: those of a built-in controller, or those
    /// that others read with [`BuildContext::options`].
    pub fn set_options<T: Clone + Send + Sync + 'static>(&self, options: T) {
        self.0.options.set(options);
    }

    /// Returns the context that controllers are built with.
    #[must_use]
    pub fn context(&self) -> BuildContext {
        let shared = &self.0;
        BuildContext {
            client: shared.client.clone(),
            informers: shared.informers.clone(),
            writer: shared.writer.clone(),
            book: shared.book.clone(),
            clock: shared.clock.clone(),
            events: shared.events.clone(),
            decisions: shared.decisions.clone(),
            manager: self.clone(),
            options: shared.options.clone(),
        }
    }

    /// Returns the informers that all controllers share.
    #[must_use]
    pub fn informers(&self) -> &InformerFactory {
        &self.0.informers
    }

    /// Returns the client that reads from the caches. It writes only while this process leads, and in shadow mode as a
    /// dry run.
    #[must_use]
    pub fn client(&self) -> &CachedClient {
        &self.0.cached
    }

    /// Returns the mapper, which knows the kinds of the server.
    #[must_use]
    pub fn mapper(&self) -> &RestMapper {
        &self.0.mapper
    }

    /// Returns the types that the program knows.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.0.scheme
    }

    /// Returns the client that fills the caches.
    #[must_use]
    pub fn kube_client(&self) -> &kube::Client {
        &self.0.client
    }

    /// Returns the health checks, to which others can be added.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.0.observed.health
    }

    /// Returns the pages about this manager: health, metrics, informers, queues, decisions, profile; to serve them, and
    /// to add pages.
    #[must_use]
    pub fn admin(&self) -> &Admin {
        &self.0.observed.admin
    }

    /// Returns the metrics of `/metrics`, to which other registries can be added.
    #[must_use]
    pub fn exposition(&self) -> &Exposition {
        &self.0.observed.exposition
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Returns the recorder of Kubernetes events.
    #[must_use]
    pub fn events(&self) -> &Recorder {
        &self.0.events
    }

    /// Returns the decision log.
    #[must_use]
    pub fn decisions(&self) -> &Log {
        &self.0.decisions
    }

    /// Returns the leadership of this process.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.0.leadership.clone()
    }

    /// Returns the registry of metrics, to which a program may add its own; `None` without metrics.
    #[must_use]
    pub fn metrics(&self) -> Option<&Registry> {
        self.0.metrics.as_ref()
    }

    /// Returns the metrics that controllers of this manager share.
    #[must_use]
    pub fn families(&self) -> &Families {
        &self.0.families
    }

    /// Returns a view of the manager's state, also while it runs.
    #[must_use]
    pub fn inspection(&self) -> Inspection {
        Inspection::of(self.clone())
    }

    pub(crate) fn queue_metrics(&self) -> Option<Arc<dyn steersman_workqueue::Metrics>> {
        Some(Arc::new(self.0.queue_metrics.clone()?))
    }

    pub(crate) fn add_engine(&self, engine: Engine) {
        self.0.state.lock().controllers.push(engine.controller().clone());
        self.add_part(Part::Controller(Box::new(engine)));
    }

    fn add_part(&self, part: Part) {
        let mut state = self.0.state.lock();
        if state.ending {
            drop(state);
            tracing::warn!(
                name = part.name(),
                "added too late: the manager is shutting down and starts nothing any more"
            );
            return part.leave();
        }
        state.parts.push(part);
        drop(state);
        self.0.added.notify_one();
    }
}

/// Records a change of leadership, as upstream does: an event about the lease, by the leader.
fn record(recorder: &Recorder, transition: &Transition) {
    if let Some((lease, note)) = transition.event() {
        recorder.normal(&About::new(&LEASES, lease), Transition::EVENT_REASON, note);
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("controllers", &self.0.state.lock().controllers).finish_non_exhaustive()
    }
}

// === impl ManagerOptions ===

impl fmt::Debug for ManagerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, lease, shutdown_within, shadow, events, .. } = self;
        f.debug_struct("ManagerOptions")
            .field("namespace", namespace)
            .field("lease", lease)
            .field("shutdown_within", shutdown_within)
            .field("shadow", shadow)
            .field("events", events)
            .finish_non_exhaustive()
    }
}
