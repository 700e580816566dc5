//! What a write adds to quotas, and what is refused.

use serde_json::{Value, json};

use super::super::charge::Write;
use super::super::{Facts, Quota, Requirement, charge};
use super::{amounts, classes, container, now, pod, subject};

fn quota(name: &str, hard: Value, used: Value, scopes: &[&str]) -> Quota {
    let scopes = scopes.iter().map(|scope| Requirement::exists(&(*scope).into())).collect();
    Quota { name: name.into(), hard: amounts(hard), used: amounts(used), scopes }
}

fn charged(quotas: &[Quota], resource: &str, new: Value, old: Option<Value>, is_status: bool) -> Result<Value, String> {
    let (tracker, new) = subject("", resource, new);
    let old = old.map(|old| subject("", resource, old).1);
    let write = Write { tracker: &tracker, new: &new, old: old.as_ref(), is_status };
    let changed = charge(quotas, write, Facts { now: now(), classes: &classes() })?;
    Ok(changed.into_iter().map(|(at, used)| (quotas[at].name.to_string(), json!(used))).collect())
}

fn asks(cpu: &str, memory: &str) -> Value {
    pod(json!([container("a", json!({ "cpu": cpu, "memory": memory }), json!({ "cpu": cpu }))]))
}

#[test]
fn a_new_object_is_charged_or_refused_with_upstreams_words() {
    let check = |name: &str, hard: Value, used: Value, object: Value, want: Result<Value, &str>| {
        let got = charged(&[quota("q", hard, used, &[])], "pods", object, None, false);
        let want = want.map(|used| json!({ "q": used })).map_err(str::to_owned);
        assert_eq!(got, want, "{name}");
    };
    let none = || json!({ "pods": "0", "requests.cpu": "0" });
    check(
        "fits",
        json!({ "pods": "1", "requests.cpu": "1" }),
        none(),
        asks("1", "1Gi"),
        Ok(json!({ "pods": "1", "requests.cpu": "1" })),
    );
    check(
        "too much of one",
        json!({ "pods": "2", "requests.cpu": "1500m" }),
        json!({ "pods": "1", "requests.cpu": "1" }),
        asks("600m", "1Gi"),
        Err("exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=1, limited: requests.cpu=1500m"),
    );
    check(
        "too much of two",
        json!({ "pods": "1", "memory": "1Gi" }),
        json!({ "pods": "1", "memory": "512Mi" }),
        asks("600m", "1Gi"),
        Err("exceeded quota: q, requested: memory=1Gi,pods=1, used: memory=512Mi,pods=1, limited: memory=1Gi,pods=1"),
    );
    // What is over already, and not requested, does not matter.
    check(
        "over in another",
        json!({ "pods": "9", "limits.memory": "1" }),
        json!({ "pods": "1", "limits.memory": "5" }),
        pod(json!([container("a", json!({}), json!({ "memory": "0" }))])),
        Ok(json!({ "pods": "2", "limits.memory": "5" })),
    );
    check(
        "not counted yet",
        json!({ "pods": "9", "requests.cpu": "1" }),
        json!({ "pods": "1" }),
        asks("1", "1"),
        Err("status unknown for quota: q, resources: pods,requests.cpu"),
    );
    check(
        "must be specified",
        json!({ "limits.memory": "9Gi", "requests.cpu": "1", "limits.cpu": "2", "limits.ephemeral-storage": "1" }),
        json!({}),
        json!({ "spec": { "containers": [container("b", json!({}), json!({})), container("a", json!({ "cpu": "1" }), json!({}))], "initContainers": [{ "name": "i" }] } }),
        Err("failed quota: q: must specify limits.cpu for: a,b,i; limits.memory for: a,b,i; requests.cpu for: b,i"),
    );
    let level = json!({ "spec": { "containers": [{ "name": "a" }], "resources": { "requests": { "cpu": "1" } } } });
    check(
        "at pod level",
        json!({ "requests.cpu": "1" }),
        json!({ "requests.cpu": "0" }),
        level,
        Ok(json!({ "requests.cpu": "1" })),
    );
    check(
        "negative",
        json!({ "requests.cpu": "1" }),
        json!({ "requests.cpu": "0" }),
        asks("-1", "1"),
        Err("quota usage is negative for resource(s): cpu,limits.cpu,requests.cpu"),
    );
    let other = charged(&[quota("q", json!({ "services": "0" }), json!({}), &[])], "pods", asks("1", "1"), None, false);
    assert_eq!(other, Ok(json!({})), "a quota of other resources");
}

#[test]
fn every_quota_that_counts_the_object_is_charged() {
    let quotas = [
        quota("all", json!({ "pods": "9" }), json!({ "pods": "1" }), &[]),
        quota("best-effort", json!({ "pods": "9" }), json!({ "pods": "2" }), &["BestEffort"]),
        quota("ending", json!({ "pods": "9" }), json!({ "pods": "3" }), &["Terminating", "NotBestEffort"]),
        quota("others", json!({ "secrets": "9" }), json!({}), &[]),
    ];
    let check = |pod: Value, want: Value| assert_eq!(charged(&quotas, "pods", pod, None, false), Ok(want));
    check(pod(json!([])), json!({ "all": { "pods": "2" }, "best-effort": { "pods": "3" } }));
    check(asks("1", "1"), json!({ "all": { "pods": "2" } }));
    let mut ending = asks("1", "1");
    ending["spec"]["activeDeadlineSeconds"] = json!(5);
    check(ending, json!({ "all": { "pods": "2" }, "ending": { "pods": "4" } }));
}

#[test]
fn an_update_is_charged_for_what_it_adds() {
    let quotas = [quota(
        "q",
        json!({ "services.nodeports": "3", "services": "5" }),
        json!({ "services.nodeports": "2", "services": "1" }),
        &[],
    )];
    let service =
        |type_: &str, ports: usize| json!({ "spec": { "type": type_, "ports": vec![json!({ "port": 1 }); ports] } });
    let check = |name: &str, new: Value, old: Value, want: Result<Value, &str>| {
        let want = want.map_err(str::to_owned);
        assert_eq!(charged(&quotas, "services", new, Some(old), false), want, "{name}");
    };
    check("nothing", service("NodePort", 2), service("NodePort", 2), Ok(json!({})));
    check(
        "one more",
        service("NodePort", 3),
        service("NodePort", 2),
        Ok(json!({ "q": { "services.nodeports": "3", "services": "1" } })),
    );
    check("less", service("ClusterIP", 2), service("NodePort", 2), Ok(json!({})));
    check(
        "too many",
        service("NodePort", 4),
        service("NodePort", 2),
        Err(
            "exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=2, limited: services.nodeports=3",
        ),
    );
}

#[test]
fn an_update_into_a_scope_is_charged_in_full() {
    let quotas = [quota("ending", json!({ "pods": "1" }), json!({ "pods": "0" }), &["Terminating"])];
    let mut ending = asks("1", "1");
    ending["spec"]["activeDeadlineSeconds"] = json!(5);
    let got = charged(&quotas, "pods", ending.clone(), Some(asks("1", "1")), false);
    assert_eq!(got, Ok(json!({ "ending": { "pods": "1" } })));
    let full = [quota("ending", json!({ "pods": "1" }), json!({ "pods": "1" }), &["Terminating"])];
    assert!(charged(&full, "pods", ending.clone(), Some(asks("1", "1")), false).is_err());
    assert_eq!(charged(&full, "pods", ending.clone(), Some(ending), false), Ok(json!({})));
}

#[test]
fn a_status_is_counted_and_never_refused() {
    let quotas = [quota("q", json!({ "requests.storage": "1Gi" }), json!({ "requests.storage": "1Gi" }), &[])];
    let claim = |allocated: &str| json!({ "spec": { "resources": { "requests": { "storage": "1Gi" } } }, "status": { "allocatedResources": { "storage": allocated } } });
    let got = charged(&quotas, "persistentvolumeclaims", claim("3Gi"), Some(claim("1Gi")), true);
    assert_eq!(got, Ok(json!({ "q": { "requests.storage": "3Gi" } })));
    assert!(charged(&quotas, "persistentvolumeclaims", claim("3Gi"), Some(claim("1Gi")), false).is_err());
}

#[test]
fn a_claim_for_extended_resources_of_a_pod_is_charged_once() {
    let claim = |name: &str, time: &str| -> super::super::DeviceClaim {
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true });
        let requests = json!([{ "exactly": { "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3 } }]);
        serde_json::from_value(json!({
            "metadata": {
                "name": name, "creationTimestamp": time, "ownerReferences": [owner],
                "annotations": { "resource.kubernetes.io/extended-resource-claim": "true" },
            },
            "spec": { "devices": { "requests": requests } },
        }))
        .unwrap()
    };
    let first = claim("a", "2026-11-15T12:00:00Z");
    let second = claim("b", "2026-11-15T12:00:00Z");
    assert_eq!(first.pod().map(|pod| &*pod.name), Some("p"));
    assert!(first.is_covered(None, [&first, &second]));
    assert!(!second.is_covered(None, [&first, &second]));
    assert!(second.is_covered(Some("b"), [&first, &second]));
    assert!(!first.is_covered(Some("b"), [&first, &second]));
    let charged = amounts(json!({ "requests.example.com/gpu": "2" }));
    let want = json!({
        "count/resourceclaims.resource.k8s.io": "1", "gpu.deviceclass.resource.k8s.io/devices": "3",
        "requests.deviceclass.resource.kubernetes.io/gpu": "3", "requests.example.com/gpu": "1",
    });
    assert_eq!(json!(first.usage(&classes(), &charged)), want);
}
