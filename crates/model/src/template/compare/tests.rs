//! Comparison of two specs as Go does it, by tables, and by the types of another crate.

use k8s_openapi::api::core::v1::PodSpec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{FIELDS, Kind, What, same_spec};

#[track_caller]
fn check(left: &Value, right: &Value, want: bool) {
    assert_eq!(same_spec(&left.to_string(), &right.to_string()), want, "{left} and {right}");
    assert_eq!(same_spec(&right.to_string(), &left.to_string()), want, "{right} and {left}");
}

#[allow(clippy::needless_pass_by_value, reason = "rows of a table read better")]
fn container(more: Value) -> Value {
    json!({ "containers": [more] })
}

#[allow(clippy::needless_pass_by_value, reason = "rows of a table read better")]
fn volume(more: Value) -> Value {
    json!({ "volumes": [more] })
}

/// The result of `apiequality.Semantic.DeepEqual` of Kubernetes 1.37.1 for two `PodSpec`s.
#[test]
fn specs_that_ask_for_the_same_are_equal() {
    check(&json!(null), &json!({}), true);
    check(&json!({ "hostname": "a", "subdomain": "b" }), &json!({ "subdomain": "b", "hostname": "a" }), true);
    check(&json!({ "hostname": "a" }), &json!({ "hostname": "b" }), false);
    check(&json!({ "hostname": "a" }), &json!({ "hostname": "a", "subdomain": "b" }), false);
    for (empty, why) in [
        (json!({ "volumes": [] }), "a list"),
        (json!({ "volumes": null }), "null"),
        (json!({ "nodeSelector": {} }), "a map"),
        (json!({ "hostname": "" }), "a text"),
        (json!({ "hostNetwork": false }), "a bool"),
        (json!({ "overhead": {} }), "a map of quantities"),
    ] {
        assert!(same_spec(&empty.to_string(), "{}"), "{why} may as well be absent: {empty}");
    }
    check(&container(json!({ "name": "a", "resources": {} })), &container(json!({ "name": "a" })), true);
    check(&container(json!({ "name": "a", "resources": { "limits": {} } })), &container(json!({ "name": "a" })), true);
    check(&container(json!({ "ports": [{ "hostPort": 0 }] })), &container(json!({ "ports": [{}] })), true);
    check(&container(json!({ "name": "a" })), &container(json!({ "name": "b" })), false);
    let a = json!({ "name": "a" });
    let b = json!({ "name": "b" });
    check(&json!({ "containers": [a, b] }), &json!({ "containers": [b, a] }), false);
    assert!(same_spec("not json", "not json") && !same_spec("not json", "{}"));
}

/// Labels of node roles have no value: a selector of one role is not a selector of another.
#[test]
fn entries_of_maps_count_by_key_and_value() {
    let selector = |map: Value| json!({ "nodeSelector": map });
    check(&selector(json!({ "worker": "" })), &selector(json!({})), false);
    check(&selector(json!({ "worker": "" })), &json!({}), false);
    check(&selector(json!({ "worker": "" })), &selector(json!({ "control-plane": "" })), false);
    check(&selector(json!({ "worker": "" })), &selector(json!({ "worker": "", "gpu": "" })), false);
    check(&selector(json!({ "worker": "" })), &selector(json!({ "worker": "x" })), false);
    check(&selector(json!({ "worker": "" })), &selector(json!({ "worker": "" })), true);
    let spread =
        |labels: Value| json!({ "topologySpreadConstraints": [{ "labelSelector": { "matchLabels": labels } }] });
    check(&spread(json!({ "a": "" })), &spread(json!({ "b": "" })), false);
    let claim =
        |labels: Value| volume(json!({ "ephemeral": { "volumeClaimTemplate": { "metadata": { "labels": labels } } } }));
    check(&claim(json!({ "a": "" })), &claim(json!({})), false);
    let csi = |attributes: Value| volume(json!({ "csi": { "volumeAttributes": attributes } }));
    check(&csi(json!({ "a": "" })), &csi(json!({ "b": "" })), false);
    let flex = |options: Value| volume(json!({ "flexVolume": { "options": options } }));
    check(&flex(json!({ "a": "" })), &flex(json!({ "b": "" })), false);
    let limits = |limits: Value| container(json!({ "resources": { "limits": limits } }));
    check(&limits(json!({ "cpu": "0" })), &limits(json!({})), false);
}

#[test]
fn quantities_are_equal_by_value_and_other_texts_are_not() {
    let cpu = |cpu: Value| container(json!({ "resources": { "limits": { "cpu": cpu } } }));
    check(&cpu(json!("1")), &cpu(json!("1000m")), true);
    check(&cpu(json!("1")), &cpu(json!(1)), true);
    check(&cpu(json!("1")), &cpu(json!("1001m")), false);
    check(&json!({ "overhead": { "memory": "1Ki" } }), &json!({ "overhead": { "memory": "1024" } }), true);
    let of_pod = |memory: &str| json!({ "resources": { "requests": { "memory": memory } } });
    check(&of_pod("1Ki"), &of_pod("1024"), true);
    let dir = |size: &str| volume(json!({ "emptyDir": { "sizeLimit": size } }));
    check(&dir("1Gi"), &dir("1024Mi"), true);
    check(&dir("0"), &volume(json!({ "emptyDir": {} })), false);
    let env = |field: Value| container(json!({ "env": [{ "valueFrom": { "resourceFieldRef": field } }] }));
    check(&env(json!({ "divisor": "1" })), &env(json!({ "divisor": "1000m" })), true);
    check(&env(json!({ "divisor": "0" })), &env(json!({})), true);
    let claim = |storage: &str| {
        let spec = json!({ "resources": { "requests": { "storage": storage } } });
        volume(json!({ "ephemeral": { "volumeClaimTemplate": { "spec": spec } } }))
    };
    check(&claim("1Gi"), &claim("1024Mi"), true);
    check(&json!({ "nodeSelector": { "size": "1" } }), &json!({ "nodeSelector": { "size": "1000m" } }), false);
    check(&json!({ "nodeSelector": { "limits": "1" } }), &json!({ "nodeSelector": { "limits": "1000m" } }), false);
    let value = |value: &str| container(json!({ "env": [{ "value": value }] }));
    check(&value("1"), &value("1000m"), false);
}

#[test]
fn what_says_something_by_being_there_is_not_absent() {
    let affinity = |term: Value| json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } });
    check(&affinity(json!({ "namespaceSelector": {} })), &affinity(json!({})), false);
    check(&affinity(json!({ "labelSelector": {} })), &affinity(json!({})), false);
    check(&json!({ "securityContext": {} }), &json!({}), false);
    check(&json!({ "automountServiceAccountToken": false }), &json!({}), false);
    check(&json!({ "terminationGracePeriodSeconds": 0 }), &json!({}), false);
    check(&json!({ "preemptionPolicy": "" }), &json!({}), false);
    check(&volume(json!({ "emptyDir": {} })), &volume(json!({})), false);
    check(&volume(json!({ "name": "a" })), &volume(json!({ "name": "a", "image": {} })), false);
    let claim = |spec: Value| volume(json!({ "ephemeral": { "volumeClaimTemplate": { "spec": spec } } }));
    check(&claim(json!({ "storageClassName": "" })), &claim(json!({})), false);
    check(&claim(json!({ "volumeName": "" })), &claim(json!({})), true);
}

#[test]
fn of_what_is_newer_than_the_table_everything_counts() {
    check(&json!({ "brandNew": { "a": 1 } }), &json!({ "brandNew": { "a": 1 } }), true);
    check(&json!({ "brandNew": { "a": "" } }), &json!({ "brandNew": {} }), false);
    check(&json!({ "brandNew": false }), &json!({}), false);
    check(&json!({ "brandNew": {} }), &json!({}), false);
    check(&json!({ "brandNew": [] }), &json!({ "brandNew": null }), true);
}

#[test]
fn the_table_names_only_what_it_describes() {
    assert!(FIELDS.len() > 500, "{} fields", FIELDS.len());
    for ((of, field), kind) in FIELDS.iter() {
        let mut kind = Kind::named(kind);
        while let What::List(of) | What::Map(of) = kind.what {
            kind = Kind::named(of);
        }
        if let What::Struct(name) = kind.what {
            assert!(FIELDS.keys().any(|(of, _)| *of == name), "{of}.{field} is of {name}, which is not described");
        }
    }
}

// === generated specs ===

/// The depth of generated specs: containers, their probes, and the handlers of these.
const DEPTH_MAX: u32 = 5;

/// A value of a kind of the table; never `""`, `0` or `false`, which other types distinguish from what is absent.
fn of_kind(kind: &'static str, depth: u32) -> BoxedStrategy<Value> {
    let text = kind.trim_start_matches('*');
    match (Kind::named(kind).what, text) {
        (What::Plain, "bool") => Just(json!(true)).boxed(),
        (What::Plain, "int") => (1..3).prop_map(|number| json!(number)).boxed(),
        (What::Plain, "intstr") => prop_oneof![Just(json!(80)), Just(json!("http"))].boxed(),
        (What::Plain, "time") => Just(json!("2026-11-15T12:00:00Z")).boxed(),
        (What::Plain, _) => prop_oneof![Just(json!("a")), Just(json!("b"))].boxed(),
        (What::Quantity, _) => prop_oneof![Just(json!("1")), Just(json!("2Gi"))].boxed(),
        (What::List(of), _) => prop::collection::vec(of_kind(of, depth + 1), 0..3).prop_map(Value::from).boxed(),
        (What::Map("string"), _) => map_of(prop_oneof![Just(json!("")), Just(json!("x"))].boxed()),
        (What::Map(of), _) => map_of(of_kind(of, depth + 1)),
        (What::Struct(name), _) => of_struct(name, depth + 1),
        (What::Unknown, _) => Just(Value::Null).boxed(),
    }
}

fn map_of(values: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let key = prop_oneof![Just("worker".to_owned()), Just("control-plane".to_owned())];
    prop::collection::btree_map(key, values, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())).boxed()
}

/// A struct with a few of its fields. Those that the other crate wants are always there.
fn of_struct(name: &'static str, depth: u32) -> BoxedStrategy<Value> {
    let fields: Vec<_> = FIELDS.range((name, "")..).take_while(|((of, _), _)| *of == name).collect();
    let few: Vec<_> = fields.iter().map(|((_, field), kind)| (*field, **kind)).collect();
    if depth > DEPTH_MAX {
        return Just(json!({})).boxed();
    }
    prop::sample::subsequence(few.clone(), 0..=few.len().min(3))
        .prop_flat_map(move |chosen| {
            let values: Vec<_> = chosen.iter().map(|(_, kind)| of_kind(kind, depth)).collect();
            let names: Vec<_> = chosen.iter().map(|(field, _)| (*field).to_owned()).collect();
            values.prop_map(move |values| Value::Object(names.iter().cloned().zip(values).collect()))
        })
        .boxed()
}

/// The same value without lists and maps that are empty, and without what only holds such, where that is a plain struct.
fn without_empty(kind: Kind, value: &Value) -> Option<Value> {
    match (kind.what, value) {
        (_, Value::Null) => None,
        (What::List(of), Value::Array(list)) if !list.is_empty() => {
            let kind = Kind::named(of);
            let item = |item: &Value| without_empty(Kind { is_pointer: true, ..kind }, item).unwrap_or(Value::Null);
            Some(list.iter().map(item).collect())
        }
        (What::List(_), _) => None,
        (What::Map(_), Value::Object(map)) => (!map.is_empty()).then(|| value.clone()),
        (What::Struct(name), Value::Object(object)) => {
            let field = |(field, value): (&String, &Value)| {
                Some((field.clone(), without_empty(Kind::of_field(name, field), value)?))
            };
            let object: Map<_, _> = object.iter().filter_map(field).collect();
            (kind.is_pointer || !object.is_empty()).then_some(Value::Object(object))
        }
        _ => Some(value.clone()),
    }
}

fn reference(spec: &Value) -> PodSpec {
    let spec = without_empty(Kind { is_pointer: true, ..Kind::named("PodSpec") }, spec).unwrap_or_default();
    serde_json::from_value(spec.clone()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

proptest! {
    /// Over all fields of a pod's spec: two specs are the same if, and only if, they are equal as typed values after empty
    /// lists and maps are dropped.
    #[test]
    fn specs_are_the_same_if_they_are_equal_as_typed_values(
        left in of_struct("PodSpec", 0),
        right in of_struct("PodSpec", 0),
        swapped in any::<bool>(),
    ) {
        // Two specs of their own are hardly ever equal; so one is also compared with itself, written otherwise.
        let again = if swapped { without_empty(Kind::named("PodSpec"), &left).unwrap_or(json!({})) } else { left.clone() };
        for right in [&right, &again] {
            let want = reference(&left) == reference(right);
            prop_assert_eq!(same_spec(&left.to_string(), &right.to_string()), want, "{} and {}", left, right);
        }
    }

    /// One change of one entry in a map, a list or a text is always seen.
    #[test]
    fn one_change_is_seen(left in of_struct("PodSpec", 0), picks in prop::collection::vec(any::<prop::sample::Index>(), 12)) {
        let mut right = left.clone();
        if change_one(&mut right, &mut picks.iter()) {
            let want = reference(&left) == reference(&right);
            prop_assert_eq!(same_spec(&left.to_string(), &right.to_string()), want, "{} and {}", left, right);
        }
    }
}

/// Changes something inside a value; whether there was anything to change.
fn change_one<'a>(value: &mut Value, picks: &mut impl Iterator<Item = &'a prop::sample::Index>) -> bool {
    let Some(pick) = picks.next() else { return false };
    match value {
        Value::Object(object) if !object.is_empty() => {
            let key = object.keys().nth(pick.index(object.len())).cloned().unwrap_or_default();
            if let Some(Value::String(text)) = object.get(&key).cloned() {
                // An entry of a map goes to another key, if there is room; otherwise its text changes.
                let other = if key == "worker" { "control-plane" } else { "worker" };
                if matches!(key.as_str(), "worker" | "control-plane") && !object.contains_key(other) {
                    object.remove(&key);
                    object.insert(other.to_owned(), Value::from(text));
                    return true;
                }
            }
            object.get_mut(&key).is_some_and(|inner| change_one(inner, picks))
        }
        Value::Array(list) if !list.is_empty() => {
            let at = pick.index(list.len());
            change_one(&mut list[at], picks)
        }
        Value::String(text) if text == "a" => {
            *text = "b".to_owned();
            true
        }
        _ => false,
    }
}
