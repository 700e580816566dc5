//! StatefulSets, DaemonSets, Jobs, CronJobs, budgets, Endpoints and roles.

use serde_json::{Value, json};

use super::{annotation, merge, share};
use crate::plan::{Concurrency, Edit, OWNERS, OwnerKind, Share};

/// The exit code with which a Job fails that has a failure policy.
const FATAL: u8 = 42;
/// The label of roles that are parts of another one.
const PART_OF: &str = "example.com/part-of";

/// Whether templates of this kind have a history.
pub(super) fn has_revisions(kind: OwnerKind) -> bool {
    matches!(kind, OwnerKind::StatefulSet | OwnerKind::DaemonSet)
}

/// What a new object has beside its name.
pub(super) fn body_of(owner: usize, template: &Value) -> Value {
    let name = OWNERS[owner].name;
    let selector = json!({"matchLabels": {"app": name}});
    let mut run_once = template.clone();
    run_once["spec"]["restartPolicy"] = json!("Never");
    let spec = match OWNERS[owner].kind {
        OwnerKind::StatefulSet => json!({"selector": selector, "serviceName": name, "template": template}),
        OwnerKind::DaemonSet => json!({"selector": selector, "template": template}),
        OwnerKind::Job => json!({"template": run_once}),
        OwnerKind::CronJob => json!({
            "schedule": "* * * * *",
            "jobTemplate": {"metadata": {"labels": {"app": name}}, "spec": {"backoffLimit": 1, "template": run_once}},
        }),
        OwnerKind::Budget => json!({"selector": selector}),
        OwnerKind::External => json!({"ports": [{"name": "main", "port": 80}]}),
        _ => return json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {PART_OF: name}}]}}),
    };
    json!({"spec": spec})
}

/// The part of a patch for a change that only these kinds know, or know in their own way.
pub(super) fn part_of(kind: OwnerKind, change: &Edit, changes: &[Edit]) -> Option<Value> {
    match kind {
        OwnerKind::StatefulSet => of_stateful_set(change),
        OwnerKind::DaemonSet => of_daemon_set(change),
        OwnerKind::Job => of_job(change, changes),
        OwnerKind::CronJob => of_cron_job(change),
        OwnerKind::Budget => of_budget(change),
        _ => None,
    }
}

fn of_stateful_set(change: &Edit) -> Option<Value> {
    let policy = |keep: bool| if keep { "Delete" } else { "Retain" };
    let spec = match change {
        Edit::Parallel => json!({"podManagementPolicy": "Parallel"}),
        Edit::Claims => json!({
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
            "template": {"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}},
        }),
        Edit::Retention { deleted, scaled } => json!({"persistentVolumeClaimRetentionPolicy": {
            "whenDeleted": policy(*deleted), "whenScaled": policy(*scaled),
        }}),
        Edit::Partition(partition) => {
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}})
        }
        Edit::Strategy { unavailable, .. } => {
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": share(*unavailable)}}})
        }
        Edit::FirstOrdinal(start) => json!({"ordinals": {"start": start}}),
        Edit::OnDelete(on) => on_delete(*on),
        _ => return None,
    };
    Some(json!({"spec": spec}))
}

fn of_daemon_set(change: &Edit) -> Option<Value> {
    let spec = match change {
        Edit::Strategy { surge, unavailable, .. } => {
            let rolling = match surge {
                Share::Count(0) => json!({"maxSurge": 0, "maxUnavailable": share(*unavailable)}),
                _ => json!({"maxSurge": share(*surge), "maxUnavailable": 0}),
            };
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
        }
        Edit::OnDelete(on) => on_delete(*on),
        _ => return None,
    };
    Some(json!({"spec": spec}))
}

fn on_delete(on: bool) -> Value {
    match on {
        true => json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}),
        false => json!({"updateStrategy": {"type": "RollingUpdate"}}),
    }
}

fn of_job(change: &Edit, changes: &[Edit]) -> Option<Value> {
    // Only a new one says how its pods end.
    let is_new = changes.iter().any(|change| matches!(change, Edit::Ends { .. }));
    let has_indexes = changes.iter().any(|change| matches!(change, Edit::IndexFailuresMax(_)));
    let spec = match change {
        Edit::Parallelism(count) => json!({"parallelism": count}),
        Edit::Completions(count) if is_new => json!({"completions": count}),
        Edit::Completions(count) => json!({"completions": count, "parallelism": count}),
        Edit::Indexed => json!({"completionMode": "Indexed"}),
        Edit::FailuresMax(count) => json!({"backoffLimit": count}),
        Edit::IndexFailuresMax(count) => json!({"backoffLimitPerIndex": count}),
        Edit::FailurePolicy => {
            let action = if has_indexes { "FailIndex" } else { "FailJob" };
            json!({"podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": action, "onExitCodes": {"operator": "In", "values": [FATAL]}},
            ]}})
        }
        Edit::Lifetime(seconds) => json!({"activeDeadlineSeconds": seconds}),
        Edit::Ends { seconds, code } => return Some(ends(*seconds, *code)),
        Edit::Suspended(is_suspended) => json!({"suspend": is_suspended}),
        _ => return None,
    };
    Some(json!({"spec": spec}))
}

fn ends(seconds: u32, code: u8) -> Value {
    let mut patch = annotation("run-time", json!(format!("{seconds}s")));
    merge(&mut patch, &annotation("exit-code", json!(code.to_string())));
    patch
}

fn of_cron_job(change: &Edit) -> Option<Value> {
    let spec = match change {
        Edit::EveryMinutes(1) => json!({"schedule": "* * * * *"}),
        Edit::EveryMinutes(minutes) => json!({"schedule": format!("*/{minutes} * * * *")}),
        Edit::Concurrency(policy) => json!({"concurrencyPolicy": match policy {
            Concurrency::Allow => "Allow",
            Concurrency::Forbid => "Forbid",
            Concurrency::Replace => "Replace",
        }}),
        Edit::Kept { succeeded, failed } => {
            json!({"successfulJobsHistoryLimit": succeeded, "failedJobsHistoryLimit": failed})
        }
        Edit::Suspended(is_suspended) => json!({"suspend": is_suspended}),
        Edit::Ends { seconds, code } => json!({"jobTemplate": ends(*seconds, *code)}),
        _ => return None,
    };
    Some(json!({"spec": spec}))
}

fn of_budget(change: &Edit) -> Option<Value> {
    let spec = match change {
        Edit::AvailableMin(min) => json!({"minAvailable": share(*min), "maxUnavailable": null}),
        Edit::UnavailableMax(max) => json!({"maxUnavailable": share(*max), "minAvailable": null}),
        _ => return None,
    };
    Some(json!({"spec": spec}))
}

/// Returns the Endpoints of a Service without selector.
pub(in crate::users) fn endpoints(owner: usize, count: u32) -> Value {
    let addresses: Vec<Value> = (1..=count).map(|number| json!({"ip": format!("192.0.2.{number}")})).collect();
    let subsets = if addresses.is_empty() {
        json!([])
    } else {
        json!([{"addresses": addresses, "ports": [{"name": "main", "port": 80}]}])
    };
    json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": OWNERS[owner].name}, "subsets": subsets,
    })
}

/// Returns a role that is a part of another one.
pub(in crate::users) fn part_of_role(owner: usize, part: u32, number: u32) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": format!("part-{part}"), "labels": {PART_OF: OWNERS[owner].name}},
        "rules": [{"apiGroups": ["garbage.example.com"], "resources": [format!("cakes{number}")], "verbs": ["get"]}],
    })
}
