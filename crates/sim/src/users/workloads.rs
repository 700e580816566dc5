//! What users do to pods, nodes, Endpoints and roles.

use http::Method;
use serde_json::{Value, json};

use super::objects::{self, ROLES, path_of};
use super::{JSON, MERGE, STRATEGIC, Users, path_of_pod};
use crate::plan::{NAMESPACES, OWNERS};

/// How many roles are parts of another one.
const PARTS: u32 = 3;

// === impl Users ===

impl Users {
    pub(super) async fn evict(&self, pod: &Value) -> bool {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]},
        });
        self.ask(Method::POST, &format!("{}/eviction", path_of_pod(pod)), JSON, &eviction).await.is_some()
    }

    /// A kubelet that runs out of memory ends pods so.
    pub(super) async fn fail_pod(&self, pod: &Value) -> bool {
        if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            return false;
        }
        let ready = json!({"type": "Ready", "status": "False", "reason": "PodFailed"});
        let patch = json!({"status": {"phase": "Failed", "reason": "Evicted", "conditions": [ready]}});
        self.ask(Method::PATCH, &format!("{}/status", path_of_pod(pod)), STRATEGIC, &patch).await.is_some()
    }

    pub(super) async fn label_node(&self, node: &str, slow: bool) -> bool {
        let patch = json!({"metadata": {"labels": {"disk": if slow { "hdd" } else { "ssd" }}}});
        self.ask(Method::PATCH, &format!("/api/v1/nodes/{node}"), MERGE, &patch).await.is_some()
    }

    pub(super) async fn taint_node(&self, node: &str, ends_pods: Option<bool>) -> bool {
        const KEY: &str = "example.com/dedicated";
        let path = format!("/api/v1/nodes/{node}");
        let Some(object) = self.ask(Method::GET, &path, JSON, &Value::Null).await else { return false };
        let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let before = taints.clone();
        taints.retain(|taint| taint["key"] != KEY);
        if let Some(ends_pods) = ends_pods {
            taints.push(json!({"key": KEY, "effect": if ends_pods { "NoExecute" } else { "NoSchedule" }}));
        }
        if taints == before {
            return false;
        }
        let patch = json!({"spec": {"taints": taints}});
        self.ask(Method::PATCH, &path, MERGE, &patch).await.is_some()
    }

    /// Deletes the pods of an owner that will never be ready.
    pub(super) async fn delete_never_ready(&self, owner: usize) {
        for pod in self.pods(OWNERS[owner].namespace, OWNERS[owner].name).await {
            if pod["metadata"]["annotations"]["nodes.steersman.dev/never-ready"] == "true" {
                self.ask(Method::DELETE, &path_of_pod(&pod), JSON, &json!({})).await;
            }
        }
    }

    /// Writes the Endpoints of a Service without selector.
    pub(super) async fn write_endpoints(&self, owner: usize, count: u32) -> bool {
        let all = format!("/api/v1/namespaces/{}/endpoints", NAMESPACES[OWNERS[owner].namespace]);
        let wanted = objects::endpoints(owner, count);
        if self.ask(Method::GET, &path_of(owner), JSON, &Value::Null).await.is_none() {
            return false;
        }
        let path = format!("{all}/{}", OWNERS[owner].name);
        self.ask(Method::PATCH, &path, MERGE, &json!({"subsets": wanted["subsets"]})).await.is_some()
            || self.ask(Method::POST, &all, JSON, &wanted).await.is_some()
    }

    /// Makes, changes or deletes a role that is a part of another one.
    pub(super) async fn write_rules(&self, owner: usize, number: u32) -> bool {
        let part = number % PARTS;
        let path = format!("{ROLES}/part-{part}");
        if number >= 2 * PARTS {
            return self.ask(Method::DELETE, &path, JSON, &json!({})).await.is_some();
        }
        let role = objects::part_of_role(owner, part, number);
        self.ask(Method::PATCH, &path, MERGE, &json!({"rules": role["rules"]})).await.is_some()
            || self.ask(Method::POST, ROLES, JSON, &role).await.is_some()
    }
}
