//! Small cases, one per rule.

mod managers;
mod paths;
mod types;

use serde_json::{Value, json};
use steersman_structured_merge::{Applied, ApplyError, FieldManager, Managed, OneVersion, Schema, Versions, Writer};

pub(crate) const V1: &str = "test.example/v1";
pub(crate) const V2: &str = "test.example/v2";

pub(crate) fn schema() -> Schema {
    let text = json!({"type": "string"});
    let texts = |kind: &str| json!({"type": "array", "items": text, "x-kubernetes-list-type": kind});
    let ports = json!({"type": "array", "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {"type": "object", "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": text,
    }}});
    let spec = json!({"type": "object", "properties": {
        "text": text, "number": {"type": "integer"}, "flag": {"type": "boolean"},
        "set": texts("set"), "list": texts("atomic"), "ports": ports,
        "map": {"type": "object", "additionalProperties": text},
        "atomic": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
        "either": {"x-kubernetes-int-or-string": true},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }});
    let status = json!({"type": "object", "properties": {"ready": {"type": "integer"}}});
    Schema::custom_resource(Some(&json!({"type": "object", "properties": {"spec": spec, "status": status}})))
        .expect("a structural schema")
}

pub(crate) fn object(spec: &Value) -> Value {
    json!({"apiVersion": V1, "kind": "Thing", "metadata": {"name": "n"}, "spec": spec})
}

pub(crate) fn one_version() -> OneVersion {
    OneVersion { api_version: V1.to_owned(), schema: schema() }
}

pub(crate) fn things(versions: &dyn Versions) -> FieldManager<'_> {
    FieldManager { api_version: V1, kind: "Thing", subresource: "", versions, filters: &[] }
}

pub(crate) fn by(manager: &str) -> Writer<'_> {
    Writer { manager, now: "2026-11-15T20:06:52Z" }
}

pub(crate) fn apply(live: Option<&Value>, spec: &Value, manager: &str) -> Result<Applied, ApplyError> {
    things(&one_version()).apply(live, &object(spec), by(manager), false)
}

/// The managers with the text of their fields: `name:operation:fields`.
pub(crate) fn owners(object: &Value) -> Vec<String> {
    let managed = Managed::decode(object["metadata"].get("managedFields")).expect("managers");
    let shown = managed.entries.iter();
    shown.map(|(id, entry)| format!("{}:{:?}:{}", id.manager, id.operation, entry.fields.to_json())).collect()
}
