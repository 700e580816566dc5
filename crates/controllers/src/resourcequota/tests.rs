//! Tables of what is counted, when, and the status.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_base::quota::{Amounts, DeviceClasses, Tracker};
use steersman_informer::Change;
use steersman_model::core::{PersistentVolumeClaimView, PodView, ResourceQuotaView, ServiceView};

use super::memory::{Counts, Monitor, Monitored, Number};
use super::plan::{self, Counted, Needs, Observed};
use super::{map, usage};
use crate::test_objects::{NOW, decode, merged, now, pod};

fn quota(more: Value) -> ResourceQuotaView {
    let quota = json!({ "metadata": { "name": "q", "namespace": "default", "uid": "q", "resourceVersion": "1" } });
    decode(merged(quota, more))
}

fn amounts(json: Value) -> Amounts {
    serde_json::from_value(json).unwrap()
}

fn asks(name: &str, cpu: &str, more: Value) -> Arc<PodView> {
    let container = json!({ "name": "a", "resources": { "requests": { "cpu": cpu } } });
    pod(name, merged(json!({ "spec": { "containers": [container] } }), more))
}

#[test]
fn pods_of_one_template_are_counted_together() {
    let has = |phase: &str| json!({ "status": { "phase": phase } });
    let mut pods: Vec<Arc<PodView>> = (0..5).map(|at| asks(&format!("web-{at}"), "100m", json!({}))).collect();
    pods.push(asks("other", "1", json!({})));
    pods.push(asks("ended", "100m", has("Succeeded")));
    let terminating =
        |time: &str| json!({ "metadata": { "deletionTimestamp": time, "deletionGracePeriodSeconds": 30 } });
    pods.push(asks("going", "100m", terminating(NOW)));
    pods.push(asks("stuck", "100m", terminating("2026-11-15T11:00:00Z")));
    let got = usage::of_pods(&pods, &[], true, now());
    let want = json!({ "count/pods": "9", "pods": "7", "cpu": "1600m", "requests.cpu": "1600m" });
    assert_eq!(json!(got), want);
    let scopes = usage::scopes(&quota(json!({ "spec": { "scopes": ["BestEffort"] } })));
    assert_eq!(json!(usage::of_pods(&pods, &scopes, true, now())), json!({}));
    let scopes = usage::scopes(&quota(json!({ "spec": { "scopeSelector": { "matchExpressions": [
        { "scopeName": "PriorityClass", "operator": "In", "values": ["high"] },
    ] } } })));
    pods.push(asks("high", "2", json!({ "spec": { "priorityClassName": "high" } })));
    let want = json!({ "count/pods": "1", "pods": "1", "cpu": "2", "requests.cpu": "2" });
    assert_eq!(json!(usage::of_pods(&pods, &scopes, true, now())), want);
}

#[test]
fn fifty_thousand_pods_are_counted_by_their_few_templates() {
    let templates: Vec<Arc<PodView>> =
        (1..=500).map(|at| asks(&format!("web-{at}"), &format!("{at}m"), json!({}))).collect();
    let pods: Vec<Arc<PodView>> = templates.iter().cycle().take(50_000).cloned().collect();
    let got = usage::of_pods(&pods, &[], true, now());
    // A hundred of each: 100 × (1 + … + 500) thousandths.
    let want = json!({ "count/pods": "50k", "pods": "50k", "cpu": "12525", "requests.cpu": "12525" });
    assert_eq!(json!(got), want);
}

#[test]
fn a_view_counts_as_its_object_does() {
    let check = |resource: &str, object: Value, got: Amounts| {
        let tracker = Tracker::of("", resource).unwrap();
        let classes = DeviceClasses::default();
        let facts = steersman_base::quota::Facts { now: now(), classes: &classes };
        assert_eq!(json!(got), json!(tracker.subject(&object).usage(facts)), "{object}");
    };
    let of =
        |cpu: &str, memory: &str| json!({ "requests": { "cpu": cpu, "memory": memory }, "limits": { "cpu": cpu } });
    let object = json!({
        "metadata": { "name": "p" },
        "spec": {
            "activeDeadlineSeconds": 3,
            "overhead": { "cpu": "10m" },
            "resources": { "requests": { "memory": "3Gi" } },
            "containers": [{ "name": "a", "resources": of("1", "1Gi") }],
            "initContainers": [
                { "name": "s", "restartPolicy": "Always", "resources": of("2", "1Gi") },
                { "name": "i", "resources": of("500m", "5Gi") },
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{ "type": "PodResizePending", "status": "True", "reason": "Infeasible" }],
            "containerStatuses": [{ "name": "a", "allocatedResources": { "cpu": "3" }, "resources": of("4", "1Gi") }],
            "initContainerStatuses": [{ "name": "s", "allocatedResources": { "cpu": "1" } }],
        },
    });
    let view: PodView = decode(object.clone());
    assert!(usage::pod(&view, true).has_deadline());
    check("pods", object, usage::pod(&view, true).usage(now()));
    let without = usage::pod(&view, false).usage(now());
    assert_eq!(without["memory"].to_string(), "1Gi", "without resources at pod level");
    let object = json!({ "spec": { "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{ "port": 1, "nodePort": 30000 }, { "port": 2 }] } });
    let view: ServiceView = decode(object.clone());
    check("services", object, usage::service(&view).usage());
    let object = json!({
        "metadata": { "annotations": { "volume.beta.kubernetes.io/storage-class": "gold" } },
        "spec": { "resources": { "requests": { "storage": "1500m" } }, "volumeAttributesClassName": "a" },
        "status": { "allocatedResources": { "storage": "3Gi" }, "modifyVolumeStatus": { "targetVolumeAttributesClassName": "b" } },
    });
    let view: PersistentVolumeClaimView = decode(object.clone());
    check("persistentvolumeclaims", object, usage::volume_claim(&view).usage());
    let classes: Vec<String> =
        usage::volume_claim(&view).attributes_classes().iter().map(ToString::to_string).collect();
    assert_eq!(classes, ["a", "b"]);
}

#[test]
fn a_quota_needs_what_its_names_say() {
    let check =
        |hard: Value, want: Needs| assert_eq!(plan::needs(&quota(json!({ "spec": { "hard": hard } })).spec), want);
    check(json!({}), Needs::default());
    check(json!({ "pods": "1", "count/pods": "1" }), Needs { pods: true, ..Needs::default() });
    check(json!({ "services.nodeports": "1" }), Needs { services: true, ..Needs::default() });
    check(
        json!({ "gold.storageclass.storage.k8s.io/requests.storage": "1" }),
        Needs { claims: true, ..Needs::default() },
    );
    check(json!({ "requests.example.com/gpu": "1" }), Needs { pods: true, devices: true, ..Needs::default() });
    check(
        json!({ "count/resourceclaims.resource.k8s.io": "1" }),
        Needs { devices: true, waits_for_devices: true, ..Needs::default() },
    );
    let objects = [("".into(), "secrets".into()), ("example.com".into(), "widgets".into())].into();
    check(
        json!({ "secrets": "1", "count/secrets": "1", "count/widgets.example.com": "1", "count/events": "1" }),
        Needs { objects, ..Needs::default() },
    );
}

#[test]
fn the_status_says_what_is_counted_and_keeps_what_cannot_be() {
    let check = |name: &str, given: Value, observed: Observed, used: Value| {
        let quota = quota(given);
        let got = plan::status(&quota.spec, &quota.status, &observed, &DeviceClasses::default());
        assert_eq!(got.hard, quota.spec.hard, "{name}");
        assert_eq!(json!(got.used), used, "{name}");
    };
    let seen = |used: Value| Observed { used: amounts(used), unknown: Vec::new() };
    let given =
        |used: Value| json!({ "spec": { "hard": { "pods": "5", "secrets": "2" } }, "status": { "used": used } });
    check(
        "new",
        given(json!({})),
        seen(json!({ "pods": "1", "cpu": "3", "secrets": "0" })),
        json!({ "pods": "1", "secrets": "0" }),
    );
    check(
        "changed",
        given(json!({ "pods": "4", "secrets": "1", "services": "1" })),
        seen(json!({ "pods": "1", "secrets": "2" })),
        json!({ "pods": "1", "secrets": "2" }),
    );
    let unknown =
        Observed { used: amounts(json!({ "pods": "1" })), unknown: vec![Tracker::of("", "secrets").unwrap()] };
    check(
        "one unknown",
        given(json!({ "pods": "4", "secrets": "1" })),
        unknown.clone(),
        json!({ "pods": "1", "secrets": "1" }),
    );
    check("never known", given(json!({})), unknown, json!({ "pods": "1" }));
}

#[test]
fn quotas_without_usage_are_urgent_and_own_writes_are_not_counted_again() {
    let hard = |hard: &str, status: Value| quota(json!({ "spec": { "hard": { "pods": hard } }, "status": status }));
    let whole = |of: &str, used: &str| json!({ "hard": { "pods": of }, "used": { "pods": used } });
    assert!(map::is_urgent(&hard("5", json!({}))));
    assert!(map::is_urgent(&hard("5", json!({ "hard": { "pods": "5" } }))));
    assert!(map::is_urgent(&hard("5", whole("4", "1"))));
    assert!(!map::is_urgent(&hard("5", whole("5", "1"))));
    let change = |old: ResourceQuotaView, new: ResourceQuotaView| Change::Updated { old: old.into(), new: new.into() };
    assert!(!map::is_counted_again(&change(hard("5", whole("5", "1")), hard("5", whole("5", "2")))), "charged");
    assert!(!map::is_counted_again(&change(hard("5", json!({})), hard("5", whole("5", "2")))), "written");
    assert!(map::is_counted_again(&change(hard("5", whole("5", "2")), hard("6", whole("5", "2")))), "raised");
    assert!(map::is_counted_again(&change(hard("5", whole("5", "2")), hard("5", json!({})))), "reset");
    let scoped =
        quota(json!({ "spec": { "hard": { "pods": "5" }, "scopes": ["BestEffort"] }, "status": whole("5", "2") }));
    assert!(map::is_counted_again(&change(hard("5", whole("5", "2")), scoped)), "another scope");
}

#[test]
fn what_frees_something_is_counted_again() {
    let check = |name: &str, old: Value, new: Value, want: Option<u64>| {
        let change = Change::Updated { old: asks("p", "1", old), new: asks("p", "1", new) };
        assert_eq!(map::pod_frees(&change, now()), want.map(Duration::from_secs), "{name}");
    };
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    check("it runs", phase("Pending"), phase("Running"), None);
    check("it has ended", phase("Running"), phase("Failed"), Some(0));
    let granted = |cpu: &str| json!({ "status": { "containerStatuses": [{ "name": "a", "allocatedResources": { "cpu": cpu } }] } });
    check("it got less", granted("3"), granted("2"), Some(0));
    check("it got more", granted("2"), granted("3"), None);
    check("a deadline", json!({}), json!({ "spec": { "activeDeadlineSeconds": 5 } }), Some(0));
    let deleted = |time: &str| json!({ "metadata": { "deletionTimestamp": time, "deletionGracePeriodSeconds": 30 } });
    check("it terminates", json!({}), deleted("2026-11-15T12:00:30Z"), Some(61));
    check("it should be gone", json!({}), deleted("2026-11-15T11:00:00Z"), Some(0));
    let ended = merged(deleted("2026-11-15T12:00:30Z"), phase("Succeeded"));
    check("it was deleted and has ended", phase("Running"), ended, Some(0));
    check("it terminates still", deleted("2026-11-15T12:00:30Z"), deleted("2026-11-15T12:00:30Z"), None);
    let pod = asks("p", "1", json!({}));
    assert_eq!(map::pod_frees(&Change::Added { new: Arc::clone(&pod), initial: false }, now()), None);
    let ports = |count: usize| -> Arc<ServiceView> {
        Arc::new(decode(
            json!({ "metadata": { "name": "s" }, "spec": { "type": "NodePort", "ports": vec![json!({ "port": 1 }); count] } }),
        ))
    };
    assert!(map::service_frees(&Change::Updated { old: ports(3), new: ports(2) }));
    assert!(!map::service_frees(&Change::Updated { old: ports(2), new: ports(3) }));
}

#[test]
fn a_freed_resource_concerns_the_quotas_that_count_it() {
    let named =
        |name: &str, hard: Value| Arc::new(quota(json!({ "metadata": { "name": name }, "spec": { "hard": hard } })));
    let quotas = [
        named("b", json!({ "pods": "1" })),
        named("a", json!({ "limits.cpu": "1", "secrets": "1" })),
        named("c", json!({ "count/widgets.example.com": "1" })),
    ];
    let check = |group: &str, resource: &str, want: &[&str]| {
        let tracker = Tracker::of(group, resource).unwrap();
        let got = map::counting(&quotas, &tracker, &DeviceClasses::default());
        assert_eq!(got.iter().map(|key| &*key.name).collect::<Vec<_>>(), want, "{resource}");
    };
    check("", "pods", &["a", "b"]);
    check("", "secrets", &["a"]);
    check("example.com", "widgets", &["c"]);
    check("", "services", &[]);
}

#[test]
fn a_monitor_that_is_stopped_while_it_lists_counts_nothing() {
    let widgets: Counted = ("example.com".into(), "widgets".into());
    let monitored = Monitored::default();
    let is = |name: &str, want: Number| assert_eq!(monitored.number(&widgets, &"default".into()), want, "{name}");
    let begin = || {
        let counts = Arc::new(Counts::default());
        monitored.set(&widgets, Some(Monitor::Filling(Arc::clone(&counts))));
        counts
    };
    let first = begin();
    is("it lists", Number::NotYet);
    monitored.set(&widgets, None);
    assert!(!monitored.filled(&widgets, &first));
    is("no quota needs it", Number::NotYet);
    monitored.set(&widgets, Some(Monitor::NotServed));
    assert!(!monitored.filled(&widgets, &first));
    is("not served", Number::Unknown);
    let second = begin();
    assert!(!monitored.filled(&widgets, &first));
    is("another one lists", Number::NotYet);
    assert!(monitored.filled(&widgets, &second));
    is("it has listed", Number::Known(0));
}
