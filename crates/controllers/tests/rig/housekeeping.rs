//! Namespaces, accounts, certificates, tokens and forgotten pods on a real kube-apiserver.

use steersman_controllers::{namespace, pod_gc, service_account};
use steersman_testing::{Failure, TestCluster};

use crate::housekeeping_setup as setup;
use crate::{accounts_scenarios, namespace_scenarios, pod_gc_scenarios};

macro_rules! on_the_rig {
    ($($module:ident::$scenario:ident with $controllers:expr),* $(,)?) => {$(
        #[tokio::test]
        async fn $scenario() -> Result<(), Failure> {
            let cluster = TestCluster::builder().controllers($controllers).start_on_rig().await?;
            $module::$scenario(&cluster).await?;
            cluster.stop().await
        }
    )*};
}

on_the_rig! {
    namespace_scenarios::everything_in_a_deleted_namespace_goes_and_then_it_does with &[namespace::DESCRIPTOR],
    namespace_scenarios::a_finalizer_holds_the_namespace_and_its_conditions_say_so with &[namespace::DESCRIPTOR],
    accounts_scenarios::a_namespace_has_a_default_account_and_gets_it_back with &[service_account::DESCRIPTOR],
    accounts_scenarios::a_namespace_has_the_root_certificate_and_gets_it_back with &[setup::ROOT_CA_PUBLISHER],
    accounts_scenarios::a_secret_gets_a_token_and_goes_with_its_account with &[setup::TOKENS],
    accounts_scenarios::a_deleted_secret_is_taken_off_the_list_of_its_account with &[setup::TOKENS],
    pod_gc_scenarios::a_terminating_pod_without_a_node_goes_at_once with &[pod_gc::DESCRIPTOR],
    pod_gc_scenarios::a_terminating_pod_on_a_node_out_of_service_goes_at_once with &[pod_gc::DESCRIPTOR],
}
