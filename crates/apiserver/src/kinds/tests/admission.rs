//! What default admission adds to objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::admit;
use crate::kinds::shared::json::{items, text};
use crate::registry::admission::{Lookup, Refused};

/// Objects by group, resource and namespace.
#[derive(Default)]
struct World(BTreeMap<(&'static str, &'static str, &'static str), Vec<Value>>);

impl Lookup for World {
    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.list(group, resource, namespace).into_iter().find(|object| text(&object["metadata"]["name"]) == name)
    }

    fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Value> {
        let here = |key: &&(&str, &str, &str)| key.0 == group && key.1 == resource && key.2 == namespace;
        self.0.keys().find(here).map(|key| self.0[key].clone()).unwrap_or_default()
    }
}

fn class(name: &str, value: i64) -> Value {
    json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"})
}

fn admitted(world: &World, kind: &str, mut object: Value) -> Value {
    admit(world, "", kind, &mut object, None).expect("it is admitted");
    object
}

#[test]
fn a_pod_gets_the_priority_of_its_class() {
    let mut default = class("usual", 5);
    default["globalDefault"] = true.into();
    let mut world = World::default();
    world.0.insert(("scheduling.k8s.io", "priorityclasses", ""), vec![class("high", 10)]);
    let pod = |name: &str| json!({"spec": {"priorityClassName": name}});
    let plain = admitted(&world, "Pod", json!({"spec": {}}));
    assert_eq!(
        (&plain["spec"]["priority"], &plain["spec"]["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    let high = admitted(&world, "Pod", pod("high"));
    assert_eq!((&high["spec"]["priority"], &high["spec"]["preemptionPolicy"]), (&json!(10), &json!("Never")));
    assert_eq!(admitted(&world, "Pod", pod("system-node-critical"))["spec"]["priority"], 2_000_001_000);
    let refused = admit(&world, "", "Pod", &mut pod("none"), None);
    assert_eq!(refused, Err(Refused::because("no PriorityClass with name none was found".to_owned())));
    world.0.insert(("scheduling.k8s.io", "priorityclasses", ""), vec![default]);
    assert_eq!(admitted(&world, "Pod", json!({"spec": {}}))["spec"]["priorityClassName"], "usual");
}

#[test]
fn an_update_keeps_the_priority_of_a_pod() {
    let old = json!({"spec": {"priority": 7, "preemptionPolicy": "Never"}});
    let mut new = json!({"spec": {}});
    admit(&World::default(), "", "Pod", &mut new, Some(&old)).expect("it is admitted");
    assert_eq!((&new["spec"]["priority"], &new["spec"]["preemptionPolicy"]), (&json!(7), &json!("Never")));
}

#[test]
fn a_pod_that_tolerates_everything_gets_no_tolerations() {
    let all = json!([{"operator": "Exists"}]);
    let pod = admitted(&World::default(), "Pod", json!({"spec": {"tolerations": all}}));
    assert_eq!(pod["spec"]["tolerations"], all);
    let own = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]);
    let pod = admitted(&World::default(), "Pod", json!({"spec": {"tolerations": own}}));
    assert_eq!(items(&pod["spec"]["tolerations"]).len(), 2);
    assert_eq!(pod["spec"]["tolerations"][1]["key"], "node.kubernetes.io/unreachable");
}

#[test]
fn a_pod_gets_what_its_runtime_needs() {
    let class = json!({
        "metadata": {"name": "sandbox"}, "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {
            "nodeSelector": {"runtime": "sandbox"},
            "tolerations": [
                {"key": "sandbox", "operator": "Exists"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            ],
        },
    });
    let mut world = World::default();
    let plain = json!({"metadata": {"name": "plain"}, "handler": "h"});
    world.0.insert(("node.k8s.io", "runtimeclasses", ""), vec![class, plain]);
    let pod = admitted(
        &world,
        "Pod",
        json!({"spec": {
            "runtimeClassName": "sandbox", "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "sandbox", "operator": "Equal", "value": "x"}],
        }}),
    );
    let spec = &pod["spec"];
    assert_eq!(spec["overhead"], json!({"cpu": "250m"}));
    assert_eq!(spec["nodeSelector"], json!({"a": "b", "runtime": "sandbox"}));
    let keys: Vec<&str> = items(&spec["tolerations"]).iter().map(|it| text(&it["key"])).collect();
    assert_eq!(keys, ["node.kubernetes.io/unreachable", "sandbox", "node.kubernetes.io/not-ready"]);
    assert!(items(&spec["tolerations"]).iter().all(|it| it["operator"] == "Exists"), "the wider ones stay");

    for (spec, problem) in [
        (json!({"runtimeClassName": "none"}), "pod rejected: RuntimeClass \"none\" not found"),
        (
            json!({"runtimeClassName": "sandbox", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            json!({"runtimeClassName": "sandbox", "nodeSelector": {"runtime": "x"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox; pod.spec.nodeSelector[runtime] = x",
        ),
        (
            json!({"runtimeClassName": "plain", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ] {
        let mut pod = json!({"spec": spec});
        assert_eq!(admit(&world, "", "Pod", &mut pod, None), Err(Refused::because(problem.to_owned())));
        let old = pod.clone();
        admit(&world, "", "Pod", &mut pod, Some(&old)).expect("only new pods are asked");
    }
}

#[test]
fn containers_get_the_limits_of_their_namespace() {
    let range = json!({"spec": {"limits": [
        {"type": "Container", "default": {"cpu": "4"}, "defaultRequest": {"cpu": "1", "memory": "32Mi"}},
    ]}});
    let mut world = World::default();
    world.0.insert(("", "limitranges", "a"), vec![range]);
    let pod = json!({"metadata": {"namespace": "a"}, "spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "2"}}},
    ]}});
    let pod = admitted(&world, "Pod", pod);
    let want = json!({"requests": {"cpu": "2", "memory": "32Mi"}, "limits": {"cpu": "4"}});
    assert_eq!(pod["spec"]["containers"][0]["resources"], want);
    assert_eq!(
        pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: memory request for container c; cpu limit for container c"
    );
}

#[test]
fn claims_get_the_newest_default_class_and_their_finalizer() {
    let class = |name: &str, time: &str, default: &str| {
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": default});
        json!({"metadata": {"name": name, "creationTimestamp": time, "annotations": annotations}})
    };
    let mut world = World::default();
    let classes = vec![
        class("a", "2026-01-01T00:00:00Z", "true"),
        class("b", "2026-01-02T00:00:00Z", "true"),
        class("c", "2026-01-03T00:00:00Z", "false"),
    ];
    world.0.insert(("storage.k8s.io", "storageclasses", ""), classes);
    let claim = admitted(&world, "PersistentVolumeClaim", json!({"spec": {}}));
    assert_eq!(claim["spec"]["storageClassName"], "b");
    assert_eq!(claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let none = admitted(&world, "PersistentVolumeClaim", json!({"spec": {"storageClassName": ""}}));
    assert_eq!(none["spec"]["storageClassName"], "");
}
