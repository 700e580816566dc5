//! Who owns what after a write.

use serde_json::{Value, json};
use steersman_structured_merge::manager::{UPDATE_MANAGERS_MAX, keep_times_of_unchanged};
use steersman_structured_merge::{
    ApplyError, FieldManager, Filter, Managed, PathElement, Pattern, Schema, Versions, Writer, manager_name,
};

use super::{V1, V2, apply, by, object, one_version, owners, schema, things};

#[test]
fn requests_that_are_no_configuration_are_bad() {
    let rows = [
        (json!({"apiVersion": V2, "kind": "Thing"}), "invalid object type: test.example/v2, Kind=Thing"),
        (json!({"apiVersion": "v1", "kind": "Pod"}), "invalid object type: /v1, Kind=Pod"),
        (json!({}), "invalid object type: /, Kind="),
        (
            json!({"apiVersion": V1, "kind": "Thing", "metadata": {"managedFields": []}}),
            "metadata.managedFields must be nil",
        ),
    ];
    for (config, want) in rows {
        let error = things(&one_version()).apply(None, &config, by("one"), false).expect_err(want);
        assert_eq!(error, ApplyError::BadRequest(want.to_owned()));
    }
}

#[test]
fn conflicts_name_the_managers_and_their_fields() {
    let live = apply(None, &json!({"text": "a", "map": {"k": "1"}}), "one").expect("created").object;
    let mut updated = live.clone();
    updated["spec"]["number"] = json!(1);
    things(&one_version()).update(Some(&live), &mut updated, by("two")).expect("it fits");
    let error =
        apply(Some(&updated), &json!({"text": "b", "number": 2, "map": {"k": "2"}}), "three").expect_err("conflicts");
    let want = "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.text\n- .spec.map.k\n\
                conflicts with \"two\" using test.example/v1:\n- .spec.number";
    assert_eq!(error.to_string(), want);
    let forced = things(&one_version()).apply(Some(&updated), &object(&json!({"text": "b"})), by("three"), true);
    let want = [
        r#"one:Apply:{"f:spec":{"f:map":{"f:k":{}}}}"#,
        r#"three:Apply:{"f:spec":{"f:text":{}}}"#,
        r#"two:Update:{"f:spec":{"f:number":{}}}"#,
    ];
    assert_eq!(owners(&forced.expect("forced").object), want);
}

#[test]
fn what_is_no_longer_applied_is_removed_unless_somebody_else_owns_it() {
    let live = apply(None, &json!({"map": {"a": "1", "b": "2"}, "set": ["x", "y"]}), "one").expect("created").object;
    let live = apply(Some(&live), &json!({"map": {"b": "2"}, "set": ["y"]}), "two").expect("the same values").object;
    let applied = apply(Some(&live), &json!({"text": "t"}), "one").expect("no conflict").object;
    assert_eq!(applied["spec"], json!({"text": "t", "map": {"b": "2"}, "set": ["y"]}));
    let want = [
        r#"one:Apply:{"f:spec":{"f:text":{}}}"#,
        r#"two:Apply:{"f:spec":{"f:map":{"f:b":{}},"f:set":{"v:\"y\"":{}}}}"#,
    ];
    assert_eq!(owners(&applied), want);
}

#[test]
fn time_moves_only_when_something_changes() {
    let fields = one_version();
    let time = |object: &Value, index: usize| object["metadata"]["managedFields"][index]["time"].clone();
    let at = |manager, now| Writer { manager, now };
    let mut live = object(&json!({"text": "a"}));
    things(&fields).update(None, &mut live, at("one", "2026-01-01T00:00:00Z")).expect("created");
    let mut same = live.clone();
    things(&fields).update(Some(&live), &mut same, at("one", "2026-01-02T00:00:00Z")).expect("updated");
    assert_eq!(time(&same, 0), "2026-01-01T00:00:00Z");
    let mut other = live.clone();
    other["spec"]["number"] = json!(1);
    things(&fields).update(Some(&live), &mut other, at("one", "2026-01-02T00:00:00Z")).expect("updated");
    assert_eq!(time(&other, 0), "2026-01-02T00:00:00Z");
    // An apply that changes no value owns what it says, but nothing has happened at any time.
    let shared =
        things(&fields).apply(Some(&other), &object(&json!({"number": 1})), at("two", "2026-01-03T00:00:00Z"), false);
    let shared = shared.expect("the same value");
    assert!(!shared.changed);
    assert_eq!(time(&shared.object, 0), Value::Null);
}

#[test]
fn a_write_that_would_only_move_a_time_moves_none() {
    let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time, "fieldsV1": {"f:spec": {}}});
    let thing =
        |text: &str, entry: Value| json!({"metadata": {"name": "n", "managedFields": [entry]}, "spec": {"text": text}});
    let old = thing("a", entry("m", "2026-01-01T00:00:00Z"));
    let rows = [
        (thing("a", entry("m", "2026-01-02T00:00:00Z")), "2026-01-01T00:00:00Z"),
        (thing("b", entry("m", "2026-01-02T00:00:00Z")), "2026-01-02T00:00:00Z"),
        (thing("a", entry("x", "2026-01-02T00:00:00Z")), "2026-01-02T00:00:00Z"),
    ];
    for (mut new, want) in rows {
        keep_times_of_unchanged(&old, &mut new);
        assert_eq!(new["metadata"]["managedFields"][0]["time"], want);
    }
}

#[test]
fn managers_that_the_user_gives_up_are_gone_and_those_the_user_gives_count() {
    let fields = one_version();
    let mut live = object(&json!({"text": "a"}));
    things(&fields).update(None, &mut live, by("one")).expect("created");
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        things(&fields).update(Some(&live), &mut new, by("two")).expect("updated");
        assert_eq!(new["metadata"].get("managedFields"), None);
        let mut later = new.clone();
        later["spec"]["text"] = json!("b");
        things(&fields).update(Some(&new), &mut later, by("two")).expect("updated");
        assert_eq!(later["metadata"].get("managedFields"), None, "nobody is recorded before the first apply");
    }
    for ignored in [Value::Null, json!([{"operation": "huh"}]), json!("x")] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = ignored;
        things(&fields).update(Some(&live), &mut new, by("two")).expect("updated");
        assert_eq!(owners(&new), owners(&live));
    }
    let given = json!([{"manager": "x", "operation": "Update", "apiVersion": V1, "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:text": {}}}}]);
    let mut new = live.clone();
    new["metadata"]["managedFields"] = given.clone();
    things(&fields).update(Some(&live), &mut new, by("two")).expect("updated");
    assert_eq!(owners(&new), [r#"x:Update:{"f:spec":{"f:text":{}}}"#]);
    let status = FieldManager { subresource: "status", ..things(&fields) };
    let mut new = live.clone();
    new["metadata"]["managedFields"] = given;
    status.update(Some(&live), &mut new, by("two")).expect("updated");
    assert_eq!(owners(&new), owners(&live), "a subresource does not take them");
}

#[test]
fn broken_managers_have_a_reason() {
    let good =
        json!({"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}});
    let rows = [
        ("operation", json!("Create"), "operation must be `Apply` or `Update`"),
        ("apiVersion", json!(""), "apiVersion must not be empty"),
        ("fieldsType", json!(""), "missing fieldsType in managed fields entry 0"),
        ("fieldsType", json!("V2"), "invalid fieldsType \"V2\" in managed fields entry 0"),
        (
            "fieldsV1",
            json!({"k:": {}}),
            "error decoding versioned set from managed fields entry 0: error decoding set: parsing key as path element: \
             EOF while parsing a value at line 1 column 0",
        ),
    ];
    for (name, value, want) in rows {
        let mut entry = good.clone();
        entry[name] = value;
        let error = Managed::decode(Some(&json!([entry]))).expect_err(want);
        assert_eq!(error.to_string(), want);
    }
    assert_eq!(Managed::decode(Some(&json!([good]))).expect("good").entries.len(), 1);
}

#[test]
fn the_first_apply_finds_a_manager_of_what_is_there() {
    let live = object(&json!({"text": "a", "number": 1}));
    let conflict = apply(Some(&live), &json!({"text": "b"}), "one").expect_err("somebody has set it");
    let want = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using test.example/v1: .spec.text";
    assert_eq!(conflict.to_string(), want);
    let applied = apply(Some(&live), &json!({"text": "a"}), "one").expect("the same value").object;
    let want = [
        r#"before-first-apply:Update:{"f:spec":{".":{},"f:number":{},"f:text":{}}}"#,
        r#"one:Apply:{"f:spec":{"f:text":{}}}"#,
    ];
    assert_eq!(owners(&applied), want);
}

#[test]
fn server_side_apply_continues_client_side_apply_both_ways() {
    const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let fields = one_version();
    let first = object(&json!({"text": "a", "number": 1}));
    let mut live = first.clone();
    live["metadata"]["annotations"] = json!({ANNOTATION: first.to_string()});
    things(&fields).update(None, &mut live, by("kubectl-client-side-apply")).expect("created");
    let second = json!({"text": "b"});
    let other = apply(Some(&live), &second, "somebody").expect_err("the annotation is kubectl's");
    assert!(matches!(other, ApplyError::Conflict(_)));
    let applied = apply(Some(&live), &second, "kubectl").expect("client-side apply set it").object;
    assert_eq!(applied["spec"]["text"], "b");
    let text = applied["metadata"]["annotations"][ANNOTATION].as_str().expect("the annotation");
    let want = "{\"apiVersion\":\"test.example/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"n\"},\"spec\":{\"text\":\"b\"}}\n";
    assert_eq!(text, want);
    // What was changed since by others is no longer explained.
    let mut changed = live.clone();
    changed["spec"]["text"] = json!("c");
    things(&fields).update(Some(&live), &mut changed, by("editor")).expect("updated");
    let conflict = apply(Some(&changed), &second, "kubectl").expect_err("the editor's");
    assert!(conflict.to_string().contains("\"editor\""), "{conflict}");
}

#[test]
fn the_oldest_updates_become_ancient_changes() {
    let fields = one_version();
    let mut live = object(&json!({"map": {}}));
    things(&fields).update(None, &mut live, Writer { manager: "m00", now: "2026-01-01T00:00:00Z" }).expect("created");
    for number in 1..15 {
        let mut new = live.clone();
        new["spec"]["map"][format!("k{number:02}")] = json!("1");
        let manager = format!("m{number:02}");
        let now = format!("2026-01-{:02}T00:00:00Z", number + 1);
        things(&fields).update(Some(&live), &mut new, Writer { manager: &manager, now: &now }).expect("updated");
        live = new;
    }
    let entries = live["metadata"]["managedFields"].as_array().expect("managers");
    assert_eq!(entries.len(), UPDATE_MANAGERS_MAX);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(entries[0]["time"], "2026-01-06T00:00:00Z");
    let fields = &entries[0]["fieldsV1"]["f:spec"]["f:map"];
    assert!(fields.get("f:k05").is_some() && fields.get("f:k06").is_none(), "{fields}");
}

/// The second version calls `text` `words`.
struct TwoVersions(Schema, Schema);

impl Versions for TwoVersions {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        match api_version {
            V1 => Some(&self.0),
            V2 => Some(&self.1),
            _ => None,
        }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        let (from, to) = if api_version == V2 { ("text", "words") } else { ("words", "text") };
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][to] = value;
        }
        object["apiVersion"] = json!(api_version);
        Ok(object)
    }
}

#[test]
fn owners_in_another_version_are_found_and_those_in_a_version_that_is_gone_are_not() {
    let spec = json!({"type": "object", "properties": {"words": {"type": "string"}, "number": {"type": "integer"}}});
    let second = Schema::custom_resource(Some(&json!({"type": "object", "properties": {"spec": spec}})));
    let versions = TwoVersions(schema(), second.expect("a structural schema"));
    let live = things(&versions).apply(None, &object(&json!({"text": "a", "number": 1})), by("one"), false);
    let live = versions.convert(&live.expect("created").object, V2).expect("converted");
    let in_second = FieldManager { api_version: V2, ..things(&versions) };
    let config = |spec: Value| json!({"apiVersion": V2, "kind": "Thing", "metadata": {"name": "n"}, "spec": spec});
    let conflict = in_second.apply(Some(&live), &config(json!({"words": "b"})), by("two"), false).expect_err("one's");
    assert_eq!(conflict.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.text");
    // The same applier in another version has one entry, and loses what it no longer says.
    let again = in_second.apply(Some(&live), &config(json!({"words": "a"})), by("one"), false).expect("its own").object;
    assert_eq!(again["spec"], json!({"words": "a"}));
    assert_eq!(owners(&again), [r#"one:Apply:{"f:spec":{"f:words":{}}}"#]);
    let mut gone = live.clone();
    gone["metadata"]["managedFields"][0]["apiVersion"] = json!("test.example/v0");
    let applied = in_second.apply(Some(&gone), &config(json!({"words": "b"})), by("two"), false).expect("nobody's");
    assert_eq!(owners(&applied.object), [r#"two:Apply:{"f:spec":{"f:words":{}}}"#]);
}

#[test]
fn a_subresource_owns_only_what_it_can_write() {
    let fields = one_version();
    let mut live = object(&json!({"text": "a"}));
    things(&fields).update(None, &mut live, by("one")).expect("created");
    let filters = [(V1, Filter::exclude_fields(["spec"]))];
    let status = FieldManager { subresource: "status", filters: &filters, ..things(&fields) };
    let mut new = live.clone();
    new["status"] = json!({"ready": 1});
    new["spec"]["text"] = json!("reset by storage");
    status.update(Some(&live), &mut new, by("two")).expect("updated");
    let want = [r#"one:Update:{"f:spec":{".":{},"f:text":{}}}"#, r#"two:Update:{"f:status":{".":{},"f:ready":{}}}"#];
    assert_eq!(owners(&new), want);
    assert_eq!(new["metadata"]["managedFields"][1]["subresource"], "status");
    let any_port = Pattern(vec![Some(PathElement::field("spec")), Some(PathElement::field("ports")), None]);
    let set = schema().to_field_set(&object(&json!({"text": "a", "ports": [{"port": 1}]}))).expect("it fits");
    let want = r#"{"f:spec":{"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#;
    assert_eq!(Filter::Include(vec![any_port]).apply(set).to_json(), want);
}

#[test]
fn a_request_without_a_manager_has_its_user_agents() {
    let rows = [
        ("given", "kubectl/v1.37", "given"),
        ("", "kubectl/v1.37 (linux)", "kubectl"),
        ("", "my\tagent\u{7}é/1", "myagenté"),
        ("", "", ""),
    ];
    for (given, agent, want) in rows {
        assert_eq!(manager_name(given, agent), want);
    }
    assert_eq!(manager_name("", &"é".repeat(100)).len(), 128);
}
