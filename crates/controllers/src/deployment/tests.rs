//! Table tests of the pure functions, and their objects.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::apps::{DeploymentView, ReplicaSetView};

use steersman_testing::objects::{self, ObjectBuilder as _, WorkloadBuilder as _};

use crate::test_objects::{merged, view};

mod history;
mod late;
mod plan;
mod progress;
mod rolling;
mod scale;
mod template;

/// Returns a pod spec with this image.
fn pod_spec(image: &str) -> Value {
    json!({ "containers": [{ "name": "main", "image": image }] })
}

/// Returns a Deployment of three `web:2`.
fn deployment(more: Value) -> DeploymentView {
    let web = objects::deployment("web").in_namespace("default").uid("d").replicas(3).image("web:2");
    let defaults = json!({
        "metadata": { "generation": 1 },
        "spec": {
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
            "progressDeadlineSeconds": 60,
            "revisionHistoryLimit": 10,
        },
    });
    view(&web, merged(defaults, more))
}

/// Returns a ReplicaSet of the Deployment with this image; its name determines its age.
fn set(name: &str, image: &str, replicas: i32, more: Value) -> Arc<ReplicaSetView> {
    let minute = name.bytes().last().unwrap_or(b'0') % 60;
    let labels = json!({ "app": "web", "pod-template-hash": name });
    let set = objects::replica_set(name).in_namespace("default").uid(name).replicas(replicas).image(image);
    let set = set
        .owned_by(&objects::deployment("web").uid("d"))
        .created(&format!("2026-11-15T11:{minute:02}:00Z"))
        .with(json!({
            "metadata": { "generation": 1, "labels": labels },
            "spec": { "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels } } },
            "status": { "observedGeneration": 1 },
        }));
    Arc::new(view(&set, more))
}

/// Returns the status of a ReplicaSet with this many pods, all available.
fn available(replicas: i32) -> Value {
    json!({ "status": {
        "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "terminatingReplicas": 0,
    } })
}

/// Returns the annotations of a ReplicaSet of this revision that was scaled for a Deployment of this size and maximum.
fn noted(revision: i64, desired: i32, max: i32) -> Value {
    json!({ "metadata": { "annotations": {
        "deployment.kubernetes.io/revision": revision.to_string(),
        "deployment.kubernetes.io/desired-replicas": desired.to_string(),
        "deployment.kubernetes.io/max-replicas": max.to_string(),
    } } })
}
