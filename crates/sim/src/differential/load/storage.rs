//! Claims and volumes: bound by hand, by class, by a provisioner; expanded, protected, attached.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Act, Step, delete, of, path, pick};

/// Adds fields to a spec, or replaces them.
fn add(spec: &mut Value, more: Value) {
    if let Value::Object(fields) = more {
        for (field, value) in fields {
            spec[field] = value;
        }
    }
}

fn volume(name: &str, class: &str, size: &str, more: Value) -> Act {
    let mut spec = json!({
        "capacity": { "storage": size }, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": { "driver": "csi.example.com", "volumeHandle": name },
    });
    add(&mut spec, more);
    of("v1", "PersistentVolume", "", name, json!({ "metadata": { "labels": { "disk": name } }, "spec": spec }))
}

fn claim(ns: &str, name: &str, class: &str, size: &str, more: Value) -> Act {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": { "requests": { "storage": size } },
    });
    add(&mut spec, more);
    of("v1", "PersistentVolumeClaim", ns, name, json!({ "spec": spec }))
}

/// Static binding: by size, by selector, pre-bound from both sides, two claims for one volume, claims and volumes deleted.
pub(super) fn volumes(random: &mut Rng, ns: &str) -> Vec<Step> {
    let named = |name: &str| format!("{ns}-{name}");
    let class = named("manual");
    let claim_at = |name: &str| path("v1", ns, "persistentvolumeclaims", name);
    let volume_at = |name: &str| path("v1", "", "persistentvolumes", &named(name));
    let reclaim = pick(random, &["Retain", "Delete"]);
    vec![
        vec![
            of(
                "storage.k8s.io/v1",
                "StorageClass",
                "",
                &class,
                json!({
                    "provisioner": "csi.example.com", "allowVolumeExpansion": true, "volumeBindingMode": "Immediate",
                }),
            ),
            volume(&named("small"), &class, "1Gi", json!({})),
            volume(&named("large"), &class, "10Gi", json!({ "persistentVolumeReclaimPolicy": reclaim })),
            volume(&named("reserved"), &class, "3Gi", json!({ "claimRef": { "namespace": ns, "name": "reserved" } })),
        ],
        vec![
            claim(ns, "medium", &class, "2Gi", json!({})),
            claim(ns, "reserved", &class, "1Gi", json!({})),
            claim(ns, "prebound", &class, "1Gi", json!({ "volumeName": named("small") })),
            claim(ns, "rival", &class, "1Gi", json!({ "volumeName": named("small") })),
            claim(ns, "hopeless", &class, "100Gi", json!({})),
            claim(
                ns,
                "selecting",
                &class,
                "1Gi",
                json!({ "selector": { "matchLabels": { "disk": named("selected") } } }),
            ),
            claim(ns, "unclassed", "", "1Gi", json!({})),
        ],
        vec![
            volume(&named("selected"), &class, "1Gi", json!({})),
            Act::Patch(claim_at("medium"), json!({ "spec": { "resources": { "requests": { "storage": "20Gi" } } } })),
        ],
        vec![delete(claim_at("medium")), delete(claim_at("prebound"))],
        vec![delete(volume_at("reserved")), delete(volume_at("small"))],
        vec![delete(claim_at("reserved"))],
    ]
}

/// Dynamic provisioning, at once and for the first consumer; a pod that holds its claim; expansion; an ephemeral volume.
pub(super) fn provisioned(random: &mut Rng, ns: &str) -> Vec<Step> {
    let class = format!("{ns}-waiting");
    let pod = |name: &str, volumes: Value| {
        of(
            "v1",
            "Pod",
            ns,
            name,
            json!({ "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "main", "image": "web:1", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }],
            "volumes": volumes,
        } }),
        )
    };
    let of_claim = |name: &str| json!([{ "name": "data", "persistentVolumeClaim": { "claimName": name } }]);
    let at = |name: &str| path("v1", ns, "persistentvolumeclaims", name);
    let pod_at = |name: &str| path("v1", ns, "pods", name);
    vec![
        vec![
            of(
                "storage.k8s.io/v1",
                "StorageClass",
                "",
                &class,
                json!({
                    "provisioner": "nodes.steersman.dev/provisioner", "volumeBindingMode": "WaitForFirstConsumer",
                    "allowVolumeExpansion": true, "reclaimPolicy": pick(random, &["Delete", "Retain"]),
                }),
            ),
            claim(ns, "immediate", "standard", "1Gi", json!({})),
            claim(ns, "patient", &class, "1Gi", json!({})),
        ],
        vec![
            pod("consumer", of_claim("patient")),
            pod(
                "fleeting",
                json!([{ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": { "requests": { "storage": "1Gi" } },
            } } } }]),
            ),
            of(
                "v1",
                "PersistentVolumeClaim",
                ns,
                "fleeting-owned-data",
                json!({ "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": { "requests": { "storage": "1Gi" } },
            } }),
            ),
        ],
        vec![
            pod(
                "fleeting-owned",
                json!([{ "name": "data", "ephemeral": { "volumeClaimTemplate": { "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": { "requests": { "storage": "1Gi" } },
            } } } }]),
            ),
            delete(at("patient")),
            Act::Patch(at("immediate"), json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } })),
        ],
        vec![delete(pod_at("consumer")), delete(pod_at("fleeting"))],
        vec![delete(at("immediate")), delete(pod_at("fleeting-owned"))],
    ]
}

/// Volumes of a CSI driver that are attached, to one node and to a second; classes of attributes; labels of SELinux.
pub(super) fn attached(random: &mut Rng, ns: &str) -> Vec<Step> {
    let driver = format!("{ns}.example.com");
    let class = format!("{ns}-attached");
    let disk = |name: &str| {
        volume(&format!("{ns}-{name}"), &class, "1Gi", json!({ "csi": { "driver": driver, "volumeHandle": name } }))
    };
    let pod = |name: &str, node: usize, level: &str| {
        of(
            "v1",
            "Pod",
            ns,
            name,
            json!({ "spec": {
            "nodeName": format!("$node:{node}"), "terminationGracePeriodSeconds": 1,
            "securityContext": { "seLinuxOptions": { "level": level } },
            "containers": [{ "name": "main", "image": "web:1", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "shared" } }],
        } }),
        )
    };
    let attributes = format!("{ns}-fast");
    let attributes_at = path("storage.k8s.io/v1", "", "volumeattributesclasses", &attributes);
    vec![
        vec![
            of(
                "storage.k8s.io/v1",
                "CSIDriver",
                "",
                &driver,
                json!({ "spec": { "attachRequired": true, "seLinuxMount": true } }),
            ),
            of(
                "storage.k8s.io/v1",
                "VolumeAttributesClass",
                "",
                &attributes,
                json!({ "driverName": driver, "parameters": { "speed": "high" } }),
            ),
            disk("one"),
            claim(ns, "shared", &class, "1Gi", json!({})),
        ],
        vec![pod("first-user", 0, "s0:c1,c2"), pod("neighbour", 0, pick(random, &["s0:c1,c2", "s0:c3,c4"]))],
        vec![pod("elsewhere", 1, "s0:c1,c2")],
        vec![
            delete(path("v1", ns, "pods", "first-user")),
            delete(path("v1", ns, "pods", "neighbour")),
            delete(attributes_at),
        ],
        vec![delete(path("v1", ns, "persistentvolumeclaims", "shared"))],
        vec![delete(path("v1", ns, "pods", "elsewhere"))],
    ]
}
