//! Paths and operations: what can be done with a resource, and with what parameters and bodies.

use serde_json::{Map, Value, json};
use steersman_base::Scope;

use crate::openapi::custom;
use crate::openapi::schemas::{Dialect, reference};
use crate::registry::{Row, Verb, Verbs};
use crate::schema;

/// An operation of a path.
struct Operation {
    verb: Verb,
    method: &'static str,
    /// `x-kubernetes-action`
    action: &'static str,
    /// The beginning of `operationId`.
    name: &'static str,
    /// The description for an object, and for a part of one.
    says: [&'static str; 2],
    parameters: &'static [(&'static str, &'static str)],
}

/// Operations on a path that ends with the resource, and on one that ends with a name or a part.
const ON_COLLECTION: &[Operation] = &[
    operation(Verb::List, ["get", "list", "list"], ["list or watch objects of kind {kind}", ""], LIST),
    operation(Verb::Create, ["post", "post", "create"], CREATE, WRITE),
    operation(
        Verb::DeleteCollection,
        ["delete", "deletecollection", "delete"],
        ["delete collection of {kind}", ""],
        LIST,
    ),
];
const ON_OBJECT: &[Operation] = &[
    operation(
        Verb::Get,
        ["get", "get", "read"],
        ["read the specified {kind}", "read {part} of the specified {kind}"],
        &[],
    ),
    operation(Verb::Create, ["post", "post", "create"], CREATE, WRITE),
    operation(
        Verb::Update,
        ["put", "put", "replace"],
        ["replace the specified {kind}", "replace {part} of the specified {kind}"],
        WRITE,
    ),
    operation(
        Verb::Patch,
        ["patch", "patch", "patch"],
        ["partially update the specified {kind}", "partially update {part} of the specified {kind}"],
        PATCH,
    ),
    operation(Verb::Delete, ["delete", "delete", "delete"], ["delete{a}{kind}", "delete {part} of{a}{kind}"], DELETE),
];
const CREATE: [&str; 2] = ["create{a}{kind}", "create {part} of{a}{kind}"];

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

/// The types of patches. Custom resources do not take the last one: kubectl looks here before it sends one.
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

/// A path, for the names of its operations.
struct Place<'a> {
    row: &'a Row,
    kind: Kind<'a>,
    /// The subresource, if it is one.
    part: &'a str,
    dialect: Dialect,
}

const fn operation(
    verb: Verb,
    [method, action, name]: [&'static str; 3],
    says: [&'static str; 2],
    parameters: &'static [(&'static str, &'static str)],
) -> Operation {
    Operation { verb, method, action, name, says, parameters }
}

/// The paths of these resources.
pub(super) fn of(rows: &[&Row], dialect: Dialect) -> Map<String, Value> {
    let mut paths = Map::new();
    for row in rows {
        add(&mut paths, row, dialect);
    }
    paths
}

fn add(paths: &mut Map<String, Value>, row: &Row, dialect: Dialect) {
    let resource = &row.resource;
    let group = &*resource.group;
    let version = &*resource.version;
    let plural = &*resource.plural;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let place = Place { row, kind: Kind { group, version, name: &resource.kind }, part: "", dialect };
    let collection = match resource.scope {
        Scope::Cluster => format!("{root}/{plural}"),
        Scope::Namespaced => {
            let everywhere = Verbs::of(if row.verbs.has(Verb::List) { &[Verb::List] } else { &[] });
            insert(paths, format!("{root}/{plural}"), everywhere, ON_COLLECTION, &place);
            format!("{root}/namespaces/{{namespace}}/{plural}")
        }
    };
    insert(paths, collection.clone(), row.verbs, ON_COLLECTION, &place);
    let on_object = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete];
    let on_object: Vec<Verb> = on_object.into_iter().filter(|verb| row.verbs.has(*verb)).collect();
    insert(paths, format!("{collection}/{{name}}"), Verbs::of(&on_object), ON_OBJECT, &place);
    // What is connected to (exec, proxy) takes options in the query, and no client looks here for them.
    for part in row.subresources.iter().filter(|part| !part.kind.ends_with("Options")) {
        let (group, version) = part.answer.as_ref().map_or((group, version), |(group, version)| (&**group, &**version));
        let kind = Kind { group, version, name: &part.kind };
        let place = Place { row, kind, part: &part.name, dialect };
        insert(paths, format!("{collection}/{{name}}/{}", part.name), part.verbs, ON_OBJECT, &place);
    }
}

fn insert(paths: &mut Map<String, Value>, path: String, verbs: Verbs, operations: &[Operation], place: &Place<'_>) {
    let is_namespaced = path.contains("{namespace}");
    let mut entry = Map::new();
    for operation in operations.iter().filter(|operation| verbs.has(operation.verb)) {
        entry.insert(operation.method.to_owned(), place.rendered(operation, is_namespaced));
    }
    if entry.is_empty() {
        return;
    }
    let in_path = ["namespace", "name"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let mut parameters: Vec<Value> = in_path
        .map(|name| {
            let mut parameter = place.parameter(name, "path", "string");
            parameter["required"] = true.into();
            parameter
        })
        .collect();
    parameters.push(place.parameter("pretty", "query", "string"));
    entry.insert("parameters".to_owned(), Value::Array(parameters));
    paths.insert(path, Value::Object(entry));
}

// === impl Place ===

impl Place<'_> {
    fn rendered(&self, operation: &Operation, is_namespaced: bool) -> Value {
        let kind = &self.kind;
        let mut parameters: Vec<Value> =
            operation.parameters.iter().map(|(name, kind)| self.parameter(name, "query", kind)).collect();
        let returns_object = self.row.rules.strategy.returns_deleted && self.row.custom.is_none();
        let meta = |name: &str| Some(format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
        let answered = match operation.verb {
            Verb::List => self.schema_of(&self.row.list_kind),
            Verb::DeleteCollection => meta("Status"),
            Verb::Delete if !returns_object => meta("Status"),
            _ => self.schema_of(kind.name),
        };
        let sent = match operation.verb {
            Verb::Create | Verb::Update => Some((&BODIES[..], self.schema_of(kind.name))),
            Verb::Patch => Some((self.patches(), meta("Patch"))),
            Verb::Delete | Verb::DeleteCollection => Some((&BODIES[..], meta("DeleteOptions"))),
            Verb::Get | Verb::List | Verb::Watch => None,
        };
        let mut rendered = json!({
            "description": self.description(operation),
            "operationId": self.operation_id(operation, is_namespaced),
            "tags": [format!("{}_{}", lower(&title(&self.row.resource.group)), self.row.resource.version)],
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.name},
        });
        match self.dialect {
            Dialect::V3 => {
                let body = content(&BODIES, answered.as_deref());
                rendered["responses"] = responses(operation.verb, "content", &body);
                if let Some((types, schema)) = sent {
                    rendered["requestBody"] = json!({"content": content(types, schema.as_deref())});
                }
            }
            Dialect::V2 => {
                let schema = |name: Option<String>| {
                    name.map_or_else(|| json!({"type": "string"}), |name| reference(&name, Dialect::V2))
                };
                let patches = sent.is_some() && operation.verb == Verb::Patch;
                rendered["consumes"] = if patches { json!(self.patches()) } else { json!(["*/*"]) };
                rendered["produces"] = json!(BODIES);
                rendered["schemes"] = json!(["https"]);
                rendered["responses"] = responses(operation.verb, "schema", &schema(answered));
                if let Some((_, sent)) = sent {
                    let is_required = !matches!(operation.verb, Verb::Delete | Verb::DeleteCollection);
                    let mut body = json!({"name": "body", "in": "body", "schema": schema(sent)});
                    if is_required {
                        body["required"] = true.into();
                    }
                    parameters.insert(0, body);
                }
            }
        }
        rendered["parameters"] = parameters.into();
        rendered
    }

    /// The types of patches that the resource takes.
    fn patches(&self) -> &'static [&'static str] {
        if self.row.custom.is_some() { &PATCHES[..PATCHES.len() - 1] } else { &PATCHES }
    }

    /// The name of the schema of a kind, if it has one.
    fn schema_of(&self, kind: &str) -> Option<String> {
        let is_custom = self.row.custom.is_some() && (kind == &*self.row.resource.kind || kind == &*self.row.list_kind);
        if is_custom {
            return Some(custom::schema_name(self.row, kind));
        }
        schema::name_of(self.kind.group, self.kind.version, kind).map(str::to_owned)
    }

    fn parameter(&self, name: &str, place: &str, kind: &str) -> Value {
        match self.dialect {
            Dialect::V3 => json!({"name": name, "in": place, "schema": {"type": kind, "uniqueItems": true}}),
            Dialect::V2 => json!({"name": name, "in": place, "type": kind, "uniqueItems": true}),
        }
    }

    /// Follows `apiserver/pkg/endpoints/installer.go`.
    fn description(&self, operation: &Operation) -> String {
        let kind = &*self.row.resource.kind;
        let is_plural = kind.ends_with('s') && !kind.ends_with("ss");
        let article = match kind.chars().next() {
            _ if is_plural => " ",
            Some('A' | 'E' | 'I' | 'O' | 'U') => " an ",
            _ => " a ",
        };
        let mut says = operation.says[usize::from(!self.part.is_empty())];
        if operation.verb == Verb::List && !self.row.verbs.has(Verb::Watch) {
            says = "list objects of kind {kind}";
        }
        says.replace("{a}", article).replace("{kind}", kind).replace("{part}", self.part)
    }

    /// `listAppsV1NamespacedDeployment`, `readCoreV1NamespacedPodStatus`: follows `GetOperationIDAndTags`.
    fn operation_id(&self, operation: &Operation, is_namespaced: bool) -> String {
        let resource = &self.row.resource;
        let is_everywhere = !is_namespaced && self.row.is_namespaced();
        format!(
            "{}{}{}{}{}{}{}{}",
            operation.name,
            title(&resource.group),
            upper(&resource.version),
            if operation.verb == Verb::DeleteCollection { "Collection" } else { "" },
            if is_namespaced { "Namespaced" } else { "" },
            resource.kind,
            upper(self.part),
            if is_everywhere { "ForAllNamespaces" } else { "" },
        )
    }
}

/// A group as part of a name: `RbacAuthorization`.
fn title(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    group.split(['.', '-']).map(upper).collect()
}

fn upper(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn lower(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// A body in each of these content types.
fn content(types: &[&str], schema: Option<&str>) -> Value {
    let schema = schema.map_or_else(|| json!({"type": "string"}), |name| reference(name, Dialect::V3));
    types.iter().map(|name| ((*name).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

/// The answers of an operation, by their codes. `member` is where a body is described.
fn responses(verb: Verb, member: &str, body: &Value) -> Value {
    let codes: &[(&str, &str)] = match verb {
        Verb::Create => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
        Verb::Update | Verb::Patch => &[("200", "OK"), ("201", "Created")],
        Verb::Delete => &[("200", "OK"), ("202", "Accepted")],
        Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => &[("200", "OK")],
    };
    let answer = |(code, words): &(&str, &str)| ((*code).to_owned(), json!({"description": words, member: body}));
    let mut answers: Map<String, Value> = codes.iter().map(answer).collect();
    answers.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(answers)
}
