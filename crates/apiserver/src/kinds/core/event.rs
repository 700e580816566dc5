//! Events of both groups: `pkg/apis/core/validation/events.go`.

use serde_json::Value;
use steersman_base::validation::qualified_name;

use crate::field::{FieldError, Path};
use crate::kinds::check::{Errors, immutable, problems};
use crate::kinds::json::{is_empty, is_set, text};
use crate::kinds::{NameRule, Rules};

const LENGTH_MAX: usize = 128;
const NOTE_LENGTH_MAX: usize = 1024;

pub(super) static EVENT: Rules = Rules::named(NameRule::PathSegment).validated(|new, old, errors| {
    let is_new_api = text(&new["apiVersion"]).starts_with("events.k8s.io/");
    legacy(new, is_new_api, errors);
    if is_new_api {
        strict(new, old, errors);
    }
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
        for field in [
            "regarding",
            "reason",
            "note",
            "deprecatedSource",
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "deprecatedCount",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingController",
            "reportingInstance",
        ] {
            immutable(&new[field], &old[field], &Path::new(field), errors);
        }
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
