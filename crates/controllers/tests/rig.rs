//! The scenarios on a real kube-apiserver: `cargo xtask k8s test`.

use steersman_controllers::{deployment, replicaset, replication_controller};
use steersman_runtime::Descriptor;
use steersman_testing::{Failure, TestCluster};

#[path = "scenarios/accounts.rs"]
mod accounts_scenarios;
#[path = "scenarios/deployment.rs"]
mod deployment_scenarios;
#[path = "rig/garbage_collector.rs"]
mod garbage_collector;
#[path = "rig/housekeeping.rs"]
mod housekeeping;
#[path = "housekeeping/setup.rs"]
mod housekeeping_setup;
#[path = "scenarios/namespace.rs"]
mod namespace_scenarios;
#[path = "scenarios/pod_gc.rs"]
mod pod_gc_scenarios;
#[path = "scenarios/replicaset.rs"]
mod replicaset_scenarios;
#[path = "scenarios/replication_controller.rs"]
mod replication_controller_scenarios;
#[path = "rig/services.rs"]
mod services;
#[path = "scenarios/services.rs"]
mod services_scenarios;

const REPLICA_SET: &[Descriptor] = &[replicaset::DESCRIPTOR];
const REPLICATION_CONTROLLER: &[Descriptor] = &[replication_controller::DESCRIPTOR];
const DEPLOYMENT: &[Descriptor] = &[deployment::DESCRIPTOR, replicaset::DESCRIPTOR];

macro_rules! on_the_rig {
    ($($module:ident :: $scenario:ident with $controllers:ident on $nodes:literal nodes),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let builder = TestCluster::builder().controllers($controllers);
            let cluster = if $nodes > 0 { builder.nodes($nodes) } else { builder }.start_on_rig().await?;
            $module::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

on_the_rig! {
    replicaset_scenarios::a_deleted_pod_is_replaced_and_status_follows with REPLICA_SET on 0 nodes,
    replicaset_scenarios::scaling_down_deletes_the_surplus_and_keeps_the_ready_ones with REPLICA_SET on 0 nodes,
    replicaset_scenarios::an_orphan_is_adopted_and_a_stranger_is_released with REPLICA_SET on 0 nodes,
    replicaset_scenarios::events_tell_which_pods_were_created_and_deleted with REPLICA_SET on 0 nodes,
    replicaset_scenarios::a_pod_becomes_available_when_its_time_has_come with REPLICA_SET on 0 nodes,
    replicaset_scenarios::a_pod_that_ends_slowly_is_replaced_and_counted with REPLICA_SET on 0 nodes,
    replication_controller_scenarios::a_controller_keeps_its_number_of_pods with REPLICATION_CONTROLLER on 0 nodes,
    replication_controller_scenarios::a_controller_adopts_and_tells with REPLICATION_CONTROLLER on 0 nodes,
    deployment_scenarios::pods_come_and_status_tells_it with DEPLOYMENT on 2 nodes,
    deployment_scenarios::a_roll_out_stays_within_its_limits with DEPLOYMENT on 2 nodes,
    deployment_scenarios::a_recreated_one_never_runs_both with DEPLOYMENT on 2 nodes,
    deployment_scenarios::a_paused_one_waits_and_goes_on with DEPLOYMENT on 2 nodes,
    deployment_scenarios::going_back_takes_the_old_replica_set with DEPLOYMENT on 2 nodes,
    deployment_scenarios::an_annotation_rolls_back with DEPLOYMENT on 2 nodes,
    deployment_scenarios::history_beyond_its_limit_is_forgotten with DEPLOYMENT on 2 nodes,
    deployment_scenarios::a_roll_out_that_gets_nowhere_says_so with DEPLOYMENT on 0 nodes,
    deployment_scenarios::a_replica_set_with_another_hash_is_kept with DEPLOYMENT on 0 nodes,
    deployment_scenarios::a_name_that_is_taken_makes_another with DEPLOYMENT on 2 nodes,
    deployment_scenarios::scaling_in_the_middle_is_proportional with DEPLOYMENT on 0 nodes,
}
