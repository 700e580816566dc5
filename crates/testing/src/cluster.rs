//! A cluster with controllers of one's choice.

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
use steersman_nodes::{Nodes, NodesOptions};
use steersman_runtime::decisions::Filter;
use steersman_runtime::definition::install_value;
use steersman_runtime::{Build, Descriptor, Inspection, Manager, ManagerError, ManagerOptions, connection};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::faults::{Faults, Line};
use crate::journal::{About, Verb, Write};
use crate::{Failure, PodsOf};

use server::{delete_namespace, remove_namespace, unregister};

/// How a cluster is made.
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
    dual_stack: bool,
}

type Change<T> = Arc<dyn Fn(&mut T) + Send + Sync>;
type Setup = Arc<dyn Fn(&Manager) + Send + Sync>;

/// A cluster with controllers of one's choice, and a namespace of the test's own.
pub struct TestCluster {
    client: Client,
    clock: Clock,
    namespace: String,
    embedded: Option<Line>,
    controllers: Inspection,
    stop: CancellationToken,
    manager: JoinHandle<Result<(), ManagerError>>,
    /// How the manager ended, if it has.
    ended: Arc<OnceLock<String>>,
    nodes: Option<Nodes>,
}

/// The variable in which `cargo xtask k8s test` hands over its kubeconfig.
const RIG_KUBECONFIG: &str = "STEERSMAN_RIG_KUBECONFIG";
/// A virtual clock starts here: a Sunday in the year this was written.
const EPOCH: Time = Time::from_unix(1_794_744_000);
/// Far more than any step of a scenario takes; a scenario that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at the world.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The cluster has settled when nothing happened for this long: longer than a first retry, shorter than a resync.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Whatever does not settle in this time never will.
const SETTLES_WITHIN: Duration = Duration::from_secs(600);

/// How many failed passes a failure shows: the newest say why nothing goes on.
const FAILED_SHOWN_MAX: usize = 5;

// === impl Builder ===

impl Builder {
    /// With these controllers. Without any, it is an API server and nothing else.
    pub fn controllers(mut self, controllers: &[Descriptor]) -> Self {
        self.controllers.extend_from_slice(controllers);
        self
    }

    /// With options for its controllers: what they ask for with [`BuildContext::options`](steersman_runtime::BuildContext).
    pub fn options<T: Clone + Send + Sync + 'static>(mut self, options: T) -> Self {
        self.controller_options.push(Arc::new(move |manager| manager.set_options(options.clone())));
        self
    }

    /// With controllers of one's own: `setup` adds them to the manager before it runs.
    pub fn with(mut self, setup: impl Fn(&Manager) + Send + Sync + 'static) -> Self {
        self.setup.push(Arc::new(setup));
        self
    }

    /// With a manager that works otherwise, such as one that holds a lease.
    pub fn manager_options(mut self, change: impl Fn(&mut ManagerOptions) + Send + Sync + 'static) -> Self {
        self.options.push(Arc::new(change));
        self
    }

    /// With a custom kind: a `CustomResourceDefinition`, such as `Cake::crd()`, or its JSON.
    pub fn define(mut self, definition: impl Serialize) -> Self {
        self.definitions.push(serde_json::to_value(definition).map_err(|error| error.to_string()));
        self
    }

    /// With so many simulated nodes, and a scheduler.
    pub fn nodes(self, count: usize) -> Self {
        self.nodes_with(NodesOptions::count(count))
    }

    /// With simulated nodes of one's own choice.
    pub fn nodes_with(mut self, nodes: NodesOptions) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// With Services that can have addresses of both families. On the rig: as the rig is.
    pub fn dual_stack(mut self) -> Self {
        self.dual_stack = true;
        self
    }

    /// With faults from the start, such as for the first watches.
    pub fn faults(mut self, faults: &Faults) -> Self {
        self.faults = faults.clone();
        self
    }

    /// Starts it in this process. Its clock is tokio's, paused or not.
    ///
    /// # Errors
    /// The server does not answer, or a controller is disabled: the failure says why.
    pub async fn start(self) -> Result<TestCluster, Failure> {
        let clock = Clock::starting_at(EPOCH);
        let (clock_of_server, dual_stack) = (clock.clone(), self.dual_stack);
        let options = steersman_apiserver::Options { clock: clock_of_server, dual_stack, ..Default::default() };
        let server = ApiServer::new(options);
        let line = Line { server: server.clone(), faults: self.faults.clone(), journal: Arc::default() };
        let controllers = Client::new(line.clone(), "default");
        self.run(Client::new(server, "default"), controllers, clock, Some(line)).await
    }

    /// Runs the controllers in this process, on the rig's kube-apiserver. They see the test's namespace alone, so that
    /// tests can run beside each other.
    ///
    /// # Errors
    /// The rig is not there: run the test through `cargo xtask k8s test`.
    pub async fn start_on_rig(self) -> Result<TestCluster, Failure> {
        let Some(kubeconfig) = std::env::var_os(RIG_KUBECONFIG) else {
            return Err(Failure::new(format!("{RIG_KUBECONFIG} is not set: run this through `cargo xtask k8s test`")));
        };
        self.start_on(kubeconfig).await
    }

    /// As [`start_on_rig`](Self::start_on_rig), on the server that a kubeconfig names.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn start_on(self, kubeconfig: impl Into<PathBuf>) -> Result<TestCluster, Failure> {
        let options = connection::Options { kubeconfig: Some(kubeconfig.into()), ..connection::Options::default() };
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
        let mut options = ManagerOptions { clock: clock.clone(), namespace: only, ..ManagerOptions::default() };
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
        let nodes = match self.nodes {
            None => None,
            Some(nodes) if embedded.is_some() => Some(Nodes::build(&manager.context(), nodes)?),
            // Several tests share the cluster: each has nodes of its own.
            Some(nodes) => {
                let nodes = NodesOptions { prefix: namespace.clone(), own_nodes_only: true, ..nodes };
                Some(Nodes::build(&manager.context(), nodes)?)
            }
        };
        let (stop, controllers) = (CancellationToken::new(), manager.inspection());
        let (running, ended) = (manager.clone(), Arc::<OnceLock<String>>::default());
        let manager = tokio::spawn({
            let (stop, ended) = (stop.clone(), Arc::clone(&ended));
            async move {
                let outcome = running.run(stop).await;
                let how = outcome.as_ref().map_or_else(ToString::to_string, |()| "it was stopped".to_owned());
                let _ = ended.set(how);
                outcome
            }
        });
        Ok(TestCluster { client, clock, namespace, embedded, controllers, stop, manager, ended, nodes })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("controllers", &self.controllers).finish_non_exhaustive()
    }
}

// === impl TestCluster ===

impl TestCluster {
    /// Begins a cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client of the cluster. Faults do not happen to it.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The cluster's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The test's own namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The simulated nodes: their logs, and their faults.
    ///
    /// # Panics
    /// There are none: ask for them with [`Builder::nodes`].
    #[must_use]
    pub fn nodes(&self) -> &Nodes {
        self.nodes.as_ref().expect("the cluster has no nodes; ask for them with `Builder::nodes`")
    }

    /// What goes wrong between the controllers and the server.
    ///
    /// # Panics
    /// On the rig: nobody stands between the controllers and a real server.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        match &self.embedded {
            Some(line) => &line.faults,
            None => panic!("faults happen on the embedded server only; this scenario cannot run on the rig"),
        }
    }

    /// What the controllers wrote last, heartbeats left out. Empty on the rig.
    #[must_use]
    pub fn last_writes(&self) -> Vec<Write> {
        self.embedded.as_ref().map(|line| line.journal.last()).unwrap_or_default()
    }

    /// How many requests of the controllers of a verb to a resource (a subresource behind a slash) the server has done,
    /// whether they heard the answer or not. None on the rig.
    #[must_use]
    pub fn done(&self, verb: Verb, resource: &str) -> u64 {
        let about = About { verb, resource: resource.to_owned() };
        self.embedded.as_ref().map_or(0, |line| line.journal.done_count(&about))
    }

    /// A client to which faults happen, for another manager beside the cluster's own. On the rig: as any other.
    #[must_use]
    pub fn faulty_client(&self) -> Client {
        self.embedded.as_ref().map_or_else(|| self.client(), |line| Client::new(line.clone(), "default"))
    }

    /// The manager of the controllers.
    #[must_use]
    pub fn manager(&self) -> &Manager {
        self.controllers.manager()
    }

    /// Objects of a kind in the test's namespace.
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
    /// The server refuses.
    pub async fn delete<K>(&self, name: &str) -> Result<(), Failure>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + fmt::Debug,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The pods that an object controls.
    #[must_use]
    pub fn pods_of<K: Resource<DynamicType = ()>>(&self, owner: &K) -> PodsOf<'_> {
        PodsOf::new(self, owner.meta().uid.clone().unwrap_or_default())
    }

    /// Lets time pass, timer by timer.
    pub async fn advance(&self, time: Duration) {
        // Not `tokio::time::advance`: one jump skips the timers in between, and leases are lost.
        tokio::time::sleep(time).await;
    }

    /// Waits until the controllers have nothing left to do: no key waits or is held, and nobody wrote for a while.
    ///
    /// # Errors
    /// They never come to rest; the failure shows their last writes.
    pub async fn settle(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        let (mut seen, mut since) = (self.writes(), Instant::now());
        while since.elapsed() < SETTLED_AFTER {
            if Instant::now() > deadline {
                return Err(self.failure("the controllers never come to rest").await);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            if self.controllers.is_busy() || self.writes() != seen {
                (seen, since) = (self.writes(), Instant::now());
            }
        }
        Ok(())
    }

    /// Lets time pass, and holds the controllers to writing nothing but heartbeats.
    ///
    /// # Errors
    /// They wrote; the failure shows what.
    pub async fn expect_quiet(&self, time: Duration) -> Result<(), Failure> {
        let before = self.writes();
        self.advance(time).await;
        match self.writes() - before {
            0 => Ok(()),
            written => Err(self.failure(&format!("{written} writes in {time:?} that should be quiet")).await),
        }
    }

    /// Stops the controllers and deletes the namespace. On the rig, all that is in it is deleted first.
    ///
    /// # Errors
    /// A controller panicked, or the server refuses.
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        let ended = self.manager.await.map_err(|error| Failure::new(format!("the manager ended badly: {error}")))?;
        ended.map_err(|error| Failure::new(format!("the manager ended badly: {error}")))?;
        if self.embedded.is_none() {
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

    /// How the manager of the controllers ended: the error of [`Manager::run`], if it did so by itself, such as for a lost
    /// lease. None while it runs; from its end on, nobody reconciles.
    #[must_use]
    pub fn manager_ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// A failure that shows the world: how the manager ended, the pods, the last writes, the last passes that failed.
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
        let failed = Filter { failed_only: true, newest: Some(FAILED_SHOWN_MAX), ..Filter::default() };
        for entry in self.manager().decisions().entries(&failed) {
            text += &format!("\nfailed: {entry}");
        }
        Failure::new(text)
    }
}

/// Builds controllers for a manager of a test.
///
/// # Errors
/// One of them is disabled. A test that names a controller counts on it, so it fails at once, with the reason.
pub fn build(manager: &Manager, controllers: &[Descriptor]) -> Result<(), Failure> {
    for controller in controllers {
        if let Build::Disabled(why) = manager.build(controller, None) {
            return Err(Failure::new(format!("the controller {} is disabled: {why}", controller.name)));
        }
    }
    Ok(())
}
