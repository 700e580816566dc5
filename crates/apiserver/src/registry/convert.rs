//! Resources that are served in more than one shape: which shape is stored, and how one becomes the other.
//!
//! Events are stored as `v1`, and shown by `events.k8s.io/v1` under other names. Autoscalers are stored as
//! `autoscaling/v2`; what their `v1` shows is a later issue, so for now it shows the same fields.

use std::borrow::Cow;

use serde_json::{Map, Value};
use steersman_base::{ObjectKey, Resource};

use super::Row;
use super::life::metadata;

/// Names of an event's fields: in `v1`, and in `events.k8s.io/v1`.
const EVENT_FIELDS: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];
const EVENT_CONTROLLER: (&str, &str) = ("reportingComponent", "reportingController");

/// The group under which a resource's objects are kept.
#[must_use]
pub fn storage_group<'a>(group: &'a str, plural: &str) -> &'a str {
    if group == "events.k8s.io" && plural == "events" { "" } else { group }
}

/// Group, version and kind of what is stored.
#[must_use]
pub fn storage_kind(row: &Row) -> (&str, &str, &str) {
    let resource = &row.resource;
    match (&*resource.group, &*resource.version, &*resource.kind) {
        ("events.k8s.io", _, kind) => ("", "v1", kind),
        ("autoscaling", _, kind @ "HorizontalPodAutoscaler") => ("autoscaling", "v2", kind),
        other => other,
    }
}

/// Where upstream's etcd has an object; some refusals say so.
#[must_use]
pub fn storage_key(row: &Row, key: &ObjectKey) -> String {
    let Resource { group, plural, .. } = &row.resource;
    let place = match (&**group, &**plural) {
        ("", "replicationcontrollers") => "controllers",
        ("", "nodes") => "minions",
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("networking.k8s.io", "ingresses") => "ingress",
        (_, plural) => plural,
    };
    let owner = match row.custom {
        Some(_) => format!("{group}/"),
        None if matches!(&**group, "apiextensions.k8s.io" | "apiregistration.k8s.io") => format!("{group}/"),
        None => String::new(),
    };
    let within = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    format!("/registry/{owner}{place}/{within}{}", key.name)
}

/// Whether objects are stored as this row shows them. All versions of a custom resource have one shape.
#[must_use]
pub fn is_storage_version(row: &Row) -> bool {
    let (group, version, _) = storage_kind(row);
    match &row.custom {
        Some(custom) => custom.storage_version == row.resource.version,
        None => group == row.resource.group && version == row.resource.version,
    }
}

/// An object as its row shows it, as it is to be stored.
pub fn to_storage(row: &Row, object: &mut Value) {
    if is_storage_version(row) {
        return;
    }
    let (group, version, _) = storage_kind(row);
    let version = row.custom.as_ref().map_or(version, |custom| &custom.storage_version);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let Some(map) = object.as_object_mut() else { return };
    map.insert("apiVersion".into(), api_version.into());
    if row.resource.group == "events.k8s.io" {
        rename(map, EVENT_FIELDS.into_iter().map(|(stored, shown)| (shown, stored)));
        rename(map, [(EVENT_CONTROLLER.1, EVENT_CONTROLLER.0)].into_iter());
    }
}

/// A stored object, as its row shows it.
#[must_use]
pub fn to_version(row: &Row, mut object: Value) -> Value {
    if is_storage_version(row) {
        return object;
    }
    let api_version = row.resource.api_version().into_owned();
    metadata(&mut object);
    let Some(map) = object.as_object_mut() else { return object };
    map.insert("apiVersion".into(), api_version.into());
    if row.resource.group == "events.k8s.io" {
        rename(map, EVENT_FIELDS.into_iter());
        rename(map, [EVENT_CONTROLLER].into_iter());
    }
    object
}

/// The name that a selectable field has in what is stored; none if the row does not know it by this name.
#[must_use]
pub fn stored_field<'a>(row: &Row, field: &'a str) -> Option<Cow<'a, str>> {
    if row.resource.group != "events.k8s.io" {
        return Some(Cow::Borrowed(field));
    }
    let (first, rest) = field.split_once('.').map_or((field, None), |(first, rest)| (first, Some(rest)));
    let mut names = EVENT_FIELDS.into_iter().chain([EVENT_CONTROLLER]);
    match (names.clone().find(|(_, shown)| *shown == first), rest) {
        (Some((stored, _)), Some(rest)) => Some(Cow::Owned(format!("{stored}.{rest}"))),
        (Some((stored, _)), None) => Some(Cow::Owned(stored.to_owned())),
        (None, _) if names.any(|(stored, _)| stored == first) => None,
        (None, _) => Some(Cow::Borrowed(field)),
    }
}

fn rename(map: &mut Map<String, Value>, names: impl Iterator<Item = (&'static str, &'static str)>) {
    for (from, to) in names {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}
