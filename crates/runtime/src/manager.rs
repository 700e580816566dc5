//! What a process with controllers shares: one client, one set of informers, one writer; and the order in which it runs.
//!
//! 1. All controllers are built before anything runs, so that every need for a cache is known when the caches start.
//!    What is added later starts at once; what is added while the manager ends does not, and the log says so.
//! 2. Groups start in order: [servers](Group::Servers), [caches](Group::Caches), [others](Group::Others), then
//!    [those that need leadership](Group::Leading). A controller's workers start when its own caches are filled, so that a
//!    resource that cannot be read stalls nobody who does not need it.
//! 3. Whatever fails stops the manager, with its error; so does a lost lease.
//! 4. On the signal to stop, groups end in reverse order: reconciles in flight finish, the lease is given back, caches
//!    and servers go last; all within [`ManagerOptions::shutdown_within`].
//! 5. Nothing is global: several managers live in one process, each with caches and metrics of its own.

mod barrier;
mod inspection;
mod observe;
mod run;
mod runnable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Resource as Named;
use parking_lot::Mutex;
use prometheus::Registry;
use serde::de::DeserializeOwned;
use steersman_base::{Clock, Istr, Resource};
use steersman_informer::consistency::Book;
use steersman_informer::{FactoryOptions, InformerFactory, Metrics, Scope, Typed};
use steersman_workqueue::PrometheusMetrics;
use tokio::sync::Notify;

pub(crate) use barrier::Barriers;
pub use inspection::Inspection;
pub use run::ManagerError;
pub use runnable::{Group, Runnable, runnable};

use crate::Lister;
use crate::admin::Admin;
use crate::client::{CachedClient, ClientOptions};
use crate::controller::{Builder, Controller, ControllerContext, Engine, TypeMap};
use crate::decisions::Log;
use crate::descriptor::{Build, Disabled, FlagSource, FlagValue, Row};
use crate::events::{About, Broadcaster, EventOptions, Recorder};
use crate::health::Health;
use crate::lease::{Elector, Leadership, LeaseMetrics, LeaseOptions, LeaseOptionsError, Transition};
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
    /// Told when something is added while the manager runs.
    added: Notify,
}

#[derive(Default)]
struct State {
    /// What waits to be started.
    parts: Vec<Part>,
    controllers: Vec<Controller>,
    /// Taken by [`Manager::run`].
    machinery: Option<Machinery>,
    /// What is added from now on does not start.
    ending: bool,
    /// What flags and feature gates say; nothing without a command line.
    flags: Option<Arc<dyn FlagSource>>,
}

/// What runs beside the parts.
struct Machinery {
    elector: Option<Elector>,
    broadcaster: Broadcaster,
}

/// How a manager works.
#[derive(Clone)]
pub struct ManagerOptions {
    /// Where time comes from.
    pub clock: Clock,
    /// The one namespace its controllers see and work in; all of them, if none is named.
    pub namespace: Option<Istr>,
    /// Where queues, informers and reconciles count; nowhere, if nothing is said.
    pub metrics: Option<Registry>,
    /// The lease that must be held to work; none: this process always leads.
    pub lease: Option<LeaseOptions>,
    /// The client that renews the lease, with connections of its own so that it never waits behind others.
    pub lease_client: Option<kube::Client>,
    /// How long the orderly end may take.
    pub shutdown_within: Duration,
    /// Decide everything and write nothing; the decision log tells what would have been written. No lease is asked for
    /// either: a shadow works beside the one who leads.
    pub shadow: bool,
    /// How [`Manager::client`] reads.
    pub client: ClientOptions,
    /// Which types the program knows, for those who go from kinds to types.
    pub scheme: Scheme,
    /// The program's name, as its pages show it.
    pub component: String,
    /// How events are sent.
    pub events: EventOptions,
    /// How many bytes the decision log keeps at most.
    pub decisions_bytes_max: usize,
}

/// Why a manager cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewManagerError {
    /// The registry holds another manager's metrics.
    #[error("the metrics registry holds metrics of another manager: {0}")]
    MetricsTaken(#[from] prometheus::Error),
    /// The lease makes no sense.
    #[error("the options of the lease: {0}")]
    Lease(#[from] LeaseOptionsError),
}

const LEASES: Resource = Resource::namespaced("coordination.k8s.io", "v1", "leases", "Lease");
/// How long an orderly end may take unless told otherwise: controller-runtime's figure, and a pod's grace period.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(30);

// === impl Manager ===

impl Manager {
    /// A manager without controllers.
    ///
    /// # Errors
    /// The registry is another manager's, or the lease's options contradict each other.
    pub fn new(client: kube::Client, options: ManagerOptions) -> Result<Self, NewManagerError> {
        let registry = options.metrics;
        let informer_metrics = registry.as_ref().map(Metrics::new).transpose()?;
        let queue_metrics = registry.as_ref().map(PrometheusMetrics::register).transpose()?;
        let (name, namespace) = (options.component.clone(), options.namespace);
        let mut factory = FactoryOptions { name, metrics: informer_metrics, namespace, ..FactoryOptions::default() };
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
                    .on_transition(move |transition| tell(&recorder, transition));
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

    /// Begins a controller of a type of `k8s-openapi`, or one that derives `kube::CustomResource`.
    ///
    /// For views, metadata and kinds that are told at run time there is [`BuildContext::controller_on`].
    pub fn controller<K>(&self, name: &'static str) -> Builder<Typed<K>>
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        let informer = self.informers().typed::<K>(Scope::everything());
        self.context().controller_on(name, &informer)
    }

    /// Reads objects of a kind from the cache, which is filled when the manager runs.
    #[must_use]
    pub fn lister<K>(&self) -> Lister<K>
    where
        K: Named<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        K::Scope: 'static,
    {
        self.informers().typed::<K>(Scope::everything()).lister()
    }

    /// Builds a controller of the table. It runs when the manager does.
    pub fn build(&self, descriptor: &Descriptor, workers: Option<usize>) -> Build {
        self.build_as(descriptor, workers, &self.context())
    }

    /// As [`build`](Self::build), with a context of its own, such as [another account's](BuildContext::with_client).
    pub fn build_as(&self, descriptor: &Descriptor, workers: Option<usize>, context: &BuildContext) -> Build {
        descriptor.prepare(self);
        let row = descriptor.row();
        let workers = workers.or_else(|| self.workers_of(&row)).unwrap_or(row.workers.default);
        match descriptor.build(&ControllerContext::new(context.clone(), row, workers)) {
            Ok(built) => {
                // The manager has a handle of each.
                drop(built.start());
                Build::Enabled
            }
            Err(Disabled(why)) => Build::Disabled(why),
        }
    }

    /// Sets where controllers find what flags and feature gates say: before they are built.
    pub fn set_flags(&self, flags: impl FlagSource + 'static) {
        self.0.state.lock().flags = Some(Arc::new(flags));
    }

    pub(crate) fn flags(&self) -> Option<Arc<dyn FlagSource>> {
        self.0.state.lock().flags.clone()
    }

    /// How many workers a flag gives a controller.
    fn workers_of(&self, row: &Row) -> Option<usize> {
        match self.flags()?.flag(row.workers.flag?)? {
            FlagValue::Int(workers) => usize::try_from(workers).ok(),
            _ => None,
        }
    }

    /// Adds something that runs when the manager does, or at once if that runs already.
    pub fn add(&self, runnable: impl Runnable) {
        runnable.report_to(self.health());
        self.add_part(Part::of(runnable));
    }

    /// Sets options of controllers that are built later, whatever the flags say: those of a built-in controller, or what
    /// others ask for with [`BuildContext::options`].
    pub fn set_options<T: Clone + Send + Sync + 'static>(&self, options: T) {
        self.0.options.set(options);
    }

    /// What controllers are built with.
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

    /// The informers that all controllers share.
    #[must_use]
    pub fn informers(&self) -> &InformerFactory {
        &self.0.informers
    }

    /// The client that reads from the caches and writes to the server; it writes while this process leads (or always,
    /// with [`led_by(Leadership::always())`](CachedClient::led_by)), and in shadow mode nothing that stays.
    #[must_use]
    pub fn client(&self) -> &CachedClient {
        &self.0.cached
    }

    /// Knows which kinds the server has.
    #[must_use]
    pub fn mapper(&self) -> &RestMapper {
        &self.0.mapper
    }

    /// Which types the program knows.
    #[must_use]
    pub fn scheme(&self) -> &Scheme {
        &self.0.scheme
    }

    /// The client with which caches are filled.
    #[must_use]
    pub fn kube_client(&self) -> &kube::Client {
        &self.0.client
    }

    /// What is asked whether the process is well. Checks of one's own are added to it.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.0.observed.health
    }

    /// The pages about this manager: health, metrics, informers, queues, decisions, profile; for a server to serve, and
    /// for controllers to add pages to.
    #[must_use]
    pub fn admin(&self) -> &Admin {
        &self.0.observed.admin
    }

    /// What `/metrics` shows. Registries of one's own are added to it.
    #[must_use]
    pub fn exposition(&self) -> &Exposition {
        &self.0.observed.exposition
    }

    /// Where time comes from.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Tells people what happened, as Kubernetes events.
    #[must_use]
    pub fn events(&self) -> &Recorder {
        &self.0.events
    }

    /// What was decided, and why.
    #[must_use]
    pub fn decisions(&self) -> &Log {
        &self.0.decisions
    }

    /// Whether this process may write.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.0.leadership.clone()
    }

    /// Where everything counts, if anything does.
    #[must_use]
    pub fn metrics(&self) -> Option<&Registry> {
        self.0.metrics.as_ref()
    }

    /// The metrics that controllers of this manager share.
    #[must_use]
    pub fn families(&self) -> &Families {
        &self.0.families
    }

    /// A look at what the manager is doing, also while it runs.
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
            tracing::warn!(name = part.name(), "added too late: the manager ends, and starts nothing any more");
            return part.leave();
        }
        state.parts.push(part);
        drop(state);
        self.0.added.notify_one();
    }
}

/// Tells people who leads, as upstream does: an event about the lease, by the one who leads.
fn tell(recorder: &Recorder, transition: &Transition) {
    if let Some((lease, note)) = transition.event() {
        recorder.normal(&About::new(&LEASES, lease), "LeaderElection", note);
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

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            namespace: None,
            metrics: None,
            lease: None,
            lease_client: None,
            scheme: Scheme::new(),
            component: "steersman".to_owned(),
            shutdown_within: SHUTDOWN_WITHIN,
            shadow: false,
            client: ClientOptions::default(),
            events: EventOptions::default(),
            decisions_bytes_max: crate::decisions::BYTES_MAX,
        }
    }
}
