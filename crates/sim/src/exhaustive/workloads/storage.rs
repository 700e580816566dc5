//! Workloads about volumes and their claims.

use serde_json::{Value, json};

use super::{Workload, here, patch, pod, post, remove, work};
use crate::plan::Operation;

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const ATTRIBUTES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const CLAIMS: &str = "persistentvolumeclaims";
const PV: &str = "persistentvolumes";

/// Makes a volume of the class `static`, with another source and class if there are any.
fn volume(name: &str, source: Option<Value>) -> Operation {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "static",
        "persistentVolumeReclaimPolicy": "Retain",
    });
    let source = source.unwrap_or_else(|| json!({"hostPath": {"path": format!("/simulated/{name}")}}));
    if let (Some(spec), Some(source)) = (spec.as_object_mut(), source.as_object()) {
        spec.extend(source.clone());
    }
    post(VOLUMES, json!({"metadata": {"name": name}, "spec": spec}))
}

fn claim(name: &str, class: &str, more: Value) -> Operation {
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": class,
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    post(&here(CLAIMS), json!({"metadata": {"name": name}, "spec": spec}))
}

fn claim_of(name: &str) -> String {
    format!("{}/{name}", here(CLAIMS))
}

fn user(name: &str, claim: &str) -> Operation {
    pod(name, &json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}))
}

fn gone(name: &str) -> Operation {
    remove(&format!("{}/{name}", here("pods")))
}

pub(super) fn workloads() -> Vec<Workload> {
    let mut all = of_claims();
    all.extend(of_protection());
    all
}

fn of_claims() -> Vec<Workload> {
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let class = json!({
        "metadata": {"name": "growing"}, "provisioner": "kubernetes.io/gce-pd", "allowVolumeExpansion": true,
        "volumeBindingMode": "Immediate",
    });
    let disk = json!({"gcePersistentDisk": {"pdName": "disk"}, "storageClassName": "growing"});
    let csi = json!({"csi": {"driver": "disk.example.com", "volumeHandle": "disk"}});
    let scratch = json!({
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let scratch = json!({"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": scratch}}]});
    vec![
        work(
            "persistentvolume-binder-controller",
            &[PV, CLAIMS, "storageclasses.storage.k8s.io"],
            vec![
                volume("disk", None),
                claim("data", "static", json!({})),
                claim("more", "static", json!({})),
                claim("made", "standard", json!({})),
                user("web", "made"),
                remove(&claim_of("data")),
                patch(&format!("{VOLUMES}/disk"), json!({"spec": {"claimRef": null}})),
                remove(&claim_of("made")),
                gone("web"),
            ],
        )
        .ends_with(&[PV, CLAIMS]),
        work(
            "persistentvolume-attach-detach-controller",
            &["pods", "nodes", PV, "volumeattachments.storage.k8s.io"],
            vec![
                volume("disk", Some(csi)),
                claim("data", "static", json!({})),
                user("web", "data"),
                gone("web"),
                user("other", "data"),
            ],
        ),
        work(
            "persistentvolume-expander-controller",
            &[PV, CLAIMS],
            vec![
                post(CLASSES, class),
                volume("disk", Some(disk)),
                claim("data", "growing", json!({"volumeName": "disk"})),
                patch(&claim_of("data"), more),
            ],
        )
        .ends_with(&[PV, CLAIMS]),
        work(
            "ephemeral-volume-controller",
            &["pods", CLAIMS],
            vec![pod("web", &scratch), remove(&claim_of("web-scratch")), gone("web"), pod("web", &scratch)],
        )
        .ends_with(&[CLAIMS]),
    ]
}

fn of_protection() -> Vec<Workload> {
    let gold = json!({
        "metadata": {"name": "gold"}, "driverName": "csi.example.com", "parameters": {"iops": "100"},
    });
    vec![
        work(
            "persistentvolume-protection-controller",
            &[PV, CLAIMS],
            vec![
                volume("disk", None),
                claim("data", "static", json!({})),
                remove(&format!("{VOLUMES}/disk")),
                remove(&claim_of("data")),
                volume("disk", None),
            ],
        )
        .ends_with(&[PV, CLAIMS]),
        work(
            "volumeattributesclass-protection-controller",
            &["volumeattributesclasses.storage.k8s.io", CLAIMS],
            vec![
                post(ATTRIBUTES, gold),
                claim("data", "static", json!({"volumeAttributesClassName": "gold"})),
                remove(&format!("{ATTRIBUTES}/gold")),
                remove(&claim_of("data")),
            ],
        )
        .ends_with(&["volumeattributesclasses.storage.k8s.io", CLAIMS]),
    ]
}
