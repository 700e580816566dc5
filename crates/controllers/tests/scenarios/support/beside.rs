//! A manager beside the cluster's own: one that starts later, has another way to the server, or dies.

use kube::Client;
use steersman_base::Istr;
use steersman_runtime::{Manager, ManagerError, ManagerOptions};
use steersman_testing::{Failure, TestCluster};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::controllers::Controller;

/// A manager that runs.
pub(crate) struct Beside {
    manager: Manager,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

// === impl Beside ===

impl Beside {
    /// Starts a manager that sees the whole cluster.
    pub(crate) fn start(cluster: &TestCluster, client: Client, controllers: &[Controller]) -> Result<Self, Failure> {
        Self::start_with(client, controllers, ManagerOptions::default().clock(cluster.clock().clone()))
    }

    /// Starts a manager that sees the test's namespace alone, as it must where other tests run on the same server.
    pub(crate) fn start_within(
        cluster: &TestCluster,
        client: Client,
        controllers: &[Controller],
    ) -> Result<Self, Failure> {
        let namespace = Istr::interned(cluster.namespace());
        let options = ManagerOptions::default().clock(cluster.clock().clone()).namespace(namespace);
        Self::start_with(client, controllers, options)
    }

    fn start_with(client: Client, controllers: &[Controller], options: ManagerOptions) -> Result<Self, Failure> {
        Self::run(Manager::new(client, options)?, controllers)
    }

    /// Runs a manager with these controllers; fails if one of them is disabled.
    pub(crate) fn run(manager: Manager, controllers: &[Controller]) -> Result<Self, Failure> {
        steersman_testing::build(&manager, controllers)?;
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let manager = manager.clone();
            let stop = stop.clone();
            async move { manager.run(stop).await }
        });
        Ok(Self { manager, stop, task })
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
