//! Kinds of the core group, besides pods, workloads and services.

mod config;
mod endpoints;
mod event;
mod namespace;
mod node;
mod quota;

use serde_json::{Value, json};

use super::json::{copy, is_empty, items, set};
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

pub(super) use namespace::validate_finalizers;
pub(super) use node::status as validate_node_status;

/// The rules of a kind of the group `events.k8s.io`.
pub(super) fn event_rules(kind: &str) -> Option<&'static Rules> {
    (kind == "Event").then_some(&event::NEW_EVENT)
}

/// A service account refers to secrets of its namespace, by name alone.
static SERVICE_ACCOUNT: Rules = Rules::named(NameRule::Subdomain).prepared(|account, _| {
    if is_empty(&account["secrets"]) {
        return;
    }
    let only_name = |secret: &Value| {
        let mut only = json!({});
        copy(&mut only, secret, "name");
        only
    };
    let secrets: Vec<_> = items(&account["secrets"]).iter().map(only_name).collect();
    set(account, "secrets", secrets);
});
