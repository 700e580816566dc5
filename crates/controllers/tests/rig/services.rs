//! Endpoints and slices on a real kube-apiserver.

use steersman_controllers::{endpoint_slice, endpoints};
use steersman_testing::{Failure, TestCluster};

use crate::services_scenarios as scenarios;

macro_rules! on_the_rig {
    ($($scenario:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let both = &[endpoints::DESCRIPTOR, endpoint_slice::DESCRIPTOR];
            let cluster = TestCluster::builder().controllers(both).start_on_rig().await?;
            scenarios::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

on_the_rig! {
    endpoints_follow_their_pods,
    a_named_port_is_looked_up_on_each_pod,
    a_terminating_pod_is_serving_and_not_ready,
    services_without_selector_are_left_to_others,
    hints_follow_the_traffic_distribution,
    more_than_a_thousand_pods_fill_slices_and_overflow_endpoints,
    what_others_do_to_slices_is_undone,
    a_pod_without_node_waits_for_it,
    endpoints_go_with_their_service,
}
