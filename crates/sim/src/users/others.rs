//! What users do to metrics and to requests for certificates.

use http::Method;
use serde_json::{Value, json};

use super::objects::path_of;
use super::{JSON, MERGE, Users};
use crate::plan::{NAMESPACES, OWNERS};

/// The ConfigMap of a namespace whose entries are metrics.
const METRICS: &str = "simulated-metrics";

// === impl Users ===

impl Users {
    /// Sets the value of an autoscaler's own metric.
    pub(super) async fn demand(&self, owner: usize, value: u32) -> bool {
        let maps = format!("/api/v1/namespaces/{}/configmaps", NAMESPACES[OWNERS[owner].namespace]);
        let name = OWNERS[owner].name;
        let data = json!({name: format!("[{{external: {name}, value: {value}}}]")});
        let map = json!({"metadata": {"name": METRICS}, "data": data});
        self.ask(Method::PATCH, &format!("{maps}/{METRICS}"), MERGE, &map).await.is_some()
            || self.ask(Method::POST, &maps, JSON, &map).await.is_some()
    }

    /// Approves or denies a request for a certificate, as `kubectl certificate` does.
    pub(super) async fn decide(&self, owner: usize, approved: bool) -> bool {
        let path = path_of(owner);
        let Some(request) = self.ask(Method::GET, &path, JSON, &Value::Null).await else { return false };
        let mut conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let type_ = if approved { "Approved" } else { "Denied" };
        conditions.push(json!({"type": type_, "status": "True", "reason": "Users", "message": "by a user"}));
        let patch = json!({"status": {"conditions": conditions}});
        self.ask(Method::PATCH, &format!("{path}/approval"), MERGE, &patch).await.is_some()
    }
}
