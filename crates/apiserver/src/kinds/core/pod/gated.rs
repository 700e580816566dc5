//! Fields of pods behind feature gates that are off by default: they are dropped, unless the stored object has some of the same
//! gate. Follows `dropDisabledFields` of `pkg/api/pod/util.go`.

use serde_json::Value;

use crate::kinds::shared::json::{is_empty, unset};

const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Fields of the containers of a pod, by gate. `*` is any item of a list.
const OF_CONTAINERS: &[(&str, &[&str])] = &[
    ("GRPCContainerProbeTLS", &["livenessProbe.grpc.mode", "readinessProbe.grpc.mode", "startupProbe.grpc.mode"]),
    ("VolumeBindMountOptions", &["volumeMounts.*.bindMountOptions"]),
    ("ContainerStopSignals", &["lifecycle.stopSignal"]),
    (
        "H2CContainerProbe",
        &[
            "livenessProbe.httpGet.protocol",
            "readinessProbe.httpGet.protocol",
            "startupProbe.httpGet.protocol",
            "lifecycle.postStart.httpGet.protocol",
            "lifecycle.preStop.httpGet.protocol",
        ],
    ),
];

/// Fields of the spec of a pod, by gate. GenericWorkload is not among them: gangs work here without it.
const OF_SPEC: &[(&str, &[&str])] = &[
    (
        "AtomicWriteVolumeUserFields",
        &[
            "volumes.*.secret.defaultUser",
            "volumes.*.secret.items.*.user",
            "volumes.*.configMap.defaultUser",
            "volumes.*.configMap.items.*.user",
            "volumes.*.downwardAPI.defaultUser",
            "volumes.*.downwardAPI.items.*.user",
            "volumes.*.projected.defaultUser",
            "volumes.*.projected.sources.*.secret.items.*.user",
            "volumes.*.projected.sources.*.configMap.items.*.user",
            "volumes.*.projected.sources.*.downwardAPI.items.*.user",
            "volumes.*.projected.sources.*.serviceAccountToken.user",
            "volumes.*.projected.sources.*.clusterTrustBundle.user",
            "volumes.*.projected.sources.*.podCertificate.user",
        ],
    ),
    ("EvictionRequestAPI", &["evictionResponders"]),
    ("EmptyDirVolumeMode", &["volumes.*.emptyDir.mode"]),
];

/// Drops fields from the spec of a pod, which is at this pointer in the object.
pub(crate) fn drop_disabled(new: &mut Value, old: Option<&Value>, pointer: &str) {
    let old = old.and_then(|old| old.pointer(pointer)).unwrap_or(&Value::Null);
    let Some(spec) = new.pointer_mut(pointer) else { return };
    for (_, fields) in OF_SPEC {
        if !fields.iter().any(|field| has(old, field)) {
            fields.iter().for_each(|field| remove(spec, field));
        }
    }
    for (_, fields) in OF_CONTAINERS {
        let kept = containers(old).any(|container| fields.iter().any(|field| has(container, field)));
        if kept {
            continue;
        }
        for list in CONTAINERS {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                let signals = container["lifecycle"].get("stopSignal").is_some();
                fields.iter().for_each(|field| remove(container, field));
                if signals && is_empty(&container["lifecycle"]) {
                    unset(container, "lifecycle");
                }
            }
        }
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    CONTAINERS.into_iter().filter_map(|list| spec[list].as_array()).flatten()
}

/// Whether there is something at a path.
fn has(value: &Value, path: &str) -> bool {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    match (key, rest) {
        ("*", Some(rest)) => value.as_array().into_iter().flatten().any(|item| has(item, rest)),
        (key, Some(rest)) => has(&value[key], rest),
        (key, None) => !value[key].is_null() && value[key].as_array().is_none_or(|list| !list.is_empty()),
    }
}

/// Removes what is at a path.
fn remove(value: &mut Value, path: &str) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    match (key, rest) {
        ("*", Some(rest)) => value.as_array_mut().into_iter().flatten().for_each(|item| remove(item, rest)),
        (key, Some(rest)) => {
            if let Some(field) = value.get_mut(key) {
                remove(field, rest);
            }
        }
        (key, None) => {
            unset(value, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> Value {
        json!({
            "evictionResponders": [{"name": "a"}],
            "schedulingGroup": {"podGroupName": "g"},
            "volumes": [
                {"name": "e", "emptyDir": {"mode": 511, "medium": "Memory"}},
                {"name": "s", "secret": {"defaultUser": 1, "items": [{"key": "k", "path": "p", "user": 2}]}},
                {"name": "p", "projected": {"defaultUser": 1, "sources": [
                    {"secret": {"items": [{"key": "k", "path": "p", "user": 2}]}}, {"podCertificate": {"user": 3}},
                ]}},
            ],
            "containers": [{
                "name": "c", "lifecycle": {"stopSignal": "SIGUSR1"},
                "volumeMounts": [{"name": "e", "bindMountOptions": ["noexec"]}],
                "livenessProbe": {"httpGet": {"port": 1, "protocol": "h2c"}},
            }],
            "initContainers": [{
                "name": "i", "lifecycle": {"stopSignal": "SIGUSR1", "preStop": {"httpGet": {"port": 1, "protocol": "h2c"}}},
                "readinessProbe": {"grpc": {"port": 1, "mode": "TLS"}},
            }],
        })
    }

    #[test]
    fn fields_of_gates_that_are_off_are_dropped_unless_they_are_in_use() {
        let mut template = json!({"spec": {"template": {"spec": spec()}}});
        drop_disabled(&mut template, None, "/spec/template/spec");
        let want = json!({
            "schedulingGroup": {"podGroupName": "g"},
            "volumes": [
                {"name": "e", "emptyDir": {"medium": "Memory"}},
                {"name": "s", "secret": {"items": [{"key": "k", "path": "p"}]}},
                {"name": "p", "projected": {"sources": [
                    {"secret": {"items": [{"key": "k", "path": "p"}]}}, {"podCertificate": {}},
                ]}},
            ],
            "containers": [{
                "name": "c", "volumeMounts": [{"name": "e"}], "livenessProbe": {"httpGet": {"port": 1}},
            }],
            "initContainers": [{
                "name": "i", "lifecycle": {"preStop": {"httpGet": {"port": 1}}}, "readinessProbe": {"grpc": {"port": 1}},
            }],
        });
        assert_eq!(template["spec"]["template"]["spec"], want);
        let old = json!({"spec": spec()});
        let mut new = old.clone();
        drop_disabled(&mut new, Some(&old), "/spec");
        assert_eq!(new, old);
        // One use of a gate keeps all of its fields, and none of another's.
        let one = json!({"spec": {"initContainers": [{"lifecycle": {"stopSignal": "SIGTERM"}}]}});
        drop_disabled(&mut new, Some(&one), "/spec");
        assert_eq!(new["spec"]["containers"][0]["lifecycle"], json!({"stopSignal": "SIGUSR1"}));
        assert_eq!(new["spec"]["containers"][0]["livenessProbe"], json!({"httpGet": {"port": 1}}));
    }
}
