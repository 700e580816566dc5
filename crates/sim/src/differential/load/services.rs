//! Services with their endpoints, and Endpoints that are mirrored.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Act, Step, delete, of, path, pick, template};

/// Services over ready and unready pods, headless and dual-stack ones, changed ports.
pub(super) fn services(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("v1", ns, "services", name);
    let mut pods = template("served", "web:1");
    pods["spec"]["containers"][0]["ports"] = json!([{ "name": "http", "containerPort": 8080 }]);
    let set =
        json!({ "spec": { "replicas": 3, "selector": { "matchLabels": { "app": "served" } }, "template": pods } });
    let service = |name: &str, more: Value| {
        let mut spec =
            json!({ "selector": { "app": "served" }, "ports": [{ "name": "http", "port": 80, "targetPort": "http" }] });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        of("v1", "Service", ns, name, json!({ "spec": spec }))
    };
    vec![
        vec![
            of("apps/v1", "ReplicaSet", ns, "served", set),
            service("plain", json!({})),
            service("headless", json!({ "clusterIP": "None", "publishNotReadyAddresses": true })),
            service("both", json!({ "ipFamilyPolicy": "PreferDualStack" })),
            service("open", json!({ "type": "NodePort", "externalTrafficPolicy": "Local" })),
        ],
        vec![Act::Patch(
            path("apps/v1", ns, "replicasets", "served"),
            json!({ "spec": { "replicas": random.usize(1..6) } }),
        )],
        vec![
            Act::Patch(
                at("plain"),
                json!({ "spec": { "ports": [{ "name": "web", "port": 81, "targetPort": 8081 }] } }),
            ),
            Act::Patch(
                at("both"),
                json!({ "metadata": { "labels": { "tier": "front" }, "annotations": { "service.kubernetes.io/topology-mode": "Auto" } } }),
            ),
            Act::DeletePods { namespace: ns.to_owned(), selector: "app=served", count: 1 },
        ],
        vec![
            Act::Patch(
                at("headless"),
                json!({ "spec": { "selector": { "app": pick(random, &["nothing", "orange"]) } } }),
            ),
            delete(path("v1", ns, "endpoints", "plain")),
        ],
        vec![delete(at("open")), Act::Patch(at("both"), json!({ "spec": { "selector": null } }))],
    ]
}

/// Endpoints made by users: mirrored, changed, excluded, deleted.
pub(super) fn mirrored(random: &mut Rng, ns: &str) -> Vec<Step> {
    let at = |name: &str| path("v1", ns, "endpoints", name);
    let service = |name: &str| of("v1", "Service", ns, name, json!({ "spec": { "ports": [{ "port": 80 }] } }));
    let subsets = |last: usize, bad: bool| {
        json!([{
            "addresses": [{ "ip": format!("192.0.2.{last}") }, { "ip": "2001:db8::7", "hostname": "seven" }],
            "notReadyAddresses": if bad { json!([{ "ip": "192.0.2.200" }]) } else { json!([]) },
            "ports": [{ "name": "http", "port": 80 }, { "name": "more", "port": 443 }],
        }])
    };
    let made = |name: &str, meta: Value, bad: bool| {
        of("v1", "Endpoints", ns, name, json!({ "metadata": meta, "subsets": subsets(7, bad) }))
    };
    vec![
        vec![service("elsewhere"), service("excluded")],
        vec![
            made("elsewhere", json!({ "labels": { "tier": "back" } }), random.bool()),
            made("excluded", json!({ "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" } }), false),
            made("serviceless", json!({}), false),
        ],
        vec![Act::Patch(
            at("elsewhere"),
            json!({ "subsets": subsets(random.usize(8..20), true), "metadata": { "annotations": { "note": "changed" } } }),
        )],
        vec![Act::Patch(
            at("excluded"),
            json!({ "metadata": { "labels": { "endpointslice.kubernetes.io/skip-mirror": null } } }),
        )],
        vec![delete(at("elsewhere")), delete(path("v1", ns, "services", "excluded"))],
    ]
}
