//! A cluster with chosen controllers.

mod metrics;
mod server;
mod until;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steersman_apiserver::ApiServer;
use steersman_base::{Clock, Istr, Time};
use steersman_nodes::{Metrics, Nodes, NodesOptions};
use steersman_runtime::Inspection;
use steersman_runtime::decisions::Filter;
use steersman_runtime::definition::install_value;
use steersman_runtime::{Build, Descriptor, Manager, ManagerError, ManagerOptions, connection};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::faults::{Faults, Line};
use crate::journal::{About, Verb, Write};
use crate::{Failure, PodsOf};

use server::{delete_namespace, remove_namespace, unregister};

/// Builds a cluster.
#[derive(Clone, Default)]
#[must_use]
pub struct Builder {
    controllers: Vec<Descriptor>,
    faults: Faults,
    options: Vec<Change<ManagerOptions>>,
    controller_options: Vec<Setup>,
    setup: Vec<Setup>,
    definitions: Vec<Result<serde_json::Value, String>>,
    nodes: Option<NodesOptions>,
    metrics: Option<Metrics>,
    dual_stack: bool,
}

type Change<T> = Arc<dyn Fn(&mut T) + Send + Sync>;
type Setup = Arc<dyn Fn(&Manager) + Send + Sync>;

/// A cluster with chosen controllers, and a namespace of the test's own.
pub struct TestCluster {
    client: Client,
    clock: Clock,
    namespace: String,
    embedded: Option<Line>,
    controllers: Inspection,
    stop: CancellationToken,
    manager: JoinHandle<Result<(), ManagerError>>,
    /// The end of the manager, if it has ended.
    ended: Arc<OnceLock<String>>,
    nodes: Option<Nodes>,
    metrics: Option<Metrics>,
}

/// The variable in which `cargo xtask k8s test` passes its kubeconfig.
const RIG_KUBECONFIG: &str = "STEERSMAN_RIG_KUBECONFIG";
/// The start of a virtual clock: a Sunday in the year this was written.
const EPOCH: Time = Time::from_unix(1_794_744_000);
/// Far more than any step of a scenario takes; a scenario that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval at which conditions are checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The time without activity after which the cluster has settled: longer than a first retry, shorter than a resync.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// The time after which a cluster that has not settled never will.
const SETTLES_WITHIN: Duration = Duration::from_secs(600);

/// The number of failed passes that a failure shows: the newest show the cause.
const FAILED_SHOWN_MAX: usize = 5;

// === impl Builder ===

impl Builder {
    /// Adds controllers. Without any, the cluster is an API server and nothing else.
    pub fn controllers(mut self, controllers: &[Descriptor]) -> Self {
        self.controllers.extend_from_slice(controllers);
        self
    }

    /// Sets options of controllers, which they read with [`BuildContext::options`](steersman_runtime::BuildContext).
    pub fn options<T: Clone + Send + Sync + 'static>(mut self, options: T) -> Self {
        self.controller_options.push(Arc::new(move |manager| manager.set_options(options.clone())));
        self
    }

    /// Adds controllers of one's own: `setup` adds them to the manager before it runs.
    pub fn with(mut self, setup: impl Fn(&Manager) + Send + Sync + 'static) -> Self {
        self.setup.push(Arc::new(setup));
        self
    }

    /// Changes the options of the manager, such as its lease.
    pub fn manager_options(mut self, change: impl Fn(&mut ManagerOptions) + Send + Sync + 'static) -> Self {
        self.options.push(Arc::new(change));
        self
    }

    /// Adds a custom kind: a `CustomResourceDefinition`, such as `Cake::crd()`, or its JSON.
    pub fn define(mut self, definition: impl Serialize) -> Self {
        self.definitions.push(serde_json::to_value(definition).map_err(|error| error.to_string()));
        self
    }

    /// Adds simulated nodes, and a scheduler.
    pub fn nodes(self, count: usize) -> Self {
        self.nodes_with(NodesOptions::count(count))
    }

    /// Adds simulated nodes with options.
    pub fn nodes_with(mut self, nodes: NodesOptions) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// Adds the metrics APIs, which show the usage of the pods on simulated nodes: `metrics.k8s.io`, and the custom and external
    /// ones that the test sets ([`TestCluster::metrics`]). On another server than the embedded one they stand behind
    /// `APIService`s, of which a server has one for each group: a test that uses them needs that server for itself.
    pub fn metrics(mut self) -> Self {
        self.metrics = Some(Metrics::default());
        self
    }

    /// Lets Services have addresses of both families. On the rig: as the rig is.
    pub fn dual_stack(mut self) -> Self {
        self.dual_stack = true;
        self
    }

    /// Sets faults from the start, such as for the first watches.
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.faults = faults.clone();
        self
    }

    /// Starts the cluster in this process. Its clock is tokio's, paused or not.
    ///
    /// # Errors
    /// The server does not respond, or a controller is disabled: the failure has the reason.
    pub async fn start(self) -> Result<TestCluster, Failure> {
        let clock = Clock::starting_at(EPOCH);
        let aggregated = self.metrics.clone().map(|metrics| Arc::new(metrics) as Arc<_>);
        let options = steersman_apiserver::Options::default()
            .clock(clock.clone())
            .dual_stack(self.dual_stack)
            .aggregated(aggregated);
        let server = ApiServer::new(options);
        let server_of_controllers = server.for_agent("kube-controller-manager");
        let line = Line { server: server_of_controllers, faults: self.faults.clone(), journal: Arc::default() };
        let controllers = Client::new(line.clone(), "default");
        self.run(Client::new(server, "default"), controllers, clock, Some(line)).await
    }

    /// Runs the controllers in this process, on the rig's kube-apiserver. They see only the test's namespace, so that
    /// tests can run beside each other.
    ///
    /// # Errors
    /// There is no rig: run the test through `cargo xtask k8s test`.
    pub async fn start_on_rig(self) -> Result<TestCluster, Failure> {
        let Some(kubeconfig) = std::env::var_os(RIG_KUBECONFIG) else {
            return Err(Failure::new(format!("{RIG_KUBECONFIG} is not set: run this through `cargo xtask k8s test`")));
        };
        self.start_on(kubeconfig).await
    }

    /// As [`start_on_rig`](Self::start_on_rig), on the server that a kubeconfig names.
    ///
    /// # Errors
    /// The server does not respond.
    pub async fn start_on(self, kubeconfig: impl Into<PathBuf>) -> Result<TestCluster, Failure> {
        let options = connection::Options::default().kubeconfig(kubeconfig);
        let client = connection::connect(options).await?;
        self.run(client.clone(), client, Clock::system(), None).await
    }

    async fn run(
        self,
        client: Client,
        controllers: Client,
        clock: Clock,
        embedded: Option<Line>,
    ) -> Result<TestCluster, Failure> {
        let metadata = ObjectMeta { generate_name: Some("test-".into()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespace = Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let namespace = namespace.metadata.name.unwrap_or_default();
        for definition in &self.definitions {
            let definition = definition.as_ref().map_err(|error| Failure::new(format!("a definition: {error}")))?;
            install_value(&client, definition).await?;
        }
        let only = embedded.is_none().then(|| Istr::interned(&namespace));
        let mut options = ManagerOptions::default().clock(clock.clone()).without_metrics();
        options.namespace = only;
        for change in &self.options {
            change(&mut options);
        }
        let manager = Manager::new(controllers, options)?;
        for set in &self.controller_options {
            set(&manager);
        }
        build(&manager, &self.controllers)?;
        for setup in &self.setup {
            setup(&manager);
        }
        let nodes = match self.nodes.map(|nodes| nodes.metrics(self.metrics.clone())) {
            None => None,
            Some(nodes) if embedded.is_some() => Some(Nodes::build(&manager.context(), nodes)?),
            // Several tests share the cluster: each has nodes of its own.
            Some(nodes) => {
                let nodes = nodes.prefix(namespace.clone()).own_nodes_only(true);
                Some(Nodes::build(&manager.context(), nodes)?)
            }
        };
        let stop = CancellationToken::new();
        if let (Some(metrics), None) = (&self.metrics, &embedded) {
            metrics::register(&client, metrics, stop.clone()).await?;
        }
        let controllers = manager.inspection();
        let running = manager.clone();
        let ended = Arc::<OnceLock<String>>::default();
        let manager = tokio::spawn({
            let stop = stop.clone();
            let ended = Arc::clone(&ended);
            async move {
                let outcome = running.run(stop).await;
                let how = outcome.as_ref().map_or_else(ToString::to_string, |()| "it was stopped".to_owned());
                let _ = ended.set(how);
                outcome
            }
        });
        let metrics = self.metrics;
        Ok(TestCluster { client, clock, namespace, embedded, controllers, stop, manager, ended, nodes, metrics })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("controllers", &self.controllers).finish_non_exhaustive()
    }
}

// === impl TestCluster ===

impl TestCluster {
    /// Starts building a cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a client of the cluster, without faults.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the cluster's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the test's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the simulated nodes: their logs, and their faults.
    ///
    /// # Panics
    /// There are none: add them with [`Builder::nodes`].
    #[must_use]
    pub fn nodes(&self) -> &Nodes {
        self.nodes.as_ref().expect("the cluster has no nodes; ask for them with `Builder::nodes`")
    }

    /// Returns the source of the metrics APIs.
    ///
    /// # Panics
    /// There is none: add it with [`Builder::metrics`].
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.metrics.as_ref().expect("the cluster has no metrics; ask for them with `Builder::metrics`")
    }

    /// Returns the faults between the controllers and the server.
    ///
    /// # Panics
    /// On the rig: there is nothing between the controllers and a real server.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        match &self.embedded {
            Some(line) => &line.faults,
            None => panic!("faults happen on the embedded server only; this scenario cannot run on the rig"),
        }
    }

    /// Returns the last writes of the controllers, without heartbeats. Empty on the rig.
    #[must_use]
    pub fn last_writes(&self) -> Vec<Write> {
        self.embedded.as_ref().map(|line| line.journal.last()).unwrap_or_default()
    }

    /// Returns how many requests of a verb to a resource (a subresource behind a slash) the server has done for the
    /// controllers, whether they got the answer or not. Zero on the rig.
    #[must_use]
    pub fn done(&self, verb: Verb, resource: &str) -> u64 {
        let about = About { verb, resource: resource.to_owned() };
        self.embedded.as_ref().map_or(0, |line| line.journal.done_count(&about))
    }

    /// Returns a client with faults, for another manager beside the cluster's own. On the rig: without.
    #[must_use]
    pub fn faulty_client(&self) -> Client {
        self.embedded.as_ref().map_or_else(|| self.client(), |line| Client::new(line.clone(), "default"))
    }

    /// Returns the manager of the controllers.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        self.controllers.manager()
    }

    /// Returns the API of a kind in the test's namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Creates an object in the test's namespace.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn create<K>(&self, object: K) -> Result<K, Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + fmt::Debug,
    {
        Ok(self.api().create(&PostParams::default(), &object).await?)
    }

    /// Deletes an object in the test's namespace.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn delete<K>(&self, name: &str) -> Result<(), Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Returns the pods that an object controls.
    #[must_use]
    pub fn pods_of<K: Resource<DynamicType = ()>>(&self, owner: &K) -> PodsOf<'_> {
        PodsOf::new(self, owner.meta().uid.clone().unwrap_or_default())
    }

    /// Lets time pass, timer by timer: at once under tokio's paused clock (`start_paused = true`), for real otherwise.
    pub async fn advance(&self, time: Duration) {
        // Not `tokio::time::advance`: one jump skips the timers in between, and leases are lost.
        tokio::time::sleep(time).await;
    }

    /// Waits until the controllers have nothing left to do: no key waits or is held, and nothing was written for a
    /// while.
    ///
    /// # Errors
    /// They never settle, or their manager has ended, which is not the same as rest; the failure shows their last writes.
    pub async fn settle(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        let mut seen = self.writes();
        let mut since = Instant::now();
        while since.elapsed() < SETTLED_AFTER {
            self.still_runs("the controllers come to rest").await?;
            if Instant::now() > deadline {
                return Err(self.failure("the controllers never come to rest").await);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if self.controllers.is_busy() || self.writes() != seen {
                seen = self.writes();
                since = Instant::now();
            }
        }
        self.still_runs("the controllers come to rest").await
    }

    /// Lets time pass, and fails if the controllers write anything but heartbeats. On the rig writes are not counted.
    ///
    /// # Errors
    /// They wrote, and the failure shows what; or their manager has ended, after which anything is quiet.
    pub async fn expect_quiet(&self, time: Duration) -> Result<(), Failure> {
        let before = self.writes();
        self.advance(time).await;
        match self.writes() - before {
            0 => self.still_runs("the controllers are quiet").await,
            written => Err(self.failure(&format!("{written} writes in {time:?} that should be quiet")).await),
        }
    }

    /// Stops the controllers and deletes the namespace. On the rig, all objects in it are deleted first.
    ///
    /// # Errors
    /// A controller panicked, or the server refuses.
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        let ended = self.manager.await.map_err(|error| Failure::new(format!("the manager ended badly: {error}")))?;
        ended.map_err(|error| Failure::new(format!("the manager ended badly: {error}")))?;
        if self.embedded.is_none() {
            if let Some(metrics) = &self.metrics {
                metrics::unregister(&self.client, metrics).await?;
            }
            if let Some(nodes) = &self.nodes {
                unregister(&self.client, nodes).await?;
            }
            return remove_namespace(&self.client, &self.namespace).await;
        }
        delete_namespace(&self.client, &self.namespace).await
    }

    fn writes(&self) -> u64 {
        self.embedded.as_ref().map_or(0, |line| line.journal.count())
    }

    /// Fails if the manager of the controllers has ended by itself: what a test concludes from their silence would be wrong.
    async fn still_runs(&self, what: &str) -> Result<(), Failure> {
        match self.manager_ended() {
            None => Ok(()),
            Some(_) => Err(self.failure(&format!("cannot decide: {what}")).await),
        }
    }

    /// Returns how the manager of the controllers ended: the error of [`Manager::run`], if it ended by itself, such as
    /// for a lost lease. `None` while it runs; after its end, nothing is reconciled.
    #[must_use]
    pub fn manager_ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Returns a failure that shows the state: how the manager ended, the pods, the last writes, the last failed
    /// passes.
    async fn failure(&self, what: &str) -> Failure {
        let mut text = what.to_owned();
        if let Some(how) = self.manager_ended() {
            text += &format!("\nthe manager of the controllers has ended, so nobody reconciles: {how}");
        }
        if let Ok(pods) = self.api::<Pod>().list(&ListParams::default()).await {
            text += "\npods:";
            for pod in pods {
                let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
                text += &format!("\n  {} {phase}", pod.metadata.name.unwrap_or_default());
            }
        }
        text += "\nlast writes of the controllers:";
        for write in self.last_writes() {
            text += &format!("\n  {write}");
        }
        let mut failed = Filter::default();
        failed.failed_only = true;
        failed.newest = Some(FAILED_SHOWN_MAX);
        for entry in self.manager().decisions().entries(&failed) {
            text += &format!("\nfailed: {entry}");
        }
        Failure::new(text)
    }
}

/// Builds controllers for a manager of a test.
///
/// # Errors
/// One of them is disabled. A test that names a controller relies on it, so it fails at once, with the reason.
pub fn build(manager: &Manager, controllers: &[Descriptor]) -> Result<(), Failure> {
    for controller in controllers {
        if let Build::Disabled(why) = manager.build(controller, None) {
            return Err(Failure::new(format!("the controller {} is disabled: {why}", controller.name)));
        }
    }
    Ok(())
}
