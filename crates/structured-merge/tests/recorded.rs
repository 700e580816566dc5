//! `managedFields` that kube-apiserver 1.37.1 recorded, recomputed from the objects.
//!
//! The answers and the OpenAPI definitions are the ones that the embedded server is held to.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_structured_merge::scale::ScaleManagers;
use steersman_structured_merge::{Definitions, FieldManager, FieldSet, Filter, OneVersion, Path, Schema, Writer};

const ANSWERS: &str = include_str!("../../apiserver/tests/data/answers.jsonl");
const SCHEMAS: &str = include_str!("../../apiserver/data/schemas.tsv");

/// What admission and storage set after the owners were written down, by kind: nobody owns it unless the request says it.
const SET_LATER: [(&str, &[&str]); 8] = [
    ("PersistentVolume", &["/metadata/finalizers"]),
    // A pointer that is always written, which only its Go type says: the server gives the schema an exact zero value.
    ("TokenRequest", &["/spec/boundObjectRef"]),
    ("Job", &["/metadata/labels", "/spec/selector", "/spec/template/metadata/labels"]),
    ("Namespace", &["/spec/finalizers"]),
    ("Pod", &["/spec/priority", "/spec/preemptionPolicy", "/spec/tolerations"]),
    ("Service", &["/spec/clusterIP", "/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy"]),
    ("Node", &["/spec/taints"]),
    ("PersistentVolumeClaim", &["/metadata/finalizers", "/spec/storageClassName"]),
];

struct Facts {
    definitions: Definitions,
    /// The definition of each `group/version/kind`.
    kinds: BTreeMap<String, String>,
}

fn facts() -> Facts {
    let mut schemas = Vec::new();
    let mut kinds = BTreeMap::new();
    for line in SCHEMAS.lines() {
        let mut columns = line.split('\t');
        let name = columns.next().expect("a name");
        for kind in columns.next().unwrap_or_default().split(' ').filter(|kind| !kind.is_empty()) {
            kinds.insert(kind.to_owned(), name.to_owned());
        }
        let schema: Value = serde_json::from_str(columns.next().expect("a schema")).expect("JSON");
        schemas.push((name, schema));
    }
    let definitions = Definitions::from_schemas(schemas.iter().map(|(name, schema)| (*name, schema)));
    Facts { definitions: definitions.expect("the definitions are complete"), kinds }
}

impl Facts {
    fn schema(&self, object: &Value) -> Option<Schema> {
        let api_version = object["apiVersion"].as_str()?;
        let slash = if api_version.contains('/') { "" } else { "/" };
        let kind = format!("{slash}{api_version}/{}", object["kind"].as_str()?);
        self.definitions.schema(self.kinds.get(&kind)?)
    }
}

fn answers() -> impl Iterator<Item = Value> {
    ANSWERS.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON"))
}

/// The managers without times.
fn managers(object: &Value) -> Vec<Value> {
    let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    for entry in &mut entries {
        entry.as_object_mut().expect("an entry").remove("time");
    }
    entries
}

#[test]
fn every_recorded_field_set_is_read_and_written_again() {
    fn visit(value: &Value, count: &mut usize) {
        match value {
            Value::Object(members) => {
                if let Some(fields) = members.get("fieldsV1") {
                    let set = FieldSet::from_value(fields).expect("it can be read");
                    assert_eq!(set.to_value(), *fields);
                    assert_eq!(FieldSet::parse(set.to_json().as_bytes()), Ok(set));
                    *count += 1;
                }
                members.values().for_each(|value| visit(value, count));
            }
            Value::Array(items) => items.iter().for_each(|value| visit(value, count)),
            _ => {}
        }
    }
    let mut count = 0;
    answers().for_each(|answer| visit(&answer["answer"]["body"], &mut count));
    assert!(count > 150, "only {count} field sets");
}

#[test]
fn the_managers_of_created_objects_are_those_that_kube_apiserver_recorded() {
    let facts = facts();
    let mut count = 0;
    let mut wrong = Vec::new();
    for answer in answers() {
        let id = answer["id"].as_str().expect("an id");
        let created = answer["method"] == "POST" && answer["answer"]["code"] == 201;
        let object = &answer["answer"]["body"];
        let want = managers(object);
        if !created || want.is_empty() {
            continue;
        }
        // The one custom resource has its schema in the definition that was created before it.
        let schema = match facts.schema(object) {
            Some(schema) => schema,
            None => Schema::custom_resource(Some(&widget_schema())).expect("a structural schema"),
        };
        let subresource = want[0]["subresource"].as_str().unwrap_or_default();
        let mut new = object.clone();
        for (_, paths) in SET_LATER.iter().filter(|(kind, _)| object["kind"] == **kind) {
            let unsaid = paths.iter().filter(|path| answer["body"].pointer(path).is_none());
            unsaid.for_each(|path| remove(&mut new, path));
        }
        remove(&mut new, "/metadata/managedFields");
        remove(&mut new, "/status");
        let api_version = object["apiVersion"].as_str().expect("a version");
        let versions = OneVersion { api_version: api_version.to_owned(), schema };
        let kind = object["kind"].as_str().expect("a kind");
        let filters = [(api_version, Filter::exclude_fields(["status"]))];
        let fields = FieldManager { api_version, kind, subresource, versions: &versions, filters: &filters };
        let writer = Writer { manager: "recorder", now: "2026-11-15T20:06:43Z" };
        fields.update(None, &mut new, writer).unwrap_or_else(|error| panic!("{id}: {error}"));
        count += 1;
        if json!(managers(&new)) != json!(want) {
            let fields = |entries: &[Value]| FieldSet::from_value(&entries[0]["fieldsV1"]).expect("fields");
            let ours = fields(&managers(&new));
            let theirs = fields(&want);
            wrong.push(format!("{id}: +{:?} -{:?}", ours.difference(&theirs), theirs.difference(&ours)));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 45, "only {count} objects");
}

#[test]
fn applies_by_two_managers_end_as_kube_apiserver_ended_them() {
    let facts = facts();
    let mut live: Option<Value> = None;
    let mut count = 0;
    for answer in answers().filter(|answer| answer["id"].as_str().is_some_and(|id| id.starts_with("apply-"))) {
        let path = answer["path"].as_str().expect("a path");
        let Some((_, query)) = path.split_once("fieldManager=") else {
            continue;
        };
        let (manager, force) = query.split_once('&').map_or((query, false), |(manager, _)| (manager, true));
        let body = &answer["body"];
        let schema = facts.schema(body).expect("a schema");
        let versions = OneVersion { api_version: "v1".to_owned(), schema };
        let fields =
            FieldManager { api_version: "v1", kind: "ConfigMap", subresource: "", versions: &versions, filters: &[] };
        let writer = Writer { manager, now: "2026-11-15T20:06:52Z" };
        let want = &answer["answer"]["body"];
        match fields.apply(live.as_ref(), body, writer, force) {
            Ok(applied) => {
                assert_eq!(json!(managers(&applied.object)), json!(managers(want)), "{}", answer["id"]);
                assert_eq!(applied.object["data"], want["data"], "{}", answer["id"]);
                live = Some(applied.object);
            }
            Err(error) => assert_eq!(json!(error.to_string()), want["message"], "{}", answer["id"]),
        }
        count += 1;
    }
    assert_eq!(count, 4);
}

/// Follows one object through the recording: what each write made of its managers, from what it made of the object.
#[test]
fn patches_and_status_writes_move_owners_as_recorded() {
    let facts = facts();
    let mut lives: BTreeMap<String, Value> = BTreeMap::new();
    let mut count = 0;
    for answer in answers() {
        let object = &answer["answer"]["body"];
        let path = answer["path"].as_str().expect("a path").split('?').next().expect("a path");
        let Some(schema) = facts.schema(object) else {
            continue;
        };
        let (Some(name), Some(uid)) = (object["metadata"]["name"].as_str(), object["metadata"]["uid"].as_str()) else {
            continue;
        };
        if object["kind"] == "Scale" {
            if let Some(live) = lives.get_mut(uid).filter(|_| answer["method"] != "GET") {
                scale(live, object, schema);
                count += 1;
            }
            continue;
        }
        let subresource = path.rsplit('/').next().filter(|last| *last == "status").unwrap_or_default();
        let patched = matches!(answer["method"].as_str(), Some("PATCH" | "PUT")) && answer["answer"]["code"] == 200;
        let applied = answer["type"] == "application/apply-patch+yaml";
        let plain = path.ends_with(name) || subresource == "status";
        if let Some(live) = lives.get(uid).filter(|_| patched && !applied && plain) {
            let api_version = object["apiVersion"].as_str().expect("a version");
            let versions = OneVersion { api_version: api_version.to_owned(), schema };
            let excluded = if subresource.is_empty() { ["status", "status"] } else { ["spec", "metadata"] };
            let filters = [(api_version, Filter::exclude_fields(excluded))];
            let kind = object["kind"].as_str().expect("a kind");
            let fields = FieldManager { api_version, kind, subresource, versions: &versions, filters: &filters };
            let mut new = object.clone();
            remove(&mut new, "/metadata/managedFields");
            let writer = Writer { manager: "recorder", now: "2026-11-15T20:06:44Z" };
            fields.update(Some(live), &mut new, writer).expect("the objects fit their schema");
            assert_eq!(json!(managers(&new)), json!(managers(object)), "{}", answer["id"]);
            count += 1;
        }
        lives.insert(uid.to_owned(), object.clone());
    }
    assert!(count >= 12, "only {count} writes");
}

/// Writes replicas through `scale`; the next answer with the scaled object shows whether its managers are right.
fn scale(live: &mut Value, scaled: &Value, schema: Schema) {
    let api_version = live["apiVersion"].as_str().expect("a version").to_owned();
    let paths = [(api_version.as_str(), Some(Path::of_fields(["spec", "replicas"])))];
    let managed = live["metadata"].get("managedFields").cloned();
    let managers = ScaleManagers::new(managed.as_ref(), &api_version, &paths).expect("managers");
    let mut before = scaled.clone();
    before["spec"]["replicas"] = live["spec"]["replicas"].clone();
    if let Some(list) = managers.to_scale() {
        before["metadata"]["managedFields"] = list;
    }
    let versions = OneVersion { api_version: "autoscaling/v1".to_owned(), schema };
    let fields = FieldManager {
        api_version: "autoscaling/v1",
        kind: "Scale",
        subresource: "scale",
        versions: &versions,
        filters: &[],
    };
    let mut after = scaled.clone();
    let writer = Writer { manager: "recorder", now: "2026-11-15T20:06:44Z" };
    fields.update(Some(&before), &mut after, writer).expect("a scale fits its schema");
    let list = managers.to_parent(after["metadata"].get("managedFields")).expect("managers");
    live["metadata"]["managedFields"] = list.expect("somebody owns the object");
    live["spec"]["replicas"] = scaled["spec"]["replicas"].clone();
}

fn remove(object: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('/').expect("a pointer");
    let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.map(|members| members.remove(name));
}

fn widget_schema() -> Value {
    let definition = answers().find(|answer| answer["id"] == "crd-create").expect("the definition of widgets");
    definition["body"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}
