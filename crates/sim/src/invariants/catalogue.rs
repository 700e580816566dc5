//! All invariants, in the order in which they are checked.

use super::{
    Case, Findings, Judged, Rest, Verdict, accounts, availability, budgets, certificates, collection, conditions,
    creates, cron, daemons, devices, endpoints, ephemeral, jobs, leadership, lifetimes, mirrors, namespaces, nodes,
    ownership, pod_gc, policies, quotas, ranges, ranking, replicas, revisions, scaling, stateful, statuses, storage,
    surge, tokens,
};

/// Judges a write.
type AtWrite = fn(&Case<'_>) -> Verdict;
/// Judges the world at rest.
type AtRest = fn(&Rest<'_>, &mut Findings);

macro_rules! rows {
    ($($judged:ident $module:ident :: $name:ident),* $(,)?) => {
        &[$((stringify!($name), Judged::$judged, $module::$name)),*]
    };
}

/// Returns the invariants that are checked after every write.
pub(super) const AT_WRITE: &[(&str, Judged, AtWrite)] = rows![
    Shown availability::rolling_updates_keep_their_available_pods,
    Shown availability::scaling_down_stops_at_the_wanted_number,
    Shown availability::recreation_waits_for_the_end_of_old_pods,
    Shown surge::replica_sets_ask_for_no_more_than_the_surge,
    Shown surge::no_more_pods_than_wanted_are_created,
    Shown ranking::pods_that_are_missed_least_go_first,
    Shown creates::at_most_the_needed_pods_are_created,
    Shown creates::a_template_has_one_replica_set,
    Store collection::nothing_with_a_living_owner_is_collected,
    Store collection::nothing_without_owners_is_collected,
    Shown collection::orphans_are_let_go_before_their_owner_goes,
    Shown collection::foreground_owners_go_after_what_blocks_them,
    Store collection::the_collector_takes_off_its_own_finalizers_alone,
    Store collection::references_to_living_owners_stay,
    Store leadership::no_write_by_a_deposed_leader,
    Store leadership::controllers_write_only_what_is_theirs,
    Store conditions::availability_is_told_as_it_is_counted,
    Store conditions::a_roll_out_is_through_when_all_pods_are_new_and_available,
    Store conditions::a_deadline_is_exceeded_only_after_it,
    Shown conditions::a_failure_is_that_of_a_replica_set,
    Store conditions::a_failed_create_is_told_while_pods_are_missing,
    Store conditions::a_condition_stands_once_and_changes_its_time_with_its_status,
    Store statuses::observed_generation_is_never_ahead_and_never_goes_back,
    Shown statuses::a_replica_set_counts_its_pods,
    Shown statuses::a_deployment_adds_up_its_replica_sets,
    Store endpoints::slices_are_within_their_limits,
    Store endpoints::endpoints_stand_for_pods_that_existed,
    Shown endpoints::ready_endpoints_are_ready_pods,
    Store ownership::at_most_one_owner_controls,
    Shown ownership::adoption_is_of_matching_orphans_by_living_owners,
    Shown ownership::what_matches_is_not_released,
    Shown ownership::what_is_created_belongs_to_its_creator,
    Store namespaces::a_namespace_is_let_go_only_when_empty,
    Store namespaces::a_namespace_tells_what_is_left,
    Shown namespaces::nothing_is_published_into_a_namespace_that_goes,
    Shown accounts::tokens_go_only_with_their_account,
    Shown pod_gc::running_pods_on_living_nodes_are_left_alone,
    Shown pod_gc::ended_pods_are_kept_up_to_the_threshold,
    Store revisions::revisions_only_grow,
    Shown revisions::no_needed_replica_set_is_forgotten,
    Shown stateful::pods_start_in_the_order_of_their_ordinals,
    Shown stateful::ordinals_below_the_partition_keep_their_revision,
    Shown stateful::surplus_ordinals_go_from_the_highest_down,
    Shown stateful::stateful_updates_keep_their_available_pods,
    Shown daemons::a_node_has_one_pod_of_a_daemon_set,
    Shown daemons::daemons_start_where_they_should_run,
    Shown daemons::no_more_nodes_surge_than_may,
    Shown daemons::daemon_updates_keep_their_available_pods,
    Shown jobs::no_pod_is_created_for_a_completed_index,
    Shown jobs::no_more_pods_are_active_than_the_parallelism,
    Store jobs::counts_of_a_job_never_fall,
    Store jobs::no_pod_is_counted_twice,
    Store jobs::pods_are_let_go_after_they_are_counted,
    Shown jobs::a_job_ends_after_its_pods,
    Store jobs::a_finished_job_is_left_alone,
    Shown cron::jobs_do_not_run_beside_each_other,
    Shown cron::no_time_is_started_twice,
    Shown cron::running_jobs_and_the_history_are_kept,
    Shown budgets::no_eviction_is_granted_beyond_the_budget,
    Shown budgets::granted_evictions_are_not_forgotten,
    Store nodes::no_two_nodes_have_one_range,
    Shown nodes::only_nodes_that_are_not_ready_are_emptied,
    Shown nodes::only_pods_that_do_not_tolerate_are_evicted,
    Store nodes::no_zone_is_emptied_faster_than_its_rate,
    Store certificates::a_certificate_has_no_more_than_its_signer_may_give,
    Shown scaling::autoscalers_stay_within_their_bounds,
    Shown scaling::pods_are_added_as_fast_as_policies_allow,
    Store scaling::pods_of_two_autoscalers_are_scaled_by_neither,
    Shown storage::a_bound_claim_has_a_volume_of_its_own,
    Store storage::a_volume_with_data_is_not_given_to_another_claim,
    Shown storage::a_claim_in_use_stays,
    Shown storage::a_volume_of_one_writer_is_attached_once,
    Store lifetimes::jobs_live_for_their_time_to_live,
    Shown quotas::a_quota_counts_what_is_there,
    Shown devices::pods_that_may_run_keep_their_devices,
    Store devices::no_claim_in_use_loses_its_devices,
    Shown devices::only_pods_with_tainted_devices_are_evicted,
    Shown ephemeral::claims_of_pods_are_made_for_pods_that_stay,
    Shown storage::a_class_in_use_stays,
    Store ranges::no_range_goes_while_addresses_depend_on_it,
    Store tokens::tokens_live_until_they_expire,
];

/// Returns the invariants that are checked once the world is quiet.
pub(super) const AT_REST: &[(&str, Judged, AtRest)] = rows![
    Rest replicas::every_set_has_its_replicas,
    Rest replicas::statuses_of_sets_are_true_at_rest,
    Rest replicas::deployments_are_rolled_out,
    Rest replicas::statuses_of_deployments_are_true_at_rest,
    Rest ownership::orphans_that_match_are_adopted,
    Rest ownership::what_does_not_match_is_released,
    Rest revisions::history_is_kept_to_its_limit,
    Rest revisions::the_new_replica_set_has_the_highest_revision,
    Rest collection::all_garbage_is_collected,
    Rest collection::no_reference_leads_nowhere,
    Rest collection::finalizers_of_the_collector_are_taken_off,
    Rest endpoints::slices_are_those_of_the_pods,
    Rest endpoints::endpoints_are_those_of_the_pods,
    Rest endpoints::no_endpoints_without_a_service,
    Rest namespaces::deleted_namespaces_are_gone,
    Rest namespaces::nothing_is_left_of_a_namespace_that_is_gone,
    Rest accounts::every_namespace_has_its_default_account,
    Rest accounts::every_namespace_has_the_root_certificate,
    Rest accounts::tokens_follow_their_accounts,
    Rest pod_gc::no_pod_waits_for_a_node_that_is_gone,
    Rest stateful::every_ordinal_has_its_pod,
    Rest stateful::stateful_sets_are_rolled_out,
    Rest stateful::statuses_of_stateful_sets_are_true_at_rest,
    Rest stateful::claims_that_nobody_uses_are_let_go,
    Rest daemons::every_node_has_its_daemons,
    Rest daemons::statuses_of_daemon_sets_are_true_at_rest,
    Rest jobs::every_job_goes_on_or_has_finished,
    Rest jobs::statuses_of_jobs_are_true_at_rest,
    Rest jobs::finalizers_of_jobs_are_taken_off,
    Rest cron::cron_jobs_know_their_jobs,
    Rest budgets::budgets_are_true_at_rest,
    Rest mirrors::endpoints_are_mirrored,
    Rest mirrors::roles_are_the_sums_of_their_parts,
    Rest nodes::taints_are_those_of_the_conditions_at_rest,
    Rest nodes::every_node_has_a_range,
    Rest certificates::no_old_request_is_left,
    Rest scaling::replicas_are_what_the_load_asks_for,
    Rest storage::claims_and_volumes_fit_at_rest,
    Rest storage::no_attachment_is_left_without_a_pod,
    Rest lifetimes::expired_jobs_are_deleted,
    Rest quotas::quotas_are_true_at_rest,
    Rest devices::devices_belong_to_pods_at_rest,
    Rest devices::every_pod_has_its_claims,
    Rest ephemeral::every_pod_has_its_volumes,
    Rest storage::only_what_is_in_use_is_kept,
    Rest storage::classes_are_protected_or_gone,
    Rest ranges::ranges_are_ready_or_needed,
    Rest tokens::expired_tokens_are_deleted,
    Rest tokens::information_is_signed_by_every_token,
    Rest policies::policies_are_checked,
];

/// What is asked of the managers themselves, once the world is quiet: each write that the store saw of a manager that lives
/// is in its decision log, with a reason. ("Every write has a reason": the design's own principle 4.)
pub(crate) const REASONS: &str = "every_write_has_a_reason_in_the_decision_log";

/// The name of every invariant, and against what it is judged.
pub fn catalogue() -> impl Iterator<Item = (&'static str, Judged)> {
    let at_write = AT_WRITE.iter().map(|(name, judged, _)| (*name, *judged));
    let at_rest = AT_REST.iter().map(|(name, judged, _)| (*name, *judged));
    at_write.chain(at_rest).chain([(REASONS, Judged::Rest)])
}
