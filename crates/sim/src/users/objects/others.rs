//! Autoscalers, requests for certificates, claims, volumes and the pods that use them.

use serde_json::{Value, json};

use super::kind_of;
use crate::certificates::ASKED;
use crate::plan::{Edit, NAMESPACES, OWNERS, OwnerKind, home_of};

/// The driver of the volumes that users make.
pub(in crate::users) const DRIVER: &str = "disk.example.com";
/// The class of the volumes that users make. Nobody provisions for it, and its claims may grow.
const CLASS: &str = "static";
/// The CPU per pod that autoscalers want.
const WANTED_CPU: &str = "100m";
/// How much of its own metric an autoscaler wants per pod.
const WANTED: &str = "10";

/// What a new object has beside its name.
pub(super) fn body_of(owner: usize) -> Value {
    let name = OWNERS[owner].name;
    match OWNERS[owner].kind {
        OwnerKind::Autoscaler => {
            let metrics = metrics(owner, false);
            json!({"spec": {"scaleTargetRef": target(home_of(owner)), "maxReplicas": 4, "metrics": metrics}})
        }
        OwnerKind::Request => json!({"spec": asked(0)}),
        OwnerKind::Claim => json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}),
        OwnerKind::Volume => json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": DRIVER, "volumeHandle": name},
        }}),
        _ => json!({"spec": {"containers": [{"name": "main", "image": "image:0"}]}}),
    }
}

/// The part of a patch for a change that only these kinds know.
pub(super) fn part_of(owner: usize, change: &Edit) -> Option<Value> {
    let kind = OWNERS[owner].kind;
    let spec = match change {
        Edit::Bounds { min, max } if kind == OwnerKind::Autoscaler => json!({"minReplicas": min, "maxReplicas": max}),
        Edit::Scales(other) if kind == OwnerKind::Autoscaler => json!({"scaleTargetRef": target(*other)}),
        Edit::ByLoad(by_load) if kind == OwnerKind::Autoscaler => json!({"metrics": metrics(owner, *by_load)}),
        Edit::AddsAtMost(count) if kind == OwnerKind::Autoscaler => json!({"behavior": count.map(|count| {
            let policies = json!([{"type": "Pods", "value": count, "periodSeconds": 60}]);
            json!({"scaleUp": {"policies": policies}})
        })}),
        Edit::Asks(number) if kind == OwnerKind::Request => asked(*number),
        Edit::Static(is_static) if kind == OwnerKind::Claim => {
            json!({"storageClassName": if *is_static { json!(CLASS) } else { Value::Null }})
        }
        Edit::Names(volume) if kind == OwnerKind::Claim => json!({"volumeName": OWNERS[*volume].name}),
        Edit::Size(size) if kind == OwnerKind::Claim => {
            json!({"resources": {"requests": {"storage": format!("{size}Gi")}}})
        }
        Edit::Reserved(claim) if kind == OwnerKind::Volume => json!({"claimRef": claim.map(|claim| json!({
            "kind": "PersistentVolumeClaim", "namespace": NAMESPACES[OWNERS[claim].namespace],
            "name": OWNERS[claim].name, "uid": null, "resourceVersion": null,
        }))}),
        Edit::Uses(claim) if kind == OwnerKind::ClaimUser => {
            let source = json!({"claimName": OWNERS[*claim].name});
            json!({"volumes": [{"name": "data", "persistentVolumeClaim": source}]})
        }
        _ => return None,
    };
    Some(json!({"spec": spec}))
}

fn target(owner: usize) -> Value {
    let (api_version, kind) = kind_of(owner);
    json!({"apiVersion": api_version, "kind": kind, "name": OWNERS[owner].name})
}

/// The metric that an autoscaler goes by.
fn metrics(owner: usize, by_load: bool) -> Value {
    if by_load {
        let target = json!({"type": "AverageValue", "averageValue": WANTED_CPU});
        return json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    }
    let target = json!({"type": "AverageValue", "averageValue": WANTED});
    json!([{"type": "External", "external": {"metric": {"name": OWNERS[owner].name}, "target": target}}])
}

fn asked(number: usize) -> Value {
    use base64::Engine as _;
    let asked = &ASKED[number % ASKED.len()];
    json!({
        "request": base64::engine::general_purpose::STANDARD.encode(&asked.pem),
        "signerName": asked.signer, "usages": asked.usages, "expirationSeconds": asked.seconds,
    })
}

/// The driver of the volumes that users make.
pub(in crate::users) fn driver() -> Value {
    json!({"metadata": {"name": DRIVER}, "spec": {"attachRequired": true}})
}

/// The class of the volumes that users make.
pub(in crate::users) fn class() -> Value {
    json!({"metadata": {"name": CLASS}, "provisioner": DRIVER, "allowVolumeExpansion": true})
}
