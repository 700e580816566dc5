//! Upstream's own encodings, each kind of field, and bytes that mean nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::table::{self, Holds, Place};
use super::{MAGIC, object};
use crate::recorded::kind_of;
use crate::schema::{self, FieldValidation};

/// One object of most kinds with every field set, as JSON and as protobuf, from `k8s.io/api/testdata/HEAD` of 0.37.1.
/// Kinds with a pod template are left out but for Deployment: their templates are all the same.
const ENCODED: &str = include_str!("../../../tests/data/protobuf.jsonl");

/// A field, as Go's encoder writes it.
fn field(number: u64, kind: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = varint(number << 3 | kind);
    if kind == 2 {
        bytes.extend(varint(value.len() as u64));
    }
    bytes.extend_from_slice(value);
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("seven bits"));
    bytes
}

fn text(number: u64, value: &str) -> Vec<u8> {
    field(number, 2, value.as_bytes())
}

fn number(number: u64, value: i64) -> Vec<u8> {
    field(number, 0, &varint(u64::from_ne_bytes(value.to_ne_bytes())))
}

fn message(number: u64, parts: &[Vec<u8>]) -> Vec<u8> {
    field(number, 2, &parts.concat())
}

fn body(api_version: &str, kind: &str, raw: &[Vec<u8>]) -> Vec<u8> {
    let envelope = [message(1, &[text(1, api_version), text(2, kind)]), message(2, raw), text(3, ""), text(4, "")];
    [MAGIC, &envelope.concat()].concat()
}

/// The value of an object after it has been read as its kind is.
fn read(mut value: Value) -> Value {
    let (group, version, kind) = kind_of(&value);
    let findings = schema::check(&group, &version, &kind, &mut value, FieldValidation::Warn);
    assert_eq!(findings, Ok(Vec::new()), "{kind}");
    schema::complete(&group, &version, &kind, &mut value);
    value
}

#[test]
fn what_upstream_encodes_is_what_its_json_says() {
    let mut count = 0;
    for line in ENCODED.lines() {
        let row: Value = serde_json::from_str(line).expect("a line is JSON");
        let bytes = STANDARD.decode(row["protobuf"].as_str().expect("protobuf")).expect("base64");
        let kind = &row["object"]["kind"];
        let got = object(&bytes).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(read(got), read(row["object"].clone()), "{kind}");
        count += 1;
    }
    assert_eq!(count, 70);
}

#[test]
fn every_field_of_every_kind_has_a_number() {
    let own = ["apiVersion", "kind"];
    for (name, openapi) in schema::documents() {
        let Some(message) = table::find(name) else {
            let is_scalar = !openapi.contains("\"properties\"") || name.ends_with(".version.Info");
            assert!(is_scalar, "{name} has fields but is not in the table");
            continue;
        };
        let schema: Value = serde_json::from_str(openapi).expect("OpenAPI is JSON");
        let mut names = Vec::new();
        names_of(message, &mut names);
        for field in schema["properties"].as_object().into_iter().flatten().map(|(field, _)| field.as_str()) {
            assert!(names.contains(&field) || own.contains(&field), "{name} has no number for {field}");
        }
    }
}

fn names_of(message: &table::Message, names: &mut Vec<&'static str>) {
    for field in &message.fields {
        match (field.place, field.holds) {
            (Place::Inline, Holds::Message(id)) => names_of(id.message().expect("a message"), names),
            _ => names.push(field.name),
        }
    }
}

#[test]
fn each_kind_of_field_becomes_what_it_is_in_json() {
    let quantity = |value: &str| [text(1, value)];
    let time = [number(1, 1_700_000_000), number(2, 123_456_789)];
    for (kind, raw, path, want) in [
        ("v1/ConfigMap", message(2, &[text(1, "a"), text(2, "b")]), "/data/a", json!("b")),
        ("v1/ConfigMap", message(2, &[text(1, "a")]), "/data/a", json!("")),
        ("v1/ConfigMap", message(3, &[text(1, "a"), text(2, "b")]), "/binaryData/a", json!("Yg==")),
        ("v1/ConfigMap", number(4, 1), "/immutable", json!(true)),
        ("v1/ConfigMap", text(2, ""), "/data", json!({"": ""})),
        (
            "v1/ConfigMap",
            message(1, &[message(8, &time)]),
            "/metadata/creationTimestamp",
            json!("2023-11-14T22:13:20Z"),
        ),
        ("v1/ConfigMap", message(1, &[message(8, &[])]), "/metadata/creationTimestamp", json!(null)),
        ("v1/ConfigMap", message(1, &[number(7, -5)]), "/metadata/generation", json!(-5)),
        ("v1/ConfigMap", message(1, &[text(14, "x"), text(14, "y")]), "/metadata/finalizers", json!(["x", "y"])),
        ("v1/ConfigMap", [message(1, &[text(1, "x")]), message(1, &[text(3, "y")])].concat(), "/metadata", {
            json!({"name": "x", "namespace": "y"})
        }),
        ("v1/ConfigMap", text(99, "from the future"), "/kind", json!("ConfigMap")),
        ("v1/ConfigMap", field(99, 5, &[0; 4]), "/kind", json!("ConfigMap")),
        ("coordination.k8s.io/v1/Lease", message(2, &[message(3, &time)]), "/spec/acquireTime", {
            json!("2023-11-14T22:13:20.123456Z")
        }),
        ("apps/v1/ControllerRevision", message(2, &[text(1, "{\"a\":1}")]), "/data", json!({"a": 1})),
        ("apps/v1/ControllerRevision", message(2, &[]), "/data", json!(null)),
        (
            "v1/LimitRange",
            message(2, &[message(1, &[message(2, &[text(1, "cpu"), message(2, &quantity("1"))])])]),
            "/spec/limits/0/max/cpu",
            json!("1"),
        ),
        (
            "policy/v1/PodDisruptionBudget",
            message(2, &[message(1, &[number(1, 1), number(2, 0), text(3, "5%")])]),
            "/spec/minAvailable",
            json!("5%"),
        ),
        (
            "policy/v1/PodDisruptionBudget",
            message(2, &[message(1, &[number(1, 0), number(2, 3), text(3, "")])]),
            "/spec/minAvailable",
            json!(3),
        ),
        // Among the fields of the message that holds it: the source of a volume.
        (
            "v1/Pod",
            message(2, &[message(1, &[text(1, "v"), message(2, &[message(2, &[text(1, "")])])])]),
            "/spec/volumes/0",
            json!({"name": "v", "emptyDir": {"medium": ""}}),
        ),
        // A message that is nothing but a list.
        (
            "authentication.k8s.io/v1/TokenReview",
            message(3, &[message(2, &[message(4, &[text(1, "k"), message(2, &[text(1, "a"), text(1, "b")])])])]),
            "/status/user/extra/k",
            json!(["a", "b"]),
        ),
        // A packed list: Go reads those too.
        (
            "v1/Pod",
            message(2, &[message(14, &[field(4, 2, &[1, 2, 3])])]),
            "/spec/securityContext/supplementalGroups",
            json!([1, 2, 3]),
        ),
        ("apps/v1/DeleteOptions", text(4, "Orphan"), "/propagationPolicy", json!("Orphan")),
        ("v1/Status", number(6, 404), "/code", json!(404)),
    ] {
        let (api_version, kind) = kind.rsplit_once('/').expect("a version");
        let got = object(&body(api_version, kind, &[raw])).unwrap_or_else(|error| panic!("{kind}{path}: {error}"));
        assert_eq!(got.pointer(path), Some(&want), "{kind}{path} in {got}");
    }
}

#[test]
fn a_schema_of_a_custom_resource_keeps_its_alternatives() {
    let schema = |parts: &[Vec<u8>]| {
        let version = message(7, &[message(4, &[message(1, parts)])]);
        let raw = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &[message(2, &[version])]);
        object(&raw).expect("it can be read")["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    };
    let string = text(5, "string");
    for (part, field, want) in [
        (message(30, &[number(1, 1)]), "additionalProperties", json!(true)),
        (message(30, &[number(1, 0)]), "additionalProperties", json!(false)),
        (message(30, &[number(1, 1), message(2, std::slice::from_ref(&string))]), "additionalProperties", {
            json!({"type": "string"})
        }),
        (message(24, &[message(1, std::slice::from_ref(&string))]), "items", json!({"type": "string"})),
        (
            message(24, &[message(2, std::slice::from_ref(&string)), message(2, &[])]),
            "items",
            json!([{"type": "string"}, {}]),
        ),
        (message(32, &[text(1, "a"), message(2, &[text(2, "b"), text(2, "c")])]), "dependencies", {
            json!({"a": ["b", "c"]})
        }),
        (message(8, &[text(1, "{\"a\":null}")]), "default", json!({"a": null})),
        (message(20, &[text(1, "1")]), "enum", json!([1])),
        (field(9, 1, &1.5_f64.to_le_bytes()), "maximum", json!(1.5)),
        (number(38, 1), "x-kubernetes-preserve-unknown-fields", json!(true)),
        (text(3, "#/a"), "$ref", json!("#/a")),
    ] {
        assert_eq!(schema(&[part])[field], want, "{field}");
    }
}

#[test]
fn bad_bodies_are_refused_with_a_reason() {
    let pod = |raw: &[Vec<u8>]| body("v1", "Pod", raw);
    let mut deep = Vec::new();
    for _ in 0..1_000 {
        deep = message(28, &[deep]);
    }
    let deep = message(2, &[message(7, &[message(4, &[message(1, &[deep])])])]);
    let far = message(1, &[message(8, &[number(1, i64::MAX)])]);
    for (bytes, want) in [
        (Vec::new(), "empty data"),
        (MAGIC.to_vec(), "empty body"),
        (b"{}".to_vec(), "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (body("v1", "", &[]), "Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:\"v1\", Kind:\"\"}'"),
        (body("", "Pod", &[]), "Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"Pod\"}'"),
        (body("example.com/v1", "Shirt", &[]), "no kind \"Shirt\" is registered for version \"example.com/v1\""),
        (pod(&[vec![0x0a]]), "unexpected EOF"),
        (pod(&[vec![0x0a, 5, 1]]), "unexpected EOF"),
        (pod(&[vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]), "proto: integer overflow"),
        (pod(&[vec![0x02]]), "proto: Pod: illegal tag 0 (wire type 2)"),
        (pod(&[vec![0x0c]]), "proto: Pod: wiretype end group for non-group"),
        (pod(&[vec![0x0f]]), "proto: illegal wireType 7"),
        (pod(&[number(1, 1)]), "proto: wrong wireType = 0 for field metadata"),
        (pod(&[far]), "a time is not between the years 0 and 9999"),
        (body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &[deep]), "exceeded max depth"),
    ] {
        assert_eq!(object(&bytes), Err(want.to_owned()));
    }
}

proptest! {
    #[test]
    fn whatever_comes_gives_a_tree_or_an_error(raw: Vec<u8>, kind in "Pod|Deployment|Event|Node") {
        let _ = object(&body("v1", &kind, std::slice::from_ref(&raw)));
        let _ = object(&[MAGIC, &raw].concat());
    }

    #[test]
    fn a_body_with_a_changed_byte_gives_a_tree_or_an_error(row in 0_usize..70, at: prop::sample::Index, byte: u8) {
        let row: Value = serde_json::from_str(ENCODED.lines().nth(row).expect("a line")).expect("JSON");
        let mut bytes = STANDARD.decode(row["protobuf"].as_str().expect("protobuf")).expect("base64");
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = object(&bytes);
    }
}
