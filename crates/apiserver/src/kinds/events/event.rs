//! Events of the group `events.k8s.io`: `pkg/apis/core/validation/events.go`. They are stored as Events of the core group.

use serde_json::{Map, Value};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::core::event::{CELLS, STRATEGY, legacy};
use crate::kinds::shared::check::{immutable, immutable_struct, immutable_text};
use crate::kinds::shared::json::{is_empty, is_set, text};
use crate::kinds::{NameRule, Rules, StoredAs};
use std::borrow::Cow;

/// The rules of Events of `events.k8s.io`.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .validated(|new, old, errors| {
        legacy(new, true, errors);
        strict(new, old, errors);
    })
    .with_strategy(STRATEGY)
    .stored_as(StoredAs {
        group: "",
        version: "v1",
        to_storage: |event| rename(event, FIELDS.into_iter().map(|(stored, served)| (served, stored))),
        to_version: |event| rename(event, FIELDS.into_iter()),
        field: stored_field,
    })
    .printed(CELLS);

/// The names of fields: stored, and served by this group.
const FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

fn strict(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        stays(new, old, errors);
        return;
    }
    if !is_set(&new["eventTime"]) {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = text(&new["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    for (field, name) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if !is_empty(&new[field]) {
            errors.push(FieldError::invalid(&Path::new(name), "", "needs to be unset"));
        }
    }
}

/// The old event is kept as one of the core group, and the errors name its fields.
fn stays(new: &Value, old: &Value, errors: &mut Errors) {
    let fields = [
        ("reason", "reason", "reason"),
        ("note", "message", "message"),
        ("type", "type", "type"),
        ("action", "action", "action"),
        ("reportingController", "reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance", "reportingInstance"),
    ];
    let either = |now: &str, was: &str| if is_set(&old[now]) { old[now].clone() } else { old[was].clone() };
    let object = either("regarding", "involvedObject");
    immutable_struct("ObjectReference", &new["regarding"], &object, &Path::new("involvedObject"), errors);
    for (now, was, name) in fields {
        immutable_text(&new[now], &either(now, was), &Path::new(name), errors);
    }
    for field in ["eventTime", "related"] {
        immutable(&new[field], &old[field], &Path::new(field), errors);
    }
}

/// Returns the stored name of a selectable field; none for a stored name that is served under another one.
fn stored_field(field: &str) -> Option<Cow<'_, str>> {
    let (first, rest) = field.split_once('.').map_or((field, None), |(first, rest)| (first, Some(rest)));
    match (FIELDS.iter().find(|(_, served)| *served == first), rest) {
        (Some((stored, _)), Some(rest)) => Some(Cow::Owned(format!("{stored}.{rest}"))),
        (Some((stored, _)), None) => Some(Cow::Borrowed(*stored)),
        (None, _) if FIELDS.iter().any(|(stored, _)| *stored == first) => None,
        (None, _) => Some(Cow::Borrowed(field)),
    }
}

fn rename(event: &mut Map<String, Value>, names: impl Iterator<Item = (&'static str, &'static str)>) {
    for (from, to) in names {
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
}
