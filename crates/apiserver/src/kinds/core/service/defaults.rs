//! What a Service leaves open: `SetDefaults_Service` of `pkg/apis/core/v1/defaults.go`.

use serde_json::{Value, json};

use super::{is_external, kind_of};
use crate::kinds::shared::json::{default_to, default_zero_to, each_mut, is_empty, object_mut, set, text, unset, with};

const AFFINITY_SECONDS: i64 = 10_800;

pub(crate) fn service(service: &mut Value) {
    with(service, "spec", |spec| {
        default_zero_to(spec, "sessionAffinity", "None");
        match text(&spec["sessionAffinity"]) {
            "None" => {
                unset(spec, "sessionAffinityConfig");
            }
            "ClientIP" if spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() => {
                set(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}));
            }
            _ => {}
        }
        default_zero_to(spec, "type", "ClusterIP");
        each_mut(spec, "ports", |port| {
            default_zero_to(port, "protocol", "TCP");
            if is_empty(&port["targetPort"]) {
                let number = port["port"].as_i64().unwrap_or_default();
                set(port, "targetPort", number);
            }
        });
    });
    let external = is_external(service);
    let kind = kind_of(service).to_owned();
    with(service, "spec", |spec| {
        if external {
            default_zero_to(spec, "externalTrafficPolicy", "Cluster");
        }
        if matches!(&*kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
            default_to(spec, "internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            default_to(spec, "allocateLoadBalancerNodePorts", true);
        }
    });
    if kind == "LoadBalancer"
        && let Some(balancer) = object_mut(service, "status").and_then(|status| object_mut(status, "loadBalancer"))
    {
        each_mut(balancer, "ingress", |ingress| {
            if !is_empty(&ingress["ip"]) {
                default_to(ingress, "ipMode", "VIP");
            }
        });
    }
}
