//! Services, their addresses and their node ports.

pub mod allocator;
mod defaults;
mod prepare;
mod validation;

use serde_json::Value;

use super::json::{items, text};
use super::{NameRule, Rules};

pub use allocator::{AllocateError, Allocator, Claim};

/// Service.
pub(super) static SERVICE: Rules = Rules::named(NameRule::Label)
    .defaulted(defaults::service)
    .prepared(prepare::service)
    .validated(validation::service);

fn kind_of(service: &Value) -> &str {
    text(&service["spec"]["type"])
}

fn is_headless(service: &Value) -> bool {
    text(&service["spec"]["clusterIPs"][0]) == "None" && items(&service["spec"]["clusterIPs"]).len() == 1
}

fn needs_cluster_ip(service: &Value) -> bool {
    kind_of(service) != "ExternalName"
}

fn needs_node_port(service: &Value) -> bool {
    matches!(kind_of(service), "NodePort" | "LoadBalancer")
}

fn needs_health_check(service: &Value) -> bool {
    kind_of(service) == "LoadBalancer" && text(&service["spec"]["externalTrafficPolicy"]) == "Local"
}

/// Whether it can be reached from outside the cluster.
fn is_external(service: &Value) -> bool {
    let spec = &service["spec"];
    needs_node_port(service) || (kind_of(service) == "ClusterIP" && !items(&spec["externalIPs"]).is_empty())
}
