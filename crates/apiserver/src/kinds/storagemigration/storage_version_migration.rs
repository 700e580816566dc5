//! StorageVersionMigrations. Follows `pkg/apis/storagemigration/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::{dns1035_label, dns1123_subdomain};

use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{IMMUTABLE, immutable_struct, problems_joined};
use crate::kinds::shared::conditions;
use crate::kinds::shared::json::{items, text};
use crate::kinds::shared::meta::validate_meta_update;
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::{Strategy, USER_METADATA};
use crate::table::{Cell, cell};

/// The rules of StorageVersionMigrations.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .validated(validate)
    .status_validated(validate_status)
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { unconditional_update: false, status_keeps_metadata: USER_METADATA, ..Strategy::DEFAULT })
    .printed(&[
        Cell::Name,
        Cell::Made(|row| match row.text("/spec/resource/group") {
            "" => row.text("/spec/resource/resource").to_owned(),
            group => format!("{}.{group}", row.text("/spec/resource/resource")),
        }),
        Cell::Made(|row| {
            let is_true = |condition: &&Value| cell::text(condition, "status") == "True";
            let known = ["Running", "Failed", "Succeeded"];
            let mut conditions =
                row.list_at("/status/conditions").iter().filter(is_true).map(|it| cell::text(it, "type"));
            conditions.rfind(|kind| known.contains(kind)).unwrap_or("Unknown").to_owned()
        }),
    ]);

fn validate(migration: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = &migration["spec"];
    let path = Path::new("spec").child("resource");
    let resource = text(&spec["resource"]["resource"]);
    if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), "resource is required to be set"));
    } else {
        problems_joined(resource, &dns1035_label(resource), &path.child("resource"), errors);
    }
    let group = text(&spec["resource"]["group"]);
    if !group.is_empty() {
        problems_joined(group, &dns1123_subdomain(group), &path.child("group"), errors);
    }
    if let Some(old) = old {
        immutable_struct("StorageVersionMigrationSpec", spec, &old["spec"], &Path::new("spec"), errors);
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    validate_meta_update(new, old, errors);
    let status = &new["status"];
    let path = Path::new("status");
    let version = text(&status["resourceVersion"]);
    let at = path.child("resourceVersion");
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit()) && (!version.starts_with('0') || version == "0");
    if !is_number {
        let detail = format!("resource version is not well formed: {version}");
        errors.push(FieldError::invalid(&at, version, detail));
    }
    let at_conditions = path.child("conditions");
    conditions::validate(&status["conditions"], &at_conditions, errors);
    let before = text(&old["status"]["resourceVersion"]);
    if !before.is_empty() && before != version {
        errors.push(FieldError::invalid(&at, version, IMMUTABLE));
    }
    let is_true = |status: &Value, kind: &str| {
        items(&status["conditions"]).iter().any(|it| it["type"] == kind && it["status"] == "True")
    };
    let mut wrong = |detail: &str| {
        errors.push(FieldError::invalid(&at_conditions, status["conditions"].clone(), detail));
    };
    if is_true(status, "Succeeded") && is_true(status, "Failed") {
        wrong("Both success and failed conditions cannot be true at the same time");
    }
    for (kind, word) in [("Succeeded", "Success"), ("Failed", "Failed")] {
        if is_true(&old["status"], kind) && !is_true(status, kind) {
            wrong(&format!("{word} condition cannot be set to false once it is true"));
        }
    }
}
