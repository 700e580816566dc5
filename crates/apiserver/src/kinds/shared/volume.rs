//! What PersistentVolumes and PersistentVolumeClaims have in common: cells, and the finalizers that protect them while they
//! are in use (the plug-in StorageObjectInUseProtection).

use serde_json::Value;

use crate::kinds::shared::json::{items, set, text, with};
use crate::registry::admission::Lookup;
use crate::table::{Cell, TableRow};

/// The cell with the class of volume attributes.
pub(crate) const VOLUME_ATTRIBUTES_CLASS: Cell = Cell::TextOr("/spec/volumeAttributesClassName", "<unset>");

/// The cell with the volume mode.
pub(crate) const VOLUME_MODE: Cell = Cell::TextOr("/spec/volumeMode", "<unset>");

/// The cell with the phase.
pub(crate) const PHASE: Cell =
    Cell::Made(
        |row| {
            if row.is_terminating() { "Terminating".to_owned() } else { row.text("/status/phase").to_owned() }
        },
    );

/// The cell with the storage class. The annotation is older than the field, and still wins.
pub(crate) const STORAGE_CLASS: Cell = Cell::Made(|row| {
    let annotation = row.at("/metadata/annotations/volume.beta.kubernetes.io~1storage-class").and_then(Value::as_str);
    annotation.unwrap_or_else(|| row.text("/spec/storageClassName")).to_owned()
});

/// The cell text of a quantity, which is printed even if it is absent.
pub(crate) fn quantity(row: &TableRow<'_>, path: &str) -> String {
    row.at(path).and_then(Value::as_str).unwrap_or("0").to_owned()
}

/// The cell text of access modes.
pub(crate) fn access_modes(row: &TableRow<'_>, path: &str) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let modes = row.list_at(path);
    let has = |mode: &str| modes.iter().any(|other| other.as_str() == Some(mode));
    SHORT.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// Adds the finalizer that protects a new object, if the server protects any, and unless the object has it.
pub(crate) fn protect(lookup: &dyn Lookup, object: &mut Value, finalizer: &str) {
    if !lookup.protects_storage() {
        return;
    }
    with(object, "metadata", |metadata| {
        let mut finalizers = items(&metadata["finalizers"]).to_vec();
        if !finalizers.iter().any(|it| text(it) == finalizer) {
            finalizers.push(finalizer.into());
            set(metadata, "finalizers", finalizers);
        }
    });
}
