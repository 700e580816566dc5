//! Objects for the tables of pure parts: what a test does not name is as in a quiet cluster.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;
use steersman_model::{Encoded, View};

pub(crate) const NOW: &str = "2026-11-15T12:00:00Z";

pub(crate) fn now() -> Time {
    NOW.parse().unwrap()
}

/// A JSON object with everything in `more` put on top; `null` takes away.
pub(crate) fn merged(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        for (key, value) in more {
            let under = base.remove(&key).unwrap_or(json!({}));
            base.insert(key, if value.is_object() { merged(under, value) } else { value });
        }
    }
    base
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn decode<V: View>(object: Value) -> V {
    V::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

/// A pod of `app=web` that runs, is not ready, and has no owner.
pub(crate) fn pod(name: &str, more: Value) -> Arc<PodView> {
    let base = json!({
        "metadata": { "name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "labels": { "app": "web" } },
        "spec": { "nodeName": "node-1" },
        "status": { "phase": "Running" },
    });
    Arc::new(decode(merged(base, more)))
}

/// A ReplicaSet of three pods of `app=web`.
pub(crate) fn replica_set(more: Value) -> ReplicaSetView {
    let base = json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "set", "generation": 2 },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": {} },
        },
    });
    decode(merged(base, more))
}

pub(crate) fn ready_since(time: &str) -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": time }] } })
}

pub(crate) fn terminating() -> Value {
    json!({ "metadata": { "deletionTimestamp": NOW } })
}
