//! The objects of the load.

use serde_json::{Value, json};

use crate::api::Call;
use crate::sizes::Mixed;

/// Long before any run, so that nothing waits for it.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";
/// Of the ConfigMaps that fill a cluster.
const LARGE_BYTES: usize = 8 << 10;

pub(crate) fn deployments(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments")
}

pub(crate) fn replica_sets(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/replicasets")
}

pub(crate) fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

pub(crate) fn slices(namespace: &str) -> String {
    format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")
}

pub(crate) fn core(namespace: &str, resource: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{resource}")
}

pub(crate) fn deployment_name(at: usize) -> String {
    format!("web-{at}")
}

pub(crate) fn deployment(at: usize, replicas: usize) -> Value {
    let name = deployment_name(at);
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
        },
    })
}

pub(crate) fn service(at: usize) -> Value {
    let name = deployment_name(at);
    json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}})
}

/// A pod as a kubelet reports it, ready or not.
pub(crate) fn pod_status(at: usize, ready: bool) -> Value {
    let address = format!("10.{}.{}.{}", 1 + at / 62_500, at / 250 % 250, 1 + at % 250);
    let is = |kind: &str, so: bool| {
        let status = if so { "True" } else { "False" };
        json!({"type": kind, "status": status, "lastTransitionTime": LONG_AGO})
    };
    json!({"status": {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": LONG_AGO,
        "conditions": [
            is("PodScheduled", true), is("Initialized", true), is("ContainersReady", ready), is("Ready", ready),
        ],
        "containerStatuses": [{
            "name": "server", "ready": ready, "started": true, "restartCount": 0, "image": "example/web:1",
            "imageID": "example/web@sha256:0", "state": {"running": {"startedAt": LONG_AGO}},
        }],
    }})
}

/// Different objects for a namespace, none of which needs a controller outside our list to be deleted.
pub(crate) fn mixed(namespace: &str, sizes: &Mixed) -> Vec<Call> {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles");
    let many = |count: usize, path: String, object: &dyn Fn(String) -> Value| -> Vec<Call> {
        (0..count).map(|at| Call::create(&path, &object(format!("mixed-{at}")))).collect()
    };
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    [
        many(
            sizes.config_maps,
            core(namespace, "configmaps"),
            &|name| json!({"metadata": {"name": name}, "data": {"key": "value"}}),
        ),
        many(
            sizes.secrets,
            core(namespace, "secrets"),
            &|name| json!({"metadata": {"name": name}, "stringData": {"key": "value"}}),
        ),
        many(sizes.service_accounts, core(namespace, "serviceaccounts"), &|name| json!({"metadata": {"name": name}})),
        many(sizes.roles, rbac, &|name| json!({"metadata": {"name": name}, "rules": rules})),
        many(
            sizes.services,
            core(namespace, "services"),
            &|name| json!({"metadata": {"name": name}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        ),
        many(sizes.replica_sets, replica_sets(namespace), &|name| replica_set(&name, 0)),
        many(sizes.pods, pods(namespace), &|name| json!({"metadata": {"name": name}, "spec": pod_spec()})),
    ]
    .concat()
}

pub(crate) fn replica_set(name: &str, replicas: usize) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
        },
    })
}

/// The status of a ReplicaSet that has all its pods: a manager that starts finds nothing to do.
pub(crate) fn replica_set_status(replicas: usize) -> Value {
    json!({"status": {
        "replicas": replicas, "fullyLabeledReplicas": replicas, "terminatingReplicas": 0, "observedGeneration": 1,
    }})
}

/// As [`replica_set_status`], of a ReplicaSet whose pods are ready.
pub(crate) fn ready_set_status(replicas: usize) -> Value {
    let mut status = replica_set_status(replicas);
    status["status"]["readyReplicas"] = json!(replicas);
    status["status"]["availableReplicas"] = json!(replicas);
    status
}

/// A pod of a ReplicaSet.
pub(crate) fn owned_pod(set: &str, uid: &str, at: usize) -> Value {
    let mut metadata = owned("apps/v1", "ReplicaSet", set, uid, &format!("{set}-{at}"));
    metadata["labels"] = json!({"app": set});
    json!({"metadata": metadata, "spec": pod_spec()})
}

/// A pod that nothing owns.
pub(crate) fn lone_pod(at: usize) -> Value {
    json!({"metadata": {"name": format!("lone-{at}")}, "spec": pod_spec()})
}

/// A small ConfigMap that belongs to another.
pub(crate) fn owned_map(owner: &str, uid: &str, at: usize) -> Value {
    json!({"metadata": owned("v1", "ConfigMap", owner, uid, &format!("{owner}-{at}"))})
}

pub(crate) fn large_map(at: usize) -> Value {
    json!({"metadata": {"name": format!("large-{at}")}, "data": {"key": "x".repeat(LARGE_BYTES)}})
}

fn owned(version: &str, kind: &str, owner: &str, uid: &str, name: &str) -> Value {
    let reference = json!({"apiVersion": version, "kind": kind, "name": owner, "uid": uid, "controller": true});
    json!({"name": name, "ownerReferences": [reference]})
}

pub(crate) fn jobs(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}

pub(crate) fn cron_jobs(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/cronjobs")
}

pub(crate) fn stateful_sets(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/statefulsets")
}

pub(crate) fn daemon_sets(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/daemonsets")
}

/// An Indexed Job whose pods succeed at once.
pub(crate) fn indexed_job(name: &str, completions: usize, parallelism: usize) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "completionMode": "Indexed", "completions": completions, "parallelism": parallelism,
        "template": {"spec": task_spec()},
    }})
}

/// A CronJob that fires every minute, with a pod that succeeds at once.
pub(crate) fn cron_job(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "schedule": "* * * * *",
        "jobTemplate": {"spec": {"template": {"spec": task_spec()}}},
    }})
}

pub(crate) fn stateful_set(name: &str, replicas: usize, is_parallel: bool) -> Value {
    let mut set = replica_set(name, replicas);
    set["spec"]["serviceName"] = json!(name);
    set["spec"]["podManagementPolicy"] = json!(if is_parallel { "Parallel" } else { "OrderedReady" });
    set
}

/// A DaemonSet for every node, as agents have it: without kubelets, nodes keep the taint that the server gives to new ones.
pub(crate) fn daemon_set(name: &str) -> Value {
    let mut set = replica_set(name, 0);
    set["spec"].as_object_mut().expect("a spec").remove("replicas");
    set["spec"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    set
}

/// A node that no kubelet runs.
pub(crate) fn bare_node(at: usize) -> Value {
    json!({"metadata": {"name": format!("bare-{at}"), "labels": {"kubernetes.io/hostname": format!("bare-{at}")}}})
}

fn task_spec() -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": "task", "image": "busybox", "command": ["true"]}]})
}

/// What an ordinary pod has; about 2 KB once its defaults are set.
fn pod_spec() -> Value {
    let env = |at: usize| json!({"name": format!("SETTING_{at}"), "value": "v".repeat(20)});
    json!({"containers": [{
        "name": "server",
        "image": "example/web:1",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": (0..5).map(env).collect::<Vec<_>>(),
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
    }]})
}
