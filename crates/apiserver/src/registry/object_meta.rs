//! Metadata and the parts of an object, for all kinds: which fields the server sets, which a write keeps.
//!
//! 1. The server sets uid, creation time and generation; a client's values do not count.
//! 2. A write of the object keeps the stored status; a write of the status keeps everything but the status, and takes
//!    metadata from the body, except what the strategy keeps.
//! 3. A deletion cannot be undone.
//!
//! Follows `apiserver/pkg/registry/rest/{create,update}.go` and the strategies of Kubernetes 1.37.

use std::collections::HashSet;

use serde_json::{Map, Value};
use steersman_base::{Time, Uid};

use super::Row;
use super::strategy::Generation;

/// The letters and digits of generated names: no vowels, nothing that looks alike.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_SUFFIX_LENGTH: usize = 5;
const NAME_PREFIX_LENGTH_MAX: usize = 63 - NAME_SUFFIX_LENGTH;

/// The fields of metadata that only the server sets.
const SYSTEM_FIELDS: [&str; 5] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

/// Returns the metadata of an object as a map, which is created if it is absent.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    // Asked for again and again: indexing to change would allocate the key each time.
    if !object["metadata"].is_object() {
        if !object.is_object() {
            *object = Value::Object(Map::new());
        }
        object["metadata"] = Value::Object(Map::new());
    }
    match object.get_mut("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => unreachable!("metadata was made a map above"),
    }
}

/// Returns a string of an object's metadata; empty if it is absent.
pub(crate) fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Removes from metadata what Go would not write (empty maps, lists and strings) and `selfLink`.
pub(crate) fn normalize(object: &mut Value) {
    let metadata = metadata(object);
    metadata.remove("selfLink");
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Removes duplicate owner references, and returns the warning about them. Upstream does so later for a patch than for a body.
pub(crate) fn dedup_owners(object: &mut Value, is_patched: bool) -> Option<String> {
    let owners = object["metadata"].get_mut("ownerReferences")?.as_array_mut()?;
    let mut duplicates = Vec::new();
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    // Some objects have ten thousand.
    let mut seen = HashSet::new();
    for owner in owners.drain(..) {
        if seen.insert(owner.clone()) {
            kept.push(owner);
        } else {
            duplicates.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
    }
    *owners = kept;
    let when = if is_patched { " after mutating admission happens" } else { "" };
    (!duplicates.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            duplicates.join(", ")
        )
    })
}

/// Removes the fields that only the server sets.
pub(crate) fn remove_system_fields(object: &mut Value) {
    let meta = metadata(object);
    for field in SYSTEM_FIELDS {
        meta.remove(field);
    }
}

/// Sets the fields of a new object that only the server sets.
pub(crate) fn initialize(row: &Row, object: &mut Value, now: Time) {
    remove_system_fields(object);
    let meta = metadata(object);
    if row.rules.strategy.defaults_name && meta.get("name").is_none_or(|name| name == "") {
        meta.insert("name".into(), new_uid().into());
    }
    meta.insert("uid".into(), new_uid().into());
    meta.insert("creationTimestamp".into(), now.to_string().into());
    if !matches!(row.rules.strategy.generation, Generation::None | Generation::ContentFromNone) {
        meta.insert("generation".into(), 1.into());
    }
    if row.has_status() && !row.rules.strategy.status_on_create {
        drop_status(object);
    }
}

/// Returns a new uid.
pub(crate) fn new_uid() -> String {
    let mut bytes: [u8; 16] = fastrand::u128(..).to_be_bytes();
    // A version 4 UUID, as upstream's are.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uid::from_bytes(bytes).to_string()
}

/// Returns a random name with this prefix.
pub(crate) fn generate_name(prefix: &str) -> String {
    let end = prefix
        .char_indices()
        .map(|(at, letter)| at + letter.len_utf8())
        .take_while(|end| *end <= NAME_PREFIX_LENGTH_MAX);
    let mut name = prefix[..end.last().unwrap_or(0)].to_owned();
    let letters = (0..NAME_SUFFIX_LENGTH).map(|_| char::from(NAME_LETTERS[fastrand::usize(..NAME_LETTERS.len())]));
    name.extend(letters);
    name
}

fn drop_status(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
}

fn keep(object: &mut Value, old: &Value, field: &str) {
    let Some(map) = object.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

/// Keeps the stored status: a write of the object does not change it.
pub(crate) fn keep_status(row: &Row, object: &mut Value, old: &Value) {
    if row.has_status() {
        keep(object, old, "status");
    }
}

/// Returns the object that a write of its status leaves: the status and metadata of the body, the rest of the stored object.
pub(crate) fn merge_status(row: &Row, body: &Value, old: &Value) -> Value {
    let mut object = old.clone();
    keep(&mut object, body, "status");
    keep(&mut object, body, "metadata");
    for field in row.rules.strategy.status_keeps_metadata {
        let stored = old["metadata"].get(field).cloned();
        let meta = metadata(&mut object);
        match stored {
            Some(value) => meta.insert((*field).to_owned(), value),
            None => meta.remove(*field),
        };
    }
    object
}

/// Keeps the fields of a changed object that only the server sets, and increments the generation if asked to.
pub(crate) fn keep_system_fields(object: &mut Value, old: &Value, is_next_generation: bool) {
    let before = &old["metadata"];
    let bump = i64::from(is_next_generation);
    let meta = metadata(object);
    match before["generation"].as_i64() {
        Some(generation) => meta.insert("generation".into(), generation.saturating_add(bump).into()),
        None if is_next_generation => meta.insert("generation".into(), 1.into()),
        None => meta.remove("generation"),
    };
    if !meta.contains_key("uid") {
        meta.insert("uid".into(), before["uid"].clone());
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if !before[field].is_null() {
            meta.insert(field.into(), before[field].clone());
        }
    }
    if !meta.contains_key("deletionGracePeriodSeconds") && !before["deletionGracePeriodSeconds"].is_null() {
        meta.insert("deletionGracePeriodSeconds".into(), before["deletionGracePeriodSeconds"].clone());
    }
}

/// Whether a change increments the generation; `content_differs` says whether the content is another one.
pub(crate) fn is_next_generation(
    rule: Generation,
    object: &Value,
    old: &Value,
    content_differs: impl FnOnce(&Value, &Value) -> bool,
) -> bool {
    let differs = |field: &str| object["metadata"].get(field) != old["metadata"].get(field);
    match rule {
        Generation::None | Generation::Once => false,
        Generation::Content | Generation::ContentFromNone => content_differs(object, old),
        Generation::ContentOrAnnotations => differs("annotations") || content_differs(object, old),
        Generation::ContentOrLabels => differs("labels") || content_differs(object, old),
    }
}

/// Whether a field is content, of which the generation counts the changes.
pub(crate) fn is_content(name: &str) -> bool {
    !matches!(name, "apiVersion" | "kind" | "metadata" | "status")
}

/// Whether two objects have other content.
pub(crate) fn content_differs(object: &Value, old: &Value) -> bool {
    let new = object.as_object().into_iter().flatten().filter(|(name, _)| is_content(name));
    let old = old.as_object().into_iter().flatten().filter(|(name, _)| is_content(name));
    !new.eq(old)
}
