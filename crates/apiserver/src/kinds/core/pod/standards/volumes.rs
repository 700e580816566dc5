//! The kinds of volumes: `check_restrictedVolumes.go`.

use serde_json::Value;

use super::{Finding, Pod, found, plural, quoted, set_of};
use crate::kinds::shared::json::{items, text};

const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

const FORBIDDEN: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// Only volumes that are the pod's or somebody's claim.
pub(super) fn restricted(pod: Pod<'_>) -> Option<Finding> {
    let has = |volume: &Value, kinds: &[&'static str]| kinds.iter().copied().find(|kind| volume[*kind].is_object());
    let volumes = items(&pod.spec["volumes"]);
    let bad: Vec<&Value> = volumes.iter().filter(|volume| has(volume, &ALLOWED).is_none()).collect();
    if bad.is_empty() {
        return None;
    }
    let kinds = set_of(bad.iter().map(|volume| has(volume, &FORBIDDEN).unwrap_or("unknown")));
    let uses = plural(bad.len(), "uses", "use");
    let what = plural(kinds.len(), "restricted volume type", "restricted volume types");
    let names = quoted(bad.iter().map(|volume| text(&volume["name"])));
    let volumes = plural(bad.len(), "volume", "volumes");
    found("restricted volume types", format!("{volumes} {names} {uses} {what} {}", quoted(kinds)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::check;
    use super::*;

    #[test]
    fn volumes_are_of_kinds_that_leave_the_node_alone() {
        let volume = |name: &str, kind: &str| json!({"name": name, kind: {}});
        let allowed: Vec<Value> = ALLOWED.iter().map(|kind| volume("v", kind)).collect();
        check(
            restricted,
            &[
                (json!({ "volumes": allowed }), None),
                (
                    json!({"volumes": [volume("a", "nfs")]}),
                    Some("restricted volume types (volume \"a\" uses restricted volume type \"nfs\")"),
                ),
                (
                    json!({"volumes": [volume("a", "nfs"), volume("b", "hostPath"), volume("c", "other")]}),
                    Some(
                        "restricted volume types (volumes \"a\", \"b\", \"c\" use restricted volume types \"hostPath\", \"nfs\", \
                     \"unknown\")",
                    ),
                ),
            ],
        );
    }
}
