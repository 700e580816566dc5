//! DeviceTaintRules: `ValidateDeviceTaintRule`.

use serde_json::Value;

use super::device::{added, label, pool_name, taint};
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::conditions;
use crate::kinds::shared::json::{is_set, items, object_mut, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::storage::driver_name;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::Cell;

const CONDITIONS_MAX: usize = 8;

/// The rules of DeviceTaintRules.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .timed(|rule, now| {
        if let Some(taint) = object_mut(rule, "spec").and_then(|spec| object_mut(spec, "taint")) {
            added(taint, now);
        }
    })
    .validated(validate)
    .status_validated(validate_status)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy {
        status_keeps_metadata: USER_METADATA,
        unconditional_update: false,
        ..Strategy::GENERATION
    })
    .printed(&[
        Cell::Name,
        Cell::Text("/spec/taint/key"),
        Cell::Text("/spec/taint/value"),
        Cell::Text("/spec/taint/effect"),
        Cell::Made(|row| {
            let path = "/spec/taint/timeAdded";
            if row.at(path).is_some() { row.since(path) } else { String::new() }
        }),
        Cell::Age,
    ]);

fn validate(rule: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = &rule["spec"];
    let path = Path::new("spec");
    let selector = &spec["deviceSelector"];
    let at = path.child("deviceSelector");
    if is_set(&selector["driver"]) {
        driver_name(text(&selector["driver"]), &at.child("driver"), errors);
    }
    if is_set(&selector["pool"]) {
        pool_name(text(&selector["pool"]), &at.child("pool"), errors);
    }
    if is_set(&selector["device"]) {
        label(text(&selector["device"]), &at.child("device"), errors);
    }
    taint(&spec["taint"], old.map(|old| &old["spec"]["taint"]), &path.child("taint"), errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta_update(new, old, errors);
    let path = Path::new("status").child("conditions");
    let list = &new["status"]["conditions"];
    conditions::validate(list, &path, errors);
    if items(list).len() > CONDITIONS_MAX {
        errors.push(FieldError::too_many(&path, items(list).len(), CONDITIONS_MAX));
    }
}
