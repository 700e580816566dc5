//! The recorded patches, upstream's directives, and the examples of the RFCs.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Kind, PatchType, accepts, apply, findings, refused_result};
use crate::recorded::{self, Recorded, kind_of};
use crate::schema::{FieldValidation, check, complete};

fn patch_type(content_type: &str) -> PatchType {
    match content_type {
        "application/json-patch+json" => PatchType::Json,
        "application/merge-patch+json" => PatchType::Merge,
        "application/strategic-merge-patch+json" => PatchType::Strategic,
        other => panic!("no patch: {other}"),
    }
}

/// What changes with every write, or is not the patch's.
fn normalised(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("an object has metadata");
    for field in ["managedFields", "resourceVersion", "generation"] {
        metadata.remove(field);
    }
    object
}

/// The object before a recorded patch: what the last answer about it was.
fn before(all: &[Recorded], index: usize) -> Value {
    let path = &all[index].path;
    let is_about = |recorded: &&Recorded| {
        let created = format!("{}/{}", recorded.path, recorded.answer["metadata"]["name"].as_str().unwrap_or_default());
        recorded.code < 300 && (recorded.path == *path || (recorded.method == "POST" && created == *path))
    };
    all[..index].iter().rev().find(is_about).expect("the object was seen before").answer.clone()
}

fn pod_defaults(patched: &mut Value) {
    // What the defaults of a new container are is another module's business.
    let containers = patched.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        for (field, default) in [
            ("imagePullPolicy", "Always"),
            ("terminationMessagePath", "/dev/termination-log"),
            ("terminationMessagePolicy", "File"),
        ] {
            container[field] = container.get(field).cloned().unwrap_or(json!(default));
        }
    }
}

#[test]
fn the_recorded_patches_give_the_recorded_objects() {
    let all = recorded::all();
    let mut seen = Vec::new();
    for (index, recorded) in all.iter().enumerate() {
        let is_ours = ["smp-", "json-patch", "merge-patch"].iter().any(|prefix| recorded.id.starts_with(prefix));
        if !is_ours || recorded.code != 200 {
            continue;
        }
        let original = before(&all, index);
        let (group, version, kind) = kind_of(&original);
        let mut patched = apply(patch_type(&recorded.content_type), &group, &version, &kind, &original, &recorded.body)
            .unwrap_or_else(|error| panic!("{}: {error}", recorded.id));
        check(&group, &version, &kind, &mut patched, FieldValidation::Strict).expect("it fits its schema");
        pod_defaults(&mut patched);
        complete(&group, &version, &kind, &mut patched);
        assert_eq!(normalised(&patched), normalised(&recorded.answer), "{}", recorded.id);
        seen.push(recorded.id.as_str());
    }
    assert_eq!(seen.len(), 11, "{seen:?}");
}

#[test]
fn the_recorded_bad_patches_get_the_recorded_errors() {
    for id in ["json-patch-test-fails", "json-patch-bad-path", "json-patch-not-list", "smp-bad-directive", "smp-on-crd"]
    {
        let recorded = recorded::get(id);
        let (group, kind) = match id {
            "smp-bad-directive" => ("apps", "Deployment"),
            "smp-on-crd" => ("rec.example", "Widget"),
            _ => ("", "ConfigMap"),
        };
        let original = json!({"data": {"z": "1"}, "spec": {"replicas": 1}});
        let error = apply(patch_type(&recorded.content_type), group, "v1", kind, &original, &recorded.body)
            .expect_err("it does not apply");
        let answer = &recorded.answer;
        assert_eq!(u64::from(error.code), recorded.code, "{id}");
        assert_eq!(error.message, answer["message"], "{id}");
        assert_eq!(error.reason, answer["reason"].as_str().unwrap_or_default(), "{id}");
        assert_eq!(error.details, answer.get("details").is_some(), "{id}");
    }
    assert!(accepts(PatchType::Strategic, "rec.example", "v1", "Widget").is_err());
    assert!(accepts(PatchType::Merge, "rec.example", "v1", "Widget").is_ok());
}

#[test]
fn merge_patch_does_what_rfc_7396_shows() {
    for (original, patch, want) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        let got = apply(PatchType::Merge, "", "v1", "ConfigMap", &original, patch.to_string().as_bytes());
        assert_eq!(got, Ok(want), "{original} {patch}");
    }
}

/// Lines of `tests/data/strategic-merge.jsonl` are random patches and what upstream's own code (1.37.1) made of them.
#[test]
fn strategic_merge_patches_give_what_upstreams_code_gives() {
    for line in include_str!("../../tests/data/strategic-merge.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("a line is JSON");
        let [group, version, kind] = recorded::kind_in(&row);
        let got = apply(PatchType::Strategic, group, version, kind, &row["given"], row["patch"].to_string().as_bytes());
        let want = row["error"].as_str().map_or_else(|| Ok(row["want"].clone()), |error| Err(error.to_owned()));
        assert_eq!(got.map_err(|error| error.message), want, "{} {}", row["given"], row["patch"]);
    }
}

fn pod(spec: impl Into<Value>) -> Value {
    json!({"metadata": {"name": "p"}, "spec": spec.into()})
}

#[test]
fn strategic_merge_patch_does_what_upstream_does() {
    for (name, original, patch, want) in [
        (
            "lists without a strategy are replaced",
            json!({"containers": [{"name": "a", "args": ["1", "2"]}]}),
            json!({"containers": [{"name": "a", "args": ["3"]}]}),
            json!({"containers": [{"name": "a", "args": ["3"]}]}),
        ),
        (
            "new elements come first, in the patch's order",
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "y"}, {"name": "x"}]}),
            json!({"containers": [{"name": "y"}, {"name": "x"}, {"name": "a"}, {"name": "b"}]}),
        ),
        (
            "patched elements take the patch's order",
            json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
            json!({"containers": [{"name": "c", "image": "x"}, {"name": "a"}]}),
            json!({"containers": [{"name": "b"}, {"name": "c", "image": "x"}, {"name": "a"}]}),
        ),
        (
            "an order is enforced",
            json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
            json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}),
        ),
        (
            "null deletes a field",
            json!({"nodeName": "n", "containers": []}),
            json!({"nodeName": null}),
            json!({"containers": []}),
        ),
        (
            "null in what is new is dropped",
            json!({}),
            json!({"securityContext": {"runAsUser": null, "runAsGroup": 1}}),
            json!({"securityContext": {"runAsGroup": 1}}),
        ),
        (
            "$patch: delete empties an object",
            json!({"securityContext": {"runAsUser": 1}}),
            json!({"securityContext": {"$patch": "delete"}}),
            json!({"securityContext": {}}),
        ),
        (
            "$patch: replace replaces an object",
            json!({"securityContext": {"runAsUser": 1}}),
            json!({"securityContext": {"$patch": "replace", "runAsGroup": 2}}),
            json!({"securityContext": {"runAsGroup": 2}}),
        ),
        (
            "a directive about nothing leaves nothing",
            json!({}),
            json!({"containers": [{"name": "a"}, {"name": "b", "$patch": "delete"}]}),
            json!({"containers": [{"name": "a"}]}),
        ),
        (
            "$retainKeys of a volume",
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}),
            json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
        ),
        (
            "ports are merged by containerPort",
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "x"}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 81}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "x", "protocol": "UDP"}, {"containerPort": 81}]}]}),
        ),
        (
            "maps are merged",
            json!({"nodeSelector": {"a": "1", "b": "2"}}),
            json!({"nodeSelector": {"a": "3", "b": null}}),
            json!({"nodeSelector": {"a": "3"}}),
        ),
    ] {
        let got =
            apply(PatchType::Strategic, "", "v1", "Pod", &pod(original), json!({"spec": patch}).to_string().as_bytes());
        assert_eq!(got, Ok(pod(want)), "{name}");
    }
}

#[test]
fn primitive_lists_are_merged_deleted_from_and_ordered() {
    let object = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    for (name, original, patch, want) in [
        ("merged without duplicates", &["a", "b"][..], json!({"finalizers": ["b", "c"]}), &["a", "b", "c"][..]),
        ("deleted from", &["a", "b", "c"], json!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}), &["a", "c"]),
        (
            "ordered",
            &["a", "b"],
            json!({"finalizers": ["c"], "$setElementOrder/finalizers": ["c", "b", "a"]}),
            &["c", "b", "a"],
        ),
    ] {
        let patch = json!({"metadata": patch}).to_string();
        let got = apply(PatchType::Strategic, "", "v1", "ConfigMap", &object(original), patch.as_bytes());
        assert_eq!(got, Ok(object(want)), "{name}");
    }
}

#[test]
fn bad_patches_get_upstreams_status() {
    let original = pod(json!({"containers": [{"name": "a"}], "nodeName": "n".repeat(100_000)}));
    let many = Value::Array(vec![json!({"op": "test", "path": "/x", "value": 1}); 10_001]).to_string();
    let copies = Value::Array(vec![json!({"op": "copy", "from": "/spec", "path": "/status"}); 40]).to_string();
    let nesting = Value::Array(vec![json!({"op": "move", "from": "/spec", "path": "/spec/x"}); 10]).to_string();
    let deep = (1..200).map(|depth| json!({"op": "add", "path": "/x".repeat(depth), "value": {}})).collect();
    let deep = Value::Array(deep).to_string();
    for (name, patch_type, patch, code, message) in [
        ("no JSON", PatchType::Merge, "{", 400, "invalid JSON patch"),
        (
            "no object",
            PatchType::Merge,
            "[]",
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "no object either",
            PatchType::Strategic,
            "1",
            400,
            "json: cannot unmarshal number into Go value of type map[string]interface {}",
        ),
        (
            "operations that are none",
            PatchType::Json,
            "[{\"op\": 1}]",
            400,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
        (
            "an unknown operation",
            PatchType::Json,
            "[{\"op\": \"nope\", \"path\": \"/a\"}]",
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            "too many operations",
            PatchType::Json,
            &many,
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
        (
            "a bomb of copies",
            PatchType::Json,
            &copies,
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            "a move into itself",
            PatchType::Json,
            &nesting,
            422,
            "the server rejected our request due to an error in our request",
        ),
        ("a ladder", PatchType::Json, &deep, 422, "the server rejected our request due to an error in our request"),
        (
            "an element without its key",
            PatchType::Strategic,
            r#"{"spec":{"containers":[{"image":"x"}]}}"#,
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            "keys that are not retained",
            PatchType::Strategic,
            r#"{"spec":{"containers":[{"name":"a","$retainKeys":["name"],"image":"x"}]}}"#,
            400,
            "invalid patch format of retainKeys",
        ),
        (
            "a list that merges merging",
            PatchType::Strategic,
            r#"{"spec":{"containers":[{"name":"a","$patch":"merge"}]}}"#,
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            "an order that is no list",
            PatchType::Strategic,
            r#"{"spec":{"$setElementOrder/containers":1}}"#,
            500,
            "expected a []interface {}, but received a int64",
        ),
        (
            "a directive without its list",
            PatchType::Strategic,
            r#"{"spec":{"$deleteFromPrimitiveList":[]}}"#,
            400,
            "invalid patch format of primitive list",
        ),
        (
            "elements of two types",
            PatchType::Strategic,
            r#"{"spec":{"containers":[1]}}"#,
            500,
            "list element types are not identical: [[map[name:a]] [1]]",
        ),
    ] {
        let error = apply(patch_type, "", "v1", "Pod", &original, patch.as_bytes()).expect_err(name);
        assert_eq!((error.code, error.message.as_str()), (code, message), "{name}");
    }
}

#[test]
fn findings_of_a_patch_are_those_of_strict_decoding() {
    let patch = br#"[{"op": "add", "path": "/a", "value": {"x": 1, "x": 2}, "nope": 1}]"#;
    assert_eq!(
        findings(PatchType::Json, patch),
        ["json patch duplicate field \"[0].value.x\"", "json patch unknown field \"[0].nope\""]
    );
    assert_eq!(findings(PatchType::Merge, br#"{"a": 1, "a": 2}"#), ["duplicate field \"a\""]);
}

#[test]
fn a_patched_object_of_wrong_type_is_a_422_about_the_patch() {
    let original = pod(json!({"nodeName": "n"}));
    let patch = br#"{"spec": {"nodeName": 1}}"#;
    let mut patched = apply(PatchType::Strategic, "", "v1", "Pod", &original, patch).expect("it applies");
    let problem = check("", "v1", "Pod", &mut patched, FieldValidation::Warn).expect_err("it is a number");
    let kind = Kind { group: "", version: "v1", kind: "Pod" };
    let error = refused_result(PatchType::Strategic, &kind, &original, &patched, patch, &problem.to_string());
    assert_eq!(error.path.as_str(), "patch");
    assert_eq!(error.detail, "cannot convert int64 to string");
}

/// Patches that look as if they were meant.
fn patch_like() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$deleteFromPrimitiveList/args",
        "spec",
        "containers",
        "name",
        "env",
        "ports",
        "containerPort",
        "metadata",
        "finalizers",
        "volumes",
        "emptyDir",
        "labels",
        "template",
        "args",
        "tolerations",
        "$setElementOrder/finalizers",
        "status",
        "conditions",
        "type",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        prop::sample::select(vec!["a", "b", "delete", "replace", "merge", "name"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_makes_it_panic(original in patch_like(), patch in patch_like(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for patch_type in [PatchType::Json, PatchType::Merge, PatchType::Strategic] {
            for kind in ["Pod", "ConfigMap", "Nope"] {
                let _ = apply(patch_type, "", "v1", kind, &original, patch.to_string().as_bytes());
                let _ = apply(patch_type, "", "v1", kind, &original, &bytes);
            }
            let _ = findings(patch_type, patch.to_string().as_bytes());
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(original in patch_like()) {
        let original = json!({"spec": original});
        for (patch_type, patch) in [(PatchType::Strategic, "{}"), (PatchType::Merge, "{}"), (PatchType::Json, "[]")] {
            prop_assert_eq!(apply(patch_type, "", "v1", "Pod", &original, patch.as_bytes()), Ok(original.clone()));
        }
    }

    #[test]
    fn check_never_panics_and_is_stable(object in patch_like()) {
        let mut once = object.clone();
        if check("", "v1", "Pod", &mut once, FieldValidation::Ignore).is_ok() {
            let mut twice = once.clone();
            prop_assert!(check("", "v1", "Pod", &mut twice, FieldValidation::Strict).is_ok());
            prop_assert_eq!(&once, &twice);
            complete("", "v1", "Pod", &mut twice);
            let completed = twice.clone();
            complete("", "v1", "Pod", &mut twice);
            prop_assert_eq!(&completed, &twice);
            prop_assert!(check("", "v1", "Pod", &mut twice, FieldValidation::Strict).is_ok());
            prop_assert_eq!(&once, &twice);
        }
    }
}

/// Steps are counted, so this is no measurement of time: a patch that asks for quadratic work is refused.
#[test]
fn a_patch_that_asks_for_quadratic_work_is_refused() {
    let many = |count: usize| -> Vec<Value> { (0..count).map(Value::from).collect() };
    let object = json!({"metadata": {"name": "a"}, "spec": {"list": many(100_000), "deep": many(50_000)}});
    let moves: Vec<Value> = (0..10_000)
        .map(|at| {
            let (from, to) =
                if at % 2 == 0 { ("/spec/deep", "/metadata/deep") } else { ("/metadata/deep", "/spec/deep") };
            json!({"op": "move", "from": from, "path": to})
        })
        .collect();
    let shifts: Vec<Value> = (0..10_000).map(|_| json!({"op": "add", "path": "/spec/list/0", "value": 1})).collect();
    for operations in [moves, shifts] {
        let patch = Value::Array(operations).to_string();
        let refused = apply(PatchType::Json, "example.com", "v1", "Thing", &object, patch.as_bytes()).unwrap_err();
        assert_eq!(refused.code, 413, "{refused}");
    }
    // Each element of the patch is merged into the same container, whose list grows by one each time.
    let elements: Vec<Value> =
        (0..20_000).map(|at| json!({"name": "c", "env": [{"name": format!("e{at}"), "value": "x"}]})).collect();
    let patch = json!({"spec": {"containers": elements}}).to_string();
    let pod = json!({"spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "e", "value": "x"}]}]}});
    let refused = apply(PatchType::Strategic, "", "v1", "Pod", &pod, patch.as_bytes()).unwrap_err();
    assert_eq!(refused.code, 413, "{refused}");
}

#[test]
fn many_directives_on_a_long_list_are_carried_out() {
    let count = 10_000;
    let containers: Vec<Value> = (0..count).map(|at| json!({"name": format!("c{at}"), "image": "i"})).collect();
    let directives: Vec<Value> =
        (0..count).filter(|at| at % 2 == 0).map(|at| json!({"name": format!("c{at}"), "$patch": "delete"})).collect();
    let retained: Vec<Value> = (0..count).map(|at| json!(format!("k{at}"))).chain([json!("containers")]).collect();
    let patch = json!({"spec": {"containers": directives, "$retainKeys": retained}}).to_string();
    let pod = json!({"spec": {"containers": containers, "nodeName": "n"}});
    let patched = apply(PatchType::Strategic, "", "v1", "Pod", &pod, patch.as_bytes()).unwrap();
    assert_eq!(patched["spec"]["containers"].as_array().map(Vec::len), Some(count / 2));
    assert_eq!(patched["spec"]["containers"][0]["name"], "c1");
    assert!(patched["spec"].get("nodeName").is_none());
}
