//! Every path by which something can be stored, for every resource: what does not have its type is refused, and nothing
//! changes.

use std::collections::BTreeSet;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Row, Subresource, Verb, built_in};
use crate::schema::{self, FieldValidation, Shape, Struct};
use crate::{ApiServer, Options};

/// Objects of many kinds that kube-apiserver takes.
const BASES: [&str; 3] = [
    include_str!("../../tests/data/kinds-bases.jsonl"),
    include_str!("../../tests/data/compare-bases.jsonl"),
    // Not compared with kube-apiserver yet.
    include_str!("../../tests/data/more-bases.jsonl"),
];
/// How deep fields are looked at: `spec.template`.
const DEPTH_MAX: usize = 2;
/// Parts that store nothing.
const STORELESS: [&str; 6] = ["attach", "exec", "log", "portforward", "proxy", "token"];
const PATCHES: [&str; 3] =
    ["application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json"];
/// Server-side apply, which is refused whatever it says.
const APPLY: &str = "application/apply-patch+yaml";

/// A value of a wrong type, and where it is.
struct Ill {
    path: Vec<&'static str>,
    value: Value,
}

async fn send(server: &ApiServer, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let response = server.clone().oneshot(request.body(Full::new(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Values of other types than a field has, one of each kind of mistake.
fn wrong_values(shape: &Shape) -> Vec<Value> {
    match shape {
        Shape::String | Shape::Bytes | Shape::Time | Shape::MicroTime => vec![json!(5)],
        Shape::Bool => vec![json!("true")],
        Shape::Int32 => vec![json!("5"), json!(3_000_000_000_i64), json!(1.5)],
        Shape::Int64 => vec![json!("5"), json!(1e300)],
        Shape::Float => vec![json!("5")],
        Shape::Quantity | Shape::IntOrString => vec![json!({"a": 1})],
        Shape::Struct(_) | Shape::List(_) | Shape::Map(_) => vec![json!("text")],
        Shape::StructOr(_) | Shape::Any => Vec::new(),
    }
}

/// All that can be wrong with the types of a struct's fields.
fn wrong_fields(schema: &'static Struct, within: &[&'static str], found: &mut Vec<Ill>) {
    for field in &schema.fields {
        let path = [within, &[field.name]].concat();
        if matches!(path.as_slice(), ["apiVersion" | "kind"] | ["metadata", "managedFields" | "selfLink"]) {
            continue;
        }
        found.extend(wrong_values(&field.shape).into_iter().map(|value| Ill { path: path.clone(), value }));
        if let Shape::Map(of) = &field.shape {
            let path = [path.as_slice(), &["key"]].concat();
            found.extend(wrong_values(of).into_iter().map(|value| Ill { path: path.clone(), value }));
        }
        if let Shape::Struct(id) = &field.shape
            && path.len() < DEPTH_MAX
        {
            wrong_fields(id.schema(), &path, found);
        }
    }
}

impl Ill {
    /// The mistake alone, as a merge patch.
    fn patch(&self) -> Value {
        self.path.iter().rev().fold(self.value.clone(), |value, name| json!({ *name: value }))
    }

    /// The mistake alone, in the words of a kind of patch.
    fn patch_of(&self, kind: &str) -> Value {
        match kind {
            "application/json-patch+json" => {
                json!([{"op": "add", "path": format!("/{}", self.path.join("/")), "value": self.value}])
            }
            _ => self.patch(),
        }
    }

    /// An object with this mistake.
    fn put(&self, object: &Value) -> Value {
        let mut object = object.clone();
        ::json_patch::merge(&mut object, &self.patch());
        object
    }
}

/// A resource with one object in it.
struct Subject<'a> {
    server: &'a ApiServer,
    path: String,
    /// How many mistakes were refused.
    refused: usize,
}

impl Subject<'_> {
    async fn get(&self, part: &str) -> Value {
        let (code, object) = send(self.server, "GET", &format!("{}{part}", self.path), "", &Value::Null).await;
        assert_eq!(code, 200, "{}{part}: {object}", self.path);
        object
    }

    async fn refuses(&mut self, method: &str, part: &str, kind: &str, body: &Value) {
        let (code, answer) = send(self.server, method, &format!("{}{part}", self.path), kind, body).await;
        assert!((400..500).contains(&code), "{method} {}{part} with {kind} {body}: {code} {answer}", self.path);
        self.refused += 1;
    }

    /// Sends everything that does not fit this kind to one part of the object, in every way there is.
    async fn refuses_all(
        &mut self,
        part: &str,
        (group, version, kind): (&str, &str, &str),
        has: impl Fn(Verb) -> bool,
    ) {
        let before = self.get("").await;
        let shown = if has(Verb::Get) { self.get(part).await } else { before.clone() };
        let mut all = Vec::new();
        wrong_fields(schema::find(group, version, kind).expect("a schema"), &[], &mut all);
        // Metadata is the same for all kinds: a few of its fields will do.
        all.retain(|ill| {
            ill.path[0] != "metadata" || matches!(*ill.path.last().expect("a name"), "metadata" | "key" | "uid")
        });
        for ill in &all {
            let mut alone = ill.patch();
            let field_validation = FieldValidation::Ignore;
            let found = schema::check(group, version, kind, &mut alone, field_validation);
            assert!(found.is_err(), "{kind} {:?}: {}", ill.path, ill.value);
            if has(Verb::Update) {
                self.refuses("PUT", part, "application/json", &ill.put(&shown)).await;
            }
            if has(Verb::Patch) {
                for patch in PATCHES {
                    self.refuses("PATCH", part, patch, &ill.patch_of(patch)).await;
                }
            }
            if has(Verb::Create) && !part.is_empty() {
                let mut body = json!({"metadata": {"name": "x"}});
                ::json_patch::merge(&mut body, &ill.patch());
                self.refuses("POST", part, "application/json", &body).await;
            }
        }
        if let Some(first) = all.first().filter(|_| has(Verb::Patch)) {
            self.refuses("PATCH", part, APPLY, &first.patch()).await;
        }
        assert_eq!(self.get("").await, before, "{}{part}: nothing of it is stored", self.path);
        // The same requests without a mistake are taken: it was the mistake that was refused.
        if has(Verb::Update) && has(Verb::Get) {
            let (code, answer) =
                send(self.server, "PUT", &format!("{}{part}", self.path), "application/json", &shown).await;
            assert_eq!(code, 200, "{}{part}: {answer}", self.path);
        }
    }
}

fn collection(row: &Row) -> String {
    let resource = &row.resource;
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let home = if row.is_namespaced() { "/namespaces/t" } else { "" };
    let group = if resource.group.is_empty() { String::new() } else { format!("/{}", resource.group) };
    format!("{root}{group}/{}{home}/{}", resource.version, resource.plural)
}

/// An object of a resource that the server takes.
fn example(row: &Row) -> Value {
    let version = row.resource.api_version();
    let kind = &*row.resource.kind;
    let bases =
        BASES.iter().flat_map(|bases| bases.lines()).map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut found = bases.into_iter().find(|base| base["apiVersion"] == *version && base["kind"] == *kind);
    let mut example =
        found.take().unwrap_or_else(|| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}));
    match kind {
        "CertificateSigningRequest" => {
            example["spec"] = json!({
                "request": crate::kinds::test_request("robot", &[]),
                "signerName": "example.com/signer", "usages": ["client auth"],
            });
        }
        "HorizontalPodAutoscaler" if *version == *"autoscaling/v1" => {
            let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
            example["metadata"]["name"] = "x1".into();
            example["spec"] = json!({"scaleTargetRef": target, "maxReplicas": 3});
        }
        "IPAddress" => {
            example["metadata"]["name"] = "10.96.3.3".into();
            example["spec"] = json!({"parentRef": {"resource": "services", "namespace": "t", "name": "x"}});
        }
        "CSIStorageCapacity" => example["storageClassName"] = "x".into(),
        "ServiceCIDR" => example["spec"] = json!({"cidrs": ["10.97.0.0/24"]}),
        // One that bounds nothing: the pods of other rows would be refused.
        "LimitRange" => example["spec"] = json!({"limits": [{"type": "example.com/thing", "max": {"cpu": "1"}}]}),
        "FlowSchema" => example["spec"] = json!({"priorityLevelConfiguration": {"name": "x"}}),
        "PriorityLevelConfiguration" => {
            example["spec"] = json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}});
        }
        "VolumeAttributesClass" => {
            example["driverName"] = "example.com".into();
            example["parameters"] = json!({"speed": "high"});
        }
        "VolumeAttachment" => {
            let source = json!({"persistentVolumeName": "v"});
            example["spec"] = json!({"attacher": "example.com", "nodeName": "n", "source": source});
        }
        // It is the same resource as the other events.
        "Event" if row.resource.group == "events.k8s.io" => example["metadata"]["name"] = "x1".into(),
        _ => {}
    }
    example["metadata"].as_object_mut().expect("metadata").remove("namespace");
    example
}

#[tokio::test(start_paused = true)]
async fn what_has_a_wrong_type_is_refused_on_every_path_of_every_resource_and_never_stored() {
    let server = ApiServer::new(Options::default());
    let home = json!({"metadata": {"name": "t"}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces", "application/json", &home).await.0, 201);
    let mut rows = 0;
    let mut parts = BTreeSet::new();
    let mut refused = 0;
    for row in built_in().iter().filter(|row| row.verbs.has(Verb::Update)) {
        let example = example(row);
        let (code, made) = send(&server, "POST", &collection(row), "application/json", &example).await;
        assert_eq!(code, 201, "{example}: {made}");
        let resource = &row.resource;
        let group = &*resource.group;
        let version = &*resource.version;
        let kind = &*resource.kind;
        let mut subject = Subject {
            server: &server,
            path: format!("{}/{}", collection(row), made["metadata"]["name"].as_str().expect("a name")),
            refused: 0,
        };
        subject.refuses_all("", (group, version, kind), |verb| row.verbs.has(verb)).await;
        for Subresource { name, kind, answer, verbs } in &row.subresources {
            if STORELESS.contains(&&**name) {
                continue;
            }
            let (group, version) = answer.as_ref().map_or((group, version), |(group, version)| (group, version));
            subject.refuses_all(&format!("/{name}"), (group, version, kind), |verb| verbs.has(verb)).await;
            parts.insert(name.to_string());
        }
        rows += 1;
        refused += subject.refused;
    }
    let want = ["approval", "binding", "ephemeralcontainers", "eviction", "finalize", "resize", "scale", "status"];
    assert_eq!(parts.into_iter().collect::<Vec<_>>(), want);
    assert!(rows > 60 && refused > 5_000, "{rows} resources, {refused} mistakes");
}

#[tokio::test(start_paused = true)]
async fn metadata_and_scale_of_a_custom_resource_have_their_types_on_every_path() {
    let server = ApiServer::new(Options::default());
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", path, "application/json", &definition).await.0, 201);
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"a": "b"}},
        "spec": {"size": 2},
    });
    assert_eq!(send(&server, "POST", widgets, "application/json", &widget).await.0, 201);
    let mut subject = Subject { server: &server, path: format!("{widgets}/w"), refused: 0 };
    let verbs = |verb: Verb| matches!(verb, Verb::Get | Verb::Update | Verb::Patch);
    subject.refuses_all("/scale", ("autoscaling", "v1", "Scale"), verbs).await;

    let before = subject.get("").await;
    let mut all = Vec::new();
    // The metadata of all kinds is the same.
    wrong_fields(schema::find("", "v1", "ConfigMap").expect("a schema"), &[], &mut all);
    for ill in all.iter().filter(|ill| ill.path[0] == "metadata") {
        for part in ["", "/status"] {
            subject.refuses("PUT", part, "application/json", &ill.put(&before)).await;
            for patch in PATCHES {
                subject.refuses("PATCH", part, patch, &ill.patch_of(patch)).await;
            }
        }
        let new = ill.put(&widget);
        let (code, answer) = send(&server, "POST", widgets, "application/json", &new).await;
        assert!((400..500).contains(&code), "POST {new}: {code} {answer}");
    }
    assert_eq!(subject.get("").await, before);
}

#[tokio::test(start_paused = true)]
async fn no_two_rows_of_different_origin_share_a_collection_whatever_definition_is_accepted() {
    let server = ApiServer::new(Options::default());
    let example = "example.com";
    let widgets = "widgets";
    // What is built in, a neighbour in its group, and its plural in another group.
    let resources = built_in().iter().map(|row| (&*row.resource.group, &*row.resource.plural));
    let names: BTreeSet<(&str, &str)> =
        resources.flat_map(|(group, plural)| [(group, plural), (group, widgets), (example, plural)]).collect();
    let mut accepted = 0;
    for (at, (group, plural)) in names.into_iter().enumerate() {
        let definition = json!({
            "metadata": {
                "name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved"},
            },
            "spec": {
                "group": group, "scope": "Cluster", "names": {"plural": plural, "kind": format!("Kind{at}")},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        accepted += usize::from(send(&server, "POST", path, "application/json", &definition).await.0 == 201);
    }
    let custom: Vec<_> = server.registry.custom.read().values().cloned().collect();
    assert!(custom.len() == accepted && accepted > 80, "{accepted} definitions, {} rows", custom.len());
    let collections: BTreeSet<&str> = custom.iter().map(|row| row.collection.name.as_str()).collect();
    assert_eq!(collections.len(), custom.len(), "each definition has one of its own");
    for row in built_in() {
        assert!(!collections.contains(row.collection.name.as_str()), "{:?}", row.collection);
    }
}
