//! What workloads leave open. Follows `pkg/apis/apps/v1/defaults.go` and `SetDefaults_ReplicationController` of
//! `pkg/apis/core/v1/defaults.go`.

use serde_json::{Value, json};

use crate::kinds::json::{default_to, default_zero_to, each_mut, is_empty, object_mut, set, text, with};
use crate::kinds::pod::defaults::{optional_template, template};
use crate::kinds::storage;

pub(super) fn deployment(object: &mut Value) {
    with(object, "spec", |spec| {
        default_to(spec, "replicas", 1);
        with(spec, "strategy", |strategy| {
            default_zero_to(strategy, "type", "RollingUpdate");
            if text(&strategy["type"]) == "RollingUpdate" {
                with(strategy, "rollingUpdate", |rolling| {
                    default_to(rolling, "maxUnavailable", "25%");
                    default_to(rolling, "maxSurge", "25%");
                });
            }
        });
        default_to(spec, "revisionHistoryLimit", 10);
        default_to(spec, "progressDeadlineSeconds", 600);
        template(spec);
    });
}

pub(super) fn replica_set(object: &mut Value) {
    with(object, "spec", |spec| {
        default_to(spec, "replicas", 1);
        template(spec);
    });
}

pub(super) fn replication_controller(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    with(object, "spec", |spec| {
        default_to(spec, "replicas", 1);
        if labels.is_object() {
            default_zero_to(spec, "selector", labels.clone());
        }
        optional_template(spec);
    });
    if labels.is_object() {
        with(object, "metadata", |metadata| default_zero_to(metadata, "labels", labels));
    }
}

pub(super) fn daemon_set(object: &mut Value) {
    with(object, "spec", |spec| {
        with(spec, "updateStrategy", |strategy| {
            default_zero_to(strategy, "type", "RollingUpdate");
            if text(&strategy["type"]) == "RollingUpdate" {
                with(strategy, "rollingUpdate", |rolling| {
                    default_to(rolling, "maxUnavailable", 1);
                    default_to(rolling, "maxSurge", 0);
                });
            }
        });
        default_to(spec, "revisionHistoryLimit", 10);
        template(spec);
    });
}

pub(super) fn stateful_set(object: &mut Value) {
    with(object, "spec", |spec| {
        default_zero_to(spec, "podManagementPolicy", "OrderedReady");
        with(spec, "updateStrategy", |strategy| {
            if is_empty(&strategy["type"]) {
                set(strategy, "type", "RollingUpdate");
                default_to(strategy, "rollingUpdate", json!({}));
            }
            if text(&strategy["type"]) == "RollingUpdate"
                && let Some(rolling) = object_mut(strategy, "rollingUpdate")
            {
                default_to(rolling, "partition", 0);
                default_to(rolling, "maxUnavailable", 1);
            }
        });
        with(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
            default_zero_to(policy, "whenDeleted", "Retain");
            default_zero_to(policy, "whenScaled", "Retain");
        });
        default_to(spec, "replicas", 1);
        default_to(spec, "revisionHistoryLimit", 10);
        template(spec);
        each_mut(spec, "volumeClaimTemplates", |claim| {
            // Stored with its kind, as conversion writes it.
            default_zero_to(claim, "apiVersion", "v1");
            default_zero_to(claim, "kind", "PersistentVolumeClaim");
            storage::claim_defaults(claim);
        });
    });
}
