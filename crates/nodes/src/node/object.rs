//! The objects of a node: Node and Lease.

use core::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::{Map, Value, json};
use steersman_base::{Meta, Quantity, Time, condition};
use steersman_informer::Change;
use steersman_model::core::{NodeView, Taint};

use crate::fleet::Machine;
use crate::options::NodesOptions;
use crate::view::PREFIX;

/// The kubelet version that nodes report, unless they are upgraded.
pub(crate) const VERSION: &str = "v1.37.1";
/// The first address of a node: `172.16.0.10`.
const HOSTS: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 10);
/// The first pod range, and the prefix length of ranges.
const PODS: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
const PODS_PREFIX: u8 = 22;
/// The taint that a server gives to new nodes.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The conditions of a healthy node: type, status, reason, message.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// The annotation of a node that is silent until it is removed.
const SILENT: &str = "nodes.steersman.dev/silent";

/// The annotation of nodes whose volumes the attach/detach controller attaches; all kubelets set it.
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

/// Whether the annotation of a node silences it.
pub(crate) fn is_silenced(node: &Meta) -> bool {
    node.annotations.get(SILENT).is_some_and(|value| *value != "false")
}

/// Returns the address of the node with this number.
pub(crate) fn host_address(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(HOSTS.to_bits().wrapping_add(u32::try_from(number).unwrap_or(u32::MAX)))
}

/// Returns the pod range of the node with this number.
pub(crate) fn pod_range(number: usize) -> Ipv4Net {
    let size = 1_u32 << (32 - u32::from(PODS_PREFIX));
    let start = PODS.to_bits().wrapping_add(u32::try_from(number).unwrap_or(u32::MAX).wrapping_mul(size));
    Ipv4Net::new_assert(Ipv4Addr::from_bits(start), PODS_PREFIX)
}

/// Returns the node to create.
pub(super) fn node(name: &str, machine: &Machine, options: &NodesOptions, now: Time) -> Value {
    let number = machine.number;
    let mut labels = Map::new();
    for (key, value) in [("hostname", name), ("os", "linux"), ("arch", "amd64")] {
        labels.insert(format!("kubernetes.io/{key}"), value.into());
    }
    for (key, value) in [("os", "linux"), ("arch", "amd64")] {
        labels.insert(format!("beta.kubernetes.io/{key}"), value.into());
    }
    labels.insert(format!("{PREFIX}simulated"), "true".into());
    if !options.zones.is_empty() {
        let zone = options.zones[number % options.zones.len()].as_str();
        labels.insert("topology.kubernetes.io/zone".into(), zone.into());
        labels.insert("topology.kubernetes.io/region".into(), options.region.as_str().into());
    }
    labels.extend(options.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
    let mut spec = json!({ "providerID": format!("steersman://{name}") });
    if options.pod_ranges {
        let range = pod_range(number).to_string();
        spec["podCIDRs"] = json!([range]);
        spec["podCIDR"] = range.into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels, "annotations": { MANAGED: "true" } },
        "spec": spec,
        "status": status(name, machine, options, None, now),
    })
}

/// Returns the status of the node; `known` is its previous status.
pub(super) fn status(
    name: &str,
    machine: &Machine,
    options: &NodesOptions,
    known: Option<&NodeView>,
    now: Time,
) -> Value {
    let conditions = CONDITIONS.iter().map(|(type_, status, reason, message)| {
        let held = known.and_then(|node| condition::find(&node.status.conditions, type_));
        let held = held.filter(|held| held.status.as_str() == *status);
        json!({
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": held.and_then(|held| held.last_transition_time).unwrap_or(now),
        })
    });
    json!({
        "capacity": options.capacity,
        "allocatable": options.capacity,
        "conditions": conditions.collect::<Vec<_>>(),
        "addresses": [
            { "type": "InternalIP", "address": host_address(machine.number).to_string() },
            { "type": "Hostname", "address": name },
        ],
        "nodeInfo": {
            "machineID": name,
            "systemUUID": name,
            "bootID": name,
            "kernelVersion": "simulated",
            "osImage": "Steersman simulated node",
            "containerRuntimeVersion": "steersman://simulated",
            "kubeletVersion": machine.version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    })
}

/// Whether the cluster's conditions of a healthy node are wrong.
pub(super) fn is_wrong(node: &NodeView, options: &NodesOptions) -> bool {
    let conditions = &node.status.conditions;
    let says = |(type_, status, ..): &(&str, &str, &str, &str)| {
        condition::find(conditions, type_).is_some_and(|held| held.status.as_str() == *status)
    };
    let has = |(name, amount): (&String, &String)| {
        node.status.allocatable.get(name).copied() == amount.parse::<Quantity>().ok()
    };
    !CONDITIONS.iter().all(says) || !options.capacity.iter().all(has)
}

/// Whether a change of a node is more than a heartbeat.
pub(super) fn is_relevant(change: &Change<NodeView>, options: &NodesOptions) -> bool {
    match change {
        Change::Updated { old, new } => {
            let is_cordoned = old.spec.unschedulable != new.spec.unschedulable;
            let is_silence_changed = is_silenced(&old.metadata) != is_silenced(&new.metadata);
            is_cordoned || is_silence_changed || is_wrong(new, options) || kept_taints(new).is_some()
        }
        _ => true,
    }
}

/// Returns the time of the last heartbeat in the status.
pub(super) fn last_heartbeat(node: &NodeView) -> Option<Time> {
    condition::find(&node.status.conditions, "Ready")?.last_heartbeat_time
}

/// Returns the taints that a ready node keeps; `None` if it keeps all.
pub(super) fn kept_taints(node: &NodeView) -> Option<Vec<&Taint>> {
    let goes = |taint: &&Taint| taint.key == NOT_READY && taint.effect == "NoSchedule";
    let is_ready = condition::is_true(&node.status.conditions, "Ready");
    let taints = &node.spec.taints;
    (is_ready && taints.iter().any(|taint| goes(&taint))).then(|| taints.iter().filter(|taint| !goes(taint)).collect())
}

/// Returns the lease of a node.
pub(super) fn lease(node: &Meta, spec: &Value) -> Value {
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid });
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": node.name, "namespace": super::sync::LEASES_IN, "ownerReferences": [owner] },
        "spec": spec,
    })
}
