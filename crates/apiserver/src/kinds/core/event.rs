//! Events of the core group: `pkg/apis/core/validation/events.go`. Those of `events.k8s.io` are the same objects in another
//! form, and share the strategy, the cells and the older part of validation.

mod table;

use serde_json::Value;
use steersman_base::validation::qualified_name;

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::problems;
use crate::kinds::shared::json::{is_set, text};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Dependents, SelectableField, Strategy};

/// The rules of Events.
pub(crate) static RULES: Rules = Rules::named(NameRule::PathSegment)
    .validated(|new, _, errors| legacy(new, false, errors))
    .with_strategy(STRATEGY)
    .printed(CELLS);

/// The strategy of Events of both groups. The fields are those of the stored form.
pub(crate) const STRATEGY: Strategy = Strategy {
    dependents: Dependents::Unsupported,
    create_on_update: true,
    selectable_fields: &[
        SelectableField::at("involvedObject.kind"),
        SelectableField::at("involvedObject.namespace"),
        SelectableField::at("involvedObject.name"),
        SelectableField::at("involvedObject.uid"),
        SelectableField::at("involvedObject.apiVersion"),
        SelectableField::at("involvedObject.resourceVersion"),
        SelectableField::at("involvedObject.fieldPath"),
        SelectableField::at("reason"),
        SelectableField::at("reportingComponent"),
        SelectableField::at("source.component").named("source"),
        SelectableField::at("type"),
    ],
    ttl_seconds: Some(3600),
    has_short_history: true,
    ..Strategy::DEFAULT
};

pub(crate) use table::CELLS;

const LENGTH_MAX: usize = 128;

const NOTE_LENGTH_MAX: usize = 1024;

/// Checks what both groups check: `legacyValidateEvent`.
pub(crate) fn legacy(event: &Value, is_new_api: bool, errors: &mut Errors) {
    let (object, reporter, note) = if is_new_api {
        (&event["regarding"], "reportingController", "note")
    } else {
        (&event["involvedObject"], "reportingComponent", "message")
    };
    let namespace = text(&event["metadata"]["namespace"]);
    let of_object = text(&object["namespace"]);
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
