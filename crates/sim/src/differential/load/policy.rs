//! Autoscalers, budgets, quotas and admission policies.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Act, Step, delete, of, path, pick, template};

/// Autoscalers by each kind of metric, with targets that are missing or have too few replicas.
pub(super) fn autoscalers(random: &mut Rng, ns: &str) -> Vec<Step> {
    let deployment = |name: &str| {
        let mut pods = template(name, "web:1");
        pods["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "100m" } });
        pods["metadata"]["annotations"] = json!({ "nodes.steersman.dev/cpu-usage": "50m" });
        of(
            "apps/v1",
            "Deployment",
            ns,
            name,
            json!({ "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": name } }, "template": pods,
        } }),
        )
    };
    let scaler = |name: &str, target: &str, metric: Value, more: Value| {
        let mut spec = json!({
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": target },
            "minReplicas": 1, "maxReplicas": 4, "metrics": [metric],
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        of("autoscaling/v2", "HorizontalPodAutoscaler", ns, name, json!({ "spec": spec }))
    };
    let external = json!({ "type": "External", "external": {
        "metric": { "name": "queue" }, "target": { "type": "AverageValue", "averageValue": "10" },
    } });
    let cpu = |percent: usize| {
        json!({ "type": "Resource", "resource": {
        "name": "cpu", "target": { "type": "Utilization", "averageUtilization": percent },
    } })
    };
    let absent = json!({ "type": "Pods", "pods": {
        "metric": { "name": "unheard-of" }, "target": { "type": "AverageValue", "averageValue": "1" },
    } });
    let metric = |value: usize| Act::Metric { namespace: ns.to_owned(), value: value.to_string() };
    let at = path("autoscaling/v2", ns, "horizontalpodautoscalers", "by-queue");
    let quickly = json!({ "behavior": { "scaleDown": { "stabilizationWindowSeconds": 0 } } });
    vec![
        vec![metric(20), deployment("scaled"), deployment("steady"), deployment("under")],
        vec![
            scaler("by-queue", "scaled", external, quickly),
            scaler("by-cpu", "steady", cpu(50), json!({})),
            scaler("minimum", "under", absent, json!({ "minReplicas": 2 })),
            scaler("targetless", "nothing", cpu(50), json!({})),
        ],
        vec![metric(random.usize(25..60))],
        vec![metric(10), Act::Patch(at.clone(), json!({ "spec": { "maxReplicas": 3 } }))],
        vec![Act::Patch(
            path("apps/v1", ns, "deployments", "scaled"),
            json!({ "spec": { "replicas": random.usize(..2) } }),
        )],
        vec![delete(at)],
    ]
}

/// Budgets by number and percentage, evictions within and beyond them.
pub(super) fn budgets(random: &mut Rng, ns: &str) -> Vec<Step> {
    let budget = |name: &str, app: &str, mut spec: Value| {
        spec["selector"] = json!({ "matchLabels": { "app": app } });
        of("policy/v1", "PodDisruptionBudget", ns, name, json!({ "spec": spec }))
    };
    let guarded = of(
        "apps/v1",
        "StatefulSet",
        ns,
        "guarded",
        json!({ "spec": {
        "replicas": 3, "serviceName": "guarded", "podManagementPolicy": "Parallel",
        "selector": { "matchLabels": { "app": "guarded" } }, "template": template("guarded", "data:1"),
    } }),
    );
    let evict = |pod: &str| {
        Act::Post(
            format!("{}/eviction", path("v1", ns, "pods", pod)),
            json!({
                "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": ns },
            }),
        )
    };
    let lonely = of(
        "v1",
        "Pod",
        ns,
        "lonely",
        json!({
            "metadata": { "labels": { "app": "lonely" } }, "spec": { "containers": [{ "name": "main", "image": "web:1" }] },
        }),
    );
    vec![
        vec![guarded, lonely],
        vec![
            budget(
                "guarded",
                "guarded",
                pick(random, &[json!({ "minAvailable": 2 }), json!({ "maxUnavailable": "40%" })]),
            ),
            budget("unowned", "lonely", json!({ "maxUnavailable": 1 })),
            budget("unowned-number", "lonely", json!({ "minAvailable": 1 })),
            budget("without-pods", "nothing", json!({ "minAvailable": 1 })),
        ],
        vec![evict("guarded-0"), evict("guarded-1")],
        vec![Act::Patch(
            path("policy/v1", ns, "poddisruptionbudgets", "guarded"),
            json!({ "metadata": { "labels": { "seen": "yes" } } }),
        )],
    ]
}

/// Quotas that refuse, and are raised; object counts, scopes, services, claims.
pub(super) fn quotas(random: &mut Rng, ns: &str) -> Vec<Step> {
    let here = format!("{ns}-quota");
    let at = |name: &str| path("v1", &here, "resourcequotas", name);
    let made = |name: &str, spec: Value| of("v1", "ResourceQuota", &here, name, json!({ "spec": spec }));
    let set = of(
        "apps/v1",
        "ReplicaSet",
        &here,
        "greedy",
        json!({ "spec": {
        "replicas": 4, "selector": { "matchLabels": { "app": "greedy" } }, "template": template("greedy", "web:1"),
    } }),
    );
    let map = |name: &str| of("v1", "ConfigMap", &here, name, json!({ "data": { "a": "b" } }));
    vec![
        vec![of("v1", "Namespace", "", &here, json!({}))],
        vec![
            made("pods", json!({ "hard": { "pods": "2", "count/replicasets.apps": "5" } })),
            made(
                "objects",
                json!({ "hard": {
                "count/configmaps": "4", "services": "3", "services.nodeports": "1", "persistentvolumeclaims": "1", "requests.storage": "5Gi",
                "secrets": "10",
            } }),
            ),
            made("best-effort", json!({ "hard": { "pods": "10" }, "scopes": ["BestEffort"] })),
            made(
                "ending",
                json!({ "hard": { "pods": "10" }, "scopeSelector": { "matchExpressions": [
                { "scopeName": "Terminating", "operator": "Exists" },
            ] } }),
            ),
        ],
        vec![
            set,
            map("one"),
            map("two"),
            of("v1", "Service", &here, "open", json!({ "spec": { "type": "NodePort", "ports": [{ "port": 80 }] } })),
            of(
                "v1",
                "PersistentVolumeClaim",
                &here,
                "data",
                json!({ "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "nowhere", "resources": { "requests": { "storage": "2Gi" } },
            } }),
            ),
        ],
        vec![
            Act::Patch(at("pods"), json!({ "spec": { "hard": { "pods": random.usize(3..7).to_string() } } })),
            delete(path("v1", &here, "configmaps", "one")),
        ],
        vec![
            delete(path("v1", &here, "services", "open")),
            Act::Patch(path("apps/v1", &here, "replicasets", "greedy"), json!({ "spec": { "replicas": 1 } })),
        ],
        vec![delete(path("v1", "", "namespaces", &here))],
    ]
}

/// Policies that type-check, and some that do not.
pub(super) fn admission(random: &mut Rng, ns: &str) -> Vec<Step> {
    let policy = |name: &str, group: &str, resource: &str, expression: &str| {
        of(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            "",
            &format!("{ns}-{name}"),
            json!({ "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": { "resourceRules": [
                { "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource] },
            ] },
            "validations": [{ "expression": expression, "messageExpression": "'at most ' + string(5)" }],
            "variables": [{ "name": "one", "expression": "1" }],
        } }),
        )
    };
    let wrong = pick(random, &["object.spec.replicaz < 5", "object.spec.replicas > 'x'", "object.metadata.name == 3"]);
    let at = |name: &str| {
        path("admissionregistration.k8s.io/v1", "", "validatingadmissionpolicies", &format!("{ns}-{name}"))
    };
    vec![
        vec![
            policy("right", "apps", "deployments", "object.spec.replicas < 100 + variables.one"),
            policy("wrong", "apps", "deployments", wrong),
            policy("both", "apps", pick(random, &["*", "statefulsets"]), "object.spec.template.spec.unknown == 'x'"),
        ],
        vec![Act::Patch(
            at("wrong"),
            json!({ "spec": { "validations": [{ "expression": "object.spec.replicas < 50" }] } }),
        )],
        vec![Act::Patch(
            at("right"),
            json!({ "spec": { "validations": [{ "expression": "object.spec.nothing" , "message": "m" }, { "expression": "object.nothing == 1" }] } }),
        )],
    ]
}
