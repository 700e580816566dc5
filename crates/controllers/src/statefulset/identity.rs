//! Pure: identity: names, ordinals, labels and volumes of a StatefulSet's pods and claims.

use serde_json::{Map, Value, json};
use steersman_base::names::labels;
use steersman_base::{Istr, StringMap};
use steersman_model::apps::StatefulSetView;
use steersman_model::core::PodView;
use steersman_model::core::pod::VolumeSource;
use steersman_model::template::{Template, raw_body};
use steersman_model::{PodName, View};

use crate::claim::owner_ref;
use crate::pod::name_prefix;

/// The ordinals that a StatefulSet wants pods of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ordinals {
    pub(super) start: i64,
    pub(super) count: i64,
}

/// A revision: its name, and the template of its pods.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    pub(super) name: Istr,
    pub(super) template: Template,
}

/// The templates of the claims of each pod.
#[derive(Debug, Default)]
pub(super) struct ClaimTemplates(Vec<ClaimTemplate>);

/// The template of a claim.
#[derive(Debug)]
pub(super) struct ClaimTemplate {
    name: String,
    object: Map<String, Value>,
}

/// Returns the name of the StatefulSet that a pod of this name belongs to, and its ordinal, which is `None` if it is too
/// large.
fn parsed(pod: &str) -> Option<(&str, Option<i64>)> {
    let (set, digits) = pod.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (set, digits.parse::<i32>().ok().map(i64::from)))
}

/// Returns the name of the StatefulSet that a pod of this name belongs to.
pub(super) fn set_name(pod: &str) -> Option<&str> {
    parsed(pod).map(|(set, _)| set)
}

/// Whether the name of the pod says that it belongs to the StatefulSet.
pub(super) fn is_member(set: &StatefulSetView, pod: &PodView) -> bool {
    set_name(&pod.meta().name) == Some(&*set.meta().name)
}

/// Returns the ordinal of a pod; `None` if it has none.
pub(super) fn ordinal(pod: &PodView) -> Option<i64> {
    parsed(&pod.meta().name)?.1
}

/// Returns the name of the pod with this ordinal.
pub(super) fn pod_name(set: &StatefulSetView, ordinal: i64) -> String {
    format!("{}-{ordinal}", set.meta().name)
}

/// Returns the revision that a pod was created from; empty if it has none.
pub(super) fn revision_of(pod: &PodView) -> &str {
    pod.meta().labels.get(labels::CONTROLLER_REVISION_HASH).map_or("", Istr::as_str)
}

/// Whether the pod has the name and the label of its ordinal.
pub(super) fn has_identity(set: &StatefulSetView, pod: &PodView) -> bool {
    let meta = pod.meta();
    let name = ordinal(pod).map(|ordinal| pod_name(set, ordinal));
    name.is_some_and(|name| meta.name == *name) && meta.labels.get(labels::STATEFULSET_POD_NAME) == Some(&meta.name)
}

/// Whether the pod's volumes are the claims of its ordinal.
pub(super) fn has_storage(set: &StatefulSetView, templates: &ClaimTemplates, pod: &PodView) -> bool {
    let Some(ordinal) = ordinal(pod) else { return false };
    templates.0.iter().all(|template| {
        let volume = pod.spec.volumes.iter().find(|volume| volume.name == *template.name);
        let wanted = template.claim_name(set, ordinal);
        volume.is_some_and(|volume| {
            matches!(&volume.source, VolumeSource::PersistentVolumeClaim(claim) if claim.claim_name == *wanted)
        })
    })
}

/// Returns the body that creates the pod with this ordinal.
pub(super) fn pod_body(
    set: &StatefulSetView,
    templates: &ClaimTemplates,
    revision: &Revision,
    ordinal: i64,
) -> Result<Vec<u8>, serde_json::Error> {
    let name = pod_name(set, ordinal);
    let prefix = name_prefix(&set.meta().name);
    let template = &revision.template;
    let chosen = PodName::Chosen { name: &name, prefix: &prefix };
    let mut metadata = template.new_pod(chosen, &set.meta().namespace, &owner_ref(set));
    metadata.labels = labelled(template.labels(), &name, ordinal, Some(&revision.name));
    // All else in the spec stays as it came: nothing of it is decoded.
    let mut spec = template.spec().fields()?;
    spec.put("hostname", json!(name).to_string());
    spec.put("subdomain", json!(set.spec.service_name).to_string());
    if !templates.0.is_empty() {
        let held = spec.take("volumes").map(|held| serde_json::from_str(&held)).transpose()?;
        let volumes = with_claims(held.unwrap_or_default(), set, templates, ordinal);
        spec.put("volumes", volumes.to_string());
    }
    Ok(raw_body("v1", "Pod", &metadata, &spec.to_json()))
}

/// Gives a pod the label and the volumes of its ordinal. Its host name cannot be changed.
pub(super) fn amend(pod: &mut Value, set: &StatefulSetView, templates: &ClaimTemplates, ordinal: i64) {
    let name = pod_name(set, ordinal);
    let metadata = object(&mut pod["metadata"]);
    let labels = object(metadata.entry("labels").or_insert_with(|| json!({})));
    labels.insert(labels::STATEFULSET_POD_NAME.into(), json!(name));
    labels.insert(labels::POD_INDEX.into(), json!(ordinal.to_string()));
    set_volumes(object(&mut pod["spec"]), set, templates, ordinal);
}

fn labelled(held: &StringMap, name: &str, ordinal: i64, revision: Option<&Istr>) -> StringMap {
    let pair = |key: &str, value: &str| (Istr::interned(key), Istr::new(value));
    let own = [pair(labels::STATEFULSET_POD_NAME, name), pair(labels::POD_INDEX, &ordinal.to_string())];
    let revision = revision.map(|revision| pair(labels::CONTROLLER_REVISION_HASH, revision));
    held.iter().map(|(key, value)| (key.clone(), value.clone())).chain(own).chain(revision).collect()
}

fn set_volumes(spec: &mut Map<String, Value>, set: &StatefulSetView, templates: &ClaimTemplates, ordinal: i64) {
    if templates.0.is_empty() {
        return;
    }
    let held = spec.remove("volumes").unwrap_or_default();
    spec.insert("volumes".into(), with_claims(held, set, templates, ordinal));
}

/// Puts the claims of an ordinal before the other volumes; a volume of a claim's name is replaced.
fn with_claims(held: Value, set: &StatefulSetView, templates: &ClaimTemplates, ordinal: i64) -> Value {
    let claims = templates.0.iter().map(|template| {
        json!({ "name": template.name, "persistentVolumeClaim": { "claimName": template.claim_name(set, ordinal) } })
    });
    let is_claim = |volume: &Value| templates.0.iter().any(|template| volume["name"] == template.name);
    let held = match held {
        Value::Array(volumes) => volumes,
        _ => Vec::new(),
    };
    claims.chain(held.into_iter().filter(|volume| !is_claim(volume))).collect()
}

/// The fields of a value, which becomes an object if it is none.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("it is an object by now"),
    }
}

// === impl Ordinals ===

impl Ordinals {
    /// Returns the wanted ordinals. An absent number of replicas means one: the API server's default.
    pub(super) fn of(set: &StatefulSetView) -> Self {
        let start = set.spec.ordinals.as_ref().map_or(0, |ordinals| ordinals.start);
        Self { start: start.into(), count: set.spec.replicas.unwrap_or(1).max(0).into() }
    }

    /// Returns the first ordinal after the wanted ones.
    pub(super) fn end(self) -> i64 {
        self.start + self.count
    }

    /// Whether a pod of this ordinal is wanted.
    pub(super) fn contains(self, ordinal: i64) -> bool {
        (self.start..self.end()).contains(&ordinal)
    }
}

// === impl ClaimTemplates ===

impl ClaimTemplates {
    /// Reads the templates of a StatefulSet's claims.
    pub(super) fn of(set: &StatefulSetView) -> Result<Self, serde_json::Error> {
        let raw = &set.spec.volume_claim_templates;
        let objects: Option<Vec<Map<String, Value>>> =
            if raw.is_empty() { None } else { serde_json::from_str(raw.as_str())? };
        let templates = objects.into_iter().flatten().map(|object| {
            let name = object.get("metadata").and_then(|metadata| metadata["name"].as_str()).unwrap_or_default();
            ClaimTemplate { name: name.to_owned(), object }
        });
        Ok(Self(templates.collect()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ClaimTemplate> {
        self.0.iter()
    }
}

impl ClaimTemplate {
    /// Returns the name of the claim of this ordinal.
    pub(super) fn claim_name(&self, set: &StatefulSetView, ordinal: i64) -> String {
        format!("{}-{}-{ordinal}", self.name, set.meta().name)
    }

    /// Returns the body that creates the claim of this ordinal: it has the labels that the StatefulSet selects.
    pub(super) fn body(&self, set: &StatefulSetView, ordinal: i64) -> Result<Vec<u8>, serde_json::Error> {
        let mut claim = Value::Object(self.object.clone());
        claim["apiVersion"] = json!("v1");
        claim["kind"] = json!("PersistentVolumeClaim");
        let metadata = object(&mut claim["metadata"]);
        metadata.insert("name".into(), json!(self.claim_name(set, ordinal)));
        metadata.insert("namespace".into(), json!(set.meta().namespace));
        let selected = set.spec.selector.iter().flat_map(|selector| selector.match_labels.iter());
        let labels = object(metadata.entry("labels").or_insert_with(|| json!({})));
        labels.extend(selected.map(|(key, value)| (key.to_string(), json!(value))));
        serde_json::to_vec(&claim)
    }
}
