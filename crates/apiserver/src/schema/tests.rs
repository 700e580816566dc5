//! The recorded answers of kube-apiserver are the specification.

use serde_json::{Value, json};

use super::{FieldValidation, Problem, check, check_with, complete, is_complete, is_known};
use crate::decode::{ContentType, object as decode};
use crate::recorded::{self, kind_of};

fn round_trip(group: &str, version: &str, kind: &str, object: &Value) -> Value {
    let mut after = object.clone();
    let warnings = check(group, version, kind, &mut after, FieldValidation::Warn).expect("it fits its schema");
    assert_eq!(warnings, Vec::<String>::new(), "{object}");
    complete(group, version, kind, &mut after);
    after
}

#[test]
fn what_kube_apiserver_answers_is_left_as_it_is() {
    let mut seen = 0;
    for recorded in recorded::all().iter().filter(|recorded| recorded.code < 300 && recorded.answer.is_object()) {
        let (group, version, kind) = kind_of(&recorded.answer);
        // Lists, tables and discovery are put together by the server, which does not write nil lists.
        let (kind, objects) = match (kind.strip_suffix("List"), recorded.answer["items"].as_array()) {
            (Some(kind), Some(items)) => (kind, items.as_slice()),
            _ => (kind.as_str(), std::slice::from_ref(&recorded.answer)),
        };
        if is_known(&group, &version, kind) && !kind.starts_with("API") {
            for object in objects {
                assert_eq!(round_trip(&group, &version, kind, object), *object, "{}", recorded.id);
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "only {seen} objects were compared");
}

/// Lines of `tests/data/decoded.jsonl` are random objects and what upstream's own code (1.37.1) made of them: decoded
/// strictly, to protobuf and back, encoded.
#[test]
fn objects_become_what_upstreams_code_makes_of_them() {
    // How many objects were complete before, and how many were not.
    let mut complete_before = [0, 0];
    for line in include_str!("../../tests/data/decoded.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("a line is JSON");
        let [group, version, kind] = recorded::kind_in(&row);
        let mut object = row["given"].clone();
        let got = check(group, version, kind, &mut object, FieldValidation::Warn);
        let before = object.clone();
        complete(group, version, kind, &mut object);
        assert_eq!(is_complete(group, version, kind, &before), before == object, "{before}");
        assert!(is_complete(group, version, kind, &object), "{object}");
        complete_before[usize::from(before == object)] += 1;
        match (row["error"].as_str(), got) {
            (Some(error), got) => {
                assert_eq!(got.map_err(|problem| problem.to_string()), Err(error.to_owned()), "{line}");
            }
            (None, got) => {
                let warnings = got.unwrap_or_else(|problem| panic!("{problem}: {line}"));
                let strict = Problem::strict(&warnings).to_string();
                assert_eq!((!warnings.is_empty()).then_some(strict.as_str()), row["warning"].as_str(), "{line}");
                assert_eq!(object, row["want"], "{line}");
            }
        }
    }
    assert!(complete_before.iter().all(|count| *count > 10), "{complete_before:?}");
}

#[test]
fn what_was_written_is_what_kube_apiserver_says() {
    let rows: &[(&str, &str, Value, Result<Value, &str>)] = &[
        (
            "a string for a number",
            "apps/v1/Deployment",
            json!({"spec": {"replicas": "three"}}),
            Err("json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ),
        (
            "a fraction for a number",
            "apps/v1/Deployment",
            json!({"spec": {"replicas": 1.5}}),
            Err("json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ),
        (
            "a number too large",
            "apps/v1/Deployment",
            json!({"spec": {"replicas": 99999999999_i64}}),
            Err(
                "json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
        ),
        (
            "a list for a struct",
            "/v1/Pod",
            json!({"spec": []}),
            Err("json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        ),
        (
            "an element of a list",
            "/v1/Pod",
            json!({"spec": {"containers": [{"name": 1}]}}),
            Err("json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string"),
        ),
        (
            "a label that is a number",
            "/v1/Pod",
            json!({"metadata": {"labels": {"a": 1}}}),
            Err("json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"),
        ),
        (
            "an embedded struct",
            "/v1/Pod",
            json!({"spec": {"volumes": [{"emptyDir": true}]}}),
            Err(
                "json: cannot unmarshal bool into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
            ),
        ),
        (
            "a bad quantity",
            "/v1/Pod",
            json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "abc"}}}]}}),
            Err("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ),
        (
            "a bad int-or-string",
            "/v1/Service",
            json!({"spec": {"ports": [{"targetPort": true}]}}),
            Err("json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32"),
        ),
        ("bad base64", "/v1/Secret", json!({"data": {"a": "!"}}), Err("illegal base64 data at input byte 0")),
        (
            "a root that is a list",
            "/v1/Pod",
            json!([]),
            Err("json: cannot unmarshal array into Go value of type v1.Pod"),
        ),
        (
            "values in canonical form",
            "/v1/Pod",
            json!({"metadata": {"creationTimestamp": "2026-11-15T22:04:07.5+01:00"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]}}),
            Ok(json!({"metadata": {"creationTimestamp": "2026-11-15T21:04:07Z"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]}})),
        ),
        (
            "null, zero and empty values are as if absent",
            "apps/v1/Deployment",
            json!({"metadata": {"labels": {}, "annotations": null}, "spec": {"paused": false, "replicas": 0, "template": {}}}),
            Ok(json!({"spec": {"replicas": 0}})),
        ),
        (
            "null elements are zero values",
            "/v1/Pod",
            json!({"metadata": {"labels": {"a": null}, "finalizers": [null]}, "spec": {"containers": [null]}}),
            Ok(json!({"metadata": {"labels": {"a": ""}, "finalizers": [""]}, "spec": {"containers": [{}]}})),
        ),
        (
            "pointers to empty structs stay",
            "/v1/Pod",
            json!({"spec": {"volumes": [{"name": "e", "emptyDir": {}}]}}),
            Ok(json!({"spec": {"volumes": [{"name": "e", "emptyDir": {}}]}})),
        ),
        (
            "declared defaults",
            "/v1/Pod",
            json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}),
            Ok(json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}})),
        ),
        (
            "what nobody knows is kept",
            "example.com/v1/Widget",
            json!({"spec": {"x": null}, "metadata": {"name": "w"}}),
            Ok(json!({"spec": {"x": null}, "metadata": {"name": "w"}})),
        ),
        (
            "but its metadata is checked",
            "example.com/v1/Widget",
            json!({"metadata": {"labels": {"a": 1}}}),
            Err("json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"),
        ),
    ];
    for (name, kind, given, want) in rows {
        let mut parts = kind.split('/');
        let mut part = || parts.next().expect("group/version/kind");
        let group = part();
        let version = part();
        let kind = part();
        let mut object = given.clone();
        let got = check(group, version, kind, &mut object, FieldValidation::Strict);
        match want {
            Ok(want) => assert_eq!((got, &object), (Ok(vec![]), want), "{name}"),
            Err(want) => assert_eq!(got.map_err(|problem| problem.to_string()), Err((*want).to_owned()), "{name}"),
        }
    }
}

#[test]
fn unknown_and_duplicate_fields_are_dropped_warned_about_or_refused() {
    let body = br#"{"dataa": {"x": 1, "x": 2}, "data": {"a": "1", "a": "2"}, "metadata": {"name": "n", "nope": []}}"#;
    let findings = ["duplicate field \"data.a\"", "unknown field \"dataa\"", "unknown field \"metadata.nope\""];
    let run = |validation| {
        let decoded = decode(body, ContentType::Json).expect("it is JSON");
        let mut object = decoded.value;
        let result = check_with("", "v1", "ConfigMap", &mut object, decoded.duplicates, validation);
        (object, result)
    };
    let pruned = json!({"data": {"a": "2"}, "metadata": {"name": "n"}});
    assert_eq!(run(FieldValidation::Ignore), (pruned.clone(), Ok(vec![])));
    assert_eq!(run(FieldValidation::Warn), (pruned, Ok(findings.map(str::to_owned).to_vec())));
    let problem = run(FieldValidation::Strict).1.expect_err("it is strict");
    assert_eq!(
        problem.message("v1", "ConfigMap"),
        format!(
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: {}",
            findings.join(", ")
        )
    );
}

#[test]
fn the_recorded_type_errors_and_strict_errors_are_equal() {
    for id in ["bad-pod-bad-quantity", "bad-type-mismatch", "strict-unknown-field", "dup-json-key"] {
        let recorded = recorded::get(id);
        let (group, version, kind) = match recorded.path.split('?').next().unwrap_or_default() {
            path if path.ends_with("/deployments") => ("apps", "v1", "Deployment"),
            path if path.ends_with("/pods") => ("", "v1", "Pod"),
            _ => ("", "v1", "ConfigMap"),
        };
        let decoded = decode(&recorded.body, ContentType::Json).expect("it is JSON");
        let mut object = decoded.value;
        let problem = check_with(group, version, kind, &mut object, decoded.duplicates, FieldValidation::Strict)
            .expect_err("it is refused");
        assert_eq!(problem.message(version, kind), recorded.answer["message"], "{id}");
    }
}
