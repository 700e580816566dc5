//! CSINodes: `pkg/apis/storage/validation/validation.go`.

use serde_json::Value;
use steersman_base::validation::qualified_name;

use super::driver_name;
use crate::field::{Errors, FieldError, Path};
use crate::kinds::shared::check::{self, non_negative, problems};
use crate::kinds::shared::json::{each, is_empty, items, text, unset};
use crate::kinds::{NameRule, Rules};
use crate::registry::strategy::Strategy;
use crate::table::Cell;

/// The maximum length of the ID of a node.
const NODE_ID_LENGTH_MAX: usize = 256;

/// The rules of CSINodes.
pub(crate) static RULES: Rules = Rules::named(NameRule::Subdomain)
    .rechecked()
    .validated(|new, old, errors| {
        let path = Path::new("spec").child("drivers");
        drivers(&new["spec"]["drivers"], &path, errors);
        let Some(old) = old else { return };
        // What can be allocated may change.
        let fixed = |driver: &Value| {
            let mut driver = driver.clone();
            unset(&mut driver, "allocatable");
            driver
        };
        for old in items(&old["spec"]["drivers"]) {
            for new in items(&new["spec"]["drivers"]).iter().filter(|new| text(&new["name"]) == text(&old["name"])) {
                let shown = fixed(new);
                if !crate::kinds::shared::json::same(&shown, &fixed(old)) {
                    let shown = go_driver(&shown);
                    errors.push(FieldError::invalid(&path, shown, check::IMMUTABLE));
                }
            }
        }
    })
    .status_resets(&["metadata", "spec"])
    .with_strategy(Strategy { unconditional_update: false, ..Strategy::RETURNS_DELETED })
    .printed(&[Cell::Name, Cell::Count("/spec/drivers"), Cell::Age]);

/// A driver as upstream shows its struct.
fn go_driver(driver: &Value) -> crate::field::Shown {
    let keys = if is_empty(&driver["topologyKeys"]) { Value::Null } else { driver["topologyKeys"].clone() };
    let shown = format!(
        "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{keys},\"Allocatable\":null}}",
        Value::from(text(&driver["name"])),
        Value::from(text(&driver["nodeID"])),
    );
    crate::field::Shown::Text(shown)
}

fn drivers(drivers: &Value, path: &Path, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    each(drivers, path, |driver, path| {
        let name = text(&driver["name"]);
        driver_name(name, &path.child("name"), errors);
        let id = text(&driver["nodeID"]);
        if id.is_empty() {
            errors.push(FieldError::required(&path.child("nodeID"), ""));
        }
        if id.len() > NODE_ID_LENGTH_MAX {
            let detail = format!("must be {NODE_ID_LENGTH_MAX} characters or less");
            errors.push(FieldError::invalid(&path.child("nodeID"), id, detail));
        }
        non_negative(&driver["allocatable"]["count"], &path.child("allocatable").child("count"), errors);
        if names.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        names.push(name);
        let mut keys: Vec<&str> = Vec::new();
        for key in items(&driver["topologyKeys"]).iter().map(text) {
            if key.is_empty() {
                errors.push(FieldError::required(path, ""));
            }
            if keys.contains(&key) {
                errors.push(FieldError::duplicate(path, key));
            }
            keys.push(key);
            problems(key, qualified_name(key), path, errors);
        }
    });
}
