//! Pure: the objects and patches that are written.

use serde_json::{Value, json};
use steersman_base::Uid;
use steersman_base::names::{annotations, finalizers};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};
use steersman_model::storage::StorageClassView;

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
            "annotations": { annotations::DEFAULT_STORAGE_CLASS: "true" },
        },
        "provisioner": super::NAME,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}

/// Returns the volume of a claim.
pub(super) fn volume(claim: &PersistentVolumeClaimView, class: &StorageClassView) -> Value {
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
    let mut metadata = json!({ "name": name, "annotations": { annotations::PV_PROVISIONED_BY: super::NAME } });
    if policy == "Delete" {
        metadata["finalizers"] = json!([finalizers::PV_DELETION_EXTERNAL]);
    }
    json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec })
}

/// Returns the patch that removes the provisioner's finalizer from a volume.
pub(super) fn unprotected(volume: &PersistentVolumeView) -> Value {
    let meta = &volume.metadata;
    let kept: Vec<_> = meta.finalizers().iter().filter(|held| **held != finalizers::PV_DELETION_EXTERNAL).collect();
    json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": kept } })
}
