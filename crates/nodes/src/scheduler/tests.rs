//! Table tests of the pure functions.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_base::ObjectKey;
use steersman_model::core::NodeView;
use steersman_model::{Encoded, View};

use super::ledger::{Decision, Ledger};
use super::map::{Part, part};
use super::request::request;
use crate::view::SimPodView;

fn node(name: &str, change: impl FnOnce(&mut Value)) -> Arc<NodeView> {
    let mut object = json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "cores": "4" } },
        "spec": {},
        "status": { "allocatable": { "cpu": "4", "memory": "8Gi", "pods": "3" } },
    });
    change(&mut object);
    Arc::new(NodeView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap())
}

fn pod(name: &str, change: impl FnOnce(&mut Value)) -> SimPodView {
    let mut object = json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
        "spec": { "containers": [{ "name": "main", "image": "x" }] },
        "status": { "phase": "Pending" },
    });
    change(&mut object);
    SimPodView::decode(Encoded::Json(object.to_string().as_bytes())).unwrap()
}

fn asks(name: &str, cpu: &str, memory: &str) -> SimPodView {
    let requests = json!({ "cpu": cpu, "memory": memory });
    pod(name, |pod| pod["spec"]["containers"][0]["resources"]["requests"] = requests)
}

fn ledger(nodes: &[Arc<NodeView>]) -> Ledger {
    let mut ledger = Ledger::default();
    for node in nodes {
        ledger.put_node(Arc::clone(node));
    }
    ledger
}

fn decide(ledger: &mut Ledger, pod: &SimPodView) -> Decision {
    ledger.await_turn(pod);
    ledger.decide(pod)
}

fn waits(message: &str) -> Decision {
    Decision::Wait(message.to_owned())
}

fn goes_to(node: &str) -> Decision {
    Decision::Bind(node.into())
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// Checks whether a pod with these requirements fits a node with the given labels, taint and cordon.
#[test]
fn a_pod_goes_where_selector_affinity_taints_and_cordons_allow() {
    let affinity = |term: Value| {
        json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": term },
        } } })
    };
    let labels = |operator: &str, values: &[&str]| {
        affinity(json!([{ "matchExpressions": [{ "key": "cores", "operator": operator, "values": values }] }]))
    };
    let absent = |operator: &str, values: &[&str]| {
        affinity(json!([{ "matchExpressions": [{ "key": "gpu", "operator": operator, "values": values }] }]))
    };
    let named = |operator: &str, name: &str| {
        affinity(json!([{ "matchFields": [{ "key": "metadata.name", "operator": operator, "values": [name] }] }]))
    };
    let tolerates = |toleration: Value| json!({ "tolerations": [toleration] });
    let taint = |effect: &str| json!({ "taints": [{ "key": "dedicated", "value": "db", "effect": effect }] });
    let plain = json!({});
    let cordoned = json!({ "unschedulable": true });
    let selector = "node(s) didn't match Pod's node affinity/selector";
    let tainted = "node(s) had untolerated taint(s)";
    for (wish, node_spec, refusal) in [
        (json!({}), &plain, ""),
        (json!({ "nodeSelector": { "cores": "4" } }), &plain, ""),
        (json!({ "nodeSelector": { "cores": "8" } }), &plain, selector),
        (json!({ "nodeSelector": { "gpu": "yes" } }), &plain, selector),
        (labels("In", &["2", "4"]), &plain, ""),
        (labels("In", &["2"]), &plain, selector),
        (labels("NotIn", &["2"]), &plain, ""),
        (labels("NotIn", &["4"]), &plain, selector),
        (labels("Exists", &[]), &plain, ""),
        (labels("DoesNotExist", &[]), &plain, selector),
        (labels("Gt", &["3"]), &plain, ""),
        (labels("Gt", &["4"]), &plain, selector),
        (labels("Lt", &["5"]), &plain, ""),
        (labels("Lt", &["four"]), &plain, selector),
        (absent("NotIn", &["yes"]), &plain, ""),
        (absent("In", &["yes"]), &plain, selector),
        (absent("Gt", &["1"]), &plain, selector),
        (absent("DoesNotExist", &[]), &plain, ""),
        (named("In", "n1"), &plain, ""),
        (named("In", "n2"), &plain, "node(s) didn't satisfy plugin(s) [NodeAffinity]"),
        (named("NotIn", "n1"), &plain, selector),
        (affinity(json!([])), &plain, selector),
        (affinity(json!([{}])), &plain, selector),
        (affinity(json!([{}, { "matchExpressions": [{ "key": "cores", "operator": "Exists" }] }])), &plain, ""),
        (json!({}), &taint("NoSchedule"), tainted),
        (json!({}), &taint("NoExecute"), tainted),
        (json!({}), &taint("PreferNoSchedule"), ""),
        (tolerates(json!({ "key": "dedicated", "value": "db" })), &taint("NoSchedule"), ""),
        (tolerates(json!({ "key": "dedicated", "value": "web" })), &taint("NoSchedule"), tainted),
        (tolerates(json!({ "key": "dedicated", "operator": "Exists" })), &taint("NoExecute"), ""),
        (tolerates(json!({ "operator": "Exists" })), &taint("NoExecute"), ""),
        (tolerates(json!({ "operator": "Exists", "effect": "NoSchedule" })), &taint("NoExecute"), tainted),
        (tolerates(json!({ "value": "db" })), &taint("NoSchedule"), tainted),
        (json!({}), &cordoned, "node(s) were unschedulable"),
        (tolerates(json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" })), &cordoned, ""),
    ] {
        let pod = pod("a", |pod| pod["spec"].as_object_mut().unwrap().extend(wish.as_object().unwrap().clone()));
        let node = node("n1", |node| node["spec"] = node_spec.clone());
        let want = match refusal {
            "" => goes_to("n1"),
            why => waits(&format!(
                "0/1 nodes are available: 1 {why}. \
                 preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            )),
        };
        assert_eq!(decide(&mut ledger(&[node]), &pod), want, "{wish} on {node_spec}");
    }
}

#[test]
fn a_node_is_never_given_more_than_it_has() {
    let mut ledger = ledger(&[node("n1", |_| {})]);
    assert_eq!(decide(&mut ledger, &asks("a", "3", "1Gi")), goes_to("n1"));
    let says = |reasons: &str, preemption: &str| {
        waits(&format!("0/1 nodes are available: {reasons}. preemption: 0/1 nodes are available: 1 {preemption}."))
    };
    let victims = "No preemption victims found for incoming pod";
    let helpful = "Preemption is not helpful for scheduling";
    for (pod, want) in [
        (asks("b", "1001m", "1Gi"), says("1 Insufficient cpu", victims)),
        (asks("c", "2", "7.5Gi"), says("1 Insufficient cpu, 1 Insufficient memory", victims)),
        (asks("d", "5", "1Gi"), says("1 Insufficient cpu", helpful)),
        (
            pod("e", |pod| pod["spec"]["containers"][0]["resources"]["requests"] = json!({ "example.dev/gpu": "1" })),
            says("1 Insufficient example.dev/gpu", helpful),
        ),
        (asks("f", "1", "7Gi"), goes_to("n1")),
        (pod("g", |_| {}), goes_to("n1")),
        (pod("h", |_| {}), says("1 Too many pods", victims)),
    ] {
        assert_eq!(decide(&mut ledger, &pod), want, "{}", pod.metadata.name);
    }
    assert!(ledger.free(&key("a")));
    assert_eq!(decide(&mut ledger, &asks("b", "1001m", "1Gi")), goes_to("n1"), "what was freed can be used");
    assert!(!ledger.free(&key("a")), "once");
}

#[test]
fn the_message_counts_the_nodes_by_reason() {
    let tainted = |node: &mut Value| node["spec"]["taints"] = json!([{ "key": "a", "effect": "NoSchedule" }]);
    let mut nodes = ledger(&[node("n1", tainted), node("n2", |_| {}), node("n3", tainted)]);
    assert_eq!(
        decide(&mut nodes, &asks("a", "5", "1")),
        waits(
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). \
             preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )
    );
    assert_eq!(decide(&mut ledger(&[]), &asks("a", "5", "1")), waits("no nodes available to schedule pods"));
    let meek = pod("b", |pod| {
        pod["spec"]["preemptionPolicy"] = "Never".into();
        pod["spec"]["nodeSelector"] = json!({ "gpu": "yes" });
    });
    assert_eq!(
        decide(&mut nodes, &meek),
        waits(
            "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
             2 node(s) had untolerated taint(s). preemption: not eligible due to preemptionPolicy=Never."
        )
    );
}

/// Checks the message about a pod whose affinity names nodes, among three of which the second one is full.
#[test]
fn nodes_that_are_not_named_are_not_looked_at() {
    let fields = |values: &[&str]| json!({ "key": "metadata.name", "operator": "In", "values": values });
    let with = |terms: Value| {
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        pod("a", |pod| {
            pod["spec"]["affinity"] = json!({ "nodeAffinity": required });
            pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "3" } });
        })
    };
    let says = |reasons: &str, preemption: &str| {
        waits(&format!("0/3 nodes are available: {reasons}. preemption: 0/3 nodes are available: {preemption}."))
    };
    let unnamed = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    let not_helpful = "Preemption is not helpful for scheduling";
    for (terms, want) in [
        (json!([{ "matchFields": [fields(&["n3"])] }]), goes_to("n3")),
        (
            json!([{ "matchFields": [fields(&["n2"])] }]),
            says(
                &format!("1 Insufficient cpu, 2 {unnamed}"),
                &format!("1 No preemption victims found for incoming pod, 2 {not_helpful}"),
            ),
        ),
        (json!([{ "matchFields": [fields(&["gone"])] }]), says(&format!("3 {unnamed}"), &format!("3 {not_helpful}"))),
        (
            json!([{ "matchFields": [fields(&["n1", "n2"]), fields(&["n3"])] }]),
            waits("0/3 nodes are available: pod affinity terms conflict. not found"),
        ),
        (json!([{ "matchFields": [fields(&["n1", "n3"]), fields(&["n3"])] }]), goes_to("n3")),
        (
            json!([{ "matchFields": [fields(&["gone"])] }, { "matchExpressions": [{ "key": "cores", "operator": "Exists" }] }]),
            goes_to("n1"),
        ),
    ] {
        let mut ledger = ledger(&[node("n1", |_| {}), node("n2", |_| {}), node("n3", |_| {})]);
        ledger.place(&asks("full", "4", "1Gi"), &"n2".into());
        assert_eq!(decide(&mut ledger, &with(terms.clone())), want, "{terms}");
    }
}

#[test]
fn a_port_of_a_node_is_taken_once() {
    let with = |name: &str, port: Value| {
        pod(name, |pod| pod["spec"]["containers"][0]["ports"] = json!([{ "containerPort": 80 }, port]))
    };
    let port = |port: i32, protocol: &str, address: &str| json!({ "containerPort": 80, "hostPort": port, "protocol": protocol, "hostIP": address });
    let mut ledger = ledger(&[node("n1", |node| node["status"]["allocatable"]["pods"] = "110".into())]);
    let refused = waits(
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. \
         preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
    );
    for (name, port, want) in [
        ("a", port(80, "TCP", ""), goes_to("n1")),
        ("b", port(80, "", "10.0.0.1"), refused.clone()),
        ("c", port(80, "UDP", ""), goes_to("n1")),
        ("d", port(81, "TCP", "10.0.0.1"), goes_to("n1")),
        ("e", port(81, "TCP", "10.0.0.2"), goes_to("n1")),
        ("f", port(81, "TCP", "10.0.0.2"), refused.clone()),
        ("g", port(81, "TCP", "0.0.0.0"), refused.clone()),
        ("h", port(0, "TCP", ""), goes_to("n1")),
    ] {
        assert_eq!(decide(&mut ledger, &with(name, port)), want, "{name}");
    }
    assert!(ledger.free(&key("a")));
    assert_eq!(decide(&mut ledger, &with("i", port(80, "", "10.0.0.1"))), goes_to("n1"), "what was freed can be taken");
    let side = json!([{ "name": "s", "restartPolicy": "Always", "ports": [port(80, "", "")] }, { "name": "i" }]);
    assert_eq!(decide(&mut ledger, &pod("k", |pod| pod["spec"]["initContainers"] = side)), refused, "sidecars count");
}

#[test]
fn pods_spread_over_nodes_and_avoid_those_that_would_rather_not_have_them() {
    let reluctant = |node: &mut Value| node["spec"]["taints"] = json!([{ "key": "a", "effect": "PreferNoSchedule" }]);
    let mut ledger = ledger(&[node("n1", reluctant), node("n2", |_| {}), node("n3", |_| {})]);
    let places: Vec<_> = (0..8).map(|number| decide(&mut ledger, &pod(&format!("p{number}"), |_| {}))).collect();
    let count = |node: &str| places.iter().filter(|place| **place == goes_to(node)).count();
    assert_eq!([count("n1"), count("n2"), count("n3")], [2, 3, 3], "{places:?}");
    assert!(places[6..].iter().all(|place| *place == goes_to("n1")), "last: {places:?}");
}

#[test]
fn a_pod_that_is_decided_counts_before_the_cache_shows_it_and_is_not_decided_twice() {
    let mut ledger = ledger(&[node("n1", |_| {}), node("n2", |_| {})]);
    let first = asks("a", "4", "1Gi");
    let Decision::Bind(place) = decide(&mut ledger, &first) else { panic!("there is room") };
    assert_eq!(decide(&mut ledger, &first), Decision::Decided);
    let Decision::Bind(other) = decide(&mut ledger, &asks("b", "4", "1Gi")) else { panic!("there is room") };
    assert_ne!(place, other);
    // The cache shows it elsewhere: it was bound by others.
    ledger.place(&first, &other);
    assert_eq!(decide(&mut ledger, &asks("c", "4", "1Gi")), goes_to(&place));
}

#[test]
fn a_pod_that_is_resized_where_it_is_gives_room_back() {
    let mut ledger = ledger(&[node("n1", |_| {})]);
    let sized = |cpu: &str, generation: i64| {
        let mut pod = asks("a", cpu, "1Gi");
        pod.metadata.generation = generation;
        pod
    };
    assert!(!ledger.place(&sized("4", 1), &"n1".into()), "new");
    assert!(!ledger.place(&sized("4", 1), &"n1".into()), "its status changed");
    assert!(matches!(decide(&mut ledger, &asks("b", "2", "1Gi")), Decision::Wait(_)));
    assert!(!ledger.place(&sized("4", 2), &"n1".into()), "its deletion was asked for");
    assert!(ledger.place(&sized("1", 3), &"n1".into()), "who waits may fit now");
    assert_eq!(decide(&mut ledger, &asks("b", "2", "1Gi")), goes_to("n1"));
}

#[test]
fn the_more_important_pod_comes_first_then_the_older_one() {
    let at = |name: &str, priority: i32, created: &str| {
        pod(name, |pod| {
            pod["spec"]["priority"] = priority.into();
            pod["metadata"]["creationTimestamp"] = created.into();
        })
    };
    let early = "2026-01-01T00:00:00Z";
    let late = "2026-01-01T00:00:01Z";
    let mut ledger = ledger(&[]);
    let pods = [at("young", 0, late), at("old", 0, early), at("important", 10, late), at("least", -5, early)];
    for pod in &pods {
        ledger.await_turn(pod);
    }
    assert_eq!(ledger.take_before(&key("important")), None, "nobody is more important");
    assert_eq!(ledger.take_before(&key("young")), Some(key("important")));
    assert_eq!(ledger.take_before(&key("young")), Some(key("old")));
    assert_eq!(ledger.take_before(&key("young")), None);
    assert_eq!(ledger.take_before(&key("stranger")), None);
    // Unschedulable pods wait, and come back in the same order.
    for pod in &pods {
        assert!(matches!(ledger.decide(pod), Decision::Wait(_)));
    }
    assert_eq!(ledger.try_again(), ["important", "old", "young", "least"].map(key));
    assert!(!ledger.has_unschedulable());
}

#[test]
fn only_what_may_help_wakes_those_without_a_node() {
    let mut ledger = ledger(&[]);
    assert!(ledger.put_node(node("n1", |_| {})), "new");
    assert!(!ledger.put_node(node("n1", |node| node["metadata"]["resourceVersion"] = "8".into())), "a heartbeat");
    assert!(ledger.put_node(node("n1", |node| node["spec"]["unschedulable"] = true.into())));
    assert!(ledger.put_node(node("n1", |node| node["metadata"]["labels"]["a"] = "b".into())));
    assert!(ledger.put_node(node("n1", |node| node["status"]["allocatable"]["cpu"] = "5".into())));
}

#[test]
fn a_pod_asks_for_its_containers_its_largest_init_container_and_its_overhead() {
    let container = |cpu: &str| json!({ "name": cpu, "resources": { "requests": { "cpu": cpu, "memory": "1Gi" } } });
    let sidecar = |cpu: &str| {
        let mut sidecar = container(cpu);
        sidecar["restartPolicy"] = "Always".into();
        sidecar
    };
    for (spec, milli_cpu, counted) in [
        (json!({ "containers": [{ "name": "a" }] }), 0, 100),
        (json!({ "containers": [container("1"), { "name": "a" }] }), 1000, 1100),
        (json!({ "containers": [container("1"), container("500m")] }), 1500, 1500),
        (json!({ "containers": [container("1")], "initContainers": [container("3"), container("2")] }), 3000, 3000),
        (json!({ "containers": [container("1")], "initContainers": [sidecar("3"), container("2")] }), 5000, 5000),
        (json!({ "containers": [container("1")], "initContainers": [container("2"), sidecar("3")] }), 4000, 4000),
        (json!({ "containers": [container("1")], "overhead": { "cpu": "250m" } }), 1250, 1250),
        (
            json!({ "containers": [container("1")], "resources": { "requests": { "cpu": "2" } }, "overhead": { "cpu": "1" } }),
            3000,
            3000,
        ),
        // Quantities as people write them.
        (json!({ "containers": [container("0.1")], "initContainers": [container("1e-1")] }), 100, 100),
        (json!({ "containers": [container("1500000u"), container("100000001n")] }), 1601, 1601),
    ] {
        let request = request(&pod("a", |pod| pod["spec"] = spec.clone()).spec);
        assert_eq!((request.asked.milli_cpu, request.counted_milli_cpu), (milli_cpu, counted), "{spec}");
    }
}

#[test]
fn what_a_pod_is_to_the_scheduler() {
    for (change, want) in [
        (json!({}), Part::Waiting),
        (json!({ "spec": { "schedulerName": "default-scheduler" } }), Part::Waiting),
        (json!({ "spec": { "schedulerName": "other" } }), Part::Apart),
        (json!({ "spec": { "schedulingGates": [{ "name": "example.dev/wait" }] } }), Part::Apart),
        (json!({ "spec": { "nodeName": "n1" } }), Part::Placed),
        (json!({ "spec": { "nodeName": "n1", "schedulerName": "other" } }), Part::Placed),
        (json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Succeeded" } }), Part::Apart),
        (json!({ "spec": {}, "status": { "phase": "Failed" } }), Part::Apart),
        (json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }), Part::Apart),
    ] {
        let object = change.to_string();
        let pod = SimPodView::decode(Encoded::Json(object.as_bytes())).unwrap();
        assert_eq!(part(&pod, super::NAME), want, "{change}");
    }
}
