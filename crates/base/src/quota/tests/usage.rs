//! What objects use.

use serde_json::{Value, json};

use super::{NOW, container, pod, usage_of};

fn merged(mut left: Value, right: Value) -> Value {
    if let (Value::Object(left), Value::Object(right)) = (&mut left, &right) {
        for (key, value) in right {
            let held = left.remove(key).unwrap_or(Value::Null);
            left.insert(key.clone(), merged(held, value.clone()));
        }
        return Value::Object(std::mem::take(left));
    }
    right
}

fn check_pod(name: &str, pod: Value, want: Value) {
    let want = merged(json!({ "count/pods": "1", "pods": "1" }), want);
    assert_eq!(usage_of("", "pods", pod), want, "{name}");
}

#[test]
fn a_pod_uses_what_its_containers_ask_for() {
    check_pod("nothing", pod(json!([{ "name": "a" }])), json!({}));
    check_pod(
        "absent and null",
        json!({ "spec": { "containers": [{ "name": "a", "resources": null }], "initContainers": null } }),
        json!({}),
    );
    let both = json!([
        container("a", json!({ "cpu": "100m", "memory": "1Gi" }), json!({ "cpu": "1", "memory": "2Gi" })),
        container("b", json!({ "cpu": "1", "ephemeral-storage": "5G" }), json!({ "ephemeral-storage": "6G" })),
    ]);
    let want = json!({
        "cpu": "1100m", "requests.cpu": "1100m", "limits.cpu": "1",
        "memory": "1Gi", "requests.memory": "1Gi", "limits.memory": "2Gi",
        "ephemeral-storage": "5G", "requests.ephemeral-storage": "5G", "limits.ephemeral-storage": "6G",
    });
    check_pod("two containers", pod(both), want);
    let rare = json!({ "hugepages-2Mi": "4Mi", "example.com/gpu": "2", "kubernetes.io/native": "1", "deviceclass.resource.kubernetes.io/tpu": "1" });
    let want = json!({
        "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi", "requests.example.com/gpu": "2",
        "requests.deviceclass.resource.kubernetes.io/tpu": "1",
    });
    check_pod("huge pages and extended resources", pod(json!([container("a", rare.clone(), rare)])), want);
}

#[test]
fn init_containers_and_sidecars_count_for_the_most_at_a_time() {
    let asks = |name: &str, cpu: &str, is_sidecar: bool| {
        let policy = if is_sidecar { json!("Always") } else { Value::Null };
        merged(container(name, json!({ "cpu": cpu }), json!({})), json!({ "restartPolicy": policy }))
    };
    let check = |name: &str, main: &str, init: Value, want: &str| {
        let pod = json!({ "spec": { "containers": [asks("main", main, false)], "initContainers": init } });
        check_pod(name, pod, json!({ "cpu": want, "requests.cpu": want }));
    };
    check("a small one", "2", json!([asks("i", "1", false)]), "2");
    check("a large one", "2", json!([asks("i", "3", false), asks("j", "1", false)]), "3");
    check("a sidecar", "2", json!([asks("s", "1", true)]), "3");
    check("a sidecar before a large one", "2", json!([asks("s", "1", true), asks("i", "3", false)]), "4");
    check("a sidecar after a large one", "2", json!([asks("i", "4", false), asks("s", "1", true)]), "4");
    check("two sidecars", "2", json!([asks("s", "1", true), asks("t", "1", true)]), "4");
}

#[test]
fn overhead_and_resources_at_pod_level_count() {
    let spec = |more: Value| {
        let of = container("a", json!({ "cpu": "1", "memory": "1Gi" }), json!({ "cpu": "2" }));
        merged(pod(json!([of])), json!({ "spec": more }))
    };
    let overhead = json!({ "overhead": { "cpu": "100m", "memory": "10Mi" } });
    let want = json!({ "cpu": "1100m", "requests.cpu": "1100m", "limits.cpu": "2100m", "memory": "1034Mi", "requests.memory": "1034Mi" });
    check_pod("overhead, where there is a limit", spec(overhead.clone()), want);
    let level =
        json!({ "resources": { "requests": { "cpu": "5", "example.com/gpu": "1" }, "limits": { "cpu": "6" } } });
    let want = json!({ "cpu": "5", "requests.cpu": "5", "limits.cpu": "6", "memory": "1Gi", "requests.memory": "1Gi" });
    check_pod("pod level", spec(level.clone()), want);
    let want = json!({ "cpu": "5100m", "requests.cpu": "5100m", "limits.cpu": "6100m", "memory": "1034Mi", "requests.memory": "1034Mi" });
    check_pod("both", spec(merged(level, overhead)), want);
}

#[test]
fn a_resize_counts_for_the_most_of_what_is_asked_and_granted() {
    let status = |allocated: &str, actual: &str, conditions: Value| {
        json!({ "status": { "conditions": conditions, "containerStatuses": [{
            "name": "a", "allocatedResources": { "cpu": allocated },
            "resources": { "requests": { "cpu": actual }, "limits": { "cpu": actual } },
        }] } })
    };
    let check = |name: &str, asked: &str, status: Value, want: &str| {
        let of = container("a", json!({ "cpu": asked }), json!({ "cpu": asked }));
        check_pod(
            name,
            merged(pod(json!([of])), status),
            json!({ "cpu": want, "requests.cpu": want, "limits.cpu": want }),
        );
    };
    check("granted", "2", status("2", "2", json!([])), "2");
    check("to more", "3", status("2", "2", json!([])), "3");
    check("to less", "1", status("2", "2", json!([])), "2");
    let infeasible = json!([{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }]);
    check("to what the node does not have", "300", status("2", "2", infeasible), "2");
    let deferred = json!([{ "type": "PodResizePending", "status": "True", "reason": "Deferred" }]);
    check("to what the node does not have yet", "300", status("2", "2", deferred), "300");
}

#[test]
fn a_pod_that_has_ended_or_should_be_gone_is_only_an_object() {
    let check = |name: &str, more: Value, counts: bool| {
        let pod = merged(pod(json!([container("a", json!({ "cpu": "1" }), json!({}))])), more);
        let want = if counts {
            json!({ "count/pods": "1", "pods": "1", "cpu": "1", "requests.cpu": "1" })
        } else {
            json!({ "count/pods": "1" })
        };
        assert_eq!(usage_of("", "pods", pod), want, "{name}");
    };
    check("pending", json!({ "status": { "phase": "Pending" } }), true);
    check("running", json!({ "status": { "phase": "Running" } }), true);
    check("succeeded", json!({ "status": { "phase": "Succeeded" } }), false);
    check("failed", json!({ "status": { "phase": "Failed" } }), false);
    let deleted = |time: &str, grace: Value| json!({ "metadata": { "deletionTimestamp": time, "deletionGracePeriodSeconds": grace } });
    check("terminating", deleted(NOW, json!(30)), true);
    check("at the end of its grace period", deleted("2026-11-15T11:59:30Z", json!(30)), true);
    check("past it", deleted("2026-11-15T11:59:29Z", json!(30)), false);
    check("without one", deleted("2020-01-01T00:00:00Z", Value::Null), true);
}

#[test]
fn a_service_uses_node_ports_and_load_balancers() {
    let check = |name: &str, spec: Value, node_ports: &str, balancers: &str| {
        let want = json!({ "count/services": "1", "services": "1", "services.nodeports": node_ports, "services.loadbalancers": balancers });
        assert_eq!(usage_of("", "services", json!({ "spec": spec })), want, "{name}");
    };
    let ports = json!([{ "port": 80 }, { "port": 81, "nodePort": 30081 }]);
    check("of the cluster", json!({ "type": "ClusterIP", "ports": ports }), "0", "0");
    check("of nodes", json!({ "type": "NodePort", "ports": ports }), "2", "0");
    check("balanced", json!({ "type": "LoadBalancer", "ports": ports }), "2", "1");
    let without = json!({ "type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false });
    check("balanced without node ports", without, "1", "1");
    check("empty", json!({}), "0", "0");
}

#[test]
fn a_claim_uses_storage_of_its_class() {
    let check = |name: &str, claim: Value, want: Value| {
        let want = merged(json!({ "persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1" }), want);
        assert_eq!(usage_of("", "persistentvolumeclaims", claim), want, "{name}");
    };
    let asks = |amount: &str, more: Value| {
        merged(json!({ "spec": { "resources": { "requests": { "storage": amount } } } }), more)
    };
    check("of no class", asks("1Gi", json!({})), json!({ "requests.storage": "1Gi" }));
    check("no storage", json!({}), json!({}));
    // A fraction of a byte would not pass validation: upstream 94313.
    check("whole bytes", asks("1000m", json!({})), json!({ "requests.storage": "1" }));
    check("rounded up", asks("1500m", json!({})), json!({ "requests.storage": "2" }));
    let gold = json!({
        "requests.storage": "1Gi", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    });
    check("of a class", asks("1Gi", json!({ "spec": { "storageClassName": "gold" } })), gold.clone());
    let noted = json!({ "metadata": { "annotations": { "volume.beta.kubernetes.io/storage-class": "gold" } }, "spec": { "storageClassName": "tin" } });
    check("by annotation", asks("1Gi", noted), gold);
    let allocated = |amount: &str| json!({ "status": { "allocatedResources": { "storage": amount } } });
    check("a resize that failed", asks("1Gi", allocated("3Gi")), json!({ "requests.storage": "3Gi" }));
    check("a resize under way", asks("3Gi", allocated("1Gi")), json!({ "requests.storage": "3Gi" }));
}

#[test]
fn a_resource_claim_uses_the_most_devices_it_may_get() {
    let check = |name: &str, requests: Value, want: Value| {
        let want = merged(json!({ "count/resourceclaims.resource.k8s.io": "1" }), want);
        let claim = json!({ "spec": { "devices": { "requests": requests } } });
        assert_eq!(usage_of("resource.k8s.io", "resourceclaims", claim), want, "{name}");
    };
    let kind = |class: &str, mode: &str, count: i64| json!({ "deviceClassName": class, "allocationMode": mode, "count": count });
    let gpus = |count: &str| {
        json!({
            "gpu.deviceclass.resource.k8s.io/devices": count, "requests.example.com/gpu": count,
            "requests.deviceclass.resource.kubernetes.io/gpu": count,
        })
    };
    let other = |count: &str| {
        json!({
            "other.deviceclass.resource.k8s.io/devices": count, "requests.deviceclass.resource.kubernetes.io/other": count,
        })
    };
    check("none", json!([]), json!({}));
    check("two", json!([{ "name": "a", "exactly": kind("gpu", "ExactCount", 2) }]), gpus("2"));
    check("all", json!([{ "name": "a", "exactly": kind("gpu", "All", 0) }]), gpus("32"));
    let twice = json!([{ "exactly": kind("gpu", "ExactCount", 2) }, { "exactly": kind("gpu", "ExactCount", 3) }]);
    check("two requests", twice, gpus("5"));
    let either = json!([{ "firstAvailable": [kind("gpu", "ExactCount", 2), kind("gpu", "ExactCount", 4), kind("other", "ExactCount", 1)] }]);
    check("alternatives", either, merged(gpus("4"), other("1")));
}

#[test]
fn any_other_object_is_one_under_its_names() {
    assert_eq!(usage_of("", "configmaps", json!({})), json!({ "count/configmaps": "1", "configmaps": "1" }));
    assert_eq!(usage_of("apps", "deployments", json!({})), json!({ "count/deployments.apps": "1" }));
    assert_eq!(usage_of("example.com", "secrets", json!({})), json!({ "count/secrets.example.com": "1" }));
    assert_eq!(super::Tracker::of("", "events"), None);
    assert_eq!(super::Tracker::of("authorization.k8s.io", "subjectaccessreviews"), None);
}
