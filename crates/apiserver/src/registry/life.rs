//! What a create or an update does to every object, whatever its kind: who sets which part of it.
//!
//! 1. The server sets uid, creation time and generation; a client's values do not count.
//! 2. A write of the whole keeps the stored status; a write of the status keeps all but the status, and takes labels,
//!    annotations, finalizers and owners from the body.
//! 3. Nothing takes back a deletion.
//!
//! Follows `apiserver/pkg/registry/rest/{create,update}.go` and the strategies of Kubernetes 1.37.

use std::collections::HashSet;

use serde_json::{Map, Value};
use steersman_base::{Time, Uid};

use super::Row;
use super::traits::Generation;

/// Letters and digits of generated names: none that make words, none that look alike.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_SUFFIX_LENGTH: usize = 5;
const NAME_PREFIX_LENGTH_MAX: usize = 63 - NAME_SUFFIX_LENGTH;

/// Fields of metadata that only the server sets.
const SYSTEM_FIELDS: [&str; 5] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

/// The metadata of an object as a map; made if it is not there.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    match &mut object["metadata"] {
        Value::Object(metadata) => metadata,
        _ => unreachable!("metadata was made a map above"),
    }
}

/// A string of an object's metadata; empty if it is not there.
pub(crate) fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Drops what Go would not write: empty maps, lists and strings in metadata, and what we do not keep.
pub(crate) fn tidy(object: &mut Value) {
    let metadata = metadata(object);
    metadata.remove("managedFields");
    metadata.remove("selfLink");
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Drops owners that are there twice; answers the warning about it. A patch is looked at later than a body.
pub(crate) fn fold_owners(object: &mut Value, is_patched: bool) -> Option<String> {
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

/// A new object: what the server sets.
pub(crate) fn begin(row: &Row, object: &mut Value, now: Time) {
    let meta = metadata(object);
    for field in SYSTEM_FIELDS {
        meta.remove(field);
    }
    if row.traits.names_itself && meta.get("name").is_none_or(|name| name == "") {
        meta.insert("name".into(), new_uid().into());
    }
    meta.insert("uid".into(), new_uid().into());
    meta.insert("creationTimestamp".into(), now.to_string().into());
    if row.traits.generation != Generation::None {
        meta.insert("generation".into(), 1.into());
    }
    if row.has_status() && !row.traits.status_on_create {
        drop_status(object);
    }
}

/// A uid that nobody had before.
pub(crate) fn new_uid() -> String {
    let mut bytes: [u8; 16] = fastrand::u128(..).to_be_bytes();
    // A version 4 UUID, as upstream's are.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uid::from_bytes(bytes).to_string()
}

/// A name with this prefix that probably nobody has.
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

/// A changed object: the parts that a write of the whole does not change.
pub(crate) fn keep_status(row: &Row, object: &mut Value, old: &Value) {
    if row.has_status() {
        keep(object, old, "status");
    }
}

/// The object as a write of its status leaves it.
pub(crate) fn take_status(row: &Row, body: &Value, old: &Value) -> Value {
    let mut object = old.clone();
    keep(&mut object, body, "status");
    keep(&mut object, body, "metadata");
    let kept: &[&str] = match (&*row.resource.group, &*row.resource.plural) {
        ("apps", "deployments") => &["labels"],
        ("", "pods") => &["ownerReferences"],
        _ if row.traits.status_alone => &["labels", "annotations", "finalizers", "ownerReferences"],
        _ => &[],
    };
    for field in kept {
        let held = old["metadata"].get(field).cloned();
        let meta = metadata(&mut object);
        match held {
            Some(value) => meta.insert((*field).to_owned(), value),
            None => meta.remove(*field),
        };
    }
    if row.is("", "pods") && object["status"].is_object() {
        for field in ["qosClass", "resourceClaimStatuses"] {
            if object["status"][field].is_null() && !old["status"][field].is_null() {
                object["status"][field] = old["status"][field].clone();
            }
        }
    }
    object
}

/// The pod as a write of a part of its spec leaves it: ephemeral containers, or resources.
pub(crate) fn take_spec(subresource: &str, body: &Value, old: &Value) -> Value {
    let mut pod = old.clone();
    for field in ["resourceVersion", "uid"] {
        // A body that does not say which pod it means, means this one.
        if let Some(sent) = body["metadata"].get(field) {
            metadata(&mut pod).insert(field.to_owned(), sent.clone());
        }
    }
    if subresource == "ephemeralcontainers" {
        keep(&mut pod["spec"], &body["spec"], "ephemeralContainers");
        return pod;
    }
    let sent = |list: &str| body["spec"][list].as_array().cloned().unwrap_or_default();
    let lists = ["containers", "initContainers"];
    let count = |spec: &Value, list: &str| spec[list].as_array().map_or(0, Vec::len);
    if lists.iter().any(|list| sent(list).len() != count(&old["spec"], list)) {
        // Validation says what is wrong.
        keep(&mut pod, body, "spec");
        return pod;
    }
    keep(&mut pod["spec"], &body["spec"], "resources");
    for list in lists {
        let held = pod["spec"][list].as_array_mut().into_iter().flatten();
        for (container, sent) in held.zip(sent(list)) {
            keep(container, &sent, "name");
            keep(container, &sent, "resources");
            keep(container, &sent, "resizePolicy");
        }
    }
    pod
}

/// The namespace as a write of its `finalize` leaves it: besides the finalizers, metadata is taken.
pub(crate) fn take_finalizers(body: &Value, old: &Value) -> Value {
    let mut namespace = old.clone();
    for field in ["annotations", "finalizers", "labels", "ownerReferences", "resourceVersion", "uid"] {
        let sent = body["metadata"].get(field).cloned();
        let meta = metadata(&mut namespace);
        match sent {
            Some(value) => meta.insert(field.to_owned(), value),
            None if field == "uid" => None,
            None => meta.remove(field),
        };
    }
    if !namespace["spec"].is_object() {
        namespace["spec"] = Value::Object(Map::new());
    }
    keep(&mut namespace["spec"], &body["spec"], "finalizers");
    namespace
}

/// A changed object: what the server keeps.
pub(crate) fn carry_over(object: &mut Value, old: &Value, is_next_generation: bool) {
    let before = &old["metadata"];
    let bump = i64::from(is_next_generation);
    let meta = metadata(object);
    match before["generation"].as_i64() {
        Some(generation) => meta.insert("generation".into(), generation.saturating_add(bump).into()),
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

/// Whether a change makes a new generation.
pub(crate) fn is_next_generation(rule: Generation, object: &Value, old: &Value) -> bool {
    let of = |object: &Value, field: &str| object["metadata"].get(field).cloned();
    match rule {
        Generation::None | Generation::Once => false,
        Generation::Content => content_differs(object, old),
        Generation::ContentOrAnnotations => {
            content_differs(object, old) || of(object, "annotations") != of(old, "annotations")
        }
        Generation::ContentOrLabels => content_differs(object, old) || of(object, "labels") != of(old, "labels"),
    }
}

fn content_differs(object: &Value, old: &Value) -> bool {
    let is_content = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let new = object.as_object().into_iter().flatten().filter(|(name, _)| is_content(name));
    let old = old.as_object().into_iter().flatten().filter(|(name, _)| is_content(name));
    !new.eq(old)
}
