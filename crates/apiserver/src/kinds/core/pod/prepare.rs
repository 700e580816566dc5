//! What the API server decides about a pod when it is created or changed.
//!
//! Follows `pkg/registry/core/pod/strategy.go` and `pkg/apis/core/helper/qos/qos.go`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_base::Quantity;

use super::gated::drop_disabled;
use crate::kinds::shared::check;
use crate::kinds::shared::json::{
    copy, default_to, each_mut, entries, is_empty, items, object_mut, set, text, unset, with,
};

/// `PrepareForCreate` and `PrepareForUpdate` of a pod; generation is the registry's.
pub(crate) fn pod(new: &mut Value, old: Option<&Value>) {
    drop_disabled(new, old, "/spec");
    if let Some(old) = old {
        copy(new, old, "status");
        if let Some(spec) = new.get_mut("spec").filter(|spec| spec["resources"].is_null()) {
            copy(spec, &old["spec"], "resources");
        }
        return;
    }
    if let Some(spec) = object_mut(new, "spec") {
        pod_requests(spec);
    }
    let mut status = json!({"phase": "Pending"});
    if !is_empty(&new["spec"]["schedulingGates"]) {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": new["metadata"]["creationTimestamp"],
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set(&mut status, "conditions", json!([condition]));
    }
    set(&mut status, "qosClass", qos_class(&new["spec"]));
    set(new, "status", status);
    merge_label_keys(new);
}

/// Keeps the fields of the status that a write of it may leave out.
pub(crate) fn status(new: &mut Value, old: &Value, _now: &str) {
    let Some(status) = object_mut(new, "status") else { return };
    for field in ["qosClass", "resourceClaimStatuses"] {
        if status[field].is_null() && !old["status"][field].is_null() {
            copy(status, &old["status"], field);
        }
    }
}

/// `matchLabelKeys` and `mismatchLabelKeys` become part of the selectors they stand beside, with the values that the
/// pod's own labels have.
fn merge_label_keys(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let Some(spec) = object_mut(pod, "spec") else { return };
    each_mut(spec, "topologySpreadConstraints", |constraint| merge(constraint, &labels));
    let Some(affinity) = object_mut(spec, "affinity") else { return };
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = object_mut(affinity, kind) else { continue };
        each_mut(affinity, "preferredDuringSchedulingIgnoredDuringExecution", |weighted| {
            if let Some(term) = object_mut(weighted, "podAffinityTerm") {
                merge(term, &labels);
            }
        });
        each_mut(affinity, "requiredDuringSchedulingIgnoredDuringExecution", |term| merge(term, &labels));
    }
}

fn merge(term: &mut Value, labels: &Value) {
    let mut added = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in items(&term[keys]) {
            if let Some(value) = labels.get(text(key)) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let Some(selector) = object_mut(term, "labelSelector").filter(|_| !added.is_empty()) else { return };
    let mut expressions = items(&selector["matchExpressions"]).to_vec();
    expressions.extend(added);
    set(selector, "matchExpressions", expressions);
}

/// Sets the requests of a pod as a whole, if it sets them in part: those of its containers, or else its limits
/// (`defaultPodLevelRequests`).
fn pod_requests(spec: &mut Value) {
    let of_containers = ["cpu", "memory"].map(|name| (name, asked(spec, name)));
    let Some(resources) = object_mut(spec, "resources") else { return };
    if is_empty(&resources["requests"]) && is_empty(&resources["limits"]) {
        return;
    }
    let limits = resources["limits"].clone();
    with(resources, "requests", |requests| {
        for (name, amount) in of_containers {
            if let Some(amount) = amount {
                default_to(requests, name, amount.to_string());
            }
        }
        for (name, limit) in entries(&limits).into_iter().filter(|(name, _)| is_of_pod(name)) {
            default_to(requests, name, limit.clone());
        }
    });
    if is_empty(&resources["requests"]) {
        unset(resources, "requests");
    }
}

fn is_of_pod(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Returns the requests of the containers of a pod together: sidecars count from their turn on, other init containers
/// one by one.
fn asked(spec: &Value, name: &str) -> Option<Quantity> {
    let of = |container: &Value| check::quantity(&container["resources"]["requests"][name]);
    let sum = |a: Option<Quantity>, b: Option<Quantity>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    let mut sidecars = None;
    let mut most = None;
    for container in items(&spec["initContainers"]) {
        if text(&container["restartPolicy"]) == "Always" {
            sidecars = sum(sidecars, of(container));
            most = most.max(sidecars);
        } else {
            most = most.max(sum(sidecars, of(container)));
        }
    }
    let running = items(&spec["containers"]).iter().fold(sidecars, |total, container| sum(total, of(container)));
    running.max(most)
}

/// Returns the quality-of-service class of a pod (`ComputePodQOS`).
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    const COMPUTE: [&str; 2] = ["cpu", "memory"];
    let mut requests = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut guaranteed = true;
    if spec["resources"].is_object() {
        add(&mut requests, &spec["resources"]["requests"]);
        guaranteed = add(&mut limits, &spec["resources"]["limits"]) == COMPUTE.len();
    } else {
        for container in items(&spec["containers"]).iter().chain(items(&spec["initContainers"])) {
            add(&mut requests, &container["resources"]["requests"]);
            if add(&mut limits, &container["resources"]["limits"]) != COMPUTE.len() {
                guaranteed = false;
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let matched = requests.iter().all(|(name, amount)| limits.get(name) == Some(amount));
    if guaranteed && matched && requests.len() == limits.len() { "Guaranteed" } else { "Burstable" }
}

/// Adds what is positive of cpu and memory, in thousandths, and says how many of them there were.
fn add(total: &mut BTreeMap<String, i64>, amounts: &Value) -> usize {
    let mut count = 0;
    for (name, amount) in entries(amounts) {
        let milli = check::quantity(amount).map_or(0, Quantity::milli_value);
        if matches!(name, "cpu" | "memory") && milli > 0 {
            let sum = total.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(milli);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_of_service_follows_requests_and_limits() {
        let both = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}});
        let some = json!({"requests": {"cpu": "1"}});
        for (name, spec, want) in [
            ("nothing asked", json!({"containers": [{}]}), "BestEffort"),
            ("all equal", json!({"containers": [{"resources": both}]}), "Guaranteed"),
            ("one without", json!({"containers": [{"resources": both}, {}]}), "Burstable"),
            ("requests only", json!({"containers": [{"resources": some}]}), "Burstable"),
            ("other resources", json!({"containers": [{"resources": {"limits": {"x/gpu": 1}}}]}), "BestEffort"),
        ] {
            assert_eq!(qos_class(&spec), want, "{name}");
        }
    }
}
