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

on_the_rig! {
    a_pod_is_scheduled_runs_is_ready_and_goes,
    a_pod_does_what_its_command_says,
    a_pod_waits_for_room,
    a_gated_pod_waits_for_its_gate,
    a_finalizer_keeps_a_pod_that_has_ended,
    nodes_register_and_can_be_taken_away,
}
