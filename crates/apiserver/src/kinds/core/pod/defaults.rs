//! What a pod and a pod template leave open.
//!
//! Follows `pkg/apis/core/v1/defaults.go` and the order of `zz_generated.defaults.go`.

use serde_json::{Value, json};
use steersman_base::quantity::Scale;

use crate::kinds::shared::check;
use crate::kinds::shared::json::{
    default_to, default_zero_to, each_mut, flag, is_empty, is_set, number, object_mut, set, text, unset, with,
};

const FILE_MODE: i32 = 0o644;
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A pod.
pub(crate) fn pod(pod: &mut Value) {
    with(pod, "spec", |spec| {
        pod_only(spec);
        pod_spec(spec);
    });
    if let Some(status) = object_mut(pod, "status") {
        pod_ips(status);
    }
}

/// The pod template at `template`, there or not: it is no pointer in Go.
pub(crate) fn template(value: &mut Value) {
    with(value, "template", |template| with(template, "spec", pod_spec));
}

/// The pod template at `template`, if it is there.
pub(crate) fn optional_template(value: &mut Value) {
    if let Some(template) = object_mut(value, "template") {
        with(template, "spec", pod_spec);
    }
}

/// Sets the defaults of pods that templates do not get, because old templates must stay as they are.
fn pod_only(spec: &mut Value) {
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    let host_network = flag(&spec["hostNetwork"]);
    for list in ["containers", "initContainers"] {
        each_mut(spec, list, |container| {
            requests_from_limits(container);
            if host_network {
                each_mut(container, "ports", |port| {
                    if number(&port["hostPort"]) == 0 {
                        set(port, "hostPort", port["containerPort"].clone());
                    }
                });
            }
        });
    }
    default_to(spec, "enableServiceLinks", true);
}

fn requests_from_limits(container: &mut Value) {
    let Some(resources) = object_mut(container, "resources") else { return };
    let Some(limits) = resources["limits"].as_object().cloned() else { return };
    with(resources, "requests", |requests| {
        for (name, limit) in limits {
            default_to(requests, &name, limit);
        }
    });
}

fn pod_ips(status: &mut Value) {
    let ip = text(&status["podIP"]).to_owned();
    let first = text(&status["podIPs"][0]["ip"]).to_owned();
    if !ip.is_empty() && ip != first {
        set(status, "podIPs", json!([{ "ip": ip }]));
    } else if ip.is_empty() && !first.is_empty() {
        set(status, "podIP", first);
    }
}

/// The spec of a pod or of a template.
fn pod_spec(spec: &mut Value) {
    if is_empty(&spec["serviceAccountName"]) {
        match unset(spec, "serviceAccount") {
            Some(account) if !is_empty(&account) => set(spec, "serviceAccountName", account),
            _ => {}
        }
    }
    if !is_empty(&spec["serviceAccountName"]) {
        set(spec, "serviceAccount", spec["serviceAccountName"].clone());
    }
    default_zero_to(spec, "dnsPolicy", "ClusterFirst");
    default_zero_to(spec, "restartPolicy", "Always");
    default_to(spec, "securityContext", json!({}));
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_zero_to(spec, "schedulerName", "default-scheduler");
    each_mut(spec, "volumes", volume);
    for list in CONTAINERS {
        each_mut(spec, list, container);
    }
    milli(spec, "overhead");
    if let Some(resources) = object_mut(spec, "resources") {
        milli(resources, "limits");
        milli(resources, "requests");
    }
}

fn volume(volume: &mut Value) {
    let sourceless = volume.as_object().is_some_and(|map| !map.iter().any(|(key, v)| key != "name" && is_set(v)));
    if sourceless {
        set(volume, "emptyDir", json!({}));
    }
    if let Some(image) = object_mut(volume, "image") {
        default_zero_to(image, "pullPolicy", pull_policy(text(&image["reference"])));
    }
    if let Some(host_path) = object_mut(volume, "hostPath") {
        default_to(host_path, "type", "");
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object_mut(volume, source) {
            default_to(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(iscsi) = object_mut(volume, "iscsi") {
        default_zero_to(iscsi, "iscsiInterface", "default");
    }
    if let Some(rbd) = object_mut(volume, "rbd") {
        default_zero_to(rbd, "pool", "rbd");
        default_zero_to(rbd, "user", "admin");
        default_zero_to(rbd, "keyring", "/etc/ceph/keyring");
    }
    if let Some(disk) = object_mut(volume, "azureDisk") {
        default_to(disk, "cachingMode", "ReadWrite");
        default_to(disk, "fsType", "ext4");
        default_to(disk, "readOnly", false);
        default_to(disk, "kind", "Shared");
    }
    if let Some(scale_io) = object_mut(volume, "scaleIO") {
        default_zero_to(scale_io, "storageMode", "ThinProvisioned");
        default_zero_to(scale_io, "fsType", "xfs");
    }
    if let Some(downward) = object_mut(volume, "downwardAPI") {
        each_mut(downward, "items", field_ref);
    }
    if let Some(projected) = object_mut(volume, "projected") {
        each_mut(projected, "sources", |source| {
            if let Some(downward) = object_mut(source, "downwardAPI") {
                each_mut(downward, "items", field_ref);
            }
            if let Some(token) = object_mut(source, "serviceAccountToken") {
                default_to(token, "expirationSeconds", 3600);
            }
        });
    }
    if let Some(claim) = object_mut(volume, "ephemeral").and_then(|it| object_mut(it, "volumeClaimTemplate")) {
        with(claim, "spec", crate::kinds::core::persistent_volume_claim::spec_defaults);
    }
}

fn container(container: &mut Value) {
    default_zero_to(container, "imagePullPolicy", pull_policy(text(&container["image"])));
    default_zero_to(container, "terminationMessagePath", "/dev/termination-log");
    default_zero_to(container, "terminationMessagePolicy", "File");
    each_mut(container, "ports", |port| default_zero_to(port, "protocol", "TCP"));
    each_mut(container, "env", |env| {
        if let Some(source) = object_mut(env, "valueFrom") {
            field_ref(source);
            if let Some(file) = object_mut(source, "fileKeyRef") {
                default_to(file, "optional", false);
            }
        }
    });
    if let Some(resources) = object_mut(container, "resources") {
        milli(resources, "limits");
        milli(resources, "requests");
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = object_mut(container, name) {
            default_zero_to(probe, "timeoutSeconds", 1);
            default_zero_to(probe, "periodSeconds", 10);
            default_zero_to(probe, "successThreshold", 1);
            default_zero_to(probe, "failureThreshold", 3);
            http_get(probe);
            if let Some(grpc) = object_mut(probe, "grpc") {
                default_to(grpc, "service", "");
            }
        }
    }
    if let Some(lifecycle) = object_mut(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(handler) = object_mut(lifecycle, name) {
                http_get(handler);
            }
        }
    }
}

fn http_get(handler: &mut Value) {
    if let Some(action) = object_mut(handler, "httpGet") {
        default_zero_to(action, "path", "/");
        default_zero_to(action, "scheme", "HTTP");
    }
}

fn field_ref(source: &mut Value) {
    if let Some(field) = object_mut(source, "fieldRef") {
        default_zero_to(field, "apiVersion", "v1");
    }
}

/// Amounts are kept to a thousandth, rounded up (`SetDefaults_ResourceList`).
pub(crate) fn milli(value: &mut Value, key: &str) {
    for amount in value.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        let Some(quantity) = check::quantity(amount) else { continue };
        let rounded = quantity.rounded_up(Scale::Milli);
        if rounded != quantity {
            *amount = rounded.to_string().into();
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

/// The maximum length of the name of a repository.
const REPOSITORY_LENGTH_MAX: usize = 255;

/// Whether an image's reference has the tag `latest`, or neither tag nor digest. What is no reference has not.
fn is_latest(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let at = name.rfind('/').map_or(0, |slash| slash + 1);
    let (repository, tag) = match name[at..].split_once(':') {
        Some((last, tag)) => (&name[..at + last.len()], Some(tag)),
        None => (name, None),
    };
    let path = match repository.split_once('/') {
        Some((host, path)) if host == "localhost" || host.contains(['.', ':']) => path,
        _ => repository,
    };
    if repository.len() > REPOSITORY_LENGTH_MAX || !path.split('/').all(is_path_part) {
        return false;
    }
    match tag {
        Some(tag) => tag == "latest",
        None => !digest,
    }
}

/// Lower-case letters and digits, with a dot, one or two underscores, or dashes between them.
fn is_path_part(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators: Vec<_> = part.split(is_word).filter(|text| !text.is_empty()).collect();
    let good = |text: &&str| matches!(*text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-');
    part.starts_with(is_word) && part.ends_with(is_word) && separators.iter().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_tag_are_always_pulled() {
        for (image, want) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("registry:5000/nginx", true),
            ("registry:5000/nginx:1", false),
            ("nginx@sha256:0123", false),
            ("nginx:latest@sha256:0123", true),
            ("Nginx", false),
            ("-1", false),
            ("a--b__c.d/e", true),
            ("", false),
        ] {
            assert_eq!(is_latest(image), want, "{image}");
        }
    }
}
