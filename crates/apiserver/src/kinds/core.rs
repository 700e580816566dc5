//! Kinds of the core group, besides pods, workloads and services.

mod config;
mod endpoints;
mod event;
mod namespace;
mod node;
mod quota;

use super::json::{is_empty, items, set, text};
use super::{NameRule, Rules, pod, service, storage, workload};

/// The rules of a kind of the core group.
pub(super) fn rules(kind: &str) -> Option<&'static Rules> {
    Some(match kind {
        "Pod" => &pod::POD,
        "PodTemplate" => &pod::POD_TEMPLATE,
        "ReplicationController" => &workload::REPLICATION_CONTROLLER,
        "Service" => &service::SERVICE,
        "Namespace" => &namespace::NAMESPACE,
        "Node" => &node::NODE,
        "Endpoints" => &endpoints::ENDPOINTS,
        "Event" => &event::EVENT,
        "ConfigMap" => &config::CONFIG_MAP,
        "Secret" => &config::SECRET,
        "ServiceAccount" => &SERVICE_ACCOUNT,
        "ResourceQuota" => &quota::RESOURCE_QUOTA,
        "LimitRange" => &quota::LIMIT_RANGE,
        "PersistentVolume" => &storage::PERSISTENT_VOLUME,
        "PersistentVolumeClaim" => &storage::PERSISTENT_VOLUME_CLAIM,
        _ => return None,
    })
}

/// A service account refers to secrets of its namespace, by name alone.
static SERVICE_ACCOUNT: Rules = Rules::named(NameRule::Subdomain).prepared(|account, _| {
    if is_empty(&account["secrets"]) {
        return;
    }
    let names = items(&account["secrets"]).iter().map(|secret| text(&secret["name"]));
    let secrets: Vec<_> = names.map(|name| serde_json::json!({ "name": name })).collect();
    set(account, "secrets", secrets);
});
