//! Events of both groups: `pkg/apis/core/validation/events.go`.

use serde_json::Value;
use steersman_base::validation::qualified_name;

use crate::field::{FieldError, Path};
use crate::kinds::check::{Errors, IMMUTABLE, immutable, immutable_text, problems};
use crate::kinds::json::{is_empty, is_set, same, text};
use crate::kinds::{NameRule, Rules, go};

const LENGTH_MAX: usize = 128;
const NOTE_LENGTH_MAX: usize = 1024;

/// Event of the core group.
pub(super) static EVENT: Rules =
    Rules::named(NameRule::PathSegment).validated(|new, _, errors| legacy(new, false, errors));

/// Event of the group `events.k8s.io`.
pub(super) static NEW_EVENT: Rules = Rules::named(NameRule::Subdomain).validated(|new, old, errors| {
    legacy(new, true, errors);
    strict(new, old, errors);
});

fn legacy(event: &Value, is_new_api: bool, errors: &mut Errors) {
    let (object, reporter, note) = if is_new_api {
        (&event["regarding"], "reportingController", "note")
    } else {
        (&event["involvedObject"], "reportingComponent", "message")
    };
    let (namespace, of_object) = (text(&event["metadata"]["namespace"]), text(&object["namespace"]));
    let elsewhere = |errors: &mut Errors| {
        let path = Path::new("involvedObject").child("namespace");
        errors.push(FieldError::invalid(&path, of_object, "does not match event.namespace"));
    };
    if !is_set(&event["eventTime"]) {
        let fits = if of_object.is_empty() { matches!(namespace, "" | "default") } else { namespace == of_object };
        if !fits {
            elsewhere(errors);
        }
        return;
    }
    if of_object.is_empty() && !matches!(namespace, "default" | "kube-system") {
        elsewhere(errors);
    }
    let controller = text(&event[reporter]);
    if controller.is_empty() {
        errors.push(FieldError::required(&Path::new(reporter), ""));
    }
    problems(controller, qualified_name(controller), &Path::new(reporter), errors);
    for (field, length_max, is_required) in [
        ("reportingInstance", LENGTH_MAX, true),
        ("action", LENGTH_MAX, true),
        ("reason", LENGTH_MAX, true),
        (note, NOTE_LENGTH_MAX, false),
    ] {
        let value = text(&event[field]);
        // Upstream calls the note of both groups `message`.
        let path = Path::new(if field == note { "message" } else { field });
        if is_required && value.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if value.len() > length_max {
            errors.push(FieldError::invalid(&path, "", format!("can have at most {length_max} characters")));
        }
    }
}

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
    if !same(&new["regarding"], &object) {
        let shown = go::show("ObjectReference", &new["regarding"]);
        errors.push(FieldError::invalid(&Path::new("involvedObject"), shown, IMMUTABLE));
    }
    for (now, was, name) in fields {
        immutable_text(&new[now], &either(now, was), &Path::new(name), errors);
    }
    for field in ["eventTime", "related"] {
        immutable(&new[field], &old[field], &Path::new(field), errors);
    }
}
