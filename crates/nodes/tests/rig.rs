//! The scenarios on a real kube-apiserver: `cargo xtask k8s test`.

use steersman_testing::{Failure, TestCluster};

#[path = "scenarios/lives.rs"]
mod lives;

macro_rules! on_the_rig {
    ($($scenario:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = TestCluster::builder().nodes(2).start_on_rig().await?;
            lives::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

lives::scenarios!(on_the_rig);
