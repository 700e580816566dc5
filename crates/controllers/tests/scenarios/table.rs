//! Which scenarios there are. Each is told once here, and so runs on every kind of server there is.

/// Scenarios that keep to the test's own namespace: on the rig they run beside each other.
macro_rules! scenarios {
    ($run:ident) => {
        $run! {
            replicaset::a_deleted_pod_is_replaced_and_status_follows on replicaset::cluster,
            replicaset::scaling_down_deletes_the_surplus_and_keeps_the_ready_ones on replicaset::cluster,
            replicaset::an_orphan_is_adopted_and_a_stranger_is_released on replicaset::cluster,
            replicaset::events_tell_which_pods_were_created_and_deleted on replicaset::cluster,
            replicaset::a_pod_becomes_available_when_its_time_has_come on replicaset::cluster,
            replicaset::a_pod_that_ends_slowly_is_replaced_and_counted on replicaset::cluster,
            replicaset::in_a_terminating_namespace_pods_that_go_are_not_missed on steersman_testing::TestCluster::builder,
            replication_controller::a_controller_keeps_its_number_of_pods on replication_controller::cluster,
            replication_controller::a_controller_adopts_and_tells on replication_controller::cluster,
            deployment::pods_come_and_status_tells_it on deployment::with_nodes,
            deployment::a_roll_out_stays_within_its_limits on deployment::with_nodes,
            deployment::a_smaller_number_and_a_new_image_in_one_patch on deployment::with_nodes,
            deployment::going_back_in_the_middle_misses_nobody on deployment::with_nodes,
            deployment::a_node_selector_without_a_value_is_rolled_out on deployment::cluster,
            deployment::a_recreated_one_never_runs_both on deployment::with_nodes,
            deployment::a_paused_one_waits_and_goes_on on deployment::with_nodes,
            deployment::going_back_takes_the_old_replica_set on deployment::with_nodes,
            deployment::an_annotation_rolls_back on deployment::with_nodes,
            deployment::history_beyond_its_limit_is_forgotten on deployment::with_nodes,
            deployment::a_roll_out_that_gets_nowhere_says_so on deployment::cluster,
            deployment::a_replica_set_with_another_hash_is_kept on deployment::cluster,
            deployment::a_name_that_is_taken_makes_another on deployment::with_nodes,
            deployment::scaling_in_the_middle_is_proportional on deployment::cluster,
            gates::the_cheaper_pod_goes_first on replicaset::cluster,
            gates::a_cost_does_not_count on gates::without_costs,
            gates::status_tells_how_many_pods_terminate on deployment::cluster,
            gates::status_does_not_tell_how_many_pods_terminate on gates::without_counting,
            garbage_collector::test_cascading_deletion on garbage_collector::alone,
            garbage_collector::test_orphaning on garbage_collector::alone,
            garbage_collector::what_belongs_to_nobody_goes on garbage_collector::alone,
            garbage_collector::foreground_waits_for_what_blocks on garbage_collector::alone,
            garbage_collector::a_solid_owner_lets_a_waiting_one_go on garbage_collector::alone,
            garbage_collector::cycles_are_opened on garbage_collector::alone,
            garbage_collector::a_dependent_goes_as_its_finalizers_ask on garbage_collector::alone,
            garbage_collector::a_cluster_wide_owner_takes_its_dependents_along on garbage_collector::alone,
            garbage_collector::custom_resources_are_collected_and_left_behind on garbage_collector::alone,
            garbage_collector::a_session_with_cascade_orphan on garbage_collector::with_sets,
            services::endpoints_follow_their_pods on services::cluster,
            services::a_named_port_is_looked_up_on_each_pod on services::cluster,
            services::a_terminating_pod_is_serving_and_not_ready on services::cluster,
            services::services_without_selector_are_left_to_others on services::cluster,
            services::hints_follow_the_traffic_distribution on services::cluster,
            services::more_than_a_thousand_pods_fill_slices_and_overflow_endpoints on services::cluster,
            services::what_others_do_to_slices_is_undone on services::cluster,
            services::a_pod_without_node_waits_for_it on services::cluster,
            services::endpoints_go_with_their_service on services::cluster,
            namespace::everything_in_a_deleted_namespace_goes_and_then_it_does on namespace::cluster,
            namespace::a_finalizer_holds_the_namespace_and_its_conditions_say_so on namespace::cluster,
            accounts::a_namespace_has_a_default_account_and_gets_it_back on setup::accounts,
            accounts::a_namespace_has_the_root_certificate_and_gets_it_back on setup::certificates,
            accounts::a_secret_gets_a_token_and_goes_with_its_account on setup::tokens,
            accounts::a_deleted_secret_is_taken_off_the_list_of_its_account on setup::tokens,
            pod_gc::a_terminating_pod_without_a_node_goes_at_once on pod_gc::cluster,
            pod_gc::a_terminating_pod_on_a_node_out_of_service_goes_at_once on pod_gc::cluster,
            pod_gc::a_pod_on_a_node_that_is_gone_fails_and_goes on pod_gc::cluster,
            pod_gc::of_too_many_ended_pods_the_evicted_go_first_and_then_the_oldest on pod_gc::keeping_two,
            issues::issue_125638_however_fast_pods_flap_the_last_state_stays on steersman_testing::TestCluster::builder,
            issues::issue_127370_a_write_that_changes_nothing_stalls_nobody on services::cluster,
            issues::issue_130767_a_lagging_cache_never_makes_a_second_pod on steersman_testing::TestCluster::builder,
            issues::issue_132805_events_do_not_inflate_the_back_off on replicaset::cluster,
            issues::issue_141382_healthy_objects_are_not_looked_at_for_ever on garbage_collector::alone,
        }
    };
}

/// Scenarios that need all nodes, or all of the API, for themselves: on the rig each has a cluster of its own.
macro_rules! scenarios_alone {
    ($run:ident) => {
        $run! {
            services::topology_hints_come_and_go_and_are_told_of on services::cluster,
            services::a_pod_with_addresses_of_two_families_has_endpoints_in_both on services::with_two_families,
        }
    };
}

pub(crate) use {scenarios, scenarios_alone};
