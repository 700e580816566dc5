//! Custom resources in OpenAPI documents: the schema of the definition, with what every object has.
//!
//! Follows `apiextensions-apiserver/pkg/controller/openapi/builder`.

use serde_json::{Map, Value, json};

use crate::openapi::schemas::{Dialect, reference};
use crate::registry::Row;

/// The schemas that those of custom resources refer to.
pub(super) const USED: [&str; 2] =
    ["io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should \
    convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this \
    from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const OBJECT_META: &str = "Standard object's metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_META: &str = "Standard list metadata. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The schemas of a custom resource and of its lists, by name.
pub(super) fn schemas(row: &Row, dialect: Dialect) -> Vec<(String, Value)> {
    let Some(custom) = &row.custom else { return Vec::new() };
    let resource = &row.resource;
    let name = |kind: &str| schema_name(row, kind);
    let kind_of = |kind: &str| json!([{"group": resource.group, "version": resource.version, "kind": kind}]);
    let mut schema = custom.document.clone();
    if dialect == Dialect::V2 {
        simplify(&mut schema);
    }
    let Some(map) = schema.as_object_mut() else { return Vec::new() };
    // An object whose unknown fields are kept has no declared ones in version 2, or old clients would refuse them.
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        meta_properties(properties, "ObjectMeta", OBJECT_META, dialect);
    }
    map.insert("x-kubernetes-group-version-kind".to_owned(), kind_of(&resource.kind));
    let item = name(&resource.kind);
    let mut of_list = Map::new();
    let described = format!("List of {}. More info: {CONVENTIONS}", resource.plural);
    let items = json!({"type": "array", "items": reference(&item, dialect), "description": described});
    of_list.insert("items".to_owned(), items);
    meta_properties(&mut of_list, "ListMeta", LIST_META, dialect);
    let list = json!({
        "description": format!("{} is a list of {}", row.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": of_list,
        "x-kubernetes-group-version-kind": kind_of(&row.list_kind),
    });
    vec![(item, schema), (name(&row.list_kind), list)]
}

/// The name of the schema of a custom resource, or of its lists.
pub(super) fn schema_name(row: &Row, kind: &str) -> String {
    let mut parts: Vec<&str> = row.resource.group.rsplit('.').collect();
    parts.extend([&*row.resource.version, kind]);
    parts.join(".")
}

fn meta_properties(properties: &mut Map<String, Value>, metadata: &str, words: &str, dialect: Dialect) {
    let described = |words: &str| json!({"type": "string", "description": words});
    properties.insert("apiVersion".to_owned(), described(API_VERSION));
    properties.insert("kind".to_owned(), described(KIND));
    let name = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{metadata}");
    let referred = match dialect {
        Dialect::V2 => {
            let mut referred = reference(&name, dialect);
            referred["description"] = words.into();
            referred
        }
        Dialect::V3 => json!({"description": words, "allOf": [reference(&name, dialect)]}),
    };
    properties.insert("metadata".to_owned(), referred);
}

/// Takes out what version 2 does not have.
fn simplify(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    for name in ["allOf", "anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations"] {
        map.remove(name);
    }
    let is_open = map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if is_open {
        map.remove("items");
        map.remove("properties");
    }
    if is_open || map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        map.remove("type");
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(simplify);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(name) {
            simplify(inner);
        }
    }
}
