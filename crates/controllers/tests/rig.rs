//! The scenarios on a real kube-apiserver: `cargo xtask k8s test`.

use steersman_controllers::replicaset;
use steersman_testing::{Failure, TestCluster};

#[path = "scenarios/replicaset.rs"]
mod replicaset_scenarios;

macro_rules! on_the_rig {
    ($($scenario:ident with $controllers:expr),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = TestCluster::builder().controllers($controllers).start_on_rig().await?;
            replicaset_scenarios::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

on_the_rig! {
    a_deleted_pod_is_replaced_and_status_follows with &[replicaset::DESCRIPTOR],
    scaling_down_deletes_the_surplus_and_keeps_the_ready_ones with &[replicaset::DESCRIPTOR],
    an_orphan_is_adopted_and_a_stranger_is_released with &[replicaset::DESCRIPTOR],
    events_tell_which_pods_were_created_and_deleted with &[replicaset::DESCRIPTOR],
}
