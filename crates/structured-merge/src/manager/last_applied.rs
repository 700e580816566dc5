//! The annotation of client-side apply.

use serde_json::{Map, Value};

use super::FieldManager;
use crate::set::FieldSet;
use crate::typed::Duplicates;
use crate::value::{self, Encoder};

/// The manager of `kubectl apply --server-side`; only it continues what client-side apply began.
pub(super) const KUBECTL: &str = "kubectl";
/// The annotation in which client-side apply keeps what it applied last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The size that all annotations of an object may have, by validation of metadata.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

impl FieldManager<'_> {
    /// The fields that client-side apply has set and that still have the values it gave them. `None` if there is no
    /// annotation, or none that can be used.
    pub(super) fn explained_by_last_applied(&self, live: &Value) -> Option<FieldSet> {
        let text = annotation(live)?;
        let schema = self.schema().ok()?;
        schema.validate(live, Duplicates::Refused).ok()?;
        let last: Value = serde_json::from_str(text).ok()?;
        if last.get("apiVersion").and_then(Value::as_str) != Some(self.api_version) {
            return None;
        }
        schema.validate(&last, Duplicates::Refused).ok()?;
        let fields = schema.to_field_set(&last).ok()?;
        let changed = schema.compare(&last, live).ok()?;
        Some(fields.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
    }
}

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("annotations")?.as_object()
}

fn annotation(object: &Value) -> Option<&str> {
    annotations(object)?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

/// Writes the applied configuration into the annotation, if the object has it; whether that changed anything.
pub(super) fn refresh(object: &mut Value, config: &Value) -> bool {
    let text = text_of(config);
    if annotation(object).is_none_or(|before| before == text) {
        return false;
    }
    let members = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    let Some(members) = members.and_then(Value::as_object_mut) else {
        return false;
    };
    members.remove(ANNOTATION);
    let others: usize = members.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if others + ANNOTATION.len() + text.len() <= ANNOTATIONS_BYTES_MAX {
        members.insert(ANNOTATION.to_owned(), Value::String(text));
    }
    true
}

/// The configuration without the annotation, as Go's encoder writes it.
fn text_of(config: &Value) -> String {
    let mut config = config.clone();
    let members = config.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(members) = members.and_then(Value::as_object_mut) {
        members.remove(ANNOTATION);
    }
    let mut text = String::new();
    value::json_escaped(&config, Encoder::Standard, &mut text);
    text.push('\n');
    text
}
