//! Objects for table tests: those of `steersman_testing::objects`, as views. Fields that a test does not name are as in
//! a quiet cluster; the fields of a table row are given as JSON that is merged into the object.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use steersman_base::Time;
use steersman_model::apps::ReplicaSetView;
use steersman_model::core::PodView;
use steersman_model::{Encoded, View};
use steersman_testing::objects::{self, ObjectBuilder as _, PodBuilder as _, WorkloadBuilder as _};

pub(crate) use steersman_testing::objects::merged;

pub(crate) const NOW: &str = "2026-11-15T12:00:00Z";

pub(crate) fn now() -> Time {
    NOW.parse().unwrap()
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
pub(crate) fn decode<V: View>(object: Value) -> V {
    V::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

/// Returns the view of an object with JSON merged into it. The JSON need not be valid: views are decoded from whatever
/// was stored.
pub(crate) fn view<V: View>(object: &impl Serialize, more: Value) -> V {
    decode(merged(serde_json::to_value(object).unwrap(), more))
}

/// Returns a running pod of `app=web` that is not ready, and has no owner.
pub(crate) fn pod(name: &str, more: Value) -> Arc<PodView> {
    let pod = objects::pod(name).app("web").in_namespace("default").uid(name).on_node("node-1").phase("Running");
    Arc::new(view(&pod, merged(json!({ "metadata": { "resourceVersion": "1" } }), more)))
}

/// Returns a ReplicaSet of three pods of `app=web`.
pub(crate) fn replica_set(more: Value) -> ReplicaSetView {
    let set = objects::replica_set("web").replicas(3).in_namespace("default").uid("set");
    view(&set, merged(json!({ "metadata": { "generation": 2 } }), more))
}

pub(crate) fn ready_since(time: &str) -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": time }] } })
}

pub(crate) fn terminating() -> Value {
    json!({ "metadata": { "deletionTimestamp": NOW } })
}
