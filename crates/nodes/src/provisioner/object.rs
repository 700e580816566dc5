//! Pure: the objects and patches that are written.

use serde_json::{Value, json};
use steersman_base::Uid;
use steersman_model::View;
use steersman_model::core::PersistentVolumeClaimView;

use super::map::PROVISIONED_BY;
use super::view::{ClassView, VolumeView};

/// Returns the name of the volume of a claim.
pub(super) fn volume_name(claim: &Uid) -> String {
    format!("pvc-{claim}")
}

/// Returns the default class.
pub(super) fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": super::DEFAULT_CLASS,
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": super::NAME,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    })
}

/// Returns the volume of a claim.
pub(super) fn volume(claim: &PersistentVolumeClaimView, class: &ClassView) -> Value {
    let meta = claim.meta();
    let name = volume_name(&meta.uid);
    let policy = if class.reclaim_policy.is_empty() { "Delete" } else { class.reclaim_policy.as_str() };
    let storage = claim.spec.resources.requests.get("storage").copied().unwrap_or_default();
    let mut spec = json!({
        "capacity": { "storage": storage.to_string() },
        "accessModes": claim.spec.access_modes,
        "claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": meta.namespace, "name": meta.name, "uid": meta.uid,
        },
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": class.metadata.name,
        "volumeMode": claim.spec.volume_mode.as_ref().map_or("Filesystem", |mode| mode.as_str()),
        // Nothing is there, and nobody looks.
        "hostPath": { "path": format!("/simulated/{name}"), "type": "" },
    });
    if !class.mount_options.is_empty() {
        spec["mountOptions"] = json!(class.mount_options);
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name, "annotations": { PROVISIONED_BY: super::NAME } },
        "spec": spec,
    })
}

/// Returns the patch that gives a volume a phase.
pub(super) fn phase(volume: &VolumeView, phase: &str) -> Value {
    json!({ "metadata": { "uid": volume.metadata.uid }, "status": { "phase": phase } })
}

/// Returns the patch that names the volume in its claim.
pub(super) fn binding(claim: &PersistentVolumeClaimView, volume: &VolumeView) -> Value {
    json!({
        "metadata": {
            "uid": claim.meta().uid,
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "pv.kubernetes.io/bound-by-controller": "yes",
            },
        },
        "spec": { "volumeName": volume.metadata.name },
    })
}

/// Returns the patch of the status of a bound claim.
pub(super) fn bound(claim: &PersistentVolumeClaimView, volume: &VolumeView) -> Value {
    let capacity: Value =
        volume.spec.capacity.iter().map(|(name, amount)| (name.to_string(), Value::from(amount.to_string()))).collect();
    json!({
        "metadata": { "uid": claim.meta().uid },
        "status": { "phase": "Bound", "accessModes": volume.spec.access_modes, "capacity": capacity },
    })
}
