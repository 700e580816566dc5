//! Volumes, claims, storage classes and drivers.

use serde_json::Value;

use crate::table::Kinds;
use crate::table::cell::{Cell, Row, joined, seconds_of};

const VOLUME_ATTRIBUTES_CLASS: Cell = Cell::TextOr("/spec/volumeAttributesClassName", "<unset>");
const VOLUME_MODE: Cell = Cell::TextOr("/spec/volumeMode", "<unset>");
const PHASE: Cell =
    Cell::Made(
        |row| {
            if row.is_terminating() { "Terminating".to_owned() } else { row.text("/status/phase").to_owned() }
        },
    );
/// An annotation from before the field, which still wins.
const STORAGE_CLASS: Cell = Cell::Made(|row| {
    let annotation = row.at("/metadata/annotations/volume.beta.kubernetes.io~1storage-class").and_then(Value::as_str);
    annotation.unwrap_or_else(|| row.text("/spec/storageClassName")).to_owned()
});

pub(super) const KINDS: Kinds = &[
    (
        "/persistentvolumeclaims",
        &[
            Cell::Name,
            PHASE,
            Cell::Text("/spec/volumeName"),
            Cell::Made(|row| if is_bound(row) { quantity(row, "/status/capacity/storage") } else { String::new() }),
            Cell::Made(|row| if is_bound(row) { access_modes(row, "/status/accessModes") } else { String::new() }),
            STORAGE_CLASS,
            VOLUME_ATTRIBUTES_CLASS,
            Cell::Age,
            VOLUME_MODE,
        ],
    ),
    (
        "/persistentvolumes",
        &[
            Cell::Name,
            Cell::Made(|row| quantity(row, "/spec/capacity/storage")),
            Cell::Made(|row| access_modes(row, "/spec/accessModes")),
            Cell::Text("/spec/persistentVolumeReclaimPolicy"),
            PHASE,
            Cell::Made(claim),
            STORAGE_CLASS,
            VOLUME_ATTRIBUTES_CLASS,
            Cell::Text("/status/reason"),
            Cell::Age,
            VOLUME_MODE,
        ],
    ),
    (
        "storage.k8s.io/storageclasses",
        &[
            Cell::Made(class_name),
            Cell::Text("/provisioner"),
            Cell::TextOr("/reclaimPolicy", "Delete"),
            Cell::TextOr("/volumeBindingMode", "Immediate"),
            Cell::Bool("/allowVolumeExpansion", false),
            Cell::Age,
        ],
    ),
    ("storage.k8s.io/volumeattributesclasses", &[Cell::Name, Cell::Text("/driverName"), Cell::Age]),
    (
        "storage.k8s.io/volumeattachments",
        &[
            Cell::Name,
            Cell::Text("/spec/attacher"),
            Cell::Text("/spec/source/persistentVolumeName"),
            Cell::Text("/spec/nodeName"),
            Cell::Bool("/status/attached", false),
            Cell::Age,
        ],
    ),
    ("storage.k8s.io/csinodes", &[Cell::Name, Cell::Count("/spec/drivers"), Cell::Age]),
    (
        "storage.k8s.io/csidrivers",
        &[
            Cell::Name,
            Cell::Bool("/spec/attachRequired", true),
            Cell::Bool("/spec/podInfoOnMount", false),
            Cell::Bool("/spec/storageCapacity", false),
            Cell::Made(|row| {
                let requests = row.at("/spec/tokenRequests").and_then(Value::as_array);
                requests.map_or_else(|| "<unset>".to_owned(), |requests| joined(requests, "audience"))
            }),
            Cell::Bool("/spec/requiresRepublish", false),
            Cell::Made(|row| {
                let modes = joined(row.list_at("/spec/volumeLifecycleModes"), "");
                if modes.is_empty() { "<none>".to_owned() } else { modes }
            }),
            Cell::Age,
        ],
    ),
];

fn is_bound(row: &Row<'_>) -> bool {
    !row.text("/spec/volumeName").is_empty()
}

/// A quantity is printed even if there is none.
fn quantity(row: &Row<'_>, path: &str) -> String {
    row.at(path).and_then(Value::as_str).unwrap_or("0").to_owned()
}

fn access_modes(row: &Row<'_>, path: &str) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let modes = row.list_at(path);
    let has = |mode: &str| modes.iter().any(|other| other.as_str() == Some(mode));
    SHORT.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn claim(row: &Row<'_>) -> String {
    row.at("/spec/claimRef").map_or_else(String::new, |_| {
        format!("{}/{}", row.text("/spec/claimRef/namespace"), row.text("/spec/claimRef/name"))
    })
}

/// In a list, the class that is the default is marked: of those that say so the newest, then the first by name.
fn class_name(row: &Row<'_>) -> String {
    let name = row.text("/metadata/name");
    let is_default = |class: &&&Value| {
        ["storageclass.kubernetes.io~1is-default-class", "storageclass.beta.kubernetes.io~1is-default-class"]
            .iter()
            .any(|annotation| {
                let annotation = class.pointer(&format!("/metadata/annotations/{annotation}"));
                annotation.and_then(Value::as_str) == Some("true")
            })
    };
    let rank = |class: &&&Value| {
        let text = |path: &str| class.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let created = seconds_of(&text("/metadata/creationTimestamp")).unwrap_or_default();
        (std::cmp::Reverse(created), text("/metadata/name"))
    };
    let default = row.list.iter().filter(is_default).min_by_key(rank);
    let is_it = default.and_then(|class| class.pointer("/metadata/name")).and_then(Value::as_str) == Some(name);
    if is_it { format!("{name} (default)") } else { name.to_owned() }
}
