//! The binary beside real parts of Kubernetes: `cargo xtask k8s test`.
//!
//! The controller manager runs on the rig's kube-apiserver; the rig's kubectl talks to our own API server.

#[path = "../shared/absent.rs"]
mod absent;
mod accounts;
mod audit;
mod everything;
mod examples;
mod gates;
mod install;
mod kubectl;
mod kubectl_cascade;
mod kubectl_certificates;
mod kubectl_cluster;
mod kubectl_metrics;
mod kubectl_nodes;
mod kubectl_rollout;
mod manager;
mod metrics;
mod migration;
mod pages;
mod syntax;
mod trouble;
mod up;
mod up_flags;
mod up_nodes;

use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman_testing::objects::{self, WorkloadBuilder as _};
use steersman_testing::{Failure, TestCluster};

/// A manager looks after all namespaces: two of them at once would be two cooks.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A running `steersman`; it ends with the test.
struct Binary(std::process::Child);

impl Binary {
    fn start(args: &[&str]) -> Result<Self, Failure> {
        let kubeconfig = std::env::var("STEERSMAN_RIG_KUBECONFIG")?;
        let child = Command::new(env!("CARGO_BIN_EXE_steersman"))
            .args(args)
            .arg(format!("--kubeconfig={kubeconfig}"))
            .stdin(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    /// Asks it to end, and answers whether it did so in good order.
    async fn terminate(mut self) -> Result<bool, Failure> {
        Command::new("kill").arg(self.0.id().to_string()).status()?;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.success());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        // It has ended already, or is not wanted any more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_binary_keeps_a_replica_set_and_ends_in_good_order() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    let cluster = TestCluster::builder().start_on_rig().await?;
    let binary =
        Binary::start(&["controller-manager", "--controllers=replicaset", "--leader-elect=false", "--secure-port=0"])?;

    let set = cluster.create(objects::replica_set("web").replicas(3)).await?;
    let pods = cluster.pods_of(&set).until_count(3).await?;
    cluster.delete::<Pod>(pods[0].metadata.name.as_deref().unwrap_or_default()).await?;
    let after = cluster.pods_of(&set).until_count(3).await?;
    assert!(after.iter().all(|pod| pod.metadata.uid != pods[0].metadata.uid));

    assert!(binary.terminate().await?, "SIGTERM ends it with success");
    cluster.stop().await
}

#[tokio::test]
async fn an_api_that_is_absent_disables_who_needs_it_and_nobody_else() -> Result<(), Failure> {
    let _alone = ALONE.lock().await;
    absent::disables_who_needs_it(TestCluster::builder().start_on_rig().await?).await
}
