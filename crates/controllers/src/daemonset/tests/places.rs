//! Placement.

use serde_json::{Map, Value, json};

use super::{node, set, tainted};
use crate::daemonset::placement::{Placement, Verdict};
use crate::toleration::Comparison;

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn on(spec: Value, more: Value) -> Verdict {
    let set = set(json!({ "spec": { "template": { "spec": spec } } }));
    Placement::of(&set.spec.template, Comparison::Off).on(&node("n1", more))
}

fn check(name: &str, spec: Value, more: Value, want: Verdict) {
    assert_eq!(on(spec, more), want, "{name}");
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn affinity(terms: Value) -> Value {
    let required = json!({ "nodeSelectorTerms": terms });
    json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
}

#[test]
fn name_selector_and_affinity_choose_nodes() {
    let labelled = || json!({ "metadata": { "labels": { "disk": "ssd", "cores": "8" } } });
    check("anywhere", json!({}), json!({}), Verdict::Run);
    check("by name", json!({ "nodeName": "n1" }), json!({}), Verdict::Run);
    check("by another name", json!({ "nodeName": "n2" }), json!({}), Verdict::Leave);
    check("by label", json!({ "nodeSelector": { "disk": "ssd" } }), labelled(), Verdict::Run);
    check("by another label", json!({ "nodeSelector": { "disk": "hdd" } }), labelled(), Verdict::Leave);
    let expression = |key: &str, operator: &str, values: Value| {
        let required = json!({ "key": key, "operator": operator, "values": values });
        affinity(json!([{ "matchExpressions": [required] }]))
    };
    for (key, operator, values, want) in [
        ("disk", "In", json!(["ssd", "nvme"]), true),
        ("disk", "In", json!(["hdd"]), false),
        ("gone", "In", json!(["ssd"]), false),
        ("disk", "NotIn", json!(["ssd"]), false),
        ("gone", "NotIn", json!(["ssd"]), true),
        ("disk", "Exists", json!([]), true),
        ("gone", "Exists", json!([]), false),
        ("gone", "DoesNotExist", json!([]), true),
        ("disk", "DoesNotExist", json!([]), false),
        ("cores", "Gt", json!(["4"]), true),
        ("cores", "Gt", json!(["8"]), false),
        ("cores", "Lt", json!(["9"]), true),
        ("disk", "Gt", json!(["4"]), false),
        ("cores", "Near", json!(["8"]), false),
    ] {
        let want = if want { Verdict::Run } else { Verdict::Leave };
        check(&format!("{key} {operator} {values}"), expression(key, operator, values), labelled(), want);
    }
    let field =
        |operator: &str| json!({ "matchFields": [{ "key": "metadata.name", "operator": operator, "values": ["n1"] }] });
    check("by field", affinity(json!([field("In")])), json!({}), Verdict::Run);
    check("not by field", affinity(json!([field("NotIn")])), json!({}), Verdict::Leave);
    check("one of two terms", affinity(json!([field("NotIn"), field("In")])), json!({}), Verdict::Run);
    check("an empty term", affinity(json!([{}])), json!({}), Verdict::Leave);
    check("no terms", affinity(json!([])), json!({}), Verdict::Leave);
}

#[test]
fn taints_keep_pods_away_or_let_them_go_on() {
    let taint = |key: &str, effect: &str| json!({ "spec": { "taints": [{ "key": key, "effect": effect }] } });
    check("no new pods", json!({}), tainted("NoSchedule"), Verdict::GoOn);
    check("no pods", json!({}), tainted("NoExecute"), Verdict::Leave);
    check("rather no pods", json!({}), tainted("PreferNoSchedule"), Verdict::Run);
    for (toleration, want) in [
        (json!({ "operator": "Exists" }), Verdict::Run),
        (json!({ "key": "k", "operator": "Exists" }), Verdict::Run),
        (json!({ "key": "k", "value": "v" }), Verdict::Run),
        (json!({ "key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule" }), Verdict::Run),
        (json!({ "key": "k", "value": "w" }), Verdict::GoOn),
        (json!({ "key": "j", "operator": "Exists" }), Verdict::GoOn),
        (json!({ "key": "k", "operator": "Exists", "effect": "NoExecute" }), Verdict::GoOn),
        (json!({ "key": "k", "operator": "Gt", "value": "1" }), Verdict::GoOn),
    ] {
        check(&toleration.to_string(), json!({ "tolerations": [toleration] }), tainted("NoSchedule"), want);
    }
    for (key, effect) in [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ] {
        check(key, json!({}), taint(&format!("node.kubernetes.io/{key}"), effect), Verdict::Run);
    }
    let network = || taint("node.kubernetes.io/network-unavailable", "NoSchedule");
    check("no network", json!({}), network(), Verdict::GoOn);
    check("the host's network", json!({ "hostNetwork": true }), network(), Verdict::Run);
}

#[test]
fn a_toleration_compares_numbers_only_by_its_gate() {
    let taint = json!({ "key": "k", "value": "5", "effect": "NoSchedule" });
    let node = node("n1", json!({ "spec": { "taints": [taint] } }));
    for (operator, bound, comparison, want) in [
        ("Gt", "4", Comparison::On, Verdict::Run),
        ("Gt", "5", Comparison::On, Verdict::GoOn),
        ("Lt", "6", Comparison::On, Verdict::Run),
        ("Gt", "4", Comparison::Off, Verdict::GoOn),
    ] {
        let spec = json!({ "tolerations": [{ "key": "k", "operator": operator, "value": bound }] });
        let set = set(json!({ "spec": { "template": { "spec": spec } } }));
        let verdict = Placement::of(&set.spec.template, comparison).on(&node);
        assert_eq!(verdict, want, "{operator} {bound} {comparison:?}");
    }
}

#[test]
fn a_pod_is_pinned_to_its_node() {
    let spec = json!({
        "hostNetwork": true,
        "affinity": {
            "podAffinity": { "x": 1 },
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1 }],
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [] }] },
            },
        },
        "tolerations": [
            { "key": "mine", "operator": "Exists" },
            { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 },
        ],
        "newer": 1,
    });
    let agent = set(json!({ "spec": { "template": { "spec": spec } } }));
    let spec: Map<String, Value> = serde_json::from_str(agent.spec.template.spec().as_str()).unwrap();
    let pinned = Placement::of(&agent.spec.template, Comparison::Off).pinned(spec).to("n7");
    let pinned: Value = serde_json::from_str(&pinned).unwrap();
    let fields = json!([{ "key": "metadata.name", "operator": "In", "values": ["n7"] }]);
    let want = json!({
        "podAffinity": { "x": 1 },
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1 }],
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchFields": fields }] },
        },
    });
    assert_eq!(pinned["affinity"], want);
    assert_eq!(pinned["newer"], 1);
    let borne: Vec<_> =
        pinned["tolerations"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    let want = [
        "mine",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/network-unavailable",
    ];
    assert_eq!(borne, want);
    assert_eq!(pinned["tolerations"][1].get("tolerationSeconds"), None, "for ever");
}
