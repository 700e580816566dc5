//! A server, and processes that want to lead.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;
use steersman_apiserver::{ApiServer, Options};
use steersman_base::{Clock, Time};
use steersman_runtime::lease::{Elector, Ended, Leadership, LeaseOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::door::Door;

/// The defaults, which the scenarios are about.
pub(crate) const DURATION: Duration = Duration::from_secs(15);
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
pub(crate) const RETRY: Duration = Duration::from_secs(2);

const EPOCH: Time = Time::from_unix(1_794_744_000);

pub(crate) struct World {
    pub(crate) server: ApiServer,
    client: Client,
    clock: Clock,
}

/// A process that wants to lead.
pub(crate) struct Candidate {
    pub(crate) leadership: Leadership,
    pub(crate) door: Door,
    stop: CancellationToken,
    frozen: watch::Sender<bool>,
    task: JoinHandle<Ended>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at(EPOCH);
        let server = ApiServer::new(Options::default().clock(clock.clone()));
        Self { client: Client::new(server.clone(), "default"), server, clock }
    }

    pub(crate) fn elector(
        &self,
        door: Door,
        clock: Clock,
        identity: &str,
        change: impl FnOnce(&mut LeaseOptions),
    ) -> Elector {
        let mut options = LeaseOptions::new("kube-system", "test").identity(identity);
        change(&mut options);
        Elector::new(Client::new(door, "default"), options, clock).unwrap()
    }

    pub(crate) fn start(&self, identity: &str) -> Candidate {
        self.start_with(identity, |_| {})
    }

    pub(crate) fn start_with(&self, identity: &str, change: impl FnOnce(&mut LeaseOptions)) -> Candidate {
        let door = Door::new(&self.server);
        Candidate::run(self.elector(door.clone(), self.clock.clone(), identity, change), door)
    }

    pub(crate) fn start_at(&self, clock: Clock, identity: &str) -> Candidate {
        let door = Door::new(&self.server);
        Candidate::run(self.elector(door.clone(), clock, identity, |_| {}), door)
    }

    pub(crate) fn start_through(&self, door: Door, identity: &str) -> Candidate {
        Candidate::run(self.elector(door.clone(), self.clock.clone(), identity, |_| {}), door)
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), "kube-system")
    }

    pub(crate) async fn lease(&self) -> Option<Lease> {
        self.leases().get_opt("test").await.unwrap()
    }

    /// Somebody else changes the lease.
    pub(crate) async fn change(&self, change: impl FnOnce(&mut Lease)) {
        let mut lease = self.lease().await.unwrap();
        change(&mut lease);
        self.leases().replace("test", &PostParams::default(), &lease).await.unwrap();
    }

    pub(crate) async fn delete(&self) {
        self.leases().delete("test", &DeleteParams::default()).await.unwrap();
    }

    /// The body of a request that creates one.
    pub(crate) fn config_map(&self, name: &str) -> Vec<u8> {
        json!({"metadata": {"name": name}}).to_string().into()
    }

    pub(crate) async fn post_config_map(&self, body: Body) -> Result<(), kube::Error> {
        let request = Request::post("/api/v1/namespaces/default/configmaps").header("content-type", "application/json");
        self.client.send(request.body(body).unwrap()).await.map(drop)
    }

    pub(crate) async fn has_config_map(&self, name: &str) -> bool {
        Api::<ConfigMap>::namespaced(self.client.clone(), "default").get_opt(name).await.unwrap().is_some()
    }
}

impl Candidate {
    pub(crate) fn run(elector: Elector, door: Door) -> Self {
        let leadership = elector.leadership();
        let stop = CancellationToken::new();
        let (frozen, thaws) = watch::channel(false);
        let task = tokio::spawn(freezing(elector.run(stop.clone()), thaws));
        Self { leadership, door, stop, frozen, task }
    }

    /// The process stands still: none of its tasks runs, and its clock does.
    #[must_use]
    pub(crate) fn freeze(&self) -> Leadership {
        self.set_frozen(true);
        self.leadership.clone()
    }

    pub(crate) fn set_frozen(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    pub(crate) async fn stop(self) -> Ended {
        self.stop.cancel();
        self.ended().await
    }

    pub(crate) async fn ended(mut self) -> Ended {
        (&mut self.task).await.unwrap()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a future, but while it is frozen.
async fn freezing<F: Future>(future: F, mut frozen: watch::Receiver<bool>) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        if frozen.wait_for(|frozen| !frozen).await.is_err() {
            // Nobody is left who could freeze it.
            return future.await;
        }
        tokio::select! {
            biased;
            changed = frozen.changed() => {
                if changed.is_err() {
                    return future.await;
                }
            }
            output = &mut future => return output,
        }
    }
}

pub(crate) fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}
