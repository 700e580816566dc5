//! Every kind against what kube-apiserver answered to the same requests (`tests/data/answers.jsonl`).

mod admission;
mod fields;
mod volumes;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::core::service::{AllocateError, Allocator};
use super::{Handler, Rules};
use crate::field::Errors;
use crate::recorded::{self, Recorded, kind_of};
use crate::registry::admission::{Lookup, Refused};
use crate::registry::built_in;

fn rules(group: &str, kind: &str) -> &'static Rules {
    super::rules(group, kind).unwrap_or(&Rules::DEFAULT)
}

fn default(group: &str, kind: &str, object: &mut Value) {
    (rules(group, kind).default)(object);
}

fn admit(lookup: &dyn Lookup, group: &str, kind: &str, new: &mut Value, old: Option<&Value>) -> Result<(), Refused> {
    (rules(group, kind).admission.mutate)(lookup, new, old)
}

fn prepare(group: &str, kind: &str, new: &mut Value, old: Option<&Value>) {
    (rules(group, kind).prepare)(new, old);
}

fn validate(group: &str, kind: &str, new: &Value, old: Option<&Value>) -> Errors {
    rules(group, kind).errors(new, old)
}

fn validate_status(group: &str, kind: &str, new: &Value, old: &Value) -> Errors {
    rules(group, kind).status.errors(new, old)
}

#[test]
fn every_built_in_resource_has_a_file_for_its_kind() {
    for row in built_in() {
        let resource = &row.resource;
        assert!(super::rules(&resource.group, &resource.kind).is_some(), "{}/{}", resource.group, resource.kind);
    }
}

/// A cluster that has nothing.
struct Nothing;

impl Lookup for Nothing {
    fn get(&self, _: &str, _: &str, _: &str, _: &str) -> Option<Value> {
        None
    }
    fn list(&self, _: &str, _: &str, _: &str) -> Vec<Value> {
        Vec::new()
    }
}

/// Without what is empty, because Go writes some of it and the schema decides which.
fn bare(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (key.clone(), bare(value)));
            let is_empty = |value: &Value| match value {
                Value::Null => true,
                Value::Object(map) => map.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::String(text) => text.is_empty(),
                Value::Number(number) => number.as_i64() == Some(0),
                Value::Bool(_) => false,
            };
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(list) => list.iter().map(bare).collect(),
        other => other.clone(),
    }
}

/// The body as it stands after decoding, with the name and uid that the answer has.
fn decoded(recorded: &Recorded) -> (String, String, Value) {
    let (group, version, kind) = kind_of(&recorded.answer);
    let mut object: Value = serde_json::from_slice(&recorded.body).expect("the body is JSON");
    crate::schema::check(&group, &version, &kind, &mut object, crate::schema::FieldValidation::Ignore)
        .expect("the body fits its schema");
    object["apiVersion"] = recorded.answer["apiVersion"].clone();
    object["kind"] = recorded.answer["kind"].clone();
    (group, kind, object)
}

/// What becomes of a created object here.
fn created(recorded: &Recorded) -> Value {
    let (group, kind, mut object) = decoded(recorded);
    default(&group, &kind, &mut object);
    let once = object.clone();
    default(&group, &kind, &mut object);
    assert_eq!(once, object, "{}: defaults are idempotent", recorded.id);
    for field in ["uid", "creationTimestamp", "namespace", "generation"] {
        object["metadata"][field] = recorded.answer["metadata"][field].clone();
    }
    admit(&Nothing, &group, &kind, &mut object, None).expect("it is admitted");
    prepare(&group, &kind, &mut object, None);
    if kind == "Service" {
        let allocator = Allocator::default();
        let _ = allocator.allocate(&mut object, None).expect("something is left").commit();
    }
    let errors = validate(&group, &kind, &object, None);
    assert_eq!(*errors, [], "{}", recorded.id);
    let (group, version, kind) = kind_of(&recorded.answer);
    crate::schema::complete(&group, &version, &kind, &mut object);
    object
}

/// Fields that are different at every run.
fn normalised(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, value| !value.is_null() && !matches!(&**field, "managedFields" | "resourceVersion"));
    }
    if object["kind"] == "Service" && object["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10.")) {
        object["spec"]["clusterIP"] = "IP".into();
        object["spec"]["clusterIPs"] = json!(["IP"]);
    }
    object
}

#[test]
fn a_created_object_reads_back_as_from_kube_apiserver() {
    let mut count = 0;
    for recorded in recorded::all() {
        let is_create = recorded.method == "POST" && recorded.id.ends_with("-create") && recorded.code == 201;
        if !is_create || recorded.path.contains("rec.example") {
            continue;
        }
        assert_eq!(normalised(created(&recorded)), normalised(recorded.answer.clone()), "{}", recorded.id);
        count += 1;
    }
    assert!(count > 40, "only {count} requests were compared");
}

/// Causes, as a status has them.
fn causes(errors: &[crate::field::FieldError]) -> Value {
    let cause = |error: &crate::field::FieldError| json!({"field": error.path.as_str(), "message": error.body(), "reason": error.kind.reason()});
    errors.iter().map(cause).collect()
}

#[test]
fn an_invalid_object_is_refused_with_the_causes_of_kube_apiserver() {
    let mut count = 0;
    for mut recorded in recorded::all() {
        let is_refused = recorded.code == 422 && recorded.method == "POST" && recorded.id.starts_with("bad-");
        if !is_refused || matches!(&*recorded.id, "bad-fieldvalidation" | "bad-svc-dup-nodeport") {
            continue;
        }
        let want = recorded.answer["details"]["causes"].clone();
        let details = recorded.answer["details"].clone();
        let group = details["group"].as_str().unwrap_or_default();
        let version = match (group, details["kind"].as_str()) {
            ("", _) => "v1".to_owned(),
            ("autoscaling", _) => "autoscaling/v2".to_owned(),
            (group, _) => format!("{group}/v1"),
        };
        recorded.answer = json!({"apiVersion": version, "kind": details["kind"]});
        let (group, kind, mut object) = decoded(&recorded);
        default(&group, &kind, &mut object);
        object["metadata"]["uid"] = "a".into();
        admit(&Nothing, &group, &kind, &mut object, None).expect("it is admitted");
        prepare(&group, &kind, &mut object, None);
        let got = causes(&validate(&group, &kind, &object, None));
        assert_eq!(got, want, "{}", recorded.id);
        count += 1;
    }
    assert!(count >= 20, "only {count} requests were compared");
}

#[test]
fn a_change_that_is_not_allowed_is_refused_with_the_causes_of_kube_apiserver() {
    for (id, old) in [("put-pod-spec", "pod-create"), ("put-immutable-selector", "deploy-recreate-create")] {
        let mut old = recorded::get(old).answer;
        old["metadata"]["managedFields"] = Value::Null;
        let mut recorded = recorded::get(id);
        let want = recorded.answer["details"]["causes"].clone();
        recorded.answer = json!({"apiVersion": old["apiVersion"], "kind": old["kind"]});
        let (group, kind, mut object) = decoded(&recorded);
        default(&group, &kind, &mut object);
        for field in ["namespace", "uid", "creationTimestamp", "generation"] {
            object["metadata"][field] = old["metadata"][field].clone();
        }
        admit(&Nothing, &group, &kind, &mut object, Some(&old)).expect("it is admitted");
        prepare(&group, &kind, &mut object, Some(&old));
        let got = causes(&validate(&group, &kind, &object, Some(&old)));
        assert_eq!(got, want, "{id}");
    }
}

#[test]
fn no_new_finalizers_are_added_to_what_is_being_deleted() {
    let want = recorded::get("add-finalizer-late").answer["details"]["causes"].clone();
    let metadata = json!({"name": "y2", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/f"]});
    let old = json!({"metadata": metadata});
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["example.com/f", "example.com/g"]);
    assert_eq!(causes(&validate("", "ConfigMap", &new, Some(&old))), want);
}

#[test]
fn an_object_can_be_written_back_as_it_was_read() {
    for recorded in recorded::all() {
        if recorded.method != "POST" || !recorded.id.ends_with("-create") || recorded.code != 201 {
            continue;
        }
        let (group, _, kind) = kind_of(&recorded.answer);
        if group == "rec.example" {
            continue;
        }
        let old = recorded.answer.clone();
        let mut new = old.clone();
        default(&group, &kind, &mut new);
        admit(&Nothing, &group, &kind, &mut new, Some(&old)).expect("it is admitted");
        prepare(&group, &kind, &mut new, Some(&old));
        assert_eq!(bare(&new), bare(&old), "{}", recorded.id);
        assert_eq!(*validate(&group, &kind, &new, Some(&old)), [], "{}", recorded.id);
        assert_eq!(*validate_status(&group, &kind, &new, &old), [], "{}", recorded.id);
    }
}

/// Objects of every kind that kube-apiserver 1.37.1 takes, and what it answers when one field of one of them is changed or
/// removed (`at`, `value`). The examples in long sentences are left out.
const BASES: &str = include_str!("../../tests/data/kinds-bases.jsonl");
const REFUSED: &str = include_str!("../../tests/data/kinds-refused.jsonl");

/// Changes or removes a field.
fn change(object: &mut Value, at: &[Value], value: Option<&Value>) {
    let (last, path) = at.split_last().expect("a path");
    let mut target = object;
    for key in path {
        target = match key.as_str() {
            Some(key) => &mut target[key],
            None => &mut target[usize::try_from(key.as_u64().expect("an index")).expect("a small one")],
        };
    }
    match (last.as_str(), value) {
        (Some(key), Some(value)) => target[key] = value.clone(),
        (Some(key), None) => {
            target.as_object_mut().expect("an object").remove(key);
        }
        (None, Some(value)) => {
            target[usize::try_from(last.as_u64().expect("an index")).expect("a small one")] = value.clone();
        }
        (None, None) => panic!("an item is removed by changing its list"),
    }
}

/// What is wrong with an object that is created, and the object.
fn judged(mut object: Value) -> (Vec<crate::field::FieldError>, Value) {
    let (group, version, kind) = kind_of(&object);
    crate::schema::check(&group, &version, &kind, &mut object, crate::schema::FieldValidation::Ignore)
        .expect("the object fits its schema");
    default(&group, &kind, &mut object);
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let namespaces = if matches!(&*kind, "Node" | "Namespace" | "PersistentVolume") { "" } else { "t" };
    object["metadata"]["namespace"] = namespaces.into();
    object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into();
    admit(&Nothing, &group, &kind, &mut object, None).expect("it is admitted");
    prepare(&group, &kind, &mut object, None);
    if kind == "Service"
        && let Err(AllocateError::Invalid(errors)) = Allocator::default().allocate(&mut object, None)
    {
        return (errors, object);
    }
    (validate(&group, &kind, &object, None).into_iter().collect(), object)
}

#[test]
fn every_kind_is_checked_field_by_field_as_kube_apiserver_does() {
    let bases: Vec<Value> = BASES.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for base in &bases {
        assert_eq!(judged(base.clone()).0, [], "{base}");
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in REFUSED.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let base = usize::try_from(row["base"].as_u64().expect("an index")).expect("a small one");
        let mut object = bases[base].clone();
        change(&mut object, row["at"].as_array().expect("a path"), row.get("value"));
        let short = |error: &crate::field::FieldError| {
            let text = error.to_string().replace("00000000-0000-0000-0000-000000000000", "<uid>");
            text.split(" (e.g. ").next().unwrap_or_default().to_owned()
        };
        let got: Value = judged(object).0.iter().map(short).collect();
        if got != row["causes"] {
            wrong.push(format!("{line}\n got {got}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// All kinds that have rules.
const KINDS: &[(&str, &str)] = &[
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "Service"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "ResourceQuota"),
    ("", "LimitRange"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("coordination.k8s.io", "Lease"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("events.k8s.io", "Event"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
];

/// A value of any shape.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec!["", "a", "1", "-1Gi", "50%", "é", "None", "Always", "Local", "::1", "Recreate"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An object of a kind that was good until something in it was replaced.
fn spoilt() -> impl Strategy<Value = (usize, Vec<usize>, Value)> {
    (any::<usize>(), prop::collection::vec(any::<usize>(), 1..8), anything())
}

/// Replaces the value that one gets to by taking these turns.
fn spoil(object: &mut Value, turns: &[usize], with: Value) {
    let mut at = object;
    for turn in turns {
        let count = match &*at {
            Value::Object(map) => map.len(),
            Value::Array(list) => list.len(),
            _ => 0,
        };
        if count == 0 {
            break;
        }
        at = match at {
            Value::Object(map) => map.values_mut().nth(turn % count).expect("it has so many"),
            Value::Array(list) => &mut list[turn % count],
            _ => break,
        };
    }
    *at = with;
}

/// All that is done to an object, whatever it is.
fn run_all(group: &str, kind: &str, object: &Value, other: &Value) {
    let mut new = object.clone();
    default(group, kind, &mut new);
    for old in [None, Some(other), Some(object)] {
        let mut new = new.clone();
        let _ = admit(&Nothing, group, kind, &mut new, old);
        prepare(group, kind, &mut new, old);
        if kind == "Service" {
            let _ = Allocator::default().allocate(&mut new, old);
        }
        for error in validate(group, kind, &new, old) {
            let _ = error.to_string();
        }
        if let Some(old) = old {
            let _ = validate_status(group, kind, &new, old);
            let _ = rules("", "Pod").handler("ephemeralcontainers").map(|handler| match handler {
                Handler::Part(part) => part.errors(&new, old),
                _ => Errors::default(),
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_panics_on_objects_of_any_shape(spec in anything(), meta in anything(), kind in 0..KINDS.len()) {
        let (group, kind) = KINDS[kind];
        let object = json!({"metadata": meta, "spec": spec, "status": spec, "data": spec, "webhooks": spec});
        run_all(group, kind, &object, &json!({"metadata": spec, "spec": meta}));
        run_all(group, kind, &spec, &meta);
    }

    #[test]
    fn nothing_panics_on_good_objects_that_were_spoilt((which, turns, with) in spoilt()) {
        let creates: Vec<_> = recorded::all()
            .into_iter()
            .filter(|recorded| recorded.id.ends_with("-create") && recorded.code == 201)
            .collect();
        let good = &creates[which % creates.len()].answer;
        let (group, _, kind) = kind_of(good);
        let mut bad = good.clone();
        spoil(&mut bad, &turns, with);
        run_all(&group, &kind, &bad, good);
        run_all(&group, &kind, good, &bad);
    }
}
