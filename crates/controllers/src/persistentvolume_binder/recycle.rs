//! Pure: pods that delete the content of released volumes, so that these can be used again.

use serde_json::{Value, json};
use steersman_base::Uid;
use steersman_model::View;
use steersman_model::core::{PersistentVolumeView, PodView};

use super::plugin;

/// The prefix of the names of recyclers.
const PREFIX: &str = "recycler-for-";
/// The bytes for which a recycler gets the increment of its timeout.
const GIB: i64 = 1 << 30;

/// The pod that recycles the volumes of a plug-in, and the time that it gets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recycler {
    /// The pod, except its name, its first volume and its deadline.
    pub template: Value,
    /// The seconds it gets at least.
    pub timeout_min: i64,
    /// The seconds it gets per GiB.
    pub timeout_per_gib: i64,
}

/// The action on the recycler of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Create it.
    Create,
    /// It runs.
    Wait,
    /// It has succeeded: delete it, and make the volume available.
    Succeeded,
    /// It has failed: delete it, and say so.
    Failed,
    /// There is a pod of its name that is not the one that this process created: delete it, and say so.
    Foreign,
    /// It was deleted before it ended.
    Gone,
}

/// Returns the name of the recycler of a volume.
pub(super) fn name(volume: &str) -> String {
    format!("{PREFIX}{volume}")
}

/// Returns the volume that a pod of this name recycles.
pub(super) fn volume_of(pod: &str) -> Option<&str> {
    pod.strip_prefix(PREFIX)
}

/// Returns what to do; `created` is the uid of the pod that this process created.
pub(super) fn step(pod: Option<&PodView>, created: Option<&Uid>) -> Step {
    match (pod, created) {
        (None, None) => Step::Create,
        (None, Some(_)) => Step::Gone,
        (Some(pod), Some(created)) if pod.meta().uid == *created => match pod.status.phase.as_str() {
            "Succeeded" => Step::Succeeded,
            "Failed" => Step::Failed,
            _ => Step::Wait,
        },
        (Some(_), _) => Step::Foreign,
    }
}

/// Returns the namespace of the recyclers of a template.
pub(super) fn namespace(recycler: &Recycler) -> &str {
    recycler.template["metadata"]["namespace"].as_str().unwrap_or("default")
}

/// Returns the recycler of a volume.
pub(super) fn pod(recycler: &Recycler, namespace: &str, volume: &PersistentVolumeView, size: i64) -> Value {
    let mut pod = recycler.template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    let source = &volume.spec.source;
    let (field, value) = match (&source.host_path, &source.nfs) {
        (Some(path), _) => ("hostPath", json!({ "path": path.path })),
        (None, Some(nfs)) => ("nfs", json!({ "server": nfs.server, "path": nfs.path })),
        (None, None) => return pod,
    };
    let volume_name = pod["spec"]["volumes"][0]["name"].clone();
    pod["spec"]["volumes"][0] = json!({ "name": volume_name, field: value });
    let seconds = (size / GIB).saturating_mul(recycler.timeout_per_gib).max(recycler.timeout_min);
    pod["spec"]["activeDeadlineSeconds"] = json!(seconds);
    if let Some(meta) = pod["metadata"].as_object_mut() {
        meta.remove("generateName");
    }
    pod["metadata"]["name"] = json!(name(&volume.meta().name));
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

/// Returns the pod of upstream, for plug-ins without a template of their own.
pub(super) fn default_template() -> Value {
    let script = "test -e /scrub && find /scrub -mindepth 1 -delete && test -z \"$(ls -A /scrub)\" || exit 1";
    json!({
        "metadata": { "namespace": "default" },
        "spec": {
            "restartPolicy": "Never",
            "volumes": [{ "name": "vol" }],
            "containers": [{
                "name": "pv-recycler",
                "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
                "command": ["/bin/sh"],
                "args": ["-c", script],
                "volumeMounts": [{ "name": "vol", "mountPath": "/scrub" }],
            }],
        },
    })
}

/// Returns the recycler of a volume's plug-in.
pub(super) fn of_volume<'a>(
    volume: &PersistentVolumeView,
    host_path: &'a Recycler,
    nfs: &'a Recycler,
) -> Option<&'a Recycler> {
    match plugin::of_source(&volume.spec.source)? {
        plugin::HOST_PATH => Some(host_path),
        _ => Some(nfs),
    }
}
