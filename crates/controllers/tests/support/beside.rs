//! A manager beside the cluster's own: one that starts later, has another way to the server, or dies.
#![allow(dead_code, reason = "each test program uses a part of it")]

use kube::Client;
use steersman_base::Istr;
use steersman_runtime::{Descriptor, Manager, ManagerError, ManagerOptions};
use steersman_testing::{Failure, TestCluster};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A manager that runs.
pub(crate) struct Beside {
    manager: Manager,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

// === impl Beside ===

impl Beside {
    /// Starts a manager that sees the whole cluster.
    pub(crate) fn start(cluster: &TestCluster, client: Client, controllers: &[Descriptor]) -> Result<Self, Failure> {
        Self::start_with(client, controllers, ManagerOptions { clock: cluster.clock().clone(), ..Default::default() })
    }

    /// Starts a manager that sees the test's namespace alone, as it must where other tests run on the same server.
    pub(crate) fn start_within(
        cluster: &TestCluster,
        client: Client,
        controllers: &[Descriptor],
    ) -> Result<Self, Failure> {
        let namespace = Some(Istr::interned(cluster.namespace()));
        let options = ManagerOptions { clock: cluster.clock().clone(), namespace, ..ManagerOptions::default() };
        Self::start_with(client, controllers, options)
    }

    fn start_with(client: Client, controllers: &[Descriptor], options: ManagerOptions) -> Result<Self, Failure> {
        Ok(Self::run(Manager::new(client, options)?, controllers))
    }

    /// Runs a manager with these controllers.
    pub(crate) fn run(manager: Manager, controllers: &[Descriptor]) -> Self {
        for descriptor in controllers {
            let _ = manager.build(descriptor, None);
        }
        let (running, stop) = (manager.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task = tokio::spawn(async move { running.run(stopped).await });
        Self { manager, stop, task }
    }

    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    /// An orderly end.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.stop.cancel();
        self.task.await.map_err(|error| Failure::new(format!("the manager ended badly: {error}")))??;
        Ok(())
    }

    /// No orderly end: it is gone.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
        self.manager.informers().stop().await;
    }
}
