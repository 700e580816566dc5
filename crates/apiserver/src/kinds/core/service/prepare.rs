//! What becomes of linked fields when a Service is written: `clusterIP` and `clusterIPs` are kept in step, what was
//! allocated is kept, what a new type does not need is dropped.
//!
//! Follows `pkg/registry/core/service/storage/storage.go` (`normalizeClusterIPs`, `patchAllocatedValues`) and
//! `dropTypeDependentFields` of `pkg/registry/core/service/strategy.go`.

use serde_json::{Value, json};

use super::{is_external, kind_of, needs_cluster_ip, needs_health_check, needs_node_port};
use crate::kinds::shared::json::{copy, each_mut, is_empty, items, number, same, set, text, unset};

pub(crate) fn service(new: &mut Value, old: Option<&Value>) {
    if let Some(old) = old {
        patch_allocated(new, old);
    }
    normalise(new, old);
    if let Some(old) = old {
        drop_unneeded(new, old);
    }
    if kind_of(new) == "ExternalName" {
        spec_mut(new, |spec| {
            unset(spec, "internalTrafficPolicy");
        });
    }
}

fn spec_mut(service: &mut Value, f: impl FnOnce(&mut Value)) {
    if let Some(spec) = service.get_mut("spec") {
        f(spec);
    }
}

/// A client that leaves out what was allocated means to keep it.
fn patch_allocated(new: &mut Value, old: &Value) {
    let before = &old["spec"];
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        spec_mut(new, |spec| {
            for field in ["clusterIP", "clusterIPs"] {
                if is_empty(&spec[field]) {
                    copy(spec, before, field);
                }
            }
        });
    }
    if needs_node_port(old) && needs_node_port(new) {
        let ports_of = |service: &Value| -> Vec<i64> {
            items(&service["spec"]["ports"]).iter().map(|port| number(&port["nodePort"])).collect()
        };
        let held = ports_of(old);
        let named = ports_of(new);
        let is_used = |port: i64| port != 0 && held.contains(&port) && named.contains(&port);
        spec_mut(new, |spec| {
            each_mut(spec, "ports", |port| {
                let same_name = |it: &&Value| text(&it["name"]) == text(&port["name"]);
                let was = items(&before["ports"]).iter().rfind(same_name).map_or(0, |it| number(&it["nodePort"]));
                if number(&port["nodePort"]) == 0 && was != 0 && !is_used(was) {
                    set(port, "nodePort", was);
                }
            });
        });
    }
    if needs_health_check(old) && needs_health_check(new) {
        spec_mut(new, |spec| {
            if is_empty(&spec["healthCheckNodePort"]) {
                copy(spec, before, "healthCheckNodePort");
            }
        });
    }
}

fn normalise(new: &mut Value, old: Option<&Value>) {
    let spec = &new["spec"];
    let ip = text(&spec["clusterIP"]).to_owned();
    let ips = items(&spec["clusterIPs"]).to_vec();
    let Some(old) = old else {
        if !ip.is_empty() && ips.is_empty() {
            spec_mut(new, |spec| set(spec, "clusterIPs", json!([ip])));
        }
        return;
    };
    let before = &old["spec"];
    let was_ip = text(&before["clusterIP"]);
    let was_ips = items(&before["clusterIPs"]);
    if !was_ips.is_empty() && ips.is_empty() && was_ip == ip {
        spec_mut(new, |spec| copy(spec, before, "clusterIPs"));
    }
    // The singular was changed and the plural was not: the singular says what is meant.
    if was_ip != ip && ips == was_ips {
        spec_mut(new, |spec| {
            if ip.is_empty() {
                unset(spec, "clusterIPs");
            } else {
                set(spec, "clusterIPs", json!([ip]));
            }
        });
    }
}

fn drop_unneeded(new: &mut Value, old: &Value) {
    let before = &old["spec"];
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        spec_mut(new, |spec| {
            if same(&spec["clusterIP"], &before["clusterIP"]) && same(&spec["clusterIPs"], &before["clusterIPs"]) {
                unset(spec, "clusterIP");
                unset(spec, "clusterIPs");
            }
            for field in ["ipFamilies", "ipFamilyPolicy"] {
                if same(&spec[field], &before[field]) {
                    unset(spec, field);
                }
            }
        });
    }
    if needs_node_port(old) && !needs_node_port(new) {
        let held: Vec<_> = items(&before["ports"]).iter().map(|port| number(&port["nodePort"])).collect();
        let is_known = |port: &Value| number(&port["nodePort"]) == 0 || held.contains(&number(&port["nodePort"]));
        if items(&new["spec"]["ports"]).iter().all(is_known) {
            spec_mut(new, |spec| {
                each_mut(spec, "ports", |port| {
                    unset(port, "nodePort");
                });
            });
        }
    }
    let drops = [
        ("healthCheckNodePort", needs_health_check(old) && !needs_health_check(new)),
        ("allocateLoadBalancerNodePorts", kind_of(old) == "LoadBalancer" && kind_of(new) != "LoadBalancer"),
        ("loadBalancerClass", kind_of(old) == "LoadBalancer" && kind_of(new) != "LoadBalancer"),
        ("externalTrafficPolicy", is_external(old) && !is_external(new)),
    ];
    for (field, unneeded) in drops {
        spec_mut(new, |spec| {
            if unneeded && same(&spec[field], &before[field]) {
                unset(spec, field);
            }
        });
    }
    if kind_of(new) != "LoadBalancer"
        && let Some(status) = new.get_mut("status")
    {
        set(status, "loadBalancer", json!({}));
    }
}
