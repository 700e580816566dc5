//! What users make: objects and patches, as JSON.

mod later;
mod others;
mod workloads;

use serde_json::{Map, Value, json};

use crate::plan::{BYSTANDER, Edit, NAMESPACES, OWNERS, OwnerKind, Share};

/// A finalizer that only users take off.
pub(super) const HOLD: &str = "example.com/hold";
/// The collection of ClusterRoles.
pub(super) const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
pub(super) use later::{claim_template, no_limit};
pub(super) use others::{class, driver};
pub(super) use workloads::{endpoints, part_of_role};

/// The label of pods that were taken away from their owners.
pub(super) const LOST: &str = "lost";

/// The path of the collection that an owner is in.
pub(super) fn collection_of(owner: usize) -> String {
    let (prefix, plural) = match OWNERS[owner].kind {
        OwnerKind::Deployment => ("/apis/apps/v1", "deployments"),
        OwnerKind::ReplicaSet | OwnerKind::DeviceSet => ("/apis/apps/v1", "replicasets"),
        OwnerKind::ReplicationController => ("/api/v1", "replicationcontrollers"),
        OwnerKind::Service => ("/api/v1", "services"),
        OwnerKind::Account => ("/api/v1", "serviceaccounts"),
        OwnerKind::Tree => ("/api/v1", "configmaps"),
        OwnerKind::Custom => ("/apis/garbage.example.com/v1", "cakes"),
        OwnerKind::StatefulSet => ("/apis/apps/v1", "statefulsets"),
        OwnerKind::DaemonSet => ("/apis/apps/v1", "daemonsets"),
        OwnerKind::Job => ("/apis/batch/v1", "jobs"),
        OwnerKind::CronJob => ("/apis/batch/v1", "cronjobs"),
        OwnerKind::Budget => ("/apis/policy/v1", "poddisruptionbudgets"),
        OwnerKind::External => ("/api/v1", "services"),
        OwnerKind::Role => return ROLES.to_owned(),
        OwnerKind::Autoscaler => ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
        OwnerKind::Request => return "/apis/certificates.k8s.io/v1/certificatesigningrequests".to_owned(),
        OwnerKind::Claim => ("/api/v1", "persistentvolumeclaims"),
        OwnerKind::Volume => return "/api/v1/persistentvolumes".to_owned(),
        OwnerKind::ClaimUser | OwnerKind::DeviceUser => ("/api/v1", "pods"),
        OwnerKind::Quota => ("/api/v1", "resourcequotas"),
        OwnerKind::DeviceClaim => ("/apis/resource.k8s.io/v1", "resourceclaims"),
    };
    format!("{prefix}/namespaces/{}/{plural}", NAMESPACES[OWNERS[owner].namespace])
}

/// The path of an owner.
pub(super) fn path_of(owner: usize) -> String {
    format!("{}/{}", collection_of(owner), OWNERS[owner].name)
}

/// The path of the pods of a namespace.
pub(super) fn pods_in(namespace: usize) -> String {
    format!("/api/v1/namespaces/{}/pods", NAMESPACES[namespace])
}

fn kind_of(owner: usize) -> (&'static str, &'static str) {
    match OWNERS[owner].kind {
        OwnerKind::Deployment => ("apps/v1", "Deployment"),
        OwnerKind::ReplicaSet | OwnerKind::DeviceSet => ("apps/v1", "ReplicaSet"),
        OwnerKind::ReplicationController => ("v1", "ReplicationController"),
        OwnerKind::Service => ("v1", "Service"),
        OwnerKind::Account => ("v1", "ServiceAccount"),
        OwnerKind::Tree => ("v1", "ConfigMap"),
        OwnerKind::Custom => ("garbage.example.com/v1", "Cake"),
        OwnerKind::StatefulSet => ("apps/v1", "StatefulSet"),
        OwnerKind::DaemonSet => ("apps/v1", "DaemonSet"),
        OwnerKind::Job => ("batch/v1", "Job"),
        OwnerKind::CronJob => ("batch/v1", "CronJob"),
        OwnerKind::Budget => ("policy/v1", "PodDisruptionBudget"),
        OwnerKind::External => ("v1", "Service"),
        OwnerKind::Role => ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        OwnerKind::Autoscaler => ("autoscaling/v2", "HorizontalPodAutoscaler"),
        OwnerKind::Request => ("certificates.k8s.io/v1", "CertificateSigningRequest"),
        OwnerKind::Claim => ("v1", "PersistentVolumeClaim"),
        OwnerKind::Volume => ("v1", "PersistentVolume"),
        OwnerKind::ClaimUser | OwnerKind::DeviceUser => ("v1", "Pod"),
        OwnerKind::Quota => ("v1", "ResourceQuota"),
        OwnerKind::DeviceClaim => ("resource.k8s.io/v1", "ResourceClaim"),
    }
}

/// A new owner.
pub(super) fn object_of(owner: usize, changes: &[Edit]) -> Value {
    let name = OWNERS[owner].name;
    let (api_version, kind) = kind_of(owner);
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "labels": {"app": name}},
    });
    let template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "image:0"}]},
    });
    match OWNERS[owner].kind {
        OwnerKind::Deployment | OwnerKind::ReplicaSet => {
            object["spec"] = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
        }
        OwnerKind::ReplicationController => object["spec"] = json!({"selector": {"app": name}, "template": template}),
        OwnerKind::Service => {
            object["spec"] = json!({"selector": {"app": name}, "ports": [{"name": "main", "port": 80}]});
        }
        OwnerKind::Tree => object["data"] = json!({"of": "tree"}),
        OwnerKind::Account | OwnerKind::Custom => {}
        OwnerKind::StatefulSet
        | OwnerKind::DaemonSet
        | OwnerKind::Job
        | OwnerKind::CronJob
        | OwnerKind::Budget
        | OwnerKind::External
        | OwnerKind::Role => merge(&mut object, &workloads::body_of(owner, &template)),
        OwnerKind::Autoscaler | OwnerKind::Request | OwnerKind::Claim | OwnerKind::Volume | OwnerKind::ClaimUser => {
            merge(&mut object, &others::body_of(owner));
        }
        OwnerKind::Quota | OwnerKind::DeviceSet | OwnerKind::DeviceClaim | OwnerKind::DeviceUser => {
            merge(&mut object, &later::body_of(owner, &template));
        }
    }
    merge(&mut object, &patch_of(owner, changes));
    object
}

/// The patch for some changes. What an owner has no field for is left out.
pub(super) fn patch_of(owner: usize, changes: &[Edit]) -> Value {
    let kind = OWNERS[owner].kind;
    let is_deployment = kind == OwnerKind::Deployment;
    let has_pods = matches!(
        kind,
        OwnerKind::Deployment
            | OwnerKind::ReplicaSet
            | OwnerKind::ReplicationController
            | OwnerKind::StatefulSet
            | OwnerKind::DaemonSet
            | OwnerKind::DeviceSet
    );
    let mut patch = json!({});
    for change in changes {
        let part = workloads::part_of(kind, change, changes).or_else(|| others::part_of(owner, change));
        let part = part.or_else(|| later::part_of(kind, change));
        if let Some(part) = part {
            merge(&mut patch, &part);
            continue;
        }
        let part = match change {
            Edit::Replicas(count) if has_pods && kind != OwnerKind::DaemonSet => json!({"spec": {"replicas": count}}),
            Edit::Image(number) if has_pods => container(&json!({"name": "main", "image": format!("image:{number}")})),
            Edit::Env(number) if has_pods => {
                container(&json!({"name": "main", "env": [{"name": "NUMBER", "value": number.to_string()}]}))
            }
            Edit::NodeSelector(selector) if has_pods => {
                let selector = match selector {
                    None => Value::Null,
                    Some(true) => json!({"role": ""}),
                    Some(false) => json!({"disk": "ssd"}),
                };
                json!({"spec": {"template": {"spec": {"nodeSelector": selector}}}})
            }
            Edit::Load(load) if has_pods => annotation("cpu-usage", json!(format!("{load}m"))),
            Edit::ReadyDelay(delay) if has_pods => annotation("ready-delay", json!(format!("{delay}s"))),
            Edit::NeverReady(never) if has_pods => {
                annotation("never-ready", if *never { json!("true") } else { Value::Null })
            }
            Edit::Strategy { recreate: true, .. } if is_deployment => {
                json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
            }
            Edit::Strategy { surge, unavailable, .. } if is_deployment => json!({"spec": {"strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": share(*surge), "maxUnavailable": share(*unavailable)},
            }}}),
            Edit::Paused(paused) if is_deployment => json!({"spec": {"paused": paused}}),
            Edit::MinReady(seconds) if has_pods => json!({"spec": {"minReadySeconds": seconds}}),
            Edit::History(limit) if is_deployment || workloads::has_revisions(kind) => {
                json!({"spec": {"revisionHistoryLimit": limit}})
            }
            Edit::Deadline(seconds) if is_deployment => json!({"spec": {"progressDeadlineSeconds": seconds}}),
            Edit::Selects(other) if kind == OwnerKind::Budget => {
                json!({"spec": {"selector": {"matchLabels": {"app": OWNERS[*other].name}}}})
            }
            Edit::Selects(other) if kind == OwnerKind::Service => {
                json!({"spec": {"selector": {"app": OWNERS[*other].name}}})
            }
            Edit::Port(port) if kind == OwnerKind::Service => {
                json!({"spec": {"ports": [{"name": "main", "port": 80, "targetPort": port}]}})
            }
            _ => json!({"metadata": {"annotations": {"touched": "yes"}}}),
        };
        merge(&mut patch, &part);
    }
    patch
}

fn container(container: &Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

fn annotation(name: &str, value: Value) -> Value {
    let annotations = Map::from_iter([(format!("nodes.steersman.dev/{name}"), value)]);
    json!({"spec": {"template": {"metadata": {"annotations": annotations}}}})
}

fn share(share: Share) -> Value {
    match share {
        Share::Count(count) => json!(count),
        Share::Percent(percent) => json!(format!("{percent}%")),
    }
}

/// Puts one tree into another. Lists of one element, which is all there are here, are merged.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) if into.len() == 1 && from.len() == 1 => merge(&mut into[0], &from[0]),
        (into, from) => *into = from.clone(),
    }
}

/// A reference to an owner.
pub(super) fn reference_to(owner: usize, made: &Value, blocks: bool) -> Value {
    let (api_version, kind) = kind_of(owner);
    reference(api_version, kind, made, blocks)
}

/// A reference to an object.
pub(super) fn reference(api_version: &str, kind: &str, made: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "blockOwnerDeletion": blocks,
        "name": made["metadata"]["name"], "uid": made["metadata"]["uid"],
    })
}

/// Returns a ConfigMap with an owner.
pub(super) fn owned_map(name: &str, reference: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [reference]}, "data": {"of": "tree"},
    })
}

/// Returns a secret that requests a token of an account.
pub(super) fn token_secret(owner: usize) -> Value {
    let name = OWNERS[owner].name;
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": format!("{name}-token"), "annotations": {"kubernetes.io/service-account.name": name}},
    })
}

/// The name of a pod without owner: a StatefulSet adopts pods whose names have one of its ordinals.
fn bare_name(owner: usize, number: usize) -> String {
    let name = OWNERS[owner].name;
    match OWNERS[owner].kind {
        OwnerKind::StatefulSet => format!("{name}-{}", number % 6),
        _ => format!("{name}-bare-{number}"),
    }
}

/// Returns a pod without owner that a selector matches.
pub(super) fn bare_pod(owner: usize, number: usize) -> Value {
    let name = OWNERS[owner].name;
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": bare_name(owner, number), "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "image:0"}]},
    })
}

/// Returns a pod without owner that ends by itself.
pub(super) fn ending_pod(pick: usize, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("run-{pick}-{number}"), "labels": {"app": "run"},
            "annotations": {"nodes.steersman.dev/run-time": format!("{}s", 5 + 10 * number)},
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "image:0"}]},
    })
}

/// Returns objects that no other depends on, and that may become unreadable, with their resources. The pod fits no
/// node.
pub(super) fn bystanders() -> [(&'static str, Value); 3] {
    let metadata = json!({"name": BYSTANDER, "labels": {"app": BYSTANDER}});
    let spec = json!({
        "nodeSelector": {"nowhere": "to-be-found"}, "containers": [{"name": "main", "image": "image:0"}],
    });
    let ports = json!({"ports": [{"name": "main", "port": 80}]});
    [
        ("pods", json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})),
        ("services", json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports})),
        ("configmaps", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})),
    ]
}

/// The custom kind of the world.
pub(super) fn definition_of_cakes() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "cakes.garbage.example.com"},
        "spec": {
            "group": "garbage.example.com", "scope": "Namespaced",
            "names": {"plural": "cakes", "singular": "cake", "kind": "Cake", "listKind": "CakeList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}
