//! Paths and operations: what can be done with a resource, and with what parameters and bodies.

use serde_json::{Map, Value, json};
use steersman_base::Scope;

use crate::openapi::schemas::{Dialect, reference};
use crate::registry::{Row, Verb, Verbs};
use crate::schema;

/// An operation of a path.
struct Operation {
    verb: Verb,
    method: &'static str,
    /// `x-kubernetes-action`
    action: &'static str,
    parameters: &'static [(&'static str, &'static str)],
}

/// Operations on a path that ends with the resource, and on one that ends with a name or a part.
const ON_COLLECTION: &[Operation] = &[
    Operation { verb: Verb::List, method: "get", action: "list", parameters: LIST },
    Operation { verb: Verb::Create, method: "post", action: "post", parameters: WRITE },
    Operation { verb: Verb::DeleteCollection, method: "delete", action: "deletecollection", parameters: LIST },
];
const ON_OBJECT: &[Operation] = &[
    Operation { verb: Verb::Get, method: "get", action: "get", parameters: &[] },
    Operation { verb: Verb::Create, method: "post", action: "post", parameters: WRITE },
    Operation { verb: Verb::Update, method: "put", action: "put", parameters: WRITE },
    Operation { verb: Verb::Patch, method: "patch", action: "patch", parameters: PATCH },
    Operation { verb: Verb::Delete, method: "delete", action: "delete", parameters: DELETE },
];

const WRITE: &[(&str, &str)] = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const LIST: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];
const BODIES: [&str; 2] = ["application/json", "application/yaml"];

/// The kind that a path is about.
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    name: &'a str,
}

/// The paths of these resources.
pub(super) fn of(rows: &[&Row]) -> Map<String, Value> {
    let mut paths = Map::new();
    for row in rows {
        add(&mut paths, row);
    }
    paths
}

fn add(paths: &mut Map<String, Value>, row: &Row) {
    let resource = &row.resource;
    let group = &*resource.group;
    let version = &*resource.version;
    let plural = &*resource.plural;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let kind = Kind { group, version, name: &resource.kind };
    let collection = match resource.scope {
        Scope::Cluster => format!("{root}/{plural}"),
        Scope::Namespaced => {
            let everywhere = Verbs::of(if row.verbs.has(Verb::List) { &[Verb::List] } else { &[] });
            insert(paths, format!("{root}/{plural}"), everywhere, ON_COLLECTION, &kind);
            format!("{root}/namespaces/{{namespace}}/{plural}")
        }
    };
    insert(paths, collection.clone(), row.verbs, ON_COLLECTION, &kind);
    let on_object = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
    let on_object: Vec<Verb> = on_object.into_iter().filter(|verb| row.verbs.has(*verb)).collect();
    insert(paths, format!("{collection}/{{name}}"), Verbs::of(&on_object), ON_OBJECT, &kind);
    // What is connected to (exec, proxy) takes options in the query, and no client looks here for them.
    for part in row.subresources.iter().filter(|part| !part.kind.ends_with("Options")) {
        let (group, version) = part.answer.as_ref().map_or((group, version), |(group, version)| (&**group, &**version));
        let kind = Kind { group, version, name: &part.kind };
        insert(paths, format!("{collection}/{{name}}/{}", part.name), part.verbs, ON_OBJECT, &kind);
    }
}

fn insert(paths: &mut Map<String, Value>, path: String, verbs: Verbs, operations: &[Operation], kind: &Kind<'_>) {
    let mut entry = Map::new();
    for operation in operations.iter().filter(|operation| verbs.has(operation.verb)) {
        entry.insert(operation.method.to_owned(), rendered(operation, kind));
    }
    if entry.is_empty() {
        return;
    }
    let in_path = ["namespace", "name"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let parameters: Vec<Value> = in_path
        .map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
        })
        .collect();
    if !parameters.is_empty() {
        entry.insert("parameters".to_owned(), Value::Array(parameters));
    }
    paths.insert(path, Value::Object(entry));
}

fn rendered(operation: &Operation, kind: &Kind<'_>) -> Value {
    let parameters: Vec<Value> = operation
        .parameters
        .iter()
        .map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}}))
        .collect();
    let answered = match operation.verb {
        Verb::List => kind.schema_of(&format!("{}List", kind.name)),
        Verb::Delete | Verb::DeleteCollection => Some("io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
        _ => kind.schema_of(kind.name),
    };
    let mut rendered = json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content(&BODIES, answered)}},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.name},
    });
    let body = match operation.verb {
        Verb::Create | Verb::Update => Some(content(&BODIES, kind.schema_of(kind.name))),
        Verb::Patch => Some(content(&PATCHES, Some("io.k8s.apimachinery.pkg.apis.meta.v1.Patch"))),
        Verb::Delete | Verb::DeleteCollection => {
            Some(content(&BODIES, Some("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")))
        }
        Verb::Get | Verb::List | Verb::Watch => None,
    };
    if let Some(body) = body {
        rendered["requestBody"] = json!({"content": body});
    }
    rendered
}

/// A body in each of these content types.
fn content(types: &[&str], schema: Option<&str>) -> Value {
    let schema = schema.map_or_else(|| json!({"type": "string"}), |name| reference(name, Dialect::V3));
    types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

// === impl Kind ===

impl Kind<'_> {
    fn schema_of(&self, kind: &str) -> Option<&'static str> {
        schema::name_of(self.group, self.version, kind)
    }
}
