//! The garbage collector on a real kube-apiserver.

use steersman_controllers::{garbage_collector, replicaset};
use steersman_runtime::Descriptor;
use steersman_testing::{Failure, TestCluster};

#[path = "../scenarios/garbage_collector.rs"]
mod scenarios;

const ALONE: &[Descriptor] = &[garbage_collector::DESCRIPTOR];
const WITH_SETS: &[Descriptor] = &[garbage_collector::DESCRIPTOR, replicaset::DESCRIPTOR];

macro_rules! on_the_rig {
    ($($scenario:ident with $controllers:expr),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let builder = TestCluster::builder().define(scenarios::definition_of_cakes());
            let cluster = builder.controllers($controllers).start_on_rig().await?;
            scenarios::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

on_the_rig! {
    test_cascading_deletion with ALONE,
    test_orphaning with ALONE,
    what_belongs_to_nobody_goes with ALONE,
    foreground_waits_for_what_blocks with ALONE,
    a_solid_owner_lets_a_waiting_one_go with ALONE,
    cycles_are_opened with ALONE,
    a_dependent_goes_as_its_finalizers_ask with ALONE,
    a_cluster_wide_owner_takes_its_dependents_along with ALONE,
    custom_resources_are_collected_and_left_behind with ALONE,
    a_session_with_cascade_orphan with WITH_SETS,
}
