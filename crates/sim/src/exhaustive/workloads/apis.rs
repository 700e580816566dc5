//! Workloads about quotas, Jobs that are over, policies, ranges of addresses, stored versions and groups of pods.

use serde_json::{Value, json};

use super::{Workload, create, edit, here, patch, pod, pods, post, remove, work};
use crate::plan::Edit;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const RANGES: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const GROUPS: &str = "/apis/scheduling.k8s.io/v1beta1/namespaces/alpha/podgroups";
const POOLS: &str = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests";
const TARTS: &str = "/apis/migration.example.com/v1/namespaces/alpha/tarts";

/// A definition of any kind. Groups of Kubernetes need the annotation.
fn definition(group: &str, versions: &[(&str, bool)], plural: &str, kind: &str, scope: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = |(name, stored): &(&str, bool)| {
        json!({
            "name": name, "served": true, "storage": stored, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema},
        })
    };
    json!({
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a simulation"},
        },
        "spec": {
            "group": group, "scope": scope, "versions": versions.iter().map(version).collect::<Vec<_>>(),
            "names": {
                "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
            },
        },
    })
}

pub(super) fn workloads() -> Vec<Workload> {
    let mut all = of_built_in_kinds();
    all.extend(of_stored_versions());
    all.extend(of_gated_kinds());
    all
}

fn of_built_in_kinds() -> Vec<Workload> {
    let quota = |pods: &str| json!({"metadata": {"name": "pods"}, "spec": {"hard": {"pods": pods}}});
    let quotas = here("resourcequotas");
    let job = json!({
        "metadata": {"name": "short", "namespace": "alpha"},
        "spec": {
            "ttlSecondsAfterFinished": 60,
            "template": {
                "metadata": {"annotations": {"nodes.steersman.dev/run-time": "5s"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "image:0"}]},
            },
        },
    });
    let jobs = "/apis/batch/v1/namespaces/alpha/jobs";
    let rule = json!({
        "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
    });
    let policy = |field: &str| {
        json!({
            "metadata": {"name": "sized"},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": format!("object.spec.{field} > 1")}],
            },
        })
    };
    let range = |name: &str| json!({"metadata": {"name": name}, "spec": {"cidrs": ["10.250.0.0/24"]}});
    let service = json!({"metadata": {"name": "ranged"}, "spec": {"clusterIP": "10.250.0.9", "ports": [{"port": 80}]}});
    vec![
        work(
            "resourcequota-controller",
            &["resourcequotas", "pods"],
            vec![
                post(&quotas, quota("2")),
                create(7, pods(3)),
                patch(&format!("{quotas}/pods"), quota("4")),
                edit(7, vec![Edit::Replicas(1)]),
            ],
        )
        .ends_with(&["resourcequotas"]),
        work("ttl-after-finished-controller", &["jobs.batch"], vec![post(jobs, job), pod("other", &json!({}))])
            .ends_with(&["jobs.batch"]),
        work(
            "validatingadmissionpolicy-status-controller",
            &["validatingadmissionpolicies.admissionregistration.k8s.io"],
            vec![
                post(POLICIES, policy("replica")),
                patch(&format!("{POLICIES}/sized"), policy("replicas")),
                patch(&format!("{POLICIES}/sized"), policy("paused")),
            ],
        )
        .ends_with(&["validatingadmissionpolicies.admissionregistration.k8s.io"]),
        work(
            "service-cidr-controller",
            &["servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io"],
            vec![
                post(RANGES, range("more")),
                post(&here("services"), service),
                remove(&format!("{RANGES}/more")),
                remove(&format!("{}/ranged", here("services"))),
                post(RANGES, range("other")),
            ],
        )
        .ends_with(&["servicecidrs.networking.k8s.io", "ipaddresses.networking.k8s.io"]),
    ]
}

fn of_stored_versions() -> Vec<Workload> {
    let tarts =
        |first| definition("migration.example.com", &[("v1", first), ("v2", !first)], "tarts", "Tart", "Namespaced");
    let tart =
        |name: &str| json!({"apiVersion": "migration.example.com/v1", "kind": "Tart", "metadata": {"name": name}});
    let of_tarts = json!({
        "metadata": {"name": "to-v2"}, "spec": {"resource": {"group": "migration.example.com", "resource": "tarts"}},
    });
    let lease = |name: &str| {
        let labels = json!({"apiserver.kubernetes.io/identity": "kube-apiserver"});
        post(LEASES, json!({"metadata": {"name": name, "labels": labels}, "spec": {"holderIdentity": name}}))
    };
    let entry = |server: &str, version: &str| json!({"apiServerID": server, "encodingVersion": version, "decodableVersions": [version]});
    let version = json!({
        "apiVersion": "internal.apiserver.k8s.io/v1alpha1", "kind": "StorageVersion",
        "metadata": {"name": "shop.deployments"}, "spec": {},
    });
    let reported = json!({"status": {"storageVersions": [entry("server-a", "v1"), entry("server-b", "v2")]}});
    let versions =
        definition("internal.apiserver.k8s.io", &[("v1alpha1", true)], "storageversions", "StorageVersion", "Cluster");
    vec![
        work(
            "storage-version-migrator-controller",
            &["storageversionmigrations.storagemigration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"],
            vec![
                post(DEFINITIONS, tarts(true)),
                post(TARTS, tart("plum")),
                post(TARTS, tart("apple")),
                patch(&format!("{DEFINITIONS}/tarts.migration.example.com"), tarts(false)),
                post(MIGRATIONS, of_tarts),
            ],
        )
        .ends_with(&[
            "storageversionmigrations.storagemigration.k8s.io",
            "customresourcedefinitions.apiextensions.k8s.io",
        ]),
        work(
            "storageversion-garbage-collector-controller",
            &["storageversions.internal.apiserver.k8s.io"],
            vec![
                post(DEFINITIONS, versions),
                lease("server-a"),
                lease("server-b"),
                post(VERSIONS, version),
                patch(&format!("{VERSIONS}/shop.deployments/status"), reported),
                remove(&format!("{LEASES}/server-a")),
                remove(&format!("{LEASES}/server-b")),
            ],
        )
        .ends_with(&["storageversions.internal.apiserver.k8s.io"]),
    ]
}

fn of_gated_kinds() -> Vec<Workload> {
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "gang", "finalizers": ["scheduling.k8s.io/podgroup-protection"]},
        "spec": {"schedulingPolicy": {"basic": {}}},
    });
    let request = |name: &str| {
        json!({
            "apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourcePoolStatusRequest",
            "metadata": {"name": name}, "spec": {"driver": "nodes.steersman.dev"},
        })
    };
    let groups = definition("scheduling.k8s.io", &[("v1beta1", true)], "podgroups", "PodGroup", "Namespaced");
    let plural = "resourcepoolstatusrequests";
    let pools = definition("resource.k8s.io", &[("v1alpha3", true)], plural, "ResourcePoolStatusRequest", "Cluster");
    vec![
        work(
            "podgroup-protection-controller",
            &["podgroups.scheduling.k8s.io", "pods"],
            vec![
                post(DEFINITIONS, groups),
                post(GROUPS, group),
                pod("one", &json!({"schedulingGroup": {"podGroupName": "gang"}})),
                remove(&format!("{GROUPS}/gang")),
                remove(&format!("{}/one", here("pods"))),
            ],
        )
        .ends_with(&["podgroups.scheduling.k8s.io"]),
        work(
            "resourcepoolstatusrequest-controller",
            &["resourcepoolstatusrequests.resource.k8s.io", "resourceslices.resource.k8s.io"],
            vec![
                post(DEFINITIONS, pools),
                post(POOLS, request("one")),
                post(POOLS, request("two")),
                remove(&format!("{POOLS}/one")),
            ],
        )
        .ends_with(&["resourcepoolstatusrequests.resource.k8s.io"]),
    ]
}
