//! Tables for the pure parts, and what they are made of.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_model::apps::{DeploymentView, ReplicaSetView};

use crate::test_objects::{decode, merged};

mod history;
mod late;
mod plan;
mod progress;
mod rolling;
mod scale;
mod template;

/// A pod's spec that differs by its image.
fn pod_spec(image: &str) -> Value {
    json!({ "containers": [{ "name": "main", "image": image }] })
}

/// A Deployment of three `web:2`.
fn deployment(more: Value) -> DeploymentView {
    let base = json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "d", "generation": 1 },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod_spec("web:2") },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": "25%" } },
            "progressDeadlineSeconds": 60,
            "revisionHistoryLimit": 10,
        },
    });
    decode(merged(base, more))
}

/// A ReplicaSet of the Deployment, with this image; its name tells its age.
fn set(name: &str, image: &str, replicas: i32, more: Value) -> Arc<ReplicaSetView> {
    let minute = name.bytes().last().unwrap_or(b'0') % 60;
    let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true });
    let base = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "generation": 1,
            "creationTimestamp": format!("2026-11-15T11:{minute:02}:00Z"), "ownerReferences": [owner],
            "labels": { "app": "web", "pod-template-hash": name },
        },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web", "pod-template-hash": name } },
            "template": { "metadata": { "labels": { "app": "web", "pod-template-hash": name } }, "spec": pod_spec(image) },
        },
        "status": { "observedGeneration": 1 },
    });
    Arc::new(decode(merged(base, more)))
}

/// What a ReplicaSet says when it has so many pods, all available.
fn available(replicas: i32) -> Value {
    json!({ "status": {
        "replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "terminatingReplicas": 0,
    } })
}

/// The annotations of a ReplicaSet of this revision that was sized for a Deployment of so many, and so many at most.
fn noted(revision: i64, desired: i32, max: i32) -> Value {
    json!({ "metadata": { "annotations": {
        "deployment.kubernetes.io/revision": revision.to_string(),
        "deployment.kubernetes.io/desired-replicas": desired.to_string(),
        "deployment.kubernetes.io/max-replicas": max.to_string(),
    } } })
}
