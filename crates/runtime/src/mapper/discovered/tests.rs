use serde_json::{Value, json};

use super::super::document::{Aggregated, GroupList, ResourceList};
use super::*;

fn aggregated(items: &Value) -> Discovered {
    let items = json!({"kind": "APIGroupDiscoveryList", "items": items});
    serde_json::from_value::<Aggregated>(items).unwrap().read()
}

fn resource(name: &str, kind: &str, short: &[&str], verbs: &[&str]) -> Value {
    json!({
        "resource": name, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
        "singularResource": kind.to_lowercase(), "shortNames": short, "verbs": verbs,
    })
}

fn version(name: &str, resources: &[Value]) -> Value {
    json!({"version": name, "freshness": "Current", "resources": resources})
}

const ALL: [&str; 4] = ["delete", "get", "list", "watch"];

/// A core group, one with two versions, and one that has a name of another.
fn some() -> Discovered {
    aggregated(&json!([
        {"versions": [version("v1", &[resource("pods", "Pod", &["po"], &ALL), resource("bindings", "Binding", &[], &["create"])])]},
        {"metadata": {"name": "apps"}, "versions": [
            version("v1", &[resource("deployments", "Deployment", &["deploy"], &ALL)]),
            version("v1beta1", &[resource("deployments", "Deployment", &["deploy"], &ALL), resource("olds", "Old", &[], &ALL)]),
        ]},
        {"metadata": {"name": "metrics.k8s.io"}, "versions": [
            version("v1beta1", &[resource("pods", "PodMetrics", &["po"], &["get", "list"])]),
        ]},
    ]))
}

fn name(found: Option<&ApiResource>) -> Option<String> {
    found.map(|found| format!("{}/{}", found.resource.api_version(), found.resource.plural))
}

#[test]
fn names_are_taken_as_kubectl_takes_them() {
    let check = |text: &str, want: Option<&str>| assert_eq!(name(some().find(text)).as_deref(), want, "{text}");
    check("pods", Some("v1/pods"));
    check("pod", Some("v1/pods"));
    check("Pod", Some("v1/pods"));
    check("po", Some("v1/pods"));
    check("podmetrics", Some("metrics.k8s.io/v1beta1/pods"));
    check("pods.metrics.k8s.io", Some("metrics.k8s.io/v1beta1/pods"));
    check("pods.v1beta1.metrics.k8s.io", Some("metrics.k8s.io/v1beta1/pods"));
    check("deploy", Some("apps/v1/deployments"));
    check("deployments.apps", Some("apps/v1/deployments"));
    check("deployments.v1beta1.apps", Some("apps/v1beta1/deployments"));
    check("deployments.v2.apps", None);
    check("deployments.batch", None);
    check("olds", Some("apps/v1beta1/olds"));
    check("nothing", None);
    check("", None);
}

#[test]
fn kinds_are_found_in_the_version_asked_for_or_the_preferred_one() {
    let some = some();
    let check = |group, version, kind, want: Option<&str>| {
        assert_eq!(name(some.kind(group, version, kind)).as_deref(), want);
    };
    check("apps", None, "Deployment", Some("apps/v1/deployments"));
    check("apps", Some("v1beta1"), "Deployment", Some("apps/v1beta1/deployments"));
    check("apps", Some("v2"), "Deployment", None);
    check("apps", None, "Old", Some("apps/v1beta1/olds"));
    check("", None, "Deployment", None);
    assert_eq!(name(some.resource("metrics.k8s.io", None, "pods")).as_deref(), Some("metrics.k8s.io/v1beta1/pods"));
}

#[test]
fn each_resource_is_preferred_once() {
    let some = some();
    let names: Vec<_> = some.preferred().filter_map(|found| name(Some(found))).collect();
    let want = ["v1/pods", "v1/bindings", "apps/v1/deployments", "apps/v1beta1/olds", "metrics.k8s.io/v1beta1/pods"];
    assert_eq!(names, want);
    let deletable: Vec<_> =
        some.supporting(&["delete", "list", "watch"]).into_iter().map(|found| name(Some(found)).unwrap()).collect();
    assert_eq!(deletable, ["v1/pods", "apps/v1/deployments", "apps/v1beta1/olds"]);
}

#[test]
fn what_cannot_be_asked_now_is_kept_and_marked() {
    let fails = |what: &str, mut found: Discovered| {
        found.failures.push(Failure { what: what.to_owned(), why: "down".to_owned() });
        found
    };
    let before = some();
    let mut fewer = some();
    Arc::make_mut(&mut fewer.groups).retain(|group| group.name != "metrics.k8s.io");
    let gone = fewer.clone().keeping(&before);
    assert_eq!(gone.find("podmetrics"), None, "what is gone without a failure is gone");

    let kept = fails("metrics.k8s.io/v1beta1", fewer).keeping(&before);
    assert!(kept.find("podmetrics").is_some_and(|found| found.is_stale));
    assert!(kept.find("pods").is_some_and(|found| !found.is_stale));

    let mut rest = some();
    Arc::make_mut(&mut rest.groups).retain(|group| !group.name.is_empty());
    let kept = fails(CORE, rest).keeping(&before);
    assert_eq!(name(kept.find("pods")).as_deref(), Some("v1/pods"), "the core group stays first");
    let kept = fails(GROUPS, Discovered::default()).keeping(&before);
    assert!(
        kept.find("deploy").is_some()
            && kept.find("pods").is_some_and(|found| found.resource.group == "metrics.k8s.io")
    );
}

#[test]
fn stale_versions_are_failures() {
    let found = aggregated(&json!([{"metadata": {"name": "g"}, "versions": [
        {"version": "v1", "freshness": "Stale", "resources": [resource("as", "A", &[], &ALL)]},
        version("v1beta1", &[resource("as", "A", &[], &ALL)]),
    ]}]));
    assert_eq!(name(found.find("as")).as_deref(), Some("g/v1beta1/as"));
    let want = Failure { what: "g/v1".into(), why: "stale GroupVersion discovery: g/v1".into() };
    assert_eq!(found.failures(), [want]);
}

#[test]
fn documents_old_and_new_say_the_same() {
    let new = aggregated(&json!([{"metadata": {"name": "apps"}, "versions": [version("v1", &[json!({
        "resource": "deployments", "responseKind": {"group": "", "version": "", "kind": "Deployment"},
        "scope": "Namespaced", "singularResource": "deployment", "verbs": ["get"], "shortNames": ["deploy"], "categories": ["all"],
        "subresources": [
            {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "verbs": ["get"]},
            {"subresource": "nothing", "verbs": ["get"]},
        ],
    }), json!({"resource": "kindless", "verbs": ["get"]})])]}]));
    let old = json!({"resources": [
        {"name": "deployments", "singularName": "", "namespaced": true, "kind": "Deployment", "verbs": ["get"],
         "shortNames": ["deploy"], "categories": ["all"]},
        {"name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1",
         "kind": "Scale", "verbs": ["get"]},
    ]});
    let old = serde_json::from_value::<ResourceList>(old).unwrap().read("apps", "v1");
    assert_eq!(new.groups[0].versions, [old]);
    let scale = new.find("deployments").and_then(|found| found.subresource("scale")).unwrap();
    assert_eq!(scale.kind, ("autoscaling".into(), "v1".into(), "Scale".into()));
}

#[test]
fn the_preferred_version_comes_first() {
    let listed = json!({"groups": [{
        "name": "g", "versions": [{"version": "v2"}, {"version": "v1"}, {"version": "v3"}], "preferredVersion": {"version": "v1"},
    }]});
    let read = serde_json::from_value::<GroupList>(listed).unwrap().read();
    assert_eq!(read, [("g".to_owned(), ["v1", "v2", "v3"].map(str::to_owned).to_vec())]);
}
