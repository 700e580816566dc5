//! Small things that all scenarios use.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use parking_lot::Mutex;
use steersman_apiserver::ApiServer;
use steersman_base::ObjectKey;
use steersman_informer::{Lister, Typed};
use steersman_model::View;
use steersman_runtime::__internal::health::{Ask, Reasons, Report};
use steersman_runtime::controller::Builder;
use steersman_runtime::health::Probe;
use steersman_runtime::{Action, Context, Error, LeaseOptions, Manager, ManagerError, ManagerOptions, Reconciler};
use steersman_testing::Failure;
use steersman_testing::objects::{self, ObjectBuilder as _};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Notes each key it is given.
pub(crate) struct Noting(pub(crate) Diary);

impl Reconciler for Noting {
    async fn reconcile(&self, _: &Context, key: &ObjectKey) -> Result<Action, Error> {
        self.0.note(key.name.to_string());
        Ok(Action::Done)
    }
}

pub(crate) const SOON: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn quota(name: &str) -> ResourceQuota {
    ResourceQuota { metadata: objects::named(name), ..ResourceQuota::default() }
}

pub(crate) fn embedded(options: ManagerOptions) -> Result<(Manager, kube::Client), Failure> {
    let client = kube::Client::new(ApiServer::new(steersman_apiserver::Options::default()), "default");
    Ok((Manager::new(client.clone(), options)?, client))
}

/// Makes one pod for every quota that has none, by what the cache shows.
pub(crate) struct OnePodEach {
    quotas: Lister<Typed<ResourceQuota>>,
    pods: Lister<Typed<Pod>>,
}

steersman_runtime::reasons! {
    /// Why pods are made.
    pub(crate) enum Why {
        /// There is none.
        NoPod => "there is no pod",
    }
}

impl Reconciler for OnePodEach {
    async fn reconcile(&self, cx: &Context, key: &ObjectKey) -> Result<Action, Error> {
        let Some(quota) = self.quotas.get(key) else { return Ok(Action::Done) };
        let app = |pod: &Typed<Pod>| pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).cloned();
        let is_ours = |pod: &Typed<Pod>| app(pod).as_deref() == Some(&key.name);
        if self.pods.namespace(&key.namespace).filter(is_ours).is_empty() {
            let mut pod = objects::pod("").app(&key.name);
            pod.metadata.name = None;
            pod.metadata.generate_name = Some(format!("{}-", key.name));
            pod.metadata.namespace = Some(key.namespace.to_string());
            cx.writer.on_behalf_of(View::meta(&*quota)).create_object(&pod, &Why::NoPod).await?;
        }
        Ok(Action::Done)
    }
}

pub(crate) fn add_one_pod_each(manager: &Manager) {
    add_one_pod_each_with(manager, |builder| builder);
}

pub(crate) fn add_one_pod_each_with(manager: &Manager, options: impl FnOnce(OnePodEachBuilder) -> OnePodEachBuilder) {
    let reconciler = OnePodEach { quotas: manager.lister(), pods: manager.lister() };
    let builder = manager.controller::<ResourceQuota>("one-pod-each").owns::<Pod>();
    options(builder).reconcile_with(reconciler);
}

pub(crate) type OnePodEachBuilder = Builder<Typed<ResourceQuota>>;

/// A manager that runs until it is stopped.
pub(crate) struct Running {
    pub(crate) manager: Manager,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), ManagerError>>,
}

impl Running {
    pub(crate) fn start(manager: Manager) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let manager = manager.clone();
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        Self { manager, stop, task }
    }

    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        Ok(self.task.await??)
    }
}

/// A manager of its own, with a lease.
pub(crate) fn run_one_pod_each(client: kube::Client, identity: &str) -> Result<Running, Failure> {
    let manager = Manager::new(client, ManagerOptions::default().lease(lease(identity)))?;
    add_one_pod_each(&manager);
    Ok(Running::start(manager))
}

pub(crate) fn lease(identity: &str) -> LeaseOptions {
    LeaseOptions::new("default", "lease").identity(identity).release_on_exit()
}

/// What `/readyz?verbose` shows to those who may know.
pub(crate) fn ready(manager: &Manager) -> Report {
    probe(manager, Probe::Readyz)
}

pub(crate) fn probe(manager: &Manager, probe: Probe) -> Report {
    let mut ask = Ask::default();
    ask.verbose = true;
    ask.reasons = Reasons::Shown;
    manager.health().report(probe, &ask)
}
