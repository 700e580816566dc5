//! Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Act, Step, delete, delete_with, of, path, pick, template, with_image};

/// Roll-outs, scaling, pauses, and a deletion of each policy.
pub(super) fn deployment(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("apps/v1", ns, "deployments", name);
    let strategy = pick(
        random,
        &[
            json!({ "type": "Recreate" }),
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } }),
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "50%", "maxUnavailable": 1 } }),
        ],
    );
    let made = |name: &str, replicas: usize, strategy: &Value| {
        let spec = json!({
            "replicas": replicas, "strategy": strategy, "revisionHistoryLimit": 2, "minReadySeconds": 1,
            "selector": { "matchLabels": { "app": name } }, "template": template(name, "web:1"),
        });
        of("apps/v1", "Deployment", ns, name, json!({ "spec": spec }))
    };
    let rolling = json!({ "type": "RollingUpdate" });
    let mut steps = vec![vec![
        made("orange", random.usize(2..5), &strategy),
        made("apple", 2, &rolling),
        made("idle", 0, &rolling),
    ]];
    for number in 2..6 {
        let change = match random.usize(..7) {
            0 => json!({ "spec": { "replicas": random.usize(..6) } }),
            1 => json!({ "spec": { "paused": true, "replicas": 3 } }),
            2 => json!({ "spec": { "paused": false } }),
            3 => with_image("web:1"),
            4 => json!({ "metadata": { "annotations": { "kubernetes.io/change-cause": format!("change {number}") } } }),
            _ => with_image(&format!("web:{number}")),
        };
        let mut step = vec![Act::Patch(at("orange"), change)];
        if random.bool() {
            step.push(Act::DeletePods { namespace: ns.to_owned(), selector: "app=orange", count: 1 });
        }
        steps.push(step);
    }
    let policy = pick(random, &["Orphan", "Foreground", "Background"]);
    steps[2].push(Act::Patch(at("apple"), with_image("web:2")));
    steps
        .push(vec![delete_with(at("apple"), policy), Act::Patch(at("orange"), json!({ "spec": { "paused": false } }))]);
    steps
}

/// A roll-out that makes no progress, and then one that does; templates that the server refuses.
pub(super) fn deadline(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = path("apps/v1", ns, "deployments", "sluggish");
    let mut never = template("sluggish", "web:1");
    never["metadata"]["annotations"] = json!({ "nodes.steersman.dev/never-ready": "true" });
    let spec = json!({
        "replicas": random.usize(1..4), "progressDeadlineSeconds": 3,
        "selector": { "matchLabels": { "app": "sluggish" } }, "template": never,
    });
    let refused = json!({ "spec": {
        "replicas": 2, "progressDeadlineSeconds": 3,
        "selector": { "matchLabels": { "app": "refused" } },
        "template": {
            "metadata": { "labels": { "app": "refused" } },
            "spec": { "serviceAccountName": "nobody", "containers": [{ "name": "main", "image": "web:1" }] },
        },
    } });
    let heals = json!({ "spec": { "template": { "metadata": { "annotations": null } } } });
    vec![
        vec![
            of("apps/v1", "Deployment", ns, "sluggish", json!({ "spec": spec })),
            of("apps/v1", "Deployment", ns, "refused", refused),
        ],
        vec![],
        vec![Act::Patch(at, heals), of("v1", "ServiceAccount", ns, "nobody", json!({}))],
    ]
}

/// Adoption, release, scaling.
pub(super) fn replica_set(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = path("apps/v1", ns, "replicasets", "olive");
    let stray = |name: &str| {
        of(
            "v1",
            "Pod",
            ns,
            name,
            json!({
                "metadata": { "labels": { "app": "olive" } },
                "spec": { "containers": [{ "name": "main", "image": "olive:1" }], "terminationGracePeriodSeconds": 1 },
            }),
        )
    };
    let spec = json!({
        "replicas": random.usize(2..5), "selector": { "matchLabels": { "app": "olive" } },
        "template": template("olive", "olive:1"),
    });
    let released = json!({ "metadata": { "labels": { "app": "released" } } });
    vec![
        vec![stray("stray-one")],
        vec![of("apps/v1", "ReplicaSet", ns, "olive", json!({ "spec": spec }))],
        vec![stray("stray-two"), Act::Patch(path("v1", ns, "pods", "stray-one"), released)],
        vec![Act::Patch(at.clone(), json!({ "spec": { "replicas": random.usize(..6) } }))],
        vec![delete_with(at, pick(random, &["Orphan", "Foreground"]))],
    ]
}

/// A ReplicationController that is scaled, and loses pods.
pub(super) fn replication_controller(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = path("v1", ns, "replicationcontrollers", "ancient");
    let spec = json!({ "replicas": 2, "selector": { "app": "ancient" }, "template": template("ancient", "old:1") });
    vec![
        vec![of("v1", "ReplicationController", ns, "ancient", json!({ "spec": spec }))],
        vec![Act::DeletePods { namespace: ns.to_owned(), selector: "app=ancient", count: 1 }],
        vec![Act::Patch(at, json!({ "spec": { "replicas": random.usize(..5) } }))],
    ]
}

/// Ordered and parallel sets with claims: scaling, updates with partitions, deleted pods.
pub(super) fn stateful_set(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("apps/v1", ns, "statefulsets", name);
    let claims = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    let made = |name: &str, replicas: usize, policy: &str, retention: Value| {
        of(
            "apps/v1",
            "StatefulSet",
            ns,
            name,
            json!({ "spec": {
            "replicas": replicas, "serviceName": name, "podManagementPolicy": policy,
            "persistentVolumeClaimRetentionPolicy": retention, "revisionHistoryLimit": 1,
            "selector": { "matchLabels": { "app": name } }, "template": template(name, "data:1"),
            "volumeClaimTemplates": claims,
        } }),
        )
    };
    let ends = pick(random, &["Delete", "Retain"]);
    let mut steps = vec![vec![
        made(
            "ordered",
            3,
            "OrderedReady",
            json!({ "whenDeleted": ends, "whenScaled": pick(random, &["Delete", "Retain"]) }),
        ),
        made("parallel", random.usize(2..5), "Parallel", json!({ "whenDeleted": "Retain", "whenScaled": "Delete" })),
    ]];
    for number in 2..5 {
        let name = pick(random, &["ordered", "parallel"]);
        let change = match random.usize(..5) {
            0 => json!({ "spec": { "replicas": random.usize(1..5) } }),
            1 => {
                json!({ "spec": { "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 1 } } } })
            }
            2 => json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } }),
            3 => json!({ "spec": { "ordinals": { "start": 1 } } }),
            _ => with_image(&format!("data:{number}")),
        };
        steps.push(vec![
            Act::Patch(at(name), change),
            Act::Patch(at("ordered"), with_image(&format!("data:{}", number % 3))),
        ]);
    }
    steps.push(vec![
        delete(path("v1", ns, "pods", "ordered-1")),
        Act::Patch(at("parallel"), json!({ "spec": { "replicas": 1 } })),
    ]);
    steps.push(vec![delete_with(at("ordered"), pick(random, &["Foreground", "Background", "Orphan"]))]);
    steps.push(vec![made("ordered", 2, "OrderedReady", json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }))]);
    steps
}

/// Placement by labels and taints, updates of both kinds.
pub(super) fn daemon_set(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("apps/v1", ns, "daemonsets", name);
    let made = |name: &str, strategy: Value, selector: Value| {
        let mut template = template(name, "agent:1");
        template["spec"]["nodeSelector"] = selector;
        of(
            "apps/v1",
            "DaemonSet",
            ns,
            name,
            json!({ "spec": {
            "updateStrategy": strategy, "revisionHistoryLimit": 1,
            "selector": { "matchLabels": { "app": name } }, "template": template,
        } }),
        )
    };
    let strategy = pick(
        random,
        &[
            json!({ "type": "OnDelete" }),
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 2 } }),
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } }),
        ],
    );
    let label = format!("of-{ns}");
    let node = |value: Value| {
        Act::Patch("/api/v1/nodes/$node:1".to_owned(), json!({ "metadata": { "labels": { label.clone(): value } } }))
    };
    vec![
        vec![
            made("agent", strategy, json!({})),
            made("chosen", json!({ "type": "RollingUpdate" }), json!({ label.clone(): "yes" })),
        ],
        vec![node(json!("yes")), Act::Patch(at("agent"), with_image("agent:2"))],
        vec![Act::DeletePods { namespace: ns.to_owned(), selector: "app=agent", count: 1 }],
        vec![node(json!("no")), Act::Patch(at("agent"), with_image(pick(random, &["agent:1", "agent:3"])))],
        vec![delete_with(at("chosen"), "Foreground"), node(Value::Null)],
    ]
}
