//! Pure: attachments, and the lists of nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_base::{Istr, Meta, ObjectKey};
use steersman_model::Kind;
use steersman_model::storage::VolumeAttachmentView;

use crate::certificates::sha256;
use crate::volume_spec::{CsiSource, CsiSpec};

/// Returns the key of a VolumeAttachment: everybody who knows volume, driver and node can compute it.
pub(super) fn attachment_key(handle: &str, driver: &str, node: &str) -> ObjectKey {
    let hash = sha256(format!("{handle}{driver}{node}").as_bytes());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    ObjectKey::cluster(&format!("csi-{digits}"))
}

/// Returns the VolumeAttachment to create; `None` if nothing is left of the volume but its name.
pub(super) fn attachment(csi: &CsiSpec, node: &str) -> Option<Value> {
    let source = match &csi.source {
        CsiSource::Named(volume) => json!({ "persistentVolumeName": volume }),
        CsiSource::Inline(spec) => json!({ "inlineVolumeSpec": spec }),
        CsiSource::Unknown => return None,
    };
    let resource = &VolumeAttachmentView::RESOURCE;
    Some(json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": { "name": attachment_key(&csi.handle, &csi.driver, node).name },
        "spec": { "attacher": csi.driver, "nodeName": node, "source": source },
    }))
}

/// Returns the status patch with the list of attached volumes, by name, with their paths.
pub(super) fn list(node: &Meta, volumes: &BTreeMap<Istr, Istr>) -> Value {
    let entry = |(name, path): (&Istr, &Istr)| json!({ "name": name, "devicePath": path });
    let list: Vec<Value> = volumes.iter().map(entry).collect();
    // As upstream's patch: an empty list is removed.
    let list = if list.is_empty() { Value::Null } else { Value::Array(list) };
    json!({ "metadata": { "uid": node.uid }, "status": { "volumesAttached": list } })
}
