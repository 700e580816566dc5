//! Which names and scopes count which objects.

use serde_json::{Value, json};

use super::super::{Requirement, counted_resource};
use super::{Tracker, classes, container, subject};

#[test]
fn a_name_is_counted_by_the_resources_that_use_it() {
    let check = |name: &str, want: &[&str]| {
        let resources = [
            ("", "pods"),
            ("", "services"),
            ("", "persistentvolumeclaims"),
            ("resource.k8s.io", "resourceclaims"),
            ("", "secrets"),
            ("apps", "deployments"),
        ];
        let tracks = |(group, resource): &(&str, &str)| Tracker::of(group, resource).unwrap().tracks(name, &classes());
        let got: Vec<&str> = resources.iter().filter(|it| tracks(it)).map(|(_, resource)| *resource).collect();
        assert_eq!(got, want, "{name}");
    };
    for name in [
        "pods",
        "count/pods",
        "cpu",
        "requests.cpu",
        "limits.cpu",
        "limits.ephemeral-storage",
        "hugepages-2Mi",
        "requests.hugepages-1Gi",
    ] {
        check(name, &["pods"]);
    }
    check("requests.example.com/fpga", &["pods"]);
    check("requests.example.com/gpu", &["pods", "resourceclaims"]);
    check("requests.deviceclass.resource.kubernetes.io/tpu", &["pods", "resourceclaims"]);
    check("requests.deviceclass.resource.kubernetes.io/unknown", &["pods"]);
    check("gpu.deviceclass.resource.k8s.io/devices", &["resourceclaims"]);
    check("count/resourceclaims.resource.k8s.io", &["resourceclaims"]);
    check("services.nodeports", &["services"]);
    check("requests.storage", &["persistentvolumeclaims"]);
    check("gold.storageclass.storage.k8s.io/requests.storage", &["persistentvolumeclaims"]);
    check("gold.storageclass.storage.k8s.io/persistentvolumeclaims", &["persistentvolumeclaims"]);
    check("secrets", &["secrets"]);
    check("count/secrets", &["secrets"]);
    check("count/deployments.apps", &["deployments"]);
    for name in [
        "example.com/gpu",
        "limits.example.com/gpu",
        "requests.kubernetes.io/x",
        "deployments",
        "count/",
        "limits.hugepages-2Mi",
    ] {
        check(name, &[]);
    }
}

#[test]
fn a_count_names_its_resource() {
    assert_eq!(counted_resource("count/pods"), Some(("", "pods")));
    assert_eq!(counted_resource("count/deployments.apps"), Some(("apps", "deployments")));
    assert_eq!(counted_resource("count/widgets.example.com"), Some(("example.com", "widgets")));
    assert_eq!(counted_resource("secrets"), Some(("", "secrets")));
    assert_eq!(counted_resource("pods"), None);
    assert_eq!(counted_resource("count/"), None);
}

fn scope(name: &str, operator: &str, values: &[&str]) -> Requirement {
    serde_json::from_value(json!({ "scopeName": name, "operator": operator, "values": values })).unwrap()
}

fn is_in(resource: &str, object: Value, scope: &Requirement) -> bool {
    subject("", resource, object).1.is_in(scope)
}

#[test]
fn a_pod_is_in_scopes() {
    let check = |name: &str, pod: &Value, want: &[&str]| {
        let scopes = [
            "Terminating",
            "NotTerminating",
            "BestEffort",
            "NotBestEffort",
            "PriorityClass",
            "CrossNamespacePodAffinity",
            "VolumeAttributesClass",
        ];
        let got: Vec<&str> = scopes
            .into_iter()
            .filter(|name| is_in("pods", pod.clone(), &Requirement::exists(&(*name).into())))
            .collect();
        assert_eq!(got, want, "{name}");
    };
    let of = |spec: Value| json!({ "spec": spec });
    check("plain", &of(json!({ "containers": [{ "name": "a" }] })), &["NotTerminating", "BestEffort"]);
    check("with a deadline", &of(json!({ "activeDeadlineSeconds": 0 })), &["Terminating", "BestEffort"]);
    let asks = |requests: Value| of(json!({ "containers": [container("a", requests, json!({}))] }));
    check("asks for cpu", &asks(json!({ "cpu": "1" })), &["NotTerminating", "NotBestEffort"]);
    check("asks for nothing", &asks(json!({ "cpu": "0" })), &["NotTerminating", "BestEffort"]);
    check("asks for storage", &asks(json!({ "ephemeral-storage": "1Gi" })), &["NotTerminating", "BestEffort"]);
    let init = of(json!({ "initContainers": [container("a", json!({ "memory": "1Gi" }), json!({}))] }));
    check("an init container asks", &init, &["NotTerminating", "NotBestEffort"]);
    check(
        "at pod level",
        &of(json!({ "resources": { "limits": { "cpu": "1" } } })),
        &["NotTerminating", "NotBestEffort"],
    );
    let reported = json!({ "status": { "qosClass": "Burstable" } });
    check("as the server says", &reported, &["NotTerminating", "NotBestEffort"]);
    let class = of(json!({ "priorityClassName": "high" }));
    check("with a class", &class, &["NotTerminating", "BestEffort", "PriorityClass"]);
    let term = |term: Value, weighted: bool| {
        let terms = if weighted {
            json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": term }] })
        } else {
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] })
        };
        of(json!({ "affinity": { if weighted { "podAntiAffinity" } else { "podAffinity" }: terms } }))
    };
    let cross = ["NotTerminating", "BestEffort", "CrossNamespacePodAffinity"];
    check("of this namespace", &term(json!({ "topologyKey": "zone" }), false), &cross[..2]);
    check("of others", &term(json!({ "namespaces": ["other"] }), false), &cross);
    check("of selected ones", &term(json!({ "namespaceSelector": {} }), false), &cross);
    check("preferred", &term(json!({ "namespaceSelector": {} }), true), &cross);
}

#[test]
fn every_operator_selects_by_class() {
    let check = |operator: &str, values: &[&str], high: bool, low: bool, none: bool| {
        let scope = scope("PriorityClass", operator, values);
        for (class, want) in [("high", high), ("low", low), ("", none)] {
            let pod = json!({ "spec": { "priorityClassName": class } });
            assert_eq!(is_in("pods", pod, &scope), want, "{operator} {values:?}: {class:?}");
        }
        let scope = self::scope("VolumeAttributesClass", operator, values);
        for (class, want) in [("high", high), ("low", low), ("", none)] {
            for claim in [
                json!({ "spec": { "volumeAttributesClassName": class } }),
                json!({ "status": { "currentVolumeAttributesClassName": class } }),
                json!({ "status": { "modifyVolumeStatus": { "targetVolumeAttributesClassName": class } } }),
            ] {
                assert_eq!(is_in("persistentvolumeclaims", claim, &scope), want, "{operator} {values:?}: {class:?}");
            }
        }
    };
    check("In", &["high"], true, false, false);
    check("In", &["high", "low"], true, true, false);
    check("NotIn", &["high"], false, true, true);
    check("Exists", &[], true, true, false);
    check("DoesNotExist", &[], false, false, true);
    check("Sometimes", &[], false, false, false);
    let changing = json!({ "spec": { "volumeAttributesClassName": "high" }, "status": { "currentVolumeAttributesClassName": "low" } });
    assert!(is_in("persistentvolumeclaims", changing.clone(), &scope("VolumeAttributesClass", "In", &["low"])));
    assert!(is_in("persistentvolumeclaims", changing, &scope("VolumeAttributesClass", "In", &["high"])));
    assert!(!is_in("services", json!({}), &scope("PriorityClass", "DoesNotExist", &[])));
}
