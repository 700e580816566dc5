//! Parts that siblings have in common are stored once, and never mixed up.

use serde_json::{Value, json};
use steersman_model::corpus::{Corpus, TEMPLATES, protobuf};
use steersman_model::{Encoded, PodView, View};

/// Decodes from both encodings, twice each: the second time everything is remembered.
fn decode(pod: &Value) -> PodView {
    let json = pod.to_string();
    let protobuf = protobuf::encode("core.v1.Pod", pod);
    let decode = |body| PodView::decode(body).unwrap();
    let view = decode(Encoded::Json(json.as_bytes()));
    for again in [
        decode(Encoded::Protobuf(&protobuf)),
        decode(Encoded::Json(json.as_bytes())),
        decode(Encoded::Protobuf(&protobuf)),
    ] {
        assert_eq!(view, again);
        assert!(view.spec.shared.same_allocation(&again.spec.shared));
    }
    view
}

fn of_corpus(index: usize) -> Value {
    serde_json::from_str(&Corpus::new(5).pod(index)).unwrap()
}

#[test]
fn siblings_share_all_of_their_spec_but_their_own() {
    let one = of_corpus(17);
    let other = of_corpus(17 + TEMPLATES);
    assert_ne!(one["spec"]["volumes"], other["spec"]["volumes"], "the token's volume has a name of its own");
    let one = decode(&one);
    let other = decode(&other);
    let stranger = decode(&of_corpus(18));
    assert!(one.spec.shared.same_allocation(&other.spec.shared));
    assert!(std::ptr::eq(&*one.spec.volumes, &*other.spec.volumes));
    assert!(std::ptr::eq(&*one.status.container_statuses, &*other.status.container_statuses));
    assert!(std::ptr::eq(&*one.metadata.owner_references, &*other.metadata.owner_references));
    assert!(!one.spec.shared.same_allocation(&stranger.spec.shared));
    assert_ne!(one.metadata.name, other.metadata.name);
    assert_ne!(one.status.pod_ip, other.status.pod_ip);
}

/// A pod of a StatefulSet.
fn of_stateful_set(ordinal: usize) -> Value {
    json!({
        "metadata": {"name": format!("database-{ordinal}"), "namespace": "default"},
        "spec": {
            "nodeName": format!("node-{ordinal}"),
            "hostname": format!("database-{ordinal}"),
            "subdomain": "database",
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-database-{ordinal}")}}],
            "containers": [{"name": "postgres", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        },
    })
}

#[test]
fn pods_of_a_stateful_set_share_all_but_their_claims() {
    let one = decode(&of_stateful_set(0));
    let other = decode(&of_stateful_set(1));
    assert!(one.spec.shared.same_allocation(&other.spec.shared));
    assert_eq!(one.spec.containers[0].volume_mounts[0], "data");
    assert_ne!(one.spec.volumes, other.spec.volumes);
    assert_eq!((one.spec.hostname.as_str(), other.spec.hostname.as_str()), ("database-0", "database-1"));
}

#[test]
fn bound_pods_of_a_daemon_set_share_their_spec() {
    let of_daemon_set = |node: &str| {
        let fields = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}});
        let affinity = json!({"nodeAffinity": required});
        json!({"spec": {"nodeName": node, "affinity": affinity, "containers": [{"name": "agent"}]}})
    };
    let one = decode(&of_daemon_set("a"));
    let other = decode(&of_daemon_set("b"));
    assert!(one.spec.shared.same_allocation(&other.spec.shared));
}

#[test]
fn what_looks_like_a_token_volume_and_is_none_is_kept_apart() {
    let pod = |name: &str| {
        json!({"spec": {
            "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}}],
            "containers": [{"name": name, "volumeMounts": [{"name": name}], "env": [{"valueFrom": {"secretKeyRef": {"name": name}}}]}],
            "priorityClassName": name,
        }})
    };
    for name in ["kube-api-access-aaaaa", "kube-api-access-bbbbb"] {
        let view = decode(&pod(name));
        assert_eq!(view.spec.volumes[0].name, name);
        assert_eq!(view.spec.containers[0].name, name);
        assert_eq!(view.spec.containers[0].env_secrets[0], name);
        assert_eq!(view.spec.containers[0].volume_mounts[0], name);
        assert_eq!(view.spec.priority_class_name, name);
    }
    // One that is a claim in one pod, and a token in the other.
    let token = |name: &str| {
        json!({"spec": {
            "volumes": [{"name": name, "projected": {"sources": []}}],
            "containers": [{"name": "c", "volumeMounts": [{"name": name}]}],
        }})
    };
    assert!(decode(&token("kube-api-access-aaaaa")).spec.containers[0].volume_mounts.is_empty());
    assert!(decode(&token("kube-api-access-ccccc")).spec.containers[0].volume_mounts.is_empty());
    let mixed = json!({"spec": {
        "volumes": [
            {"name": "kube-api-access-aaaaa", "projected": {"sources": []}},
            {"name": "kube-api-access-ccccc", "persistentVolumeClaim": {"claimName": "c"}},
        ],
        "containers": [{"name": "c", "volumeMounts": [{"name": "kube-api-access-ccccc"}]}],
    }});
    assert_eq!(decode(&mixed).spec.containers[0].volume_mounts[0], "kube-api-access-ccccc");
}

#[test]
fn statuses_that_differ_in_anything_read_are_kept_apart() {
    let pod = |restarts: i32, state: Value| {
        let status = json!({"name": "c", "restartCount": restarts, "state": state, "containerID": "x"});
        json!({"status": {"containerStatuses": [status.clone(), status]}})
    };
    let running = |at: &str| json!({"running": {"startedAt": at}});
    let views = [
        decode(&pod(0, running("2026-11-15T22:04:07Z"))),
        decode(&pod(0, running("2026-11-15T22:04:08Z"))),
        decode(&pod(1, running("2026-11-15T22:04:07Z"))),
        decode(&pod(0, json!({"waiting": {}}))),
        decode(&pod(0, json!({}))),
        decode(&pod(0, json!({"terminated": {"exitCode": 1}}))),
        decode(&pod(0, json!({"terminated": {"exitCode": 2}}))),
    ];
    assert_eq!(views[0].status, views[1].status, "when it was started nobody reads");
    for (at, view) in views.iter().enumerate().skip(1) {
        for other in &views[at + 1..] {
            assert_ne!(view.status, other.status);
        }
    }
}
