//! Pure: changes of claims and volumes as the server has them, with all fields, known or not. Each returns whether anything
//! changed.

use serde_json::{Map, Value, json};
use steersman_base::names::annotations;
use steersman_base::{Istr, Quantity};
use steersman_model::View;
use steersman_model::core::{PersistentVolumeClaimView, PersistentVolumeView};

use crate::csi_migration::MigratedTo;

/// The value of annotations whose value does not matter.
const YES: &str = "yes";

/// A volume without a capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PersistentVolume {0:?} is without a storage capacity")]
pub(super) struct NoCapacity(String);

/// Lets a volume refer to a claim; a reference that the controller sets is marked as such.
pub(super) fn refer_to_claim(volume: &mut Value, claim: &PersistentVolumeClaimView) -> bool {
    let meta = claim.meta();
    let uid = json!(meta.uid);
    let held = &volume["spec"]["claimRef"];
    let is_of_name = held["namespace"] == json!(meta.namespace) && held["name"] == json!(meta.name);
    if is_of_name && held["uid"] == uid {
        return false;
    }
    let is_reserved = is_of_name && held["uid"].as_str().is_none_or(str::is_empty);
    volume["spec"]["claimRef"] = json!({
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": uid,
        "apiVersion": "v1",
        "resourceVersion": meta.resource_version,
    });
    if !is_reserved {
        annotate(volume, annotations::PV_BOUND_BY_CONTROLLER, YES);
    }
    true
}

/// Removes the claim of a volume; of one that a user reserved for the claim, only the uid.
pub(super) fn unbind(volume: &mut Value) -> bool {
    if volume["spec"]["claimRef"].is_null() {
        return false;
    }
    if remove_annotation(volume, annotations::PV_BOUND_BY_CONTROLLER) {
        return remove(&mut volume["spec"], "claimRef");
    }
    remove(&mut volume["spec"]["claimRef"], "uid")
}

/// Sets the phase of a volume.
pub(super) fn set_phase(volume: &mut Value, phase: &str, message: &str) -> bool {
    if volume["status"]["phase"] == phase {
        return false;
    }
    volume["status"]["phase"] = json!(phase);
    if message.is_empty() {
        remove(&mut volume["status"], "message");
    } else {
        volume["status"]["message"] = json!(message);
    }
    true
}

/// Lets a claim name a volume, and marks its binding as complete.
pub(super) fn refer_to_volume(claim: &mut Value, volume: &str) -> bool {
    let mut is_changed = false;
    if claim["spec"]["volumeName"] != volume {
        claim["spec"]["volumeName"] = json!(volume);
        annotate(claim, annotations::PV_BOUND_BY_CONTROLLER, YES);
        is_changed = true;
    }
    annotate(claim, annotations::PV_BIND_COMPLETED, YES) || is_changed
}

/// Sets the status of a claim that is bound to a volume.
///
/// # Errors
/// The volume has no capacity.
pub(super) fn report_bound(claim: &mut Value, volume: &PersistentVolumeView) -> Result<bool, NoCapacity> {
    let before = claim["status"].clone();
    let is_new = before["phase"] != "Bound";
    let status = &mut claim["status"];
    status["phase"] = json!("Bound");
    if before["accessModes"] != json!(volume.spec.access_modes) {
        status["accessModes"] = json!(volume.spec.access_modes);
    }
    if is_new {
        let size = volume.spec.capacity.get("storage");
        let size = *size.ok_or_else(|| NoCapacity(volume.meta().name.to_string()))?;
        let pre_resize = volume.meta().annotations.get(annotations::PRE_RESIZE_CAPACITY);
        if let Some(before_resize) = pre_resize {
            // As upstream, an annotation that cannot be read stands for the size of the volume.
            status["capacity"]["storage"] = json!(before_resize.parse::<Quantity>().unwrap_or(size));
        } else if before["capacity"]["storage"].as_str().and_then(|held| held.parse().ok()) != Some(size) {
            status["capacity"] = json!(volume.spec.capacity);
        }
    }
    let attributes = &volume.spec.volume_attributes_class_name;
    if before["phase"] == "Pending" && before["currentVolumeAttributesClassName"].as_str() != text(attributes.as_ref())
    {
        match attributes {
            Some(class) => status["currentVolumeAttributesClassName"] = json!(class),
            None => drop(remove(status, "currentVolumeAttributesClassName")),
        }
    }
    Ok(*status != before)
}

/// Sets the status of a claim that has no volume: `Pending` or `Lost`.
pub(super) fn report_unbound(claim: &mut Value, phase: &str) -> bool {
    let status = &mut claim["status"];
    let is_new = status["phase"] != phase;
    if is_new {
        status["phase"] = json!(phase);
    }
    let fields = ["accessModes", "capacity", "currentVolumeAttributesClassName"];
    fields.iter().fold(is_new, |is_changed, field| remove(status, field) || is_changed)
}

/// Whether [`report_unbound`] would change the status, as far as the cache shows.
pub(super) fn is_reported_unbound(claim: &PersistentVolumeClaimView, phase: &str) -> bool {
    let status = &claim.status;
    status.phase == phase
        && status.access_modes.is_empty()
        && status.capacity.is_empty()
        && status.current_volume_attributes_class_name.is_none()
}

/// Gives a claim a class, if it names none.
pub(super) fn assign_class(claim: &mut Value, class: &str) -> bool {
    let is_named = !claim["spec"]["storageClassName"].is_null()
        || !claim["metadata"]["annotations"][annotations::STORAGE_CLASS_BETA].is_null();
    if is_named {
        return false;
    }
    claim["spec"]["storageClassName"] = json!(class);
    true
}

/// Asks a provisioner for a volume.
pub(super) fn ask_provisioner(claim: &mut Value, provisioner: &str) -> bool {
    if claim["metadata"]["annotations"][annotations::STORAGE_PROVISIONER] == provisioner {
        return false;
    }
    annotate(claim, annotations::STORAGE_PROVISIONER_BETA, provisioner);
    annotate(claim, annotations::STORAGE_PROVISIONER, provisioner);
    match crate::csi_migration::driver_of(provisioner) {
        Some(driver) => migrate(claim, MigratedTo::Set(driver)),
        None => migrate(claim, MigratedTo::Removed),
    };
    true
}

/// Changes the annotation that names the CSI driver of a migrated volume or claim.
pub(super) fn migrate(object: &mut Value, change: MigratedTo) -> bool {
    match change {
        MigratedTo::Set(driver) => annotate(object, annotations::PV_MIGRATED_TO, driver),
        MigratedTo::Removed => remove_annotation(object, annotations::PV_MIGRATED_TO),
    }
}

/// Sets the finalizers of a volume.
pub(super) fn set_finalizers(volume: &mut Value, finalizers: &[Istr]) -> bool {
    volume["metadata"]["finalizers"] = json!(finalizers);
    true
}

fn text(text: Option<&Istr>) -> Option<&str> {
    text.map(Istr::as_str)
}

fn annotate(object: &mut Value, key: &str, value: &str) -> bool {
    let held = &mut object["metadata"]["annotations"];
    if held[key] == value {
        return false;
    }
    // A mark that a user has set to another value stays.
    if value == YES && held[key].is_string() {
        return false;
    }
    held[key] = json!(value);
    true
}

fn remove_annotation(object: &mut Value, key: &str) -> bool {
    let is_changed = remove(&mut object["metadata"]["annotations"], key);
    if is_changed && object["metadata"]["annotations"].as_object().is_some_and(Map::is_empty) {
        remove(&mut object["metadata"], "annotations");
    }
    is_changed
}

fn remove(object: &mut Value, field: &str) -> bool {
    object.as_object_mut().is_some_and(|object| object.remove(field).is_some())
}
