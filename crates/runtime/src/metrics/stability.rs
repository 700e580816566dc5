//! Pure: the stability of upstream's metrics, which is at the beginning of each help text.
//!
//! One table, because the level is upstream's promise about a name, and not a property of the code that counts.

/// Upstream's levels (`component-base/metrics/opts.go`, 1.37.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stability {
    /// May change or be removed with any release.
    Alpha,
    /// Removed a release after it was deprecated.
    Beta,
    /// Removed three releases after it was deprecated.
    Stable,
}

const ALPHA: [&str; 54] = [
    "authenticated_user_requests",
    "authentication_attempts",
    "authentication_duration_seconds",
    "authentication_token_cache_active_fetch_count",
    "authentication_token_cache_fetch_total",
    "authentication_token_cache_request_duration_seconds",
    "authentication_token_cache_request_total",
    "authorization_attempts_total",
    "authorization_duration_seconds",
    "cardinality_enforcement_unexpected_categorizations_total",
    "device_taint_eviction_controller_pod_deletion_duration_seconds",
    "device_taint_eviction_controller_pod_deletions_total",
    "endpoint_slice_controller_changes",
    "endpoint_slice_controller_endpointslices_changed_per_sync",
    "endpoint_slice_controller_syncs",
    "endpoint_slice_mirroring_controller_addresses_skipped_per_sync",
    "endpoint_slice_mirroring_controller_desired_endpoint_slices",
    "endpoint_slice_mirroring_controller_endpoints_added_per_sync",
    "endpoint_slice_mirroring_controller_endpoints_desired",
    "endpoint_slice_mirroring_controller_endpoints_removed_per_sync",
    "endpoint_slice_mirroring_controller_endpoints_sync_duration",
    "endpoint_slice_mirroring_controller_endpoints_updated_per_sync",
    "endpoint_slice_mirroring_controller_num_endpoint_slices",
    "ephemeral_volume_controller_create_failures_total",
    "ephemeral_volume_controller_create_total",
    "garbagecollector_controller_resources_sync_error_total",
    "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
    "informer_processing_latency_seconds",
    "informer_queued_items",
    "informer_store_resource_version",
    "job_controller_job_finished_indexes_total",
    "leader_election_master_status",
    "node_collector_update_all_nodes_health_duration_seconds",
    "node_collector_update_node_health_duration_seconds",
    "replicaset_controller_sorting_deletion_age_ratio",
    "replicaset_controller_stale_sync_skips_total",
    "rest_client_exec_plugin_certificate_rotation_age",
    "rest_client_exec_plugin_ttl_seconds",
    "rest_client_rate_limiter_duration_seconds",
    "rest_client_request_duration_seconds",
    "rest_client_request_size_bytes",
    "rest_client_requests_total",
    "rest_client_response_size_bytes",
    "rest_client_transport_cache_entries",
    "rest_client_transport_cert_rotation_gc_calls_total",
    "rest_client_transport_create_calls_total",
    "retroactive_storageclass_errors_total",
    "retroactive_storageclass_total",
    "root_ca_cert_publisher_sync_duration_seconds",
    "root_ca_cert_publisher_sync_total",
    "taint_eviction_controller_pod_deletion_duration_seconds",
    "taint_eviction_controller_pod_deletions_total",
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "version_info",
];

const BETA: [&str; 22] = [
    "disabled_metrics_total",
    "endpoint_slice_controller_desired_endpoint_slices",
    "endpoint_slice_controller_endpoints_added_per_sync",
    "endpoint_slice_controller_endpoints_desired",
    "endpoint_slice_controller_endpoints_removed_per_sync",
    "endpoint_slice_controller_num_endpoint_slices",
    "endpoint_slice_controller_services_count_by_traffic_distribution",
    "hidden_metrics_total",
    "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
    "horizontal_pod_autoscaler_controller_metric_computation_total",
    "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
    "horizontal_pod_autoscaler_controller_reconciliations_total",
    "kubernetes_build_info",
    "kubernetes_feature_enabled",
    "registered_metrics_total",
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_longest_running_processor_seconds",
    "workqueue_queue_duration_seconds",
    "workqueue_retries_total",
    "workqueue_unfinished_work_seconds",
    "workqueue_work_duration_seconds",
];

const STABLE: [&str; 6] = [
    "cronjob_controller_job_creation_skew_duration_seconds",
    "job_controller_job_pods_finished_total",
    "job_controller_job_sync_duration_seconds",
    "job_controller_job_syncs_total",
    "kubernetes_healthcheck",
    "kubernetes_healthchecks_total",
];

// === impl Stability ===

impl Stability {
    /// Returns the stability of the metric of this name; `None` if upstream has no such metric.
    #[must_use]
    pub(crate) fn of(metric: &str) -> Option<Self> {
        let tables = [(&ALPHA[..], Self::Alpha), (&BETA, Self::Beta), (&STABLE, Self::Stable)];
        tables.into_iter().find(|(names, _)| names.binary_search(&metric).is_ok()).map(|(_, level)| level)
    }

    /// Returns the prefix of a help text.
    #[must_use]
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Self::Alpha => "[ALPHA] ",
            Self::Beta => "[BETA] ",
            Self::Stable => "[STABLE] ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_has_one_level() {
        let all = [&ALPHA[..], &BETA, &STABLE].concat();
        let mut names = all.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len(), "a name has two levels");
        assert!(all.iter().all(|name| Stability::of(name).is_some()), "a table is not in order");
        assert_eq!(Stability::of("rest_client_requests_total"), Some(Stability::Alpha));
        assert_eq!(Stability::of("workqueue_depth"), Some(Stability::Beta));
        assert_eq!(Stability::of("kubernetes_healthcheck"), Some(Stability::Stable));
        assert_eq!(Stability::of("controller_runtime_reconcile_total"), None);
    }
}
